/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfg_nearest.h"
#include "cfg_node.h"

/* One value, read from a list of one. */
static struct cfg_node *
parse(const char *text)
{
	struct cfg_errors errors = {.to = stderr, .file = "f"};
	struct cfg_node *root = NULL;
	const size_t n = strlen(text);
	char *copy = malloc(n);

	assert_non_null(copy);
	memcpy(copy, text, n);
	EXPECT(cfg_node_parse(copy, n, &errors, &root) == 0, "%s", text);
	free(copy);
	return root;
}

static void
test_a_tree_knows_kinds_quotes_and_places(void **state)
{
	struct cfg_node *root = parse("a: [1, '2']\n\"b\":\n  c: x\nd:\n");
	const struct cfg_node *a = cfg_node_get(root, "a");
	const struct cfg_node *b = cfg_node_get(root, "b");
	const struct cfg_node *d = cfg_node_get(root, "d");

	(void)state;
	assert_int_equal(root->kind, CFG_MAPPING);
	assert_int_equal(a->kind, CFG_SEQUENCE);
	assert_string_equal(a->first->text, "1");
	assert_false(a->first->is_quoted);
	assert_string_equal(a->first->next->text, "2");
	assert_true(a->first->next->is_quoted);
	assert_null(a->first->next->next);
	assert_int_equal(a->first->next->pos.line, 1);
	assert_int_equal(a->first->next->pos.column, 8);
	assert_int_equal(b->kind, CFG_MAPPING);
	assert_int_equal(b->key->pos.line, 2);
	assert_int_equal(b->key->pos.column, 1);
	assert_string_equal(cfg_node_get(b, "c")->text, "x");
	assert_true(cfg_node_is_null(d));
	assert_false(cfg_node_is_null(b));
	assert_null(cfg_node_get(root, "e"));
	assert_null(cfg_node_get(a, "1"));
	cfg_node_free(root);
	cfg_node_free(NULL);
}

static void
test_columns_count_characters(void **state)
{
	struct cfg_node *root = parse("{\xc3\xa9: \xe2\x82\xac, b: c}");

	(void)state;
	assert_int_equal(cfg_node_get(root, "b")->pos.column, 11);
	cfg_node_free(root);
}

static void
test_a_file_without_a_document_has_no_root(void **state)
{
	static const char *const texts[] = {"", "\n", "# a comment\n", "\xef\xbb\xbf"};
	struct cfg_errors errors = {.file = "f"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct cfg_node *root = (struct cfg_node *)&errors;

		assert_int_equal(cfg_node_parse(texts[i], strlen(texts[i]), &errors, &root), 0);
		assert_null(root);
	}
	assert_int_equal(errors.n_errors, 0);
}

static void
test_32_levels_are_taken(void **state)
{
	char text[65];

	(void)state;
	memset(text, '[', 32);
	memset(text + 32, ']', 32);
	text[64] = '\0';
	cfg_node_free(parse(text));
}

static void
test_an_error_leaves_out_alone(void **state)
{
	struct cfg_errors errors = {.file = "f"};
	struct cfg_node *root = (struct cfg_node *)&errors;

	(void)state;
	assert_int_equal(cfg_node_parse("a: [", 4, &errors, &root), -EINVAL);
	assert_ptr_equal(root, &errors);
	assert_int_equal(errors.n_errors, 1);
}

