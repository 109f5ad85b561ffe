/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a part can be read alone. Where a line begins with the dash of an item of `services`,
 * the state of libyaml's scanner is the same whatever the items before it say: no quotes and
 * no flow collection are open, and the indents are those of the root, of the list, and no
 * more. The part that is read begins at such a line, so it means after "services:" alone what
 * it means in its place. It ends before such a line, or before a key in column 1, or with the
 * text. What could reach over that end is either an error in the part alone (open quotes, an
 * open flow collection), or refused here: a document's end, a key of the root, and block
 * scalars, whose end depends on indents. What precedes the part and what follows it is the
 * same in both texts, and was right.
 *
 * Messages of the part alone would be told at other places, and not all of them: so the first
 * one makes the whole text be read. Checks of the whole model are done over the whole model,
 * whose positions are right, so their messages are as of a whole reading.
 */
#include "cfg_reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_decode.h"
#include "cfg_items.h"

/* What stands before the part that is parsed: a line. */
static const char part_head[] = "services:\n";

#define PART_HEAD_BYTES (sizeof(part_head) - 1)

struct cfg_reader {
	bool needs_ports;
	bool has_own;
	struct cfg_model own; /* without positions: it is of another file */
	/* The last text that was right; NULL: none is kept. */
	char *text;
	size_t n_bytes;
	struct cfg_items items; /* of text */
	struct cfg_model model; /* of text, with positions */
	uint64_t n_partial;
};

/* Items [change.first, change.end) read anew. */
struct part {
	struct cfg_change change;
	struct cfg_model model;
	struct cfg_items items;
	uint32_t n_lines; /* from the part's begin to its end */
};

struct cfg_reader *
cfg_reader_create(bool needs_ports)
{
	struct cfg_reader *reader = calloc(1, sizeof(*reader));

	if (reader == NULL)
		return NULL;
	reader->needs_ports = needs_ports;
	cfg_model_init(&reader->model);
	cfg_model_init(&reader->own);
	return reader;
}

static void
forget(struct cfg_reader *reader)
{
	free(reader->text);
	reader->text = NULL;
	reader->n_bytes = 0;
	cfg_items_fini(&reader->items);
	cfg_model_fini(&reader->model);
}

void
cfg_reader_destroy(struct cfg_reader *reader)
{
	if (reader == NULL)
		return;
	forget(reader);
	cfg_model_fini(&reader->own);
	free(reader);
}

/* What is told of them is told of the configuration that they are put into. */
static void
clear_positions(struct cfg_model *own)
{
	const struct cfg_pos nowhere = {0};

	own->dataplane.ports_pos = nowhere;
	own->announce.interface_pos = nowhere;
	for (size_t i = 0; i < own->dataplane.n_ports; i++) {
		struct cfg_port *port = &own->dataplane.ports[i];

		port->pos = nowhere;
		port->name_pos = nowhere;
		port->device_pos = nowhere;
		port->mtu_pos = nowhere;
	}
}

int
cfg_reader_read_own(struct cfg_reader *reader, const char *path, FILE *messages)
{
	struct cfg_errors errors = {.to = messages, .file = path};
	struct cfg_model own;
	int ret = cfg_reader_read(reader, path, messages, &own);

	if (ret != 0)
		return ret;
	if (own.n_services > 0)
		cfg_error(&errors, own.services[0].pos,
			"services: expected none here, as they are for all balancers");
	if (own.hash_seed != 0)
		cfg_error(&errors, (struct cfg_pos){0},
			"hash_seed: expected none here, as it is for all balancers");
	forget(reader);
	if (errors.n_errors > 0) {
		cfg_model_fini(&own);
		return -EINVAL;
	}
	clear_positions(&own);
	reader->own = own;
	reader->has_own = true;
	return 0;
}

