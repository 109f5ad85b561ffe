/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_split.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "lb_bytes.h"
#include "lb_csum.h"

enum {
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	IPV6_BYTES_MAX = IPV6_BYTES + UINT16_MAX,
	FRAGMENT_BYTES = 8, /* IPv6's fragment header */
	UNIT_BYTES = 8,     /* fragment offsets count these */

	/* IPv4, by offset. */
	IPV4_TOTAL_BYTES = 2,
	IPV4_ID = 4,
	IPV4_FRAGMENT = 6,
	IPV4_CSUM = 10,
	IPV4_FRAGMENT_DF = 0x4000,
	IPV4_FRAGMENT_MF = 0x2000,
	IPV4_FRAGMENT_OFFSET = 0x1fff,
	IPV4_OPTION_END = 0,
	IPV4_OPTION_NOP = 1,
	IPV4_OPTION_COPIED = 0x80,

	/* IPv6, and its fragment header behind it, by offset. */
	IPV6_PAYLOAD_BYTES = 4,
	IPV6_NEXT_HEADER = 6,
	IPV6_FRAGMENT = IPV6_BYTES + 2,
	IPV6_ID = IPV6_BYTES + 4,
	IPV6_FRAGMENT_MORE = 0x0001,
};

static_assert(IPV6_BYTES + FRAGMENT_BYTES <= LB_SPLIT_HEADER_BYTES_MAX, "room for IPv6");
static_assert((LB_SPLIT_PIECES_MAX - 1) * UNIT_BYTES <= UINT16_MAX &&
		      LB_SPLIT_PIECES_MAX * UNIT_BYTES >= UINT16_MAX,
	"pieces of one unit each");

/* How many of the rest's bytes a piece takes: all, or whole units. */
static uint32_t
piece_bytes(const struct lb_split *split, const struct lb_split_header *header)
{
	const uint32_t rest = split->end - split->next;
	uint32_t space;

	if (split->room < header->n_bytes)
		return 0;
	space = split->room - header->n_bytes;
	return rest <= space ? rest : space - space % UNIT_BYTES;
}

/* Later headers are no longer than the first: what the first gets on with, they do too. */
static uint32_t
count_pieces(const struct lb_split *split)
{
	struct lb_split rest = *split;
	uint32_t n = 1;

	rest.next += piece_bytes(&rest, &rest.first);
	//@ loop variant LB_SPLIT_PIECES_MAX - n;
	while (rest.next < rest.end && n < LB_SPLIT_PIECES_MAX) {
		rest.next += piece_bytes(&rest, &rest.later);
		n++;
	}
	return n;
}

/* All but n_pieces is there. */
static int
finish(struct lb_split *split, struct lb_split *out)
{
	if (!split->is_whole && piece_bytes(split, &split->first) < UNIT_BYTES)
		return -EMSGSIZE;
	split->n_pieces = split->is_whole ? 1 : count_pieces(split);
	*out = *split;
	return 0;
}

/* The option's length at p, of n bytes that are left; 0 where the walk ends. */
static size_t
option_bytes(const uint8_t *p, size_t n)
{
	if (p[0] == IPV4_OPTION_END)
		return 0;
	if (p[0] == IPV4_OPTION_NOP)
		return 1;
	if (n < 2 || p[1] < 2 || p[1] > n)
		return 0;
	return p[1];
}

/* What later pieces have of the first's header: NOPs, too, are not to be copied. */
static void
copy_header(const struct lb_split_header *first, struct lb_split_header *later)
{
	const size_t end = first->n_bytes;
	size_t n_bytes = IPV4_BYTES;
	size_t n_left = 0; /* of an option */
	bool is_copied = false;

	memset(later->bytes, 0, sizeof(later->bytes)); /* option 0 is also the padding */
	memcpy(later->bytes, first->bytes, IPV4_BYTES);
	//@ loop variant end - at;
	for (size_t at = IPV4_BYTES; at < end; at++, n_left--) {
		if (n_left == 0) {
			n_left = option_bytes(first->bytes + at, end - at);
			if (n_left == 0)
				break;
			is_copied = (first->bytes[at] & IPV4_OPTION_COPIED) != 0;
		}
		if (is_copied && n_bytes < sizeof(later->bytes)) {
			later->bytes[n_bytes] = first->bytes[at];
			n_bytes++;
		}
	}
	later->n_bytes = (uint8_t)((n_bytes + 3) / 4 * 4);
	later->bytes[0] = (uint8_t)(0x40 | later->n_bytes / 4);
}

/* The header's lengths, once and for all. */
static int
take_v4(const uint8_t *ip, size_t ip_bytes, size_t room, struct lb_split *split)
{
	size_t header_bytes;

	if (ip_bytes < IPV4_BYTES)
		return -EINVAL;
	header_bytes = (size_t)(ip[0] & 0x0f) * 4;
	if (ip[0] >> 4 != 4 || header_bytes < IPV4_BYTES || header_bytes > ip_bytes ||
		lb_bytes_load16_be(ip + IPV4_TOTAL_BYTES) != ip_bytes)
		return -EINVAL;

	memcpy(split->first.bytes, ip, header_bytes);
	split->first.n_bytes = (uint8_t)header_bytes;
	split->fragment = lb_bytes_load16_be(ip + IPV4_FRAGMENT);
	split->room = (uint32_t)(room < UINT16_MAX ? room : UINT16_MAX);
	split->begin = (uint32_t)header_bytes;
	split->next = split->begin;
	split->end = (uint32_t)ip_bytes;
	split->is_whole = ip_bytes <= room;
	return 0;
}

