/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"
#include "expect.h"
#include "replay_events.h"

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
			     "      - {name: web-2, address: 10.0.0.12, state: down}\n"
			     "  - name: dns\n"
			     "    address: 198.51.100.53\n"
			     "    protocol: udp\n"
			     "    port: 53\n"
			     "    table: {algorithm: maglev, size: 7}\n"
			     "    backends: []\n";

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

/* On the heap at their exact length: ASan sees a byte too many. */
static char *
copy_bytes(const char *bytes, size_t n_bytes)
{
	char *copy = malloc(n_bytes == 0 ? 1 : n_bytes);

	assert_non_null(copy);
	memcpy(copy, bytes, n_bytes);
	return copy;
}

/* The messages of parsing text; to be freed. */
static char *
parse(const char *text, int *ret, struct replay_events *events)
{
	const size_t n_bytes = strlen(text);
	char *copy = copy_bytes(text, n_bytes);
	char *messages = NULL;
	size_t n_messages;
	FILE *to = open_memstream(&messages, &n_messages);

	assert_non_null(to);
	*ret = replay_events_parse(copy, n_bytes, "e.yaml", &model, to, events);
	assert_int_equal(fclose(to), 0);
	free(copy);
	return messages;
}

static const struct {
	const char *name;
	const char *text;
	const char *want; /* the messages; "" where it is right */
} rows[] = {
	{"an empty file is no events", "", ""},
	{"comments alone are no events", "# nothing\n", ""},
	{"an empty list is no events", "[]", ""},
	{"every action",
		"- {at: 0s, remove: web/web-2}\n"
		"- {at: 1.5s, drain: web/web-1}\n"
		"- {at: 3s, add: {service: web, name: web-9, address: 10.0.0.19, weight: 7}}\n"
		"- {at: 4s, weight: {backend: web/web-9, to: 50}}\n"
		"- {at: 5s, up: web/web-1}\n"
		"- {at: 6s, down: web/web-9}\n"
		"- {at: 7s, reload: other.yaml}\n",
		""},
	{"a removed backend comes back under its name",
		"- {after: 1, remove: web/web-1}\n"
		"- {after: 2, add: {service: web, name: web-1, address: 10.0.0.11}}\n",
		""},
	{"events by time are rehearsed in the order of their times",
		"- {at: 2s, up: web/web-9}\n"
		"- {at: 1s, add: {service: web, name: web-9, address: 10.0.0.19}}\n",
		""},
	{"events by packets are rehearsed in the order of their numbers",
		"- {after: 20, up: web/web-9}\n"
		"- {after: 10, add: {service: web, name: web-9, address: 10.0.0.19}}\n",
		""},
	{"the order of both kinds is not known: what is added at some time is no mistake",
		"- {at: 5s, remove: web/web-9}\n"
		"- {at: 1s, add: {service: web, name: web-9, address: 10.0.0.19}}\n"
		"- {after: 20, drain: web/web-1}\n",
		""},
	{"nor is what is there only at the start",
		"- {at: 1s, remove: web/web-2}\n- {after: 3, drain: web/web-2}\n", ""},
	{"names that are there at no time are, in either kind",
		"- {at: 2s, up: web/web-8}\n"
		"- {after: 1, add: {service: web, name: web-9, address: 10.0.0.19}}\n"
		"- {after: 1, add: {service: wob, name: web-8, address: 10.0.0.19}}\n"
		"- {after: 2, up: dns/web-9}\n"
		"- {after: 3, weight: {backend: wab/web-9, to: 1}}\n",
		"e.yaml:1:16: service 'web' has no backend 'web-8' at any time; the nearest is "
		"'web-1'\n"
		"e.yaml:3:19: there is no service 'wob' at any time; the nearest is 'web'\n"
		"e.yaml:4:18: service 'dns' has no backend 'web-9' at any time, nor any other\n"
		"e.yaml:5:32: there is no service 'wab' at any time; the nearest is 'web'\n"},
	{"where an add is broken, no name is known to be missing",
		"- {at: 2s, up: web/web-8}\n"
		"- {after: 1, add: {service: web, name: web-8, address: 10.0.0.256}}\n",
		"e.yaml:2:56: address: expected an IP address such as 192.0.2.1 or "
		"2001:db8::1, "
		"found the value '10.0.0.256'\n"},
	{"without a time the order is not known",
		"- {at: 1s, up: web/web-9}\n"
		"- {at: 2, add: {service: web, name: web-9, address: 10.0.0.19}}\n",
		"e.yaml:2:8: at: '2' has no unit; write 2s\n"},
	{"an anchor hides nothing", "- {at: 1s, up: &a web/web-7}\n- {at: *a, up: dns/x}\n",
		"e.yaml:1:16: anchors (&a) are not taken; write the value out where it is "
		"used\n"
		"e.yaml:2:8: aliases (*a) are not taken; write the value out\n"
		"e.yaml:1:16: service 'web' has no backend 'web-7' at any time; the nearest is "
		"'web-1'\n"
		"e.yaml:2:16: service 'dns' has no backend 'x' at any time, nor any other\n"},
	{"aliases of each kind are told once",
		"- *a\n- {after: *a, remove: *a}\n- {at: 1s, add: *a}\n"
		"- {at: 1s, weight: *a}\n- {at: 1s, weight: {backend: *a, to: *a}}\n"
		"- {at: 1s, reload: *a}\n",
		"e.yaml:1:3: aliases (*a) are not taken; write the value out\n"
		"e.yaml:2:11: aliases (*a) are not taken; write the value out\n"
		"e.yaml:2:23: aliases (*a) are not taken; write the value out\n"
		"e.yaml:3:17: aliases (*a) are not taken; write the value out\n"
		"e.yaml:4:20: aliases (*a) are not taken; write the value out\n"
		"e.yaml:5:30: aliases (*a) are not taken; write the value out\n"
		"e.yaml:5:38: aliases (*a) are not taken; write the value out\n"
		"e.yaml:6:20: aliases (*a) are not taken; write the value out\n"},
	{"ties are rehearsed in file order",
		"- {at: 1s, up: web/web-9}\n"
		"- {at: 1s, add: {service: web, name: web-9, address: 10.0.0.19}}\n",
		"e.yaml:1:16: service 'web' has no backend 'web-9' at that time; the nearest "
		"is "
		"'web-1'\n"},
	{"a mapping is no list", "at: 1s\n",
		"e.yaml:1:1: events: expected a list, with an item such as - {at: 1.5s, "
		"remove: "
		"web/web-1} for each, found a mapping\n"},
	{"an item that is no mapping", "- hello\n",
		"e.yaml:1:3: expected a mapping with the keys at, after, remove, add, weight, "
		"up, "
		"drain, down and reload, found the value 'hello'\n"},
	{"a bare number has no unit", "- {at: 3, up: web/web-1}\n",
		"e.yaml:1:8: at: '3' has no unit; write 3s\n"},
	{"a bare fraction has no unit", "- {at: 1.5, up: web/web-1}\n",
		"e.yaml:1:8: at: '1.5' has no unit; write 1.5s\n"},
	{"a negative time", "- {at: -1s, up: web/web-1}\n",
		"e.yaml:1:8: at: expected a time with its unit (ns, us, ms, s, m, h or d) from "
		"0s "
		"to 36500d, such as 30s, found the value '-1s'\n"},
	{"at and after together", "- {at: 1s, after: 3, up: web/web-1}\n",
		"e.yaml:1:3: at and after in one event; write one of them, at: 1.5s or after: "
		"1000\n"},
	{"neither at nor after", "- {up: web/web-1}\n",
		"e.yaml:1:3: an event without a time; write at: 1.5s or after: 1000 "
		"(packets)\n"},
	{"a number of packets with a unit", "- {after: 3s, up: web/web-1}\n",
		"e.yaml:1:11: after: expected a whole number from 0 to 18446744073709551615, "
		"found the value '3s'\n"},
	{"two actions", "- {at: 1s, up: web/web-1, drain: web/web-1}\n",
		"e.yaml:1:27: 'up' and 'drain' in one event; write an event for each\n"},
	{"no action", "- {at: 1s}\n",
		"e.yaml:1:3: an event in which nothing happens; write one of remove, add, "
		"weight, "
		"up, drain, down or reload\n"},
	{"a misspelt action is told once", "- {at: 1s, removee: web/web-1}\n",
		"e.yaml:1:12: unknown key 'removee'; did you mean 'remove'?\n"},
	{"a name without a service", "- {at: 1s, up: web-1}\n",
		"e.yaml:1:16: up: expected SERVICE/NAME such as web/web-1, found the value "
		"'web-1'\n"},
	{"a name with two strokes", "- {at: 1s, up: web/web/1}\n",
		"e.yaml:1:16: up: expected SERVICE/NAME such as web/web-1, found the value "
		"'web/web/1'\n"},
	{"a service without a name", "- {at: 1s, up: /web-1}\n",
		"e.yaml:1:16: up: expected SERVICE/NAME such as web/web-1, found the value "
		"'/web-1'\n"},
	{"an unknown service", "- {at: 1s, up: wep/web-1}\n",
		"e.yaml:1:16: there is no service 'wep' at that time; the nearest is 'web'\n"},
	{"an unknown backend", "- {at: 1s, up: web/web-22}\n",
		"e.yaml:1:16: service 'web' has no backend 'web-22' at that time; the nearest "
		"is "
		"'web-2'\n"},
	{"an unknown backend of a service without any", "- {at: 1s, up: dns/d}\n",
		"e.yaml:1:16: service 'dns' has no backend 'd' at that time, nor any other\n"},
	{"a backend that was removed before",
		"- {at: 1s, remove: web/web-1}\n- {at: 2s, up: web/web-1}\n",
		"e.yaml:2:16: service 'web' has no backend 'web-1' at that time; the nearest "
		"is "
		"'web-2'\n"},
	{"an add of a name that is there",
		"- {at: 1s, add: {service: web, name: web-1, address: 10.0.0.19}}\n",
		"e.yaml:1:17: service 'web' has a backend 'web-1' already at that time; remove "
		"it "
		"before, or choose another name\n"},
	{"an add without a service", "- {at: 1s, add: {name: web-1, address: 10.0.0.19}}\n",
		"e.yaml:1:17: add: no 'service'; write service: NAME\n"},
	{"an add to an unknown service",
		"- {at: 1s, add: {service: wob, name: web-9, address: 10.0.0.19}}\n",
		"e.yaml:1:17: there is no service 'wob' at that time; the nearest is 'web'\n"},
	{"a weight without its number", "- {at: 1s, weight: {backend: web/web-1}}\n",
		"e.yaml:1:20: weight: no 'to'; write {backend: SERVICE/NAME, to: N}\n"},
	{"a weight without its backend", "- {at: 1s, weight: {to: 3}}\n",
		"e.yaml:1:20: weight: no 'backend'; write {backend: SERVICE/NAME, to: N}\n"},
	{"a weight out of range", "- {at: 1s, weight: {backend: web/web-1, to: 65536}}\n",
		"e.yaml:1:45: weight: to: expected a whole number from 0 to 65535, found the "
		"value '65536'\n"},
	{"an empty reload", "- {at: 1s, reload: ''}\n",
		"e.yaml:1:20: reload: expected a text that is not empty, found the value ''\n"},
	{"all mistakes are told, those of single items first",
		"- {at: 1, up: web/web-7}\n"
		"- {at: 2s, explode: web/web-1}\n"
		"- {at: 3s, up: web/web-8}\n",
		"e.yaml:1:8: at: '1' has no unit; write 1s\n"
		"e.yaml:2:12: unknown key 'explode'; the keys here are at, after, remove, add, "
		"weight, up, drain, down and reload\n"
		"e.yaml:1:15: service 'web' has no backend 'web-7' at any time; the nearest is "
		"'web-1'\n"
		"e.yaml:3:16: service 'web' has no backend 'web-8' at any time; the nearest is "
		"'web-1'\n"},
	{"what a broken add would have brought is not missed",
		"- {at: 1s, add: {name: web-9, address: 10.0.0.19}}\n- {at: 2s, up: "
		"web/web-9}\n",
		"e.yaml:1:17: add: no 'service'; write service: NAME\n"},
	{"a seventh backend fits seven slots, an eighth does not",
		"- {after: 1, add: {service: dns, name: a, address: 10.0.0.1}}\n"
		"- {after: 2, add: {service: dns, name: b, address: 10.0.0.2}}\n"
		"- {after: 3, add: {service: dns, name: c, address: 10.0.0.3}}\n"
		"- {after: 4, add: {service: dns, name: d, address: 10.0.0.4}}\n"
		"- {after: 5, add: {service: dns, name: e, address: 10.0.0.5}}\n"
		"- {after: 6, add: {service: dns, name: f, address: 10.0.0.6}}\n"
		"- {after: 7, add: {service: dns, name: g, address: 10.0.0.7}}\n"
		"- {after: 8, add: {service: dns, name: h, address: 10.0.0.8}}\n",
		"e.yaml:8:19: service 'dns' has 7 backends at that time, and room for no more "
		"in "
		"its 7 slots; give it a larger table\n"},
};

