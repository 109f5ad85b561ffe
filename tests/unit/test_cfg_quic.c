/* SPDX-License-Identifier: BSD-3-Clause */
/* Affinity quic: configurations, server ids, and what is said of those that do not fit. */
#include "expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_check.h"
#include "cfg_yaml.h"

#define HEAD                                                                                   \
	"services:\n- name: q\n  address: 192.0.2.1\n  protocol: udp\n  port: 443\n"           \
	"  affinity: quic\n"
/* One configuration of server ids of 2 bytes, on line 7. */
#define TWO  HEAD "  quic: [{config_id: 0, server_id_length: 2, nonce_length: 8}]\n"
#define KEY  "00112233445566778899aabbccddeeff"
#define HEX  "1 to 15 bytes, each as two hex digits, such as 0a1b"
#define BOTH "; expected at most 19, as a connection id has 20 bytes at most\n"

static const struct {
	const char *what;
	const char *text;
	const char *messages; /* warnings alone: it is right */
	bool is_right;
} rows[] = {
	{"each backend has an id for each configuration",
		HEAD "  quic:\n  - {config_id: 0, server_id_length: 1, nonce_length: 18}\n"
		     "  - {config_id: 6, server_id_length: 15, nonce_length: 4, cid_key: " KEY
		     "}\n  - {config_id: 3, server_id_length: 1, nonce_length: 4}\n"
		     "  backends:\n  - {name: a, address: 10.0.0.1,\n"
		     "     quic_id: [01, 0123456789abcdef0123456789abcd]}\n",
		"", true},
	{"no backends", TWO, "", true},
	{"ids that look like numbers, in quotes and not",
		TWO "  backends:\n  - {name: a, address: 10.0.0.1, quic_id: 0012}\n"
		    "  - {name: b, address: 10.0.0.1, quic_id: 1e10}\n"
		    "  - {name: c, address: 10.0.0.1, quic_id: '1234'}\n"
		    "  - {name: d, address: 10.0.0.1, quic_id: [\"AbCd\", 0x00]}\n",
		"f:12:52: quic_id: expected " HEX ", found the value '0x00'\n", false},
	{"configurations for another affinity",
		"services:\n- {name: q, address: 192.0.2.1, protocol: udp, port: 443,\n"
		"   quic: [{config_id: 0, server_id_length: 2, nonce_length: 8}]}\n",
		"f:3:10: quic is for affinity quic, and this service has 5-tuple; remove "
		"it\n",
		false},
	{"no configurations", HEAD,
		"f:6:13: affinity: quic needs the key 'quic' with a list of 1 to 7 "
		"configurations\n",
		false},
	{"an empty list of them", HEAD "  quic: []\n",
		"f:6:13: affinity: quic needs the key 'quic' with a list of 1 to 7 "
		"configurations\n",
		false},
	{"no list of them", HEAD "  quic: plain\n",
		"f:7:9: quic: expected a list, found the value 'plain'\n", false},
	{"another protocol",
		"services:\n- {name: q, address: 192.0.2.1, protocol: any, port: 443,\n"
		"   affinity: quic,\n"
		"   quic: [{config_id: 0, server_id_length: 2, nonce_length: 8}]}\n",
		"f:3:14: affinity: quic is for protocol udp, and this service has any; "
		"expected 5-tuple, source-ip or source-ip-port\n",
		false},
	{"an affinity that is unknown rules nothing out",
		"services:\n- {name: q, address: 192.0.2.1, protocol: udp, port: 443,\n"
		"   affinity: quick,\n"
		"   quic: [{config_id: 0, server_id_length: 2, nonce_length: 8}]}\n",
		"f:3:14: affinity: expected 5-tuple, source-ip, source-ip-port or quic, found "
		"the value 'quick'; did you mean quic?\n",
		false},
	{"a configuration without anything", HEAD "  quic: [{}]\n",
		"f:7:10: this configuration has no key 'config_id', which it needs\n"
		"f:7:10: this configuration has no key 'server_id_length', which it needs\n"
		"f:7:10: this configuration has no key 'nonce_length', which it needs\n",
		false},
	{"numbers below their ranges, but for a config id",
		HEAD "  quic: [{config_id: 0, server_id_length: 0, nonce_length: 3}]\n",
		"f:7:43: server_id_length: expected a whole number from 1 to 15, found the "
		"value '0'\n"
		"f:7:60: nonce_length: expected a whole number from 4 to 18, found the value "
		"'3'\n",
		false},
	{"numbers above their ranges",
		HEAD "  quic: [{config_id: 7, server_id_length: 16, nonce_length: 19}]\n",
		"f:7:22: config_id: expected a whole number from 0 to 6, found the value '7'\n"
		"f:7:43: server_id_length: expected a whole number from 1 to 15, found the "
		"value '16'\n"
		"f:7:61: nonce_length: expected a whole number from 4 to 18, found the value "
		"'19'\n",
		false},
	{"as long together as may be, and longer",
		HEAD "  quic: [{config_id: 0, server_id_length: 15, nonce_length: 4},\n"
		     "    {config_id: 1, server_id_length: 15, nonce_length: 5},\n"
		     "    {config_id: 2, server_id_length: 2, nonce_length: 18}]\n",
		"f:8:56: nonce_length: server_id_length and nonce_length are 20 together" BOTH
		"f:9:55: nonce_length: server_id_length and nonce_length are 20 together" BOTH,
		false},
	{"two of one config id",
		HEAD "  quic: [{config_id: 1, server_id_length: 2, nonce_length: 8},\n"
		     "    {config_id: 0, server_id_length: 2, nonce_length: 8},\n"
		     "    {config_id: 1, server_id_length: 3, nonce_length: 8}]\n",
		"f:9:17: config_id: 1 is that of another configuration of the service; give "
		"each its own\n",
		false},
	{"one configuration too many",
		HEAD "  quic:\n  - {config_id: 0, server_id_length: 2, nonce_length: 8}\n"
		     "  - {config_id: 1, server_id_length: 2, nonce_length: 8}\n"
		     "  - {config_id: 2, server_id_length: 2, nonce_length: 8}\n"
		     "  - {config_id: 3, server_id_length: 2, nonce_length: 8}\n"
		     "  - {config_id: 4, server_id_length: 2, nonce_length: 8}\n"
		     "  - {config_id: 5, server_id_length: 2, nonce_length: 8}\n"
		     "  - {config_id: 6, server_id_length: 2, nonce_length: 8}\n"
		     "  - {config_id: 6, server_id_length: 2, nonce_length: 8}\n",
		"f:15:5: one configuration too many; quic has at most 7\n", false},
	/* Nothing of a key is shown, however wrong it is. */
	{"keys of 31 and 36 digits, with another letter, of nothing, and a list",
		HEAD "  quic:\n  - {config_id: 0, server_id_length: 2, nonce_length: 8,\n"
		     "      cid_key: 0011223344556677889900112233445}\n"
		     "  - {config_id: 1, server_id_length: 2, nonce_length: 8,\n"
		     "      cid_key: 001122334455667788990011223344556677}\n"
		     "  - {config_id: 2, server_id_length: 2, nonce_length: 8,\n"
		     "      cid_key: 0011223344556677889900112233445g}\n"
		     "  - {config_id: 3, server_id_length: 2, nonce_length: 8, cid_key: }\n"
		     "  - {config_id: 4, server_id_length: 2, nonce_length: 8, cid_key: [1]}\n",
		"f:9:16: cid_key: expected 32 hex digits, found another text, which is not "
		"shown, as it may be secret\n"
		"f:11:16: cid_key: expected 32 hex digits, found another text, which is not "
		"shown, as it may be secret\n"
		"f:13:16: cid_key: expected 32 hex digits, found another text, which is not "
		"shown, as it may be secret\n"
		"f:14:67: cid_key: expected 32 hex digits, found nothing\n"
		"f:15:67: cid_key: expected 32 hex digits, found a list\n",
		false},
	{"a word of YAML for true",
		HEAD "  quic: [{config_id: 0, server_id_length: 2, nonce_length: 8,\n"
		     "    first_octet_encodes_cid_length: yes}]\n",
		"f:8:37: first_octet_encodes_cid_length: expected false or true, found the "
		"value 'yes'\n",
		false},
	{"an unknown key nearly right",
		HEAD "  quic: [{config_id: 0, server_id_length: 2, nonce_lenght: 8}]\n",
		"f:7:46: unknown key 'nonce_lenght'; did you mean 'nonce_length'?\n"
		"f:7:10: this configuration has no key 'nonce_length', which it needs\n",
		false},
	{"a server id where there are no configurations",
		"services:\n- {name: q, address: 192.0.2.1, protocol: udp, port: 443,\n"
		"   backends: [{name: a, address: 10.0.0.1, quic_id: [01, 02]}]}\n",
		"f:3:54: quic_id is for services with the key 'quic', and this one has none; "
		"remove it\n",
		false},
	{"server ids that are none",
		TWO "  backends:\n  - {name: a, address: 10.0.0.1, quic_id: 012}\n"
		    "  - {name: b, address: 10.0.0.1, quic_id: ''}\n"
		    "  - {name: c, address: 10.0.0.1, quic_id: }\n"
		    "  - {name: d, address: 10.0.0.1, quic_id: [0a0b, {a: 1}]}\n"
		    "  - {name: e, address: 10.0.0.1,\n"
		    "     quic_id: 00112233445566778899aabbccddeeff}\n",
		"f:9:43: quic_id: expected " HEX ", found the value '012'\n"
		"f:10:43: quic_id: expected " HEX ", found the value ''\n"
		"f:11:43: quic_id: expected " HEX ", found nothing\n"
		"f:12:50: quic_id: expected " HEX ", found a mapping\n"
		"f:14:15: quic_id: expected " HEX
		", found the value '00112233445566778899aabbccddeeff'\n",
		false},
	{"one server id too many",
		HEAD "  quic: [{config_id: 0, server_id_length: 1, nonce_length: 8}]\n"
		     "  backends:\n  - {name: a, address: 10.0.0.1, quic_id: [00, 01, 02, 03,\n"
		     "     04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10]}\n",
		"f:10:54: one server id too many; a backend has at most 16\n", false},
	{"a server id of no configuration's length",
		HEAD "  quic: [{config_id: 0, server_id_length: 9, nonce_length: 8},\n"
		     "    {config_id: 1, server_id_length: 2, nonce_length: 8},\n"
		     "    {config_id: 2, server_id_length: 4, nonce_length: 8}]\n"
		     "  backends:\n  - {name: a, address: 10.0.0.1,\n"
		     "     quic_id: [0102, 010203, 01020304, 010203040506070809]}\n",
		"f:12:22: quic_id: 010203 has 3 bytes, and no configuration of the service "
		"has server ids of so many; expected 2, 4 or 9\n",
		false},
	{"where a configuration is wrong no length is",
		HEAD "  quic: [{config_id: 0, server_id_length: 99, nonce_length: 8}]\n"
		     "  backends: [{name: a, address: 10.0.0.1, quic_id: 01}]\n",
		"f:7:43: server_id_length: expected a whole number from 1 to 15, found the "
		"value '99'\n",
		false},
	{"a server id of two backends, and twice of one",
		TWO "  backends:\n  - {name: a, address: 10.0.0.1, quic_id: [0a0b, 0c0d]}\n"
		    "  - {name: b, address: 10.0.0.1, quic_id: 0C0D}\n"
		    "  - {name: c, address: 10.0.0.1, quic_id: [0e0f, '0e0f']}\n",
		"f:10:43: quic_id: 0c0d is that of backend 'a'; give each its own\n"
		"f:11:50: quic_id: 0e0f is there already; remove one of them\n",
		false},
	{"ids that begin alike",
		HEAD "  quic: [{config_id: 0, server_id_length: 1, nonce_length: 8},\n"
		     "    {config_id: 1, server_id_length: 2, nonce_length: 8}]\n"
		     "  backends: [{name: a, address: 10.0.0.1, quic_id: [0a, 0a00]}]\n",
		"", true},
	{"backends without ids for a configuration",
		HEAD
		"  quic: [{config_id: 0, server_id_length: 2, nonce_length: 8},\n"
		"    {config_id: 5, server_id_length: 4, nonce_length: 8}]\n"
		"  backends:\n  - {name: a, address: 10.0.0.1, quic_id: [0102, 01020304]}\n"
		"  - {name: b, address: 10.0.0.1, quic_id: 0103}\n"
		"  - {name: c, address: 10.0.0.1}\n",
		"f:11:5: warning: the backend has no quic_id of 4 bytes, as config_id 5 has "
		"them, so its connections go by their 5-tuples (2 such backends)\n",
		true},
};

