/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_daemon.h"
#include "ctl_methods_each.h"
#include "ctl_params.h"
#include "ctl_picking.h"
#include "ctl_proto.h"
#include "lb_encap.h"
#include "lb_hash.h"
#include "lb_service_table.h"
#include "lb_verdict.h"

/* What became of the packet that is asked about. */
struct decision {
	enum lb_verdict verdict;
	const struct cfg_service *service; /* NULL: none */
	const struct cfg_backend *backend; /* NULL: none */
	struct lb_flow_hash hash;          /* of the flow */
	uint64_t pick;                     /* what of it chooses the slot */
	uint32_t slot;                     /* where there is a backend */
};

/* False: the call is answered. */
static bool
take_endpoint(const json_t *params, const char *name, struct ctl_call *call,
	struct lb_addr *addr, uint16_t *port_be)
{
	const char *text = ctl_params_text(params, name, call);
	uint16_t port;

	if (text == NULL)
		return false;
	if (cfg_scan_endpoint(text, 0, addr, &port)) {
		*port_be = htons(port);
		return true;
	}
	ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
		"%s: expected ADDRESS:PORT such as 192.0.2.1:443 or [2001:db8::1]:443, found "
		"'%s'",
		name, text);
	return false;
}

static bool
take_flow(const json_t *params, struct ctl_call *call, struct lb_flow_key *key)
{
	const char *protocol = ctl_params_text(params, CTL_KEY_PROTOCOL, call);

	if (protocol == NULL)
		return false;
	*key = (struct lb_flow_key){.proto = IPPROTO_TCP};
	if (strcmp(protocol, "udp") == 0) {
		key->proto = IPPROTO_UDP;
	} else if (strcmp(protocol, "tcp") != 0) {
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"protocol: expected tcp or udp, found '%s'", protocol);
		return false;
	}
	if (!take_endpoint(params, CTL_KEY_CLIENT, call, &key->src, &key->sport_be) ||
		!take_endpoint(params, CTL_KEY_DESTINATION, call, &key->dst, &key->dport_be))
		return false;
	if (lb_addr_is_v4(&key->src) == lb_addr_is_v4(&key->dst))
		return true;
	ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
		"client and destination are to be of one family, IPv4 or IPv6");
	return false;
}

static uint8_t
protocol_number(enum cfg_protocol protocol)
{
	if (protocol == CFG_PROTOCOL_ANY)
		return 0;
	return protocol == CFG_PROTOCOL_TCP ? IPPROTO_TCP : IPPROTO_UDP;
}

/* The service as the data plane's own table finds it. */
static int
find_service(const struct cfg_model *model, const struct lb_flow_key *key,
	const struct cfg_service **out)
{
	const size_t n = model->n_services;
	const size_t n_lines = (lb_service_table_bytes(n) + LB_CACHE_LINE - 1) / LB_CACHE_LINE;
	struct lb_service_match *matches = calloc(n + 1, sizeof(*matches));
	void *mem = aligned_alloc(LB_CACHE_LINE, n_lines * LB_CACHE_LINE);
	const struct lb_service_table *table;
	int ret = -ENOMEM;

	if (matches == NULL || mem == NULL)
		goto free_both;
	for (size_t i = 0; i < n; i++)
		matches[i] = (struct lb_service_match){.prefix = model->services[i].address,
			.proto = protocol_number(model->services[i].protocol),
			.port = model->services[i].port,
			.service = (uint32_t)i};
	ret = lb_service_table_build(mem, matches, n, &table);
	if (ret == 0) {
		const uint32_t found =
			lb_service_find(table, &key->dst, key->proto, ntohs(key->dport_be));

		*out = found == LB_SERVICE_NONE ? NULL : &model->services[found];
	}
free_both:
	free(matches);
	free(mem);
	return ret;
}

static int
decide(const struct cfg_model *model, const struct lb_flow_key *key, struct decision *d)
{
	struct ctl_picking picking;
	int ret;

	*d = (struct decision){.verdict = LB_DROP_NO_BACKEND};
	ret = find_service(model, key, &d->service);
	if (ret != 0)
		return ret;
	if (d->service == NULL) {
		d->verdict = model->dataplane.kernel == CFG_KERNEL_NONE ? LB_DROP_NO_SERVICE
									: LB_TO_KERNEL;
		return 0;
	}
	d->hash = lb_hash_flow(key, model->hash_seed);
	d->pick = lb_hash_pick(key, (enum lb_affinity)d->service->affinity, model->hash_seed);
	ret = ctl_picking_init(d->service, model->hash_seed, &picking);
	if (ret != 0)
		return ret;
	if (picking.picker != NULL) {
		d->verdict = LB_FORWARD;
		d->slot = lb_picker_slot(picking.picker, d->pick);
		d->backend = &d->service->backends[lb_picker_backend(picking.picker, d->slot)];
	}
	ctl_picking_fini(&picking);
	return 0;
}

/*
 * The outer source: the first address of the backend's family on the port that leads to it.
 * False where two ports could, as the way is the kernel's to know.
 */
