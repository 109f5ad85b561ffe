/* SPDX-License-Identifier: BSD-3-Clause */
/* Health checks: what is read, what is printed, and what is said of what does not fit. */
#include "expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_print.h"
#include "cfg_yaml.h"

#define S UINT64_C(1000000000)

#define HEAD "services:\n- name: w\n  address: 192.0.2.1\n  protocol: tcp\n  port: 443\n"
/* On line 6, from column 11 on. */
#define CHECK(text) HEAD "  health: {" text "}\n"
/* The same with a type: from column 23 on. */
#define HTTP(text) CHECK("type: http, " text)

static const struct {
	const char *what;
	const char *text;
	const char *messages;
} bad[] = {
	{"no type", CHECK("port: 80"),
		"f:6:11: this check has no key 'type', which it needs\n"},
	{"a type that is none", CHECK("type: htpp"),
		"f:6:18: type: expected none, tcp, http, https, udp or icmp, found the value "
		"'htpp'; did you mean http?\n"},
	{"no mapping", HEAD "  health: tcp\n",
		"f:6:11: expected a mapping with the keys type, port, path, host, expect, "
		"verify, interval, timeout, rise, fall, via and flap_half_life, found the "
		"value 'tcp'\n"},
	{"a key that is none", CHECK("type: tcp, ports: 80"),
		"f:6:23: unknown key 'ports'; did you mean 'port'?\n"},
	{"silence through the tunnel", CHECK("type: udp, via: tunnel, expect: any"),
		"f:6:44: expect: any is for via: direct, as through the tunnel silence tells "
		"nothing; expected reply\n"},
	{"the tunnel for icmp", CHECK("type: icmp, via: tunnel"),
		"f:6:29: via: tunnel is for type tcp, http, https or udp, and this one is "
		"icmp; expected direct\n"},
	{"the tunnel without the kernel",
		"dataplane: {kernel: none, ports: [{name: p, device: d, addresses: "
		"[192.0.2.9/24]}]}\n" CHECK("type: tcp, via: tunnel"),
		"f:7:11: health: via: tunnel needs the kernel, which has the address that "
		"answers come to, and this dataplane has kernel: none; expected via: direct\n"},
	{"the tunnel to a prefix",
		"services:\n- name: w\n  address: 198.51.100.0/28\n  protocol: tcp\n  port: "
		"443\n  health: {type: tcp, via: tunnel}\n",
		"f:6:11: health: via: tunnel asks for the service's one address, and this "
		"service has a prefix; expected via: direct\n"},
	{"the tunnel from no address of the family",
		"dataplane: {ports: [{name: p, device: d, addresses: "
		"['2001:db8::1/64']}]}\n" CHECK("type: tcp, via: tunnel"),
		"f:7:11: health: via: tunnel asks from an address of the balancer's own, and "
		"no port has one of IPv4; give a port one among its 'addresses'\n"},
	{"a path for tcp", CHECK("type: tcp, path: /"),
		"f:6:29: path is for type http or https, and this one is tcp; remove it\n"},
	{"a host for udp", CHECK("type: udp, host: a"),
		"f:6:29: host is for type http or https, and this one is udp; remove it\n"},
	{"verify for http", HTTP("verify: false"),
		"f:6:32: verify is for type https, and this one is http; remove it\n"},
	{"a port for icmp", CHECK("type: icmp, port: 7"),
		"f:6:30: port is for type tcp, http, https or udp, and this one is icmp; "
		"remove it\n"},
	{"a port for none", CHECK("type: none, port: 7"),
		"f:6:30: port is for type tcp, http, https or udp, and this one is none; "
		"remove it\n"},
	{"port 0", CHECK("type: tcp, port: 0"),
		"f:6:29: port: expected a whole number from 1 to 65535, found the value '0'\n"},
	{"a path without its slash", HTTP("path: health"),
		"f:6:30: path: expected '/' and at most 1023 bytes of printable ASCII without "
		"blanks, found the value 'health'\n"},
	{"a path with a line end", HTTP("path: \"/a\\r\\nb\""),
		"f:6:30: path: expected '/' and at most 1023 bytes of printable ASCII without "
		"blanks, found the value '/a\\x0d\\x0ab'\n"},
	{"a host with a port", HTTP("host: 'a:80'"),
		"f:6:30: host: expected a name of at most 253 bytes, without a port, found the "
		"value 'a:80'\n"},
	{"a status that is none", HTTP("expect: 99"),
		"f:6:32: expect: expected a status from 100 to 599, or a range such as "
		"200-399, found the value '99'\n"},
	{"a range the wrong way", HTTP("expect: 300-200"),
		"f:6:32: expect: expected a status from 100 to 599, or a range such as "
		"200-399, found the value '300-200'\n"},
	{"no status", HTTP("expect: []"),
		"f:6:32: expect: expected one status at least, found a list\n"},
	{"nine", HTTP("expect: [200, 201, 202, 203, 204, 205, 206, 207, 208]"),
		"f:6:73: one status too many; expect has at most 8\n"},
	{"a status for udp", CHECK("type: udp, expect: 200"),
		"f:6:31: expect: expected any or reply, found the value '200'\n"},
	{"too short an interval", HTTP("interval: 99ms"),
		"f:6:34: interval: expected a time with its unit (ns, us, ms, s, m, h or d) "
		"from 100ms to 1h, such as 30s, found the value '99ms'\n"},
	{"a timeout longer than the interval", HTTP("interval: 1s, timeout: 2s"),
		"f:6:47: timeout: expected a time with its unit (ns, us, ms, s, m, h or d) "
		"from 10ms to 1s, such as 30s, found the value '2s'\n"},
	{"rise 0", HTTP("rise: 0"),
		"f:6:30: rise: expected a whole number from 1 to 100, found the value '0'\n"},
	{"fall 101", HTTP("fall: 101"),
		"f:6:30: fall: expected a whole number from 1 to 100, found the value '101'\n"},
	{"too short a half-life", HTTP("flap_half_life: 0s"),
		"f:6:40: flap_half_life: expected a time with its unit (ns, us, ms, s, m, h or "
		"d) from 1s to 1d, such as 30s, found the value "
		"'0s'\n"},
	{"a service of any port, and none to ask at",
		"services:\n- {name: w, address: 192.0.2.1, protocol: tcp, port: any,\n"
		"   health: {type: tcp}}\n",
		"f:3:12: health: type tcp needs a port, as the service has 'port: any'; add "
		"'port' to it\n"},
	{"too slow a start", HEAD "  slow_start: 2h\n",
		"f:6:15: slow_start: expected a time with its unit (ns, us, ms, s, m, h or d) "
		"from 0s to 1h, such as 30s, found the value '2h'\n"},
	{"no backend is needed", HEAD "  min_healthy: 0\n",
		"f:6:16: min_healthy: expected a whole number from 1 to 65535, found the value "
		"'0'\n"},
	{"something else than keep or drop", HEAD "  when_all_down: dropp\n",
		"f:6:18: when_all_down: expected keep or drop, found the value 'dropp'; did "
		"you mean drop?\n"},
};

