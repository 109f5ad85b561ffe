/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_USUAL_SEND_H
#define DP_USUAL_SEND_H

/**
 * @file
 * The end of the short way (dp_usual.h): outer headers.
 */

#include "dp_stages.h"

/**
 * Give their outer headers to packets that dp_usual_follow_known() has found the backends of,
 * in order, up to the first whose backend does not take it as it is.
 *
 * @param n         How many follow known flows, or have begun theirs, from the burst's first
 * on.
 * @param is_brief  Of their decisions no more is wanted than dp_worker.h says, where they are
 *                  the whole burst.
 * @return that packet's index. All before it are as they leave, and decided.
 */
size_t dp_usual_send_known(struct dp_stages *s, size_t n, bool is_brief);

/**
 * Give those that are decided their outer headers, from one on.
 *
 * @param from  The first; all before it have theirs.
 * @return how many of all have: of the others is_usual is unset, and they are as they were.
 */
size_t dp_usual_send(struct dp_stages *s, size_t from);

#endif
