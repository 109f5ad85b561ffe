/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_prober.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "hc_pinger.h"
#include "hc_probe.h"

/* What happens within a turn is done together, rather than in a turn of its own. */
#define TURN_NS UINT64_C(2000000)
/* A turn that has lasted so long begins one check and no more: what is under way goes first, so
 * that who has too many to ask asks them more rarely, rather than hear none of their answers in
 * time. */
#define TURN_NS_MAX UINT64_C(10000000)
/* Results are told of as often, at most. */
#define TELL_NS UINT64_C(10000000)
/* Where nothing is due. */
#define IDLE_MS  1000
#define N_EVENTS 256
/* Heard at a time, strangers' among them. */
#define N_REPLIES 256u

/* 2^32 / golden ratio: so spaced numbers are far from each other, however many there are. */
#define SPREAD UINT32_C(2654435769)

/* Whom to ask: probes that point to checks. */
struct set {
	struct hc_own_check *checks;
	size_t n_checks;
	struct hc_probe **probes; /* ascending by id */
	size_t n;
	size_t n_at_once;
	/* A probe is in one of them. With room for all each. */
	struct hc_heap begins; /* those that wait to begin */
	struct hc_heap ends;   /* those that run, by when their time is over */
};

struct hc_prober {
	pthread_t thread;
	int wake_fd; /* something has been asked of the thread */
	int tell_fd; /* there are results */

	pthread_mutex_t lock; /* of what follows */
	bool is_over;
	struct set *next;              /* NULL: none */
	struct hc_tunnel *next_tunnel; /* NULL: none, or it is the thread's */
	struct hc_result *results;
	size_t n_results;
	size_t results_room;

	/* The thread's. */
	int epoll_fd;
	struct set *set; /* NULL: none yet */
	struct hc_pinger pinger;
	struct hc_tls_context *tls; /* NULL: not needed yet */
	struct hc_tunnel *tunnel;   /* NULL: none */
	uint32_t n_spread;
	uint64_t turn_ns;
	uint64_t told_ns;
	bool has_untold;
};

static uint64_t
now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Sets. */

static void
free_set(struct set *set)
{
	if (set == NULL)
		return;
	for (size_t i = 0; set->probes != NULL && i < set->n; i++) {
		if (set->probes[i] == NULL)
			continue;
		hc_probe_fini(set->probes[i]);
		free(set->probes[i]);
	}
	for (size_t i = 0; set->checks != NULL && i < set->n_checks; i++)
		hc_own_check_fini(&set->checks[i]);
	free(set->checks);
	free(set->probes);
	free(set->begins.timers);
	free(set->ends.timers);
	free(set);
}

/* The set's own copy of a check: targets of one service come one after the other. */
static const struct hc_check *
take_check(struct set *set, const struct hc_check *check)
{
	if (set->n_checks > 0 && hc_check_equal(&set->checks[set->n_checks - 1].check, check))
		return &set->checks[set->n_checks - 1].check;
	if (hc_own_check_init(check, &set->checks[set->n_checks]) != 0)
		return NULL;
	return &set->checks[set->n_checks++].check;
}

static int
compare_ids(const void *a, const void *b)
{
	const struct hc_probe *const *x = a;
	const struct hc_probe *const *y = b;

	return ((*x)->target.id > (*y)->target.id) - ((*x)->target.id < (*y)->target.id);
}

/* How many copies take_check() makes. */
static size_t
count_checks(const struct hc_target *targets, size_t n)
{
	size_t n_checks = 0;

	for (size_t i = 0; i < n; i++)
		n_checks += i == 0 || !hc_check_equal(targets[i - 1].check, targets[i].check);
	return n_checks;
}

