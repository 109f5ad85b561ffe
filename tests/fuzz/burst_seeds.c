/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Writes tests/fuzz/corpus/burst: all kinds of frames, some in one file, a little time apart;
 * and the same the other way round, so that fragments come before their first. The only
 * argument is the folder. Run by hand, where a kind is added.
 */

#include <stdbool.h>
#include <stdio.h>

#include "burst_frames.h"

#define FRAMES_PER_FILE 6u

static int
write_record(FILE *file, size_t i)
{
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = burst_frames_build(i, frame);
	/* A run now and then, and another configuration; a quarter of a millisecond apart. */
	const uint8_t record = (uint8_t)(i % 3 != 0 ? 0x08 : i % 9 != 0 ? 0x18 : 0x38);
	const uint8_t head[3] = {record, (uint8_t)(n >> 8), (uint8_t)n};

	return fwrite(head, 1, sizeof(head), file) == sizeof(head) &&
			       fwrite(frame, 1, n, file) == n
		       ? 0
		       : 1;
}

static int
write_file(const char *folder, size_t first, bool is_reversed)
{
	const size_t left = burst_frames_count() - first;
	const size_t n = left < FRAMES_PER_FILE ? left : FRAMES_PER_FILE;
	char path[4096];
	FILE *file;
	int ret = 0;

	(void)snprintf(path, sizeof(path), "%s/%02zu%s", folder, first / FRAMES_PER_FILE,
		is_reversed ? "-reversed" : "");
	file = fopen(path, "wb");
	if (file == NULL)
		return 1;
	for (size_t i = 0; i < n && ret == 0; i++)
		ret = write_record(file, first + (is_reversed ? n - 1 - i : i));
	if (fclose(file) != 0)
		ret = 1;
	return ret;
}

int
main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < burst_frames_count(); i += FRAMES_PER_FILE) {
		if (write_file(argv[1], i, false) != 0 || write_file(argv[1], i, true) != 0) {
			perror(burst_frames_name(i));
			return 1;
		}
	}
	return 0;
}
