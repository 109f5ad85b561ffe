/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Probes through the tunnel: the addresses that they are given on the way out and back, beside
 * packets that were made with them from the start; and whose each is. A pair of sockets stands
 * for the TUN device, and a list for the workers.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "expect.h"
#include "hc_translate.h"
#include "hc_tunnel.h"
#include "lb_compiler.h"
#include "packet_builder.h"

#define OWN_V4     "192.0.2.1"
#define SERVICE_V4 "198.51.100.10"
#define OWN_V6     "2001:db8:2::1"
#define SERVICE_V6 "2001:db8:51::10"
#define NEAR_V4    "240.0.0.1"
#define NEAR_V6    "fd73:6875:6e74::1"
/* What stands for backend 0xabcde, and for the one after it. */
#define ID        0xabcdeu
#define STANDS_V4 "240.26.188.222"
#define STANDS_V6 "fd73:6875:6e74:0:1:0:a:bcde"
#define NEXT_V4   "240.26.188.223"

#define N_PORTS (LB_PROBE_PORT_LAST - LB_PROBE_PORT_FIRST + 1)
/* A checksum field that no packet here has. */
#define WRONG 0x5a5a

static struct lb_addr
parse(const char *text)
{
	struct lb_addr address = {0};

	assert_int_equal(lb_addr_parse(text, &address), 0);
	return address;
}

/* Where a packet's L4 checksum is. */
static uint8_t *
csum_of(uint8_t *ip, bool is_v4, bool is_udp)
{
	return ip + (is_v4 ? (ip[0] & 15u) * 4u : 40u) + (is_udp ? 6 : 16);
}

static size_t
build(uint8_t out[static PB_FRAME_MAX], const char *from, const char *to, bool is_udp,
	int n_options, int sport)
{
	const bool is_v4 = strchr(from, ':') == NULL;
	const struct pb_layer v4[] = {IPV4(.src = from, .dst = to, .options = n_options),
		TCP(.sport = sport, .dport = sport), PAYLOAD(33), END};
	const struct pb_layer v4_udp[] = {IPV4(.src = from, .dst = to, .options = n_options),
		UDP(.sport = sport, .dport = sport), PAYLOAD(33), END};
	const struct pb_layer v6[] = {IPV6(.src = from, .dst = to),
		TCP(.sport = sport, .dport = sport), PAYLOAD(33), END};
	const struct pb_layer v6_udp[] = {IPV6(.src = from, .dst = to),
		UDP(.sport = sport, .dport = sport), PAYLOAD(33), END};

	if (is_v4)
		return pb_build(is_udp ? v4_udp : v4, out);
	return pb_build(is_udp ? v6_udp : v6, out);
}

static const struct {
	const char *what;
	const char *from[2]; /* before, after */
	const char *to[2];
	bool is_udp;
	int n_options;
} rows[] = {
	{"TCP over IPv4", {NEAR_V4, OWN_V4}, {STANDS_V4, SERVICE_V4}, false, 0},
	{"with options", {NEAR_V4, OWN_V4}, {STANDS_V4, SERVICE_V4}, false, 40},
	{"UDP over IPv4", {NEAR_V4, OWN_V4}, {STANDS_V4, SERVICE_V4}, true, 0},
	{"TCP over IPv6", {NEAR_V6, OWN_V6}, {STANDS_V6, SERVICE_V6}, false, 0},
	{"UDP over IPv6", {NEAR_V6, OWN_V6}, {STANDS_V6, SERVICE_V6}, true, 0},
	{"the same addresses", {OWN_V4, OWN_V4}, {SERVICE_V4, SERVICE_V4}, false, 0},
};

static void
test_other_addresses_make_the_packet_that_has_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		uint8_t before[PB_FRAME_MAX];
		uint8_t after[PB_FRAME_MAX];
		const bool is_udp = rows[i].is_udp;
		const size_t n = build(before, rows[i].from[0], rows[i].to[0], is_udp,
			rows[i].n_options, 20000);
		const size_t n_after = build(after, rows[i].from[1], rows[i].to[1], is_udp,
			rows[i].n_options, 20000);
		const struct lb_addr from = parse(rows[i].from[1]);
		const struct lb_addr to = parse(rows[i].to[1]);
		struct hc_ends ends;

		assert_int_equal(n, n_after);
		EXPECT(hc_translate_read(before, n, &ends), "%s: not read", rows[i].what);
		EXPECT(ends.source_port == 20000 && ends.destination_port == 20000,
			"%s: its ports", rows[i].what);
		hc_translate_write(before, &from, &to);
		EXPECT(memcmp(before, after, n) == 0, "%s: it is another packet", rows[i].what);
		EXPECT(hc_translate_read(before, n, &ends) &&
				lb_addr_equal(&ends.source, &from) &&
				lb_addr_equal(&ends.destination, &to),
			"%s: its addresses", rows[i].what);
	}
}

