/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PLAN_H
#define CTL_PLAN_H

/**
 * @file
 * What one model changes of another, as the answer to `plan` says it.
 */

#include <jansson.h>

#include "cfg_model.h"

/** The keys outside of the services that differ: a list of {key, from, to}; NULL: no memory. */
json_t *ctl_plan_settings(const struct cfg_model *now, const struct cfg_model *next);

/**
 * The services that differ, a list of {name, change, changes, backends, slots, slots_moved,
 * flows}; those that are gone come last. slots_moved is null where every flow is hashed anew,
 * by another seed or affinity; flows is null: which flows live, workers alone know.
 *
 * @return NULL: no memory.
 */
json_t *ctl_plan_services(const struct cfg_model *now, const struct cfg_model *next);

#endif