static int
read_text(const char *text, char **messages, struct cfg_model *model)
{
	size_t n_messages = 0;
	FILE *stream = open_memstream(messages, &n_messages);
	int ret;

	assert_non_null(stream);
	ret = cfg_read_text_model("f", text, strlen(text), stream, model);
	assert_int_equal(fclose(stream), 0);
	return ret;
}

static void
test_what_is_wrong_is_said(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(bad); i++) {
		struct cfg_model model;
		char *messages;
		const int ret = read_text(bad[i].text, &messages, &model);

		EXPECT(ret == -EINVAL, "%s: %d", bad[i].what, ret);
		EXPECT(strcmp(messages, bad[i].messages) == 0, "%s: said\n%sexpected\n%s",
			bad[i].what, messages, bad[i].messages);
		free(messages);
	}
}

static const struct {
	const char *what;
	const char *text;
	struct cfg_health want;
} right[] = {
	{"what is not said", CHECK("type: tcp"),
		{.type = CFG_HEALTH_TCP,
			.is_verified = true,
			.rise = 2,
			.fall = 3,
			.interval_ns = 2 * S,
			.timeout_ns = S,
			.half_life_ns = 60 * S}},
	{"an interval shorter than the timeout would be", CHECK("type: icmp, interval: 100ms"),
		{.type = CFG_HEALTH_ICMP,
			.is_verified = true,
			.rise = 2,
			.fall = 3,
			.interval_ns = S / 10,
			.timeout_ns = S / 10,
			.half_life_ns = 60 * S}},
	{"everything",
		CHECK("type: https, port: 8443, path: /a?b=c, host: a.example.org, expect: "
		      "[200-299, 404], verify: false, interval: 5s, timeout: 5s, rise: 100, "
		      "fall: 1, via: direct, flap_half_life: off"),
		{.type = CFG_HEALTH_HTTPS,
			.port = 8443,
			.path = "/a?b=c",
			.host = "a.example.org",
			.expect = {{200, 299}, {404, 404}},
			.n_expect = 2,
			.rise = 100,
			.fall = 1,
			.interval_ns = 5 * S,
			.timeout_ns = 5 * S}},
	{"udp that wants a reply", CHECK("type: udp, expect: reply, flap_half_life: 1d"),
		{.type = CFG_HEALTH_UDP,
			.is_verified = true,
			.wants_reply = true,
			.rise = 2,
			.fall = 3,
			.interval_ns = 2 * S,
			.timeout_ns = S,
			.half_life_ns = 86400 * S}},
	{"through the tunnel", CHECK("type: tcp, via: tunnel"),
		{.type = CFG_HEALTH_TCP,
			.is_verified = true,
			.is_tunnelled = true,
			.rise = 2,
			.fall = 3,
			.interval_ns = 2 * S,
			.timeout_ns = S,
			.half_life_ns = 60 * S}},
	{"one status alone", HTTP("expect: 204"),
		{.type = CFG_HEALTH_HTTP,
			.is_verified = true,
			.expect = {{204, 204}},
			.n_expect = 1,
			.rise = 2,
			.fall = 3,
			.interval_ns = 2 * S,
			.timeout_ns = S,
			.half_life_ns = 60 * S}},
	{"none", CHECK("type: none"), {.type = CFG_HEALTH_NONE}},
	{"nothing", HEAD, {.type = CFG_HEALTH_NONE}},
};

