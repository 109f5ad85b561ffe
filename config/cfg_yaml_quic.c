/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cfg_decode.h"
#include "lb_hex.h"

/* Two digits a byte, 1..n_max bytes; how many they are, or 0 where text is something else. */
static size_t
scan_hex(const char *text, uint8_t *out, size_t n_max)
{
	const size_t n = strlen(text);

	if (n == 0 || n % 2 != 0 || n / 2 > n_max)
		return 0;
	for (size_t i = 0; i < n; i += 2) {
		const int byte = lb_hex_byte(text + i);

		if (byte < 0)
			return 0;
		out[i / 2] = (uint8_t)byte;
	}
	return n / 2;
}

/* What is there instead is not shown: it may be the key but for a digit, and logs are read. */
static bool
decode_key(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_quic *out)
{
	uint8_t key[CFG_QUIC_KEY_BYTES];

	if (node == NULL)
		return true;
	if (node->kind != CFG_SCALAR || cfg_node_is_null(node))
		return cfg_expected(node, "cid_key", errors, "32 hex digits");
	if (scan_hex(node->text, key, sizeof(key)) != sizeof(key)) {
		cfg_error(errors, node->pos,
			"cid_key: expected 32 hex digits, found another text, which is not "
			"shown, as it may be secret");
		return false;
	}
	memcpy(out->key, key, sizeof(key));
	out->has_key = true;
	return true;
}

/* A number that has to be there; 0 where it is not. */
static bool
decode_length(const struct cfg_node *item, const char *key, uint64_t min, uint64_t max,
	struct cfg_errors *errors, uint8_t *out)
{
	const struct cfg_node *node = cfg_node_get(item, key);
	uint64_t number;

	if (node == NULL)
		return cfg_missing_key(item, "configuration", key, errors);
	if (!cfg_read_u64(node, key, min, max, errors, &number))
		return false;
	*out = (uint8_t)number;
	return true;
}

static bool
decode_lengths(const struct cfg_node *item, struct cfg_errors *errors, struct cfg_quic *out)
{
	bool is_right = true;

	is_right &= decode_length(item, "server_id_length", 1, CFG_QUIC_ID_BYTES_MAX, errors,
		&out->server_id_bytes);
	is_right &= decode_length(item, "nonce_length", CFG_QUIC_NONCE_BYTES_MIN,
		CFG_QUIC_NONCE_BYTES_MAX, errors, &out->nonce_bytes);
	if (!is_right || out->server_id_bytes + out->nonce_bytes <= CFG_QUIC_BOTH_BYTES_MAX)
		return is_right;
	cfg_error(errors, cfg_node_get(item, "nonce_length")->pos,
		"nonce_length: server_id_length and nonce_length are %d together; expected "
		"at most %u, as a connection id has %u bytes at most",
		out->server_id_bytes + out->nonce_bytes, CFG_QUIC_BOTH_BYTES_MAX,
		CFG_QUIC_BOTH_BYTES_MAX + 1);
	return false;
}

/* False: what it has is not to be checked further, but for its config_id. */
static bool
decode_config(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_quic *out)
{
	static const char *const keys[] = {"config_id", "server_id_length", "nonce_length",
		"cid_key", "first_octet_encodes_cid_length", NULL};
	const struct cfg_node *value;
	bool is_right;

	*out = (struct cfg_quic){.config_id = CFG_QUIC_CONFIG_NONE};
	if (!cfg_node_check_keys(node, keys, errors))
		return false;
	value = cfg_node_get(node, "config_id");
	if (value != NULL)
		out->config_id_pos = value->pos;
	is_right = decode_length(node, "config_id", 0, CFG_QUIC_CONFIGS_MAX - 1, errors,
		&out->config_id);
	is_right &= decode_lengths(node, errors, out);
	is_right &= decode_key(cfg_node_get(node, "cid_key"), errors, out);
	value = cfg_node_get(node, "first_octet_encodes_cid_length");
	if (value != NULL)
		is_right &= cfg_read_bool(value, "first_octet_encodes_cid_length", errors,
			&out->has_length);
	return is_right;
}

bool
cfg_decode_quic(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_service *out)
{
	const size_t n_before = errors->n_errors;
	const size_t n = cfg_count_items(node, "quic", errors);
	bool is_right = errors->n_errors == n_before;

	if (n == 0)
		return is_right;
	out->quic_pos = node->pos;
	out->quic = calloc(CFG_QUIC_CONFIGS_MAX, sizeof(*out->quic));
	if (out->quic == NULL) {
		cfg_error_memory(errors);
		return false;
	}
	for (const struct cfg_node *item = node->first; item != NULL; item = item->next) {
		if (out->n_quic == CFG_QUIC_CONFIGS_MAX) {
			cfg_error(errors, item->pos,
				"one configuration too many; quic has at most %u",
				CFG_QUIC_CONFIGS_MAX);
			return false;
		}
		is_right &= decode_config(item, errors, &out->quic[out->n_quic++]);
	}
	return is_right;
}

static void
decode_id(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_backend *out)
{
	struct cfg_quic_id id = {.pos = node->pos};
	size_t n = 0;

	/* Text whatever it looks like: 0012 and 1e10 are as they are written. */
	if (node->kind == CFG_SCALAR && !cfg_node_is_null(node))
		n = scan_hex(node->text, id.bytes, sizeof(id.bytes));
	if (n == 0) {
		(void)cfg_expected(node, "quic_id", errors,
			"1 to 15 bytes, each as two hex digits, such as 0a1b");
		return;
	}
	id.n_bytes = (uint8_t)n;
	out->quic_ids[out->n_quic_ids++] = id;
}

void
cfg_decode_quic_ids(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_backend *out)
{
	const bool is_list = node != NULL && node->kind == CFG_SEQUENCE;
	size_t n = is_list ? cfg_count_items(node, "quic_id", errors) : 1;

	if (node == NULL || n == 0)
		return;
	if (n > CFG_QUIC_IDS_MAX)
		n = CFG_QUIC_IDS_MAX;
	out->quic_ids = calloc(n, sizeof(*out->quic_ids));
	if (out->quic_ids == NULL) {
		cfg_error_memory(errors);
		return;
	}
	if (!is_list) {
		decode_id(node, errors, out);
		return;
	}
	for (const struct cfg_node *item = node->first; item != NULL; item = item->next) {
		if (n-- == 0) {
			cfg_error(errors, item->pos,
				"one server id too many; a backend has at most %u",
				CFG_QUIC_IDS_MAX);
			return;
		}
		decode_id(item, errors, out);
	}
}
