/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_sent_back.h"

#include <net/if.h>
#include <stdio.h>

#include "ctl_log.h"

static const char forward_v4[] = "/proc/sys/net/ipv4/ip_forward";
static const char forward_v6[] = "/proc/sys/net/ipv6/conf/all/forwarding";

struct finding {
	const struct cfg_service *first;
	int if_index;
	size_t n;
};

/* Whether a switch of the kernel's is on. Without the family there is none. */
static bool
is_on(const char *path)
{
	FILE *file = fopen(path, "re");
	int c;

	if (file == NULL)
		return false;
	c = fgetc(file);
	(void)fclose(file);
	return c != EOF && c != '0';
}

static bool
is_all(const struct lb_prefix *prefix)
{
	return prefix->n_bits == (lb_addr_is_v4(&prefix->addr) ? 96 : 0);
}

static bool
is_a_ports(const struct ctl_reach *reach, int if_index)
{
	for (size_t i = 0; i < LB_PORTS_MAX; i++)
		if (reach->if_index[i] == if_index)
			return true;
	return false;
}

static void
find(const struct ctl_reach *reach, const struct cfg_model *model, struct finding *out)
{
	const bool routes_v4 = is_on(forward_v4);
	const bool routes_v6 = is_on(forward_v6);

	for (size_t i = 0; i < model->n_services && i < CTL_SENT_BACK_SERVICES_MAX; i++) {
		const struct cfg_service *service = &model->services[i];
		const struct lb_addr *addr = &service->address.addr;
		int if_index;

		if (!(lb_addr_is_v4(addr) ? routes_v4 : routes_v6) ||
			is_all(&service->address) ||
			!ctl_netlink_find_way(reach->netlink, addr, &if_index) ||
			!is_a_ports(reach, if_index))
			continue;
		if (out->n++ == 0) {
			out->first = service;
			out->if_index = if_index;
		}
	}
}

void
ctl_sent_back_look(struct ctl_sent_back *sent_back, const struct ctl_reach *reach,
	const struct ctl_view *view)
{
	struct finding found = {.n = 0};
	char text[LB_PREFIX_TEXT_BYTES];
	char name[IF_NAMESIZE];
	bool is_v4;

	if (sent_back->has_looked)
		return;
	sent_back->has_looked = true;
	find(reach, &view->model, &found);
	if (found.n == 0 || if_indextoname((unsigned int)found.if_index, name) == NULL)
		return;
	is_v4 = lb_addr_is_v4(&found.first->address.addr);
	(void)lb_prefix_format(&found.first->address, text);
	ctl_log(CTL_LOG_WARNING,
		"the kernel routes, and would send back by %s what comes to %s and is not for "
		"service '%s', until its TTL ends (of %zu services' addresses): have it leave "
		"them, ip %sroute add blackhole %s metric 5000",
		name, text, found.first->name, found.n, is_v4 ? "" : "-6 ", text);
}
