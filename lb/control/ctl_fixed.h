/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_FIXED_H
#define CTL_FIXED_H

/**
 * @file
 * What of a configuration is fixed at the start: what workers, devices, twins and listening
 * sockets are made with. Pure; on any thread.
 */

#include <jansson.h>

#include "cfg_model.h"

/** The same names in the same order: then ports are changed, and none added or removed. */
bool ctl_fixed_has_same_ports(const struct cfg_dataplane *a, const struct cfg_dataplane *b);

/**
 * Find the keys that a running daemon cannot change from one model to another.
 *
 * @return a list of texts such as "dataplane.workers" or "dataplane.ports.wan.mtu", the
 *         caller's; empty: a reload will do. NULL: no memory.
 */
json_t *ctl_fixed_find(const struct cfg_model *old, const struct cfg_model *next);

/**
 * The same for a person: what keeps a model from being put in force without a restart.
 *
 * @return one line, to be freed; NULL: nothing.
 */
char *ctl_fixed_obstacle(const struct cfg_model *old, const struct cfg_model *next);

#endif
