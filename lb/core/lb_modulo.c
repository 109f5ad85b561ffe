/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_modulo.h"

uint32_t
lb_modulo_owner(const struct lb_buckets *buckets, uint64_t hash)
{
	return lb_buckets_owner(buckets, (uint32_t)(hash % lb_buckets_count(buckets)));
}
