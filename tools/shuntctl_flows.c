/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cfg_node.h"
#include "ctl_proto.h"
#include "lb_compiler.h"
#include "shuntctl.h"
#include "shuntctl_table.h"

/* SERVICE/NAME, of 255 bytes each at most, or an address. */
#define NAMES_BYTES 512u

#define DIGITS 9

/* What the options of flows say, with more. NULL: it is told what is wrong, in *status. */
static json_t *
make_filter(const struct shuntctl *ctl, int *status)
{
	static const struct shuntctl_key keys[] = {{SHUNTCTL_SERVICE, CTL_KEY_SERVICE},
		{SHUNTCTL_BACKEND, CTL_KEY_BACKEND}, {SHUNTCTL_CLIENT, CTL_KEY_CLIENT},
		{SHUNTCTL_HOST, CTL_KEY_HOST}, {SHUNTCTL_NET, CTL_KEY_NET},
		{SHUNTCTL_PORT, CTL_KEY_PORT}, {SHUNTCTL_PROTOCOL, CTL_KEY_PROTOCOL},
		{SHUNTCTL_IDLE, CTL_KEY_IDLE}};
	const bool is_confirmed = ctl->values[SHUNTCTL_CONFIRMED] != NULL;
	const bool is_unconfirmed = ctl->values[SHUNTCTL_UNCONFIRMED] != NULL;
	json_t *params;

	if (is_confirmed && is_unconfirmed) {
		*status = shuntctl_usage_error("no flow is --confirmed and --unconfirmed");
		return NULL;
	}
	params = shuntctl_make_params(ctl, keys, LB_N_ELEMENTS(keys));
	if (params == NULL) {
		*status = shuntctl_no_utf8();
		return NULL;
	}
	if ((is_confirmed || is_unconfirmed) && json_object_set_new(params, CTL_KEY_CONFIRMED,
							json_boolean(is_confirmed)) != 0) {
		json_decref(params);
		*status = shuntctl_no_memory();
		return NULL;
	}
	return params;
}

/* Whether there is another page, which params then ask for. */
static bool
turn_page(json_t *params, const json_t *page)
{
	json_t *cursor = json_object_get(page, CTL_KEY_CURSOR);

	return json_is_string(cursor) && json_object_set(params, CTL_KEY_CURSOR, cursor) == 0;
}

/* Does something with a page. Returns the exit status. */
typedef int (*page_fn)(struct shuntctl *ctl, json_t *page, void *context);

/* Ask page by page. Takes params; NULL: it is told why, in status. */
static int
for_each_page(struct shuntctl *ctl, const char *method, json_t *params, int status, page_fn fn,
	void *context)
{
	bool has_more = params != NULL;

	while (has_more) {
		json_t *page;

		status = shuntctl_call(ctl, method, json_incref(params), &page);
		if (status != SHUNTCTL_DONE)
			break;
		status = fn(ctl, page, context);
		has_more = status == SHUNTCTL_DONE && turn_page(params, page);
		json_decref(page);
	}
	json_decref(params);
	return status;
}

/* Listing. */

struct listing {
	uint64_t n_left;
	bool is_begun;
	bool has_flow;
	bool lacks_addresses;
};

static const char *
state_of(const json_t *flow)
{
	if (json_is_true(json_object_get(flow, CTL_KEY_CLOSING)))
		return "closing";
	return json_is_true(json_object_get(flow, CTL_KEY_CONFIRMED)) ? "confirmed"
								      : "unconfirmed";
}

/* Lines of a width of their own: pages come one after the other, and any number of them. */
#define LINE "%-8s %-22s %-22s %-24s %-11s "

static void
print_heading(void)
{
	(void)printf(LINE "%9s %6s\n", "PROTOCOL", "CLIENT", "DESTINATION", "BACKEND", "STATE",
		"IDLE", "WORKER");
}

/* SERVICE/NAME, or "-" of one that is gone. */
static const char *
backend_of(const json_t *flow, char *out, size_t n)
{
	if (!json_is_string(json_object_get(flow, CTL_KEY_SERVICE)))
		return "-";
	(void)snprintf(out, n, "%s/%s", shuntctl_text_of(flow, CTL_KEY_SERVICE),
		shuntctl_text_of(flow, CTL_KEY_BACKEND));
	return out;
}

