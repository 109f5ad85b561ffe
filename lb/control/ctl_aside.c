/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_aside.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Tasks in the order they came. */
struct queue {
	struct ctl_task *first;
	struct ctl_task **last; /* where the next is put */
};

struct ctl_aside {
	struct ctl_loop *loop;
	pthread_t thread;
	int fd;              /* readable where there are tasks that were run */
	atomic_bool is_over; /* set under the lock, read anywhere */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t has_work;
	struct queue waiting;
	struct queue done;
};

static void
init_queue(struct queue *queue)
{
	*queue = (struct queue){.last = &queue->first};
}

static void
put(struct queue *queue, struct ctl_task *task)
{
	task->next = NULL;
	*queue->last = task;
	queue->last = &task->next;
}

/* NULL: none. */
static struct ctl_task *
take(struct queue *queue)
{
	struct ctl_task *task = queue->first;

	if (task != NULL)
		queue->first = task->next;
	if (queue->first == NULL)
		queue->last = &queue->first;
	return task;
}

static void *
run(void *argument)
{
	struct ctl_aside *aside = argument;
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&aside->lock);
	for (;;) {
		struct ctl_task *task = NULL;

		while (!aside->is_over && (task = take(&aside->waiting)) == NULL)
			(void)pthread_cond_wait(&aside->has_work, &aside->lock);
		if (task == NULL)
			break;
		(void)pthread_mutex_unlock(&aside->lock);
		task->run(task);
		(void)pthread_mutex_lock(&aside->lock);
		put(&aside->done, task);
		/* Fails only at 2^64 - 1 events that nobody has read. */
		(void)!write(aside->fd, &one, sizeof(one));
	}
	(void)pthread_mutex_unlock(&aside->lock);
	return NULL;
}

static struct ctl_task *
take_done(struct ctl_aside *aside)
{
	struct ctl_task *task;

	(void)pthread_mutex_lock(&aside->lock);
	task = take(&aside->done);
	(void)pthread_mutex_unlock(&aside->lock);
	return task;
}

static void
finish_done(struct ctl_aside *aside, bool is_done)
{
	struct ctl_task *task;

	while ((task = take_done(aside)) != NULL)
		task->finish(task, is_done);
}

static void
on_done(void *context, uint32_t events)
{
	struct ctl_aside *aside = context;
	uint64_t n_events;

	(void)events;
	(void)!read(aside->fd, &n_events, sizeof(n_events));
	finish_done(aside, true);
}

int
ctl_aside_create(struct ctl_loop *loop, struct ctl_aside **out)
{
	struct ctl_aside *aside = calloc(1, sizeof(*aside));
	int ret;

	if (aside == NULL)
		return -ENOMEM;
	aside->loop = loop;
	init_queue(&aside->waiting);
	init_queue(&aside->done);
	aside->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (aside->fd < 0) {
		ret = -errno;
		goto free_aside;
	}
	ret = ctl_loop_add_fd(loop, aside->fd, EPOLLIN, on_done, aside);
	if (ret != 0)
		goto close_fd;
	(void)pthread_mutex_init(&aside->lock, NULL);
	(void)pthread_cond_init(&aside->has_work, NULL);
	ret = -pthread_create(&aside->thread, NULL, run, aside);
	if (ret != 0)
		goto remove_fd;
	*out = aside;
	return 0;

remove_fd:
	ctl_loop_remove_fd(loop, aside->fd);
close_fd:
	(void)close(aside->fd);
free_aside:
	free(aside);
	return ret;
}

void
ctl_aside_destroy(struct ctl_aside *aside)
{
	struct ctl_task *task;

	if (aside == NULL)
		return;
	(void)pthread_mutex_lock(&aside->lock);
	aside->is_over = true;
	(void)pthread_cond_signal(&aside->has_work);
	(void)pthread_mutex_unlock(&aside->lock);
	(void)pthread_join(aside->thread, NULL);

	finish_done(aside, false);
	while ((task = take(&aside->waiting)) != NULL)
		task->finish(task, false);
	ctl_loop_remove_fd(aside->loop, aside->fd);
	(void)pthread_cond_destroy(&aside->has_work);
	(void)pthread_mutex_destroy(&aside->lock);
	(void)close(aside->fd);
	free(aside);
}

const atomic_bool *
ctl_aside_stop(const struct ctl_aside *aside)
{
	return &aside->is_over;
}

void
ctl_aside_submit(struct ctl_aside *aside, struct ctl_task *task)
{
	(void)pthread_mutex_lock(&aside->lock);
	put(&aside->waiting, task);
	(void)pthread_cond_signal(&aside->has_work);
	(void)pthread_mutex_unlock(&aside->lock);
}
