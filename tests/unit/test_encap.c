/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_csum.h"
#include "lb_encap.h"
#include "lb_encap_write.h"
#include "packet_builder.h"
#include "xrand.h"

#define ENTROPY 0xabcdef12u /* source port 49152 + 10995, flow label 0xdef12 */

static struct lb_encap_conf
conf_of(enum lb_forward_mode mode, bool is_v6)
{
	struct lb_encap_conf conf = {
		.mode = mode,
		.udp_port = mode == LB_FORWARD_VXLAN ? LB_VXLAN_PORT : LB_GUE_PORT,
		.vni = 0x123456,
		.inner_dst = {{2, 0, 0, 0, 0, 1}},
		.inner_src = {{2, 0, 0, 0, 0, 2}},
	};

	assert_int_equal(lb_addr_parse(is_v6 ? "2001:db8::1" : "192.0.2.1", &conf.src), 0);
	assert_int_equal(lb_addr_parse(is_v6 ? "2001:db8::b" : "10.0.0.11", &conf.dst), 0);
	return conf;
}

static struct lb_encap
encap_of(enum lb_forward_mode mode, bool is_v6)
{
	const struct lb_encap_conf conf = conf_of(mode, is_v6);
	struct lb_encap encap;

	assert_int_equal(lb_encap_init(&encap, &conf), 0);
	return encap;
}

/* Outer headers and inner packet, at exact length on the heap; to be freed. */
static uint8_t *
wrap(const struct lb_encap *encap, struct lb_encap_packet *packet, const uint8_t *inner)
{
	uint8_t *all = malloc((size_t)encap->n_bytes + packet->inner_bytes);

	assert_non_null(all);
	packet->inner_sum = lb_csum_add(0, inner, packet->inner_bytes);
	memcpy(all + encap->n_bytes, inner, packet->inner_bytes);
	lb_encap_write(encap, packet, all);
	return all;
}

static unsigned int
get16(const uint8_t *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

static const struct {
	const char *name;
	enum lb_forward_mode mode;
	bool is_v6;
	unsigned int want;
	bool needs_sum;
} overheads[] = {
	{"l2", LB_FORWARD_L2, false, 0, false},
	{"l2 to an IPv6 backend", LB_FORWARD_L2, true, 0, false},
	{"ipip over IPv4", LB_FORWARD_IPIP, false, 20, false},
	{"ipip over IPv6", LB_FORWARD_IPIP, true, 40, false},
	{"gre over IPv4", LB_FORWARD_GRE, false, 24, false},
	{"gre over IPv6", LB_FORWARD_GRE, true, 44, false},
	{"gue over IPv4", LB_FORWARD_GUE, false, 28, false},
	{"gue over IPv6", LB_FORWARD_GUE, true, 48, true},
	{"vxlan over IPv4", LB_FORWARD_VXLAN, false, 50, false},
	{"vxlan over IPv6", LB_FORWARD_VXLAN, true, 70, true},
};

static void
test_each_mode_has_its_overhead(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(overheads); i++) {
		const struct lb_encap encap = encap_of(overheads[i].mode, overheads[i].is_v6);
		const unsigned int got =
			lb_encap_overhead(overheads[i].mode, overheads[i].is_v6);

		EXPECT(got == overheads[i].want, "%s: %u", overheads[i].name, got);
		EXPECT(encap.n_bytes == got, "%s: n_bytes %u", overheads[i].name,
			encap.n_bytes);
		EXPECT(encap.mode == overheads[i].mode, "%s: mode", overheads[i].name);
		EXPECT(encap.is_v6 == overheads[i].is_v6, "%s: is_v6", overheads[i].name);
		EXPECT(lb_encap_needs_sum(&encap) == overheads[i].needs_sum, "%s: needs_sum",
			overheads[i].name);
	}
	assert_int_equal(lb_encap_overhead(LB_N_FORWARD_MODES, true), 0);
}

