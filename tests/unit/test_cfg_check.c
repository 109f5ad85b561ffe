/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cfg_check.h"
#include "cfg_reader.h"
#include "cfg_yaml.h"

#define HEAD "services:\n- name: w\n  address: 192.0.2.1\n  protocol: tcp\n  port: 1\n"

/* What single bad values do not show; errors themselves are in test_cfg_yaml.c. */
static const struct {
	const char *what;
	const char *text;
	const char *messages;
} good_files[] = {
	{"weights that are all 0",
		HEAD "  backends: [{name: a, address: 10.0.0.1, weight: 0}]\n",
		"f:2:3: warning: all backends have weight 0, so the service has none to send "
		"to; give one a weight from 1 to 65535\n"},
	{"a share under one slot",
		HEAD "  table: {size: 7}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 60}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 9}\n",
		"f:9:5: warning: the weight 9 of 69 is a share of 0.9 of 7 slots (1 such "
		"backend), and it has one nonetheless, which is more than its share; expected "
		"size: 11, or a larger weight\n"},
	{"a share of less than ten slots of stable",
		HEAD "  table: {algorithm: stable}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 65528}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 9}\n"
		     "  - {name: c, address: 10.0.0.3, weight: 3}\n",
		"f:9:5: warning: the weight 9 of 65540 is a share of 8.9 of 65537 slots (2 "
		"such backends), and stable may leave one of less than 10 without any; "
		"expected size: 218479, or a larger weight, or algorithm: maglev\n"},
	{"a share of ten slots of stable",
		HEAD "  table: {algorithm: stable}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 65527}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 10}\n",
		""},
	{"stable without overload misses by less than one slot",
		HEAD "  table: {algorithm: stable, overload: 0%, size: 7}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 60}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 10}\n",
		""},
	{"a share under one slot of stable without overload",
		HEAD "  table: {algorithm: stable, overload: 0%, size: 7}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 60}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 9}\n",
		"f:9:5: warning: the weight 9 of 69 is a share of 0.9 of 7 slots (1 such "
		"backend), and it may have none; expected size: 11, or a larger weight\n"},
	{"a ring's points that are whole",
		HEAD "  table: {algorithm: ring}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 100}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 2}\n"
		     "  - {name: c, address: 10.0.0.3, weight: 1}\n",
		"f:10:5: warning: the weight 1 of 103 is 2 of 165 points on the ring, as they "
		"are whole, and so more than a tenth off its share (1 such backend); expected "
		"larger weights in the same proportions; multiples of 5 are exact\n"},
	{"a ring's points in proportion",
		HEAD "  table: {algorithm: ring}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 500}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 10}\n"
		     "  - {name: c, address: 10.0.0.3, weight: 5}\n",
		""},
	{"a ring's points of weight 1 alone",
		HEAD "  table: {algorithm: ring}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 1}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 1}\n"
		     "  - {name: c, address: 10.0.0.3, weight: 0}\n",
		""},
	{"zones that are missing among others",
		HEAD "  backends:\n"
		     "  - {name: a, address: 10.0.0.1, zone: r1}\n"
		     "  - {name: b, address: 10.0.0.2}\n"
		     "  - {name: c, address: 10.0.0.3}\n",
		"f:8:5: warning: backend 'b' has no zone, and others of the service have (2 "
		"such backends); each counts as a zone of its own; expected a zone for all of "
		"them or for none\n"},
	{"one zone for all",
		HEAD "  backends:\n"
		     "  - {name: a, address: 10.0.0.1, zone: r1}\n"
		     "  - {name: b, address: 10.0.0.2, zone: r1}\n",
		""},
	{"the least weight beside the largest",
		HEAD "  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 65535}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 1}\n"
		     "  - {name: c, address: 10.0.0.3, weight: 65535}\n",
		"f:8:5: warning: the weight 1 of 131071 is a share of 0.5 of 65537 slots (1 "
		"such backend), and it has one nonetheless, which is more than its share; "
		"expected size: 131071, or a larger weight\n"},
	{"a share of just one slot",
		HEAD "  table: {size: 7}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1, weight: 60}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 10}\n",
		""},
	{"weight 0 is no small share",
		HEAD "  backends:\n  - {name: a, address: 10.0.0.1}\n"
		     "  - {name: b, address: 10.0.0.2, weight: 0}\n",
		""},
	{"a default route announced in a table of its own",
		"announce: {interface: v, table: 100}\nservices:\n"
		"- {name: a, address: 0.0.0.0/0, protocol: tcp, port: 1}\n",
		""},
	{"the longest prefixes that hold half of all are announced",
		"announce: {interface: v, table: main, withdraw_before_stop: 0s}\nservices:\n"
		"- {name: a, address: 128.0.0.0/1, protocol: tcp, port: 1}\n"
		"- {name: b, address: '8000::/1', protocol: tcp, port: 1}\n",
		""},
	{"nothing announced, and a default route",
		"announce: {interface: off}\nservices:\n"
		"- {name: a, address: 0.0.0.0/0, protocol: tcp, port: 1}\n",
		""},
	{"an interface of a port's name that has no twin",
		"dataplane: {ports: [{name: v, device: 'net_af_packet,iface=eth0'}]}\n"
		"announce: {interface: v}\n",
		""},
	{"announced without an interface", "announce: {metric: 7}\n",
		"f:1:11: warning: without 'interface' nothing is announced; name one, such as "
		"shunt-vips\n"},
	{"no backends", HEAD "  backends: []\n", ""},
	{"as many backends as slots",
		HEAD "  table: {size: 7}\n  backends:\n"
		     "  - {name: a, address: 10.0.0.1}\n  - {name: b, address: 10.0.0.1}\n"
		     "  - {name: c, address: 10.0.0.1}\n  - {name: d, address: 10.0.0.1}\n"
		     "  - {name: e, address: 10.0.0.1}\n  - {name: f, address: 10.0.0.1}\n"
		     "  - {name: g, address: 10.0.0.1}\n",
		""},
	{"a size that is not prime is for others", HEAD "  table: {algorithm: ring, size: 8}\n",
		""},
	{"the largest size", HEAD "  table: {size: 16777213}\n", ""},
	{"services that differ in one of the three",
		HEAD "- {name: a, address: 192.0.2.1, protocol: udp, port: 1}\n"
		     "- {name: b, address: 192.0.2.1, protocol: tcp, port: any}\n"
		     "- {name: c, address: 192.0.2.1, protocol: any, port: 1}\n"
		     "- {name: d, address: 192.0.2.0/31, protocol: tcp, port: 1}\n"
		     "- {name: e, address: '::c000:201', protocol: tcp, port: 1}\n",
		""},
	{"one backend name in two services",
		HEAD "  backends: [{name: a, address: 10.0.0.1}]\n"
		     "- {name: x, address: 192.0.2.2, protocol: tcp, port: 1,\n"
		     "   backends: [{name: a, address: 10.0.0.1}]}\n",
		""},
	{"l2 needs no address to send from",
		"dataplane: {ports: [{name: p, device: d}]}\n" HEAD
		"  forward: l2\n  backends: [{name: a, address: 10.0.0.1, "
		"mac: '02:00:00:00:00:01'}]\n",
		""},
	{"any port's address will do",
		"dataplane: {ports: [{name: p, device: d}, {name: q, device: e, "
		"addresses: [192.0.2.2/24]}]}\n" HEAD
		"  backends: [{name: a, address: 10.0.0.1}]\n",
		""},
	{"an mtu of 1280 is enough for IPv6, and 576 for IPv4",
		"dataplane: {ports: [{name: p, device: d, addresses: ['2001:db8::1/64'], "
		"mtu: 1280}, {name: q, device: e, addresses: [192.0.2.1], mtu: 576}]}\n",
		""},
	{"routes by each port's network and by a link-local address",
		"dataplane: {ports: [{name: p, device: d, addresses: [192.0.2.1/24, "
		"'2001:db8::1/64'], routes: [{to: 0.0.0.0/0, via: 192.0.2.254}, "
		"{to: '2001:db8:1::/48', via: '2001:db8::fe'}]}, {name: q, device: e, "
		"addresses: [192.0.3.1/24], routes: [{to: 10.0.0.0/8, via: 192.0.3.254}, "
		"{to: '::/0', via: 'fe80::1'}]}]}\n",
		""},
	{"without twins ports have any name",
		"dataplane: {kernel: none, ports: [{name: a port of 18 bytes, device: d}, "
		"{name: 'a%d,b=c', device: e}, {name: .., device: f}]}\n",
		""},
	{"a packet socket has no twin, and any name",
		"dataplane: {kernel: tap, ports: ["
		"{name: 'wan %d', device: 'net_af_packet,iface=eth0'}, "
		"{name: a port of 18 bytes, device: 'net_af_packet7,iface=eth1'}, "
		"{name: .., device: 'eth_af_packet0,iface=eth2'}]}\n",
		""},
	{"odd names that an interface may have",
		"dataplane: {kernel: tap, ports: [{name: abcdefghijklmno, device: d}, "
		"{name: '!\"#$&()*+-.;<>?', device: e}, {name: '@A\\]^_`{|}~', device: f}, "
		"{name: ..., device: g}]}\n",
		""},
	{"as many ports as there may be",
		"dataplane: {ports: [{name: a, device: d}, {name: b, device: d}, "
		"{name: c, device: d}, {name: d, device: d}, {name: e, device: d}, "
		"{name: f, device: d}, {name: g, device: d}, {name: h, device: d}, "
		"{name: i, device: d}, {name: j, device: d}, {name: k, device: d}, "
		"{name: l, device: d}, {name: m, device: d}, {name: n, device: d}, "
		"{name: o, device: d}, {name: p, device: d}]}\n",
		""},
	{"a short timeout beside a long one", "dataplane: {flow_timeout: {tcp: 7d, udp: 1s}}\n",
		"f:1:27: warning: flow_timeout: beside 7d, 1s may be up to 1073741 us longer; "
		"for less bring them nearer to each other\n"},
	{"one that is just long enough, as 2^-20 of a day and a half is 0.12 s",
		"dataplane: {flow_timeout: {tcp: 36h, udp: 1.342177280s}}\n", ""},
	{"and one that is not", "dataplane: {flow_timeout: {tcp: 36h, udp: 1.342177279s}}\n",
		"f:1:27: warning: flow_timeout: beside 36h, 1342177279ns may be up to 134217 "
		"us "
		"longer; for less bring them nearer to each other\n"},
	{"carry that no packet finds",
		"services:\n- name: w\n  address: 192.0.2.1\n  protocol: any\n  port: 1\n"
		"  carry: [gre]\n",
		"f:6:10: warning: ipip, ipv6 and gre have no port, so carry needs 'port: any' "
		"to find this service\n"},
	{"tunnels by UDP have ports, and may be carried by one",
		"services:\n- name: w\n  address: 192.0.2.1\n  protocol: udp\n  port: 4789\n"
		"  carry: [gue, vxlan, geneve]\n",
		""},
	{"a port of tunnels that the service does not take, and puts into others",
		"services:\n- name: w\n  address: 192.0.2.1\n  protocol: udp\n  port: 4789\n"
		"  forward: vxlan\n",
		"f:5:9: warning: port: 4789 is for tunnels (vxlan), which a service with "
		"forward vxlan drops, unsupported_l4, unless carry names them; expected carry: "
		"[vxlan], or another forward\n"},
	{"the same of every tunnel by UDP, and of protocol any",
		"services:\n"
		"- {name: a, address: 192.0.2.1, protocol: any, port: 6080, forward: vxlan}\n"
		"- {name: b, address: 192.0.2.2, protocol: udp, port: 6081, forward: gue}\n",
		"f:2:54: warning: port: 6080 is for tunnels (gue), which a service with "
		"forward "
		"vxlan drops, unsupported_l4, unless carry names them; expected carry: [gue], "
		"or "
		"another forward\n"
		"f:3:54: warning: port: 6081 is for tunnels (geneve), which a service with "
		"forward gue drops, unsupported_l4, unless carry names them; expected carry: "
		"[geneve], or another forward\n"},
	{"a port that two services have their tunnels on, of which one is carried",
		"services:\n"
		"- {name: a, address: 192.0.2.1, protocol: udp, port: 9, forward: vxlan, "
		"carry: "
		"[vxlan]}\n"
		"- {name: b, address: 192.0.2.2, protocol: tcp, port: 9, forward: gue, "
		"tunnel_port: 9}\n"
		"- {name: c, address: 192.0.2.3, protocol: tcp, port: 9, forward: vxlan, "
		"tunnel_port: 9}\n",
		"f:2:54: warning: port: 9 is for tunnels (gue), which a service with forward "
		"vxlan drops, unsupported_l4, unless carry names them; expected carry: [gue, "
		"vxlan], "
		"or "
		"another forward\n"},
	{"ports of tunnels that pass: carried, not by UDP again, of TCP; and any port",
		"services:\n"
		"- {name: a, address: 192.0.2.1, protocol: udp, port: 4789, forward: gue, "
		"carry: "
		"[vxlan]}\n"
		"- {name: b, address: 192.0.2.2, protocol: udp, port: 4789, forward: ipip}\n"
		"- {name: c, address: 192.0.2.3, protocol: tcp, port: 4789, forward: gue}\n"
		"- {name: d, address: 192.0.2.4, protocol: udp, port: any, forward: gue}\n",
		""},
	{"services for every address, and for what is beside special ones",
		"services:\n"
		"- {name: a, address: 0.0.0.0/0, protocol: tcp, port: 1}\n"
		"- {name: b, address: 0.0.0.0/7, protocol: tcp, port: 1}\n"
		"- {name: c, address: '::/0', protocol: tcp, port: 1}\n"
		"- {name: d, address: '::/126', protocol: tcp, port: 1}\n"
		"- {name: e, address: '::2', protocol: tcp, port: 1}\n"
		"- {name: f, address: 223.255.255.255, protocol: tcp, port: 1}\n"
		"- {name: g, address: 128.0.0.0/1, protocol: tcp, port: 1}\n",
		""},
	{"two that say different things of the echoes to one address",
		HEAD "  echo: forward\n"
		     "- {name: x, address: 192.0.2.1, protocol: udp, port: 1}\n"
		     "- {name: y, address: 192.0.2.1, protocol: udp, port: 2, echo: forward}\n"
		     "- {name: z, address: 192.0.2.1, protocol: udp, port: 3, echo: drop}\n"
		     "- {name: n, address: 192.0.2.0/31, protocol: udp, port: 3, echo: drop}\n",
		"f:7:22: warning: echo: reply of service 'x' is not used, as service 'w' has "
		"the "
		"same address 192.0.2.1, comes first, and has forward; give both the same\n"
		"f:9:63: warning: echo: drop of service 'z' is not used, as service 'w' has "
		"the "
		"same address 192.0.2.1, comes first, and has forward; give both the same\n"},
	{"tunnels that lead back",
		HEAD
		"  forward: gre\n  backends:\n  - {name: a, address: 10.0.0.1}\n"
		"  - {name: b, address: 198.51.100.200}\n  - {name: c, address: 192.0.2.1}\n"
		"- {name: x, address: 198.51.100.0/24, protocol: udp, port: 1}\n"
		"- {name: y, address: 198.51.100.192/28, protocol: udp, port: 1}\n"
		"- {name: six, address: '::/0', protocol: udp, port: 1, backends: [\n"
		"   {name: a, address: '2001:db8::1'}, {name: b, address: 10.0.0.2}]}\n",
		"f:9:24: warning: address: 198.51.100.200 is within 198.51.100.0/24 of "
		"service "
		"'x', so that what a tunnel takes there comes back to a balancer (2 such "
		"backends); expected an address of no service\n"
		"f:14:23: warning: address: 2001:db8::1 is within ::/0 of service 'six', so "
		"that "
		"what a tunnel takes there comes back to a balancer (1 such backend); expected "
		"an "
		"address of no service\n"},
	{"services with the balancer's own addresses, or around them",
		"dataplane: {ports: [{name: wan, device: d, addresses: [198.51.100.1/24, "
		"'2001:db8::1/64']}, {name: lan, device: e, addresses: [198.51.101.1/24]}]}\n"
		"services:\n"
		"- {name: a, address: 198.51.100.1, protocol: tcp, port: any}\n"
		"- {name: b, address: 198.51.100.0/23, protocol: tcp, port: 1}\n"
		"- {name: c, address: '::/0', protocol: tcp, port: 1}\n"
		"- {name: d, address: 198.51.100.2, protocol: tcp, port: 1}\n",
		"f:3:22: warning: address: 198.51.100.1 is the balancer's own, of port 'wan', "
		"and what comes to this service no longer comes to the balancer: ssh or BGP, "
		"if it takes their port; expected an address of its own\n"
		"f:4:22: warning: address: 198.51.100.0/23 is around the balancer's own "
		"198.51.100.1, of port 'wan' (2 such addresses), which stays the kernel's; a "
		"service takes packets there only with just that address\n"
		"f:5:22: warning: address: ::/0 is around the balancer's own 2001:db8::1, of "
		"port 'wan' (1 such address), which stays the kernel's; a service takes "
		"packets there only with just that address\n"},
	{"answers of checks that another service takes",
		"dataplane: {ports: [{name: wan, device: d, addresses: [198.51.100.1/24]}]}\n"
		"services:\n"
		"- {name: a, address: 198.51.100.1, protocol: udp, port: 19999}\n"
		"- {name: b, address: 198.51.100.1, protocol: tcp, port: 32767}\n"
		"- {name: c, address: 198.51.101.1, protocol: tcp, port: 1,\n"
		"   health: {type: tcp, via: tunnel}}\n",
		"f:3:22: warning: address: 198.51.100.1 is the balancer's own, of port 'wan', "
		"and what comes to this service no longer comes to the balancer: ssh or BGP, "
		"if it takes their port; expected an address of its own\n"
		"f:4:22: warning: address: 198.51.100.1 is the balancer's own, of port 'wan', "
		"and what comes to this service no longer comes to the balancer: ssh or BGP, "
		"if it takes their port; expected an address of its own\n"
		"f:6:12: warning: health: via: tunnel: answers come to the balancer's own "
		"address, ports 20000 to 32767, which service 'b' takes, so that none comes "
		"back; expected via: direct, or another address of that service\n"},
	{"l2 does not go by the address",
		HEAD "  forward: l2\n  backends: [{name: a, address: 192.0.2.1}]\n", ""},
	{"gue and vxlan have a tunnel port, vxlan a vni",
		HEAD "  forward: gue\n  tunnel_port: 6081\n"
		     "- {name: x, address: 192.0.2.2, protocol: tcp, port: 1, forward: vxlan,\n"
		     "   tunnel_port: 1, vni: 0}\n",
		""},
};

