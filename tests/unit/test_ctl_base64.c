/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_base64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"

/* RFC 4648, section 10, and bytes that take the last of the alphabet. */
static const struct {
	const char *bytes;
	size_t n_bytes;
	const char *text;
} pairs[] = {
	{"", 0, ""},
	{"f", 1, "Zg=="},
	{"fo", 2, "Zm8="},
	{"foo", 3, "Zm9v"},
	{"foob", 4, "Zm9vYg=="},
	{"fooba", 5, "Zm9vYmE="},
	{"foobar", 6, "Zm9vYmFy"},
	{"\0\0\0", 3, "AAAA"},
	{"\xff\xff\xff", 3, "////"},
	{"\xfb\xef\xbe", 3, "++++"},
	{"\xff", 1, "/w=="},
};

static void
test_bytes_become_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(pairs); i++) {
		char *text = ctl_base64_encode(pairs[i].bytes, pairs[i].n_bytes);

		assert_non_null(text);
		EXPECT(strcmp(text, pairs[i].text) == 0, "%s: %s", pairs[i].text, text);
		free(text);
	}
}

/* At exact length, so that a byte too many is seen. */
static int
decode(const char *text, size_t n, char **out, size_t *n_bytes)
{
	char *copy = malloc(n + (n == 0));
	int ret;

	assert_non_null(copy);
	memcpy(copy, text, n);
	ret = ctl_base64_decode(copy, n, out, n_bytes);
	free(copy);
	return ret;
}

static void
test_text_becomes_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(pairs); i++) {
		char *bytes = NULL;
		size_t n_bytes = 0;
		const int ret = decode(pairs[i].text, strlen(pairs[i].text), &bytes, &n_bytes);

		EXPECT(ret == 0 && n_bytes == pairs[i].n_bytes &&
				memcmp(bytes, pairs[i].bytes, n_bytes) == 0 &&
				bytes[n_bytes] == '\0',
			"%s: %d, %zu bytes", pairs[i].text, ret, n_bytes);
		free(bytes);
	}
}

static void
test_what_is_none_is_refused(void **state)
{
	static const struct {
		const char *what;
		const char *text;
	} rows[] = {
		{"a character too few", "Zm9"},
		{"two too few", "Zm"},
		{"one alone", "Z"},
		{"padding alone", "===="},
		{"too much padding", "Z==="},
		{"padding in the middle", "Zg==Zm9v"},
		{"padding before the end", "Zg=v"},
		{"a blank", "Zm 9"},
		{"a line's end", "Zm9v\n"},
		{"bits that no byte takes", "Zh=="},
		{"the same in a group of two", "Zm9="},
		{"base64url", "-_-_"},
		{"a character above ASCII", "Zm9\xc3"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		char *bytes = NULL;
		size_t n_bytes = 0;
		const int ret = decode(rows[i].text, strlen(rows[i].text), &bytes, &n_bytes);

		EXPECT(ret == -EINVAL && bytes == NULL, "%s: %d", rows[i].what, ret);
	}
	/* A NUL inside. */
	char *bytes = NULL;
	size_t n_bytes = 0;

	assert_int_equal(decode("Zm\0v", 4, &bytes, &n_bytes), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_become_text),
		cmocka_unit_test(test_text_becomes_bytes),
		cmocka_unit_test(test_what_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
