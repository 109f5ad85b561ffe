/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * shuntctl: asks a running shuntd, and changes it, over its Unix socket.
 */
#include "shuntctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_nearest.h"
#include "ctl_client.h"
#include "ctl_proto.h"
#include "lb_compiler.h"

static const char help[] =
	"Usage: shuntctl [OPTION]... COMMAND\n"
	"Ask a running shuntd, and change it.\n"
	"\n"
	"  status                     what runs: version, configuration, ports\n"
	"  stats [--watch]            packets, drops by reason, and each backend's share\n"
	"  top                        services and backends on a terminal, once a second,\n"
	"                             sorted and filtered by keys, which h lists\n"
	"  service list               all services\n"
	"  service show NAME          one, with its backends\n"
	"  service add NAME --address A[/LENGTH] --protocol tcp|udp|any --port N|any\n"
	"              [--forward MODE] [--table ALGORITHM[:SIZE[:OVERLOAD]]]\n"
	"              [--affinity A] [--tunnel-port N] [--vni N] [--carry TUNNEL,...]\n"
	"              [--echo reply|forward|drop] [--fragment inner|outer|drop]\n"
	"              [--mss-clamp auto|N]\n"
	"              [--quic CONFIG_ID:SERVER_ID_LENGTH:NONCE_LENGTH,...]\n"
	"              [--health type=TYPE[,KEY=VALUE]...] [--slow-start TIME]\n"
	"              [--min-healthy N] [--when-all-down keep|drop]\n"
	"  service remove NAME        and all of its backends\n"
	"  backend list [SERVICE]     backends, with their slots and figures\n"
	"  backend add SERVICE/NAME ADDRESS [--weight N] [--state up|drain|down]\n"
	"              [--mac M] [--zone Z] [--quic-id HEX,...]\n"
	"  backend remove|drain|up|down SERVICE/NAME...\n"
	"  backend weight SERVICE/NAME N\n"
	"  explain tcp|udp CLIENT:PORT ADDRESS:PORT\n"
	"                             where such a packet goes, and why\n"
	"  trace [--count N] [--service S] [--dropped] [--host A] [--net A/LENGTH]\n"
	"              [--port N] [--protocol tcp|udp|icmp|N] [--sample N] [--seconds N]\n"
	"                             the next packets, and why each went where it went\n"
	"  flows list [--count N] [FILTER]...\n"
	"                             flows that the workers know\n"
	"  flows count [--by service|backend|client|worker] [FILTER]...\n"
	"                             how many there are\n"
	"  flows find tcp|udp CLIENT:PORT ADDRESS:PORT\n"
	"                             one of them\n"
	"  flows clear [--all] [FILTER]...\n"
	"                             have them forgotten\n"
	"  plan FILE                  what a reload of FILE would change and move\n"
	"  reload [FILE]              checked first; all of it or nothing\n"
	"  config show                what runs, as a file that shuntd would start from\n"
	"  config save                the same into shuntd's own file, without comments\n"
	"  config push FILE [--revision N]\n"
	"                             check FILE and write it to etcd, where shuntd has\n"
	"                             its configuration; unless another did since\n"
	"\n"
	"A FILTER of flows is one of --service S, --backend SERVICE/NAME, --host A,\n"
	"--client A[/LENGTH], --net A/LENGTH, --port N, --protocol tcp|udp|N,\n"
	"--confirmed, --unconfirmed and --idle SECONDS; all that are given hold.\n"
	"\n"
	"  -s, --socket PATH          of the daemon (default: SHUNT_SOCKET, or\n"
	"                             " CTL_SOCKET_DEFAULT ")\n"
	"  -t, --timeout SECONDS      to wait for the daemon, 0 for ever (default: 30;\n"
	"                             120 with plan, reload and other changes)\n"
	"  -j, --json                 one JSON object instead of a table\n"
	"  -w, --watch                with stats: again every second\n"
	"  -S, --save                 with a change: save the configuration afterwards\n"
	"  -h, --help                 this text\n"
	"  -V, --version              the version\n"
	"\n"
	"Exit status: 0 done; 1 the work failed; 2 bad usage or bad configuration.\n";

