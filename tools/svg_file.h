/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SVG_FILE_H
#define SVG_FILE_H

/**
 * @file
 * Pictures as files of a folder. What fails is told on stderr, in the name of a program.
 */

#include <stdio.h>

#include "lb_compiler.h"

/**
 * Make the folder, if it is not there, before any work is done for it.
 *
 * @retval 0       It is there.
 * @retval -errno  It is not, and stderr was told.
 */
int svg_prepare_folder(const char *program, const char *folder) lb_must_check;

/** Draws a picture; errors of writing stay in the stream. */
typedef void (*svg_draw_fn)(FILE *out, const void *context);

/**
 * Write one picture, in the place of one that is there; where that fails, it stays.
 *
 * @retval -errno  It could not be written; stderr was told.
 */
int svg_write(const char *program, const char *folder, const char *name, svg_draw_fn draw,
	const void *context) lb_must_check;

#endif
