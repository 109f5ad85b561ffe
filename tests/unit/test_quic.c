/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_quic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "expect.h"
#include "xrand.h"

#define VERSION_1 0x00000001u
#define VERSION_2 0x6b3343cfu
#define SHORT     UINT32_MAX /* for a version: the header is a short one */

#define BLOCK_BYTES   16u
#define BODY_MAX      19u
#define PAYLOAD_MAX   64u
#define N_MANY        10000u
#define VALUE         0x5eed1234u
#define LONG_CID_AT   6u
#define ALL_CODES     8u
#define ID_BYTES_MAX  LB_QUIC_SERVER_ID_BYTES_MAX
#define CID_BYTES_MAX LB_QUIC_CID_BYTES_MAX

/* What is made of hexadecimal digits. */
struct bytes {
	size_t n;
	uint8_t at[PAYLOAD_MAX];
};

static struct bytes
from_hex(const char *hex)
{
	struct bytes bytes = {.n = strlen(hex) / 2};

	assert_true(strlen(hex) % 2 == 0 && bytes.n <= PAYLOAD_MAX);
	for (size_t i = 0; i < bytes.n; i++) {
		const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

		bytes.at[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return bytes;
}

/*
 * The draft's encoding, by itself: halves are rows of half bytes, so that an odd length is
 * nothing special, and AES is libcrypto's.
 */

static void
encrypt_block(const uint8_t *key, const uint8_t *in, uint8_t *out)
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	int n = 0;

	assert_non_null(context);
	assert_int_equal(EVP_EncryptInit_ex(context, EVP_aes_128_ecb(), NULL, key, NULL), 1);
	assert_int_equal(EVP_CIPHER_CTX_set_padding(context, 0), 1);
	assert_int_equal(EVP_EncryptUpdate(context, out, &n, in, (int)BLOCK_BYTES), 1);
	assert_int_equal(n, BLOCK_BYTES);
	EVP_CIPHER_CTX_free(context);
}

static uint8_t
nibble(const uint8_t *bytes, size_t i)
{
	return i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 0x0f;
}

/* If n is odd, a right half of n half bytes begins in the middle of a byte. */
static void
encode_pass(const uint8_t *key, size_t n, uint8_t pass, const uint8_t *from, uint8_t *onto)
{
	const bool is_from_left = pass % 2 != 0;
	const size_t from_at = is_from_left ? 0 : n % 2;
	const size_t onto_at = is_from_left ? n % 2 : 0;
	uint8_t block[BLOCK_BYTES] = {[14] = (uint8_t)n, [15] = pass};

	for (size_t i = 0; i < n; i++) {
		const size_t digit = from_at + i;

		block[digit / 2] |= (uint8_t)(digit % 2 == 0 ? from[i] << 4 : from[i]);
	}
	encrypt_block(key, block, block);
	for (size_t i = 0; i < n; i++)
		onto[i] ^= nibble(block, onto_at + i);
}

static void
encode_four_passes(const uint8_t *key, size_t n, uint8_t *body)
{
	uint8_t left[BODY_MAX] = {0};
	uint8_t right[BODY_MAX] = {0};

	for (size_t i = 0; i < n; i++) {
		left[i] = nibble(body, i);
		right[i] = nibble(body, n + i);
	}
	encode_pass(key, n, 1, left, right);
	encode_pass(key, n, 2, right, left);
	encode_pass(key, n, 3, left, right);
	encode_pass(key, n, 4, right, left);
	for (size_t i = 0; i < n; i++) {
		const size_t high = 2 * i;
		const size_t low = 2 * i + 1;

		body[i] = (uint8_t)((high < n ? left[high] : right[high - n]) << 4);
		body[i] |= low < n ? left[low] : right[low - n];
	}
}

/* A connection id that says its own length. */
static struct bytes
encode(const struct lb_quic_config *config, const uint8_t *id, const uint8_t *nonce)
{
	const size_t n = (size_t)config->server_id_bytes + config->nonce_bytes;
	struct bytes cid = {.n = 1 + n};

	cid.at[0] = (uint8_t)(config->codepoint << 5 | n);
	memcpy(cid.at + 1, id, config->server_id_bytes);
	memcpy(cid.at + 1 + config->server_id_bytes, nonce, config->nonce_bytes);
	if (config->has_key && n == BLOCK_BYTES)
		encrypt_block(config->key, cid.at + 1, cid.at + 1);
	else if (config->has_key)
		encode_four_passes(config->key, n, cid.at + 1);
	return cid;
}

/* A packet with a connection id and n_more bytes behind. */
static struct bytes
packet_of(uint32_t version, const uint8_t *cid, size_t n, size_t n_more)
{
	struct bytes packet = {.n = n + n_more, .at = {0x40}};
	size_t at = 1;

	if (version != SHORT) {
		packet.at[0] = 0xc0;
		for (unsigned int i = 0; i < 4; i++)
			packet.at[at++] = (uint8_t)(version >> (24 - 8 * i));
		packet.at[at++] = (uint8_t)n;
	}
	packet.n += at;
	assert_true(packet.n <= PAYLOAD_MAX);
	memcpy(packet.at + at, cid, n);
	memset(packet.at + at + n, 0xee, n_more);
	return packet;
}

/* On the heap at exact length. */
static uint32_t
find(const struct lb_quic_table *table, const uint8_t *payload, size_t n)
{
	uint8_t *exact = malloc(n == 0 ? 1 : n);
	uint32_t value;

	assert_non_null(exact);
	memcpy(exact, payload, n);
	value = lb_quic_find(table, n == 0 ? exact + 1 : exact, n);
	free(exact);
	return value;
}

/* Heap memory of exactly the promised size, full of rubbish. */
static void *
new_memory(size_t n)
{
	const size_t bytes = lb_quic_table_bytes(n);
	void *mem;

	assert_int_not_equal(bytes, 0);
	assert_int_equal(bytes % LB_CACHE_LINE, 0);
	mem = aligned_alloc(LB_CACHE_LINE, bytes);
	assert_non_null(mem);
	memset(mem, 0xa5, bytes);
	return mem;
}

/* One configuration with one server, whose value is VALUE; free() what is returned. */
static void *
new_table(const struct lb_quic_config *config, const uint8_t *id,
	const struct lb_quic_table **out)
{
	struct lb_quic_server server = {
		.codepoint = config->codepoint,
		.n_bytes = config->server_id_bytes,
		.value = VALUE,
	};
	void *mem = new_memory(1);

	memcpy(server.id, id, config->server_id_bytes);
	assert_int_equal(lb_quic_table_build(mem, config, 1, &server, 1, out), 0);
	return mem;
}

struct vector {
	const char *sentence;
	uint8_t codepoint;
	const char *key; /* NULL for plaintext */
	const char *server_id;
	const char *nonce;
	const char *cid;
};

#define DRAFT_KEY "8f95f09245765f80256934e50c66207f"

/* The draft's appendix B, and the example of its section 5.4.2.4. */
static const struct vector vectors[] = {
	{"plaintext", 0, NULL, "c4605e", "4504cc4f", "07c4605e4504cc4f"},
	{"four passes, seven bytes", 0, DRAFT_KEY, "ed793a", "ee080dbf", "0720b1d07b359d3c"},
	{"four passes, the server id longer than the nonce", 1, DRAFT_KEY,
		"ed793a51d49b8f5fab65", "ee080dbf48", "2fcc381bc74cb4fbad2823a3d1f8fed2"},
	{"a single pass", 2, DRAFT_KEY, "ed793a51d49b8f5f", "ee080dbf48c0d1e5",
		"504dd2d05a7b0de9b2b9907afb5ecf8cc3"},
	/* Listed under codepoint 3, but the octet printed is one of codepoint 0. */
	{"four passes, eighteen bytes, as printed", 0, DRAFT_KEY, "ed793a51d49b8f5fab",
		"ee080dbf48c0d1e55d", "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc"},
	{"four passes, eighteen bytes, as listed", 3, DRAFT_KEY, "ed793a51d49b8f5fab",
		"ee080dbf48c0d1e55d", "725779c9cc86beb3a3a4a3ca96fce4bfe0cdbc"},
	{"the example in steps", 0, "fdf726a9893ec05c0632d3956680baf0", "31441a", "9c69c275",
		"0767947d29be054a"},
};

#define N_VECTORS (sizeof(vectors) / sizeof(vectors[0]))

static struct lb_quic_config
config_of(const struct vector *vector)
{
	struct lb_quic_config config = {
		.codepoint = vector->codepoint,
		.server_id_bytes = (uint8_t)from_hex(vector->server_id).n,
		.nonce_bytes = (uint8_t)from_hex(vector->nonce).n,
		.has_key = vector->key != NULL,
		.has_length = true,
	};

	if (vector->key != NULL)
		memcpy(config.key, from_hex(vector->key).at, sizeof(config.key));
	return config;
}

static void
test_encoder_of_this_test_makes_the_drafts_ids(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_VECTORS; i++) {
		const struct lb_quic_config config = config_of(&vectors[i]);
		const struct bytes id = from_hex(vectors[i].server_id);
		const struct bytes nonce = from_hex(vectors[i].nonce);
		const struct bytes cid = from_hex(vectors[i].cid);
		const struct bytes made = encode(&config, id.at, nonce.at);

		EXPECT(made.n == cid.n && memcmp(made.at, cid.at, cid.n) == 0, "%s",
			vectors[i].sentence);
	}
}

