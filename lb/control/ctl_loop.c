/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_loop.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS  1000000u
#define NS_PER_S   1000000000u
#define EVENTS_MAX 64

/* One file. The kernel hands its address back, so it has to outlive the turn it dies in. */
struct watch {
	int fd;
	bool is_removed;
	ctl_fd_fn fn;
	void *context;
	struct watch *next_removed;
};

struct ctl_timer {
	uint64_t due_ns;
	uint64_t order; /* of two due at once, the one armed first comes first */
	uint64_t interval_ns;
	ctl_timer_fn fn;
	void *context;
	size_t place; /* in the heap */
};

struct signal_source {
	int fd;
	ctl_signal_fn fn;
	void *context;
	struct signal_source *next;
};

/* A lock that all get in the order they ask for it: a mutex alone may starve one of them. */
struct turnstile {
	pthread_mutex_t mutex;
	pthread_cond_t has_moved;
	uint64_t next;
	uint64_t served;
	bool is_open; /* the loop runs */
};

struct ctl_loop {
	int epoll_fd;
	struct turnstile turnstile;
	bool is_stopped;
	struct watch **watches; /* by fd; NULL: not there */
	size_t n_watches;
	struct watch *removed;
	struct ctl_timer **heap; /* the first is due first */
	size_t n_timers;
	size_t heap_slots;
	uint64_t next_order;
	struct ctl_timer *running; /* whose callback runs; NULL: none, or it was removed */
	struct signal_source *signals;
};

uint64_t
ctl_loop_now_ns(void)
{
	struct timespec now;

	/* Cannot fail: the clock is there, and the memory is ours. */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t
ctl_loop_now_ms(void)
{
	return ctl_loop_now_ns() / NS_PER_MS;
}

/* Never, rather than soon, where the sum is beyond what can be counted. */
static uint64_t
add_ns(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t
ns_from_ms(uint64_t ms)
{
	return ms > UINT64_MAX / NS_PER_MS ? UINT64_MAX : ms * NS_PER_MS;
}

/* Taking turns: the loop has its turn while callbacks run, and gives it away to wait. */

static void
take_turn(struct turnstile *turnstile)
{
	uint64_t mine;

	(void)pthread_mutex_lock(&turnstile->mutex);
	mine = turnstile->next++;
	while (turnstile->served != mine)
		(void)pthread_cond_wait(&turnstile->has_moved, &turnstile->mutex);
	(void)pthread_mutex_unlock(&turnstile->mutex);
}

static void
end_turn(struct turnstile *turnstile)
{
	(void)pthread_mutex_lock(&turnstile->mutex);
	turnstile->served++;
	(void)pthread_cond_broadcast(&turnstile->has_moved);
	(void)pthread_mutex_unlock(&turnstile->mutex);
}

int
ctl_loop_enter(struct ctl_loop *loop)
{
	take_turn(&loop->turnstile);
	if (loop->turnstile.is_open)
		return 0;
	end_turn(&loop->turnstile);
	return -EAGAIN;
}

void
ctl_loop_leave(struct ctl_loop *loop)
{
	end_turn(&loop->turnstile);
}

int
ctl_loop_create(struct ctl_loop **out)
{
	struct ctl_loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		const int ret = -errno;

		free(loop);
		return ret;
	}
	/* Neither fails where it is given no attributes. */
	(void)pthread_mutex_init(&loop->turnstile.mutex, NULL);
	(void)pthread_cond_init(&loop->turnstile.has_moved, NULL);
	*out = loop;
	return 0;
}

static void
free_removed(struct ctl_loop *loop)
{
	while (loop->removed != NULL) {
		struct watch *watch = loop->removed;

		loop->removed = watch->next_removed;
		free(watch);
	}
}

void
ctl_loop_destroy(struct ctl_loop *loop)
{
	if (loop == NULL)
		return;
	while (loop->signals != NULL) {
		struct signal_source *source = loop->signals;

		loop->signals = source->next;
		(void)close(source->fd);
		free(source);
	}
	for (size_t i = 0; i < loop->n_watches; i++)
		free(loop->watches[i]);
	free_removed(loop);
	free(loop->watches);
	for (size_t i = 0; i < loop->n_timers; i++)
		free(loop->heap[i]);
	free(loop->heap);
	(void)close(loop->epoll_fd);
	(void)pthread_cond_destroy(&loop->turnstile.has_moved);
	(void)pthread_mutex_destroy(&loop->turnstile.mutex);
	free(loop);
}

/* Files. */

static struct watch *
find_watch(const struct ctl_loop *loop, int fd)
{
	return fd >= 0 && (size_t)fd < loop->n_watches ? loop->watches[fd] : NULL;
}

static int
make_place_for_fd(struct ctl_loop *loop, size_t fd)
{
	const size_t n = 2 * fd + 16;
	struct watch **watches;

	if (fd < loop->n_watches)
		return 0;
	watches = realloc(loop->watches, n * sizeof(struct watch *));
	if (watches == NULL)
		return -ENOMEM;
	for (size_t i = loop->n_watches; i < n; i++)
		watches[i] = NULL;
	loop->watches = watches;
	loop->n_watches = n;
	return 0;
}

int
ctl_loop_add_fd(struct ctl_loop *loop, int fd, uint32_t events, ctl_fd_fn fn, void *context)
{
	struct watch *watch;
	struct epoll_event event = {.events = events};
	int ret;

	if (fd < 0)
		return -EBADF;
	if (find_watch(loop, fd) != NULL)
		return -EEXIST;
	ret = make_place_for_fd(loop, (size_t)fd);
	if (ret != 0)
		return ret;
	watch = calloc(1, sizeof(*watch));
	if (watch == NULL)
		return -ENOMEM;
	watch->fd = fd;
	watch->fn = fn;
	watch->context = context;
	event.data.ptr = watch;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		ret = -errno;
		free(watch);
		return ret;
	}
	loop->watches[fd] = watch;
	return 0;
}

