/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_filter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "cfg_nearest.h"
#include "cfg_node.h"
#include "ctl_params.h"
#include "ctl_proto.h"

static const struct {
	const char *word;
	uint8_t number;
	uint8_t other; /* of the other family */
} protocols[] = {
	{"tcp", IPPROTO_TCP, IPPROTO_TCP},
	{"udp", IPPROTO_UDP, IPPROTO_UDP},
	{"icmp", IPPROTO_ICMP, IPPROTO_ICMPV6},
	{"icmpv6", IPPROTO_ICMPV6, IPPROTO_ICMPV6},
};

bool
ctl_filter_read_text(const json_t *params, const char *key, struct ctl_call *call,
	const char **text)
{
	const json_t *value = json_object_get(params, key);

	*text = NULL;
	if (value == NULL || json_is_null(value))
		return true;
	*text = ctl_params_text(params, key, call);
	return *text != NULL;
}

/* A prefix that may be absent: then has is false. */
static bool
read_prefix(const json_t *params, const char *key, struct ctl_call *call, bool *has,
	struct lb_prefix *prefix)
{
	struct lb_prefix plain;
	char right[LB_PREFIX_TEXT_BYTES];
	const char *text;

	if (!ctl_filter_read_text(params, key, call, &text))
		return false;
	*has = text != NULL;
	if (text == NULL)
		return true;
	if (lb_prefix_parse(text, prefix) != 0) {
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"%s: expected an address or a prefix such as 192.0.2.0/24, found '%s'",
			key, text);
		return false;
	}
	if (!lb_prefix_has_host_bits(prefix))
		return true;
	plain = (struct lb_prefix){lb_addr_mask(&prefix->addr, prefix->n_bits), prefix->n_bits};
	ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
		"%s: '%s' has host bits; did you mean '%s'?", key, text,
		lb_prefix_format(&plain, right));
	return false;
}

static bool
read_host(const json_t *params, struct ctl_call *call, bool *has, struct lb_prefix *host)
{
	const char *text;

	if (!ctl_filter_read_text(params, CTL_KEY_HOST, call, &text))
		return false;
	*has = text != NULL;
	host->n_bits = LB_ADDR_BYTES * 8;
	if (text == NULL || lb_addr_parse(text, &host->addr) == 0)
		return true;
	ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
		"host: expected an address such as 192.0.2.1 or 2001:db8::1, found '%s'%s",
		text, strchr(text, '/') != NULL ? "; a prefix is a 'net'" : "");
	return false;
}

static bool
read_protocol(const json_t *params, struct ctl_call *call, struct lb_filter_conf *conf)
{
	const char *text;
	uint64_t number;

	if (!ctl_filter_read_text(params, CTL_KEY_PROTOCOL, call, &text))
		return false;
	if (text == NULL)
		return true;
	conf->has_protocol = true;
	for (size_t i = 0; i < LB_N_ELEMENTS(protocols); i++) {
		conf->protocols[0] = protocols[i].number;
		conf->protocols[1] = protocols[i].other;
		if (strcmp(text, protocols[i].word) == 0)
			return true;
	}
	if (!cfg_scan_u64(text, 0, UINT8_MAX, &number)) {
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"protocol: expected tcp, udp, icmp, icmpv6 or 0 to 255, found '%s'",
			text);
		return false;
	}
	conf->protocols[0] = (uint8_t)number;
	conf->protocols[1] = (uint8_t)number;
	return true;
}

bool
ctl_filter_read(const json_t *params, struct ctl_call *call, struct lb_filter *out)
{
	struct lb_filter_conf conf = {.port = 0};
	struct lb_prefix host;
	struct lb_prefix net;
	struct lb_prefix client;
	bool has_host;
	bool has_net;
	bool has_client;
	uint64_t port = 0;

	if (!read_host(params, call, &has_host, &host) ||
		!read_prefix(params, CTL_KEY_NET, call, &has_net, &net) ||
		!read_prefix(params, CTL_KEY_CLIENT, call, &has_client, &client) ||
		!ctl_filter_read_number(params, CTL_KEY_PORT, 1, UINT16_MAX, call, &port) ||
		!read_protocol(params, call, &conf))
		return false;
	conf.nets[0] = has_host ? &host : NULL;
	conf.nets[1] = has_net ? &net : NULL;
	conf.client = has_client ? &client : NULL;
	conf.port = (uint16_t)port;
	lb_filter_init(out, &conf);
	return true;
}

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

bool
ctl_filter_read_flow(const json_t *params, struct ctl_call *call, struct lb_flow_key *key)
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

bool
ctl_filter_read_service(const json_t *params, const struct cfg_model *model,
	struct ctl_call *call, const struct cfg_service **out)
{
	struct cfg_nearest nearest;
	const char *name;

	*out = NULL;
	if (!ctl_filter_read_text(params, CTL_KEY_SERVICE, call, &name))
		return false;
	if (name == NULL)
		return true;
	for (size_t i = 0; i < model->n_services && *out == NULL; i++)
		if (strcmp(model->services[i].name, name) == 0)
			*out = &model->services[i];
	if (*out != NULL)
		return true;
	cfg_nearest_init(&nearest, name, strlen(name));
	for (size_t i = 0; i < model->n_services; i++)
		cfg_nearest_offer(&nearest, model->services[i].name);
	if (nearest.best == NULL)
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"there is no service '%s', nor any other", name);
	else
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"there is no service '%s'; the nearest is '%s'", name, nearest.best);
	return false;
}

bool
ctl_filter_read_number(const json_t *params, const char *key, uint64_t min, uint64_t max,
	struct ctl_call *call, uint64_t *value)
{
	const json_t *found = json_object_get(params, key);
	char digits[24] = "";
	const char *text = json_string_value(found);

	if (found == NULL || json_is_null(found))
		return true;
	if (json_is_integer(found)) {
		(void)snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT,
			json_integer_value(found));
		text = digits;
	}
	if (text != NULL && cfg_scan_u64(text, min, max, value))
		return true;
	ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
		"%s: expected a whole number, %llu to %llu, found '%s'", key,
		(unsigned long long)min, (unsigned long long)max,
		text != NULL ? text : "something else");
	return false;
}

bool
ctl_filter_read_flag(const json_t *params, const char *key, struct ctl_call *call, bool *value)
{
	const json_t *found = json_object_get(params, key);

	if (found == NULL || json_is_null(found))
		return true;
	if (json_is_boolean(found)) {
		*value = json_is_true(found);
		return true;
	}
	ctl_call_error(call, CTL_RPC_INVALID_PARAMS, "%s: expected true or false", key);
	return false;
}

const char *
ctl_filter_protocol(uint8_t protocol, char out[static CTL_PROTOCOL_TEXT_BYTES])
{
	for (size_t i = 0; i < LB_N_ELEMENTS(protocols); i++)
		if (protocols[i].number == protocol)
			return protocols[i].word;
	(void)snprintf(out, CTL_PROTOCOL_TEXT_BYTES, "%u", protocol);
	return out;
}

const char *
ctl_filter_end(const struct lb_addr *addr, uint16_t port_be, bool has_port,
	char out[static CTL_END_TEXT_BYTES])
{
	char text[LB_ADDR_TEXT_BYTES];

	(void)lb_addr_format(addr, text);
	if (!has_port)
		(void)snprintf(out, CTL_END_TEXT_BYTES, "%s", text);
	else
		(void)snprintf(out, CTL_END_TEXT_BYTES,
			lb_addr_is_v4(addr) ? "%s:%u" : "[%s]:%u", text, ntohs(port_be));
	return out;
}