static void
print_flow(const json_t *flow)
{
	char backend[NAMES_BYTES];

	(void)printf(LINE "%7.1f s %6" JSON_INTEGER_FORMAT "\n",
		shuntctl_text_of(flow, CTL_KEY_PROTOCOL),
		shuntctl_text_of(flow, CTL_KEY_CLIENT),
		shuntctl_text_of(flow, CTL_KEY_DESTINATION),
		backend_of(flow, backend, sizeof(backend)), state_of(flow),
		json_real_value(json_object_get(flow, CTL_KEY_IDLE_SECONDS)),
		json_integer_value(json_object_get(flow, CTL_KEY_WORKER)));
}

static void
begin_listing(const struct shuntctl *ctl, struct listing *listing)
{
	if (listing->is_begun)
		return;
	listing->is_begun = true;
	if (!ctl->is_json)
		print_heading();
	else
		(void)printf("{\"" CTL_KEY_SCHEMA "\": %d, \"" CTL_KEY_FLOWS "\": [",
			CTL_SCHEMA);
}

/* All flows are one object, of which each is a line. */
static void
put_flow(const struct shuntctl *ctl, const json_t *flow, struct listing *listing)
{
	if (!ctl->is_json) {
		print_flow(flow);
	} else {
		(void)fputs(listing->has_flow ? ",\n" : "\n", stdout);
		/* That it cannot be written is seen at the end of the page. */
		(void)json_dumpf(flow, stdout, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
	}
	listing->has_flow = true;
	listing->n_left--;
}

static int
list_page(struct shuntctl *ctl, json_t *page, void *context)
{
	const json_t *flows = json_object_get(page, CTL_KEY_FLOWS);
	struct listing *listing = context;

	begin_listing(ctl, listing);
	listing->lacks_addresses = json_is_false(json_object_get(page, CTL_KEY_ADDRESSES));
	for (size_t i = 0; i < json_array_size(flows) && listing->n_left > 0; i++)
		put_flow(ctl, json_array_get(flows, i), listing);
	if (listing->n_left == 0) /* it is enough */
		(void)json_object_del(page, CTL_KEY_CURSOR);
	return shuntctl_finish_output();
}

static int
end_listing(const struct shuntctl *ctl, const struct listing *listing)
{
	if (ctl->is_json)
		(void)fputs("\n]}\n", stdout);
	if (listing->lacks_addresses && !ctl->is_json && listing->has_flow)
		(void)fputs("shuntctl: clients and destinations are not kept; 'flow_addresses: "
			    "true' under 'dataplane:' keeps them from the next start on\n",
			stderr);
	return shuntctl_finish_output();
}

int
shuntctl_flows_list(struct shuntctl *ctl)
{
	const char *count = ctl->values[SHUNTCTL_COUNT];
	struct listing listing = {.n_left = UINT64_MAX};
	int status = SHUNTCTL_DONE;
	json_t *params;

	if (count != NULL && !cfg_scan_u64(count, 1, UINT64_MAX, &listing.n_left))
		return shuntctl_usage_error("--count: expected a number from 1 on, found '%s'",
			count);
	params = make_filter(ctl, &status);
	status = for_each_page(ctl, CTL_METHOD_FLOWS_LIST, params, status, list_page, &listing);
	return status == SHUNTCTL_DONE ? end_listing(ctl, &listing) : status;
}

/* Counting. */

enum by { BY_SERVICE, BY_BACKEND, BY_CLIENT, BY_WORKER };

static const char *const by_words[] = {"service", "backend", "client", "worker", NULL};

struct counting {
	enum by by;
	json_int_t total;
	json_t *counts; /* an object: by name */
};

/* A client's address, without its port. */
static const char *
client_of(const json_t *flow, char *out, size_t n)
{
	const char *end = shuntctl_text_of(flow, CTL_KEY_CLIENT);
	const char *port = strrchr(end, ':');

	if (end[0] == '[')
		(void)snprintf(out, n, "%.*s", (int)strcspn(end + 1, "]"), end + 1);
	else if (port != NULL && strchr(end, ':') == port)
		(void)snprintf(out, n, "%.*s", (int)(port - end), end);
	else /* it has none */
		(void)snprintf(out, n, "%s", end);
	return out;
}

static const char *
name_of(const json_t *item, const json_t *page, enum by by, char *out, size_t n)
{
	switch (by) {
	case BY_SERVICE:
		return shuntctl_text_of(item, CTL_KEY_SERVICE);
	case BY_BACKEND:
		return backend_of(item, out, n);
	case BY_CLIENT:
		return client_of(item, out, n);
	default:
		(void)snprintf(out, n, "%" JSON_INTEGER_FORMAT,
			json_integer_value(json_object_get(page, CTL_KEY_WORKER)));
		return out;
	}
}

static int
tell_no_addresses(void)
{
	(void)fputs("shuntctl: clients are not kept; 'flow_addresses: true' under 'dataplane:' "
		    "keeps them from the next start on\n",
		stderr);
	return SHUNTCTL_FAILED;
}

static int
count_page(struct shuntctl *ctl, json_t *page, void *context)
{
	const json_t *items = json_object_get(page, CTL_KEY_FLOWS);
	struct counting *counting = context;

	(void)ctl;
	if (counting->by == BY_CLIENT &&
		json_is_false(json_object_get(page, CTL_KEY_ADDRESSES)))
		return tell_no_addresses();
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);
		const json_t *flows = json_object_get(item, CTL_KEY_FLOWS);
		const json_int_t n = json_is_integer(flows) ? json_integer_value(flows) : 1;
		char room[NAMES_BYTES];
		const char *name = name_of(item, page, counting->by, room, sizeof(room));
		const json_int_t before =
			json_integer_value(json_object_get(counting->counts, name));

		if (json_object_set_new(counting->counts, name, json_integer(before + n)) != 0)
			return shuntctl_no_memory();
		counting->total += n;
	}
	return SHUNTCTL_DONE;
}

