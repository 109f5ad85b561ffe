/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cfg_decode.h"

/* The kernel's own addresses are in it, RT_TABLE_LOCAL. */
#define TABLE_LOCAL     255u
#define WITHDRAW_NS_MAX (300 * 1000000000ull)

/* Its own word for none, as control.metrics has. Whether it can be one is checked later. */
static void
decode_interface(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_announce *out)
{
	const char *text;

	if (!cfg_read_text(node, "interface", errors, &text))
		return;
	out->interface_pos = node->pos;
	if (strcmp(text, "off") != 0)
		out->interface = cfg_keep_text(text, errors);
}

static void
decode_table(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_announce *out)
{
	uint64_t number = CFG_TABLE_MAIN;

	if (node == NULL)
		return;
	if (node->kind != CFG_SCALAR ||
		(strcmp(node->text, "main") != 0 &&
			!cfg_scan_u64(node->text, 1, UINT32_MAX, &number)) ||
		number == TABLE_LOCAL) {
		(void)cfg_expected(node, "table", errors,
			"main or a whole number from 1 to 4294967295 other than 255, the "
			"kernel's own");
		return;
	}
	out->table = (uint32_t)number;
}

void
cfg_decode_announce(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_announce *out)
{
	static const char *const keys[] = {"interface", "table", "metric",
		"withdraw_before_stop", NULL};
	const struct cfg_node *interface;
	const struct cfg_node *metric;
	const struct cfg_node *withdraw;
	uint64_t number;

	if (node == NULL || cfg_node_is_null(node) || !cfg_node_check_keys(node, keys, errors))
		return;
	interface = cfg_node_get(node, "interface");
	if (interface != NULL)
		decode_interface(interface, errors, out);
	else
		cfg_warning(errors, node->pos,
			"without 'interface' nothing is announced; name one, such as "
			"shunt-vips");
	decode_table(cfg_node_get(node, "table"), errors, out);
	metric = cfg_node_get(node, "metric");
	if (metric != NULL && cfg_read_u64(metric, "metric", 0, UINT32_MAX, errors, &number))
		out->metric = (uint32_t)number;
	withdraw = cfg_node_get(node, "withdraw_before_stop");
	if (withdraw != NULL)
		(void)cfg_read_duration(withdraw, "withdraw_before_stop", 0, WITHDRAW_NS_MAX,
			errors, &out->withdraw_before_stop_ns);
}
