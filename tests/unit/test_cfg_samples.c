/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The samples and the blocks of the language's README are right: argv[1] is the folder of
 * samples, and the README stands beside that folder.
 */
#include "expect.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"

static const char *samples;

static void
test_every_sample_is_read(void **state)
{
	DIR *dir = opendir(samples);
	const struct dirent *entry;
	size_t n = 0;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		const char *dot = strrchr(entry->d_name, '.');
		struct cfg_model model;
		char path[4096];

		if (dot == NULL || strcmp(dot, ".yaml") != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", samples, entry->d_name);
		EXPECT(cfg_read_file(path, stderr, &model) == 0, "%s", path);
		cfg_model_fini(&model);
		n++;
	}
	(void)closedir(dir);
	EXPECT(n >= 9, "only %zu samples", n);
}

/* Reads lines up to the closing fence as one configuration. */
static void
check_block(FILE *stream, unsigned int line_number)
{
	char block[8192] = "";
	char line[512];
	char name[64];
	size_t n = 0;
	struct cfg_model model;

	while (fgets(line, sizeof(line), stream) != NULL && strcmp(line, "```\n") != 0) {
		const size_t n_line = strlen(line);

		assert_true(n + n_line < sizeof(block));
		memcpy(block + n, line, n_line + 1);
		n += n_line;
	}
	(void)snprintf(name, sizeof(name), "README.md block %u", line_number);
	EXPECT(cfg_read_text_model(name, block, n, stderr, &model) == 0, "%s", block);
	cfg_model_fini(&model);
}

static void
test_every_block_of_the_readme_is_read(void **state)
{
	FILE *stream;
	char line[4096];
	unsigned int n = 0;

	(void)state;
	(void)snprintf(line, sizeof(line), "%s/../README.md", samples);
	stream = fopen(line, "r");
	assert_non_null(stream);
	while (fgets(line, sizeof(line), stream) != NULL) {
		if (strcmp(line, "```yaml\n") == 0)
			check_block(stream, ++n);
	}
	(void)fclose(stream);
	EXPECT(n >= 6, "only %u blocks", n);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sample_is_read),
		cmocka_unit_test(test_every_block_of_the_readme_is_read),
	};

	if (argc != 2)
		return 2;
	samples = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
