/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_INDEX_H
#define CTL_INDEX_H

/**
 * @file
 * Names of a model's services or of a service's backends, to find the places of many of them.
 */

#include "cfg_model.h"

struct ctl_index_item {
	const char *name;
	size_t place;
};

struct ctl_index {
	struct ctl_index_item *items; /**< ascending by name */
	size_t n;
};

/** Where there is no such name. */
#define CTL_INDEX_NONE SIZE_MAX

/**
 * Index the services of a model, which has to stay as it is.
 *
 * @param[out] out  Untouched on error; to be given to ctl_index_fini().
 * @retval -ENOMEM  No memory.
 */
int ctl_index_services(const struct cfg_model *model, struct ctl_index *out) lb_must_check;

/** The same of a service's backends. */
int ctl_index_backends(const struct cfg_service *service, struct ctl_index *out) lb_must_check;

void ctl_index_fini(struct ctl_index *index);

/** The place of a name, or CTL_INDEX_NONE. */
size_t ctl_index_find(const struct ctl_index *index, const char *name);

#endif