static void
test_configurations_and_server_ids(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *text = rows[i].text;
		struct cfg_model model;
		char *messages;
		size_t n;
		FILE *to = open_memstream(&messages, &n);
		int ret;

		assert_non_null(to);
		ret = cfg_read_text_model("f", text, strlen(text), to, &model);
		assert_int_equal(fclose(to), 0);
		EXPECT(ret == (rows[i].is_right ? 0 : -EINVAL), "%s: %d, says %s", rows[i].what,
			ret, messages);
		EXPECT(strcmp(messages, rows[i].messages) == 0, "%s: says %s", rows[i].what,
			messages);
		free(messages);
		if (ret == 0)
			cfg_model_fini(&model);
	}
}

static void
test_every_key_is_read(void **state)
{
	static const char text[] =
		HEAD "  quic:\n  - {config_id: 6, server_id_length: 2, nonce_length: 17,\n"
		     "     cid_key: 00112233445566778899AABBCCDDEEFF,\n"
		     "     first_octet_encodes_cid_length: true}\n"
		     "  - {config_id: 0, server_id_length: 3, nonce_length: 4}\n"
		     "  backends:\n  - {name: a, address: 10.0.0.1, quic_id: [1e10, 0A0b0C]}\n";
	static const uint8_t key[CFG_QUIC_KEY_BYTES] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55,
		0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
	char hex[CFG_QUIC_ID_TEXT_BYTES];
	const struct cfg_service *service;
	const struct cfg_backend *backend;
	struct cfg_model model;

	(void)state;
	assert_int_equal(cfg_read_text_model("f", text, strlen(text), stderr, &model), 0);
	service = &model.services[0];
	assert_int_equal(service->affinity, CFG_AFFINITY_QUIC);
	assert_int_equal(service->n_quic, 2);
	assert_int_equal(service->quic[0].config_id, 6);
	assert_int_equal(service->quic[0].server_id_bytes, 2);
	assert_int_equal(service->quic[0].nonce_bytes, 17);
	assert_true(service->quic[0].has_key);
	assert_true(service->quic[0].has_length);
	assert_memory_equal(service->quic[0].key, key, sizeof(key));
	assert_int_equal(service->quic[1].config_id, 0);
	assert_false(service->quic[1].has_key);
	assert_false(service->quic[1].has_length);
	backend = &service->backends[0];
	assert_int_equal(backend->n_quic_ids, 2);
	assert_string_equal(cfg_quic_id_format(&backend->quic_ids[0], hex), "1e10");
	assert_string_equal(cfg_quic_id_format(&backend->quic_ids[1], hex), "0a0b0c");
	assert_int_equal(cfg_count_quic_servers(service), 2);
	cfg_model_fini(&model);
}

