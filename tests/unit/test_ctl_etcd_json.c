/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_etcd_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"

#define KEY      "k"
#define HEAD     "\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"}"
#define KV(rest) "{\"key\":\"aw==\",\"mod_revision\":\"4\"" rest "}"

typedef int (
	*read_fn)(const char *text, size_t n, const char *key, struct ctl_etcd_answer *out);

/* At exact length, so that a byte too many is seen. */
static int
read_exactly(read_fn fn, const char *text, struct ctl_etcd_answer *out)
{
	const size_t n = strlen(text);
	char *copy = malloc(n + (n == 0));
	int ret;

	assert_non_null(copy);
	memcpy(copy, text, n);
	ret = fn(copy, n, KEY, out);
	free(copy);
	return ret;
}

static void
expect_text(char *text, const char *wanted)
{
	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

static void
test_what_is_asked(void **state)
{
	(void)state;
	expect_text(ctl_etcd_json_range("shunt/a", false),
		"{\"key\":\"c2h1bnQvYQ==\",\"keys_only\":false}");
	expect_text(ctl_etcd_json_range("shunt/a", true),
		"{\"key\":\"c2h1bnQvYQ==\",\"keys_only\":true}");
	expect_text(ctl_etcd_json_watch(KEY, 10),
		"{\"create_request\":{\"key\":\"aw==\",\"start_revision\":10}}");
	expect_text(ctl_etcd_json_put(KEY, "a\0b", 3, 0),
		"{\"compare\":[{\"key\":\"aw==\",\"target\":\"MOD\",\"result\":\"EQUAL\","
		"\"mod_revision\":0}],\"success\":[{\"request_put\":{\"key\":\"aw==\","
		"\"value\":\"YQBi\"}}],\"failure\":[{\"request_range\":{\"key\":\"aw==\","
		"\"keys_only\":true}}]}");
	expect_text(ctl_etcd_json_login("u", "p\"w"),
		"{\"name\":\"u\",\"password\":\"p\\\"w\"}");
}

static void
test_a_key_that_is_there(void **state)
{
	struct ctl_etcd_answer answer;

	(void)state;
	assert_int_equal(read_exactly(ctl_etcd_json_read_range,
				 "{" HEAD ",\"kvs\":[" KV(",\"value\":\"YQBi\"") "],\"count\":"
										 "\"1\"}",
				 &answer),
		0);
	assert_int_equal(answer.cluster, 7);
	assert_int_equal(answer.revision, 9);
	assert_true(answer.has_key);
	assert_int_equal(answer.key_revision, 4);
	assert_int_equal(answer.n_value, 3);
	assert_memory_equal(answer.value, "a\0b", 4);
	ctl_etcd_answer_fini(&answer);
}

static void
test_an_empty_value_and_no_key(void **state)
{
	struct ctl_etcd_answer answer;

	(void)state;
	assert_int_equal(read_exactly(ctl_etcd_json_read_range,
				 "{" HEAD ",\"kvs\":[" KV("") "]}", &answer),
		0);
	assert_true(answer.has_key);
	assert_int_equal(answer.n_value, 0);
	assert_non_null(answer.value);
	ctl_etcd_answer_fini(&answer);
	assert_int_equal(read_exactly(ctl_etcd_json_read_range, "{" HEAD "}", &answer), 0);
	assert_false(answer.has_key);
	assert_null(answer.value);
	assert_int_equal(answer.revision, 9);
}

static const struct {
	const char *what;
	const char *text;
} no_ranges[] = {
	{"nothing", ""},
	{"a web page", "<html>404</html>"},
	{"half of an answer", "{" HEAD ",\"kvs\":[" KV("")},
	{"more behind it", "{" HEAD "} x"},
	{"a list", "[]"},
	{"no header", "{\"kvs\":[" KV("") "]}"},
	{"a header that is none", "{\"header\":3}"},
	{"no revision", "{\"header\":{\"cluster_id\":\"7\"}}"},
	{"a revision that is no number", "{\"header\":{\"revision\":\"x\"}}"},
	{"a revision with more behind it", "{\"header\":{\"revision\":\"9x\"}}"},
	{"a revision below 0", "{\"header\":{\"revision\":\"-9\"}}"},
	{"a number below 0", "{\"header\":{\"revision\":-9}}"},
	{"a revision above 63 bits", "{\"header\":{\"revision\":\"9223372036854775808\"}}"},
	{"a revision above 64 bits", "{\"header\":{\"revision\":\"18446744073709551616\"}}"},
	{"a fraction", "{\"header\":{\"revision\":9.5}}"},
	{"the same twice", "{" HEAD "," HEAD "}"},
	{"keys that are no list", "{" HEAD ",\"kvs\":{}}"},
	{"two keys", "{" HEAD ",\"kvs\":[" KV("") "," KV("") "]}"},
	{"a key that is none", "{" HEAD ",\"kvs\":[3]}"},
	{"another key", "{" HEAD ",\"kvs\":[{\"key\":\"bQ==\",\"mod_revision\":\"4\"}]}"},
	{"a longer key", "{" HEAD ",\"kvs\":[{\"key\":\"a2s=\",\"mod_revision\":\"4\"}]}"},
	{"no key's name", "{" HEAD ",\"kvs\":[{\"mod_revision\":\"4\"}]}"},
	{"a key without a revision", "{" HEAD ",\"kvs\":[{\"key\":\"aw==\"}]}"},
	{"a key newer than all there is",
		"{" HEAD ",\"kvs\":[{\"key\":\"aw==\",\"mod_revision\":\"10\"}]}"},
	{"a value that is no base64", "{" HEAD ",\"kvs\":[" KV(",\"value\":\"Y\"") "]}"},
	{"a value that is no text", "{" HEAD ",\"kvs\":[" KV(",\"value\":3") "]}"},
};

static void
test_what_is_no_answer_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(no_ranges); i++) {
		struct ctl_etcd_answer answer;
		const int ret =
			read_exactly(ctl_etcd_json_read_range, no_ranges[i].text, &answer);

		EXPECT(ret == -EPROTO, "%s: %d", no_ranges[i].what, ret);
	}
}

