/* SPDX-License-Identifier: BSD-3-Clause */
#include "decap_show.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "decap_program.h"

/* Names of the counters: GROUP.NAME, or NAME alone; the report is in this order. */
static const struct counter_name {
	const char *group;
	const char *name;
	enum decap_counter counter;
} counter_names[] = {
	{NULL, "received", DECAP_RECEIVED},
	{"decapsulated", "ipip_4in4", DECAP_IPIP_4IN4},
	{"decapsulated", "ipip_6in4", DECAP_IPIP_6IN4},
	{"decapsulated", "ipip_4in6", DECAP_IPIP_4IN6},
	{"decapsulated", "ipip_6in6", DECAP_IPIP_6IN6},
	{"decapsulated", "gre_4in4", DECAP_GRE_4IN4},
	{"decapsulated", "gre_6in4", DECAP_GRE_6IN4},
	{"decapsulated", "gre_4in6", DECAP_GRE_4IN6},
	{"decapsulated", "gre_6in6", DECAP_GRE_6IN6},
	{"decapsulated", "gue_4in4", DECAP_GUE_4IN4},
	{"decapsulated", "gue_6in4", DECAP_GUE_6IN4},
	{"decapsulated", "gue_4in6", DECAP_GUE_4IN6},
	{"decapsulated", "gue_6in6", DECAP_GUE_6IN6},
	{"dropped", "ecn", DECAP_DROPPED_ECN},
	{"dropped", "failed", DECAP_DROPPED_FAILED},
	{"passed", "other", DECAP_PASSED_OTHER},
	{"passed", "outer", DECAP_PASSED_OUTER},
	{"passed", "service", DECAP_PASSED_SERVICE},
	{"passed", "fragment", DECAP_PASSED_FRAGMENT},
	{"passed", "length", DECAP_PASSED_LENGTH},
	{"passed", "checksum", DECAP_PASSED_CHECKSUM},
	{"passed", "gre", DECAP_PASSED_GRE},
	{"passed", "gue", DECAP_PASSED_GUE},
	{"passed", "inner", DECAP_PASSED_INNER},
	{NULL, "ecn_marked", DECAP_ECN_MARKED},
	{NULL, "decapsulated_bytes", DECAP_BYTES},
};
#define N_NAMES (sizeof(counter_names) / sizeof(counter_names[0]))

static_assert(N_NAMES == DECAP_N_COUNTERS, "every counter has a name");

static const char *
mode_name(const struct decap_found *found)
{
	if ((found->flags & XDP_FLAGS_HW_MODE) != 0)
		return "offloaded";
	return (found->flags & XDP_FLAGS_SKB_MODE) != 0 ? "generic" : "native";
}

static int
show_text(const char *interface, const struct decap_found *found, const uint64_t counters[])
{
	int ret = printf("%s: shunt-decap, %s mode\n", interface, mode_name(found));

	for (size_t i = 0; i < N_NAMES && ret >= 0; i++) {
		const struct counter_name *row = &counter_names[i];
		char name[40];

		(void)snprintf(name, sizeof(name), "%s%s%s",
			row->group != NULL ? row->group : "", row->group != NULL ? "." : "",
			row->name);
		ret = printf("%-24s %20" PRIu64 "\n", name, counters[row->counter]);
	}
	return ret < 0 ? -EIO : 0;
}

/* The object that a counter goes into; created when its first comes. */
static json_t *
group_of(json_t *report, const struct counter_name *row)
{
	json_t *found;

	if (row->group == NULL)
		return report;
	found = json_object_get(report, row->group);
	if (found != NULL)
		return found;
	return json_object_set_new(report, row->group, json_object()) == 0
		       ? json_object_get(report, row->group)
		       : NULL;
}

static int
show_json(const char *interface, const struct decap_found *found, const uint64_t counters[])
{
	json_t *report = json_pack("{s:i, s:s, s:s, s:I}", "schema", 1, "interface", interface,
		"mode", mode_name(found), "program", (json_int_t)found->id);
	int ret = report != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < N_NAMES && ret == 0; i++) {
		const struct counter_name *row = &counter_names[i];
		json_t *value = json_integer((json_int_t)counters[row->counter]);

		if (json_object_set_new(group_of(report, row), row->name, value) != 0)
			ret = -ENOMEM;
	}
	if (ret == 0 && (json_dumpf(report, stdout, 0) != 0 || putchar('\n') == EOF))
		ret = -EIO;
	json_decref(report);
	return ret;
}

int
decap_show(const char *interface, bool is_json)
{
	uint64_t counters[DECAP_N_COUNTERS];
	struct decap_found found;
	int ret = decap_read_counters(interface, &found, counters);

	if (ret != 0)
		return ret;
	ret = is_json ? show_json(interface, &found, counters)
		      : show_text(interface, &found, counters);
	if (ret == 0 && fflush(stdout) != 0)
		ret = -EIO;
	if (ret != 0)
		(void)fprintf(stderr, "shunt-decap: cannot write the counters: %s\n",
			strerror(-ret));
	return ret;
}
