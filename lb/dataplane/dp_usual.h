/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_USUAL_H
#define DP_USUAL_H

/**
 * @file
 * The short way of the packets that most are: a usual packet (lb_usual.h) in one segment,
 * behind one tag at most, to a service that looks at nothing but its flow, of a flow that is
 * known, or begins and goes where the service's table says, to a backend that takes it as it
 * is. Whatever turns out to be otherwise is left to the stages of dp_forward.c, which alone say
 * what becomes of it, and say the same of those that go this way.
 */

#include "dp_stages.h"

/**
 * Take the burst's usual packets: is_usual, and of those what dp_stages.h says, and of the
 * decision hash, ip_bytes and event.
 *
 * @return how many they are.
 */
size_t dp_usual_take(struct dp_stages *s);

/**
 * Follow the entries of known flows, in order, up to the first packet that is not usual, not in
 * its flow's first bucket, or has to be asked about: of flows whose last packet came when
 * services were matched as they are now, nobody has to ask again; nor is its backend gone
 * since. Their ids are found, and the entries touched. The table has been told the time of the
 * burst's first.
 *
 * To follow an entry twice in a burst is to follow it once.
 *
 * SYNs among them begin flows at once, of a few services a burst: those are decided for good,
 * whoever comes to them again.
 *
 * @return that packet's index; 0 of a burst of several times.
 */
size_t dp_usual_follow_known(struct dp_stages *s);

/** Write the decision of a packet that has begun a flow there. */
void dp_usual_say_begun(struct dp_stages *s, size_t i);

/**
 * Look into the first buckets of usual packets' flows from one on, and ask for what each will
 * need: the backend of one that is there, another place for one that is not. What is found
 * holds as long as no entry moves. And begin their decisions.
 *
 * And find their services. Those of no service, and of one that looks at more than their flow,
 * are not usual any more.
 *
 * @param from  The first; all before it are usual.
 * @return how many of all are.
 */
size_t dp_usual_find(struct dp_stages *s, size_t from);

/**
 * Follow the entries of usual packets from one on, in order, up to the first packet that is not
 * usual or not found.
 *
 * @return that packet's index: all before it are decided.
 */
size_t dp_usual_follow(struct dp_stages *s, size_t from);

/**
 * Decide on usual packets that come later, in order: they follow their entries, or begin flows.
 * The table has been told the time of the first of them.
 *
 * @param[in,out] is_stale  Entries have moved since they were found.
 * @return the first that is not usual, came at another time, or is not decided; of that nothing
 *         is done.
 */
size_t dp_usual_decide(struct dp_stages *s, size_t from, bool *is_stale);

/** Leave one to the stages, with its packet and its service as they want them. */
void dp_usual_leave(struct dp_stages *s, size_t i);

#endif