struct count {
	const char *name;
	json_int_t flows;
};

/* Most flows first, and alike ones by name. */
static int
compare_counts(const void *a, const void *b)
{
	const struct count *first = a;
	const struct count *second = b;

	if (first->flows != second->flows)
		return first->flows < second->flows ? 1 : -1;
	return strcmp(first->name, second->name);
}

static int
print_counts(const struct counting *counting, const struct count counts[], size_t n)
{
	static const struct shuntctl_column columns[] = {{"NAME", false}, {"FLOWS", true}};
	struct shuntctl_table table;

	shuntctl_table_init(&table, columns, LB_N_ELEMENTS(columns));
	for (size_t i = 0; i < n; i++) {
		shuntctl_table_add(&table, "%s", counts[i].name);
		shuntctl_table_add(&table, "%" JSON_INTEGER_FORMAT, counts[i].flows);
	}
	if (!shuntctl_table_print(&table, stdout))
		return shuntctl_no_memory();
	(void)printf("in all: %" JSON_INTEGER_FORMAT "\n", counting->total);
	return shuntctl_finish_output();
}

static int
write_counts(const struct counting *counting, const struct count counts[], size_t n)
{
	json_t *list = json_array();
	json_t *result;
	int failed = 0;
	int status;

	for (size_t i = 0; i < n; i++)
		failed |= json_array_append_new(list,
			json_pack("{s:s, s:I}", CTL_KEY_NAME, counts[i].name, CTL_KEY_FLOWS,
				counts[i].flows));
	result = json_pack("{s:i, s:s, s:I, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA, "by",
		by_words[counting->by], "total", counting->total, "counts", list);
	if (result == NULL || failed != 0)
		status = shuntctl_no_memory();
	else
		status = shuntctl_write_json(result, false);
	json_decref(result);
	return status;
}

static int
show_counts(const struct shuntctl *ctl, const struct counting *counting)
{
	struct count *counts = calloc(json_object_size(counting->counts) + 1, sizeof(*counts));
	const char *name;
	json_t *flows;
	size_t n = 0;
	int status;

	if (counts == NULL)
		return shuntctl_no_memory();
	json_object_foreach(counting->counts, name, flows)
	{
		counts[n++] = (struct count){name, json_integer_value(flows)};
	}
	qsort(counts, n, sizeof(*counts), compare_counts);
	status = ctl->is_json ? write_counts(counting, counts, n)
			      : print_counts(counting, counts, n);
	free(counts);
	return status;
}