/* A value of so many times three bytes. */
static int
read_long(size_t n_threes)
{
	static const char before[] =
		"{" HEAD ",\"kvs\":[{\"key\":\"aw==\",\"mod_revision\":\"4\",\"value\":\"";
	static const char after[] = "\"}]}";
	const size_t n_head = sizeof(before) - 1, n_value = 4 * n_threes;
	char *text = malloc(n_head + n_value + sizeof(after));
	struct ctl_etcd_answer answer = {0};
	int ret;

	assert_non_null(text);
	memcpy(text, before, n_head);
	memset(text + n_head, 'A', n_value);
	memcpy(text + n_head + n_value, after, sizeof(after));
	ret = read_exactly(ctl_etcd_json_read_range, text, &answer);
	ctl_etcd_answer_fini(&answer);
	free(text);
	return ret;
}

static void
test_a_value_is_as_long_as_a_copy_may_be(void **state)
{
	(void)state;
	assert_int_equal(read_long(CTL_ETCD_VALUE_BYTES_MAX / 3), 0);
	assert_int_equal(read_long(CTL_ETCD_VALUE_BYTES_MAX / 3 + 1), -EMSGSIZE);
}

static void
test_no_bytes_are_no_answer(void **state)
{
	struct ctl_etcd_answer answer = {0};

	(void)state;
	assert_int_equal(ctl_etcd_json_read_range(NULL, 0, KEY, &answer), -EPROTO);
}

static void
test_a_put_that_is_done_and_one_that_is_not(void **state)
{
	struct ctl_etcd_answer answer;

	(void)state;
	assert_int_equal(read_exactly(ctl_etcd_json_read_put,
				 "{" HEAD ",\"succeeded\":true,\"responses\":[{\"response_put\""
				 ":{\"header\":{\"revision\":\"9\"}}}]}",
				 &answer),
		0);
	assert_true(answer.is_succeeded);
	assert_int_equal(answer.key_revision, 9);
	assert_int_equal(read_exactly(ctl_etcd_json_read_put,
				 "{" HEAD ",\"responses\":[{\"response_range\":{\"kvs\":[" KV(
					 "") "]}}]}",
				 &answer),
		0);
	assert_false(answer.is_succeeded);
	assert_int_equal(answer.key_revision, 4);
	/* There is no such key. */
	assert_int_equal(read_exactly(ctl_etcd_json_read_put,
				 "{" HEAD ",\"responses\":[{\"response_range\":{}}]}", &answer),
		0);
	assert_false(answer.is_succeeded);
	assert_int_equal(answer.key_revision, 0);
	assert_int_equal(read_exactly(ctl_etcd_json_read_put, "{\"succeeded\":true}", &answer),
		-EPROTO);
	assert_int_equal(read_exactly(ctl_etcd_json_read_put, "{" HEAD ",\"succeeded\":1}",
				 &answer),
		-EPROTO);
}

#define EVENT(type, revision, value)                                                           \
	"{" type "\"kv\":{\"key\":\"aw==\",\"mod_revision\":\"" revision "\"" value "}}"
