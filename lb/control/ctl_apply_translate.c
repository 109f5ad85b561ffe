/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_apply_parts.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lb_stable.h"
#include "lb_tunnel.h"

static_assert((int)CFG_N_ALGORITHMS == (int)LB_N_ALGORITHMS && (int)CFG_RING == (int)LB_RING &&
		      (int)CFG_RENDEZVOUS == (int)LB_RENDEZVOUS &&
		      (int)CFG_STABLE == (int)LB_STABLE &&
		      CFG_OVERLOAD_DEFAULT == LB_STABLE_SLACK_DEFAULT &&
		      CFG_OVERLOAD_MAX == LB_STABLE_SLACK_MAX,
	"the language's algorithms are core's");
static_assert((int)CFG_AFFINITY_QUIC == (int)LB_N_AFFINITIES &&
		      (int)CFG_N_AFFINITIES == (int)LB_N_AFFINITIES + 1 &&
		      (int)CFG_AFFINITY_5_TUPLE == (int)LB_AFFINITY_5_TUPLE &&
		      (int)CFG_AFFINITY_SOURCE_IP == (int)LB_AFFINITY_SOURCE_IP,
	"the language's affinities are core's, and one more");
static_assert((int)CFG_ECHO_REPLY == (int)DP_ECHO_REPLY &&
		      (int)CFG_ECHO_FORWARD == (int)DP_ECHO_FORWARD &&
		      (int)CFG_ECHO_DROP == (int)DP_ECHO_DROP,
	"the language's words for echo are the data plane's");
static_assert((int)CFG_FRAGMENT_INNER == (int)DP_FRAGMENT_INNER &&
		      (int)CFG_FRAGMENT_OUTER == (int)DP_FRAGMENT_OUTER &&
		      (int)CFG_FRAGMENT_DROP == (int)DP_FRAGMENT_DROP,
	"the language's ways to fragment are the data plane's");
static_assert(CFG_MSS_AUTO == DP_MSS_AUTO && CFG_VLAN_KEEP == DP_VLAN_KEEP &&
		      CFG_VLAN_NONE == DP_VLAN_NONE,
	"what stands for a word is the same");
static_assert(CFG_QUIC_CONFIGS_MAX == LB_QUIC_CONFIGS_MAX &&
		      CFG_QUIC_ID_BYTES_MAX == LB_QUIC_SERVER_ID_BYTES_MAX &&
		      CFG_QUIC_NONCE_BYTES_MIN == LB_QUIC_NONCE_BYTES_MIN &&
		      CFG_QUIC_BOTH_BYTES_MAX + 1 == LB_QUIC_CID_BYTES_MAX &&
		      CFG_QUIC_KEY_BYTES == LB_AES_BLOCK_BYTES &&
		      CFG_QUIC_SERVERS_MAX == LB_QUIC_SERVERS_MAX,
	"the language's bounds are core's");
static_assert((int)CFG_N_FORWARDS == (int)LB_N_FORWARD_MODES &&
		      (int)CFG_FORWARD_GRE == (int)LB_FORWARD_GRE &&
		      (int)CFG_FORWARD_GUE == (int)LB_FORWARD_GUE,
	"the language's forward modes are core's");
static_assert((int)CFG_CARRY_IPIP == (int)LB_TUNNEL_IPIP &&
		      (int)CFG_CARRY_IPV6 == (int)LB_TUNNEL_IPV6 &&
		      (int)CFG_CARRY_GRE == (int)LB_TUNNEL_GRE &&
		      (int)CFG_CARRY_GUE == (int)LB_TUNNEL_GUE &&
		      (int)CFG_CARRY_VXLAN == (int)LB_TUNNEL_VXLAN &&
		      (int)CFG_CARRY_GENEVE == (int)LB_TUNNEL_GENEVE,
	"the language's tunnels are core's");
static_assert(CFG_GUE_PORT == LB_GUE_PORT && CFG_VXLAN_PORT == LB_VXLAN_PORT &&
		      CFG_GENEVE_PORT == LB_GENEVE_PORT,
	"and their ports");

static uint8_t
protocol_number(enum cfg_protocol protocol)
{
	switch (protocol) {
	case CFG_PROTOCOL_TCP:
		return IPPROTO_TCP;
	case CFG_PROTOCOL_UDP:
		return IPPROTO_UDP;
	default:
		return 0;
	}
}

uint16_t
ctl_apply_tunnel_port(const struct cfg_service *service)
{
	if (service->tunnel_port != 0)
		return service->tunnel_port;
	return service->forward == CFG_FORWARD_VXLAN ? LB_VXLAN_PORT : LB_GUE_PORT;
}

struct lb_service_match
ctl_apply_match(const struct cfg_service *service)
{
	return (struct lb_service_match){
		.prefix = service->address,
		.proto = protocol_number(service->protocol),
		.port = service->port,
	};
}

enum lb_affinity
ctl_apply_affinity(const struct cfg_service *service)
{
	return service->affinity == CFG_AFFINITY_QUIC ? LB_AFFINITY_5_TUPLE
						      : (enum lb_affinity)service->affinity;
}