static void
test_a_checksum_that_was_left_to_a_device_is_finished(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		uint8_t whole[PB_FRAME_MAX];
		uint8_t left[PB_FRAME_MAX];
		const bool is_v4 = strchr(rows[i].to[1], ':') == NULL;
		const size_t n = build(whole, rows[i].from[1], rows[i].to[1], rows[i].is_udp,
			rows[i].n_options, 20000);
		const size_t at = (size_t)(csum_of(whole, is_v4, rows[i].is_udp) - whole);
		const size_t n_addresses = is_v4 ? 8 : 32;
		const size_t l4_bytes = n - at + (rows[i].is_udp ? 6 : 16);
		uint8_t pseudo[36] = {0};
		uint16_t partial;

		memcpy(pseudo, whole + (is_v4 ? 12 : 8), n_addresses);
		pseudo[n_addresses + 1] = rows[i].is_udp ? 17 : 6;
		pseudo[n_addresses + 2] = (uint8_t)(l4_bytes >> 8);
		pseudo[n_addresses + 3] = (uint8_t)l4_bytes;
		partial = (uint16_t)~pb_csum(pseudo, n_addresses + 4);
		memcpy(left, whole, n);
		left[at] = (uint8_t)(partial >> 8);
		left[at + 1] = (uint8_t)partial;
		hc_translate_finish(left, n);
		EXPECT(memcmp(left, whole, n) == 0, "%s: not finished", rows[i].what);
		hc_translate_finish(left, n);
		EXPECT(memcmp(left, whole, n) == 0, "%s: finished twice", rows[i].what);
		left[at] = WRONG >> 8;
		left[at + 1] = WRONG & 0xff;
		hc_translate_finish(left, n);
		EXPECT(left[at] == WRONG >> 8, "%s: what is wrong was made right",
			rows[i].what);
	}
}

static void
test_no_checksum_stays_none(void **state)
{
	const struct lb_addr own = parse(OWN_V4);
	const struct lb_addr service = parse(SERVICE_V4);
	uint8_t ip[PB_FRAME_MAX];
	uint8_t *csum;

	(void)state;
	(void)build(ip, NEAR_V4, STANDS_V4, true, 0, 20000);
	csum = csum_of(ip, true, true);
	memset(csum, 0, 2);
	hc_translate_write(ip, &own, &service);
	EXPECT(csum[0] == 0 && csum[1] == 0, "a checksum of UDP over IPv4");
}

static void
test_other_packets_are_not_read(void **state)
{
	const struct pb_layer cut[] = {IPV4(.fragment = 0x2000), TCP(0), END};
	const struct pb_layer later[] = {IPV4(.fragment = 100), TCP(0), END};
	const struct pb_layer icmp[] = {IPV4(0), ICMP(.type = 8), END};
	const struct pb_layer v6_more[] = {IPV6(0), EXTENSION(.type = 60, .n_bytes = 8), TCP(0),
		END};
	const struct pb_layer whole[] = {IPV4(0), TCP(0), END};
	const struct pb_layer v6_whole[] = {IPV6(0), TCP(0), END};
	const struct pb_layer *const all[] = {cut, later, icmp, v6_more};
	uint8_t ip[PB_FRAME_MAX];
	struct hc_ends ends;
	size_t n;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(all); i++) {
		n = pb_build(all[i], ip);
		EXPECT(!hc_translate_read(ip, n, &ends), "packet %zu was read", i);
	}
	for (unsigned int is_v6 = 0; is_v6 < 2; is_v6++) {
		const size_t n_whole = pb_build(is_v6 != 0 ? v6_whole : whole, ip);

		for (n = 0; n < n_whole; n++)
			EXPECT(!hc_translate_read(ip, n, &ends), "of %zu bytes", n);
		EXPECT(hc_translate_read(ip, n, &ends), "the whole");
	}
	ip[0] = 0x53;
	EXPECT(!hc_translate_read(ip, 60, &ends), "version 5");
}

/* The tunnel. */

/* One packet each way. */
static struct {
	uint8_t sent[PB_FRAME_MAX];
	size_t n_sent;
	uint32_t to;
	uint8_t answer[PB_FRAME_MAX];
	size_t n_answer;
	int n_lent;
	uint16_t lent;
} workers;

