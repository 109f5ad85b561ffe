/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "ctl_backoff.h"
#include "ctl_etcd_client.h"
#include "ctl_log.h"
#include "ctl_loop.h"

/* A watch that has lasted this long was a good one: the next failure is a new one. */
#define STABLE_MS 10000u
/* How often a watch is held against what etcd says if it is asked; and for how long it may be
 * behind that. */
#define LOOK_MS   10000u
#define BEHIND_MS 5000u
/* Before a copy that could not be written is tried again. */
#define COPY_AGAIN_MS 10000u

const char *const ctl_etcd_link_words[CTL_ETCD_N_LINKS] = {"connecting", "watching",
	"unreachable"};

/* What the log was told of since it last went well for a while, a bit each. */
enum told {
	TOLD_UNREACHABLE = 1 << 0,
	TOLD_RUBBISH = 1 << 1,
	TOLD_REFUSED = 1 << 2,
	TOLD_OLD = 1 << 3,
	TOLD_NO_MEMORY = 1 << 4,
	TOLD_WATCHING = 1 << 5,
};

/* What is known of the cluster; all zero: nothing. */
struct known {
	uint64_t cluster;
	uint64_t revision;     /* of all that it holds */
	uint64_t key_revision; /* 0: there is no such key */
};

struct ctl_etcd {
	const char *url;
	struct ctl_etcd_conf conf;
	char *copy_path;

	/* The control thread's. */
	struct ctl_loop *loop;
	struct ctl_aside *aside;
	ctl_etcd_fn fn;
	void *context;
	struct ctl_timer *again;          /* not NULL: unsaved is tried then */
	struct ctl_etcd_document first;   /* until the thread is started */
	struct ctl_etcd_document unsaved; /* in force, and not kept yet */
	bool is_saving;

	/* The thread's own. */
	struct ctl_etcd_client *client;
	struct ctl_etcd_client *looker; /* beside the watch */
	uint64_t look_ms;               /* when it looks next */
	uint64_t behind_ms;             /* the watch has until then; 0: it is not behind */
	struct known behind;            /* what was known when it was found to be */
	struct ctl_backoff backoff;
	unsigned int told;
	uint64_t watching_since_ms; /* 0: it is not */
	char why[CTL_ETCD_WHY_BYTES];

	pthread_t thread;
	bool is_running;
	atomic_bool is_over;
	int fd; /* readable where something is offered; -1: none */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t is_ending;
	struct known known;
	struct ctl_etcd_document offered; /* text NULL: nothing */
	struct ctl_etcd_status status;
	struct ctl_log_limit link_limit;
	struct ctl_log_limit document_limit;
};

/* A copy that is being written. */
struct saving {
	struct ctl_task task;
	struct ctl_etcd *etcd;
	struct ctl_etcd_document document;
	int ret;
};

bool
ctl_etcd_is(const char *config)
{
	return ctl_etcd_url_is(config);
}

static void
lock(struct ctl_etcd *etcd)
{
	(void)pthread_mutex_lock(&etcd->lock);
}

static void
unlock(struct ctl_etcd *etcd)
{
	(void)pthread_mutex_unlock(&etcd->lock);
}

static int64_t
now_s(void)
{
	return (int64_t)time(NULL);
}

/* The first line. */
static void
copy_line(char out[CTL_ETCD_WHY_BYTES], const char *lines)
{
	(void)snprintf(out, CTL_ETCD_WHY_BYTES, "%.*s", (int)strcspn(lines, "\n"), lines);
}

/* Takes the value of an answer that has the key. */
static struct ctl_etcd_document
take_document(struct ctl_etcd_answer *answer)
{
	const struct ctl_etcd_document document = {.text = answer->value,
		.n_bytes = answer->n_value,
		.cluster = answer->cluster,
		.revision = answer->key_revision,
		.hash = ctl_etcd_document_hash(answer->value, answer->n_value)};

	answer->value = NULL;
	return document;
}

static struct known
known_of(const struct ctl_etcd_answer *answer)
{
	return (struct known){.cluster = answer->cluster,
		.revision = answer->revision,
		.key_revision = answer->has_key ? answer->key_revision : 0};
}