static void
test_every_mistake_is_told_with_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct replay_events events = {0};
		int ret;
		char *got = parse(rows[i].text, &ret, &events);

		EXPECT(strcmp(got, rows[i].want) == 0, "%s:\ngot  %swant %s", rows[i].name, got,
			rows[i].want);
		EXPECT(ret == (rows[i].want[0] == '\0' ? 0 : -EINVAL), "%s: returned %d",
			rows[i].name, ret);
		if (ret == 0)
			replay_events_free(&events);
		free(got);
	}
}

/* A family that no port can send from is the configuration's own check. */
static void
test_an_added_backend_is_checked(void **state)
{
	struct replay_events events;
	char *got;
	int ret;

	(void)state;
	got = parse("- {at: 1s, add: {service: web, name: x, address: '2001:db8::9'}}\n"
		    "- {at: 2s, up: web/x}\n",
		&ret, &events);
	assert_int_equal(ret, -EINVAL);
	EXPECT(strncmp(got, "e.yaml:1:50: ", 13) == 0, "got %s", got);
	EXPECT(strchr(got, '\n')[1] == '\0', "the second event is told too: %s", got);
	free(got);
}

static void
test_events_say_what_they_do(void **state)
{
	static const struct {
		const char *title;
		enum replay_event_kind kind;
		bool is_by_packets;
		uint64_t when;
	} want[] = {
		{"remove web/web-2", REPLAY_REMOVE, false, 1500000000},
		{"drain web/web-1", REPLAY_DRAIN, true, 1000},
		{"add web/web-9", REPLAY_ADD, false, 3000000000},
		{"weight web/web-9 to 50", REPLAY_WEIGHT, false, 4000000000},
		{"up web/web-1", REPLAY_UP, false, 0},
		{"down web/web-1", REPLAY_DOWN, true, 0},
		{"reload some/other?.yaml", REPLAY_RELOAD, false, 7000000},
	};
	struct replay_events events;
	char *got;
	int ret;

	(void)state;
	got = parse("- {at: 1.5s, remove: web/web-2}\n"
		    "- {after: 1000, drain: web/web-1}\n"
		    "- {at: 3s, add: {service: web, name: web-9, address: 10.0.0.19}}\n"
		    "- {at: 4s, weight: {backend: web/web-9, to: 50}}\n"
		    "- {at: 0s, up: web/web-1}\n"
		    "- {after: 0, down: web/web-1}\n"
		    "- {at: 7ms, reload: \"some/other\\n.yaml\"}\n",
		&ret, &events);
	EXPECT(ret == 0, "returned %d: %s", ret, got);
	assert_int_equal(events.n_items, LB_N_ELEMENTS(want));
	assert_string_equal(events.file, "e.yaml");
	assert_true(events.is_mixed);
	assert_string_equal(events.items[6].reload_path, "some/other\n.yaml");
	for (size_t i = 0; i < LB_N_ELEMENTS(want); i++) {
		const struct replay_event *event = &events.items[i];

		assert_string_equal(event->title, want[i].title);
		assert_int_equal(event->kind, want[i].kind);
		assert_int_equal(event->is_by_packets, want[i].is_by_packets);
		assert_int_equal(event->is_by_packets ? event->after_packets : event->at_ns,
			want[i].when);
		assert_int_equal(event->pos.line, i + 1);
	}
	replay_events_free(&events);
	free(got);
}

