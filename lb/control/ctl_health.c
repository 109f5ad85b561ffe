/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_health.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "cfg_seen.h"
#include "ctl_index.h"
#include "ctl_limits.h"
#include "ctl_log.h"
#include "ctl_tunnel.h"
#include "hc_prober.h"
#include "lb_overlay.h"

/* How often what moves by itself is looked at: a share that grows, a penalty that decays. */
#define MOVE_MS 100u
/* That checks cannot be made is said no more often. */
#define SHORT_NS UINT64_C(60000000000)
/* The tunnel's device is mended no more often. */
#define MEND_NS UINT64_C(1000000000)

static_assert(HC_SHARE_WHOLE == LB_OVERLAY_WHOLE, "health's shares are the overlay's");
static_assert(CFG_HEALTH_RANGES_MAX == HC_RANGES_MAX &&
		      CFG_HEALTH_PATH_BYTES_MAX == HC_PATH_BYTES_MAX &&
		      CFG_HEALTH_HOST_BYTES_MAX == HC_HOST_BYTES_MAX,
	"the language's bounds are health's");
static_assert((int)CFG_HEALTH_ICMP == (int)HC_ICMP + 1 &&
		      (int)CFG_HEALTH_TCP == (int)HC_TCP + 1 &&
		      (int)CFG_HEALTH_HTTPS == (int)HC_HTTPS + 1,
	"the language's types are health's, and none before them");
static_assert((int)CFG_ALL_DOWN_KEEP == (int)HC_KEEP && (int)CFG_ALL_DOWN_DROP == (int)HC_DROP,
	"the language's words are health's");

/* A backend, by its names. */
struct entry {
	struct entry *next;    /* of its bucket by names */
	struct entry *next_id; /* of that by id */
	char *service;
	char *backend;
	uint64_t hash;
	uint64_t id; /* of its target; no other has ever had it */
	struct lb_addr address;
	uint32_t backend_id; /* in the data plane; DP_NONE: not needed, or not known yet */
	enum cfg_state admin;
	struct hc_rules rules;
	bool is_checked;
	bool is_awaited;  /* since the start, for a first result that says something */
	bool may_be_lost; /* its first question, by the tunnel, as it may find no next hop yet
			   */
	bool is_followed; /* it is in the model that was followed last */
	struct hc_state state;
	char words[HC_WORDS_BYTES]; /* the last error; empty: none */
	enum hc_use told_use;       /* as of the last look */
	uint32_t told_share;
};

struct ctl_health {
	struct ctl_health_conf conf;
	struct hc_prober *prober;  /* NULL: nobody has ever been checked */
	struct ctl_tunnel *tunnel; /* NULL: it was not needed, or could not be had */
	bool needs_tunnel;         /* somebody is checked through it */
	int tunnel_error;          /* why it could not be had, as the log was told; or 0 */
	uint64_t mended_ns;        /* when it was seen to last, as checks could not be made */
	size_t n_at_once;          /* that may be asked */
	size_t n_unknown;          /* of those that are to be, whose id is not known yet */
	struct ctl_timer *moving;  /* NULL: nothing moves */
	struct ctl_health_counts counts;
	uint64_t short_ns; /* when it was said last that checks cannot be made; 0: never */
	uint64_t serial;

	struct entry **entries;
	size_t n_entries;
	size_t entries_room;
	struct entry **by_names; /* buckets, entries_room of each: a power of two, or 0 */
	struct entry **by_id;

	struct entry *
		*places; /* of the model that was followed, in its order; NULL: not watched */
	size_t n_places;
};

/* Whether health has anything to say of a service's backends. */
static bool
is_watched(const struct cfg_service *service)
{
	return service->health.type != CFG_HEALTH_NONE || service->slow_start_ns > 0;
}

static struct hc_rules
make_rules(const struct cfg_service *service)
{
	return (struct hc_rules){
		.rise = service->health.rise,
		.fall = service->health.fall,
		.half_life_ns = service->health.half_life_ns,
		.slow_start_ns = service->slow_start_ns,
	};
}