int
shuntctl_flows_count(struct shuntctl *ctl)
{
	const char *word = ctl->values[SHUNTCTL_BY];
	const size_t by = word != NULL ? cfg_find_word(word, by_words) : BY_BACKEND;
	struct counting counting = {.by = (enum by)by, .counts = json_object()};
	int status = SHUNTCTL_DONE;
	json_t *params;

	if (by_words[by] == NULL)
		status = shuntctl_usage_error("--by: expected service, backend, client or "
					      "worker, found '%s'",
			word);
	else if (counting.counts == NULL)
		status = shuntctl_no_memory();
	params = status == SHUNTCTL_DONE ? make_filter(ctl, &status) : NULL;
	/* Clients are counted here: there may be as many as flows. */
	status = for_each_page(ctl,
		counting.by == BY_CLIENT ? CTL_METHOD_FLOWS_LIST : CTL_METHOD_FLOWS_COUNT,
		params, status, count_page, &counting);
	if (status == SHUNTCTL_DONE)
		status = show_counts(ctl, &counting);
	json_decref(counting.counts);
	return status;
}

/* One of them, and an end of some. */

int
shuntctl_flows_find(struct shuntctl *ctl)
{
	json_t *params = json_pack("{s:s, s:s, s:s}", CTL_KEY_PROTOCOL, ctl->args[0],
		CTL_KEY_CLIENT, ctl->args[1], CTL_KEY_DESTINATION, ctl->args[2]);
	const json_t *flow;
	json_t *result;
	int status;

	if (params == NULL)
		return shuntctl_no_utf8();
	status = shuntctl_call(ctl, CTL_METHOD_FLOWS_FIND, params, &result);
	if (status != SHUNTCTL_DONE)
		return status;
	flow = json_array_get(json_object_get(result, CTL_KEY_FLOWS), 0);
	if (ctl->is_json) {
		status = shuntctl_write_json(result, false);
	} else if (flow != NULL) {
		print_heading();
		print_flow(flow);
		status = shuntctl_finish_output();
	}
	if (status == SHUNTCTL_DONE && flow == NULL) {
		(void)fputs("shuntctl: no worker knows that flow\n", stderr);
		status = SHUNTCTL_FAILED;
	}
	json_decref(result);
	return status;
}

static int
clear_page(struct shuntctl *ctl, json_t *page, void *context)
{
	json_int_t *n_cleared = context;

	(void)ctl;
	*n_cleared += json_integer_value(json_object_get(page, CTL_KEY_CLEARED));
	return SHUNTCTL_DONE;
}

static int
tell_cleared(const struct shuntctl *ctl, json_int_t n_cleared)
{
	json_t *result;
	int status;

	if (!ctl->is_json) {
		(void)printf("%" JSON_INTEGER_FORMAT " flows cleared\n", n_cleared);
		return shuntctl_finish_output();
	}
	result =
		json_pack("{s:i, s:I}", CTL_KEY_SCHEMA, CTL_SCHEMA, CTL_KEY_CLEARED, n_cleared);
	status = result != NULL ? shuntctl_write_json(result, false) : shuntctl_no_memory();
	json_decref(result);
	return status;
}

int
shuntctl_flows_clear(struct shuntctl *ctl)
{
	int status = SHUNTCTL_DONE;
	json_t *params = make_filter(ctl, &status);
	json_int_t n_cleared = 0;

	if (params != NULL && json_object_size(params) == 0 &&
		ctl->values[SHUNTCTL_ALL] == NULL) {
		json_decref(params);
		return shuntctl_usage_error("which flows? Say what of them, such as --backend "
					    "SERVICE/NAME; or --all");
	}
	if (params != NULL && ctl->values[SHUNTCTL_ALL] != NULL &&
		json_object_set_new(params, CTL_KEY_ALL, json_true()) != 0) {
		json_decref(params);
		return shuntctl_no_memory();
	}
	status = for_each_page(ctl, CTL_METHOD_FLOWS_CLEAR, params, status, clear_page,
		&n_cleared);
	return status == SHUNTCTL_DONE ? tell_cleared(ctl, n_cleared) : status;
}
