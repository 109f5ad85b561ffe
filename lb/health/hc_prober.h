/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_PROBER_H
#define HC_PROBER_H

/**
 * @file
 * The thread that asks backends: thousands of them a second, none of which can keep another
 * waiting. Begins are spread over the interval, and a backend is asked once at a time.
 *
 * All functions are one thread's, the caller's.
 */

#include "hc_check.h"
#include "hc_tunnel.h"
#include "hc_words.h"

struct hc_prober; /* opaque */

/** What came of one question. */
struct hc_result {
	uint64_t id;      /**< of its target */
	uint64_t took_ns; /**< from begin to end */
	bool has_passed;
	bool is_asked; /**< false: for want of something here it was not; it says nothing */
	char words[HC_WORDS_BYTES]; /**< why it has not passed */
};

/** Results that wait to be taken, at most; the others are lost, and their backends asked again.
 */
#define HC_RESULTS_MAX (1u << 18)

/** @retval -errno  The kernel's reason. */
int hc_prober_create(struct hc_prober **out) lb_must_check;

/** It ends within milliseconds, whoever is being asked. NULL is allowed. */
void hc_prober_destroy(struct hc_prober *prober);

/**
 * What targets that are tunnelled go by. Until then they are not asked.
 *
 * @param tunnel  The prober's from now on, until it is destroyed; not owned. Never another; but
 *                the same again where its file stands for another device.
 */
void hc_prober_attach(struct hc_prober *prober, struct hc_tunnel *tunnel);

/**
 * Whom to ask from now on, so many at a time at most: the others wait until some are done. Who
 * is asked the same as before goes on as it was; others are first asked within their interval.
 *
 * @param targets  n of them, copied with the checks they point to; many may share one.
 * @param n_at_once  1 or more; each has a file open.
 * @retval -ENOMEM  No memory: it goes on with those of before.
 */
int hc_prober_set(struct hc_prober *prober, const struct hc_target *targets, size_t n,
	size_t n_at_once) lb_must_check;

/** A file that is readable where there are results. */
int hc_prober_fd(const struct hc_prober *prober);

/**
 * Take the results that there are, in the order they came.
 *
 * @param[out] out  The caller's, to be freed; NULL where there is none.
 * @return how many.
 */
size_t hc_prober_take(struct hc_prober *prober, struct hc_result **out);

#endif
