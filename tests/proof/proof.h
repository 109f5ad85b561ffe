/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROOF_H
#define PROOF_H

/**
 * @file
 * What the proofs share: bytes and numbers that may be any, for Frama-C's EVA.
 *
 * A frame of n bytes is the last n of frame_memory: what is read past its end is read past
 * the array's, which EVA sees for all n at once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_BYTES_MAX 9216u
#define FRAME_END       (frame_memory + FRAME_BYTES_MAX)

extern uint8_t frame_memory[FRAME_BYTES_MAX];

/*@ assigns ((uint8_t *)p)[0 .. n - 1] \from \nothing;
    ensures \initialized((uint8_t *)p + (0 .. n - 1)); */
void make_any(void *p, size_t n);

/*@ assigns \result \from min, max;
    ensures min <= \result <= max; */
uint64_t any_u64(uint64_t min, uint64_t max);

/*@ assigns \result \from \nothing;
    ensures \result == 0 || \result == 1; */
bool any_bool(void);

#endif