/* 7 configurations of one length times 16 ids of each backend: 4095 and a half fit. */
static void
test_more_server_ids_than_a_table_holds_are_refused(void **state)
{
	static const char expected[] =
		"f:8:3: quic: the backends have 458752 server ids, each counted for each "
		"configuration of its length; expected at most 458745\n";

	(void)state;
	for (unsigned int n = 4095; n <= 4096; n++) {
		struct cfg_model model;
		char *text;
		char *messages;
		size_t n_bytes;
		size_t n_messages;
		FILE *to = open_memstream(&text, &n_bytes);
		int ret;

		assert_non_null(to);
		(void)fputs(HEAD "  quic:\n", to);
		for (unsigned int i = 0; i < 7; i++)
			(void)fprintf(to,
				"  - {config_id: %u, server_id_length: 3, nonce_length: 4}\n",
				i);
		(void)fputs("  backends:\n", to);
		for (unsigned int i = 0; i < n; i++) {
			(void)fprintf(to, "  - {name: b%u, address: 10.0.0.1, quic_id: [", i);
			for (unsigned int k = 0; k < 16; k++)
				(void)fprintf(to, "%s%05x%x", k == 0 ? "" : ", ", i, k);
			(void)fputs("]}\n", to);
		}
		assert_int_equal(fclose(to), 0);
		to = open_memstream(&messages, &n_messages);
		assert_non_null(to);
		ret = cfg_read_text_model("f", text, n_bytes, to, &model);
		assert_int_equal(fclose(to), 0);
		EXPECT(ret == (n == 4095 ? 0 : -EINVAL), "%u: %d, says %s", n, ret, messages);
		assert_string_equal(messages, n == 4095 ? "" : expected);
		if (ret == 0)
			cfg_model_fini(&model);
		free(messages);
		free(text);
	}
}

