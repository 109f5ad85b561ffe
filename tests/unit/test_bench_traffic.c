/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_traffic.h"
#include "lb_csum.h"
#include "lb_encap.h"
#include "lb_packet.h"
#include "xrand.h"

#define N_SERVICES 3u
#define BACKEND    7u

static void
test_an_order_has_each_number_once_a_turn(void **state)
{
	static const uint64_t rows[] = {1, 2, 3, 7, 512, 513, 65535, 65537, 1000003};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint64_t n = rows[i];
		uint8_t *seen = calloc(n, 1);
		struct bench_order order;

		assert_non_null(seen);
		bench_order_init(&order, n);
		for (uint8_t turn = 1; turn <= 3; turn++) {
			for (uint64_t k = 0; k < n; k++) {
				const uint64_t next = bench_order_next(&order);

				EXPECT(next < n && seen[next] == turn - 1,
					"%lu numbers, turn %u: %lu at place %lu",
					(unsigned long)n, turn, (unsigned long)next,
					(unsigned long)k);
				seen[next] = turn;
			}
		}
		free(seen);
	}
}

/* In a random order neighbours are a third of the numbers apart, on average. */
static void
test_near_numbers_do_not_follow_near_ones(void **state)
{
	const uint64_t n = 1000000;
	struct bench_order order;
	uint64_t last = 0;
	uint64_t apart = 0;
	unsigned int n_near = 0;

	(void)state;
	bench_order_init(&order, n);
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t next = bench_order_next(&order);
		const uint64_t d = next > last ? next - last : last - next;

		apart += d;
		n_near += d < 64;
		last = next;
	}
	EXPECT(apart / n > n * 3 / 10 && apart / n < n * 37 / 100, "%lu apart on average",
		(unsigned long)(apart / n));
	EXPECT(n_near < 1000, "%u steps of a million are near", n_near);
}

static bool
is_key_of(const struct lb_flow_key *key, unsigned int family, uint32_t service)
{
	const struct lb_addr addr = bench_service_addr(family, service);

	return lb_addr_equal(&key->dst, &addr) &&
	       ntohs(key->dport_be) == bench_service_port(service) && key->proto == IPPROTO_TCP;
}

/* A packet of a flow, parsed by who will; on the heap, so that not a byte more is written. */
static struct lb_packet
parse_packet(const struct bench_traffic *traffic, uint64_t flow)
{
	uint8_t *frame = malloc(traffic->frame_bytes);
	struct lb_packet packet = {.ip_bytes = 0};
	enum lb_verdict verdict;

	assert_non_null(frame);
	bench_traffic_write(traffic, flow, (uint32_t)flow, frame);
	verdict = lb_packet_parse(frame, traffic->frame_bytes, traffic->frame_bytes, &packet);
	EXPECT(verdict == LB_FORWARD, "flow %lu: verdict %u", (unsigned long)flow, verdict);
	free(frame);
	return packet;
}

static void
test_packets_are_what_they_say(void **state)
{
	static const struct {
		const char *name;
		unsigned int family;
		uint32_t packet_bytes;
		bool is_syn;
	} rows[] = {
		{"the smallest of IPv4", 4, 64, false},
		{"the smallest of IPv6", 6, 78, false},
		{"an odd size", 4, 129, false},
		{"the largest of IPv4, a SYN", 4, 1518, true},
		{"the largest of IPv6, a SYN", 6, 1518, true},
	};
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct bench_traffic traffic;

		bench_traffic_init(&traffic, rows[i].family, N_SERVICES, rows[i].packet_bytes,
			rows[i].is_syn);
		for (unsigned int k = 0; k < 1000; k++) {
			const uint64_t flow = xrand(&seed) % BENCH_FLOWS_MAX;
			const struct lb_packet packet = parse_packet(&traffic, flow);
			const uint32_t service = bench_traffic_service(&traffic, flow);

			EXPECT(service < N_SERVICES &&
					is_key_of(&packet.key, rows[i].family, service),
				"%s: it is for another service", rows[i].name);
			EXPECT(packet.ip_bytes == rows[i].packet_bytes - 18,
				"%s: %u bytes of IP", rows[i].name, packet.ip_bytes);
			EXPECT(packet.tcp_flags == (rows[i].is_syn ? LB_TCP_SYN : LB_TCP_ACK),
				"%s: flags %02x", rows[i].name, packet.tcp_flags);
			EXPECT(packet.tcp_seq == (uint32_t)flow, "%s: sequence number",
				rows[i].name);
		}
	}
	assert_int_equal(bench_packet_bytes_min(4), 64);
	assert_int_equal(bench_packet_bytes_min(6), 78);
}

static void
test_flows_have_keys_of_their_own(void **state)
{
	const unsigned int families[] = {4, 6};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(families); i++) {
		struct bench_traffic traffic;
		struct lb_packet first;

		bench_traffic_init(&traffic, families[i], 1,
			bench_packet_bytes_min(families[i]), false);
		/* The last of its address. */
		first = parse_packet(&traffic, 255);
		for (uint64_t flow = 0; flow < 70000; flow++) {
			const struct lb_packet packet = parse_packet(&traffic, flow);

			EXPECT((memcmp(&packet.key, &first.key, sizeof(first.key)) == 0) ==
					(flow == 255),
				"IPv%u: flow %lu and 255", families[i], (unsigned long)flow);
		}
	}
}

/* A packet as it came, and as another program than the checker says it leaves. */
struct passage {
	uint8_t received[BENCH_FRAME_BYTES_MAX];
	uint8_t *sent; /* on the heap, at its exact length */
	struct bench_sample sample;
};

