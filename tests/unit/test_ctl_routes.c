/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"
#include "ctl_ready.h"
#include "ctl_routes.h"
#include "expect.h"
#include "failing_malloc.h"
#include "xrand.h"

#define WORDS_MAX 32u
#define UNIVERSE  12u
#define DOWN_PORT 1

#define WEB "- {name: web, address: 198.51.100.10, protocol: tcp, port: 80"

/* What is announced of some services, in their order. */
static const struct {
	const char *what;
	const char *services;
	const char *prefixes;
} ready_rows[] = {
	{"nothing of no services", "[]", ""},
	{"a service with one backend that is up",
		"\n" WEB ", backends: [{name: a, address: 10.0.0.1}]}\n", "198.51.100.10 "},
	{"none without backends", "\n" WEB "}\n", ""},
	{"none whose only backend drains",
		"\n" WEB ", backends: [{name: a, address: 10.0.0.1, state: drain}]}\n", ""},
	{"none whose only backend is down",
		"\n" WEB ", backends: [{name: a, address: 10.0.0.1, state: down}]}\n", ""},
	{"none whose only backend takes nothing",
		"\n" WEB ", backends: [{name: a, address: 10.0.0.1, weight: 0}]}\n", ""},
	{"none whose only backend has no next hop",
		"\n" WEB ", backends: [{name: lost, address: 10.0.0.1}]}\n", ""},
	{"none whose backend with a next hop is not up",
		"\n" WEB ", backends: [{name: lost, address: 10.0.0.1},\n"
		"  {name: b, address: 10.0.0.2, state: drain}]}\n",
		""},
	{"one of whose backends one has a next hop",
		"\n" WEB ", backends: [{name: lost, address: 10.0.0.1},\n"
		"  {name: b, address: 10.0.0.2}, {name: lost-2, address: 10.0.0.3}]}\n",
		"198.51.100.10 "},
	{"none whose only backend is behind a port that is down",
		"\n" WEB ", backends: [{name: cut, address: 10.0.0.1}]}\n", ""},
	{"none whose only backend behind a port that is up is lost",
		"\n" WEB ", backends: [{name: cut, address: 10.0.0.1},\n"
		"  {name: lost, address: 10.0.0.2}]}\n",
		""},
	{"one of whose backends one is behind a port that is up",
		"\n" WEB ", backends: [{name: cut, address: 10.0.0.1},\n"
		"  {name: b, address: 10.0.0.2}]}\n",
		"198.51.100.10 "},
	{"one of whose backends the last one is up, with the least weight",
		"\n" WEB ", backends: [{name: a, address: 10.0.0.1, state: down},\n"
		"  {name: b, address: 10.0.0.2, weight: 0},\n"
		"  {name: c, address: 10.0.0.3, state: drain},\n"
		"  {name: d, address: 10.0.0.4, weight: 1}]}\n",
		"198.51.100.10 "},
	{"prefixes and IPv6 as they are, and an address twice that two services have",
		"\n" WEB ", backends: [{name: a, address: 10.0.0.1}]}\n"
		"- {name: games, address: 198.51.100.32/28, protocol: udp, port: any,\n"
		"   backends: [{name: a, address: 10.0.0.1}]}\n"
		"- {name: gone, address: 198.51.100.11, protocol: tcp, port: 80}\n"
		"- {name: dns, address: '2001:db8::/64', protocol: udp, port: 53,\n"
		"   backends: [{name: a, address: 10.0.0.1}]}\n"
		"- {name: tls, address: 198.51.100.10, protocol: tcp, port: 443,\n"
		"   backends: [{name: a, address: 10.0.0.1}]}\n",
		"198.51.100.10 198.51.100.32/28 2001:db8::/64 198.51.100.10 "},
};

/* To all backends but those of a name that begins with "lost"; to "cut" by another port. */
static void
give_next_hops(struct ctl_view *view)
{
	view->services = calloc(view->model.n_services + 1, sizeof(*view->services));
	assert_non_null(view->services);
	for (size_t i = 0; i < view->model.n_services; i++) {
		const struct cfg_service *service = &view->model.services[i];
		struct dp_backend_conf *confs = calloc(service->n_backends + 1, sizeof(*confs));

		assert_non_null(confs);
		for (size_t k = 0; k < service->n_backends; k++) {
			confs[k].has_next_hop =
				strncmp(service->backends[k].name, "lost", 4) != 0;
			confs[k].port =
				strcmp(service->backends[k].name, "cut") == 0 ? DOWN_PORT : 0;
		}
		view->services[i].confs = confs;
	}
}