/* What comes to a service that is there: an id of no length, and ids that are taken. */
static void
test_one_backend_of_a_running_set(void **state)
{
	static const char text[] =
		TWO "  backends: [{name: a, address: 10.0.0.1, quic_id: [0a0b, 0c0d]}]\n";
	struct cfg_quic_id ids[] = {{2, {0x0c, 0x0d}, {0}}, {1, {0x0c}, {0}},
		{2, {0x0c, 0x0e}, {0}}, {2, {0x0c, 0x0e}, {0}}};
	struct cfg_backend backend = {.quic_ids = ids, .n_quic_ids = 4};
	struct cfg_model model;
	char *messages;
	size_t n;
	FILE *to = open_memstream(&messages, &n);
	struct cfg_errors errors = {.to = to, .file = "f"};

	(void)state;
	assert_non_null(to);
	assert_int_equal(cfg_read_text_model("f", text, strlen(text), stderr, &model), 0);
	backend.address = model.services[0].backends[0].address;
	assert_false(cfg_check_backend(&model, &model.services[0], &backend, &errors));
	/* One that is there already is no other to itself. */
	assert_true(cfg_check_backend(&model, &model.services[0],
		&model.services[0].backends[0], &errors));
	assert_int_equal(fclose(to), 0);
	assert_string_equal(messages,
		"f: quic_id: 0c has 1 byte, and no configuration of the service has server "
		"ids of so many; expected 2\n"
		"f: quic_id: 0c0d is that of backend 'a'; give each its own\n"
		"f: quic_id: 0c0e is there already; remove one of them\n");
	free(messages);
	cfg_model_fini(&model);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_configurations_and_server_ids),
		cmocka_unit_test(test_every_key_is_read),
		cmocka_unit_test(test_more_server_ids_than_a_table_holds_are_refused),
		cmocka_unit_test(test_one_backend_of_a_running_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
