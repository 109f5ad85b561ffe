/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_expect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay_expect_items.h"

const char *const replay_expect_key_names[] = {
	[EXPECT_VERDICT] = "verdict",
	[EXPECT_SERVICE] = "service",
	[EXPECT_BACKEND] = "backend",
	[EXPECT_FLOW] = "flow",
	[EXPECT_SLOT] = "slot",
	[EXPECT_REASON] = "reason",
	[N_EXPECT_KEYS] = NULL,
};

/* What an item may hold, by what it is about; its first key says what that is. */
static const char *const item_keys[N_EXPECT_KINDS][N_EXPECT_KEYS + 2] = {
	[EXPECT_VALUE] = {"value", "is", "min", "max", NULL},
	[EXPECT_SHARE] = {"share", "is", "min", "max", NULL},
	[EXPECT_DROPS] = {"drops", "is", "min", "max", NULL},
	[EXPECT_PACKET] = {"packet", "verdict", "service", "backend", "flow", "slot", "reason",
		NULL},
};

static const char *const all_keys[] = {"value", "share", "drops", "packet", "is", "min", "max",
	"verdict", "service", "backend", "flow", "slot", "reason", NULL};

static const char *const verdict_words[] = {"forward", "reply", "kernel", "drop", NULL};
static const char *const flow_words[] = {"hit", "miss", "none", NULL};

static bool
read_reason(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	enum lb_verdict *out)
{
	const char *words[LB_N_VERDICTS - LB_FIRST_DROP + 1] = {NULL};
	unsigned int i = 0;

	for (int verdict = LB_FIRST_DROP; verdict < LB_N_VERDICTS; verdict++)
		words[verdict - LB_FIRST_DROP] = lb_verdict_reason((enum lb_verdict)verdict);
	if (!cfg_read_word(node, what, words, errors, &i))
		return false;
	*out = (enum lb_verdict)(LB_FIRST_DROP + i);
	return true;
}

static bool
read_number(const struct cfg_node *item, const char *key, struct cfg_errors *errors,
	struct expect_number *out)
{
	const struct cfg_node *node = cfg_node_get(item, key);

	if (node == NULL)
		return true;
	out->is_given = true;
	if (!cfg_read_decimal(node, key, errors, &out->value))
		return false;
	out->is_whole = cfg_scan_u64(node->text, 0, UINT64_MAX, &out->whole);
	return true;
}

static bool
is_share(const struct expect_number *number)
{
	return !number->is_given || (number->value >= 0.0 && number->value <= 1.0);
}

/* A condition that nothing could meet, or that says nothing, is a mistake. */
static void
check_bounds(const struct expect_item *item, const struct cfg_node *node,
	struct cfg_errors *errors)
{
	const struct expect_bounds *bounds = &item->bounds;
	const bool is_range = bounds->min.is_given || bounds->max.is_given;

	if (bounds->is.is_given && is_range)
		cfg_error(errors, node->pos, "is: beside min: or max:; write one or the other");
	else if (!bounds->is.is_given && !is_range)
		cfg_error(errors, node->pos,
			"%s: without a condition; write is: N, or min: N and max: N, or one of "
			"them",
			item_keys[item->kind][0]);
	else if (bounds->min.is_given && bounds->max.is_given &&
		 bounds->min.value > bounds->max.value)
		cfg_error(errors, node->pos, "min: is above max:; nothing lies between them");
	else if (item->kind == EXPECT_SHARE &&
		 (!is_share(&bounds->is) || !is_share(&bounds->min) || !is_share(&bounds->max)))
		cfg_error(errors, node->pos,
			"share: a share is a number from 0 to 1; write 0.5 for a half");
}

static void
decode_bounds(const struct cfg_node *node, struct cfg_errors *errors, struct expect_item *item)
{
	bool is_right = true;

	is_right &= read_number(node, "is", errors, &item->bounds.is);
	is_right &= read_number(node, "min", errors, &item->bounds.min);
	is_right &= read_number(node, "max", errors, &item->bounds.max);
	if (is_right)
		check_bounds(item, node, errors);
}

/* NAME, or SERVICE/NAME. */
static bool
is_backend(const char *text, bool has_service)
{
	const char *slash = strchr(text, '/');
	char service[LB_NAME_BYTES_MAX + 1];
	size_t n;

	if (slash == NULL)
		return !has_service && cfg_is_name(text);

	n = (size_t)(slash - text);
	if (n >= sizeof(service))
		return false;
	memcpy(service, text, n);
	service[n] = '\0';
	return cfg_is_name(service) && cfg_is_name(slash + 1);
}

