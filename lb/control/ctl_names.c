/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_hash.h"

#define FREE     UINT32_MAX
#define HELD     UINT64_MAX
#define ROOM_MIN 64u

struct entry {
	char *text;
	uint64_t used_ns; /* when it was in use last, or HELD */
	uint32_t parent;
};

struct ctl_names {
	struct entry *entries; /* by number */
	uint32_t n_entries;
	uint32_t n_max;
	uint32_t *places; /* open addressing, a power of two, at most half full */
	uint32_t n_places;
	uint32_t next_rested; /* where to look first for a number that has rested */
	uint64_t now_ns;
	uint64_t rest_ns;
	uint32_t guess; /* the number after the last that was found: most come in their order */
};

int
ctl_names_create(uint32_t n_max, struct ctl_names **out)
{
	struct ctl_names *names = calloc(1, sizeof(*names));

	if (names == NULL)
		return -ENOMEM;
	names->n_max = n_max;
	names->rest_ns = UINT64_MAX;
	*out = names;
	return 0;
}

void
ctl_names_destroy(struct ctl_names *names)
{
	if (names == NULL)
		return;
	for (uint32_t i = 0; i < names->n_entries; i++)
		free(names->entries[i].text);
	free(names->entries);
	free(names->places);
	free(names);
}

/* The place where the search for a name begins. */
static uint32_t
first_place(const struct ctl_names *names, uint32_t parent, const char *name)
{
	return (uint32_t)lb_hash_bytes(name, strlen(name), parent) & (names->n_places - 1);
}

/* The place of a name, or the free one where it would stand. */
static uint32_t *
find_place(const struct ctl_names *names, uint32_t parent, const char *name)
{
	const uint32_t mask = names->n_places - 1;
	uint32_t i = first_place(names, parent, name);

	while (names->places[i] != FREE) {
		const struct entry *entry = &names->entries[names->places[i]];

		if (entry->parent == parent && strcmp(entry->text, name) == 0)
			break;
		i = (i + 1) & mask;
	}
	return &names->places[i];
}

/* Free the place of a name, and move those up that were put beyond it as it was taken. */
static void
free_place(struct ctl_names *names, const struct entry *entry)
{
	const uint32_t mask = names->n_places - 1;
	uint32_t hole =
		(uint32_t)(find_place(names, entry->parent, entry->text) - names->places);

	for (uint32_t i = (hole + 1) & mask; names->places[i] != FREE; i = (i + 1) & mask) {
		const struct entry *other = &names->entries[names->places[i]];
		const uint32_t first = first_place(names, other->parent, other->text);

		/* Its search comes by the hole. */
		if (((i - first) & mask) >= ((i - hole) & mask)) {
			names->places[hole] = names->places[i];
			hole = i;
		}
	}
	names->places[hole] = FREE;
}

/* Room for twice as many, all put in place again. */
static int
grow(struct ctl_names *names)
{
	const uint32_t n_places = names->n_places == 0 ? 2 * ROOM_MIN : 2 * names->n_places;
	uint32_t *places = malloc(n_places * sizeof(*places));
	struct entry *entries = realloc(names->entries, n_places / 2 * sizeof(*entries));

	if (entries != NULL)
		names->entries = entries;
	if (places == NULL || entries == NULL) {
		free(places);
		return -ENOMEM;
	}

	free(names->places);
	names->places = places;
	names->n_places = n_places;
	memset(places, 0xff, n_places * sizeof(*places));
	for (uint32_t i = 0; i < names->n_entries; i++)
		*find_place(names, entries[i].parent, entries[i].text) = i;
	return 0;
}

static bool
is_name(const struct ctl_names *names, uint32_t number, uint32_t parent, const char *name)
{
	return number < names->n_entries && names->entries[number].parent == parent &&
	       strcmp(names->entries[number].text, name) == 0;
}

/* Mark a number as in use now. */
static uint32_t
use(struct ctl_names *names, uint32_t number)
{
	if (names->entries[number].used_ns != HELD)
		names->entries[number].used_ns = names->now_ns;
	return number;
}

/* A number that has rested, or FREE. */
static uint32_t
find_rested(struct ctl_names *names)
{
	for (uint32_t i = 0; i < names->n_entries; i++) {
		const uint32_t number = names->next_rested % names->n_entries;
		const uint64_t used_ns = names->entries[number].used_ns;

		names->next_rested = number + 1;
		if (used_ns != HELD && names->now_ns - used_ns >= names->rest_ns)
			return number;
	}
	return FREE;
}

/* A number for a new name: the next, or one that has rested, whose name is then forgotten. */
static int
take_number(struct ctl_names *names, uint32_t *out)
{
	uint32_t number = names->n_entries;

	if (number < names->n_max) {
		names->n_entries++;
		*out = number;
		return 0;
	}
	number = find_rested(names);
	if (number == FREE)
		return -ENOSPC;
	free_place(names, &names->entries[number]);
	free(names->entries[number].text);
	*out = number;
	return 0;
}

int
ctl_names_intern(struct ctl_names *names, uint32_t parent, const char *name, uint32_t *out)
{
	uint32_t *place;
	uint32_t number;
	char *text;
	int ret;

	if (is_name(names, names->guess, parent, name)) {
		*out = use(names, names->guess++);
		return 0;
	}
	if (names->n_entries >= names->n_places / 2) {
		ret = grow(names);
		if (ret != 0)
			return ret;
	}

	place = find_place(names, parent, name);
	if (*place != FREE) {
		*out = use(names, *place);
		names->guess = *place + 1;
		return 0;
	}
	text = strdup(name);
	if (text == NULL)
		return -ENOMEM;
	ret = take_number(names, &number);
	if (ret != 0) {
		free(text);
		return ret;
	}

	/* The place again: a name that is forgotten moves others. */
	*find_place(names, parent, name) = number;
	names->entries[number] =
		(struct entry){.text = text, .used_ns = names->now_ns, .parent = parent};
	*out = number;
	return 0;
}

void
ctl_names_set_time(struct ctl_names *names, uint64_t now_ns, uint64_t rest_ns)
{
	names->now_ns = now_ns;
	names->rest_ns = rest_ns;
}

void
ctl_names_hold(struct ctl_names *names, uint32_t number)
{
	names->entries[number].used_ns = HELD;
}

void
ctl_names_release_all(struct ctl_names *names)
{
	for (uint32_t i = 0; i < names->n_entries; i++)
		if (names->entries[i].used_ns == HELD)
			names->entries[i].used_ns = names->now_ns;
}

void
ctl_names_take_back(struct ctl_names *names, uint32_t n)
{
	while (names->n_entries > n) {
		const struct entry *last = &names->entries[names->n_entries - 1];

		free_place(names, last);
		free(last->text);
		names->n_entries--;
	}
}

uint32_t
ctl_names_count(const struct ctl_names *names)
{
	return names->n_entries;
}

const char *
ctl_names_text(const struct ctl_names *names, uint32_t number)
{
	return names->entries[number].text;
}

uint32_t
ctl_names_parent(const struct ctl_names *names, uint32_t number)
{
	return names->entries[number].parent;
}
