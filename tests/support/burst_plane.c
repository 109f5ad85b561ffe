/* SPDX-License-Identifier: BSD-3-Clause */
#include "burst_plane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mempool.h>

#include "cfg_yaml.h"
#include "dp_snapshot.h"
#include "lb_packet.h"
#include "packet_flaw.h"

#define MTU_MAX 1500u

/* An address of each service's own; ports differ in tags and in what fits. */
static const char config[] =
	"dataplane:\n"
	"  fragments: {datagrams: 256, waiting: 128}\n"
	"  replies: {total: 65536, source: 200}\n"
	"  ports:\n"
	"    - {name: wan, device: net_null0, addresses: [192.0.2.1/24, '2001:db8::1/64']}\n"
	"    - {name: bare, device: net_null1, addresses: [192.0.3.1/24], vlan: none}\n"
	"    - {name: tagged, device: net_null2, addresses: [192.0.4.1/24], vlan: 100}\n"
	"    - {name: narrow, device: net_null3, addresses: [192.0.5.1/24], mtu: 576}\n"
	"services:\n"
	"  - name: web\n"
	"    address: 198.51.100.10\n"
	"    protocol: tcp\n"
	"    port: 443\n"
	"    mss_clamp: auto\n"
	"    table: {algorithm: maglev, size: 251}\n"
	"    backends: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]\n"
	"  - name: h3\n"
	"    address: 198.51.100.10\n"
	"    protocol: udp\n"
	"    port: 443\n"
	"    forward: vxlan\n"
	"    affinity: quic\n"
	"    quic:\n"
	"      - {config_id: 0, server_id_length: 2, nonce_length: 6,\n"
	"         cid_key: '8f95f09245765f80256934e50c66207f'}\n"
	"      - {config_id: 1, server_id_length: 2, nonce_length: 6}\n"
	"    table: {algorithm: maglev, size: 251}\n"
	"    backends:\n"
	"      - {name: a, address: 10.0.1.1, quic_id: 0a01}\n"
	"      - {name: b, address: 10.0.2.1, quic_id: 0a02}\n"
	"  - name: direct\n"
	"    address: 198.51.100.11\n"
	"    protocol: any\n"
	"    port: any\n"
	"    forward: l2\n"
	"    echo: forward\n"
	"    mss_clamp: 1000\n"
	"    table: {algorithm: ring, size: 251}\n"
	"    backends: [{name: a, address: 10.0.2.2}, {name: b, address: 10.0.3.2}]\n"
	"  - name: all\n"
	"    address: 198.51.100.12\n"
	"    protocol: any\n"
	"    port: any\n"
	"    forward: gre\n"
	"    carry: [ipip, ipv6, gre]\n"
	"    echo: drop\n"
	"    fragment: drop\n"
	"    affinity: source-ip\n"
	"    table: {algorithm: rendezvous, size: 251}\n"
	"    backends: [{name: a, address: 10.0.1.3}, {name: b, address: 10.0.2.3},\n"
	"               {name: c, address: '2001:db8:a::3'}, {name: d, address: 10.0.0.3}]\n"
	"  - name: prefix\n"
	"    address: 198.51.100.16/28\n"
	"    protocol: udp\n"
	"    port: any\n"
	"    forward: gue\n"
	"    fragment: outer\n"
	"    table: {algorithm: maglev, size: 251}\n"
	"    backends: [{name: a, address: 10.0.3.4}, {name: b, address: '2001:db8:a::4'}]\n"
	"  - name: narrow\n"
	"    address: 198.51.100.32/28\n"
	"    protocol: any\n"
	"    port: any\n"
	"    table: {algorithm: maglev, size: 251}\n"
	"    backends: [{name: a, address: 10.0.3.5}, {name: b, address: 10.0.3.6},\n"
	"               {name: c, address: '2001:db8:a::5'}]\n"
	"  - name: dead\n"
	"    address: 198.51.100.13\n"
	"    protocol: any\n"
	"    port: any\n"
	"  - name: six\n"
	"    address: '2001:db8:5::10'\n"
	"    protocol: any\n"
	"    port: any\n"
	"    forward: gue\n"
	"    carry: [ipip, ipv6, gre]\n"
	"    mss_clamp: auto\n"
	"    table: {algorithm: maglev, size: 251}\n"
	"    backends: [{name: a, address: '2001:db8:a::1'}, {name: b, address: 10.0.2.7},\n"
	"               {name: c, address: 10.0.3.7}]\n"
	"  - name: six-prefix\n"
	"    address: '2001:db8:6::/48'\n"
	"    protocol: any\n"
	"    port: any\n"
	"    forward: vxlan\n"
	"    echo: forward\n"
	"    table: {algorithm: maglev, size: 251}\n"
	"    backends: [{name: a, address: '2001:db8:a::2'}, {name: b, address: 10.0.1.8},\n"
	"               {name: c, address: 10.0.0.8}]\n";

