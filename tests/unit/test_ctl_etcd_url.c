/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_etcd_url.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"

static void
test_what_is_meant_as_an_address(void **state)
{
	(void)state;
	assert_true(ctl_etcd_url_is("etcd://h/k"));
	assert_true(ctl_etcd_url_is("etcds://"));
	assert_false(ctl_etcd_url_is("/etc/shunt/shunt.yaml"));
	assert_false(ctl_etcd_url_is("etcd:/h/k"));
	assert_false(ctl_etcd_url_is("./etcd://h/k"));
	assert_false(ctl_etcd_url_is(""));
}

static void
test_addresses_are_taken_apart(void **state)
{
	static const struct {
		const char *text;
		const char *endpoints; /* a blank behind each */
		const char *key;
	} rows[] = {
		{"etcd://a:2379/shunt/site-1", "http://a:2379 ", "shunt/site-1"},
		{"etcd://a/k", "http://a:2379 ", "k"},
		{"etcds://a.example:443/k", "https://a.example:443 ", "k"},
		{"etcd://10.0.0.1:1/k", "http://10.0.0.1:1 ", "k"},
		{"etcd://[2001:db8::1]/k", "http://[2001:db8::1]:2379 ", "k"},
		{"etcd://[::ffff:10.0.0.1]:65535/k", "http://[::ffff:10.0.0.1]:65535 ", "k"},
		{"etcd://a,b:1,[::1]/k", "http://a:2379 http://b:1 http://[::1]:2379 ", "k"},
		{"etcd://a//k", "http://a:2379 ", "/k"},
		{"etcd://a/k/", "http://a:2379 ", "k/"},
		{"etcd://a/a%20b%2f%C3%BC", "http://a:2379 ", "a b/\xc3\xbc"},
		{"etcd://a/k?x#y@z,w", "http://a:2379 ", "k?x#y@z,w"},
		{"etcd://1,2,3,4,5,6,7,8,9/k",
			"http://1:2379 http://2:2379 http://3:2379 http://4:2379 http://5:2379 "
			"http://6:2379 http://7:2379 http://8:2379 http://9:2379 ",
			"k"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct ctl_etcd_url url;
		char endpoints[256] = "";
		const char *why = "";
		const int ret = ctl_etcd_url_parse(rows[i].text, &url, &why);

		EXPECT(ret == 0, "%s: %s", rows[i].text, why);
		for (size_t k = 0; k < url.n_endpoints; k++) {
			strcat(endpoints, url.endpoints[k]);
			strcat(endpoints, " ");
		}
		EXPECT(strcmp(endpoints, rows[i].endpoints) == 0, "%s: %s", rows[i].text,
			endpoints);
		EXPECT(strcmp(url.key, rows[i].key) == 0, "%s: key %s", rows[i].text, url.key);
		assert_int_equal(url.is_tls, strncmp(rows[i].text, "etcds", 5) == 0);
		ctl_etcd_url_fini(&url);
	}
}

static void
test_what_is_wrong_with_an_address_is_said(void **state)
{
	static const struct {
		const char *text;
		const char *word;
	} rows[] = {
		{"etcd://a:2379", "expected a key"},
		{"etcd://a:2379/", "expected a key"},
		{"etcd:///k", "expected a host"},
		{"etcd://", "expected a host"},
		{"etcd://a,/k", "expected a host"},
		{"etcd://,a/k", "expected a host"},
		{"etcd://[]/k", "expected a host"},
		{"etcd://[::1/k", "expected a host"},
		{"etcd://[::1,[::2]/k", "expected a host"},
		{"etcd://::1/k", "expected a host"},
		{"etcd://a:/k", "expected a port"},
		{"etcd://a:0/k", "expected a port"},
		{"etcd://a:65536/k", "expected a port"},
		{"etcd://a:4294967297/k", "expected a port"},
		{"etcd://a:23x/k", "expected a port"},
		{"etcd://a b/k", "expected a port"},
		{"etcd://[::1]x/k", "expected a port"},
		{"etcd://root:secret@a/k", "not for a command line"},
		{"etcd://a/%", "two hexadecimal digits"},
		{"etcd://a/%4", "two hexadecimal digits"},
		{"etcd://a/%4x", "two hexadecimal digits"},
		{"etcd://a/%00", "control character"},
		{"etcd://a/k\n", "control character"},
		{"etcd://1,2,3,4,5,6,7,8,9,10/k", "9 hosts"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct ctl_etcd_url url;
		const char *why = "nothing";
		const int ret = ctl_etcd_url_parse(rows[i].text, &url, &why);
		const bool is_said = strstr(why, rows[i].word) != NULL;

		EXPECT(ret == -EINVAL && is_said, "%s: %d, %s", rows[i].text, ret, why);
	}
}

static void
test_lengths_have_limits(void **state)
{
	char text[1024];
	struct ctl_etcd_url url;
	const char *why;

	(void)state;
	(void)sprintf(text, "etcd://a/%0512d", 7);
	assert_int_equal(ctl_etcd_url_parse(text, &url, &why), 0);
	assert_int_equal(strlen(url.key), CTL_ETCD_KEY_BYTES_MAX);
	ctl_etcd_url_fini(&url);
	(void)sprintf(text, "etcd://a/%0513d", 7);
	assert_int_equal(ctl_etcd_url_parse(text, &url, &why), -EINVAL);
	(void)sprintf(text, "etcd://%0255d/k", 7);
	assert_int_equal(ctl_etcd_url_parse(text, &url, &why), 0);
	ctl_etcd_url_fini(&url);
	(void)sprintf(text, "etcd://%0256d/k", 7);
	assert_int_equal(ctl_etcd_url_parse(text, &url, &why), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_meant_as_an_address),
		cmocka_unit_test(test_addresses_are_taken_apart),
		cmocka_unit_test(test_what_is_wrong_with_an_address_is_said),
		cmocka_unit_test(test_lengths_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
