/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_since.h"

#include <stdlib.h>
#include <string.h>

static void
grow(struct ctl_since *since, size_t n)
{
	struct ctl_since_entry *grown;

	if (n <= since->n_entries)
		return;
	grown = realloc(since->entries, n * sizeof(*grown));
	if (grown == NULL)
		return;
	memset(grown + since->n_entries, 0, (n - since->n_entries) * sizeof(*grown));
	since->entries = grown;
	since->n_entries = n;
}

void
ctl_since_follow(struct ctl_since *since, const struct ctl_view *view, uint64_t now_ms)
{
	const uint32_t last = since->turn++;

	grow(since, view->n_ids);
	for (size_t i = 0; i < view->model.n_services; i++) {
		const struct cfg_service *service = &view->model.services[i];

		for (size_t k = 0; k < service->n_backends; k++) {
			const uint32_t id = view->services[i].ids[k];
			struct ctl_since_entry *entry;

			if (id >= since->n_entries)
				continue;
			entry = &since->entries[id];
			if (entry->turn == 0 || entry->turn != last ||
				entry->state != service->backends[k].state)
				entry->since_ms = now_ms;
			entry->state = service->backends[k].state;
			entry->turn = since->turn;
		}
	}
}

bool
ctl_since_read(const struct ctl_since *since, uint32_t id, uint64_t *since_ms)
{
	if (id >= since->n_entries || since->entries[id].turn != since->turn)
		return false;
	*since_ms = since->entries[id].since_ms;
	return true;
}

void
ctl_since_fini(struct ctl_since *since)
{
	free(since->entries);
	*since = (struct ctl_since){.entries = NULL};
}