#define MS_PER_S      1000u
#define TIMEOUT_S_MAX 1000000u

/* Behind the short options' letters. */
#define FIRST_VALUE (UCHAR_MAX + 1)

static const struct option long_options[] = {
	{"socket", required_argument, NULL, 's'},
	{"timeout", required_argument, NULL, 't'},
	{"json", no_argument, NULL, 'j'},
	{"watch", no_argument, NULL, 'w'},
	{"save", no_argument, NULL, 'S'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{"address", required_argument, NULL, FIRST_VALUE + SHUNTCTL_ADDRESS},
	{"protocol", required_argument, NULL, FIRST_VALUE + SHUNTCTL_PROTOCOL},
	{"port", required_argument, NULL, FIRST_VALUE + SHUNTCTL_PORT},
	{"table", required_argument, NULL, FIRST_VALUE + SHUNTCTL_TABLE},
	{"affinity", required_argument, NULL, FIRST_VALUE + SHUNTCTL_AFFINITY},
	{"forward", required_argument, NULL, FIRST_VALUE + SHUNTCTL_FORWARD},
	{"tunnel-port", required_argument, NULL, FIRST_VALUE + SHUNTCTL_TUNNEL_PORT},
	{"vni", required_argument, NULL, FIRST_VALUE + SHUNTCTL_VNI},
	{"carry", required_argument, NULL, FIRST_VALUE + SHUNTCTL_CARRY},
	{"echo", required_argument, NULL, FIRST_VALUE + SHUNTCTL_ECHO},
	{"fragment", required_argument, NULL, FIRST_VALUE + SHUNTCTL_FRAGMENT},
	{"mss-clamp", required_argument, NULL, FIRST_VALUE + SHUNTCTL_MSS_CLAMP},
	{"quic", required_argument, NULL, FIRST_VALUE + SHUNTCTL_QUIC},
	{"health", required_argument, NULL, FIRST_VALUE + SHUNTCTL_HEALTH},
	{"slow-start", required_argument, NULL, FIRST_VALUE + SHUNTCTL_SLOW_START},
	{"min-healthy", required_argument, NULL, FIRST_VALUE + SHUNTCTL_MIN_HEALTHY},
	{"when-all-down", required_argument, NULL, FIRST_VALUE + SHUNTCTL_WHEN_ALL_DOWN},
	{"weight", required_argument, NULL, FIRST_VALUE + SHUNTCTL_WEIGHT},
	{"state", required_argument, NULL, FIRST_VALUE + SHUNTCTL_STATE},
	{"mac", required_argument, NULL, FIRST_VALUE + SHUNTCTL_MAC},
	{"zone", required_argument, NULL, FIRST_VALUE + SHUNTCTL_ZONE},
	{"quic-id", required_argument, NULL, FIRST_VALUE + SHUNTCTL_QUIC_ID},
	{"revision", required_argument, NULL, FIRST_VALUE + SHUNTCTL_REVISION},
	{"service", required_argument, NULL, FIRST_VALUE + SHUNTCTL_SERVICE},
	{"host", required_argument, NULL, FIRST_VALUE + SHUNTCTL_HOST},
	{"net", required_argument, NULL, FIRST_VALUE + SHUNTCTL_NET},
	{"count", required_argument, NULL, FIRST_VALUE + SHUNTCTL_COUNT},
	{"sample", required_argument, NULL, FIRST_VALUE + SHUNTCTL_SAMPLE},
	{"seconds", required_argument, NULL, FIRST_VALUE + SHUNTCTL_SECONDS},
	{"backend", required_argument, NULL, FIRST_VALUE + SHUNTCTL_BACKEND},
	{"client", required_argument, NULL, FIRST_VALUE + SHUNTCTL_CLIENT},
	{"idle", required_argument, NULL, FIRST_VALUE + SHUNTCTL_IDLE},
	{"by", required_argument, NULL, FIRST_VALUE + SHUNTCTL_BY},
	{"dropped", no_argument, NULL, FIRST_VALUE + SHUNTCTL_DROPPED},
	{"confirmed", no_argument, NULL, FIRST_VALUE + SHUNTCTL_CONFIRMED},
	{"unconfirmed", no_argument, NULL, FIRST_VALUE + SHUNTCTL_UNCONFIRMED},
	{"all", no_argument, NULL, FIRST_VALUE + SHUNTCTL_ALL},
	{NULL, 0, NULL, 0},
};

#define BIT(value) (UINT64_C(1) << SHUNTCTL_##value)
#define SERVICE_OPTIONS                                                                        \
	(BIT(ADDRESS) | BIT(PROTOCOL) | BIT(PORT) | BIT(TABLE) | BIT(AFFINITY) |               \
		BIT(FORWARD) | BIT(TUNNEL_PORT) | BIT(VNI) | BIT(CARRY) | BIT(ECHO) |          \
		BIT(FRAGMENT) | BIT(MSS_CLAMP) | BIT(QUIC) | BIT(HEALTH) | BIT(SLOW_START) |   \
		BIT(MIN_HEALTHY) | BIT(WHEN_ALL_DOWN))
#define BACKEND_OPTIONS (BIT(WEIGHT) | BIT(STATE) | BIT(MAC) | BIT(ZONE) | BIT(QUIC_ID))
#define TRACE_OPTIONS                                                                          \
	(BIT(SERVICE) | BIT(HOST) | BIT(NET) | BIT(PORT) | BIT(PROTOCOL) | BIT(COUNT) |        \
		BIT(SAMPLE) | BIT(SECONDS) | BIT(DROPPED))
#define FLOWS_OPTIONS                                                                          \
	(BIT(SERVICE) | BIT(BACKEND) | BIT(HOST) | BIT(NET) | BIT(CLIENT) | BIT(PORT) |        \
		BIT(PROTOCOL) | BIT(CONFIRMED) | BIT(UNCONFIRMED) | BIT(IDLE))

enum { TAKES_WATCH = 1, TAKES_SAVE = 2 };

struct command {
	const char *words[2]; /* the second is NULL where there is one */
	const char *usage;    /* of its arguments */
	int (*run)(struct shuntctl *ctl);
	int n_min;
	int n_max;
	uint64_t values; /* options it takes */
	unsigned int flags;
};

static const struct command commands[] = {
	{{"status", NULL}, "", shuntctl_status, 0, 0, 0, 0},
	{{"stats", NULL}, "", shuntctl_stats, 0, 0, 0, TAKES_WATCH},
	{{"top", NULL}, "", shuntctl_top, 0, 0, 0, 0},
	{{"service", "list"}, "", shuntctl_service_list, 0, 0, 0, 0},
	{{"service", "show"}, " NAME", shuntctl_service_show, 1, 1, 0, 0},
	{{"service", "add"}, " NAME", shuntctl_service_add, 1, 1, SERVICE_OPTIONS, TAKES_SAVE},
	{{"service", "remove"}, " NAME", shuntctl_service_remove, 1, 1, 0, TAKES_SAVE},
	{{"backend", "list"}, " [SERVICE]", shuntctl_backend_list, 0, 1, 0, 0},
	{{"backend", "add"}, " SERVICE/NAME ADDRESS", shuntctl_backend_add, 2, 2,
		BACKEND_OPTIONS, TAKES_SAVE},
	{{"backend", "remove"}, " SERVICE/NAME...", shuntctl_backend_remove, 1, INT_MAX, 0,
		TAKES_SAVE},
	{{"backend", "drain"}, " SERVICE/NAME...", shuntctl_backend_drain, 1, INT_MAX, 0,
		TAKES_SAVE},
	{{"backend", "up"}, " SERVICE/NAME...", shuntctl_backend_up, 1, INT_MAX, 0, TAKES_SAVE},
	{{"backend", "down"}, " SERVICE/NAME...", shuntctl_backend_down, 1, INT_MAX, 0,
		TAKES_SAVE},
	{{"backend", "weight"}, " SERVICE/NAME N", shuntctl_backend_weight, 2, 2, 0,
		TAKES_SAVE},
	{{"explain", NULL}, " tcp|udp CLIENT:PORT ADDRESS:PORT", shuntctl_explain, 3, 3, 0, 0},
	{{"trace", NULL}, "", shuntctl_trace, 0, 0, TRACE_OPTIONS, 0},
	{{"flows", "list"}, "", shuntctl_flows_list, 0, 0, FLOWS_OPTIONS | BIT(COUNT), 0},
	{{"flows", "count"}, "", shuntctl_flows_count, 0, 0, FLOWS_OPTIONS | BIT(BY), 0},
	{{"flows", "find"}, " tcp|udp CLIENT:PORT ADDRESS:PORT", shuntctl_flows_find, 3, 3, 0,
		0},
	{{"flows", "clear"}, "", shuntctl_flows_clear, 0, 0, FLOWS_OPTIONS | BIT(ALL), 0},
	{{"plan", NULL}, " FILE", shuntctl_plan, 1, 1, 0, 0},
	{{"reload", NULL}, " [FILE]", shuntctl_reload, 0, 1, 0, 0},
	{{"config", "show"}, "", shuntctl_config_show, 0, 0, 0, 0},
	{{"config", "save"}, "", shuntctl_config_save, 0, 0, 0, 0},
	{{"config", "push"}, " FILE", shuntctl_config_push, 1, 1, BIT(REVISION), 0},
};

/* group: the word before, or NULL. The nearest is named where a third of it differs at most. */
static int
tell_unknown(const char *group, const char *word)
{
	const char *before = group != NULL ? group : "";
	const char *blank = group != NULL ? " " : "";
	struct cfg_nearest nearest;

	cfg_nearest_init(&nearest, word, strlen(word));
	for (size_t i = 0; i < LB_N_ELEMENTS(commands); i++) {
		if (group == NULL)
			cfg_nearest_offer(&nearest, commands[i].words[0]);
		else if (strcmp(commands[i].words[0], group) == 0)
			cfg_nearest_offer(&nearest, commands[i].words[1]);
	}
	if (nearest.best == NULL || nearest.distance * 3 > strlen(nearest.best))
		return shuntctl_usage_error("no command is called '%s%s%s'", before, blank,
			word);
	return shuntctl_usage_error("no command is called '%s%s%s'; did you mean '%s%s%s'?",
		before, blank, word, before, blank, nearest.best);
}

/* The command that the words name; NULL: it is told why not. */
static const struct command *
find_command(char *const words[], int n)
{
	bool is_group = false;

	if (n == 0) {
		(void)shuntctl_usage_error("which command?");
		return NULL;
	}
	for (size_t i = 0; i < LB_N_ELEMENTS(commands); i++) {
		const struct command *command = &commands[i];

		if (strcmp(command->words[0], words[0]) != 0)
			continue;
		if (command->words[1] == NULL ||
			(n > 1 && strcmp(command->words[1], words[1]) == 0))
			return command;
		is_group = true;
	}
	if (!is_group)
		(void)tell_unknown(NULL, words[0]);
	else if (n > 1)
		(void)tell_unknown(words[0], words[1]);
	else
		(void)shuntctl_usage_error("which command of '%s'?", words[0]);
	return NULL;
}

static const char *
name_value(unsigned int value)
{
	size_t i = 0;

	while (long_options[i].val != FIRST_VALUE + (int)value)
		i++;
	return long_options[i].name;
}

static int
check_usage(const struct command *command, const struct shuntctl *ctl)
{
	const char *second = command->words[1] != NULL ? command->words[1] : "";
	const char *blank = command->words[1] != NULL ? " " : "";
	const char *first = command->words[0];

	if (ctl->n_args < command->n_min || ctl->n_args > command->n_max)
		return shuntctl_usage_error("expected: shuntctl %s%s%s%s", first, blank, second,
			command->usage);
	for (unsigned int i = 0; i < SHUNTCTL_N_VALUES; i++)
		if (ctl->values[i] != NULL && (command->values >> i & 1) == 0)
			return shuntctl_usage_error("--%s is not for '%s%s%s'", name_value(i),
				first, blank, second);
	if (ctl->is_watch && (command->flags & TAKES_WATCH) == 0)
		return shuntctl_usage_error("--watch is not for '%s%s%s'", first, blank,
			second);
	if (ctl->is_save && (command->flags & TAKES_SAVE) == 0)
		return shuntctl_usage_error("--save is not for '%s%s%s'", first, blank, second);
	return SHUNTCTL_DONE;
}

static int
run_command(struct shuntctl *ctl, char *const words[], int n)
{
	const struct command *command = find_command(words, n);
	int status = SHUNTCTL_BAD_USAGE;
	int n_words;

	if (command == NULL)
		return SHUNTCTL_BAD_USAGE;
	n_words = command->words[1] != NULL ? 2 : 1;
	ctl->args = words + n_words;
	ctl->n_args = n - n_words;
	status = check_usage(command, ctl);
	if (status == SHUNTCTL_DONE)
		status = command->run(ctl);
	ctl_client_close(ctl->client);
	return status;
}

/* False: it is told what is wrong. */
static bool
read_timeout(const char *text, struct shuntctl *ctl)
{
	const size_t n_digits = strspn(text, "0123456789");
	const unsigned long seconds = strtoul(text, NULL, 10);

	if (n_digits == 0 || text[n_digits] != '\0' || seconds > TIMEOUT_S_MAX) {
		(void)shuntctl_usage_error("--timeout: expected seconds, 0 to %u, and found "
					   "'%s'",
			TIMEOUT_S_MAX, text);
		return false;
	}
	ctl->has_timeout = true;
	ctl->timeout_ms = seconds == 0 ? CTL_CLIENT_FOR_EVER : (unsigned int)seconds * MS_PER_S;
	return true;
}

int
main(int argc, char *argv[])
{
	const char *from_environment = getenv("SHUNT_SOCKET");
	struct shuntctl ctl = {.socket = CTL_SOCKET_DEFAULT, .file = -1};
	int option;

	if (from_environment != NULL && from_environment[0] != '\0')
		ctl.socket = from_environment;
	while ((option = getopt_long(argc, argv, "s:t:jwShV", long_options, NULL)) != -1) {
		switch (option) {
		case 's':
			ctl.socket = optarg;
			break;
		case 't':
			if (!read_timeout(optarg, &ctl))
				return SHUNTCTL_BAD_USAGE;
			break;
		case 'j':
			ctl.is_json = true;
			break;
		case 'w':
			ctl.is_watch = true;
			break;
		case 'S':
			ctl.is_save = true;
			break;
		case 'h':
			(void)fputs(help, stdout);
			return shuntctl_finish_output();
		case 'V':
			(void)puts("shuntctl " SHUNT_VERSION);
			return shuntctl_finish_output();
		case '?': /* getopt_long() has said what is wrong */
			(void)fputs("Try 'shuntctl --help'.\n", stderr);
			return SHUNTCTL_BAD_USAGE;
		default:
			option -= FIRST_VALUE;
			ctl.values[option] = option < (int)SHUNTCTL_FIRST_FLAG ? optarg : "";
			break;
		}
	}
	return run_command(&ctl, argv + optind, argc - optind);
}