static const struct {
	const char *name;
	enum lb_forward_mode mode;
	bool is_src_v6;
	bool is_dst_v6;
	uint16_t udp_port;
	uint32_t vni;
	int want;
} confs[] = {
	{"families that differ", LB_FORWARD_IPIP, false, true, 1, 0, -EINVAL},
	{"families that differ the other way", LB_FORWARD_GUE, true, false, 1, 0, -EINVAL},
	{"l2 has no source", LB_FORWARD_L2, false, true, 0, 0, 0},
	{"a mode past the last", LB_N_FORWARD_MODES, false, false, 1, 0, -EINVAL},
	{"a negative mode", (enum lb_forward_mode) - 1, false, false, 1, 0, -EINVAL},
	{"gue to port 0", LB_FORWARD_GUE, false, false, 0, 0, -EINVAL},
	{"vxlan to port 0", LB_FORWARD_VXLAN, true, true, 0, 0, -EINVAL},
	{"gre has no port", LB_FORWARD_GRE, false, false, 0, 0, 0},
	{"the largest port", LB_FORWARD_GUE, false, false, 65535, 0, 0},
	{"the largest vni", LB_FORWARD_VXLAN, false, false, 1, 0xffffff, 0},
	{"a vni of 25 bits", LB_FORWARD_VXLAN, false, false, 1, 0x1000000, -EINVAL},
	{"gue has no vni", LB_FORWARD_GUE, false, false, 1, 0x1000000, 0},
};

static void
test_a_template_is_made_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(confs); i++) {
		struct lb_encap_conf conf = conf_of(confs[i].mode, confs[i].is_src_v6);
		const struct lb_encap_conf other = conf_of(confs[i].mode, confs[i].is_dst_v6);
		struct lb_encap encap;
		struct lb_encap before;
		int got;

		conf.dst = other.dst;
		conf.udp_port = confs[i].udp_port;
		conf.vni = confs[i].vni;
		memset(&encap, 0xaa, sizeof(encap));
		memcpy(&before, &encap, sizeof(before));
		got = lb_encap_init(&encap, &conf);
		EXPECT(got == confs[i].want, "%s: %d", confs[i].name, got);
		if (got != 0)
			assert_memory_equal(&before, &encap, sizeof(before)); /* untouched */
	}
}

/* Worked out by hand, one of each outer family and all of what may follow it. */
static void
test_vxlan_over_ipv4_to_the_byte(void **state)
{
	static const uint8_t want[50] = {
		0x45, 0xb9, 0x00, 0x52, 0x00, 0x00, 0x40, 0x00,     /* 50 + 32 = 82 bytes; DF */
		0x40, 0x11, 0x6d, 0xd6, 192, 0, 2, 1, 10, 0, 0, 11, /* UDP */
		0xea, 0xf3, 0x12, 0xb5, 0x00, 0x3e, 0x00, 0x00, /* 60147 to 4789, 62 bytes */
		0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0,             /* VNI */
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, /* inner Ethernet */
	};
	const struct lb_encap encap = encap_of(LB_FORWARD_VXLAN, false);
	struct lb_encap_packet packet = {.tos = 0xb9, .inner_bytes = 32, .entropy = ENTROPY};
	const uint8_t inner[32] = {0};
	uint8_t *all = wrap(&encap, &packet, inner);

	(void)state;
	assert_memory_equal(all, want, sizeof(want));
	free(all);
}

static void
test_gre_over_ipv6_to_the_byte(void **state)
{
	static const uint8_t want[44] = {
		0x6b, 0x9d, 0xef, 0x12, 0x00, 0x24, 0x2f, 0x40, /* 4 + 32 bytes of GRE */
		0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, /* source */
		0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b, /* backend */
		0x00, 0x00, 0x86, 0xdd,                                        /* GRE: IPv6 */
	};
	const struct lb_encap encap = encap_of(LB_FORWARD_GRE, true);
	struct lb_encap_packet packet = {.is_v6 = true,
		.tos = 0xb9,
		.inner_bytes = 32,
		.entropy = ENTROPY};
	const uint8_t inner[32] = {0};
	uint8_t *all = wrap(&encap, &packet, inner);

	(void)state;
	assert_memory_equal(all, want, sizeof(want));
	free(all);
}

