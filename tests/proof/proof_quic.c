/* SPDX-License-Identifier: BSD-3-Clause */

/* Connection ids: every datagram, under every configuration that a table may have. */

#include "lb_quic.c"
#include "proof.h"

/* No more than this is read of a datagram: up to here each length has a look of its own. */
#define READ_BYTES_MAX (LONG_CID_AT + LB_QUIC_CID_BYTES_MAX + 1)

static struct lb_quic_table table;
static struct entry entries[8];

size_t
lb_hash_entries_for(size_t n)
{
	return 2 * n + 2;
}

/* Of AES there is a proof of its own: any block. */
void
lb_aes_encrypt(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES])
{
	(void)aes, (void)in;
	//@ assert \initialized(in + (0 .. LB_AES_BLOCK_BYTES - 1));
	make_any(out, LB_AES_BLOCK_BYTES);
}

void
lb_aes_decrypt(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES])
{
	lb_aes_encrypt(aes, in, out);
}

static void
make_any_config(struct config *config, unsigned int body_bytes)
{
	make_any(config, sizeof(*config));
	config->form = (enum form)any_u64(UNKNOWN, FOUR_PASS);
	config->has_length = any_bool();
	config->is_id_in_left = any_bool();
	config->body_bytes = (uint8_t)body_bytes;
	config->right_at = (uint8_t)(body_bytes / 2);
}

static void
look(size_t n)
{
	(void)lb_quic_find(&table, FRAME_END - n, n);
}

int
main(void)
{
	make_any(frame_memory, sizeof(frame_memory));
	make_any(entries, sizeof(entries));
	table.entries = entries;
	table.mask = sizeof(entries) / sizeof(entries[0]) - 1;
	table.n_probes = any_u64(0, table.mask + 1);
	for (unsigned int i = 0; i < N_CODEPOINTS; i++)
		make_any_config(&table.configs[i], (unsigned int)any_u64(5, BODY_BYTES_MAX));
	for (size_t n = 0; n < READ_BYTES_MAX; n++)
		look(n);
	look(any_u64(READ_BYTES_MAX, FRAME_BYTES_MAX));
	return 0;
}
