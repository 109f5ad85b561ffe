/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_APPLY_PARTS_H
#define CTL_APPLY_PARTS_H

/**
 * @file
 * What ctl_apply.c needs of ctl_apply_translate.c beside what everybody does; only ctl_apply*.c
 * include this. Pure.
 */

#include "ctl_apply.h"

/** What the services of a model say of QUIC, one after the other. All zero: none. */
struct ctl_apply_quic {
	struct lb_quic_config *configs;
	size_t n_configs;
	struct lb_quic_server *servers;
	size_t n_servers;
};

/** Make room for all of a model. @retval -ENOMEM  No memory; to be given to _fini() as well. */
int ctl_apply_quic_init(struct ctl_apply_quic *quic,
	const struct cfg_model *model) lb_must_check;

/**
 * Append what a service says. The server ids of backends that are down, too: whoever asks for
 * one finds it not live.
 *
 * @param ids      Of its backends, in the model's order.
 * @param[out] to  Points into quic.
 */
void ctl_apply_quic_append(struct ctl_apply_quic *quic, const struct cfg_service *service,
	const uint32_t *ids, struct dp_service_conf *to);

void ctl_apply_quic_fini(struct ctl_apply_quic *quic);

/** The longest time that a flow entry lives without packets; nanoseconds. */
uint64_t ctl_apply_longest_timeout(const struct cfg_dataplane *plane);

#endif