/* What is not taken is counted, and all that can be read stands in the tree. */
static void
test_what_is_refused_leaves_a_tree(void **state)
{
	static const char *const keys[] = {"a", "b", "c", "d", "e", NULL};
	static const char text[] = "{a: &b c, b: *b, c: \"x\\0y\", <<: {}, d: !!str z, *b : 1}";
	static const char *const refused[] = {"b", "c", "<<"};
	struct cfg_errors errors = {.file = "f"};
	struct cfg_node *root = NULL;
	char out[CFG_DESCRIBE_BYTES];
	const char *name;
	unsigned int word;

	(void)state;
	assert_int_equal(cfg_node_parse(text, sizeof(text) - 1, &errors, &root), 0);
	assert_int_equal(errors.n_errors, 6);
	assert_string_equal(cfg_node_get(root, "a")->text, "c");
	assert_string_equal(cfg_node_get(root, "d")->text, "z");
	for (size_t i = 0; i < 2; i++) {
		const struct cfg_node *node = cfg_node_get(root, refused[i]);

		assert_int_equal(node->kind, CFG_REFUSED);
		assert_false(cfg_node_is_null(node));
		assert_string_equal(cfg_node_describe(node, out, sizeof(out)), "a value");
		assert_false(cfg_read_name(node, "x", &errors, &name));
		assert_false(cfg_read_word(node, "x", keys, &errors, &word));
		assert_false(cfg_node_check_keys(node, keys, &errors));
	}
	assert_null(cfg_node_get(root, refused[2]));
	assert_true(cfg_node_check_keys(root, keys, &errors));
	assert_int_equal(errors.n_errors, 6);
	cfg_node_free(root);
}

static void
test_the_nearest_name(void **state)
{
	static const struct {
		const char *what;
		const char *wanted;
		const char *names[3];
		const char *best;
		size_t distance;
	} rows[] = {
		{"none of none", "web", {NULL}, "", SIZE_MAX},
		{"the same", "web", {"wex", "web"}, "web", 0},
		{"letter case aside", "WEB-1", {"web-2", "web-1"}, "web-1", 0},
		{"a letter more", "web-11", {"dns", "web-1"}, "web-1", 1},
		{"a letter less", "we", {"dns", "web"}, "web", 1},
		{"a letter changed", "wep", {"dns", "web"}, "web", 1},
		{"two letters swapped are one mistake", "wbe", {"wbexx", "web"}, "web", 1},
		{"the first of two", "web-3", {"web-2", "web-1"}, "web-2", 1},
		{"a name that is not there", "web", {NULL, "dns"}, "dns", 3},
		{"nothing to compare", "", {"ab", "c"}, "c", 1},
	};
	char longest[CFG_NEAREST_BYTES_MAX + 2];
	struct cfg_nearest nearest;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *best;

		cfg_nearest_init(&nearest, rows[i].wanted, strlen(rows[i].wanted));
		for (size_t k = 0; k < 3; k++)
			cfg_nearest_offer(&nearest, rows[i].names[k]);
		best = nearest.best == NULL ? "" : nearest.best;
		EXPECT(strcmp(best, rows[i].best) == 0, "%s: '%s'", rows[i].what, best);
		EXPECT(nearest.distance == rows[i].distance, "%s: %zu", rows[i].what,
			nearest.distance);
	}

	/* The longest that are compared, and one byte more. */
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	cfg_nearest_init(&nearest, longest, CFG_NEAREST_BYTES_MAX);
	cfg_nearest_offer(&nearest, longest);
	assert_null(nearest.best);
	cfg_nearest_offer(&nearest, longest + 1);
	assert_int_equal(nearest.distance, 0);
	cfg_nearest_init(&nearest, longest, CFG_NEAREST_BYTES_MAX + 1);
	cfg_nearest_offer(&nearest, longest + 1);
	assert_null(nearest.best);
}

static void
test_a_stream_is_read_whole(void **state)
{
	struct cfg_errors errors = {.to = stderr, .file = "f"};
	struct cfg_node *root;
	FILE *stream = tmpfile();
	unsigned int n = 0;

	(void)state;
	assert_non_null(stream);
	for (unsigned int i = 0; i < 20000; i++)
		(void)fprintf(stream, "- item %u\n", i);
	rewind(stream);
	assert_int_equal(cfg_node_read(stream, &errors, &root), 0);
	(void)fclose(stream);
	for (const struct cfg_node *item = root->first; item != NULL; item = item->next)
		n++;
	assert_int_equal(n, 20000);
	cfg_node_free(root);
}