#define EVENTS(list) "{\"result\":{" HEAD ",\"events\":[" list "]}}"
#define DELETED      "\"type\":\"DELETE\","

static void
test_what_a_watch_says(void **state)
{
	struct ctl_etcd_answer answer;

	(void)state;
	assert_int_equal(read_exactly(ctl_etcd_json_read_watch,
				 "{\"result\":{" HEAD ",\"created\":true}}", &answer),
		0);
	assert_true(answer.is_created);
	assert_false(answer.has_key || answer.is_deleted || answer.is_canceled);

	assert_int_equal(read_exactly(ctl_etcd_json_read_watch,
				 EVENTS(EVENT("", "8", ",\"value\":\"YQ==\"")), &answer),
		0);
	assert_true(answer.has_key);
	assert_int_equal(answer.key_revision, 8);
	assert_string_equal(answer.value, "a");
	ctl_etcd_answer_fini(&answer);

	assert_int_equal(read_exactly(ctl_etcd_json_read_watch, EVENTS(EVENT(DELETED, "8", "")),
				 &answer),
		0);
	assert_true(answer.is_deleted);
	assert_false(answer.has_key);
	ctl_etcd_answer_fini(&answer);
}

static void
test_of_several_events_the_last_counts(void **state)
{
	struct ctl_etcd_answer answer;

	(void)state;
	assert_int_equal(read_exactly(ctl_etcd_json_read_watch,
				 EVENTS(EVENT("", "6", ",\"value\":\"YQ==\"") "," EVENT(DELETED,
					 "7", "") "," EVENT("\"type\":\"PUT\",", "8",
					 ",\"value\":\"Yg==\"")),
				 &answer),
		0);
	assert_true(answer.has_key);
	assert_false(answer.is_deleted);
	assert_int_equal(answer.key_revision, 8);
	assert_string_equal(answer.value, "b");
	ctl_etcd_answer_fini(&answer);
}

static void
test_how_a_watch_ends(void **state)
{
	struct ctl_etcd_answer answer;

	(void)state;
	assert_int_equal(read_exactly(ctl_etcd_json_read_watch,
				 "{\"result\":{\"header\":{\"cluster_id\":\"7\"},"
				 "\"canceled\":true,\"compact_revision\":\"5\"}}",
				 &answer),
		0);
	assert_true(answer.is_canceled);
	assert_int_equal(answer.compacted, 5);
	assert_int_equal(read_exactly(ctl_etcd_json_read_watch,
				 "{\"result\":{" HEAD
				 ",\"canceled\":true,\"cancel_reason\":\"no\\nleader\""
				 "}}",
				 &answer),
		0);
	assert_true(answer.is_canceled);
	assert_int_equal(answer.compacted, 0);
	assert_string_equal(answer.reason, "no?leader");
	assert_int_equal(read_exactly(ctl_etcd_json_read_watch,
				 "{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":"
				 "\"closing\"}}",
				 &answer),
		0);
	assert_true(answer.is_canceled);
	assert_string_equal(answer.reason, "closing");
}

static const struct {
	const char *what;
	const char *text;
} no_lines[] = {
	{"an empty line", ""},
	{"half a line", "{\"result\":{" HEAD ",\"ev"},
	{"no result", "{}"},
	{"a result that is none", "{\"result\":[]}"},
	{"no header", "{\"result\":{\"created\":true}}"},
	{"created that is no yes or no", "{\"result\":{" HEAD ",\"created\":\"yes\"}}"},
	{"events that are no list", "{\"result\":{" HEAD ",\"events\":3}}"},
	{"an event that is none", EVENTS("3")},
	{"an event without a key", EVENTS("{}")},
	{"an event of another kind", EVENTS(EVENT("\"type\":\"MOVE\",", "8", ""))},
	{"a kind that is no text", EVENTS(EVENT("\"type\":1,", "8", ""))},
	{"an event of the future", EVENTS(EVENT("", "10", ""))},
	{"events that go back", EVENTS(EVENT("", "8", "") "," EVENT("", "7", ""))},
	{"a value that is no base64 behind a good one",
		EVENTS(EVENT("", "7", ",\"value\":\"YQ==\"") "," EVENT("", "8",
			",\"value\":\"!\""))},
};

static void
test_what_no_watch_says_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(no_lines); i++) {
		struct ctl_etcd_answer answer;
		const int ret =
			read_exactly(ctl_etcd_json_read_watch, no_lines[i].text, &answer);

		EXPECT(ret == -EPROTO, "%s: %d", no_lines[i].what, ret);
	}
}

