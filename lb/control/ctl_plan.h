/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PLAN_H
#define CTL_PLAN_H

/**
 * @file
 * What a model changes of what is in force, as the answer to `plan` says it.
 */

#include <jansson.h>
#include <stdatomic.h>

#include "ctl_view.h"

/**
 * Make {schema, generation, settings, services, flows}. It may take long, and runs on any
 * thread; what it is given is read alone.
 *
 * settings are the keys outside of the services that differ, a list of {key, from, to}.
 * services are those that differ, a list of {name, change, changes, backends, slots,
 * slots_moved, flows}; those that are gone come last. slots_moved is null where every flow is
 * hashed anew, by another seed or affinity. flows are live flows whose backend would be gone or
 * down, of a service and of all of them.
 *
 * @param counts  Live flows of each of the view's backends, by id; NULL: not known, and flows
 *                is null.
 * @param stop    Set by another thread where nobody wants the plan any more.
 * @return NULL: no memory, or stop was set.
 */
json_t *ctl_plan_make(const struct ctl_view *view, const struct cfg_model *next,
	const uint32_t *counts, const atomic_bool *stop);

#endif
