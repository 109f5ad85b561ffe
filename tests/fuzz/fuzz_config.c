/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a configuration: read or refused without harm, and what is read is the same
 * after it was printed and read again.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cfg_print.h"
#include "cfg_yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfg_model model;
	struct cfg_model again;
	char *text = NULL;
	size_t n_bytes = 0;
	FILE *to;

	if (cfg_read_text_model("fuzz", (const char *)data, size, NULL, &model) != 0)
		return 0;

	to = open_memstream(&text, &n_bytes);
	if (to == NULL || cfg_print(&model, to) != 0 || fclose(to) != 0)
		abort();
	if (cfg_read_text_model("printed", text, n_bytes, NULL, &again) != 0 ||
		!cfg_model_equal(&model, &again))
		abort();
	free(text);
	cfg_model_fini(&again);
	cfg_model_fini(&model);
	return 0;
}
