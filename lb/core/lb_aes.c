/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_aes.h"

#include <string.h>

#if defined(__x86_64__)
#	include <immintrin.h>
#endif

#define WORD_BYTES 4u
#define N_PLANES   8u

/*
 * The plain C is bit-sliced: plane b holds bit b of each of the 16 bytes, byte i in bit i. So
 * there is no table to look up, whose cache lines would tell of the key. The state's columns
 * are the four nibbles of a plane, its rows the bits of a nibble: shifting rows and mixing
 * columns are shifts and masks of planes.
 */
struct state {
	uint32_t planes[N_PLANES]; /* 16 bits of each */
};

static struct state
to_planes(const uint8_t bytes[LB_AES_BLOCK_BYTES])
{
	struct state s = {{0}};

	for (unsigned int i = 0; i < LB_AES_BLOCK_BYTES; i++) {
		for (unsigned int b = 0; b < N_PLANES; b++)
			s.planes[b] |= ((uint32_t)bytes[i] >> b & 1) << i;
	}
	return s;
}

static void
from_planes(const struct state *s, uint8_t bytes[LB_AES_BLOCK_BYTES])
{
	for (unsigned int i = 0; i < LB_AES_BLOCK_BYTES; i++) {
		uint32_t byte = 0;

		for (unsigned int b = 0; b < N_PLANES; b++)
			byte |= (s->planes[b] >> i & 1) << b;
		bytes[i] = (uint8_t)byte;
	}
}

/*
 * A polynomial's coefficients 8..14 back under the field's x^8 + x^4 + x^3 + x + 1. From the
 * top, as 14 folds into 10 and 9, which have yet to be folded themselves.
 */
static struct state
reduce(uint32_t wide[2 * N_PLANES - 1])
{
	struct state s;

	for (unsigned int i = 2 * N_PLANES - 2; i >= N_PLANES; i--) {
		wide[i - 4] ^= wide[i];
		wide[i - 5] ^= wide[i];
		wide[i - 7] ^= wide[i];
		wide[i - 8] ^= wide[i];
	}
	memcpy(s.planes, wide, sizeof(s.planes));
	return s;
}

static struct state
multiply(const struct state *a, const struct state *b)
{
	uint32_t wide[2 * N_PLANES - 1] = {0};

	for (unsigned int i = 0; i < N_PLANES; i++) {
		for (unsigned int j = 0; j < N_PLANES; j++)
			wide[i + j] ^= a->planes[i] & b->planes[j];
	}
	return reduce(wide);
}

/* Over two elements, a sum's square is the sum of the squares. */
static struct state
square(const struct state *a)
{
	uint32_t wide[2 * N_PLANES - 1] = {0};

	for (size_t i = 0; i < N_PLANES; i++)
		wide[2 * i] = a->planes[i];
	return reduce(wide);
}

/* x^254, which is 1/x, and 0 for 0: 254 = 240 + 12 + 2. */
static struct state
invert(const struct state *x)
{
	const struct state x2 = square(x);
	const struct state x3 = multiply(&x2, x);
	const struct state x6 = square(&x3);
	const struct state x12 = square(&x6);
	const struct state x14 = multiply(&x12, &x2);
	struct state x240 = multiply(&x12, &x3);

	for (unsigned int i = 0; i < 4; i++)
		x240 = square(&x240);
	return multiply(&x240, &x14);
}

static uint32_t
plane_of(const struct state *s, unsigned int b)
{
	return s->planes[b % N_PLANES];
}

/* FIPS 197, 5.1.1: the inverse, then an affine map that adds 0x63. */
static struct state
sub_bytes(const struct state *s)
{
	const struct state x = invert(s);
	struct state out;

	for (unsigned int b = 0; b < N_PLANES; b++) {
		out.planes[b] = plane_of(&x, b) ^ plane_of(&x, b + 4) ^ plane_of(&x, b + 5) ^
				plane_of(&x, b + 6) ^ plane_of(&x, b + 7);
		out.planes[b] ^= (0x63u >> b & 1) != 0 ? 0xffffu : 0;
	}
	return out;
}

