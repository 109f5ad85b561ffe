/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture_builder.h"
#include "expect.h"

static struct capture built; /* too large for the stack */
static uint8_t frame[REPLAY_FRAME_BYTES_MAX];

static void
make_path(char path[CAPTURE_PATH_BYTES])
{
	built.n_bytes = 0;
	capture_save(&built, 0, path);
}

static size_t
file_bytes(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return (size_t)status.st_size;
}

static void
expect_words(const struct replay_message *message, const char *words)
{
	EXPECT(strstr(message->text, words) != NULL, "\"%s\" does not say \"%s\"",
		message->text, words);
}

static void
write_frame(struct replay_output *output, uint32_t n_bytes, uint64_t time_ns)
{
	struct replay_message message;

	EXPECT(replay_output_write(output, frame, n_bytes, time_ns, &message) == 0, "%s",
		message.text);
}

/* The whole file, by an independent writer of the format. */
static void
test_the_file_is_as_the_format_says(void **state)
{
	struct replay_output *output;
	struct replay_message message;

	(void)state;
	for (unsigned is_nano = 0; is_nano < 2; is_nano++) {
		static uint8_t bytes[4096];
		char path[CAPTURE_PATH_BYTES];
		FILE *file;
		size_t n;

		make_path(path);
		EXPECT(replay_output_open(path, is_nano != 0, &output, &message) == 0, "%s",
			message.text);
		EXPECT(file_bytes(path) == 24, "the header is not written at once");
		write_frame(output, 60, 1700000000123456789);
		write_frame(output, 0, 4000000000000001999);
		write_frame(output, 61, UINT64_MAX);
		EXPECT(replay_output_close(output, &message) == 0, "%s", message.text);

		memset(&built, 0, sizeof(built));
		built.is_nano = is_nano != 0;
		capture_pcap_header(&built, 1);
		built.bytes[18] = 4; /* the snap length: 262144 */
		built.bytes[16] = built.bytes[17] = 0;
		capture_pcap_packet(&built, 1700000000, is_nano ? 123456789 : 123456, frame, 60,
			60);
		capture_pcap_packet(&built, 4000000000, is_nano ? 1999 : 1, frame, 0, 0);
		capture_pcap_packet(&built, UINT32_MAX, is_nano ? 709551615 : 709551, frame, 61,
			61);
		file = fopen(path, "rb");
		assert_non_null(file);
		n = fread(bytes, 1, sizeof(bytes), file);
		(void)fclose(file);
		(void)unlink(path);
		EXPECT(n == built.n_bytes && memcmp(bytes, built.bytes, n) == 0,
			"nano %u: %zu bytes that differ", is_nano, n);
	}
}

static void
test_frames_beyond_a_buffer_come_back(void **state)
{
	struct replay_output *output;
	struct replay_capture *capture;
	struct replay_frame got;
	struct replay_message message;
	char path[CAPTURE_PATH_BYTES];

	(void)state;
	make_path(path);
	EXPECT(replay_output_open(path, true, &output, &message) == 0, "%s", message.text);
	for (uint32_t i = 0; i < 10; i++) {
		frame[i] ^= 0x5a;
		write_frame(output, REPLAY_FRAME_BYTES_MAX - 9 + i, i);
	}
	EXPECT(replay_output_close(output, &message) == 0, "%s", message.text);
	memset(frame, 0, 10);
	EXPECT(replay_capture_open(path, &capture, &message) == 0, "%s", message.text);
	for (uint32_t i = 0; i < 10; i++) {
		EXPECT(replay_capture_next(capture, &got, &message) == 1, "%s", message.text);
		frame[i] ^= 0x5a;
		EXPECT(got.n_bytes == REPLAY_SNAPLEN_BYTES, "%u bytes", got.n_bytes);
		EXPECT(got.wire_bytes == REPLAY_FRAME_BYTES_MAX - 9 + i, "%u", got.wire_bytes);
		EXPECT(memcmp(got.bytes, frame, got.n_bytes) == 0, "frame %u differs", i);
	}
	EXPECT(replay_capture_next(capture, &got, &message) == 0, "not the end");
	replay_capture_close(capture);
	(void)unlink(path);
	memset(frame, 0, 10);
}

