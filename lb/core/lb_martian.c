/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_martian.h"

#include <string.h>

/* 0/8, 127/8, 224/4 and 240/4, with all-ones among it; ::, ::1 and ff00::/8. */
static bool
is_no_host(const struct lb_addr *source)
{
	static const uint8_t zero[LB_ADDR_BYTES - 1];
	const uint8_t *p = source->bytes;

	if (lb_addr_is_v4(source))
		return p[12] == 0 || p[12] == 127 || p[12] >= 224;
	return p[0] == 0xff || (memcmp(p, zero, sizeof(zero)) == 0 && p[15] <= 1);
}

bool
lb_martian_source(const struct lb_service_table *services, const struct lb_addr *own,
	size_t n_own, const struct lb_addr *source, const struct lb_addr *dst)
{
	if (is_no_host(source) || lb_addr_equal(source, dst))
		return true;
	for (size_t i = 0; i < n_own; i++)
		if (lb_addr_equal(&own[i], source))
			return true;
	return lb_service_has_host(services, source);
}
