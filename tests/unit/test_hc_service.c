/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "hc_service.h"
#include "lb_compiler.h"

#define N_MAX 4

/*
 * Members: U up, s up at half its share, A awaited, L flaps, D down; in small letters u, l, d:
 * drained or without weight. Shares: # whole, / half, . none.
 */
static const struct {
	const char *what;
	const char *members;
	enum hc_all_down all_down;
	size_t n_needed;
	const char *shares;
	size_t n_members;
	size_t n_healthy;
	bool is_ready;
	bool is_all_down;
} rows[] = {
	{"all up", "UUU", HC_KEEP, 1, "###", 3, 3, true, false},
	{"one down", "UDU", HC_KEEP, 1, "#.#", 3, 2, true, false},
	{"a share that grows", "UsD", HC_KEEP, 1, "#/.", 3, 2, true, false},
	{"who flaps is out", "ULU", HC_KEEP, 1, "#.#", 3, 2, true, false},
	{"but before nobody is in", "DLD", HC_KEEP, 1, ".#.", 3, 1, true, false},
	{"the same where all would be dropped", "DLD", HC_DROP, 1, ".#.", 3, 1, true, false},
	{"two that flap, where three are needed", "LLD", HC_KEEP, 3, "##.", 3, 2, false, false},
	{"of nobody anything is known yet", "AAA", HC_DROP, 1, "###", 3, 0, false, false},
	{"of one it is", "AUA", HC_DROP, 1, "###", 3, 1, true, false},
	{"of one it is, and two are needed", "AUA", HC_DROP, 2, "###", 3, 1, false, false},
	{"who is awaited goes before who flaps", "ALD", HC_KEEP, 1, "#..", 3, 0, false, false},
	{"all down, and kept", "DDD", HC_KEEP, 1, "###", 3, 0, false, true},
	{"all down, and dropped", "DDD", HC_DROP, 1, "...", 3, 0, false, true},
	{"too few are healthy: they go on", "UDD", HC_KEEP, 2, "#..", 3, 1, false, false},
	{"just as many as are needed", "UUD", HC_KEEP, 2, "##.", 3, 2, true, false},
	{"none is needed, and none is there", "DDD", HC_DROP, 0, "...", 3, 0, false, true},
	{"who drains is none of health's", "Udu", HC_KEEP, 1, "###", 1, 1, true, false},
	{"who drains does not count for the others", "Dul", HC_DROP, 1, ".##", 1, 0, false,
		true},
	{"nobody counts", "udl", HC_DROP, 1, "###", 0, 0, false, false},
	{"nobody is there", "", HC_DROP, 1, "", 0, 0, false, false},
};

static struct hc_member
make_member(char letter)
{
	struct hc_member member = {.share = HC_SHARE_WHOLE,
		.use = HC_USE_YES,
		.takes_flows = strchr("UsALD", letter) != NULL,
		.is_awaited = letter == 'A'};

	if (letter == 's')
		member.share = HC_SHARE_WHOLE / 2;
	else if (letter == 'L' || letter == 'l')
		member.use = HC_USE_LAST;
	else if (letter == 'D' || letter == 'd')
		member.use = HC_USE_NO;
	return member;
}

static void
test_whom_a_service_uses(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const size_t n = strlen(rows[i].members);
		struct hc_member members[N_MAX];
		uint8_t shares[N_MAX];
		struct hc_service service;

		for (size_t k = 0; k < n; k++)
			members[k] = make_member(rows[i].members[k]);
		service = hc_service_judge(members, n, rows[i].all_down, rows[i].n_needed,
			shares);
		for (size_t k = 0; k < n; k++) {
			const uint8_t want = rows[i].shares[k] == '#'   ? HC_SHARE_WHOLE
					     : rows[i].shares[k] == '/' ? HC_SHARE_WHOLE / 2
									: 0;

			EXPECT(shares[k] == want, "%s: share %zu is %u", rows[i].what, k,
				(unsigned int)shares[k]);
		}
		EXPECT(service.n_members == rows[i].n_members, "%s: members", rows[i].what);
		EXPECT(service.n_healthy == rows[i].n_healthy, "%s: healthy", rows[i].what);
		EXPECT(service.is_ready == rows[i].is_ready, "%s: ready", rows[i].what);
		EXPECT(service.is_all_down == rows[i].is_all_down, "%s: down", rows[i].what);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whom_a_service_uses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
