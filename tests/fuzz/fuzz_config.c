/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a configuration: read or refused without harm, and what is read is the same
 * after it was printed and read again. Bytes after a NUL, which no configuration has, are an
 * edit of those before it: where (two bytes), how many bytes go, and those that come. A reader
 * that has read the text before the edit reads it after the edit as one does that has not.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_print.h"
#include "cfg_reader.h"
#include "reader_text.h"

#define EDIT_BYTES 3u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_printed(const struct cfg_model *model)
{
	struct cfg_model again;
	char *text = NULL;
	size_t n_bytes = 0;
	FILE *to = open_memstream(&text, &n_bytes);

	if (to == NULL || cfg_print(model, to) != 0 || fclose(to) != 0)
		abort();
	if (cfg_read_text_model("printed", text, n_bytes, NULL, &again) != 0 ||
		!cfg_model_equal(model, &again))
		abort();
	free(text);
	cfg_model_fini(&again);
}

static void
check_read(struct cfg_reader *reader, const char *text, size_t n_bytes)
{
	struct cfg_model models[2];
	char *messages[2] = {NULL};
	int rets[2];

	for (size_t i = 0; i < 2; i++) {
		size_t n = 0;
		FILE *to = open_memstream(&messages[i], &n);

		if (to == NULL)
			abort();
		rets[i] =
			i == 0 ? reader_text_read(reader, "fuzz", text, n_bytes, to, &models[i])
			       : cfg_read_text_model("fuzz", text, n_bytes, to, &models[i]);
		(void)fclose(to);
	}
	if (rets[0] != rets[1] || strcmp(messages[0], messages[1]) != 0 ||
		(rets[0] == 0 && !cfg_model_equal(&models[0], &models[1])))
		abort();
	free(messages[0]);
	free(messages[1]);
	if (rets[0] != 0)
		return;
	check_printed(&models[0]);
	cfg_model_fini(&models[0]);
	cfg_model_fini(&models[1]);
}

/* The text after the edit, on the heap. */
static char *
make_edited(const uint8_t *text, size_t n_text, const uint8_t *edit, size_t n_edit,
	size_t *n_out)
{
	const size_t n_new = n_edit - EDIT_BYTES;
	const size_t at = ((size_t)edit[0] << 8 | edit[1]) % (n_text + 1);
	const size_t n_old = edit[2] < n_text - at ? edit[2] : n_text - at;
	char *edited = malloc(n_text - n_old + n_new + 1);

	if (edited == NULL)
		abort();
	memcpy(edited, text, at);
	memcpy(edited + at, edit + EDIT_BYTES, n_new);
	memcpy(edited + at + n_new, text + at + n_old, n_text - at - n_old);
	*n_out = n_text - n_old + n_new;
	return edited;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size == 0 ? NULL : memchr(data, 0, size);
	const size_t n_text = end == NULL ? size : (size_t)(end - data);
	struct cfg_reader *reader = cfg_reader_create(false);

	if (reader == NULL)
		abort();
	if (end == NULL || size - n_text < 1 + EDIT_BYTES) {
		/* A NUL that begins no edit is read as well. */
		check_read(reader, (const char *)data, size);
	} else {
		size_t n_edited;
		char *edited = make_edited(data, n_text, end + 1, size - n_text - 1, &n_edited);

		check_read(reader, (const char *)data, n_text);
		check_read(reader, edited, n_edited);
		free(edited);
	}
	cfg_reader_destroy(reader);
	return 0;
}