static void
test_what_is_right_and_what_is_warned_of(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good_files) / sizeof(good_files[0]); i++) {
		const char *text = good_files[i].text;
		struct cfg_model model;
		char *messages;
		size_t n;
		FILE *to = open_memstream(&messages, &n);
		int ret;

		assert_non_null(to);
		ret = cfg_read_text_model("f", text, strlen(text), to, &model);
		assert_int_equal(fclose(to), 0);
		EXPECT(ret == 0, "%s: says %s", good_files[i].what, messages);
		EXPECT(strcmp(messages, good_files[i].messages) == 0, "%s: says %s",
			good_files[i].what, messages);
		free(messages);
		cfg_model_fini(&model);
	}
}

static void
test_one_backend_of_a_running_set(void **state)
{
	static const char text[] =
		"dataplane: {ports: [{name: p, device: d, addresses: [192.0.2.1]}]}\n" HEAD;
	static struct cfg_quic_id quic_id = {.n_bytes = 1};
	static const struct {
		const char *what;
		struct cfg_backend backend;
		const char *messages;
	} rows[] = {
		{"a backend that may stand there",
			{.address = {{[10] = 0xff, 0xff, 10, 0, 0, 1}}}, ""},
		{"a family without a port", {.address = {{0x20, 0x01, [15] = 1}}},
			"f: address: no port has an IPv6 address to send to 2001::1 from; add "
			"one to dataplane.ports[].addresses\n"},
		{"the balancer's own address", {.address = {{[10] = 0xff, 0xff, 192, 0, 2, 1}}},
			"f: address: 192.0.2.1 is the balancer's own, of port 'p'; expected "
			"another host's\n"},
		{"a server id in a service without configurations",
			{.address = {{[10] = 0xff, 0xff, 10, 0, 0, 1}},
				.quic_ids = &quic_id,
				.n_quic_ids = 1},
			"f: quic_id is for services with the key 'quic', and this one has "
			"none; remove it\n"},
		{"a MAC address for a tunnel",
			{.address = {{[10] = 0xff, 0xff, 10, 0, 0, 1}}, .has_mac = true},
			"f: mac is for forward l2 or vxlan, and this service has ipip; remove "
			"it\n"},
		{"a weight that no file could have",
			{.address = {{[10] = 0xff, 0xff, 10, 0, 0, 1}}, .weight = 65536},
			"f: weight: expected a whole number from 0 to 65535, found 65536\n"},
	};
	struct cfg_model model;

	(void)state;
	assert_int_equal(cfg_read_text_model("f", text, strlen(text), NULL, &model), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *messages;
		size_t n;
		FILE *to = open_memstream(&messages, &n);
		struct cfg_errors errors = {.to = to, .file = "f"};
		bool is_right;

		assert_non_null(to);
		is_right = cfg_check_backend(&model, &model.services[0], &rows[i].backend,
			&errors);
		assert_int_equal(fclose(to), 0);
		EXPECT(is_right == (rows[i].messages[0] == '\0'), "%s", rows[i].what);
		EXPECT(strcmp(messages, rows[i].messages) == 0, "%s: says %s", rows[i].what,
			messages);
		free(messages);
	}
	cfg_model_fini(&model);
}

