/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl_proto.h"
#include "lb_compiler.h"
#include "shuntctl.h"
#include "shuntctl_table.h"

/* Room for why a service is not announced; a longer reason is cut. */
#define ANNOUNCED_BYTES 256u
#define SINCE_BYTES     32u

static int
finish_table(struct shuntctl_table *table)
{
	if (!shuntctl_table_print(table, stdout))
		return shuntctl_no_memory();
	return shuntctl_finish_output();
}

static json_int_t
number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static json_int_t
sum_of(json_t *numbers)
{
	const char *key;
	json_t *value;
	json_int_t sum = 0;

	json_object_foreach(numbers, key, value) sum += json_integer_value(value);
	return sum;
}

static int
print_ports(const json_t *ports)
{
	static const struct shuntctl_column columns[] = {{"PORT", false}, {"DEVICE", false},
		{"DRIVER", false}, {"LINK", false}, {"MBIT/S", true}, {"KERNEL", false},
		{"LINK", false}, {"MAC", false}, {"MTU", true}, {"RX", true}, {"TX", true},
		{"SPREAD BY", false}, {"MISSED", true}};
	static const char *const keys[] = {CTL_KEY_NAME, CTL_KEY_DEVICE, CTL_KEY_DRIVER,
		CTL_KEY_LINK, CTL_KEY_SPEED_MBPS, CTL_KEY_KERNEL_INTERFACE, CTL_KEY_KERNEL_LINK,
		CTL_KEY_MAC, CTL_KEY_MTU, CTL_KEY_RX_QUEUES, CTL_KEY_TX_QUEUES,
		CTL_KEY_SPREAD_BY};
	struct shuntctl_table table;

	shuntctl_table_init(&table, columns, LB_N_ELEMENTS(columns));
	for (size_t i = 0; i < json_array_size(ports); i++) {
		const json_t *port = json_array_get(ports, i);

		for (size_t k = 0; k < LB_N_ELEMENTS(keys); k++)
			shuntctl_table_add_member(&table, port, keys[k]);
		shuntctl_table_add(&table, "%" JSON_INTEGER_FORMAT,
			sum_of(json_object_get(port, CTL_KEY_MISSED)));
	}
	return finish_table(&table);
}

static void
print_announce(const json_t *result)
{
	const json_t *announce = json_object_get(result, CTL_KEY_ANNOUNCE);

	if (json_is_object(announce))
		(void)printf("announced      %" JSON_INTEGER_FORMAT
			     " services, by the interface %s, which is %s\n",
			number_of(announce, CTL_KEY_ANNOUNCED),
			shuntctl_text_of(announce, CTL_KEY_INTERFACE),
			shuntctl_text_of(announce, CTL_KEY_LINK));
	else
		(void)printf("announced      off\n");
}

#define TIME_BYTES sizeof("YYYY-MM-DD hh:mm:ss")

/* A time of Unix' as people here tell it; "?" where there is none. */
static const char *
time_of(const json_t *seconds, char text[TIME_BYTES])
{
	const time_t time = (time_t)json_integer_value(seconds);
	struct tm parts;

	if (!json_is_integer(seconds) || localtime_r(&time, &parts) == NULL ||
		strftime(text, TIME_BYTES, "%F %T", &parts) == 0)
		return "?";
	return text;
}

/* What is not as it should be, a line each. */
static void
print_etcd_faults(const json_t *etcd)
{
	const json_t *refused = json_object_get(etcd, CTL_KEY_REFUSED_DOCUMENT);
	const json_t *copy = json_object_get(etcd, CTL_KEY_COPY);

	if (!json_is_null(json_object_get(etcd, CTL_KEY_ERROR)))
		(void)printf("               %s\n", shuntctl_text_of(etcd, CTL_KEY_ERROR));
	if (json_is_object(refused))
		(void)printf("               revision %" JSON_INTEGER_FORMAT
			     " is refused: %s\n",
			number_of(refused, CTL_KEY_REVISION),
			shuntctl_text_of(refused, CTL_KEY_ERROR));
	if (!json_is_null(json_object_get(copy, CTL_KEY_ERROR)))
		(void)printf("               the copy cannot be written: %s\n",
			shuntctl_text_of(copy, CTL_KEY_ERROR));
}

