/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PLACES_H
#define CTL_PLACES_H

/**
 * @file
 * From the data plane's numbers for services and backends to their places in what is in force,
 * for many numbers at a time. Control thread.
 */

#include "ctl_view.h"

struct ctl_place {
	uint32_t service; /**< its place in the model's; CTL_PLACE_NONE: there is none */
	uint32_t backend; /**< its place in that */
};

#define CTL_PLACE_NONE UINT32_MAX

/** All zero knows nothing. */
struct ctl_places {
	uint64_t generation;
	uint32_t *services; /**< by number */
	size_t n_services;
	struct ctl_place *backends; /**< by id */
	size_t n_backends;
};

/**
 * Follow a view; takes time only where it is of another generation than the one before.
 *
 * @retval -ENOMEM  No memory; then it knows nothing.
 */
int ctl_places_follow(struct ctl_places *places, const struct ctl_view *view) lb_must_check;

void ctl_places_fini(struct ctl_places *places);

/** The place of the service of a number; any number may be asked for. */
uint32_t ctl_places_service(const struct ctl_places *places, uint32_t number);

/** The place of the backend of an id; any id may be asked for. */
struct ctl_place ctl_places_backend(const struct ctl_places *places, uint32_t id);

#endif