/* It points into the service. */
static struct hc_check
make_check(const struct cfg_service *service)
{
	const struct cfg_health *health = &service->health;
	const bool is_http =
		health->type == CFG_HEALTH_HTTP || health->type == CFG_HEALTH_HTTPS;
	struct hc_check check = {
		.type = (enum hc_type)(health->type - CFG_HEALTH_TCP),
		.port = health->port != 0 ? health->port : service->port,
		.wants_reply = health->wants_reply,
		.is_verified = health->is_verified,
		.is_tunnelled = health->is_tunnelled,
		.interval_ns = health->interval_ns,
		.timeout_ns = health->timeout_ns,
		.n_expect = health->n_expect,
		.host = health->host,
	};

	for (size_t i = 0; i < health->n_expect; i++)
		check.expect[i] = (struct hc_range){.first = health->expect[i].first,
			.last = health->expect[i].last};
	if (is_http && check.n_expect == 0) {
		check.expect[0] = (struct hc_range){.first = 200, .last = 399};
		check.n_expect = 1;
	}
	if (is_http)
		check.path = health->path != NULL ? health->path : "/";
	return check;
}

/* Entries. */

static uint64_t
hash_names(const char *service, const char *backend)
{
	return cfg_hash_bytes(backend, strlen(backend),
		cfg_hash_bytes(service, strlen(service) + 1, CFG_HASH_BEGIN));
}

static struct entry *
find_entry(const struct ctl_health *health, const char *service, const char *backend)
{
	const uint64_t hash = hash_names(service, backend);
	struct entry *entry;

	if (health->entries_room == 0)
		return NULL;
	entry = health->by_names[hash & (health->entries_room - 1)];
	while (entry != NULL && (entry->hash != hash || strcmp(entry->service, service) != 0 ||
					strcmp(entry->backend, backend) != 0))
		entry = entry->next;
	return entry;
}

static void
free_entry(struct entry *entry)
{
	if (entry == NULL)
		return;
	free(entry->service);
	free(entry->backend);
	free(entry);
}

static struct entry *
find_by_id(const struct ctl_health *health, uint64_t id)
{
	struct entry *entry = NULL;

	if (health->entries_room > 0)
		entry = health->by_id[id & (health->entries_room - 1)];
	while (entry != NULL && entry->id != id)
		entry = entry->next_id;
	return entry;
}

static void
link_entry(struct ctl_health *health, struct entry *entry)
{
	struct entry **of_names = &health->by_names[entry->hash & (health->entries_room - 1)];
	struct entry **of_id = &health->by_id[entry->id & (health->entries_room - 1)];

	entry->next = *of_names;
	*of_names = entry;
	entry->next_id = *of_id;
	*of_id = entry;
}

/* Room for one more. */
static int
make_room(struct ctl_health *health)
{
	const size_t room = health->entries_room < 16 ? 16 : health->entries_room * 2;
	struct entry **entries = NULL;
	struct entry **by_names;
	struct entry **by_id;

	if (health->n_entries < health->entries_room)
		return 0;
	by_names = calloc(room, sizeof(struct entry *));
	by_id = calloc(room, sizeof(struct entry *));
	if (by_names != NULL && by_id != NULL)
		entries = realloc(health->entries, room * sizeof(struct entry *));
	if (entries == NULL) {
		free(by_names);
		free(by_id);
		return -ENOMEM;
	}
	free(health->by_names);
	free(health->by_id);
	health->entries = entries;
	health->entries_room = room;
	health->by_names = by_names;
	health->by_id = by_id;
	for (size_t i = 0; i < health->n_entries; i++)
		link_entry(health, entries[i]);
	return 0;
}