/* Of every packet, each beginning: nothing is known until the id is whole. */
static void
expect_known_when_whole(const struct lb_quic_table *table, uint32_t version,
	const struct bytes *cid, const char *sentence)
{
	const struct bytes packet = packet_of(version, cid->at, cid->n, 21);
	const size_t whole = packet.n - 21;

	for (size_t n = 0; n <= packet.n; n++) {
		const uint32_t expected = n < whole ? LB_QUIC_NONE : VALUE;
		const uint32_t value = find(table, packet.at, n);

		EXPECT(value == expected, "%s, version %08x: %zu bytes give %08x", sentence,
			version, n, value);
	}
}

static void
test_vectors_of_the_draft(void **state)
{
	static const uint32_t versions[] = {SHORT, VERSION_1, VERSION_2};

	(void)state;
	for (size_t i = 0; i < N_VECTORS; i++) {
		struct lb_quic_config config = config_of(&vectors[i]);
		const struct bytes cid = from_hex(vectors[i].cid);

		for (unsigned int j = 0; j < 6; j++) {
			const struct lb_quic_table *table;
			void *mem;

			config.has_length = j >= 3;
			mem = new_table(&config, from_hex(vectors[i].server_id).at, &table);
			expect_known_when_whole(table, versions[j % 3], &cid,
				vectors[i].sentence);
			free(mem);
		}
	}
}

