/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_encap.h"
#include "lb_split.h"
#include "packet_builder.h"
#include "xrand.h"

#define LENGTH_MAX      9216u
#define BUFFER_BYTES    (65535u + 40u)
#define IPV4_HEADER_MAX 60u

enum mode { INNER_V4, OUTER_V4, OUTER_V6 };

/* Checksums are another program's. */
#define V4(tos, n, id, fragment, proto, csum)                                                  \
	(tos), (n) >> 8, (n)&0xff, (id) >> 8, (id)&0xff, (fragment) >> 8, (fragment)&0xff, 64, \
		(proto), (csum) >> 8, (csum)&0xff, 203, 0, 113, 7, 198, 51, 100, 10
#define V6(n, next)                                                                            \
	0x80, 0xab, 0xcd, (n) >> 8, (n)&0xff, (next), 64, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0,  \
		0, 0, 0, 0, 0, 0, 0, 1, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
		0x0b, 0x0b
#define FRAGMENT(proto, field) (proto), 0, (field) >> 8, (field)&0xff, 0xde, 0xad, 0xbe, 0xef

/* A NOP, a route to record (not copied), a loose route (copied), the end. */
#define OPTIONS 1, 7, 7, 4, 0, 0, 0, 0, 0x83, 7, 4, 10, 0, 0, 1, 0
#define COPIED  0x83, 7, 4, 10, 0, 0, 1, 0
/* One that is copied, one without a length, and one behind it. */
#define MALFORMED 0x82, 4, 9, 9, 0x85, 0, 0x88, 4, 1, 2, 0, 0
#define TOO_SHORT 0x82, 4, 9, 9, 0x85, 1, 0x88, 4, 1, 2, 0, 0

struct want {
	uint8_t n_header;
	uint8_t header[LB_SPLIT_HEADER_BYTES_MAX];
	uint32_t offset;
	uint16_t n;
};

