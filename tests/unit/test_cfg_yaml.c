/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_reader.h"
#include "cfg_yaml.h"

#define BYTES(text) text, sizeof(text) - 1
/* Of a port's name on a line of its own, in the form that the rows below have. */
#define TWIN(line, expected, found)                                                            \
	"f:" #line ":12: name: expected one " expected ", as with kernel: tap the kernel has " \
	"an interface of this name, found '" found "'; kernel: none takes any\n"
#define TWIN_BYTES "of printable ASCII without blanks and any of /:,%=["
#define TWIN_WORDS "other than '.', '..', 'all', 'default' and 'lo'"

static const struct {
	const char *what;
	const char *text;
	size_t n_bytes;
	const char *messages;
} bad_files[] = {
	{"a number with letters after it",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: 80abc}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found the value "
		"'80abc'\n"},
	{"a number with a fraction",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: 80.5}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found the value "
		"'80.5'\n"},
	{"a number with a leading zero",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 0800\n"),
		"f:5:9: port: expected any or a whole number from 1 to 65535, found the value "
		"'0800'\n"},
	{"a number with an exponent",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: 1e3}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found the value "
		"'1e3'\n"},
	{"a port over 65535",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 70000\n"),
		"f:5:9: port: expected any or a whole number from 1 to 65535, found the value "
		"'70000'\n"},
	{"a port of 0",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 0\n"),
		"f:5:9: port: expected any or a whole number from 1 to 65535, found the value "
		"'0'\n"},
	{"a number with a sign",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: +5}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found the value "
		"'+5'\n"},
	{"a negative number",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: -5}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found the value "
		"'-5'\n"},
	{"a hexadecimal number",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: 0x50}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found the value "
		"'0x50'\n"},
	{"a number over 64 bits", BYTES("hash_seed: 18446744073709551616\n"),
		"f:1:12: hash_seed: expected a whole number from 0 to 18446744073709551615, "
		"found the value '18446744073709551616'\n"},
	{"a number far over 64 bits", BYTES("hash_seed: 99999999999999999999999\n"),
		"f:1:12: hash_seed: expected a whole number from 0 to 18446744073709551615, "
		"found the value '99999999999999999999999'\n"},
	{"a weight over its range",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: 65536}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found the value "
		"'65536'\n"},
	{"a number with spaces in quotes",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: ' 5'}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found the value ' "
		"5'\n"},
	{"a value left empty",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: }\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found nothing\n"},
	{"a list for a number",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: [1]}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found a list\n"},
	{"a mapping for a number",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: {a: 1}}\n"),
		"f:7:42: weight: expected a whole number from 0 to 65535, found a mapping\n"},
	{"an address with a leading zero",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.010}\n"),
		"f:7:24: address: expected an IP address such as 192.0.2.1 or 2001:db8::1, "
		"found the value '10.0.0.010'\n"},
	{"a prefix for a backend's address",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.0/24}\n"),
		"f:7:24: address: expected an address without a prefix length such as "
		"192.0.2.1 or 2001:db8::1, found the value '10.0.0.0/24'\n"},
	{"a host name for an address",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: example.org}\n"),
		"f:7:24: address: expected an IP address such as 192.0.2.1 or 2001:db8::1, "
		"found the value 'example.org'\n"},
	{"a multicast backend",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 224.0.0.1}\n"),
		"f:7:24: address: expected a unicast address, found 224.0.0.1\n"},
	{"a multicast backend of IPv6",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 'ff02::1'}\n"),
		"f:7:24: address: expected a unicast address, found ff02::1\n"},
	{"the unspecified address",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 0.0.0.0}\n"),
		"f:7:24: address: expected a unicast address, found 0.0.0.0\n"},
	{"an IPv4-mapped address",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: '::ffff:10.0.0.1'}\n"),
		"f:7:24: address: expected an IP address such as 192.0.2.1 or 2001:db8::1, "
		"found the value '::ffff:10.0.0.1'\n"},
	{"host bits",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10/24\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"),
		"f:3:12: address: 198.51.100.10/24 has bits set after its prefix length; "
		"expected 198.51.100.0/24\n"},
	{"host bits of IPv6",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: \"2001:db8::1/32\"\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"),
		"f:3:12: address: 2001:db8::1/32 has bits set after its prefix length; "
		"expected 2001:db8::/32\n"},
	{"services of groups, and of the limited broadcast",
		BYTES("services:\n"
		      "- {name: a, address: 224.0.0.5, protocol: any, port: any}\n"
		      "- {name: b, address: 224.0.0.0/4, protocol: any, port: any}\n"
		      "- {name: c, address: 255.255.255.255, protocol: udp, port: 67}\n"
		      "- {name: d, address: 'ff02::/16', protocol: any, port: any}\n"),
		"f:2:22: address: 224.0.0.5 is multicast or broadcast, which is always the "
		"kernel's; expected unicast\n"
		"f:3:22: address: 224.0.0.0/4 is multicast or broadcast, which is always the "
		"kernel's; expected unicast\n"
		"f:4:22: address: 255.255.255.255 is multicast or broadcast, which is always "
		"the kernel's; expected unicast\n"
		"f:5:22: address: ff02::/16 is multicast or broadcast, which is always the "
		"kernel's; expected unicast\n"},
	{"a prefix too long",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.0/33\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"),
		"f:3:12: address: expected an IP address or prefix such as 192.0.2.1, "
		"192.0.2.0/28 or 2001:db8::/64, found the value '198.51.100.0/33'\n"},
	{"an unknown protocol",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tpc\n"
		      "  port: 443\n"),
		"f:4:13: protocol: expected tcp, udp or any, found the value 'tpc'; did you "
		"mean tcp?\n"},
	{"a protocol in capitals",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: TCP\n"
		      "  port: 443\n"),
		"f:4:13: protocol: expected tcp, udp or any, found the value 'TCP'; did you "
		"mean tcp?\n"},
	{"a protocol that is like none",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: sctp\n"
		      "  port: 443\n"),
		"f:4:13: protocol: expected tcp, udp or any, found the value 'sctp'\n"},
	{"an unknown algorithm",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {algorithm: jump}\n"),
		"f:6:22: algorithm: expected maglev, ring, rendezvous or stable, found the "
		"value 'jump'\n"},
	{"an algorithm nearly right",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {algorithm: maglve}\n"),
		"f:6:22: algorithm: expected maglev, ring, rendezvous or stable, found the "
		"value 'maglve'; did you mean maglev?\n"},
	{"a stable size that is not prime",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {algorithm: stable, size: 1000}\n"),
		"f:6:36: size: stable needs a prime number, and 1000 is none; the nearest "
		"above is 1009\n"},
	{"an overload without its sign",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {algorithm: stable, overload: 2}\n"),
		"f:6:40: overload: expected a percentage from 0% to 100% with at most one "
		"decimal, such as 2% or 0.5%, found the value '2'\n"},
	{"an overload of another algorithm",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {algorithm: ring, size: 8, overload: 2%}\n"),
		"f:6:47: overload is for algorithm stable, and this service has ring; remove "
		"it\n"},
	{"an overload of the default algorithm, none at all",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {overload: 0}\n"),
		"f:6:21: overload is for algorithm stable, and this service has maglev; "
		"remove it\n"},
	{"an overload of no algorithm that there is",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {algorithm: jump, overload: 2%}\n"),
		"f:6:22: algorithm: expected maglev, ring, rendezvous or stable, found the "
		"value 'jump'\n"},
	{"a size that is not prime",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {size: 65536}\n"),
		"f:6:17: size: maglev needs a prime number, and 65536 is none; the nearest "
		"above is 65537\n"},
	{"a size that is not prime, the one above far off",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {size: 1000000}\n"),
		"f:6:17: size: maglev needs a prime number, and 1000000 is none; the nearest "
		"above is 1000003\n"},
	{"a size of nothing",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {size: 0}\n"),
		"f:6:17: size: expected a whole number from 7 to 16777213, found the value "
		"'0'\n"},
	{"a size of one",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {size: 1}\n"),
		"f:6:17: size: expected a whole number from 7 to 16777213, found the value "
		"'1'\n"},
	{"a size too small",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {size: 6}\n"),
		"f:6:17: size: expected a whole number from 7 to 16777213, found the value "
		"'6'\n"},
	{"a size too large",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {size: 16777214}\n"),
		"f:6:17: size: expected a whole number from 7 to 16777213, found the value "
		"'16777214'\n"},
	{"a table that is a word",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: maglev\n"),
		"f:6:10: expected a mapping with the keys algorithm, size and overload, found "
		"the value "
		"'maglev'\n"},
	{"an unknown forward mode",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  forward: nat\n"),
		"f:6:12: forward: expected l2, ipip, gre, gue or vxlan, found the value "
		"'nat'\n"},
	{"an unknown affinity",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  affinity: source_ip\n"),
		"f:6:13: affinity: expected 5-tuple, source-ip, source-ip-port or quic, found "
		"the value 'source_ip'; did you mean source-ip?\n"},
	{"an unknown state",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, state: draining}\n"),
		"f:7:41: state: expected up, drain or down, found the value 'draining'\n"},
	{"an unknown key like another",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, wieght: 5}\n"),
		"f:7:34: unknown key 'wieght'; did you mean 'weight'?\n"},
	{"an unknown key like none",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, colour: red}\n"),
		"f:7:34: unknown key 'colour'; the keys here are name, address, weight, state, "
		"mac, zone and quic_id\n"},
	{"an unknown key at the top", BYTES("servcies: []\n"),
		"f:1:1: unknown key 'servcies'; did you mean 'services'?\n"},
	{"a key in capitals", BYTES("Services: []\n"),
		"f:1:1: unknown key 'Services'; did you mean 'services'?\n"},
	{"a key twice",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: 1, weight: 2}\n"),
		"f:7:45: the key 'weight' is given twice, first on line 7; remove one of "
		"them\n"},
	{"a section twice",
		BYTES("services: []\n"
		      "services: []\n"),
		"f:2:1: the key 'services' is given twice, first on line 1; remove one of "
		"them\n"},
	{"a backend without name and address",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {weight: 5}\n"),
		"f:7:5: this backend has no key 'name', which it needs\n"
		"f:7:5: this backend has no key 'address', which it needs\n"},
	{"a service without anything",
		BYTES("services:\n"
		      "- {}\n"),
		"f:2:3: this service has no key 'name', which it needs\n"
		"f:2:3: this service has no key 'address', which it needs\n"
		"f:2:3: this service has no key 'protocol', which it needs\n"
		"f:2:3: this service has no key 'port', which it needs\n"},
	{"a service that is a word",
		BYTES("services:\n"
		      "- web\n"),
		"f:2:3: expected a mapping with the keys name, address, protocol, port, table, "
		"affinity, forward, tunnel_port, vni, carry, echo, fragment, mss_clamp, quic, "
		"health, slow_start, min_healthy, when_all_down and backends, found the value "
		"'web'\n"},
	{"services that are a mapping", BYTES("services: {web: 1}\n"),
		"f:1:11: services: expected a list, found a mapping\n"},
	{"backends that are a word",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends: none\n"),
		"f:6:13: backends: expected a list, found the value 'none'\n"},
	{"a port without name and device",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - {}\n"),
		"f:3:5: this port has no key 'name', which it needs\n"
		"f:3:5: this port has no key 'device', which it needs\n"},
	{"an empty device",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - {name: wan, device: ''}\n"),
		"f:3:25: device: expected a text that is not empty, found the value ''\n"},
	{"an empty name",
		BYTES("services:\n"
		      "- name: ''\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"),
		"f:2:9: name: expected a name of 1 to 255 bytes without '/' and control "
		"characters, found the value ''\n"},
	{"a null name",
		BYTES("services:\n"
		      "- name: ~\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"),
		"f:2:9: name: expected a name of 1 to 255 bytes without '/' and control "
		"characters, found nothing\n"},
	{"a name with a slash",
		BYTES("services:\n"
		      "- name: web/1\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"),
		"f:2:9: name: expected a name of 1 to 255 bytes without '/' and control "
		"characters, found the value 'web/1'\n"},
	{"a name with a control character",
		BYTES("services:\n"
		      "- name: \"web\\e[1m\"\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"),
		"f:2:9: name: expected a name of 1 to 255 bytes without '/' and control "
		"characters, found the value 'web\\x1b[1m'\n"},
	{"a name with a second kind of control character",
		BYTES("services:\n"
		      "- name: \"web\\x9b1m\"\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"),
		"f:2:9: name: expected a name of 1 to 255 bytes without '/' and control "
		"characters, found the value 'web\\xc2\\x9b1m'\n"},
	{"two services of one name",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 80\n"),
		"f:6:9: the name 'web' is taken by another service, on line 2; give each its "
		"own\n"},
	{"two services of one address, protocol and port",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "- name: api\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"),
		"f:7:12: address 198.51.100.10, protocol tcp and port 443 are those of service "
		"'web', on line 2; one of the three has to differ\n"},
	{"two backends of one name",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1}\n"
		      "  - {name: a, address: 10.0.0.2}\n"),
		"f:8:12: the name 'a' is taken by another backend of the service, on line 7; "
		"give each its own\n"},
	{"two ports of one name",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - {name: wan, device: d0}\n"
		      "  - {name: wan, device: d1}\n"),
		"f:4:12: the name 'wan' is taken by another port, on line 3; give each its "
		"own\n"},
	{"a port's name that is longer than an interface's can be, and those that are none",
		BYTES("dataplane:\n"
		      "  kernel: tap\n"
		      "  ports:\n"
		      "  - {name: abcdefghijklmno, device: d0}\n"
		      "  - {name: abcdefghijklmnop, device: d1}\n"
		      "  - {name: abcdefghijklmnoq, device: d2}\n"
		      "  - {name: wan%d, device: d3}\n"
		      "  - {name: 'wan,mac=fixed', device: d4}\n"
		      "  - {name: 'a b', device: d5}\n"
		      "  - {name: 'a:b', device: d6}\n"
		      "  - {name: '[b', device: d7}\n"
		      "  - {name: caf\303\251, device: d8}\n"
		      "  - {name: ., device: d9}\n"
		      "  - {name: .., device: d10}\n"
		      "  - {name: ..., device: d11}\n"
		      "  - {name: default, device: d12}\n"),
		TWIN(5, "of at most 15 bytes", "abcdefghijklmnop") TWIN(6,
			"of at most 15 bytes", "abcdefghijklmnoq") TWIN(7, TWIN_BYTES, "wan%d")
			TWIN(8, TWIN_BYTES, "wan,mac=fixed") TWIN(9, TWIN_BYTES, "a b") TWIN(10,
				TWIN_BYTES, "a:b") TWIN(11, TWIN_BYTES, "[b") TWIN(12,
				TWIN_BYTES, "caf\303\251") TWIN(13, TWIN_WORDS, ".")
				TWIN(14, TWIN_WORDS, "..") TWIN(16, TWIN_WORDS, "default")},
	{"a port's name that no interface has, where tap is the default",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - {name: \"a b\", device: 'net_af_xdp,iface=eth0'}\n"),
		TWIN(3, TWIN_BYTES, "a b")},
	{"more ports than there may be",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - {name: a, device: d}\n  - {name: b, device: d}\n"
		      "  - {name: c, device: d}\n  - {name: d, device: d}\n"
		      "  - {name: e, device: d}\n  - {name: f, device: d}\n"
		      "  - {name: g, device: d}\n  - {name: h, device: d}\n"
		      "  - {name: i, device: d}\n  - {name: j, device: d}\n"
		      "  - {name: k, device: d}\n  - {name: l, device: d}\n"
		      "  - {name: m, device: d}\n  - {name: n, device: d}\n"
		      "  - {name: o, device: d}\n  - {name: a, device: d}\n"
		      "  - {name: q, device: d}\n"),
		"f:18:12: the name 'a' is taken by another port, on line 3; give each its "
		"own\n"
		"f:19:5: one port too many; expected at most 16\n"},
	{"more backends than slots",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  table: {size: 7}\n"
		      "  backends:\n"
		      "  - {name: b1, address: 10.0.0.1}\n"
		      "  - {name: b2, address: 10.0.0.2}\n"
		      "  - {name: b3, address: 10.0.0.3}\n"
		      "  - {name: b4, address: 10.0.0.4}\n"
		      "  - {name: b5, address: 10.0.0.5}\n"
		      "  - {name: b6, address: 10.0.0.6}\n"
		      "  - {name: b7, address: 10.0.0.7}\n"
		      "  - {name: b8, address: 10.0.0.8}\n"),
		"f:6:17: size: 8 backends do not fit into 7 slots; expected at least as many "
		"slots as backends\n"},
	{"an mtu too small for IPv6",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "    addresses: ['2001:db8::1/64']\n"
		      "    mtu: 1000\n"),
		"f:6:10: mtu: expected at least 1280, as the port has an IPv6 address, found "
		"1000\n"},
	{"an mtu too small",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "    mtu: 575\n"),
		"f:5:10: mtu: expected a whole number from 576 to 9216, found the value "
		"'575'\n"},
	{"an mtu too large",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "    mtu: 9217\n"),
		"f:5:10: mtu: expected a whole number from 576 to 9216, found the value "
		"'9217'\n"},
	{"a port's address that is multicast",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "    addresses: [224.0.0.1/24]\n"),
		"f:5:17: addresses: expected a unicast address of the balancer's own such as "
		"192.0.2.1/24, found the value '224.0.0.1/24'\n"},
	{"addresses that are no list",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "    addresses: 192.0.2.1/24\n"),
		"f:5:16: addresses: expected a list, found the value '192.0.2.1/24'\n"},
	{"routes that are no list, and routes without a key, with another, with no address",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - {name: wan, device: d0, routes: 0.0.0.0/0}\n"
		      "  - {name: lan, device: d1, routes: [{to: 0.0.0.0/0}, {via: "
		      "192.0.2.2},\n"
		      "     {to: 10.0.0.0/8, via: 192.0.2.2, dev: lan},\n"
		      "     {to: default, via: 192.0.2.0/24}],\n"
		      "     addresses: [192.0.2.1/24]}\n"),
		"f:3:37: routes: expected a list, found the value '0.0.0.0/0'\n"
		"f:4:38: this route has no key 'via', which it needs\n"
		"f:4:55: this route has no key 'to', which it needs\n"
		"f:5:39: unknown key 'dev'; the keys here are to and via\n"
		"f:6:11: to: expected an IP address or prefix such as 192.0.2.1, 192.0.2.0/28 "
		"or 2001:db8::/64, found the value 'default'\n"},
	{"routes to no network, of two families, by nobody near, and twice",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "    addresses: [192.0.2.1/24, '2001:db8::1/64']\n"
		      "    routes:\n"
		      "    - {to: 10.0.0.1/8, via: 192.0.2.254}\n"
		      "    - {to: 11.0.0.0/8, via: '2001:db8::2'}\n"
		      "    - {to: '::/0', via: 192.0.2.254}\n"
		      "    - {to: 12.0.0.0/8, via: 192.0.3.254}\n"
		      "    - {to: 13.0.0.0/8, via: 192.0.2.1}\n"
		      "    - {to: 11.0.0.0/8, via: 192.0.2.3}\n"
		      "  - name: lan\n"
		      "    device: d1\n"
		      "    addresses: [10.0.0.1/8]\n"
		      "    routes: [{to: '::/0', via: 'fe80::1'}]\n"),
		"f:7:7: to: expected a network such as '10.0.0.0/8', found '10.0.0.1/8', which "
		"has bits set beyond its length\n"
		"f:8:7: via: expected an IPv4 address, as the route is to one, found "
		"'2001:db8::2'\n"
		"f:9:7: via: expected an IPv6 address, as the route is to one, found "
		"'192.0.2.254'\n"
		"f:10:7: via: expected a neighbour, on the network of one of the port's "
		"addresses, found '192.0.3.254'\n"
		"f:11:7: via: expected a neighbour, on the network of one of the port's "
		"addresses, found '192.0.2.1'\n"
		"f:12:7: to: there is a route to '11.0.0.0/8' already, on line 8\n"
		"f:16:14: to: there is a route to '::/0' already, on line 9\n"},
	{"routes of a port that shares its interface with the kernel",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - {name: wan, device: 'net_af_packet,iface=eth0', addresses: "
		      "[192.0.2.1/24],\n"
		      "     routes: [{to: 0.0.0.0/0, via: 192.0.2.254}]}\n"),
		"f:4:15: routes: expected none, as port 'wan' has no twin to put them on; give "
		"them to its interface itself\n"},
	{"routes where there is no kernel",
		BYTES("dataplane:\n"
		      "  kernel: none\n"
		      "  ports:\n"
		      "  - {name: wan, device: d0, addresses: [192.0.2.1/24],\n"
		      "     routes: [{to: 0.0.0.0/0, via: 192.0.2.254}]}\n"),
		"f:5:15: routes: expected none, as port 'wan' has no twin to put them on; with "
		"kernel: none there is next_hop\n"},
	{"a next hop that is an IP address",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "    next_hop: 192.0.2.254\n"),
		"f:5:15: next_hop: expected a MAC address such as 02:00:00:00:00:fe, found the "
		"value '192.0.2.254'\n"},
	{"ports that have one device",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - {name: wan, device: '0000:3b:00.0'}\n"
		      "  - {name: lan, device: 'net_af_xdp,iface=eth0'}\n"
		      "  - {name: dmz, device: '3b:00.0'}\n"
		      "  - {name: lan2, device: 'net_af_packet,iface=eth0'}\n"
		      "  - {device: '0000:3B:00.0'}\n"),
		"f:7:5: this port has no key 'name', which it needs\n"
		"f:5:25: device: '3b:00.0' is that of port 'wan', on line 3; expected one of "
		"its own\n"
		"f:6:26: device: 'net_af_packet,iface=eth0' is that of port 'lan', on line 4; "
		"expected one of its own\n"
		"f:7:14: device: '0000:3B:00.0' is that of port 'wan', on line 3; expected one "
		"of its own\n"},
	{"a port without a device, and one whose device is nothing",
		BYTES("dataplane: {ports: [{name: a}, {name: b, device: }, {name: c}]}\n"),
		"f:1:21: this port has no key 'device', which it needs\n"
		"f:1:50: device: expected a text that is not empty, found nothing\n"
		"f:1:53: this port has no key 'device', which it needs\n"},
	{"no port to send IPv6 from",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "    addresses: [192.0.2.1/24]\n"
		      "services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: '2001:db8::1'}\n"),
		"f:12:24: address: no port has an IPv6 address to send to 2001:db8::1 from; "
		"add one to dataplane.ports[].addresses\n"},
	{"no port to send IPv4 from",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1}\n"),
		"f:11:24: address: no port has an IPv4 address to send to 10.0.0.1 from; add "
		"one to dataplane.ports[].addresses\n"},
	{"a MAC address for a tunnel",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, mac: '02:00:00:00:00:01'}\n"),
		"f:7:39: mac is for forward l2 or vxlan, and this service has ipip; remove "
		"it\n"},
	{"a MAC address with dashes",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, mac: 02-00-00-00-00-01}\n"),
		"f:7:39: mac: expected a MAC address such as 02:00:00:00:00:fe, found the "
		"value '02-00-00-00-00-01'\n"},
	{"a zone that is no name",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, zone: rack/1}\n"),
		"f:7:40: zone: expected a name of 1 to 255 bytes without '/' and control "
		"characters, found the value 'rack/1'\n"},
	{"a tunnel port without a tunnel that has one",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  tunnel_port: 6080\n"),
		"f:6:16: tunnel_port is for forward gue or vxlan, and this service has ipip; "
		"remove it\n"},
	{"a tunnel port of 0",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  forward: gue\n"
		      "  tunnel_port: 0\n"),
		"f:7:16: tunnel_port: expected a whole number from 1 to 65535, found the value "
		"'0'\n"},
	{"a vni for gue",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  forward: gue\n"
		      "  vni: 0\n"),
		"f:7:8: vni is for forward vxlan, and this service has gue; remove it\n"},
	{"a vni over 24 bits",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  forward: vxlan\n"
		      "  vni: 16777216\n"),
		"f:7:8: vni: expected a whole number from 0 to 16777215, found the value "
		"'16777216'\n"},
	{"carry with tcp",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  carry: [ipip]\n"),
		"f:6:10: carry is for protocol any or udp, and this service has tcp; remove "
		"it\n"},
	{"tunnels by protocol are no UDP",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: udp\n"
		      "  port: any\n"
		      "  carry: [gue, gre]\n"),
		"f:6:10: carry: ipip, ipv6 and gre are for protocol any, and this service has "
		"udp; remove them\n"},
	{"an unknown tunnel to carry",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: any\n"
		      "  port: any\n"
		      "  carry: [gree, 5]\n"),
		"f:6:11: carry: expected ipip, ipv6, gre, gue, vxlan or geneve, found the "
		"value 'gree'; did you mean gre?\n"
		"f:6:17: carry: expected ipip, ipv6, gre, gue, vxlan or geneve, found the "
		"value '5'\n"},
	{"a tunnel twice",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: any\n"
		      "  port: any\n"
		      "  carry: [ipip, 4]\n"),
		"f:6:17: carry: '4' is there already; remove one of them\n"},
	{"a time without a unit", BYTES("dataplane: {flow_timeout: {udp: 60}}\n"),
		"f:1:33: udp: expected a time with its unit (ns, us, ms, s, m, h or d) from "
		"1ms to 7d, such as 30s, found the value '60'\n"},
	{"a time too short", BYTES("dataplane: {flow_timeout: {udp: 999us}}\n"),
		"f:1:33: udp: expected a time with its unit (ns, us, ms, s, m, h or d) from "
		"1ms to 7d, such as 30s, found the value '999us'\n"},
	{"a time too long", BYTES("dataplane: {flow_timeout: {udp: 8d}}\n"),
		"f:1:33: udp: expected a time with its unit (ns, us, ms, s, m, h or d) from "
		"1ms to 7d, such as 30s, found the value '8d'\n"},
	{"a time over 64 bits", BYTES("dataplane: {flow_timeout: {udp: 99999999999999d}}\n"),
		"f:1:33: udp: expected a time with its unit (ns, us, ms, s, m, h or d) from "
		"1ms to 7d, such as 30s, found the value '99999999999999d'\n"},
	{"a time finer than a nanosecond",
		BYTES("dataplane: {flow_timeout: {tcp: 1.0000000001s}}\n"),
		"f:1:33: tcp: expected a time with its unit (ns, us, ms, s, m, h or d) from "
		"1ms to 7d, such as 30s, found the value '1.0000000001s'\n"},
	{"a time of two parts", BYTES("dataplane: {flow_timeout: {tcp: 1m30s}}\n"),
		"f:1:33: tcp: expected a time with its unit (ns, us, ms, s, m, h or d) from "
		"1ms to 7d, such as 30s, found the value '1m30s'\n"},
	{"no workers", BYTES("dataplane: {workers: 0}\n"),
		"f:1:22: workers: expected auto or a whole number from 1 to 127, found the "
		"value '0'\n"},
	{"too many workers", BYTES("dataplane: {workers: 128}\n"),
		"f:1:22: workers: expected auto or a whole number from 1 to 127, found the "
		"value '128'\n"},
	{"no flow entries", BYTES("dataplane: {flow_entries: 0}\n"),
		"f:1:27: flow_entries: expected a whole number from 1 to 1073741824, found the "
		"value '0'\n"},
	{"too many flow entries", BYTES("dataplane: {flow_entries: 1073741825}\n"),
		"f:1:27: flow_entries: expected a whole number from 1 to 1073741824, found the "
		"value '1073741825'\n"},
	{"an unknown kernel", BYTES("dataplane: {kernel: yes}\n"),
		"f:1:21: kernel: expected tap or none, found the value 'yes'\n"},
	{"an unknown idle", BYTES("dataplane: {idle: sleep}\n"),
		"f:1:19: idle: expected poll or adaptive, found the value 'sleep'\n"},
	{"a sleep that is too long", BYTES("dataplane: {idle_sleep: 11ms}\n"),
		"f:1:25: idle_sleep: expected a time with its unit (ns, us, ms, s, m, h or d) "
		"from 1us to 10ms, such as 30s, found the value '11ms'\n"},
	{"another word for true", BYTES("dataplane: {answer_arp: yes}\n"),
		"f:1:25: answer_arp: expected false or true, found the value 'yes'\n"},
	{"a port that answers nothing",
		BYTES("dataplane: {ports: [{name: p, device: d, answer_arp: }]}\n"),
		"f:1:54: answer_arp: expected false or true, found nothing\n"},
	{"metrics without a port", BYTES("control: {metrics: 127.0.0.1}\n"),
		"f:1:20: metrics: expected off or ADDRESS:PORT such as 127.0.0.1:9464 or "
		"\"[::1]:9464\", found the value '127.0.0.1'\n"},
	{"metrics of IPv6 without brackets", BYTES("control: {metrics: '::1:9464'}\n"),
		"f:1:20: metrics: expected off or ADDRESS:PORT such as 127.0.0.1:9464 or "
		"\"[::1]:9464\", found the value '::1:9464'\n"},
	{"metrics of a name", BYTES("control: {metrics: 'localhost:9464'}\n"),
		"f:1:20: metrics: expected off or ADDRESS:PORT such as 127.0.0.1:9464 or "
		"\"[::1]:9464\", found the value 'localhost:9464'\n"},
	{"metrics on port 0", BYTES("control: {metrics: '127.0.0.1:0'}\n"),
		"f:1:20: metrics: expected off or ADDRESS:PORT such as 127.0.0.1:9464 or "
		"\"[::1]:9464\", found the value '127.0.0.1:0'\n"},
	{"metrics of IPv4 in brackets", BYTES("control: {metrics: '[127.0.0.1]:9464'}\n"),
		"f:1:20: metrics: expected off or ADDRESS:PORT such as 127.0.0.1:9464 or "
		"\"[::1]:9464\", found the value '[127.0.0.1]:9464'\n"},
	{"an interface that is empty", BYTES("announce: {interface: ''}\n"),
		"f:1:23: interface: expected a text that is not empty, found the value ''\n"},
	{"an interface that is nothing", BYTES("announce: {interface: ~}\n"),
		"f:1:23: interface: expected a text that is not empty, found nothing\n"},
	{"an interface with a blank", BYTES("announce: {interface: shunt vips}\n"),
		"f:1:23: interface: expected off or a name of printable ASCII without blanks "
		"and any of /:,%=[, found 'shunt vips'\n"},
	{"an interface that the kernel would number", BYTES("announce: {interface: tun%d}\n"),
		"f:1:23: interface: expected off or a name of printable ASCII without blanks "
		"and any of /:,%=[, found 'tun%d'\n"},
	{"an interface of 16 bytes", BYTES("announce: {interface: shunt-vips-34567}\n"),
		"f:1:23: interface: expected off or a name of at most 15 bytes, found "
		"'shunt-vips-34567'\n"},
	{"an interface that is there already", BYTES("announce: {interface: lo}\n"),
		"f:1:23: interface: expected off or a name other than '.', '..', 'all', "
		"'default' and 'lo', found 'lo'\n"},
	{"an interface that is a port's twin",
		BYTES("dataplane: {ports: [{name: wan, device: d}]}\n"
		      "announce: {interface: wan}\n"),
		"f:2:23: interface: 'wan' is that of a port's twin; expected a name of its "
		"own, "
		"such as shunt-vips\n"},
	{"the table of the kernel's addresses", BYTES("announce: {interface: v, table: 255}\n"),
		"f:1:33: table: expected main or a whole number from 1 to 4294967295 other "
		"than 255, the kernel's own, found the value '255'\n"},
	{"a table of no number", BYTES("announce: {interface: v, table: local}\n"),
		"f:1:33: table: expected main or a whole number from 1 to 4294967295 other "
		"than 255, the kernel's own, found the value 'local'\n"},
	{"table 0", BYTES("announce: {interface: v, table: 0}\n"),
		"f:1:33: table: expected main or a whole number from 1 to 4294967295 other "
		"than 255, the kernel's own, found the value '0'\n"},
	{"a metric too high", BYTES("announce: {interface: v, metric: 4294967296}\n"),
		"f:1:34: metric: expected a whole number from 0 to 4294967295, found the value "
		"'4294967296'\n"},
	{"a withdrawal without a unit",
		BYTES("announce: {interface: v, withdraw_before_stop: 5}\n"),
		"f:1:48: withdraw_before_stop: expected a time with its unit (ns, us, ms, s, "
		"m, h or d) from 0s to 5m, such as 30s, found the value '5'\n"},
	{"a withdrawal too long",
		BYTES("announce: {interface: v, withdraw_before_stop: 301s}\n"),
		"f:1:48: withdraw_before_stop: expected a time with its unit (ns, us, ms, s, "
		"m, h or d) from 0s to 5m, such as 30s, found the value '301s'\n"},
	{"an unknown key of announce", BYTES("announce: {interface: v, metrik: 1}\n"),
		"f:1:26: unknown key 'metrik'; did you mean 'metric'?\n"},
	{"a default route announced in table main",
		BYTES("announce: {interface: v}\nservices:\n"
		      "- {name: a, address: 0.0.0.0/0, protocol: tcp, port: 1}\n"
		      "- {name: b, address: '::/0', protocol: tcp, port: 1}\n"),
		"f:3:22: address: announced in table main, a default route would take what the "
		"balancer itself sends; expected a longer prefix, or an announce.table of its "
		"own\n"
		"f:4:22: address: announced in table main, a default route would take what the "
		"balancer itself sends; expected a longer prefix, or an announce.table of its "
		"own\n"},
	{"an empty socket", BYTES("control: {socket: ''}\n"),
		"f:1:19: socket: expected a path of 1 to 107 bytes, found the value ''\n"},
	{"a socket longer than an address holds",
		BYTES("control: {socket: "
		      "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\n"),
		"f:1:19: socket: expected a path of 1 to 107 bytes, found the value "
		"'/"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"a...'\n"},
	{"a root that is a list", BYTES("- services\n"),
		"f:1:1: expected a mapping with the keys dataplane, control, announce, "
		"services and "
		"hash_seed, found a list\n"},
	{"an empty file", BYTES(""),
		"f:1:1: nothing is in it; write 'services: []' for a configuration without "
		"services\n"},
	{"comments alone",
		BYTES("# nothing\n"
		      "\n"),
		"f:1:1: nothing is in it; write 'services: []' for a configuration without "
		"services\n"},
	{"a null document",
		BYTES("---\n"
		      "~\n"),
		"f:1:1: nothing is in it; write 'services: []' for a configuration without "
		"services\n"},
	{"a tab for an indent",
		BYTES("dataplane:\n"
		      "\011workers: 1\n"),
		"f:2:1: a tab where a value or an indent begins; use spaces\n"},
	{"a second document",
		BYTES("services: []\n"
		      "---\n"
		      "services: []\n"),
		"f:2:1: a second document begins; a file holds one, so remove '---'\n"},
	{"an anchor and its alias",
		BYTES("dataplane: &d {}\n"
		      "control: *d\n"),
		"f:1:12: anchors (&d) are not taken; write the value out where it is used\n"
		"f:2:10: aliases (*d) are not taken; write the value out\n"},
	{"a tag", BYTES("hash_seed: !!int 5\n"),
		"f:1:12: tags (!) are not taken; write the value alone\n"},
	{"a merge key",
		BYTES("dataplane:\n"
		      "  <<: {workers: 1}\n"),
		"f:2:3: merge keys (<<) are not taken; write the keys out\n"},
	{"a key that is a list",
		BYTES("? [a]\n"
		      ": b\n"),
		"f:1:3: a key has to be a word, found a list\n"},
	{"a NUL in a text", BYTES("control: {socket: \"a\\0b\"}\n"),
		"f:1:19: a text with a NUL character (\\0) in it; leave it out\n"},
	{"a NUL byte",
		BYTES("services: []\n"
		      "\000\n"),
		"f:2:1: the byte 0x00 cannot stand here; expected UTF-8 text without control "
		"characters\n"},
	{"bytes that are not UTF-8",
		BYTES("services:\n"
		      "- name: caf\351\n"),
		"f:2:12: the byte 0xe9 cannot stand here; expected UTF-8 text without control "
		"characters\n"},
	{"a line end of YAML 1.1 and nobody else",
		BYTES("services:\n"
		      "- name: a\302\205b\n"),
		"f:2:10: the character U+0085 cannot stand here, as it is a control "
		"character; expected text without it\n"},
	{"an override of direction",
		BYTES("# a\n"
		      "# \342\200\256\n"),
		"f:2:3: the character U+202E cannot stand here, as it changes the direction "
		"of text; expected text without it\n"},
	{"a byte order mark in the middle", BYTES("# \357\273\277\n"),
		"f:1:3: the character U+FEFF cannot stand here, as it is a byte order mark, "
		"which stands at a file's beginning; expected text without it\n"},
	{"no character", BYTES("# \357\277\277\n"),
		"f:1:3: the character U+FFFF cannot stand here, as it is none of Unicode's; "
		"expected text without it\n"},
	{"UTF-8 longer than needed", BYTES("# \300\257\n"),
		"f:1:3: the byte 0xc0 cannot stand here; expected UTF-8 text without control "
		"characters\n"},
	{"a surrogate in UTF-8", BYTES("# \355\240\200\n"),
		"f:1:3: the byte 0xed cannot stand here; expected UTF-8 text without control "
		"characters\n"},
	{"UTF-16",
		BYTES("\377\376s\000e\000r\000v\000i\000c\000e\000s\000:\000 \000[\000]\000\n"
		      "\000"),
		"f:1:1: the byte 0xff cannot stand here; expected UTF-8 text without control "
		"characters\n"},
	{"33 levels",
		BYTES("services: "
		      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n"),
		"f:1:42: nested deeper than 32 levels; a configuration needs fewer than ten\n"},
	{"an unclosed bracket", BYTES("services: [\n"),
		"f:2:1: not well-formed YAML: did not find expected node content while parsing "
		"a flow node\n"},
	{"an unclosed quote", BYTES("services: 'a\n"),
		"f:2:1: not well-formed YAML: found unexpected end of stream while scanning a "
		"quoted scalar; close the quote\n"},
	{"a key without a colon",
		BYTES("services: []\n"
		      "hash_seed\n"),
		"f:3:1: not well-formed YAML: could not find expected ':' while scanning a "
		"simple key; write KEY: VALUE, with a space after the colon\n"},
	{"a wrong indent",
		BYTES("services:\n"
		      "- name: a\n"
		      "   address: b\n"),
		"f:3:11: not well-formed YAML: mapping values are not allowed in this context; "
		"indent the keys of a mapping alike, and put quotes around a text with ': '\n"},
	{"a colon in a plain text", BYTES("services: a: b\n"),
		"f:1:12: not well-formed YAML: mapping values are not allowed in this context; "
		"indent the keys of a mapping alike, and put quotes around a text with ': '\n"},
	{"a warning beside an error",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 70000\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: 0}\n"),
		"f:5:9: port: expected any or a whole number from 1 to 65535, found the value "
		"'70000'\n"
		"f:2:3: warning: all backends have weight 0, so the service has none to send "
		"to; give one a weight from 1 to 65535\n"},
	{"an anchor beside other errors",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: &a 198.51.100.10/24\n"
		      "  protocol: tcp\n"
		      "  port: 99999\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: 80abc}\n"),
		"f:3:12: anchors (&a) are not taken; write the value out where it is used\n"
		"f:5:9: port: expected any or a whole number from 1 to 65535, found the value "
		"'99999'\n"
		"f:7:42: weight: expected a whole number from 0 to 65535, found the value "
		"'80abc'\n"
		"f:3:12: address: 198.51.100.10/24 has bits set after its prefix length; "
		"expected 198.51.100.0/24\n"},
	{"aliases of each kind beside another error",
		BYTES("services:\n"
		      "- name: *a\n"
		      "  address: *a\n"
		      "  protocol: *a\n"
		      "  port: *a\n"
		      "  table: *a\n"
		      "  backends: *a\n"
		      "- *a\n"
		      "control: *a\n"
		      "dataplane: {ports: *a, workers: *a, kernel: 5}\n"),
		"f:2:9: aliases (*a) are not taken; write the value out\n"
		"f:3:12: aliases (*a) are not taken; write the value out\n"
		"f:4:13: aliases (*a) are not taken; write the value out\n"
		"f:5:9: aliases (*a) are not taken; write the value out\n"
		"f:6:10: aliases (*a) are not taken; write the value out\n"
		"f:7:13: aliases (*a) are not taken; write the value out\n"
		"f:8:3: aliases (*a) are not taken; write the value out\n"
		"f:9:10: aliases (*a) are not taken; write the value out\n"
		"f:10:20: aliases (*a) are not taken; write the value out\n"
		"f:10:33: aliases (*a) are not taken; write the value out\n"
		"f:10:45: kernel: expected tap or none, found the value '5'\n"},
	{"a tag beside another error of its value", BYTES("hash_seed: !!int x\n"),
		"f:1:12: tags (!) are not taken; write the value alone\n"
		"f:1:12: hash_seed: expected a whole number from 0 to 18446744073709551615, "
		"found the value 'x'\n"},
	{"a merge key beside another error",
		BYTES("dataplane:\n"
		      "  <<: {workers: 1}\n"
		      "  kernel: 5\n"),
		"f:2:3: merge keys (<<) are not taken; write the keys out\n"
		"f:3:11: kernel: expected tap or none, found the value '5'\n"},
	{"a merge key in quotes is a key like others", BYTES("\"<<\": 1\n"),
		"f:1:1: unknown key '<<'; the keys here are dataplane, control, announce, "
		"services and "
		"hash_seed\n"},
	{"a NUL in a text and in a key beside another error",
		BYTES("control: {socket: \"a\\0b\", \"metrics\\0x\": off}\n"
		      "hash_seed: x\n"),
		"f:1:19: a text with a NUL character (\\0) in it; leave it out\n"
		"f:1:27: a text with a NUL character (\\0) in it; leave it out\n"
		"f:2:12: hash_seed: expected a whole number from 0 to 18446744073709551615, "
		"found the value 'x'\n"},
	{"what forward rules out, beside other errors of tunnels",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  affinity: none\n"
		      "  tunnel_port: 0\n"
		      "  vni: 16777216\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, mac: \"02:00:00:00:00:01\"}\n"),
		"f:6:13: affinity: expected 5-tuple, source-ip, source-ip-port or quic, found "
		"the value 'none'\n"
		"f:7:16: tunnel_port: expected a whole number from 1 to 65535, found the value "
		"'0'\n"
		"f:8:8: vni: expected a whole number from 0 to 16777215, found the value "
		"'16777216'\n"
		"f:7:16: tunnel_port is for forward gue or vxlan, and this service has ipip; "
		"remove it\n"
		"f:8:8: vni is for forward vxlan, and this service has ipip; remove it\n"
		"f:10:39: mac is for forward l2 or vxlan, and this service has ipip; remove "
		"it\n"},
	{"with forward unknown, what it rules out is not",
		BYTES("services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 443\n"
		      "  forward: nat\n"
		      "  tunnel_port: 1\n"
		      "  vni: 1\n"),
		"f:6:12: forward: expected l2, ipip, gre, gue or vxlan, found the value "
		"'nat'\n"},
	{"a time finer than a nanosecond by two digits",
		BYTES("dataplane: {flow_timeout: {tcp: 1.00000000001s}}\n"),
		"f:1:33: tcp: expected a time with its unit (ns, us, ms, s, m, h or d) from "
		"1ms to 7d, such as 30s, found the value '1.00000000001s'\n"},
	{"an unknown word for echo",
		BYTES("services:\n"
		      "- {name: w, address: 192.0.2.1, protocol: tcp, port: 1,\n"
		      "   echo: ignore}\n"),
		"f:3:10: echo: expected reply, forward or drop, found the value 'ignore'\n"},
	{"an unknown way to fragment",
		BYTES("services:\n"
		      "- {name: w, address: 192.0.2.1, protocol: tcp, port: 1,\n"
		      "   fragment: no}\n"),
		"f:3:14: fragment: expected inner, outer or drop, found the value 'no'\n"},
	{"outer fragments without an outer packet",
		BYTES("services:\n"
		      "- {name: w, address: 192.0.2.1, protocol: tcp, port: 1,\n"
		      "   forward: l2, fragment: outer}\n"),
		"f:3:27: fragment: outer is for tunnels, and this service has forward l2; "
		"expected "
		"inner or drop\n"},
	{"an MSS of 87",
		BYTES("services:\n"
		      "- {name: w, address: 192.0.2.1, protocol: tcp, port: 1,\n"
		      "   mss_clamp: 87}\n"),
		"f:3:15: mss_clamp: expected auto or a whole number from 88 to 65495, found "
		"the "
		"value '87'\n"},
	{"an MSS of 65496",
		BYTES("services:\n"
		      "- {name: w, address: 192.0.2.1, protocol: tcp, port: 1,\n"
		      "   mss_clamp: 65496}\n"),
		"f:3:15: mss_clamp: expected auto or a whole number from 88 to 65495, found "
		"the "
		"value '65496'\n"},
	{"an MSS of off",
		BYTES("services:\n"
		      "- {name: w, address: 192.0.2.1, protocol: tcp, port: 1,\n"
		      "   mss_clamp: off}\n"),
		"f:3:15: mss_clamp: expected auto or a whole number from 88 to 65495, found "
		"the "
		"value 'off'\n"},
	{"an MSS of 1400.5",
		BYTES("services:\n"
		      "- {name: w, address: 192.0.2.1, protocol: tcp, port: 1,\n"
		      "   mss_clamp: 1400.5}\n"),
		"f:3:15: mss_clamp: expected auto or a whole number from 88 to 65495, found "
		"the "
		"value '1400.5'\n"},
	{"an MSS of UDP",
		BYTES("services:\n"
		      "- {name: w, address: 192.0.2.1, protocol: udp, port: 1,\n"
		      "   mss_clamp: auto}\n"),
		"f:3:15: mss_clamp is for protocol tcp or any, and this service has udp; "
		"remove it\n"},
	{"an MSS of a protocol that is unknown",
		BYTES("services:\n"
		      "- {name: w, address: 192.0.2.1, protocol: sctp, port: 1,\n"
		      "   mss_clamp: auto}\n"),
		"f:2:43: protocol: expected tcp, udp or any, found the value 'sctp'\n"},
	{"a VLAN of 0", BYTES("dataplane: {ports: [{name: p, device: d, vlan: 0}]}\n"),
		"f:1:48: vlan: expected keep, none or a whole number from 1 to 4094, found the "
		"value '0'\n"},
	{"a VLAN of 4095", BYTES("dataplane: {ports: [{name: p, device: d, vlan: 4095}]}\n"),
		"f:1:48: vlan: expected keep, none or a whole number from 1 to 4094, found the "
		"value '4095'\n"},
	{"a VLAN that is a word",
		BYTES("dataplane: {ports: [{name: p, device: d, vlan: strip}]}\n"),
		"f:1:48: vlan: expected keep, none or a whole number from 1 to 4094, found the "
		"value 'strip'\n"},
	{"too few datagrams", BYTES("dataplane: {fragments: {datagrams: 63}}\n"),
		"f:1:36: datagrams: expected a whole number from 64 to 1048576, found the "
		"value "
		"'63'\n"},
	{"too many datagrams", BYTES("dataplane: {fragments: {datagrams: 1048577}}\n"),
		"f:1:36: datagrams: expected a whole number from 64 to 1048576, found the "
		"value "
		"'1048577'\n"},
	{"too little waiting", BYTES("dataplane: {fragments: {waiting: 15}}\n"),
		"f:1:34: waiting: expected a whole number from 16 to 65535, found the value "
		"'15'\n"},
	{"too much waiting", BYTES("dataplane: {fragments: {waiting: 65536}}\n"),
		"f:1:34: waiting: expected a whole number from 16 to 65535, found the value "
		"'65536'\n"},
	{"fragments that are a number", BYTES("dataplane: {fragments: 5}\n"),
		"f:1:24: expected a mapping with the keys datagrams and waiting, found the "
		"value '5'\n"},
	{"a handoff below its range", BYTES("dataplane: {handoff: 63}\n"),
		"f:1:22: handoff: expected a whole number from 64 to 65536, found the value "
		"'63'\n"},
	{"a handoff above its range", BYTES("dataplane: {handoff: 65537}\n"),
		"f:1:22: handoff: expected a whole number from 64 to 65536, found the value "
		"'65537'\n"},
	{"a handoff of no power of two", BYTES("dataplane: {handoff: 3000}\n"),
		"f:1:22: handoff: expected a power of two, and 3000 is none; the next is "
		"4096\n"},
	{"a handoff next to the largest", BYTES("dataplane: {handoff: 65535}\n"),
		"f:1:22: handoff: expected a power of two, and 65535 is none; the next is "
		"65536\n"},
	{"no replies", BYTES("dataplane: {replies: {total: 0}}\n"),
		"f:1:30: total: expected a whole number from 1 to 65536, found the value "
		"'0'\n"},
	{"too many replies", BYTES("dataplane: {replies: {source: 65537}}\n"),
		"f:1:31: source: expected a whole number from 1 to 65536, found the value "
		"'65537'\n"},
	{"replies by another name", BYTES("dataplane: {replies: {sources: 1}}\n"),
		"f:1:23: unknown key 'sources'; did you mean 'source'?\n"},
	{"backends at the balancer's own addresses",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - {name: wan, device: d, addresses: [192.0.2.9/24, "
		      "'2001:db8::9/64']}\n"
		      "  - {name: lan, device: e, addresses: [10.0.0.9/24]}\n"
		      "services:\n"
		      "- {name: w, address: 198.51.100.1, protocol: tcp, port: 1, backends: [\n"
		      "   {name: a, address: 10.0.0.9}, {name: b, address: 10.0.0.10},\n"
		      "   {name: c, address: '2001:db8::9'}]}\n"
		      "- {name: l, address: 198.51.100.2, protocol: tcp, port: 1, forward: "
		      "l2,\n"
		      "   backends: [{name: a, address: 192.0.2.9}]}\n"),
		"f:7:23: address: 10.0.0.9 is the balancer's own, of port 'lan'; expected "
		"another "
		"host's\n"
		"f:8:23: address: 2001:db8::9 is the balancer's own, of port 'wan'; expected "
		"another host's\n"
		"f:10:34: address: 192.0.2.9 is the balancer's own, of port 'wan'; expected "
		"another "
		"host's\n"},
	{"several errors in one run",
		BYTES("dataplane:\n"
		      "  ports:\n"
		      "  - name: wan\n"
		      "    device: d0\n"
		      "    mtu: 5\n"
		      "hash_sed: 1\n"
		      "services:\n"
		      "- name: web\n"
		      "  address: 198.51.100.10\n"
		      "  protocol: tcp\n"
		      "  port: 70000\n"
		      "  table: {size: 10}\n"
		      "  backends:\n"
		      "  - {name: a, address: 10.0.0.1, weight: 80abc}\n"
		      "  - {name: a, address: 224.0.0.1}\n"),
		"f:6:1: unknown key 'hash_sed'; did you mean 'hash_seed'?\n"
		"f:5:10: mtu: expected a whole number from 576 to 9216, found the value '5'\n"
		"f:11:9: port: expected any or a whole number from 1 to 65535, found the value "
		"'70000'\n"
		"f:14:42: weight: expected a whole number from 0 to 65535, found the value "
		"'80abc'\n"
		"f:15:24: address: expected a unicast address, found 224.0.0.1\n"
		"f:12:17: size: maglev needs a prime number, and 10 is none; the nearest above "
		"is 11\n"
		"f:14:24: address: no port has an IPv4 address to send to 10.0.0.1 from; add "
		"one to dataplane.ports[].addresses\n"
		"f:15:12: the name 'a' is taken by another backend of the service, on line 14; "
		"give each its own\n"},
};

