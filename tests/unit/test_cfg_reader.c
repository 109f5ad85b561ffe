/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "lb_compiler.h"

#define PORTS(address)                                                                         \
	"dataplane:\n  workers: 3\n  ports:\n  - {name: own, device: net_null0, addresses: "   \
	"[" address "]}\n"
#define OWN                                                                                    \
	PORTS("192.0.2.1/24")                                                                  \
	"control: {socket: /run/own.sock, metrics: off}\nannounce: {interface: own-vips}\n"
#define SERVICES(address)                                                                      \
	"services:\n- name: web\n  address: 198.51.100.10\n  protocol: tcp\n  port: 80\n"      \
	"  backends:\n  - {name: a, address: " address "}\n"
#define FLEET                                                                                  \
	"hash_seed: 7\ndataplane: {workers: 9, ports: [{name: f, device: net_null9, addresses" \
	": [192.0.2.9/24]}]}\ncontrol: {socket: /run/fleet.sock}\n" SERVICES("10.0.0.1")

static char *
write_file(const char *text)
{
	char *path = strdup("/tmp/shunt-own-XXXXXX");
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
	return path;
}

/* What is told, in *messages, to be freed. */
static int
read_own(struct cfg_reader *reader, const char *text, char **messages)
{
	char *path = write_file(text);
	size_t n = 0;
	FILE *to = open_memstream(messages, &n);
	const int ret = cfg_reader_read_own(reader, path, to);

	assert_int_equal(fclose(to), 0);
	assert_int_equal(unlink(path), 0);
	free(path);
	return ret;
}

static int
read_text(struct cfg_reader *reader, const char *text, char **messages, struct cfg_model *out)
{
	size_t n = 0;
	FILE *to = open_memstream(messages, &n);
	const int ret = cfg_reader_read_text(reader, "fleet", text, strlen(text), to, out);

	assert_int_equal(fclose(to), 0);
	return ret;
}

static void
test_what_is_own_takes_the_place_of_what_is_read(void **state)
{
	struct cfg_reader *reader = cfg_reader_create(true);
	static const char *const texts[] = {FLEET, SERVICES("10.0.0.1"), SERVICES("10.0.0.2"),
		"hash_seed: 7\n" SERVICES("10.0.0.2")};
	char *messages;

	(void)state;
	assert_non_null(reader);
	assert_int_equal(read_own(reader, OWN, &messages), 0);
	free(messages);
	for (size_t i = 0; i < LB_N_ELEMENTS(texts); i++) {
		struct cfg_model model;
		const int ret = read_text(reader, texts[i], &messages, &model);

		EXPECT(ret == 0, "%s", messages);
		free(messages);
		assert_int_equal(model.dataplane.workers, 3);
		assert_int_equal(model.dataplane.n_ports, 1);
		assert_string_equal(model.dataplane.ports[0].name, "own");
		assert_string_equal(model.control_socket, "/run/own.sock");
		assert_null(model.control_metrics);
		assert_string_equal(model.announce.interface, "own-vips");
		assert_int_equal(model.n_services, 1);
		assert_string_equal(model.services[0].name, "web");
		assert_int_equal(model.hash_seed, texts[i][0] == 'h' ? 7 : 0);
		cfg_model_fini(&model);
	}
	/* The one whose backend alone was another. */
	assert_int_equal(cfg_reader_count_partial(reader), 1);
	cfg_reader_destroy(reader);
}

static void
test_what_is_read_is_checked_with_what_is_own(void **state)
{
	static const struct {
		const char *what;
		const char *text;
		const char *message;
	} rows[] = {
		{"a backend that is this balancer", SERVICES("192.0.2.1"),
			"fleet:7:24: address: 192.0.2.1 is the balancer's own, of port 'own'; "
			"expected another host's\n"},
		{"a family that no port sends", SERVICES("'2001:db8::1'"), "fleet:7:24: "},
		{"wrong, though it is not used", "dataplane: {workers: x}\n", "fleet:1:22: "},
	};
	struct cfg_reader *reader = cfg_reader_create(true);
	char *messages;

	(void)state;
	assert_non_null(reader);
	assert_int_equal(read_own(reader, OWN, &messages), 0);
	free(messages);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct cfg_model model;
		const int ret = read_text(reader, rows[i].text, &messages, &model);

		EXPECT(ret == -EINVAL && strncmp(messages, rows[i].message,
						 strlen(rows[i].message)) == 0,
			"%s: %d, %s", rows[i].what, ret, messages);
		free(messages);
	}
	cfg_reader_destroy(reader);
}

static void
test_what_may_not_be_own(void **state)
{
	static const struct {
		const char *text;
		const char *word;
	} rows[] = {
		{OWN SERVICES("10.0.0.1"), ":8:3: services: expected none here"},
		{OWN "hash_seed: 7\n", "hash_seed: expected none here"},
		{"control: {metrics: off}\n", "ports"},
		{"dataplane: 3\n", "expected a mapping"},
	};
	char *messages;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct cfg_reader *reader = cfg_reader_create(true);
		int ret;

		assert_non_null(reader);
		ret = read_own(reader, rows[i].text, &messages);
		EXPECT(ret == -EINVAL && strstr(messages, rows[i].word) != NULL, "%s: %d, %s",
			rows[i].text, ret, messages);
		free(messages);
		cfg_reader_destroy(reader);
	}
}

static void
test_a_fleet_says_which_services(void **state)
{
	static const struct {
		const char *text;
		const char *word; /* NULL: it is right */
	} rows[] = {
		{OWN "services: []\n", NULL},
		{OWN SERVICES("10.0.0.1"), NULL},
		{OWN, "fleet:1:1: there are no services; write 'services: []' if"},
		{OWN "services:\n", "there are no services; write 'services: []' if"},
		{"hash_seed: 7\n" OWN, "there are no services"},
		{"", "fleet:1:1: nothing is in it; write 'services: []'"},
	};
	struct cfg_reader *reader = cfg_reader_create(true);
	struct cfg_model model;
	char *messages;

	(void)state;
	assert_non_null(reader);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const int ret = read_text(reader, rows[i].text, &messages, &model);
		const char *word = rows[i].word;

		EXPECT(ret == (word == NULL ? 0 : -EINVAL), "%s: %d, %s", rows[i].text, ret,
			messages);
		EXPECT(word == NULL || strstr(messages, word) != NULL, "%s: %s", rows[i].text,
			messages);
		free(messages);
		if (ret == 0)
			cfg_model_fini(&model);
	}
	cfg_reader_destroy(reader);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_own_takes_the_place_of_what_is_read),
		cmocka_unit_test(test_what_is_read_is_checked_with_what_is_own),
		cmocka_unit_test(test_what_may_not_be_own),
		cmocka_unit_test(test_a_fleet_says_which_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