static bool
find_source(const struct cfg_dataplane *plane, bool is_v4, struct lb_addr *out)
{
	size_t n_found = 0;

	for (size_t i = 0; i < plane->n_ports; i++) {
		const struct cfg_port *port = &plane->ports[i];
		size_t k = 0;

		while (k < port->n_addresses &&
			lb_addr_is_v4(&port->addresses[k].addr) != is_v4)
			k++;
		if (k == port->n_addresses)
			continue;
		*out = port->addresses[k].addr;
		n_found++;
	}
	return n_found == 1;
}

static uint16_t
tunnel_port(const struct cfg_service *service)
{
	if (service->tunnel_port != 0)
		return service->tunnel_port;
	return service->forward == CFG_FORWARD_VXLAN ? LB_VXLAN_PORT : LB_GUE_PORT;
}

/* The UDP source port, from the header that the data plane would write. */
static uint16_t
read_source_port(const struct cfg_service *service, const struct lb_addr *dst,
	const struct decision *d)
{
	const struct lb_encap_conf conf = {.mode = (enum lb_forward_mode)service->forward,
		.src = *dst, /* of its family: the port does not depend on it */
		.dst = *dst,
		.udp_port = tunnel_port(service),
		.vni = service->vni};
	const struct lb_encap_packet packet = {.inner_bytes = 40,
		.entropy = (uint32_t)(d->hash.place >> 32)};
	uint8_t bytes[LB_ENCAP_BYTES_MAX] = {0};
	const size_t at = lb_addr_is_v4(dst) ? 20 : 40;
	struct lb_encap encap;

	if (lb_encap_init(&encap, &conf) != 0)
		return 0;
	lb_encap_write(&encap, &packet, bytes);
	return (uint16_t)(bytes[at] << 8 | bytes[at + 1]);
}

static json_t *
make_outer(const struct cfg_model *model, const struct decision *d)
{
	const struct cfg_service *service = d->service;
	const struct lb_addr *dst = &d->backend->address;
	const enum cfg_forward forward = service->forward;
	const bool is_l2 = forward == CFG_FORWARD_L2;
	const bool is_udp = forward == CFG_FORWARD_GUE || forward == CFG_FORWARD_VXLAN;
	char source[LB_ADDR_TEXT_BYTES];
	char destination[LB_ADDR_TEXT_BYTES];
	struct lb_addr src;
	const bool has_source =
		!is_l2 && find_source(&model->dataplane, lb_addr_is_v4(dst), &src);

	return json_pack("{s:s, s:s?, s:s?, s:o, s:o, s:i}", CTL_KEY_MODE,
		cfg_forward_words[forward], CTL_KEY_SOURCE,
		has_source ? lb_addr_format(&src, source) : NULL, CTL_KEY_DESTINATION,
		is_l2 ? NULL : lb_addr_format(dst, destination), CTL_KEY_UDP_SOURCE_PORT,
		is_udp ? json_integer(read_source_port(service, dst, d)) : json_null(),
		CTL_KEY_UDP_PORT, is_udp ? json_integer(tunnel_port(service)) : json_null(),
		CTL_KEY_OVERHEAD,
		(int)lb_encap_overhead((enum lb_forward_mode)forward, !lb_addr_is_v4(dst)));
}

static json_t *
make_result(const struct ctl_view *view, const struct decision *d)
{
	const bool has_backend = d->backend != NULL;
	char address[LB_ADDR_TEXT_BYTES];
	char hash[24];

	(void)snprintf(hash, sizeof(hash), "0x%016" PRIx64, d->pick);
	/* What a worker has in its flow table it alone knows: flow is for when it tells. */
	return json_pack("{s:i, s:o, s:s, s:s?, s:s?, s:s?, s:o, s:s?, s:s?, s:n, s:o}",
		CTL_KEY_SCHEMA, CTL_SCHEMA, CTL_KEY_GENERATION,
		ctl_params_number(view->generation), CTL_KEY_VERDICT,
		lb_verdict_name(d->verdict), CTL_KEY_REASON, lb_verdict_reason(d->verdict),
		CTL_KEY_SERVICE, d->service != NULL ? d->service->name : NULL, CTL_KEY_HASH,
		d->service != NULL ? hash : NULL, CTL_KEY_SLOT,
		has_backend ? json_integer(d->slot) : json_null(), CTL_KEY_BACKEND,
		has_backend ? d->backend->name : NULL, CTL_KEY_BACKEND_ADDRESS,
		has_backend ? lb_addr_format(&d->backend->address, address) : NULL,
		CTL_KEY_FLOW, CTL_KEY_OUTER,
		has_backend ? make_outer(&view->model, d) : json_null());
}

void
ctl_method_explain(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_PROTOCOL, CTL_KEY_CLIENT,
		CTL_KEY_DESTINATION, NULL};
	const struct ctl_view *view = ctl_daemon_view(context);
	struct lb_flow_key key;
	struct decision decision;

	if (!ctl_params_check(params, keys, call) || !take_flow(params, call, &key))
		return;
	if (decide(&view->model, &key, &decision) != 0)
		ctl_params_no_memory(call);
	else
		ctl_call_result(call, make_result(view, &decision));
}
