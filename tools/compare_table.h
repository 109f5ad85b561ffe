/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_TABLE_H
#define COMPARE_TABLE_H

/**
 * @file
 * One face on every algorithm, for comparison: a set of backends becomes a table, and a table
 * says who owns its slots, or a key.
 *
 * Maglev, stable, ring and rendezvous are built by lb_picker.h, as the daemon builds them, and
 * bounded beside them: slots, of whose dead backends the overlay disposes. So is `slots`, of
 * 16384 slots however many are asked for, which are assigned anew after a change with the
 * fewest moves. The others know keys alone: for them the dead are as if they were gone. Modulo,
 * jump, anchor, ketama and slots know backends by their place in the list.
 *
 * A key is a hash of 64 bits; what it takes to hash is nobody's here.
 */

#include <stddef.h>
#include <stdint.h>

#include "compare_set.h"
#include "lb_compiler.h"

enum compare_algorithm {
	COMPARE_MAGLEV,
	COMPARE_STABLE,
	COMPARE_RING,
	COMPARE_BOUNDED,
	COMPARE_RENDEZVOUS,
	COMPARE_SLOTS,
	COMPARE_ANCHOR,
	COMPARE_JUMP,
	COMPARE_KETAMA,
	COMPARE_MODULO,
	COMPARE_N_ALGORITHMS
};

/** Indexed by the above; ends with NULL. */
extern const char *const compare_algorithm_words[];

/** Percent above its share that a backend of bounded may have. */
#define COMPARE_BOUNDED_PCT 10u

/** What a table is built of, besides its backends. */
struct compare_spec {
	enum compare_algorithm algorithm;
	uint32_t n_slots; /**< one that compare_check_size() takes */
	uint32_t slack;   /**< of stable, in thousandths */
	uint64_t hash_seed;
	uint32_t unit; /**< of modulo, jump and anchor: so much weight is one bucket */
};

struct compare_table; /* opaque */

/** Whether --size has a part in the algorithm. */
bool compare_takes_size(enum compare_algorithm algorithm);

/** Whether backends have buckets in proportion to their weights, and spec.unit a part in it. */
bool compare_takes_unit(enum compare_algorithm algorithm);

/**
 * Whether an algorithm can take so many slots and backends, whose weights add up to
 * weight_sum.
 *
 * @param unit  A common divisor of the weights.
 * @return NULL, or in words what it wants.
 */
const char *compare_check_size(enum compare_algorithm algorithm, uint32_t n_slots,
	const struct compare_set *set, uint32_t unit);

/** The greatest common divisor; of 0 and a, a. */
uint32_t compare_common_divisor(uint32_t a, uint32_t b);

/** That of all weights; 0 where all are 0. */
uint32_t compare_unit(const struct compare_set *set);

/**
 * Build a table.
 *
 * @param set       Read during the call alone.
 * @param[out] out  To be given to compare_table_destroy(); untouched on error.
 * @retval 0        Success.
 * @retval -ENOENT  Nobody has a weight.
 * @retval -E2BIG   Too much for the algorithm.
 * @retval -ENOMEM  No memory.
 */
int compare_table_create(const struct compare_spec *spec, const struct compare_set *set,
	struct compare_table **out) lb_must_check;

/**
 * The table after a change. Of most algorithms it is that of the set after it; of anchor and
 * slots it depends on the table before, too.
 *
 * @param spec    Of the table before, all but its size, slack and seed.
 * @param before  Built of `from`; not changed.
 * @return        As compare_table_create().
 */
int compare_table_follow(const struct compare_spec *spec, const struct compare_table *before,
	const struct compare_set *from, const struct compare_set *to,
	struct compare_table **out) lb_must_check;

/** Free a table; NULL is allowed. */
void compare_table_destroy(struct compare_table *table);

/** Its slots; 0 where it has none. */
uint32_t compare_table_slots(const struct compare_table *table);

/** Bytes that lookups read. */
size_t compare_table_bytes(const struct compare_table *table);

/** Ids of the owners of all slots, in order. */
void compare_table_own_slots(const struct compare_table *table, uint32_t *owners);

/**
 * Owners of n keys, as the table itself names them: that is a lookup, and what is worth timing.
 * compare_table_name_keys() makes ids of them.
 */
void compare_table_own_keys(const struct compare_table *table, const uint64_t *keys, size_t n,
	uint32_t *owners);

/** Ids of n owners that compare_table_own_keys() found, in their place. */
void compare_table_name_keys(const struct compare_table *table, size_t n, uint32_t *owners);

#endif
