/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_announce.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "ctl_log.h"
#include "ctl_ready.h"
#include "ctl_tun.h"

/* Between two attempts at what the kernel refuses, or another program takes away. */
#define RETRY_MS 1000u

const char *const ctl_announce_link_words[] = {
	[CTL_ANNOUNCE_UP] = "up",
	[CTL_ANNOUNCE_DOWN] = "down",
	[CTL_ANNOUNCE_GONE] = "gone",
};

struct ctl_announce {
	struct ctl_loop *loop;
	struct ctl_timer *retry; /* NULL: none is running */
	struct ctl_tun tun;
	enum ctl_announce_link link;
	struct ctl_routes routes;
	/* What the model before has led to, in its order: mostly it is the same again. */
	struct lb_prefix *gathered;
	size_t n_gathered;
	uint32_t ports_down;
	bool is_doubtful; /* which routes are there has to be asked for */
	bool is_withdrawn;
};

/* What one round has done, for the log: the first of each kind, and how many. */
struct done {
	struct {
		struct lb_prefix first;
		int error;
		size_t n;
	} announced, withdrawn, failed;
};

static const char *
explain(int error)
{
	switch (error) {
	case -EEXIST:
		return "there is another route to it, with the same metric; remove that one, "
		       "or "
		       "change announce.metric";
	case -ENOENT:
		return "another program has taken its route away; it comes back within a "
		       "second";
	default:
		return strerror(-error);
	}
}

/* " and N more", where there are. */
static const char *
count_more(size_t n, char out[static 32])
{
	out[0] = '\0';
	if (n > 1)
		(void)snprintf(out, 32, " and %zu more", n - 1);
	return out;
}

static void
tell(const struct ctl_announce *announce, const struct done *done)
{
	char text[LB_PREFIX_TEXT_BYTES];
	char more[32];

	if (done->announced.n > 0)
		ctl_log(CTL_LOG_NOTICE, "announced: %s%s",
			lb_prefix_format(&done->announced.first, text),
			count_more(done->announced.n, more));
	if (done->withdrawn.n > 0)
		ctl_log(CTL_LOG_NOTICE, "withdrawn: %s%s",
			lb_prefix_format(&done->withdrawn.first, text),
			count_more(done->withdrawn.n, more));
	if (done->failed.n > 0)
		ctl_log(CTL_LOG_WARNING, "the route to %s%s by %s is not as it is to be: %s",
			lb_prefix_format(&done->failed.first, text),
			count_more(done->failed.n, more), announce->tun.name,
			explain(done->failed.error));
}

/* A failure counts once, not at each attempt. */
static void
note(struct done *done, const struct ctl_route *route, int error_before)
{
	if (route->error == 0 && route->is_there) {
		if (done->announced.n++ == 0)
			done->announced.first = route->prefix;
	} else if (route->error == 0) {
		if (done->withdrawn.n++ == 0)
			done->withdrawn.first = route->prefix;
	} else if (route->error != error_before && done->failed.n++ == 0) {
		done->failed.first = route->prefix;
		done->failed.error = route->error;
	}
}

static void on_retry(void *context);

/* Without memory for a timer the next change of anything tries. */
static void
retry_later(struct ctl_announce *announce)
{
	if (announce->retry == NULL)
		(void)ctl_loop_add_timer(announce->loop, RETRY_MS, 0, on_retry, announce,
			&announce->retry);
}

/* @return the place after the last of the batch. */
static size_t
put_batch(struct ctl_announce *announce, size_t from, struct done *done)
{
	struct ctl_route *batch[CTL_TUN_BATCH];
	int errors[CTL_TUN_BATCH];
	size_t n = 0;

	for (; from < announce->routes.n && n < CTL_TUN_BATCH;
		from = ctl_routes_next(&announce->routes, from + 1)) {
		batch[n] = &announce->routes.items[from];
		errors[n] = batch[n]->error;
		n++;
	}
	ctl_tun_put(&announce->tun, batch, n);
	for (size_t i = 0; i < n; i++) {
		note(done, batch[i], errors[i]);
		announce->is_doubtful |= batch[i]->is_unsure;
	}
	return from;
}

/* Have the kernel's routes as they are wanted, as far as can be. */
static void
settle(struct ctl_announce *announce)
{
	struct done done = {.failed = {.n = 0}};
	size_t from;

	if (announce->link != CTL_ANNOUNCE_UP)
		return;
	from = ctl_routes_next(&announce->routes, 0);
	while (from < announce->routes.n)
		from = put_batch(announce, from, &done);
	ctl_routes_tidy(&announce->routes);
	if (ctl_routes_next(&announce->routes, 0) < announce->routes.n)
		retry_later(announce);
	tell(announce, &done);
}

