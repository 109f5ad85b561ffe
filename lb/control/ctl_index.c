/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
compare_items(const void *a, const void *b)
{
	const struct ctl_index_item *first = a;
	const struct ctl_index_item *second = b;

	return strcmp(first->name, second->name);
}

static int
allocate(struct ctl_index *index, size_t n)
{
	index->items = calloc(n + 1, sizeof(*index->items));
	index->n = n;
	return index->items == NULL ? -ENOMEM : 0;
}

int
ctl_index_services(const struct cfg_model *model, struct ctl_index *out)
{
	struct ctl_index index;

	if (allocate(&index, model->n_services) != 0)
		return -ENOMEM;
	for (size_t i = 0; i < index.n; i++)
		index.items[i] = (struct ctl_index_item){model->services[i].name, i};
	qsort(index.items, index.n, sizeof(*index.items), compare_items);
	*out = index;
	return 0;
}

int
ctl_index_backends(const struct cfg_service *service, struct ctl_index *out)
{
	struct ctl_index index;

	if (allocate(&index, service->n_backends) != 0)
		return -ENOMEM;
	for (size_t i = 0; i < index.n; i++)
		index.items[i] = (struct ctl_index_item){service->backends[i].name, i};
	qsort(index.items, index.n, sizeof(*index.items), compare_items);
	*out = index;
	return 0;
}

void
ctl_index_fini(struct ctl_index *index)
{
	free(index->items);
	*index = (struct ctl_index){.items = NULL};
}

size_t
ctl_index_find(const struct ctl_index *index, const char *name)
{
	const struct ctl_index_item key = {.name = name};
	const struct ctl_index_item *found =
		bsearch(&key, index->items, index->n, sizeof(key), compare_items);

	return found == NULL ? CTL_INDEX_NONE : found->place;
}
