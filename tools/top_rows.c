/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_proto.h"

#define UNKNOWN  (-1.0)
#define NS_PER_S 1e9
/* Longer ones are searched up to there. */
#define NAME_BYTES 1024u

const char *const top_sort_words[TOP_N_SORTS] = {
	[TOP_SORT_PACKETS] = "packets",
	[TOP_SORT_BITS] = "bits",
	[TOP_SORT_FLOWS] = "new flows",
	[TOP_SORT_SHARE] = "share off due",
	[TOP_SORT_NAME] = "name",
};

static const char *
text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "-";
}

static json_int_t
number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* The item of a list with a name: at the same place mostly. NULL: none. */
static const json_t *
find_named(const json_t *list, const char *name, size_t place)
{
	const size_t n = json_array_size(list);

	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(list, (place + i) % n);

		if (strcmp(text_of(item, CTL_KEY_NAME), name) == 0)
			return item;
	}
	return NULL;
}

static double
rate_of(const json_t *now, const json_t *before, const char *key, double seconds)
{
	const json_int_t from = number_of(before, key);
	const json_int_t to = number_of(now, key);

	if (json_object_get(before, key) == NULL || to < from || !(seconds > 0))
		return UNKNOWN;
	return (double)(to - from) / seconds;
}

static void
measure(const json_t *now, const json_t *before, double seconds, struct top_row *row)
{
	const double bytes = rate_of(now, before, CTL_KEY_BYTES, seconds);

	row->packets = rate_of(now, before, CTL_KEY_PACKETS, seconds);
	row->bits = bytes < 0 ? UNKNOWN : bytes * 8;
	row->flows = rate_of(now, before, CTL_KEY_FLOWS, seconds);
}

/* Whether new flows are meant to come to it. */
static bool
is_due(const json_t *backend)
{
	const char *health = text_of(backend, CTL_KEY_HEALTH);

	return strcmp(text_of(backend, CTL_KEY_STATE), "up") == 0 &&
	       strcmp(health, "down") != 0 && strcmp(health, "flapping") != 0;
}

/* The words of the status page. */
static const char *
word_of(const json_t *backend)
{
	const char *state = text_of(backend, CTL_KEY_STATE);
	const char *health = text_of(backend, CTL_KEY_HEALTH);

	if (strcmp(state, "up") != 0)
		return strcmp(state, "drain") == 0 ? "draining" : state;
	if (json_is_false(json_object_get(backend, CTL_KEY_REACHED)))
		return "no next hop";
	if (strcmp(health, "down") == 0)
		return "failing";
	if (strcmp(health, "flapping") == 0)
		return "flapping";
	if (number_of(backend, CTL_KEY_WEIGHT) == 0)
		return "weight 0";
	return strcmp(health, "unknown") == 0 ? "checking" : "up";
}

static bool
is_picked(const struct top_row *row, const char *filter)
{
	char name[NAME_BYTES];

	if (row->backend == NULL)
		return strcasestr(row->service, filter) != NULL;
	(void)snprintf(name, sizeof(name), "%s/%s", row->service, row->backend);
	return strcasestr(name, filter) != NULL;
}

static void
add_row(struct top_rows *rows, const struct top_choice *choice, struct top_row *row)
{
	row->position = rows->n_all++;
	if (choice->filter[0] == '\0' || is_picked(row, choice->filter))
		rows->items[rows->n++] = *row;
}

struct sums {
	double packets;
	double weight;
	size_t n_up;
};

static struct sums
sum_backends(const json_t *backends, const json_t *old_backends, double seconds)
{
	struct sums sums = {0};

	for (size_t i = 0; i < json_array_size(backends); i++) {
		const json_t *backend = json_array_get(backends, i);
		const double packets = rate_of(backend,
			find_named(old_backends, text_of(backend, CTL_KEY_NAME), i),
			CTL_KEY_PACKETS, seconds);

		sums.packets += packets > 0 ? packets : 0;
		if (!is_due(backend))
			continue;
		sums.weight += (double)number_of(backend, CTL_KEY_WEIGHT);
		sums.n_up += number_of(backend, CTL_KEY_WEIGHT) > 0;
	}
	return sums;
}

