/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "dp_fanout.h"
#include "dp_loop.h"

/* By which the kernel may end a sleep later. */
#define SLACK_NS 50000u

const char *const dp_missed_words[DP_N_MISSED] = {
	[DP_MISSED_NO_ROOM] = "no_room",
	[DP_MISSED_ERROR] = "error",
	[DP_MISSED_NO_BUFFER] = "no_buffer",
};

uint64_t
dp_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int
dp_draw_secret(uint64_t secret[static 2])
{
	const size_t n = 2 * sizeof(secret[0]);

	return getrandom(secret, n, 0) == (ssize_t)n ? 0 : -errno;
}

static int
create_loops(struct dp *dp)
{
	int ret = 0;

	for (unsigned int i = 0; i < dp->n_workers && ret == 0; i++)
		ret = dp_loop_create(dp, dp->workers[i], &dp->lcores[i].loop);
	return ret;
}

int
dp_open_ports(struct dp *dp, const struct dp_port_conf ports[], size_t n_ports, FILE *messages)
{
	if (n_ports > LB_PORTS_MAX) {
		(void)fprintf(messages, "%zu ports are too many; there may be %u\n", n_ports,
			LB_PORTS_MAX);
		return -E2BIG;
	}
	for (size_t i = 0; i < n_ports; i++) {
		const struct dp_port_place place = {.index = (unsigned int)i,
			.n_ports = n_ports,
			.n_workers = dp->n_workers,
			.n_waiting = dp->n_waiting};
		const int ret = dp_port_open(&ports[i], &place, &dp->ports[i], messages);

		if (ret != 0)
			return ret;
		dp->port_of[dp->ports[i].nic.id] = (uint16_t)i;
		dp->n_ports++;
	}
	return create_loops(dp);
}

void
dp_port_read(const struct dp *dp, size_t port, struct dp_port_info *out)
{
	const struct dp_port *from = &dp->ports[port];

	*out = (struct dp_port_info){
		.id = from->nic.id,
		.mac = from->mac,
		.driver = from->driver,
		.kernel_if = from->kernel_if[0] != '\0' ? from->kernel_if : NULL,
		.has_twin = from->has_twin,
		.kernel_mtu = from->twin.mtu,
		.device_if = from->device_if[0] != '\0' ? from->device_if : NULL,
		.spreads = from->nic.spreads,
		.n_rx_queues = from->nic.n_rx,
		.n_tx_queues = from->nic.n_tx,
	};
}