static int
send_one(void *context, uint32_t backend, const uint8_t *ip, size_t n_bytes)
{
	(void)context;
	memcpy(workers.sent, ip, n_bytes);
	workers.n_sent = n_bytes;
	workers.to = backend;
	return 0;
}

static size_t
take_one(void *context, uint8_t ip[static HC_TUNNEL_BYTES_MAX])
{
	const size_t n = workers.n_answer;

	(void)context;
	memcpy(ip, workers.answer, n);
	workers.n_answer = 0;
	return n;
}

static void
lend_one(void *context, uint16_t port, bool is_lent)
{
	(void)context;
	workers.n_lent += is_lent ? 1 : -1;
	workers.lent = port;
}

static struct hc_tunnel *
make_tunnel(int fds[2])
{
	struct hc_tunnel_conf conf = {.send = send_one, .take = take_one, .lend = lend_one};
	struct hc_tunnel *tunnel = NULL;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
	conf.fd = fds[0];
	assert_int_equal(hc_tunnel_create(&conf, &tunnel), 0);
	memset(&workers, 0, sizeof(workers));
	return tunnel;
}

static void
end_tunnel(struct hc_tunnel *tunnel, const int fds[2])
{
	hc_tunnel_destroy(tunnel);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static struct hc_target
make_target(bool is_v4)
{
	return (struct hc_target){.address = parse(is_v4 ? SERVICE_V4 : SERVICE_V6),
		.source = parse(is_v4 ? OWN_V4 : OWN_V6),
		.backend = ID};
}

/* The kernel sends a packet to the device. */
static void
kernel_sends(struct hc_tunnel *tunnel, int fd, const char *to, int port)
{
	uint8_t ip[PB_FRAME_MAX];
	const bool is_v4 = strchr(to, ':') == NULL;
	const size_t n = build(ip, is_v4 ? NEAR_V4 : NEAR_V6, to, false, 0, port);

	workers.n_sent = 0;
	assert_int_equal(write(fd, ip, n), (ssize_t)n);
	hc_tunnel_pump(tunnel);
}

/* Whether the kernel got an answer of the workers. */
static bool
kernel_gets(struct hc_tunnel *tunnel, int fd, const char *from, const char *to, int port)
{
	uint8_t want[PB_FRAME_MAX];
	uint8_t ip[PB_FRAME_MAX];
	const bool is_v4 = strchr(to, ':') == NULL;
	const size_t n_want = build(want, is_v4 ? STANDS_V4 : STANDS_V6,
		is_v4 ? NEAR_V4 : NEAR_V6, false, 0, port);

	workers.n_answer = build(workers.answer, from, to, false, 0, port);
	hc_tunnel_pump(tunnel);
	return read(fd, ip, sizeof(ip)) == (ssize_t)n_want && memcmp(ip, want, n_want) == 0;
}

static void
test_a_probe_goes_out_and_its_answer_comes_back(void **state)
{
	(void)state;
	for (unsigned int is_v4 = 0; is_v4 < 2; is_v4++) {
		const struct hc_target target = make_target(is_v4 != 0);
		const char *own = is_v4 != 0 ? OWN_V4 : OWN_V6;
		const char *service = is_v4 != 0 ? SERVICE_V4 : SERVICE_V6;
		const struct lb_addr stands = hc_tunnel_address(ID, is_v4 != 0);
		const struct lb_addr want = parse(is_v4 != 0 ? STANDS_V4 : STANDS_V6);
		uint8_t sent[PB_FRAME_MAX];
		int fds[2];
		struct hc_tunnel *tunnel = make_tunnel(fds);
		const uint16_t port = hc_tunnel_borrow(tunnel, &target);
		const size_t n = build(sent, own, service, false, 0, port);

		EXPECT(lb_addr_equal(&stands, &want), "what stands for a backend");
		EXPECT(port == LB_PROBE_PORT_FIRST, "the first port, not %u", port);
		EXPECT(workers.n_lent == 1 && workers.lent == port, "the workers know of it");
		kernel_sends(tunnel, fds[1], is_v4 != 0 ? STANDS_V4 : STANDS_V6, port);
		EXPECT(workers.n_sent == n && memcmp(workers.sent, sent, n) == 0, "as it left");
		EXPECT(workers.to == ID, "to whom: %x", workers.to);
		EXPECT(kernel_gets(tunnel, fds[1], service, own, port), "its answer");

		/* The end of its connection, after its port was given back. */
		hc_tunnel_return(tunnel, port);
		EXPECT(workers.n_lent == 0 && workers.lent == port, "and of its return");
		kernel_sends(tunnel, fds[1], is_v4 != 0 ? STANDS_V4 : STANDS_V6, port);
		EXPECT(workers.n_sent == n, "its end");
		EXPECT(!kernel_gets(tunnel, fds[1], service, own, port), "what is late");
		end_tunnel(tunnel, fds);
	}
}

static void
test_what_is_no_probes_goes_nowhere(void **state)
{
	const struct hc_target target = make_target(true);
	int fds[2];
	struct hc_tunnel *tunnel = make_tunnel(fds);
	const uint16_t port = hc_tunnel_borrow(tunnel, &target);

	(void)state;
	kernel_sends(tunnel, fds[1], NEXT_V4, port);
	EXPECT(workers.n_sent == 0, "to another backend");
	kernel_sends(tunnel, fds[1], STANDS_V4, port + 1);
	EXPECT(workers.n_sent == 0, "by a port that nobody has had");
	kernel_sends(tunnel, fds[1], STANDS_V4, LB_PROBE_PORT_FIRST - 1);
	EXPECT(workers.n_sent == 0, "by a port below");
	kernel_sends(tunnel, fds[1], STANDS_V4, LB_PROBE_PORT_LAST + 1);
	EXPECT(workers.n_sent == 0, "by a port above");
	EXPECT(!kernel_gets(tunnel, fds[1], "198.51.100.11", OWN_V4, port), "another service");
	EXPECT(!kernel_gets(tunnel, fds[1], SERVICE_V4, "192.0.2.2", port), "another's own");
	EXPECT(!kernel_gets(tunnel, fds[1], SERVICE_V4, OWN_V4, port + 1), "another port");
	EXPECT(kernel_gets(tunnel, fds[1], SERVICE_V4, OWN_V4, port), "and yet");
	end_tunnel(tunnel, fds);
}

static void
test_ports_rest_as_long_as_can_be(void **state)
{
	const struct hc_target target = make_target(true);
	int fds[2];
	struct hc_tunnel *tunnel = make_tunnel(fds);

	(void)state;
	EXPECT(!hc_tunnel_is_busy(tunnel), "nobody has one");
	for (unsigned int i = 0; i < N_PORTS; i++)
		EXPECT(hc_tunnel_borrow(tunnel, &target) == LB_PROBE_PORT_FIRST + i,
			"port %u in its turn", i);
	EXPECT(hc_tunnel_borrow(tunnel, &target) == 0, "there are no more");
	EXPECT(hc_tunnel_is_busy(tunnel), "all are in use");
	hc_tunnel_return(tunnel, 30000);
	hc_tunnel_return(tunnel, 20000);
	EXPECT(hc_tunnel_borrow(tunnel, &target) == 30000, "who came first");
	EXPECT(hc_tunnel_borrow(tunnel, &target) == 20000, "goes first");
	EXPECT(hc_tunnel_borrow(tunnel, &target) == 0, "and no others");
	end_tunnel(tunnel, fds);
}

/* As a device that is down, or gone. */
static void
test_an_answer_that_the_device_refuses_is_lost(void **state)
{
	const struct hc_target target = make_target(true);
	int fds[2];
	struct hc_tunnel *tunnel = make_tunnel(fds);
	const uint16_t port = hc_tunnel_borrow(tunnel, &target);
	const uint16_t other = hc_tunnel_borrow(tunnel, &target);

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	EXPECT(kernel_gets(tunnel, fds[1], SERVICE_V4, OWN_V4, port), "an answer");
	EXPECT(!hc_tunnel_has_lost(tunnel, port), "that was taken");
	assert_int_equal(shutdown(fds[1], SHUT_RD), 0);
	EXPECT(!kernel_gets(tunnel, fds[1], SERVICE_V4, OWN_V4, port), "one more");
	EXPECT(hc_tunnel_has_lost(tunnel, port), "that was not");
	EXPECT(!hc_tunnel_has_lost(tunnel, other), "and was no other's");
	hc_tunnel_return(tunnel, port);
	while (hc_tunnel_borrow(tunnel, &target) != port)
		;
	EXPECT(!hc_tunnel_has_lost(tunnel, port), "whoever has it next has lost nothing");
	end_tunnel(tunnel, fds);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_addresses_make_the_packet_that_has_them),
		cmocka_unit_test(test_a_checksum_that_was_left_to_a_device_is_finished),
		cmocka_unit_test(test_no_checksum_stays_none),
		cmocka_unit_test(test_other_packets_are_not_read),
		cmocka_unit_test(test_a_probe_goes_out_and_its_answer_comes_back),
		cmocka_unit_test(test_what_is_no_probes_goes_nowhere),
		cmocka_unit_test(test_ports_rest_as_long_as_can_be),
		cmocka_unit_test(test_an_answer_that_the_device_refuses_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
