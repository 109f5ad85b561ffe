/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_service.h"

/* Of whom is used, at a share of its own or as if it were up. */
static uint8_t
find_share(const struct hc_member *member, enum hc_use least, bool is_kept)
{
	if (!member->takes_flows || is_kept)
		return HC_SHARE_WHOLE;
	return member->use >= least ? (uint8_t)member->share : 0;
}

struct hc_service
hc_service_judge(const struct hc_member *members, size_t n, enum hc_all_down all_down,
	size_t n_needed, uint8_t *shares)
{
	struct hc_service service = {0};
	enum hc_use least = HC_USE_LAST;
	size_t n_used = 0;

	for (size_t i = 0; i < n; i++) {
		if (members[i].takes_flows && members[i].use == HC_USE_YES)
			least = HC_USE_YES;
	}
	for (size_t i = 0; i < n; i++) {
		if (!members[i].takes_flows)
			continue;
		service.n_members++;
		n_used += members[i].use >= least;
		service.n_healthy += members[i].use >= least && !members[i].is_awaited;
	}
	service.is_ready = service.n_healthy > 0 && service.n_healthy >= n_needed;
	service.is_all_down = service.n_members > 0 && n_used == 0;
	for (size_t i = 0; i < n; i++)
		shares[i] = find_share(&members[i], least,
			service.is_all_down && all_down == HC_KEEP);
	return service;
}