/* Reads from the heap at exact length; what was said is the caller's to free. */
static int
read_text(const char *text, size_t n_bytes, struct cfg_model *out, char **messages)
{
	char *copy = malloc(n_bytes);
	size_t n_messages;
	FILE *to = open_memstream(messages, &n_messages);
	int ret;

	assert_non_null(to);
	assert_true(copy != NULL || n_bytes == 0);
	if (n_bytes != 0)
		memcpy(copy, text, n_bytes);
	ret = cfg_read_text_model("f", copy, n_bytes, to, out);
	assert_int_equal(fclose(to), 0);
	free(copy);
	return ret;
}

static void
test_bad_files_say_where_and_what(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_files) / sizeof(bad_files[0]); i++) {
		struct cfg_model model;
		char *messages;
		const int ret =
			read_text(bad_files[i].text, bad_files[i].n_bytes, &model, &messages);

		EXPECT(ret == -EINVAL, "%s: returns %d", bad_files[i].what, ret);
		EXPECT(strcmp(messages, bad_files[i].messages) == 0, "%s: said\n%sexpected\n%s",
			bad_files[i].what, messages, bad_files[i].messages);
		free(messages);
	}
}

static void
read_good(const char *text, const char *messages, struct cfg_model *out)
{
	char *said;
	const int ret = read_text(text, strlen(text), out, &said);

	EXPECT(ret == 0, "%s: returns %d and says %s", text, ret, said);
	EXPECT(strcmp(said, messages) == 0, "%s: says %s", text, said);
	free(said);
}

