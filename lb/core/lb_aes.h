/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_AES_H
#define LB_AES_H

/**
 * @file
 * AES-128 (FIPS 197), one block at a time, both ways: what connection ids of QUIC are
 * enciphered with. No mode of operation, and not meant for one.
 *
 * Two implementations with one result: the processor's AES instructions, and plain C for
 * processors without. Neither reads memory at an address, nor branches, by key or data.
 *
 * A key is read-only once set; encrypt and decrypt from any number of threads.
 */

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#define LB_AES_BLOCK_BYTES 16u
#define LB_AES_ROUNDS      10u

struct lb_aes {
	alignas(16) uint8_t encrypt[LB_AES_ROUNDS + 1][LB_AES_BLOCK_BYTES]; /**< round keys */
	alignas(16)
		uint8_t decrypt[LB_AES_ROUNDS + 1][LB_AES_BLOCK_BYTES]; /**< instructions' */
	uint16_t planes[LB_AES_ROUNDS + 1][8]; /**< round keys as the plain C has them */
	bool is_native; /**< by instructions; a test may clear it, to have the plain C */
};

/** Expand a key, and choose the implementation by what the processor has. */
void lb_aes_set_key(struct lb_aes *aes, const uint8_t key[LB_AES_BLOCK_BYTES]);

/** Encrypt a block; out may be in. */
void lb_aes_encrypt(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES]);

/** Decrypt a block; out may be in. */
void lb_aes_decrypt(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES]);

#endif
