/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
ctl_places_fini(struct ctl_places *places)
{
	free(places->services);
	free(places->backends);
	*places = (struct ctl_places){.generation = 0};
}

static void
fill(struct ctl_places *places, const struct ctl_view *view)
{
	for (size_t i = 0; i < view->model.n_services; i++) {
		places->services[view->services[i].number] = (uint32_t)i;
		for (size_t k = 0; k < view->model.services[i].n_backends; k++)
			places->backends[view->services[i].ids[k]] = (struct ctl_place){
				.service = (uint32_t)i,
				.backend = (uint32_t)k,
			};
	}
}

int
ctl_places_follow(struct ctl_places *places, const struct ctl_view *view)
{
	size_t n_services = 0;

	if (places->generation == view->generation)
		return 0;
	ctl_places_fini(places);
	for (size_t i = 0; i < view->model.n_services; i++)
		if (view->services[i].number >= n_services)
			n_services = (size_t)view->services[i].number + 1;
	places->services = malloc((n_services + 1) * sizeof(*places->services));
	places->backends = malloc(((size_t)view->n_ids + 1) * sizeof(*places->backends));
	if (places->services == NULL || places->backends == NULL) {
		ctl_places_fini(places);
		return -ENOMEM;
	}
	places->n_services = n_services;
	places->n_backends = view->n_ids;
	/* Of all bits set: CTL_PLACE_NONE. */
	memset(places->services, 0xff, n_services * sizeof(*places->services));
	memset(places->backends, 0xff, places->n_backends * sizeof(*places->backends));
	fill(places, view);
	places->generation = view->generation;
	return 0;
}

uint32_t
ctl_places_service(const struct ctl_places *places, uint32_t number)
{
	return number < places->n_services ? places->services[number] : CTL_PLACE_NONE;
}

struct ctl_place
ctl_places_backend(const struct ctl_places *places, uint32_t id)
{
	if (id < places->n_backends)
		return places->backends[id];
	return (struct ctl_place){CTL_PLACE_NONE, CTL_PLACE_NONE};
}