/* Items with an anchor, each an error; and then how many are told, and whether it goes on. */
static void
test_as_many_errors_are_told(void **state)
{
	static const struct {
		unsigned int n;
		unsigned int n_told;
		bool has_more;
	} rows[] = {
		{1, 1, false},
		{CFG_MESSAGES_MAX, CFG_MESSAGES_MAX, false},
		{CFG_MESSAGES_MAX + 1, CFG_MESSAGES_MAX, true},
		{CFG_MESSAGES_MAX * 5, CFG_MESSAGES_MAX, true},
	};
	static const char last[] = "f: ... and more: 1000 errors are shown\n";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfg_errors errors = {.file = "f"};
		struct cfg_node *root = NULL;
		FILE *stream = tmpfile();
		unsigned int n_lines = 0;
		char *messages;
		size_t n;
		int ret;

		assert_non_null(stream);
		errors.to = open_memstream(&messages, &n);
		assert_non_null(errors.to);
		for (unsigned int k = 0; k < rows[i].n; k++)
			(void)fputs("- &a b\n", stream);
		rewind(stream);
		ret = cfg_node_read(stream, &errors, &root);
		assert_int_equal(fclose(errors.to), 0);
		(void)fclose(stream);
		for (size_t at = 0; at < n; at++)
			n_lines += messages[at] == '\n';
		EXPECT(ret == (rows[i].has_more ? -EINVAL : 0), "%u errors return %d",
			rows[i].n, ret);
		EXPECT(n_lines == rows[i].n_told + rows[i].has_more, "%u errors are %u lines",
			rows[i].n, n_lines);
		EXPECT(strcmp(messages + n - strlen(last), last) == 0 || !rows[i].has_more,
			"%u errors end without a word", rows[i].n);
		/* Reading ended where it was too much. */
		EXPECT(errors.n_errors == rows[i].n_told + rows[i].has_more,
			"%u errors, counted %zu", rows[i].n, errors.n_errors);
		cfg_node_free(root);
		free(messages);
	}
}

static void
test_as_many_warnings_are_told(void **state)
{
	struct cfg_errors errors = {.file = "f"};
	char *messages;
	size_t n;
	unsigned int n_lines = 0;

	(void)state;
	errors.to = open_memstream(&messages, &n);
	assert_non_null(errors.to);
	for (unsigned int i = 0; i < CFG_MESSAGES_MAX * 2; i++)
		cfg_warning(&errors, (struct cfg_pos){1, 1}, "mind");
	assert_false(cfg_must_stop(&errors));
	assert_int_equal(fclose(errors.to), 0);
	for (size_t at = 0; at < n; at++)
		n_lines += messages[at] == '\n';
	assert_int_equal(n_lines, CFG_MESSAGES_MAX + 1);
	assert_non_null(strstr(messages, "f: ... and more: 1000 warnings are shown\n"));
	free(messages);
}

/* A stream that holds `left` bytes, and wants reading to stop while it is read. */
struct source {
	size_t left;
	size_t stop_at; /* left by then */
	atomic_bool *stop;
};

static ssize_t
read_source(void *cookie, char *to, size_t n)
{
	struct source *source = cookie;

	n = n < source->left ? n : source->left;
	memset(to, '#', n);
	source->left -= n;
	if (source->left <= source->stop_at)
		atomic_store(source->stop, true);
	return (ssize_t)n;
}

static int
read_until_stopped(struct source *source, struct cfg_errors *errors)
{
	FILE *stream = fopencookie(source, "r", (cookie_io_functions_t){.read = read_source});
	char *text = NULL;
	size_t n;
	int ret;

	assert_non_null(stream);
	ret = cfg_read_stream(stream, errors, &text, &n);
	(void)fclose(stream);
	free(text);
	return ret;
}