static void
require(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "burst_plane: %s\n", what);
	abort();
}

/* What a change may take away: of each service one backend, and one service as a whole. */
static void
change(struct cfg_model *model, size_t backend)
{
	for (size_t i = 0; i < model->n_services; i++)
		if (model->services[i].n_backends > backend)
			model->services[i].backends[backend].state = CFG_DOWN;
	model->services[model->n_services - 1].port = 9;
	model->dataplane.ports[0].mtu = 1300;
	model->dataplane.ports[2].vlan = CFG_VLAN_KEEP;
}

/* Where nobody is left that its flows could go to. */
static void
take_all_down(struct cfg_model *model, const char *service)
{
	for (size_t i = 0; i < model->n_services; i++) {
		struct cfg_service *one = &model->services[i];

		for (size_t b = 0; b < one->n_backends && strcmp(one->name, service) == 0; b++)
			one->backends[b].state = CFG_DOWN;
	}
}

static struct ctl_path
path_to(const struct lb_addr *dst)
{
	/* 10.0.PORT.x; what is IPv6 leaves by the first. */
	const uint16_t port = (uint16_t)(lb_addr_is_v4(dst) ? dst->bytes[14] : 0);

	return (struct ctl_path){.dst = *dst,
		.port = port,
		.is_resolved = true,
		.mac = {{2, 0, 0, 0, 1, (uint8_t)port}}};
}

static int
compare_paths(const void *a, const void *b)
{
	const struct ctl_path *one = a;
	const struct ctl_path *other = b;

	return memcmp(&one->dst, &other->dst, sizeof(one->dst));
}

/* As with ports that are devices, where all are; what backends with odd ids are sent is from
 * one in any case. */
static void
give_sources(struct dp_snapshot *snapshot, bool are_devices)
{
	snapshot->is_plain = are_devices;
	for (uint32_t id = 0; id < snapshot->n_ids; id++) {
		struct dp_backend *backend = &snapshot->backends_mem[id];

		backend->ether.src = (struct lb_mac){{2, 0, 0, 0, 2, backend->port}};
		backend->has_source = are_devices || id % 2 != 0;
	}
}

void
burst_plane_publish(struct burst_plane *plane, unsigned int which)
{
	const struct cfg_model *model = &plane->models[which];
	struct ctl_path items[32];
	struct ctl_paths paths = {.items = items};
	struct dp_snapshot *snapshot;

	for (size_t i = 0; i < model->n_services; i++)
		for (size_t b = 0; b < model->services[i].n_backends; b++)
			items[paths.n_items++] =
				path_to(&model->services[i].backends[b].address);
	qsort(items, paths.n_items, sizeof(items[0]), compare_paths);
	require(ctl_apply_build(plane->apply, model, &paths, stderr, &snapshot) == 0,
		"the configuration cannot be put in force");
	give_sources(snapshot, which != 0);
	dp_publish(plane->dp, snapshot);
}

void
burst_plane_open(struct burst_plane *plane, unsigned int n_workers)
{
	static const uint64_t secret[2] = {1, 2};
	struct dp_conf conf;

	memset(plane, 0, sizeof(*plane));
	for (unsigned int i = 0; i < BURST_PLANE_MODELS; i++)
		require(cfg_read_text_model("config", config, sizeof(config) - 1, stderr,
				&plane->models[i]) == 0,
			"the configuration is not right");
	change(&plane->models[1], 0);
	change(&plane->models[2], 1);
	change(&plane->models[3], 1);
	take_all_down(&plane->models[3], "narrow");
	take_all_down(&plane->models[3], "all");
	take_all_down(&plane->models[3], "six");
	conf = ctl_apply_dp_conf(&plane->models[0], n_workers, secret);
	conf.mtu_max = MTU_MAX;
	require(ctl_apply_create(&plane->apply) == 0, "no memory");
	require(dp_create(&conf, 0, &plane->dp) == 0, "no plane");
	require(dp_batch_create(plane->dp, &plane->batch) == 0, "no batch");
	burst_plane_publish(plane, 0);
}

void
burst_plane_close(struct burst_plane *plane)
{
	dp_batch_destroy(plane->batch);
	dp_destroy(plane->dp);
	ctl_apply_destroy(plane->apply);
	for (unsigned int i = 0; i < BURST_PLANE_MODELS; i++)
		cfg_model_fini(&plane->models[i]);
}

