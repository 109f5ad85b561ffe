/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_translate.h"

#include <netinet/in.h>
#include <string.h>

#include "lb_csum.h"

enum {
	V4_BYTES = 20,
	V4_CSUM_AT = 10,
	V4_SOURCE_AT = 12,
	V6_BYTES = 40,
	V6_SOURCE_AT = 8,
	TCP_BYTES = 20,
	TCP_CSUM_AT = 16,
	UDP_BYTES = 8,
	UDP_CSUM_AT = 6,
};

/* Where things are in a packet. */
struct layout {
	uint8_t protocol;
	size_t addresses_at;
	size_t address_bytes;
	size_t l4_at;
};

static uint16_t
load_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool
is_v4(const uint8_t *ip)
{
	return ip[0] >> 4 == 4;
}

static struct layout
find_layout(const uint8_t *ip)
{
	if (is_v4(ip))
		return (struct layout){ip[9], V4_SOURCE_AT, 4, (size_t)(ip[0] & 15u) * 4};
	return (struct layout){ip[6], V6_SOURCE_AT, LB_ADDR_BYTES, V6_BYTES};
}

static struct lb_addr
load_address(const uint8_t *p, size_t n_bytes)
{
	struct lb_addr address;

	if (n_bytes == 4)
		return lb_addr_from_v4(p);
	memcpy(address.bytes, p, LB_ADDR_BYTES);
	return address;
}

/* Whether its header is there, of a packet that is no fragment. */
static bool
has_header(const uint8_t *ip, size_t n_bytes)
{
	if (n_bytes < V4_BYTES)
		return false;
	if (is_v4(ip))
		return (ip[0] & 15u) * 4 >= V4_BYTES && (load_be16(ip + 6) & 0x3fff) == 0;
	return ip[0] >> 4 == 6 && n_bytes >= V6_BYTES;
}

bool
hc_translate_read(const uint8_t *ip, size_t n_bytes, struct hc_ends *out)
{
	struct layout layout;
	size_t l4_bytes;
	const uint8_t *at;

	if (!has_header(ip, n_bytes))
		return false;
	layout = find_layout(ip);
	if (layout.protocol != IPPROTO_TCP && layout.protocol != IPPROTO_UDP)
		return false;
	l4_bytes = layout.protocol == IPPROTO_TCP ? TCP_BYTES : UDP_BYTES;
	if (n_bytes < layout.l4_at + l4_bytes)
		return false;
	at = ip + layout.addresses_at;
	*out = (struct hc_ends){
		.source = load_address(at, layout.address_bytes),
		.destination = load_address(at + layout.address_bytes, layout.address_bytes),
		.source_port = load_be16(ip + layout.l4_at),
		.destination_port = load_be16(ip + layout.l4_at + 2),
	};
	return true;
}

static size_t
find_csum(const struct layout *layout)
{
	return layout->l4_at + (layout->protocol == IPPROTO_UDP ? UDP_CSUM_AT : TCP_CSUM_AT);
}

void
hc_translate_finish(uint8_t *ip, size_t n_bytes)
{
	const struct layout layout = find_layout(ip);
	const size_t end = is_v4(ip) ? load_be16(ip + 2) : V6_BYTES + load_be16(ip + 4);
	const size_t l4_bytes = end - layout.l4_at;
	const uint8_t rest[] = {0, layout.protocol, (uint8_t)(l4_bytes >> 8),
		(uint8_t)l4_bytes};
	uint8_t *csum = ip + find_csum(&layout);
	uint64_t sum;
	uint16_t field;

	if (end > n_bytes || csum + 2 > ip + end)
		return;
	sum = lb_csum_add(0, ip + layout.addresses_at, 2 * layout.address_bytes);
	sum = lb_csum_add(sum, rest, sizeof(rest));
	memcpy(&field, csum, sizeof(field));
	if (field != lb_csum_fold(sum))
		return;
	/* The field has what belongs to the sum besides the packet's own bytes. */
	field = lb_csum_finish(lb_csum_add(0, ip + layout.l4_at, l4_bytes));
	if (field == 0 && layout.protocol == IPPROTO_UDP)
		field = UINT16_MAX;
	memcpy(csum, &field, sizeof(field));
}

/* ~(~HC + ~m + m'), RFC 1624, equation 3. */
static void
replace(uint8_t *csum, const uint8_t *before, const uint8_t *after, size_t n_bytes)
{
	uint16_t field;
	uint64_t sum;

	memcpy(&field, csum, sizeof(field));
	sum = lb_csum_join((uint16_t)~field,
		(uint16_t)~lb_csum_fold(lb_csum_add(0, before, n_bytes)));
	field = lb_csum_finish(lb_csum_add(sum, after, n_bytes));
	memcpy(csum, &field, sizeof(field));
}

void
hc_translate_write(uint8_t *ip, const struct lb_addr *source, const struct lb_addr *destination)
{
	const struct layout layout = find_layout(ip);
	const bool is_udp = layout.protocol == IPPROTO_UDP;
	const size_t skip = LB_ADDR_BYTES - layout.address_bytes;
	const size_t n_bytes = 2 * layout.address_bytes;
	uint8_t *csum = ip + find_csum(&layout);
	uint8_t *at = ip + layout.addresses_at;
	uint8_t after[2 * LB_ADDR_BYTES];

	memcpy(after, source->bytes + skip, layout.address_bytes);
	memcpy(after + layout.address_bytes, destination->bytes + skip, layout.address_bytes);
	if (is_v4(ip))
		replace(ip + V4_CSUM_AT, at, after, n_bytes);
	if (!is_udp || load_be16(csum) != 0) {
		replace(csum, at, after, n_bytes);
		if (is_udp && load_be16(csum) == 0)
			memset(csum, 0xff, 2);
	}
	memcpy(at, after, n_bytes);
}