/* Put what is this machine's own in the place of what was read. */
static void
take_own(const struct cfg_reader *reader, struct cfg_errors *errors, struct cfg_model *model)
{
	struct cfg_model own;
	struct cfg_model read = *model;

	if (!reader->has_own)
		return;
	if (cfg_model_copy(&reader->own, &own) != 0) {
		cfg_error_memory(errors);
		return;
	}
	model->dataplane = own.dataplane;
	model->control_socket = own.control_socket;
	model->control_metrics = own.control_metrics;
	model->announce = own.announce;
	own.dataplane = read.dataplane;
	own.control_socket = read.control_socket;
	own.control_metrics = read.control_metrics;
	own.announce = read.announce;
	cfg_model_fini(&own);
}

uint64_t
cfg_reader_count_partial(const struct cfg_reader *reader)
{
	return reader->n_partial;
}

/* Lines that were after line `after` go on by n, which may be a negative number's bits. */
static void
move_pos(struct cfg_pos *pos, uint32_t after, uint32_t n)
{
	if (pos->line > after)
		pos->line += n;
}

static void
move_service(struct cfg_service *service, uint32_t after, uint32_t n)
{
	if (n == 0)
		return;
	move_pos(&service->pos, after, n);
	move_pos(&service->name_pos, after, n);
	move_pos(&service->address_pos, after, n);
	move_pos(&service->port_pos, after, n);
	move_pos(&service->table_size_pos, after, n);
	move_pos(&service->overload_pos, after, n);
	move_pos(&service->tunnel_port_pos, after, n);
	move_pos(&service->vni_pos, after, n);
	move_pos(&service->carry_pos, after, n);
	move_pos(&service->affinity_pos, after, n);
	move_pos(&service->echo_pos, after, n);
	move_pos(&service->fragment_pos, after, n);
	move_pos(&service->mss_clamp_pos, after, n);
	move_pos(&service->quic_pos, after, n);
	move_pos(&service->health_pos, after, n);
	move_pos(&service->min_healthy_pos, after, n);
	for (size_t i = 0; i < service->n_quic; i++)
		move_pos(&service->quic[i].config_id_pos, after, n);
	for (size_t i = 0; i < service->n_backends; i++) {
		struct cfg_backend *backend = &service->backends[i];

		move_pos(&backend->pos, after, n);
		move_pos(&backend->name_pos, after, n);
		move_pos(&backend->address_pos, after, n);
		move_pos(&backend->mac_pos, after, n);
		for (size_t k = 0; k < backend->n_quic_ids; k++)
			move_pos(&backend->quic_ids[k].pos, after, n);
	}
}

static void
move_ports(struct cfg_dataplane *dataplane, uint32_t after, uint32_t n)
{
	move_pos(&dataplane->ports_pos, after, n);
	for (size_t i = 0; i < dataplane->n_ports; i++) {
		struct cfg_port *port = &dataplane->ports[i];

		move_pos(&port->pos, after, n);
		move_pos(&port->name_pos, after, n);
		move_pos(&port->device_pos, after, n);
		move_pos(&port->mtu_pos, after, n);
	}
}

static uint32_t
count_lines(const char *text, size_t n_bytes)
{
	uint32_t n = 0;

	for (size_t i = 0; i < n_bytes; i++)
		n += text[i] == '\n';
	return n;
}

/* Whether a part has what may mean more than it seems to, alone. */
static bool
is_doubtful(const char *text, size_t n_bytes)
{
	const char *at = text;
	const char *const end = text + n_bytes;

	if (memchr(text, '|', n_bytes) != NULL || memchr(text, '>', n_bytes) != NULL)
		return true;
	while (at != NULL && end - at >= 3) {
		if (memcmp(at, "...", 3) == 0 || memcmp(at, "---", 3) == 0 || *at == '%')
			return true;
		at = memchr(at, '\n', (size_t)(end - at));
		if (at != NULL)
			at++;
	}
	return false;
}

/* The tree of a part that reads without a message and is nothing but items, or NULL. */
static struct cfg_node *
parse_part(const char *text, size_t n_bytes, struct cfg_errors *errors, struct cfg_items *items)
{
	struct cfg_node *root = NULL;

	if (cfg_node_parse(text, n_bytes, errors, &root) != 0)
		return NULL;
	if (errors->n_errors == 0 && root != NULL && root->kind == CFG_MAPPING &&
		root->first != NULL && root->first->next == NULL &&
		cfg_items_find(text, n_bytes, root, items) == 0)
		return root;
	cfg_node_free(root);
	return NULL;
}

