/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_verdict.h"

/* What JSON, metrics and logs say: people's scripts depend on these words. */
static const struct {
	enum lb_verdict verdict;
	const char *name;
	const char *reason;
} rows[] = {
	{LB_FORWARD, "forward", NULL},
	{LB_REPLY, "reply", NULL},
	{LB_TO_KERNEL, "kernel", NULL},
	{LB_DROP_TRUNCATED, "drop", "truncated"},
	{LB_DROP_BAD_IP_VERSION, "drop", "bad_ip_version"},
	{LB_DROP_BAD_HEADER_LENGTH, "drop", "bad_header_length"},
	{LB_DROP_BAD_TOTAL_LENGTH, "drop", "bad_total_length"},
	{LB_DROP_BAD_CHECKSUM, "drop", "bad_checksum"},
	{LB_DROP_TTL_EXPIRED, "drop", "ttl_expired"},
	{LB_DROP_UNKNOWN_EXTENSION_HEADER, "drop", "unknown_extension_header"},
	{LB_DROP_FRAGMENT_UNMATCHED, "drop", "fragment_unmatched"},
	{LB_DROP_NO_BACKEND, "drop", "no_backend"},
	{LB_DROP_NO_NEXT_HOP, "drop", "no_next_hop"},
	{LB_DROP_TOO_BIG, "drop", "too_big"},
	{LB_DROP_UNSUPPORTED_L4, "drop", "unsupported_l4"},
	{LB_DROP_VLAN_DEPTH, "drop", "vlan_depth"},
	{LB_DROP_NO_SERVICE, "drop", "no_service"},
	{LB_DROP_TX_FULL, "drop", "tx_full"},
	{LB_DROP_NO_MEMORY, "drop", "no_memory"},
	{LB_DROP_SNAPLEN, "drop", "snaplen"},
	{LB_DROP_HANDOFF_FULL, "drop", "handoff_full"},
	{LB_DROP_PORT_DOWN, "drop", "port_down"},
	{LB_DROP_KERNEL_DOWN, "drop", "kernel_down"},
	{LB_DROP_FRAGMENT_BAD, "drop", "fragment_bad"},
	{LB_DROP_FRAGMENT_OVERLAP, "drop", "fragment_overlap"},
	{LB_DROP_FRAGMENT_EXCESS, "drop", "fragment_excess"},
	{LB_DROP_MARTIAN_SOURCE, "drop", "martian_source"},
	{LB_DROP_ECHO_REFUSED, "drop", "echo_refused"},
	{LB_DROP_RATE_LIMITED, "drop", "rate_limited"},
	{LB_DROP_LINK_MULTICAST, "drop", "link_multicast"},
	{LB_DROP_MARTIAN_DESTINATION, "drop", "martian_destination"},
	{LB_DROP_SOURCE_ROUTE, "drop", "source_route"},
};

static void
test_each_verdict_has_its_words(void **state)
{
	(void)state;
	assert_int_equal(LB_N_ELEMENTS(rows), LB_N_VERDICTS);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const char *reason = lb_verdict_reason(rows[i].verdict);

		assert_int_equal(rows[i].verdict, i);
		assert_string_equal(lb_verdict_name(rows[i].verdict), rows[i].name);
		EXPECT((reason == NULL) == (rows[i].reason == NULL), "verdict %zu: a reason",
			i);
		if (reason != NULL)
			assert_string_equal(reason, rows[i].reason);
	}
}

static void
test_drops_and_only_drops_have_a_reason(void **state)
{
	(void)state;
	for (int v = 0; v < LB_N_VERDICTS; v++)
		EXPECT((lb_verdict_reason((enum lb_verdict)v) != NULL) == (v >= LB_FIRST_DROP),
			"verdict %d", v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_verdict_has_its_words),
		cmocka_unit_test(test_drops_and_only_drops_have_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
