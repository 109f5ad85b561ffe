/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * lb_encap.c against tests/golden/packets.py, a second program that knows the formats.
 * The path to its output is the only argument.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_csum.h"
#include "lb_encap.h"

#define LINE_BYTES_MAX 2048

/* One line of packets.txt, as text. */
struct golden {
	char mode[8];
	char src[LB_ADDR_TEXT_BYTES];
	char dst[LB_ADDR_TEXT_BYTES];
	unsigned int udp_port;
	unsigned int vni;
	unsigned int entropy;
	char inner[512];
	char outer[512];
};

static const char *golden_path;

static size_t
from_hex(const char *text, uint8_t *out)
{
	const size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++) {
		const char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

		out[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return n;
}

static enum lb_forward_mode
mode_of(const char *name)
{
	static const char *const names[] = {
		[LB_FORWARD_L2] = "l2",
		[LB_FORWARD_IPIP] = "ipip",
		[LB_FORWARD_GRE] = "gre",
		[LB_FORWARD_GUE] = "gue",
		[LB_FORWARD_VXLAN] = "vxlan",
	};
	size_t i = 0;

	while (i < LB_N_ELEMENTS(names) && strcmp(name, names[i]) != 0)
		i++;
	EXPECT(i < LB_N_ELEMENTS(names), "mode %s", name);
	return (enum lb_forward_mode)i;
}

static struct lb_encap
encap_of(const struct golden *g)
{
	struct lb_encap_conf conf = {
		.mode = mode_of(g->mode),
		.udp_port = (uint16_t)g->udp_port,
		.vni = g->vni,
		.inner_dst = {{2, 0, 0, 0, 0, 1}},
		.inner_src = {{2, 0, 0, 0, 0, 2}},
	};
	struct lb_encap encap;

	assert_int_equal(lb_addr_parse(g->src, &conf.src), 0);
	assert_int_equal(lb_addr_parse(g->dst, &conf.dst), 0);
	assert_int_equal(lb_encap_init(&encap, &conf), 0);
	return encap;
}

static void
compare(const struct golden *g, unsigned int line, const struct lb_encap *encap)
{
	uint8_t inner[sizeof(g->inner) / 2] = {0};
	uint8_t want[sizeof(g->outer) / 2];
	const size_t n_inner = from_hex(g->inner, inner);
	const size_t n_want = from_hex(g->outer, want);
	const bool is_v6 = inner[0] >> 4 == 6;
	const struct lb_encap_packet packet = {
		.is_v6 = is_v6,
		.tos = is_v6 ? (uint8_t)(inner[0] << 4 | inner[1] >> 4) : inner[1],
		.inner_bytes = (uint16_t)n_inner,
		.entropy = g->entropy,
		.inner_sum = lb_csum_add(0, inner, n_inner),
	};
	uint8_t *got = malloc(n_want);

	EXPECT(n_want == encap->n_bytes + n_inner, "line %u: %zu bytes, want %zu", line,
		encap->n_bytes + n_inner, n_want);
	lb_encap_write(encap, &packet, got);
	memcpy(got + encap->n_bytes, inner, n_inner);
	for (size_t i = 0; i < n_want; i++)
		EXPECT(got[i] == want[i], "line %u, %s to %s: byte %zu is %02x, want %02x",
			line, g->mode, g->dst, i, got[i], want[i]);
	free(got);
}

static void
test_outer_headers_are_an_independent_programs_to_the_byte(void **state)
{
	unsigned int seen[LB_N_FORWARD_MODES][2] = {{0}};
	FILE *file = fopen(golden_path, "r");
	char text[LINE_BYTES_MAX];

	(void)state;
	EXPECT(file != NULL, "%s cannot be read", golden_path);
	for (unsigned int line = 1; fgets(text, sizeof(text), file) != NULL; line++) {
		struct lb_encap encap;
		struct golden g;
		int n;

		if (text[0] == '#')
			continue;
		n = sscanf(text, "%7s %45s %45s %u %x %x %511s %511s", g.mode, g.src, g.dst,
			&g.udp_port, &g.vni, &g.entropy, g.inner, g.outer);
		EXPECT(n == 8, "line %u: %d fields", line, n);
		encap = encap_of(&g);
		compare(&g, line, &encap);
		seen[encap.mode][encap.is_v6]++;
	}
	(void)fclose(file);

	/* A file cut short, or emptied, is no proof of anything. */
	for (unsigned int mode = LB_FORWARD_IPIP; mode < LB_N_FORWARD_MODES; mode++)
		EXPECT(seen[mode][0] >= 16 && seen[mode][1] >= 16, "mode %u: %u and %u lines",
			mode, seen[mode][0], seen[mode][1]);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outer_headers_are_an_independent_programs_to_the_byte),
	};

	if (argc != 2) {
		(void)fprintf(stderr, "usage: %s PACKETS.txt\n", argv[0]);
		return 2;
	}
	golden_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
