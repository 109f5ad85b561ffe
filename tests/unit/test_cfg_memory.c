/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each allocation of reading and of copying fails once; nothing leaks and nothing crashes.
 * Linked with -Wl,--wrap for malloc, calloc, realloc and strdup.
 */
#include "expect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_reader.h"
#include "failing_malloc.h"

static const char text[] =
	"dataplane:\n  ports:\n"
	"  - {name: wan, device: net_null0, addresses: [192.0.2.1/24],\n"
	"     routes: [{to: 0.0.0.0/0, via: 192.0.2.254}]}\n"
	"control: {socket: /run/s, metrics: '127.0.0.1:1'}\n"
	"announce: {interface: vips}\n"
	"services:\n"
	"- {name: web, address: 198.51.100.10, protocol: tcp, port: 443, backends: [\n"
	"  {name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]}\n"
	"- {name: quic, address: 198.51.100.12, protocol: udp, port: 443, affinity: quic,\n"
	"   quic: [{config_id: 0, server_id_length: 1, nonce_length: 4}], backends: [\n"
	"   {name: a, address: 10.0.0.1, zone: r1, quic_id: [01, 02]}]}\n"
	"- {name: api, address: 198.51.100.11, protocol: tcp, port: 443}\n";

static void
test_reading_survives_each_failure(void **state)
{
	int n = 0;
	int ret;

	(void)state;
	do {
		struct cfg_model model;

		failing_malloc_at = ++n;
		ret = cfg_read_text_model("f", text, strlen(text), NULL, &model);
		if (failing_malloc_at == 0)
			EXPECT(ret == -ENOMEM, "failure %u returns %d", n, ret);
		if (ret == 0)
			cfg_model_fini(&model);
	} while (failing_malloc_at == 0);
	failing_malloc_at = 0;
	assert_int_equal(ret, 0);
	EXPECT(n > 15, "only %u allocations were failed", n);
}

/* Whatever fails, a read that says 0 gives the whole model, and so does the next one. */
static void
test_reading_again_survives_each_failure(void **state)
{
	/* The text with the address 198.51.100.19 for the last service. */
	char next[sizeof(text)];
	struct cfg_model expected;
	int n = 0;

	(void)state;
	memcpy(next, text, sizeof(text));
	strstr(next, "100.11")[5] = '9';
	assert_int_equal(cfg_read_text_model("f", next, strlen(next), NULL, &expected), 0);
	do {
		struct cfg_reader *reader = cfg_reader_create(false);
		struct cfg_model model;
		int ret;

		assert_non_null(reader);
		assert_int_equal(cfg_reader_read_text(reader, "f", text, strlen(text), NULL,
					 &model),
			0);
		cfg_model_fini(&model);
		failing_malloc_at = ++n;
		ret = cfg_reader_read_text(reader, "f", next, strlen(next), NULL, &model);
		if (ret != 0) {
			EXPECT(ret == -ENOMEM && failing_malloc_at == 0, "failure %d: %d", n,
				ret);
			ret = cfg_reader_read_text(reader, "f", next, strlen(next), NULL,
				&model);
		}
		EXPECT(ret == 0 && cfg_model_equal(&model, &expected), "after failure %d: %d",
			n, ret);
		EXPECT(failing_malloc_at == 0 || cfg_reader_count_partial(reader) == 1,
			"without a failure it is not read in part");
		cfg_model_fini(&model);
		cfg_reader_destroy(reader);
	} while (failing_malloc_at == 0);
	failing_malloc_at = 0;
	EXPECT(n > 20, "only %d allocations were failed", n);
	cfg_model_fini(&expected);
}

static void
test_copying_survives_each_failure(void **state)
{
	struct cfg_model model;
	int n = 0;
	int ret;

	(void)state;
	assert_int_equal(cfg_read_text_model("f", text, strlen(text), NULL, &model), 0);
	do {
		struct cfg_model copy;

		failing_malloc_at = ++n;
		ret = cfg_model_copy(&model, &copy);
		if (failing_malloc_at == 0)
			EXPECT(ret == -ENOMEM, "failure %u returns %d", n, ret);
		if (ret == 0)
			cfg_model_fini(&copy);
	} while (failing_malloc_at == 0);
	failing_malloc_at = 0;
	assert_int_equal(ret, 0);
	EXPECT(n > 10, "only %u allocations were failed", n);
	cfg_model_fini(&model);
}

static void
test_adding_survives_each_failure(void **state)
{
	static char name[] = "b", zone[] = "r1";
	struct cfg_quic_id quic_id = {.n_bytes = 1};
	const struct cfg_backend backend = {.name = name,
		.zone = zone,
		.quic_ids = &quic_id,
		.n_quic_ids = 1};

	(void)state;
	for (int n = 1; n <= 5; n++) {
		struct cfg_service service = {.backends = NULL};

		failing_malloc_at = n;
		assert_int_equal(cfg_add_backend(&service, &backend), n <= 4 ? -ENOMEM : 0);
		assert_int_equal(service.n_backends, n <= 4 ? 0 : 1);
		failing_malloc_at = 0;
		if (n > 4)
			cfg_remove_backend(&service, &service.backends[0]);
		free(service.backends);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reading_survives_each_failure),
		cmocka_unit_test(test_reading_again_survives_each_failure),
		cmocka_unit_test(test_copying_survives_each_failure),
		cmocka_unit_test(test_adding_survives_each_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