static double
part_of(double part, double whole)
{
	return part >= 0 && whole > 0 ? part / whole : UNKNOWN;
}

static void
add_backends(const json_t *service, const json_t *old, double seconds,
	const struct top_choice *choice, struct top_rows *rows)
{
	const json_t *backends = json_object_get(service, CTL_KEY_BACKENDS);
	const json_t *old_backends = json_object_get(old, CTL_KEY_BACKENDS);
	const struct sums sums = sum_backends(backends, old_backends, seconds);

	for (size_t i = 0; i < json_array_size(backends); i++) {
		const json_t *backend = json_array_get(backends, i);
		const double weight =
			is_due(backend) ? (double)number_of(backend, CTL_KEY_WEIGHT) : 0;
		struct top_row row = {.service = text_of(service, CTL_KEY_NAME),
			.backend = text_of(backend, CTL_KEY_NAME),
			.state = word_of(backend),
			.due = part_of(weight, sums.weight)};

		measure(backend, find_named(old_backends, row.backend, i), seconds, &row);
		row.share = part_of(row.packets, sums.packets);
		add_row(rows, choice, &row);
	}
}

static void
add_service(const json_t *service, const json_t *old, double seconds,
	const struct top_choice *choice, struct top_rows *rows)
{
	const json_t *backends = json_object_get(service, CTL_KEY_BACKENDS);
	struct top_row row = {.service = text_of(service, CTL_KEY_NAME),
		.n_up = sum_backends(backends, NULL, 0).n_up,
		.n_backends = json_array_size(backends),
		.due = UNKNOWN};

	measure(service, old, seconds, &row);
	add_row(rows, choice, &row);
}

static void
add_rows(const struct top_sample *sample, const struct top_choice *choice,
	struct top_rows *rows)
{
	const json_t *services = json_object_get(sample->now, CTL_KEY_SERVICES);
	const json_t *old_services = json_object_get(sample->before, CTL_KEY_SERVICES);
	double packets = 0;

	for (size_t i = 0; i < json_array_size(services); i++) {
		const json_t *service = json_array_get(services, i);
		const json_t *old = find_named(old_services, text_of(service, CTL_KEY_NAME), i);
		const double rate = rate_of(service, old, CTL_KEY_PACKETS, sample->seconds);

		packets += rate > 0 ? rate : 0;
		if (choice->of_services)
			add_service(service, old, sample->seconds, choice, rows);
		else
			add_backends(service, old, sample->seconds, choice, rows);
	}
	for (size_t i = 0; choice->of_services && i < rows->n; i++)
		rows->items[i].share = part_of(rows->items[i].packets, packets);
}

/* Sorting. */

static double
distance(const struct top_row *row)
{
	if (row->share < 0 || row->due < 0)
		return row->due < 0 ? row->share : UNKNOWN;
	return row->share > row->due ? row->share - row->due : row->due - row->share;
}

/* The larger first; of those alike, as the configuration has them. */
static int
compare(double first, double second, const struct top_row *a, const struct top_row *b)
{
	if (first > second || first < second)
		return first > second ? -1 : 1;
	return a->position < b->position ? -1 : a->position > b->position;
}

static int
compare_packets(const void *a, const void *b)
{
	const struct top_row *first = a;
	const struct top_row *second = b;

	return compare(first->packets, second->packets, first, second);
}

static int
compare_bits(const void *a, const void *b)
{
	const struct top_row *first = a;
	const struct top_row *second = b;

	return compare(first->bits, second->bits, first, second);
}

static int
compare_flows(const void *a, const void *b)
{
	const struct top_row *first = a;
	const struct top_row *second = b;

	return compare(first->flows, second->flows, first, second);
}

static int
compare_shares(const void *a, const void *b)
{
	const struct top_row *first = a;
	const struct top_row *second = b;

	return compare(distance(first), distance(second), first, second);
}

static int
compare_names(const void *a, const void *b)
{
	const struct top_row *first = a;
	const struct top_row *second = b;
	int order = strcmp(first->service, second->service);

	if (order == 0 && first->backend != NULL)
		order = strcmp(first->backend, second->backend);
	return order != 0 ? order : compare(0, 0, first, second);
}

