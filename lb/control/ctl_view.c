/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lb_kept.h"

static int
copy_service(const struct ctl_apply *apply, const struct cfg_service *from, size_t place,
	struct ctl_view_service *to)
{
	to->ids = calloc(from->n_backends + 1, sizeof(*to->ids));
	to->slots = calloc(from->n_backends + 1, sizeof(*to->slots));
	to->shares = calloc(from->n_backends + 1, sizeof(*to->shares));
	to->confs = calloc(from->n_backends + 1, sizeof(*to->confs));
	if (to->ids == NULL || to->slots == NULL || to->shares == NULL || to->confs == NULL)
		return -ENOMEM;
	if (from->n_backends > 0)
		memcpy(to->confs, ctl_apply_backend_confs(apply, place),
			from->n_backends * sizeof(*to->confs));
	if (from->n_backends > 0)
		memcpy(to->shares, ctl_apply_shares(apply, place), from->n_backends);
	for (size_t i = 0; i < from->n_backends; i++)
		to->ids[i] = ctl_apply_backend_id(apply, place, i);
	ctl_apply_read_slots(apply, place, to->slots);
	to->number = ctl_apply_service(apply, (uint32_t)place);
	to->table = ctl_apply_table(apply, place);
	dp_table_hold(to->table);
	return 0;
}

/* As the packet path has them: the services', and what is kept from them. */
static size_t
list_matches(const struct cfg_model *model, struct lb_service_match *out)
{
	const struct cfg_dataplane *plane = &model->dataplane;
	const size_t n_services = model->n_services;
	size_t n;

	for (size_t i = 0; i < n_services; i++) {
		out[i] = ctl_apply_match(&model->services[i]);
		out[i].service = (uint32_t)i;
	}
	n = lb_kept_groups(out, n_services, n_services);
	for (size_t i = 0; i < plane->n_ports; i++)
		for (size_t k = 0; k < plane->ports[i].n_addresses; k++)
			n = lb_kept_network(out, n_services, n, &plane->ports[i].addresses[k]);
	return n;
}

static int
build_match(struct ctl_view *view)
{
	const struct cfg_dataplane *plane = &view->model.dataplane;
	size_t n = view->model.n_services + LB_KEPT_GROUPS_MAX;
	struct lb_service_match *matches;
	size_t n_lines;
	int ret = -ENOMEM;

	for (size_t i = 0; i < plane->n_ports; i++)
		n += LB_KEPT_NETWORK_MAX * plane->ports[i].n_addresses;
	matches = calloc(n, sizeof(*matches));
	if (matches == NULL)
		return -ENOMEM;
	n = list_matches(&view->model, matches);
	n_lines = (lb_service_table_bytes(n) + LB_CACHE_LINE - 1) / LB_CACHE_LINE;
	view->match_mem = aligned_alloc(LB_CACHE_LINE, n_lines * LB_CACHE_LINE);
	if (view->match_mem != NULL)
		ret = lb_service_table_build(view->match_mem, matches, n, &view->match);
	free(matches);
	return ret;
}

static int
copy_own(struct ctl_view *view)
{
	const struct cfg_dataplane *plane = &view->model.dataplane;
	size_t n = 0;

	for (size_t i = 0; i < plane->n_ports; i++)
		n += plane->ports[i].n_addresses;
	view->own = calloc(n + 1, sizeof(*view->own));
	if (view->own == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < plane->n_ports; i++)
		for (size_t k = 0; k < plane->ports[i].n_addresses; k++)
			view->own[view->n_own++] = plane->ports[i].addresses[k].addr;
	return 0;
}

int
ctl_view_create(const struct ctl_apply *apply, const struct cfg_model *model,
	uint64_t generation, struct ctl_view **out)
{
	struct ctl_view *view = calloc(1, sizeof(*view));
	int ret;

	if (view == NULL)
		return -ENOMEM;
	cfg_model_init(&view->model);
	view->n_refs = 1;
	view->generation = generation;
	view->n_ids = ctl_apply_n_backends(apply);
	ret = cfg_model_copy(model, &view->model);
	if (ret != 0)
		goto free_view;
	view->services = calloc(model->n_services + 1, sizeof(*view->services));
	if (view->services == NULL)
		goto no_memory;
	for (size_t i = 0; i < model->n_services; i++)
		if (copy_service(apply, &model->services[i], i, &view->services[i]) != 0)
			goto no_memory;
	if (build_match(view) != 0 || copy_own(view) != 0)
		goto no_memory;
	*out = view;
	return 0;

no_memory:
	ret = -ENOMEM;
free_view:
	ctl_view_release(view);
	return ret;
}

bool
ctl_view_find_backend(const struct ctl_view *view, uint32_t id, size_t *service,
	size_t *backend)
{
	for (size_t i = 0; i < view->model.n_services; i++) {
		for (size_t k = 0; k < view->model.services[i].n_backends; k++) {
			if (view->services[i].ids[k] != id)
				continue;
			*service = i;
			*backend = k;
			return true;
		}
	}
	return false;
}

void
ctl_view_hold(struct ctl_view *view)
{
	view->n_refs++;
}

void
ctl_view_release(struct ctl_view *view)
{
	if (view == NULL || --view->n_refs > 0)
		return;
	for (size_t i = 0; view->services != NULL && i < view->model.n_services; i++) {
		free(view->services[i].ids);
		free(view->services[i].slots);
		free(view->services[i].shares);
		free(view->services[i].confs);
		dp_table_release(view->services[i].table);
	}
	free(view->match_mem);
	free(view->own);
	free(view->services);
	cfg_model_fini(&view->model);
	free(view);
}