/* part->model's services, with the lines that they have in the whole text. */
static bool
decode_part(const struct cfg_reader *reader, const char *text, size_t n_bytes,
	const atomic_bool *stop, struct part *part)
{
	const uint32_t line = reader->model.services[part->change.first].pos.line;
	struct cfg_errors errors = {.file = "part", .stop = stop};
	struct cfg_node *root = parse_part(text, n_bytes, &errors, &part->items);

	if (root == NULL)
		return false;
	/* The dash that the part begins with is one of the list. */
	assert(part->items.starts[0] == PART_HEAD_BYTES &&
		part->items.column == reader->items.column);
	cfg_decode_model(root, &errors, &part->model);
	cfg_node_free(root);
	if (errors.n_errors != 0 || errors.n_warnings != 0) {
		cfg_items_fini(&part->items);
		cfg_model_fini(&part->model);
		return false;
	}
	/* The part's second line is the whole text's `line`. */
	for (size_t i = 0; i < part->model.n_services; i++)
		move_service(&part->model.services[i], 0, line - 2);
	return true;
}

/* False: the text has to be read whole. */
static bool
read_part(const struct cfg_reader *reader, const char *text, size_t n_bytes,
	const atomic_bool *stop, struct part *part)
{
	const char *from;
	size_t n;
	char *copy;
	bool is_read;

	if (reader->text == NULL || !cfg_items_compare(&reader->items, reader->text,
					    reader->n_bytes, text, n_bytes, &part->change))
		return false;
	from = text + part->change.start_bytes;
	n = part->change.n_bytes;
	if (is_doubtful(from, n))
		return false;
	copy = malloc(PART_HEAD_BYTES + n);
	if (copy == NULL)
		return false;
	memcpy(copy, part_head, PART_HEAD_BYTES);
	memcpy(copy + PART_HEAD_BYTES, from, n);
	part->n_lines = count_lines(from, n);
	is_read = decode_part(reader, copy, PART_HEAD_BYTES + n, stop, part);
	free(copy);
	return is_read;
}

static void
free_part(struct part *part)
{
	cfg_items_fini(&part->items);
	cfg_model_fini(&part->model);
}

/* Appends copies of items [first, end) of what is kept, n lines further on. */
static int
copy_kept(const struct cfg_reader *reader, size_t first, size_t end, uint32_t n_lines,
	struct cfg_model *out)
{
	for (size_t i = first; i < end; i++) {
		struct cfg_service *service = &out->services[out->n_services++];

		if (cfg_service_copy(&reader->model.services[i], service) != 0)
			return -ENOMEM;
		move_service(service, 0, n_lines);
	}
	return 0;
}

/* How far what follows the part has moved, and the last line before that. */
static uint32_t
count_moved_lines(const struct cfg_reader *reader, const struct part *part, uint32_t *after)
{
	const struct cfg_items *items = &reader->items;
	const size_t start = part->change.start_bytes;
	const uint32_t n_old =
		count_lines(reader->text + start, items->starts[part->change.end] - start);

	*after = reader->model.services[part->change.first].pos.line + n_old - 1;
	return part->n_lines - n_old;
}

/* What is kept, with the part in its place; the part's services are moved out of it. */
static int
assemble(const struct cfg_reader *reader, const char *name, struct part *part,
	struct cfg_model *out)
{
	const struct cfg_model *kept = &reader->model;
	const size_t n_part = part->model.n_services;
	struct cfg_model rest = *kept;
	uint32_t after;
	const uint32_t n_lines = count_moved_lines(reader, part, &after);
	char *file = strdup(name);

