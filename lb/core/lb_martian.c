/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_martian.h"

#include "lb_bytes.h"
#include "lb_service_lookup.h"

#define FILTER_WORDS_MIN (LB_CACHE_LINE / sizeof(uint64_t))
#define BITS_A_HOST      32u

/* 0/8 and 127/8; :: and ::1. */
static bool
is_nobody(const uint64_t addr[2])
{
	if (lb_usual_is_mapped(addr[0], addr[1]))
		return lb_martian_first_byte(addr) == 0 || lb_martian_first_byte(addr) == 127;
	return lb_martian_is_lowest(addr);
}

bool
lb_martian_destination(const struct lb_addr *dst)
{
	uint64_t to[2];

	lb_service_words(dst, to);
	return is_nobody(to);
}

bool
lb_martian_source(const struct lb_service_table *services, const struct lb_addr *own,
	size_t n_own, const struct lb_addr *source, const struct lb_addr *dst)
{
	uint64_t from[2];
	uint64_t to[2];

	lb_service_words(source, from);
	lb_service_words(dst, to);
	return lb_martian_words(services, own, n_own, from, to);
}

bool
lb_martian_words(const struct lb_service_table *services, const struct lb_addr *own,
	size_t n_own, const uint64_t source[2], const uint64_t dst[2])
{
	if (lb_martian_is_no_host(source) || ((source[0] ^ dst[0]) | (source[1] ^ dst[1])) == 0)
		return true;
	for (size_t i = 0; i < n_own; i++)
		if (((source[0] ^ lb_bytes_load64(own[i].bytes)) |
			    (source[1] ^ lb_bytes_load64(own[i].bytes + 8))) == 0)
			return true;
	return lb_service_has_host_words(services, source);
}

size_t
lb_martian_filter_words(size_t n_hosts)
{
	size_t n = FILTER_WORDS_MIN;

	while (n * 64 < n_hosts * BITS_A_HOST)
		n *= 2;
	return n;
}

void
lb_martian_filter_init(struct lb_martian_filter *filter, uint64_t *words,
	const struct lb_addr *hosts, size_t n_hosts)
{
	const uint64_t n_bits = lb_martian_filter_words(n_hosts) * 64;

	*filter = (struct lb_martian_filter){
		.bits = words,
		.shift = (uint8_t)(__builtin_clzll(n_bits) + 1),
	};
	for (size_t i = 0; i < n_hosts; i++) {
		uint64_t addr[2];
		uint64_t bit;

		lb_service_words(&hosts[i], addr);
		bit = lb_martian_hash(addr) >> filter->shift;
		words[bit / 64] |= UINT64_C(1) << bit % 64;
	}
}
