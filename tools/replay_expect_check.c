/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_nearest.h"
#include "replay_expect_items.h"

/* Room for a number, or for conditions in words. */
#define TEXT_BYTES 128u

/* A number of the report. */
struct measure {
	bool is_real;
	uint64_t whole;
	double value;
};

/* Where a path of names left the report. */
struct miss {
	const char *rest; /* what of the path is left there */
	json_t *level;    /* what is there */
};

static struct measure
measure_whole(uint64_t whole)
{
	return (struct measure){.whole = whole, .value = (double)whole};
}

static struct measure
measure_real(double value)
{
	return (struct measure){.is_real = true, .value = value};
}

/* Below 0, 0 or above 0, as the measure is below, at or above the number. */
static int
compare(const struct measure *measure, const struct expect_number *number)
{
	if (!measure->is_real && number->is_whole)
		return (measure->whole > number->whole) - (measure->whole < number->whole);
	return (measure->value > number->value) - (measure->value < number->value);
}

static bool
is_within(const struct measure *measure, const struct expect_bounds *bounds)
{
	if (bounds->is.is_given && compare(measure, &bounds->is) != 0)
		return false;
	if (bounds->min.is_given && compare(measure, &bounds->min) < 0)
		return false;
	return !bounds->max.is_given || compare(measure, &bounds->max) <= 0;
}

static const char *
format_measure(const struct measure *measure, char out[static TEXT_BYTES])
{
	if (measure->is_real)
		(void)snprintf(out, TEXT_BYTES, "%.9g", measure->value);
	else
		(void)snprintf(out, TEXT_BYTES, "%" PRIu64, measure->whole);
	return out;
}

static void
print_number(FILE *to, const char *words, const struct expect_number *number)
{
	if (number->is_whole)
		(void)fprintf(to, " %s %" PRIu64, words, number->whole);
	else
		(void)fprintf(to, " %s %.15g", words, number->value);
}

/* "FILE:LINE: expected SUBJECT at least 1 and at most 2" */
static void
begin_message(FILE *to, const struct replay_expect *expect, const struct expect_item *item,
	const char *subject, const char *name)
{
	const struct expect_bounds *bounds = &item->bounds;

	(void)fprintf(to, "%s:%" PRIu32 ": expected %s%s", expect->file, item->line, subject,
		name);
	if (bounds->is.is_given)
		print_number(to, "to be", &bounds->is);
	if (bounds->min.is_given)
		print_number(to, "at least", &bounds->min);
	if (bounds->max.is_given)
		print_number(to, bounds->min.is_given ? "and at most" : "at most",
			&bounds->max);
}

static void
end_nearest(FILE *to, const struct cfg_nearest *nearest)
{
	if (nearest->best == NULL)
		(void)fprintf(to, ", nor any other\n");
	else
		(void)fprintf(to, "; the nearest is '%s'\n", nearest->best);
}

/* What a list's item goes by. */
static const char *
get_item_name(json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "name"));

	return name != NULL ? name : json_string_value(json_object_get(item, "title"));
}

/* What of the path follows a name; NULL where it does not begin with it. */
static const char *
skip_name(const char *path, const char *name)
{
	const size_t n = strlen(name);

	if (strncmp(path, name, n) != 0)
		return NULL;
	if (path[n] == '\0')
		return path + n;
	return path[n] == '.' && path[n + 1] != '\0' ? path + n + 1 : NULL;
}

static json_t *find_number(json_t *level, const char *path, struct miss *miss);

static json_t *
try_name(const char *name, json_t *value, const char *path, struct miss *miss)
{
	const char *rest = name == NULL ? NULL : skip_name(path, name);

	return rest == NULL ? NULL : find_number(value, rest, miss);
}

/*
 * The number at the end of a path. Names may hold dots, so each name that fits is tried. What
 * is missed is what lies the furthest along the path. As deep as the report, six levels.
 */
static json_t *
find_number(json_t *level, const char *path, struct miss *miss)
{
	json_t *found = NULL;
	json_t *value;
	const char *key;
	size_t i;

	if (path[0] == '\0' && json_is_number(level))
		return level;
	if (miss->rest == NULL || path > miss->rest) {
		miss->rest = path;
		miss->level = level;
	}
	if (json_is_object(level)) {
		json_object_foreach(level, key, value)
		{
			found = found != NULL ? found : try_name(key, value, path, miss);
		}
	} else if (json_is_array(level)) {
		json_array_foreach(level, i, value)
		{
			found = found != NULL
					? found
					: try_name(get_item_name(value), value, path, miss);
		}
	}
	return found;
}

/* The names at a level, offered to be the one that was meant. */
static void
offer_names(json_t *level, struct cfg_nearest *nearest)
{
	json_t *value;
	const char *key;
	size_t i;

	if (json_is_object(level)) {
		json_object_foreach(level, key, value)
		{
			cfg_nearest_offer(nearest, key);
		}
	} else {
		json_array_foreach(level, i, value)
		{
			cfg_nearest_offer(nearest, get_item_name(value));
		}
	}
}

static void
tell_miss(FILE *to, const char *path, const struct miss *miss)
{
	const size_t n_wanted = strcspn(miss->rest, ".");
	const int n_before = miss->rest == path ? 0 : (int)(miss->rest - path) - 1;
	struct cfg_nearest nearest;

	if (miss->rest[0] == '\0') {
		(void)fprintf(to, ", but %s is no number\n", path);
		return;
	}
	if (!json_is_object(miss->level) && !json_is_array(miss->level)) {
		(void)fprintf(to, ", but there is nothing in %.*s\n", n_before, path);
		return;
	}
	cfg_nearest_init(&nearest, miss->rest, n_wanted);
	offer_names(miss->level, &nearest);
	(void)fprintf(to, ", but the report has no '%.*s'", (int)n_wanted, miss->rest);
	if (n_before > 0)
		(void)fprintf(to, " in %.*s", n_before, path);
	end_nearest(to, &nearest);
}

