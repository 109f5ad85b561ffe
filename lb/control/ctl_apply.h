/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_APPLY_H
#define CTL_APPLY_H

/**
 * @file
 * Configuration model -> snapshot: the only translator between what a file says and what
 * the packet path reads. Keeps the tables of services that did not change.
 *
 * Not thread-safe: the control thread's.
 */

#include <stdio.h>

#include "cfg_model.h"
#include "dp.h"

struct ctl_apply; /* opaque */

/** A backend as its id names it. */
struct ctl_backend_name {
	uint32_t service; /**< number of its service */
	const char *name;
};

/** How a destination is reached. */
struct ctl_path {
	struct lb_addr dst;
	uint16_t port;     /**< place of the port among the model's */
	bool is_resolved;  /**< mac is known */
	bool is_gateway;   /**< the next hop is a router: l2 does not reach dst by it */
	struct lb_mac mac; /**< of the next hop */
};

/**
 * How destinations are reached: each by its item; where there are no items at all, all by one
 * port with its fixed next hop. A port's fixed next hop comes before an item's.
 */
struct ctl_paths {
	const struct ctl_path *items; /**< ascending by dst, as memcmp() has it */
	size_t n_items;
	const struct cfg_port *port; /**< of the model's; NULL: none, and nothing can be sent */
	const struct dp *dp; /**< whose open ports are the model's; NULL: none is open */
	/** Where none is open, what all ports' MAC address is as if they were; NULL: none. */
	const struct lb_mac *mac;
};

/** @retval -ENOMEM  No memory. */
int ctl_apply_create(struct ctl_apply **out) lb_must_check;

/** No snapshot is in use any more. NULL is allowed. */
void ctl_apply_destroy(struct ctl_apply *apply);

/**
 * Build a snapshot of a model.
 *
 * @param model     Checked; read during the call alone.
 * @param paths     How backends are reached; read during the call alone.
 * @param messages  Told why, in a sentence, where it fails.
 * @param[out] out  The caller's, to publish; untouched on error. On success the functions
 *                  below speak of it.
 * @retval 0        Success.
 * @retval -E2BIG   A table cannot hold its backends, or the process has seen too many names.
 * @retval -ENOMEM  No memory.
 */
int ctl_apply_build(struct ctl_apply *apply, const struct cfg_model *model,
	const struct ctl_paths *paths, FILE *messages, struct dp_snapshot **out) lb_must_check;

/**
 * What health says of the backends, for the next build; without it all are up.
 *
 * @param shares  Of the model's backends, service after service: how many of its slots each
 *                keeps, 0..LB_OVERLAY_WHOLE; 0 is one that is not used at all. Not owned, read
 * in that build; NULL: all are up.
 */
void ctl_apply_set_shares(struct ctl_apply *apply, const uint8_t *shares);

/**
 * What time it is, for the builds that follow; nanoseconds of the workers' clock. Without it no
 * id is ever given to another name. With it one is, where all are given out: an id that no
 * snapshot has had for longer than a flow entry lives, see ctl_apply.c.
 */
void ctl_apply_set_time(struct ctl_apply *apply, uint64_t now_ns);

/** The last snapshot is in force, and no worker uses an older one any more. */
void ctl_apply_published(struct ctl_apply *apply);

/** Number of the service that stands at a place in the last snapshot. */
uint32_t ctl_apply_service(const struct ctl_apply *apply, uint32_t place);

/** Id of a backend by its place in a service, and that service's place, in the last snapshot.
 */
uint32_t ctl_apply_backend_id(const struct ctl_apply *apply, size_t service_place,
	size_t backend_place);

/** The backends of the service at a place as the last snapshot has them, in the model's order.
 */
const struct dp_backend_conf *ctl_apply_backend_confs(const struct ctl_apply *apply,
	size_t service_place);

/** How many of its slots each backend of that service keeps, in the model's order. */
const uint8_t *ctl_apply_shares(const struct ctl_apply *apply, size_t service_place);

/** The table of the service at a place in the last snapshot; without a reference. */
struct dp_table *ctl_apply_table(const struct ctl_apply *apply, size_t service_place);

/** Services seen so far: their numbers are 0..n-1. */
uint32_t ctl_apply_n_services(const struct ctl_apply *apply);

const char *ctl_apply_service_name(const struct ctl_apply *apply, uint32_t service);

/** Backends seen so far: their ids are 0..n-1. */
uint32_t ctl_apply_n_backends(const struct ctl_apply *apply);

struct ctl_backend_name ctl_apply_backend(const struct ctl_apply *apply, uint32_t id);

/** Whether a backend is up or draining in the last snapshot. */
bool ctl_apply_is_live(const struct ctl_apply *apply, uint32_t id);

/**
 * Slots of each backend in the last snapshot, by id.
 *
 * @param[out] slots  n of them; n is ctl_apply_n_backends().
 * @retval -ENOMEM    No memory.
 */
int ctl_apply_count_slots(const struct ctl_apply *apply, uint32_t *slots,
	size_t n) lb_must_check;

/** Slots of the backends of the service at a place, in the model's order; room for them all. */
void ctl_apply_read_slots(const struct ctl_apply *apply, size_t service_place, uint32_t *slots);

/** Backends of the last snapshot that nothing can be sent to, for want of a next hop. */
size_t ctl_apply_n_unreached(const struct ctl_apply *apply);

/**
 * Build a service's configured table: of all its backends, whatever their states.
 *
 * @param ids       Of its backends, in the model's order.
 * @param[out] out  The caller's reference; untouched on error.
 * @return 0, or what dp_table_create() returns.
 */
int ctl_apply_configure(const struct cfg_service *service, uint64_t hash_seed,
	const uint32_t *ids, struct dp_table **out) lb_must_check;

/**
 * The table that a service's new flows go by: the slots of backends that drain or are down are
 * the others'. It is the configured one itself where there are none.
 *
 * @param shares      Of its backends, as ctl_apply_set_shares() has them; NULL: all are whole.
 * @param configured  From ctl_apply_configure(), of the same backends.
 * @param[out] out    The caller's reference; untouched on error.
 * @retval -ENOMEM    No memory.
 */
int ctl_apply_overlay(const struct cfg_service *service, const uint8_t *shares,
	struct dp_table *configured, struct dp_table **out) lb_must_check;

/** The UDP port of a service's tunnels, where they have one: the mode's own unless it says. */
uint16_t ctl_apply_tunnel_port(const struct cfg_service *service);

/** What finds a service, as the table of services has it; its place is left 0. */
struct lb_service_match ctl_apply_match(const struct cfg_service *service);

/**
 * What of a packet picks its backend from the table. Of affinity quic: the 5-tuple, for what no
 * connection id decides.
 */
enum lb_affinity ctl_apply_affinity(const struct cfg_service *service);

/** What a model says of the flow tables. */
struct lb_flow_table_conf ctl_apply_flow_conf(const struct cfg_model *model);

/**
 * What a model says of the plane as a whole, which is fixed at the start.
 *
 * @param n_workers  In the place of the model's.
 */
struct dp_conf ctl_apply_dp_conf(const struct cfg_model *model, unsigned int n_workers,
	const uint64_t secret[static 2]);

#endif