/*
 * Appendix B's second plaintext row has a nonce of nine digits, and an id whose digits are
 * moved by one: 20a350d28b4203487d970b. As octets it has server id a350d28b42, and a first
 * octet that says it has no more than itself.
 */
static void
test_row_of_the_draft_that_is_misprinted(void **state)
{
	struct lb_quic_config config = {.codepoint = 1, .server_id_bytes = 5, .nonce_bytes = 5};
	const struct bytes cid = from_hex("20a350d28b4203487d970b");
	const struct lb_quic_table *table;
	struct bytes packet;
	void *mem;

	(void)state;
	mem = new_table(&config, from_hex("a350d28b42").at, &table);
	packet = packet_of(VERSION_1, cid.at, cid.n, 1);
	assert_int_equal(find(table, packet.at, packet.n), VALUE);
	free(mem);

	config.has_length = true;
	mem = new_table(&config, from_hex("a350d28b42").at, &table);
	assert_int_equal(find(table, packet.at, packet.n), LB_QUIC_NONE);
	free(mem);
}

struct payload_row {
	const char *sentence;
	const char *payload;
	bool is_known;
};

/* Under codepoint 2, a server id of two octets in the clear, c0de, and a nonce of four. */
static void
expect_rows(const struct payload_row *rows, size_t n, bool has_length)
{
	const struct lb_quic_config config = {
		.codepoint = 2,
		.server_id_bytes = 2,
		.nonce_bytes = 4,
		.has_length = has_length,
	};
	const struct lb_quic_table *table;
	void *mem = new_table(&config, from_hex("c0de").at, &table);

	for (size_t i = 0; i < n; i++) {
		const struct bytes payload = from_hex(rows[i].payload);
		const uint32_t value = find(table, payload.at, payload.n);

		EXPECT(value == (rows[i].is_known ? VALUE : LB_QUIC_NONE), "%s: %08x",
			rows[i].sentence, value);
	}
	free(mem);
}

