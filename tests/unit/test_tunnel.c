/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_tunnel.h"

#include <netinet/in.h>

#include "expect.h"
#include "lb_compiler.h"

static void
test_a_port_says_which_tunnel_comes_to_it(void **state)
{
	(void)state;
	for (uint32_t port = 0; port <= UINT16_MAX; port++) {
		const uint8_t tunnel = lb_tunnel_of_port((uint16_t)port);
		uint8_t want = 0;

		if (port == 4789)
			want = LB_TUNNEL_VXLAN;
		else if (port == 6080)
			want = LB_TUNNEL_GUE;
		else if (port == 6081)
			want = LB_TUNNEL_GENEVE;
		EXPECT(tunnel == want, "port %u: %u", port, tunnel);
	}
}

static void
test_a_way_to_forward_says_which_tunnel_it_makes(void **state)
{
	(void)state;
	for (unsigned int mode = 0; mode < LB_N_FORWARD_MODES; mode++) {
		const uint8_t tunnel = lb_tunnel_of_mode((enum lb_forward_mode)mode);
		uint8_t want = 0;

		if (mode == LB_FORWARD_GUE)
			want = LB_TUNNEL_GUE;
		else if (mode == LB_FORWARD_VXLAN)
			want = LB_TUNNEL_VXLAN;
		EXPECT(tunnel == want, "mode %u: %u", mode, tunnel);
	}
}

static void
test_what_a_service_refuses(void **state)
{
	enum { GUE = LB_TUNNEL_GUE, VXLAN = LB_TUNNEL_VXLAN, GENEVE = LB_TUNNEL_GENEVE };
	static const struct {
		const char *what;
		uint8_t proto;
		uint16_t port;
		uint8_t carry, tunnels;
		enum lb_forward_mode mode;
		uint8_t want;
	} rows[] = {
		{"any port: all by UDP", IPPROTO_UDP, 0, 0, 0, LB_FORWARD_IPIP,
			GUE | VXLAN | GENEVE},
		{"any protocol and port, too", 0, 0, 0, 0, LB_FORWARD_L2, GUE | VXLAN | GENEVE},
		{"any port: but for those it carries", 0, 0, GUE, 0, LB_FORWARD_GUE,
			VXLAN | GENEVE},
		{"any port: and carries all", 0, 0, GUE | VXLAN | GENEVE, 0, LB_FORWARD_GUE, 0},
		{"what it carries by protocol is none by UDP", 0, 0,
			LB_TUNNEL_IPIP | LB_TUNNEL_IPV6 | LB_TUNNEL_GRE, 0, LB_FORWARD_IPIP,
			GUE | VXLAN | GENEVE},
		{"a port without tunnels", IPPROTO_UDP, 53, 0, 0, LB_FORWARD_VXLAN, 0},
		{"a port of tunnels, not by UDP again", IPPROTO_UDP, 4789, 0, VXLAN,
			LB_FORWARD_IPIP, 0},
		{"nor by GRE", IPPROTO_UDP, 4789, 0, VXLAN, LB_FORWARD_GRE, 0},
		{"a port of tunnels, by UDP again", IPPROTO_UDP, 4789, 0, VXLAN,
			LB_FORWARD_VXLAN, VXLAN},
		{"by another tunnel, too", IPPROTO_UDP, 6081, 0, GENEVE, LB_FORWARD_GUE,
			GENEVE},
		{"which it carries", IPPROTO_UDP, 4789, VXLAN, VXLAN, LB_FORWARD_VXLAN, 0},
		{"a port of two, of which it carries one", 0, 9, VXLAN, GUE | VXLAN,
			LB_FORWARD_VXLAN, GUE},
		{"TCP has none", IPPROTO_TCP, 0, 0, 0, LB_FORWARD_VXLAN, 0},
		{"on no port", IPPROTO_TCP, 4789, 0, VXLAN, LB_FORWARD_VXLAN, 0},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_service_match match = {.proto = rows[i].proto,
			.port = rows[i].port};
		const uint8_t refused =
			lb_tunnel_refused(&match, rows[i].carry, rows[i].tunnels, rows[i].mode);

		EXPECT(refused == rows[i].want, "%s: %u, want %u", rows[i].what, refused,
			rows[i].want);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_port_says_which_tunnel_comes_to_it),
		cmocka_unit_test(test_a_way_to_forward_says_which_tunnel_it_makes),
		cmocka_unit_test(test_what_a_service_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
