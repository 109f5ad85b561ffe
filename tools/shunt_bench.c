/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * shunt-bench: what a packet costs a worker, through the packet path of shuntd, and where.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "bench_memory.h"
#include "bench_options.h"
#include "bench_plane.h"
#include "bench_report.h"
#include "bench_run.h"

static enum bench_status
fail_write(int ret)
{
	(void)fprintf(stderr, "shunt-bench: the results cannot be written: %s\n",
		strerror(-ret));
	return BENCH_FAILED;
}

static enum bench_status
measure(const char *program, const struct bench_options *options, struct bench_report *report)
{
	if (bench_start(program, options->n_workers) != 0)
		return BENCH_FAILED;
	for (size_t i = 0; i < bench_case_count(options); i++) {
		const struct bench_case c = bench_case_at(options, i);
		struct bench_result result;
		int ret = bench_run(&c, &result);

		if (ret != 0)
			return BENCH_FAILED;
		ret = bench_report_add(report, &c, &result);
		if (ret != 0)
			return fail_write(ret);
	}
	return BENCH_DONE;
}

static enum bench_status
run(const char *program, const struct bench_options *options)
{
	struct bench_report *report;
	enum bench_status status = BENCH_DONE;
	int ret = bench_report_create(options->is_json, &report);

	if (ret != 0)
		return fail_write(ret);
	if (options->wants_memory) {
		const struct bench_memory memory = bench_memory_count(options);

		ret = bench_report_add_memory(report, options, &memory);
	} else {
		status = measure(program, options, report);
	}
	if (status == BENCH_DONE && ret == 0)
		ret = bench_report_end(report);
	bench_report_destroy(report);
	return ret != 0 ? fail_write(ret) : status;
}

int
main(int argc, char *argv[])
{
	struct bench_options options;

	/* A reader that goes away is an error of writing, in words, not a silent end. */
	(void)signal(SIGPIPE, SIG_IGN);

	if (bench_options_read(argc, argv, &options) != 0) {
		(void)fprintf(stderr, "Try 'shunt-bench --help'.\n");
		return BENCH_BAD_USAGE;
	}
	if (options.wants_help)
		return fputs(bench_help, stdout) < 0 || fflush(stdout) != 0;
	if (options.wants_version)
		return printf("shunt-bench %s\n", SHUNT_VERSION) < 0 || fflush(stdout) != 0;
	return (int)run(argv[0], &options);
}