/* With the lock. */
static void
set_link(struct ctl_etcd *etcd, enum ctl_etcd_link link)
{
	if (etcd->status.link != link)
		etcd->status.link_since_s = now_s();
	etcd->status.link = link;
}

static bool
may_tell(struct ctl_etcd *etcd, struct ctl_log_limit *limit, const char *what)
{
	struct ctl_log_turn turn;

	lock(etcd);
	turn = ctl_log_limit_take(limit, ctl_loop_now_ms());
	unlock(etcd);
	if (turn.n_left_out > 0)
		ctl_log(CTL_LOG_NOTICE, "etcd: of %s %" PRIu64 " times nothing was told here",
			what, turn.n_left_out);
	else if (turn.is_last)
		ctl_log(CTL_LOG_NOTICE,
			"etcd: of %s there is so much to tell that it is told only now and "
			"then; "
			"'shuntctl status' has the last",
			what);
	return turn.is_told;
}

bool
ctl_etcd_may_tell(struct ctl_etcd *etcd)
{
	return may_tell(etcd, &etcd->document_limit, "documents");
}

/* The thread. */

static bool
may_tell_of_link(struct ctl_etcd *etcd)
{
	return may_tell(etcd, &etcd->link_limit, "connections and clusters");
}

static unsigned int
kind_of(int error)
{
	switch (error) {
	case -EPROTO:
	case -EMSGSIZE:
		return TOLD_RUBBISH;
	case -EACCES:
	case -EREMOTEIO:
	case -EAGAIN:
		return TOLD_REFUSED;
	case -ESTALE:
		return TOLD_OLD;
	case -ENOMEM:
		return TOLD_NO_MEMORY;
	default:
		return TOLD_UNREACHABLE;
	}
}

static void
note_failure(struct ctl_etcd *etcd, int error)
{
	const unsigned int kind = kind_of(error);

	if (etcd->watching_since_ms != 0 &&
		ctl_loop_now_ms() - etcd->watching_since_ms >= STABLE_MS) {
		etcd->told = 0;
		etcd->backoff = (struct ctl_backoff){0};
	}
	etcd->watching_since_ms = 0;
	lock(etcd);
	set_link(etcd, CTL_ETCD_UNREACHABLE);
	etcd->status.n_failures++;
	copy_line(etcd->status.why, etcd->why);
	unlock(etcd);
	if ((etcd->told & kind) == 0 && may_tell_of_link(etcd))
		ctl_log(CTL_LOG_WARNING, "etcd: %s; what runs goes on", etcd->why);
	etcd->told |= kind;
	ctl_etcd_client_turn(etcd->client);
}

static void
note_watching(struct ctl_etcd *etcd)
{
	etcd->watching_since_ms = ctl_loop_now_ms();
	etcd->look_ms = etcd->watching_since_ms + LOOK_MS;
	etcd->behind_ms = 0;
	lock(etcd);
	set_link(etcd, CTL_ETCD_WATCHING);
	unlock(etcd);
	if ((etcd->told & TOLD_WATCHING) == 0 && may_tell_of_link(etcd))
		ctl_log(CTL_LOG_NOTICE, "etcd: watching the key %s", etcd->conf.url.key);
	etcd->told |= TOLD_WATCHING;
}

/* Takes document. */
static void
offer(struct ctl_etcd *etcd, struct ctl_etcd_document *document)
{
	const uint64_t one = 1;

	lock(etcd);
	ctl_etcd_document_fini(&etcd->offered);
	etcd->offered = *document;
	unlock(etcd);
	/* Fails only at 2^64 - 1 events that nobody has read. */
	(void)!write(etcd->fd, &one, sizeof(one));
}

/* What runs goes on, as with a document that is refused. */
static void
note_missing(struct ctl_etcd *etcd, uint64_t revision)
{
	lock(etcd);
	etcd->status.refused_revision = revision;
	copy_line(etcd->status.refused_why, "there is no such key");
	etcd->status.n_refused++;
	unlock(etcd);
	if (!ctl_etcd_may_tell(etcd))
		return;
	ctl_log(CTL_LOG_ERROR,
		"etcd: there is no key %s at revision %" PRIu64 "; what runs goes on",
		etcd->conf.url.key, revision);
}