static struct cfg_backend *
get_backend(const struct cfg_model *at, const char *name)
{
	return cfg_find_backend(cfg_find_service(at, "web", 3), name);
}

static void
test_events_change_the_model(void **state)
{
	struct replay_events events;
	struct cfg_model copy;
	char *got;
	int ret;

	(void)state;
	got = parse("- {after: 1, drain: web/web-1}\n"
		    "- {after: 2, up: web/web-2}\n"
		    "- {after: 3, add: {service: web, name: web-9, address: 10.0.0.19, weight: "
		    "7, "
		    "state: drain}}\n"
		    "- {after: 4, weight: {backend: web/web-9, to: 50}}\n"
		    "- {after: 5, down: web/web-1}\n"
		    "- {after: 6, remove: web/web-2}\n"
		    "- {after: 7, reload: x}\n",
		&ret, &events);
	EXPECT(ret == 0, "returned %d: %s", ret, got);
	assert_int_equal(cfg_model_copy(&model, &copy), 0);
#define APPLY(i) assert_int_equal(replay_event_apply(&events.items[i], "e", &copy, stderr), 0)
	APPLY(0);
	assert_int_equal(get_backend(&copy, "web-1")->state, CFG_DRAIN);
	APPLY(1);
	assert_int_equal(get_backend(&copy, "web-2")->state, CFG_UP);
	APPLY(2);
	assert_int_equal(get_backend(&copy, "web-9")->weight, 7);
	assert_int_equal(get_backend(&copy, "web-9")->state, CFG_DRAIN);
	APPLY(3);
	assert_int_equal(get_backend(&copy, "web-9")->weight, 50);
	APPLY(4);
	assert_int_equal(get_backend(&copy, "web-1")->state, CFG_DOWN);
	APPLY(5);
	assert_null(get_backend(&copy, "web-2"));
	EXPECT(!cfg_model_equal(&copy, &model), "six events and nothing changed");

	/* Again is a mistake now, and changes nothing. */
	assert_int_equal(replay_event_apply(&events.items[5], "e", &copy, NULL), -EINVAL);
	assert_int_equal(replay_event_apply(&events.items[2], "e", &copy, NULL), -EINVAL);
	assert_int_equal(cfg_find_service(&copy, "web", 3)->n_backends, 2);
	APPLY(6);
#undef APPLY
	EXPECT(cfg_model_equal(&copy, &model), "the reload does not give the file's model");
	cfg_model_fini(&copy);
	replay_events_free(&events);
	free(got);
}

