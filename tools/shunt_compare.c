/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * shunt-compare: algorithms of consistent hashing, side by side.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "compare_options.h"
#include "compare_plot.h"
#include "compare_replicas.h"
#include "compare_report.h"
#include "compare_run.h"
#include "compare_teach.h"

static enum compare_status
fail_write(int ret)
{
	(void)fprintf(stderr, "shunt-compare: the results cannot be written: %s\n",
		strerror(-ret));
	return COMPARE_FAILED;
}

static enum compare_status
show(const struct compare_options *options, const struct compare_results *results)
{
	const int ret =
		options->is_json ? compare_report_json(results) : compare_report_text(results);

	if (ret != 0)
		return fail_write(ret);
	if (options->plot != NULL && compare_plot(options->plot, results) != 0)
		return COMPARE_FAILED;
	return COMPARE_DONE;
}

static enum compare_status
run(const struct compare_options *options)
{
	struct compare_results results;
	enum compare_status status;
	int ret;

	if (options->wants_teach) {
		ret = compare_teach();
		return ret != 0 ? fail_write(ret) : COMPARE_DONE;
	}
	if (options->n_replicas > 0) {
		ret = compare_replicas(options);
		if (ret == -EIO)
			return fail_write(ret);
		return ret == 0         ? COMPARE_DONE
		       : ret == -EINVAL ? COMPARE_BAD_USAGE
					: COMPARE_FAILED;
	}
	if (options->plot != NULL && compare_plot_prepare(options->plot) != 0)
		return COMPARE_FAILED;
	ret = options->config != NULL ? compare_run_config(options, &results)
				      : compare_run(options, &results);
	if (ret != 0)
		return ret == -EINVAL ? COMPARE_BAD_USAGE : COMPARE_FAILED;
	status = show(options, &results);
	compare_results_fini(&results);
	return status;
}

int
main(int argc, char *argv[])
{
	struct compare_options options;

	/* A reader that goes away is an error of writing, in words, not a silent end. */
	(void)signal(SIGPIPE, SIG_IGN);

	if (compare_options_read(argc, argv, &options) != 0) {
		(void)fprintf(stderr, "Try 'shunt-compare --help'.\n");
		return COMPARE_BAD_USAGE;
	}
	if (options.wants_help)
		return fputs(compare_help, stdout) < 0 || fflush(stdout) != 0;
	if (options.wants_version)
		return printf("shunt-compare %s\n", SHUNT_VERSION) < 0 || fflush(stdout) != 0;
	return (int)run(&options);
}
