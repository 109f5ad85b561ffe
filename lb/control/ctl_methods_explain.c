/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#include "ctl_apply.h"
#include "ctl_daemon.h"
#include "ctl_filter.h"
#include "ctl_methods_each.h"
#include "ctl_params.h"
#include "ctl_proto.h"
#include "lb_encap.h"
#include "lb_hash.h"
#include "lb_martian.h"
#include "lb_service_table.h"
#include "lb_tunnel.h"
#include "lb_verdict.h"

/* Whether the flow table decides. The first: the workers did not say, or were not asked. */
enum knowledge { FLOW_UNKNOWN, FLOW_HIT, FLOW_MISS };

/* What becomes of the next packet of the flow that is asked about. */
struct decision {
	enum lb_verdict verdict;
	const struct cfg_service *service;  /* NULL: none */
	const struct cfg_backend *backend;  /* NULL: none */
	const struct dp_backend_conf *conf; /* of the backend; NULL: none */
	struct lb_flow_hash hash;           /* that the flow is known by */
	uint32_t entropy;                   /* of outer headers */
	uint64_t pick;                      /* what chooses the slot */
	uint32_t slot;                      /* where there is anybody to pick */
	bool has_slot;
	enum knowledge knowledge;
	bool has_entry; /* somebody has the flow; also where its backend is gone */
	struct dp_flow_answer entry;
	const struct cfg_service *entry_service; /* of the entry's backend; NULL: gone */
	const struct cfg_backend *entry_backend;
};

/* Look a flow up where the workers may have it. */
static void
ask_workers(struct dp *dp, const struct ctl_view *view, struct decision *d)
{
	const int ret = dp_ask_flow(dp, &d->hash, &d->entry);
	size_t service;
	size_t backend;

	d->knowledge = ret == -ENOENT ? FLOW_MISS : FLOW_UNKNOWN;
	if (ret != 0)
		return;
	d->knowledge = FLOW_MISS;
	d->has_entry = true;
	if (!ctl_view_find_backend(view, d->entry.info.backend, &service, &backend))
		return;
	d->entry_service = &view->model.services[service];
	d->entry_backend = &d->entry_service->backends[backend];
	/* The packet goes where the entry says, which may be another service's backend. */
	if (view->services[service].confs[backend].is_live) {
		d->knowledge = FLOW_HIT;
		d->service = d->entry_service;
		d->backend = d->entry_backend;
		d->conf = &view->services[service].confs[backend];
	}
}

/* Whether the service refuses the tunnels that have the port. */
static bool
refuses(const struct cfg_model *model, const struct cfg_service *service, uint16_t port)
{
	const struct lb_service_match match = ctl_apply_match(service);
	uint8_t tunnels = lb_tunnel_of_port(port);

	for (size_t i = 0; i < model->n_services; i++) {
		if (ctl_apply_tunnel_port(&model->services[i]) == port)
			tunnels |= lb_tunnel_of_mode(
				(enum lb_forward_mode)model->services[i].forward);
	}
	return (tunnels & lb_tunnel_refused(&match, service->carry, tunnels,
				  (enum lb_forward_mode)service->forward)) != 0;
}

/* As the packet path decides: the entry first, and then the table. */
static void
decide(struct dp *dp, const struct ctl_view *view, const struct lb_flow_key *key,
	struct decision *d)
{
	const struct cfg_model *model = &view->model;
	const uint32_t place =
		lb_service_find(view->match, &key->dst, key->proto, ntohs(key->dport_be));
	size_t service;
	size_t backend;
	uint32_t id;

	*d = (struct decision){.verdict = model->dataplane.kernel == CFG_KERNEL_NONE
						  ? LB_DROP_NO_SERVICE
						  : LB_TO_KERNEL};
	if (place == LB_SERVICE_NONE) {
		if (lb_martian_destination(&key->dst))
			d->verdict = LB_DROP_MARTIAN_DESTINATION;
		return;
	}
	if (key->proto == IPPROTO_UDP &&
		refuses(model, &model->services[place], ntohs(key->dport_be))) {
		d->verdict = LB_DROP_UNSUPPORTED_L4;
		return;
	}
	d->service = &model->services[place];
	d->hash = dp_flow_hash(dp, key);
	d->entropy = lb_hash_entropy(key);
	d->pick = lb_hash_pick(key, ctl_apply_affinity(d->service), model->hash_seed);
	ask_workers(dp, view, d);
	if (d->backend == NULL &&
		lb_martian_source(view->match, view->own, view->n_own, &key->src, &key->dst)) {
		d->verdict = LB_DROP_MARTIAN_SOURCE;
		return;
	}
	d->has_slot = dp_table_pick(view->services[place].table, d->pick, &d->slot, &id);
	if (d->backend == NULL && d->has_slot &&
		ctl_view_find_backend(view, id, &service, &backend)) {
		d->backend = &model->services[service].backends[backend];
		d->conf = &view->services[service].confs[backend];
	}
	if (d->backend == NULL)
		d->verdict = LB_DROP_NO_BACKEND;
	else
		d->verdict = d->conf->has_next_hop ? LB_FORWARD : LB_DROP_NO_NEXT_HOP;
}

/* The UDP source port, from the header that the data plane would write. */
static uint16_t
read_source_port(const struct decision *d)
{
	const struct lb_encap_packet packet = {.inner_bytes = 40, .entropy = d->entropy};
	uint8_t bytes[LB_ENCAP_BYTES_MAX] = {0};
	const size_t at = lb_addr_is_v4(&d->conf->encap.dst) ? 20 : 40;
	struct lb_encap encap;

	if (lb_encap_init(&encap, &d->conf->encap) != 0)
		return 0;
	lb_encap_write(&encap, &packet, bytes);
	return (uint16_t)(bytes[at] << 8 | bytes[at + 1]);
}

