/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cfg_decode.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

#define INTERVAL_NS_MIN   (100 * MS)
#define INTERVAL_NS_MAX   (3600 * S)
#define TIMEOUT_NS_MIN    (10 * MS)
#define HALF_LIFE_NS_MIN  S
#define HALF_LIFE_NS_MAX  (86400 * S)
#define SLOW_START_NS_MAX (3600 * S)
#define COUNT_MAX         100u
#define STATUS_MIN        100u
#define STATUS_MAX        599u

/* Keys that mean something with some types only. */
static const struct {
	const char *key;
	unsigned int types; /* a bit each */
	const char *words;
} keys_of_types[] = {
	{"port",
		1u << CFG_HEALTH_TCP | 1u << CFG_HEALTH_HTTP | 1u << CFG_HEALTH_HTTPS |
			1u << CFG_HEALTH_UDP,
		"tcp, http, https or udp"},
	{"path", 1u << CFG_HEALTH_HTTP | 1u << CFG_HEALTH_HTTPS, "http or https"},
	{"host", 1u << CFG_HEALTH_HTTP | 1u << CFG_HEALTH_HTTPS, "http or https"},
	{"expect", 1u << CFG_HEALTH_HTTP | 1u << CFG_HEALTH_HTTPS | 1u << CFG_HEALTH_UDP,
		"http, https or udp"},
	{"verify", 1u << CFG_HEALTH_HTTPS, "https"},
};

static void
check_keys_of_type(const struct cfg_node *node, enum cfg_health_type type,
	struct cfg_errors *errors)
{
	for (size_t i = 0; i < LB_N_ELEMENTS(keys_of_types); i++) {
		const struct cfg_node *value = cfg_node_get(node, keys_of_types[i].key);

		if (value != NULL && (keys_of_types[i].types & 1u << type) == 0)
			cfg_error(errors, value->pos,
				"%s is for type %s, and this one is %s; remove it",
				keys_of_types[i].key, keys_of_types[i].words,
				cfg_health_words[type]);
	}
}

/* Printable ASCII without blanks: it goes into a request as it is. */
static bool
is_visible(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text <= ' ' || *text > '~')
			return false;
	}
	return true;
}

static void
decode_path(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_health *out)
{
	if (node == NULL)
		return;
	if (node->kind != CFG_SCALAR || node->text[0] != '/' || !is_visible(node->text) ||
		strlen(node->text) > CFG_HEALTH_PATH_BYTES_MAX) {
		(void)cfg_expected(node, "path", errors,
			"'/' and at most 1023 bytes of printable ASCII without blanks");
		return;
	}
	out->path = cfg_keep_text(node->text, errors);
}

static void
decode_host(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_health *out)
{
	if (node == NULL)
		return;
	if (node->kind != CFG_SCALAR || cfg_node_is_null(node) || node->text[0] == '\0' ||
		!is_visible(node->text) || strpbrk(node->text, "/:[]@") != NULL ||
		strlen(node->text) > CFG_HEALTH_HOST_BYTES_MAX) {
		(void)cfg_expected(node, "host", errors,
			"a name of at most 253 bytes, without a port");
		return;
	}
	out->host = cfg_keep_text(node->text, errors);
}

/* "200" or "200-399". */
static bool
scan_range(const char *text, struct cfg_range *out)
{
	char first[8];
	const char *dash = strchr(text, '-');
	const size_t n = dash != NULL ? (size_t)(dash - text) : strlen(text);
	uint64_t from;
	uint64_t to;

	if (n >= sizeof(first))
		return false;
	(void)snprintf(first, sizeof(first), "%.*s", (int)n, text);
	if (!cfg_scan_u64(first, STATUS_MIN, STATUS_MAX, &from))
		return false;
	to = from;
	if (dash != NULL && !cfg_scan_u64(dash + 1, from, STATUS_MAX, &to))
		return false;
	*out = (struct cfg_range){.first = (uint16_t)from, .last = (uint16_t)to};
	return true;
}

static void
decode_range(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_health *out)
{
	struct cfg_range range;

	if (node->kind != CFG_SCALAR || !scan_range(node->text, &range))
		(void)cfg_expected(node, "expect", errors,
			"a status from 100 to 599, or a range such as 200-399");
	else if (out->n_expect == CFG_HEALTH_RANGES_MAX)
		cfg_error(errors, node->pos, "one status too many; expect has at most %u",
			CFG_HEALTH_RANGES_MAX);
	else
		out->expect[out->n_expect++] = range;
}

static void
decode_expect(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_health *out)
{
	static const char *const words[] = {"any", "reply", NULL};
	unsigned int word;

	if (node == NULL)
		return;
	if (out->type == CFG_HEALTH_UDP) {
		if (cfg_read_word(node, "expect", words, errors, &word))
			out->wants_reply = word == 1;
		return;
	}
	if (node->kind != CFG_SEQUENCE) {
		decode_range(node, errors, out);
		return;
	}
	if (node->first == NULL)
		(void)cfg_expected(node, "expect", errors, "one status at least");
	for (const struct cfg_node *item = node->first; item != NULL; item = item->next)
		decode_range(item, errors, out);
}