static bool
check_value(const struct replay_expect *expect, const struct expect_item *item, json_t *report,
	FILE *messages)
{
	struct miss miss = {0};
	json_t *number = report == NULL ? NULL : find_number(report, item->name, &miss);
	struct measure measure = {0};
	char text[TEXT_BYTES];

	if (json_is_integer(number))
		measure = measure_whole((uint64_t)json_integer_value(number));
	else if (number != NULL)
		measure = measure_real(json_real_value(number));
	if (number != NULL && is_within(&measure, &item->bounds))
		return true;

	begin_message(messages, expect, item, "", item->name);
	if (report == NULL)
		(void)fprintf(messages, ", but there is not enough memory to look\n");
	else if (number == NULL)
		tell_miss(messages, item->name, &miss);
	else
		(void)fprintf(messages, ", found %s\n", format_measure(&measure, text));
	return false;
}

static bool
check_drops(const struct replay_expect *expect, const struct expect_item *item,
	const struct replay_report *report, FILE *messages)
{
	const struct measure measure = measure_whole(report->verdicts[item->reason]);
	char text[TEXT_BYTES];

	if (is_within(&measure, &item->bounds))
		return true;
	begin_message(messages, expect, item, "drops.", lb_verdict_reason(item->reason));
	(void)fprintf(messages, ", found %s\n", format_measure(&measure, text));
	return false;
}

static const struct replay_report_service *
find_service(const struct replay_report *report, struct cfg_nearest *nearest)
{
	for (size_t i = 0; i < report->n_services; i++) {
		const char *name = report->services[i].name;

		if (strlen(name) == nearest->n_wanted &&
			memcmp(name, nearest->wanted, nearest->n_wanted) == 0)
			return &report->services[i];
		cfg_nearest_offer(nearest, name);
	}
	return NULL;
}

static const struct replay_report_backend *
find_backend(const struct replay_report_service *service, struct cfg_nearest *nearest)
{
	for (size_t i = 0; i < service->n_backends; i++) {
		if (strcmp(service->backends[i].name, nearest->wanted) == 0)
			return &service->backends[i];
		cfg_nearest_offer(nearest, service->backends[i].name);
	}
	return NULL;
}

static bool
check_share(const struct replay_expect *expect, const struct expect_item *item,
	const struct replay_report *report, FILE *messages)
{
	static const char subject[] = "the share of ";
	const char *name = strchr(item->name, '/') + 1;
	const int n_service = (int)(name - 1 - item->name);
	const struct replay_report_service *service;
	const struct replay_report_backend *backend = NULL;
	struct cfg_nearest nearest;
	struct measure measure = {0};

	cfg_nearest_init(&nearest, item->name, (size_t)n_service);
	service = find_service(report, &nearest);
	if (service != NULL) {
		cfg_nearest_init(&nearest, name, strlen(name));
		backend = find_backend(service, &nearest);
	}
	if (backend != NULL && service->flows != 0) {
		measure = measure_real((double)backend->flows / (double)service->flows);
		if (is_within(&measure, &item->bounds))
			return true;
	}

	begin_message(messages, expect, item, subject, item->name);
	if (service == NULL || backend == NULL) {
		if (service == NULL)
			(void)fprintf(messages, ", but the report has no service '%.*s'",
				n_service, item->name);
		else
			(void)fprintf(messages, ", but service '%s' has no backend '%s'",
				service->name, name);
		end_nearest(messages, &nearest);
	} else if (service->flows == 0) {
		(void)fprintf(messages, ", but service '%s' had no new flows\n", service->name);
	} else {
		(void)fprintf(messages, ", found %.9g (%" PRIu64 " of %" PRIu64 " flows)\n",
			measure.value, backend->flows, service->flows);
	}
	return false;
}

static bool
check_packet(const struct replay_expect *expect, const struct expect_item *item,
	const struct replay_report *report, FILE *messages)
{
	const uint64_t n = replay_report_received(report);
	char number[TEXT_BYTES];

	if (item->has_come && !item->is_wrong)
		return true;

	(void)snprintf(number, sizeof(number), "%" PRIu64, item->packet);
	begin_message(messages, expect, item, "packet ", number);
	if (!item->has_come)
		(void)fprintf(messages, ", but the capture has %" PRIu64 " packet%s\n", n,
			n == 1 ? "" : "s");
	else if (item->found == NULL)
		(void)fprintf(messages, " otherwise; there was not enough memory to keep it\n");
	else
		(void)fprintf(messages, "%s\n", item->found);
	return false;
}

static bool
needs_json(const struct replay_expect *expect)
{
	for (size_t i = 0; i < expect->n_items; i++) {
		if (expect->items[i].kind == EXPECT_VALUE)
			return true;
	}
	return false;
}

size_t
replay_expect_finish(struct replay_expect *expect, const struct replay_report *report,
	FILE *messages)
{
	json_t *json = needs_json(expect) ? replay_report_json(report) : NULL;
	size_t n_wrong = 0;

	for (size_t i = 0; i < expect->n_items; i++) {
		const struct expect_item *item = &expect->items[i];
		bool holds;

		if (item->kind == EXPECT_VALUE)
			holds = check_value(expect, item, json, messages);
		else if (item->kind == EXPECT_DROPS)
			holds = check_drops(expect, item, report, messages);
		else if (item->kind == EXPECT_SHARE)
			holds = check_share(expect, item, report, messages);
		else
			holds = check_packet(expect, item, report, messages);
		n_wrong += !holds;
	}
	json_decref(json);
	return n_wrong;
}
