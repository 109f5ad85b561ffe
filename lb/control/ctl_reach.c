/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_reach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_log.h"

void
ctl_reach_init(struct ctl_reach *reach, struct ctl_netlink *netlink)
{
	*reach = (struct ctl_reach){.netlink = netlink};
}

void
ctl_reach_fini(struct ctl_reach *reach)
{
	free(reach->addrs);
	free(reach->sorted);
	free(reach->paths);
	ctl_reach_init(reach, NULL);
}

void
ctl_reach_forget(struct ctl_reach *reach)
{
	reach->has_paths = false;
}

/* The addresses of all backends, in the model's order. NULL: no memory. */
static struct lb_addr *
list_backends(const struct cfg_model *model, size_t *n)
{
	struct lb_addr *addrs;
	size_t n_all = 0;

	for (size_t i = 0; i < model->n_services; i++)
		n_all += model->services[i].n_backends;
	addrs = calloc(n_all + 1, sizeof(*addrs));
	if (addrs == NULL)
		return NULL;
	n_all = 0;
	for (size_t i = 0; i < model->n_services; i++)
		for (size_t k = 0; k < model->services[i].n_backends; k++)
			addrs[n_all++] = model->services[i].backends[k].address;
	*n = n_all;
	return addrs;
}

static int
compare_addr(const void *a, const void *b)
{
	return memcmp(a, b, LB_ADDR_BYTES);
}

/* A copy, ascending, each once. NULL: no memory. */
static struct lb_addr *
sort_unique(const struct lb_addr *addrs, size_t n, size_t *n_kept)
{
	struct lb_addr *sorted = calloc(n + 1, sizeof(*sorted));
	size_t kept = 0;

	if (sorted == NULL)
		return NULL;
	memcpy(sorted, addrs, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_addr);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || !lb_addr_equal(&sorted[kept - 1], &sorted[i]))
			sorted[kept++] = sorted[i];
	*n_kept = kept;
	return sorted;
}

/* Have other destinations watched, unless they are the same. */
static int
watch(struct ctl_reach *reach, const struct cfg_model *model)
{
	size_t n_addrs;
	size_t n_sorted;
	struct lb_addr *addrs = list_backends(model, &n_addrs);
	struct lb_addr *sorted;
	int ret = -ENOMEM;

	if (addrs == NULL)
		return -ENOMEM;
	if (reach->addrs != NULL && n_addrs == reach->n_addrs &&
		memcmp(addrs, reach->addrs, n_addrs * sizeof(*addrs)) == 0) {
		free(addrs);
		return 0;
	}
	sorted = sort_unique(addrs, n_addrs, &n_sorted);
	if (sorted != NULL)
		ret = ctl_netlink_watch(reach->netlink, sorted, n_sorted);
	if (ret != 0) {
		free(addrs);
		free(sorted);
		return ret;
	}
	free(reach->addrs);
	free(reach->sorted);
	reach->addrs = addrs;
	reach->n_addrs = n_addrs;
	reach->sorted = sorted;
	reach->n_sorted = n_sorted;
	reach->has_paths = false;
	return 0;
}

/* The first port with a fixed next hop takes what the kernel has no route for. */
static void
find_fixed_port(struct ctl_reach *reach, const struct cfg_dataplane *plane)
{
	const bool had_fixed = reach->has_fixed;
	const uint16_t before = reach->fixed;
	size_t i = 0;

	while (i < plane->n_ports && !plane->ports[i].has_next_hop)
		i++;
	reach->has_fixed = i < plane->n_ports;
	reach->fixed = reach->has_fixed ? (uint16_t)i : 0;
	if (reach->has_fixed != had_fixed || reach->fixed != before)
		reach->has_paths = false;
}

static bool
find_path(const struct ctl_reach *reach, const struct lb_addr *dst, struct ctl_path *out)
{
	struct ctl_hop hop;

	*out = (struct ctl_path){.dst = *dst};
	if (ctl_netlink_find(reach->netlink, dst, &hop)) {
		for (size_t i = 0; i < LB_PORTS_MAX; i++) {
			if (reach->if_index[i] == 0 || reach->if_index[i] != hop.if_index)
				continue;
			out->port = (uint16_t)i;
			out->is_resolved = hop.is_resolved;
			out->is_gateway = hop.is_gateway;
			out->mac = hop.mac;
			return true;
		}
	}
	out->port = reach->fixed;
	return reach->has_fixed;
}

