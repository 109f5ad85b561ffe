/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_event_decode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"

/* A century: no capture is longer, and sums with the time of day stay inside 64 bits. */
#define AT_NS_MAX (UINT64_C(36500) * 86400 * 1000000000)

/* The actions' keys, by enum replay_event_kind. */
static const char *const actions[] = {
	[REPLAY_REMOVE] = "remove",
	[REPLAY_ADD] = "add",
	[REPLAY_WEIGHT] = "weight",
	[REPLAY_UP] = "up",
	[REPLAY_DRAIN] = "drain",
	[REPLAY_DOWN] = "down",
	[REPLAY_RELOAD] = "reload",
};

static const char *const item_keys[] = {"at", "after", "remove", "add", "weight", "up", "drain",
	"down", "reload", NULL};

/* asprintf() that tells of a lack of memory, and leaves NULL then. */
static char *__attribute__((format(printf, 2, 3)))
format_text(struct cfg_errors *errors, const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n >= 0)
		return text;
	cfg_error_memory(errors);
	return NULL;
}

/* Digits, with a fraction or not: a time whose unit was forgotten. */
static bool
is_bare_number(const struct cfg_node *node)
{
	static const char digits[] = "0123456789";
	const char *text = node->text;
	size_t n;

	if (node->kind != CFG_SCALAR)
		return false;
	n = strspn(text, digits);
	if (n != 0 && text[n] == '.' && text[n + 1] != '\0')
		n += 1 + strspn(text + n + 1, digits);
	return n != 0 && text[n] == '\0';
}

static bool
decode_at(const struct cfg_node *node, struct cfg_errors *errors, uint64_t *out)
{
	if (is_bare_number(node)) {
		cfg_error(errors, node->pos, "at: '%.64s' has no unit; write %.64ss",
			node->text, node->text);
		return false;
	}
	return cfg_read_duration(node, "at", 0, AT_NS_MAX, errors, out);
}

static bool
decode_time(const struct cfg_node *node, bool has_all_keys, struct cfg_errors *errors,
	struct replay_event *event)
{
	const struct cfg_node *at = cfg_node_get(node, "at");
	const struct cfg_node *after = cfg_node_get(node, "after");

	if (at != NULL && after != NULL) {
		cfg_error(errors, node->pos,
			"at and after in one event; write one of them, at: 1.5s or after: "
			"1000");
		return false;
	}
	if (at != NULL)
		return decode_at(at, errors, &event->at_ns);
	if (after != NULL) {
		event->is_by_packets = true;
		return cfg_read_u64(after, "after", 0, UINT64_MAX, errors,
			&event->after_packets);
	}
	if (has_all_keys)
		cfg_error(errors, node->pos,
			"an event without a time; write at: 1.5s or after: 1000 (packets)");
	return false;
}

/* SERVICE/NAME. A service has no '/' in its name, so the first one splits. */
static bool
decode_target(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	struct replay_event *event)
{
	const char *slash = node->kind == CFG_SCALAR ? strchr(node->text, '/') : NULL;
	char *service;
	char *name;

	if (slash == NULL || !cfg_is_name(slash + 1))
		return cfg_expected(node, what, errors, "SERVICE/NAME such as web/web-1");

	service = strndup(node->text, (size_t)(slash - node->text));
	name = strdup(slash + 1);
	if (service != NULL && name != NULL && cfg_is_name(service)) {
		event->pos = node->pos;
		event->service = service;
		event->backend.name = name;
		return true;
	}
	if (service == NULL || name == NULL)
		cfg_error_memory(errors);
	else
		(void)cfg_expected(node, what, errors, "SERVICE/NAME such as web/web-1");
	free(service);
	free(name);
	return false;
}

static bool
decode_state(const struct cfg_node *node, struct cfg_errors *errors, struct replay_event *event)
{
	const char *action = actions[event->kind];

	if (!decode_target(node, action, errors, event))
		return false;
	event->title =
		format_text(errors, "%s %s/%s", action, event->service, event->backend.name);
	return event->title != NULL;
}

static bool
decode_weight(const struct cfg_node *node, struct cfg_errors *errors,
	struct replay_event *event)
{
	static const char *const keys[] = {"backend", "to", NULL};
	const struct cfg_node *backend;
	const struct cfg_node *to;
	uint64_t weight = 0;
	bool is_right;

	if (!cfg_node_check_keys(node, keys, errors))
		return false;
	backend = cfg_node_get(node, "backend");
	to = cfg_node_get(node, "to");
	if (backend == NULL || to == NULL) {
		cfg_error(errors, node->pos,
			"weight: no '%s'; write {backend: SERVICE/NAME, to: N}",
			backend == NULL ? "backend" : "to");
		return false;
	}
	is_right = decode_target(backend, "weight: backend", errors, event);
	if (!cfg_read_u64(to, "weight: to", 0, LB_WEIGHT_MAX, errors, &weight) || !is_right)
		return false;

	event->backend.weight = (uint32_t)weight;
	event->title = format_text(errors, "weight %s/%s to %" PRIu64, event->service,
		event->backend.name, weight);
	return event->title != NULL;
}

