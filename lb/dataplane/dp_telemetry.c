/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_telemetry.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_telemetry.h>
#include <rte_version.h>

#include "dp.h"

/* DPDK has renamed them. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#	define NUMBER_VAL       RTE_TEL_UINT_VAL
#	define add_dict_number  rte_tel_data_add_dict_uint
#	define add_array_number rte_tel_data_add_array_uint
#else
#	define NUMBER_VAL       RTE_TEL_U64_VAL
#	define add_dict_number  rte_tel_data_add_dict_u64
#	define add_array_number rte_tel_data_add_array_u64
#endif

/* In the folder; the EAL appends ":1" and so on where another process has it. */
#define SOCKET_NAME "dpdk_telemetry.v2:9"

/* The EAL counts a text's end in. */
static_assert(DP_ANSWER_TEXT_BYTES_MAX + 1 == RTE_TEL_MAX_STRING_LEN, "texts");
static_assert(DP_ANSWER_LIST_MAX == RTE_TEL_MAX_ARRAY_ENTRIES, "lists");

struct dp_answer {
	struct rte_tel_data *data;
	struct rte_tel_data *list; /* what is appended to; data's own. NULL: none */
};

/* What this process has made and the EAL has filled, "" before: shared by all that start. */
static char shared_folder[PATH_MAX];
static char own_folder[PATH_MAX];

void
dp_telemetry_format_prefix(const char *instance, char out[static DP_TELEMETRY_PREFIX_BYTES])
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";
	const size_t n_bytes = strlen(instance);
	const size_t n_kept =
		n_bytes < DP_TELEMETRY_PREFIX_BYTES ? n_bytes : DP_TELEMETRY_PREFIX_BYTES - 1;

	instance += n_bytes - n_kept;
	instance += *instance == '/';
	for (; *instance != '\0'; instance++) {
		*out = '-';
		if (strchr(plain, *instance) != NULL)
			*out = *instance;
		out++;
	}
	*out = '\0';
}

/* As the EAL finds it. */
static const char *
find_runtime_folder(void)
{
	const char *folder = getenv("RUNTIME_DIRECTORY");

	if (folder == NULL && getuid() == 0)
		folder = "/var/run";
	if (folder == NULL)
		folder = getenv("XDG_RUNTIME_DIR");
	return folder != NULL ? folder : "/tmp";
}

/* Unless somebody starts there now, or has something in it. */
static void
remove_own_folder(void)
{
	const int lock = open(shared_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (lock < 0)
		return;
	if (flock(lock, LOCK_EX | LOCK_NB) == 0)
		(void)rmdir(own_folder);
	(void)close(lock);
}

static int
make_folder(const char *path)
{
	return mkdir(path, S_IRWXU) == 0 || errno == EEXIST ? 0 : -errno;
}

static int
make_own_folder(void)
{
	const int ret = make_folder(own_folder);

	if (ret != 0)
		return ret;
	if (access(own_folder, W_OK | X_OK) != 0)
		return -errno;
	/* The EAL removes its socket in the same way, later: so it is called before this. */
	return atexit(remove_own_folder) == 0 ? 0 : -ENOMEM;
}

int
dp_telemetry_lock_folder(const char *prefix, int *lock)
{
	int fd;
	int ret;

	(void)snprintf(shared_folder, sizeof(shared_folder), "%s/dpdk", find_runtime_folder());
	ret = snprintf(own_folder, sizeof(own_folder), "%s/%s", shared_folder, prefix);
	if ((size_t)ret + sizeof("/" SOCKET_NAME) > sizeof(((struct sockaddr_un *)0)->sun_path))
		return -ENAMETOOLONG;
	ret = make_folder(shared_folder);
	if (ret != 0)
		return ret;
	fd = open(shared_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* It waits for a moment at most: nobody waits, or works, with the other lock. */
	ret = flock(fd, LOCK_SH) == 0 ? make_own_folder() : -errno;
	if (ret != 0)
		(void)close(fd);
	else
		*lock = fd;
	return ret;
}

void
dp_telemetry_unlock_folder(int lock)
{
	(void)close(lock);
}

/*
 * Who answers. The EAL has one registry a process, and no way out of it: a command may come
 * before there is somebody to answer it, and after.
 */
static struct {
	pthread_mutex_t lock;
	const struct dp_telemetry_command *commands;
	size_t n; /* 0: nobody */
	dp_telemetry_fn fn;
	void *context;
} answering = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * The EAL's clients have a thread each, and all of them take their requests apart by the libc's
 * strtok(), which keeps its place for the whole process: one would be given the parameter of
 * another, or what was one. This one is found before the libc's and keeps a place a thread.
 */
char *
strtok(char *restrict text, const char *restrict separators)
{
	static _Thread_local char *rest;

	return strtok_r(text, separators, &rest);
}

/* The EAL has no context for a command, but hands it its name. */
static int
on_command(const char *name, const char *param, struct rte_tel_data *data)
{
	struct dp_answer answer = {.data = data};
	int ret = -ENOENT;

	(void)rte_tel_data_start_dict(data);
	(void)pthread_mutex_lock(&answering.lock);
	for (size_t i = 0; i < answering.n && ret == -ENOENT; i++)
		if (strcmp(answering.commands[i].name, name) == 0)
			ret = answering.fn(answering.context, i, param, &answer);
	(void)pthread_mutex_unlock(&answering.lock);
	return ret;
}

int
dp_telemetry_open(const struct dp_telemetry_command commands[], size_t n, dp_telemetry_fn fn,
	void *context)
{
	int ret = 0;

	(void)pthread_mutex_lock(&answering.lock);
	answering.commands = commands;
	answering.n = n;
	answering.fn = fn;
	answering.context = context;
	(void)pthread_mutex_unlock(&answering.lock);
	for (size_t i = 0; i < n && ret == 0; i++)
		ret = rte_telemetry_register_cmd(commands[i].name, on_command,
			commands[i].help);
	if (ret != 0)
		dp_telemetry_close();
	return ret;
}

void
dp_telemetry_close(void)
{
	(void)pthread_mutex_lock(&answering.lock);
	answering.n = 0;
	(void)pthread_mutex_unlock(&answering.lock);
}

void
dp_answer_number(struct dp_answer *answer, const char *key, uint64_t value)
{
	answer->list = NULL;
	(void)add_dict_number(answer->data, key, value);
}

void
dp_answer_text(struct dp_answer *answer, const char *key, const char *text)
{
	answer->list = NULL;
	(void)rte_tel_data_add_dict_string(answer->data, key, text);
}

static void
begin_list(struct dp_answer *answer, const char *key, enum rte_tel_value_type type)
{
	struct rte_tel_data *list = rte_tel_data_alloc();

	answer->list = NULL;
	if (list == NULL)
		return;
	(void)rte_tel_data_start_array(list, type);
	if (rte_tel_data_add_dict_container(answer->data, key, list, 0) == 0)
		answer->list = list;
	else
		rte_tel_data_free(list);
}

void
dp_answer_begin_numbers(struct dp_answer *answer, const char *key)
{
	begin_list(answer, key, NUMBER_VAL);
}

void
dp_answer_begin_texts(struct dp_answer *answer, const char *key)
{
	begin_list(answer, key, RTE_TEL_STRING_VAL);
}

void
dp_answer_append_number(struct dp_answer *answer, uint64_t value)
{
	if (answer->list != NULL)
		(void)add_array_number(answer->list, value);
}

void
dp_answer_append_text(struct dp_answer *answer, const char *text)
{
	if (answer->list != NULL)
		(void)rte_tel_data_add_array_string(answer->list, text);
}
