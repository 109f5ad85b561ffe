/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay_expect_items.h"

/* Room for SERVICE/NAME. */
#define TARGET_BYTES (2 * LB_NAME_BYTES_MAX + 2)

/* A key's value in a decision, as the line of JSON has it; NULL is null. */
static const char *
get_value(const struct replay_decision *decision, enum expect_key key, bool has_service,
	char out[static TARGET_BYTES])
{
	switch (key) {
	case EXPECT_VERDICT:
		return lb_verdict_name(decision->verdict);
	case EXPECT_SERVICE:
		return decision->service;
	case EXPECT_FLOW:
		return decision->flow;
	case EXPECT_REASON:
		return lb_verdict_reason(decision->verdict);
	case EXPECT_SLOT:
		if (decision->slot < 0)
			return NULL;
		(void)snprintf(out, TARGET_BYTES, "%" PRId64, decision->slot);
		return out;
	default:
		if (!has_service || decision->backend == NULL || decision->service == NULL)
			return decision->backend;
		(void)snprintf(out, TARGET_BYTES, "%s/%s", decision->service,
			decision->backend);
		return out;
	}
}

static bool
is_met(const struct expect_item *item, enum expect_key key,
	const struct replay_decision *decision)
{
	const char *want = item->wants[key];
	char scratch[TARGET_BYTES];
	const char *value;

	if (!item->is_given[key])
		return true;
	value = get_value(decision, key, want != NULL && strchr(want, '/') != NULL, scratch);
	if (want == NULL || value == NULL)
		return want == value;
	return strcmp(want, value) == 0;
}

/* The keys that are not met, with what was wanted of them or what was found. */
static void
print_keys(FILE *to, const struct expect_item *item, const struct replay_decision *decision,
	bool is_found)
{
	const char *comma = "";

	for (int i = 0; i < N_EXPECT_KEYS; i++) {
		const enum expect_key key = (enum expect_key)i;
		const char *text = item->wants[key];
		char scratch[TARGET_BYTES];

		if (is_met(item, key, decision))
			continue;
		if (is_found)
			text = get_value(decision, key,
				text != NULL && strchr(text, '/') != NULL, scratch);
		/* A name that reads like null stands in quotes, as it does in the file. */
		if (text != NULL && strcmp(text, "null") == 0)
			text = "'null'";
		(void)fprintf(to, "%s %s %s", comma, replay_expect_key_names[key],
			text == NULL ? "null" : text);
		if (is_found && key == EXPECT_VERDICT && decision->verdict >= LB_FIRST_DROP)
			(void)fprintf(to, " (%s)", lb_verdict_reason(decision->verdict));
		comma = ",";
	}
}

static void
hold_against(struct expect_item *item, const struct replay_decision *decision)
{
	size_t n_bytes;
	FILE *to;

	item->has_come = true;
	for (int i = 0; i < N_EXPECT_KEYS; i++)
		item->is_wrong |= !is_met(item, (enum expect_key)i, decision);
	if (!item->is_wrong)
		return;

	/* Kept for the end, where all that did not hold is told in the file's order. */
	to = open_memstream(&item->found, &n_bytes);
	if (to == NULL)
		return;
	(void)fprintf(to, " to have");
	print_keys(to, item, decision, false);
	(void)fprintf(to, ", found");
	print_keys(to, item, decision, true);
	if (fclose(to) != 0) {
		free(item->found);
		item->found = NULL;
	}
}

void
replay_expect_packet(struct replay_expect *expect, const struct replay_decision *decision)
{
	while (expect->cursor < expect->n_by_packet) {
		struct expect_item *item = &expect->items[expect->by_packet[expect->cursor]];

		if (item->packet > decision->packet)
			return;
		if (item->packet == decision->packet)
			hold_against(item, decision);
		expect->cursor++;
	}
}