/* Each of these says nothing, so all of them mean the defaults. */
static void
test_absent_and_empty_sections_mean_defaults(void **state)
{
	static const char *const texts[] = {
		"services: []\n",
		"{}\n",
		"services:\n",
		"\xef\xbb\xbfservices:\r\n",
		"--- {}\n...\n",
		"dataplane:\ncontrol:\nservices: ~\n",
		"dataplane: {ports: , flow_timeout: }\ncontrol: {}\nhash_seed: 0\n",
		"dataplane: {ports: [], flow_timeout: {}, workers: auto}\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct cfg_model defaults;
		struct cfg_model model;

		cfg_model_init(&defaults);
		read_good(texts[i], "", &model);
		EXPECT(cfg_model_equal(&model, &defaults), "%s", texts[i]);
		cfg_model_fini(&model);
	}
}

static void
test_defaults_of_a_service(void **state)
{
	struct cfg_model model;
	const struct cfg_service *service;
	const struct cfg_backend *backend;

	(void)state;
	read_good("services:\n- {name: 1, address: 192.0.2.1, protocol: any, port: any,\n"
		  "   backends: [{name: no, address: '2001:db8::1'}]}\n",
		"", &model);
	assert_int_equal(model.n_services, 1);
	service = &model.services[0];
	assert_string_equal(service->name, "1");
	assert_int_equal(service->address.n_bits, 128);
	assert_int_equal(service->protocol, CFG_PROTOCOL_ANY);
	assert_int_equal(service->port, 0);
	assert_int_equal(service->algorithm, CFG_MAGLEV);
	assert_int_equal(service->n_slots, 65537);
	assert_int_equal(service->affinity, CFG_AFFINITY_5_TUPLE);
	assert_int_equal(service->forward, CFG_FORWARD_IPIP);
	assert_int_equal(service->tunnel_port, 0);
	assert_int_equal(service->vni, 0);
	assert_int_equal(service->carry, 0);
	assert_int_equal(service->echo, CFG_ECHO_REPLY);
	assert_int_equal(service->fragment, CFG_FRAGMENT_INNER);
	assert_int_equal(service->mss_clamp, 0);
	assert_int_equal(service->n_quic, 0);
	assert_int_equal(service->pos.line, 2);
	assert_int_equal(service->pos.column, 3);
	assert_int_equal(service->n_backends, 1);
	backend = &service->backends[0];
	assert_string_equal(backend->name, "no");
	assert_int_equal(backend->weight, 100);
	assert_int_equal(backend->state, CFG_UP);
	assert_false(backend->has_mac);
	assert_null(backend->zone);
	assert_int_equal(backend->n_quic_ids, 0);
	assert_int_equal(backend->bad, 0);
	cfg_model_fini(&model);
}