void
dp_port_read_link(const struct dp *dp, size_t port, struct dp_port_link *out)
{
	const struct dp_port *from = &dp->ports[port];
	struct rte_eth_link link = {0};
	const int ret = rte_eth_link_get_nowait(from->nic.id, &link);

	*out = (struct dp_port_link){.is_up = ret == 0 && link.link_status == RTE_ETH_LINK_UP};
	/* A virtual device says 10 Gbit/s, for it has to say something. */
	if (out->is_up && from->is_pci && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		out->speed_mbps = link.link_speed;
}

void
dp_port_read_missed(const struct dp *dp, size_t port, uint64_t packets[static DP_N_MISSED])
{
	const struct dp_port *from = &dp->ports[port];
	struct rte_eth_stats stats;

	if (rte_eth_stats_get(from->nic.id, &stats) != 0)
		stats = (struct rte_eth_stats){0};
	packets[DP_MISSED_NO_ROOM] = stats.imissed + dp_fanout_missed(from->if_index);
	packets[DP_MISSED_ERROR] = stats.ierrors;
	packets[DP_MISSED_NO_BUFFER] = stats.rx_nombuf;
}

void
dp_port_set_down(struct dp *dp, size_t port, bool is_down, bool is_twin_down)
{
	atomic_store_explicit(&dp->ports[port].nic.is_down, is_down, memory_order_relaxed);
	atomic_store_explicit(&dp->ports[port].twin.is_down, is_twin_down,
		memory_order_relaxed);
}

static int
run_lcore(void *argument)
{
	dp_loop_run(argument);
	return 0;
}

int
dp_run(struct dp *dp, uint64_t sleep_ns)
{
	/* What the kernel adds is taken off, where there is that much. */
	const uint64_t nap_ns =
		sleep_ns > UINT64_C(2) * SLACK_NS ? sleep_ns - SLACK_NS : sleep_ns / 2;
	unsigned int lcore_id = rte_get_next_lcore(-1, 1, 0);

	for (unsigned int i = 0; i < dp->n_workers; i++) {
		int ret;

		if (lcore_id >= RTE_MAX_LCORE)
			return -ENODEV;
		dp->lcores[i].nap_ns = nap_ns;
		dp->lcores[i].lcore_id = lcore_id;
		ret = rte_eal_remote_launch(run_lcore, &dp->lcores[i], lcore_id);
		if (ret != 0)
			return ret;
		dp->n_running++;
		lcore_id = rte_get_next_lcore(lcore_id, 1, 0);
	}
	return 0;
}

static bool
has_loops(const struct dp *dp)
{
	return dp->lcores[dp->n_workers - 1].loop != NULL;
}

/* Each packet that was received has a verdict then, and each buffer is in its pool. */
static void
finish_loops(struct dp *dp)
{
	for (unsigned int i = 0; i < dp->n_workers; i++)
		dp_loop_empty_inbox(dp->lcores[i].loop);
	for (unsigned int i = 0; i < dp->n_workers; i++)
		dp_loop_give_up(dp->lcores[i].loop);
	dp_loop_empty_rings(dp->lcores[0].loop);
}

void
dp_stop(struct dp *dp)
{
	for (unsigned int i = 0; i < dp->n_running; i++)
		atomic_store_explicit(&dp->lcores[i].is_over, true, memory_order_relaxed);
	for (unsigned int i = 0; i < dp->n_running; i++)
		(void)rte_eal_wait_lcore(dp->lcores[i].lcore_id);
	dp->n_running = 0;
	if (has_loops(dp))
		finish_loops(dp);
	for (size_t i = 0; i < dp->n_ports; i++)
		dp_port_close(&dp->ports[i]);
	while (dp->n_ports > 0)
		dp_port_free_buffers(&dp->ports[--dp->n_ports]);
	for (unsigned int i = 0; i < dp->n_workers; i++) {
		dp_loop_destroy(dp->lcores[i].loop);
		dp->lcores[i].loop = NULL;
	}
}

unsigned int
dp_n_workers(const struct dp *dp)
{
	return dp->n_workers;
}

void
dp_read_worker(const struct dp *dp, unsigned int worker, struct dp_worker_figures *out)
{
	const struct dp_worker_figures *from = &dp->workers[worker]->figures;

	out->polls = __atomic_load_n(&from->polls, __ATOMIC_RELAXED);
	out->busy_polls = __atomic_load_n(&from->busy_polls, __ATOMIC_RELAXED);
	out->flow_entries = __atomic_load_n(&from->flow_entries, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < DP_TURN_BUCKETS; i++)
		out->turns[i] = __atomic_load_n(&from->turns[i], __ATOMIC_RELAXED);
	out->turns_ns = __atomic_load_n(&from->turns_ns, __ATOMIC_RELAXED);
}

void
dp_read_backend(const struct dp *dp, uint32_t id, struct dp_backend_counts *out)
{
	*out = (struct dp_backend_counts){0};
	for (unsigned int w = 0; w < dp->n_workers; w++) {
		const struct dp_worker_backend *from = &dp->workers[w]->backends[id];

		out->packets += __atomic_load_n(&from->packets, __ATOMIC_RELAXED);
		out->bytes += __atomic_load_n(&from->bytes, __ATOMIC_RELAXED);
		out->flows +=
			__atomic_load_n(&dp->workers[w]->backend_flows[id], __ATOMIC_RELAXED);
	}
}