static const struct {
	const char *what;
	enum mode mode;
	uint8_t header[LB_SPLIT_HEADER_BYTES_MAX];
	size_t ip_bytes;
	size_t room;
	uint32_t n_pieces;
	struct want pieces[3];
} rows[] = {
	{"RFC 791's example", INNER_V4, {0x45, V4(0, 472, 111, 0, 6, 0x126c)}, 472, 280, 2,
		{{20, {0x45, V4(0, 276, 111, 0x2000, 6, 0xf32f)}, 20, 256},
			{20, {0x45, V4(0, 216, 111, 32, 6, 0x134c)}, 276, 196}}},
	{"a packet that fits, with DF and a sum that nobody looks at", INNER_V4,
		{0x45, V4(0, 472, 111, 0x4000, 6, 0x1234)}, 472, 472, 1,
		{{20, {0x45, V4(0, 472, 111, 0x4000, 6, 0x1234)}, 20, 452}}},
	{"a header alone", INNER_V4, {0x45, V4(0, 20, 7, 0, 6, 0)}, 20, 20, 1,
		{{20, {0x45, V4(0, 20, 7, 0, 6, 0)}, 20, 0}}},
	{"one byte too many, and whole units but in the last", INNER_V4,
		{0x45, V4(0, 48, 7, 0, 6, 0)}, 48, 47, 2,
		{{20, {0x45, V4(0, 44, 7, 0x2000, 6, 0xf47f)}, 20, 24},
			{20, {0x45, V4(0, 24, 7, 3, 6, 0x1491)}, 44, 4}}},
	{"a last piece that is no whole unit and fills the room", INNER_V4,
		{0x45, V4(0, 71, 7, 0, 6, 0)}, 71, 47, 2,
		{{20, {0x45, V4(0, 44, 7, 0x2000, 6, 0xf47f)}, 20, 24},
			{20, {0x45, V4(0, 47, 7, 3, 6, 0x147a)}, 44, 27}}},
	{"a fragment from a datagram's middle", INNER_V4,
		{0x45, V4(0, 70, 7, 0x2000 | 100, 6, 0)}, 70, 48, 2,
		{{20, {0x45, V4(0, 44, 7, 0x2000 | 100, 6, 0xf41b)}, 20, 24},
			{20, {0x45, V4(0, 46, 7, 0x2000 | 103, 6, 0xf416)}, 44, 26}}},
	{"a datagram's last fragment", INNER_V4, {0x45, V4(0, 60, 7, 100, 6, 0)}, 60, 44, 2,
		{{20, {0x45, V4(0, 44, 7, 0x2000 | 100, 6, 0xf41b)}, 20, 24},
			{20, {0x45, V4(0, 36, 7, 103, 6, 0x1421)}, 44, 16}}},
	{"the reserved flag is kept", INNER_V4, {0x45, V4(0, 60, 7, 0x8000, 6, 0)}, 60, 44, 2,
		{{20, {0x45, V4(0, 44, 7, 0xa000, 6, 0x747f)}, 20, 24},
			{20, {0x45, V4(0, 36, 7, 0x8003, 6, 0x9484)}, 44, 16}}},
	{"a fragment that ends at 65535", INNER_V4, {0x45, V4(0, 35, 7, 8190, 6, 0)}, 35, 28, 2,
		{{20, {0x45, V4(0, 28, 7, 0x2000 | 8190, 6, 0xd491)}, 20, 8},
			{20, {0x45, V4(0, 27, 7, 8191, 6, 0xf491)}, 28, 7}}},
	{"options by their copied flag", INNER_V4, {0x49, V4(0, 76, 7, 0, 6, 0), OPTIONS}, 76,
		60, 2,
		{{36, {0x49, V4(0, 60, 7, 0x2000, 6, 0x6053), OPTIONS}, 36, 24},
			{28, {0x47, V4(0, 44, 7, 3, 6, 0x8a6b), COPIED}, 60, 16}}},
	{"options up to the one that is malformed", INNER_V4,
		{0x48, V4(0, 72, 7, 0, 6, 0), MALFORMED}, 72, 56, 2,
		{{32, {0x48, V4(0, 56, 7, 0x2000, 6, 0x585f), MALFORMED}, 32, 24},
			{24, {0x46, V4(0, 40, 7, 3, 6, 0x8873), 0x82, 4, 9, 9}, 56, 16}}},
	{"options up to one of a single byte", INNER_V4,
		{0x48, V4(0, 72, 7, 0, 6, 0), TOO_SHORT}, 72, 56, 2,
		{{32, {0x48, V4(0, 56, 7, 0x2000, 6, 0x585e), TOO_SHORT}, 32, 24},
			{24, {0x46, V4(0, 40, 7, 3, 6, 0x8873), 0x82, 4, 9, 9}, 56, 16}}},
	{"an option that ends with the header", INNER_V4,
		{0x46, V4(0, 56, 7, 0, 6, 0), 0x01, 0x82, 3, 0}, 56, 48, 2,
		{{24, {0x46, V4(0, 48, 7, 0x2000, 6, 0xeef9), 0x01, 0x82, 3, 0}, 24, 24},
			{24, {0x46, V4(0, 32, 7, 3, 6, 0x9185), 0x82, 3, 0, 0}, 48, 8}}},
	{"an option past the header is not copied", INNER_V4,
		{0x46, V4(0, 56, 7, 0, 6, 0), 0x01, 0x01, 0x82, 3}, 56, 48, 2,
		{{24, {0x46, V4(0, 48, 7, 0x2000, 6, 0x7077), 0x01, 0x01, 0x82, 3}, 24, 24},
			{20, {0x45, V4(0, 28, 7, 3, 6, 0x148d)}, 48, 8}}},
	{"an option without room for its length is not copied", INNER_V4,
		{0x46, V4(0, 56, 7, 0, 6, 0), 0x01, 0x01, 0x01, 0x82}, 56, 48, 2,
		{{24, {0x46, V4(0, 48, 7, 0x2000, 6, 0xf0f8), 0x01, 0x01, 0x01, 0x82}, 24, 24},
			{20, {0x45, V4(0, 28, 7, 3, 6, 0x148d)}, 48, 8}}},
	{"an outer packet: no DF, and our identification", OUTER_V4,
		{0x45, V4(0xb8, 472, 0, 0x4000, 47, 0)}, 472, 400, 2,
		{{20, {0x45, V4(0xb8, 396, 0xbeef, 0x2000, 47, 0x3356)}, 20, 376},
			{20, {0x45, V4(0xb8, 96, 0xbeef, 47, 47, 0x5453)}, 396, 76}}},
	{"an outer packet that fits stays atomic", OUTER_V4,
		{0x45, V4(0xb8, 472, 0, 0x4000, 47, 0xd1f9)}, 472, 472, 1,
		{{20, {0x45, V4(0xb8, 472, 0, 0x4000, 47, 0xd1f9)}, 20, 452}}},
	{"an outer IPv6 packet", OUTER_V6, {0x6b, V6(1400, 17)}, 1440, 1280, 2,
		{{48, {0x6b, V6(1240, 44), FRAGMENT(17, 1)}, 40, 1232},
			{48, {0x6b, V6(176, 44), FRAGMENT(17, 1232)}, 1272, 168}}},
	{"an outer IPv6 packet that fits", OUTER_V6, {0x6b, V6(1240, 41)}, 1280, 1280, 1,
		{{40, {0x6b, V6(1240, 41)}, 40, 1240}}},
};

