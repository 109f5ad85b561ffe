/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_json.h"

#include <stdlib.h>
#include <string.h>

#include "ctl_rpc.h"
#include "expect.h"
#include "lb_compiler.h"

/* Held against what jansson writes of the same values. */
static void
expect_same(const char *what, struct ctl_json *json, json_t *value)
{
	char *wanted = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	const char *text = ctl_json_text(json);

	assert_non_null(wanted);
	EXPECT(text != NULL && strcmp(text, wanted) == 0, "%s: %s\nwanted: %s", what,
		text == NULL ? "nothing" : text, wanted);
	free(wanted);
	json_decref(value);
	ctl_json_fini(json);
}

static void
test_texts(void **state)
{
	static const struct {
		const char *what;
		const char *text;
	} rows[] = {
		{"none", ""},
		{"plain", "web-1 ~!"},
		{"a quote", "a\"b"},
		{"a backslash", "a\\b/c"},
		{"control characters", "\b\f\n\r\t\x01\x1f"},
		{"the last of ASCII", "\x7f"},
		{"UTF-8", "w\xc3\xa9"
			  "b \xe2\x82\xac \xf0\x9f\x98\x80"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct ctl_json json = {.has_failed = false};

		ctl_json_put_text(&json, rows[i].text);
		expect_same(rows[i].what, &json, json_string(rows[i].text));
	}
}

static void
test_numbers(void **state)
{
	static const uint64_t rows[] = {0, 9, 10, 65535, INT64_MAX, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct ctl_json json = {.has_failed = false};

		ctl_json_put_number(&json, rows[i]);
		/* The most that jansson has. */
		expect_same("a number", &json,
			json_integer(rows[i] > INT64_MAX ? INT64_MAX : (json_int_t)rows[i]));
	}
}

static void
test_an_object_of_all(void **state)
{
	struct ctl_json json = {.has_failed = false};
	struct ctl_json list = {.has_failed = false};

	(void)state;
	ctl_json_put(&list, "{");
	ctl_json_put(&list, CTL_JSON_FIRST_KEY("a"));
	ctl_json_put_value(&list, json_null());
	ctl_json_put(&list, CTL_JSON_KEY("b"));
	ctl_json_put_value(&list, json_pack("[s]", "x"));
	ctl_json_put(&list, "}");
	ctl_json_put_open(&json, json_pack("{s:i, s:f}", "i", 1, "f", 0.5));
	ctl_json_put(&json, CTL_JSON_KEY("list"));
	ctl_json_put(&json, "[");
	ctl_json_put_all(&json, &list);
	ctl_json_put(&json, "]}");
	ctl_json_fini(&list);
	expect_same("an object", &json,
		json_pack("{s:i, s:f, s:[{s:n, s:[s]}]}", "i", 1, "f", 0.5, "list", "a", "b",
			"x"));
}

static void
test_what_could_not_be_written_is_not_given(void **state)
{
	struct ctl_json json = {.has_failed = false};
	struct ctl_json other = {.has_failed = false};

	(void)state;
	ctl_json_put_text(&json, "\xff");
	ctl_json_put(&json, "1");
	assert_null(ctl_json_text(&json));
	ctl_json_put(&other, "2");
	ctl_json_put_all(&other, &json);
	assert_null(ctl_json_text(&other));
	ctl_json_fini(&json);
	ctl_json_fini(&other);

	ctl_json_put_value(&json, NULL);
	assert_null(ctl_json_text(&json));
	ctl_json_fini(&json);
	ctl_json_put_open(&json, NULL);
	assert_null(ctl_json_text(&json));
	ctl_json_fini(&json);
}

/* Longer than an answer may be, so that it is refused; and not by much. */
static void
test_what_is_too_long_is_not_written_on(void **state)
{
	static char much[1u << 20];
	struct ctl_json json = {.has_failed = false};
	size_t n;

	(void)state;
	memset(much, '1', sizeof(much) - 1);
	for (size_t i = 0; i < 200; i++)
		ctl_json_put(&json, much);
	n = strlen(ctl_json_text(&json));
	EXPECT(n > CTL_RPC_ANSWER_BYTES_MAX && n <= CTL_RPC_ANSWER_BYTES_MAX + sizeof(much),
		"%zu bytes", n);
	ctl_json_fini(&json);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_an_object_of_all),
		cmocka_unit_test(test_what_could_not_be_written_is_not_given),
		cmocka_unit_test(test_what_is_too_long_is_not_written_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
