/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl_proto.h"
#include "lb_compiler.h"
#include "shuntctl.h"
#include "shuntctl_table.h"

/* A backend's figures, and how fast they grew since the answer before. */
struct row {
	const char *service;
	const json_t *backend;
	double packets_per_second;
	double bits_per_second;
	double flows_per_second;
};

struct rows {
	struct row *items;
	size_t n;
};

static double
clock_seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The item of a list under a name: at the same place mostly. NULL: none. */
static const json_t *
find_named(const json_t *list, const char *name, size_t place)
{
	const size_t n = json_array_size(list);

	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(list, (place + i) % n);
		const char *found = json_string_value(json_object_get(item, CTL_KEY_NAME));

		if (found != NULL && name != NULL && strcmp(found, name) == 0)
			return item;
	}
	return NULL;
}

/* What a figure grew by in a second; 0 where it was not there before. */
static double
rate(const json_t *now, const json_t *before, const char *key, double seconds)
{
	const json_int_t from = json_integer_value(json_object_get(before, key));
	const json_int_t to = json_integer_value(json_object_get(now, key));

	if (before == NULL || to < from || !(seconds > 0))
		return 0;
	return (double)(to - from) / seconds;
}

static void
fill_rows(const json_t *now, const json_t *before, double seconds, struct rows *rows)
{
	const json_t *services = json_object_get(now, CTL_KEY_SERVICES);
	const json_t *old_services = json_object_get(before, CTL_KEY_SERVICES);

	for (size_t i = 0; i < json_array_size(services); i++) {
		const json_t *service = json_array_get(services, i);
		const char *name = json_string_value(json_object_get(service, CTL_KEY_NAME));
		const json_t *backends = json_object_get(service, CTL_KEY_BACKENDS);
		const json_t *old_backends =
			json_object_get(find_named(old_services, name, i), CTL_KEY_BACKENDS);

		for (size_t k = 0; k < json_array_size(backends); k++) {
			const json_t *backend = json_array_get(backends, k);
			const json_t *old = find_named(old_backends,
				json_string_value(json_object_get(backend, CTL_KEY_NAME)), k);

			rows->items[rows->n++] = (struct row){
				.service = name != NULL ? name : "-",
				.backend = backend,
				.packets_per_second =
					rate(backend, old, CTL_KEY_PACKETS, seconds),
				.bits_per_second =
					rate(backend, old, CTL_KEY_BYTES, seconds) * 8,
				.flows_per_second = rate(backend, old, CTL_KEY_FLOWS, seconds),
			};
		}
	}
}

static int
make_rows(const json_t *now, const json_t *before, double seconds, struct rows *rows)
{
	const json_t *services = json_object_get(now, CTL_KEY_SERVICES);
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(services); i++)
		n += json_array_size(
			json_object_get(json_array_get(services, i), CTL_KEY_BACKENDS));
	*rows = (struct rows){.items = calloc(n + 1, sizeof(*rows->items))};
	if (rows->items == NULL)
		return -1;
	fill_rows(now, before, seconds, rows);
	return 0;
}

static void
print_packets(const json_t *now, const json_t *before, double seconds)
{
	static const char *const keys[] = {CTL_KEY_RECEIVED, CTL_KEY_FORWARDED, CTL_KEY_REPLIED,
		CTL_KEY_TO_KERNEL, CTL_KEY_DROPPED};
	const json_t *packets = json_object_get(now, CTL_KEY_PACKETS);
	const json_t *old_packets = json_object_get(before, CTL_KEY_PACKETS);
	json_t *drops = json_object_get(now, CTL_KEY_DROPS);
	const char *reason;
	json_t *value;

	for (size_t i = 0; i < LB_N_ELEMENTS(keys); i++) {
		(void)printf("%-12s %16" JSON_INTEGER_FORMAT, keys[i],
			json_integer_value(json_object_get(packets, keys[i])));
		if (before != NULL)
			(void)printf(" %14.0f/s", rate(packets, old_packets, keys[i], seconds));
		(void)fputc('\n', stdout);
	}
	json_object_foreach(drops, reason, value)
	{
		if (json_integer_value(value) != 0)
			(void)printf("  %-26s %" JSON_INTEGER_FORMAT "\n", reason,
				json_integer_value(value));
	}
}

