/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Writes tests/fuzz/corpus/packet, one file for each way through the parser. The only
 * argument is the folder. Run by hand, where a seed is added.
 */

#include <stdio.h>

#include "packet_builder.h"

static const struct {
	const char *name;
	unsigned int cut; /* bytes that the capture lacks */
	struct pb_layer layers[PB_LAYERS_MAX + 1];
} seeds[] = {
	{"arp", 0, {ETHER(), PAYLOAD(28), END}},
	{"v4-tcp-syn", 0, {ETHER(), IPV4(), TCP(.tcp_flags = 2), END}},
	{"v4-udp-odd", 0, {ETHER(), IPV4(.tos = 0xbb), UDP(), PAYLOAD(5), END}},
	{"v4-options", 0, {ETHER(), IPV4(.options = 40), UDP(), END}},
	{"v4-first-fragment", 0, {ETHER(), IPV4(.fragment = 0x2000), UDP(), PAYLOAD(16), END}},
	{"v4-later-fragment", 0,
		{ETHER(), IPV4(.fragment = 0x0003, .proto = 17), PAYLOAD(9), END}},
	{"v4-cut", 60, {ETHER(), IPV4(), TCP(), PAYLOAD(60), END}},
	{"v4-padded", 0, {ETHER(), IPV4(), UDP(), PADDING(18), END}},
	{"v4-echo", 0, {ETHER(), IPV4(), ICMP(.type = 8), PAYLOAD(56), END}},
	{"v4-echo-quoted", 0,
		{ETHER(), IPV4(), ICMP(.type = 11), IPV4(FROM_SERVICE_V4), ICMP(.type = 0),
			END}},
	{"v4-later-quoted", 0,
		{ETHER(), IPV4(), ICMP(.type = 3), IPV4(FROM_SERVICE_V4, .fragment = 9),
			UDP(FROM_SERVICE_L4), END}},
	{"v6-later-quoted", 0,
		{ETHER(), IPV6(), ICMPV6(.type = 2), IPV6(FROM_SERVICE_V6),
			EXTENSION(.type = 44, .fragment = 72), TCP(FROM_SERVICE_L4), END}},
	{"v4-unreachable", 0,
		{ETHER(), IPV4(), ICMP(.type = 3, .code = 4),
			IPV4(FROM_SERVICE_V4, .options = 8), TCP(FROM_SERVICE_L4, .n_bytes = 8),
			END}},
	{"v4-gre", 0, {ETHER(), IPV4(.proto = 47), PAYLOAD(24), END}},
	{"v4-sctp", 0, {ETHER(), IPV4(.proto = 132), PAYLOAD(12), END}},
	{"qinq-v4-tcp", 0,
		{ETHER(), VLAN(.tpid = 0x88a8, .vid = 7), VLAN(.vid = 100), IPV4(), TCP(),
			END}},
	{"three-tags", 0, {ETHER(), VLAN(), VLAN(), VLAN(), IPV4(), TCP(), END}},
	{"v6-tcp", 0, {ETHER(), IPV6(.tos = 0xb9), TCP(), PAYLOAD(6), END}},
	{"v6-extensions", 0,
		{ETHER(), IPV6(), EXTENSION(.type = 0), EXTENSION(.type = 60, .n_bytes = 16),
			EXTENSION(.type = 43), EXTENSION(.type = 51, .n_bytes = 28), UDP(),
			END}},
	{"v6-segments-left", 0,
		{ETHER(), IPV6(), EXTENSION(.type = 43, .segments_left = 1), UDP(), END}},
	{"v6-first-fragment", 0,
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 1), UDP(), PAYLOAD(8),
			END}},
	{"v6-later-fragment", 0,
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 9, .proto = 17), PAYLOAD(8),
			END}},
	{"v6-too-big", 0,
		{ETHER(), VLAN(), IPV6(), ICMPV6(.type = 2), IPV6(FROM_SERVICE_V6),
			EXTENSION(.type = 60), UDP(FROM_SERVICE_L4), END}},
};

static int
write_seed(const char *folder, size_t i)
{
	uint8_t frame[PB_FRAME_MAX];
	const uint8_t cut[2] = {(uint8_t)(seeds[i].cut >> 8), (uint8_t)seeds[i].cut};
	const size_t n = pb_build(seeds[i].layers, frame) - seeds[i].cut;
	char path[4096];
	FILE *file;
	int ret = 1;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, seeds[i].name);
	file = fopen(path, "wb");
	if (file == NULL)
		return 1;
	if (fwrite(cut, 1, sizeof(cut), file) == sizeof(cut) && fwrite(frame, 1, n, file) == n)
		ret = 0;
	if (fclose(file) != 0)
		ret = 1;
	return ret;
}

int
main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		if (write_seed(argv[1], i) != 0) {
			perror(seeds[i].name);
			return 1;
		}
	}
	return 0;
}