static int
find_paths(struct ctl_reach *reach)
{
	struct ctl_path *paths = calloc(reach->n_sorted + 1, sizeof(*paths));

	if (paths == NULL)
		return -ENOMEM;
	free(reach->paths);
	reach->paths = paths;
	reach->n_paths = 0;
	for (size_t i = 0; i < reach->n_sorted; i++)
		reach->n_paths += find_path(reach, &reach->sorted[i], &paths[reach->n_paths]);
	reach->has_paths = true;
	return 0;
}

static int
compare_path(const void *key, const void *path)
{
	return memcmp(key, ((const struct ctl_path *)path)->dst.bytes, LB_ADDR_BYTES);
}

/* Whether forward: l2 would have a router get the frames for a backend. */
static bool
is_behind_router(const struct ctl_reach *reach, const struct cfg_dataplane *plane,
	const struct cfg_backend *backend)
{
	const struct ctl_path *path;

	if (backend->has_mac)
		return false;
	path = bsearch(backend->address.bytes, reach->paths, reach->n_paths, sizeof(*path),
		compare_path);
	return path != NULL && path->is_gateway && !plane->ports[path->port].has_next_hop;
}

/* Adds to n those of a service. Returns the first; NULL: there is none. */
static const struct cfg_backend *
count_behind_router(const struct ctl_reach *reach, const struct cfg_dataplane *plane,
	const struct cfg_service *service, size_t *n)
{
	const struct cfg_backend *first = NULL;

	if (service->forward != CFG_FORWARD_L2)
		return NULL;
	for (size_t i = 0; i < service->n_backends; i++) {
		if (!is_behind_router(reach, plane, &service->backends[i]))
			continue;
		if (first == NULL)
			first = &service->backends[i];
		(*n)++;
	}
	return first;
}

/* Once for as long as they are as many: the model and the paths change often. */
static void
say_what_l2_does_not_reach(struct ctl_reach *reach, const struct cfg_model *model)
{
	const struct cfg_service *service = NULL;
	const struct cfg_backend *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_backend *found =
			count_behind_router(reach, &model->dataplane, &model->services[i], &n);

		if (first == NULL && found != NULL) {
			service = &model->services[i];
			first = found;
		}
	}
	if (first != NULL && n != reach->n_behind)
		ctl_log(CTL_LOG_WARNING,
			"backend '%s/%s' is behind a router, where forward: l2 does "
			"not reach (%zu such in all): its packets are dropped, no_next_hop; "
			"give it a mac:, or its service another forward:",
			service->name, first->name, n);
	reach->n_behind = n;
}

int
ctl_reach_find(struct ctl_reach *reach, const struct cfg_model *model, struct ctl_path **paths,
	size_t *n)
{
	struct ctl_path *copy;
	int ret = watch(reach, model);

	if (ret != 0)
		return ret;
	find_fixed_port(reach, &model->dataplane);
	if (!reach->has_paths)
		ret = find_paths(reach);
	if (ret != 0)
		return ret;
	copy = malloc((reach->n_paths + 1) * sizeof(*copy));
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, reach->paths, reach->n_paths * sizeof(*copy));
	say_what_l2_does_not_reach(reach, model);
	*paths = copy;
	*n = reach->n_paths;
	return 0;
}

enum ctl_reach_state
ctl_reach_look(const struct ctl_reach *reach, const struct cfg_dataplane *plane,
	const struct lb_addr *dst)
{
	const struct ctl_path *path = NULL;

	if (reach->n_paths > 0)
		path = bsearch(dst->bytes, reach->paths, reach->n_paths, sizeof(*path),
			compare_path);
	if (path == NULL)
		return CTL_REACH_NO_ROUTE;
	return path->is_resolved || plane->ports[path->port].has_next_hop ? CTL_REACH_FOUND
									  : CTL_REACH_SILENT;
}
