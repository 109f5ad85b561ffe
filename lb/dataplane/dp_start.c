/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "dp_port.h"
#include "dp_telemetry.h"
#include "lb_device.h"

/* MiB for packet buffers, in ordinary pages that the kernel gives as they are touched. */
#define BATCH_MIB        64u
#define BATCH_WORKER_MIB 24u

#define MIB UINT64_C(1048576)

#define ARGUMENTS_MAX   96
#define ARGUMENTS_BYTES 32768u

/* Without the n CPUs that are the workers', the last ones; unless none would be left. */
static void
leave_out_workers(cpu_set_t *cpus, unsigned int n)
{
	if ((unsigned int)CPU_COUNT(cpus) <= n)
		return;
	for (int cpu = CPU_SETSIZE - 1; n > 0; cpu--) {
		n -= CPU_ISSET(cpu, cpus) != 0;
		CPU_CLR(cpu, cpus);
	}
}

/*
 * "0@(0,2,3)": one lcore, main, that may run wherever this process may, but for the workers'
 * CPUs; so may all threads that it makes. Without it the EAL would pin the calling thread to
 * CPU 0, which may be busy, or not ours.
 */
static int
format_lcores(unsigned int n_workers, char *out, size_t n)
{
	cpu_set_t cpus;
	size_t used = 0;
	const char *separator = "";

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return -errno;
	leave_out_workers(&cpus, n_workers);
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

unsigned int
dp_workers_auto(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 || CPU_COUNT(&cpus) < 2)
		return 1;
	return RTE_MIN((unsigned int)CPU_COUNT(&cpus) - 1,
		RTE_MIN(LB_WORKERS_MAX, RTE_MAX_LCORE - 1u));
}

/* The EAL's arguments in the making: it keeps pointers into them for the process' life. */
struct arguments {
	char *argv[ARGUMENTS_MAX];
	int argc;
	char text[ARGUMENTS_BYTES];
	size_t n_text;
	bool is_full;
	uint64_t
		n_mib; /* of memory in ordinary pages; 0: it takes huge ones as it needs them */
	uint64_t waiting_bytes; /* of it, for fragments that wait */
};

