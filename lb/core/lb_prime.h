/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_PRIME_H
#define LB_PRIME_H

/**
 * @file
 * Primes, for table sizes: by trial division, which is a millisecond's thousandth below 2^24.
 */

#include <stdbool.h>
#include <stdint.h>

bool lb_is_prime(uint32_t n);

/** The smallest prime at or above n; 0 where 32 bits hold none. */
uint32_t lb_next_prime(uint32_t n);

#endif