	if (file == NULL)
		return -ENOMEM;
	rest.file = file;
	rest.services = NULL;
	rest.n_services = 0;
	if (cfg_model_copy(&rest, out) != 0) {
		free(file);
		return -ENOMEM;
	}
	free(file);
	move_ports(&out->dataplane, after, n_lines);
	out->services =
		calloc(kept->n_services - (part->change.end - part->change.first) + n_part,
			sizeof(*out->services));
	if (out->services == NULL || copy_kept(reader, 0, part->change.first, 0, out) != 0)
		goto fini_out;
	memcpy(out->services + out->n_services, part->model.services,
		n_part * sizeof(*out->services));
	out->n_services += n_part;
	part->model.n_services = 0;
	if (copy_kept(reader, part->change.end, kept->n_services, n_lines, out) != 0)
		goto fini_out;
	return 0;

fini_out:
	cfg_model_fini(out);
	return -ENOMEM;
}

/* Where the items of the new text begin. NULL: no memory. */
static size_t *
splice_starts(const struct cfg_items *kept, const struct part *part)
{
	const struct cfg_change *change = &part->change;
	const size_t n_after = kept->n - change->end;
	size_t *starts = calloc(change->first + part->items.n + n_after + 1, sizeof(*starts));
	size_t n = change->first;

	if (starts == NULL)
		return NULL;
	memcpy(starts, kept->starts, n * sizeof(*starts));
	for (size_t i = 0; i < part->items.n; i++)
		starts[n++] = part->items.starts[i] - PART_HEAD_BYTES + change->start_bytes;
	for (size_t i = change->end; i <= kept->n; i++)
		starts[n++] = kept->starts[i] - kept->starts[change->end] +
			      change->start_bytes + change->n_bytes;
	return starts;
}

/* The services of the new text: those of the part copied, the others still the kept ones. */
static struct cfg_service *
splice_services(const struct cfg_model *kept, const struct part *part,
	const struct cfg_model *next)
{
	const size_t first = part->change.first;
	const size_t end = first + part->items.n;
	struct cfg_service *services = calloc(next->n_services, sizeof(*services));
	int ret = 0;
	size_t i;

	if (services == NULL)
		return NULL;
	for (i = first; i < end && ret == 0; i++)
		ret = cfg_service_copy(&next->services[i], &services[i]);
	if (ret != 0) {
		while (i > first)
			cfg_service_fini(&services[--i]);
		free(services);
		return NULL;
	}
	memcpy(services, kept->services, first * sizeof(*services));
	memcpy(services + end, kept->services + part->change.end,
		(next->n_services - end) * sizeof(*services));
	return services;
}

/* Keeps what was read in part. Takes text. */
static void
keep_part(struct cfg_reader *reader, char *text, size_t n_bytes, const struct part *part,
	const struct cfg_model *next)
{
	struct cfg_model *kept = &reader->model;
	size_t *starts = splice_starts(&reader->items, part);
	struct cfg_service *services = splice_services(kept, part, next);
	uint32_t after;
	const uint32_t n_lines = count_moved_lines(reader, part, &after);

	/* Without memory the next read is of the whole text. */
	if (starts == NULL || services == NULL)
		goto forget_all;
	for (size_t i = part->change.first; i < part->change.end; i++)
		cfg_service_fini(&kept->services[i]);
	free(kept->services);
	kept->services = services;
	kept->n_services = next->n_services;
	for (size_t i = part->change.first + part->items.n; i < kept->n_services; i++)
		move_service(&services[i], 0, n_lines);
	move_ports(&kept->dataplane, after, n_lines);
	free(reader->items.starts);
	reader->items.starts = starts;
	reader->items.n = next->n_services;
	free(reader->text);
	reader->text = text;
	reader->n_bytes = n_bytes;
	return;

forget_all:
	for (size_t i = 0; services != NULL && i < part->items.n; i++)
		cfg_service_fini(&services[part->change.first + i]);
	free(services);
	free(starts);
	free(text);
	forget(reader);
}

/* Takes text and items. */
static void
keep_whole(struct cfg_reader *reader, char *text, size_t n_bytes, struct cfg_items items,
	const struct cfg_model *model)
{
	struct cfg_model copy;

	forget(reader);
	if (cfg_model_copy(model, &copy) != 0) {
		cfg_items_fini(&items);
		free(text);
		return;
	}
	reader->text = text;
	reader->n_bytes = n_bytes;
	reader->items = items;
	reader->model = copy;
}

