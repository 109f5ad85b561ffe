/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_FRAGMENT_H
#define LB_FRAGMENT_H

/**
 * @file
 * Fragments of one datagram go where its first one goes. Nothing is put together here: the
 * table remembers what became of the first fragment, and keeps those that came before it.
 *
 * A datagram is known by source, destination, protocol and identification in IPv4 (RFC 791);
 * by source, destination and identification in IPv6 (RFC 8200). Before its first fragment it is
 * undecided, and its fragments wait, in the order of their arrival, up to the timeout each.
 * Once decided, they go alike at once. It is forgotten when no new bytes of it came for longer
 * than the timeout.
 *
 * When all of its bytes have been seen and nothing waits it is whole, and its identification
 * may be another's. What repeats one of its fragments, as a network may that has two ways, goes
 * where it went; any other, and every first fragment, is of the next datagram, of which nothing
 * is known. A first fragment that may itself be a repetition is not held against one that comes
 * after it: the next datagram is whatever follows.
 *
 * Fragments must fit together (RFC 5722). One that overlaps what was seen, lies past the
 * datagram's end, or names another end makes the datagram given up: it, what waits, and what
 * still comes is LB_DROP_FRAGMENT_OVERLAP. The same fragment again is no overlap and goes where
 * the datagram goes; whoever puts it together ignores it, as RFC 8200 allows. Ranges are kept
 * as they came, LB_FRAGMENT_RANGES of them; beyond that, adjacent ones become one, the oldest
 * first. Inside such a range a repetition cannot be told from an overlap: what lies there is
 * LB_DROP_FRAGMENT_OVERLAP, and the datagram goes on.
 *
 * What is bounded: datagrams, waiting packets and their bytes, by the configuration, and one
 * datagram may have all the room there is; ranges and fragments of one datagram, by the
 * constants below. A fragment over a bound is LB_DROP_FRAGMENT_EXCESS, and so is then all of
 * its datagram, for it can no more be whole.
 *
 * Datagrams lie in sets of 8 by a hash with a secret. In a full set one gives way that is
 * whole; or else one that was given up, as its fragments are dropped either way; or else one
 * for which nothing waits, and of several the one that was longest without new bytes. If all
 * have packets waiting, a later fragment of another datagram is refused,
 * LB_DROP_FRAGMENT_EXCESS, and a first one takes the longest's place, whose packets are handed
 * back. So a flood of later fragments fills the waiting room, and one of first fragments the
 * table, and neither takes more than that. By lb_fragment_shed() what waits the longest leaves
 * a full waiting room to what comes.
 *
 * A datagram takes 332 bytes, a waiting packet 32 bytes and its own.
 *
 * Packets are the caller's, and only passed through; none is lost: each that waits comes back
 * by lb_fragment_take(), _expire(), _shed() or _abandon(). Times are nanoseconds
 * of any clock that never goes back; they may wrap.
 *
 * Not thread-safe: one worker's own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"
#include "lb_packet.h"

/** How long a fragment usually waits for its first one. */
#define LB_FRAGMENT_TIMEOUT_NS UINT64_C(1000000000)

/** Most datagrams of one table. */
#define LB_FRAGMENT_DATAGRAMS_MAX (1u << 20)

/** Most packets that wait in one table: a slot's index has 16 bits. */
#define LB_FRAGMENT_WAITING_MAX 65535u

/**
 * Separate ranges of bytes kept of one datagram, four cache lines. Every second piece of the
 * largest datagram is 60 of them where it is cut for an MTU of 576, the smallest that is usual,
 * and 27 for IPv6's smallest: so it may come in any order.
 */
#define LB_FRAGMENT_RANGES 64u

/** Most fragments of one datagram, repetitions included: 64 KiB, 8 bytes each. */
#define LB_FRAGMENT_SERIES_MAX 8192u

