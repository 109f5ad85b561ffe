/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_builder.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Something to be freed. */
struct waste {
	struct ctl_job job;
	struct ctl_view *view; /* NULL: none */
	struct waste *next;
};

struct ctl_builder {
	struct dp *dp;
	struct ctl_apply *apply; /* the thread's */
	pthread_t thread;
	int fd;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t has_work;
	bool is_over;
	bool has_job;
	bool is_building; /* a job that is the thread's */
	struct ctl_job job;
	struct ctl_built
		built[2]; /* what nobody has taken: one in force, one that failed after */
	size_t n_built;
	struct waste *waste; /* NULL: none */
};

static void
free_job(struct ctl_job *job)
{
	cfg_model_fini(&job->model);
	free(job->paths);
	free(job->shares);
	free(job->n_unhealthy);
}

static void
free_built(struct ctl_built *built)
{
	ctl_view_release(built->view);
	free(built->message);
}

static void
free_waste(struct waste *waste)
{
	while (waste != NULL) {
		struct waste *next = waste->next;

		free_job(&waste->job);
		ctl_view_release(waste->view);
		free(waste);
		waste = next;
	}
}

/* Take over what to free; with the lock held. False: no memory, and it is still the caller's.
 */
static bool
put_waste(struct ctl_builder *builder, struct ctl_job *job, struct ctl_view *view)
{
	struct waste *waste = calloc(1, sizeof(*waste));

	if (waste == NULL)
		return false;
	waste->job = *job;
	waste->view = view;
	waste->next = builder->waste;
	builder->waste = waste;
	(void)pthread_cond_signal(&builder->has_work);
	return true;
}

/* Build and publish. The view is made before the publish, so that nothing fails after it. */
static int
build(struct ctl_builder *builder, const struct ctl_job *job, FILE *messages,
	struct ctl_view **view)
{
	const struct ctl_paths paths = {.items = job->paths,
		.n_items = job->n_paths,
		.dp = builder->dp};
	const uint64_t begun_ns = dp_now_ns();
	struct dp_snapshot *snapshot;
	int ret;

	ctl_apply_set_time(builder->apply, begun_ns);
	ctl_apply_set_shares(builder->apply, job->shares);
	ret = ctl_apply_build(builder->apply, &job->model, &paths, messages, &snapshot);
	if (ret != 0)
		return ret;
	ret = ctl_view_create(builder->apply, &job->model, job->generation, view);
	if (ret != 0) {
		(void)fprintf(messages, "there is not enough memory for the configuration\n");
		dp_snapshot_destroy(snapshot);
		return ret;
	}
	(*view)->build_ns = dp_now_ns() - begun_ns;
	for (size_t i = 0; job->n_unhealthy != NULL && i < job->model.n_services; i++)
		(*view)->services[i].n_unhealthy = job->n_unhealthy[i];
	(*view)->n_unreached = ctl_apply_n_unreached(builder->apply);
	dp_publish(builder->dp, snapshot);
	ctl_apply_set_time(builder->apply, dp_now_ns());
	ctl_apply_published(builder->apply);
	return 0;
}

/* The line's end belongs to who prints it: this may be told in the middle of a line. */
static void
trim(char *text)
{
	size_t n = strlen(text);

	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
}

/*
 * An outcome that is not taken; with the lock held. Each says all that those before it did, but
 * for a failure: then what is in force is not what control has seen last.
 */
static void
put_built(struct ctl_builder *builder, const struct ctl_built *built)
{
	size_t n_kept = 0;

	if (built->view == NULL && builder->n_built > 0 && builder->built[0].view != NULL)
		n_kept = 1;
	while (builder->n_built > n_kept)
		free_built(&builder->built[--builder->n_built]);
	builder->built[builder->n_built++] = *built;
}

static void
run_job(struct ctl_builder *builder, struct ctl_job *job)
{
	struct ctl_built built = {.generation = job->generation};
	size_t n_message = 0;
	FILE *messages = open_memstream(&built.message, &n_message);
	const uint64_t one = 1;

	if (messages != NULL) {
		if (build(builder, job, messages, &built.view) != 0)
			built.view = NULL;
		if (fclose(messages) == 0)
			trim(built.message);
	}

	(void)pthread_mutex_lock(&builder->lock);
	put_built(builder, &built);
	builder->is_building = false;
	(void)pthread_mutex_unlock(&builder->lock);
	/* Fails only at 2^64 - 1 events that nobody has read. */
	(void)!write(builder->fd, &one, sizeof(one));
	/* Whoever waits for the outcome need not wait for this. */
	free_job(job);
}

