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
	size_t n_last = 0;
	enum hc_use least;

	for (size_t i = 0; i < n; i++) {
		if (!members[i].takes_flows)
			continue;
		service.n_members++;
		service.n_healthy += members[i].use == HC_USE_YES;
		n_last += members[i].use == HC_USE_LAST;
	}
	service.is_ready = service.n_healthy > 0 && service.n_healthy >= n_needed;
	service.is_all_down = service.n_members > 0 && service.n_healthy + n_last == 0;
	least = service.n_healthy > 0 ? HC_USE_YES : HC_USE_LAST;
	for (size_t i = 0; i < n; i++)
		shares[i] = find_share(&members[i], least,
			service.is_all_down && all_down == HC_KEEP);
	return service;
}
