/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

/**
 * @file
 * Whether a packet that leaves is what it should be: read byte by byte, by none of the
 * functions that wrote it. Pure, callable from any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "cfg_model.h"

/** A packet as it came and as it leaves, and what is right. */
struct bench_sample {
	unsigned int family; /**< 4 or 6, inside and outside */
	enum cfg_forward forward;
	struct lb_addr own;
	struct lb_addr backend;
	struct lb_mac next_hop;
	struct lb_mac port;
	const uint8_t *received; /**< an untagged frame */
	size_t received_bytes;
	const uint8_t *sent;
	size_t sent_bytes;
};

/** @return NULL where it is right; otherwise what is wrong with it, in words. */
const char *bench_check(const struct bench_sample *sample);

#endif
