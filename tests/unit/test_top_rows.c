/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "failing_malloc.h"

#define BACKEND(name, packets, bytes, flows, weight, more)                                     \
	"{'name':'" name "','packets':" #packets ",'bytes':" #bytes ",'flows':" #flows         \
	",'weight':" #weight ",'slots':9," more "}"
#define UP "'state':'up','health':'none','reached':true"

static json_t *
parse(const char *text)
{
	char copy[4096];
	json_t *json;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	for (char *c = copy; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	json = json_loads(copy, 0, NULL);
	assert_non_null(json);
	return json;
}

/* Two seconds apart: web/a has 300 of 400 packets, by weight its due are 40 %. */
static const char before_text[] =
	"{'services':["
	"{'name':'web','packets':1000,'bytes':50,'flows':3,'backends':[" BACKEND("a", 500, 40,
		2, 100, UP) "," BACKEND("b", 500, 10, 1, 150,
		UP) "]},"
		    "{'name':'Shop','packets':7,'bytes':0,'flows':0,'backends':[" BACKEND("x",
			    7, 0, 0, 1,
			    UP) "]}],"
				"'packets':{'received':10,'dropped':4},"
				"'drops':{'a':1,'b':0,'c':3},"
				"'workers':[{'worker':0,'turns':{'total_ns':7000000},"
				"'flow_entries':5}]}";
static const char now_text[] =
	"{'services':["
	"{'name':'web','packets':1400,'bytes':4050,'flows':13,'backends':[" BACKEND("a", 800,
		3040, 8, 100, UP) "," BACKEND("b", 600, 1010, 5, 150, UP) "," BACKEND("new", 70,
		0, 0, 0, UP) "]},"
			     "{'name':'Shop','packets':107,'bytes':8,'flows':2,'"
			     "backends':[" BACKEND("x", 107, 8, 2, 1,
				     "'state':'drain','health':'none','reached':"
				     "true") "]}],"
					     "'packets':{'received':30,'dropped':6}"
					     ","
					     "'drops':{'a':1,'b':0,'c':5},"
					     "'workers':[{'worker':0,'turns':"
					     "{'total_ns':507000000},'flow_entries':9}]}";

static struct top_sample sample;

static int
set_up(void **state)
{
	(void)state;
	sample = (struct top_sample){parse(now_text), parse(before_text), 2.0};
	return 0;
}

static int
tear_down(void **state)
{
	union {
		const json_t *lent;
		json_t *owned;
	} now = {sample.now}, before = {sample.before};

	(void)state;
	json_decref(now.owned);
	json_decref(before.owned);
	return 0;
}

static struct top_rows
make(bool of_services, enum top_sort sort, bool is_reverse, const char *filter)
{
	const struct top_choice choice = {of_services, is_reverse, sort, filter};
	struct top_rows rows;

	assert_int_equal(top_rows_init(&sample, &choice, &rows), 0);
	return rows;
}

/* "web/a web/b …" */
static const char *
names_of(const struct top_rows *rows)
{
	static char names[256];
	size_t used = 0;

	names[0] = '\0';
	for (size_t i = 0; i < rows->n; i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s%s%s",
			i > 0 ? " " : "", rows->items[i].service,
			rows->items[i].backend != NULL ? "/" : "",
			rows->items[i].backend != NULL ? rows->items[i].backend : "");
	return names;
}

static void
expect_number(const char *what, double is, double wanted)
{
	EXPECT(is > wanted - 1e-9 && is < wanted + 1e-9, "%s: %g, not %g", what, is, wanted);
}

static void
test_rates_and_shares_of_backends(void **state)
{
	struct top_rows rows = make(false, TOP_SORT_PACKETS, false, "");

	(void)state;
	assert_string_equal(names_of(&rows), "web/a web/b Shop/x web/new");
	assert_int_equal(rows.n_services, 2);
	assert_int_equal(rows.n_backends, 4);
	assert_int_equal(rows.n_all, 4);
	expect_number("packets", rows.items[0].packets, 150);
	expect_number("bits", rows.items[0].bits, 12000);
	expect_number("flows", rows.items[0].flows, 3);
	expect_number("share", rows.items[0].share, 0.75);
	expect_number("due", rows.items[0].due, 0.4);
	expect_number("due of the other", rows.items[1].due, 0.6);
	/* Not in the answer before: no rate, whatever its count. */
	expect_number("packets of a new one", rows.items[3].packets, -1);
	expect_number("share of a new one", rows.items[3].share, -1);
	expect_number("due of weight 0", rows.items[3].due, 0);
	/* Of a service whose backends get no new flows nothing is due to anybody. */
	expect_number("share of one that drains", rows.items[2].share, 1);
	expect_number("due of one that drains", rows.items[2].due, -1);
	top_rows_fini(&rows);
}

static void
test_services(void **state)
{
	struct top_rows rows = make(true, TOP_SORT_PACKETS, false, "");

	(void)state;
	assert_string_equal(names_of(&rows), "web Shop");
	expect_number("packets", rows.items[0].packets, 200);
	expect_number("share of all", rows.items[0].share, 0.8);
	assert_int_equal(rows.items[0].n_up, 2);
	assert_int_equal(rows.items[0].n_backends, 3);
	assert_int_equal(rows.items[1].n_up, 0);
	top_rows_fini(&rows);
}

static void
test_sorting(void **state)
{
	static const struct {
		enum top_sort sort;
		bool is_reverse;
		const char *names;
	} rows[] = {
		{TOP_SORT_BITS, false, "web/a web/b Shop/x web/new"},
		{TOP_SORT_FLOWS, false, "web/a web/b Shop/x web/new"},
		/* 0.35 off each; one that nothing is due to counts its share. */
		{TOP_SORT_SHARE, false, "Shop/x web/a web/b web/new"},
		{TOP_SORT_NAME, false, "Shop/x web/a web/b web/new"},
		{TOP_SORT_NAME, true, "web/new web/b web/a Shop/x"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct top_rows found = make(false, rows[i].sort, rows[i].is_reverse, "");

		EXPECT(strcmp(names_of(&found), rows[i].names) == 0, "by %s: %s",
			top_sort_words[rows[i].sort], names_of(&found));
		top_rows_fini(&found);
	}
}

static void
test_a_filter_is_of_the_whole_name_in_either_case(void **state)
{
	struct top_rows rows = make(false, TOP_SORT_NAME, false, "B/a");

	(void)state;
	assert_string_equal(names_of(&rows), "web/a");
	assert_int_equal(rows.n_all, 4);
	/* What is left out counts for the shares of what is not. */
	expect_number("share", rows.items[0].share, 0.75);
	top_rows_fini(&rows);
	rows = make(true, TOP_SORT_NAME, false, "shop");
	assert_string_equal(names_of(&rows), "Shop");
	expect_number("share", rows.items[0].share, 0.2);
	top_rows_fini(&rows);
	rows = make(true, TOP_SORT_NAME, false, "nobody");
	assert_int_equal(rows.n, 0);
	top_rows_fini(&rows);
}

static void
test_words(void **state)
{
	static const struct {
		const char *keys;
		const char *word;
	} rows[] = {
		{UP ",'weight':1", "up"},
		{UP ",'weight':0", "weight 0"},
		{"'state':'up','health':'up','reached':true,'weight':1", "up"},
		{"'state':'up','health':'down','reached':true,'weight':1", "failing"},
		{"'state':'up','health':'flapping','reached':true,'weight':1", "flapping"},
		{"'state':'up','health':'unknown','reached':true,'weight':1", "checking"},
		{"'state':'up','health':'up','reached':false,'weight':1", "no next hop"},
		{"'state':'drain','health':'down','reached':true,'weight':1", "draining"},
		{"'state':'down','health':'up','reached':false,'weight':1", "down"},
		/* An older daemon. */
		{"'state':'up'", "weight 0"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct top_choice choice = {.filter = ""};
		struct top_rows found;
		char text[512];
		json_t *now;

		(void)snprintf(text, sizeof(text),
			"{'services':[{'name':'s','backends':[{'name':'b',%s}]}]}",
			rows[i].keys);
		now = parse(text);
		assert_int_equal(top_rows_init(&(struct top_sample){.now = now}, &choice,
					 &found),
			0);
		EXPECT(strcmp(found.items[0].state, rows[i].word) == 0, "%s: %s", rows[i].keys,
			found.items[0].state);
		top_rows_fini(&found);
		json_decref(now);
	}
}

static void
test_without_a_sample_before_nothing_has_a_rate(void **state)
{
	const struct top_choice choice = {.filter = ""};
	const struct top_sample first = {.now = sample.now};
	struct top_rows rows;

	(void)state;
	assert_int_equal(top_rows_init(&first, &choice, &rows), 0);
	for (size_t i = 0; i < rows.n; i++)
		expect_number(rows.items[i].backend, rows.items[i].packets, -1);
	assert_string_equal(names_of(&rows), "web/a web/b web/new Shop/x");
	top_rows_fini(&rows);
	expect_number("busy", top_read_worker(&first, 0).busy, -1);
}

static void
test_counts_that_began_anew_have_no_rate(void **state)
{
	const struct top_sample turned = {sample.before, sample.now, 2.0};
	const struct top_choice choice = {.filter = ""};
	struct top_rows rows;

	(void)state;
	assert_int_equal(top_rows_init(&turned, &choice, &rows), 0);
	expect_number("packets", rows.items[0].packets, -1);
	expect_number("bits", rows.items[0].bits, -1);
	top_rows_fini(&rows);
}

static void
test_packets_drops_and_workers(void **state)
{
	struct top_count counts[TOP_COUNTS_MAX];

	(void)state;
	assert_int_equal(top_count_packets(&sample, counts), 2);
	assert_string_equal(counts[0].name, "received");
	expect_number("received", counts[0].rate, 10);
	assert_int_equal(top_count_drops(&sample, counts), 2);
	assert_string_equal(counts[0].name, "c");
	assert_int_equal(counts[0].total, 5);
	expect_number("c", counts[0].rate, 1);
	assert_string_equal(counts[1].name, "a");
	expect_number("a", counts[1].rate, 0);
	assert_int_equal(top_n_workers(&sample), 1);
	expect_number("busy", top_read_worker(&sample, 0).busy, 0.25);
	assert_int_equal(top_read_worker(&sample, 0).entries, 9);
}

static void
test_memory_that_is_short_is_told(void **state)
{
	const struct top_choice choice = {.filter = ""};
	struct top_rows rows;

	(void)state;
	failing_malloc_at = 1;
	assert_int_equal(top_rows_init(&sample, &choice, &rows), -ENOMEM);
	assert_int_equal(failing_malloc_at, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_and_shares_of_backends),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_sorting),
		cmocka_unit_test(test_a_filter_is_of_the_whole_name_in_either_case),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_without_a_sample_before_nothing_has_a_rate),
		cmocka_unit_test(test_counts_that_began_anew_have_no_rate),
		cmocka_unit_test(test_packets_drops_and_workers),
		cmocka_unit_test(test_memory_that_is_short_is_told),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