void
ctl_loop_change_fd(struct ctl_loop *loop, int fd, uint32_t events)
{
	struct watch *watch = find_watch(loop, fd);
	struct epoll_event event = {.events = events, .data = {.ptr = watch}};

	if (watch != NULL)
		(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

void
ctl_loop_remove_fd(struct ctl_loop *loop, int fd)
{
	struct watch *watch = find_watch(loop, fd);

	if (watch == NULL)
		return;
	/* Fails where the file is closed already, and then it is not waited for either. */
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	loop->watches[fd] = NULL;
	watch->is_removed = true;
	watch->next_removed = loop->removed;
	loop->removed = watch;
}

/* Timers: a binary heap. */

static bool
is_sooner(const struct ctl_timer *a, const struct ctl_timer *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void
put_timer(struct ctl_loop *loop, size_t place, struct ctl_timer *timer)
{
	loop->heap[place] = timer;
	timer->place = place;
}

static void
sift_up(struct ctl_loop *loop, size_t place)
{
	struct ctl_timer *timer = loop->heap[place];

	while (place > 0 && is_sooner(timer, loop->heap[(place - 1) / 2])) {
		put_timer(loop, place, loop->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put_timer(loop, place, timer);
}

static void
sift_down(struct ctl_loop *loop, size_t place)
{
	struct ctl_timer *timer = loop->heap[place];

	for (;;) {
		size_t child = 2 * place + 1;

		if (child + 1 < loop->n_timers &&
			is_sooner(loop->heap[child + 1], loop->heap[child]))
			child++;
		if (child >= loop->n_timers || !is_sooner(loop->heap[child], timer))
			break;
		put_timer(loop, place, loop->heap[child]);
		place = child;
	}
	put_timer(loop, place, timer);
}

int
ctl_loop_add_timer(struct ctl_loop *loop, uint64_t delay_ms, uint64_t interval_ms,
	ctl_timer_fn fn, void *context, struct ctl_timer **out)
{
	struct ctl_timer *timer;

	if (loop->n_timers == loop->heap_slots) {
		const size_t n = 2 * loop->heap_slots + 8;
		struct ctl_timer **heap = realloc(loop->heap, n * sizeof(struct ctl_timer *));

		if (heap == NULL)
			return -ENOMEM;
		loop->heap = heap;
		loop->heap_slots = n;
	}
	timer = calloc(1, sizeof(*timer));
	if (timer == NULL)
		return -ENOMEM;
	timer->due_ns = add_ns(ctl_loop_now_ns(), ns_from_ms(delay_ms));
	timer->order = loop->next_order++;
	timer->interval_ns = ns_from_ms(interval_ms);
	timer->fn = fn;
	timer->context = context;
	put_timer(loop, loop->n_timers++, timer);
	sift_up(loop, timer->place);
	if (out != NULL)
		*out = timer;
	return 0;
}

void
ctl_loop_remove_timer(struct ctl_loop *loop, struct ctl_timer *timer)
{
	struct ctl_timer *last;

	if (timer == NULL)
		return;
	last = loop->heap[--loop->n_timers];
	if (last != timer) {
		put_timer(loop, timer->place, last);
		sift_up(loop, last->place);
		sift_down(loop, last->place);
	}
	if (loop->running == timer)
		loop->running = NULL;
	free(timer);
}

/*
 * Armed anew before its callback, which may remove it: it stays in the heap meanwhile. One that
 * is late does not make up for calls it missed, but starts over from now.
 */
static void
run_timer(struct ctl_loop *loop, struct ctl_timer *timer, uint64_t now)
{
	const bool is_once = timer->interval_ns == 0;

	timer->due_ns = is_once ? UINT64_MAX : add_ns(timer->due_ns, timer->interval_ns);
	if (timer->due_ns <= now)
		timer->due_ns = add_ns(now, timer->interval_ns);
	timer->order = loop->next_order++;
	sift_down(loop, timer->place);

	loop->running = timer;
	timer->fn(timer->context);
	if (loop->running != NULL && is_once)
		ctl_loop_remove_timer(loop, timer);
	loop->running = NULL;
}

/* Due before this turn only: one that arms itself for at once leaves files a turn. */
static void
run_timers(struct ctl_loop *loop)
{
	const uint64_t now = ctl_loop_now_ns();

	while (!loop->is_stopped && loop->n_timers > 0 && loop->heap[0]->due_ns <= now)
		run_timer(loop, loop->heap[0], now);
}

/* How long to wait for files; rounded up, not to spin until a timer is due. */
static int
wait_ms(const struct ctl_loop *loop)
{
	const uint64_t now = ctl_loop_now_ns();
	uint64_t ms;

	if (loop->n_timers == 0)
		return -1;
	if (loop->heap[0]->due_ns <= now)
		return 0;
	ms = (loop->heap[0]->due_ns - now - 1) / NS_PER_MS + 1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

/* Signals. */

/* One a turn: the next one is still there in the next turn, and the loop may stop between. */
static void
on_signal_fd(void *context, uint32_t events)
{
	const struct signal_source *source = context;
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		source->fn(source->context, (int)info.ssi_signo);
}

int
ctl_loop_take_signals(struct ctl_loop *loop, const int signals[], size_t n, ctl_signal_fn fn,
	void *context)
{
	struct signal_source *source = calloc(1, sizeof(*source));
	sigset_t set;
	int ret = 0;

	if (source == NULL)
		return -ENOMEM;
	(void)sigemptyset(&set);
	for (size_t i = 0; i < n; i++) {
		if (sigaddset(&set, signals[i]) != 0) {
			ret = -EINVAL;
			goto free_source;
		}
	}
	source->fn = fn;
	source->context = context;
	source->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (source->fd < 0) {
		ret = -errno;
		goto free_source;
	}
	ret = ctl_loop_add_fd(loop, source->fd, EPOLLIN, on_signal_fd, source);
	if (ret != 0)
		goto close_fd;
	/* Last: what is blocked and not taken would be lost. */
	ret = -pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (ret != 0)
		goto remove_fd;
	source->next = loop->signals;
	loop->signals = source;
	return 0;

remove_fd:
	ctl_loop_remove_fd(loop, source->fd);
close_fd:
	(void)close(source->fd);
free_source:
	free(source);
	return ret;
}

/* The loop itself. */

static int
run_turn(struct ctl_loop *loop)
{
	struct epoll_event events[EVENTS_MAX];
	const int ms = wait_ms(loop);
	int error;
	int n;

	end_turn(&loop->turnstile);
	n = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, ms);
	error = errno;
	take_turn(&loop->turnstile);
	if (n < 0 && error != EINTR)
		return -error;
	for (int i = 0; i < n && !loop->is_stopped; i++) {
		const struct watch *watch = events[i].data.ptr;

		if (!watch->is_removed)
			watch->fn(watch->context, events[i].events);
	}
	free_removed(loop);
	run_timers(loop);
	return 0;
}

int
ctl_loop_run(struct ctl_loop *loop)
{
	int ret = 0;

	take_turn(&loop->turnstile);
	loop->turnstile.is_open = true;
	while (ret == 0 && !loop->is_stopped)
		ret = run_turn(loop);
	loop->is_stopped = false;
	loop->turnstile.is_open = false;
	end_turn(&loop->turnstile);
	return ret;
}

void
ctl_loop_stop(struct ctl_loop *loop)
{
	loop->is_stopped = true;
}
