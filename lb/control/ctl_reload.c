/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_reload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl_daemon.h"
#include "ctl_fixed.h"
#include "ctl_log.h"
#include "ctl_notify.h"

/* What asks for a change that waits for its turn. */
enum asker { ASKED_BY_CALL, ASKED_BY_SIGNAL, ASKED_BY_ETCD };

struct change {
	enum asker asker;
	ctl_method_fn fn; /* of a call */
	json_t *params;
	struct ctl_call *call;
	struct change *next;
};

struct ctl_reload {
	struct ctl_daemon *daemon;
	struct ctl_loop *loop;
	struct ctl_timer *turn;            /* not NULL: the first change has its turn then */
	struct change *first;              /* as they came */
	struct change **last;              /* where the next is put */
	size_t n_hangups;                  /* reloads by signal that wait or are read */
	bool has_hangup;                   /* one waits: its file is not being read yet */
	struct ctl_etcd_document document; /* that waits; text NULL: none */
	bool is_busy;                      /* aside: with what changes wait for */
	bool is_taking_turn;
	bool is_over;
	bool is_refused; /* the last reload, and systemd knows */
};

/* What is read aside, to be put in force. */
struct reading {
	struct ctl_task task;
	enum asker asker;
	struct ctl_reload *reload; /* the control thread's */
	struct ctl_call *call;     /* the same; of a call that asked */
	struct cfg_reader *reader; /* the thread's */
	const atomic_bool *stop;
	char *path;
	int fd;                            /* of that; -1: it is to be opened */
	const char *own_path;              /* of the daemon's configuration */
	struct ctl_etcd *etcd;             /* where it is from; NULL: a file */
	struct ctl_etcd_document document; /* text NULL: it is asked for first */
	struct ctl_messages messages;
	struct ctl_save_mark mark; /* where the file is that */
	bool is_read;
	struct cfg_model next; /* where it is read */
};

/* Files. */

static const char *
name_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a pipe";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

/* A pipe or a device would have the thread wait for whoever feeds it. */
static bool
is_regular(const struct stat *file, const char *path, FILE *messages)
{
	if (!S_ISREG(file->st_mode))
		(void)fprintf(messages, "%s: expected a regular file, found %s\n", path,
			name_kind(file->st_mode));
	return S_ISREG(file->st_mode);
}

/*
 * So that a read that would have to wait is refused, as from some of the kernel's files,
 * regular though they look. An open that would have to is tried again until it is over: another
 * process has a lease of the file, for a time that the kernel limits.
 */
static int
open_patiently(const char *path, const atomic_bool *stop)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	int fd;

	while ((fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0 &&
		errno == EWOULDBLOCK && !atomic_load_explicit(stop, memory_order_relaxed))
		(void)nanosleep(&pause, NULL);
	return fd;
}

/*
 * A descriptor of a regular file, or -1. What it is, is asked before it is opened, as that
 * alone has a device do things; and after, as it may be another by then.
 */