/* Of a frame that leaves; on the heap at its very length, so that no read is past it. */
static const char *
frame_flaw(const struct dp_result *result)
{
	uint8_t *copy = malloc(result->n_bytes == 0 ? 1 : result->n_bytes);
	struct lb_packet packet;
	const char *flaw = NULL;

	require(copy != NULL, "no memory");
	memcpy(copy, result->bytes, result->n_bytes);
	if (lb_packet_parse(copy, result->n_bytes, result->n_bytes, &packet) != LB_FORWARD)
		flaw = "what leaves is no packet";
	else if (packet.ip_bytes > MTU_MAX)
		flaw = "what leaves is over the MTU";
	else if (result->n_bytes != packet.ip_offset + packet.ip_bytes)
		flaw = "what leaves has bytes after the packet";
	else
		flaw = packet_flaw(&packet, result->n_bytes, result->n_bytes);
	free(copy);
	return flaw;
}

static const char *
result_flaw(struct burst_plane *plane, const struct dp_result *result)
{
	const struct dp_decision *d = result->decision;
	const uint64_t place = result->number - plane->n_ended;

	if (result->number < plane->n_ended || result->number >= plane->n_added)
		return "a result of no packet";
	if (result->now_ns != plane->added_ns[place])
		return "a result of another time than its packet";
	if (result->cookie != result->number)
		return "a result with another's cookie";
	if (d == NULL && !plane->is_decided[place])
		return "one more frame of a packet that is not decided";
	if (d != NULL && plane->is_decided[place])
		return "a packet decided twice";
	if (d != NULL && d->verdict >= LB_N_VERDICTS)
		return "a decision without a verdict";
	if ((result->bytes != NULL) != (d == NULL || d->verdict <= LB_REPLY))
		return "a frame leaves where none should, or none where one should";
	plane->is_decided[place] = true;
	if (result->bytes == NULL)
		return NULL;
	plane->sent++;
	return frame_flaw(result);
}

static const char *
take_results(struct burst_plane *plane)
{
	struct dp_result result;
	const char *flaw = NULL;

	while (dp_batch_next(plane->batch, &result))
		if (flaw == NULL)
			flaw = result_flaw(plane, &result);
	return flaw;
}

const char *
burst_plane_run(struct burst_plane *plane)
{
	dp_batch_run(plane->batch);
	return take_results(plane);
}

const char *
burst_plane_add(struct burst_plane *plane, const uint8_t *frame, size_t n, uint64_t step_ns)
{
	const uint64_t place = plane->n_added - plane->n_ended;
	const char *flaw = NULL;
	int ret;

	require(place < BURST_PLANE_PACKETS_MAX, "too many packets before an end");
	plane->now_ns += step_ns;
	ret = dp_batch_add(plane->batch, frame, (uint32_t)n, (uint32_t)n, plane->now_ns,
		plane->n_added);
	if (ret != 0) { /* full: run it first */
		flaw = burst_plane_run(plane);
		ret = dp_batch_add(plane->batch, frame, (uint32_t)n, (uint32_t)n, plane->now_ns,
			plane->n_added);
	}
	if (ret != 0)
		return "a batch that was run takes no packet";
	plane->added_ns[place] = plane->now_ns;
	plane->is_decided[place] = false;
	plane->n_added++;
	return flaw;
}

static void
count_in_use(struct rte_mempool *pool, void *context)
{
	*(unsigned int *)context += rte_mempool_in_use_count(pool);
}

static const char *
end_flaw(const struct burst_plane *plane)
{
	uint64_t counts[LB_N_VERDICTS];
	unsigned int in_use = 0;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < plane->n_added - plane->n_ended; i++)
		if (!plane->is_decided[i])
			return "a packet that was never decided";
	dp_read_verdicts(plane->dp, counts);
	for (size_t v = 0; v < LB_N_VERDICTS; v++)
		sum += counts[v];
	if (sum != plane->n_added)
		return "the verdicts' counters are not as many as the packets";
	rte_mempool_walk(count_in_use, &in_use);
	return in_use == 0 ? NULL : "a buffer that did not come back";
}

const char *
burst_plane_end(struct burst_plane *plane)
{
	const char *flaw = burst_plane_run(plane);
	const char *at_end;

	dp_batch_end(plane->batch);
	at_end = take_results(plane);
	if (flaw == NULL)
		flaw = at_end != NULL ? at_end : end_flaw(plane);
	plane->n_ended = plane->n_added;
	return flaw;
}