/* The affine map's inverse adds 0x05. */
static struct state
unsub_bytes(const struct state *s)
{
	struct state x;

	for (unsigned int b = 0; b < N_PLANES; b++) {
		x.planes[b] = plane_of(s, b + 2) ^ plane_of(s, b + 5) ^ plane_of(s, b + 7);
		x.planes[b] ^= (0x05u >> b & 1) != 0 ? 0xffffu : 0;
	}
	return invert(&x);
}

static uint32_t
rotate_16(uint32_t plane, unsigned int n)
{
	return (plane >> n | plane << (16 - n)) & 0xffff;
}

/* Row r moves by r columns: left to encrypt, and 4 - r further left to decrypt. */
static void
shift_rows(struct state *s, bool is_inverse)
{
	for (unsigned int b = 0; b < N_PLANES; b++) {
		const uint32_t plane = s->planes[b];
		uint32_t shifted = plane & 0x1111;

		for (unsigned int r = 1; r < 4; r++) {
			const unsigned int n_columns = is_inverse ? 4 - r : r;

			shifted |= rotate_16(plane & 0x1111u << r, 4 * n_columns);
		}
		s->planes[b] = shifted;
	}
}

/* In each column, row r gets what row r + 1 has. */
static uint32_t
rotate_columns(uint32_t plane)
{
	return (plane >> 1 & 0x7777) | (plane << 3 & 0x8888);
}

/* FIPS 197, 5.1.3: 2 a + 3 b + c + d is 2 (a + b) + b + c + d, b, c and d being the rows on. */
static void
mix_columns(struct state *s)
{
	struct state sum;  /* a + b */
	struct state rest; /* b + c + d */

	for (unsigned int b = 0; b < N_PLANES; b++) {
		const uint32_t next = rotate_columns(s->planes[b]);

		sum.planes[b] = s->planes[b] ^ next;
		rest.planes[b] = next ^ rotate_columns(rotate_columns(sum.planes[b]));
	}
	for (unsigned int b = 0; b < N_PLANES; b++) {
		s->planes[b] = rest.planes[b] ^ (b == 0 ? 0 : sum.planes[b - 1]);
		s->planes[b] ^= (0x1bu >> b & 1) != 0 ? sum.planes[N_PLANES - 1] : 0;
	}
}

/* Mixing four times changes nothing, so three times undoes one. */
static void
unmix_columns(struct state *s)
{
	for (unsigned int i = 0; i < 3; i++)
		mix_columns(s);
}

static void
add_round_key(struct state *s, const uint16_t planes[N_PLANES])
{
	for (unsigned int b = 0; b < N_PLANES; b++)
		s->planes[b] ^= planes[b];
}

static void
encrypt_plain(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES])
{
	struct state s = to_planes(in);

	add_round_key(&s, aes->planes[0]);
	for (unsigned int round = 1; round <= LB_AES_ROUNDS; round++) {
		s = sub_bytes(&s);
		shift_rows(&s, false);
		if (round < LB_AES_ROUNDS)
			mix_columns(&s);
		add_round_key(&s, aes->planes[round]);
	}
	from_planes(&s, out);
}

static void
decrypt_plain(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES])
{
	struct state s = to_planes(in);

	for (unsigned int round = LB_AES_ROUNDS; round >= 1; round--) {
		add_round_key(&s, aes->planes[round]);
		if (round < LB_AES_ROUNDS)
			unmix_columns(&s);
		shift_rows(&s, true);
		s = unsub_bytes(&s);
	}
	add_round_key(&s, aes->planes[0]);
	from_planes(&s, out);
}

#if defined(__x86_64__)

static __m128i
load(const uint8_t bytes[LB_AES_BLOCK_BYTES])
{
	return _mm_loadu_si128((const void *)bytes);
}

