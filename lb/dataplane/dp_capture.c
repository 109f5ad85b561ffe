/* SPDX-License-Identifier: BSD-3-Clause */

/* Alone in its file: librte_pdump is for who calls this. */
#include <rte_errno.h>
#include <rte_pdump.h>

#include "dp.h"
#include "dp_port_fit.h"

int
dp_capture_start(const struct dp_start_conf *conf, FILE *messages)
{
	int ret;

	if (!dp_port_wants_sharing(conf->extra) || rte_pdump_init() == 0)
		return 0;
	ret = -rte_errno;
	(void)fprintf(messages,
		"DPDK's captures cannot be had: %s; without --proc-type shuntd does without\n",
		rte_strerror(-ret));
	return ret;
}
