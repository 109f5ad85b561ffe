/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_DATAGRAM_H
#define DP_DATAGRAM_H

/**
 * @file
 * All fragments of a datagram go one way: that of the first, which alone shows its flow.
 *
 * The first is decided as a whole packet is, by the owner of its flow, and leaves by the
 * datagram's home, as the others do (dp_handoff.h). Those that come before it wait there
 * (dp_fragment.h), and leave right after it, in the order in which they came; those that come
 * later follow at once. Where the first is dropped, or dropped at its home as it does not fit
 * the others, none of the datagram leaves, and all are dropped for one reason.
 *
 * Each fragment has exactly one verdict, whenever it is known; what has waited is counted here
 * unless it leaves. A worker's own: nothing here is shared but the rings.
 */

#include "dp_stages.h"

/**
 * Whether the others of a datagram go where this packet goes: it is a first fragment, parsed to
 * the end, for a service's address, and its later ones ask for it. Those of IPv4 without ports
 * do not: they show their flow.
 */
bool dp_datagram_has_followers(const struct dp_stages *s, uint16_t i) lb_must_check;

/**
 * A datagram's first fragment, decided but not yet on its way. It leaves, and those that wait
 * for it right after it; or it is DP_AWAY, handed to its home, where that is another worker.
 */
void dp_datagram_first(struct dp_stages *s, uint16_t i);

/**
 * A later fragment, at its datagram's home: it goes where its first went.
 *
 * @return its verdict, or DP_AWAY: it waits for the first.
 */
enum lb_verdict dp_datagram_later(const struct dp_stages *s, uint16_t i) lb_must_check;

/**
 * A datagram's first fragment that was decided by another worker has come home: it goes as
 * decided if it fits what is known here, and those that wait for it go after it.
 *
 * @param settled  It and they are appended, and counted unless they leave.
 */
void dp_datagram_come_home(struct dp_worker *worker, const struct dp_snapshot *snapshot,
	const struct dp_first *first, uint64_t now_ns, struct dp_chain *settled);

#endif
