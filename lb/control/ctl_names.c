/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_hash.h"

#define FREE     UINT32_MAX
#define ROOM_MIN 64u

struct entry {
	char *text;
	uint32_t parent;
};

struct ctl_names {
	struct entry *entries; /* by number */
	uint32_t n_entries;
	uint32_t n_max;
	uint32_t *places; /* open addressing, a power of two, at most half full */
	uint32_t n_places;
	uint32_t guess; /* the number after the last that was found: most come in their order */
};

int
ctl_names_create(uint32_t n_max, struct ctl_names **out)
{
	struct ctl_names *names = calloc(1, sizeof(*names));

	if (names == NULL)
		return -ENOMEM;
	names->n_max = n_max;
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

/* The place of a name, or the free one where it would stand. */
static uint32_t *
find_place(const struct ctl_names *names, uint32_t parent, const char *name)
{
	const uint32_t mask = names->n_places - 1;
	uint32_t i = (uint32_t)lb_hash_bytes(name, strlen(name), parent) & mask;

	while (names->places[i] != FREE) {
		const struct entry *entry = &names->entries[names->places[i]];

		if (entry->parent == parent && strcmp(entry->text, name) == 0)
			break;
		i = (i + 1) & mask;
	}
	return &names->places[i];
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

int
ctl_names_intern(struct ctl_names *names, uint32_t parent, const char *name, uint32_t *out)
{
	uint32_t *place;
	char *text;

	if (is_name(names, names->guess, parent, name)) {
		*out = names->guess++;
		return 0;
	}
	if (names->n_entries >= names->n_places / 2) {
		const int ret = grow(names);

		if (ret != 0)
			return ret;
	}

	place = find_place(names, parent, name);
	if (*place != FREE) {
		*out = *place;
		names->guess = *place + 1;
		return 0;
	}
	if (names->n_entries == names->n_max)
		return -ENOSPC;
	text = strdup(name);
	if (text == NULL)
		return -ENOMEM;

	names->entries[names->n_entries] = (struct entry){.text = text, .parent = parent};
	*place = names->n_entries;
	*out = names->n_entries++;
	return 0;
}

void
ctl_names_take_back(struct ctl_names *names, uint32_t n)
{
	/* The last first: what was put in place after a name may lie beyond it. */
	while (names->n_entries > n) {
		const struct entry *last = &names->entries[names->n_entries - 1];

		*find_place(names, last->parent, last->text) = FREE;
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
