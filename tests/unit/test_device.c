/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <string.h>

#include "lb_compiler.h"
#include "lb_device.h"

static void
test_kinds(void **state)
{
	static const struct {
		const char *device;
		bool is_pci;
		bool is_packet_socket;
	} rows[] = {
		{"0000:03:00.0", true, false},
		{"03:00.0,x=1", true, false},
		{"pci:0000:03:00.0", true, false},
		{"net_null0", false, false},
		{"net_pcap,iface=a:b", false, false},
		{"eth_x,iface=a:b", false, false},
		{"net_af_xdp,iface=eth0", false, false},
		{"net_af_packet", false, true},
		{"net_af_packet7,iface=eth0", false, true},
		{"eth_af_packet,iface=eth0", false, true},
		{"", false, false},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		EXPECT(lb_device_is_pci(rows[i].device) == rows[i].is_pci, "%s",
			rows[i].device);
		EXPECT(lb_device_is_packet_socket(rows[i].device) == rows[i].is_packet_socket,
			"%s", rows[i].device);
	}
}

static void
test_two_that_are_one(void **state)
{
	static const struct {
		const char *what;
		const char *a;
		const char *b;
		bool is_same;
	} rows[] = {
		{"a PCI address", "0000:03:00.0", "0000:03:00.0", true},
		{"its domain left out", "0000:03:00.0", "03:00.0", true},
		{"its bus named", "pci:0000:03:00.0", "03:00.0", true},
		{"in other letters", "0000:0A:00.0", "0000:0a:00.0", true},
		{"with arguments", "0000:03:00.0,x=1", "0000:03:00.0", true},
		{"another function", "0000:03:00.0", "0000:03:00.1", false},
		{"another domain", "0001:03:00.0", "0000:03:00.0", false},
		{"a PCI address and a vdev", "0000:03:00.0", "net_null", false},
		{"an interface", "net_af_packet,iface=a0", "net_af_packet,iface=a0", true},
		{"by two drivers", "net_af_packet,iface=a0", "net_af_xdp0,iface=a0", true},
		{"with more arguments", "net_af_xdp,queue_count=2,iface=a0,x=1",
			"net_af_xdp,iface=a0", true},
		{"another interface", "net_af_packet,iface=a0", "net_af_packet,iface=a01",
			false},
		{"an argument that ends alike", "net_pcap,rx_iface=a0", "net_pcap,tx_iface=a0",
			false},
		{"a driver, for which the EAL gets two names", "net_null", "net_null", false},
		{"a driver that ends in a letter", "net_ring,x=1", "net_ring", false},
		{"a vdev's full name", "net_null0", "net_null0,size=64", true},
		{"two names", "net_null0", "net_null1", false},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		EXPECT(lb_device_is_same(rows[i].a, rows[i].b) == rows[i].is_same, "%s",
			rows[i].what);
		EXPECT(lb_device_is_same(rows[i].b, rows[i].a) == rows[i].is_same,
			"%s, the other way round", rows[i].what);
	}
}

static void
test_an_argument_is_found(void **state)
{
	static const struct {
		const char *device;
		const char *value;
	} rows[] = {
		{"net_af_packet", ""},
		{"net_af_packet,iface=eth0", "eth0"},
		{"net_af_packet,qpairs=2,iface=eth0,x=1", "eth0"},
		{"net_af_packet,iface=", ""},
		{"net_pcap,rx_iface=eth0", ""},
		{"net_af_packet,iface=a-very-long-name", "a-very-"},
	};
	char value[8];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		lb_device_find_argument(rows[i].device, "iface", value, sizeof(value));
		EXPECT(strcmp(value, rows[i].value) == 0, "%s: '%s'", rows[i].device, value);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_two_that_are_one),
		cmocka_unit_test(test_an_argument_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