static void
test_every_key_is_read(void **state)
{
	static const char text[] =
		"hash_seed: 18446744073709551615\n"
		"control: {socket: /run/s, metrics: off}\n"
		"announce: {interface: vips, table: 4294967295, metric: 4294967295,\n"
		"  withdraw_before_stop: 5m}\n"
		"dataplane:\n"
		"  workers: 127\n"
		"  kernel: none\n"
		"  idle: adaptive\n"
		"  idle_sleep: 10ms\n"
		"  flow_entries: 1073741824\n"
		"  flow_timeout: {tcp_syn: 1.5s, tcp: 7d, tcp_closing: 1ms, udp: 0.5m}\n"
		"  ports:\n"
		"  - {name: wan, device: 'net_null0', addresses: [192.0.2.1/24, '::2/0'],\n"
		"     next_hop: 02:00:00:00:00:fe, mtu: 1280}\n"
		"  - {name: lan, device: d, answer_arp: false, vlan: none}\n"
		"  - {name: dmz, device: e, vlan: 4094}\n"
		"  - {name: mgmt, device: f, vlan: keep}\n"
		"  answer_arp: true\n"
		"  fragments: {datagrams: 1048576, waiting: 65535}\n"
		"  handoff: 65536\n"
		"  replies: {total: 65536, source: 1}\n"
		"services:\n"
		"- {name: \"w\", address: '2001:db8::/64', protocol: udp, port: \"443\",\n"
		"   table: {algorithm: ring, size: 4096}, affinity: source-ip-port,\n"
		"   forward: vxlan, tunnel_port: 1, vni: 16777215, backends: [\n"
		"   {name: a, address: 10.0.0.1, weight: 65535, state: down,\n"
		"    mac: '02:00:00:00:00:01', zone: 'rack 1'}]}\n"
		"- {name: t, address: 203.0.113.0/24, protocol: any, port: any,\n"
		"   carry: [gre, 4, ipv6], echo: forward, fragment: drop, mss_clamp: 88}\n"
		"- {name: u, address: 203.0.113.0, protocol: tcp, port: 1, forward: l2,\n"
		"   echo: drop, fragment: inner, mss_clamp: auto}\n"
		"- {name: v, address: 203.0.113.1, protocol: tcp, port: 1, fragment: outer,\n"
		"   echo: reply, mss_clamp: 65495, table: {algorithm: stable}}\n"
		"- {name: x, address: 203.0.113.2, protocol: tcp, port: 1,\n"
		"   table: {overload: 0.5%, size: 251, algorithm: stable}}\n";
	const struct cfg_service *service;
	struct cfg_model model;

	(void)state;
	read_good(text,
		"f:11:17: warning: flow_timeout: beside 7d, 1ms may be up to 1073741 us "
		"longer; "
		"for "
		"less bring them nearer to each other\n",
		&model);
	assert_true(model.hash_seed == UINT64_MAX);
	assert_string_equal(model.control_socket, "/run/s");
	assert_null(model.control_metrics);
	assert_string_equal(model.announce.interface, "vips");
	assert_int_equal(model.announce.table, UINT32_MAX);
	assert_int_equal(model.announce.metric, UINT32_MAX);
	assert_int_equal(model.announce.withdraw_before_stop_ns, 300 * 1000000000ull);
	assert_string_equal(model.file, "f");
	assert_int_equal(model.dataplane.workers, 127);
	assert_int_equal(model.dataplane.kernel, CFG_KERNEL_NONE);
	assert_int_equal(model.dataplane.idle, CFG_IDLE_ADAPTIVE);
	assert_int_equal(model.dataplane.idle_sleep_ns, 10000000);
	assert_int_equal(model.dataplane.flow_entries, 1u << 30);
	assert_int_equal(model.dataplane.tcp_syn_ns, 1500000000);
	assert_int_equal(model.dataplane.tcp_ns, 604800 * 1000000000ull);
	assert_int_equal(model.dataplane.tcp_closing_ns, 1000000);
	assert_int_equal(model.dataplane.udp_ns, 30000000000);
	assert_true(model.dataplane.answer_arp);
	assert_int_equal(model.dataplane.fragment_datagrams, 1048576);
	assert_int_equal(model.dataplane.fragment_waiting, 65535);
	assert_int_equal(model.dataplane.handoff, 65536);
	assert_int_equal(model.dataplane.replies_total, 65536);
	assert_int_equal(model.dataplane.replies_source, 1);
	assert_int_equal(model.dataplane.n_ports, 4);
	assert_int_equal(model.dataplane.ports[0].vlan, CFG_VLAN_KEEP);
	assert_int_equal(model.dataplane.ports[1].vlan, CFG_VLAN_NONE);
	assert_int_equal(model.dataplane.ports[2].vlan, 4094);
	assert_int_equal(model.dataplane.ports[3].vlan, CFG_VLAN_KEEP);
	assert_true(model.dataplane.ports[0].answer_arp);
	assert_false(model.dataplane.ports[1].answer_arp);
	assert_string_equal(model.dataplane.ports[0].device, "net_null0");
	assert_int_equal(model.dataplane.ports[0].n_addresses, 2);
	assert_int_equal(model.dataplane.ports[0].addresses[0].n_bits, 120);
	assert_int_equal(model.dataplane.ports[0].addresses[0].addr.bytes[15], 1);
	assert_int_equal(model.dataplane.ports[0].next_hop.bytes[5], 0xfe);
	assert_int_equal(model.dataplane.ports[0].mtu, 1280);
	service = &model.services[0];
	assert_int_equal(service->port, 443);
	assert_int_equal(service->algorithm, CFG_RING);
	assert_int_equal(service->n_slots, 4096);
	assert_int_equal(service->overload, 0);
	assert_int_equal(service->affinity, CFG_AFFINITY_SOURCE_IP_PORT);
	assert_int_equal(service->tunnel_port, 1);
	assert_int_equal(service->vni, 16777215);
	assert_int_equal(service->backends[0].weight, 65535);
	assert_int_equal(service->backends[0].state, CFG_DOWN);
	assert_true(service->backends[0].has_mac);
	assert_string_equal(service->backends[0].zone, "rack 1");
	assert_int_equal(model.services[1].carry,
		CFG_CARRY_IPIP | CFG_CARRY_IPV6 | CFG_CARRY_GRE);
	assert_int_equal(model.services[1].echo, CFG_ECHO_FORWARD);
	assert_int_equal(model.services[1].fragment, CFG_FRAGMENT_DROP);
	assert_int_equal(model.services[1].mss_clamp, 88);
	assert_int_equal(model.services[2].echo, CFG_ECHO_DROP);
	assert_int_equal(model.services[2].mss_clamp, CFG_MSS_AUTO);
	assert_int_equal(model.services[3].fragment, CFG_FRAGMENT_OUTER);
	assert_int_equal(model.services[3].mss_clamp, 65495);
	assert_int_equal(model.services[3].algorithm, CFG_STABLE);
	assert_int_equal(model.services[3].n_slots, 65537);
	assert_int_equal(model.services[3].overload, 20);
	assert_int_equal(model.services[4].n_slots, 251);
	assert_int_equal(model.services[4].overload, 5);
	cfg_model_fini(&model);
}

