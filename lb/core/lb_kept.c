/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_kept.h"

#include "lb_compiler.h"

enum {
	HOST_BITS = 128,
	/* An IPv4 network as long as this has two hosts and no broadcast (RFC 3021). */
	IPV4_PAIR_BITS = 96 + 31,
};

/* Whether a prefix has another, longer one in it; of one family, as ::/0 has no IPv4 in it. */
static bool
is_around(const struct lb_prefix *prefix, const struct lb_prefix *other)
{
	const struct lb_addr masked = lb_addr_mask(&other->addr, prefix->n_bits);

	return prefix->n_bits < other->n_bits &&
	       lb_addr_is_v4(&prefix->addr) == lb_addr_is_v4(&other->addr) &&
	       lb_addr_equal(&masked, &prefix->addr);
}

static size_t
keep(struct lb_service_match *matches, size_t n_services, size_t n,
	const struct lb_prefix *kept)
{
	for (size_t i = 0; i < n_services; i++) {
		if (is_around(&matches[i].prefix, kept)) {
			matches[n] = (struct lb_service_match){
				.prefix = *kept,
				.service = LB_SERVICE_NONE,
			};
			return n + 1;
		}
	}
	return n;
}

size_t
lb_kept_groups(struct lb_service_match *matches, size_t n_services, size_t n)
{
	static const struct lb_prefix groups[LB_KEPT_GROUPS_MAX] = {
		{{{[10] = 0xff, [11] = 0xff, [12] = 224}}, 96 + 4},
		{{{[10] = 0xff, [11] = 0xff, [12] = 255, 255, 255, 255}}, 96 + 32},
		{{{0xff}}, 8},
		{{{0xfe, 0x80}}, 10},
		{{{[10] = 0xff, [11] = 0xff}}, 96 + 8},
		{{{[10] = 0xff, [11] = 0xff, [12] = 127}}, 96 + 8},
		{{{0}}, HOST_BITS},
		{{{[15] = 1}}, HOST_BITS},
	};

	for (size_t i = 0; i < LB_N_ELEMENTS(groups); i++)
		n = keep(matches, n_services, n, &groups[i]);
	return n;
}

size_t
lb_kept_network(struct lb_service_match *matches, size_t n_services, size_t n,
	const struct lb_prefix *network)
{
	struct lb_prefix kept = {.addr = network->addr, .n_bits = HOST_BITS};

	n = keep(matches, n_services, n, &kept);
	if (!lb_addr_is_v4(&network->addr) || network->n_bits >= IPV4_PAIR_BITS)
		return n;
	for (unsigned int bit = network->n_bits; bit < HOST_BITS; bit++)
		kept.addr.bytes[bit / 8] |= (uint8_t)(0x80u >> bit % 8);
	return keep(matches, n_services, n, &kept);
}
