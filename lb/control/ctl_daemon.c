/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "ctl_announce.h"
#include "ctl_builder.h"
#include "ctl_health.h"
#include "ctl_log.h"
#include "ctl_methods.h"
#include "ctl_metrics.h"
#include "ctl_netlink.h"
#include "ctl_notify.h"
#include "ctl_proto.h"
#include "ctl_reach.h"
#include "ctl_reload.h"
#include "ctl_rpc_socket.h"
#include "ctl_sent_back.h"
#include "ctl_since.h"
#include "ctl_telemetry.h"
#include "ctl_unreached.h"

#define NS_PER_MS 1000000u

/* A change that is being built, or a call that waits for those before it. */
struct waiting {
	ctl_method_fn fn;      /* of the latter; NULL: a change */
	struct ctl_call *call; /* answered when it is in force; NULL: nobody waits */
	struct ctl_origin origin;
	uint64_t generation;
	struct waiting *next;
};

struct ctl_daemon {
	const char *config_path;
	const char *local_path; /* NULL: config_path has it all */
	struct ctl_etcd *etcd;  /* NULL: a file */
	struct ctl_save_mark mark;
	struct cfg_reader *reader;
	struct dp *dp;
	uint64_t begun_ms;
	struct ctl_loop *loop;
	struct ctl_netlink *netlink;
	struct ctl_ports ports;
	bool is_running;               /* so do the workers */
	struct ctl_announce *announce; /* NULL: off */
	struct ctl_builder *builder;
	struct ctl_aside *aside;
	struct ctl_reload *reload;
	struct ctl_rpc *rpc;
	struct ctl_metrics *metrics; /* NULL: off */
	struct ctl_telemetry *telemetry;
	struct ctl_health *health;
	struct ctl_trace trace;
	struct ctl_places places; /* as they were asked for last */

	struct cfg_model wanted;
	uint64_t generation;     /* of wanted */
	uint64_t undone;         /* that in which what is in force is wanted again; 0: none */
	uint64_t followed;       /* of what health follows; 0: nothing yet */
	bool is_building;        /* for health; what changes meanwhile is built after it */
	bool is_stale;           /* something has */
	struct ctl_view *view;   /* in force */
	struct ctl_since since;  /* of the states of its backends */
	struct waiting *waiting; /* by generation */
	struct waiting **last_waiting;
	bool has_said_why; /* of a start that failed */
	bool is_stopping;
	uint64_t reloading; /* generation of a reload that systemd knows of; 0: none */
	struct ctl_reach reach;
	struct ctl_unreached unreached;
	struct ctl_sent_back sent_back;
};

/* Have health follow what is wanted. */
static int
follow_health(struct ctl_daemon *daemon)
{
	const int ret = ctl_health_follow(daemon->health, &daemon->wanted,
		daemon->view != NULL ? &daemon->view->model : NULL);

	if (ret == 0)
		daemon->followed = daemon->generation;
	return ret;
}

/* Have the builder put what is wanted in force, with paths and health as they are now. */
static int
submit(struct ctl_daemon *daemon)
{
	struct ctl_job job = {.generation = daemon->generation};
	int ret = 0;

	if (daemon->followed != daemon->generation)
		ret = follow_health(daemon);
	if (ret == 0)
		ret = cfg_model_copy(&daemon->wanted, &job.model);
	if (ret != 0)
		return ret;
	ret = ctl_health_find_shares(daemon->health, &daemon->wanted, &job.shares,
		&job.n_unhealthy);
	if (ret == 0)
		ret = ctl_reach_find(&daemon->reach, &daemon->wanted, &job.paths, &job.n_paths);
	if (ret != 0) {
		cfg_model_fini(&job.model);
		free(job.shares);
		free(job.n_unhealthy);
		return ret;
	}
	ctl_builder_submit(daemon->builder, &job);
	return 0;
}

/* Why that could not be done. */
static const char *
words_of(int error)
{
	return error == -ENOMEM ? "there is not enough memory" : strerror(-error);
}

/* Tell systemd where all reloads that it knows of are over, in force or not. */
static void
end_reload(struct ctl_daemon *daemon, uint64_t generation)
{
	if (daemon->reloading == 0 || daemon->reloading > generation ||
		ctl_reload_is_hung_up(daemon->reload))
		return;
	daemon->reloading = 0;
	ctl_notify_ready();
}

