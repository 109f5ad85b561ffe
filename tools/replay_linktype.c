/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_linktype.h"

#include <pcap/pcap.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* https://www.tcpdump.org/linktypes.html */
enum {
	LINKTYPE_NULL = 0,
	LINKTYPE_ETHERNET = 1,
	LINKTYPE_RAW_BSD = 12,
	LINKTYPE_RAW_OPENBSD = 14,
	LINKTYPE_RAW = 101,
	LINKTYPE_LOOP = 108,
	LINKTYPE_LINUX_SLL = 113,
	LINKTYPE_IPV4 = 228,
	LINKTYPE_IPV6 = 229,
	LINKTYPE_LINUX_SLL2 = 276,
};

enum {
	ETHERTYPE_V4 = 0x0800,
	ETHERTYPE_V6 = 0x86dd,
	ETHERTYPE_UNKNOWN = 0xffff, /* reserved: the packet path hands it to the kernel */
	MAC_PAIR_BYTES = 12,
	NULL_HEADER_BYTES = 4,
	SLL_HEADER_BYTES = 16,
	SLL_PROTOCOL_OFFSET = 14,
	SLL2_HEADER_BYTES = 20,
};

/* Locally administered: no vendor's, so that a reader of the output sees they were made up. */
static const uint8_t mac_pair[MAC_PAIR_BYTES] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};

uint32_t
replay_linktype_normalise(uint32_t linktype)
{
	if (linktype == LINKTYPE_RAW_BSD || linktype == LINKTYPE_RAW_OPENBSD)
		return LINKTYPE_RAW;
	return linktype;
}

bool
replay_linktype_is_ethernet(uint32_t linktype)
{
	return linktype == LINKTYPE_ETHERNET;
}

bool
replay_linktype_is_supported(uint32_t linktype)
{
	switch (linktype) {
	case LINKTYPE_NULL:
	case LINKTYPE_ETHERNET:
	case LINKTYPE_RAW:
	case LINKTYPE_LOOP:
	case LINKTYPE_LINUX_SLL:
	case LINKTYPE_IPV4:
	case LINKTYPE_IPV6:
	case LINKTYPE_LINUX_SLL2:
		return true;
	default:
		return false;
	}
}

void
replay_linktype_name(uint32_t linktype, char name[REPLAY_LINKTYPE_NAME_BYTES])
{
	/* RAW is the one number of ours that libpcap knows under another. */
	const char *known = pcap_datalink_val_to_name(
		linktype == LINKTYPE_RAW ? DLT_RAW : (int)(linktype & 0x7fffffff));

	(void)snprintf(name, REPLAY_LINKTYPE_NAME_BYTES, "%s (linktype %u)",
		known != NULL ? known : "of no known name", linktype);
}

/*
 * The family is in the byte order of the machine that captured, which need not be that of
 * the file: all families fit a byte, so either order is told from the other.
 */
static uint16_t
ethertype_of_family(const uint8_t *bytes)
{
	uint32_t family = 0;

	if (bytes[1] == 0 && bytes[2] == 0 && (bytes[0] == 0 || bytes[3] == 0))
		family = (uint32_t)bytes[0] + bytes[3];
	switch (family) {
	case 2:
		return ETHERTYPE_V4;
	case 10: /* Linux */
	case 24: /* NetBSD, OpenBSD */
	case 28: /* FreeBSD */
	case 30: /* Darwin */
		return ETHERTYPE_V6;
	default:
		return ETHERTYPE_UNKNOWN;
	}
}

/* Anything but version 6 is for the packet path to judge as IPv4: bad_ip_version. */
static uint16_t
ethertype_of_version(const uint8_t *bytes)
{
	return bytes[0] >> 4 == 6 ? ETHERTYPE_V6 : ETHERTYPE_V4;
}

static uint16_t
load_be16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

/* Bytes of the link header, and in *needed how many must be there to know the EtherType. */
static uint32_t
link_header_bytes(uint32_t linktype, uint32_t *needed)
{
	uint32_t header = 0;

	if (linktype == LINKTYPE_NULL || linktype == LINKTYPE_LOOP)
		header = NULL_HEADER_BYTES;
	else if (linktype == LINKTYPE_LINUX_SLL)
		header = SLL_HEADER_BYTES;
	else if (linktype == LINKTYPE_LINUX_SLL2)
		header = SLL2_HEADER_BYTES;
	*needed = linktype == LINKTYPE_RAW ? 1 : header;
	return header;
}

static uint16_t
ethertype_of(uint32_t linktype, const uint8_t *bytes)
{
	switch (linktype) {
	case LINKTYPE_NULL:
	case LINKTYPE_LOOP:
		return ethertype_of_family(bytes);
	case LINKTYPE_LINUX_SLL:
		return load_be16(bytes + SLL_PROTOCOL_OFFSET);
	case LINKTYPE_LINUX_SLL2:
		return load_be16(bytes);
	case LINKTYPE_IPV4:
		return ETHERTYPE_V4;
	case LINKTYPE_IPV6:
		return ETHERTYPE_V6;
	default:
		return ethertype_of_version(bytes);
	}
}

/* The length on the wire is only the file's word for it: it must not wrap. */
static uint32_t
frame_wire_bytes(uint32_t wire_bytes, uint32_t header)
{
	uint64_t bytes = (uint64_t)wire_bytes - header + REPLAY_ETHERNET_BYTES;

	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

uint32_t
replay_linktype_convert(uint32_t linktype, const uint8_t *bytes, uint32_t n_bytes,
	uint32_t *wire_bytes, uint8_t *frame)
{
	uint32_t needed;
	uint32_t header = link_header_bytes(linktype, &needed);
	uint16_t ethertype;

	memcpy(frame, mac_pair, MAC_PAIR_BYTES);
	if (n_bytes < needed) {
		/* Cut by the capture if the wire had it; otherwise it never was there. */
		*wire_bytes = *wire_bytes >= needed ? frame_wire_bytes(*wire_bytes, header)
						    : MAC_PAIR_BYTES;
		return MAC_PAIR_BYTES;
	}
	ethertype = ethertype_of(linktype, bytes);
	frame[MAC_PAIR_BYTES] = (uint8_t)(ethertype >> 8);
	frame[MAC_PAIR_BYTES + 1] = (uint8_t)ethertype;
	memcpy(frame + REPLAY_ETHERNET_BYTES, bytes + header, n_bytes - header);
	*wire_bytes = frame_wire_bytes(*wire_bytes, header);
	return n_bytes - header + REPLAY_ETHERNET_BYTES;
}