static const struct {
	const char *what;
	enum mode mode;
	uint8_t header[LB_SPLIT_HEADER_BYTES_MAX];
	size_t ip_bytes;
	size_t room;
	int want;
} refused[] = {
	{"no room for eight bytes", INNER_V4, {0x45, V4(0, 100, 7, 0, 6, 0)}, 100, 27,
		-EMSGSIZE},
	{"no room for the options and eight bytes", INNER_V4,
		{0x49, V4(0, 76, 7, 0, 6, 0), OPTIONS}, 76, 43, -EMSGSIZE},
	{"no room for the header", INNER_V4, {0x45, V4(0, 100, 7, 0, 6, 0)}, 100, 19,
		-EMSGSIZE},
	{"no room at all, for a header alone", INNER_V4, {0x45, V4(0, 20, 7, 0, 6, 0)}, 20, 0,
		-EMSGSIZE},
	{"no room for an outer header and eight bytes", OUTER_V4,
		{0x45, V4(0, 100, 0, 0x4000, 47, 0)}, 100, 27, -EMSGSIZE},
	{"no room for a fragment header and eight bytes", OUTER_V6, {0x6b, V6(100, 17)}, 140,
		55, -EMSGSIZE},
	{"DF", INNER_V4, {0x45, V4(0, 100, 7, 0x4000, 6, 0)}, 100, 99, -EINVAL},
	{"a fragment that ends at 65536", INNER_V4, {0x45, V4(0, 36, 7, 8190, 6, 0)}, 36, 28,
		-EINVAL},
	{"another version", INNER_V4, {0x55, V4(0, 100, 7, 0, 6, 0)}, 100, 60, -EINVAL},
	{"a header length of 16", INNER_V4, {0x44, V4(0, 100, 7, 0, 6, 0)}, 100, 60, -EINVAL},
	{"a header longer than the packet", INNER_V4, {0x46, V4(0, 20, 7, 0, 6, 0)}, 20, 19,
		-EINVAL},
	{"a total length above ip_bytes", INNER_V4, {0x45, V4(0, 101, 7, 0, 6, 0)}, 100, 60,
		-EINVAL},
	{"a total length below ip_bytes", INNER_V4, {0x45, V4(0, 99, 7, 0, 6, 0)}, 100, 60,
		-EINVAL},
	{"more than a total length can say", INNER_V4, {0x45, V4(0, 20, 7, 0, 6, 0)},
		0x10000 + 20, 60, -EINVAL},
	{"an outer packet with more to come", OUTER_V4, {0x45, V4(0, 100, 7, 0x2000, 47, 0)},
		100, 60, -EINVAL},
	{"an outer packet with an offset", OUTER_V4, {0x45, V4(0, 100, 7, 1, 47, 0)}, 100, 60,
		-EINVAL},
	{"another version than 6", OUTER_V6, {0x4b, V6(100, 17)}, 140, 80, -EINVAL},
	{"another version than 4, outside", OUTER_V4, {0x65, V4(0, 100, 7, 0, 47, 0)}, 100, 60,
		-EINVAL},
	{"a payload length below ip_bytes", OUTER_V6, {0x6b, V6(100, 17)}, 141, 80, -EINVAL},
	{"a payload length above ip_bytes", OUTER_V6, {0x6b, V6(100, 17)}, 139, 80, -EINVAL},
	{"hop-by-hop options", OUTER_V6, {0x6b, V6(100, 0)}, 140, 80, -EINVAL},
	{"a routing header", OUTER_V6, {0x6b, V6(100, 43)}, 140, 80, -EINVAL},
	{"a fragment header already", OUTER_V6, {0x6b, V6(100, 44)}, 140, 80, -EINVAL},
	{"destination options", OUTER_V6, {0x6b, V6(100, 60)}, 140, 80, -EINVAL},
};

