/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each allocation of reading events and expectations, and of applying an event, fails once:
 * it is told, nothing leaks, and the model is as it was.
 * Linked with -Wl,--wrap for malloc, calloc, realloc and strdup.
 */
#include "expect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"
#include "failing_malloc.h"
#include "replay_events.h"
#include "replay_expect.h"

static const char config[] = "dataplane:\n"
			     "  ports:\n"
			     "    - {name: wan, device: net_null, addresses: [192.0.2.1/24]}\n"
			     "services:\n"
			     "  - name: web\n"
			     "    address: 198.51.100.10\n"
			     "    protocol: tcp\n"
			     "    port: 443\n"
			     "    backends:\n"
			     "      - {name: web-1, address: 10.0.0.11}\n"
			     "      - {name: web-2, address: 10.0.0.12}\n";

static const char events_text[] =
	"- {at: 0s, remove: web/web-2}\n"
	"- {at: 1s, drain: web/web-1}\n"
	"- {at: 3s, add: {service: web, name: web-9, address: 10.0.0.19}}\n"
	"- {at: 4s, weight: {backend: web/web-9, to: 50}}\n"
	"- {at: 7s, reload: other.yaml}\n";

static const char expect_text[] = "- {packet: 1, verdict: drop, backend: web/x}\n"
				  "- {value: flows.total, is: 0}\n"
				  "- {share: web/web-1, is: 0}\n"
				  "- {drops: snaplen, is: 0}\n";

static struct cfg_model model;

static int
set_up(void **state)
{
	(void)state;
	return cfg_read_text_model("c.yaml", config, sizeof(config) - 1, stderr, &model);
}

static int
tear_down(void **state)
{
	(void)state;
	cfg_model_fini(&model);
	return 0;
}

static void
test_events_tell_that_memory_is_short(void **state)
{
	int n = 0;
	bool has_failed;

	(void)state;
	do {
		struct replay_events events;
		char *messages = NULL;
		size_t n_messages;
		FILE *to = open_memstream(&messages, &n_messages);
		int ret;

		failing_malloc_at = ++n;
		ret = replay_events_parse(events_text, strlen(events_text), "e", &model, to,
			&events);
		has_failed = failing_malloc_at == 0;
		failing_malloc_at = 0;
		assert_int_equal(fclose(to), 0);
		if (ret == 0)
			replay_events_free(&events);
		EXPECT(ret == (has_failed ? -ENOMEM : 0), "failure %u returns %d", n, ret);
		EXPECT(!has_failed || strstr(messages, "not enough memory") != NULL,
			"failure %u says '%s'", n, messages);
		free(messages);
	} while (has_failed);
	EXPECT(n > 20, "%u allocations", n);
}

static void
test_an_event_without_memory_changes_nothing(void **state)
{
	struct replay_events events;
	struct cfg_model now;

	(void)state;
	assert_int_equal(replay_events_parse(events_text, strlen(events_text), "e", &model,
				 stderr, &events),
		0);
	assert_int_equal(cfg_model_copy(&model, &now), 0);
	for (size_t i = 0; i < events.n_items; i++) {
		struct cfg_model before;
		int n = 0;
		int ret;

		assert_int_equal(cfg_model_copy(&now, &before), 0);
		do {
			failing_malloc_at = ++n;
			ret = replay_event_apply(&events.items[i], "e", &now, NULL);
			failing_malloc_at = 0;
			EXPECT(ret == 0 || ret == -ENOMEM, "%s returns %d",
				events.items[i].title, ret);
			EXPECT(ret == 0 || cfg_model_equal(&now, &before),
				"%s, failure %u: changed", events.items[i].title, n);
		} while (ret != 0);
		cfg_model_fini(&before);
	}
	cfg_model_fini(&now);
	replay_events_free(&events);
}

static void
test_a_rehearsal_tells_that_memory_is_short(void **state)
{
	static const size_t order[] = {0, 1, 2, 3, 4};
	struct replay_events events;
	int n = 0;
	bool has_failed;

	(void)state;
	assert_int_equal(replay_events_parse(events_text, strlen(events_text), "e", &model,
				 stderr, &events),
		0);
	do {
		char *messages = NULL;
		size_t n_messages;
		FILE *to = open_memstream(&messages, &n_messages);
		int ret;

		failing_malloc_at = ++n;
		ret = replay_events_rehearse(&events, order, 5, &model, to);
		has_failed = failing_malloc_at == 0;
		failing_malloc_at = 0;
		assert_int_equal(fclose(to), 0);
		EXPECT(ret == (has_failed ? -ENOMEM : 0), "failure %u returns %d", n, ret);
		EXPECT(!has_failed || strstr(messages, "not enough memory") != NULL,
			"failure %u says '%s'", n, messages);
		free(messages);
	} while (has_failed);
	EXPECT(n > 10, "%u allocations", n);
	replay_events_free(&events);
}

static void
test_expectations_tell_that_memory_is_short(void **state)
{
	int n = 0;
	bool has_failed;

	(void)state;
	do {
		struct replay_expect *expect = NULL;
		char *messages = NULL;
		size_t n_messages;
		FILE *to = open_memstream(&messages, &n_messages);
		int ret;

		failing_malloc_at = ++n;
		ret = replay_expect_parse(expect_text, strlen(expect_text), "x", to, &expect);
		has_failed = failing_malloc_at == 0;
		failing_malloc_at = 0;
		assert_int_equal(fclose(to), 0);
		replay_expect_free(expect);
		EXPECT(ret == (has_failed ? -ENOMEM : 0), "failure %u returns %d", n, ret);
		EXPECT(!has_failed || strstr(messages, "not enough memory") != NULL,
			"failure %u says '%s'", n, messages);
		free(messages);
	} while (has_failed);
	EXPECT(n > 5, "%u allocations", n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_tell_that_memory_is_short),
		cmocka_unit_test(test_an_event_without_memory_changes_nothing),
		cmocka_unit_test(test_a_rehearsal_tells_that_memory_is_short),
		cmocka_unit_test(test_expectations_tell_that_memory_is_short),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
