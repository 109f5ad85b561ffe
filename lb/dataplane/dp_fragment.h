/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_FRAGMENT_H
#define DP_FRAGMENT_H

/**
 * @file
 * A worker's datagrams in fragments: those whose home it is (dp_handoff.h).
 *
 * All of a datagram's fragments leave by its home, which alone sees whether they fit together.
 * The owner of its flow decides on the first one, and hands it there with the decision. Later
 * fragments are handed to the home as they come, and wait there for the first, in the buffers
 * they came in, for which the ports' pools have room.
 */

#include "dp.h"
#include "dp_mbuf.h"
#include "lb_fragment.h"

struct dp_worker;

/** A datagram's first fragment on its way home; what was decided of it lies beside it. */
struct dp_first {
	struct lb_fragment_key key;
	struct lb_fragment_range range;
	struct rte_mbuf *packet;
};

static_assert(sizeof(struct dp_first) % 4 == 0, "a ring's element is whole words");

struct dp_fragments {
	struct lb_fragment_table *table;
	void *mem;
	size_t n_bytes;
};

/**
 * @param conf      Its numbers filled in.
 * @retval -EINVAL  conf is out of range.
 * @retval -ENOMEM  No memory.
 */
int dp_fragments_init(struct dp_fragments *fragments, const struct dp_conf *conf) lb_must_check;

/** Of zeros too. What waits is not freed: dp_fragments_abandon() before. */
void dp_fragments_fini(struct dp_fragments *fragments);

/** Bytes of buffers that may wait with one worker. */
uint64_t dp_fragments_waiting_bytes(const struct dp_conf *conf);

/** What a packet occupies of them. */
uint32_t dp_fragment_occupied(const struct rte_mbuf *m);

/**
 * Give up what has waited too long by now_ns; before anything else is done at that time.
 *
 * @param settled  They are appended, dropped and counted.
 */
void dp_fragments_expire(struct dp_worker *worker, uint64_t now_ns, struct dp_chain *settled);

/** Give up what waits the longest where there is no room for n_bytes more, likewise. */
void dp_fragments_shed(struct dp_worker *worker, uint32_t n_bytes, struct dp_chain *settled);

/** Give up all that waits, likewise. */
void dp_fragments_abandon(struct dp_worker *worker, struct dp_chain *settled);

/**
 * Hand a first fragment that was decided to its datagram's home, another worker.
 *
 * @return whether it is that worker's from here on; if not its ring is full.
 */
bool dp_fragment_send_home(struct dp_worker *worker, unsigned int home,
	const struct dp_first *first) lb_must_check;

#endif