static int
plan(enum mode mode, const uint8_t *ip, size_t ip_bytes, size_t room, struct lb_split *out)
{
	switch (mode) {
	case OUTER_V4:
		return lb_split_outer_v4(ip, ip_bytes, 0xbeef, room, out);
	case OUTER_V6:
		return lb_split_outer_v6(ip, ip_bytes, 0xdeadbeef, room, out);
	case INNER_V4:
		break;
	}
	return lb_split_inner_v4(ip, ip_bytes, room, out);
}

static size_t
header_bytes(const uint8_t *ip)
{
	return ip[0] >> 4 == 6 ? 40 : (size_t)(ip[0] & 0x0f) * 4;
}

/* The header alone at exact length, so that a look at the payload is one too far. */
static int
plan_of_header(enum mode mode, const uint8_t *ip, size_t ip_bytes, size_t room,
	struct lb_split *out)
{
	const size_t n = header_bytes(ip) < ip_bytes ? header_bytes(ip) : ip_bytes;
	uint8_t *exact = malloc(n);
	int ret;

	assert_non_null(exact);
	memcpy(exact, ip, n);
	ret = plan(mode, exact, ip_bytes, room, out);
	free(exact);
	return ret;
}

static void
check_piece(const char *what, const struct lb_split_piece *piece, const struct want *want)
{
	EXPECT(piece->header.n_bytes == want->n_header, "%s: a header of %u", what,
		piece->header.n_bytes);
	for (size_t k = 0; k < want->n_header; k++)
		EXPECT(piece->header.bytes[k] == want->header[k],
			"%s: the piece at %u: byte %zu is %02x, want %02x", what, want->offset,
			k, piece->header.bytes[k], want->header[k]);
	EXPECT(piece->payload_offset == want->offset, "%s: offset %u, want %u", what,
		piece->payload_offset, want->offset);
	EXPECT(piece->payload_bytes == want->n, "%s: %u bytes, want %u", what,
		piece->payload_bytes, want->n);
}

static void
test_each_packet_has_its_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_split_piece piece;
		struct lb_split split;
		const int ret = plan_of_header(rows[i].mode, rows[i].header, rows[i].ip_bytes,
			rows[i].room, &split);

		EXPECT(ret == 0, "%s: %d", rows[i].what, ret);
		EXPECT(split.n_pieces == rows[i].n_pieces, "%s: %u pieces", rows[i].what,
			split.n_pieces);
		for (uint32_t k = 0; k < rows[i].n_pieces; k++) {
			EXPECT(lb_split_next(&split, &piece), "%s: only %u", rows[i].what, k);
			check_piece(rows[i].what, &piece, &rows[i].pieces[k]);
		}
		for (unsigned int k = 0; k < 2; k++)
			EXPECT(!lb_split_next(&split, &piece), "%s: no end", rows[i].what);
	}
}

static void
test_what_cannot_be_split_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(refused); i++) {
		struct lb_split untouched;
		struct lb_split split;
		int ret;

		memset(&untouched, 0x5a, sizeof(untouched));
		memset(&split, 0x5a, sizeof(split));
		ret = plan_of_header(refused[i].mode, refused[i].header, refused[i].ip_bytes,
			refused[i].room, &split);
		EXPECT(ret == refused[i].want, "%s: %d", refused[i].what, ret);
		assert_memory_equal(&split, &untouched, sizeof(split));
	}
}

static void
test_a_packet_shorter_than_its_header_is_refused(void **state)
{
	static const uint8_t v4[] = {0x45, V4(0, 20, 7, 0, 6, 0)};
	static const uint8_t v6[] = {0x6b, V6(0, 17)};

	(void)state;
	for (size_t n = 0; n < sizeof(v6); n++) {
		uint8_t *exact = malloc(n == 0 ? 1 : n);
		struct lb_split split;

		assert_non_null(exact);
		memcpy(exact, v6, n);
		assert_int_equal(lb_split_outer_v6(exact, n, 1, 1280, &split), -EINVAL);
		memcpy(exact, v4, n < sizeof(v4) ? n : sizeof(v4));
		if (n < sizeof(v4)) {
			assert_int_equal(lb_split_inner_v4(exact, n, 1280, &split), -EINVAL);
			assert_int_equal(lb_split_outer_v4(exact, n, 1, 1280, &split), -EINVAL);
		}
		free(exact);
	}
}