/* A port without an address of the backend's family has no source, and no next hop then. */
static bool
has_source(const struct lb_encap_conf *encap)
{
	static const struct lb_addr nothing;
	const struct lb_addr nothing_v4 = lb_addr_from_v4((const uint8_t[4]){0});

	return encap->mode != LB_FORWARD_L2 && !lb_addr_equal(&encap->src, &nothing) &&
	       !lb_addr_equal(&encap->src, &nothing_v4);
}

static json_t *
make_outer(const struct decision *d)
{
	const struct lb_encap_conf *encap = &d->conf->encap;
	const bool is_l2 = encap->mode == LB_FORWARD_L2;
	const bool is_udp = encap->mode == LB_FORWARD_GUE || encap->mode == LB_FORWARD_VXLAN;
	char source[LB_ADDR_TEXT_BYTES];
	char destination[LB_ADDR_TEXT_BYTES];

	return json_pack("{s:s, s:s?, s:s?, s:o, s:o, s:i}", CTL_KEY_MODE,
		cfg_forward_words[encap->mode], CTL_KEY_SOURCE,
		has_source(encap) ? lb_addr_format(&encap->src, source) : NULL,
		CTL_KEY_DESTINATION, is_l2 ? NULL : lb_addr_format(&encap->dst, destination),
		CTL_KEY_UDP_SOURCE_PORT,
		is_udp ? json_integer(read_source_port(d)) : json_null(), CTL_KEY_UDP_PORT,
		is_udp ? json_integer(encap->udp_port) : json_null(), CTL_KEY_OVERHEAD,
		(int)lb_encap_overhead(encap->mode, !lb_addr_is_v4(&encap->dst)));
}

/* What a worker has of the flow. Its backend may be gone, and then it has no name. */
static json_t *
make_entry(const struct decision *d)
{
	return json_pack("{s:i, s:s?, s:s?, s:f, s:b}", CTL_KEY_WORKER, (int)d->entry.worker,
		CTL_KEY_SERVICE, d->entry_service != NULL ? d->entry_service->name : NULL,
		CTL_KEY_BACKEND, d->entry_backend != NULL ? d->entry_backend->name : NULL,
		CTL_KEY_IDLE_SECONDS, (double)d->entry.info.idle_ns / 1e9, CTL_KEY_CONFIRMED,
		(int)d->entry.info.is_confirmed);
}

/* How the backend is reached: port and next hop, null where that is not known. */
static int
add_way(json_t *result, const struct cfg_model *model, const struct decision *d)
{
	const struct dp_backend_conf *conf = d->conf;
	/* Without a port there is no MTU. */
	const bool has_port = conf != NULL && conf->mtu != 0;
	char mac[LB_MAC_TEXT_BYTES];

	return json_object_set_new(result, CTL_KEY_PORT,
		       has_port ? ctl_params_any_text(model->dataplane.ports[conf->port].name)
				: json_null()) |
	       json_object_set_new(result, CTL_KEY_NEXT_HOP,
		       conf != NULL && conf->has_next_hop
			       ? json_string(lb_mac_format(&conf->next_hop, mac))
			       : json_null());
}

static json_t *
make_result(const struct ctl_view *view, const struct decision *d)
{
	static const char *const flow_words[] =
		{[FLOW_HIT] = CTL_FLOW_HIT, [FLOW_MISS] = CTL_FLOW_MISS, [FLOW_UNKNOWN] = NULL};
	const bool has_backend = d->backend != NULL;
	char address[LB_ADDR_TEXT_BYTES];
	char hash[24];
	json_t *result;

	(void)snprintf(hash, sizeof(hash), "0x%016" PRIx64, d->pick);
	result = json_pack("{s:i, s:o, s:s, s:s?, s:s?, s:s?, s:o, s:s?, s:s?, s:s?, s:o, s:o}",
		CTL_KEY_SCHEMA, CTL_SCHEMA, CTL_KEY_GENERATION,
		ctl_params_number(view->generation), CTL_KEY_VERDICT,
		lb_verdict_name(d->verdict), CTL_KEY_REASON, lb_verdict_reason(d->verdict),
		CTL_KEY_SERVICE, d->service != NULL ? d->service->name : NULL, CTL_KEY_HASH,
		d->service != NULL ? hash : NULL, CTL_KEY_SLOT,
		d->has_slot ? json_integer(d->slot) : json_null(), CTL_KEY_BACKEND,
		has_backend ? d->backend->name : NULL, CTL_KEY_BACKEND_ADDRESS,
		has_backend ? lb_addr_format(&d->backend->address, address) : NULL,
		CTL_KEY_FLOW, flow_words[d->knowledge], CTL_KEY_ENTRY,
		d->has_entry ? make_entry(d) : json_null(), CTL_KEY_OUTER,
		d->verdict == LB_FORWARD ? make_outer(d) : json_null());
	if (add_way(result, &view->model, d) == 0)
		return result;
	json_decref(result);
	return NULL;
}

void
ctl_method_explain(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_PROTOCOL, CTL_KEY_CLIENT,
		CTL_KEY_DESTINATION, NULL};
	const struct ctl_view *view = ctl_daemon_view(context);
	struct lb_flow_key key;
	struct decision decision;

	if (!ctl_params_check(params, keys, call) || !ctl_filter_read_flow(params, call, &key))
		return;
	decide(ctl_daemon_dp(context), view, &key, &decision);
	ctl_call_result(call, make_result(view, &decision));
}