/* The messages of rehearsing events; to be freed. */
static char *
rehearse(const struct replay_events *events, const size_t order[], size_t n, int *ret)
{
	char *messages = NULL;
	size_t n_messages;
	FILE *to = open_memstream(&messages, &n_messages);

	assert_non_null(to);
	*ret = replay_events_rehearse(events, order, n, &model, to);
	assert_int_equal(fclose(to), 0);
	return messages;
}

static void
test_a_known_order_is_rehearsed(void **state)
{
	static const char text[] =
		"- {at: 5s, remove: web/web-2}\n"
		"- {after: 1, drain: web/web-2}\n"
		"- {at: 1s, add: {service: web, name: web-9, address: '2001:db8::9'}}\n"
		"- {after: 2, up: web/web-9}\n"
		"- {at: 9s, reload: x}\n";
	static const struct {
		const char *name;
		size_t order[5];
		size_t n;
		const char *want;
	} orders[] = {
		{"the drain before the remove", {1, 0}, 2, ""},
		{"the remove before the drain", {0, 1}, 2,
			"e.yaml:2:21: service 'web' has no backend 'web-2' at that time; the "
			"nearest is 'web-1'\n"},
		{"a reload between them", {0, 4, 1}, 3, ""},
		{"no events", {0}, 0, ""},
		{"a broken add is told once, and what is done to it is not", {2, 3, 0, 1, 4}, 5,
			"e.yaml:3:54: address: no port has an IPv6 address to send to "
			"2001:db8::9 from; add one to dataplane.ports[].addresses\n"
			"e.yaml:2:21: service 'web' has no backend 'web-2' at that time; the "
			"nearest is 'web-1'\n"},
		{"and not before it is there", {3, 2}, 2,
			"e.yaml:4:18: service 'web' has no backend 'web-9' at that time; the "
			"nearest is 'web-1'\n"
			"e.yaml:3:54: address: no port has an IPv6 address to send to "
			"2001:db8::9 from; add one to dataplane.ports[].addresses\n"},
	};
	struct replay_events events;
	struct cfg_model before;
	char *got;
	int ret;

	(void)state;
	assert_int_equal(cfg_model_copy(&model, &before), 0);
	got = parse(text, &ret, &events);
	EXPECT(ret == 0 && got[0] == '\0', "returned %d: %s", ret, got);
	free(got);
	for (size_t i = 0; i < LB_N_ELEMENTS(orders); i++) {
		got = rehearse(&events, orders[i].order, orders[i].n, &ret);
		EXPECT(strcmp(got, orders[i].want) == 0, "%s:\ngot  %swant %s", orders[i].name,
			got, orders[i].want);
		EXPECT(ret == (orders[i].want[0] == '\0' ? 0 : -EINVAL), "%s: returned %d",
			orders[i].name, ret);
		free(got);
	}
	EXPECT(cfg_model_equal(&model, &before), "a rehearsal has changed the model");
	cfg_model_fini(&before);
	replay_events_free(&events);
}