static bool
print_rows(const struct rows *rows, bool has_rates)
{
	static const struct shuntctl_column columns[] = {{"BACKEND", false}, {"STATE", false},
		{"SLOTS", true}, {"PACKETS", true}, {"BYTES", true}, {"FLOWS", true},
		{"PACKETS/S", true}, {"BITS/S", true}, {"FLOWS/S", true}};
	static const char *const keys[] = {CTL_KEY_STATE, CTL_KEY_SLOTS, CTL_KEY_PACKETS,
		CTL_KEY_BYTES, CTL_KEY_FLOWS};
	struct shuntctl_table table;

	shuntctl_table_init(&table, columns, LB_N_ELEMENTS(columns) - (has_rates ? 0 : 3));
	for (size_t i = 0; i < rows->n; i++) {
		const struct row *row = &rows->items[i];

		shuntctl_table_add(&table, "%s/%s", row->service,
			json_string_value(json_object_get(row->backend, CTL_KEY_NAME)));
		for (size_t k = 0; k < LB_N_ELEMENTS(keys); k++)
			shuntctl_table_add_member(&table, row->backend, keys[k]);
		if (!has_rates)
			continue;
		shuntctl_table_add(&table, "%.0f", row->packets_per_second);
		shuntctl_table_add(&table, "%.0f", row->bits_per_second);
		shuntctl_table_add(&table, "%.0f", row->flows_per_second);
	}
	return shuntctl_table_print(&table, stdout);
}

/* before: the answer seconds ago; NULL: there is none, and no rate. */
static int
print_stats(const json_t *now, const json_t *before, double seconds)
{
	struct rows rows;
	bool is_whole;

	if (make_rows(now, before, seconds, &rows) != 0)
		return shuntctl_no_memory();
	print_packets(now, before, seconds);
	(void)fputc('\n', stdout);
	is_whole = print_rows(&rows, before != NULL);
	free(rows.items);
	return is_whole ? shuntctl_finish_output() : shuntctl_no_memory();
}

static void
begin_screen(bool is_first)
{
	if (isatty(STDOUT_FILENO) != 0)
		(void)fputs("\033[H\033[J", stdout); /* home, and clear from there on */
	else if (!is_first)
		(void)fputc('\n', stdout);
}

/* Once a second, until a signal or an error ends it. */
static int
watch(struct shuntctl *ctl)
{
	json_t *before = NULL;
	double before_seconds = 0;
	int status;

	do {
		json_t *now = NULL;
		double now_seconds;

		status = shuntctl_call(ctl, CTL_METHOD_STATS, NULL, &now);
		if (status != SHUNTCTL_DONE)
			break;
		now_seconds = clock_seconds();
		if (ctl->is_json) {
			status = shuntctl_write_json(now, true);
		} else {
			begin_screen(before == NULL);
			status = print_stats(now, before, now_seconds - before_seconds);
		}
		json_decref(before);
		before = now;
		before_seconds = now_seconds;
		(void)sleep(1);
	} while (status == SHUNTCTL_DONE);
	json_decref(before);
	return status;
}

int
shuntctl_stats(struct shuntctl *ctl)
{
	json_t *result;
	int status;

	if (ctl->is_watch)
		return watch(ctl);
	status = shuntctl_call(ctl, CTL_METHOD_STATS, NULL, &result);
	if (status != SHUNTCTL_DONE)
		return status;
	status = ctl->is_json ? shuntctl_write_json(result, false)
			      : print_stats(result, NULL, 0);
	json_decref(result);
	return status;
}
