/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_routes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_ready.h"

static_assert(offsetof(struct ctl_route, prefix) == 0, "a route is ordered by its prefix");

static int
compare_prefixes(const void *a, const void *b)
{
	const struct lb_prefix *x = a;
	const struct lb_prefix *y = b;
	const int order = memcmp(x->addr.bytes, y->addr.bytes, LB_ADDR_BYTES);

	return order != 0 ? order : (int)x->n_bits - (int)y->n_bits;
}

size_t
ctl_routes_gather(const struct ctl_view *view, uint32_t ports_down, struct lb_prefix out[])
{
	const struct cfg_model *model = &view->model;
	size_t n = 0;

	for (size_t i = 0; i < model->n_services; i++) {
		if (ctl_ready_look(&model->services[i], view->services[i].confs,
			    view->services[i].n_unhealthy, ports_down) == CTL_READY)
			out[n++] = model->services[i].address;
	}
	return n;
}

/* Sort and keep each once. @return how many are left. */
static size_t
sort_unique(struct lb_prefix *prefixes, size_t n)
{
	size_t n_kept = 0;

	if (n > 0)
		qsort(prefixes, n, sizeof(*prefixes), compare_prefixes);
	for (size_t i = 0; i < n; i++) {
		if (n_kept == 0 || compare_prefixes(&prefixes[n_kept - 1], &prefixes[i]) != 0)
			prefixes[n_kept++] = prefixes[i];
	}
	return n_kept;
}

/* Whether there is anything to it yet. */
static bool
is_kept(const struct ctl_route *route)
{
	return route->is_wanted || route->is_there || route->is_unsure;
}

/* Both ascending. @return how many are in out, which has room for all. */
static size_t
merge(const struct ctl_routes *old, const struct lb_prefix *wanted, size_t n_wanted,
	struct ctl_route *out)
{
	size_t n = 0;
	size_t i = 0;
	size_t k = 0;

	while (i < old->n || k < n_wanted) {
		const int order = i == old->n ? 1
				  : k == n_wanted
					  ? -1
					  : compare_prefixes(&old->items[i].prefix, &wanted[k]);
		struct ctl_route route = {.is_there = false};

		if (order <= 0)
			route = old->items[i++];
		if (order >= 0)
			route.prefix = wanted[k++];
		if (order < 0 && route.is_wanted)
			route.error = 0; /* it was about another wish */
		route.is_wanted = order >= 0;
		if (is_kept(&route))
			out[n++] = route;
	}
	return n;
}

int
ctl_routes_want(struct ctl_routes *routes, const struct lb_prefix prefixes[], size_t n)
{
	struct lb_prefix *wanted = calloc(n + 1, sizeof(*wanted));
	struct ctl_route *items = calloc(routes->n + n + 1, sizeof(*items));
	struct ctl_routes next = {.items = items};

	if (wanted == NULL || items == NULL) {
		free(wanted);
		free(items);
		return -ENOMEM;
	}
	if (n > 0)
		memcpy(wanted, prefixes, n * sizeof(*wanted));
	next.n = merge(routes, wanted, sort_unique(wanted, n), items);
	free(wanted);
	ctl_routes_fini(routes);
	*routes = next;
	return 0;
}

void
ctl_routes_want_none(struct ctl_routes *routes)
{
	for (size_t i = 0; i < routes->n; i++) {
		struct ctl_route *route = &routes->items[i];

		route->error = route->is_wanted ? 0 : route->error;
		route->is_wanted = false;
	}
	ctl_routes_tidy(routes);
}

size_t
ctl_routes_next(const struct ctl_routes *routes, size_t from)
{
	while (from < routes->n &&
		routes->items[from].is_wanted == routes->items[from].is_there &&
		!routes->items[from].is_unsure)
		from++;
	return from;
}

struct ctl_route *
ctl_routes_find(const struct ctl_routes *routes, const struct lb_prefix *prefix)
{
	return routes->n == 0 ? NULL
			      : bsearch(prefix, routes->items, routes->n,
					sizeof(*routes->items), compare_prefixes);
}

void
ctl_routes_lose(struct ctl_routes *routes)
{
	for (size_t i = 0; i < routes->n; i++) {
		routes->items[i].is_there = false;
		routes->items[i].is_unsure = false;
	}
	ctl_routes_tidy(routes);
}

void
ctl_routes_begin_look(struct ctl_routes *routes)
{
	for (size_t i = 0; i < routes->n; i++)
		routes->items[i].is_seen = false;
}

void
ctl_routes_see(struct ctl_routes *routes, const struct lb_prefix *prefix)
{
	struct ctl_route *route = ctl_routes_find(routes, prefix);

	if (route != NULL)
		route->is_seen = true;
}

void
ctl_routes_end_look(struct ctl_routes *routes)
{
	for (size_t i = 0; i < routes->n; i++) {
		struct ctl_route *route = &routes->items[i];

		if (route->is_there && !route->is_seen)
			route->error = -ENOENT;
		route->is_there = route->is_seen;
		route->is_unsure = false;
	}
	ctl_routes_tidy(routes);
}

void
ctl_routes_tidy(struct ctl_routes *routes)
{
	size_t n = 0;

	for (size_t i = 0; i < routes->n; i++) {
		if (is_kept(&routes->items[i]))
			routes->items[n++] = routes->items[i];
	}
	routes->n = n;
}

void
ctl_routes_fini(struct ctl_routes *routes)
{
	free(routes->items);
	*routes = (struct ctl_routes){.items = NULL};
}