static void
free_origin(struct ctl_origin *origin)
{
	free(origin->what);
	json_decref(origin->warnings);
	ctl_etcd_document_fini(&origin->document);
}

/* Of a change that is in force. */
static void
note_change(struct ctl_daemon *daemon, struct waiting *waiting)
{
	const char *what = waiting->origin.what;

	if (waiting->origin.mark.is_there)
		daemon->mark = waiting->origin.mark;
	if (waiting->origin.document.text != NULL)
		ctl_etcd_note_in_force(daemon->etcd, &waiting->origin.document);
	ctl_log(CTL_LOG_NOTICE, "generation %" PRIu64 ": %s", waiting->generation,
		what != NULL ? what : "a change");
}

/* message as answer_waiting() has it. */
static void
answer_call(const struct waiting *waiting, uint64_t generation, const char *message)
{
	json_t *warnings = waiting->origin.warnings;

	if (waiting->call == NULL)
		return;
	if (message != NULL)
		ctl_call_error(waiting->call, CTL_RPC_REFUSED, "%s", message);
	else
		ctl_call_result(waiting->call,
			json_pack("{s:i, s:I, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA,
				CTL_KEY_GENERATION, (json_int_t)generation, CTL_KEY_WARNINGS,
				warnings != NULL ? json_incref(warnings) : json_array()));
}

/* End the changes of up to a generation: it is in force, or message says why it is not. */
static void
answer_waiting(struct ctl_daemon *daemon, uint64_t generation, const char *message)
{
	struct waiting *waiting;

	while ((waiting = daemon->waiting) != NULL && waiting->generation <= generation) {
		daemon->waiting = waiting->next;
		if (daemon->waiting == NULL)
			daemon->last_waiting = &daemon->waiting;
		if (message == NULL && waiting->fn == NULL)
			note_change(daemon, waiting);
		if (message == NULL && waiting->fn != NULL)
			waiting->fn(daemon, NULL, waiting->call);
		else
			answer_call(waiting, generation, message);
		if (message != NULL && waiting->origin.document.text != NULL)
			ctl_etcd_note_refused(daemon->etcd, &waiting->origin.document, message);
		free_origin(&waiting->origin);
		free(waiting);
	}
	end_reload(daemon, generation);
}

/*
 * Back to what is in force; also for changes that were made on top of the one that failed. The
 * builder may still have one of them, or the same again, as health or next hops have changed
 * since: should that come into force, what is in force now is built after it. Once is enough.
 */
static void
undo(struct ctl_daemon *daemon, const char *message)
{
	struct cfg_model old;

	ctl_log(CTL_LOG_ERROR, "the change is undone: %s", message);
	if (daemon->view != NULL && cfg_model_copy(&daemon->view->model, &old) == 0) {
		const bool has_later = daemon->generation != daemon->undone &&
				       ctl_builder_is_busy(daemon->builder);

		ctl_builder_free_model(daemon->builder, &daemon->wanted);
		daemon->wanted = old;
		daemon->generation += has_later;
		if (follow_health(daemon) != 0)
			ctl_log(CTL_LOG_ERROR,
				"there is not enough memory to check who was checked");
		if (has_later)
			daemon->undone = daemon->generation;
		if (has_later && submit(daemon) != 0)
			ctl_log(CTL_LOG_ERROR, "there is not enough memory to undo it");
	}
	answer_waiting(daemon, UINT64_MAX, message);
}

/* Build for health alone: one at a time, as each takes a copy of all there is. */
static void
on_health_changed(void *context)
{
	struct ctl_daemon *daemon = context;

	daemon->is_stale = daemon->is_building;
	if (daemon->is_building)
		return;
	daemon->is_building = true;
	if (submit(daemon) == 0)
		return;
	/* The next change of health brings us here again. */
	daemon->is_building = false;
	ctl_log(CTL_LOG_ERROR, "there is not enough memory to follow the backends' health");
}

static void
take_built(struct ctl_daemon *daemon, struct ctl_built *built)
{
	if (built->view != NULL) {
		struct ctl_view *old = daemon->view;

		daemon->view = built->view;
		ctl_since_follow(&daemon->since, daemon->view, ctl_loop_now_ms());
		ctl_daemon_release_view(daemon, old);
		ctl_announce_follow(daemon->announce, daemon->view, daemon->ports.down);
		if (built->generation == daemon->generation)
			ctl_health_settle(daemon->health, daemon->view);
		answer_waiting(daemon, built->generation, NULL);
	} else {
		undo(daemon,
			built->message != NULL ? built->message : "there is not enough memory");
	}
	free(built->message);
	daemon->is_building = false;
	if (daemon->is_stale)
		on_health_changed(daemon);
}

