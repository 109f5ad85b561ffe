/* SPDX-License-Identifier: BSD-3-Clause */

/* AES in plain C, of every key and block. The processor's instructions are not C. */

#include "lb_aes.c"
#include "proof.h"

int
main(void)
{
	uint8_t key[LB_AES_BLOCK_BYTES];
	uint8_t block[LB_AES_BLOCK_BYTES];
	struct lb_aes aes;

	make_any(key, sizeof(key));
	make_any(block, sizeof(block));
	lb_aes_set_key(&aes, key);
	lb_aes_encrypt(&aes, block, block);
	lb_aes_decrypt(&aes, block, block);
	return 0;
}
