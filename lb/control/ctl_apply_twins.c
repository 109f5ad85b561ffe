/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_apply_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "lb_hash.h"

struct ctl_apply_twin {
	uint64_t hash;
	uint32_t next_place; /* 1 and the place; 0: nobody's */
};

int
ctl_apply_twins_init(struct ctl_apply_twins *twins, size_t n)
{
	const size_t n_items = lb_hash_entries_for(n);

	twins->items = calloc(n_items, sizeof(*twins->items));
	twins->mask = n_items - 1;
	return twins->items == NULL ? -ENOMEM : 0;
}

/* The item with a hash, or the one where it would go; half of them are free. */
static struct ctl_apply_twin *
find_item(const struct ctl_apply_twins *twins, uint64_t hash)
{
	size_t i = hash & twins->mask;

	while (twins->items[i].next_place != 0 && twins->items[i].hash != hash)
		i = (i + 1) & twins->mask;
	return &twins->items[i];
}

void
ctl_apply_twins_add(struct ctl_apply_twins *twins, uint64_t hash, uint32_t place)
{
	struct ctl_apply_twin *item = find_item(twins, hash);

	if (item->next_place != 0)
		return;
	item->hash = hash;
	item->next_place = place + 1;
}

uint32_t
ctl_apply_twins_find(const struct ctl_apply_twins *twins, uint64_t hash)
{
	const struct ctl_apply_twin *item = find_item(twins, hash);

	return item->next_place != 0 ? item->next_place - 1 : DP_NONE;
}

void
ctl_apply_twins_fini(struct ctl_apply_twins *twins)
{
	free(twins->items);
}