static void
test_a_name_may_be_255_bytes_and_not_256(void **state)
{
	(void)state;
	for (size_t n = 255; n <= 256; n++) {
		char name[257];
		char text[512];
		struct cfg_model model;
		int ret;

		memset(name, 'x', n);
		name[n] = '\0';
		(void)snprintf(text, sizeof(text),
			"services: [{name: %s, address: 192.0.2.1, protocol: tcp, port: 1}]",
			name);
		ret = cfg_read_text_model("f", text, strlen(text), NULL, &model);
		assert_int_equal(ret, n == 255 ? 0 : -EINVAL);
		if (ret == 0)
			cfg_model_fini(&model);
	}
}

/* One over the limit of a service, told at the first that is too many. */
static void
test_65535_backends_and_no_more(void **state)
{
	static const unsigned int numbers[] = {65535, 65536, 70000};

	(void)state;
	for (size_t k = 0; k < LB_N_ELEMENTS(numbers); k++) {
		const unsigned int n = numbers[k];
		struct cfg_model model;
		char *text;
		char *messages;
		size_t n_bytes;
		FILE *to = open_memstream(&text, &n_bytes);
		int ret;

		assert_non_null(to);
		(void)fputs("services:\n- name: w\n  address: 192.0.2.1\n  protocol: tcp\n"
			    "  port: 1\n  backends:\n",
			to);
		for (unsigned int i = 0; i < n; i++)
			(void)fprintf(to, "  - {name: b%u, address: 10.%u.%u.%u}\n", i, i >> 16,
				i >> 8 & 255, i & 255);
		assert_int_equal(fclose(to), 0);
		ret = read_text(text, n_bytes, &model, &messages);
		assert_int_equal(ret, n == 65535 ? 0 : -EINVAL);
		assert_string_equal(messages,
			n == 65535 ? ""
				   : "f:65542:5: one backend too many; a service has at most "
				     "65535\n");
		if (ret == 0)
			cfg_model_fini(&model);
		free(messages);
		free(text);
	}
}