static void
take_next_hops(struct ctl_view *view)
{
	for (size_t i = 0; i < view->model.n_services; i++)
		free(view->services[i].confs);
	free(view->services);
}

static void
test_services_that_are_ready_are_gathered(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ready_rows) / sizeof(ready_rows[0]); i++) {
		struct lb_prefix prefixes[WORDS_MAX];
		char text[2048];
		char found[512] = "";
		struct ctl_view view = {.n_refs = 1};
		size_t n;

		(void)snprintf(text, sizeof(text), "services: %s", ready_rows[i].services);
		EXPECT(cfg_read_text_model("f", text, strlen(text), NULL, &view.model) == 0,
			"%s", text);
		give_next_hops(&view);
		n = ctl_routes_gather(&view, 1u << DOWN_PORT, prefixes);
		for (size_t k = 0; k < n; k++) {
			char prefix[LB_PREFIX_TEXT_BYTES];

			(void)strcat(found, lb_prefix_format(&prefixes[k], prefix));
			(void)strcat(found, " ");
		}
		EXPECT(strcmp(found, ready_rows[i].prefixes) == 0, "%s: found %s",
			ready_rows[i].what, found);
		take_next_hops(&view);
		cfg_model_fini(&view.model);
	}
}

static void
test_who_is_not_ready_is_told_why(void **state)
{
	struct cfg_backend backend = {.state = CFG_DRAIN, .weight = 100};
	struct cfg_service service = {.backends = &backend};
	struct dp_backend_conf conf = {.has_next_hop = false};

	(void)state;
	assert_int_equal(ctl_ready_look(&service, &conf, 0, 0), CTL_READY_NO_BACKENDS);
	service.n_backends = 1;
	assert_int_equal(ctl_ready_look(&service, &conf, 0, 0), CTL_READY_NONE_UP);
	backend.state = CFG_UP;
	assert_int_equal(ctl_ready_look(&service, &conf, 0, 0), CTL_READY_UNREACHED);
	conf.has_next_hop = true;
	assert_int_equal(ctl_ready_look(&service, &conf, 0, 0), CTL_READY);
	assert_int_equal(ctl_ready_look(&service, &conf, 1, 0), CTL_READY_UNHEALTHY);
	service.min_healthy = 1;
	assert_int_equal(ctl_ready_look(&service, &conf, 0, 0), CTL_READY);
	service.min_healthy = 2;
	assert_int_equal(ctl_ready_look(&service, &conf, 0, 0), CTL_READY_UNHEALTHY);
	service.min_healthy = 1;
	conf.port = 15;
	assert_int_equal(ctl_ready_look(&service, &conf, 0, 1u << 15), CTL_READY_PORT_DOWN);
	assert_int_equal(ctl_ready_look(&service, &conf, 0, ~(1u << 15)), CTL_READY);
	for (int i = 0; i < CTL_N_READY; i++)
		EXPECT((ctl_ready_words[i][0] == '\0') == (i == CTL_READY), "reason %d", i);
}

/*
 * Each row is a set's life: "=A,B" wants these and no others; "do" has the kernel do what is
 * not as it is wanted, and must do exactly the changes that follow it, +ADDED -REMOVED; "lose"
 * has the kernel take all; "fail" has it refuse; "mute" has it do or not, and not say;
 * "?A,B" looks, and sees these and no others.
 */