int
lb_split_inner_v4(const uint8_t *ip, size_t ip_bytes, size_t room, struct lb_split *out)
{
	struct lb_split split = {0};
	const int ret = take_v4(ip, ip_bytes, room, &split);
	uint32_t offset;

	if (ret != 0)
		return ret;
	if (!split.is_whole && (split.fragment & IPV4_FRAGMENT_DF) != 0)
		return -EINVAL;
	/* Otherwise an offset would not fit its field, and go round to another's place. */
	offset = (uint32_t)(split.fragment & IPV4_FRAGMENT_OFFSET) * UNIT_BYTES;
	if (offset + (split.end - split.begin) > UINT16_MAX)
		return -EINVAL;

	copy_header(&split.first, &split.later);
	return finish(&split, out);
}

int
lb_split_outer_v4(const uint8_t *ip, size_t ip_bytes, uint16_t id, size_t room,
	struct lb_split *out)
{
	struct lb_split split = {0};
	const int ret = take_v4(ip, ip_bytes, room, &split);

	if (ret != 0)
		return ret;
	if ((split.fragment & (IPV4_FRAGMENT_MF | IPV4_FRAGMENT_OFFSET)) != 0)
		return -EINVAL;

	if (!split.is_whole) {
		split.fragment &= (uint16_t)~IPV4_FRAGMENT_DF;
		lb_bytes_store16_be(split.first.bytes + IPV4_ID, id);
	}
	copy_header(&split.first, &split.later);
	return finish(&split, out);
}

/* What may stand before a fragment header (RFC 8200, section 4.1), and that itself. */
static bool
is_per_fragment(uint8_t proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_DSTOPTS ||
	       proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT;
}

int
lb_split_outer_v6(const uint8_t *ip, size_t ip_bytes, uint32_t id, size_t room,
	struct lb_split *out)
{
	struct lb_split split = {
		.first.n_bytes = IPV6_BYTES,
		.begin = IPV6_BYTES,
		.next = IPV6_BYTES,
		.is_v6 = true,
		.is_whole = ip_bytes <= room,
	};
	uint8_t *p = split.first.bytes;

	if (ip_bytes < IPV6_BYTES || ip[0] >> 4 != 6 ||
		ip_bytes - IPV6_BYTES != lb_bytes_load16_be(ip + IPV6_PAYLOAD_BYTES) ||
		is_per_fragment(ip[IPV6_NEXT_HEADER]))
		return -EINVAL;

	memcpy(p, ip, IPV6_BYTES);
	split.end = (uint32_t)ip_bytes;
	split.room = (uint32_t)(room < IPV6_BYTES_MAX ? room : IPV6_BYTES_MAX);
	if (!split.is_whole) {
		p[IPV6_BYTES] = p[IPV6_NEXT_HEADER];
		p[IPV6_NEXT_HEADER] = IPPROTO_FRAGMENT;
		lb_bytes_store16_be(p + IPV6_ID, id >> 16);
		lb_bytes_store16_be(p + IPV6_ID + 2, id & 0xffff);
		split.first.n_bytes = IPV6_BYTES + FRAGMENT_BYTES;
	}
	split.later = split.first;
	return finish(&split, out);
}

static void
fill_v4(const struct lb_split *split, struct lb_split_piece *piece, bool is_last)
{
	const uint32_t n_units = (piece->payload_offset - split->begin) / UNIT_BYTES;
	uint8_t *p = piece->header.bytes;
	uint32_t fragment = split->fragment + n_units;
	uint16_t csum;

	if (!is_last)
		fragment |= IPV4_FRAGMENT_MF; /* the last has it where the packet had it */
	lb_bytes_store16_be(p + IPV4_TOTAL_BYTES, piece->header.n_bytes + piece->payload_bytes);
	lb_bytes_store16_be(p + IPV4_FRAGMENT, fragment);
	lb_bytes_store16_be(p + IPV4_CSUM, 0);
	csum = lb_csum_finish(lb_csum_add(0, p, piece->header.n_bytes));
	memcpy(p + IPV4_CSUM, &csum, sizeof(csum));
}

static void
fill_v6(const struct lb_split *split, struct lb_split_piece *piece, bool is_last)
{
	const uint32_t offset = piece->payload_offset - split->begin;
	uint8_t *p = piece->header.bytes;

	lb_bytes_store16_be(p + IPV6_PAYLOAD_BYTES, FRAGMENT_BYTES + piece->payload_bytes);
	/* The offset's units are of 8 bytes, and its field begins at bit 3. */
	lb_bytes_store16_be(p + IPV6_FRAGMENT, offset | (is_last ? 0 : IPV6_FRAGMENT_MORE));
}

bool
lb_split_next(struct lb_split *split, struct lb_split_piece *out)
{
	const bool is_first = split->next == split->begin;
	const struct lb_split_header *header = is_first ? &split->first : &split->later;
	bool is_last;

	if (split->next > split->end)
		return false;

	out->header = *header;
	out->payload_offset = split->next;
	out->payload_bytes = (uint16_t)piece_bytes(split, header);
	split->next += out->payload_bytes;
	is_last = split->next == split->end;
	if (is_last)
		split->next = split->end + 1;

	if (split->is_whole)
		return true;
	if (split->is_v6)
		fill_v6(split, out, is_last);
	else
		fill_v4(split, out, is_last);
	return true;
}