static void
check_has_services(const struct cfg_node *root, struct cfg_errors *errors)
{
	const struct cfg_node *services;

	if (root == NULL || root->kind != CFG_MAPPING)
		return;
	services = cfg_node_get(root, "services");
	if (services == NULL || cfg_node_is_null(services))
		cfg_error(errors, services != NULL ? services->pos : root->pos,
			"there are no services; write 'services: []' if there are to be none");
}

/* Takes text. */
static int
read_whole(struct cfg_reader *reader, char *text, size_t n_bytes, bool needs_services,
	struct cfg_errors *errors, struct cfg_model *out)
{
	struct cfg_items items = {0};
	struct cfg_node *root = NULL;
	struct cfg_model model;
	bool can_keep;
	int ret;

	ret = cfg_node_parse(text, n_bytes, errors, &root);
	if (ret != 0) {
		free(text);
		return ret;
	}
	cfg_decode_model(root, errors, &model);
	if (needs_services)
		check_has_services(root, errors);
	take_own(reader, errors, &model);
	can_keep = errors->n_errors == 0 && errors->n_warnings == 0 &&
		   cfg_items_find(text, n_bytes, root, &items) == 0;
	cfg_node_free(root);
	ret = cfg_finish_model(&model, reader->needs_ports, errors);
	if (ret == 0 && can_keep) {
		keep_whole(reader, text, n_bytes, items, &model);
	} else {
		cfg_items_fini(&items);
		free(text);
	}
	if (ret == 0)
		*out = model;
	return ret;
}

/* Takes text. */
static int
read_text(struct cfg_reader *reader, char *text, size_t n_bytes, bool needs_services,
	struct cfg_errors *errors, struct cfg_model *out)
{
	struct cfg_model model;
	struct part part;
	int ret;

	if (!read_part(reader, text, n_bytes, errors->stop, &part))
		return read_whole(reader, text, n_bytes, needs_services, errors, out);
	if (assemble(reader, errors->file, &part, &model) != 0) {
		free_part(&part);
		return read_whole(reader, text, n_bytes, needs_services, errors, out);
	}
	reader->n_partial++;
	ret = cfg_finish_model(&model, reader->needs_ports, errors);
	if (ret == 0) {
		keep_part(reader, text, n_bytes, &part, &model);
		*out = model;
	} else {
		free(text);
	}
	free_part(&part);
	return ret;
}

int
cfg_reader_read(struct cfg_reader *reader, const char *path, FILE *messages,
	struct cfg_model *out)
{
	struct cfg_errors errors = {.to = messages, .file = path};
	char *text = NULL;
	size_t n_bytes = 0;
	int ret;

	ret = cfg_read_bytes(&errors, &text, &n_bytes);
	if (ret != 0)
		return ret;
	return read_text(reader, text, n_bytes, false, &errors, out);
}

int
cfg_reader_read_stream(struct cfg_reader *reader, const char *name, FILE *stream,
	const atomic_bool *stop, FILE *messages, struct cfg_model *out)
{
	struct cfg_errors errors = {.to = messages, .file = name, .stop = stop};
	char *text = NULL;
	size_t n_bytes = 0;
	int ret;

	ret = cfg_read_stream(stream, &errors, &text, &n_bytes);
	if (ret != 0)
		return ret;
	return read_text(reader, text, n_bytes, false, &errors, out);
}

int
cfg_reader_read_text(struct cfg_reader *reader, const char *name, const char *text,
	size_t n_bytes, FILE *messages, struct cfg_model *out)
{
	struct cfg_errors errors = {.to = messages, .file = name};
	/* One byte at least, as malloc(0) may give NULL. */
	char *copy = malloc(n_bytes + (n_bytes == 0));

	if (copy == NULL) {
		cfg_error_memory(&errors);
		return -ENOMEM;
	}
	if (n_bytes > 0)
		memcpy(copy, text, n_bytes);
	return read_text(reader, copy, n_bytes, true, &errors, out);
}
