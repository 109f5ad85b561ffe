/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any IP header through the planner, and its pieces held against what the header said; any TCP
 * header through the clamp.
 *
 * Input: a byte, of which the low two bits say what is done (see enum) and the top one that the
 * packet is as long as its header says rather than as the input; two bytes, big endian, of room
 * or MSS; then the packet.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz_require.h"
#include "lb_mss.h"
#include "lb_split.h"

enum { INNER_V4, OUTER_V4, OUTER_V6, MSS };

#define ID 0xdeadbeefu

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint8_t *
copy(const uint8_t *bytes, size_t n)
{
	uint8_t *p = exact(n);

	memcpy(p, bytes, n);
	return p;
}

/* What a piece has to be of the packet: ip is its header. */
static void
check_v4(const uint8_t *ip, const struct lb_split_piece *piece, bool is_outer, bool is_last)
{
	const uint8_t *p = piece->header.bytes;
	const unsigned int was = get16(ip + 6) & (is_outer ? ~0x4000u : ~0u);
	const unsigned int n_before = piece->payload_offset - (ip[0] & 0x0fu) * 4;
	const unsigned int offset = (was & 0x1fff) * 8 + n_before;

	require(piece->header.n_bytes == (p[0] & 0x0f) * 4, "IPv4: header length");
	require(p[0] >> 4 == 4 && p[0] <= ip[0], "IPv4: a longer header");
	require(plain_sum(0, p, piece->header.n_bytes) == 0xffff, "IPv4: header checksum");
	require(get16(p + 2) == piece->header.n_bytes + piece->payload_bytes, "IPv4: length");
	require((get16(p + 6) & 0x1fff) * 8 == offset, "IPv4: offset");
	require((get16(p + 6) & 0xe000) == ((was & 0xe000) | (is_last ? 0u : 0x2000u)),
		"IPv4: flags");
	require(get16(p + 4) == (is_outer ? (ID & 0xffff) : get16(ip + 4)), "IPv4: id");
	require(p[1] == ip[1] && memcmp(p + 8, ip + 8, 2) == 0 &&
			memcmp(p + 12, ip + 12, 8) == 0,
		"IPv4: another header");
	if (n_before == 0)
		require(memcmp(p + 20, ip + 20, piece->header.n_bytes - 20u) == 0,
			"IPv4: other options");
}

static void
check_v6(const uint8_t *ip, const struct lb_split_piece *piece, bool is_last)
{
	const uint8_t *p = piece->header.bytes;

	require(piece->header.n_bytes == 48, "IPv6: header length");
	require(get16(p + 4) == 8u + piece->payload_bytes, "IPv6: payload length");
	require(memcmp(p, ip, 4) == 0 && memcmp(p + 7, ip + 7, 33) == 0, "IPv6: header");
	require(p[6] == 44 && p[40] == ip[6] && p[41] == 0, "IPv6: next header");
	require(get16(p + 42) == (piece->payload_offset - 40u) + (is_last ? 0u : 1u),
		"IPv6: offset");
	require(((uint32_t)get16(p + 44) << 16 | get16(p + 46)) == ID, "IPv6: id");
}

static void
check_pieces(struct lb_split *split, int what, const uint8_t *ip, size_t ip_bytes, size_t room)
{
	const bool is_whole = ip_bytes <= room;
	const uint32_t n_pieces = split->n_pieces;
	size_t next = what == OUTER_V6 ? 40 : (size_t)(ip[0] & 0x0f) * 4;
	struct lb_split_piece piece;
	uint32_t n = 0;

	for (; lb_split_next(split, &piece); n++) {
		const bool is_last = n + 1 == n_pieces;

		require(n < n_pieces, "more pieces than planned");
		require(piece.payload_offset == next, "a gap");
		require(is_last || (piece.payload_bytes > 0 && piece.payload_bytes % 8 == 0),
			"no whole units");
		require((size_t)piece.header.n_bytes + piece.payload_bytes <= room,
			"a piece that does not fit");
		next += piece.payload_bytes;
		if (is_whole)
			require(memcmp(piece.header.bytes, ip, piece.header.n_bytes) == 0,
				"a header changed for nothing");
		else if (what == OUTER_V6)
			check_v6(ip, &piece, is_last);
		else
			check_v4(ip, &piece, what == OUTER_V4, is_last);
	}
	require(n == n_pieces && n <= LB_SPLIT_PIECES_MAX, "fewer pieces than planned");
	require(next == ip_bytes, "not the whole packet");
	require(!is_whole || n == 1, "what fits was split");
}

static void
split_and_check(int what, const uint8_t *ip, size_t ip_bytes, size_t room)
{
	struct lb_split split;
	int ret;

	if (what == INNER_V4)
		ret = lb_split_inner_v4(ip, ip_bytes, room, &split);
	else if (what == OUTER_V4)
		ret = lb_split_outer_v4(ip, ip_bytes, ID & 0xffff, room, &split);
	else
		ret = lb_split_outer_v6(ip, ip_bytes, ID, room, &split);
	if (ret == 0)
		check_pieces(&split, what, ip, ip_bytes, room);
}

static void
clamp_and_check(const uint8_t *before, size_t n, uint16_t mss)
{
	uint8_t *tcp = copy(before, n);
	size_t n_header;

	if (!lb_mss_clamp(tcp, n, mss)) {
		require(memcmp(tcp, before, n) == 0, "MSS: changed all the same");
		free(tcp);
		return;
	}
	n_header = (size_t)(before[12] >> 4) * 4;
	require(n_header > 20 && n_header <= n, "MSS: no options");
	require(plain_sum(0, tcp, n) == plain_sum(0, before, n), "MSS: another sum");
	require(memcmp(tcp, before, 16) == 0 && memcmp(tcp + 18, before + 18, 2) == 0 &&
			memcmp(tcp + n_header, before + n_header, n - n_header) == 0,
		"MSS: other bytes");
	require(!lb_mss_clamp(tcp, n, mss), "MSS: once was not enough");
	free(tcp);
}

static size_t
header_bytes(int what, const uint8_t *ip)
{
	const size_t n = (size_t)(ip[0] & 0x0f) * 4;

	if (what == OUTER_V6)
		return 40;
	return n < 20 ? 20 : n;
}

/* The length that the header says, where n bytes have one. */
static size_t
said_bytes(int what, const uint8_t *ip, size_t n)
{
	if (n == 0 || n < header_bytes(what, ip))
		return n;
	return what == OUTER_V6 ? 40 + get16(ip + 4) : get16(ip + 2);
}

/* Of the packet no more is there than may be read. */
static uint8_t *
exact_header(int what, const uint8_t *ip, size_t ip_bytes)
{
	const size_t n = ip_bytes == 0 ? 0 : header_bytes(what, ip);

	return copy(ip, n < ip_bytes ? n : ip_bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *header;
	size_t ip_bytes;
	int what;

	if (n < 3)
		return 0;
	what = data[0] & 3;
	if (what == MSS) {
		clamp_and_check(data + 3, n - 3, (uint16_t)get16(data + 1));
		return 0;
	}
	ip_bytes = (data[0] & 0x80) != 0 ? said_bytes(what, data + 3, n - 3) : n - 3;
	header = exact_header(what, data + 3, ip_bytes);
	split_and_check(what, header, ip_bytes, get16(data + 1));
	free(header);
	return 0;
}