/* NULL: no memory. */
static struct set *
make_set(const struct hc_target *targets, size_t n)
{
	struct set *set = calloc(1, sizeof(*set));

	if (set == NULL)
		return NULL;
	set->checks = calloc(count_checks(targets, n) + 1, sizeof(struct hc_own_check));
	set->probes = calloc(n + 1, sizeof(struct hc_probe *));
	set->begins.timers = calloc(n + 1, sizeof(struct hc_timer *));
	set->ends.timers = calloc(n + 1, sizeof(struct hc_timer *));
	if (set->checks == NULL || set->probes == NULL || set->begins.timers == NULL ||
		set->ends.timers == NULL)
		goto free_set;
	for (size_t i = 0; i < n; i++) {
		struct hc_target target = targets[i];
		struct hc_probe *probe;

		target.check = take_check(set, targets[i].check);
		probe = malloc(sizeof(*probe));
		if (target.check == NULL || probe == NULL) {
			free(probe);
			goto free_set;
		}
		hc_probe_init(probe, &target);
		set->probes[set->n++] = probe;
	}
	qsort(set->probes, set->n, sizeof(struct hc_probe *), compare_ids);
	return set;

free_set:
	free_set(set);
	return NULL;
}

/* Results. */

/* False: the result is lost. With the lock held. */
static bool
make_room(struct hc_prober *prober)
{
	const size_t room = prober->results_room < 64 ? 64 : prober->results_room * 2;
	struct hc_result *results;

	if (prober->n_results < prober->results_room)
		return true;
	if (room > HC_RESULTS_MAX)
		return false;
	results = realloc(prober->results, room * sizeof(*results));
	if (results == NULL)
		return false;
	prober->results = results;
	prober->results_room = room;
	return true;
}

static void
put_result(struct hc_prober *prober, const struct hc_probe *probe, enum hc_outcome outcome,
	const char *words)
{
	struct hc_result *result;

	(void)pthread_mutex_lock(&prober->lock);
	if (make_room(prober)) {
		result = &prober->results[prober->n_results++];
		*result = (struct hc_result){
			.id = probe->target.id,
			.took_ns = now_ns() - probe->begun_ns,
			.has_passed = outcome == HC_PASSED,
			.is_asked = outcome != HC_NOT_ASKED,
		};
		if (outcome != HC_PASSED)
			hc_words_set(result->words, "%s", words);
	}
	(void)pthread_mutex_unlock(&prober->lock);
	prober->has_untold = true;
}

static void
tell(struct hc_prober *prober, uint64_t now)
{
	const uint64_t one = 1;

	if (!prober->has_untold || now - prober->told_ns < TELL_NS)
		return;
	prober->has_untold = false;
	prober->told_ns = now;
	/* Fails only at 2^64 - 1 events that nobody has read. */
	(void)!write(prober->tell_fd, &one, sizeof(one));
}

/* Probes. */

static void
end(struct hc_prober *prober, struct hc_probe *probe, enum hc_outcome outcome,
	const char *words)
{
	if (outcome == HC_RUNNING)
		return;
	if (outcome != HC_PASSED && hc_probe_is_cut_off(probe)) {
		outcome = HC_NOT_ASKED;
		words = "via: tunnel: the device " HC_TUNNEL_NAME " is, or was, down or gone";
	}
	put_result(prober, probe, outcome, words);
	hc_probe_end(probe, outcome);
	if (probe->timer.place != HC_HEAP_NONE)
		hc_heap_remove(&prober->set->ends, &probe->timer);
	hc_heap_put(&prober->set->begins, &probe->timer, probe->next_ns);
}

/* NULL: it cannot be had; words say why. */
static struct hc_tls_context *
find_tls(struct hc_prober *prober, char words[static HC_WORDS_BYTES])
{
	if (prober->tls == NULL)
		prober->tls = hc_tls_context_create(words);
	return prober->tls;
}

static void
begin(struct hc_prober *prober, struct hc_probe *probe, uint64_t now)
{
	const uint64_t interval_ns = probe->target.check->interval_ns;
	char words[HC_WORDS_BYTES] = "";
	enum hc_outcome outcome;

	hc_heap_remove(&prober->set->begins, &probe->timer);
	probe->begun_ns = now;
	probe->next_ns = hc_probe_next(probe->timer.due_ns, interval_ns, now);
	if (probe->target.check->type == HC_HTTPS && find_tls(prober, words) == NULL)
		outcome = HC_NOT_ASKED;
	else if (probe->target.check->type == HC_ICMP)
		outcome = hc_pinger_ask(&prober->pinger, probe, prober->epoll_fd, words);
	else
		outcome = hc_probe_begin(probe, prober->tunnel, prober->epoll_fd, words);
	if (outcome == HC_RUNNING)
		hc_heap_put(&prober->set->ends, &probe->timer,
			now + probe->target.check->timeout_ns);
	else
		end(prober, probe, outcome, words);
}