static void
on_built(void *context, uint32_t events)
{
	struct ctl_daemon *daemon = context;
	struct ctl_built built;

	(void)events;
	while (ctl_builder_take(daemon->builder, &built))
		take_built(daemon, &built);
}

static void
on_hops_changed(void *context)
{
	struct ctl_daemon *daemon = context;

	ctl_reach_forget(&daemon->reach);
	/* Unless it worked, the next change of a hop or a neighbour brings us here again. */
	if (submit(daemon) != 0)
		ctl_log(CTL_LOG_ERROR,
			"there is not enough memory to follow the kernel's next hops");
}

/* Before the workers run there is nothing to announce, and nothing to withdraw. */
static void
on_ports_changed(void *context)
{
	struct ctl_daemon *daemon = context;

	if (daemon->is_running)
		ctl_announce_follow(daemon->announce, daemon->view, daemon->ports.down);
}

static void
put_waiting(struct ctl_daemon *daemon, struct waiting *waiting)
{
	waiting->generation = daemon->generation;
	*daemon->last_waiting = waiting;
	daemon->last_waiting = &waiting->next;
}

bool
ctl_daemon_defer(struct ctl_daemon *daemon, ctl_method_fn fn, struct ctl_call *call)
{
	struct waiting *waiting;

	if (daemon->waiting == NULL)
		return false;
	waiting = calloc(1, sizeof(*waiting));
	if (waiting == NULL) {
		ctl_params_no_memory(call);
		return true;
	}
	waiting->fn = fn;
	waiting->call = call;
	put_waiting(daemon, waiting);
	return true;
}

void
ctl_daemon_change(struct ctl_daemon *daemon, struct cfg_model *next, struct ctl_call *call,
	const struct ctl_origin *origin)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	int ret;

	if (waiting == NULL) {
		struct ctl_origin lost = *origin;

		ctl_log(CTL_LOG_ERROR, "there is not enough memory for a change");
		if (lost.document.text != NULL)
			ctl_etcd_note_refused(daemon->etcd, &lost.document,
				"there is not enough memory");
		cfg_model_fini(next);
		free_origin(&lost);
		if (call != NULL)
			ctl_params_no_memory(call);
		return;
	}
	ctl_builder_free_model(daemon->builder, &daemon->wanted);
	daemon->wanted = *next;
	daemon->generation++;
	waiting->call = call;
	waiting->origin = *origin;
	put_waiting(daemon, waiting);
	ret = submit(daemon);
	if (ret != 0)
		undo(daemon, words_of(ret));
}

void
ctl_daemon_end_hangup(struct ctl_daemon *daemon, struct cfg_model *next,
	const struct ctl_origin *origin)
{
	const uint64_t generation = daemon->generation + 1;

	/* To systemd a service that stops is not ready again. */
	daemon->reloading = daemon->is_stopping ? 0 : generation;
	if (next != NULL)
		ctl_daemon_change(daemon, next, NULL, origin);
	/* Nothing is being built: the file, or memory, would not do. */
	if (daemon->generation < generation)
		end_reload(daemon, generation);
}

static void
on_stop(void *context)
{
	struct ctl_daemon *daemon = context;

	ctl_loop_stop(daemon->loop);
}

/*
 * First what is announced is withdrawn. Until routers know that, packets go on coming, and are
 * forwarded. Whoever asks a second time waits for nothing.
 */
static void
stop(struct ctl_daemon *daemon)
{
	uint64_t delay_ms = daemon->wanted.announce.withdraw_before_stop_ns / NS_PER_MS;

	daemon->reloading = 0;
	if (daemon->is_stopping || !ctl_announce_withdraw(daemon->announce) || delay_ms == 0 ||
		ctl_loop_add_timer(daemon->loop, delay_ms, 0, on_stop, daemon, NULL) != 0) {
		delay_ms = 0;
		ctl_loop_stop(daemon->loop);
	}
	if (delay_ms > 0)
		ctl_log(CTL_LOG_NOTICE, "stops in %" PRIu64 " ms, and forwards until then",
			delay_ms);
	if (!daemon->is_stopping)
		ctl_notify_stopping(delay_ms);
	daemon->is_stopping = true;
}