struct lb_fragment_conf {
	uint32_t n_datagrams;   /**< 1..LB_FRAGMENT_DATAGRAMS_MAX; rounded up to a power of 2, 8
				   at   least */
	uint32_t n_waiting;     /**< packets, 1..LB_FRAGMENT_WAITING_MAX */
	uint64_t waiting_bytes; /**< of all that wait, at most */
	uint64_t timeout_ns;    /**< 1 at least; usually LB_FRAGMENT_TIMEOUT_NS */
	uint64_t secret;        /**< random in the daemon, fixed in a replay */
};

/** Which datagram. Hashed as bytes: no implicit padding, and zero[] is zero. */
struct lb_fragment_key {
	struct lb_addr src; /**< IPv4 as in lb_addr.h, so that the family is part of it */
	struct lb_addr dst;
	uint32_t id;   /**< identification, any byte order, the same for all */
	uint8_t proto; /**< of IPv4; 0 for IPv6 */
	uint8_t zero[3];
};

/** Which bytes of the datagram. */
struct lb_fragment_range {
	uint16_t offset; /**< a multiple of 8; 0 for the first fragment and no other */
	uint16_t
		bytes; /**< 1 at least; a multiple of 8 where has_more; ends at 65535 at most */
	bool has_more; /**< not the last; always of the first */
};

/** Whose a decided datagram is, in the caller's terms. */
struct lb_fragment_owner {
	uint32_t backend;
	uint32_t entropy; /**< tells flows apart */
};

/** What becomes of all fragments of a datagram. */
struct lb_fragment_decision {
	enum lb_verdict verdict; /**< LB_FORWARD, LB_REPLY, LB_TO_KERNEL or a drop */
	struct lb_fragment_owner owner;
};

/** A fragment that may have to wait. */
struct lb_fragment_packet {
	void *packet;   /**< the caller's */
	uint32_t bytes; /**< that it occupies while it waits */
};

/** One that has waited. */
struct lb_fragment_waited {
	void *packet;
	bool is_repeated; /**< what it repeats is taken before it */
};

struct lb_fragment_stats {
	uint64_t completed; /**< datagrams all of whose bytes were seen */
	uint64_t expired;   /**< forgotten, and not complete */
	uint64_t evicted;   /**< that gave way to another */
	uint64_t refused;   /**< later fragments that found no room */
	uint64_t given_up;  /**< datagrams that overlapped or were over a bound */
	uint64_t waiting_bytes;
	uint32_t waiting; /**< packets the table has, those included that are to be handed back
			   */
	uint32_t live;    /**< datagrams that are not whole, those included that timed out
			     unnoticed */
	uint32_t whole;   /**< datagrams that are whole, and remembered */
};

struct lb_fragment_table; /* opaque */

/** Bytes for lb_fragment_table_init(); 0 where conf is out of range. */
size_t lb_fragment_table_bytes(const struct lb_fragment_conf *conf);

/**
 * Make an empty table in the caller's memory.
 *
 * @param mem       lb_fragment_table_bytes(conf) bytes, all zero, LB_CACHE_LINE aligned.
 * @param[out] out  The table, inside mem; untouched on error.
 * @retval 0        Success.
 * @retval -EINVAL  conf is out of range.
 */
int lb_fragment_table_init(void *mem, const struct lb_fragment_conf *conf,
	struct lb_fragment_table **out) lb_must_check;

/**
 * Which datagram a fragment is of, and which bytes.
 *
 * @param packet  Parsed, with LB_PACKET_FRAGMENT.
 */
void lb_fragment_describe(const struct lb_packet *packet, struct lb_fragment_key *key,
	struct lb_fragment_range *range);

