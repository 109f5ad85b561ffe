/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_PRINT_H
#define CFG_PRINT_H

/**
 * @file
 * Model -> canonical text; parsing it gives an equal model.
 */

#include <stdio.h>

#include "cfg_model.h"

/**
 * Write a model as a configuration file that reads back to an equal model.
 *
 * @retval 0      Success.
 * @retval -EIO   The stream could not be written.
 */
int cfg_print(const struct cfg_model *model, FILE *to) lb_must_check;

#endif