static void
on_signal(void *context, int signal)
{
	struct ctl_daemon *daemon = context;

	if (signal != SIGHUP) {
		stop(daemon);
		return;
	}
	/* To systemd a service that stops does not reload. */
	if (daemon->is_stopping)
		return;
	ctl_notify_reloading();
	ctl_reload_hang_up(daemon->reload);
}

/* By which interfaces of the kernel the ports are reached. */
static void
find_interfaces(struct ctl_daemon *daemon)
{
	for (size_t i = 0; i < daemon->wanted.dataplane.n_ports; i++) {
		struct dp_port_info info;

		dp_port_read(daemon->dp, i, &info);
		if (info.kernel_if != NULL)
			daemon->reach.if_index[i] = (int)if_nametoindex(info.kernel_if);
	}
}

/* The first build, for which everybody waits. */
static int
put_first_in_force(struct ctl_daemon *daemon)
{
	struct pollfd fd = {.fd = ctl_builder_fd(daemon->builder), .events = POLLIN};
	int ret = submit(daemon);

	if (ret != 0)
		return ret;
	while (daemon->view == NULL) {
		struct ctl_built built;

		if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (!ctl_builder_take(daemon->builder, &built))
			continue;
		daemon->view = built.view;
		if (built.view == NULL)
			ctl_log(CTL_LOG_ERROR, "%s",
				built.message != NULL ? built.message
						      : "there is not enough memory");
		free(built.message);
		if (built.view == NULL)
			return -EINVAL;
	}
	ctl_since_follow(&daemon->since, daemon->view, ctl_loop_now_ms());
	ctl_health_settle(daemon->health, daemon->view);
	return 0;
}

static void
say_why_deaf(const char *path, int error)
{
	if (error == -EADDRINUSE)
		ctl_log(CTL_LOG_ERROR,
			"another shuntd listens at %s; stop it, or give this one its own "
			"control.socket",
			path);
	else
		ctl_log(CTL_LOG_ERROR, "cannot listen at %s: %s%s", path, strerror(-error),
			error == -ENOENT ? "; make the folder that its folder is in" : "");
}

int
ctl_daemon_try_socket(const char *path)
{
	struct ctl_rpc_socket opened;
	const int ret = ctl_rpc_socket_open(path, &opened);

	if (ret == 0)
		ctl_rpc_socket_close(&opened);
	else
		say_why_deaf(path, ret);
	return ret;
}

static int
listen_to_all(struct ctl_daemon *daemon)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
	const char *path = daemon->wanted.control_socket;
	size_t n_methods;
	const struct ctl_method *methods = ctl_methods(&n_methods);
	int ret = ctl_loop_take_signals(daemon->loop, signals, LB_N_ELEMENTS(signals),
		on_signal, daemon);

	if (ret == 0)
		ret = ctl_loop_add_fd(daemon->loop, ctl_builder_fd(daemon->builder), EPOLLIN,
			on_built, daemon);
	if (ret != 0)
		return ret;
	ret = ctl_rpc_open(daemon->loop, path, methods, n_methods, daemon, &daemon->rpc);
	if (ret != 0)
		say_why_deaf(path, ret);
	daemon->has_said_why = ret != 0;
	return ret;
}

static const char *
find_metrics_cure(int error)
{
	if (error == -EACCES)
		return "a port below 1024 takes root or CAP_NET_BIND_SERVICE; give it one "
		       "above";
	return error == -EADDRINUSE ? "give it an address of its own"
				    : "give it an address of this machine";
}

static int
open_metrics(struct ctl_daemon *daemon)
{
	const char *address = daemon->wanted.control_metrics;
	int ret;

	if (address == NULL)
		return 0;
	ret = ctl_metrics_open(daemon->loop, address, daemon, &daemon->metrics);
	if (ret != 0)
		ctl_log(CTL_LOG_ERROR,
			"control.metrics: cannot listen at %s: %s; %s, or turn it 'off'",
			address, strerror(-ret), find_metrics_cure(ret));
	daemon->has_said_why = ret != 0;
	return ret;
}