/* Printed, read again and compared; a copy likewise. */
static void
expect_round_trip(const char *what, const struct cfg_model *model)
{
	struct cfg_model again;
	struct cfg_model copy;
	char *text = NULL;
	char *messages;
	size_t n_text = 0;
	FILE *stream = open_memstream(&text, &n_text);

	assert_non_null(stream);
	assert_int_equal(cfg_print(model, stream), 0);
	assert_int_equal(fclose(stream), 0);
	EXPECT(read_text(text, &messages, &again) == 0, "%s:\n%s%s", what, text, messages);
	EXPECT(cfg_model_equal(model, &again), "%s: not the same again:\n%s", what, text);
	assert_int_equal(cfg_model_copy(model, &copy), 0);
	EXPECT(cfg_model_equal(model, &copy), "%s: the copy", what);
	cfg_model_fini(&again);
	cfg_model_fini(&copy);
	free(messages);
	free(text);
}

static void
test_what_is_right_is_read_and_printed(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(right); i++) {
		struct cfg_model model;
		char *messages;

		EXPECT(read_text(right[i].text, &messages, &model) == 0, "%s: %s",
			right[i].what, messages);
		EXPECT(messages[0] == '\0', "%s: %s", right[i].what, messages);
		EXPECT(cfg_health_equal(&model.services[0].health, &right[i].want),
			"%s: read otherwise", right[i].what);
		expect_round_trip(right[i].what, &model);
		free(messages);
		cfg_model_fini(&model);
	}
}

static void
test_each_difference_is_one(void **state)
{
	const struct cfg_health *all = &right[2].want;

	(void)state;
	for (unsigned int i = 0; i < 13; i++) {
		struct cfg_health other = *all;

		switch (i) {
		case 0:
			other.type = CFG_HEALTH_HTTP;
			break;
		case 1:
			other.port++;
			break;
		case 2:
			other.path = "/";
			break;
		case 3:
			other.host = NULL;
			break;
		case 4:
			other.expect[1].first--;
			break;
		case 5:
			other.expect[1].last++;
			break;
		case 6:
			other.n_expect--;
			break;
		case 7:
			other.is_verified = true;
			break;
		case 8:
			other.wants_reply = true;
			break;
		case 9:
			other.rise--;
			break;
		case 10:
			other.fall++;
			break;
		case 11:
			other.interval_ns++;
			break;
		default:
			other.half_life_ns++;
			break;
		}
		EXPECT(!cfg_health_equal(all, &other), "difference %u", i);
	}
}

static void
test_the_other_keys_are_read_printed_and_compared(void **state)
{
	static const char *const texts[] = {HEAD "  slow_start: 30s\n",
		HEAD "  min_healthy: 2\n", HEAD "  when_all_down: drop\n"};
	struct cfg_model plain;
	char *messages;

	(void)state;
	EXPECT(read_text(HEAD "  min_healthy: 1\n  when_all_down: keep\n  slow_start: 0s\n"
			      "  backends: [{name: a, address: 10.0.0.1}]\n",
		       &messages, &plain) == 0,
		"%s", messages);
	free(messages);
	cfg_model_fini(&plain);
	EXPECT(read_text(HEAD, &messages, &plain) == 0, "%s", messages);
	free(messages);
	EXPECT(plain.services[0].min_healthy == 1, "one is needed");
	for (size_t i = 0; i < LB_N_ELEMENTS(texts); i++) {
		struct cfg_model model;

		EXPECT(read_text(texts[i], &messages, &model) == 0, "%s", messages);
		EXPECT(!cfg_model_equal(&model, &plain), "no difference: %s", texts[i]);
		expect_round_trip(texts[i], &model);
		free(messages);
		cfg_model_fini(&model);
	}
	cfg_model_fini(&plain);
}

static void
test_more_than_there_are_is_warned_of(void **state)
{
	struct cfg_model model;
	char *messages;

	(void)state;
	EXPECT(read_text(HEAD "  min_healthy: 2\n  backends: [{name: a, address: 10.0.0.1}]\n",
		       &messages, &model) == 0,
		"%s", messages);
	assert_string_equal(messages,
		"f:6:16: warning: min_healthy: the service has 1 backends, so 2 are never "
		"healthy and it is never ready\n");
	free(messages);
	cfg_model_fini(&model);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_wrong_is_said),
		cmocka_unit_test(test_what_is_right_is_read_and_printed),
		cmocka_unit_test(test_each_difference_is_one),
		cmocka_unit_test(test_the_other_keys_are_read_printed_and_compared),
		cmocka_unit_test(test_more_than_there_are_is_warned_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