/* Do what there is to do; with the lock held, which is let go meanwhile. */
static void
work(struct ctl_builder *builder)
{
	const bool has_job = builder->has_job;
	struct ctl_job job = builder->job;
	struct waste *waste = builder->waste;

	builder->has_job = false;
	builder->is_building = has_job;
	builder->waste = NULL;
	(void)pthread_mutex_unlock(&builder->lock);
	if (has_job)
		run_job(builder, &job);
	free_waste(waste);
	(void)pthread_mutex_lock(&builder->lock);
}

static void *
run(void *argument)
{
	struct ctl_builder *builder = argument;

	(void)pthread_mutex_lock(&builder->lock);
	while (!builder->is_over) {
		if (builder->has_job || builder->waste != NULL)
			work(builder);
		else
			(void)pthread_cond_wait(&builder->has_work, &builder->lock);
	}
	(void)pthread_mutex_unlock(&builder->lock);
	return NULL;
}

int
ctl_builder_create(struct dp *dp, struct ctl_builder **out)
{
	struct ctl_builder *builder = calloc(1, sizeof(*builder));
	int ret;

	if (builder == NULL)
		return -ENOMEM;
	builder->dp = dp;
	ret = ctl_apply_create(&builder->apply);
	if (ret != 0)
		goto free_builder;
	builder->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (builder->fd < 0) {
		ret = -errno;
		goto destroy_apply;
	}
	(void)pthread_mutex_init(&builder->lock, NULL);
	(void)pthread_cond_init(&builder->has_work, NULL);
	ret = -pthread_create(&builder->thread, NULL, run, builder);
	if (ret != 0)
		goto close_fd;
	*out = builder;
	return 0;

close_fd:
	(void)close(builder->fd);
destroy_apply:
	ctl_apply_destroy(builder->apply);
free_builder:
	free(builder);
	return ret;
}

void
ctl_builder_destroy(struct ctl_builder *builder)
{
	if (builder == NULL)
		return;
	(void)pthread_mutex_lock(&builder->lock);
	builder->is_over = true;
	(void)pthread_cond_signal(&builder->has_work);
	(void)pthread_mutex_unlock(&builder->lock);
	(void)pthread_join(builder->thread, NULL);

	if (builder->has_job)
		free_job(&builder->job);
	while (builder->n_built > 0)
		free_built(&builder->built[--builder->n_built]);
	free_waste(builder->waste);
	(void)pthread_cond_destroy(&builder->has_work);
	(void)pthread_mutex_destroy(&builder->lock);
	(void)close(builder->fd);
	ctl_apply_destroy(builder->apply);
	free(builder);
}

void
ctl_builder_submit(struct ctl_builder *builder, struct ctl_job *job)
{
	(void)pthread_mutex_lock(&builder->lock);
	if (builder->has_job && !put_waste(builder, &builder->job, NULL))
		free_job(&builder->job);
	builder->job = *job;
	builder->has_job = true;
	(void)pthread_cond_signal(&builder->has_work);
	(void)pthread_mutex_unlock(&builder->lock);
}

void
ctl_builder_free_model(struct ctl_builder *builder, struct cfg_model *model)
{
	struct ctl_job job = {.model = *model};
	bool is_taken;

	(void)pthread_mutex_lock(&builder->lock);
	is_taken = put_waste(builder, &job, NULL);
	(void)pthread_mutex_unlock(&builder->lock);
	if (is_taken)
		cfg_model_init(model);
	else
		cfg_model_fini(model);
}

void
ctl_builder_free_view(struct ctl_builder *builder, struct ctl_view *view)
{
	struct ctl_job nothing = {.paths = NULL};
	bool is_taken;

	cfg_model_init(&nothing.model);
	(void)pthread_mutex_lock(&builder->lock);
	is_taken = put_waste(builder, &nothing, view);
	(void)pthread_mutex_unlock(&builder->lock);
	if (!is_taken)
		ctl_view_release(view);
}

int
ctl_builder_fd(const struct ctl_builder *builder)
{
	return builder->fd;
}

bool
ctl_builder_is_busy(struct ctl_builder *builder)
{
	bool is_busy;

	(void)pthread_mutex_lock(&builder->lock);
	is_busy = builder->has_job || builder->is_building || builder->n_built > 0;
	(void)pthread_mutex_unlock(&builder->lock);
	return is_busy;
}

bool
ctl_builder_take(struct ctl_builder *builder, struct ctl_built *out)
{
	uint64_t n_events;
	bool has_built;

	(void)!read(builder->fd, &n_events, sizeof(n_events));
	(void)pthread_mutex_lock(&builder->lock);
	has_built = builder->n_built > 0;
	if (has_built) {
		*out = builder->built[0];
		builder->built[0] = builder->built[1];
		builder->n_built--;
	}
	(void)pthread_mutex_unlock(&builder->lock);
	return has_built;
}
