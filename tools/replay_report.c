/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_report.h"

#include <errno.h>
#include <math.h>

/* Nine digits: a nanosecond of a second, and no noise of binary fractions. */
#define REAL_DIGITS 9

/* Backends times phases, of which each figure is told. */
#define PHASE_FIGURES_MAX 1000000u

/* A member or an item that could not be made for want of memory fails the whole. */
static int
add(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

static json_t *
make_integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

/* JSON has no words for infinity; a clock that did not move gives no rate. */
static json_t *
make_real(double value)
{
	return json_real(isfinite(value) ? value : 0.0);
}

static json_t *
finish(json_t *value, int failed)
{
	if (failed == 0)
		return value;
	json_decref(value);
	return NULL;
}

uint64_t
replay_report_dropped(const struct replay_report *report)
{
	uint64_t n = 0;

	for (size_t i = LB_FIRST_DROP; i < LB_N_VERDICTS; i++)
		n += report->verdicts[i];
	return n;
}

uint64_t
replay_report_received(const struct replay_report *report)
{
	return report->verdicts[LB_FORWARD] + report->verdicts[LB_REPLY] +
	       report->verdicts[LB_TO_KERNEL] + replay_report_dropped(report);
}

double
replay_report_mpps(const struct replay_report *report)
{
	if (!(report->seconds > 0.0))
		return 0.0;
	return (double)replay_report_received(report) / report->seconds / 1e6;
}

static json_t *
make_packets(const struct replay_report *report)
{
	json_t *packets = json_object();
	int failed = 0;

	failed |= add(packets, "received", make_integer(replay_report_received(report)));
	failed |= add(packets, "forwarded", make_integer(report->verdicts[LB_FORWARD]));
	failed |= add(packets, "replied", make_integer(report->verdicts[LB_REPLY]));
	failed |= add(packets, "to_kernel", make_integer(report->verdicts[LB_TO_KERNEL]));
	failed |= add(packets, "dropped", make_integer(replay_report_dropped(report)));
	return finish(packets, failed);
}

static json_t *
make_drops(const struct replay_report *report)
{
	json_t *drops = json_object();
	int failed = 0;

	for (int i = LB_FIRST_DROP; i < LB_N_VERDICTS; i++)
		failed |= add(drops, lb_verdict_reason((enum lb_verdict)i),
			make_integer(report->verdicts[i]));
	return finish(drops, failed);
}

static json_t *
make_backend(const struct replay_report_backend *backend)
{
	json_t *object = json_object();
	int failed = 0;

	failed |= add(object, "name", json_string(backend->name));
	failed |= add(object, "packets", make_integer(backend->packets));
	failed |= add(object, "bytes", make_integer(backend->bytes));
	failed |= add(object, "flows", make_integer(backend->flows));
	failed |= add(object, "slots", make_integer(backend->slots));
	failed |= add(object, "state", json_string(backend->state));
	return finish(object, failed);
}

static json_t *
make_backends(const struct replay_report_service *service)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < service->n_backends; i++)
		failed |= json_array_append_new(list, make_backend(&service->backends[i]));
	return finish(list, failed);
}

static json_t *
make_table(const struct replay_report_service *service)
{
	json_t *table = json_object();
	int failed = 0;

	failed |= add(table, "algorithm", json_string(service->algorithm));
	failed |= add(table, "size", make_integer(service->n_slots));
	return finish(table, failed);
}

static json_t *
make_service(const struct replay_report_service *service)
{
	json_t *object = json_object();
	int failed = 0;

	failed |= add(object, "name", json_string(service->name));
	failed |= add(object, "packets", make_integer(service->packets));
	failed |= add(object, "bytes", make_integer(service->bytes));
	failed |= add(object, "flows", make_integer(service->flows));
	failed |= add(object, "table", make_table(service));
	failed |= add(object, "backends", make_backends(service));
	return finish(object, failed);
}

static json_t *
make_services(const struct replay_report *report)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < report->n_services; i++)
		failed |= json_array_append_new(list, make_service(&report->services[i]));
	return finish(list, failed);
}

static json_t *
make_flows(const struct replay_report *report)
{
	json_t *flows = json_object();
	int failed = 0;

	failed |= add(flows, "total", make_integer(report->flows));
	failed |= add(flows, "moved", make_integer(report->moved));
	failed |= add(flows, "broken", make_integer(report->broken));
	return finish(flows, failed);
}

/* Beside `flows`, whose three numbers are what the interface says they are. */
static json_t *
make_audit(const struct replay_report *report)
{
	json_t *audit = json_object();
	const int failed = add(audit, "unwatched", make_integer(report->unwatched));

	return finish(audit, failed);
}

static json_t *
make_phase_service(const struct replay_report_service *service, size_t phase)
{
	json_t *object = json_object();
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < service->n_backends; i++) {
		const struct replay_report_backend *backend = &service->backends[i];
		json_t *item = json_object();

		failed |= add(item, "name", json_string(backend->name));
		failed |= add(item, "packets", make_integer(backend->phase_packets[phase]));
		failed |= add(item, "slots", make_integer(backend->phase_slots[phase]));
		failed |= json_array_append_new(list, item);
	}
	failed |= add(object, "name", json_string(service->name));
	failed |= add(object, "backends", list);
	return finish(object, failed);
}

/* A tree of figures takes a hundred times their room: there are only so many. */
static bool
has_phase_figures(const struct replay_report *report)
{
	size_t n_backends = 0;

	for (size_t i = 0; i < report->n_services; i++)
		n_backends += report->services[i].n_backends;
	return n_backends * report->n_phases <= PHASE_FIGURES_MAX;
}

static json_t *
make_phase(const struct replay_report *report, size_t phase)
{
	json_t *object = json_object();
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < report->n_services && has_phase_figures(report); i++)
		failed |= json_array_append_new(list,
			make_phase_service(&report->services[i], phase));
	failed |= add(object, "title", json_string(report->phases[phase].title));
	failed |= add(object, "first_packet", make_integer(report->phases[phase].first_packet));
	failed |= add(object, "services", list);
	return finish(object, failed);
}

static json_t *
make_phases(const struct replay_report *report)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < report->n_phases; i++)
		failed |= json_array_append_new(list, make_phase(report, i));
	return finish(list, failed);
}

static json_t *
make_rate(const struct replay_report *report)
{
	json_t *rate = json_object();
	int failed = 0;

	failed |= add(rate, "seconds", make_real(report->seconds));
	failed |= add(rate, "mpps", make_real(replay_report_mpps(report)));
	return finish(rate, failed);
}

json_t *
replay_report_json(const struct replay_report *report)
{
	json_t *root = json_object();
	int failed = 0;

	failed |= add(root, "schema", make_integer(1));
	failed |= add(root, "packets", make_packets(report));
	failed |= add(root, "drops", make_drops(report));
	failed |= add(root, "services", make_services(report));
	failed |= add(root, "flows", make_flows(report));
	failed |= add(root, "audit", make_audit(report));
	failed |= add(root, "phases", make_phases(report));
	failed |= add(root, "rate", make_rate(report));
	return finish(root, failed);
}

int
replay_report_write_json(const struct replay_report *report, FILE *to)
{
	json_t *root = replay_report_json(report);
	int failed;

	if (root == NULL)
		return -ENOMEM;

	failed = json_dumpf(root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS));
	json_decref(root);
	if (failed != 0 || fputc('\n', to) == EOF || fflush(to) != 0)
		return -EIO;
	return 0;
}
