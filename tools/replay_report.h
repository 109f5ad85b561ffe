/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_REPORT_H
#define REPLAY_REPORT_H

/**
 * @file
 * What a replay found: as numbers, as JSON (the stable names), as text for people; and the
 * decision of each packet as a line of JSON.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "lb_compiler.h"
#include "lb_verdict.h"

struct replay_report_backend {
	const char *name;        /**< not owned */
	const char *state;       /**< "up", "drain", "down", or "removed" */
	uint64_t packets;        /**< forwarded to it */
	uint64_t bytes;          /**< IP bytes of them as received */
	uint64_t flows;          /**< begun on it */
	uint64_t slots;          /**< at the end */
	uint64_t *phase_packets; /**< of each of the report's phases; n_phases of them */
	uint64_t *phase_slots;   /**< at the end of each phase */
};

struct replay_report_service {
	const char *name;
	const char *algorithm;
	uint32_t n_slots;
	uint64_t packets;
	uint64_t bytes;
	uint64_t flows;
	struct replay_report_backend *backends; /**< in the order they were first seen */
	size_t n_backends;
	bool is_removed; /**< by a reload */
};

/** The time between two changes of the backend set. */
struct replay_report_phase {
	const char *title;     /**< "start", or the event: "remove web/web-2" */
	uint64_t first_packet; /**< the number of its first packet, from 1 */
};

struct replay_report {
	uint64_t verdicts[LB_N_VERDICTS]; /**< packets */
	struct replay_report_service *services;
	size_t n_services;
	struct replay_report_phase *phases;
	size_t n_phases;
	uint64_t flows;
	uint64_t moved;
	uint64_t broken;
	uint64_t unwatched; /**< flows given up by the auditor: moved and broken may be too
			       small */
	double seconds;     /**< wall clock */
};

/** All packets: the sum of the verdicts. */
uint64_t replay_report_received(const struct replay_report *report);

/** The sum of the verdicts that drop. */
uint64_t replay_report_dropped(const struct replay_report *report);

/** Millions of packets received a second; 0 where the clock did not move. */
double replay_report_mpps(const struct replay_report *report);

/**
 * The JSON object of the interface, "schema": 1 first, in a stable order; NULL where memory is
 * short. Names and titles are valid UTF-8.
 */
json_t *replay_report_json(const struct replay_report *report);

/**
 * Write it as JSON, one object, indented.
 *
 * @retval -EIO     The stream could not be written.
 * @retval -ENOMEM  No memory; nothing was written.
 */
int replay_report_write_json(const struct replay_report *report, FILE *to) lb_must_check;

/** Write it as tables for a person. @retval -EIO  The stream could not be written. */
int replay_report_write_text(const struct replay_report *report, FILE *to) lb_must_check;

/** One packet's decision, names resolved. */
struct replay_decision {
	uint64_t packet; /**< from 1 */
	enum lb_verdict verdict;
	const char *service; /**< NULL: none */
	const char *backend; /**< NULL: none */
	const char *flow;    /**< "hit", "miss" or "none" */
	int64_t slot;        /**< -1: none */
};

/** Write one line of JSON; the stream is one thread's own. @retval -EIO  The stream could not
 * be written. */
int replay_decision_write(const struct replay_decision *decision, FILE *to) lb_must_check;

#endif