static void
test_what_has_a_known_id_and_what_has_not(void **state)
{
	static const struct payload_row rows[] = {
		{"version 1", "c0000000010746c0de0102030400", true},
		{"version 2", "c06b3343cf0746c0de0102030400", true},
		{"a long header's other bits are the version's", "ff000000010746c0de01020304",
			true},
		{"a greased fixed bit, long", "80000000010746c0de0102030400", true},
		{"a greased fixed bit, short", "0046c0de01020304", true},
		{"a short header's other bits are the version's", "7f46c0de01020304", true},
		{"version negotiation", "c0000000000746c0de0102030400", false},
		{"a version kept for greasing", "c00a0a0a0a0746c0de0102030400", false},
		{"draft 29", "c0ff00001d0746c0de0102030400", false},
		{"version 1 in the other byte order", "c0010000000746c0de0102030400", false},
		{"one bit from version 2", "c06b3343ce0746c0de0102030400", false},
		{"no id", "c0000000010046c0de0102030400", false},
		{"an id of an octet", "c0000000010146c0de0102030400", false},
		{"an id one octet short", "c0000000010646c0de01020304", false},
		{"an octet of the server's own", "c0000000010846c0de0102030405", true},
		{"twenty octets", "c0000000011446c0de0102030400000000000000000000000000", true},
		{"twenty-one octets, which version 1 has not",
			"c0000000011546c0de010203040000000000000000000000000000", false},
		{"an id longer than the payload",
			"c0000000011446c0de01020304000000000000000000000000", false},
		{"a length of 255", "c000000001ff46c0de010203040000000000000000", false},
		{"a codepoint without configuration", "4066c0de01020304", false},
		{"codepoint 7", "40e6c0de01020304", false},
		{"a server that is not known", "4046c0df01020304", false},
		{"the length's bits at random, short", "405fc0de01020304", true},
		{"the length's bits at random, long", "c0000000010740c0de01020304", true},
	};

	(void)state;
	expect_rows(rows, sizeof(rows) / sizeof(rows[0]), false);
}

static void
test_length_in_the_first_octet_has_to_be_right(void **state)
{
	static const struct payload_row rows[] = {
		{"right, long", "c0000000010746c0de0102030400", true},
		{"one more than the header's", "c0000000010747c0de0102030400", false},
		{"one less than the header's", "c0000000010745c0de0102030400", false},
		{"right with octets of the server's own", "c0000000010948c0de010203040506",
			true},
		{"right, short", "4046c0de01020304", true},
		{"less than the configuration's, short", "4045c0de010203040000", false},
		{"more than the configuration's, short", "4047c0de0102030400", true},
		{"more than there is, short", "4047c0de01020304", false},
		{"nineteen, short", "4053c0de0102030400000000000000000000000000", true},
		{"twenty, which version 1 has not, short",
			"4054c0de010203040000000000000000000000000000000000", false},
	};

	(void)state;
	expect_rows(rows, sizeof(rows) / sizeof(rows[0]), true);
}

static void
test_each_codepoint_has_its_own_servers(void **state)
{
	struct lb_quic_config configs[LB_QUIC_CONFIGS_MAX];
	struct lb_quic_server servers[LB_QUIC_CONFIGS_MAX];
	const struct lb_quic_table *table;
	void *mem = new_memory(LB_QUIC_CONFIGS_MAX);

	(void)state;
	/* The same two octets under 0 to 5 and those of another server under 6. */
	for (uint8_t i = 0; i < LB_QUIC_CONFIGS_MAX; i++) {
		configs[i] = (struct lb_quic_config){
			.codepoint = i,
			.server_id_bytes = 2,
			.nonce_bytes = 4,
		};
		servers[i] = (struct lb_quic_server){
			.codepoint = i,
			.n_bytes = 2,
			.id = {0xc0, i < 6 ? 0xde : 0xdf},
			.value = i,
		};
	}
	assert_int_equal(lb_quic_table_build(mem, configs, LB_QUIC_CONFIGS_MAX, servers,
				 LB_QUIC_CONFIGS_MAX, &table),
		0);
	for (uint32_t i = 0; i < ALL_CODES; i++) {
		const uint8_t payload[] = {0x40, (uint8_t)(i << 5), 0xc0, 0xde, 1, 2, 3, 4};
		const uint32_t value = find(table, payload, sizeof(payload));

		EXPECT(value == (i < 6 ? i : LB_QUIC_NONE), "codepoint %u: %08x", i, value);
	}
	free(mem);
}

