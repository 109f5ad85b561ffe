/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_node.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Longer words are not looked for among ours. */
#define WORD_BYTES_MAX 31u

/* Room for a sentence that lists the words or keys of one place. */
#define LIST_BYTES 512u

static void
begin_message(struct cfg_errors *errors, struct cfg_pos pos)
{
	(void)fprintf(errors->to, "%s:", errors->file);
	if (pos.line != 0)
		(void)fprintf(errors->to, "%" PRIu32 ":%" PRIu32 ":", pos.line, pos.column);
	(void)fputc(' ', errors->to);
}

void
cfg_error(struct cfg_errors *errors, struct cfg_pos pos, const char *format, ...)
{
	va_list args;

	errors->n_errors++;
	if (errors->to == NULL)
		return;
	begin_message(errors, pos);
	va_start(args, format);
	(void)vfprintf(errors->to, format, args);
	va_end(args);
	(void)fputc('\n', errors->to);
}

void
cfg_warning(struct cfg_errors *errors, struct cfg_pos pos, const char *format, ...)
{
	va_list args;

	errors->n_warnings++;
	if (errors->to == NULL)
		return;
	begin_message(errors, pos);
	(void)fputs("warning: ", errors->to);
	va_start(args, format);
	(void)vfprintf(errors->to, format, args);
	va_end(args);
	(void)fputc('\n', errors->to);
}

void
cfg_error_memory(struct cfg_errors *errors)
{
	errors->no_memory = true;
	cfg_error(errors, (struct cfg_pos){0}, "not enough memory to read it");
}

/*
 * A character at text, as messages show it: itself, or \xNN for each byte of a control
 * character of either kind (U+0000..1F, 7F..9F). Returns its bytes in text.
 */
static size_t
show_character(const char *text, char out[static 12])
{
	const unsigned char first = (unsigned char)text[0];
	size_t n = 1;

	if (first < 0x20 || first == 0x7f) {
		(void)snprintf(out, 12, "\\x%02x", first);
		return 1;
	}
	if (first == 0xc2 && (unsigned char)text[1] < 0xa0) {
		(void)snprintf(out, 12, "\\x%02x\\x%02x", first, (unsigned char)text[1]);
		return 2;
	}
	while (n < 4 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n++;
	memcpy(out, text, n);
	out[n] = '\0';
	return n;
}

/* Appends text with what is in it shown, cut with "..." where the room of n bytes ends. */
static void
append_shown(const char *text, char *out, size_t n)
{
	size_t used = strlen(out);

	while (*text != '\0') {
		char shown[12];
		const size_t taken = show_character(text, shown);
		const size_t n_shown = strlen(shown);

		/* 5: the dots, the closing quote and the NUL. */
		if (used + n_shown + 5 > n) {
			memcpy(out + used, "...", 4);
			return;
		}
		memcpy(out + used, shown, n_shown + 1);
		used += n_shown;
		text += taken;
	}
}

bool
cfg_node_is_null(const struct cfg_node *node)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

	if (node->kind != CFG_SCALAR || node->is_quoted)
		return false;
	for (size_t i = 0; i < LB_N_ELEMENTS(nulls); i++) {
		if (strcmp(node->text, nulls[i]) == 0)
			return true;
	}
	return false;
}

const char *
cfg_node_describe(const struct cfg_node *node, char *out, size_t n)
{
	size_t used;

	if (node->kind == CFG_SEQUENCE) {
		(void)snprintf(out, n, "a list");
	} else if (node->kind == CFG_MAPPING) {
		(void)snprintf(out, n, "a mapping");
	} else if (cfg_node_is_null(node)) {
		(void)snprintf(out, n, "nothing");
	} else if (n < sizeof("the value '...'")) {
		(void)snprintf(out, n, "a value");
	} else {
		(void)snprintf(out, n, "the value '");
		append_shown(node->text, out, n);
		used = strlen(out);
		memcpy(out + used, "'", 2);
	}
	return out;
}

bool
cfg_expected(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	const char *expected)
{
	char found[CFG_DESCRIBE_BYTES];

	cfg_error(errors, node->pos, "%s: expected %s, found %s", what, expected,
		cfg_node_describe(node, found, sizeof(found)));
	return false;
}