static void
test_ipip_protocol_is_the_inner_family(void **state)
{
	static const struct {
		bool is_outer_v6;
		bool is_inner_v6;
		size_t at;
		uint8_t want;
	} rows[] = {
		{false, false, 9, 4},
		{false, true, 9, 41},
		{true, false, 6, 4},
		{true, true, 6, 41},
	};
	const uint8_t inner[40] = {0};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_encap encap = encap_of(LB_FORWARD_IPIP, rows[i].is_outer_v6);
		struct lb_encap_packet packet = {.is_v6 = rows[i].is_inner_v6,
			.inner_bytes = sizeof(inner)};
		uint8_t *all = wrap(&encap, &packet, inner);

		EXPECT(all[rows[i].at] == rows[i].want, "row %zu: %u", i, all[rows[i].at]);
		free(all);
	}
}

static void
test_entropy_becomes_port_and_label(void **state)
{
	static const struct {
		uint32_t entropy;
		unsigned int sport;
		uint32_t label;
	} rows[] = {
		{0, 49152, 1}, /* a label of 0 would mean that there is none */
		{1, 49152, 1},
		{2, 49152, 2},
		{0x0003ffff, 49152, 0x3ffff},
		{0x00040000, 49153, 0x40000},
		{0x00100000, 49156, 1},
		{0x000fffff, 49155, 0xfffff},
		{0xffffffff, 65535, 0xfffff},
		{ENTROPY, 60147, 0xdef12},
	};
	const struct lb_encap encap = encap_of(LB_FORWARD_GUE, true);
	const uint8_t inner[20] = {0x45};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_encap_packet packet = {.inner_bytes = sizeof(inner),
			.entropy = rows[i].entropy};
		uint8_t *all = wrap(&encap, &packet, inner);
		const uint32_t label = (all[1] & 0x0fu) << 16 | get16(all + 2);

		EXPECT(get16(all + 40) == rows[i].sport, "%x: port %u", rows[i].entropy,
			get16(all + 40));
		EXPECT(label == rows[i].label, "%x: label %x", rows[i].entropy, label);
		free(all);
	}
}

static void
test_every_tos_is_copied(void **state)
{
	const struct lb_encap v4 = encap_of(LB_FORWARD_IPIP, false);
	const struct lb_encap v6 = encap_of(LB_FORWARD_IPIP, true);
	const uint8_t inner[20] = {0x45};

	(void)state;
	for (unsigned int tos = 0; tos < 256; tos++) {
		struct lb_encap_packet packet = {.tos = (uint8_t)tos,
			.inner_bytes = sizeof(inner),
			.entropy = UINT32_MAX};
		uint8_t *over_v4 = wrap(&v4, &packet, inner);
		uint8_t *over_v6 = wrap(&v6, &packet, inner);

		assert_int_equal(over_v4[1], tos);
		assert_int_equal(pb_csum(over_v4, 20), 0);
		assert_int_equal(get16(over_v6) >> 4, 0x600 | tos);
		assert_int_equal(get16(over_v6 + 2), 0xffff);
		free(over_v4);
		free(over_v6);
	}
}

/* The sum of a UDP datagram over IPv6 with its pseudo-header: 0 where its checksum is right. */
static uint16_t
verify_udp_v6(const uint8_t *ip, size_t n)
{
	uint8_t *all = malloc(40 + n);
	uint16_t csum;

	/* Addresses, length and protocol: RFC 8200, section 8.1. */
	memset(all, 0, 40);
	memcpy(all, ip + 8, 32);
	all[34] = (uint8_t)(n >> 8);
	all[35] = (uint8_t)n;
	all[39] = 17;
	memcpy(all + 40, ip + 40, n);
	csum = pb_csum(all, 40 + n);
	free(all);
	return csum;
}