static bool
read_backend(const struct cfg_node *node, struct cfg_errors *errors)
{
	if (node->kind == CFG_SCALAR && is_backend(node->text, false))
		return true;
	return cfg_expected(node, "backend", errors, "NAME or SERVICE/NAME such as web/web-1");
}

/* Whether a key of a decision is right; null is a value of some, as it is in a decision. */
static bool
check_want(enum expect_key key, const struct cfg_node *node, struct cfg_errors *errors)
{
	const char *what = replay_expect_key_names[key];
	enum lb_verdict reason;
	unsigned int word;
	const char *name;
	uint64_t slot;

	if (key == EXPECT_VERDICT)
		return cfg_read_word(node, what, verdict_words, errors, &word);
	if (key == EXPECT_FLOW)
		return cfg_read_word(node, what, flow_words, errors, &word);
	if (cfg_node_is_null(node))
		return true;
	switch (key) {
	case EXPECT_SERVICE:
		return cfg_read_name(node, what, errors, &name);
	case EXPECT_BACKEND:
		return read_backend(node, errors);
	case EXPECT_SLOT:
		return cfg_read_u64(node, what, 0, LB_SLOTS_MAX - 1, errors, &slot);
	default:
		return read_reason(node, what, errors, &reason);
	}
}

static void
decode_packet(const struct cfg_node *node, struct cfg_errors *errors, struct expect_item *item)
{
	bool is_given = false;

	(void)cfg_read_u64(cfg_node_get(node, "packet"), "packet", 1, UINT64_MAX, errors,
		&item->packet);
	for (int i = 0; i < N_EXPECT_KEYS; i++) {
		const struct cfg_node *value = cfg_node_get(node, replay_expect_key_names[i]);

		if (value == NULL)
			continue;
		is_given = true;
		item->is_given[i] = true;
		if (check_want((enum expect_key)i, value, errors) && !cfg_node_is_null(value))
			item->wants[i] = cfg_keep_text(value->text, errors);
	}
	if (!is_given)
		cfg_error(errors, node->pos,
			"packet: without a condition; write any of verdict, service, backend, "
			"flow, slot and reason");
}

static bool
read_path(const struct cfg_node *node, struct cfg_errors *errors, const char **out)
{
	const char *text;

	if (!cfg_read_text(node, "value", errors, &text))
		return false;
	if (text[0] == '.' || text[strlen(text) - 1] == '.')
		return cfg_expected(node, "value", errors,
			"the path of a number of the report such as flows.broken");
	*out = text;
	return true;
}

static void
decode_subject(const struct cfg_node *node, struct cfg_errors *errors, struct expect_item *item)
{
	const char *text = NULL;

	if (item->kind == EXPECT_DROPS) {
		(void)read_reason(node, "drops", errors, &item->reason);
	} else if (item->kind == EXPECT_VALUE) {
		if (read_path(node, errors, &text))
			item->name = cfg_keep_text(text, errors);
	} else if (node->kind == CFG_SCALAR && is_backend(node->text, true)) {
		item->name = cfg_keep_text(node->text, errors);
	} else {
		(void)cfg_expected(node, "share", errors, "SERVICE/NAME such as web/web-1");
	}
}

/* What an item is about; N_EXPECT_KINDS where that cannot be told: errors was told. */
static enum expect_kind
find_kind(const struct cfg_node *node, struct cfg_errors *errors)
{
	const size_t n_before = errors->n_errors;
	enum expect_kind kind = N_EXPECT_KINDS;
	size_t n = 0;

	for (int i = 0; node->kind == CFG_MAPPING && i < N_EXPECT_KINDS; i++) {
		if (cfg_node_get(node, item_keys[i][0]) == NULL)
			continue;
		kind = (enum expect_kind)i;
		n++;
	}
	if (n == 1)
		return kind;

	if (cfg_node_check_keys(node, all_keys, errors) && errors->n_errors == n_before)
		cfg_error(errors, node->pos, "%s; write one of value, share, drops or packet",
			n == 0 ? "an expectation of nothing" : "two expectations in one item");
	return N_EXPECT_KINDS;
}

