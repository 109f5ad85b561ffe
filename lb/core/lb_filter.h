/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_FILTER_H
#define LB_FILTER_H

/**
 * @file
 * Which packets or flows somebody wants to see: by addresses, ports and protocol.
 *
 * Made ready so that a look costs some comparisons, the same whatever is asked for. Pure;
 * immutable once made, and then any thread may use it.
 */

#include <stdbool.h>
#include <string.h>

#include "lb_flow.h"

/** Addresses, or an address, that one of both ends lies in. */
#define LB_FILTER_NETS 2u

struct lb_filter_conf {
	const struct lb_prefix *nets[LB_FILTER_NETS]; /**< either end lies in each; NULL: any */
	const struct lb_prefix *client;               /**< the flow's src; NULL: any */
	uint16_t port;                                /**< either end's, host order; 0: any */
	bool has_protocol;
	/** Either of them; the same twice where there is but one. */
	uint8_t protocols[2];
};

/** A prefix as two words of an address' bytes; all zero, any address lies in it. */
struct lb_filter_net {
	uint64_t wanted[2];
	uint64_t mask[2];
};

/** All zero lets everything through. */
struct lb_filter {
	struct lb_filter_net nets[LB_FILTER_NETS];
	struct lb_filter_net client;
	uint16_t port_be;
	bool has_protocol;
	uint8_t protocols[2];
};

/** Make a filter. @param conf  Prefixes may have host bits, which count for nothing. */
void lb_filter_init(struct lb_filter *filter, const struct lb_filter_conf *conf);

static inline bool
lb_filter_holds(const struct lb_filter_net *net, const struct lb_addr *addr)
{
	uint64_t words[2];

	memcpy(words, addr->bytes, sizeof(words));
	return (((words[0] ^ net->wanted[0]) & net->mask[0]) |
		       ((words[1] ^ net->wanted[1]) & net->mask[1])) == 0;
}

/**
 * Whether a flow, or a packet of it, is wanted.
 *
 * @param protocol  IPPROTO_*, mostly the key's: of an ICMP error about a flow its own.
 */
static inline bool
lb_filter_passes(const struct lb_filter *filter, const struct lb_flow_key *key,
	uint8_t protocol)
{
	bool passes = lb_filter_holds(&filter->client, &key->src);

	for (size_t i = 0; i < LB_FILTER_NETS; i++)
		passes = passes && (lb_filter_holds(&filter->nets[i], &key->src) ||
					   lb_filter_holds(&filter->nets[i], &key->dst));
	if (filter->port_be != 0)
		passes = passes &&
			 (key->sport_be == filter->port_be || key->dport_be == filter->port_be);
	if (filter->has_protocol)
		passes = passes &&
			 (protocol == filter->protocols[0] || protocol == filter->protocols[1]);
	return passes;
}

/** Whether it lets everything through, also what has no addresses. */
static inline bool
lb_filter_is_open(const struct lb_filter *filter)
{
	return (filter->nets[0].mask[0] | filter->nets[0].mask[1] | filter->nets[1].mask[0] |
		       filter->nets[1].mask[1] | filter->client.mask[0] |
		       filter->client.mask[1]) == 0 &&
	       filter->port_be == 0 && !filter->has_protocol;
}

#endif
