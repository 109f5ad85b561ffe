/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PAGE_H
#define CTL_PAGE_H

/**
 * @file
 * The status page, ctl_page.html, as the build has put it into the program.
 */

#include <stddef.h>

extern const unsigned char ctl_page[];
extern const size_t ctl_page_bytes;

/**
 * Its Content-Security-Policy (W3C, level 3): no script or style but those of the page, by
 * their hashes, and nothing from elsewhere.
 */
extern const char ctl_page_policy[];

#endif
