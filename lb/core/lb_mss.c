/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_mss.h"

#include <string.h>

#include "lb_csum.h"
#include "lb_packet.h"

enum {
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,

	/* TCP, by offset. */
	TCP_HEADER_WORDS = 12, /* in the byte's upper half */
	TCP_FLAGS = 13,
	TCP_CSUM = 16,
	TCP_BYTES = 20,
	TCP_OPTION_END = 0,
	TCP_OPTION_NOP = 1,
	TCP_OPTION_MSS = 2,
	TCP_OPTION_MSS_BYTES = 4,
};

uint16_t
lb_mss_of(unsigned int mtu, unsigned int overhead, bool is_v6)
{
	const unsigned int headers = (is_v6 ? IPV6_BYTES : IPV4_BYTES) + TCP_BYTES;
	unsigned int mss;

	if (mtu < overhead || mtu - overhead < headers)
		return 0;
	mss = mtu - overhead - headers;
	return (uint16_t)(mss < UINT16_MAX ? mss : UINT16_MAX);
}

/* Two bytes as the checksum counts them: at an odd offset they lie in two of its words. */
static uint64_t
sum_at(const uint8_t *bytes, size_t offset)
{
	const uint64_t sum = lb_csum_add(0, bytes, 2);

	return offset % 2 == 0 ? sum : lb_csum_swap(sum);
}

/* Eqn. 3 of RFC 1624: HC' = ~(~HC + ~m + m'). offset is below 60. */
static void
store_mss(uint8_t *tcp, size_t offset, uint16_t mss)
{
	const uint8_t bytes[2] = {(uint8_t)(mss >> 8), (uint8_t)mss};
	uint16_t csum;
	uint64_t sum;

	memcpy(&csum, tcp + TCP_CSUM, sizeof(csum));
	sum = (uint64_t)(uint16_t)~csum + (UINT16_MAX - sum_at(tcp + offset, offset)) +
	      sum_at(bytes, offset);
	csum = lb_csum_finish(sum);
	memcpy(tcp + TCP_CSUM, &csum, sizeof(csum));
	memcpy(tcp + offset, bytes, sizeof(bytes));
}

bool
lb_mss_clamp(uint8_t *tcp, size_t n_bytes, uint16_t mss)
{
	bool is_changed = false;
	uint8_t end;
	size_t next;

	if (mss == 0 || n_bytes < TCP_BYTES || (tcp[TCP_FLAGS] & LB_TCP_SYN) == 0)
		return false;
	end = (uint8_t)((tcp[TCP_HEADER_WORDS] >> 4) * 4);
	if (end > n_bytes)
		return false;

	/* Receivers differ in which of two options they believe: so none may say more. */
	//@ loop variant end - at;
	for (size_t at = TCP_BYTES; at < end && tcp[at] != TCP_OPTION_END; at = next) {
		next = at + 1;
		if (tcp[at] == TCP_OPTION_NOP)
			continue;
		if (next >= end || tcp[next] < 2)
			break;
		next = at + tcp[next];
		if (next > end)
			break;
		if (tcp[at] == TCP_OPTION_MSS && at + TCP_OPTION_MSS_BYTES == next &&
			(tcp[at + 2] << 8 | tcp[at + 3]) > mss) {
			store_mss(tcp, at + 2, mss);
			is_changed = true;
		}
	}
	return is_changed;
}