static const struct {
	const char *what;
	const char *steps;
} life_rows[] = {
	{"nothing at first", "do = do"},
	{"what is wanted comes, ascending", "=192.0.2.9,192.0.2.1 do +192.0.2.1 +192.0.2.9"},
	{"once, though two services want it", "=192.0.2.1,192.0.2.1 do +192.0.2.1"},
	{"and nothing when it is wanted again", "=192.0.2.1 do +192.0.2.1 =192.0.2.1 do"},
	{"what is wanted no more goes, the rest stays",
		"=192.0.2.1,192.0.2.2,192.0.2.3 do +192.0.2.1 +192.0.2.2 +192.0.2.3 "
		"=192.0.2.3,192.0.2.1 do -192.0.2.2"},
	{"some come while others go",
		"=192.0.2.1,192.0.2.2 do +192.0.2.1 +192.0.2.2 =192.0.2.3,192.0.2.1 do "
		"-192.0.2.2 +192.0.2.3"},
	{"all go", "=192.0.2.1,192.0.2.2 do +192.0.2.1 +192.0.2.2 = do -192.0.2.1 -192.0.2.2"},
	{"a prefix and its first address are two",
		"=192.0.2.0/24,192.0.2.0 do +192.0.2.0/24 +192.0.2.0 =192.0.2.0 do "
		"-192.0.2.0/24"},
	{"both families", "=2001:db8::1,192.0.2.1,::/1 do +::/1 +192.0.2.1 +2001:db8::1"},
	{"what the kernel has refused is tried again", "=192.0.2.1 fail do +192.0.2.1"},
	{"and left, once nobody wants it", "=192.0.2.1 fail = do"},
	{"what could not be taken away is tried again",
		"=192.0.2.1 do +192.0.2.1 = fail =192.0.2.2 do -192.0.2.1 +192.0.2.2"},
	{"what the kernel has taken comes back", "=192.0.2.1 do +192.0.2.1 lose do +192.0.2.1"},
	{"but not what nobody wanted any more", "=192.0.2.1 do +192.0.2.1 = lose do"},
	{"what a look does not see comes back, and the rest stays",
		"=192.0.2.1,192.0.2.2,2001:db8::1 do +192.0.2.1 +192.0.2.2 +2001:db8::1 "
		"?192.0.2.2 do +192.0.2.1 +2001:db8::1"},
	{"a look that sees none is as a loss", "=192.0.2.1 do +192.0.2.1 ? do +192.0.2.1"},
	{"what it sees and nobody wants goes", "=192.0.2.1 do +192.0.2.1 = ?192.0.2.1 do "
					       "-192.0.2.1"},
	{"and is left where it does not see it", "=192.0.2.1 do +192.0.2.1 = ? do"},
	{"what it sees, though it was refused, is there", "=192.0.2.1 fail ?192.0.2.1 do"},
	{"what was never wanted is no matter of ours",
		"=192.0.2.1 do +192.0.2.1 ?192.0.2.1,192.0.2.9 do"},
	{"what was not answered for is asked for again", "=192.0.2.1 mute do +192.0.2.1"},
	{"and taken away, though nobody wants it any more", "=192.0.2.1 mute = do -192.0.2.1"},
	{"also where others are wanted instead",
		"=192.0.2.1 mute =192.0.2.2 do -192.0.2.1 +192.0.2.2"},
	{"a look that sees it is an answer", "=192.0.2.1 mute ?192.0.2.1 do"},
	{"and so is one that does not", "=192.0.2.1 mute = ? do"},
	{"or that all are lost", "=192.0.2.1 mute = lose do"},
	{"what may have been taken away is asked for again",
		"=192.0.2.1 do +192.0.2.1 = mute =192.0.2.1 do +192.0.2.1"},
	{"what is wanted again before it was taken away stays",
		"=192.0.2.1 do +192.0.2.1 = =192.0.2.1 do"},
};

static size_t
read_list(char *list, struct lb_prefix out[static WORDS_MAX])
{
	char *rest = NULL;
	size_t n = 0;

	for (char *word = strtok_r(list, ",", &rest); word != NULL;
		word = strtok_r(NULL, ",", &rest))
		assert_int_equal(lb_prefix_parse(word, &out[n++]), 0);
	return n;
}

/* What is left to do, as steps write it; it is done. */
static void
do_all(struct ctl_routes *routes, char *done, size_t n_bytes)
{
	done[0] = '\0';
	for (size_t i = ctl_routes_next(routes, 0); i < routes->n;
		i = ctl_routes_next(routes, i + 1)) {
		struct ctl_route *route = &routes->items[i];
		char prefix[LB_PREFIX_TEXT_BYTES];
		const size_t used = strlen(done);

		(void)snprintf(done + used, n_bytes - used, " %c%s",
			route->is_wanted ? '+' : '-', lb_prefix_format(&route->prefix, prefix));
		route->is_there = route->is_wanted;
		route->is_unsure = false;
	}
	ctl_routes_tidy(routes);
}