/* NULL: no memory. */
static struct entry *
add_entry(struct ctl_health *health, const char *service, const struct cfg_backend *backend)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (entry == NULL || make_room(health) != 0) {
		free(entry);
		return NULL;
	}
	entry->service = strdup(service);
	entry->backend = strdup(backend->name);
	if (entry->service == NULL || entry->backend == NULL) {
		free_entry(entry);
		return NULL;
	}
	entry->hash = hash_names(service, backend->name);
	entry->address = backend->address;
	entry->backend_id = DP_NONE;
	entry->admin = backend->state;
	entry->told_use = HC_USE_YES;
	entry->told_share = HC_SHARE_WHOLE;
	entry->id = ++health->serial;
	health->entries[health->n_entries++] = entry;
	link_entry(health, entry);
	return entry;
}

static void
forget_others(struct ctl_health *health)
{
	const size_t n_before = health->n_entries;

	health->n_entries = 0;
	for (size_t i = 0; i < n_before; i++) {
		if (health->entries[i]->is_followed)
			health->entries[health->n_entries++] = health->entries[i];
		else
			free_entry(health->entries[i]);
	}
	if (health->n_entries == n_before)
		return;
	memset(health->by_names, 0, health->entries_room * sizeof(struct entry *));
	memset(health->by_id, 0, health->entries_room * sizeof(struct entry *));
	for (size_t i = 0; i < health->n_entries; i++)
		link_entry(health, health->entries[i]);
}

/* What comes of it. */

static uint64_t
tenths(uint64_t ns)
{
	return ns / 100000000;
}

/* Whether use or share is another than at the last look. */
static bool
look(struct entry *entry, uint64_t now_ns)
{
	const enum hc_use use = hc_state_use(&entry->state, &entry->rules, now_ns);
	const uint32_t share = hc_state_share(&entry->state, &entry->rules, now_ns);
	const bool has_changed = use != entry->told_use || share != entry->told_share;

	if (entry->told_use == HC_USE_LAST && use == HC_USE_YES)
		ctl_log(CTL_LOG_NOTICE,
			"backend %s/%s has not failed for a while, and is used again",
			entry->service, entry->backend);
	hc_state_settle(&entry->state, &entry->rules, now_ns);
	entry->told_use = use;
	entry->told_share = share;
	return has_changed;
}

static void
tell_change(const struct entry *entry, enum hc_level before, uint64_t lasted_ns,
	uint64_t now_ns)
{
	const char *service = entry->service;
	const char *backend = entry->backend;
	const uint64_t back_ns =
		entry->rules.half_life_ns > 0
			? hc_damp_back_ns(&entry->state.damp, entry->rules.half_life_ns)
			: 0;

	if (entry->state.level == HC_DOWN)
		ctl_log(CTL_LOG_WARNING, "backend %s/%s is down: %s", service, backend,
			entry->words);
	else if (back_ns > now_ns)
		ctl_log(CTL_LOG_WARNING,
			"backend %s/%s is up, but has failed too often: it stays out for "
			"%" PRIu64 " s if it fails no more",
			service, backend, tenths(back_ns - now_ns) / 10 + 1);
	else if (before == HC_DOWN)
		ctl_log(CTL_LOG_NOTICE, "backend %s/%s is up, after %" PRIu64 ".%" PRIu64 " s",
			service, backend, tenths(lasted_ns) / 10, tenths(lasted_ns) % 10);
	else if (!entry->state.is_trusted)
		ctl_log(CTL_LOG_NOTICE, "backend %s/%s is up", service, backend);
}

static void
tell_short(struct ctl_health *health, const char *words, uint64_t now_ns)
{
	if (health->short_ns != 0 && now_ns - health->short_ns < SHORT_NS)
		return;
	health->short_ns = now_ns;
	ctl_log(CTL_LOG_WARNING,
		"health checks cannot be made, and backends stay as they are: %s", words);
}

