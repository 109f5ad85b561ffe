/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * shunt-replay: a capture in, a capture and a report out, through the pipeline of shuntd.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lb_limits.h"
#include "options.h"
#include "replay_run.h"

#define LOOPS_MAX 1000000000u

/* Without a letter of its own. */
enum { OPTION_PLOT = 256 };

static const char help[] =
	"Usage: shunt-replay --config FILE [OPTION]... IN.pcap|-\n"
	"Replay a capture through the packet path, and report where each packet went.\n"
	"\n"
	"  -c, --config FILE         the configuration (YAML)\n"
	"  -e, --events FILE         changes of the backend set on the way (YAML)\n"
	"  -w, --write OUT.pcap      write what is forwarded; - is standard output, and\n"
	"                            the report then goes to standard error\n"
	"  -p, --port NAME           leave by this port (default: the first)\n"
	"  -n, --workers N           spread the flows over N workers, 1..127 (default: 1)\n"
	"  -l, --loop N              replay it N times, time going on (default: 1)\n"
	"  -r, --report text|json    how the report is written (default: text)\n"
	"  -j, --json                the same as --report json\n"
	"  -d, --decisions FILE      write each packet's decision, a line of JSON\n"
	"  -x, --expect FILE         hold the run against expectations (YAML)\n"
	"  -o, --expect-output FILE  compare what is forwarded with a capture\n"
	"      --plot DIR            draw packets of each backend over time there, as SVG\n"
	"  -h, --help                this text\n"
	"  -V, --version             the version\n"
	"\n"
	"The capture is pcap or pcapng; time is its own. Privileges are not needed.\n"
	"Exit status: 0 done; 1 the work failed; 2 bad usage or bad configuration;\n"
	"3 an expectation did not hold.\n";

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'},
	{"events", required_argument, NULL, 'e'},
	{"write", required_argument, NULL, 'w'},
	{"port", required_argument, NULL, 'p'},
	{"workers", required_argument, NULL, 'n'},
	{"loop", required_argument, NULL, 'l'},
	{"report", required_argument, NULL, 'r'},
	{"json", no_argument, NULL, 'j'},
	{"decisions", required_argument, NULL, 'd'},
	{"expect", required_argument, NULL, 'x'},
	{"expect-output", required_argument, NULL, 'o'},
	{"plot", required_argument, NULL, OPTION_PLOT},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static int
parse_report(const char *text, bool *is_json)
{
	*is_json = strcmp(text, "json") == 0;
	if (*is_json || strcmp(text, "text") == 0)
		return 0;
	(void)fprintf(stderr, "shunt-replay: --report is text or json, not '%s'\n", text);
	return -EINVAL;
}

/* One option. Returns 0, or -EINVAL when it has said what is wrong. */
static int
take_option(int option, const char *value, struct replay_options *out)
{
	const struct options_range workers = {1, LB_WORKERS_MAX};
	const struct options_range loops = {1, LOOPS_MAX};
	int ret = 0;

	switch (option) {
	case 'c':
		out->config = value;
		break;
	case 'e':
		out->events = value;
		break;
	case 'w':
		out->write = value;
		break;
	case 'p':
		out->port = value;
		break;
	case 'n':
		ret = options_take_number("workers", value, workers, &out->n_workers);
		break;
	case 'l':
		ret = options_take_number("loop", value, loops, &out->n_loops);
		break;
	case 'r':
		ret = parse_report(value, &out->is_json);
		break;
	case 'j':
		out->is_json = true;
		break;
	case 'd':
		out->decisions = value;
		break;
	case 'x':
		out->expect = value;
		break;
	case 'o':
		out->expect_output = value;
		break;
	case OPTION_PLOT:
		out->plot = value;
		break;
	default: /* getopt_long() has said what is wrong */
		ret = -EINVAL;
	}
	return ret;
}

static int
check_usage(int argc, char *const argv[], struct replay_options *options)
{
	const char *wrong = NULL;

	if (optind == argc)
		wrong = "which capture? Name a file, or - for standard input";
	else if (optind + 1 < argc)
		wrong = "one capture at a time";
	else if (options->config == NULL)
		wrong = "which configuration? Name it with --config FILE";
	else if (options->n_loops > 1 && strcmp(argv[optind], "-") == 0)
		wrong = "standard input can be read once: --loop needs a file";
	else if (options->expect_output != NULL && strcmp(options->expect_output, "-") == 0 &&
		 strcmp(argv[optind], "-") == 0)
		wrong = "standard input can be read once: by the capture, or by "
			"--expect-output";
	if (wrong != NULL) {
		(void)fprintf(stderr, "shunt-replay: %s\n", wrong);
		return -EINVAL;
	}
	options->input = argv[optind];
	return 0;
}

static int
usage_error(void)
{
	(void)fprintf(stderr, "Try 'shunt-replay --help'.\n");
	return REPLAY_BAD_USAGE;
}

int
main(int argc, char *argv[])
{
	struct replay_options options = {.n_workers = 1, .n_loops = 1};
	int option;

	/* A reader that goes away is an error of writing, in words, not a silent end. */
	(void)signal(SIGPIPE, SIG_IGN);
	/* So is a file that may not grow. */
	(void)signal(SIGXFSZ, SIG_IGN);

	while ((option = getopt_long(argc, argv, "c:e:w:p:n:l:r:jd:x:o:hV", long_options,
			NULL)) != -1) {
		if (option == 'h')
			return fputs(help, stdout) < 0 || fflush(stdout) != 0;
		if (option == 'V')
			return printf("shunt-replay %s\n", SHUNT_VERSION) < 0 ||
			       fflush(stdout) != 0;
		if (take_option(option, optarg, &options) != 0)
			return usage_error();
	}
	if (check_usage(argc, argv, &options) != 0)
		return usage_error();

	return (int)replay_run(argv[0], &options);
}