/* The first of a heap, if it is due; NULL: none is. */
static struct hc_probe *
find_due(const struct hc_heap *heap, uint64_t now)
{
	struct hc_timer *timer = hc_heap_first(heap);

	return timer != NULL && timer->due_ns <= now ? (struct hc_probe *)timer : NULL;
}

/* Whether one more may be under way. */
static bool
has_room(const struct set *set)
{
	return set->ends.n < set->n_at_once;
}

static void
run_due(struct hc_prober *prober, uint64_t now)
{
	struct hc_probe *probe;

	if (prober->set == NULL)
		return;
	while ((probe = find_due(&prober->set->ends, now)) != NULL) {
		char words[HC_WORDS_BYTES] = "";

		end(prober, probe, hc_probe_expire(probe, words), words);
	}
	now = now_ns();
	while (has_room(prober->set) && (probe = find_due(&prober->set->begins, now)) != NULL) {
		begin(prober, probe, now);
		now = now_ns();
		if (now - prober->turn_ns > TURN_NS_MAX)
			break;
	}
}

static void
take_replies(struct hc_prober *prober)
{
	struct hc_echo echo;
	struct lb_addr from;

	unsigned int left = N_REPLIES;

	while (hc_pinger_take(&prober->pinger, &left, &echo, &from)) {
		const struct hc_probe wanted = {.target = {.id = echo.id}};
		const struct hc_probe *key = &wanted;
		struct hc_probe **found =
			prober->set == NULL ? NULL
					    : bsearch(&key, prober->set->probes, prober->set->n,
						      sizeof(struct hc_probe *), compare_ids);

		if (found != NULL && (*found)->is_running &&
			(*found)->begun_ns == echo.begun_ns &&
			lb_addr_equal(&(*found)->target.address, &from))
			end(prober, *found, HC_PASSED, "");
	}
}

/* The thread. */

/* How long the first begin of one that is new waits; below 2^59 for an interval of an hour. */
static uint64_t
spread(struct hc_prober *prober, const struct hc_probe *probe)
{
	const uint32_t fraction = prober->n_spread++ * SPREAD;

	return probe->target.check->interval_ns * (fraction >> 16) >> 16;
}

/* The place in the old set, from *place on, of who is asked the same; NULL: there is none. */
static struct hc_probe **
find_same(const struct set *old, size_t *place, const struct hc_target *target)
{
	const struct hc_target *found;

	if (old == NULL)
		return NULL;
	while (*place < old->n && old->probes[*place]->target.id < target->id)
		(*place)++;
	if (*place == old->n)
		return NULL;
	found = &old->probes[*place]->target;
	if (found->id != target->id || !lb_addr_equal(&found->address, &target->address) ||
		found->backend != target->backend ||
		!lb_addr_equal(&found->source, &target->source) ||
		!hc_check_equal(found->check, target->check))
		return NULL;
	return &old->probes[*place];
}

/* Takes over from the old set who is asked the same, with what is under way. */
static void
adopt(struct hc_prober *prober, struct set *next, struct set *old, uint64_t now)
{
	size_t place = 0;

	for (size_t i = 0; i < next->n; i++) {
		struct hc_probe *probe = next->probes[i];
		struct hc_probe **same = find_same(old, &place, &probe->target);
		struct hc_probe *kept;

		if (same == NULL) {
			hc_heap_put(&next->begins, &probe->timer, now + spread(prober, probe));
			continue;
		}
		/* They change places, so that the old set is whole, to be freed. */
		kept = *same;
		*same = probe;
		next->probes[i] = kept;
		kept->target.check = probe->target.check;
		kept->timer.place = HC_HEAP_NONE;
		hc_heap_put(kept->is_running ? &next->ends : &next->begins, &kept->timer,
			kept->timer.due_ns);
	}
}