static int
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static unsigned int
min_of(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/*
 * Letters to add, drop, change or swap with their neighbour to come from a to b, letter case
 * aside; both at most WORD_BYTES_MAX. Three rows of the usual table are enough.
 */
static unsigned int
edit_distance(const char *a, const char *b)
{
	unsigned int rows[3][WORD_BYTES_MAX + 1];
	const unsigned int n_a = (unsigned int)strlen(a);
	const unsigned int n_b = (unsigned int)strlen(b);

	for (unsigned int j = 0; j <= n_b; j++)
		rows[0][j] = j;
	for (unsigned int i = 1; i <= n_a; i++) {
		const unsigned int *before = rows[(i - 1) % 3];
		unsigned int *row = rows[i % 3];

		row[0] = i;
		for (unsigned int j = 1; j <= n_b; j++) {
			const bool is_same = lower(a[i - 1]) == lower(b[j - 1]);
			const bool is_swap = i > 1 && j > 1 &&
					     lower(a[i - 1]) == lower(b[j - 2]) &&
					     lower(a[i - 2]) == lower(b[j - 1]);

			row[j] = min_of(before[j] + 1, row[j - 1] + 1);
			row[j] = min_of(row[j], before[j - 1] + (is_same ? 0 : 1));
			if (is_swap)
				row[j] = min_of(row[j], rows[(i - 2) % 3][j - 2] + 1);
		}
	}
	return rows[n_a % 3][n_b];
}

/* The word that a person most likely meant: at most a third of it is wrong. NULL: none. */
static const char *
find_nearest(const char *text, const char *const words[])
{
	const size_t n_text = strlen(text);
	const char *nearest = NULL;
	size_t best = SIZE_MAX;

	if (n_text == 0 || n_text > WORD_BYTES_MAX)
		return NULL;
	for (size_t i = 0; words[i] != NULL; i++) {
		const size_t n_word = strlen(words[i]);
		size_t distance;

		if (n_word > WORD_BYTES_MAX)
			continue;
		distance = edit_distance(text, words[i]);
		if (distance < best && distance * 3 <= (n_text > n_word ? n_text : n_word)) {
			best = distance;
			nearest = words[i];
		}
	}
	return nearest;
}

/* "a, b or c", with the given word before the last. */
static void
join_words(const char *const words[], const char *last, char *out, size_t n)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; words[i] != NULL; i++) {
		const char *between = i == 0 ? "" : (words[i + 1] == NULL ? last : ", ");
		const int ret = snprintf(out + used, n - used, "%s%s", between, words[i]);

		if (ret < 0 || (size_t)ret >= n - used)
			return;
		used += (size_t)ret;
	}
}

/* The place of a key among keys, or that of their NULL. */
static size_t
find_key(const char *key, const char *const keys[])
{
	size_t i = 0;

	while (keys[i] != NULL && strcmp(keys[i], key) != 0)
		i++;
	return i;
}

static void
tell_unknown_key(const struct cfg_node *key, const char *const keys[],
	struct cfg_errors *errors)
{
	const char *nearest = find_nearest(key->text, keys);
	char shown[CFG_DESCRIBE_BYTES] = "";
	char list[LIST_BYTES];

	append_shown(key->text, shown, sizeof(shown));
	if (nearest != NULL) {
		cfg_error(errors, key->pos, "unknown key '%s'; did you mean '%s'?", shown,
			nearest);
		return;
	}
	join_words(keys, " and ", list, sizeof(list));
	cfg_error(errors, key->pos, "unknown key '%s'; the keys here are %s", shown, list);
}

bool
cfg_node_check_keys(const struct cfg_node *node, const char *const keys[],
	struct cfg_errors *errors)
{
	const struct cfg_node *first[CFG_KEYS_MAX + 1] = {NULL};

	if (node->kind != CFG_MAPPING) {
		char found[CFG_DESCRIBE_BYTES];
		char list[LIST_BYTES];

		join_words(keys, " and ", list, sizeof(list));
		cfg_error(errors, node->pos, "expected a mapping with the keys %s, found %s",
			list, cfg_node_describe(node, found, sizeof(found)));
		return false;
	}
	for (const struct cfg_node *item = node->first; item != NULL; item = item->next) {
		const size_t i = find_key(item->key->text, keys);

		if (keys[i] == NULL)
			tell_unknown_key(item->key, keys, errors);
		else if (i > CFG_KEYS_MAX)
			continue;
		else if (first[i] != NULL)
			cfg_error(errors, item->key->pos,
				"the key '%s' is given twice, first on line %" PRIu32
				"; remove one of them",
				keys[i], first[i]->key->pos.line);
		else
			first[i] = item;
	}
	return true;
}

bool
cfg_scan_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0'))
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return false;
	}
	if (value < min || value > max)
		return false;
	*out = value;
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

		/* A tenth of a day in ns is whole down to the twelfth digit or so; past
		 * that only zeros are exact. */
		if (digit != 0 && unit_ns % 10 != 0)
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
	uint64_t ns;

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
	const char *nearest = NULL;
	char found[CFG_DESCRIBE_BYTES];
	char list[LIST_BYTES];

	if (node->kind == CFG_SCALAR) {
		const size_t i = find_key(node->text, words);

		if (words[i] != NULL) {
			*out = (unsigned int)i;
			return true;
		}
		nearest = find_nearest(node->text, words);
	}
	join_words(words, " or ", list, sizeof(list));
	(void)cfg_node_describe(node, found, sizeof(found));
	if (nearest != NULL)
		cfg_error(errors, node->pos, "%s: expected %s, found %s; did you mean %s?",
			what, list, found, nearest);
	else
		cfg_error(errors, node->pos, "%s: expected %s, found %s", what, list, found);
	return false;
}

bool
cfg_is_name(const char *text)
{
	const size_t n = strlen(text);

	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];

		/* c2 80..c2 9f are the control characters U+0080..U+009F. */
		if (c < 0x20 || c == 0x7f || c == '/' ||
			(c == 0xc2 && (unsigned char)text[i + 1] < 0xa0))
			return false;
	}
	return n >= 1 && n <= LB_NAME_BYTES_MAX;
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
