/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_node.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_character.h"

/* Digits from *text on, without a leading zero but for 0 itself; *text moves past them. */
static bool
scan_whole(const char **text, uint64_t *out)
{
	const char *at = *text;
	uint64_t value = 0;

	if (*at < '0' || *at > '9' || (at[0] == '0' && at[1] >= '0' && at[1] <= '9'))
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return false;
	}
	*text = at;
	*out = value;
	return true;
}

bool
cfg_scan_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value;

	if (!scan_whole(&text, &value) || *text != '\0' || value < min || value > max)
		return false;
	*out = value;
	return true;
}

bool
cfg_scan_endpoint(const char *text, uint16_t port_min, struct lb_addr *addr, uint16_t *port)
{
	char head[LB_ADDR_TEXT_BYTES];
	const char *colon = strrchr(text, ':');
	const bool has_brackets = text[0] == '[';
	uint64_t number;
	size_t n;

	if (colon == NULL || !cfg_scan_u64(colon + 1, port_min, UINT16_MAX, &number))
		return false;
	n = (size_t)(colon - text);
	if (has_brackets) {
		if (n < 2 || text[n - 1] != ']')
			return false;
		text++;
		n -= 2;
	}
	if (n >= sizeof(head))
		return false;
	memcpy(head, text, n);
	head[n] = '\0';
	if (lb_addr_parse(head, addr) != 0 || lb_addr_is_v4(addr) == has_brackets)
		return false;
	*port = (uint16_t)number;
	return true;
}

bool
cfg_read_u64(const struct cfg_node *node, const char *what, uint64_t min, uint64_t max,
	struct cfg_errors *errors, uint64_t *out)
{
	char expected[80];

	if (node->kind == CFG_SCALAR && cfg_scan_u64(node->text, min, max, out))
		return true;
	(void)snprintf(expected, sizeof(expected),
		"a whole number from %" PRIu64 " to %" PRIu64, min, max);
	return cfg_expected(node, what, errors, expected);
}

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{"d", 86400000000000u},
	{"h", 3600000000000u},
	{"m", 60000000000u},
	{"s", 1000000000u},
	{"ms", 1000000u},
	{"us", 1000u},
	{"ns", 1u},
};

char *
cfg_format_duration(uint64_t ns, char out[static CFG_DURATION_TEXT_BYTES])
{
	size_t i = 0;

	if (ns == 0) {
		(void)snprintf(out, CFG_DURATION_TEXT_BYTES, "0s");
		return out;
	}
	while (ns % units[i].ns != 0)
		i++;
	(void)snprintf(out, CFG_DURATION_TEXT_BYTES, "%" PRIu64 "%s", ns / units[i].ns,
		units[i].name);
	return out;
}

/*
 * The digits after a point, as nanoseconds of a unit; false where there is none, or where
 * one of them says less than a nanosecond.
 */
static bool
scan_fraction(const char *digits, size_t n, uint64_t unit_ns, uint64_t *out)
{
	uint64_t ns = 0;

	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		const uint64_t digit = (uint64_t)(digits[i] - '0');

		/* Where a tenth of what is left is no whole number, only zeros are exact. */
		if (digit != 0 && (unit_ns == 0 || unit_ns % 10 != 0))
			return false;
		unit_ns /= 10;
		ns += digit * unit_ns;
	}
	*out = ns;
	return true;
}

static bool
scan_duration(const char *text, uint64_t *out)
{
	const char *fraction = NULL;
	size_t n_fraction = 0;
	uint64_t fraction_ns = 0;
	uint64_t value;

	if (!scan_whole(&text, &value))
		return false;
	if (*text == '.') {
		fraction = ++text;
		n_fraction = strspn(fraction, "0123456789");
		text += n_fraction;
	}
	for (size_t i = 0; i < LB_N_ELEMENTS(units); i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		if (fraction != NULL &&
			!scan_fraction(fraction, n_fraction, units[i].ns, &fraction_ns))
			return false;
		return !__builtin_mul_overflow(value, units[i].ns, &value) &&
		       !__builtin_add_overflow(value, fraction_ns, out);
	}
	return false;
}

bool
cfg_read_duration(const struct cfg_node *node, const char *what, uint64_t min_ns,
	uint64_t max_ns, struct cfg_errors *errors, uint64_t *out)
{
	char min[CFG_DURATION_TEXT_BYTES];
	char max[CFG_DURATION_TEXT_BYTES];
	char expected[128];
	uint64_t ns = 0;

	if (node->kind == CFG_SCALAR && scan_duration(node->text, &ns) && ns >= min_ns &&
		ns <= max_ns) {
		*out = ns;
		return true;
	}
	(void)snprintf(expected, sizeof(expected),
		"a time with its unit (ns, us, ms, s, m, h or d) from %s to %s, such as 30s",
		cfg_format_duration(min_ns, min), cfg_format_duration(max_ns, max));
	return cfg_expected(node, what, errors, expected);
}