/**
 * A first fragment has come. What becomes of it is its caller's to find out, and to tell by
 * lb_fragment_decide() before anything else is asked of the table.
 *
 * @retval LB_FORWARD                It fits what was seen of the datagram.
 * @retval LB_DROP_FRAGMENT_BAD      range is none of a first fragment.
 * @retval LB_DROP_FRAGMENT_OVERLAP  Drop it: it does not fit what was seen of the datagram.
 * @retval LB_DROP_FRAGMENT_EXCESS   Drop it: the datagram is over a bound.
 * @retval LB_DROP_*                 Drop it: it is a repetition, and this was decided.
 */
enum lb_verdict lb_fragment_first(struct lb_fragment_table *table,
	const struct lb_fragment_key *key, const struct lb_fragment_range *range,
	uint64_t now_ns) lb_must_check;

/**
 * Whether a repeated first fragment is of another flow than the one that was decided on: then
 * its sender uses the identification again for another datagram, and no later fragment can be
 * told whose it is. The datagram is given up, as LB_DROP_FRAGMENT_OVERLAP.
 *
 * @param decision  What is to become of it, before it is done: LB_FORWARD with its entropy, or
 *                  another verdict.
 */
bool lb_fragment_contradicts(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	const struct lb_fragment_decision *decision) lb_must_check;

/**
 * What became of a first fragment, after lb_fragment_first() said LB_FORWARD of it: the others
 * of its datagram go the same way. Then take what waits, by lb_fragment_take(). Of a repetition
 * it changes nothing: the first decision stands.
 */
void lb_fragment_decide(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	const struct lb_fragment_decision *decision);

/**
 * A later fragment has come.
 *
 * @param[out] out  Where the result is false: what becomes of it. Its verdict is what was
 *                  decided of the first, or LB_DROP_FRAGMENT_BAD (range is none of a later
 *                  fragment), _OVERLAP or _EXCESS, and owner then of no meaning. Of what is
 *                  answered a repetition is LB_DROP_RATE_LIMITED: the answer was one. Untouched
 *                  where it waits.
 * @return whether it waits: then packet->packet is the table's until it is handed back.
 */
bool lb_fragment_later(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	const struct lb_fragment_range *range, const struct lb_fragment_packet *packet,
	uint64_t now_ns, struct lb_fragment_decision *out) lb_must_check;

/**
 * Take the next packet that waited for a datagram's first fragment, in the order of arrival;
 * it goes where that goes. Until there is none, after lb_fragment_decide() of the datagram.
 *
 * @param[out] out  Untouched where the result is false.
 */
bool lb_fragment_take(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	struct lb_fragment_waited *out) lb_must_check;

/**
 * Hand back one packet that waits in vain; and where there is none, forget some datagrams
 * whose time is over. Call it with every burst until it returns false, before any other
 * function sees the same now_ns. It costs nothing while the table is empty.
 *
 * @param[out] packet  To be dropped; untouched where the result is false.
 * @param[out] why     LB_DROP_FRAGMENT_UNMATCHED: it waited for longer than the timeout;
 *                     LB_DROP_FRAGMENT_OVERLAP or _EXCESS: its datagram was given up.
 */
bool lb_fragment_expire(struct lb_fragment_table *table, uint64_t now_ns, void **packet,
	enum lb_verdict *why) lb_must_check;

/**
 * Hand back one packet if no other of so many bytes could wait: of the datagram that waits the
 * longest, which is given up. Call it before lb_fragment_later() until it returns false; then a
 * fragment finds room whatever came before it, and a flood of those that wait in vain holds up
 * none that waits for but a moment. Parameters as lb_fragment_expire()'s.
 */
bool lb_fragment_shed(struct lb_fragment_table *table, uint32_t bytes, void **packet,
	enum lb_verdict *why) lb_must_check;

/** Hand back any packet, until there is none: at the end. Parameters as lb_fragment_expire()'s.
 */
bool lb_fragment_abandon(struct lb_fragment_table *table, void **packet,
	enum lb_verdict *why) lb_must_check;

void lb_fragment_table_stats(const struct lb_fragment_table *table,
	struct lb_fragment_stats *out);

#endif