/* As a new reader does, that needs ports or not. */
static int
read_new(bool needs_ports, const char *text, char **messages)
{
	struct cfg_reader *reader = cfg_reader_create(needs_ports);
	struct cfg_model model;
	size_t n;
	FILE *to = open_memstream(messages, &n);
	int ret;

	assert_non_null(reader);
	assert_non_null(to);
	ret = cfg_reader_read_text(reader, "f", text, strlen(text), to, &model);
	assert_int_equal(fclose(to), 0);
	if (ret == 0)
		cfg_model_fini(&model);
	cfg_reader_destroy(reader);
	return ret;
}

static void
test_a_daemon_needs_ports(void **state)
{
	static const struct {
		const char *what;
		const char *text;
		const char *where; /* it is told that there are none */
	} rows[] = {
		{"no dataplane", "services: []\n", "f:1:1"},
		{"an empty dataplane", "hash_seed: 1\ndataplane:\nservices: []\n", "f:2:11"},
		{"a dataplane without ports", "dataplane: {workers: 1}\nservices: []\n",
			"f:1:12"},
		{"an empty list", "dataplane:\n  ports: []\nservices: []\n", "f:2:10"},
		{"an empty value", "dataplane:\n  ports:\nservices: []\n", "f:2:9"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char expected[80];
		char *messages;

		EXPECT(read_new(false, rows[i].text, &messages) == 0, "%s: says %s",
			rows[i].what, messages);
		free(messages);
		(void)snprintf(expected, sizeof(expected),
			"%s: dataplane.ports: expected 1 to 16 ports, found none\n",
			rows[i].where);
		EXPECT(read_new(true, rows[i].text, &messages) == -EINVAL, "%s", rows[i].what);
		EXPECT(strcmp(messages, expected) == 0, "%s: says %s", rows[i].what, messages);
		free(messages);
	}
}

static void
test_ports_that_are_wrong_are_told_of_once(void **state)
{
	static const char *const texts[] = {"dataplane: {ports: [{name: a}]}\n",
		"dataplane: {ports: {}}\n", "dataplane: {ports: *a}\n", "dataplane: 1\n",
		"- 1\n", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *messages[2];

		for (size_t k = 0; k < 2; k++)
			EXPECT(read_new(k == 1, texts[i], &messages[k]) == -EINVAL, "%s",
				texts[i]);
		EXPECT(strcmp(messages[0], messages[1]) == 0, "%s: says %s", texts[i],
			messages[1]);
		free(messages[0]);
		free(messages[1]);
	}
}

/* A service of n backends of a weight, and one more; what is said of it. */
static int
read_table(const char *table, unsigned int n, unsigned int weight, const char *last,
	char **messages)
{
	struct cfg_model model;
	char *text;
	size_t n_bytes;
	size_t n_messages;
	FILE *to = open_memstream(&text, &n_bytes);
	int ret;

	assert_non_null(to);
	(void)fprintf(to, HEAD "  table: %s\n  backends:\n", table);
	for (unsigned int i = 0; i < n; i++)
		(void)fprintf(to, "  - {name: b%u, address: 10.0.0.1, weight: %u}\n", i,
			weight);
	(void)fprintf(to, "  - {name: last, address: 10.0.0.1, %s}\n", last);
	assert_int_equal(fclose(to), 0);

	to = open_memstream(messages, &n_messages);
	assert_non_null(to);
	ret = cfg_read_text_model("f", text, n_bytes, to, &model);
	assert_int_equal(fclose(to), 0);
	if (ret == 0)
		cfg_model_fini(&model);
	free(text);
	return ret;
}

/* A weight of 65535 is 104856 points; 160 such leave 256 of 2^24, a weight of 160. */
static void
test_tables_that_cannot_be_built_are_refused(void **state)
{
	static const struct {
		const char *what;
		const char *table;
		unsigned int n;
		unsigned int weight;
		const char *last;
		const char *messages;
	} rows[] = {
		{"a ring of as many points as there may be", "{algorithm: ring, size: 655373}",
			160, 65535, "weight: 160", ""},
		{"a ring of two more", "{algorithm: ring, size: 655373}", 160, 65535,
			"weight: 161",
			"f:6:34: the weights of all backends make 16777218 points on the ring, "
			"and there may be 16777216; expected weights in the same proportions, "
			"at most 1/2 of these\n"},
		{"a backend that is down may come up", "{algorithm: ring, size: 655373}", 160,
			65535, "weight: 161, state: down",
			"f:6:34: the weights of all backends make 16777218 points on the ring, "
			"and there may be 16777216; expected weights in the same proportions, "
			"at most 1/2 of these\n"},
		{"a weight of 0 has no points", "{algorithm: ring}", 160, 65535, "weight: 0",
			""},
		{"maglev has no points", "{algorithm: maglev}", 160, 65535, "weight: 161", ""},
		{"rendezvous with as many scores as there may be",
			"{algorithm: rendezvous, size: 8388608}", 1023, 1, "weight: 1", ""},
		{"rendezvous with a slot more", "{algorithm: rendezvous, size: 8388609}", 1023,
			1, "weight: 0",
			"f:6:40: size: rendezvous compares every backend for every slot, and "
			"1024 backends for 8388609 slots take too long; expected at most "
			"8388608 slots for so many, or another algorithm\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *messages;
		const int ret = read_table(rows[i].table, rows[i].n, rows[i].weight,
			rows[i].last, &messages);

		EXPECT(strcmp(messages, rows[i].messages) == 0, "%s: says %s", rows[i].what,
			messages);
		EXPECT(ret == (rows[i].messages[0] == '\0' ? 0 : -EINVAL), "%s: returns %d",
			rows[i].what, ret);
		free(messages);
	}
}

/* 100,000 services: in the order of n squared this would take minutes. */
static void
test_many_services_are_checked_fast(void **state)
{
	const clock_t begin = clock();
	struct cfg_model model;
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	(void)state;
	assert_non_null(to);
	(void)fputs("services:\n", to);
	for (unsigned int i = 0; i < 100000; i++)
		(void)fprintf(to, "- {name: s%u, address: 10.0.0.%u, protocol: %s, port: %u}\n",
			i, i / 65535, (i & 1) == 0 ? "tcp" : "udp", i % 65535 + 1);
	assert_int_equal(fclose(to), 0);
	assert_int_equal(cfg_read_text_model("f", text, n, stderr, &model), 0);
	assert_int_equal(model.n_services, 100000);
	cfg_model_fini(&model);
	free(text);
	EXPECT(clock() - begin < 30 * CLOCKS_PER_SEC, "it took over 30 s");
}

/* 100,000 ports: in the order of n squared this would take minutes. */
static void
test_many_ports_are_refused_fast(void **state)
{
	struct cfg_model model;
	char *text;
	char *messages;
	size_t n;
	size_t n_messages;
	FILE *to = open_memstream(&text, &n);

	(void)state;
	assert_non_null(to);
	(void)fputs("dataplane:\n  ports:\n", to);
	for (unsigned int i = 0; i < 100000; i++)
		(void)fprintf(to, "  - {name: p%u, device: d}\n", i);
	assert_int_equal(fclose(to), 0);

	to = open_memstream(&messages, &n_messages);
	assert_non_null(to);
	assert_int_equal(cfg_read_text_model("f", text, n, to, &model), -EINVAL);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(messages, "f:19:5: one port too many; expected at most 16\n");
	free(messages);
	free(text);
}

/* So many times that the three meet in their small hash table. */
static void
test_services_that_differ_in_protocol_are_three(void **state)
{
	(void)state;
	for (unsigned int port = 1; port <= 200; port++) {
		struct cfg_model model;
		char text[512];

		(void)snprintf(text, sizeof(text),
			"services:\n"
			"- {name: a, address: 192.0.2.1, protocol: tcp, port: %u}\n"
			"- {name: b, address: 192.0.2.1, protocol: udp, port: %u}\n"
			"- {name: c, address: 192.0.2.1, protocol: any, port: %u}\n",
			port, port, port);
		assert_int_equal(cfg_read_text_model("f", text, strlen(text), stderr, &model),
			0);
		cfg_model_fini(&model);
	}
}

/* So many times that the two meet in their small hash table. */
static void
test_echoes_to_prefixes_of_other_lengths_may_differ(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 200; i++) {
		struct cfg_model model;
		char text[512];
		char *messages;
		size_t n;
		FILE *to = open_memstream(&messages, &n);

		assert_non_null(to);
		(void)snprintf(text, sizeof(text),
			"services:\n"
			"- {name: a, address: 10.0.%u.0, protocol: tcp, port: 1, echo: drop}\n"
			"- {name: b, address: 10.0.%u.0/31, protocol: tcp, port: 1}\n",
			i, i);
		assert_int_equal(cfg_read_text_model("f", text, strlen(text), to, &model), 0);
		assert_int_equal(fclose(to), 0);
		assert_string_equal(messages, "");
		cfg_model_fini(&model);
		free(messages);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_right_and_what_is_warned_of),
		cmocka_unit_test(test_one_backend_of_a_running_set),
		cmocka_unit_test(test_a_daemon_needs_ports),
		cmocka_unit_test(test_ports_that_are_wrong_are_told_of_once),
		cmocka_unit_test(test_tables_that_cannot_be_built_are_refused),
		cmocka_unit_test(test_services_that_differ_in_protocol_are_three),
		cmocka_unit_test(test_echoes_to_prefixes_of_other_lengths_may_differ),
		cmocka_unit_test(test_many_services_are_checked_fast),
		cmocka_unit_test(test_many_ports_are_refused_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
