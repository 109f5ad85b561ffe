/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_node.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_character.h"
#include "cfg_nearest.h"

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

/*
 * Whether to write the nth message of its kind. A file may be wrong a million times, and nobody
 * reads that; so one more is written, which says that there are more.
 */
static bool
wants_message(const struct cfg_errors *errors, size_t n, const char *kind)
{
	if (errors->to == NULL || n > CFG_MESSAGES_MAX + 1)
		return false;
	if (n <= CFG_MESSAGES_MAX)
		return true;
	(void)fprintf(errors->to, "%s: ... and more: %u %s are shown\n", errors->file,
		CFG_MESSAGES_MAX, kind);
	return false;
}

void
cfg_error(struct cfg_errors *errors, struct cfg_pos pos, const char *format, ...)
{
	va_list args;

	if (!wants_message(errors, ++errors->n_errors, "errors"))
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

	if (!wants_message(errors, ++errors->n_warnings, "warnings"))
		return;
	begin_message(errors, pos);
	(void)fputs("warning: ", errors->to);
	va_start(args, format);
	(void)vfprintf(errors->to, format, args);
	va_end(args);
	(void)fputc('\n', errors->to);
}

bool
cfg_must_stop(struct cfg_errors *errors)
{
	if (errors->stop != NULL && !errors->is_stopped &&
		atomic_load_explicit(errors->stop, memory_order_relaxed)) {
		errors->is_stopped = true;
		cfg_error(errors, (struct cfg_pos){0}, "reading it was given up");
	}
	return errors->is_stopped || errors->n_errors > CFG_MESSAGES_MAX;
}

void
cfg_error_memory(struct cfg_errors *errors)
{
	errors->no_memory = true;
	cfg_error(errors, (struct cfg_pos){0}, "not enough memory to read it");
}

char *
cfg_keep_text(const char *text, struct cfg_errors *errors)
{
	char *copy = strdup(text);

	if (copy == NULL)
		cfg_error_memory(errors);
	return copy;
}

/* Four for each byte of a character of three, or four bytes, and NUL. */
#define SHOWN_BYTES 13u

/*
 * A character at text, as messages show it: itself, or \xNN for each byte of one that is not
 * seen. Returns its bytes in text.
 */
static size_t
show_character(const char *text, char out[static SHOWN_BYTES])
{
	uint32_t c = 0;
	const size_t decoded = cfg_decode_character(text, strnlen(text, 4), &c);
	const size_t n = decoded > 0 ? decoded : 1;

	memcpy(out, text, n);
	out[n] = '\0';
	for (size_t i = 0; cfg_find_character_flaw(c) != NULL && i < n; i++)
		(void)snprintf(out + 4 * i, 5, "\\x%02x", (unsigned char)text[i]);
	return n;
}

/* Appends text with what is in it shown, cut with "..." where the room of n bytes ends. */
static void
append_shown(const char *text, char *out, size_t n)
{
	size_t used = strlen(out);

	while (*text != '\0') {
		char shown[SHOWN_BYTES];
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
	} else if (node->kind == CFG_REFUSED || n < sizeof("the value '...'")) {
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

	if (node->kind != CFG_REFUSED)
		cfg_error(errors, node->pos, "%s: expected %s, found %s", what, expected,
			cfg_node_describe(node, found, sizeof(found)));
	return false;
}

/* The word that a person most likely meant: at most a third of it is wrong. NULL: none. */
static const char *
find_nearest(const char *text, const char *const words[])
{
	const size_t n_text = strlen(text);
	struct cfg_nearest nearest;
	size_t n_best;

	cfg_nearest_init(&nearest, text, n_text);
	for (size_t i = 0; words[i] != NULL; i++)
		cfg_nearest_offer(&nearest, words[i]);
	if (nearest.best == NULL)
		return NULL;
	n_best = strlen(nearest.best);
	return nearest.distance * 3 <= (n_text > n_best ? n_text : n_best) ? nearest.best
									   : NULL;
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

bool
cfg_expected_word(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	const char *const words[])
{
	const char *nearest = node->kind == CFG_SCALAR ? find_nearest(node->text, words) : NULL;
	char found[CFG_DESCRIBE_BYTES];
	char list[LIST_BYTES];

	join_words(words, " or ", list, sizeof(list));
	if (nearest == NULL)
		return cfg_expected(node, what, errors, list);
	cfg_error(errors, node->pos, "%s: expected %s, found %s; did you mean %s?", what, list,
		cfg_node_describe(node, found, sizeof(found)), nearest);
	return false;
}

size_t
cfg_find_word(const char *text, const char *const words[])
{
	size_t i = 0;

	while (words[i] != NULL && strcmp(words[i], text) != 0)
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

static void
tell_no_mapping(const struct cfg_node *node, const char *const keys[],
	struct cfg_errors *errors)
{
	char found[CFG_DESCRIBE_BYTES];
	char list[LIST_BYTES];

	if (node->kind == CFG_REFUSED)
		return;
	join_words(keys, " and ", list, sizeof(list));
	cfg_error(errors, node->pos, "expected a mapping with the keys %s, found %s", list,
		cfg_node_describe(node, found, sizeof(found)));
}

bool
cfg_node_check_keys(const struct cfg_node *node, const char *const keys[],
	struct cfg_errors *errors)
{
	const struct cfg_node *first[CFG_KEYS_MAX + 1] = {NULL};

	if (node->kind != CFG_MAPPING) {
		tell_no_mapping(node, keys, errors);
		return false;
	}
	for (const struct cfg_node *item = node->first; item != NULL; item = item->next) {
		const size_t i = cfg_find_word(item->key->text, keys);

		if (item->key->kind == CFG_REFUSED)
			continue;
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
		if (cfg_must_stop(errors))
			break;
	}
	return true;
}
