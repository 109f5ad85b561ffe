/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_TEACH_H
#define COMPARE_TEACH_H

/**
 * @file
 * The classic small cases of consistent hashing, worked out and printed.
 */

#include "lb_compiler.h"

/**
 * @retval 0        Success.
 * @retval -ENOMEM  No memory.
 * @retval -EIO     It could not be written.
 */
int compare_teach(void) lb_must_check;

#endif