static void
make_again(struct ctl_announce *announce)
{
	/* Why not is told by shuntctl; the log has heard that it is gone. */
	if (ctl_tun_make(&announce->tun) != 0) {
		retry_later(announce);
		return;
	}
	announce->link = CTL_ANNOUNCE_UP;
	ctl_log(CTL_LOG_NOTICE, "the interface %s is there again", announce->tun.name);
}

/* Those that were refused, or not answered, and are there all the same. */
static void
welcome(struct ctl_announce *announce)
{
	struct done done = {.failed = {.n = 0}};

	for (size_t i = 0; i < announce->routes.n; i++) {
		struct ctl_route *route = &announce->routes.items[i];

		if (!route->is_wanted || !route->is_there || route->error == 0)
			continue;
		route->error = 0;
		note(&done, route, 0);
	}
	tell(announce, &done);
}

/* Where the kernel does not tell which routes others took, or what became of ours. */
static void
look(struct ctl_announce *announce)
{
	announce->is_doubtful = ctl_tun_look(&announce->tun, &announce->routes) != 0;
	if (!announce->is_doubtful)
		welcome(announce);
	if (announce->is_doubtful || ctl_routes_next(&announce->routes, 0) < announce->routes.n)
		retry_later(announce);
}

static void
on_retry(void *context)
{
	struct ctl_announce *announce = context;

	announce->retry = NULL; /* called once, and gone */
	if (announce->link == CTL_ANNOUNCE_GONE)
		make_again(announce);
	if (announce->is_doubtful)
		look(announce);
	settle(announce);
}

static void
lose_route(struct ctl_announce *announce, const struct lb_prefix *prefix)
{
	struct ctl_route *route = ctl_routes_find(&announce->routes, prefix);

	if (route == NULL || !route->is_there)
		return;
	route->is_there = false;
	route->error = -ENOENT;
	retry_later(announce);
}

/* Many may be at a time: the kernel is asked once of all of them. */
static void
doubt_route(struct ctl_announce *announce, const struct lb_prefix *prefix)
{
	const struct ctl_route *route = ctl_routes_find(&announce->routes, prefix);

	if (route == NULL || !route->is_there)
		return;
	announce->is_doubtful = true;
	retry_later(announce);
}

/* All routes are lost. */
static void
lose_link(struct ctl_announce *announce, enum ctl_announce_link link)
{
	if (announce->link == link)
		return;
	announce->link = link;
	ctl_routes_lose(&announce->routes);
	ctl_log(CTL_LOG_WARNING, "the interface %s is %s, and nothing is announced",
		announce->tun.name, link == CTL_ANNOUNCE_DOWN ? "down" : "gone");
	if (link == CTL_ANNOUNCE_GONE)
		retry_later(announce);
}

static void
find_link(struct ctl_announce *announce)
{
	if (announce->link == CTL_ANNOUNCE_UP)
		return;
	announce->link = CTL_ANNOUNCE_UP;
	ctl_log(CTL_LOG_NOTICE, "the interface %s is up again", announce->tun.name);
	settle(announce);
}

static void
on_event(void *context, const struct ctl_tun_event *event)
{
	struct ctl_announce *announce = context;

	switch (event->what) {
	case CTL_TUN_UP:
		find_link(announce);
		break;
	case CTL_TUN_DOWN:
		lose_link(announce, CTL_ANNOUNCE_DOWN);
		break;
	case CTL_TUN_GONE:
		lose_link(announce, CTL_ANNOUNCE_GONE);
		break;
	case CTL_TUN_ROUTE:
		lose_route(announce, &event->prefix);
		break;
	case CTL_TUN_REPLACED:
		doubt_route(announce, &event->prefix);
		break;
	case CTL_TUN_LOST:
		look(announce);
		break;
	}
}

static void
on_events(void *context, uint32_t events)
{
	struct ctl_announce *announce = context;

	(void)events;
	ctl_tun_take(&announce->tun, on_event, announce);
}

