/* SPDX-License-Identifier: BSD-3-Clause */

/* The usual packet: no more of it is read than is promised, whatever it says of its length. */

#include "lb_usual.h"
#include "proof.h"

/* What is asked of a packet that is usual: of its headers the last bytes that there are. */
static void
read_again(const uint8_t *ip, bool is_v6, const struct lb_usual *usual)
{
	struct lb_flow_words words;
	struct lb_flow_key key;

	(void)lb_usual_read_tos(ip, is_v6);
	lb_usual_read_key(ip, is_v6, &words);
	lb_usual_store_key(&words, &key);
	lb_usual_store_key(&usual->key, &key);
	if (usual->is_tcp)
		(void)lb_usual_read_seq(ip, is_v6);
}

int
main(void)
{
	const uint32_t v4_bytes = LB_USUAL_V4_READ_BYTES - LB_USUAL_IP_OFFSET;
	const uint32_t v6_bytes = LB_USUAL_V6_READ_BYTES - LB_USUAL_IP_OFFSET;
	struct lb_usual usual;

	make_any(frame_memory, sizeof(frame_memory));
	if (lb_usual_parse_v4(FRAME_END - v4_bytes, (uint32_t)any_u64(v4_bytes, UINT32_MAX),
		    &usual))
		read_again(FRAME_END - v4_bytes, false, &usual);
	if (lb_usual_parse_v6(FRAME_END - v6_bytes, (uint32_t)any_u64(v6_bytes, UINT32_MAX),
		    &usual))
		read_again(FRAME_END - v6_bytes, true, &usual);
	return 0;
}