/* Whether it changes anything. */
static bool
take_result(struct ctl_health *health, const struct hc_result *result, uint64_t now_ns)
{
	struct entry *entry = find_by_id(health, result->id);
	enum hc_level before;
	bool was_awaited;
	uint64_t since_ns;

	if (!result->is_asked)
		health->counts.not_asked++;
	else if (result->has_passed)
		health->counts.passed++;
	else
		health->counts.failed++;
	if (!result->is_asked)
		tell_short(health, result->words, now_ns);
	if (entry == NULL || !entry->is_checked)
		return false;
	if (entry->may_be_lost && result->is_asked) {
		entry->may_be_lost = false;
		if (!result->has_passed)
			return false;
	}
	if (!result->has_passed)
		memcpy(entry->words, result->words, sizeof(entry->words));
	/* What fails is awaited until it has failed so often that it is down; and for checks
	 * that cannot be made nobody waits. */
	was_awaited = entry->is_awaited;
	entry->is_awaited = was_awaited && result->is_asked && !result->has_passed;
	if (!result->is_asked)
		return was_awaited;
	before = entry->state.level;
	since_ns = entry->state.since_ns;
	if (hc_state_take(&entry->state, &entry->rules, result->has_passed, now_ns))
		tell_change(entry, before, now_ns - since_ns, now_ns);
	return look(entry, now_ns) || was_awaited != entry->is_awaited;
}

static void on_move(void *context);

/* Look again soon, while there is anything that changes by itself. */
static void
watch_moving(struct ctl_health *health, uint64_t now_ns)
{
	bool is_moving = false;

	for (size_t i = 0; i < health->n_places && !is_moving; i++) {
		const struct entry *entry = health->places[i];

		is_moving = entry != NULL &&
			    hc_state_is_moving(&entry->state, &entry->rules, now_ns);
	}
	/* Without memory for it, the next result begins it. */
	if (is_moving && health->moving == NULL)
		(void)ctl_loop_add_timer(health->conf.loop, MOVE_MS, MOVE_MS, on_move, health,
			&health->moving);
	if (!is_moving && health->moving != NULL) {
		ctl_loop_remove_timer(health->conf.loop, health->moving);
		health->moving = NULL;
	}
}

static void
on_move(void *context)
{
	struct ctl_health *health = context;
	const uint64_t now_ns = ctl_loop_now_ns();
	bool has_changed = false;

	for (size_t i = 0; i < health->n_places; i++) {
		if (health->places[i] != NULL)
			has_changed |= look(health->places[i], now_ns);
	}
	watch_moving(health, now_ns);
	if (has_changed)
		health->conf.on_change(health->conf.context);
}

static void
note_tunnel(struct ctl_health *health, int error)
{
	if (error < 0 && error != health->tunnel_error)
		ctl_tunnel_say_why_not(error);
	health->tunnel_error = error < 0 ? error : 0;
}

/* Without it those who need it are not asked; what is not asked has it tried again. */
static void
open_tunnel(struct ctl_health *health)
{
	if (health->tunnel == NULL)
		note_tunnel(health, ctl_tunnel_open(health->conf.netlink, health->conf.dp,
					    &health->tunnel));
	if (health->tunnel != NULL)
		hc_prober_attach(health->prober, ctl_tunnel_way(health->tunnel));
}

/* Where a check could not be made: others may have had their hands on the device. */
static void
mend_tunnel(struct ctl_health *health, uint64_t now_ns)
{
	int ret;

	if (!health->needs_tunnel || now_ns - health->mended_ns < MEND_NS)
		return;
	health->mended_ns = now_ns;
	if (health->tunnel == NULL) {
		open_tunnel(health);
		return;
	}
	ret = ctl_tunnel_mend(health->tunnel, health->conf.netlink);
	note_tunnel(health, ret);
	if (ret != 1)
		return;
	hc_prober_attach(health->prober, ctl_tunnel_way(health->tunnel));
	ctl_log(CTL_LOG_NOTICE, "the device %s was gone, and is there again", HC_TUNNEL_NAME);
}

