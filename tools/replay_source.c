/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_source.h"

#include <errno.h>
#include <stdlib.h>

#include "replay_message.h"

struct replay_source {
	const char *path;
	struct replay_capture *capture; /* NULL after a pass that could not be opened */
	uint64_t n_passes;              /* yet to come, this one not counted */
	bool is_nano;
	bool has_begun;     /* a packet with a timestamp has come */
	bool is_pass_new;   /* none of this pass has */
	bool is_pass_empty; /* no packet of this pass has come at all */
	uint64_t first_ns;  /* of the first one, since 1970 */
	uint64_t pass_ns;   /* of this pass' first one, since 1970 */
	uint64_t base_ns;   /* when that came, since the first */
	uint64_t since_ns;  /* of the last packet */
};

int
replay_source_open(const char *path, uint64_t n_passes, struct replay_source **out,
	struct replay_message *message)
{
	struct replay_source *source = calloc(1, sizeof(*source));
	int ret;

	if (source == NULL) {
		replay_message_set(message, "there is not enough memory to read %s", path);
		return -ENOMEM;
	}
	ret = replay_capture_open(path, &source->capture, message);
	if (ret != 0) {
		free(source);
		return ret;
	}
	source->path = path;
	source->n_passes = n_passes - 1;
	source->is_nano = replay_capture_is_nano(source->capture);
	source->is_pass_new = true;
	source->is_pass_empty = true;
	*out = source;
	return 0;
}

static int
begin_pass(struct replay_source *source, struct replay_message *message)
{
	replay_capture_close(source->capture);
	source->capture = NULL;
	source->n_passes--;
	source->is_pass_new = true;
	source->is_pass_empty = true;
	source->base_ns = source->since_ns;
	return replay_capture_open(source->path, &source->capture, message);
}

/* Time that has come to its end, in the year 2554, stands still. */
static uint64_t
add_time(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static void
keep_time(struct replay_source *source, struct replay_packet *packet)
{
	const struct replay_frame *frame = &packet->frame;

	if (frame->has_time && !source->has_begun) {
		source->has_begun = true;
		source->first_ns = frame->time_ns;
	}
	if (frame->has_time && source->is_pass_new) {
		source->is_pass_new = false;
		source->pass_ns = frame->time_ns;
	}
	if (frame->has_time)
		source->since_ns = add_time(source->base_ns, frame->time_ns - source->pass_ns);
	packet->since_ns = source->since_ns;
	packet->time_ns = source->has_begun ? add_time(source->first_ns, source->since_ns) : 0;
}

int
replay_source_next(struct replay_source *source, struct replay_packet *packet,
	struct replay_message *message)
{
	int got = replay_capture_next(source->capture, &packet->frame, message);

	/* A pass without a packet is like all that would follow. */
	if (got == 0 && source->n_passes > 0 && !source->is_pass_empty) {
		got = begin_pass(source, message);
		if (got == 0)
			got = replay_capture_next(source->capture, &packet->frame, message);
	}
	if (got == 1) {
		source->is_pass_empty = false;
		keep_time(source, packet);
	}
	return got;
}

bool
replay_source_is_nano(const struct replay_source *source)
{
	return source->is_nano;
}

void
replay_source_progress(const struct replay_source *source, uint64_t *read_bytes,
	uint64_t *file_bytes)
{
	replay_capture_progress(source->capture, read_bytes, file_bytes);
}

void
replay_source_close(struct replay_source *source)
{
	if (source == NULL)
		return;
	replay_capture_close(source->capture);
	free(source);
}