char *
cfg_format_percent(uint32_t thousandths, char out[static CFG_PERCENT_TEXT_BYTES])
{
	if (thousandths % 10 == 0)
		(void)snprintf(out, CFG_PERCENT_TEXT_BYTES, "%" PRIu32 "%%", thousandths / 10);
	else
		(void)snprintf(out, CFG_PERCENT_TEXT_BYTES, "%" PRIu32 ".%" PRIu32 "%%",
			thousandths / 10, thousandths % 10);
	return out;
}

/* Nothing is the same with and without its sign; of anything else it would be a guess. */
static bool
scan_percent(const char *text, uint32_t *out)
{
	uint64_t whole;
	uint64_t tenths = 0;

	if (!scan_whole(&text, &whole))
		return false;
	if (whole == 0 && *text == '\0') {
		*out = 0;
		return true;
	}
	if (*text == '.') {
		if (text[1] < '0' || text[1] > '9')
			return false;
		tenths = (uint64_t)(text[1] - '0');
		text += 2;
	}
	if (strcmp(text, "%") != 0 || whole > 100 || whole * 10 + tenths > 1000)
		return false;
	*out = (uint32_t)(whole * 10 + tenths);
	return true;
}

bool
cfg_read_percent(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	uint32_t *out)
{
	if (node->kind == CFG_SCALAR && scan_percent(node->text, out))
		return true;
	return cfg_expected(node, what, errors,
		"a percentage from 0% to 100% with at most one decimal, such as 2% or 0.5%");
}

static bool
is_decimal(const char *text)
{
	size_t n;

	if (*text == '-' || *text == '+')
		text++;
	n = strspn(text, "0123456789");
	if (n == 0 || (n > 1 && text[0] == '0'))
		return false;
	text += n;
	if (*text == '\0')
		return true;
	n = strspn(text + 1, "0123456789");
	return *text == '.' && n > 0 && text[1 + n] == '\0';
}

bool
cfg_read_decimal(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	double *out)
{
	if (node->kind != CFG_SCALAR || !is_decimal(node->text))
		return cfg_expected(node, what, errors, "a decimal number such as 0.5");
	*out = strtod(node->text, NULL);
	return true;
}

bool
cfg_read_word(const struct cfg_node *node, const char *what, const char *const words[],
	struct cfg_errors *errors, unsigned int *out)
{
	size_t i;

	if (node->kind != CFG_SCALAR)
		return cfg_expected_word(node, what, errors, words);
	i = cfg_find_word(node->text, words);
	if (words[i] == NULL)
		return cfg_expected_word(node, what, errors, words);
	*out = (unsigned int)i;
	return true;
}

bool
cfg_is_name_bytes(const char *text, size_t n)
{
	size_t at = 0;

	while (at < n) {
		uint32_t c;
		const size_t taken = cfg_decode_character(text + at, n - at, &c);

		if (taken == 0 || c == '/' || cfg_find_character_flaw(c) != NULL)
			return false;
		at += taken;
	}
	return n >= 1 && n <= LB_NAME_BYTES_MAX;
}

bool
cfg_is_name(const char *text)
{
	return cfg_is_name_bytes(text, strlen(text));
}

bool
cfg_read_bool(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	bool *out)
{
	unsigned int word = 0;

	if (!cfg_read_word(node, what, cfg_bool_words, errors, &word))
		return false;
	*out = word != 0;
	return true;
}

bool
cfg_read_name(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	const char **out)
{
	if (node->kind != CFG_SCALAR || cfg_node_is_null(node) || !cfg_is_name(node->text))
		return cfg_expected(node, what, errors,
			"a name of 1 to 255 bytes without '/' and control characters");
	*out = node->text;
	return true;
}

bool
cfg_read_text(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	const char **out)
{
	if (node->kind != CFG_SCALAR || cfg_node_is_null(node) || node->text[0] == '\0')
		return cfg_expected(node, what, errors, "a text that is not empty");
	*out = node->text;
	return true;
}

bool
cfg_read_address(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	struct lb_addr *out)
{
	struct lb_prefix prefix;

	if (node->kind == CFG_SCALAR && lb_addr_parse(node->text, out) == 0)
		return true;
	if (node->kind == CFG_SCALAR && lb_prefix_parse(node->text, &prefix) == 0)
		return cfg_expected(node, what, errors,
			"an address without a prefix length such as 192.0.2.1 or 2001:db8::1");
	return cfg_expected(node, what, errors,
		"an IP address such as 192.0.2.1 or 2001:db8::1");
}

bool
cfg_read_prefix(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	struct lb_prefix *out)
{
	if (node->kind != CFG_SCALAR || lb_prefix_parse(node->text, out) != 0)
		return cfg_expected(node, what, errors,
			"an IP address or prefix such as 192.0.2.1, 192.0.2.0/28 or "
			"2001:db8::/64");
	return true;
}

bool
cfg_read_mac(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	struct lb_mac *out)
{
	if (node->kind != CFG_SCALAR || lb_mac_parse(node->text, out) != 0)
		return cfg_expected(node, what, errors,
			"a MAC address such as 02:00:00:00:00:fe");
	return true;
}
