/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_martian.h"

#include "lb_bytes.h"
#include "lb_service_lookup.h"
#include "lb_usual.h"

/* The first byte of an IPv4 address, which is mapped. */
static uint32_t
first_byte_v4(const uint64_t addr[2])
{
	return (uint32_t)(addr[1] >> 32) & 0xff;
}

/* 0/8 and 127/8; :: and ::1. */
static bool
is_nobody(const uint64_t addr[2])
{
	if (lb_usual_is_mapped(addr[0], addr[1]))
		return first_byte_v4(addr) == 0 || first_byte_v4(addr) == 127;
	return addr[0] == 0 && (addr[1] & ~(UINT64_C(1) << 56)) == 0;
}

/* Besides those 224/4 and 240/4, with all-ones among it, and ff00::/8. */
static bool
is_no_host(const uint64_t source[2])
{
	if (is_nobody(source))
		return true;
	if (lb_usual_is_mapped(source[0], source[1]))
		return first_byte_v4(source) >= 224;
	return (source[0] & 0xff) == 0xff;
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
	if (is_no_host(source) || ((source[0] ^ dst[0]) | (source[1] ^ dst[1])) == 0)
		return true;
	for (size_t i = 0; i < n_own; i++)
		if (((source[0] ^ lb_bytes_load64(own[i].bytes)) |
			    (source[1] ^ lb_bytes_load64(own[i].bytes + 8))) == 0)
			return true;
	return lb_service_has_host_words(services, source);
}
