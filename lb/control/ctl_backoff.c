/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_backoff.h"

uint32_t
ctl_backoff_next(struct ctl_backoff *backoff, uint32_t random)
{
	uint32_t limit = backoff->limit_ms * 2;

	if (limit < CTL_BACKOFF_MS_MIN)
		limit = CTL_BACKOFF_MS_MIN;
	if (limit > CTL_BACKOFF_MS_MAX)
		limit = CTL_BACKOFF_MS_MAX;
	backoff->limit_ms = limit;
	return limit / 2 + (uint32_t)((uint64_t)random * (limit - limit / 2 + 1) >> 32);
}