/* FIPS 197, 5.3.5: the order the instructions decrypt in wants the middle keys unmixed. */
__attribute__((target("aes"))) static void
set_decrypt_keys(struct lb_aes *aes)
{
	for (unsigned int round = 0; round <= LB_AES_ROUNDS; round++) {
		__m128i key = load(aes->encrypt[LB_AES_ROUNDS - round]);

		if (round != 0 && round != LB_AES_ROUNDS)
			key = _mm_aesimc_si128(key);
		_mm_storeu_si128((void *)aes->decrypt[round], key);
	}
}

__attribute__((target("aes"))) static void
encrypt_native(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES])
{
	__m128i block = _mm_xor_si128(load(in), load(aes->encrypt[0]));

	for (unsigned int round = 1; round < LB_AES_ROUNDS; round++)
		block = _mm_aesenc_si128(block, load(aes->encrypt[round]));
	block = _mm_aesenclast_si128(block, load(aes->encrypt[LB_AES_ROUNDS]));
	_mm_storeu_si128((void *)out, block);
}

__attribute__((target("aes"))) static void
decrypt_native(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES])
{
	__m128i block = _mm_xor_si128(load(in), load(aes->decrypt[0]));

	for (unsigned int round = 1; round < LB_AES_ROUNDS; round++)
		block = _mm_aesdec_si128(block, load(aes->decrypt[round]));
	block = _mm_aesdeclast_si128(block, load(aes->decrypt[LB_AES_ROUNDS]));
	_mm_storeu_si128((void *)out, block);
}

#endif

/* A round's first word: the last word before it turned by a byte, substituted, and counted. */
static void
next_core(const uint8_t last[WORD_BYTES], uint8_t count, uint8_t out[WORD_BYTES])
{
	uint8_t bytes[LB_AES_BLOCK_BYTES] = {last[1], last[2], last[3], last[0]};
	struct state s = to_planes(bytes);

	s = sub_bytes(&s);
	from_planes(&s, bytes);
	bytes[0] ^= count;
	memcpy(out, bytes, WORD_BYTES);
}

/* FIPS 197, 5.2. */
static void
expand_key(struct lb_aes *aes, const uint8_t key[LB_AES_BLOCK_BYTES])
{
	uint8_t count = 1;

	memcpy(aes->encrypt[0], key, LB_AES_BLOCK_BYTES);
	for (unsigned int round = 1; round <= LB_AES_ROUNDS; round++) {
		const uint8_t *before = aes->encrypt[round - 1];
		uint8_t *now = aes->encrypt[round];
		uint8_t word[WORD_BYTES];

		next_core(before + 3 * (size_t)WORD_BYTES, count, word);
		for (unsigned int i = 0; i < LB_AES_BLOCK_BYTES; i++) {
			word[i % WORD_BYTES] ^= before[i];
			now[i] = word[i % WORD_BYTES];
		}
		count = (uint8_t)(count << 1 ^ ((count & 0x80) != 0 ? 0x1b : 0));
	}
}

void
lb_aes_set_key(struct lb_aes *aes, const uint8_t key[LB_AES_BLOCK_BYTES])
{
	memset(aes, 0, sizeof(*aes));
	expand_key(aes, key);
	for (unsigned int round = 0; round <= LB_AES_ROUNDS; round++) {
		const struct state s = to_planes(aes->encrypt[round]);

		for (unsigned int b = 0; b < N_PLANES; b++)
			aes->planes[round][b] = (uint16_t)s.planes[b];
	}
#if defined(__x86_64__)
	aes->is_native = __builtin_cpu_supports("aes") != 0;
	if (aes->is_native)
		set_decrypt_keys(aes);
#endif
}

void
lb_aes_encrypt(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES])
{
#if defined(__x86_64__)
	if (aes->is_native) {
		encrypt_native(aes, in, out);
		return;
	}
#endif
	encrypt_plain(aes, in, out);
}

void
lb_aes_decrypt(const struct lb_aes *aes, const uint8_t in[LB_AES_BLOCK_BYTES],
	uint8_t out[LB_AES_BLOCK_BYTES])
{
#if defined(__x86_64__)
	if (aes->is_native) {
		decrypt_native(aes, in, out);
		return;
	}
#endif
	decrypt_plain(aes, in, out);
}
