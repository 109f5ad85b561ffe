/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_quic.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "lb_bytes.h"
#include "lb_hash.h"

#define CODEPOINT_SHIFT 5u
#define N_CODEPOINTS    8u
#define LENGTH_MASK     0x1fu

/* Server id and nonce: the connection id without its first octet. */
#define BODY_BYTES_MAX (LB_QUIC_CID_BYTES_MAX - 1)

#define VERSION_1 0x00000001u /* RFC 9000 */
#define VERSION_2 0x6b3343cfu /* RFC 9369 */

/* First octet, version, the id's length: RFC 8999, 5.1. */
#define LONG_BIT         0x80u
#define LONG_LENGTH_AT   5u
#define LONG_CID_AT      6u
#define SHORT_CID_AT     1u
#define HALF_BYTES_MAX   ((BODY_BYTES_MAX + 1) / 2)
#define EXPAND_LENGTH_AT 14u
#define EXPAND_PASS_AT   15u
#define CODEPOINT_AT     LB_QUIC_SERVER_ID_BYTES_MAX
#define ID_BYTES         16u

static_assert(HALF_BYTES_MAX <= EXPAND_LENGTH_AT, "half a body, its length and the pass");
static_assert(CODEPOINT_AT + 1 == ID_BYTES, "a server id and its codepoint are two words");

enum form {
	UNKNOWN, /* the codepoint has no configuration */
	PLAIN,
	SINGLE_PASS,
	FOUR_PASS,
};

struct config {
	struct lb_aes aes;                 /* where it has a key */
	uint8_t left[LB_AES_BLOCK_BYTES];  /* which bits of a block a left half has */
	uint8_t right[LB_AES_BLOCK_BYTES]; /* and a right one */
	uint8_t id[ID_BYTES];              /* and a server id */
	enum form form;
	bool has_length;
	bool is_id_in_left; /* the fourth pass can be left out */
	uint8_t server_id_bytes;
	uint8_t body_bytes;
	uint8_t right_at; /* where the right half begins: in the left one's last byte, if odd */
};

/* A server id, zeros, and its codepoint last, in two words as they lie in memory. */
struct id {
	uint64_t words[2];
};

/* Two to a line, so that none straddles one. */
struct entry {
	alignas(32) struct id id;
	uint32_t value; /* LB_QUIC_NONE where there is none */
};

static_assert(LB_CACHE_LINE % sizeof(struct entry) == 0, "a probe must touch one line");

/*
 * Linear probing, half full at most. n_probes, fixed when the table is built, bounds every
 * lookup: whoever makes up connection ids chooses where to begin, and no more. The ids are
 * the operator's, so no secret is needed.
 */
struct lb_quic_table {
	alignas(LB_CACHE_LINE) struct config configs[N_CODEPOINTS];
	struct entry *entries; /* mask + 1 of them, a power of two */
	uint64_t mask;
	uint64_t n_probes; /* slots from home to the furthest id, both included */
};

static struct id
id_of(const uint8_t bytes[ID_BYTES])
{
	struct id id;

	memcpy(id.words, bytes, sizeof(id.words));
	return id;
}

static uint32_t
find_id(const struct lb_quic_table *table, const struct id *id)
{
	const uint64_t home = lb_hash_bytes(id->words, sizeof(id->words), 0);

	for (uint64_t i = 0; i < table->n_probes; i++) {
		const struct entry *entry = &table->entries[(home + i) & table->mask];

		if (entry->value == LB_QUIC_NONE)
			return LB_QUIC_NONE;
		if (entry->id.words[0] == id->words[0] && entry->id.words[1] == id->words[1])
			return entry->value;
	}
	return LB_QUIC_NONE;
}

/* The caller has seen that the id is not there. */
static void
add_id(struct lb_quic_table *table, const struct id *id, uint32_t value)
{
	const uint64_t home = lb_hash_bytes(id->words, sizeof(id->words), 0);
	uint64_t distance = 0;

	while (table->entries[(home + distance) & table->mask].value != LB_QUIC_NONE)
		distance++;
	table->entries[(home + distance) & table->mask] =
		(struct entry){.id = *id, .value = value};
	if (distance + 1 > table->n_probes)
		table->n_probes = distance + 1;
}

size_t
lb_quic_table_bytes(size_t n)
{
	if (n > LB_QUIC_SERVERS_MAX)
		return 0;
	return sizeof(struct lb_quic_table) + lb_hash_entries_for(n) * sizeof(struct entry);
}