/* In a child: at most limit bytes can be written. Exits by 0 if all is as it should be. */
static void
write_up_to_limit(const char *path, rlim_t limit, uint32_t n_frame)
{
	const struct rlimit rlimit = {limit, limit};
	struct replay_output *output;
	struct replay_message message = {""};
	int rc = 0;

	(void)signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &rlimit) < 0)
		_exit(2);
	rc = replay_output_open(path, false, &output, &message);
	if (rc < 0)
		_exit(limit < 24 && rc == -EFBIG ? 0 : 3);
	for (unsigned i = 0; i < 4000000 / n_frame && rc == 0; i++)
		rc = replay_output_write(output, frame, n_frame, 0, &message);
	if (rc != -EFBIG || strstr(message.text, "cannot be written: File too large") == NULL)
		_exit(4);
	message.text[0] = '\0';
	if (replay_output_write(output, frame, 1, 0, &message) != -EFBIG)
		_exit(5);
	if (replay_output_close(output, &message) != -EFBIG || message.text[0] == '\0')
		_exit(6);
	_exit(0);
}

static void
expect_whole_frames(const char *path, size_t n_frames, uint32_t n_frame)
{
	struct replay_capture *capture;
	struct replay_frame got;
	struct replay_message message;

	EXPECT(replay_capture_open(path, &capture, &message) == 0, "%s", message.text);
	for (size_t i = 0; i < n_frames; i++) {
		EXPECT(replay_capture_next(capture, &got, &message) == 1, "%s", message.text);
		EXPECT(got.n_bytes == n_frame, "%u bytes", got.n_bytes);
	}
	EXPECT(replay_capture_next(capture, &got, &message) == 0, "%s", message.text);
	replay_capture_close(capture);
}

static void
test_a_full_file_is_cut_back_to_its_last_packet(void **state)
{
	static const struct {
		rlim_t limit;
		uint32_t n_frame;
	} rows[] = {{0, 60}, {23, 60}, {24, 60}, {25, 60}, {99, 60}, {100, 60}, {101, 60},
		{4096, 60}, {1 << 20, 60}, {(1 << 20) + 7, 1000}, {2500000, 1484},
		{2000000, 262144}, {500, 1}};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		size_t packet = 16 + rows[i].n_frame;
		size_t want =
			rows[i].limit < 24 ? 0 : (rows[i].limit - 24) / packet * packet + 24;
		char path[CAPTURE_PATH_BYTES];
		int status;
		pid_t child;

		make_path(path);
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			write_up_to_limit(path, rows[i].limit, rows[i].n_frame);
		assert_int_equal(waitpid(child, &status, 0), child);
		EXPECT(status == 0, "row %zu: the writer ended with 0x%x", i, status);
		EXPECT(file_bytes(path) == want, "row %zu: %zu bytes, not %zu", i,
			file_bytes(path), want);
		if (want != 0)
			expect_whole_frames(path, (want - 24) / packet, rows[i].n_frame);
		(void)unlink(path);
	}
}

