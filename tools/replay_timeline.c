/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Two bins become one. */
static void
double_width(struct replay_timeline *timeline)
{
	timeline->width_ns *= 2;
	for (size_t i = 0; i < timeline->n_rows; i++) {
		uint64_t *row = timeline->rows[i];

		if (row == NULL)
			continue;
		for (size_t k = 0; k < REPLAY_TIMELINE_BINS / 2; k++)
			row[k] = row[2 * k] + row[2 * k + 1];
		memset(row + REPLAY_TIMELINE_BINS / 2, 0,
			REPLAY_TIMELINE_BINS / 2 * sizeof(*row));
	}
}

void
replay_timeline_reach(struct replay_timeline *timeline, uint64_t now_ns)
{
	if (timeline->width_ns == 0)
		timeline->width_ns = REPLAY_TIMELINE_LEAST_NS;
	while (now_ns / timeline->width_ns >= REPLAY_TIMELINE_BINS)
		double_width(timeline);
	if (now_ns > timeline->last_ns)
		timeline->last_ns = now_ns;
}

static int
add_row(struct replay_timeline *timeline, uint32_t backend)
{
	if (backend >= timeline->n_rows) {
		const size_t n = (size_t)backend + 1;
		uint64_t **rows = realloc(timeline->rows, n * sizeof(*rows));

		if (rows == NULL)
			return -ENOMEM;
		memset(rows + timeline->n_rows, 0, (n - timeline->n_rows) * sizeof(*rows));
		timeline->rows = rows;
		timeline->n_rows = n;
	}
	if (timeline->rows[backend] != NULL)
		return 0;
	timeline->rows[backend] = calloc(REPLAY_TIMELINE_BINS, sizeof(uint64_t));
	return timeline->rows[backend] == NULL ? -ENOMEM : 0;
}

int
replay_timeline_add(struct replay_timeline *timeline, uint32_t backend, uint64_t now_ns)
{
	if (backend >= timeline->n_rows || timeline->rows[backend] == NULL) {
		const int ret = add_row(timeline, backend);

		if (ret != 0)
			return ret;
	}
	replay_timeline_reach(timeline, now_ns);
	timeline->rows[backend][now_ns / timeline->width_ns]++;
	return 0;
}

int
replay_timeline_mark(struct replay_timeline *timeline, const char *title, uint64_t now_ns)
{
	struct replay_timeline_mark *marks =
		realloc(timeline->marks, (timeline->n_marks + 1) * sizeof(*marks));
	char *copy;

	if (marks == NULL)
		return -ENOMEM;
	timeline->marks = marks;
	copy = strdup(title);
	if (copy == NULL)
		return -ENOMEM;
	marks[timeline->n_marks++] =
		(struct replay_timeline_mark){.at_ns = now_ns, .title = copy};
	replay_timeline_reach(timeline, now_ns);
	return 0;
}

size_t
replay_timeline_n_bins(const struct replay_timeline *timeline)
{
	return timeline->width_ns == 0 ? 1 : timeline->last_ns / timeline->width_ns + 1;
}

uint64_t
replay_timeline_sum(const struct replay_timeline *timeline, uint32_t backend)
{
	uint64_t sum = 0;

	if (backend >= timeline->n_rows || timeline->rows[backend] == NULL)
		return 0;
	for (size_t i = 0; i < REPLAY_TIMELINE_BINS; i++)
		sum += timeline->rows[backend][i];
	return sum;
}

void
replay_timeline_fini(struct replay_timeline *timeline)
{
	for (size_t i = 0; i < timeline->n_rows; i++)
		free(timeline->rows[i]);
	free(timeline->rows);
	for (size_t i = 0; i < timeline->n_marks; i++)
		free(timeline->marks[i].title);
	free(timeline->marks);
	*timeline = (struct replay_timeline){.width_ns = 0};
}