static void
on_results(void *context, uint32_t events)
{
	struct ctl_health *health = context;
	const uint64_t now_ns = ctl_loop_now_ns();
	struct hc_result *results;
	const size_t n = hc_prober_take(health->prober, &results);
	const uint64_t not_asked = health->counts.not_asked;
	bool has_changed = false;

	(void)events;
	for (size_t i = 0; i < n; i++)
		has_changed |= take_result(health, &results[i], now_ns);
	free(results);
	if (health->counts.not_asked != not_asked)
		mend_tunnel(health, now_ns);
	if (!has_changed)
		return;
	watch_moving(health, now_ns);
	health->conf.on_change(health->conf.context);
}

/* Following. */

/* Whom a model has in a service, indexed once somebody asks. */
struct known {
	const struct cfg_service *service; /* NULL: there is none of the name */
	struct ctl_index index;
	bool is_indexed;
};

/* Whether a backend is in use already: then it goes on being used until more is known. */
static int
find_known(struct known *known, const struct cfg_backend *backend, bool *is_known)
{
	const struct cfg_backend *found;
	size_t place;

	*is_known = false;
	if (known->service == NULL)
		return 0;
	if (!known->is_indexed && ctl_index_backends(known->service, &known->index) != 0)
		return -ENOMEM;
	known->is_indexed = true;
	place = ctl_index_find(&known->index, backend->name);
	if (place == CTL_INDEX_NONE)
		return 0;
	found = &known->service->backends[place];
	*is_known = found->state == CFG_UP && lb_addr_equal(&found->address, &backend->address);
	return 0;
}

/* A model that is being followed. */
struct follow {
	const struct cfg_model *before; /* NULL: this is the start */
	uint64_t now_ns;
	struct lb_addr sources[2]; /* the balancer's, IPv6 and IPv4 */
	struct hc_check *checks;   /* by place of the service */
	struct hc_target *targets;
	size_t n_targets;
	size_t n_unknown;
	bool is_tunnelled; /* any of the targets */
	struct entry **places;
	size_t n_places;
};

/* Somebody new, or somebody else of the same name. */
static void
begin_entry(struct entry *entry, const struct cfg_backend *backend, bool is_trusted,
	bool is_start, uint64_t now_ns)
{
	entry->address = backend->address;
	entry->backend_id = DP_NONE;
	entry->words[0] = '\0';
	entry->is_awaited = is_start && entry->is_checked;
	hc_state_init(&entry->state, is_trusted || !entry->is_checked, now_ns);
	if (!is_start && !is_trusted && !entry->is_checked)
		hc_state_begin(&entry->state, &entry->rules, now_ns);
}

static int
follow_backend(struct ctl_health *health, struct follow *follow, struct known *known,
	const struct cfg_service *service, const struct cfg_backend *backend)
{
	const bool is_start = follow->before == NULL;
	const bool is_checked = service->health.type != CFG_HEALTH_NONE;
	struct entry *entry = find_entry(health, service->name, backend->name);
	const bool is_new = entry == NULL;
	bool is_known = false;

	if (is_new)
		entry = add_entry(health, service->name, backend);
	if (entry == NULL)
		return -ENOMEM;
	entry->rules = make_rules(service);
	if (is_new || entry->is_checked != is_checked ||
		!lb_addr_equal(&entry->address, &backend->address)) {
		if (find_known(known, backend, &is_known) != 0)
			return -ENOMEM;
		entry->is_checked = is_checked;
		entry->may_be_lost = service->health.is_tunnelled;
		begin_entry(entry, backend, is_start || is_known, is_start, follow->now_ns);
	} else if (entry->admin != CFG_UP && backend->state == CFG_UP) {
		/* Whoever puts it back to work knows that it is well. */
		hc_state_forgive(&entry->state);
		if (entry->admin == CFG_DOWN)
			hc_state_begin(&entry->state, &entry->rules, follow->now_ns);
	}
	entry->admin = backend->state;
	follow->places[follow->n_places] = entry;
	return 0;
}