static void
on_document(void *context, struct ctl_etcd_document *document)
{
	struct ctl_daemon *daemon = context;

	ctl_reload_document(daemon->reload, document);
}

static void
on_look(void *context)
{
	struct ctl_daemon *daemon = context;

	ctl_ports_look(&daemon->ports);
	ctl_unreached_look(&daemon->unreached, &daemon->reach, daemon->view);
	if (daemon->view->model.dataplane.kernel != CFG_KERNEL_NONE)
		ctl_sent_back_look(&daemon->sent_back, &daemon->reach, daemon->view);
}

static int
create_health(struct ctl_daemon *daemon)
{
	const struct ctl_health_conf conf = {
		.loop = daemon->loop,
		.netlink = daemon->netlink,
		.dp = daemon->dp,
		.on_change = on_health_changed,
		.context = daemon,
	};

	return ctl_health_create(&conf, &daemon->health);
}

static int
start(struct ctl_daemon *daemon)
{
	int ret = ctl_loop_create(&daemon->loop);

	daemon->trace = (struct ctl_trace){.loop = daemon->loop, .dp = daemon->dp};
	daemon->ports = (struct ctl_ports){.on_change = on_ports_changed, .context = daemon};
	if (ret == 0)
		ret = ctl_netlink_open(daemon->loop, on_hops_changed, daemon, &daemon->netlink);
	ctl_reach_init(&daemon->reach, daemon->netlink);
	if (ret == 0)
		ret = create_health(daemon);
	find_interfaces(daemon);
	if (ret == 0)
		ret = ctl_ports_open(&daemon->ports, &daemon->wanted, daemon->dp,
			daemon->netlink);
	if (ret == 0)
		ret = ctl_announce_open(daemon->loop, &daemon->wanted.announce,
			&daemon->announce);
	if (ret == 0)
		ret = listen_to_all(daemon);
	/* Once signals are taken: the thread takes none. */
	if (ret == 0)
		ret = ctl_aside_create(daemon->loop, &daemon->aside);
	if (ret == 0)
		ret = ctl_reload_create(daemon, daemon->loop, &daemon->reload);
	if (ret == 0)
		ret = open_metrics(daemon);
	if (ret == 0)
		ret = ctl_telemetry_open(daemon->loop, daemon, &daemon->telemetry);
	if (ret == 0)
		ret = ctl_notify_watch(daemon->loop);
	if (ret == 0)
		ret = put_first_in_force(daemon);
	if (ret == 0 && daemon->etcd != NULL)
		ret = ctl_etcd_start(daemon->etcd, daemon->loop, daemon->aside, on_document,
			daemon);
	if (ret == 0)
		ret = ctl_loop_add_timer(daemon->loop, CTL_UNREACHED_LOOK_MS,
			CTL_UNREACHED_LOOK_MS, on_look, daemon, NULL);
	return ret;
}

int
ctl_daemon_create(const struct ctl_daemon_conf *conf, struct cfg_model *model,
	struct ctl_daemon **out)
{
	struct ctl_daemon *daemon = calloc(1, sizeof(*daemon));
	int ret;

	if (daemon == NULL)
		return -ENOMEM;
	daemon->config_path = conf->config_path;
	daemon->local_path = conf->local_path;
	daemon->etcd = conf->etcd;
	daemon->mark = conf->mark;
	daemon->reader = conf->reader;
	daemon->dp = conf->dp;
	daemon->wanted = *model;
	cfg_model_init(model);
	daemon->last_waiting = &daemon->waiting;
	daemon->generation = 1;
	daemon->begun_ms = ctl_loop_now_ms();
	/* Before any signal is taken: the builder takes none either way. */
	ret = ctl_builder_create(conf->dp, &daemon->builder);
	if (ret == 0)
		ret = start(daemon);
	if (ret != 0) {
		if (!daemon->has_said_why)
			ctl_log(CTL_LOG_ERROR, "control does not start: %s", strerror(-ret));
		ctl_daemon_destroy(daemon);
		return ret;
	}
	*out = daemon;
	return 0;
}

int
ctl_daemon_run(struct ctl_daemon *daemon)
{
	daemon->is_running = true;
	ctl_ports_look(&daemon->ports);
	ctl_announce_follow(daemon->announce, daemon->view, daemon->ports.down);
	return ctl_loop_run(daemon->loop);
}

