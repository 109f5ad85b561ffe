/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_APPLY_PARTS_H
#define CTL_APPLY_PARTS_H

/**
 * @file
 * What ctl_apply.c needs of ctl_apply_translate.c beside what everybody does; only ctl_apply*.c
 * include this. Pure.
 */

#include "ctl_apply.h"

/** Places in a model by what they have in common, told by a hash; see lb_hash_bytes(). */
struct ctl_apply_twins {
	struct ctl_apply_twin *items; /* mask + 1 of them, a power of two */
	size_t mask;
};

/**
 * Make room. @param n  Calls of ctl_apply_twins_add(), at most.
 * @retval -ENOMEM  No memory; to be given to _fini() as well.
 */
int ctl_apply_twins_init(struct ctl_apply_twins *twins, size_t n) lb_must_check;

/** Add a place, unless one with this hash is there. */
void ctl_apply_twins_add(struct ctl_apply_twins *twins, uint64_t hash, uint32_t place);

/** The place that was added first with a hash, or DP_NONE. Hashes may be alike by chance. */
uint32_t ctl_apply_twins_find(const struct ctl_apply_twins *twins, uint64_t hash);

void ctl_apply_twins_fini(struct ctl_apply_twins *twins);

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