/* The balancer's address that is asked from; a check has seen to it that there is one. */
static struct lb_addr
find_source(const struct cfg_dataplane *plane, bool is_v4)
{
	for (size_t i = 0; i < plane->n_ports; i++) {
		const struct cfg_port *port = &plane->ports[i];

		for (size_t k = 0; k < port->n_addresses; k++) {
			if (lb_addr_is_v4(&port->addresses[k].addr) == is_v4)
				return port->addresses[k].addr;
		}
	}
	return (struct lb_addr){{0}};
}

/* Through the tunnel, once the workers know the backend; nobody else has its id until then. */
static void
add_target(struct follow *follow, const struct cfg_service *service,
	const struct cfg_backend *backend, const struct entry *entry,
	const struct hc_check *check)
{
	struct hc_target target = {.id = entry->id,
		.address = backend->address,
		.check = check};

	if (check->is_tunnelled && entry->backend_id == DP_NONE) {
		follow->n_unknown++;
		return;
	}
	if (check->is_tunnelled) {
		target.address = service->address.addr;
		target.backend = entry->backend_id;
		target.source = follow->sources[lb_addr_is_v4(&target.address)];
		follow->is_tunnelled = true;
	}
	follow->targets[follow->n_targets++] = target;
}

static int
follow_service(struct ctl_health *health, struct follow *follow,
	const struct cfg_service *service, struct hc_check *check)
{
	struct known known = {.service = NULL};
	int ret = 0;

	if (follow->before != NULL)
		known.service =
			cfg_find_service(follow->before, service->name, strlen(service->name));
	if (service->health.type != CFG_HEALTH_NONE)
		*check = make_check(service);
	for (size_t i = 0; i < service->n_backends && ret == 0; i++) {
		ret = follow_backend(health, follow, &known, service, &service->backends[i]);
		if (ret == 0 && service->health.type != CFG_HEALTH_NONE)
			add_target(follow, service, &service->backends[i],
				follow->places[follow->n_places], check);
		follow->n_places++;
	}
	ctl_index_fini(&known.index);
	return ret;
}

/* There is no thread where nobody is checked. */
static int
start_prober(struct ctl_health *health)
{
	int ret = hc_prober_create(&health->prober);

	if (ret != 0)
		return ret;
	ret = ctl_loop_add_fd(health->conf.loop, hc_prober_fd(health->prober), EPOLLIN,
		on_results, health);
	if (ret != 0) {
		hc_prober_destroy(health->prober);
		health->prober = NULL;
	}
	return ret;
}

/* Whom to ask from here on. */
static int
set_targets(struct ctl_health *health, const struct follow *follow)
{
	size_t n_at_once;

	if (health->prober == NULL && follow->n_targets == 0)
		return 0;
	n_at_once = ctl_limits_make_room(follow->n_targets);
	if (n_at_once < follow->n_targets && n_at_once != health->n_at_once)
		ctl_log(CTL_LOG_WARNING,
			"the limit of open files has room for %zu checks at a time of %zu "
			"backends; should many not answer, checks are rarer; raise it with "
			"'ulimit -n', or LimitNOFILE= of the service",
			n_at_once, follow->n_targets);
	health->n_at_once = n_at_once;
	if (health->prober == NULL) {
		const int ret = start_prober(health);

		if (ret != 0)
			return ret;
	}
	health->needs_tunnel = follow->is_tunnelled;
	if (follow->is_tunnelled && health->tunnel == NULL)
		open_tunnel(health);
	return hc_prober_set(health->prober, follow->targets, follow->n_targets, n_at_once);
}

static int
follow_services(struct ctl_health *health, struct follow *follow, const struct cfg_model *model)
{
	size_t n = 0;

	for (size_t i = 0; i < model->n_services; i++)
		n += model->services[i].n_backends;
	follow->checks = calloc(model->n_services + 1, sizeof(*follow->checks));
	follow->targets = calloc(n + 1, sizeof(*follow->targets));
	follow->places = calloc(n + 1, sizeof(struct entry *));
	if (follow->checks == NULL || follow->targets == NULL || follow->places == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];

		if (!is_watched(service))
			follow->n_places += service->n_backends;
		else if (follow_service(health, follow, service, &follow->checks[i]) != 0)
			return -ENOMEM;
	}
	return 0;
}

