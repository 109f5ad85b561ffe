/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_items.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is compared at a time before the byte that differs is looked for. */
#define BLOCK_BYTES 4096u

/* How far the lines of a text have been counted. */
struct place {
	const char *text;
	size_t n_bytes;
	size_t at;
	uint32_t line;
};

/* Goes on to the begin of a line; false where there is none. */
static bool
go_to_line(struct place *place, uint32_t line)
{
	while (place->line < line) {
		const char *end =
			memchr(place->text + place->at, '\n', place->n_bytes - place->at);

		if (end == NULL)
			return false;
		place->at = (size_t)(end - place->text) + 1;
		place->line++;
	}
	return true;
}

/* Whether a line is spaces, a dash, spaces, and then what begins in a column (from 1). */
static bool
is_dash_line(const struct place *place, uint32_t column, size_t *out)
{
	const char *line = place->text + place->at;
	const size_t n = column - 1;
	size_t dash = 0;

	if (n > place->n_bytes - place->at)
		return false;
	while (dash < n && line[dash] == ' ')
		dash++;
	if (dash + 1 >= n || line[dash] != '-')
		return false;
	for (size_t i = dash + 1; i < n; i++) {
		if (line[i] != ' ')
			return false;
	}
	*out = dash;
	return true;
}

static int
find_starts(struct place *place, const struct cfg_node *services, struct cfg_items *items)
{
	for (const struct cfg_node *item = services->first; item != NULL; item = item->next) {
		size_t column;

		if (!go_to_line(place, item->pos.line) ||
			!is_dash_line(place, item->pos.column, &column))
			return -ENOTSUP;
		if (items->n > 0 && column != items->column)
			return -ENOTSUP;
		items->column = column;
		items->starts[items->n++] = place->at;
	}
	items->starts[items->n] = place->n_bytes;
	if (services->next == NULL)
		return 0;
	if (services->next->key->pos.column != 1 ||
		!go_to_line(place, services->next->key->pos.line))
		return -ENOTSUP;
	items->starts[items->n] = place->at;
	return 0;
}

int
cfg_items_find(const char *text, size_t n_bytes, const struct cfg_node *root,
	struct cfg_items *out)
{
	struct place place = {.text = text, .n_bytes = n_bytes, .line = 1};
	const struct cfg_node *services;
	struct cfg_items items = {0};
	size_t n = 0;
	int ret;

	services = root == NULL ? NULL : cfg_node_get(root, "services");
	if (services == NULL || services->kind != CFG_SEQUENCE || services->first == NULL ||
		services->key->pos.column != 1)
		return -ENOTSUP;
	if (n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return -ENOTSUP;
	/* Another line end of libyaml's: lines would be counted otherwise than here. */
	if (memchr(text, '\r', n_bytes) != NULL)
		return -ENOTSUP;

	for (const struct cfg_node *item = services->first; item != NULL; item = item->next)
		n++;
	items.starts = calloc(n + 1, sizeof(*items.starts));
	if (items.starts == NULL)
		return -ENOMEM;
	ret = find_starts(&place, services, &items);
	if (ret != 0) {
		free(items.starts);
		return ret;
	}
	*out = items;
	return 0;
}

void
cfg_items_fini(struct cfg_items *items)
{
	free(items->starts);
	*items = (struct cfg_items){0};
}

/* Bytes that two texts of n bytes begin with alike. */
static size_t
count_same_first(const char *a, const char *b, size_t n)
{
	size_t i = 0;

	while (n - i >= BLOCK_BYTES && memcmp(a + i, b + i, BLOCK_BYTES) == 0)
		i += BLOCK_BYTES;
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* Bytes that two texts end with alike, n at most. */
static size_t
count_same_last(const char *a_end, const char *b_end, size_t n)
{
	size_t i = 0;

	while (n - i >= BLOCK_BYTES &&
		memcmp(a_end - i - BLOCK_BYTES, b_end - i - BLOCK_BYTES, BLOCK_BYTES) == 0)
		i += BLOCK_BYTES;
	while (i < n && a_end[-1 - (ptrdiff_t)i] == b_end[-1 - (ptrdiff_t)i])
		i++;
	return i;
}

/* The last item whose dash, with the space after it, is within the first n bytes, or n. */
static size_t
find_last_begun(const struct cfg_items *items, size_t n_bytes)
{
	size_t low = 0;
	size_t high = items->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (items->starts[middle] + items->column + 2 <= n_bytes)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 ? items->n : low - 1;
}

bool
cfg_items_compare(const struct cfg_items *items, const char *old, size_t n_old,
	const char *text, size_t n_text, struct cfg_change *out)
{
	/* More of the begin is of no use, and lets texts that are the same meet at the end. */
	const size_t n_first_max = items->starts[items->n - 1] + items->column + 2;
	const size_t n_both = n_old < n_text ? n_old : n_text;
	const size_t n_first =
		count_same_first(old, text, n_both < n_first_max ? n_both : n_first_max);
	const size_t n_last = count_same_last(old + n_old, text + n_text, n_both - n_first);
	size_t end;

	out->first = find_last_begun(items, n_first);
	if (out->first == items->n)
		return false;
	end = out->first + 1;
	while (end < items->n && items->starts[end] < n_old - n_last)
		end++;
	if (items->starts[end] < n_old - n_last)
		return false;
	out->end = end;
	out->start_bytes = items->starts[out->first];
	out->n_bytes = n_text - (n_old - items->starts[end]) - out->start_bytes;
	/* Where more follows, it has to begin on a line of its own. */
	return items->starts[end] == n_old ||
	       (out->n_bytes > 0 && text[out->start_bytes + out->n_bytes - 1] == '\n');
}