static void
fail_all(struct ctl_routes *routes)
{
	for (size_t i = ctl_routes_next(routes, 0); i < routes->n;
		i = ctl_routes_next(routes, i + 1))
		routes->items[i].error = -ENOBUFS;
}

static void
fall_silent(struct ctl_routes *routes)
{
	for (size_t i = ctl_routes_next(routes, 0); i < routes->n;
		i = ctl_routes_next(routes, i + 1))
		routes->items[i].is_unsure = true;
}

static void
look(struct ctl_routes *routes, char *list)
{
	struct lb_prefix prefixes[WORDS_MAX];
	const size_t n = read_list(list, prefixes);

	ctl_routes_begin_look(routes);
	for (size_t i = 0; i < n; i++)
		ctl_routes_see(routes, &prefixes[i]);
	ctl_routes_end_look(routes);
}

static void
live(struct ctl_routes *routes, const char *what, char *steps)
{
	char *rest = NULL;
	char left[512] = "";

	for (char *step = strtok_r(steps, " ", &rest); step != NULL;
		step = strtok_r(NULL, " ", &rest)) {
		struct lb_prefix prefixes[WORDS_MAX];

		if (step[0] == '+' || step[0] == '-') {
			char expected[LB_PREFIX_TEXT_BYTES + 2];
			const int n = snprintf(expected, sizeof(expected), " %s", step);

			EXPECT(strncmp(left, expected, (size_t)n) == 0,
				"%s: expected %s, left:%s", what, step, left);
			memmove(left, left + n, strlen(left + n) + 1);
			continue;
		}
		EXPECT(left[0] == '\0', "%s: also done:%s", what, left);
		if (strcmp(step, "=") == 0)
			ctl_routes_want_none(routes);
		else if (step[0] == '=')
			assert_int_equal(ctl_routes_want(routes, prefixes,
						 read_list(step + 1, prefixes)),
				0);
		else if (step[0] == '?')
			look(routes, step + 1);
		else if (strcmp(step, "do") == 0)
			do_all(routes, left, sizeof(left));
		else if (strcmp(step, "lose") == 0)
			ctl_routes_lose(routes);
		else if (strcmp(step, "mute") == 0)
			fall_silent(routes);
		else
			fail_all(routes);
	}
	EXPECT(left[0] == '\0', "%s: also done:%s", what, left);
}

static void
test_what_is_done_is_the_difference(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(life_rows) / sizeof(life_rows[0]); i++) {
		struct ctl_routes routes = {.items = NULL};
		char *steps = strdup(life_rows[i].steps);

		assert_non_null(steps);
		live(&routes, life_rows[i].what, steps);
		ctl_routes_fini(&routes);
		free(steps);
	}
}

static void
test_an_error_is_of_one_wish(void **state)
{
	struct ctl_routes routes = {.items = NULL};
	struct lb_prefix one = {.n_bits = 128};
	struct lb_prefix other = {.n_bits = 127};

	(void)state;
	assert_int_equal(ctl_routes_want(&routes, &one, 1), 0);
	fail_all(&routes);
	assert_int_equal(ctl_routes_want(&routes, (struct lb_prefix[]){one, other}, 2), 0);
	assert_int_equal(ctl_routes_find(&routes, &one)->error, -ENOBUFS);
	assert_int_equal(ctl_routes_find(&routes, &other)->error, 0);
	ctl_routes_find(&routes, &one)->is_there = true;
	assert_int_equal(ctl_routes_want(&routes, &other, 1), 0);
	assert_int_equal(ctl_routes_find(&routes, &one)->error, 0);
	ctl_routes_want_none(&routes);
	assert_null(ctl_routes_find(&routes, &other));
	assert_non_null(ctl_routes_find(&routes, &one));
	ctl_routes_fini(&routes);
	assert_null(ctl_routes_find(&routes, &one));
}

