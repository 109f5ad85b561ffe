/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lb_hex.h"

bool
lb_addr_is_unicast(const struct lb_addr *addr)
{
	static const struct lb_addr unspecified;
	static const struct lb_addr loopback = {.bytes = {[15] = 1}};
	const uint8_t *v4 = addr->bytes + 12;

	if (!lb_addr_is_v4(addr))
		return addr->bytes[0] != 0xff && !lb_addr_equal(addr, &unspecified) &&
		       !lb_addr_equal(addr, &loopback);

	/* 0/8 is "this network", 127/8 loopback, 224/4 multicast, 240/4 reserved. */
	return v4[0] != 0 && v4[0] != 127 && v4[0] < 224;
}

int
lb_addr_parse(const char *text, struct lb_addr *out)
{
	struct lb_addr addr;
	uint8_t v4[4];

	/* inet_pton() refuses leading zeros in a dotted quad, as we must: 010 may mean 8. */
	if (inet_pton(AF_INET, text, v4) == 1) {
		*out = lb_addr_from_v4(v4);
		return 0;
	}
	if (inet_pton(AF_INET6, text, addr.bytes) != 1 || lb_addr_is_v4(&addr))
		return -EINVAL;

	*out = addr;
	return 0;
}

/* Decimal digits without sign or leading zero, 0..max. */
static int
parse_length(const char *text, unsigned int max, unsigned int *out)
{
	unsigned int value = 0;

	if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0'))
		return -EINVAL;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		value = value * 10 + (unsigned int)(*text - '0');
		if (value > max)
			return -EINVAL;
	}
	*out = value;
	return 0;
}

int
lb_prefix_parse(const char *text, struct lb_prefix *out)
{
	char head[LB_ADDR_TEXT_BYTES];
	const char *slash = strchr(text, '/');
	const size_t n = slash == NULL ? strlen(text) : (size_t)(slash - text);
	struct lb_prefix prefix;
	unsigned int n_bits;
	bool is_v4;
	int ret;

	if (n >= sizeof(head))
		return -EINVAL;
	memcpy(head, text, n);
	head[n] = '\0';

	ret = lb_addr_parse(head, &prefix.addr);
	if (ret != 0)
		return ret;

	is_v4 = lb_addr_is_v4(&prefix.addr);
	n_bits = is_v4 ? 32 : 128;
	if (slash != NULL) {
		ret = parse_length(slash + 1, n_bits, &n_bits);
		if (ret != 0)
			return ret;
	}
	prefix.n_bits = (uint8_t)(is_v4 ? 96 + n_bits : n_bits);
	*out = prefix;
	return 0;
}

struct lb_addr
lb_addr_mask(const struct lb_addr *addr, unsigned int n_bits)
{
	struct lb_addr masked = *addr;

	for (unsigned int i = 0; i < LB_ADDR_BYTES; i++) {
		const unsigned int before = i * 8;

		if (n_bits <= before)
			masked.bytes[i] = 0;
		else if (n_bits < before + 8)
			masked.bytes[i] &= (uint8_t)(0xff00u >> (n_bits - before));
	}
	return masked;
}

bool
lb_prefix_equal(const struct lb_prefix *a, const struct lb_prefix *b)
{
	return a->n_bits == b->n_bits && lb_addr_equal(&a->addr, &b->addr);
}

bool
lb_prefix_has_host_bits(const struct lb_prefix *prefix)
{
	const struct lb_addr masked = lb_addr_mask(&prefix->addr, prefix->n_bits);

	return !lb_addr_equal(&masked, &prefix->addr);
}

int
lb_mac_parse(const char *text, struct lb_mac *out)
{
	struct lb_mac mac;

	if (strlen(text) != LB_MAC_TEXT_BYTES - 1)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(mac.bytes); i++) {
		const int byte = lb_hex_byte(text + i * 3);

		if (byte < 0)
			return -EINVAL;
		if (i + 1 < sizeof(mac.bytes) && text[i * 3 + 2] != ':')
			return -EINVAL;
		mac.bytes[i] = (uint8_t)byte;
	}
	*out = mac;
	return 0;
}

char *
lb_addr_format(const struct lb_addr *addr, char out[static LB_ADDR_TEXT_BYTES])
{
	/* Cannot fail: the family is known and the room is INET6_ADDRSTRLEN. */
	if (lb_addr_is_v4(addr))
		(void)inet_ntop(AF_INET, addr->bytes + 12, out, LB_ADDR_TEXT_BYTES);
	else
		(void)inet_ntop(AF_INET6, addr->bytes, out, LB_ADDR_TEXT_BYTES);
	return out;
}

char *
lb_prefix_format(const struct lb_prefix *prefix, char out[static LB_PREFIX_TEXT_BYTES])
{
	const unsigned int n_bits =
		lb_addr_is_v4(&prefix->addr) ? prefix->n_bits - 96u : prefix->n_bits;

	(void)lb_addr_format(&prefix->addr, out);
	if (prefix->n_bits < 128) {
		const size_t n = strlen(out);

		(void)snprintf(out + n, LB_PREFIX_TEXT_BYTES - n, "/%u", n_bits);
	}
	return out;
}

char *
lb_mac_format(const struct lb_mac *mac, char out[static LB_MAC_TEXT_BYTES])
{
	const uint8_t *b = mac->bytes;

	(void)snprintf(out, LB_MAC_TEXT_BYTES, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1],
		b[2], b[3], b[4], b[5]);
	return out;
}