static void
expect_right(const struct lb_encap *encap, const uint8_t *all, size_t n, const char *what)
{
	const size_t ip_bytes = encap->is_v6 ? 40 : 20;
	const bool is_udp = encap->mode == LB_FORWARD_GUE || encap->mode == LB_FORWARD_VXLAN;

	if (encap->is_v6)
		EXPECT(get16(all + 4) == n - 40, "%s: payload length", what);
	else
		EXPECT(get16(all + 2) == n && pb_csum(all, 20) == 0, "%s: IPv4 header", what);
	if (!is_udp)
		return;
	EXPECT(get16(all + ip_bytes + 4) == n - ip_bytes, "%s: UDP length", what);
	if (encap->is_v6)
		EXPECT(get16(all + 46) != 0 && verify_udp_v6(all, n - 40) == 0,
			"%s: UDP checksum", what);
	else
		EXPECT(get16(all + 26) == 0, "%s: a UDP checksum over IPv4", what);
}

static void
test_lengths_and_checksums_are_right_for_any_packet(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (unsigned int round = 0; round < 4000; round++) {
		const size_t row = 2 + xrand_below(&seed, LB_N_ELEMENTS(overheads) - 2);
		const struct lb_encap encap =
			encap_of(overheads[row].mode, overheads[row].is_v6);
		struct lb_encap_packet packet = {
			.is_v6 = xrand_below(&seed, 2) != 0,
			.tos = (uint8_t)xrand(&seed),
			.inner_bytes = (uint16_t)(20 + xrand_below(&seed, 1481)),
			.entropy = (uint32_t)xrand(&seed),
		};
		uint8_t inner[1500];
		uint8_t *all;

		for (size_t i = 0; i < packet.inner_bytes; i++)
			inner[i] = (uint8_t)xrand(&seed);
		all = wrap(&encap, &packet, inner);
		expect_right(&encap, all, (size_t)encap.n_bytes + packet.inner_bytes,
			overheads[row].name);
		EXPECT(memcmp(all + encap.n_bytes, inner, packet.inner_bytes) == 0,
			"%s: the inner packet was touched", overheads[row].name);
		free(all);
	}
}

/* TCP or UDP of so many bytes, with an IP header that is right; the rest may be anything. */
static void
make_usual(uint8_t *inner, bool is_v6, unsigned int n, uint64_t *seed)
{
	for (unsigned int i = 0; i < n; i++)
		inner[i] = (uint8_t)xrand(seed);
	if (is_v6) {
		inner[0] = 0x60;
		inner[4] = (uint8_t)((n - 40) >> 8);
		inner[5] = (uint8_t)(n - 40);
	} else {
		uint16_t csum;

		inner[0] = 0x45;
		inner[2] = (uint8_t)(n >> 8);
		inner[3] = (uint8_t)n;
		memset(inner + 10, 0, 2);
		csum = pb_csum(inner, 20);
		inner[10] = (uint8_t)(csum >> 8);
		inner[11] = (uint8_t)csum;
	}
}

/*
 * What a template has for usual packets, and no byte more than is read of it.
 *
 * @return to be freed.
 */
static uint8_t *
part_read(const struct lb_encap *encap)
{
	const bool is_short = !encap->is_v6 && encap->mode != LB_FORWARD_VXLAN;
	const size_t n = is_short ? LB_ENCAP_SHORT_BYTES : encap->n_bytes;
	uint8_t *bytes = malloc(n);

	memcpy(bytes, encap->bytes, n);
	return bytes;
}

/* As of any packet, though it is summed where it lies, and nothing beyond its end is read. */
static void
expect_usual_as_any(const struct lb_encap *encap, struct lb_encap_packet *packet,
	const uint8_t *inner, const char *what)
{
	const size_t n = (size_t)encap->n_bytes + packet->inner_bytes;
	uint8_t *want = wrap(encap, packet, inner);
	uint8_t *bytes = part_read(encap);
	uint8_t *all = malloc(n);

	memset(all, 0xaa, encap->n_bytes);
	memcpy(all + encap->n_bytes, inner, packet->inner_bytes);
	packet->inner_sum = ~packet->inner_sum; /* it is not read */
	lb_encap_write_usual((struct lb_encap_part){bytes, encap->sum},
		(enum lb_forward_mode)encap->mode, encap->is_v6, packet, all);
	EXPECT(memcmp(all, want, n) == 0, "%s, %s of %u bytes", what,
		packet->is_v6 ? "IPv6" : "IPv4", packet->inner_bytes);
	free(bytes);
	free(want);
	free(all);
}