static void
test_what_a_look_misses_is_told(void **state)
{
	struct ctl_routes routes = {.items = NULL};
	const struct lb_prefix one = {.n_bits = 128};
	const struct lb_prefix other = {.n_bits = 127};

	(void)state;
	assert_int_equal(ctl_routes_want(&routes, (struct lb_prefix[]){one, other}, 2), 0);
	ctl_routes_find(&routes, &one)->is_there = true;
	ctl_routes_find(&routes, &other)->error = -ENOBUFS;
	for (int i = 0; i < 2; i++) { /* nothing of the first look is left to the second */
		ctl_routes_begin_look(&routes);
		if (i == 0)
			ctl_routes_see(&routes, &one);
		assert_true(ctl_routes_find(&routes, &one)->is_there);
		ctl_routes_end_look(&routes);
		assert_true(ctl_routes_find(&routes, &one)->is_there == (i == 0));
		assert_int_equal(ctl_routes_find(&routes, &one)->error, i == 0 ? 0 : -ENOENT);
		assert_int_equal(ctl_routes_find(&routes, &other)->error, -ENOBUFS);
	}
	ctl_routes_fini(&routes);
}

/* Bits of a set of few prefixes, against a set that is a number. */
static void
test_it_is_as_a_plain_set_is(void **state)
{
	struct ctl_routes routes = {.items = NULL};
	uint64_t seed = 7;
	uint32_t there = 0;

	(void)state;
	for (unsigned int round = 0; round < 20000; round++) {
		struct lb_prefix prefixes[UNIVERSE * 2];
		uint32_t wanted = 0;
		size_t n = 0;

		while (n < UNIVERSE * 2 && xrand_below(&seed, 8) != 0) {
			const uint32_t bit = xrand_below(&seed, UNIVERSE);

			prefixes[n] = (struct lb_prefix){.n_bits = 128};
			prefixes[n++].addr.bytes[15] = (uint8_t)bit;
			wanted |= 1u << bit;
		}
		assert_int_equal(ctl_routes_want(&routes, prefixes, n), 0);
		for (size_t i = ctl_routes_next(&routes, 0); i < routes.n;
			i = ctl_routes_next(&routes, i + 1)) {
			const uint32_t bit = 1u << routes.items[i].prefix.addr.bytes[15];

			assert_true(routes.items[i].is_wanted == ((wanted & bit) != 0));
			assert_true(routes.items[i].is_there == ((there & bit) != 0));
			/* Some are done, and some left for another time. */
			if (xrand_below(&seed, 2) == 0)
				continue;
			routes.items[i].is_there = routes.items[i].is_wanted;
			there ^= bit;
		}
		for (unsigned int bit = 0; bit < UNIVERSE; bit++) {
			struct lb_prefix prefix = {.n_bits = 128};
			const struct ctl_route *route;

			prefix.addr.bytes[15] = (uint8_t)bit;
			route = ctl_routes_find(&routes, &prefix);
			assert_true((route != NULL && route->is_there) ==
				    ((there >> bit & 1) != 0));
			assert_true((route != NULL && route->is_wanted) ==
				    ((wanted >> bit & 1) != 0));
		}
	}
	ctl_routes_fini(&routes);
}

static void
test_without_memory_nothing_changes_and_a_stop_succeeds(void **state)
{
	struct ctl_routes routes = {.items = NULL};
	const struct lb_prefix one = {.n_bits = 128};
	const struct lb_prefix other = {.n_bits = 127};

	(void)state;
	assert_int_equal(ctl_routes_want(&routes, &one, 1), 0);
	routes.items[0].is_there = true;
	for (int at = 1; at <= 2; at++) {
		failing_malloc_at = at;
		assert_int_equal(ctl_routes_want(&routes, &other, 1), -ENOMEM);
		assert_int_equal(routes.n, 1);
		assert_true(routes.items[0].is_wanted);
	}
	failing_malloc_at = 1;
	ctl_routes_want_none(&routes);
	assert_int_equal(failing_malloc_at, 1);
	failing_malloc_at = 0;
	assert_int_equal(routes.n, 1);
	assert_false(routes.items[0].is_wanted);
	ctl_routes_fini(&routes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_services_that_are_ready_are_gathered),
		cmocka_unit_test(test_who_is_not_ready_is_told_why),
		cmocka_unit_test(test_what_is_done_is_the_difference),
		cmocka_unit_test(test_an_error_is_of_one_wish),
		cmocka_unit_test(test_what_a_look_misses_is_told),
		cmocka_unit_test(test_it_is_as_a_plain_set_is),
		cmocka_unit_test(test_without_memory_nothing_changes_and_a_stop_succeeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