static bool
is_valid_config(const struct lb_quic_config *config)
{
	if (config->codepoint >= LB_QUIC_CONFIGS_MAX)
		return false;
	if (config->server_id_bytes < 1 ||
		config->server_id_bytes > LB_QUIC_SERVER_ID_BYTES_MAX)
		return false;
	return config->nonce_bytes >= LB_QUIC_NONCE_BYTES_MIN &&
	       config->nonce_bytes <= BODY_BYTES_MAX - config->server_id_bytes;
}

static enum form
form_of(const struct lb_quic_config *config, unsigned int body_bytes)
{
	if (!config->has_key)
		return PLAIN;
	return body_bytes == LB_AES_BLOCK_BYTES ? SINGLE_PASS : FOUR_PASS;
}

/* A body of an odd length is split in the middle of a byte, of which each half has its four
 * bits and zeros for the other's. */
static void
set_config(struct config *out, const struct lb_quic_config *config)
{
	const unsigned int body_bytes = config->server_id_bytes + config->nonce_bytes;
	const unsigned int half_bytes = (body_bytes + 1) / 2;

	*out = (struct config){
		.form = form_of(config, body_bytes),
		.has_length = config->has_length,
		.is_id_in_left = config->server_id_bytes <= config->nonce_bytes,
		.server_id_bytes = config->server_id_bytes,
		.body_bytes = (uint8_t)body_bytes,
		.right_at = (uint8_t)(body_bytes - half_bytes),
	};
	memset(out->id, 0xff, config->server_id_bytes);
	if (config->has_key)
		lb_aes_set_key(&out->aes, config->key);
	if (out->form != FOUR_PASS)
		return;
	memset(out->left, 0xff, half_bytes);
	memset(out->right, 0xff, half_bytes);
	if (body_bytes % 2 != 0) {
		out->left[half_bytes - 1] = 0xf0;
		out->right[0] = 0x0f;
	}
}

static int
add_config(struct lb_quic_table *table, const struct lb_quic_config *config)
{
	if (!is_valid_config(config))
		return -EINVAL;
	if (table->configs[config->codepoint].form != UNKNOWN)
		return -EEXIST;
	set_config(&table->configs[config->codepoint], config);
	return 0;
}

static int
add_server(struct lb_quic_table *table, const struct lb_quic_server *server)
{
	uint8_t bytes[ID_BYTES] = {[CODEPOINT_AT] = server->codepoint};
	struct id id;

	if (server->codepoint >= LB_QUIC_CONFIGS_MAX || server->value == LB_QUIC_NONE)
		return -EINVAL;
	/* Without a configuration the length is 0, which no id may have. */
	if (server->n_bytes == 0 ||
		server->n_bytes != table->configs[server->codepoint].server_id_bytes)
		return -EINVAL;
	memcpy(bytes, server->id, server->n_bytes);
	id = id_of(bytes);
	if (find_id(table, &id) != LB_QUIC_NONE)
		return -EEXIST;
	add_id(table, &id, server->value);
	return 0;
}

int
lb_quic_table_build(void *mem, const struct lb_quic_config *configs, size_t n_configs,
	const struct lb_quic_server *servers, size_t n_servers,
	const struct lb_quic_table **out)
{
	struct lb_quic_table *table = mem;

	if (n_servers > LB_QUIC_SERVERS_MAX)
		return -E2BIG;

	memset(table, 0, sizeof(*table));
	table->entries = (struct entry *)(table + 1);
	table->mask = lb_hash_entries_for(n_servers) - 1;
	for (size_t i = 0; i <= table->mask; i++)
		table->entries[i] = (struct entry){.value = LB_QUIC_NONE};
	for (size_t i = 0; i < n_configs; i++) {
		const int ret = add_config(table, &configs[i]);

		if (ret != 0)
			return ret;
	}
	for (size_t i = 0; i < n_servers; i++) {
		const int ret = add_server(table, &servers[i]);

		if (ret != 0)
			return ret;
	}
	*out = table;
	return 0;
}

static bool
parse_long(const uint8_t *payload, size_t n, struct lb_quic_header *out)
{
	uint32_t version;
	size_t cid_bytes;

	if (n < LONG_CID_AT)
		return false;
	version = lb_bytes_load32_be(payload + 1);
	cid_bytes = payload[LONG_LENGTH_AT];
	if (version != VERSION_1 && version != VERSION_2)
		return false;
	if (cid_bytes > LB_QUIC_CID_BYTES_MAX || cid_bytes > n - LONG_CID_AT)
		return false;
	*out = (struct lb_quic_header){
		.is_long = true,
		.version = version,
		.cid = payload + LONG_CID_AT,
		.cid_bytes = cid_bytes,
	};
	return true;
}

/*
 * The first bit alone is looked at: the others are a version's own, and even the next one,
 * which RFC 9000 fixes, may be anything where RFC 9287 is spoken.
 */
