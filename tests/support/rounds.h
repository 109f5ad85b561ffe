/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROUNDS_H
#define ROUNDS_H

/**
 * @file
 * How often to repeat what random inputs try again and again. Under a sanitizer, which takes
 * several times as long and looks for other faults, a quarter as often.
 */

#if defined(__has_feature)
#	if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#		define ROUNDS_THINNED 4
#	endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#	define ROUNDS_THINNED 4
#endif
#ifndef ROUNDS_THINNED
#	define ROUNDS_THINNED 1
#endif

/** @p n in a build without a sanitizer. */
#define ROUNDS(n) ((n) / ROUNDS_THINNED)

#endif
