/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_STAGES_H
#define DP_STAGES_H

/**
 * @file
 * One burst between the stages of the packet path.
 */

#include "dp_worker.h"
#include "lb_flow_lookup.h"
#include "lb_packet.h"
#include "lb_service_lookup.h"

/*
 * How near a prefetch brings a line. The first-level cache has few places for lines on their
 * way, so where many backends are asked for in a row, the second level is sooner.
 */
#define DP_TO_L2 2

struct dp_stages {
	struct dp_worker *worker;
	const struct dp_snapshot *snapshot;
	struct dp_burst *burst;

	/* dp_usual.h: of packets that are usual this, of the others what follows. */
	bool is_usual[DP_BURST_MAX];
	size_t first_odd; /**< that is not, as they were taken */
	bool is_v6[DP_BURST_MAX];
	bool is_tagged[DP_BURST_MAX]; /**< by one tag; of others it may be either */
	bool has_tags;                /**< any of them is */
	size_t n_v6;
	/** SYNs, and how many of them have been asked for in the flow table. */
	uint8_t syns[DP_BURST_MAX];
	size_t n_syns;
	size_t n_syns_asked;
	struct lb_flow_v4 v4[DP_BURST_MAX]; /**< keys of IPv4 */
	uint32_t entropies[DP_BURST_MAX];   /**< lb_hash_entropy() of those of IPv6 */
	uint64_t tags[DP_BURST_MAX];
	uint32_t buckets[DP_BURST_MAX];
	bool has_begun;              /**< is_begun says what it says */
	bool is_begun[DP_BURST_MAX]; /**< a flow, which its backend is found of */
	/** Keys of all that ask for their service, or begin a flow over IPv6. */
	struct lb_flow_words keys[DP_BURST_MAX];
	bool asks[DP_BURST_MAX]; /**< itself; or its neighbour has */
	/** Of its entry in its first bucket, as long as none moves; NULL: it is not there. */
	uint64_t *rests[DP_BURST_MAX];

	struct lb_packet packets[DP_BURST_MAX];
	struct lb_service_search searches[DP_BURST_MAX];
	bool has_more[DP_BURST_MAX]; /**< its service: DP_MATCH_MORE */
	struct lb_flow_place places[DP_BURST_MAX];
	/** What its first bucket has, as long as no entry moves. */
	uint32_t refs[DP_BURST_MAX];
};

#endif