static void
test_tokens(void **state)
{
	static const char good[] = "{" HEAD ",\"token\":\"abc.7\"}";
	static const char *const bad[] = {"{" HEAD "}", "{\"token\":\"\"}", "{\"token\":3}",
		"{\"token\":\"a\\r\\nX: y\"}", "abc"};
	char *token = NULL;

	(void)state;
	assert_int_equal(ctl_etcd_json_read_login(good, strlen(good), &token), 0);
	assert_string_equal(token, "abc.7");
	free(token);
	token = NULL;
	for (size_t i = 0; i < LB_N_ELEMENTS(bad); i++) {
		const int ret = ctl_etcd_json_read_login(bad[i], strlen(bad[i]), &token);

		EXPECT(ret == -EPROTO && token == NULL, "%s: %d", bad[i], ret);
	}
}

static void
test_words_of_an_error(void **state)
{
	static const struct {
		const char *text;
		const char *words;
	} rows[] = {
		{"{\"error\":\"no\\u001bsuch user\",\"code\":3}", "no?such user"},
		{"{\"error\":\"b\\u0085\\u009b\\u202ex\\u2028\\ufeff\xc3\xbc\"}",
			"b???x??\xc3\xbc"},
		{"{\"error\":{\"message\":\"closing\"}}", "closing"},
		{"{\"message\":\"denied\",\"code\":7}", "denied"},
		{"{\"error\":3}", ""},
		{"<html>", ""},
		{"", ""},
	};
	char words[CTL_ETCD_WHY_BYTES];
	char text[2 * CTL_ETCD_WHY_BYTES];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		ctl_etcd_json_read_error(rows[i].text, strlen(rows[i].text), words);
		assert_string_equal(words, rows[i].words);
	}
	(void)sprintf(text, "{\"error\":\"%0400d\"}", 7);
	ctl_etcd_json_read_error(text, strlen(text), words);
	assert_int_equal(strlen(words), CTL_ETCD_WHY_BYTES - 1);
	/* No character is cut. */
	(void)sprintf(text, "{\"error\":\"%0*d\xc3\xbc\"}", (int)CTL_ETCD_WHY_BYTES - 2, 7);
	ctl_etcd_json_read_error(text, strlen(text), words);
	assert_int_equal(strlen(words), CTL_ETCD_WHY_BYTES - 2);
}

/* before, n times part, after: what the watch's reader makes of it. */
static int
read_many(const char *before, const char *part, size_t n, const char *after)
{
	const size_t n_part = strlen(part);
	char *text = malloc(strlen(before) + n * n_part + strlen(after) + 1);
	struct ctl_etcd_answer answer = {0};
	char *at;
	int ret;

	assert_non_null(text);
	at = stpcpy(text, before);
	for (size_t i = 0; i < n; i++)
		at = stpcpy(at, part);
	(void)stpcpy(at, after);
	ret = read_exactly(ctl_etcd_json_read_watch, text, &answer);
	free(text);
	ctl_etcd_answer_fini(&answer);
	return ret;
}

static void
test_an_answer_has_few_parts(void **state)
{
	static const char begin[] = "{\"result\":{" HEAD ",\"created\":true,\"more\":[";
	static const char text[] = "{\"result\":{" HEAD ",\"created\":true,\"more\":\"";
	/* The begin has three objects, a list and three commas. */
	const size_t n_max = CTL_ETCD_PARTS_MAX - 7;

	(void)state;
	assert_int_equal(read_many(begin, "1,", n_max, "1]}}"), 0);
	assert_int_equal(read_many(begin, "1,", n_max + 1, "1]}}"), -EPROTO);
	assert_int_equal(read_many(begin, "{},", n_max / 2, "1]}}"), 0);
	assert_int_equal(read_many(begin, "{},", n_max / 2 + 1, "1]}}"), -EPROTO);
	/* What a text has is no part, whatever quotes are in it. */
	assert_int_equal(read_many(text, "\\\"[{,\\\\", (size_t)1 << 20, "\"}}"), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_asked),
		cmocka_unit_test(test_a_key_that_is_there),
		cmocka_unit_test(test_an_empty_value_and_no_key),
		cmocka_unit_test(test_what_is_no_answer_is_refused),
		cmocka_unit_test(test_a_value_is_as_long_as_a_copy_may_be),
		cmocka_unit_test(test_no_bytes_are_no_answer),
		cmocka_unit_test(test_a_put_that_is_done_and_one_that_is_not),
		cmocka_unit_test(test_what_a_watch_says),
		cmocka_unit_test(test_of_several_events_the_last_counts),
		cmocka_unit_test(test_how_a_watch_ends),
		cmocka_unit_test(test_what_no_watch_says_is_refused),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_an_answer_has_few_parts),
		cmocka_unit_test(test_words_of_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