static void
test_a_stream_is_given_up(void **state)
{
	const size_t n_bytes = (size_t)32 << 20;
	atomic_bool stop = false;
	struct cfg_errors errors = {.file = "f", .stop = &stop};
	struct source source = {.left = n_bytes, .stop_at = n_bytes / 2, .stop = &stop};
	char *messages;
	size_t n;

	(void)state;
	errors.to = open_memstream(&messages, &n);
	assert_non_null(errors.to);
	assert_int_equal(read_until_stopped(&source, &errors), -EINVAL);
	assert_int_equal(fclose(errors.to), 0);
	assert_string_equal(messages, "f: reading it was given up\n");
	assert_in_range(source.left, n_bytes / 4, n_bytes / 2);
	free(messages);
}

static ssize_t
want_stop(void *cookie, const char *text, size_t n)
{
	(void)text;
	atomic_store((atomic_bool *)cookie, true);
	return (ssize_t)n;
}

/* With the first error that is written somebody wants reading to stop. */
static void
test_parsing_is_given_up(void **state)
{
	static const char *const texts[] = {
		"[&a b, &a b, &a b, &a b, &a b]",
		"- &a b\n- &a b\n- &a b\n- &a b\n- 'open",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		atomic_bool stop = false;
		struct cfg_errors errors = {.file = "f", .stop = &stop};
		struct cfg_node *root;

		errors.to =
			fopencookie(&stop, "w", (cookie_io_functions_t){.write = want_stop});
		assert_non_null(errors.to);
		(void)setvbuf(errors.to, NULL, _IONBF, 0);
		EXPECT(cfg_node_parse(texts[i], strlen(texts[i]), &errors, &root) == -EINVAL,
			"%s is read", texts[i]);
		EXPECT(errors.is_stopped && errors.n_errors == 2, "%s: %zu errors", texts[i],
			errors.n_errors);
		(void)fclose(errors.to);
	}
}

static void
test_64_mib_are_read_and_not_a_byte_more(void **state)
{
	(void)state;
	for (unsigned int more = 0; more <= 1; more++) {
		struct cfg_errors errors = {.file = "f"};
		FILE *stream = tmpfile();
		char *messages;
		char *text = NULL;
		size_t n_bytes = 0;
		size_t n;
		int ret;

		assert_non_null(stream);
		assert_int_equal(ftruncate(fileno(stream), (off_t)CFG_FILE_BYTES_MAX + more),
			0);
		errors.to = open_memstream(&messages, &n);
		assert_non_null(errors.to);
		ret = cfg_read_stream(stream, &errors, &text, &n_bytes);
		assert_int_equal(fclose(errors.to), 0);
		assert_int_equal(ret, more == 0 ? 0 : -EINVAL);
		assert_int_equal(n_bytes, more == 0 ? CFG_FILE_BYTES_MAX : 0);
		assert_string_equal(messages, more == 0 ? ""
							: "f: it is longer than 64 MiB; no "
							  "configuration is\n");
		(void)fclose(stream);
		free(messages);
		free(text);
	}
}

/* What would have to be waited for, though it was opened so as not to. */
static void
test_a_stream_that_would_wait(void **state)
{
	struct cfg_errors errors = {.file = "f"};
	char *messages;
	char *text = NULL;
	size_t n_bytes;
	size_t n;
	int fds[2];
	FILE *stream;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "{}", 2), 2);
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	stream = fdopen(fds[0], "r");
	errors.to = open_memstream(&messages, &n);
	assert_non_null(stream);
	assert_non_null(errors.to);
	assert_int_equal(cfg_read_stream(stream, &errors, &text, &n_bytes), -EIO);
	assert_int_equal(fclose(errors.to), 0);
	assert_string_equal(messages,
		"f: reading it would wait for somebody; expected a regular file\n");
	(void)fclose(stream);
	(void)close(fds[1]);
	free(messages);
}