static void
test_devices_and_pipes_that_fail_are_told_in_words(void **state)
{
	struct replay_output *output = NULL;
	struct replay_message message;
	int saved = dup(STDOUT_FILENO);
	int ends[2];
	int rc;

	(void)state;
	rc = replay_output_open("/dev/full", false, &output, &message);
	EXPECT(rc == -ENOSPC, "/dev/full: %d", rc);
	EXPECT(output == NULL, "out was touched on error");
	expect_words(&message, "/dev/full: cannot be written: No space left on device");
	rc = replay_output_open("/nonexistent/out.pcap", false, &output, &message);
	EXPECT(rc == -ENOENT, "no directory: %d", rc);
	expect_words(&message, "/nonexistent/out.pcap: cannot be written: No such file");

	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	(void)close(ends[0]);
	(void)fflush(stdout);
	assert_int_equal(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
	rc = replay_output_open("-", false, &output, &message);
	assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
	(void)close(saved);
	(void)close(ends[1]);
	EXPECT(rc == -EPIPE, "a pipe nobody reads: %d", rc);
	expect_words(&message, "standard output: cannot be written: its reader is gone");
}

static void
test_standard_output_appended_to_is_cut_where_it_began(void **state)
{
	char path[CAPTURE_PATH_BYTES];
	int status;
	pid_t child;

	(void)state;
	built.n_bytes = 1000;
	capture_save(&built, 1000, path);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int fd = open(path, O_WRONLY | O_APPEND);

		if (dup2(fd, STDOUT_FILENO) < 0)
			_exit(1);
		write_up_to_limit("-", 1000 + 24 + 76 + 75, 60);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	EXPECT(status == 0, "the writer ended with 0x%x", status);
	EXPECT(file_bytes(path) == 1000 + 24 + 76, "%zu bytes", file_bytes(path));
	(void)unlink(path);
}

/* A pipe that is full for a while, and non-blocking. */
static void
test_a_slow_reader_gets_it_all(void **state)
{
	struct replay_output *output;
	struct replay_message message;
	int saved = dup(STDOUT_FILENO);
	int ends[2];
	int status;
	int rc;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		static uint8_t bytes[65536];
		size_t total = 0;
		ssize_t n;

		(void)close(ends[1]);
		(void)usleep(20000);
		while ((n = read(ends[0], bytes, sizeof(bytes))) > 0)
			total += (size_t)n;
		_exit(total == 24 + 2000 * (16 + 1500) ? 0 : 1);
	}
	(void)close(ends[0]);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	(void)fflush(stdout);
	assert_int_equal(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
	(void)close(ends[1]);
	rc = replay_output_open("-", false, &output, &message);
	for (unsigned i = 0; i < 2000 && rc == 0; i++)
		rc = replay_output_write(output, frame, 1500, i, &message);
	if (rc == 0)
		rc = replay_output_close(output, &message);
	assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
	(void)close(saved);
	EXPECT(rc == 0, "%s", message.text);
	assert_int_equal(waitpid(child, &status, 0), child);
	EXPECT(status == 0, "the reader ended with 0x%x", status);
}

static const struct {
	const char *sentence;
	uint32_t n_bytes; /* of the second packet, compared with 20 of 0..19 */
	uint32_t changed; /* the byte that is 0xee in it; n_bytes: none */
	int rc;
	const char *words;
} compare_rows[] = {
	{"the same", 20, 20, 0, ""},
	{"the first byte", 20, 0, 1,
		"packet 2 differs from byte 0 (0x0) on: expected 0x00, found 0xee"},
	{"the last byte", 20, 19, 1,
		"packet 2 differs from byte 19 (0x13) on: expected 0x13, found 0xee (expected "
		"20 "
		"bytes in all, found 20)"},
	{"shorter", 18, 18, 1,
		"packet 2 differs from byte 18 (0x12) on: expected 0x12, found its end "
		"(expected "
		"20 bytes in all, found 18)"},
	{"longer", 21, 21, 1,
		"packet 2 differs from byte 20 (0x14) on: expected its end, found 0x14"},
	{"shorter, and a byte before", 18, 3, 1,
		"packet 2 differs from byte 3 (0x3) on: expected 0x03, found 0xee (expected 20 "
		"bytes in all, found 18)"},
};

static void
build_expected(char path[CAPTURE_PATH_BYTES], uint8_t bytes[32])
{
	for (uint8_t i = 0; i < 32; i++)
		bytes[i] = i;
	memset(&built, 0, sizeof(built));
	capture_pcap_header(&built, 1);
	capture_pcap_packet(&built, 1, 0, bytes, 10, 10);
	capture_pcap_packet(&built, 2, 0, bytes, 20, 20);
	capture_save(&built, built.n_bytes, path);
}

static void
test_the_first_difference_is_told(void **state)
{
	struct replay_compare *compare;
	struct replay_message message;
	char path[CAPTURE_PATH_BYTES];
	uint8_t bytes[32];

	(void)state;
	build_expected(path, bytes);
	for (size_t i = 0; i < LB_N_ELEMENTS(compare_rows); i++) {
		const char *sentence = compare_rows[i].sentence;
		uint8_t *second = malloc(compare_rows[i].n_bytes);
		int rc;

		assert_non_null(second);
		memcpy(second, bytes, compare_rows[i].n_bytes);
		if (compare_rows[i].changed < compare_rows[i].n_bytes)
			second[compare_rows[i].changed] = 0xee;
		memset(&message, 0, sizeof(message));
		EXPECT(replay_compare_open(path, &compare, &message) == 0, "%s", message.text);
		EXPECT(replay_compare_next(compare, bytes, 10, &message) == 0, "%s: the first",
			sentence);
		rc = replay_compare_next(compare, second, compare_rows[i].n_bytes, &message);
		EXPECT(rc == compare_rows[i].rc, "%s: %d", sentence, rc);
		expect_words(&message, compare_rows[i].words);
		EXPECT(rc == 0 || strncmp(message.text, path, strlen(path)) == 0, "%s: no name",
			sentence);
		rc = rc == 1 ? replay_compare_next(compare, second, 1, &message) : 0;
		EXPECT(rc == 0, "%s: a second difference is told", sentence);
		EXPECT(replay_compare_end(compare, &message) == 0, "%s: the end", sentence);
		replay_compare_close(compare);
		free(second);
	}
	(void)unlink(path);
}

static void
test_too_many_and_too_few_packets_differ(void **state)
{
	struct replay_compare *compare;
	struct replay_message message;
	char path[CAPTURE_PATH_BYTES];
	uint8_t bytes[32];

	(void)state;
	build_expected(path, bytes);
	EXPECT(replay_compare_open(path, &compare, &message) == 0, "%s", message.text);
	EXPECT(replay_compare_next(compare, bytes, 10, &message) == 0, "the first");
	EXPECT(replay_compare_end(compare, &message) == 1, "one is missing");
	expect_words(&message,
		"packet 2: expected one of 20 bytes, found the end after 1 packets");
	EXPECT(replay_compare_end(compare, &message) == 0, "told twice");
	replay_compare_close(compare);

	EXPECT(replay_compare_open(path, &compare, &message) == 0, "%s", message.text);
	EXPECT(replay_compare_next(compare, bytes, 10, &message) == 0, "the first");
	EXPECT(replay_compare_next(compare, bytes, 20, &message) == 0, "the second");
	EXPECT(replay_compare_next(compare, bytes, 7, &message) == 1, "one more");
	expect_words(&message, "packet 3: expected the end, found one more packet, of 7 bytes");
	EXPECT(replay_compare_end(compare, &message) == 0, "told twice");
	replay_compare_close(compare);
	(void)unlink(path);
}

static void
test_an_expected_capture_that_cannot_be_read_is_told(void **state)
{
	struct replay_compare *compare = NULL;
	struct replay_message message;
	char path[CAPTURE_PATH_BYTES];
	uint8_t bytes[32];

	(void)state;
	EXPECT(replay_compare_open("/nonexistent", &compare, &message) == -ENOENT, "no file");
	EXPECT(compare == NULL, "out was touched on error");
	build_expected(path, bytes);
	assert_int_equal(truncate(path, (off_t)built.n_bytes - 1), 0);
	EXPECT(replay_compare_open(path, &compare, &message) == 0, "%s", message.text);
	EXPECT(replay_compare_next(compare, bytes, 10, &message) == 0, "%s", message.text);
	EXPECT(replay_compare_next(compare, bytes, 20, &message) == -EINVAL, "damage");
	expect_words(&message, "packet 2: the capture ends in the middle of it");
	replay_compare_close(compare);
	(void)unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_file_is_as_the_format_says),
		cmocka_unit_test(test_frames_beyond_a_buffer_come_back),
		cmocka_unit_test(test_a_full_file_is_cut_back_to_its_last_packet),
		cmocka_unit_test(test_devices_and_pipes_that_fail_are_told_in_words),
		cmocka_unit_test(test_standard_output_appended_to_is_cut_where_it_began),
		cmocka_unit_test(test_a_slow_reader_gets_it_all),
		cmocka_unit_test(test_the_first_difference_is_told),
		cmocka_unit_test(test_too_many_and_too_few_packets_differ),
		cmocka_unit_test(test_an_expected_capture_that_cannot_be_read_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
