/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of weights.
 */
#include "compare_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_character.h"
#include "cfg_node.h"

/** What a file is read into: names by their places, as the memory that they are in moves. */
struct reading {
	const char *file;
	size_t line;
	bool is_wrong;
	struct compare_set set;
	size_t backends_room;
	size_t *name_places; /* in set.names, by backend */
	size_t *lines;       /* of each backend */
	size_t names_bytes;
	size_t names_room;
};

static void
tell(struct reading *reading, const char *what)
{
	reading->is_wrong = true;
	(void)fprintf(stderr, "shunt-compare: %s:%zu: %s\n", reading->file,
		reading->line > 0 ? reading->line : 1, what);
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool
compare_is_utf8(const char *text, size_t n_bytes)
{
	size_t at = 0;

	while (at < n_bytes) {
		uint32_t c;
		const size_t n = cfg_decode_character(text + at, n_bytes - at, &c);

		if (n == 0)
			return false;
		at += n;
	}
	return true;
}

/** Digits alone, 0..LB_WEIGHT_MAX. */
static bool
is_weight(const char *text, size_t n_bytes, uint32_t *out)
{
	uint32_t weight = 0;

	for (size_t i = 0; i < n_bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		weight = weight * 10 + (uint32_t)(text[i] - '0');
		if (weight > LB_WEIGHT_MAX)
			return false;
	}
	*out = weight;
	return n_bytes > 0;
}

/** Whether a name is numbers with space between, which weights in one line look like. */
static bool
is_list(const char *name, size_t n_bytes)
{
	bool has_space = false;

	for (size_t i = 0; i < n_bytes; i++) {
		if (!is_space(name[i]) && (name[i] < '0' || name[i] > '9'))
			return false;
		has_space |= is_space(name[i]);
	}
	return has_space;
}

static int
grow(struct reading *reading, size_t name_bytes)
{
	struct compare_set *set = &reading->set;

	if (set->n == reading->backends_room) {
		const size_t room = set->n == 0 ? 64 : 2 * set->n;
		void *backends = reallocarray(set->backends, room, sizeof(*set->backends));
		void *places;

		if (backends == NULL)
			return -ENOMEM;
		set->backends = backends;
		places = reallocarray(reading->name_places, room, sizeof(size_t));
		if (places == NULL)
			return -ENOMEM;
		reading->name_places = places;
		places = reallocarray(reading->lines, room, sizeof(size_t));
		if (places == NULL)
			return -ENOMEM;
		reading->lines = places;
		reading->backends_room = room;
	}
	if (set->names == NULL || reading->names_room - reading->names_bytes < name_bytes) {
		const size_t room = 2 * reading->names_room + name_bytes;
		char *names = realloc(set->names, room);

		if (names == NULL)
			return -ENOMEM;
		set->names = names;
		reading->names_room = room;
	}
	return 0;
}

static int
add_backend(struct reading *reading, const char *name, size_t name_bytes, uint32_t weight)
{
	struct compare_set *set = &reading->set;
	const int ret = grow(reading, name_bytes);

	if (ret != 0)
		return ret;
	memcpy(set->names + reading->names_bytes, name, name_bytes);
	reading->name_places[set->n] = reading->names_bytes;
	reading->lines[set->n] = reading->line;
	reading->names_bytes += name_bytes;
	set->backends[set->n] = (struct compare_backend){
		.name_bytes = (uint32_t)name_bytes,
		.weight = weight,
		.id = (uint32_t)set->n,
	};
	set->n++;
	return 0;
}

/** A line without the space around it. */
static int
take_line(struct reading *reading, const char *text, size_t n_bytes)
{
	char made_up[32];
	const char *name = text;
	size_t name_bytes = n_bytes, at = n_bytes;
	uint32_t weight;

	while (at > 0 && !is_space(text[at - 1]))
		at--;
	if (!is_weight(text + at, n_bytes - at, &weight)) {
		tell(reading, "expected a weight, 0..65535, or a name and a weight at the "
			      "line's end");
		return 0;
	}
	name_bytes = at;
	while (name_bytes > 0 && is_space(text[name_bytes - 1]))
		name_bytes--;
	if (name_bytes == 0) {
		name = made_up;
		name_bytes = (size_t)snprintf(made_up, sizeof(made_up), "backend-%zu",
			reading->set.n + 1);
	}
	if (name_bytes > LB_NAME_BYTES_MAX) {
		tell(reading, "a name is 255 bytes at most");
		return 0;
	}
	if (!cfg_is_name_bytes(name, name_bytes)) {
		tell(reading, "a name is UTF-8 without '/' and control characters, and this "
			      "one is not");
		return 0;
	}
	if (is_list(name, name_bytes)) {
		tell(reading, "these are several numbers; expected one backend a line: a "
			      "weight, or a name and a weight");
		return 0;
	}
	return add_backend(reading, name, name_bytes, weight);
}

static int
read_lines(struct reading *reading, FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n_read;
	int ret = 0;

	while (ret == 0 && reading->set.n <= LB_SERVICE_BACKENDS_MAX &&
		(n_read = getline(&line, &room, file)) >= 0) {
		const char *text = line;
		size_t n_bytes = (size_t)n_read;

		reading->line++;
		while (n_bytes > 0 && is_space(text[n_bytes - 1]))
			n_bytes--;
		while (n_bytes > 0 && is_space(*text)) {
			text++;
			n_bytes--;
		}
		if (n_bytes > 0 && *text != '#')
			ret = take_line(reading, text, n_bytes);
	}
	if (ret == 0 && ferror(file) != 0) {
		(void)fprintf(stderr, "shunt-compare: %s: it cannot be read: %s\n",
			reading->file, strerror(errno));
		ret = -EINVAL;
	}
	free(line);
	return ret;
}

static int
compare_names(const void *a, const void *b)
{
	const struct compare_backend *x = a, *y = b;
	const uint32_t n_bytes = x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes;
	const int order = memcmp(x->name, y->name, n_bytes);

	if (order != 0)
		return order;
	if (x->name_bytes != y->name_bytes)
		return x->name_bytes < y->name_bytes ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static bool
is_same_name(const struct compare_backend *a, const struct compare_backend *b)
{
	return a->name_bytes == b->name_bytes && memcmp(a->name, b->name, a->name_bytes) == 0;
}

/** Tell of every name that stands twice, in a copy of the array, which is sorted. */
static int
check_names(struct reading *reading)
{
	const struct compare_set *set = &reading->set;
	struct compare_backend *sorted = malloc(set->n * sizeof(*sorted));

	if (sorted == NULL)
		return -ENOMEM;
	memcpy(sorted, set->backends, set->n * sizeof(*sorted));
	qsort(sorted, set->n, sizeof(*sorted), compare_names);
	for (size_t i = 1; i < set->n; i++) {
		if (!is_same_name(&sorted[i - 1], &sorted[i]))
			continue;
		reading->is_wrong = true;
		(void)fprintf(stderr,
			"shunt-compare: %s:%zu: the name '%.*s' stands in line %zu already\n",
			reading->file, reading->lines[sorted[i].id], (int)sorted[i].name_bytes,
			sorted[i].name, reading->lines[sorted[i - 1].id]);
	}
	free(sorted);
	return 0;
}

static int
check_all(struct reading *reading)
{
	struct compare_set *set = &reading->set;

	for (size_t i = 0; i < set->n; i++)
		set->backends[i].name = set->names + reading->name_places[i];
	set->n_ids = set->n;
	if (set->n > LB_SERVICE_BACKENDS_MAX) {
		tell(reading, "a service has 65535 backends at most");
		return 0;
	}
	if (!reading->is_wrong && compare_set_weight_sum(set) == 0) {
		tell(reading, set->n == 0 ? "there is no backend" : "all weights are 0");
		return 0;
	}
	return set->n == 0 ? 0 : check_names(reading);
}

int
compare_set_read(const char *file, struct compare_set *out)
{
	struct reading reading = {.file = file};
	FILE *stream = fopen(file, "re");
	int ret;

	if (stream == NULL) {
		(void)fprintf(stderr,
			"shunt-compare: --weights wants equal, a range like 1..100, or a file, "
			"and "
			"'%s' cannot be opened: %s\n",
			file, strerror(errno));
		return -EINVAL;
	}
	ret = read_lines(&reading, stream);
	(void)fclose(stream);
	if (ret == 0)
		ret = check_all(&reading);
	if (ret == 0 && reading.is_wrong)
		ret = -EINVAL;
	free(reading.name_places);
	free(reading.lines);
	if (ret != 0)
		compare_set_fini(&reading.set);
	else
		*out = reading.set;
	return ret;
}