static void
fill(uint64_t *seed, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)xrand(seed);
}

static struct lb_quic_config
random_config(uint64_t *seed, unsigned int id_bytes, unsigned int nonce_bytes)
{
	struct lb_quic_config config = {
		.codepoint = (uint8_t)xrand_below(seed, LB_QUIC_CONFIGS_MAX),
		.server_id_bytes = (uint8_t)id_bytes,
		.nonce_bytes = (uint8_t)nonce_bytes,
		.has_key = xrand_below(seed, 4) != 0,
		.has_length = xrand_below(seed, 2) != 0,
	};

	fill(seed, config.key, sizeof(config.key));
	return config;
}

/* Finds what was encoded, and not the server whose id differs in one bit. */
static void
expect_round_trip(uint64_t *seed, const struct lb_quic_config *config)
{
	static const uint32_t versions[] = {SHORT, VERSION_1, VERSION_2};
	const struct lb_quic_table *table;
	uint8_t id[ID_BYTES_MAX];
	uint8_t nonce[BODY_MAX];
	uint32_t bit;
	void *mem;

	fill(seed, id, sizeof(id));
	mem = new_table(config, id, &table);
	bit = xrand_below(seed, 8u * config->server_id_bytes);
	for (unsigned int i = 0; i < 6; i++) {
		struct bytes packet;
		struct bytes cid;
		uint32_t value;

		fill(seed, nonce, sizeof(nonce));
		if (i == 3)
			id[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cid = encode(config, id, nonce);
		packet = packet_of(versions[i % 3], cid.at, cid.n, xrand_below(seed, 30));
		value = find(table, packet.at, packet.n);
		EXPECT(value == (i < 3 ? VALUE : LB_QUIC_NONE),
			"server id of %u, nonce of %u, %s, version %08x: %08x",
			config->server_id_bytes, config->nonce_bytes,
			config->has_key ? "key" : "no key", versions[i % 3], value);
	}
	free(mem);
}

static void
test_every_length_goes_round(void **state)
{
	uint64_t seed = 9000;

	(void)state;
	for (unsigned int id_bytes = 1; id_bytes <= ID_BYTES_MAX; id_bytes++) {
		for (unsigned int nonce_bytes = 4; id_bytes + nonce_bytes <= BODY_MAX;
			nonce_bytes++) {
			for (unsigned int i = 0; i < 16; i++) {
				const struct lb_quic_config config =
					random_config(&seed, id_bytes, nonce_bytes);

				expect_round_trip(&seed, &config);
			}
		}
	}
}

static void
test_header_says_where_the_id_is(void **state)
{
	static const struct {
		const char *sentence;
		const char *payload;
		bool is_long;
		uint32_t version;
		size_t cid_at;
		size_t cid_bytes;
	} rows[] = {
		{"version 1", "c00000000103aabbcc0000", true, VERSION_1, 6, 3},
		{"version 2, no id", "d06b3343cf00", true, VERSION_2, 6, 0},
		{"short, three octets there are", "40aabbcc", false, 0, 1, 3},
		{"short, no octets there are", "40", false, 0, 1, 0},
		{"short, no more than an id may have",
			"40000102030405060708090a0b0c0d0e0f10111213141516", false, 0, 1, 20},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct bytes payload = from_hex(rows[i].payload);
		struct lb_quic_header header;

		EXPECT(lb_quic_parse(payload.at, payload.n, &header), "%s", rows[i].sentence);
		EXPECT(header.is_long == rows[i].is_long && header.version == rows[i].version &&
				header.cid == payload.at + rows[i].cid_at &&
				header.cid_bytes == rows[i].cid_bytes,
			"%s: version %08x, %zu bytes", rows[i].sentence, header.version,
			header.cid_bytes);
	}
}

static void
test_header_is_untouched_where_there_is_none(void **state)
{
	static const char *const payloads[] = {"", "c0", "c000000001", "c00000000101",
		"c00000000000", "c00000000115000102030405060708090a0b0c0d0e0f1011121314"};
	struct lb_quic_header header;
	struct lb_quic_header before;

	(void)state;
	memset(&header, 0x5a, sizeof(header));
	memset(&before, 0x5a, sizeof(before));
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		const struct bytes payload = from_hex(payloads[i]);

		EXPECT(!lb_quic_parse(payload.at, payload.n, &header), "%s", payloads[i]);
		assert_memory_equal(&header, &before, sizeof(header));
	}
}