/* An answer that is to be believed. */
static void
take_news(struct ctl_etcd *etcd, struct ctl_etcd_answer *answer)
{
	const struct known next = known_of(answer);
	struct known before;
	bool is_another;

	lock(etcd);
	before = etcd->known;
	etcd->known = next;
	etcd->status.known_revision = next.key_revision;
	/* The copy was of what is there still. */
	if (before.cluster == next.cluster && next.key_revision == etcd->status.revision)
		etcd->status.is_copy = false;
	unlock(etcd);
	is_another = before.cluster != 0 && before.cluster != next.cluster;
	if (!is_another && before.key_revision == next.key_revision)
		return;
	if (is_another && may_tell_of_link(etcd))
		ctl_log(CTL_LOG_NOTICE, "etcd: the cluster is another one, or was restored");
	if (answer->has_key) {
		struct ctl_etcd_document document = take_document(answer);

		offer(etcd, &document);
	} else if (before.key_revision != 0) {
		note_missing(etcd, answer->revision);
	}
}

/* A member that was left behind, or another one's disk in its place. */
static int
refuse_old(struct ctl_etcd *etcd, uint64_t revision, uint64_t known)
{
	(void)snprintf(etcd->why, sizeof(etcd->why),
		"it answers with revision %" PRIu64 ", which is older than %" PRIu64
		" that it had; 'shuntctl reload' takes it all the same",
		revision, known);
	return -ESTALE;
}

static int
check_age(struct ctl_etcd *etcd, const struct ctl_etcd_answer *answer)
{
	uint64_t known;

	lock(etcd);
	known = etcd->known.cluster == answer->cluster ? etcd->known.revision : 0;
	unlock(etcd);
	return answer->revision < known ? refuse_old(etcd, answer->revision, known) : 0;
}

static int
on_watch(void *context, struct ctl_etcd_answer *answer)
{
	struct ctl_etcd *etcd = context;
	int ret;

	if (answer->is_canceled && answer->compacted != 0) {
		(void)snprintf(etcd->why, sizeof(etcd->why),
			"what is to be watched was compacted up to revision %" PRIu64
			", time and again",
			answer->compacted);
		return -EAGAIN;
	}
	if (answer->is_canceled) {
		(void)snprintf(etcd->why, sizeof(etcd->why), "the watch has ended: %.200s",
			answer->reason[0] != '\0' ? answer->reason : "no reason is given");
		return -EREMOTEIO;
	}
	if (answer->is_created)
		note_watching(etcd);
	if (!answer->has_key && !answer->is_deleted)
		return 0;
	ret = check_age(etcd, answer);
	if (ret == 0)
		take_news(etcd, answer);
	return ret;
}

static struct known
read_known(struct ctl_etcd *etcd)
{
	struct known known;

	lock(etcd);
	known = etcd->known;
	unlock(etcd);
	return known;
}

/* What etcd has, if it is asked: is the watch behind that? */
static int
look(struct ctl_etcd *etcd)
{
	struct ctl_etcd_answer answer;
	struct known known;
	struct known there;
	int ret = ctl_etcd_client_look(etcd->looker, etcd->client, &answer, etcd->why);

	if (ret != 0)
		return ret;
	there = known_of(&answer);
	ctl_etcd_answer_fini(&answer);
	known = read_known(etcd);
	etcd->look_ms = ctl_loop_now_ms() + LOOK_MS;
	if (there.cluster == known.cluster &&
		(there.revision < known.revision || there.key_revision == known.key_revision))
		return 0;
	etcd->behind = known;
	etcd->behind_ms = ctl_loop_now_ms() + BEHIND_MS;
	return 0;
}

/*
 * A watch that tells nothing may have nothing to tell; or a proxy keeps it that passes nothing
 * on, or its member hangs, and the kernel of either answers for it. So now and then etcd is
 * asked by another connection.
 */
static int
on_turn(void *context)
{
	struct ctl_etcd *etcd = context;
	const uint64_t now_ms = ctl_loop_now_ms();
	struct known known;

	if (etcd->behind_ms == 0)
		return now_ms < etcd->look_ms ? 0 : look(etcd);
	known = read_known(etcd);
	if (known.cluster != etcd->behind.cluster || known.revision != etcd->behind.revision) {
		etcd->behind_ms = 0;
		return 0;
	}
	if (now_ms < etcd->behind_ms)
		return 0;
	(void)snprintf(etcd->why, sizeof(etcd->why),
		"the watch is silent: it has told nothing since revision %" PRIu64
		", and the key has changed",
		known.revision);
	return -EHOSTUNREACH;
}