static void
say_why_not(const char *name, int error)
{
	if (error == -EBUSY || error == -EEXIST)
		ctl_log(CTL_LOG_ERROR,
			"announce.interface: there is an interface '%s' already, of another "
			"shuntd or another program; stop that, or remove it (ip link delete "
			"%s), or give announce.interface another name",
			name, name);
	else if (error == -EPERM || error == -EACCES)
		ctl_log(CTL_LOG_ERROR,
			"announce.interface: '%s' cannot be made: %s; start shuntd as root, or "
			"with CAP_NET_ADMIN, or turn it 'off'",
			name, strerror(-error));
	else if (error == -ENOENT || error == -ENODEV || error == -ENXIO)
		ctl_log(CTL_LOG_ERROR,
			"announce.interface: '%s' cannot be made: the kernel has no "
			"/dev/net/tun; load its module (modprobe tun), or turn it 'off'",
			name);
	else
		ctl_log(CTL_LOG_ERROR, "announce.interface: '%s' cannot be made: %s", name,
			strerror(-error));
}

int
ctl_announce_open(struct ctl_loop *loop, const struct cfg_announce *conf,
	struct ctl_announce **out)
{
	struct ctl_announce *announce;
	int ret;

	if (conf->interface == NULL) {
		*out = NULL;
		return 0;
	}
	announce = calloc(1, sizeof(*announce));
	if (announce == NULL)
		return -ENOMEM;
	announce->loop = loop;
	ret = ctl_tun_open(conf, &announce->tun);
	if (ret == 0)
		ret = ctl_tun_listen(&announce->tun);
	if (ret == 0)
		ret = ctl_tun_make(&announce->tun);
	if (ret == 0)
		ret = ctl_loop_add_fd(loop, ctl_tun_events_fd(&announce->tun), EPOLLIN,
			on_events, announce);
	if (ret != 0) {
		say_why_not(conf->interface, ret);
		ctl_tun_close(&announce->tun);
		free(announce);
		return ret;
	}
	*out = announce;
	return 0;
}

void
ctl_announce_close(struct ctl_announce *announce)
{
	if (announce == NULL)
		return;
	if (announce->retry != NULL)
		ctl_loop_remove_timer(announce->loop, announce->retry);
	ctl_loop_remove_fd(announce->loop, ctl_tun_events_fd(&announce->tun));
	ctl_tun_close(&announce->tun);
	ctl_routes_fini(&announce->routes);
	free(announce->gathered);
	free(announce);
}

static bool
is_same(const struct ctl_announce *announce, const struct lb_prefix *prefixes, size_t n)
{
	if (announce->gathered == NULL || announce->n_gathered != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!lb_prefix_equal(&announce->gathered[i], &prefixes[i]))
			return false;
	}
	return true;
}

void
ctl_announce_follow(struct ctl_announce *announce, const struct ctl_view *view,
	uint32_t ports_down)
{
	struct lb_prefix *prefixes;
	size_t n;

	if (announce == NULL || announce->is_withdrawn)
		return;
	announce->ports_down = ports_down;
	prefixes = calloc(view->model.n_services + 1, sizeof(*prefixes));
	n = prefixes == NULL ? 0 : ctl_routes_gather(view, ports_down, prefixes);
	if (prefixes != NULL && is_same(announce, prefixes, n)) {
		free(prefixes);
		return;
	}
	if (prefixes == NULL || ctl_routes_want(&announce->routes, prefixes, n) != 0) {
		free(prefixes);
		ctl_log(CTL_LOG_ERROR, "there is not enough memory to announce what is ready");
		return;
	}
	free(announce->gathered);
	announce->gathered = prefixes;
	announce->n_gathered = n;
	settle(announce);
}

bool
ctl_announce_withdraw(struct ctl_announce *announce)
{
	bool was_announced = false;

	if (announce == NULL)
		return false;
	for (size_t i = 0; i < announce->routes.n; i++)
		was_announced |= announce->routes.items[i].is_there;
	announce->is_withdrawn = true;
	ctl_routes_want_none(&announce->routes);
	settle(announce);
	return was_announced;
}

const char *
ctl_announce_why_not(const struct ctl_announce *announce, const struct ctl_view *view,
	size_t place)
{
	const struct cfg_service *service = &view->model.services[place];
	const struct ctl_route *route = ctl_routes_find(&announce->routes, &service->address);
	const enum ctl_ready ready = ctl_ready_look(service, view->services[place].confs,
		view->services[place].n_unhealthy, announce->ports_down);

	if (route != NULL && route->is_there)
		return NULL;
	if (announce->is_withdrawn)
		return "shuntd stops";
	if (ready != CTL_READY)
		return ctl_ready_words[ready];
	if (announce->link != CTL_ANNOUNCE_UP)
		return announce->link == CTL_ANNOUNCE_DOWN ? "the interface is down"
							   : "the interface is gone";
	return route != NULL && route->error != 0 ? explain(route->error) : "not yet";
}

enum ctl_announce_link
ctl_announce_read_link(const struct ctl_announce *announce)
{
	return announce->link;
}
