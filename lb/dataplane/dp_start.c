/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_errno.h>

/* MiB for packet buffers, in ordinary pages that the kernel gives as they are touched. */
#define EAL_MEMORY_MIB "64"

/*
 * "0@(0,2,3)": one lcore that may run wherever this process may. Without it the EAL would
 * pin the calling thread to CPU 0, which may be busy, or not ours.
 */
static int
format_lcores(char *out, size_t n)
{
	cpu_set_t cpus;
	size_t used = 0;
	const char *separator = "";

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return -errno;
	used += (size_t)snprintf(out, n, "0@(");
	for (int cpu = 0; cpu < CPU_SETSIZE && used < n; cpu++) {
		if (!CPU_ISSET(cpu, &cpus))
			continue;
		used += (size_t)snprintf(out + used, n - used, "%s%d", separator, cpu);
		separator = ",";
	}
	if (used < n)
		used += (size_t)snprintf(out + used, n - used, ")");
	return used < n ? 0 : -E2BIG;
}

int
dp_start_unprivileged(const char *program)
{
	static char lcores[CPU_SETSIZE * 5];
	static char name[64];
	static char no_huge[] = "--no-huge", memory[] = "-m", memory_mib[] = EAL_MEMORY_MIB,
		    no_shconf[] = "--no-shconf", no_pci[] = "--no-pci",
		    no_telemetry[] = "--no-telemetry", lcores_option[] = "--lcores",
		    level_option[] = "--log-level", level[] = "*:error";
	/* The EAL keeps pointers into these, and may reorder them. */
	static char *argv[] = {name, no_huge, memory, memory_mib, no_shconf, no_pci,
		no_telemetry, lcores_option, lcores, level_option, level, NULL};
	const int ret = format_lcores(lcores, sizeof(lcores));

	if (ret != 0)
		return ret;
	(void)snprintf(name, sizeof(name), "%s", program);
	if (rte_eal_init((int)LB_N_ELEMENTS(argv) - 1, argv) < 0)
		return -rte_errno;
	return 0;
}