/* Until something fails. -EAGAIN: nothing has, and it is to be done again. */
static int
load_and_watch(struct ctl_etcd *etcd)
{
	const struct ctl_etcd_watcher watcher = {on_watch, on_turn, etcd};
	struct ctl_etcd_answer answer;
	uint64_t from;
	int ret = ctl_etcd_client_load(etcd->client, &answer, etcd->why);

	if (ret != 0)
		return ret;
	from = answer.revision + 1;
	ret = check_age(etcd, &answer);
	if (ret == 0)
		take_news(etcd, &answer);
	ctl_etcd_answer_fini(&answer);
	if (ret != 0)
		return ret;
	return ctl_etcd_client_watch(etcd->client, from, &watcher, etcd->why);
}

static void
wait_ms(struct ctl_etcd *etcd, uint32_t ms)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	lock(etcd);
	while (!atomic_load_explicit(&etcd->is_over, memory_order_relaxed) &&
		pthread_cond_timedwait(&etcd->is_ending, &etcd->lock, &until) != ETIMEDOUT)
		continue;
	unlock(etcd);
}

static void *
run(void *argument)
{
	struct ctl_etcd *etcd = argument;
	int before = 0;

	while (!atomic_load_explicit(&etcd->is_over, memory_order_relaxed)) {
		const int ret = load_and_watch(etcd);
		uint32_t random = 0;

		if (ret == -ECANCELED)
			break;
		/* Nothing is wrong with a compaction, unless there is one each time. */
		if (ret != -EAGAIN || before == -EAGAIN)
			note_failure(etcd, ret);
		before = ret;
		/* Without chance it waits for the least there is. */
		(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
		wait_ms(etcd, ctl_backoff_next(&etcd->backoff, random));
	}
	return NULL;
}

/* Copies. */

static void save(struct ctl_etcd *etcd);

static void
on_again(void *context)
{
	struct ctl_etcd *etcd = context;

	etcd->again = NULL;
	save(etcd);
}

static void
run_saving(struct ctl_task *task)
{
	struct saving *saving = (struct saving *)task;

	saving->ret = ctl_etcd_copy_write(saving->etcd->copy_path, saving->etcd->conf.url.key,
		&saving->document);
}

static void
note_saving(struct ctl_etcd *etcd, int error)
{
	bool was_good;

	lock(etcd);
	was_good = etcd->status.copy_why[0] == '\0';
	if (error == 0)
		etcd->status.copy_s = now_s();
	copy_line(etcd->status.copy_why, error == 0 ? "" : strerror(-error));
	unlock(etcd);
	if (error != 0 && was_good)
		ctl_log(CTL_LOG_ERROR,
			"%s: the copy of what etcd has cannot be written: %s; it is tried "
			"again, and until then a start without etcd finds an older one or none",
			etcd->copy_path, strerror(-error));
	else if (error == 0 && !was_good)
		ctl_log(CTL_LOG_NOTICE, "%s: the copy of what etcd has is written",
			etcd->copy_path);
}

static void
finish_saving(struct ctl_task *task, bool is_done)
{
	struct saving *saving = (struct saving *)task;
	struct ctl_etcd *etcd = saving->etcd;

	const bool is_saved = is_done && saving->ret == 0;

	etcd->is_saving = false;
	if (is_done)
		note_saving(etcd, saving->ret);
	/* Unless there is a newer one by now. */
	if (!is_saved && etcd->unsaved.text == NULL) {
		etcd->unsaved = saving->document;
		saving->document = (struct ctl_etcd_document){0};
	}
	if (is_saved)
		save(etcd);
	else if (is_done)
		(void)ctl_loop_add_timer(etcd->loop, COPY_AGAIN_MS, 0, on_again, etcd,
			&etcd->again);
	ctl_etcd_document_fini(&saving->document);
	free(saving);
}

/* What is in force and not kept, unless it is being done or waits for its time. */
static void
save(struct ctl_etcd *etcd)
{
	struct saving *saving;

	if (etcd->unsaved.text == NULL || etcd->is_saving || etcd->again != NULL)
		return;
	saving = calloc(1, sizeof(*saving));
	if (saving == NULL) {
		note_saving(etcd, -ENOMEM);
		return;
	}
	*saving = (struct saving){.task = {.run = run_saving, .finish = finish_saving},
		.etcd = etcd,
		.document = etcd->unsaved};
	etcd->unsaved = (struct ctl_etcd_document){0};
	etcd->is_saving = true;
	ctl_aside_submit(etcd->aside, &saving->task);
}

/* What came of documents. */

void
ctl_etcd_note_in_force(struct ctl_etcd *etcd, struct ctl_etcd_document *document)
{
	lock(etcd);
	etcd->status.revision = document->revision;
	etcd->status.hash = document->hash;
	etcd->status.is_copy = false;
	etcd->status.refused_revision = 0;
	etcd->status.refused_why[0] = '\0';
	etcd->status.n_applied++;
	unlock(etcd);
	ctl_etcd_document_fini(&etcd->unsaved);
	etcd->unsaved = *document;
	*document = (struct ctl_etcd_document){0};
	if (etcd->again != NULL)
		ctl_loop_remove_timer(etcd->loop, etcd->again);
	etcd->again = NULL;
	save(etcd);
}

void
ctl_etcd_note_refused(struct ctl_etcd *etcd, const struct ctl_etcd_document *document,
	const char *errors)
{
	lock(etcd);
	etcd->status.refused_revision = document->revision;
	copy_line(etcd->status.refused_why, errors);
	etcd->status.n_refused++;
	unlock(etcd);
}

void
ctl_etcd_read_status(struct ctl_etcd *etcd, struct ctl_etcd_status *out)
{
	lock(etcd);
	*out = etcd->status;
	unlock(etcd);
}

static void
on_offered(void *context, uint32_t events)
{
	struct ctl_etcd *etcd = context;
	struct ctl_etcd_document document;
	uint64_t n_events;

	(void)events;
	(void)!read(etcd->fd, &n_events, sizeof(n_events));
	lock(etcd);
	document = etcd->offered;
	etcd->offered = (struct ctl_etcd_document){0};
	unlock(etcd);
	if (document.text != NULL)
		etcd->fn(etcd->context, &document);
}

/* Calls from any thread. */

/* An answer that has the key. */
static int
ask_once(struct ctl_etcd *etcd, const atomic_bool *stop, struct ctl_etcd_answer *out,
	char why[CTL_ETCD_WHY_BYTES])
{
	struct ctl_etcd_client *client;
	int ret = ctl_etcd_client_create(&etcd->conf, stop, &client);

	(void)snprintf(why, CTL_ETCD_WHY_BYTES, "there is not enough memory");
	if (ret != 0)
		return ret;
	ret = ctl_etcd_client_load(client, out, why);
	ctl_etcd_client_destroy(client);
	if (ret != 0 || out->has_key)
		return ret;
	(void)snprintf(why, CTL_ETCD_WHY_BYTES, "there is no key %.200s", etcd->conf.url.key);
	return -ENOENT;
}

static void
believe(struct ctl_etcd *etcd, const struct known *before, const struct known *known)
{
	lock(etcd);
	/* Not where the watch has had something newer while etcd was asked. */
	if (etcd->known.cluster != known->cluster || etcd->known.revision <= known->revision ||
		etcd->known.revision == before->revision) {
		etcd->known = *known;
		etcd->status.known_revision = known->key_revision;
	}
	unlock(etcd);
}

int
ctl_etcd_fetch(struct ctl_etcd *etcd, const atomic_bool *stop, FILE *messages,
	struct ctl_etcd_document *out)
{
	char why[CTL_ETCD_WHY_BYTES];
	struct ctl_etcd_answer answer = {0};
	struct known before;
	struct known known;
	int ret;

	lock(etcd);
	before = etcd->known;
	unlock(etcd);
	ret = ask_once(etcd, stop, &answer, why);
	if (ret != 0) {
		(void)fprintf(messages, "etcd: %s\n", why);
		return ret;
	}
	known = known_of(&answer);
	believe(etcd, &before, &known);
	*out = take_document(&answer);
	return 0;
}

bool
ctl_etcd_is_overtaken(struct ctl_etcd *etcd, const struct ctl_etcd_document *document)
{
	bool is;

	lock(etcd);
	is = etcd->known.cluster == document->cluster &&
	     document->revision < etcd->known.key_revision;
	unlock(etcd);
	return is;
}

int
ctl_etcd_push(struct ctl_etcd *etcd, const atomic_bool *stop, struct ctl_etcd_push *push)
{
	struct ctl_etcd_answer answer = {0};
	struct ctl_etcd_client *client;
	int ret = ctl_etcd_client_create(&etcd->conf, stop, &client);

	(void)snprintf(push->why, sizeof(push->why), "there is not enough memory");
	if (ret != 0)
		return ret;
	ret = ctl_etcd_client_put(client, push->text, push->n_bytes, push->revision, &answer,
		push->why);
	ctl_etcd_client_destroy(client);
	if (ret != 0)
		return ret;
	push->now = answer.key_revision;
	return answer.is_succeeded ? 0 : -ESTALE;
}

/* The first one: there is no other thread yet. */

/* Takes document. */
static int
read_document(struct ctl_etcd *etcd, struct cfg_reader *reader,
	struct ctl_etcd_document *document, FILE *messages, struct cfg_model *out)
{
	const int ret = cfg_reader_read_text(reader, etcd->url, document->text,
		document->n_bytes, messages, out);

	if (ret != 0) {
		ctl_etcd_note_refused(etcd, document, "it was refused at the start");
		ctl_etcd_document_fini(document);
		return ret;
	}
	etcd->first = *document;
	etcd->status.revision = document->revision;
	etcd->status.hash = document->hash;
	return 0;
}

static int
fetch_first(struct ctl_etcd *etcd, const struct ctl_etcd_document *copy,
	struct ctl_etcd_document *out)
{
	struct ctl_etcd_answer answer = {0};
	struct known known;
	int ret = ask_once(etcd, NULL, &answer, etcd->why);

	if (ret == 0 && answer.cluster == copy->cluster && answer.revision < copy->revision)
		ret = refuse_old(etcd, answer.revision, copy->revision);
	if (ret != 0) {
		ctl_etcd_answer_fini(&answer);
		return ret;
	}
	known = known_of(&answer);
	believe(etcd, &etcd->known, &known); /* nobody watches yet */
	*out = take_document(&answer);
	return 0;
}

/* What etcd says from here on is held against the copy; and of what has failed the log is told
 * already. */
static void
note_first_failure(struct ctl_etcd *etcd, const struct ctl_etcd_document *copy, int error)
{
	const struct known known = {.cluster = copy->cluster,
		.revision = copy->revision,
		.key_revision = copy->revision};

	believe(etcd, &etcd->known, &known); /* nobody watches yet */
	if (error == -ENOENT)
		return;
	etcd->told = kind_of(error);
	etcd->status.n_failures++;
	copy_line(etcd->status.why, etcd->why);
	set_link(etcd, CTL_ETCD_UNREACHABLE);
}

/* Takes copy. */
static int
read_copy(struct ctl_etcd *etcd, struct cfg_reader *reader, struct ctl_etcd_document *copy,
	FILE *messages, struct cfg_model *out)
{
	char when[sizeof("YYYY-MM-DD hh:mm:ss")];
	const time_t saved = (time_t)etcd->status.copy_s;
	struct tm parts;
	int ret;

	(void)strftime(when, sizeof(when), "%F %T", localtime_r(&saved, &parts));
	(void)fprintf(messages, "%s: this copy of %s, of revision %" PRIu64 ", is taken\n",
		etcd->copy_path, when, copy->revision);
	ret = read_document(etcd, reader, copy, messages, out);
	etcd->status.is_copy = ret == 0;
	return ret;
}

int
ctl_etcd_read_first(struct ctl_etcd *etcd, struct cfg_reader *reader, bool may_copy,
	FILE *messages, struct cfg_model *out)
{
	struct ctl_etcd_document copy = {0};
	struct ctl_etcd_document document;
	int found = -ENOENT;
	int ret;

	if (may_copy)
		found = ctl_etcd_copy_read(etcd->copy_path, etcd->conf.url.key, &copy,
			&etcd->status.copy_s);
	ret = fetch_first(etcd, &copy, &document);
	if (ret == 0) {
		ret = read_document(etcd, reader, &document, messages, out);
	} else {
		(void)fprintf(messages, "etcd: %s\n", etcd->why);
		note_first_failure(etcd, &copy, ret);
	}
	if (ret != 0 && found == 0)
		return read_copy(etcd, reader, &copy, messages, out);
	ctl_etcd_document_fini(&copy);
	if (ret != 0 && may_copy)
		(void)fprintf(messages, "%s: there is no copy to start with: %s\n",
			etcd->copy_path,
			found == -EBADMSG ? "it is damaged" : strerror(-found));
	return ret;
}

/* Life. */

int
ctl_etcd_create(const char *url, FILE *messages, struct ctl_etcd **out)
{
	struct ctl_etcd *etcd = calloc(1, sizeof(*etcd));
	pthread_condattr_t attributes;
	int ret;

	if (etcd == NULL)
		return -ENOMEM;
	etcd->url = url;
	etcd->fd = -1;
	etcd->status.link_since_s = now_s();
	ret = ctl_etcd_conf_read(url, messages, &etcd->conf);
	if (ret != 0) {
		free(etcd);
		return ret;
	}
	(void)pthread_mutex_init(&etcd->lock, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&etcd->is_ending, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	etcd->copy_path = ctl_etcd_copy_path(etcd->conf.url.key);
	if (etcd->copy_path == NULL ||
		ctl_etcd_client_create(&etcd->conf, &etcd->is_over, &etcd->client) != 0 ||
		ctl_etcd_client_create(&etcd->conf, &etcd->is_over, &etcd->looker) != 0) {
		ctl_etcd_destroy(etcd);
		return -ENOMEM;
	}
	*out = etcd;
	return 0;
}

int
ctl_etcd_start(struct ctl_etcd *etcd, struct ctl_loop *loop, struct ctl_aside *aside,
	ctl_etcd_fn fn, void *context)
{
	int ret;

	etcd->loop = loop;
	etcd->aside = aside;
	etcd->fn = fn;
	etcd->context = context;
	etcd->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (etcd->fd < 0)
		return -errno;
	ret = ctl_loop_add_fd(loop, etcd->fd, EPOLLIN, on_offered, etcd);
	if (ret != 0)
		return ret;
	if (etcd->status.is_copy)
		ctl_etcd_document_fini(&etcd->first);
	else
		etcd->unsaved = etcd->first;
	etcd->first = (struct ctl_etcd_document){0};
	save(etcd);
	ret = -pthread_create(&etcd->thread, NULL, run, etcd);
	etcd->is_running = ret == 0;
	return ret;
}

void
ctl_etcd_stop(struct ctl_etcd *etcd)
{
	if (etcd == NULL || !etcd->is_running)
		return;
	lock(etcd);
	atomic_store_explicit(&etcd->is_over, true, memory_order_relaxed);
	(void)pthread_cond_signal(&etcd->is_ending);
	unlock(etcd);
	ctl_etcd_client_wake(etcd->client);
	ctl_etcd_client_wake(etcd->looker);
	(void)pthread_join(etcd->thread, NULL);
	etcd->is_running = false;
	ctl_loop_remove_fd(etcd->loop, etcd->fd);
	if (etcd->again != NULL)
		ctl_loop_remove_timer(etcd->loop, etcd->again);
	etcd->again = NULL;
}

void
ctl_etcd_destroy(struct ctl_etcd *etcd)
{
	if (etcd == NULL)
		return;
	if (etcd->unsaved.text != NULL)
		note_saving(etcd, ctl_etcd_copy_write(etcd->copy_path, etcd->conf.url.key,
					  &etcd->unsaved));
	ctl_etcd_client_destroy(etcd->client);
	ctl_etcd_client_destroy(etcd->looker);
	ctl_etcd_document_fini(&etcd->first);
	ctl_etcd_document_fini(&etcd->unsaved);
	ctl_etcd_document_fini(&etcd->offered);
	if (etcd->fd >= 0)
		(void)close(etcd->fd);
	(void)pthread_cond_destroy(&etcd->is_ending);
	(void)pthread_mutex_destroy(&etcd->lock);
	ctl_etcd_conf_fini(&etcd->conf);
	free(etcd->copy_path);
	free(etcd);
}