static enum lb_forward_mode
mode_of(enum cfg_forward forward)
{
	static const enum lb_forward_mode modes[] = {
		[CFG_FORWARD_L2] = LB_FORWARD_L2,
		[CFG_FORWARD_IPIP] = LB_FORWARD_IPIP,
		[CFG_FORWARD_GRE] = LB_FORWARD_GRE,
		[CFG_FORWARD_GUE] = LB_FORWARD_GUE,
		[CFG_FORWARD_VXLAN] = LB_FORWARD_VXLAN,
	};

	return modes[forward];
}

static void
make_encap(unsigned int family, enum cfg_forward forward, struct lb_encap *out)
{
	const struct lb_encap_conf conf = {
		.mode = mode_of(forward),
		.src = bench_own_addr(family),
		.dst = bench_backend_addr(family, BACKEND),
		.udp_port = forward == CFG_FORWARD_GUE ? LB_GUE_PORT : LB_VXLAN_PORT,
	};

	assert_int_equal(lb_encap_init(out, &conf), 0);
}

static void
open_passage(struct passage *p, unsigned int family, enum cfg_forward forward)
{
	const uint32_t n = bench_packet_bytes_min(family) - BENCH_FCS_BYTES;
	struct bench_traffic traffic;
	struct lb_encap encap;
	struct lb_encap_packet inner = {
		.is_v6 = family == 6,
		.inner_bytes = (uint16_t)(n - BENCH_ETHER_BYTES),
		.entropy = 0x12345678,
	};

	bench_traffic_init(&traffic, family, N_SERVICES, n + BENCH_FCS_BYTES, false);
	bench_traffic_write(&traffic, 12345, 1, p->received);
	make_encap(family, forward, &encap);
	p->sent = malloc(n + encap.n_bytes);
	assert_non_null(p->sent);
	memcpy(p->sent, bench_next_hop.bytes, 6);
	memcpy(p->sent + 6, bench_port_mac.bytes, 6);
	memcpy(p->sent + 12, p->received + 12, 2);
	memcpy(p->sent + BENCH_ETHER_BYTES + encap.n_bytes, p->received + BENCH_ETHER_BYTES,
		n - BENCH_ETHER_BYTES);
	inner.inner_sum =
		lb_csum_add(0, p->received + BENCH_ETHER_BYTES, n - BENCH_ETHER_BYTES);
	lb_encap_write(&encap, &inner, p->sent + BENCH_ETHER_BYTES);
	p->sample = (struct bench_sample){
		.family = family,
		.forward = forward,
		.own = bench_own_addr(family),
		.backend = bench_backend_addr(family, BACKEND),
		.next_hop = bench_next_hop,
		.port = bench_port_mac,
		.received = p->received,
		.received_bytes = n,
		.sent = p->sent,
		.sent_bytes = n + encap.n_bytes,
	};
}

/* What is the flow's to choose, or no header's business: a change there is not wrong. */
static bool
is_free(const struct bench_sample *s, size_t offset)
{
	const size_t ip = BENCH_ETHER_BYTES;
	const size_t udp = ip + (s->family == 4 ? 20 : 40);

	if (s->forward == CFG_FORWARD_L2)
		return false;
	if (s->family == 6)
		return offset < ip + 4 && offset >= ip;
	if (s->forward == CFG_FORWARD_VXLAN && offset >= udp + 16 && offset < udp + 28)
		return true;
	return (s->forward == CFG_FORWARD_GUE || s->forward == CFG_FORWARD_VXLAN) &&
	       offset >= udp && offset < udp + 2;
}

static void
test_the_check_sees_every_byte_that_is_wrong(void **state)
{
	(void)state;
	for (int row = 0; row < 2 * CFG_N_FORWARDS; row++) {
		const unsigned int family = row % 2 == 0 ? 4 : 6;
		const enum cfg_forward forward = (enum cfg_forward)(row / 2);
		struct passage p;
		const char *wrong;

		open_passage(&p, family, forward);
		wrong = bench_check(&p.sample);
		EXPECT(wrong == NULL, "%s, IPv%u: %s is right", cfg_forward_words[forward],
			family, wrong);
		for (size_t i = 0; i < p.sample.sent_bytes; i++) {
			if (is_free(&p.sample, i))
				continue;
			p.sent[i] ^= 1;
			EXPECT(bench_check(&p.sample) != NULL,
				"%s, IPv%u: byte %zu is wrong, and nobody says so",
				cfg_forward_words[forward], family, i);
			p.sent[i] ^= 1;
		}
		p.sample.sent_bytes--;
		EXPECT(bench_check(&p.sample) != NULL, "%s, IPv%u: a byte is missing",
			cfg_forward_words[forward], family);
		free(p.sent);
	}
}

static void
test_the_check_sees_another_backend(void **state)
{
	struct passage p;

	(void)state;
	for (unsigned int family = 4; family <= 6; family += 2) {
		open_passage(&p, family, CFG_FORWARD_GUE);
		p.sample.backend = bench_backend_addr(family, BACKEND + 1);
		EXPECT(bench_check(&p.sample) != NULL, "IPv%u: another backend's", family);
		free(p.sent);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_order_has_each_number_once_a_turn),
		cmocka_unit_test(test_near_numbers_do_not_follow_near_ones),
		cmocka_unit_test(test_packets_are_what_they_say),
		cmocka_unit_test(test_flows_have_keys_of_their_own),
		cmocka_unit_test(test_the_check_sees_every_byte_that_is_wrong),
		cmocka_unit_test(test_the_check_sees_another_backend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