/* The largest packets in the smallest pieces: as many as the header says there can be. */
static void
test_the_most_pieces_are_bounded(void **state)
{
	static const uint8_t v4[] = {0x45, V4(0, 65535, 7, 0, 6, 0)};
	static const uint8_t v6[] = {0x6b, V6(65535, 17)};
	struct lb_split_piece piece;
	struct lb_split split;
	uint32_t n = 0;

	(void)state;
	assert_int_equal(plan_of_header(INNER_V4, v4, 65535, 28, &split), 0);
	assert_int_equal(split.n_pieces, 8190);
	assert_int_equal(plan_of_header(OUTER_V6, v6, 65535 + 40, 56, &split), 0);
	assert_int_equal(split.n_pieces, LB_SPLIT_PIECES_MAX);
	while (lb_split_next(&split, &piece))
		n++;
	assert_int_equal(n, LB_SPLIT_PIECES_MAX);
	assert_int_equal(piece.payload_offset, 40 + 65528);
	assert_int_equal(piece.payload_bytes, 7);
}

static void
test_a_room_beyond_any_length_is_no_other(void **state)
{
	static const uint8_t v4[] = {0x45, V4(0, 65535, 7, 0, 6, 0)};
	static const uint8_t v6[] = {0x6b, V6(65535, 17)};
	static const size_t rooms[] = {65535 + 40, UINT32_MAX, (size_t)UINT32_MAX + 1,
		SIZE_MAX};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rooms); i++) {
		struct lb_split_piece piece;
		struct lb_split split;

		assert_int_equal(plan_of_header(INNER_V4, v4, 65535, rooms[i], &split), 0);
		assert_int_equal(split.n_pieces, 1);
		assert_true(lb_split_next(&split, &piece));
		assert_int_equal(piece.payload_bytes, 65535 - 20);
		assert_int_equal(plan_of_header(OUTER_V6, v6, 65535 + 40, rooms[i], &split), 0);
		assert_int_equal(split.n_pieces, 1);
		assert_true(lb_split_next(&split, &piece));
		assert_int_equal(piece.payload_bytes, 65535);
	}
}

/* A receiver that puts together what comes in its order. */
struct datagram {
	uint8_t header[IPV4_HEADER_MAX];
	size_t n_header;
	uint8_t payload[BUFFER_BYTES];
	size_t n;
	bool is_complete;
};