static void
commit(struct ctl_health *health, struct follow *follow)
{
	for (size_t i = 0; i < health->n_entries; i++)
		health->entries[i]->is_followed = false;
	free(health->places);
	health->places = follow->places;
	health->n_places = follow->n_places;
	follow->places = NULL;
	health->n_unknown = follow->n_unknown;
	for (size_t i = 0; i < health->n_places; i++) {
		if (health->places[i] == NULL)
			continue;
		health->places[i]->is_followed = true;
		/* Whoever followed builds anew: nobody need be told. */
		(void)look(health->places[i], follow->now_ns);
	}
	watch_moving(health, follow->now_ns);
}

int
ctl_health_follow(struct ctl_health *health, const struct cfg_model *model,
	const struct cfg_model *before)
{
	struct follow follow = {
		.before = before,
		.now_ns = ctl_loop_now_ns(),
		.sources = {find_source(&model->dataplane, false),
			find_source(&model->dataplane, true)},
	};
	int ret = follow_services(health, &follow, model);

	if (ret == 0)
		ret = set_targets(health, &follow);
	if (ret == 0)
		commit(health, &follow);
	free(follow.checks);
	free(follow.targets);
	free(follow.places);
	return ret;
}

/* The ids that the workers have for those that are checked through the tunnel. */
static void
learn_ids(const struct ctl_health *health, const struct ctl_view *view)
{
	for (size_t i = 0; i < view->model.n_services; i++) {
		const struct cfg_service *service = &view->model.services[i];

		for (size_t k = 0; service->health.is_tunnelled && k < service->n_backends;
			k++) {
			struct entry *entry =
				find_entry(health, service->name, service->backends[k].name);

			if (entry != NULL)
				entry->backend_id = view->services[i].ids[k];
		}
	}
}

void
ctl_health_settle(struct ctl_health *health, const struct ctl_view *view)
{
	forget_others(health);
	if (health->n_unknown == 0)
		return;
	learn_ids(health, view);
	if (ctl_health_follow(health, &view->model, &view->model) != 0)
		ctl_log(CTL_LOG_ERROR,
			"there is not enough memory to check who is checked through the "
			"tunnel");
}

/* Reading. */

static bool
takes_flows(const struct cfg_backend *backend)
{
	return backend->state == CFG_UP && backend->weight > 0;
}

static struct hc_member
make_member(const struct entry *entry, const struct cfg_backend *backend, uint64_t now_ns)
{
	struct hc_member member = {.use = HC_USE_YES,
		.share = HC_SHARE_WHOLE,
		.takes_flows = takes_flows(backend)};

	if (entry != NULL) {
		member.use = hc_state_use(&entry->state, &entry->rules, now_ns);
		member.share = hc_state_share(&entry->state, &entry->rules, now_ns);
		member.is_awaited = entry->is_awaited;
	}
	return member;
}

static struct hc_service
judge(const struct cfg_service *service, const struct hc_member *members, uint8_t *shares)
{
	return hc_service_judge(members, service->n_backends,
		(enum hc_all_down)service->when_all_down, service->min_healthy, shares);
}

/* What health says of all services. */
static void
judge_all(const struct ctl_health *health, const struct cfg_model *model,
	struct hc_member *members, uint8_t *shares, uint32_t *n_unhealthy)
{
	const uint64_t now_ns = ctl_loop_now_ns();
	size_t place = 0;

	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];
		struct hc_service judged;

		for (size_t k = 0; k < service->n_backends; k++)
			members[k] = make_member(health->places[place + k],
				&service->backends[k], now_ns);
		judged = judge(service, members, shares + place);
		n_unhealthy[i] = (uint32_t)(judged.n_members - judged.n_healthy);
		place += service->n_backends;
	}
}

