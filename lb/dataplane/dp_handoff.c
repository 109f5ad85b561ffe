/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_handoff.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_thash.h>

#include "lb_hash.h"

/* Words of 32 bits in what is hashed: two addresses, and the ports as one. */
#define WORDS_MAX 9u

static uint32_t
scale(uint64_t hash, unsigned int n_workers)
{
	return (uint32_t)(((hash >> 32) * n_workers) >> 32);
}

/* An address in the order of the wire as words of this machine. @return how many. */
static unsigned int
load_words(const struct lb_addr *addr, uint32_t *out)
{
	const unsigned int n_bytes = lb_addr_is_v4(addr) ? 4 : LB_ADDR_BYTES;

	for (unsigned int i = 0; i < n_bytes / 4; i++) {
		uint32_t word;

		memcpy(&word, addr->bytes + LB_ADDR_BYTES - n_bytes + (size_t)4 * i,
			sizeof(word));
		out[i] = ntohl(word);
	}
	return n_bytes / 4;
}

unsigned int
dp_handoff_rss(const struct dp_rss *rss, const struct lb_packet *packet)
{
	const struct lb_flow_key *key = &packet->key;
	uint32_t words[WORDS_MAX];
	unsigned int n = load_words(&key->src, words);

	n += load_words(&key->dst, words + n);
	if (key->proto == IPPROTO_TCP || key->proto == IPPROTO_UDP)
		words[n++] = (uint32_t)ntohs(key->sport_be) << 16 | ntohs(key->dport_be);
	return rss->queue_of[rte_softrss(words, n, rss->key) & (rss->n_queues - 1u)];
}

unsigned int
dp_handoff_home(const struct lb_packet *packet, unsigned int n_workers)
{
	struct lb_flow_key key = packet->key;

	/* All that its fragments have in common; over IPv6 the protocol is in the first alone.
	 */
	key.sport_be = (uint16_t)packet->frag_id;
	key.dport_be = (uint16_t)(packet->frag_id >> 16);
	if (packet->is_v6)
		key.proto = 0;
	return scale(lb_hash_bytes(&key, sizeof(key), 1), n_workers);
}

unsigned int
dp_handoff_owner(const struct lb_packet *packet, unsigned int n_workers)
{
	if (dp_handoff_is_later(packet))
		return dp_handoff_home(packet, n_workers);
	return scale(lb_hash_bytes(&packet->key, sizeof(packet->key), 0), n_workers);
}
