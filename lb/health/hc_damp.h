/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_DAMP_H
#define HC_DAMP_H

/**
 * @file
 * Flap damping, after RFC 2439: each failure adds a penalty, which decays exponentially. Above
 * a limit whoever fails so often stays out until the penalty has decayed to another, lower one.
 *
 * Integers alone, and time is passed in: nanoseconds of a clock that does not go back.
 *
 * Not thread-safe: whoever owns a state calls.
 */

#include <stdbool.h>
#include <stdint.h>

/** What a failure adds. The other limits are in the same unit. */
#define HC_DAMP_PENALTY 1000u

/** Above it one is out: three failures within 0.69 of a half-life of each other. */
#define HC_DAMP_SUPPRESS 2000u

/** Below it one is back. */
#define HC_DAMP_REUSE 750u

/** No penalty is higher: so nobody who has stopped failing is out for more than 4 half-lives.
 */
#define HC_DAMP_CEILING (HC_DAMP_REUSE << 4)

/** Longest half-life: a day. Products with it stay inside 64 bits. */
#define HC_DAMP_HALF_LIFE_NS_MAX (UINT64_C(86400) * 1000000000)

/** All zero: nobody has failed. */
struct hc_damp {
	uint64_t at_ns;   /**< when penalty was what it says */
	uint32_t penalty; /**< 0..HC_DAMP_CEILING */
	bool is_out;      /**< as of at_ns */
};

/**
 * What a penalty is after a time.
 *
 * @param half_life_ns  1..HC_DAMP_HALF_LIFE_NS_MAX.
 */
uint32_t hc_damp_decay(uint32_t penalty, uint64_t elapsed_ns, uint64_t half_life_ns);

/** One more failure. */
void hc_damp_fail(struct hc_damp *damp, uint64_t half_life_ns, uint64_t now_ns);

/** Whether it stays out. now_ns is no earlier than the last failure. */
bool hc_damp_is_out(const struct hc_damp *damp, uint64_t half_life_ns, uint64_t now_ns);

/** When it is back, if it fails no more; 0 where it is not out. To a nanosecond. */
uint64_t hc_damp_back_ns(const struct hc_damp *damp, uint64_t half_life_ns);

#endif