static void
test_descriptions(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		const char *expected;
	} rows[] = {
		{"[]", 96, "a list"},
		{"{}", 96, "a mapping"},
		{"~", 96, "nothing"},
		{"null", 96, "nothing"},
		{"'null'", 96, "the value 'null'"},
		{"''", 96, "the value ''"},
		{"abc", 96, "the value 'abc'"},
		{"\"a\\e\\n\\x9f\"", 96, "the value 'a\\x1b\\x0a\\xc2\\x9f'"},
		{"abcdefghijklmnop", 21, "the value 'abcde...'"},
		/* No half of a character where it is cut. */
		{"abcd\xc3\xa9\xc3\xa9\xc3\xa9", 21, "the value 'abcd...'"},
		{"abc", 10, "a value"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfg_node *root = parse(rows[i].text);
		char *out = malloc(rows[i].n);

		assert_non_null(out);
		assert_string_equal(cfg_node_describe(root, out, rows[i].n), rows[i].expected);
		free(out);
		cfg_node_free(root);
	}
}

static void
test_durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns; /* UINT64_MAX: refused */
	} rows[] = {
		{"0s", 0},
		{"1ns", 1},
		{"1us", 1000},
		{"1ms", 1000000},
		{"1s", 1000000000},
		{"1m", 60000000000},
		{"1h", 3600000000000},
		{"1d", 86400000000000},
		{"1.5s", 1500000000},
		{"0.000000001s", 1},
		{"1.0000000000000s", 1000000000},
		{"0.1d", 8640000000000},
		{"1.000000000000s", 1000000000},
		{"'2s'", 2000000000},
		{"0.5ns", UINT64_MAX},
		{"0.0000000001s", UINT64_MAX},
		{"1.00000000001s", UINT64_MAX},
		{"0.000000000000000000001s", UINT64_MAX},
		{"1.000000000001m", UINT64_MAX},
		{"0.00000000001d", 864},
		{"0.00000000000001d", UINT64_MAX},
		{"1", UINT64_MAX},
		{"s", UINT64_MAX},
		{"1 s", UINT64_MAX},
		{"1S", UINT64_MAX},
		{"01s", UINT64_MAX},
		{".5s", UINT64_MAX},
		{"5.s", UINT64_MAX},
		{"-1s", UINT64_MAX},
		{"1e3s", UINT64_MAX},
		{"1.5.5s", UINT64_MAX},
		{"1sec", UINT64_MAX},
		{"300000d", UINT64_MAX},
		{"18446744073709551616ns", UINT64_MAX},
		{"18446744073.709551616s", UINT64_MAX},
		{"[]", UINT64_MAX},
		{"~", UINT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfg_errors errors = {.file = "f"};
		struct cfg_node *root = parse(rows[i].text);
		uint64_t ns = UINT64_MAX;
		const bool is_read = cfg_read_duration(root, "x", 0, UINT64_MAX, &errors, &ns);

		EXPECT(is_read == (rows[i].ns != UINT64_MAX), "%s", rows[i].text);
		EXPECT(ns == rows[i].ns, "%s gives %llu", rows[i].text, (unsigned long long)ns);
		assert_int_equal(errors.n_errors, is_read ? 0 : 1);
		cfg_node_free(root);
	}
}

static void
test_durations_as_text(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} rows[] = {
		{0, "0s"},
		{1, "1ns"},
		{1500000000, "1500ms"},
		{90000000000, "90s"},
		{604800000000000, "7d"},
		{UINT64_MAX, "18446744073709551615ns"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[CFG_DURATION_TEXT_BYTES];

		assert_string_equal(cfg_format_duration(rows[i].ns, text), rows[i].text);
	}
}

