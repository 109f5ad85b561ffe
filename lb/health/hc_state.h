/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_STATE_H
#define HC_STATE_H

/**
 * @file
 * What is known of one backend's health: results of checks in, up or down out.
 *
 * Results count consecutively: `rise` that pass bring one up that was down, `fall` that fail
 * bring one down that was up, and one of the other kind begins the count anew. Of a backend
 * that nothing is known of, the first result decides; only one
 * that is used meanwhile has to fail as often as one that was up.
 *
 * Time is passed in: nanoseconds of a clock that does not go back, 0 never.
 *
 * Not thread-safe: whoever owns a state calls.
 */

#include "hc_damp.h"

/** What the checks of a backend are held against. */
struct hc_rules {
	uint32_t rise;         /**< 1 or more */
	uint32_t fall;         /**< 1 or more */
	uint64_t half_life_ns; /**< of flap damping, see hc_damp.h; 0: none */
	uint64_t
		slow_start_ns; /**< how long the share of one that comes up grows; 0: at once */
};

enum hc_level { HC_UNKNOWN, HC_UP, HC_DOWN, HC_N_LEVELS };

/** How far a backend is to be used. */
enum hc_use {
	HC_USE_NO,
	HC_USE_LAST, /**< it passes, but flaps: where there is nobody else */
	HC_USE_YES,
};

/** A whole share; smaller ones are in proportion. */
#define HC_SHARE_WHOLE 16u

struct hc_state {
	uint64_t since_ns;  /**< of level */
	uint64_t begin_ns;  /**< when its share began to grow; 0: it is whole */
	uint32_t n_against; /**< last results in a row that speak against level */
	enum hc_level level;
	bool is_trusted; /**< used while nothing is known of it */
	struct hc_damp damp;
};

/**
 * Nothing is known yet.
 *
 * @param is_trusted  Use it until something is: at a start, where its server has been at work
 *                    all the time. Otherwise it has to pass first, and then begins slowly.
 */
void hc_state_init(struct hc_state *state, bool is_trusted, uint64_t now_ns);

/** Its failures so far are forgotten: none of them keeps it out any more. */
void hc_state_forgive(struct hc_state *state);

/** The share begins to grow now: of one that is not checked, or was out for another reason. */
void hc_state_begin(struct hc_state *state, const struct hc_rules *rules, uint64_t now_ns);

/** A result. @return whether level has changed. */
bool hc_state_take(struct hc_state *state, const struct hc_rules *rules, bool has_passed,
	uint64_t now_ns);

/** How far to use it now. */
enum hc_use hc_state_use(const struct hc_state *state, const struct hc_rules *rules,
	uint64_t now_ns);

/** Its share now: 1..HC_SHARE_WHOLE, one more at a time. */
uint32_t hc_state_share(const struct hc_state *state, const struct hc_rules *rules,
	uint64_t now_ns);

/** Where its share is whole, it stays so, whatever the rules are later. */
void hc_state_settle(struct hc_state *state, const struct hc_rules *rules, uint64_t now_ns);

/** Whether use or share change by themselves, as time goes by. */
bool hc_state_is_moving(const struct hc_state *state, const struct hc_rules *rules,
	uint64_t now_ns);

#endif