static unsigned int
get16(const uint8_t *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

static void
put16(uint8_t *p, size_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void
add_payload(struct datagram *d, size_t offset, bool has_more, const uint8_t *bytes, size_t n)
{
	EXPECT(!d->is_complete, "a piece after the last");
	EXPECT(offset == d->n, "offset %zu, not %zu", offset, d->n);
	EXPECT(!has_more || (n > 0 && n % 8 == 0), "a piece of %zu", n);
	memcpy(d->payload + offset, bytes, n);
	d->n += n;
	d->is_complete = !has_more;
}

static void
add_v4(struct datagram *d, const uint8_t *p, size_t n)
{
	const size_t n_header = (size_t)(p[0] & 0x0f) * 4;
	const unsigned int fragment = get16(p + 6);

	EXPECT(p[0] >> 4 == 4 && pb_csum(p, n_header) == 0, "a wrong header checksum");
	EXPECT(get16(p + 2) == n, "a total length of %u in %zu", get16(p + 2), n);
	EXPECT((fragment & 0xc000) == 0, "flags %04x", fragment);
	if (d->n_header == 0) {
		memcpy(d->header, p, n_header);
		d->n_header = n_header;
	}
	EXPECT(memcmp(d->header + 4, p + 4, 2) == 0 && d->header[1] == p[1] &&
			memcmp(d->header + 8, p + 8, 2) == 0 &&
			memcmp(d->header + 12, p + 12, 8) == 0,
		"another header");
	add_payload(d, (size_t)(fragment & 0x1fff) * 8, (fragment & 0x2000) != 0, p + n_header,
		n - n_header);
}

static void
add_v6(struct datagram *d, const uint8_t *p, size_t n)
{
	EXPECT(get16(p + 4) == n - 40, "a payload length of %u in %zu", get16(p + 4), n);
	EXPECT(p[6] == 44 && p[41] == 0 && (p[43] & 6) == 0, "no fragment header");
	EXPECT(memcmp(p + 44, "\xde\xad\xbe\xef", 4) == 0, "another identification");
	if (d->n_header == 0) {
		memcpy(d->header, p, 40);
		d->header[6] = p[40];
		d->n_header = 40;
	}
	EXPECT(memcmp(d->header, p, 4) == 0 && d->header[6] == p[40] && d->header[7] == p[7] &&
			memcmp(d->header + 8, p + 8, 32) == 0,
		"another header");
	add_payload(d, get16(p + 42) & 0xfff8, (p[43] & 1) != 0, p + 48, n - 48);
}

/* The header as it was before anybody split it. */
static void
restore_header(struct datagram *d)
{
	assert_true(d->is_complete);
	if (d->header[0] >> 4 == 6) {
		put16(d->header + 4, d->n);
		return;
	}
	put16(d->header + 2, d->n_header + d->n);
	put16(d->header + 6, 0);
	pb_fix_ipv4_csum(d->header);
}

/* What a caller does: write the piece, with its payload, where out has room bytes. */
static size_t
write_piece(const struct lb_split_piece *piece, const uint8_t *packet, size_t room,
	uint8_t *out)
{
	const size_t n = (size_t)piece->header.n_bytes + piece->payload_bytes;

	EXPECT(n <= room, "a piece of %zu in %zu", n, room);
	memcpy(out, piece->header.bytes, piece->header.n_bytes);
	memcpy(out + piece->header.n_bytes, packet + piece->payload_offset,
		piece->payload_bytes);
	return n;
}

static void
check_later_options(const uint8_t *piece, const uint8_t *options, size_t n_options)
{
	EXPECT((size_t)(piece[0] & 0x0f) * 4 == 20 + n_options, "a later header of %d words",
		piece[0] & 0x0f);
	EXPECT(memcmp(piece + 20, options, n_options) == 0, "other options");
}

static uint8_t *
random_bytes(size_t n, uint64_t *seed)
{
	uint8_t *bytes = malloc(n);

	assert_non_null(bytes);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)xrand(seed);
	return bytes;
}

/*
 * n bytes of well-formed options, all kinds of them. copied gets those that later pieces have,
 * padded.
 */
static size_t
random_options(uint8_t *out, size_t n, uint8_t *copied, uint64_t *seed)
{
	size_t n_copied = 0;

	memset(copied, 0, IPV4_HEADER_MAX - 20);
	for (size_t at = 0; at < n;) {
		const uint32_t what = xrand_below(seed, 8);
		size_t n_option = 1;

		if (what == 0 || n - at < 2) {
			out[at] = 1;
			at++;
			continue;
		}
		n_option = 2 + xrand_below(seed, (uint32_t)(n - at < 12 ? n - at - 1 : 11));
		for (size_t k = 2; k < n_option; k++)
			out[at + k] = (uint8_t)xrand(seed);
		out[at] = (uint8_t)((what < 5 ? 0x80 : 0) | (2 + xrand_below(seed, 0x7e)));
		out[at + 1] = (uint8_t)n_option;
		if (what < 5) {
			memcpy(copied + n_copied, out + at, n_option);
			n_copied += n_option;
		}
		at += n_option;
	}
	return (n_copied + 3) / 4 * 4;
}

/* An IPv4 packet's header over what is there; returns the length of what is copied of it. */
static size_t
random_header(uint8_t *packet, size_t n_header, uint8_t *copied, uint64_t *seed)
{
	packet[0] = (uint8_t)(0x40 | n_header / 4);
	return random_options(packet + 20, n_header - 20, copied, seed);
}

static void
set_length(uint8_t *packet, size_t n)
{
	put16(packet + 2, n);
	put16(packet + 6, 0);
	pb_fix_ipv4_csum(packet);
}

struct splitter {
	uint8_t piece[BUFFER_BYTES];
	struct datagram whole;
};

/* Split, put together, compare. copied: the options of later pieces; NULL for IPv6. */
static void
split_and_join(struct splitter *s, enum mode mode, const uint8_t *packet, size_t n, size_t room,
	const uint8_t *copied, size_t n_copied)
{
	struct lb_split_piece piece;
	struct lb_split split;
	uint32_t k = 0;

	EXPECT(plan(mode, packet, n, room, &split) == 0, "%zu into %zu", n, room);
	s->whole.n_header = 0;
	s->whole.n = 0;
	s->whole.is_complete = false;
	for (; lb_split_next(&split, &piece); k++) {
		const size_t n_piece = write_piece(&piece, packet, room, s->piece);

		if (mode == OUTER_V6)
			add_v6(&s->whole, s->piece, n_piece);
		else
			add_v4(&s->whole, s->piece, n_piece);
		if (copied != NULL && k > 0)
			check_later_options(s->piece, copied, n_copied);
	}
	EXPECT(k == split.n_pieces, "%u pieces, not %u", k, split.n_pieces);
	restore_header(&s->whole);
	EXPECT(s->whole.n_header + s->whole.n == n, "%zu bytes of %zu", s->whole.n, n);
	EXPECT(memcmp(s->whole.payload, packet + s->whole.n_header, s->whole.n) == 0,
		"another payload, of %zu", n);
}

static struct splitter *
make_splitter(void)
{
	struct splitter *s = malloc(sizeof(*s));

	assert_non_null(s);
	return s;
}

static void
test_pieces_of_every_length_make_the_packet_again(void **state)
{
	/* The many pieces of the smallest rooms take long. */
	static const struct {
		size_t room;
		size_t longest;
	} sweeps[] = {{68, 2048}, {107, 2048}, {576, LENGTH_MAX}, {1280, LENGTH_MAX},
		{1476, LENGTH_MAX}, {1500, LENGTH_MAX}, {9000, LENGTH_MAX}};
	struct splitter *s = make_splitter();
	uint64_t seed = 1;
	uint8_t *packet = random_bytes(LENGTH_MAX, &seed);

	(void)state;
	for (size_t n_header = 20; n_header <= IPV4_HEADER_MAX; n_header += 4) {
		for (size_t r = 0; r < LB_N_ELEMENTS(sweeps); r++) {
			uint8_t copied[IPV4_HEADER_MAX];
			const size_t n_copied = random_header(packet, n_header, copied, &seed);

			for (size_t n = n_header; n <= sweeps[r].longest; n++) {
				set_length(packet, n);
				split_and_join(s, INNER_V4, packet, n, sweeps[r].room, copied,
					n_copied);
				EXPECT(memcmp(s->whole.header, packet, n_header) == 0,
					"another header, of %zu bytes", n);
			}
		}
	}
	free(packet);
	free(s);
}

/* Each piece on a narrower link again, as any router may do. */
static void
test_pieces_of_pieces_make_the_packet_again(void **state)
{
	struct splitter *s = make_splitter();
	uint64_t seed = 2;

	(void)state;
	for (unsigned int i = 0; i < 2000; i++) {
		const size_t n_header = 20 + (size_t)xrand_below(&seed, 11) * 4;
		const size_t n = n_header + xrand_below(&seed, 65536 - (uint32_t)n_header);
		const size_t room = 76 + xrand_below(&seed, 3000);
		const size_t narrow = 68 + xrand_below(&seed, (uint32_t)room - 68);
		uint8_t *packet = random_bytes(n, &seed);
		uint8_t copied[IPV4_HEADER_MAX];
		struct lb_split_piece outer;
		struct lb_split split;

		(void)random_header(packet, n_header, copied, &seed);
		set_length(packet, n);
		memset(&s->whole, 0, sizeof(s->whole));
		assert_int_equal(plan(INNER_V4, packet, n, room, &split), 0);
		while (lb_split_next(&split, &outer)) {
			uint8_t middle[4096];
			const size_t n_middle = write_piece(&outer, packet, room, middle);
			struct lb_split_piece inner;
			struct lb_split again;

			assert_int_equal(plan(INNER_V4, middle, n_middle, narrow, &again), 0);
			while (lb_split_next(&again, &inner))
				add_v4(&s->whole, s->piece,
					write_piece(&inner, middle, narrow, s->piece));
		}
		restore_header(&s->whole);
		assert_int_equal(s->whole.n_header + s->whole.n, n);
		assert_memory_equal(s->whole.header, packet, n_header);
		assert_memory_equal(s->whole.payload, packet + n_header, n - n_header);
		free(packet);
	}
	free(s);
}

static struct lb_encap
encap_of(enum lb_forward_mode mode, bool is_v6)
{
	static const uint8_t v4[4] = {192, 0, 2, 1};
	struct lb_encap_conf conf = {
		.mode = mode,
		.src = lb_addr_from_v4(v4),
		.dst = lb_addr_from_v4(v4),
		.udp_port = LB_GUE_PORT,
	};
	struct lb_encap encap;

	if (is_v6) {
		conf.src = (struct lb_addr){.bytes = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
		conf.dst = (struct lb_addr){.bytes = {0x20, 0x01, 0x0d, 0xb8, [15] = 2}};
	}
	assert_int_equal(lb_encap_init(&encap, &conf), 0);
	return encap;
}

/* As lb_encap_write() makes it, but for DF and the identification of IPv4. */
static void
check_outer_header(const struct datagram *whole, const uint8_t *packet)
{
	uint8_t want[40];

	memcpy(want, packet, sizeof(want));
	if (want[0] >> 4 == 4) {
		put16(want + 4, 0xbeef);
		put16(want + 6, 0);
		pb_fix_ipv4_csum(want);
	}
	assert_memory_equal(whole->header, want, whole->n_header);
}

static void
split_outer(struct splitter *s, enum lb_forward_mode mode, bool is_v6, size_t room)
{
	const struct lb_encap encap = encap_of(mode, is_v6);
	uint64_t seed = 3;
	uint8_t *packet = random_bytes(encap.n_bytes + LENGTH_MAX, &seed);

	for (size_t n = room - encap.n_bytes + 1; n <= LENGTH_MAX; n++) {
		const struct lb_encap_packet inner = {.tos = 0xb9, .inner_bytes = (uint16_t)n};

		lb_encap_write(&encap, &inner, packet);
		split_and_join(s, is_v6 ? OUTER_V6 : OUTER_V4, packet, encap.n_bytes + n, room,
			NULL, 0);
		check_outer_header(&s->whole, packet);
	}
	free(packet);
}

static void
test_outer_pieces_make_the_outer_packet_again(void **state)
{
	static const size_t rooms[] = {576, 1280, 1499, 1500, 9000};
	struct splitter *s = make_splitter();

	(void)state;
	for (int mode = LB_FORWARD_IPIP; mode < LB_N_FORWARD_MODES; mode++) {
		for (size_t r = 0; r < LB_N_ELEMENTS(rooms); r++) {
			split_outer(s, (enum lb_forward_mode)mode, false, rooms[r]);
			split_outer(s, (enum lb_forward_mode)mode, true, rooms[r]);
		}
	}
	free(s);
}

static void
test_a_copied_plan_goes_on_by_itself(void **state)
{
	static const uint8_t v4[] = {0x45, V4(0, 472, 111, 0, 6, 0x126c)};
	struct lb_split_piece piece;
	struct lb_split split;
	struct lb_split copy;

	(void)state;
	assert_int_equal(plan_of_header(INNER_V4, v4, 472, 280, &split), 0);
	assert_true(lb_split_next(&split, &piece));
	copy = split;
	assert_true(lb_split_next(&split, &piece));
	assert_false(lb_split_next(&split, &piece));
	assert_true(lb_split_next(&copy, &piece));
	assert_int_equal(piece.payload_offset, 276);
	assert_false(lb_split_next(&copy, &piece));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_packet_has_its_pieces),
		cmocka_unit_test(test_what_cannot_be_split_is_refused),
		cmocka_unit_test(test_a_packet_shorter_than_its_header_is_refused),
		cmocka_unit_test(test_the_most_pieces_are_bounded),
		cmocka_unit_test(test_a_room_beyond_any_length_is_no_other),
		cmocka_unit_test(test_pieces_of_every_length_make_the_packet_again),
		cmocka_unit_test(test_pieces_of_pieces_make_the_packet_again),
		cmocka_unit_test(test_outer_pieces_make_the_outer_packet_again),
		cmocka_unit_test(test_a_copied_plan_goes_on_by_itself),
	};

	return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