static void
decode_times(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_health *out)
{
	const struct cfg_node *value = cfg_node_get(node, "interval");
	uint64_t timeout_ns_max;

	if (value != NULL)
		(void)cfg_read_duration(value, "interval", INTERVAL_NS_MIN, INTERVAL_NS_MAX,
			errors, &out->interval_ns);
	timeout_ns_max = out->interval_ns;
	if (out->timeout_ns > timeout_ns_max)
		out->timeout_ns = timeout_ns_max;
	/* A backend is asked once at a time. */
	value = cfg_node_get(node, "timeout");
	if (value != NULL)
		(void)cfg_read_duration(value, "timeout", TIMEOUT_NS_MIN, timeout_ns_max,
			errors, &out->timeout_ns);
	value = cfg_node_get(node, "flap_half_life");
	if (value != NULL && value->kind == CFG_SCALAR && strcmp(value->text, "off") == 0)
		out->half_life_ns = 0;
	else if (value != NULL)
		(void)cfg_read_duration(value, "flap_half_life", HALF_LIFE_NS_MIN,
			HALF_LIFE_NS_MAX, errors, &out->half_life_ns);
}

static void
decode_numbers(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_health *out)
{
	const struct cfg_node *value = cfg_node_get(node, "port");
	uint64_t number;

	if (value != NULL && cfg_read_u64(value, "port", 1, 65535, errors, &number))
		out->port = (uint16_t)number;
	value = cfg_node_get(node, "rise");
	if (value != NULL && cfg_read_u64(value, "rise", 1, COUNT_MAX, errors, &number))
		out->rise = (uint32_t)number;
	value = cfg_node_get(node, "fall");
	if (value != NULL && cfg_read_u64(value, "fall", 1, COUNT_MAX, errors, &number))
		out->fall = (uint32_t)number;
}

static void
decode_via(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_health *out)
{
	static const char *const words[] = {"direct", "tunnel", NULL};
	unsigned int word;

	if (node == NULL || !cfg_read_word(node, "via", words, errors, &word))
		return;
	out->is_tunnelled = word == 1 && out->type != CFG_HEALTH_NONE;
	if (out->is_tunnelled && out->type == CFG_HEALTH_ICMP)
		cfg_error(errors, node->pos,
			"via: tunnel is for type tcp, http, https or udp, and this one is "
			"icmp; expected direct");
}

/* What is lost on its way through the tunnel is silent, too. */
static void
decide_silence(const struct cfg_node *expect, struct cfg_errors *errors, struct cfg_health *out)
{
	if (!out->is_tunnelled || out->type != CFG_HEALTH_UDP || out->wants_reply)
		return;
	if (expect != NULL)
		cfg_error(errors, expect->pos,
			"expect: any is for via: direct, as through the tunnel silence tells "
			"nothing; expected reply");
	out->wants_reply = true;
}

static void
decode_health(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_health *out)
{
	static const char *const keys[] = {"type", "port", "path", "host", "expect", "verify",
		"interval", "timeout", "rise", "fall", "via", "flap_half_life", NULL};
	const struct cfg_node *value;
	unsigned int type;

	if (!cfg_node_check_keys(node, keys, errors))
		return;
	value = cfg_node_get(node, "type");
	if (value == NULL)
		(void)cfg_missing_key(node, "check", "type", errors);
	if (value == NULL || !cfg_read_word(value, "type", cfg_health_words, errors, &type))
		return;
	out->type = (enum cfg_health_type)type;
	check_keys_of_type(node, out->type, errors);
	decode_numbers(node, errors, out);
	decode_path(cfg_node_get(node, "path"), errors, out);
	decode_host(cfg_node_get(node, "host"), errors, out);
	decode_expect(cfg_node_get(node, "expect"), errors, out);
	value = cfg_node_get(node, "verify");
	if (value != NULL)
		(void)cfg_read_bool(value, "verify", errors, &out->is_verified);
	decode_times(node, errors, out);
	decode_via(cfg_node_get(node, "via"), errors, out);
	decide_silence(cfg_node_get(node, "expect"), errors, out);
}

void
cfg_decode_health(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_service *out)
{
	const struct cfg_node *value = cfg_node_get(node, "health");
	unsigned int word;
	uint64_t number;

	cfg_health_init(&out->health);
	out->min_healthy = 1;
	if (value != NULL) {
		out->health_pos = value->pos;
		decode_health(value, errors, &out->health);
	}
	value = cfg_node_get(node, "slow_start");
	if (value != NULL)
		(void)cfg_read_duration(value, "slow_start", 0, SLOW_START_NS_MAX, errors,
			&out->slow_start_ns);
	value = cfg_node_get(node, "min_healthy");
	if (value != NULL && cfg_read_u64(value, "min_healthy", 1, LB_SERVICE_BACKENDS_MAX,
				     errors, &number)) {
		out->min_healthy_pos = value->pos;
		out->min_healthy = (uint32_t)number;
	}
	value = cfg_node_get(node, "when_all_down");
	if (value != NULL &&
		cfg_read_word(value, "when_all_down", cfg_all_down_words, errors, &word))
		out->when_all_down = (enum cfg_all_down)word;
}