int
ctl_health_find_shares(struct ctl_health *health, const struct cfg_model *model, uint8_t **out,
	uint32_t **n_unhealthy)
{
	struct hc_member *members;
	uint8_t *shares;
	uint32_t *counts;

	*out = NULL;
	*n_unhealthy = NULL;
	if (health->n_entries == 0)
		return 0;
	members = calloc(health->n_places + 1, sizeof(*members));
	shares = malloc(health->n_places + 1);
	counts = calloc(model->n_services + 1, sizeof(*counts));
	if (members == NULL || shares == NULL || counts == NULL) {
		free(members);
		free(shares);
		free(counts);
		return -ENOMEM;
	}
	judge_all(health, model, members, shares, counts);
	free(members);
	*out = shares;
	*n_unhealthy = counts;
	return 0;
}

void
ctl_health_read(const struct ctl_health *health, const struct cfg_service *service,
	const struct cfg_backend *backend, struct ctl_health_figures *out)
{
	const uint64_t now_ns = ctl_loop_now_ns();
	const struct entry *entry =
		is_watched(service) ? find_entry(health, service->name, backend->name) : NULL;

	*out = (struct ctl_health_figures){.use = HC_USE_YES, .share = HC_SHARE_WHOLE};
	if (entry == NULL)
		return;
	out->is_checked = entry->is_checked;
	out->level = entry->state.level;
	out->use = hc_state_use(&entry->state, &entry->rules, now_ns);
	out->share = hc_state_share(&entry->state, &entry->rules, now_ns);
	out->since_ns = now_ns - entry->state.since_ns;
	if (out->use == HC_USE_LAST) {
		const uint64_t back_ns =
			hc_damp_back_ns(&entry->state.damp, entry->rules.half_life_ns);

		out->back_ns = back_ns > now_ns ? back_ns - now_ns : 1;
	}
	out->error = entry->words[0] != '\0' ? entry->words : NULL;
}

struct hc_service
ctl_health_read_service(const struct ctl_health *health, const struct cfg_service *service)
{
	const uint64_t now_ns = ctl_loop_now_ns();
	const size_t n = service->n_backends;
	struct hc_member *members = calloc(n + 1, sizeof(*members));
	uint8_t *shares = malloc(n + 1);
	struct hc_service result = {.n_members = 0};

	if (members != NULL && shares != NULL) {
		for (size_t i = 0; i < n; i++) {
			const struct cfg_backend *backend = &service->backends[i];
			const struct entry *entry =
				is_watched(service)
					? find_entry(health, service->name, backend->name)
					: NULL;

			members[i] = make_member(entry, backend, now_ns);
		}
		result = judge(service, members, shares);
	}
	free(members);
	free(shares);
	return result;
}

struct ctl_health_counts
ctl_health_read_counts(const struct ctl_health *health)
{
	return health->counts;
}

const char *
ctl_health_word(const struct ctl_health_figures *figures)
{
	if (!figures->is_checked)
		return "none";
	if (figures->level == HC_UNKNOWN)
		return "unknown";
	if (figures->level == HC_DOWN)
		return "down";
	return figures->use == HC_USE_LAST ? "flapping" : "up";
}

/* Open and close. */

int
ctl_health_create(const struct ctl_health_conf *conf, struct ctl_health **out)
{
	struct ctl_health *health = calloc(1, sizeof(*health));

	if (health == NULL)
		return -ENOMEM;
	health->conf = *conf;
	*out = health;
	return 0;
}

void
ctl_health_destroy(struct ctl_health *health)
{
	if (health == NULL)
		return;
	if (health->prober != NULL)
		ctl_loop_remove_fd(health->conf.loop, hc_prober_fd(health->prober));
	ctl_loop_remove_timer(health->conf.loop, health->moving);
	hc_prober_destroy(health->prober);
	ctl_tunnel_close(health->tunnel);
	for (size_t i = 0; i < health->n_entries; i++)
		free_entry(health->entries[i]);
	free(health->entries);
	free(health->by_names);
	free(health->by_id);
	free(health->places);
	free(health);
}
