/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * shuntd: the daemon. Arguments, start and stop; what it does is in control and dataplane.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cfg_reader.h"
#include "ctl_apply.h"
#include "ctl_daemon.h"
#include "ctl_etcd.h"
#include "ctl_limits.h"
#include "ctl_log.h"
#include "ctl_notify.h"

/* Exit statuses, and that there is none yet. */
enum { DONE = 0, FAILED = 1, BAD_USAGE = 2, NOT_OVER };

static const char help[] =
	"Usage: shuntd --config FILE|URL [--local FILE] [--check] [--eal \"ARGUMENTS\"]\n"
	"              [--foreground]\n"
	"Balance the services of a configuration over their backends.\n"
	"\n"
	"  -c, --config FILE     the configuration (YAML), or where it is in etcd:\n"
	"                        etcd://HOST[:PORT][,HOST[:PORT]...]/KEY, or etcds://...\n"
	"                        by TLS; 'man shuntd' has users and certificates\n"
	"  -l, --local FILE      what is this balancer's own: its dataplane, control and\n"
	"                        announce are FILE's, whatever a configuration says\n"
	"  -C, --check           tell what is wrong with it, and start nothing\n"
	"  -e, --eal \"…\"         more arguments for DPDK's EAL, split at blanks\n"
	"  -f, --foreground      nothing: it never becomes a daemon; this is for scripts\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n"
	"\n"
	"SIGHUP reads the configuration anew. SIGTERM stops, after withdraw_before_stop\n"
	"where something is announced; a second one stops at once. Exit status: 0 done;\n"
	"1 the work failed; 2 bad usage or bad configuration.\n";

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'},
	{"local", required_argument, NULL, 'l'},
	{"check", no_argument, NULL, 'C'},
	{"eal", required_argument, NULL, 'e'},
	{"foreground", no_argument, NULL, 'f'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

struct options {
	const char *program;
	const char *config;
	const char *local; /* NULL: config has it all */
	const char *eal;
	bool is_check;
	struct ctl_save_mark mark; /* of config, before it was read */
	struct cfg_reader *reader; /* has read config */
	struct ctl_etcd *etcd;     /* where config is; NULL: it is a file */
};

/* What a part of the start tells goes to the log once the part is over, and has come to ret.
 * NULL: there was no memory for that; then it goes there as it comes. */
struct messages {
	FILE *to;
	char *text;
	size_t n_text;
};

static FILE *
open_messages(struct messages *messages)
{
	*messages = (struct messages){0};
	messages->to = open_memstream(&messages->text, &messages->n_text);
	return messages->to != NULL ? messages->to : stderr;
}

/* @return ret. */
static int
close_messages(struct messages *messages, int ret)
{
	if (messages->to != NULL && fclose(messages->to) == 0)
		ctl_log_lines(ret == 0 ? CTL_LOG_WARNING : CTL_LOG_ERROR, messages->text);
	free(messages->text);
	return ret;
}

static int
read_config(const struct options *options, struct cfg_model *model)
{
	struct messages messages;
	FILE *to = open_messages(&messages);

	if (options->etcd == NULL)
		return close_messages(&messages,
			cfg_reader_read(options->reader, options->config, to, model));
	return close_messages(&messages, ctl_etcd_read_first(options->etcd, options->reader,
						 !options->is_check, to, model));
}

/* What is this balancer's own, and where the rest is. */
static int
open_config(struct options *options)
{
	struct messages messages;
	FILE *to = open_messages(&messages);
	int ret = 0;

	if (options->local != NULL)
		ret = cfg_reader_read_own(options->reader, options->local, to);
	if (ret == 0 && ctl_etcd_is(options->config))
		ret = ctl_etcd_create(options->config, to, &options->etcd);
	else
		options->mark = ctl_save_look(options->config);
	return close_messages(&messages, ret);
}

static int
start_dpdk(const struct dp_start_conf *conf)
{
	struct messages messages;
	FILE *to = open_messages(&messages);
	int ret = dp_start(conf, to);

	if (ret == 0)
		ret = dp_capture_start(conf, to);
	return close_messages(&messages, ret);
}

static int
open_ports(struct dp *dp, const struct dp_port_conf *ports, size_t n)
{
	struct messages messages;
	FILE *to = open_messages(&messages);

	return close_messages(&messages, dp_open_ports(dp, ports, n, to));
}

/* With the plane running: control until it is told to stop. */
static int
run(const struct options *options, struct cfg_model *model, struct dp *dp)
{
	const struct cfg_dataplane *plane = &model->dataplane;
	const uint64_t sleep_ns = plane->idle == CFG_IDLE_ADAPTIVE ? plane->idle_sleep_ns : 0;
	const struct ctl_daemon_conf conf = {.config_path = options->config,
		.local_path = options->local,
		.mark = options->mark,
		.etcd = options->etcd,
		.reader = options->reader,
		.dp = dp};
	struct ctl_daemon *daemon;
	int status = FAILED;

	if (ctl_daemon_create(&conf, model, &daemon) != 0)
		return FAILED;
	if (dp_run(dp, sleep_ns) != 0) {
		ctl_log(CTL_LOG_ERROR, "the workers do not start");
	} else {
		ctl_log(CTL_LOG_INFO, "ready");
		ctl_notify_ready();
		if (ctl_daemon_run(daemon) == 0)
			status = DONE;
		ctl_log(CTL_LOG_INFO, "stopping");
	}
	dp_stop(dp);
	ctl_daemon_destroy(daemon);
	return status;
}

static int
start(const struct options *options, struct cfg_model *model)
{
	struct dp_port_conf ports[LB_PORTS_MAX];
	const struct cfg_dataplane *plane = &model->dataplane;
	struct dp_start_conf start_conf = {.program = options->program,
		.ports = ports,
		.n_ports = plane->n_ports,
		.n_workers = plane->workers != 0 ? plane->workers : dp_workers_auto(),
		.n_waiting = plane->fragment_waiting,
		.extra = options->eal,
		.instance = model->control_socket};
	struct dp_conf conf;
	uint64_t secret[2];
	struct dp *dp;
	int status = FAILED;

	for (size_t i = 0; i < plane->n_ports; i++)
		ports[i] = (struct dp_port_conf){.name = plane->ports[i].name,
			.device = plane->ports[i].device,
			.mtu = plane->ports[i].mtu,
			.wants_twin = plane->kernel == CFG_KERNEL_TAP};
	ctl_log(CTL_LOG_INFO, "starting, version " SHUNT_VERSION);
	if (ctl_limits_raise(model, start_conf.n_workers) != 0 ||
		ctl_daemon_try_socket(model->control_socket) != 0)
		return FAILED;
	if (start_dpdk(&start_conf) != 0 || dp_draw_secret(secret) != 0)
		return FAILED;
	conf = ctl_apply_dp_conf(model, start_conf.n_workers, secret);
	if (dp_create(&conf, dp_now_ns(), &dp) != 0) {
		ctl_log(CTL_LOG_ERROR,
			"there is not enough memory for the workers; "
			"dataplane.flow_entries and fragments are for each of them");
		return FAILED;
	}
	if (open_ports(dp, ports, plane->n_ports) == 0)
		status = run(options, model, dp);
	dp_stop(dp);
	dp_destroy(dp);
	return status;
}

/* Here, so that no thread of the EAL's takes them: they are the control thread's to read. */
static void
block_signals(void)
{
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
}

static int
usage_error(const char *what)
{
	(void)fprintf(stderr, "shuntd: %sTry 'shuntd --help'.\n", what);
	return BAD_USAGE;
}

static int
print_result(const char *text)
{
	return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? FAILED : DONE;
}

/* NOT_OVER, or what to exit with. */
static int
read_options(int argc, char *argv[], struct options *out)
{
	int option;

	while ((option = getopt_long(argc, argv, "c:l:Ce:fhV", long_options, NULL)) != -1) {
		switch (option) {
		case 'c':
			out->config = optarg;
			break;
		case 'l':
			out->local = optarg;
			break;
		case 'C':
			out->is_check = true;
			break;
		case 'e':
			out->eal = optarg;
			break;
		case 'f':
			break;
		case 'h':
			return print_result(help);
		case 'V':
			return print_result("shuntd " SHUNT_VERSION "\n");
		default: /* getopt_long() has said what is wrong */
			return usage_error("");
		}
	}
	if (optind < argc)
		return usage_error("it takes options alone. ");
	if (out->config == NULL)
		return usage_error("which configuration? Name it with --config FILE. ");
	return NOT_OVER;
}

static int
load_and_start(const struct options *options)
{
	struct cfg_model model;
	const int ret = read_config(options, &model);
	int status = DONE;

	/* An etcd that cannot be reached may be there at the next try, and what is wrong there
	 * may be mended; a file stays wrong, and so does what is only checked. */
	if (ret != 0)
		return options->etcd != NULL && !(options->is_check && ret == -EINVAL)
			       ? FAILED
			       : BAD_USAGE;
	if (!options->is_check)
		status = start(options, &model);
	cfg_model_fini(&model);
	return status;
}

int
main(int argc, char *argv[])
{
	struct options options = {.program = argv[0]};
	int status;

	(void)signal(SIGPIPE, SIG_IGN);
	block_signals();
	status = read_options(argc, argv, &options);
	if (status != NOT_OVER)
		return status;
	options.reader = cfg_reader_create(true);
	if (options.reader == NULL) {
		ctl_log(CTL_LOG_ERROR, "there is not enough memory");
		return FAILED;
	}
	status = open_config(&options) == 0 ? load_and_start(&options) : BAD_USAGE;
	ctl_etcd_destroy(options.etcd);
	cfg_reader_destroy(options.reader);
	return status;
}