/* 160 backends of weight 65535 and one of 160 are 2^24 points, all that a ring may have. */
static void
test_no_event_overfills_a_ring(void **state)
{
	static const char full[] = " points on the ring, and there may be 16777216; expected "
				   "weights in the same proportions, at most 1/2 of these\n";
	static const char text[] =
		"- {at: 1s, add: {service: web, name: x, address: 10.0.1.1, weight: 160}}\n"
		"- {at: 2s, weight: {backend: web/x, to: 161}}\n"
		"- {at: 3s, add: {service: web, name: y, address: 10.0.1.2, weight: 1}}\n"
		"- {at: 4s, weight: {backend: web/b0, to: 65534}}\n"
		"- {at: 5s, up: web/y}\n"
		"- {at: 6s, add: {service: web, name: z, address: 10.0.1.3, weight: 1}}\n";
	struct cfg_service *service = &model.services[0];
	const struct cfg_service kept = *service;
	struct replay_events events;
	char want[1024];
	char *got;
	int ret;

	(void)state;
	*service = (struct cfg_service){
		.name = kept.name,
		.algorithm = CFG_RING,
		.n_slots = kept.n_slots,
		.forward = CFG_FORWARD_IPIP,
	};
	for (unsigned int i = 0; i < 160; i++) {
		char name[16];
		const struct cfg_backend backend = {
			.name = name,
			.address = {{[10] = 0xff, 0xff, 10, 0, 0, 1}},
			.weight = 65535,
		};

		(void)snprintf(name, sizeof(name), "b%u", i);
		assert_int_equal(cfg_add_backend(service, &backend), 0);
	}
	got = parse(text, &ret, &events);
	assert_int_equal(ret, -EINVAL);
	(void)snprintf(want, sizeof(want),
		"e.yaml:2:30: the weights of all backends make 16777218%s"
		"e.yaml:3:17: the weights of all backends make 16777218%s",
		full, full);
	assert_string_equal(got, want);
	free(got);
	while (service->n_backends > 0)
		cfg_remove_backend(service, &service->backends[0]);
	free(service->backends);
	*service = kept;
}