static void
test_a_backend_alone_with_further_keys(void **state)
{
	static const char *const extra[] = {"service", NULL};
	static const char good[] = "{service: web, name: web-9, address: 10.0.0.19, weight: 7}";
	struct cfg_errors errors = {.file = "e"};
	struct cfg_backend backend = {.weight = 1};
	struct cfg_node *root;

	(void)state;
	assert_int_equal(cfg_node_parse(good, strlen(good), &errors, &root), 0);
	assert_true(cfg_decode_backend(root, extra, &errors, &backend));
	assert_string_equal(backend.name, "web-9");
	assert_int_equal(backend.weight, 7);
	cfg_backend_fini(&backend);

	/* Without the further key it is unknown, and out stays as it is. */
	backend.weight = 1;
	assert_false(cfg_decode_backend(root, NULL, &errors, &backend));
	assert_int_equal(errors.n_errors, 1);
	assert_int_equal(backend.weight, 1);
	cfg_node_free(root);
}

static void
test_files_that_cannot_be_read(void **state)
{
	static const struct {
		const char *path;
		int ret;
		const char *messages;
	} rows[] = {
		{"/", -EIO, "/: it is a directory; expected a file\n"},
		{"/no/such/file", -ENOENT,
			"/no/such/file: it cannot be opened: No such file or directory\n"},
		{"/dev/null", -EINVAL,
			"/dev/null:1:1: nothing is in it; write 'services: []' for a "
			"configuration without services\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfg_model model;
		char *messages;
		size_t n;
		FILE *to = open_memstream(&messages, &n);

		assert_non_null(to);
		assert_int_equal(cfg_read_file(rows[i].path, to, &model), rows[i].ret);
		assert_int_equal(fclose(to), 0);
		assert_string_equal(messages, rows[i].messages);
		free(messages);
	}
}

/* An error each, and a list of what there is an error in. */
static const struct {
	const char *what;
	const char *head;
	const char *item;
	unsigned int n_of_all; /* errors of the list as a whole */
} long_lists[] = {
	{"services", "services:\n", "- 1\n", 0},
	{"services, after two of one name",
		"services:\n"
		"- {name: a, address: 192.0.2.1, protocol: tcp, port: 1}\n"
		"- {name: a, address: 192.0.2.2, protocol: tcp, port: 1}\n",
		"- 1\n", 1},
	{"backends",
		"services:\n- name: w\n  address: 192.0.2.1\n  protocol: tcp\n  port: 1\n"
		"  backends:\n",
		"  - 1\n", 0},
	{"what a service carries",
		"services:\n- name: w\n  address: 192.0.2.1\n  protocol: any\n  port: any\n"
		"  carry:\n",
		"  - 1\n", 0},
	{"ports", "dataplane:\n  ports:\n", "  - 1\n", 1},
	{"addresses of a port",
		"dataplane:\n  ports:\n  - name: a\n    device: b\n    addresses:\n",
		"    - 1\n", 0},
	{"keys", "", "x: 1\n", 0},
};

static char *
write_list(size_t row, unsigned int n_items, size_t *n_bytes)
{
	char *text;
	FILE *to = open_memstream(&text, n_bytes);

	assert_non_null(to);
	(void)fputs(long_lists[row].head, to);
	for (unsigned int i = 0; i < n_items; i++)
		(void)fputs(long_lists[row].item, to);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void
test_a_thousand_errors_are_told(void **state)
{
	(void)state;
	for (size_t row = 0; row < LB_N_ELEMENTS(long_lists); row++) {
		for (unsigned int n = CFG_MESSAGES_MAX; n <= CFG_MESSAGES_MAX + 1; n++) {
			const unsigned int n_items = n - long_lists[row].n_of_all;
			struct cfg_model model;
			size_t n_bytes;
			char *text = write_list(row, n_items, &n_bytes);
			unsigned int n_lines = 0;
			char *messages;

			EXPECT(read_text(text, n_bytes, &model, &messages) == -EINVAL, "%s",
				long_lists[row].what);
			for (const char *at = messages; *at != '\0'; at++)
				n_lines += *at == '\n';
			EXPECT(n_lines == n, "%s: %u errors in %u lines", long_lists[row].what,
				n, n_lines);
			EXPECT((strstr(messages, "f: ... and more: 1000 errors are shown\n") !=
				       NULL) == (n > CFG_MESSAGES_MAX),
				"%s: %u errors say that there are more, or do not",
				long_lists[row].what, n);
			free(messages);
			free(text);
		}
	}
}

/* Where errors are written, and that reading is to stop with the first. */
struct listener {
	unsigned int n_told;
	atomic_bool stop;
};

static ssize_t
hear(void *cookie, const char *text, size_t n)
{
	struct listener *listener = cookie;

	for (size_t i = 0; i < n; i++)
		listener->n_told += text[i] == '\n';
	atomic_store(&listener->stop, true);
	return (ssize_t)n;
}

/* Between any two items, and without the checks that a whole model gets. */
static void
test_reading_is_given_up_between_items(void **state)
{
	(void)state;
	for (size_t row = 0; row < LB_N_ELEMENTS(long_lists); row++) {
		struct listener listener = {.stop = false};
		struct cfg_reader *reader = cfg_reader_create(false);
		struct cfg_model model;
		size_t n_bytes;
		char *text = write_list(row, 100, &n_bytes);
		FILE *from = fmemopen(text, n_bytes, "r");
		FILE *to = fopencookie(&listener, "w", (cookie_io_functions_t){.write = hear});

		assert_non_null(reader);
		assert_non_null(from);
		assert_non_null(to);
		(void)setvbuf(to, NULL, _IOLBF, 0);
		EXPECT(cfg_reader_read_stream(reader, "f", from, &listener.stop, to, &model) ==
				-EINVAL,
			"%s", long_lists[row].what);
		/* The error, and that it is given up. */
		EXPECT(listener.n_told == 2, "%s: %u lines", long_lists[row].what,
			listener.n_told);
		(void)fclose(to);
		(void)fclose(from);
		free(text);
		cfg_reader_destroy(reader);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files_say_where_and_what),
		cmocka_unit_test(test_absent_and_empty_sections_mean_defaults),
		cmocka_unit_test(test_defaults_of_a_service),
		cmocka_unit_test(test_every_key_is_read),
		cmocka_unit_test(test_a_name_may_be_255_bytes_and_not_256),
		cmocka_unit_test(test_65535_backends_and_no_more),
		cmocka_unit_test(test_a_backend_alone_with_further_keys),
		cmocka_unit_test(test_files_that_cannot_be_read),
		cmocka_unit_test(test_a_thousand_errors_are_told),
		cmocka_unit_test(test_reading_is_given_up_between_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