static bool
decode_add(const struct cfg_node *node, struct cfg_errors *errors, struct replay_event *event)
{
	static const char *const extra[] = {"service", NULL};
	const struct cfg_node *service = NULL;
	const char *name = NULL;
	bool is_right;

	is_right = cfg_decode_backend(node, extra, errors, &event->backend);
	if (node->kind != CFG_MAPPING)
		return false;

	service = cfg_node_get(node, "service");
	if (service == NULL)
		cfg_error(errors, node->pos, "add: no 'service'; write service: NAME");
	else if (cfg_read_name(service, "service", errors, &name))
		event->service = cfg_keep_text(name, errors);
	if (!is_right || event->service == NULL)
		return false;

	event->pos = node->pos;
	event->title = format_text(errors, "add %s/%s", event->service, event->backend.name);
	return event->title != NULL;
}

/* A title is for people's eyes: no control character gets there. */
static void
blank_controls(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
	}
}

/* The file that `reload` names, relative to the events file's folder. */
static char *
join_path(struct replay_event_reader *reader, const char *name)
{
	const char *slash = strrchr(reader->path, '/');
	const int n_folder = slash == NULL ? 0 : (int)(slash - reader->path) + 1;

	if (name[0] == '/')
		return cfg_keep_text(name, &reader->errors);
	return format_text(&reader->errors, "%.*s%s", n_folder, reader->path, name);
}

static bool
read_model(struct replay_event_reader *reader, const struct cfg_node *node, const char *path,
	struct cfg_model *out)
{
	int ret;

	if (!reader->is_reload_on) {
		ret = cfg_model_copy(reader->model, out);
		if (ret != 0)
			cfg_error_memory(&reader->errors);
		return ret == 0;
	}

	ret = cfg_read_file(path, reader->errors.to, out);
	if (ret == -ENOMEM)
		cfg_error_memory(&reader->errors);
	else if (ret != 0)
		cfg_error(&reader->errors, node->pos,
			"reload: the configuration '%s' cannot be used; mend what is told of "
			"it above",
			node->text);
	return ret == 0;
}

static bool
decode_reload(struct replay_event_reader *reader, const struct cfg_node *node,
	struct replay_event *event)
{
	struct cfg_errors *errors = &reader->errors;
	const char *name;

	if (!cfg_read_text(node, "reload", errors, &name))
		return false;
	event->reload = malloc(sizeof(*event->reload));
	if (event->reload == NULL) {
		cfg_error_memory(errors);
		return false;
	}
	cfg_model_init(event->reload);
	event->pos = node->pos;
	event->reload_path = join_path(reader, name);
	if (event->reload_path == NULL ||
		!read_model(reader, node, event->reload_path, event->reload))
		return false;
	event->title = format_text(errors, "reload %s", name);
	if (event->title != NULL)
		blank_controls(event->title);
	return event->title != NULL;
}

static bool
decode_kind(struct replay_event_reader *reader, const struct cfg_node *node,
	struct replay_event *event)
{
	switch (event->kind) {
	case REPLAY_ADD:
		return decode_add(node, &reader->errors, event);
	case REPLAY_WEIGHT:
		return decode_weight(node, &reader->errors, event);
	case REPLAY_RELOAD:
		return decode_reload(reader, node, event);
	default:
		return decode_state(node, &reader->errors, event);
	}
}

static void
decode_action(struct replay_event_reader *reader, const struct cfg_node *node,
	bool has_all_keys, struct replay_event_draft *draft)
{
	const struct cfg_node *found = NULL;

	for (size_t i = 0; i < LB_N_ELEMENTS(actions); i++) {
		const struct cfg_node *value = cfg_node_get(node, actions[i]);

		if (value != NULL && found != NULL) {
			cfg_error(&reader->errors, value->key->pos,
				"'%s' and '%s' in one event; write an event for each",
				actions[draft->event.kind], actions[i]);
			return;
		}
		if (value != NULL) {
			found = value;
			draft->event.kind = (enum replay_event_kind)i;
		}
	}
	if (found != NULL) {
		draft->is_whole = decode_kind(reader, found, &draft->event);
		draft->is_blind =
			!draft->is_whole &&
			(draft->event.kind == REPLAY_ADD || draft->event.kind == REPLAY_RELOAD);
	} else if (has_all_keys) {
		cfg_error(&reader->errors, node->pos,
			"an event in which nothing happens; write one of remove, add, weight, "
			"up, drain, down or reload");
	}
}

static void
decode_item(struct replay_event_reader *reader, const struct cfg_node *node,
	struct replay_event_draft *draft)
{
	const size_t n_before = reader->errors.n_errors;
	bool has_all_keys;

	if (!cfg_node_check_keys(node, item_keys, &reader->errors))
		return;

	/* A misspelt key was told; that its right spelling is missing is no news. */
	has_all_keys = reader->errors.n_errors == n_before;
	draft->event.pos = node->pos;
	draft->has_time = decode_time(node, has_all_keys, &reader->errors, &draft->event);
	decode_action(reader, node, has_all_keys, draft);
}

int
replay_event_decode(struct replay_event_reader *reader, const struct cfg_node *root)
{
	size_t n = 0;

	if (root == NULL)
		return 0;
	if (root->kind != CFG_SEQUENCE) {
		(void)cfg_expected(root, "events", &reader->errors,
			"a list, with an item such as - {at: 1.5s, remove: web/web-1} for "
			"each");
		return 0;
	}

	for (const struct cfg_node *item = root->first; item != NULL; item = item->next)
		n++;
	reader->drafts = calloc(n + 1, sizeof(*reader->drafts));
	if (reader->drafts == NULL) {
		cfg_error_memory(&reader->errors);
		return -ENOMEM;
	}
	for (const struct cfg_node *item = root->first; item != NULL; item = item->next)
		decode_item(reader, item, &reader->drafts[reader->n_drafts++]);
	return 0;
}