static void
write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *to;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	to = fopen(path, "we");
	assert_non_null(to);
	assert_int_not_equal(fputs(text, to), EOF);
	assert_int_equal(fclose(to), 0);
}

static void
test_reload_is_relative_to_the_events_file(void **state)
{
	char folder[] = "/tmp/test_replay_events.XXXXXX";
	char path[256];
	struct replay_events events;
	char *messages = NULL;
	char want[1024];
	size_t n_messages;
	FILE *to = open_memstream(&messages, &n_messages);

	(void)state;
	assert_non_null(mkdtemp(folder));
	write_file(folder, "other.yaml", "services: []\n");
	write_file(folder, "bad.yaml", "servces: []\n");
	write_file(folder, "good-events.yaml",
		"- {at: 1s, reload: other.yaml}\n- {at: 0s, up: web/web-1}\n");
	write_file(folder, "late-events.yaml",
		"- {at: 1s, reload: other.yaml}\n- {at: 2s, up: web/web-1}\n");
	write_file(folder, "bad-events.yaml", "- {at: 1s, reload: bad.yaml}\n");

	(void)snprintf(path, sizeof(path), "%s/good-events.yaml", folder);
	assert_int_equal(replay_events_read(path, &model, to, &events), 0);
	assert_int_equal(events.items[0].reload->n_services, 0);
	(void)snprintf(want, sizeof(want), "%s/other.yaml", folder);
	assert_string_equal(events.items[0].reload_path, want);
	assert_null(events.items[1].reload_path);
	assert_false(events.is_mixed);
	replay_events_free(&events);

	(void)snprintf(path, sizeof(path), "%s/late-events.yaml", folder);
	assert_int_equal(replay_events_read(path, &model, to, &events), -EINVAL);
	assert_int_equal(fflush(to), 0);
	(void)snprintf(want, sizeof(want),
		"%s:2:16: there is no service 'web' at that time, nor any other\n", path);
	assert_string_equal(messages, want);
	assert_int_equal(fseek(to, 0, SEEK_SET), 0);

	(void)snprintf(path, sizeof(path), "%s/bad-events.yaml", folder);
	assert_int_equal(replay_events_read(path, &model, to, &events), -EINVAL);
	assert_int_equal(fclose(to), 0);
	(void)snprintf(want, sizeof(want),
		"%s/bad.yaml:1:1: unknown key 'servces'; did you mean 'services'?\n"
		"%s:1:20: reload: the configuration 'bad.yaml' cannot be used; mend what is "
		"told of it above\n",
		folder, path);
	EXPECT(strstr(messages, want) != NULL, "got %s", messages);
	free(messages);

	(void)snprintf(path, sizeof(path), "rm -r %s", folder);
	assert_int_equal(system(path), 0);
}