static int
open_regular(const char *path, const atomic_bool *stop, FILE *messages)
{
	struct stat file;
	int fd = -1;

	if (stat(path, &file) == 0) {
		if (!is_regular(&file, path, messages))
			return -1;
		fd = open_patiently(path, stop);
	}
	if (fd >= 0 && fstat(fd, &file) == 0) {
		if (is_regular(&file, path, messages))
			return fd;
	} else {
		(void)fprintf(messages, "%s: cannot be opened: %s\n", path, strerror(errno));
	}
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/*
 * The same of a file that is open: another descriptor of it, or -1. Whoever opened it may have
 * read some, and may have it wait.
 */
static int
take_regular(int given, const char *path, FILE *messages)
{
	struct stat file;
	int fd = -1;

	if (fstat(given, &file) == 0) {
		if (!is_regular(&file, path, messages))
			return -1;
		fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
	}
	if (fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	(void)fprintf(messages, "%s: cannot be read: %s\n", path, strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* NULL: messages say why. */
static FILE *
open_stream(const char *path, int given, const atomic_bool *stop, FILE *messages)
{
	const int fd = given >= 0 ? take_regular(given, path, messages)
				  : open_regular(path, stop, messages);
	FILE *stream = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (fd >= 0 && stream == NULL) {
		(void)fprintf(messages, "%s: cannot be opened: %s\n", path, strerror(errno));
		(void)close(fd);
	}
	return stream;
}

bool
ctl_reload_scan(struct cfg_reader *reader, const char *path, int fd, const atomic_bool *stop,
	struct ctl_messages *messages, struct cfg_model *out)
{
	FILE *to = messages->errors.to;
	FILE *stream = open_stream(path, fd, stop, to);
	int ret;

	if (stream == NULL)
		return false;
	ret = cfg_reader_read_stream(reader, path, stream, stop, to, out);
	(void)fclose(stream); /* only read from: nothing is lost */
	return ret == 0;
}

/* 0, or what is wrong: -EFBIG, or what the kernel or the heap says. */
static int
read_stream(FILE *stream, size_t n_max, struct ctl_bytes *out)
{
	int ret = 0;
	size_t n;

	do {
		char part[16384];

		n = fread(part, 1, sizeof(part), stream);
		if (ferror(stream) != 0)
			return -errno;
		if (ctl_bytes_length(out) + n > n_max)
			return -EFBIG;
		ret = ctl_bytes_append(out, part, n);
	} while (ret == 0 && n > 0);
	return ret;
}

bool
ctl_reload_read_text(const char *path, int fd, size_t n_max, const atomic_bool *stop,
	struct ctl_messages *messages, struct ctl_bytes *out)
{
	FILE *to = messages->errors.to;
	FILE *stream = open_stream(path, fd, stop, to);
	int ret;

	if (stream == NULL)
		return false;
	ret = read_stream(stream, n_max, out);
	(void)fclose(stream); /* only read from: nothing is lost */
	if (ret != 0)
		(void)fprintf(to, "%s: cannot be read: %s\n", path, strerror(-ret));
	return ret == 0;
}

/* Changes that wait. */

/* params: copied; NULL: there are none. */
static bool
put(struct ctl_reload *reload, const struct change *what, const json_t *params)
{
	struct change *change = calloc(1, sizeof(*change));

	if (change == NULL)
		return false;
	*change = *what;
	change->params = json_deep_copy(params);
	if (params != NULL && change->params == NULL) {
		free(change);
		return false;
	}
	*reload->last = change;
	reload->last = &change->next;
	return true;
}

/* NULL: none. */
static struct change *
take(struct ctl_reload *reload)
{
	struct change *change = reload->first;

	if (change != NULL)
		reload->first = change->next;
	if (reload->first == NULL)
		reload->last = &reload->first;
	return change;
}

static void
free_change(struct change *change)
{
	json_decref(change->params);
	free(change);
}

static void start_reading(struct ctl_reload *reload, enum asker asker, const char *path,
	struct ctl_call *call);

static void
take_turn(struct ctl_reload *reload)
{
	struct change *change = take(reload);

	if (change == NULL)
		return;
	reload->is_taking_turn = true;
	if (change->asker == ASKED_BY_CALL) {
		change->fn(reload->daemon, change->params, change->call);
	} else {
		reload->has_hangup &= change->asker != ASKED_BY_SIGNAL;
		start_reading(reload, change->asker, ctl_daemon_config_path(reload->daemon),
			NULL);
	}
	reload->is_taking_turn = false;
	free_change(change);
}

static void plan_turn(struct ctl_reload *reload);

static void
on_turn(void *context)
{
	struct ctl_reload *reload = context;

	reload->turn = NULL;
	take_turn(reload);
	plan_turn(reload);
}

/* Each change in a turn of the loop's, so that others are answered in between. */
static void
plan_turn(struct ctl_reload *reload)
{
	while (reload->first != NULL && !reload->is_busy && reload->turn == NULL)
		if (ctl_loop_add_timer(reload->loop, 0, 0, on_turn, reload, &reload->turn) != 0)
			take_turn(reload);
}

void
ctl_reload_begin(struct ctl_reload *reload)
{
	reload->is_busy = true;
}

void
ctl_reload_end(struct ctl_reload *reload)
{
	reload->is_busy = false;
	if (!reload->is_over)
		plan_turn(reload);
}

bool
ctl_reload_defer(struct ctl_reload *reload, ctl_method_fn fn, const json_t *params,
	struct ctl_call *call)
{
	if (reload->is_taking_turn || (!reload->is_busy && reload->first == NULL))
		return false;
	if (!put(reload, &(struct change){.asker = ASKED_BY_CALL, .fn = fn, .call = call},
		    params))
		ctl_params_no_memory(call);
	return true;
}

/* Reloads. */

static void
read_file(struct reading *reading)
{
	const struct ctl_save_mark own = ctl_save_look(reading->own_path);
	const struct ctl_save_mark mark =
		reading->fd >= 0 ? ctl_save_look_at(reading->fd) : ctl_save_look(reading->path);

	if (ctl_save_is_same_file(&mark, &own))
		reading->mark = own;
	reading->is_read = ctl_reload_scan(reading->reader, reading->path, reading->fd,
		reading->stop, &reading->messages, &reading->next);
}

static void
run_reading(struct ctl_task *task)
{
	struct reading *reading = (struct reading *)task;
	struct ctl_etcd_document *document = &reading->document;
	FILE *to = reading->messages.errors.to;

	if (reading->etcd == NULL)
		read_file(reading);
	else if (document->text != NULL ||
		 ctl_etcd_fetch(reading->etcd, reading->stop, to, document) == 0)
		reading->is_read =
			cfg_reader_read_text(reading->reader, reading->path, document->text,
				document->n_bytes, to, &reading->next) == 0;
}

static void
free_reading(struct reading *reading)
{
	ctl_messages_close(&reading->messages);
	ctl_etcd_document_fini(&reading->document);
	if (reading->is_read)
		cfg_model_fini(&reading->next);
	if (reading->fd >= 0)
		(void)close(reading->fd);
	free(reading->path);
	free(reading);
}

/* Takes the document. */
static struct ctl_origin
take_origin(struct reading *reading)
{
	struct ctl_origin origin = {.mark = reading->mark, .document = reading->document};
	int n;

	reading->document = (struct ctl_etcd_document){0};
	if (origin.document.text != NULL)
		n = asprintf(&origin.what, "revision %" PRIu64 " of %s",
			origin.document.revision, reading->path);
	else
		n = asprintf(&origin.what, "reload of %s", reading->path);
	if (n < 0)
		origin.what = NULL;
	return origin;
}

/* errors: a line each; NULL: it was not refused. */
static void
tell_systemd(struct ctl_reload *reload, const char *errors)
{
	if (errors != NULL || reload->is_refused)
		ctl_notify_refused(errors);
	reload->is_refused = errors != NULL;
}

/* errors: the same. */
static void
tell_outcome(struct reading *reading, const char *errors)
{
	tell_systemd(reading->reload, errors);
	if (errors != NULL && reading->document.text != NULL)
		ctl_etcd_note_refused(reading->etcd, &reading->document, errors);
}

static void
finish_call(struct reading *reading)
{
	struct ctl_daemon *daemon = reading->reload->daemon;
	struct ctl_origin origin;
	char *obstacle;

	if (!reading->is_read) {
		const char *errors = ctl_messages_text(&reading->messages);
		/* What etcd does not tell may be all right. */
		const bool is_known = reading->etcd == NULL || reading->document.text != NULL;

		ctl_log_refused("reload", reading->path, errors);
		tell_outcome(reading, errors);
		ctl_messages_answer(&reading->messages,
			is_known ? CTL_RPC_INVALID_PARAMS : CTL_RPC_REFUSED, reading->call);
		return;
	}
	obstacle = ctl_fixed_obstacle(ctl_daemon_wanted(daemon), &reading->next);
	tell_outcome(reading, obstacle);
	if (obstacle != NULL) {
		ctl_log_refused("reload", reading->path, obstacle);
		ctl_call_error(reading->call, CTL_RPC_REFUSED, "%s", obstacle);
		free(obstacle);
		return;
	}
	reading->is_read = false;
	origin = take_origin(reading);
	origin.warnings = ctl_messages_list(&reading->messages);
	ctl_log_lines(CTL_LOG_WARNING, ctl_messages_text(&reading->messages));
	ctl_daemon_change(daemon, &reading->next, reading->call, &origin);
}

/* Where nobody is answered the log has all that there is to say. Whether it is to be put in
 * force. */
static bool
judge(struct reading *reading)
{
	const char *lines = ctl_messages_text(&reading->messages);
	char *obstacle = NULL;
	bool is_good;

	if (reading->is_read)
		obstacle = ctl_fixed_obstacle(ctl_daemon_wanted(reading->reload->daemon),
			&reading->next);
	is_good = reading->is_read && obstacle == NULL;
	if (reading->asker != ASKED_BY_ETCD || (is_good && lines[0] == '\0') ||
		ctl_etcd_may_tell(reading->etcd)) {
		ctl_log_lines(reading->is_read ? CTL_LOG_WARNING : CTL_LOG_ERROR, lines);
		if (!reading->is_read)
			ctl_log(CTL_LOG_ERROR, "%s is not loaded; what runs goes on",
				reading->path);
		if (obstacle != NULL)
			ctl_log_refused("reload", reading->path, obstacle);
	}
	tell_outcome(reading, reading->is_read ? obstacle : lines);
	free(obstacle);
	return is_good;
}

static void
finish_hangup(struct reading *reading)
{
	struct ctl_reload *reload = reading->reload;
	struct ctl_origin origin;

	reload->n_hangups--;
	if (!judge(reading)) {
		ctl_daemon_end_hangup(reload->daemon, NULL, NULL);
		return;
	}
	reading->is_read = false;
	origin = take_origin(reading);
	ctl_daemon_end_hangup(reload->daemon, &reading->next, &origin);
}

static void
finish_document(struct reading *reading)
{
	struct ctl_origin origin;

	/* By a reload, which asked etcd itself, or by what the watch has told since. */
	if (ctl_etcd_is_overtaken(reading->etcd, &reading->document))
		return;
	if (!judge(reading))
		return;
	reading->is_read = false;
	origin = take_origin(reading);
	ctl_daemon_change(reading->reload->daemon, &reading->next, NULL, &origin);
}

static void
finish_reading(struct ctl_task *task, bool is_done)
{
	struct reading *reading = (struct reading *)task;
	struct ctl_reload *reload = reading->reload;

	if (!is_done || reload->is_over) {
		if (reading->call != NULL)
			ctl_params_stops(reading->call);
	} else if (reading->asker == ASKED_BY_CALL) {
		finish_call(reading);
	} else if (reading->asker == ASKED_BY_SIGNAL) {
		finish_hangup(reading);
	} else {
		finish_document(reading);
	}
	free_reading(reading);
	ctl_reload_end(reload);
}

static void
refuse_reading(struct ctl_reload *reload, enum asker asker, struct ctl_call *call)
{
	if (asker == ASKED_BY_CALL) {
		ctl_params_no_memory(call);
		return;
	}
	ctl_log(CTL_LOG_ERROR, "there is not enough memory to reload");
	if (asker == ASKED_BY_ETCD) {
		/* Or the next one would take its place, and wait for its turn for ever. */
		ctl_etcd_note_refused(ctl_daemon_etcd(reload->daemon), &reload->document,
			"there is not enough memory");
		ctl_etcd_document_fini(&reload->document);
		return;
	}
	reload->n_hangups--;
	ctl_daemon_end_hangup(reload->daemon, NULL, NULL);
}

static void
start_reading(struct ctl_reload *reload, enum asker asker, const char *path,
	struct ctl_call *call)
{
	const char *own_path = ctl_daemon_config_path(reload->daemon);
	const bool is_own = strcmp(path, own_path) == 0;
	struct reading *reading = calloc(1, sizeof(*reading));
	char *copy = strdup(path);

	if (reading != NULL)
		*reading =
			(struct reading){.task = {.run = run_reading, .finish = finish_reading},
				.reader = ctl_daemon_reader(reload->daemon),
				.stop = ctl_aside_stop(ctl_daemon_aside(reload->daemon)),
				.asker = asker,
				.reload = reload,
				.call = call,
				.path = copy,
				.own_path = own_path,
				.etcd = is_own ? ctl_daemon_etcd(reload->daemon) : NULL};
	if (reading == NULL || copy == NULL ||
		ctl_messages_open(&reading->messages, copy) != 0) {
		free(reading);
		free(copy);
		refuse_reading(reload, asker, call);
		return;
	}
	if (asker == ASKED_BY_ETCD) {
		reading->document = reload->document;
		reload->document = (struct ctl_etcd_document){0};
	}
	reading->fd = call != NULL ? ctl_call_take_file(call) : -1;
	ctl_reload_begin(reload);
	ctl_aside_submit(ctl_daemon_aside(reload->daemon), &reading->task);
}

void
ctl_reload_file(struct ctl_reload *reload, const char *path, struct ctl_call *call)
{
	start_reading(reload, ASKED_BY_CALL, path, call);
}

void
ctl_reload_document(struct ctl_reload *reload, struct ctl_etcd_document *document)
{
	const bool has_one = reload->document.text != NULL;

	ctl_etcd_document_fini(&reload->document);
	reload->document = *document;
	*document = (struct ctl_etcd_document){0};
	if (has_one)
		return;
	if (put(reload, &(struct change){.asker = ASKED_BY_ETCD}, NULL))
		plan_turn(reload);
	else
		refuse_reading(reload, ASKED_BY_ETCD, NULL);
}

void
ctl_reload_hang_up(struct ctl_reload *reload)
{
	if (reload->has_hangup)
		return;
	reload->n_hangups++;
	if (!put(reload, &(struct change){.asker = ASKED_BY_SIGNAL}, NULL)) {
		refuse_reading(reload, ASKED_BY_SIGNAL, NULL);
		return;
	}
	reload->has_hangup = true;
	plan_turn(reload);
}

bool
ctl_reload_is_hung_up(const struct ctl_reload *reload)
{
	return reload != NULL && reload->n_hangups > 0;
}

int
ctl_reload_create(struct ctl_daemon *daemon, struct ctl_loop *loop, struct ctl_reload **out)
{
	struct ctl_reload *reload = calloc(1, sizeof(*reload));

	if (reload == NULL)
		return -ENOMEM;
	reload->daemon = daemon;
	reload->loop = loop;
	reload->last = &reload->first;
	*out = reload;
	return 0;
}

void
ctl_reload_stop(struct ctl_reload *reload)
{
	struct change *change;

	if (reload == NULL)
		return;
	reload->is_over = true;
	if (reload->turn != NULL)
		ctl_loop_remove_timer(reload->loop, reload->turn);
	reload->turn = NULL;
	while ((change = take(reload)) != NULL) {
		if (change->call != NULL)
			ctl_params_stops(change->call);
		free_change(change);
	}
}

void
ctl_reload_destroy(struct ctl_reload *reload)
{
	if (reload == NULL)
		return;
	ctl_etcd_document_fini(&reload->document);
	free(reload);
}
