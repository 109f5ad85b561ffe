/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOP_ROWS_H
#define TOP_ROWS_H

/**
 * @file
 * What two answers to CTL_METHOD_STATS say happened between them: rates of services or
 * backends, of drops and of workers, picked and sorted.
 *
 * Pure: no clock, no terminal. A rate is negative where it is not known: without an answer
 * before, of what was not in that, and of counts that began anew since.
 */

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "lb_compiler.h"

/** By what rows are sorted: the largest first, names by the alphabet. */
enum top_sort {
	TOP_SORT_PACKETS,
	TOP_SORT_BITS,
	TOP_SORT_FLOWS,
	TOP_SORT_SHARE, /**< by how far it is from what is due */
	TOP_SORT_NAME,
	TOP_N_SORTS
};

extern const char *const top_sort_words[TOP_N_SORTS];

struct top_sample {
	const json_t *now;
	const json_t *before; /**< NULL: there is none */
	double seconds;       /**< between them */
};

struct top_choice {
	bool of_services; /**< rows are services, not backends */
	bool is_reverse;
	enum top_sort sort;
	const char *filter; /**< part of a name, in either case; "" takes all */
};

struct top_row {
	const char *service; /**< the answer's, as all texts */
	const char *backend; /**< NULL: the row is the service */
	const char *state;   /**< of a backend, a word */
	size_t n_up;         /**< of a service: backends that get new flows */
	size_t n_backends;
	double packets;  /**< a second, as the next two */
	double bits;     /**< of IP packets as received */
	double flows;    /**< new ones */
	double share;    /**< of its service's packets, or of all services'; 0..1 */
	double due;      /**< of a backend, by weight; 0..1 */
	size_t position; /**< in the configuration */
};

struct top_rows {
	struct top_row *items;
	size_t n;
	size_t n_all;      /**< those that the filter left out, too */
	size_t n_services; /**< in the answer */
	size_t n_backends;
};

/**
 * Rows of a sample. They point into its answer now.
 *
 * @param[out] out  Freed by top_rows_fini(); untouched on error.
 * @retval -ENOMEM  There is not enough memory.
 */
int top_rows_init(const struct top_sample *sample, const struct top_choice *choice,
	struct top_rows *out) lb_must_check;

void top_rows_fini(struct top_rows *rows);

/** A count of drops or packets, by its name. */
struct top_count {
	const char *name;
	json_int_t total;
	double rate; /**< a second */
};

/** Of packets[] and drops[] together. */
#define TOP_COUNTS_MAX 64u

/**
 * The counts of an object of the sample: CTL_KEY_PACKETS as they are, CTL_KEY_DROPS without
 * those that are 0, the fastest first, those alike by totals.
 *
 * @return how many.
 */
size_t top_count_packets(const struct top_sample *sample,
	struct top_count out[static TOP_COUNTS_MAX]);
size_t top_count_drops(const struct top_sample *sample,
	struct top_count out[static TOP_COUNTS_MAX]);

struct top_worker {
	json_int_t number;
	double busy; /**< part of its time in turns that found packets, 0..1; below 0: none
			known */
	json_int_t entries; /**< of its flow table, in use */
};

size_t top_n_workers(const struct top_sample *sample);

/** @param i  0..top_n_workers() - 1. */
struct top_worker top_read_worker(const struct top_sample *sample, size_t i);

#endif