/* Where the order is not known, a name may come by any reload. */
static void
test_names_of_a_reload_are_names(void **state)
{
	char folder[] = "/tmp/test_replay_events.XXXXXX";
	char path[256];
	struct replay_events events;
	char *messages = NULL;
	char want[1024];
	size_t n_messages;
	FILE *to = open_memstream(&messages, &n_messages);

	(void)state;
	assert_non_null(mkdtemp(folder));
	write_file(folder, "late.yaml",
		"services: [{name: late, address: 192.0.2.1, protocol: tcp, port: 1,\n"
		"  backends: [{name: late-1, address: 10.0.0.1}]}]\n");
	write_file(folder, "events.yaml",
		"- {after: 5, up: late/late-1}\n- {at: 1s, reload: late.yaml}\n"
		"- {after: 6, add: {service: late, name: x, address: 10.0.0.2}}\n");
	write_file(folder, "bad-events.yaml",
		"- {after: 5, up: late/late-2}\n- {at: 1s, reload: late.yaml}\n");

	(void)snprintf(path, sizeof(path), "%s/events.yaml", folder);
	assert_int_equal(replay_events_read(path, &model, to, &events), 0);
	assert_true(events.is_mixed);
	replay_events_free(&events);

	(void)snprintf(path, sizeof(path), "%s/bad-events.yaml", folder);
	assert_int_equal(replay_events_read(path, &model, to, &events), -EINVAL);
	assert_int_equal(fclose(to), 0);
	(void)snprintf(want, sizeof(want),
		"%s:1:18: service 'late' has no backend 'late-2' at any time; the nearest is "
		"'late-1'\n",
		path);
	assert_string_equal(messages, want);
	free(messages);

	(void)snprintf(path, sizeof(path), "rm -r %s", folder);
	assert_int_equal(system(path), 0);
}

static void
test_a_file_that_is_not_there(void **state)
{
	struct replay_events events;
	char *messages = NULL;
	size_t n;
	FILE *to = open_memstream(&messages, &n);

	(void)state;
	assert_int_equal(replay_events_read("/nonexistent/e", &model, to, &events), -ENOENT);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(messages,
		"/nonexistent/e: it cannot be opened: No such file or directory\n");
	free(messages);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_mistake_is_told_with_its_place),
		cmocka_unit_test(test_an_added_backend_is_checked),
		cmocka_unit_test(test_events_say_what_they_do),
		cmocka_unit_test(test_events_change_the_model),
		cmocka_unit_test(test_a_known_order_is_rehearsed),
		cmocka_unit_test(test_no_event_overfills_a_ring),
		cmocka_unit_test(test_reload_is_relative_to_the_events_file),
		cmocka_unit_test(test_names_of_a_reload_are_names),
		cmocka_unit_test(test_a_file_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
