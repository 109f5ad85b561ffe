/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_yaml.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "cfg_check.h"
#include "cfg_decode.h"

#define SOCKET_BYTES_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

bool
cfg_read_u64_or_word(const struct cfg_node *node, const char *what, const char *word,
	uint64_t max, struct cfg_errors *errors, uint64_t *out)
{
	char expected[80];

	if (node->kind == CFG_SCALAR && strcmp(node->text, word) == 0) {
		*out = 0;
		return true;
	}
	if (node->kind == CFG_SCALAR && cfg_scan_u64(node->text, 1, max, out))
		return true;
	(void)snprintf(expected, sizeof(expected), "%s or a whole number from 1 to %" PRIu64,
		word, max);
	return cfg_expected(node, what, errors, expected);
}

size_t
cfg_count_items(const struct cfg_node *node, const char *what, struct cfg_errors *errors)
{
	size_t n = 0;

	if (node == NULL || cfg_node_is_null(node))
		return 0;
	if (node->kind != CFG_SEQUENCE) {
		(void)cfg_expected(node, what, errors, "a list");
		return 0;
	}
	for (const struct cfg_node *item = node->first; item != NULL; item = item->next)
		n++;
	return n;
}

bool
cfg_missing_key(const struct cfg_node *item, const char *what, const char *key,
	struct cfg_errors *errors)
{
	cfg_error(errors, item->pos, "this %s has no key '%s', which it needs", what, key);
	return false;
}

void
cfg_decode_name(const struct cfg_node *item, const char *what, struct cfg_errors *errors,
	char **out, struct cfg_pos *pos)
{
	const struct cfg_node *value = cfg_node_get(item, "name");
	const char *text;

	if (value == NULL) {
		(void)cfg_missing_key(item, what, "name", errors);
	} else if (cfg_read_name(value, "name", errors, &text)) {
		*out = cfg_keep_text(text, errors);
		*pos = value->pos;
	}
}

static void
decode_socket(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_model *out)
{
	if (node == NULL)
		return;
	if (node->kind != CFG_SCALAR || cfg_node_is_null(node) || node->text[0] == '\0' ||
		strlen(node->text) > SOCKET_BYTES_MAX) {
		char expected[64];

		(void)snprintf(expected, sizeof(expected), "a path of 1 to %zu bytes",
			SOCKET_BYTES_MAX);
		(void)cfg_expected(node, "socket", errors, expected);
		return;
	}
	if (cfg_model_set_text(&out->control_socket, node->text) != 0)
		cfg_error_memory(errors);
}

static void
decode_metrics(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_model *out)
{
	const char *text = NULL;
	struct lb_addr addr;
	uint16_t port;

	if (node == NULL)
		return;
	if (node->kind != CFG_SCALAR ||
		(strcmp(node->text, "off") != 0 &&
			!cfg_scan_endpoint(node->text, 1, &addr, &port))) {
		(void)cfg_expected(node, "metrics", errors,
			"off or ADDRESS:PORT such as 127.0.0.1:9464 or \"[::1]:9464\"");
		return;
	}
	if (strcmp(node->text, "off") != 0)
		text = node->text;
	if (cfg_model_set_text(&out->control_metrics, text) != 0)
		cfg_error_memory(errors);
}

static void
decode_control(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_model *out)
{
	static const char *const keys[] = {"socket", "metrics", NULL};

	if (node == NULL || cfg_node_is_null(node) || !cfg_node_check_keys(node, keys, errors))
		return;
	decode_socket(cfg_node_get(node, "socket"), errors, out);
	decode_metrics(cfg_node_get(node, "metrics"), errors, out);
}

static void
decode_root(const struct cfg_node *root, struct cfg_errors *errors, struct cfg_model *out)
{
	static const char *const keys[] = {"dataplane", "control", "announce", "services",
		"hash_seed", NULL};
	const struct cfg_node *seed;

	if (root == NULL || cfg_node_is_null(root)) {
		cfg_error(errors, (struct cfg_pos){1, 1},
			"nothing is in it; write 'services: []' for a configuration without "
			"services");
		out->dataplane.bad = CFG_BAD_OTHER;
		return;
	}
	if (!cfg_node_check_keys(root, keys, errors)) {
		out->dataplane.bad = CFG_BAD_OTHER;
		return;
	}
	cfg_decode_dataplane(cfg_node_get(root, "dataplane"), errors, &out->dataplane);
	decode_control(cfg_node_get(root, "control"), errors, out);
	cfg_decode_announce(cfg_node_get(root, "announce"), errors, &out->announce);
	cfg_decode_services(cfg_node_get(root, "services"), errors, out);
	seed = cfg_node_get(root, "hash_seed");
	if (seed != NULL)
		(void)cfg_read_u64(seed, "hash_seed", 0, UINT64_MAX, errors, &out->hash_seed);
}

void
cfg_decode_model(const struct cfg_node *root, struct cfg_errors *errors, struct cfg_model *out)
{
	cfg_model_init(out);
	out->file = cfg_keep_text(errors->file, errors);
	decode_root(root, errors, out);
}

int
cfg_finish_model(struct cfg_model *model, bool needs_ports, struct cfg_errors *errors)
{
	if (!errors->no_memory && !cfg_must_stop(errors)) {
		if (needs_ports)
			cfg_check_daemon(&model->dataplane, errors);
		(void)cfg_check_model(model, errors);
	}
	if (errors->n_errors == 0)
		return 0;
	cfg_model_fini(model);
	return errors->no_memory ? -ENOMEM : -EINVAL;
}

/* Takes the tree. */
static int
read_tree(struct cfg_node *root, struct cfg_errors *errors, struct cfg_model *out)
{
	struct cfg_model model;
	int ret;

	cfg_decode_model(root, errors, &model);
	cfg_node_free(root);
	ret = cfg_finish_model(&model, false, errors);
	if (ret == 0)
		*out = model;
	return ret;
}

int
cfg_read_file(const char *path, FILE *messages, struct cfg_model *out)
{
	struct cfg_errors errors = {.to = messages, .file = path};
	struct cfg_node *root = NULL;
	const int ret = cfg_node_read_file(&errors, &root);

	if (ret != 0)
		return ret;
	return read_tree(root, &errors, out);
}

int
cfg_read_text_model(const char *name, const char *text, size_t n_bytes, FILE *messages,
	struct cfg_model *out)
{
	struct cfg_errors errors = {.to = messages, .file = name};
	struct cfg_node *root = NULL;
	const int ret = cfg_node_parse(text, n_bytes, &errors, &root);

	if (ret != 0)
		return ret;
	return read_tree(root, &errors, out);
}
