/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_prime.h"

bool
lb_is_prime(uint32_t n)
{
	if (n < 2 || (n > 2 && n % 2 == 0))
		return false;
	for (uint32_t d = 3; (uint64_t)d * d <= n; d += 2) {
		if (n % d == 0)
			return false;
	}
	return true;
}

uint32_t
lb_next_prime(uint32_t n)
{
	while (!lb_is_prime(n)) {
		if (n == UINT32_MAX)
			return 0;
		n++;
	}
	return n;
}
