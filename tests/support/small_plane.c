/* SPDX-License-Identifier: BSD-3-Clause */
#include "small_plane.h"

#include <stdio.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "cfg_yaml.h"
#include "dp_mbuf.h"
#include "dp_plane.h"
#include "dp_snapshot.h"
#include "expect.h"

static const char config[] =
	"dataplane:\n"
	"  ports:\n"
	"    - {name: wan, device: net_null0, addresses: [192.0.2.1/24],\n"
	"       next_hop: '02:00:00:00:00:fe'}\n"
	"    - {name: lan, device: net_null1, addresses: [192.0.3.1/24]}\n"
	"services:\n"
	"  - name: web\n"
	"    address: 198.51.100.10\n"
	"    protocol: any\n"
	"    port: any\n"
	"    table: {algorithm: maglev, size: 251}\n"
	"    backends: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]\n";

static struct dp_port_conf ports[SMALL_PLANE_PORTS_MAX];
static char devices[SMALL_PLANE_PORTS_MAX][128];
static unsigned int n_started;
static unsigned int n_used;

int
small_plane_start(const char *program, unsigned int n_workers, unsigned int n_ports,
	const char *received)
{
	const struct dp_start_conf conf = {.program = program,
		.ports = ports,
		.n_ports = n_ports,
		.n_workers = n_workers,
		.instance = program};

	for (unsigned int i = 0; i < n_ports; i++) {
		const bool has_capture = i == n_ports - 1 && received != NULL;

		(void)snprintf(devices[i], sizeof(devices[i]),
			"net_pcap%u,%s%s%stx_pcap=/dev/null", i, has_capture ? "rx_pcap=" : "",
			has_capture ? received : "", has_capture ? "," : "");
		ports[i] =
			(struct dp_port_conf){.name = "wan", .device = devices[i], .mtu = 1500};
	}
	n_started = n_ports;
	return dp_start(&conf, stderr);
}

void
small_plane_open(struct small_plane *plane, const struct small_plane_conf *conf)
{
	struct dp_conf dp_conf = conf->dp;

	memset(plane, 0, sizeof(*plane));
	assert_int_equal(cfg_read_text_model("config", config, sizeof(config) - 1, stderr,
				 &plane->model),
		0);
	dp_conf.flows = ctl_apply_flow_conf(&plane->model);
	assert_int_equal(ctl_apply_create(&plane->apply), 0);
	assert_int_equal(dp_create(&dp_conf, conf->now_ns, &plane->dp), 0);
	if (conf->n_ports > 0) {
		assert_true(n_used + conf->n_ports <= n_started);
		assert_int_equal(dp_open_ports(plane->dp, &ports[n_used], conf->n_ports,
					 stderr),
			0);
		n_used += conf->n_ports;
	}
	plane->n_buffers = conf->n_buffers;
	plane->pool = rte_pktmbuf_pool_create("small", conf->n_buffers, 0, DP_BESIDE_BYTES,
		conf->buffer_bytes, SOCKET_ID_ANY);
	assert_non_null(plane->pool);
}

void
small_plane_publish(struct small_plane *plane, const struct ctl_path *paths)
{
	const struct ctl_paths all = {
		.items = paths,
		.n_items = paths != NULL ? SMALL_PLANE_BACKENDS : 0,
		.port = &plane->model.dataplane.ports[0],
	};
	struct dp_snapshot *snapshot;

	assert_int_equal(ctl_apply_build(plane->apply, &plane->model, &all, stderr, &snapshot),
		0);
	dp_publish(plane->dp, snapshot);
}

void
small_plane_close(struct small_plane *plane)
{
	/* Each packet that was made has come back, once. */
	assert_int_equal(rte_mempool_avail_count(plane->pool), plane->n_buffers);
	dp_destroy(plane->dp);
	rte_mempool_free(plane->pool);
	ctl_apply_destroy(plane->apply);
	cfg_model_fini(&plane->model);
}

struct rte_mbuf *
small_plane_make(const struct small_plane *plane, const uint8_t *frame, size_t n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(plane->pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame, n);
	m->port = plane->dp->ports[0].nic.id;
	/* What lies beside it is of another life. */
	memset(dp_beside(m), 0xff, sizeof(*dp_beside(m)));
	return m;
}

void
small_plane_expect_verdicts(const struct small_plane *plane, const char *what,
	const uint64_t want[LB_N_VERDICTS])
{
	uint64_t counts[LB_N_VERDICTS];

	dp_read_verdicts(plane->dp, counts);
	for (unsigned int v = 0; v < LB_N_VERDICTS; v++)
		EXPECT(counts[v] == want[v], "%s: verdict %u: %lu, want %lu", what, v,
			(unsigned long)counts[v], (unsigned long)want[v]);
}