static void
test_many_servers_are_all_found(void **state)
{
	const struct lb_quic_config config = {.codepoint = 5,
		.server_id_bytes = 3,
		.nonce_bytes = 4};
	struct lb_quic_server *servers = calloc(N_MANY, sizeof(*servers));
	const struct lb_quic_table *table;
	void *mem = new_memory(N_MANY);

	(void)state;
	assert_non_null(servers);
	for (uint32_t i = 0; i < N_MANY; i++) {
		servers[i] = (struct lb_quic_server){
			.codepoint = 5,
			.n_bytes = 3,
			.id = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i},
			.value = i ^ 0xffff,
		};
	}
	assert_int_equal(lb_quic_table_build(mem, &config, 1, servers, N_MANY, &table), 0);
	for (uint32_t i = 0; i < 4 * N_MANY; i++) {
		const uint8_t payload[] = {0x40, 5 << 5, (uint8_t)(i >> 16), (uint8_t)(i >> 8),
			(uint8_t)i, 1, 2, 3, 4};
		const uint32_t value = find(table, payload, sizeof(payload));

		EXPECT(value == (i < N_MANY ? (i ^ 0xffff) : LB_QUIC_NONE), "server %u: %08x",
			i, value);
	}
	free(servers);
	free(mem);
}

static void
test_table_without_anything_knows_nothing(void **state)
{
	const uint8_t payload[] = {0x40, 0, 0, 0, 0, 0, 0, 0, 0};
	const struct lb_quic_table *table;
	void *mem = new_memory(0);

	(void)state;
	assert_int_equal(lb_quic_table_build(mem, NULL, 0, NULL, 0, &table), 0);
	assert_int_equal(find(table, payload, sizeof(payload)), LB_QUIC_NONE);
	free(mem);
}

static int
build(const struct lb_quic_config *configs, size_t n_configs,
	const struct lb_quic_server *servers, size_t n_servers)
{
	static const char mark;
	const struct lb_quic_table *const untouched = (const void *)&mark;
	const struct lb_quic_table *table = untouched;
	void *mem = new_memory(n_servers);
	const int ret =
		lb_quic_table_build(mem, configs, n_configs, servers, n_servers, &table);

	assert_true((table == untouched) == (ret != 0));
	free(mem);
	return ret;
}

static void
test_configurations_that_are_refused(void **state)
{
	static const struct {
		const char *sentence;
		struct lb_quic_config configs[2];
		size_t n;
		int ret;
	} rows[] = {
		{"least", {{.codepoint = 0, .server_id_bytes = 1, .nonce_bytes = 4}}, 1, 0},
		{"longest id", {{.codepoint = 6, .server_id_bytes = 15, .nonce_bytes = 4}}, 1,
			0},
		{"longest nonce", {{.server_id_bytes = 1, .nonce_bytes = 18}}, 1, 0},
		{"codepoint 7", {{.codepoint = 7, .server_id_bytes = 1, .nonce_bytes = 4}}, 1,
			-EINVAL},
		{"no id", {{.server_id_bytes = 0, .nonce_bytes = 4}}, 1, -EINVAL},
		{"too long an id", {{.server_id_bytes = 16, .nonce_bytes = 3}}, 1, -EINVAL},
		{"too short a nonce", {{.server_id_bytes = 1, .nonce_bytes = 3}}, 1, -EINVAL},
		{"too long a nonce", {{.server_id_bytes = 1, .nonce_bytes = 19}}, 1, -EINVAL},
		{"too long together", {{.server_id_bytes = 10, .nonce_bytes = 10}}, 1, -EINVAL},
		{"a nonce of 255", {{.server_id_bytes = 1, .nonce_bytes = 255}}, 1, -EINVAL},
		{"two of a codepoint",
			{{.codepoint = 3, .server_id_bytes = 1, .nonce_bytes = 4},
				{.codepoint = 3, .server_id_bytes = 2, .nonce_bytes = 4}},
			2, -EEXIST},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int ret = build(rows[i].configs, rows[i].n, NULL, 0);

		EXPECT(ret == rows[i].ret, "%s: %d", rows[i].sentence, ret);
	}
}