static void
test_percentages(void **state)
{
	static const struct {
		const char *text;
		uint32_t thousandths; /* UINT32_MAX: refused */
		const char *printed;
	} rows[] = {
		{"0", 0, "0%"},
		{"0%", 0, "0%"},
		{"0.0%", 0, "0%"},
		{"0.1%", 1, "0.1%"},
		{"0.5%", 5, "0.5%"},
		{"2%", 20, "2%"},
		{"2.0%", 20, "2%"},
		{"'2%'", 20, "2%"},
		{"99.9%", 999, "99.9%"},
		{"100%", 1000, "100%"},
		{"100.1%", UINT32_MAX, NULL},
		{"101%", UINT32_MAX, NULL},
		{"1844674407370955162%", UINT32_MAX, NULL},
		{"18446744073709551617%", UINT32_MAX, NULL},
		{"2", UINT32_MAX, NULL},
		{"0.02", UINT32_MAX, NULL},
		{"0.0", UINT32_MAX, NULL},
		{"0.25%", UINT32_MAX, NULL},
		{".5%", UINT32_MAX, NULL},
		{"1.%", UINT32_MAX, NULL},
		{"02%", UINT32_MAX, NULL},
		{"2 %", UINT32_MAX, NULL},
		{"2%%", UINT32_MAX, NULL},
		{"-1%", UINT32_MAX, NULL},
		{"[]", UINT32_MAX, NULL},
		{"~", UINT32_MAX, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfg_errors errors = {.file = "f"};
		struct cfg_node *root = parse(rows[i].text);
		char text[CFG_PERCENT_TEXT_BYTES];
		uint32_t found = UINT32_MAX;
		const bool is_read = cfg_read_percent(root, "x", &errors, &found);

		EXPECT(is_read == (rows[i].thousandths != UINT32_MAX), "%s", rows[i].text);
		EXPECT(found == rows[i].thousandths, "%s gives %u", rows[i].text, found);
		assert_int_equal(errors.n_errors, is_read ? 0 : 1);
		if (is_read)
			assert_string_equal(cfg_format_percent(found, text), rows[i].printed);
		cfg_node_free(root);
	}
}

static void
test_decimals(void **state)
{
	static const struct {
		const char *text;
		bool is_right;
		double value;
	} rows[] = {
		{"0", true, 0},
		{"0.45", true, 0.45},
		{"-2.5", true, -2.5},
		{"+3", true, 3},
		{"100", true, 100},
		{"1e3", false, 0},
		{".5", false, 0},
		{"5.", false, 0},
		{"05", false, 0},
		{"0x1", false, 0},
		{"nan", false, 0},
		{"inf", false, 0},
		{"", false, 0},
		{"-", false, 0},
		{"1.2.3", false, 0},
		{"1 ", true, 1},
		{"{}", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfg_errors errors = {.file = "f"};
		struct cfg_node *root;
		double value = 0;
		bool is_read;

		root = parse(rows[i].text[0] == '\0' ? "''" : rows[i].text);
		is_read = cfg_read_decimal(root, "x", &errors, &value);
		EXPECT(is_read == rows[i].is_right, "'%s'", rows[i].text);
		EXPECT(value >= rows[i].value && value <= rows[i].value, "'%s' gives %f",
			rows[i].text, value);
		cfg_node_free(root);
	}
}

static void
test_whole_numbers(void **state)
{
	static const struct {
		const char *text;
		bool is_right;
	} rows[] = {
		{"5", true}, {"10", true}, {"4", false}, {"11", false}, {"05", false},
		{"", false}, {"5 ", false}, {"-5", false}, {"5a", false}, {"0", false},
		{"18446744073709551621", false}, /* 5 more than 64 bits hold */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = 99;
		const bool is_read = cfg_scan_u64(rows[i].text, 5, 10, &value);

		EXPECT(is_read == rows[i].is_right, "'%s'", rows[i].text);
		EXPECT(is_read || value == 99, "'%s' wrote", rows[i].text);
	}
}

static void
test_names(void **state)
{
	static const struct {
		const char *text;
		bool is_right;
	} rows[] = {
		{"web-1", true},
		{"a b", true},
		{"\xc3\xa9t\xc3\xa9", true},
		{"\xc2\xa0", true},
		{"-", true},
		{"", false},
		{"a/b", false},
		{"a\tb", false},
		{"\x7f", false},
		{"\xc2\x80", false},
		{"\xc2\x9f", false},
		{"\xc2\x85", false},
		{"a\xe2\x80\xae"
		 "b",
			false},
		{"\xe2\x80\xaa", false},
		{"\xe2\x80\xa7", true},
		{"\xe2\x80\xaf", true},
		{"\xe2\x81\xa5", true},
		{"\xe2\x81\xa6", false},
		{"\xe2\x81\xa9", false},
		{"\xe2\x81\xaa", true},
		{"\xe2\x80\xa8", false},
		{"\xef\xbb\xbf", false},
		{"\xef\xbf\xbf", false},
		{"\xef\xbf\xbd", true},
		{"\xff", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		EXPECT(cfg_is_name(rows[i].text) == rows[i].is_right, "'%s'", rows[i].text);
}

/* Each of the readers that are not shown by a configuration's own messages. */
static void
test_messages_of_readers(void **state)
{
	struct cfg_node *root = parse("{a: 1.2.3, b: x, c: [], d: '', unknown: 1, b: y}");
	static const char *const keys[] = {"a", "b", "c", "d", NULL};
	char *said;
	size_t n;
	FILE *to = open_memstream(&said, &n);
	struct cfg_errors errors = {.to = to, .file = "f"};
	const struct cfg_pos nowhere = {0};
	struct lb_prefix prefix;
	const char *text;
	double value;

	(void)state;
	assert_non_null(to);
	assert_true(cfg_node_check_keys(root, keys, &errors));
	assert_false(cfg_node_check_keys(cfg_node_get(root, "c"), keys, &errors));
	assert_false(cfg_read_decimal(cfg_node_get(root, "a"), "min", &errors, &value));
	assert_false(cfg_read_prefix(cfg_node_get(root, "b"), "net", &errors, &prefix));
	assert_false(cfg_read_text(cfg_node_get(root, "d"), "text", &errors, &text));
	cfg_error(&errors, nowhere, "all of %s", "it");
	cfg_warning(&errors, root->pos, "small");
	cfg_error_memory(&errors);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(said,
		"f:1:32: unknown key 'unknown'; the keys here are a, b, c and d\n"
		"f:1:44: the key 'b' is given twice, first on line 1; remove one of them\n"
		"f:1:21: expected a mapping with the keys a, b, c and d, found a list\n"
		"f:1:5: min: expected a decimal number such as 0.5, found the value '1.2.3'\n"
		"f:1:15: net: expected an IP address or prefix such as 192.0.2.1, "
		"192.0.2.0/28 or 2001:db8::/64, found the value 'x'\n"
		"f:1:28: text: expected a text that is not empty, found the value ''\n"
		"f: all of it\n"
		"f:1:1: warning: small\n"
		"f: not enough memory to read it\n");
	assert_int_equal(errors.n_errors, 8);
	assert_int_equal(errors.n_warnings, 1);
	assert_true(errors.no_memory);
	free(said);
	cfg_node_free(root);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_tree_knows_kinds_quotes_and_places),
		cmocka_unit_test(test_columns_count_characters),
		cmocka_unit_test(test_a_file_without_a_document_has_no_root),
		cmocka_unit_test(test_32_levels_are_taken),
		cmocka_unit_test(test_an_error_leaves_out_alone),
		cmocka_unit_test(test_what_is_refused_leaves_a_tree),
		cmocka_unit_test(test_the_nearest_name),
		cmocka_unit_test(test_a_stream_is_read_whole),
		cmocka_unit_test(test_as_many_errors_are_told),
		cmocka_unit_test(test_as_many_warnings_are_told),
		cmocka_unit_test(test_a_stream_is_given_up),
		cmocka_unit_test(test_parsing_is_given_up),
		cmocka_unit_test(test_64_mib_are_read_and_not_a_byte_more),
		cmocka_unit_test(test_a_stream_that_would_wait),
		cmocka_unit_test(test_descriptions),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_durations_as_text),
		cmocka_unit_test(test_percentages),
		cmocka_unit_test(test_decimals),
		cmocka_unit_test(test_whole_numbers),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_messages_of_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