bool
lb_quic_parse(const uint8_t *payload, size_t n, struct lb_quic_header *out)
{
	size_t cid_bytes;

	if (n < SHORT_CID_AT)
		return false;
	if ((payload[0] & LONG_BIT) != 0)
		return parse_long(payload, n, out);
	cid_bytes = n - SHORT_CID_AT;
	*out = (struct lb_quic_header){
		.cid = payload + SHORT_CID_AT,
		.cid_bytes =
			cid_bytes < LB_QUIC_CID_BYTES_MAX ? cid_bytes : LB_QUIC_CID_BYTES_MAX,
	};
	return true;
}

/* Whether the first octet's idea of the length goes with the header's, or with what there is
 * where a short header has no idea, and with what the configuration needs. */
static bool
is_length_right(const struct config *config, const struct lb_quic_header *header)
{
	const size_t cid_bytes = 1 + (size_t)(header->cid[0] & LENGTH_MASK);

	if (header->is_long)
		return cid_bytes == header->cid_bytes;
	return cid_bytes > config->body_bytes && cid_bytes <= header->cid_bytes;
}

/* One pass of the draft's section 5.4.2: onto ^= AES(expand(length, pass, from)). Both halves
 * are zero but for the bits that are theirs, so that expand() only adds two bytes. */
static inline void
do_pass(const struct config *config, uint8_t pass, const uint8_t from[LB_AES_BLOCK_BYTES],
	const uint8_t mask[LB_AES_BLOCK_BYTES], uint8_t onto[LB_AES_BLOCK_BYTES])
{
	uint8_t block[LB_AES_BLOCK_BYTES];

	memcpy(block, from, sizeof(block));
	block[EXPAND_LENGTH_AT] = config->body_bytes;
	block[EXPAND_PASS_AT] = pass;
	lb_aes_encrypt(&config->aes, block, block);
	for (unsigned int i = 0; i < LB_AES_BLOCK_BYTES; i++)
		onto[i] ^= block[i] & mask[i];
}

/* In padded, from body to as much of the clear text as has the server id: what lies behind
 * the first block is not part of any. */
static void
undo_four_passes(const struct config *config, uint8_t padded[2 * LB_AES_BLOCK_BYTES])
{
	uint8_t *const at = padded + config->right_at;
	uint8_t left[LB_AES_BLOCK_BYTES];
	uint8_t right[LB_AES_BLOCK_BYTES];

	for (unsigned int i = 0; i < LB_AES_BLOCK_BYTES; i++) {
		left[i] = padded[i] & config->left[i];
		right[i] = at[i] & config->right[i];
	}
	do_pass(config, 4, right, config->left, left);
	do_pass(config, 3, left, config->right, right);
	do_pass(config, 2, right, config->left, left);
	memcpy(padded, left, sizeof(left));
	if (config->is_id_in_left)
		return;
	do_pass(config, 1, left, config->right, right);
	for (unsigned int i = 0; i < LB_AES_BLOCK_BYTES; i++)
		at[i] |= right[i];
}

/* The server id in a connection id that is long enough for its configuration. */
static struct id
decode(const struct config *config, const uint8_t *cid)
{
	uint8_t padded[2 * LB_AES_BLOCK_BYTES] = {0};
	uint8_t bytes[ID_BYTES];

	memcpy(padded, cid + 1, config->body_bytes);
	if (config->form == SINGLE_PASS)
		lb_aes_decrypt(&config->aes, padded, padded);
	else if (config->form == FOUR_PASS)
		undo_four_passes(config, padded);
	for (unsigned int i = 0; i < ID_BYTES; i++)
		bytes[i] = padded[i] & config->id[i];
	bytes[CODEPOINT_AT] = (uint8_t)(cid[0] >> CODEPOINT_SHIFT);
	return id_of(bytes);
}

uint32_t
lb_quic_find(const struct lb_quic_table *table, const uint8_t *payload, size_t n)
{
	const struct config *config;
	struct lb_quic_header header;
	unsigned int codepoint;
	struct id id;

	if (!lb_quic_parse(payload, n, &header) || header.cid_bytes == 0)
		return LB_QUIC_NONE;
	codepoint = header.cid[0] >> CODEPOINT_SHIFT;
	//@ split codepoint;
	config = &table->configs[codepoint];
	/* A server may have added bytes of its own, so the id may be longer. */
	if (config->form == UNKNOWN || header.cid_bytes <= config->body_bytes)
		return LB_QUIC_NONE;
	if (config->has_length && !is_length_right(config, &header))
		return LB_QUIC_NONE;
	id = decode(config, header.cid);
	return find_id(table, &id);
}
