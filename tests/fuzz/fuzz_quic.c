/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any UDP payload through the search for a server: no byte is read past the connection id, and
 * none before it is there is enough.
 *
 * Input: the payload. The servers are those of the draft's test vectors, see configs and
 * servers below; each first octet's length is checked under codepoints 4 and 5.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz_require.h"
#include "lb_quic.h"

#define DRAFT_KEY                                                                              \
	{                                                                                      \
		0x8f, 0x95, 0xf0, 0x92, 0x45, 0x76, 0x5f, 0x80, 0x25, 0x69, 0x34, 0xe5, 0x0c,  \
			0x66, 0x20, 0x7f                                                       \
	}

#define N_CONFIGS 6u
#define N_SERVERS 6u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A configuration's place is its codepoint; codepoints 6 and 7 have none. */
static const struct lb_quic_config configs[N_CONFIGS] = {
	{0, 3, 4, true, false, DRAFT_KEY},
	{1, 10, 5, true, false, DRAFT_KEY},
	{2, 8, 8, true, false, DRAFT_KEY},
	{3, 9, 9, true, false, DRAFT_KEY},
	{4, 3, 4, false, true, {0}},
	{5, 10, 9, true, true, DRAFT_KEY},
};

/* A server's place is its value; codepoint 5 has a server that no seed names. */
static const struct lb_quic_server servers[N_SERVERS] = {
	{0, 3, {0xed, 0x79, 0x3a}, 0},
	{1, 10, {0xed, 0x79, 0x3a, 0x51, 0xd4, 0x9b, 0x8f, 0x5f, 0xab, 0x65}, 1},
	{2, 8, {0xed, 0x79, 0x3a, 0x51, 0xd4, 0x9b, 0x8f, 0x5f}, 2},
	{3, 9, {0xed, 0x79, 0x3a, 0x51, 0xd4, 0x9b, 0x8f, 0x5f, 0xab}, 3},
	{4, 3, {0xc4, 0x60, 0x5e}, 4},
	{5, 10, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5},
};

static uint32_t
find(const struct lb_quic_table *table, const uint8_t *payload, size_t n)
{
	uint8_t *exact = malloc(n == 0 ? 1 : n);
	uint32_t value;

	require(exact != NULL, "no memory");
	memcpy(exact, payload, n);
	value = lb_quic_find(table, n == 0 ? exact + 1 : exact, n);
	free(exact);
	return value;
}

static void
check_header(const struct lb_quic_header *header, const uint8_t *data, size_t n)
{
	const size_t cid_at = (size_t)(header->cid - data);

	require(header->is_long == ((data[0] & 0x80) != 0), "long or short");
	require(cid_at == (header->is_long ? 6u : 1u), "where the id is");
	require(header->cid_bytes <= LB_QUIC_CID_BYTES_MAX, "a longer id than QUIC has");
	require(header->cid_bytes <= n - cid_at, "an id past the end");
	if (header->is_long)
		require(header->version == 1 || header->version == 0x6b3343cf, "version");
}

/* What is found has to follow from the id alone, and from all of it. */
static void
check_found(const struct lb_quic_table *table, const struct lb_quic_header *header,
	const uint8_t *data, uint32_t value)
{
	const unsigned int codepoint = header->cid[0] >> 5;
	const struct lb_quic_config *config = &configs[codepoint];
	size_t cid_bytes;
	size_t needed;

	require(codepoint < N_CONFIGS && value == codepoint, "another codepoint's server");
	cid_bytes = 1 + (size_t)config->server_id_bytes + config->nonce_bytes;
	require(header->cid_bytes >= cid_bytes, "an id that is too short");
	if (config->has_length)
		cid_bytes = 1 + (size_t)(header->cid[0] & 0x1f);
	if (header->is_long)
		cid_bytes = header->cid_bytes;
	if (!config->has_key)
		require(memcmp(header->cid + 1, servers[value].id, servers[value].n_bytes) == 0,
			"another server");
	needed = (size_t)(header->cid - data) + cid_bytes;
	require(find(table, data, needed) == value, "what follows the id counts");
	require(find(table, data, needed - 1) == LB_QUIC_NONE, "the id's end does not count");
}

/* In the clear, what names a server and is whole must be found. */
static bool
has_plain_server(const struct lb_quic_header *header)
{
	const size_t says = 1 + (size_t)(header->cid[0] & 0x1f);

	if (header->cid[0] >> 5 != 4 || header->cid_bytes < 8 ||
		memcmp(header->cid + 1, servers[4].id, 3) != 0)
		return false;
	if (header->is_long)
		return says == header->cid_bytes;
	return says >= 8 && says <= header->cid_bytes;
}

/* Built once: expanding keys takes far longer than a search. */
static const struct lb_quic_table *
the_table(void)
{
	static const struct lb_quic_table *table;
	void *mem;

	if (table != NULL)
		return table;
	mem = aligned_alloc(LB_CACHE_LINE, lb_quic_table_bytes(N_SERVERS));
	require(mem != NULL, "no memory");
	require(lb_quic_table_build(mem, configs, N_CONFIGS, servers, N_SERVERS, &table) == 0,
		"the table was refused");
	return table;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct lb_quic_table *table = the_table();
	const uint32_t value = find(table, data, n);
	struct lb_quic_header header;

	if (!lb_quic_parse(data, n, &header)) {
		require(value == LB_QUIC_NONE, "a server without an id");
		return 0;
	}
	check_header(&header, data, n);
	if (value != LB_QUIC_NONE)
		check_found(table, &header, data, value);
	else if (header.cid_bytes != 0)
		require(!has_plain_server(&header), "a server that was not found");
	return 0;
}
