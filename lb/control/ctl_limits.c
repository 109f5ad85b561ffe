/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "ctl_log.h"
#include "ctl_rpc.h"

/* Measured with a port that opens none itself, 23, and some for clients and what they ask for.
 */
#define BASE_FILES 32u
/* A port's and its twin's: interfaces, netlink, and of each queue a socket, an event, memory.
 */
#define PORT_FILES  16u
#define QUEUE_FILES 8u
/* Those that read metrics, and DPDK's telemetry. */
#define OTHER_CLIENTS_MAX 64u
/* The interface that services are announced by, and netlink. */
#define ANNOUNCE_FILES 3u

int
ctl_limits_raise(const struct cfg_model *model, unsigned int n_workers)
{
	const uint64_t n_ports = model->dataplane.n_ports;
	const uint64_t n_wanted = BASE_FILES + CTL_RPC_CLIENTS_MAX + OTHER_CLIENTS_MAX +
				  (model->announce.interface != NULL ? ANNOUNCE_FILES : 0) +
				  n_ports * (PORT_FILES + (uint64_t)n_workers * QUEUE_FILES);
	struct rlimit limit;
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= n_wanted)
		return 0;
	raised = limit;
	raised.rlim_cur = limit.rlim_max < n_wanted ? limit.rlim_max : n_wanted;
	if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
		limit = raised;
	if (limit.rlim_cur >= n_wanted)
		return 0;
	ctl_log(limit.rlim_cur < BASE_FILES ? CTL_LOG_ERROR : CTL_LOG_WARNING,
		"the limit of open files is %" PRIu64 ", and %" PRIu64
		" %s; raise it with 'ulimit -n', or LimitNOFILE= of the service",
		(uint64_t)limit.rlim_cur, limit.rlim_cur < BASE_FILES ? BASE_FILES : n_wanted,
		limit.rlim_cur < BASE_FILES ? "are needed at least"
					    : "may be needed with all clients");
	return limit.rlim_cur < BASE_FILES ? -EMFILE : 0;
}

size_t
ctl_limits_make_room(size_t n)
{
	const uint64_t n_others = BASE_FILES + CTL_RPC_CLIENTS_MAX + OTHER_CLIENTS_MAX +
				  (uint64_t)LB_PORTS_MAX * PORT_FILES +
				  (uint64_t)LB_WORKERS_MAX * QUEUE_FILES;
	const uint64_t n_wanted = n + n_others;
	struct rlimit limit;
	struct rlimit raised;
	uint64_t n_left;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= n_wanted)
		return n;
	raised = limit;
	raised.rlim_cur = limit.rlim_max < n_wanted ? limit.rlim_max : n_wanted;
	if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
		limit = raised;
	if (limit.rlim_cur >= n_wanted)
		return n;
	/* The others are as many with all ports and workers that there may be alone. */
	n_left = limit.rlim_cur > 2 * n_others ? limit.rlim_cur - n_others
					       : limit.rlim_cur / 4 + 1;
	return n_left < n ? (size_t)n_left : n;
}