static void
print_etcd(const json_t *etcd)
{
	const json_t *copy = json_object_get(etcd, CTL_KEY_COPY);
	char text[TIME_BYTES];

	if (!json_is_object(etcd))
		return;
	(void)printf("etcd           revision %" JSON_INTEGER_FORMAT ", hash %s, ",
		number_of(etcd, CTL_KEY_REVISION), shuntctl_text_of(etcd, CTL_KEY_HASH));
	if (json_is_true(json_object_get(etcd, CTL_KEY_FROM_COPY)))
		(void)printf("from the copy of %s, etcd ",
			time_of(json_object_get(copy, CTL_KEY_SAVED), text));
	(void)printf("%s since %s\n", shuntctl_text_of(etcd, CTL_KEY_STATE),
		time_of(json_object_get(etcd, CTL_KEY_SINCE), text));
	print_etcd_faults(etcd);
}

static int
print_status(const json_t *result)
{
	const json_int_t seconds =
		(json_int_t)json_real_value(json_object_get(result, CTL_KEY_UPTIME_SECONDS));
	const json_t *rpc = json_object_get(result, CTL_KEY_RPC);
	const json_t *memory = json_object_get(result, CTL_KEY_MEMORY);

	(void)printf("shuntd %s, process %" JSON_INTEGER_FORMAT ", up %" JSON_INTEGER_FORMAT
		     "d %02" JSON_INTEGER_FORMAT ":%02" JSON_INTEGER_FORMAT
		     ":%02" JSON_INTEGER_FORMAT "\n",
		shuntctl_text_of(result, CTL_KEY_VERSION), number_of(result, CTL_KEY_PID),
		seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
	(void)printf("configuration  %s, generation %" JSON_INTEGER_FORMAT "\n",
		shuntctl_text_of(result, CTL_KEY_CONFIG),
		number_of(result, CTL_KEY_GENERATION));
	print_etcd(json_object_get(result, CTL_KEY_ETCD));
	(void)printf("services       %" JSON_INTEGER_FORMAT "\n",
		number_of(result, CTL_KEY_SERVICES));
	print_announce(result);
	(void)printf("backends       %" JSON_INTEGER_FORMAT
		     ", without a next hop %" JSON_INTEGER_FORMAT "\n",
		number_of(result, CTL_KEY_BACKENDS), number_of(result, CTL_KEY_UNREACHED));
	(void)printf("workers        %" JSON_INTEGER_FORMAT "\n",
		number_of(result, CTL_KEY_WORKERS));
	(void)printf("memory         bytes: %.1f a flow, %.0f a service, %.0f a backend, "
		     "%.1f a slot\n",
		json_real_value(json_object_get(memory, CTL_KEY_FLOW_BYTES)),
		json_real_value(json_object_get(memory, CTL_KEY_SERVICE_BYTES)),
		json_real_value(json_object_get(memory, CTL_KEY_BACKEND_BYTES)),
		json_real_value(json_object_get(memory, CTL_KEY_SLOT_BYTES)));
	(void)printf("clients        %" JSON_INTEGER_FORMAT " now, %" JSON_INTEGER_FORMAT
		     " so far\n\n",
		number_of(rpc, CTL_KEY_CLIENTS), number_of(rpc, CTL_KEY_ACCEPTED));
	return print_ports(json_object_get(result, CTL_KEY_PORTS));
}

int
shuntctl_status(struct shuntctl *ctl)
{
	return shuntctl_ask(ctl, CTL_METHOD_STATUS, NULL, print_status);
}

static void
add_table_cell(struct shuntctl_table *table, const json_t *service)
{
	const json_t *value = json_object_get(service, CTL_KEY_TABLE);
	const bool has_overload = json_object_get(value, CTL_KEY_OVERLOAD) != NULL;

	shuntctl_table_add(table, "%s:%" JSON_INTEGER_FORMAT "%s%s",
		shuntctl_text_of(value, CTL_KEY_ALGORITHM), number_of(value, CTL_KEY_SIZE),
		has_overload ? ":" : "",
		has_overload ? shuntctl_text_of(value, CTL_KEY_OVERLOAD) : "");
}

/* "yes", "no: WHY" or "-". */
static const char *
announced_of(const json_t *service, char *text, size_t n)
{
	const json_t *announced = json_object_get(service, CTL_KEY_ANNOUNCED);

	if (json_is_true(announced))
		return "yes";
	if (!json_is_false(announced))
		return "-";
	(void)snprintf(text, n, "no: %s", shuntctl_text_of(service, CTL_KEY_NOT_ANNOUNCED));
	return text;
}

static int
print_services(const json_t *result)
{
	static const struct shuntctl_column columns[] = {{"SERVICE", false}, {"ADDRESS", false},
		{"PROTOCOL", false}, {"PORT", true}, {"FORWARD", false}, {"TABLE", false},
		{"AFFINITY", false}, {"BACKENDS", true}, {"UP", true}, {"HEALTHY", true},
		{"READY", false}, {"ANNOUNCED", false}};
	const json_t *services = json_object_get(result, CTL_KEY_SERVICES);
	struct shuntctl_table table;

	shuntctl_table_init(&table, columns, LB_N_ELEMENTS(columns));
	for (size_t i = 0; i < json_array_size(services); i++) {
		const json_t *service = json_array_get(services, i);
		char text[ANNOUNCED_BYTES];

		shuntctl_table_add_member(&table, service, CTL_KEY_NAME);
		shuntctl_table_add_member(&table, service, CTL_KEY_ADDRESS);
		shuntctl_table_add_member(&table, service, CTL_KEY_PROTOCOL);
		shuntctl_table_add_member(&table, service, CTL_KEY_PORT);
		shuntctl_table_add_member(&table, service, CTL_KEY_FORWARD);
		add_table_cell(&table, service);
		shuntctl_table_add_member(&table, service, CTL_KEY_AFFINITY);
		shuntctl_table_add_member(&table, service, CTL_KEY_BACKENDS);
		shuntctl_table_add_member(&table, service, CTL_KEY_UP);
		shuntctl_table_add_member(&table, service, CTL_KEY_HEALTHY);
		shuntctl_table_add(&table, "%s",
			json_is_true(json_object_get(service, CTL_KEY_READY)) ? "yes" : "no");
		shuntctl_table_add(&table, "%s", announced_of(service, text, sizeof(text)));
	}
	return finish_table(&table);
}

int
shuntctl_service_list(struct shuntctl *ctl)
{
	return shuntctl_ask(ctl, CTL_METHOD_SERVICE_LIST, NULL, print_services);
}

/* How long, in the unit that says most in few digits. */
static const char *
since_of(const json_t *seconds, char *text, size_t n)
{
	const json_int_t s = (json_int_t)json_real_value(seconds);

	if (!json_is_real(seconds))
		return "-";
	if (s < 120)
		(void)snprintf(text, n, "%" JSON_INTEGER_FORMAT "s", s);
	else if (s < 7200)
		(void)snprintf(text, n, "%" JSON_INTEGER_FORMAT "m", s / 60);
	else if (s < 172800)
		(void)snprintf(text, n, "%" JSON_INTEGER_FORMAT "h", s / 3600);
	else
		(void)snprintf(text, n, "%" JSON_INTEGER_FORMAT "d", s / 86400);
	return text;
}

/* Health's word, and of who stays out for a while, for how long. */
static void
add_health_cells(struct shuntctl_table *table, const json_t *backend)
{
	const json_t *back = json_object_get(backend, CTL_KEY_HEALTH_BACK);
	char text[SINCE_BYTES];

	if (json_is_real(back))
		shuntctl_table_add(table, "%s, %s more",
			shuntctl_text_of(backend, CTL_KEY_HEALTH),
			since_of(back, text, sizeof(text)));
	else
		shuntctl_table_add_member(table, backend, CTL_KEY_HEALTH);
	shuntctl_table_add(table, "%s",
		since_of(json_object_get(backend, CTL_KEY_HEALTH_SECONDS), text, sizeof(text)));
	shuntctl_table_add_member(table, backend, CTL_KEY_HEALTH_ERROR);
}

/* The first column is what other commands take for a backend. */
static int
print_backends(const json_t *backends, const char *service)
{
	static const struct shuntctl_column columns[] = {{"BACKEND", false}, {"ADDRESS", false},
		{"WEIGHT", true}, {"STATE", false}, {"SINCE", true}, {"REACHED", false},
		{"SLOTS", true}, {"PACKETS", true}, {"BYTES", true}, {"FLOWS", true},
		{"HEALTH", false}, {"SINCE", true}, {"ERROR", false}};
	static const char *const keys[] = {CTL_KEY_SLOTS, CTL_KEY_PACKETS, CTL_KEY_BYTES,
		CTL_KEY_FLOWS};
	struct shuntctl_table table;
	char text[SINCE_BYTES];

	shuntctl_table_init(&table, columns, LB_N_ELEMENTS(columns));
	for (size_t i = 0; i < json_array_size(backends); i++) {
		const json_t *backend = json_array_get(backends, i);

		shuntctl_table_add(&table, "%s/%s",
			service != NULL ? service : shuntctl_text_of(backend, CTL_KEY_SERVICE),
			shuntctl_text_of(backend, CTL_KEY_NAME));
		shuntctl_table_add_member(&table, backend, CTL_KEY_ADDRESS);
		shuntctl_table_add_member(&table, backend, CTL_KEY_WEIGHT);
		shuntctl_table_add_member(&table, backend, CTL_KEY_STATE);
		shuntctl_table_add(&table, "%s",
			since_of(json_object_get(backend, CTL_KEY_STATE_SECONDS), text,
				sizeof(text)));
		shuntctl_table_add(&table, "%s",
			json_is_true(json_object_get(backend, CTL_KEY_REACHED)) ? "yes" : "no");
		for (size_t k = 0; k < LB_N_ELEMENTS(keys); k++)
			shuntctl_table_add_member(&table, backend, keys[k]);
		add_health_cells(&table, backend);
	}
	return finish_table(&table);
}

static void
print_quic(const json_t *quic)
{
	for (size_t i = 0; i < json_array_size(quic); i++) {
		const json_t *config = json_array_get(quic, i);

		(void)printf("%-12s config_id %" JSON_INTEGER_FORMAT
			     ", server ids of %" JSON_INTEGER_FORMAT
			     " bytes, nonces of %" JSON_INTEGER_FORMAT ", %s key\n",
			CTL_KEY_QUIC, number_of(config, CTL_KEY_CONFIG_ID),
			number_of(config, CTL_KEY_SERVER_ID_LENGTH),
			number_of(config, CTL_KEY_NONCE_LENGTH),
			json_is_string(json_object_get(config, CTL_KEY_CID_KEY)) ? "with a"
										 : "no");
	}
}

/* All its keys, as the file has them. health: an object, or null. */
static void
print_health(json_t *health)
{
	const char *before = "";
	const char *key;
	json_t *value;

	if (!json_is_object(health))
		return;
	(void)printf("%-12s ", CTL_KEY_HEALTH);
	json_object_foreach(health, key, value)
	{
		char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		(void)printf("%s%s %s", before, key,
			json_is_string(value) ? json_string_value(value)
			: text != NULL        ? text
					      : "-");
		before = ", ";
		free(text);
	}
	(void)fputc('\n', stdout);
}

static int
print_service(const json_t *result)
{
	static const char *const keys[] = {CTL_KEY_ADDRESS, CTL_KEY_PROTOCOL, CTL_KEY_PORT,
		CTL_KEY_AFFINITY, CTL_KEY_FORWARD, CTL_KEY_TUNNEL_PORT, CTL_KEY_VNI,
		CTL_KEY_ECHO, CTL_KEY_FRAGMENT, CTL_KEY_MSS_CLAMP, CTL_KEY_SLOW_START,
		CTL_KEY_MIN_HEALTHY, CTL_KEY_WHEN_ALL_DOWN, CTL_KEY_PACKETS, CTL_KEY_BYTES,
		CTL_KEY_FLOWS};
	const json_t *service = json_object_get(result, CTL_KEY_SERVICE);
	const json_t *table = json_object_get(service, CTL_KEY_TABLE);
	const json_t *carry = json_object_get(service, CTL_KEY_CARRY);
	char announced[ANNOUNCED_BYTES];

	(void)printf("%-12s %s\n", CTL_KEY_SERVICE, shuntctl_text_of(service, CTL_KEY_NAME));
	(void)printf("%-12s %s, %" JSON_INTEGER_FORMAT " slots\n", CTL_KEY_TABLE,
		shuntctl_text_of(table, CTL_KEY_ALGORITHM), number_of(table, CTL_KEY_SIZE));
	for (size_t i = 0; i < LB_N_ELEMENTS(keys); i++) {
		const json_t *value = json_object_get(service, keys[i]);

		if (json_is_integer(value))
			(void)printf("%-12s %" JSON_INTEGER_FORMAT "\n", keys[i],
				json_integer_value(value));
		else if (json_is_string(value))
			(void)printf("%-12s %s\n", keys[i], json_string_value(value));
	}
	for (size_t i = 0; i < json_array_size(carry); i++)
		(void)printf("%-12s %s\n", CTL_KEY_CARRY,
			json_string_value(json_array_get(carry, i)));
	print_quic(json_object_get(service, CTL_KEY_QUIC));
	print_health(json_object_get(service, CTL_KEY_HEALTH));
	(void)printf("%-12s %s\n", CTL_KEY_ANNOUNCED,
		announced_of(service, announced, sizeof(announced)));
	(void)fputc('\n', stdout);
	return print_backends(json_object_get(service, CTL_KEY_BACKENDS),
		shuntctl_text_of(service, CTL_KEY_NAME));
}

int
shuntctl_service_show(struct shuntctl *ctl)
{
	json_t *params = json_pack("{s:s}", CTL_KEY_NAME, ctl->args[0]);

	if (params == NULL)
		return shuntctl_no_utf8();
	return shuntctl_ask(ctl, CTL_METHOD_SERVICE_SHOW, params, print_service);
}

static int
print_backend_list(const json_t *result)
{
	return print_backends(json_object_get(result, CTL_KEY_BACKENDS), NULL);
}

int
shuntctl_backend_list(struct shuntctl *ctl)
{
	json_t *params = NULL;

	if (ctl->n_args > 0) {
		params = json_pack("{s:s}", CTL_KEY_SERVICE, ctl->args[0]);
		if (params == NULL)
			return shuntctl_no_utf8();
	}
	return shuntctl_ask(ctl, CTL_METHOD_BACKEND_LIST, params, print_backend_list);
}

static void
print_outer(const json_t *outer)
{
	const json_t *source_port = json_object_get(outer, CTL_KEY_UDP_SOURCE_PORT);

	(void)printf("outer     %s", shuntctl_text_of(outer, CTL_KEY_MODE));
	if (json_is_string(json_object_get(outer, CTL_KEY_DESTINATION)))
		(void)printf(" from %s to %s", shuntctl_text_of(outer, CTL_KEY_SOURCE),
			shuntctl_text_of(outer, CTL_KEY_DESTINATION));
	if (json_is_integer(source_port))
		(void)printf(", UDP port %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT,
			json_integer_value(source_port), number_of(outer, CTL_KEY_UDP_PORT));
	(void)printf(", %" JSON_INTEGER_FORMAT " bytes more\n",
		number_of(outer, CTL_KEY_OVERHEAD));
}

/* What a worker remembers of the flow. */
static void
print_flow(const json_t *result)
{
	const json_t *entry = json_object_get(result, CTL_KEY_ENTRY);

	if (!json_is_string(json_object_get(result, CTL_KEY_FLOW))) {
		(void)printf("flow      not known: the workers did not answer in time\n");
		return;
	}
	(void)printf("flow      %s", shuntctl_text_of(result, CTL_KEY_FLOW));
	if (json_is_object(entry)) {
		const bool is_confirmed =
			json_is_true(json_object_get(entry, CTL_KEY_CONFIRMED));

		(void)printf(", worker %" JSON_INTEGER_FORMAT " has ",
			number_of(entry, CTL_KEY_WORKER));
		if (json_is_string(json_object_get(entry, CTL_KEY_BACKEND)))
			(void)printf("%s/%s", shuntctl_text_of(entry, CTL_KEY_SERVICE),
				shuntctl_text_of(entry, CTL_KEY_BACKEND));
		else
			(void)printf("a backend that is gone");
		(void)printf(", idle for %.1f s%s",
			json_real_value(json_object_get(entry, CTL_KEY_IDLE_SECONDS)),
			is_confirmed ? "" : ", unconfirmed");
	}
	(void)fputc('\n', stdout);
}

static void
print_backend(const json_t *result)
{
	const json_t *next_hop = json_object_get(result, CTL_KEY_NEXT_HOP);

	(void)printf("backend   %s (%s)\n", shuntctl_text_of(result, CTL_KEY_BACKEND),
		shuntctl_text_of(result, CTL_KEY_BACKEND_ADDRESS));
	(void)printf("next hop  %s, port %s\n",
		json_is_string(next_hop) ? json_string_value(next_hop) : "none",
		shuntctl_text_of(result, CTL_KEY_PORT));
}

static int
print_explanation(const json_t *result)
{
	const json_t *outer = json_object_get(result, CTL_KEY_OUTER);

	(void)printf("verdict   %s", shuntctl_text_of(result, CTL_KEY_VERDICT));
	if (json_is_string(json_object_get(result, CTL_KEY_REASON)))
		(void)printf(" (%s)", shuntctl_text_of(result, CTL_KEY_REASON));
	(void)printf("\nservice   %s\n", shuntctl_text_of(result, CTL_KEY_SERVICE));
	if (json_is_string(json_object_get(result, CTL_KEY_HASH)))
		(void)printf("hash      %s\n", shuntctl_text_of(result, CTL_KEY_HASH));
	if (json_is_integer(json_object_get(result, CTL_KEY_SLOT)))
		(void)printf("slot      %" JSON_INTEGER_FORMAT "\n",
			number_of(result, CTL_KEY_SLOT));
	if (json_is_string(json_object_get(result, CTL_KEY_SERVICE)))
		print_flow(result);
	if (json_is_string(json_object_get(result, CTL_KEY_BACKEND)))
		print_backend(result);
	if (json_is_object(outer))
		print_outer(outer);
	return shuntctl_finish_output();
}

int
shuntctl_explain(struct shuntctl *ctl)
{
	json_t *params = json_pack("{s:s, s:s, s:s}", CTL_KEY_PROTOCOL, ctl->args[0],
		CTL_KEY_CLIENT, ctl->args[1], CTL_KEY_DESTINATION, ctl->args[2]);

	if (params == NULL)
		return shuntctl_no_utf8();
	return shuntctl_ask(ctl, CTL_METHOD_EXPLAIN, params, print_explanation);
}

static int
print_text(const json_t *result)
{
	(void)fputs(shuntctl_text_of(result, CTL_KEY_TEXT), stdout);
	return shuntctl_finish_output();
}

int
shuntctl_config_show(struct shuntctl *ctl)
{
	return shuntctl_ask(ctl, CTL_METHOD_CONFIG_SHOW, NULL, print_text);
}
