/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_filter.h"

#include <netinet/in.h>

static void
make_net(struct lb_filter_net *net, const struct lb_prefix *prefix)
{
	struct lb_addr addr = {{0}};

	if (prefix == NULL)
		return;
	memset(addr.bytes, 0xff, sizeof(addr.bytes));
	addr = lb_addr_mask(&addr, prefix->n_bits);
	memcpy(net->mask, addr.bytes, sizeof(net->mask));
	memcpy(net->wanted, prefix->addr.bytes, sizeof(net->wanted));
}

void
lb_filter_init(struct lb_filter *filter, const struct lb_filter_conf *conf)
{
	*filter = (struct lb_filter){
		.port_be = htons(conf->port),
		.has_protocol = conf->has_protocol,
		.protocols = {conf->protocols[0], conf->protocols[1]},
	};
	for (size_t i = 0; i < LB_FILTER_NETS; i++)
		make_net(&filter->nets[i], conf->nets[i]);
	make_net(&filter->client, conf->client);
}
