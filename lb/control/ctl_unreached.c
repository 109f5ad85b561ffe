/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_unreached.h"

#include "ctl_log.h"

struct finding {
	const struct cfg_service *service;
	const struct cfg_backend *backend;
	enum ctl_reach_state state;
};

/* The first backend without a route, or else the first without a next hop. */
static void
find_first(const struct ctl_reach *reach, const struct ctl_view *view, struct finding *out)
{
	for (size_t i = 0; i < view->model.n_services; i++) {
		const struct cfg_service *service = &view->model.services[i];

		for (size_t k = 0; k < service->n_backends; k++) {
			const struct cfg_backend *backend = &service->backends[k];
			enum ctl_reach_state state;

			if (view->services[i].confs[k].has_next_hop)
				continue;
			state = ctl_reach_look(reach, &view->model.dataplane,
				&backend->address);
			if (out->backend == NULL || state == CTL_REACH_NO_ROUTE)
				*out = (struct finding){service, backend, state};
			if (state == CTL_REACH_NO_ROUTE)
				return;
		}
	}
}

static const char *
words_of(const struct finding *found)
{
	if (found->state == CTL_REACH_NO_ROUTE)
		return "there is no route to it by a port; see routes and next_hop of "
		       "dataplane.ports[]";
	if (found->state == CTL_REACH_SILENT)
		return "whom the route to it leads to does not answer";
	return found->service->forward == CFG_FORWARD_L2
		       ? "it is behind a router, where forward: l2 does not reach"
		       : "the port that leads to it has no address of its family";
}

static void
say(const struct ctl_reach *reach, const struct ctl_view *view)
{
	struct finding found = {.backend = NULL};
	char text[LB_ADDR_TEXT_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < view->model.n_services; i++)
		n += view->model.services[i].n_backends;
	find_first(reach, view, &found);
	if (found.backend == NULL)
		return;
	ctl_log(CTL_LOG_WARNING,
		"%zu of %zu backends without a next hop, what is for them is dropped, "
		"no_next_hop: as '%s/%s', %s: %s",
		view->n_unreached, n, found.service->name, found.backend->name,
		lb_addr_format(&found.backend->address, text), words_of(&found));
}

void
ctl_unreached_look(struct ctl_unreached *unreached, const struct ctl_reach *reach,
	const struct ctl_view *view)
{
	const size_t n = view->n_unreached;
	const bool is_so_still = n == unreached->n_last;

	unreached->n_last = n;
	if (!is_so_still)
		return;
	if (n > unreached->n_told)
		say(reach, view);
	unreached->n_told = n;
}