static void add_argument(struct arguments *args, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void
add_argument(struct arguments *args, const char *format, ...)
{
	const size_t room = sizeof(args->text) - args->n_text;
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(args->text + args->n_text, room, format, list);
	va_end(list);
	if (n < 0 || (size_t)n >= room || args->argc + 1 >= ARGUMENTS_MAX) {
		args->is_full = true;
		return;
	}
	args->argv[args->argc++] = args->text + args->n_text;
	args->n_text += (size_t)n + 1;
}

/* Worker i has a CPU, counted from the last, that is its own if it can. */
static int
add_lcores(struct arguments *args, unsigned int n_workers)
{
	static char text[CPU_SETSIZE * 5 + LB_WORKERS_MAX * 12];
	cpu_set_t cpus;
	size_t used;
	int cpu = CPU_SETSIZE;
	int ret = format_lcores(n_workers, text, sizeof(text));

	if (ret != 0 || sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return ret != 0 ? ret : -errno;
	used = strlen(text);
	for (unsigned int i = 0; i < n_workers; i++) {
		do {
			cpu = cpu > 0 ? cpu - 1 : CPU_SETSIZE - 1;
		} while (!CPU_ISSET(cpu, &cpus));
		used += (size_t)snprintf(text + used, sizeof(text) - used, ",%u@%d", i + 1,
			cpu);
	}
	add_argument(args, "--lcores");
	add_argument(args, "%s", text);
	return 0;
}

/* Of any size that the machine has. */
static bool
has_free_huge_page(void)
{
	glob_t found;
	unsigned long n_free = 0;
	char text[32];

	if (glob("/sys/kernel/mm/hugepages/*/free_hugepages", 0, NULL, &found) != 0)
		return false;
	for (size_t i = 0; i < found.gl_pathc && n_free == 0; i++) {
		FILE *file = fopen(found.gl_pathv[i], "r");

		if (file == NULL)
			continue;
		if (fgets(text, sizeof(text), file) != NULL)
			n_free = strtoul(text, NULL, 10);
		(void)fclose(file);
	}
	globfree(&found);
	return n_free > 0;
}

/* Huge pages that are free, of any size, and a hugetlbfs to take them from. */
static bool
has_huge_pages(void)
{
	FILE *file;
	char line[256];
	bool is_mounted = false;

	if (!has_free_huge_page())
		return false;
	file = fopen("/proc/mounts", "r");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		is_mounted |= strstr(line, " hugetlbfs ") != NULL;
	if (file != NULL)
		(void)fclose(file);
	return is_mounted;
}

/* What the EAL does not see, or sees too late to say what it is about. */
static int
check_conf(const struct dp_start_conf *conf, FILE *messages)
{
	if (conf->n_workers > RTE_MAX_LCORE - 1) {
		(void)fprintf(messages,
			"dataplane.workers: %u are more than DPDK has lcores for; there may be "
			"%u\n",
			conf->n_workers, RTE_MAX_LCORE - 1);
		return -E2BIG;
	}
	if (dp_port_wants_huge_pages(conf->extra) && !has_huge_pages()) {
		(void)fprintf(messages,
			"--eal asks for huge pages, and none are free: 'sysctl "
			"vm.nr_hugepages=512' makes some, 'mount -t hugetlbfs none "
			"/dev/hugepages' gives a way to them; without --eal shuntd takes "
			"ordinary pages\n");
		return -ENOMEM;
	}
	return 0;
}

/* MiB for a port's buffers, and as much again; ordinary pages come as they are touched. */
static size_t
count_memory(const struct dp_port_conf *port, unsigned int n_workers)
{
	const size_t frame = RTE_MAX((uint64_t)port->mtu,
		RTE_MIN(dp_port_ring_frame(port->device), DP_PORT_RING_FRAME_MAX));

	const uint64_t n_kept = dp_port_n_kept(port->device, n_workers);

	return 48 * (1 + (size_t)n_workers * (1 + frame / 2048)) +
	       2 * dp_port_waiting_bytes(port, n_kept) / MIB;
}

static void
add_memory(struct arguments *args, const struct dp_start_conf *conf)
{
	const uint64_t n_waiting = (uint64_t)conf->n_workers * conf->n_waiting;

	if (has_huge_pages()) {
		/* Other processes find memory by its files. */
		if (!dp_port_wants_sharing(conf->extra))
			add_argument(args, "--in-memory");
		/* A file for each page would soon be more than a process may have open. */
		add_argument(args, "--single-file-segments");
		return;
	}
	args->n_mib = 64;
	for (size_t i = 0; i < conf->n_ports; i++) {
		args->n_mib += count_memory(&conf->ports[i], conf->n_workers);
		/* No buffer crosses a page. */
		args->waiting_bytes += 2 * dp_port_waiting_bytes(&conf->ports[i], n_waiting);
	}
	args->n_mib += args->waiting_bytes / MIB;
	add_argument(args, "--no-huge");
	add_argument(args, "--no-shconf");
	add_argument(args, "-m");
	add_argument(args, "%" PRIu64, args->n_mib);
}

static void
add_devices(struct arguments *args, const struct dp_start_conf *conf)
{
	bool has_pci = false;

	for (size_t i = 0; i < conf->n_ports; i++) {
		const struct dp_port_conf *port = &conf->ports[i];
		char name[RTE_DEV_NAME_MAX_LEN];

		dp_port_device_name(port, (unsigned int)i, name);
		if (lb_device_is_pci(port->device)) {
			has_pci = true;
			add_argument(args, "-a");
			add_argument(args, "%s", port->device);
		} else {
			add_argument(args, "--vdev=%s%s", name,
				port->device + strcspn(port->device, ","));
		}
	}
	if (!has_pci)
		add_argument(args, "--no-pci");
}

static void
add_extra(struct arguments *args, const char *extra)
{
	while (extra != NULL && *extra != '\0') {
		const size_t n = strcspn(extra, " \t");

		if (n > 0)
			add_argument(args, "%.*s", (int)n, extra);
		extra += n + (extra[n] != '\0');
	}
}

/* The lock is held until the EAL has started. -1: there is none, and no telemetry. */
static int
add_telemetry(struct arguments *args, const struct dp_start_conf *conf, FILE *messages)
{
	char prefix[DP_TELEMETRY_PREFIX_BYTES];
	int lock;
	int ret;

	dp_telemetry_format_prefix(conf->instance, prefix);
	add_argument(args, "--file-prefix=%s", prefix);
	ret = dp_telemetry_lock_folder(prefix, &lock);
	if (ret == 0)
		return lock;
	(void)fprintf(messages,
		"DPDK's runtime folder cannot be used, so it has no telemetry: %s\n",
		strerror(-ret));
	add_argument(args, "--no-telemetry");
	return -1;
}

static const char *
find_cure(int error)
{
	switch (error) {
	case ENOMEM:
		return "fewer dataplane.workers need less; or is there a limit, as by 'ulimit "
		       "-v' or a container's?";
	case ENODEV:
		return "what it wrote above names the device; a port's device is a PCI address "
		       "or begins with the name of a driver, such as net_af_xdp";
	case EACCES:
	case EPERM:
		return "it takes root, or the capabilities of its devices";
	default:
		return "what it wrote above names the argument or the device";
	}
}

/* extra: of --eal; NULL: none. */
static int
init_eal(struct arguments *args, const char *extra, FILE *messages)
{
	int ret;

	/* By itself it writes into the system log, too, and there as errors what drivers say of
	 * a start that goes well. What ends a start, messages tell. */
	(void)rte_openlog_stream(stderr);
	if (rte_eal_init(args->argc, args->argv) >= 0)
		return 0;
	ret = -rte_errno;
	(void)fprintf(messages, "DPDK does not start: %s; ", rte_strerror(-ret));
	if (ret == -ENOMEM && args->n_mib != 0)
		(void)fprintf(messages,
			"it asked for %" PRIu64 " bytes, and %" PRIu64
			" of these for dataplane.fragments.waiting; ",
			args->n_mib * MIB, args->waiting_bytes);
	if (ret == -EINVAL && extra != NULL)
		(void)fprintf(messages, "is --eal '%s' right? ", extra);
	(void)fprintf(messages, "%s\n", find_cure(-ret));
	return ret;
}

int
dp_start(const struct dp_start_conf *conf, FILE *messages)
{
	static struct arguments args;
	int lock;
	int ret = check_conf(conf, messages);

	if (ret != 0)
		return ret;
	add_argument(&args, "%s", conf->program);
	ret = add_lcores(&args, conf->n_workers);
	if (ret != 0)
		return ret;
	add_memory(&args, conf);
	add_devices(&args, conf);
	lock = add_telemetry(&args, conf, messages);
	add_argument(&args, "--log-level=*:error");
	add_extra(&args, conf->extra);
	if (args.is_full) {
		(void)fprintf(messages, "the ports' devices and --eal are too long together\n");
		ret = -E2BIG;
	} else {
		ret = init_eal(&args, conf->extra, messages);
	}
	if (lock >= 0)
		dp_telemetry_unlock_folder(lock);
	return ret;
}

int
dp_start_unprivileged(const char *program, unsigned int n_workers)
{
	static char lcores[CPU_SETSIZE * 5];
	static char name[64];
	static char no_huge[] = "--no-huge", memory[] = "-m", memory_mib[16],
		    no_shconf[] = "--no-shconf", no_pci[] = "--no-pci",
		    no_telemetry[] = "--no-telemetry", lcores_option[] = "--lcores",
		    level_option[] = "--log-level", level[] = "*:error";
	/* The EAL keeps pointers into these, and may reorder them. */
	static char *argv[] = {name, no_huge, memory, memory_mib, no_shconf, no_pci,
		no_telemetry, lcores_option, lcores, level_option, level, NULL};
	const int ret = format_lcores(0, lcores, sizeof(lcores));

	if (ret != 0)
		return ret;
	(void)snprintf(name, sizeof(name), "%s", program);
	(void)snprintf(memory_mib, sizeof(memory_mib), "%u",
		BATCH_MIB + BATCH_WORKER_MIB * n_workers);
	if (rte_eal_init((int)LB_N_ELEMENTS(argv) - 1, argv) < 0)
		return -rte_errno;
	return 0;
}
