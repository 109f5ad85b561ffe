/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef READER_TEXT_H
#define READER_TEXT_H

/**
 * @file
 * A text for a reader as the file of one machine is, which need not have services.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_reader.h"

static inline int
reader_text_read(struct cfg_reader *reader, const char *name, const char *text, size_t n_bytes,
	FILE *messages, struct cfg_model *out)
{
	char *copy = malloc(n_bytes + (n_bytes == 0));
	FILE *stream = fmemopen(copy, n_bytes, "r");
	int ret;

	if (copy == NULL || stream == NULL)
		abort();
	memcpy(copy, text, n_bytes);
	ret = cfg_reader_read_stream(reader, name, stream, NULL, messages, out);
	(void)fclose(stream);
	free(copy);
	return ret;
}

#endif
