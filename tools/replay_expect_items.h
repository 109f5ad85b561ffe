/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_EXPECT_ITEMS_H
#define REPLAY_EXPECT_ITEMS_H

/**
 * @file
 * Between the modules of the expectations file alone: what was read, and what came of it.
 */

#include "replay_expect.h"

enum expect_kind { EXPECT_VALUE, EXPECT_SHARE, EXPECT_DROPS, EXPECT_PACKET, N_EXPECT_KINDS };

/** The keys of a decision that a packet's expectation may name. */
enum expect_key {
	EXPECT_VERDICT,
	EXPECT_SERVICE,
	EXPECT_BACKEND,
	EXPECT_FLOW,
	EXPECT_SLOT,
	EXPECT_REASON,
	N_EXPECT_KEYS
};

/** Their names, by enum expect_key, and NULL. */
extern const char *const replay_expect_key_names[N_EXPECT_KEYS + 1];

/** A number of the file: exact where it is whole and not negative. */
struct expect_number {
	bool is_given;
	bool is_whole;
	uint64_t whole;
	double value;
};

struct expect_bounds {
	struct expect_number min;
	struct expect_number max;
	struct expect_number is;
};

struct expect_item {
	enum expect_kind kind;
	uint32_t line;
	char *name;                  /**< the value's path, or SERVICE/NAME of the share */
	enum lb_verdict reason;      /**< of drops */
	struct expect_bounds bounds; /**< of all but a packet */

	uint64_t packet;
	bool is_given[N_EXPECT_KEYS];
	char *wants[N_EXPECT_KEYS]; /**< as a decision prints it; NULL where null is wanted */
	bool has_come;
	bool is_wrong;
	char *found; /**< of a wrong packet: what was expected and found, NULL without memory */
};

struct replay_expect {
	char *file;
	struct expect_item *items; /**< in file order */
	size_t n_items;
	size_t *by_packet; /**< the items of packets, by the packet's number */
	size_t n_by_packet;
	size_t cursor; /**< in by_packet: the first that has not come yet */
};

#endif
