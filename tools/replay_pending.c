/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 1024u

/* A ring by number; its size is a power of two, and all of [next, next + size) have a place. */
struct replay_pending {
	struct replay_outcome *items;
	uint64_t size;
	uint64_t next; /* the packet whose turn it is */
};

int
replay_pending_create(struct replay_pending **out)
{
	struct replay_pending *pending = calloc(1, sizeof(*pending));

	if (pending == NULL)
		return -ENOMEM;
	pending->size = ROOM_MIN;
	pending->items = calloc(pending->size, sizeof(*pending->items));
	if (pending->items == NULL) {
		free(pending);
		return -ENOMEM;
	}
	*out = pending;
	return 0;
}

void
replay_pending_destroy(struct replay_pending *pending)
{
	if (pending == NULL)
		return;
	free(pending->items);
	free(pending);
}

static struct replay_outcome *
place(const struct replay_pending *pending, uint64_t number)
{
	return &pending->items[number & (pending->size - 1)];
}

static int
grow(struct replay_pending *pending, uint64_t size)
{
	struct replay_pending larger = {
		.items = calloc(size, sizeof(*larger.items)),
		.size = size,
	};

	if (larger.items == NULL)
		return -ENOMEM;
	for (uint64_t i = 0; i < pending->size; i++)
		*place(&larger, pending->next + i) = *place(pending, pending->next + i);
	free(pending->items);
	pending->items = larger.items;
	pending->size = size;
	return 0;
}

int
replay_pending_settle(struct replay_pending *pending, uint64_t number,
	const struct replay_outcome *outcome)
{
	uint64_t size = pending->size;

	while (number - pending->next >= size)
		size *= 2;
	if (size > pending->size && grow(pending, size) != 0)
		return -ENOMEM;
	*place(pending, number) = *outcome;
	place(pending, number)->is_settled = true;
	return 0;
}

bool
replay_pending_next(struct replay_pending *pending, uint64_t *number,
	struct replay_outcome *outcome)
{
	struct replay_outcome *item = place(pending, pending->next);

	if (!item->is_settled)
		return false;
	*outcome = *item;
	*number = pending->next++;
	memset(item, 0, sizeof(*item));
	return true;
}
