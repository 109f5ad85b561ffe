/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_etcd_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"
#include "lb_compiler.h"

#define KEY "shunt/site 1"

static char folder[] = "/tmp/shunt-copy-XXXXXX";

static struct ctl_etcd_document
make_document(const char *text, uint64_t revision)
{
	return (struct ctl_etcd_document){.text = strdup(text),
		.n_bytes = strlen(text),
		.cluster = UINT64_MAX,
		.revision = revision,
		.hash = ctl_etcd_document_hash(text, strlen(text))};
}

static void
write_copy(const char *path, const char *text, uint64_t revision)
{
	struct ctl_etcd_document document = make_document(text, revision);

	assert_int_equal(ctl_etcd_copy_write(path, KEY, &document), 0);
	ctl_etcd_document_fini(&document);
}

static int
set_up(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL || chdir(folder) != 0)
		return -1;
	/* One that is not there yet. */
	return setenv("STATE_DIRECTORY", "state:another", 1);
}

static int
tear_down(void **state)
{
	(void)state;
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

static void
test_a_copy_comes_back_to_the_letter(void **state)
{
	static const char *const texts[] = {"", "a: 1\n", "no end", "# c\n\n\xc3\xbc: x\r\n"};
	char *path = ctl_etcd_copy_path(KEY);

	(void)state;
	assert_string_equal(path, "state/etcd-shunt%2fsite%201.yaml");
	for (size_t i = 0; i < LB_N_ELEMENTS(texts); i++) {
		struct ctl_etcd_document found;
		int64_t saved_s = 0;
		struct stat file;

		write_copy(path, texts[i], 42 + i);
		assert_int_equal(ctl_etcd_copy_read(path, KEY, &found, &saved_s), 0);
		assert_string_equal(found.text, texts[i]);
		assert_int_equal(found.n_bytes, strlen(texts[i]));
		assert_true(found.cluster == UINT64_MAX && found.revision == 42 + i);
		assert_int_equal(stat(path, &file), 0);
		assert_int_equal(saved_s, file.st_mtim.tv_sec);
		assert_int_equal(file.st_mode & 07777, 0600);
		ctl_etcd_document_fini(&found);
	}
	/* What a process that was killed has left is in nobody's way. */
	assert_int_equal(close(open("state/.etcd-shunt%2fsite%201.yaml.tmp", O_CREAT, 0)), 0);
	write_copy(path, "b: 2\n", 50);
	assert_int_equal(access("state/.etcd-shunt%2fsite%201.yaml.tmp", F_OK), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir("state"), 0);
	free(path);
}

static void
test_what_cannot_be_written_leaves_the_old_copy(void **state)
{
	char *path = ctl_etcd_copy_path(KEY);
	struct ctl_etcd_document document = make_document("b: 2\n", 43);
	struct ctl_etcd_document found;
	int64_t saved_s;

	(void)state;
	write_copy(path, "a: 1\n", 42);
	/* In the way of the new file, and no file itself. */
	assert_int_equal(mkdir("state/.etcd-shunt%2fsite%201.yaml.tmp", 0700), 0);
	assert_int_equal(ctl_etcd_copy_write(path, KEY, &document), -EISDIR);
	assert_int_equal(ctl_etcd_copy_read(path, KEY, &found, &saved_s), 0);
	assert_string_equal(found.text, "a: 1\n");
	ctl_etcd_document_fini(&found);
	ctl_etcd_document_fini(&document);
	assert_int_equal(rmdir("state/.etcd-shunt%2fsite%201.yaml.tmp"), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ctl_etcd_copy_read(path, KEY, &found, &saved_s), -ENOENT);
	assert_int_equal(rmdir("state"), 0);
	free(path);
}

static void
test_two_do_not_write_at_once(void **state)
{
	char *path = ctl_etcd_copy_path(KEY);
	struct ctl_etcd_document document = make_document("b: 2\n", 43);
	int lock;

	(void)state;
	write_copy(path, "a: 1\n", 42);
	lock = open("state", O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(ctl_etcd_copy_write(path, KEY, &document), -EBUSY);
	assert_int_equal(close(lock), 0);
	assert_int_equal(ctl_etcd_copy_write(path, KEY, &document), 0);
	ctl_etcd_document_fini(&document);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir("state"), 0);
	free(path);
}

static void
test_other_keys_have_other_names(void **state)
{
	static const char *const keys[] = {"a/b", "a%2fb", "a_b", "a b", "/a", "a", "A", "a.",
		"\xc3\xbc"};
	char long_a[513];
	char long_b[513];
	char *path_a;
	char *path_b;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(keys); i++)
		for (size_t k = 0; k < i; k++) {
			path_a = ctl_etcd_copy_path(keys[i]);
			path_b = ctl_etcd_copy_path(keys[k]);
			EXPECT(strcmp(path_a, path_b) != 0, "%s: %s", keys[i], path_a);
			free(path_a);
			free(path_b);
		}
	/* Longer than a name may be: they differ at the end alone. */
	memset(long_a, '/', sizeof(long_a));
	long_a[512] = '\0';
	memcpy(long_b, long_a, sizeof(long_a));
	long_b[511] = 'x';
	path_a = ctl_etcd_copy_path(long_a);
	path_b = ctl_etcd_copy_path(long_b);
	assert_true(strcmp(path_a, path_b) != 0);
	assert_true(strlen(path_a) < 255 - strlen(".") - strlen(".tmp"));
	free(path_a);
	free(path_b);
}

static void
test_damage_is_noticed(void **state)
{
	char *path = ctl_etcd_copy_path(KEY);
	struct ctl_etcd_document found;
	char bytes[512];
	size_t n;
	FILE *file;

	(void)state;
	write_copy(path, "a: 1\n", 42);
	file = fopen(path, "r");
	assert_non_null(file);
	n = fread(bytes, 1, sizeof(bytes), file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(ctl_etcd_copy_parse(bytes, n, KEY, &found), 0);
	ctl_etcd_document_fini(&found);
	assert_int_equal(ctl_etcd_copy_parse(bytes, n, "shunt/site 2", &found), -EBADMSG);
	/* Half of it, of any length. */
	for (size_t i = 0; i < n; i++) {
		char *half = malloc(i + (i == 0));

		memcpy(half, bytes, i);
		EXPECT(ctl_etcd_copy_parse(half, i, KEY, &found) == -EBADMSG, "%zu bytes", i);
		free(half);
	}
	/* Another byte in the text. */
	for (size_t i = n - 5; i < n; i++) {
		bytes[i] ^= 1;
		EXPECT(ctl_etcd_copy_parse(bytes, n, KEY, &found) == -EBADMSG, "byte %zu", i);
		bytes[i] ^= 1;
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir("state"), 0);
	free(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_copy_comes_back_to_the_letter),
		cmocka_unit_test(test_what_cannot_be_written_leaves_the_old_copy),
		cmocka_unit_test(test_two_do_not_write_at_once),
		cmocka_unit_test(test_other_keys_have_other_names),
		cmocka_unit_test(test_damage_is_noticed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