static void
test_servers_that_are_refused(void **state)
{
	static const struct lb_quic_config configs[2] = {
		{.codepoint = 0, .server_id_bytes = 2, .nonce_bytes = 4},
		{.codepoint = 1, .server_id_bytes = 2, .nonce_bytes = 4},
	};
	static const struct {
		const char *sentence;
		struct lb_quic_server servers[2];
		int ret;
	} rows[] = {
		{"two ids of one backend", {{0, 2, {1, 2}, 7}, {0, 2, {1, 3}, 7}}, 0},
		{"an id under two codepoints", {{0, 2, {1, 2}, 7}, {1, 2, {1, 2}, 8}}, 0},
		{"an id twice", {{0, 2, {1, 2}, 7}, {0, 2, {1, 2}, 8}}, -EEXIST},
		{"an id twice, whatever follows it", {{0, 2, {1, 2}, 7}, {0, 2, {1, 2, 3}, 8}},
			-EEXIST},
		{"too short an id", {{0, 2, {1, 2}, 7}, {0, 1, {1}, 8}}, -EINVAL},
		{"too long an id", {{0, 2, {1, 2}, 7}, {0, 3, {1, 2, 3}, 8}}, -EINVAL},
		{"no configuration", {{0, 2, {1, 2}, 7}, {2, 2, {1, 3}, 8}}, -EINVAL},
		{"no configuration, no id", {{0, 2, {1, 2}, 7}, {2, 0, {0}, 8}}, -EINVAL},
		{"codepoint 7", {{0, 2, {1, 2}, 7}, {7, 2, {1, 3}, 8}}, -EINVAL},
		{"codepoint 255", {{0, 2, {1, 2}, 7}, {255, 2, {1, 3}, 8}}, -EINVAL},
		{"the value that stands for none",
			{{0, 2, {1, 2}, 7}, {0, 2, {1, 3}, UINT32_MAX}}, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int ret = build(configs, 2, rows[i].servers, 2);

		EXPECT(ret == rows[i].ret, "%s: %d", rows[i].sentence, ret);
	}
}

static void
test_more_servers_than_a_table_holds_are_refused(void **state)
{
	const size_t n = LB_QUIC_SERVERS_MAX + 1;
	const struct lb_quic_table *table;

	(void)state;
	assert_int_not_equal(lb_quic_table_bytes(n - 1), 0);
	assert_int_equal(lb_quic_table_bytes(n), 0);
	assert_int_equal(lb_quic_table_build(NULL, NULL, 0, NULL, n, &table), -E2BIG);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encoder_of_this_test_makes_the_drafts_ids),
		cmocka_unit_test(test_vectors_of_the_draft),
		cmocka_unit_test(test_row_of_the_draft_that_is_misprinted),
		cmocka_unit_test(test_what_has_a_known_id_and_what_has_not),
		cmocka_unit_test(test_length_in_the_first_octet_has_to_be_right),
		cmocka_unit_test(test_each_codepoint_has_its_own_servers),
		cmocka_unit_test(test_every_length_goes_round),
		cmocka_unit_test(test_header_says_where_the_id_is),
		cmocka_unit_test(test_header_is_untouched_where_there_is_none),
		cmocka_unit_test(test_many_servers_are_all_found),
		cmocka_unit_test(test_table_without_anything_knows_nothing),
		cmocka_unit_test(test_configurations_that_are_refused),
		cmocka_unit_test(test_servers_that_are_refused),
		cmocka_unit_test(test_more_servers_than_a_table_holds_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