/* Before any target that needs it. */
static void
take_tunnel(struct hc_prober *prober, struct hc_tunnel *tunnel)
{
	struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &prober->tunnel}};

	prober->tunnel = tunnel;
	/* Should it fail, what is there is still seen to while any probe is in flight. */
	(void)epoll_ctl(prober->epoll_fd, EPOLL_CTL_ADD, hc_tunnel_fd(tunnel), &event);
}

/* False: it is over. */
static bool
take_orders(struct hc_prober *prober, uint64_t now)
{
	struct hc_tunnel *tunnel;
	struct set *next;
	bool is_over;
	uint64_t n_events;

	(void)!read(prober->wake_fd, &n_events, sizeof(n_events));
	(void)pthread_mutex_lock(&prober->lock);
	is_over = prober->is_over;
	next = prober->next;
	prober->next = NULL;
	tunnel = prober->next_tunnel;
	prober->next_tunnel = NULL;
	(void)pthread_mutex_unlock(&prober->lock);
	if (tunnel != NULL)
		take_tunnel(prober, tunnel);
	if (next != NULL) {
		adopt(prober, next, prober->set, now);
		free_set(prober->set);
		prober->set = next;
	}
	return !is_over;
}

static uint64_t
find_earlier(const struct hc_heap *heap, uint64_t until_ns)
{
	const struct hc_timer *first = hc_heap_first(heap);

	return first != NULL && first->due_ns < until_ns ? first->due_ns : until_ns;
}

static int
find_wait_ms(const struct hc_prober *prober, uint64_t now)
{
	uint64_t until_ns = now + (uint64_t)IDLE_MS * 1000000;

	if (prober->set != NULL) {
		if (has_room(prober->set))
			until_ns = find_earlier(&prober->set->begins, until_ns);
		until_ns = find_earlier(&prober->set->ends, until_ns);
	}
	/* The workers have no means to wake anybody. */
	if (prober->tunnel != NULL && hc_tunnel_is_busy(prober->tunnel) &&
		now + TURN_NS < until_ns)
		until_ns = now + TURN_NS;
	if (prober->has_untold && prober->told_ns + TELL_NS < until_ns)
		until_ns = prober->told_ns + TELL_NS;
	return until_ns <= now ? 0 : (int)((until_ns - now + 999999) / 1000000);
}

/* The rest of a turn: what happens meanwhile is done in the next. */
static uint64_t
pace(struct hc_prober *prober)
{
	uint64_t now = now_ns();
	const uint64_t next_ns = prober->turn_ns + TURN_NS;

	if (now < next_ns) {
		const struct timespec rest = {.tv_nsec = (long)(next_ns - now)};

		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
		now = now_ns();
	}
	prober->turn_ns = now;
	return now;
}

static void
handle(struct hc_prober *prober, const struct epoll_event *event)
{
	char words[HC_WORDS_BYTES] = "";
	struct hc_probe *probe = event->data.ptr;

	if (event->data.ptr == &prober->wake_fd)
		return; /* see take_orders() */
	if (event->data.ptr == &prober->tunnel)
		return; /* see run() */
	if (event->data.ptr == &prober->pinger)
		take_replies(prober);
	else
		end(prober, probe, hc_probe_go_on(probe, prober->tls, event->events, words),
			words);
}

/* What has happened until now, so that nobody's time is over who has answered. */
static void
handle_all(struct hc_prober *prober, int wait_ms, uint64_t *now)
{
	/* Of so many sockets, once each; and those that are not of probes. */
	size_t left = 3 + (prober->set != NULL ? prober->set->ends.n : 0);
	struct epoll_event events[N_EVENTS];
	int n = epoll_wait(prober->epoll_fd, events, N_EVENTS, wait_ms);

	*now = pace(prober);
	if (prober->tunnel != NULL)
		hc_tunnel_pump(prober->tunnel);
	for (;;) {
		for (int i = 0; i < n; i++)
			handle(prober, &events[i]);
		if (n < N_EVENTS || left <= N_EVENTS)
			break;
		left -= N_EVENTS;
		n = epoll_wait(prober->epoll_fd, events, N_EVENTS, 0);
	}
}