static void
test_a_usual_packet_has_the_headers_of_any(void **state)
{
	uint64_t seed = 6;
	uint8_t inner[400];

	(void)state;
	for (size_t row = 2; row < LB_N_ELEMENTS(overheads); row++) {
		const struct lb_encap encap =
			encap_of(overheads[row].mode, overheads[row].is_v6);

		for (unsigned int i = 28; i <= 2 * sizeof(inner) - 47; i++) {
			const bool is_v6 = i > sizeof(inner);
			struct lb_encap_packet packet = {
				.is_v6 = is_v6,
				.tos = (uint8_t)xrand(&seed),
				.inner_bytes = (uint16_t)(is_v6 ? i - sizeof(inner) + 47 : i),
				.entropy = (uint32_t)xrand(&seed),
			};

			make_usual(inner, is_v6, packet.inner_bytes, &seed);
			expect_usual_as_any(&encap, &packet, inner, overheads[row].name);
		}
	}
}

static void
test_the_largest_packet_has_the_largest_lengths(void **state)
{
	uint8_t *inner = calloc(1, 65535);

	(void)state;
	for (size_t row = 2; row < LB_N_ELEMENTS(overheads); row++) {
		const struct lb_encap encap =
			encap_of(overheads[row].mode, overheads[row].is_v6);
		const unsigned int room = overheads[row].is_v6 ? 65535 + 40 : 65535;
		struct lb_encap_packet packet = {
			.inner_bytes = (uint16_t)(room - encap.n_bytes)};
		uint8_t *all;

		if (room - encap.n_bytes > UINT16_MAX)
			packet.inner_bytes = UINT16_MAX;
		all = wrap(&encap, &packet, inner);
		expect_right(&encap, all, (size_t)encap.n_bytes + packet.inner_bytes,
			overheads[row].name);
		free(all);
	}
	free(inner);
}

/* One in 65536 packets: the last word of the inner one is chosen so that the sum is 0. */
static void
test_a_computed_0_is_sent_as_ffff(void **state)
{
	static const enum lb_forward_mode modes[] = {LB_FORWARD_GUE, LB_FORWARD_VXLAN};
	uint8_t inner[50] = {0x60};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(modes); i++) {
		const struct lb_encap encap = encap_of(modes[i], true);
		struct lb_encap_packet packet = {.is_v6 = true, .inner_bytes = sizeof(inner)};
		const size_t n = encap.n_bytes - 40 + sizeof(inner);
		uint8_t *all;

		memset(inner + 48, 0, 2);
		all = wrap(&encap, &packet, inner);
		memcpy(inner + 48, all + 46, 2); /* what was missing to 0 */
		free(all);

		all = wrap(&encap, &packet, inner);
		assert_int_equal(get16(all + 46), 0xffff);
		assert_int_equal(verify_udp_v6(all, n), 0);
		free(all);
		expect_usual_as_any(&encap, &packet, inner, "a computed 0");
	}
}

static void
test_l2_writes_nothing(void **state)
{
	const struct lb_encap encap = encap_of(LB_FORWARD_L2, true);
	const struct lb_encap_packet packet = {.inner_bytes = 100};
	uint8_t out = 0xaa;

	(void)state;
	lb_encap_write(&encap, &packet, &out);
	assert_int_equal(out, 0xaa);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_mode_has_its_overhead),
		cmocka_unit_test(test_a_template_is_made_or_refused),
		cmocka_unit_test(test_vxlan_over_ipv4_to_the_byte),
		cmocka_unit_test(test_gre_over_ipv6_to_the_byte),
		cmocka_unit_test(test_ipip_protocol_is_the_inner_family),
		cmocka_unit_test(test_entropy_becomes_port_and_label),
		cmocka_unit_test(test_every_tos_is_copied),
		cmocka_unit_test(test_lengths_and_checksums_are_right_for_any_packet),
		cmocka_unit_test(test_a_usual_packet_has_the_headers_of_any),
		cmocka_unit_test(test_the_largest_packet_has_the_largest_lengths),
		cmocka_unit_test(test_a_computed_0_is_sent_as_ffff),
		cmocka_unit_test(test_l2_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