static void
sort_rows(struct top_rows *rows, const struct top_choice *choice)
{
	static int (*const order[TOP_N_SORTS])(const void *, const void *) = {
		[TOP_SORT_PACKETS] = compare_packets,
		[TOP_SORT_BITS] = compare_bits,
		[TOP_SORT_FLOWS] = compare_flows,
		[TOP_SORT_SHARE] = compare_shares,
		[TOP_SORT_NAME] = compare_names,
	};

	qsort(rows->items, rows->n, sizeof(*rows->items), order[choice->sort]);
	for (size_t i = 0; choice->is_reverse && i < rows->n / 2; i++) {
		const struct top_row row = rows->items[i];

		rows->items[i] = rows->items[rows->n - 1 - i];
		rows->items[rows->n - 1 - i] = row;
	}
}

int
top_rows_init(const struct top_sample *sample, const struct top_choice *choice,
	struct top_rows *out)
{
	const json_t *services = json_object_get(sample->now, CTL_KEY_SERVICES);
	struct top_rows rows = {.n_services = json_array_size(services)};

	for (size_t i = 0; i < rows.n_services; i++)
		rows.n_backends += json_array_size(
			json_object_get(json_array_get(services, i), CTL_KEY_BACKENDS));
	rows.items = calloc((choice->of_services ? rows.n_services : rows.n_backends) + 1,
		sizeof(*rows.items));
	if (rows.items == NULL)
		return -ENOMEM;
	add_rows(sample, choice, &rows);
	sort_rows(&rows, choice);
	*out = rows;
	return 0;
}

void
top_rows_fini(struct top_rows *rows)
{
	free(rows->items);
	*rows = (struct top_rows){0};
}

/* Counts and workers. */

static size_t
read_counts(const struct top_sample *sample, const char *key, bool has_zeros,
	struct top_count out[static TOP_COUNTS_MAX])
{
	json_t *counts = json_object_get(sample->now, key);
	const json_t *old = json_object_get(sample->before, key);
	const char *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach(counts, name, value)
	{
		if (n == TOP_COUNTS_MAX)
			break;
		if (has_zeros || json_integer_value(value) != 0)
			out[n++] = (struct top_count){.name = name,
				.total = json_integer_value(value),
				.rate = rate_of(counts, old, name, sample->seconds)};
	}
	return n;
}

size_t
top_count_packets(const struct top_sample *sample, struct top_count out[static TOP_COUNTS_MAX])
{
	return read_counts(sample, CTL_KEY_PACKETS, true, out);
}

static int
compare_counts(const void *a, const void *b)
{
	const struct top_count *first = a;
	const struct top_count *second = b;

	if (first->rate > second->rate || first->rate < second->rate)
		return first->rate > second->rate ? -1 : 1;
	if (first->total != second->total)
		return first->total > second->total ? -1 : 1;
	return strcmp(first->name, second->name);
}

size_t
top_count_drops(const struct top_sample *sample, struct top_count out[static TOP_COUNTS_MAX])
{
	const size_t n = read_counts(sample, CTL_KEY_DROPS, false, out);

	qsort(out, n, sizeof(*out), compare_counts);
	return n;
}

size_t
top_n_workers(const struct top_sample *sample)
{
	return json_array_size(json_object_get(sample->now, CTL_KEY_WORKERS));
}

struct top_worker
top_read_worker(const struct top_sample *sample, size_t i)
{
	const json_t *now = json_array_get(json_object_get(sample->now, CTL_KEY_WORKERS), i);
	const json_t *before =
		json_array_get(json_object_get(sample->before, CTL_KEY_WORKERS), i);
	const double busy_ns = rate_of(json_object_get(now, CTL_KEY_TURNS),
		json_object_get(before, CTL_KEY_TURNS), CTL_KEY_TOTAL_NS, sample->seconds);
	double busy = UNKNOWN;

	/* A turn counts at its end, and may have begun before. */
	if (busy_ns >= 0)
		busy = busy_ns < NS_PER_S ? busy_ns / NS_PER_S : 1;
	return (struct top_worker){.number = number_of(now, CTL_KEY_WORKER),
		.busy = busy,
		.entries = number_of(now, CTL_KEY_FLOW_ENTRIES)};
}