static void *
run(void *argument)
{
	struct hc_prober *prober = argument;
	uint64_t now = now_ns();

	(void)pthread_setname_np(pthread_self(), "shunt-health");
	while (take_orders(prober, now)) {
		run_due(prober, now);
		tell(prober, now);
		handle_all(prober, find_wait_ms(prober, now), &now);
	}
	return NULL;
}

/* The caller's. */

static int
open_files(struct hc_prober *prober)
{
	struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &prober->wake_fd}};

	prober->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (prober->wake_fd < 0)
		return -errno;
	prober->tell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (prober->tell_fd < 0)
		return -errno;
	prober->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (prober->epoll_fd < 0 ||
		epoll_ctl(prober->epoll_fd, EPOLL_CTL_ADD, prober->wake_fd, &event) != 0)
		return -errno;
	return hc_pinger_init(&prober->pinger);
}

static void
close_files(const struct hc_prober *prober)
{
	if (prober->epoll_fd >= 0)
		(void)close(prober->epoll_fd);
	if (prober->tell_fd >= 0)
		(void)close(prober->tell_fd);
	if (prober->wake_fd >= 0)
		(void)close(prober->wake_fd);
}

/* Without signals: they are others' to take, and what is sent to a closed connection is told
 * by its errno. */
static int
start_thread(struct hc_prober *prober)
{
	sigset_t all;
	sigset_t before;
	int ret;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(&prober->thread, NULL, run, prober);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

int
hc_prober_create(struct hc_prober **out)
{
	struct hc_prober *prober = calloc(1, sizeof(*prober));
	int ret;

	if (prober == NULL)
		return -ENOMEM;
	prober->wake_fd = -1;
	prober->tell_fd = -1;
	prober->epoll_fd = -1;
	(void)pthread_mutex_init(&prober->lock, NULL);
	ret = open_files(prober);
	if (ret == 0)
		ret = start_thread(prober);
	if (ret != 0) {
		close_files(prober);
		(void)pthread_mutex_destroy(&prober->lock);
		free(prober);
		return ret;
	}
	*out = prober;
	return 0;
}

static void
wake(const struct hc_prober *prober)
{
	const uint64_t one = 1;

	(void)!write(prober->wake_fd, &one, sizeof(one));
}

void
hc_prober_destroy(struct hc_prober *prober)
{
	if (prober == NULL)
		return;
	(void)pthread_mutex_lock(&prober->lock);
	prober->is_over = true;
	(void)pthread_mutex_unlock(&prober->lock);
	wake(prober);
	(void)pthread_join(prober->thread, NULL);

	free_set(prober->next);
	free_set(prober->set);
	hc_tls_context_destroy(prober->tls);
	hc_pinger_fini(&prober->pinger);
	close_files(prober);
	(void)pthread_mutex_destroy(&prober->lock);
	free(prober->results);
	free(prober);
}

void
hc_prober_attach(struct hc_prober *prober, struct hc_tunnel *tunnel)
{
	(void)pthread_mutex_lock(&prober->lock);
	prober->next_tunnel = tunnel;
	(void)pthread_mutex_unlock(&prober->lock);
	wake(prober);
}

int
hc_prober_set(struct hc_prober *prober, const struct hc_target *targets, size_t n,
	size_t n_at_once)
{
	struct set *set = make_set(targets, n);
	struct set *waiting;

	if (set == NULL)
		return -ENOMEM;
	set->n_at_once = n_at_once;
	(void)pthread_mutex_lock(&prober->lock);
	waiting = prober->next;
	prober->next = set;
	(void)pthread_mutex_unlock(&prober->lock);
	free_set(waiting);
	wake(prober);
	return 0;
}

int
hc_prober_fd(const struct hc_prober *prober)
{
	return prober->tell_fd;
}

size_t
hc_prober_take(struct hc_prober *prober, struct hc_result **out)
{
	uint64_t n_events;
	size_t n;

	(void)!read(prober->tell_fd, &n_events, sizeof(n_events));
	(void)pthread_mutex_lock(&prober->lock);
	n = prober->n_results;
	*out = prober->results;
	prober->results = NULL;
	prober->n_results = 0;
	prober->results_room = 0;
	(void)pthread_mutex_unlock(&prober->lock);
	return n;
}