static void
decode_item(const struct cfg_node *node, struct cfg_errors *errors, struct expect_item *item)
{
	const size_t n_before = errors->n_errors;
	const enum expect_kind kind = find_kind(node, errors);

	if (kind == N_EXPECT_KINDS)
		return;
	item->kind = kind;
	item->line = node->pos.line;

	/* With a key misspelt, that its right spelling is missing is no news. */
	if (!cfg_node_check_keys(node, item_keys[kind], errors) || errors->n_errors != n_before)
		return;
	if (kind == EXPECT_PACKET) {
		decode_packet(node, errors, item);
		return;
	}
	decode_subject(cfg_node_get(node, item_keys[kind][0]), errors, item);
	decode_bounds(node, errors, item);
}

static int
decode_list(const struct cfg_node *root, struct cfg_errors *errors,
	struct replay_expect *expect)
{
	size_t n = 0;

	if (root == NULL)
		return 0;
	if (root->kind != CFG_SEQUENCE) {
		(void)cfg_expected(root, "expectations", errors,
			"a list, with an item such as - {value: flows.broken, max: 0} for "
			"each");
		return -EINVAL;
	}

	for (const struct cfg_node *node = root->first; node != NULL; node = node->next)
		n++;
	expect->items = calloc(n + 1, sizeof(*expect->items));
	if (expect->items == NULL) {
		cfg_error_memory(errors);
		return -ENOMEM;
	}
	for (const struct cfg_node *node = root->first; node != NULL; node = node->next)
		decode_item(node, errors, &expect->items[expect->n_items++]);
	if (errors->n_errors == 0)
		return 0;
	return errors->no_memory ? -ENOMEM : -EINVAL;
}

static int
compare_packets(const void *a, const void *b, void *items)
{
	const size_t x = *(const size_t *)a;
	const size_t y = *(const size_t *)b;
	const uint64_t packet_x = ((const struct expect_item *)items)[x].packet;
	const uint64_t packet_y = ((const struct expect_item *)items)[y].packet;

	if (packet_x != packet_y)
		return packet_x < packet_y ? -1 : 1;
	return x < y ? -1 : 1;
}

static int
sort_packets(struct replay_expect *expect)
{
	expect->by_packet = calloc(expect->n_items + 1, sizeof(*expect->by_packet));
	if (expect->by_packet == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < expect->n_items; i++) {
		if (expect->items[i].kind == EXPECT_PACKET)
			expect->by_packet[expect->n_by_packet++] = i;
	}
	qsort_r(expect->by_packet, expect->n_by_packet, sizeof(*expect->by_packet),
		compare_packets, expect->items);
	return 0;
}

static int
make_expect(const struct cfg_node *root, struct cfg_errors *errors, struct replay_expect **out)
{
	struct replay_expect *expect = calloc(1, sizeof(*expect));
	int ret;

	if (expect == NULL) {
		cfg_error_memory(errors);
		return -ENOMEM;
	}
	ret = decode_list(root, errors, expect);
	if (ret != 0)
		goto free_expect;

	expect->file = cfg_keep_text(errors->file, errors);
	if (expect->file == NULL) {
		ret = -ENOMEM;
		goto free_expect;
	}
	ret = sort_packets(expect);
	if (ret != 0) {
		cfg_error_memory(errors);
		goto free_expect;
	}
	*out = expect;
	return 0;

free_expect:
	replay_expect_free(expect);
	return ret;
}

int
replay_expect_read(const char *path, FILE *messages, struct replay_expect **out)
{
	struct cfg_errors errors = {.to = messages, .file = path};
	struct cfg_node *root;
	int ret;

	ret = cfg_node_read_file(&errors, &root);
	if (ret != 0)
		return ret;

	ret = make_expect(root, &errors, out);
	cfg_node_free(root);
	return ret;
}

int
replay_expect_parse(const char *text, size_t n_bytes, const char *name, FILE *messages,
	struct replay_expect **out)
{
	struct cfg_errors errors = {.to = messages, .file = name};
	struct cfg_node *root;
	int ret;

	ret = cfg_node_parse(text, n_bytes, &errors, &root);
	if (ret != 0)
		return ret;

	ret = make_expect(root, &errors, out);
	cfg_node_free(root);
	return ret;
}

void
replay_expect_free(struct replay_expect *expect)
{
	if (expect == NULL)
		return;
	for (size_t i = 0; i < expect->n_items; i++) {
		struct expect_item *item = &expect->items[i];

		free(item->name);
		free(item->found);
		for (size_t k = 0; k < N_EXPECT_KEYS; k++)
			free(item->wants[k]);
	}
	free(expect->items);
	free(expect->by_packet);
	free(expect->file);
	free(expect);
}