static struct lb_quic_config
translate_quic(const struct cfg_quic *from)
{
	struct lb_quic_config to = {
		.codepoint = from->config_id,
		.server_id_bytes = from->server_id_bytes,
		.nonce_bytes = from->nonce_bytes,
		.has_key = from->has_key,
		.has_length = from->has_length,
	};

	memcpy(to.key, from->key, sizeof(to.key));
	return to;
}

/* A server id under each configuration that has ids of its length. */
static void
append_id(struct ctl_apply_quic *quic, const struct cfg_service *service,
	const struct cfg_quic_id *id, uint32_t value)
{
	for (size_t i = 0; i < service->n_quic; i++) {
		struct lb_quic_server *to;

		if (service->quic[i].server_id_bytes != id->n_bytes)
			continue;
		to = &quic->servers[quic->n_servers++];
		to->codepoint = service->quic[i].config_id;
		to->n_bytes = id->n_bytes;
		memcpy(to->id, id->bytes, sizeof(to->id));
		to->value = value;
	}
}

int
ctl_apply_quic_init(struct ctl_apply_quic *quic, const struct cfg_model *model)
{
	size_t n_configs = 0;
	size_t n_servers = 0;

	for (size_t i = 0; i < model->n_services; i++) {
		n_configs += model->services[i].n_quic;
		n_servers += cfg_count_quic_servers(&model->services[i]);
	}
	quic->configs = calloc(n_configs + 1, sizeof(*quic->configs));
	quic->servers = calloc(n_servers + 1, sizeof(*quic->servers));
	return quic->configs == NULL || quic->servers == NULL ? -ENOMEM : 0;
}

void
ctl_apply_quic_append(struct ctl_apply_quic *quic, const struct cfg_service *service,
	const uint32_t *ids, struct dp_service_conf *to)
{
	const size_t n_before = quic->n_servers;

	to->quic = &quic->configs[quic->n_configs];
	to->n_quic = service->n_quic;
	to->quic_servers = &quic->servers[n_before];
	for (size_t i = 0; i < service->n_quic; i++)
		quic->configs[quic->n_configs++] = translate_quic(&service->quic[i]);
	for (size_t i = 0; i < service->n_backends; i++) {
		const struct cfg_backend *backend = &service->backends[i];

		for (size_t k = 0; k < backend->n_quic_ids; k++)
			append_id(quic, service, &backend->quic_ids[k], ids[i]);
	}
	to->n_quic_servers = quic->n_servers - n_before;
}

void
ctl_apply_quic_fini(struct ctl_apply_quic *quic)
{
	free(quic->configs);
	free(quic->servers);
}

uint64_t
ctl_apply_longest_timeout(const struct cfg_dataplane *plane)
{
	const uint64_t timeouts[] = {plane->tcp_syn_ns, plane->tcp_ns, plane->tcp_closing_ns,
		plane->udp_ns};
	uint64_t longest = 0;

	for (size_t i = 0; i < LB_N_ELEMENTS(timeouts); i++)
		if (timeouts[i] > longest)
			longest = timeouts[i];
	return longest;
}

struct lb_flow_table_conf
ctl_apply_flow_conf(const struct cfg_model *model)
{
	const struct cfg_dataplane *plane = &model->dataplane;

	return (struct lb_flow_table_conf){
		.n_entries = plane->flow_entries,
		.timeout_ns = {[LB_FLOW_TIMEOUT_TCP_SYN] = plane->tcp_syn_ns,
			[LB_FLOW_TIMEOUT_TCP] = plane->tcp_ns,
			[LB_FLOW_TIMEOUT_TCP_CLOSING] = plane->tcp_closing_ns,
			[LB_FLOW_TIMEOUT_UDP] = plane->udp_ns},
	};
}

static uint16_t
largest_mtu(const struct cfg_dataplane *plane)
{
	uint16_t largest = 0;

	for (size_t i = 0; i < plane->n_ports; i++) {
		if (plane->ports[i].mtu > largest)
			largest = plane->ports[i].mtu;
	}
	return largest;
}

/* Of a packet that waits in the buffer it came in. */
static uint32_t
largest_buffer(const struct cfg_dataplane *plane)
{
	uint32_t largest = 0;

	for (size_t i = 0; i < plane->n_ports; i++) {
		const struct dp_port_conf port = {
			.device = plane->ports[i].device,
			.mtu = plane->ports[i].mtu,
		};
		const uint32_t n_bytes = dp_port_buffer_bytes(&port);

		if (n_bytes > largest)
			largest = n_bytes;
	}
	return largest;
}

struct dp_conf
ctl_apply_dp_conf(const struct cfg_model *model, unsigned int n_workers,
	const uint64_t secret[static 2])
{
	const struct cfg_dataplane *plane = &model->dataplane;

	return (struct dp_conf){
		.n_workers = n_workers,
		.flows = ctl_apply_flow_conf(model),
		.secret = {secret[0], secret[1]},
		.keeps_flow_keys = plane->flow_addresses,
		.mtu_max = largest_mtu(plane),
		.n_datagrams = plane->fragment_datagrams,
		.n_waiting = plane->fragment_waiting,
		.buffer_bytes = largest_buffer(plane),
		.n_handoff = plane->handoff,
		.replies_per_s = plane->replies_total,
		.replies_per_s_source = plane->replies_source,
	};
}
