/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_aes.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "expect.h"
#include "lb_compiler.h"
#include "xrand.h"

#define N_RANDOM 2000u

struct row {
	const char *sentence;
	uint8_t key[LB_AES_BLOCK_BYTES];
	uint8_t clear[LB_AES_BLOCK_BYTES];
	uint8_t cipher[LB_AES_BLOCK_BYTES];
};

static const struct row rows[] = {
	{"FIPS 197, appendix B",
		{0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09,
			0xcf, 0x4f, 0x3c},
		{0x32, 0x43, 0xf6, 0xa8, 0x88, 0x5a, 0x30, 0x8d, 0x31, 0x31, 0x98, 0xa2, 0xe0,
			0x37, 0x07, 0x34},
		{0x39, 0x25, 0x84, 0x1d, 0x02, 0xdc, 0x09, 0xfb, 0xdc, 0x11, 0x85, 0x97, 0x19,
			0x6a, 0x0b, 0x32}},
	{"FIPS 197, appendix C.1",
		{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c,
			0x0d, 0x0e, 0x0f},
		{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc,
			0xdd, 0xee, 0xff},
		{0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70,
			0xb4, 0xc5, 0x5a}},
	{"a first step of the QUIC-LB draft's example",
		{0xfd, 0xf7, 0x26, 0xa9, 0x89, 0x3e, 0xc0, 0x5c, 0x06, 0x32, 0xd3, 0x95, 0x66,
			0x80, 0xba, 0xf0},
		{0x31, 0x44, 0x1a, 0x90, [14] = 0x07, [15] = 0x01},
		{0xa2, 0x55, 0xdd, 0x8c, 0xda, 0xcf, 0x01, 0x94, 0x8d, 0x3a, 0x84, 0x8c, 0x3c,
			0x7f, 0xee, 0x23}},
};

static void
expect_block(const uint8_t *got, const uint8_t *wanted, const char *sentence, const char *what)
{
	for (unsigned int i = 0; i < LB_AES_BLOCK_BYTES; i++) {
		EXPECT(got[i] == wanted[i], "%s, %s: byte %u is 0x%02x and not 0x%02x",
			sentence, what, i, got[i], wanted[i]);
	}
}

/* On the heap at exact length, and in place too. */
static void
expect_both_ways(const struct lb_aes *aes, const uint8_t *clear, const uint8_t *cipher,
	const char *sentence)
{
	uint8_t *in = malloc(LB_AES_BLOCK_BYTES);
	uint8_t *out = malloc(LB_AES_BLOCK_BYTES);

	assert_non_null(in);
	assert_non_null(out);
	memcpy(in, clear, LB_AES_BLOCK_BYTES);
	lb_aes_encrypt(aes, in, out);
	expect_block(out, cipher, sentence, "encrypted");
	expect_block(in, clear, sentence, "left alone");
	lb_aes_decrypt(aes, out, in);
	expect_block(in, clear, sentence, "decrypted");
	lb_aes_encrypt(aes, in, in);
	expect_block(in, cipher, sentence, "encrypted in place");
	lb_aes_decrypt(aes, in, in);
	expect_block(in, clear, sentence, "decrypted in place");
	free(in);
	free(out);
}

static void
expect_of_both(const uint8_t *key, const uint8_t *clear, const uint8_t *cipher,
	const char *sentence)
{
	struct lb_aes aes;

	memset(&aes, 0xa5, sizeof(aes));
	lb_aes_set_key(&aes, key);
	expect_both_ways(&aes, clear, cipher, sentence);
	aes.is_native = false;
	expect_both_ways(&aes, clear, cipher, sentence);
}

static void
test_published_blocks(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		expect_of_both(rows[i].key, rows[i].clear, rows[i].cipher, rows[i].sentence);
}

/* Appendix A.1 gives all the words; the last round key depends on each one before. */
static void
test_last_round_key_is_the_published_one(void **state)
{
	static const uint8_t last[LB_AES_BLOCK_BYTES] = {0xd0, 0x14, 0xf9, 0xa8, 0xc9, 0xee,
		0x25, 0x89, 0xe1, 0x3f, 0x0c, 0xc8, 0xb6, 0x63, 0x0c, 0xa6};
	struct lb_aes aes;

	(void)state;
	lb_aes_set_key(&aes, rows[0].key);
	expect_block(aes.encrypt[LB_AES_ROUNDS], last, "FIPS 197, appendix A.1", "round key");
}

static void
test_instructions_are_used_where_they_are(void **state)
{
	struct lb_aes aes;

	(void)state;
	lb_aes_set_key(&aes, rows[0].key);
#if defined(__x86_64__)
	EXPECT(aes.is_native == (__builtin_cpu_supports("aes") != 0), "is_native is %d",
		aes.is_native);
#else
	assert_false(aes.is_native);
#endif
}

static void
fill(uint64_t *seed, uint8_t *bytes)
{
	for (unsigned int i = 0; i < LB_AES_BLOCK_BYTES; i++)
		bytes[i] = (uint8_t)xrand(seed);
}

static void
encrypt_by_libcrypto(const uint8_t *key, const uint8_t *clear, uint8_t *cipher)
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	int n = 0;

	assert_non_null(context);
	assert_int_equal(EVP_EncryptInit_ex(context, EVP_aes_128_ecb(), NULL, key, NULL), 1);
	assert_int_equal(EVP_CIPHER_CTX_set_padding(context, 0), 1);
	assert_int_equal(EVP_EncryptUpdate(context, cipher, &n, clear, (int)LB_AES_BLOCK_BYTES),
		1);
	assert_int_equal(n, LB_AES_BLOCK_BYTES);
	EVP_CIPHER_CTX_free(context);
}

static void
test_random_blocks_are_as_libcrypto_has_them(void **state)
{
	uint64_t seed = 197;

	(void)state;
	for (unsigned int i = 0; i < N_RANDOM; i++) {
		uint8_t key[LB_AES_BLOCK_BYTES];
		uint8_t clear[LB_AES_BLOCK_BYTES];
		uint8_t cipher[LB_AES_BLOCK_BYTES];

		fill(&seed, key);
		fill(&seed, clear);
		encrypt_by_libcrypto(key, clear, cipher);
		expect_of_both(key, clear, cipher, "a random block");
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_blocks),
		cmocka_unit_test(test_last_round_key_is_the_published_one),
		cmocka_unit_test(test_instructions_are_used_where_they_are),
		cmocka_unit_test(test_random_blocks_are_as_libcrypto_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