void
ctl_daemon_destroy(struct ctl_daemon *daemon)
{
	if (daemon == NULL)
		return;
	ctl_telemetry_close(daemon->telemetry);
	ctl_etcd_stop(daemon->etcd);
	ctl_reload_stop(daemon->reload);
	answer_waiting(daemon, UINT64_MAX, "shuntd stops");
	ctl_aside_destroy(daemon->aside);
	ctl_reload_destroy(daemon->reload);
	if (daemon->rpc != NULL)
		ctl_rpc_close(daemon->rpc);
	ctl_metrics_close(daemon->metrics);
	ctl_trace_end(&daemon->trace);
	ctl_places_fini(&daemon->places);
	ctl_builder_destroy(daemon->builder);
	ctl_announce_close(daemon->announce);
	ctl_health_destroy(daemon->health);
	ctl_reach_fini(&daemon->reach);
	ctl_netlink_close(daemon->netlink);
	ctl_loop_destroy(daemon->loop);
	ctl_view_release(daemon->view);
	ctl_since_fini(&daemon->since);
	cfg_model_fini(&daemon->wanted);
	free(daemon);
}

const struct ctl_view *
ctl_daemon_view(const struct ctl_daemon *daemon)
{
	return daemon->view;
}

bool
ctl_daemon_read_state_ms(const struct ctl_daemon *daemon, uint32_t id, uint64_t *ms)
{
	uint64_t since_ms;

	if (!ctl_since_read(&daemon->since, id, &since_ms))
		return false;
	*ms = ctl_loop_now_ms() - since_ms;
	return true;
}

const struct cfg_model *
ctl_daemon_wanted(const struct ctl_daemon *daemon)
{
	return &daemon->wanted;
}

struct ctl_view *
ctl_daemon_hold_view(const struct ctl_daemon *daemon)
{
	ctl_view_hold(daemon->view);
	return daemon->view;
}

void
ctl_daemon_release_view(struct ctl_daemon *daemon, struct ctl_view *view)
{
	if (view->n_refs > 1)
		ctl_view_release(view);
	else
		ctl_builder_free_view(daemon->builder, view);
}

struct ctl_reload *
ctl_daemon_reload(const struct ctl_daemon *daemon)
{
	return daemon->reload;
}

struct ctl_etcd *
ctl_daemon_etcd(const struct ctl_daemon *daemon)
{
	return daemon->etcd;
}

struct ctl_aside *
ctl_daemon_aside(const struct ctl_daemon *daemon)
{
	return daemon->aside;
}

struct cfg_reader *
ctl_daemon_reader(const struct ctl_daemon *daemon)
{
	return daemon->reader;
}

const struct ctl_health *
ctl_daemon_health(const struct ctl_daemon *daemon)
{
	return daemon->health;
}

const struct ctl_places *
ctl_daemon_find_places(struct ctl_daemon *daemon)
{
	return ctl_places_follow(&daemon->places, daemon->view) == 0 ? &daemon->places : NULL;
}

struct ctl_trace *
ctl_daemon_trace(struct ctl_daemon *daemon)
{
	return &daemon->trace;
}

struct dp *
ctl_daemon_dp(const struct ctl_daemon *daemon)
{
	return daemon->dp;
}

const struct ctl_ports *
ctl_daemon_ports(const struct ctl_daemon *daemon)
{
	return &daemon->ports;
}

const struct ctl_announce *
ctl_daemon_announce(const struct ctl_daemon *daemon)
{
	return daemon->announce;
}

const char *
ctl_daemon_config_path(const struct ctl_daemon *daemon)
{
	return daemon->config_path;
}

const char *
ctl_daemon_local_path(const struct ctl_daemon *daemon)
{
	return daemon->local_path;
}

struct ctl_save_mark *
ctl_daemon_mark(struct ctl_daemon *daemon)
{
	return &daemon->mark;
}

uint64_t
ctl_daemon_uptime_ms(const struct ctl_daemon *daemon)
{
	return ctl_loop_now_ms() - daemon->begun_ms;
}

bool
ctl_daemon_has_client(const struct ctl_daemon *daemon, uint64_t client)
{
	return ctl_rpc_is_connected(daemon->rpc, client);
}

void
ctl_daemon_read_rpc_stats(const struct ctl_daemon *daemon, struct ctl_rpc_stats *out)
{
	ctl_rpc_read_stats(daemon->rpc, out);
}
