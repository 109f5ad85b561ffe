/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cfg_check_parts.h"
#include "cfg_seen.h"

/* "15, 14, … or 1", with room to spare. */
#define LENGTHS_BYTES 80u

static bool
is_bad(const struct cfg_service *service, unsigned int bits)
{
	return (service->bad & bits) != 0;
}

static void
check_affinity(const struct cfg_service *service, struct cfg_errors *errors)
{
	const bool is_quic = service->affinity == CFG_AFFINITY_QUIC;

	if (is_bad(service, CFG_BAD_AFFINITY))
		return;
	if (is_quic && service->protocol != CFG_PROTOCOL_UDP &&
		!is_bad(service, CFG_BAD_PROTOCOL))
		cfg_error(errors, service->affinity_pos,
			"affinity: quic is for protocol udp, and this service has %s; expected "
			"5-tuple, source-ip or source-ip-port",
			cfg_protocol_words[service->protocol]);
	if (is_quic && service->n_quic == 0 && !is_bad(service, CFG_BAD_QUIC))
		cfg_error(errors, service->affinity_pos,
			"affinity: quic needs the key 'quic' with a list of 1 to %u "
			"configurations",
			CFG_QUIC_CONFIGS_MAX);
	if (!is_quic && service->n_quic > 0)
		cfg_error(errors, service->quic_pos,
			"quic is for affinity quic, and this service has %s; remove it",
			cfg_affinity_words[service->affinity]);
}

static void
check_config_ids(const struct cfg_service *service, struct cfg_errors *errors)
{
	for (size_t i = 1; i < service->n_quic; i++) {
		const struct cfg_quic *quic = &service->quic[i];
		size_t first = 0;

		while (service->quic[first].config_id != quic->config_id)
			first++;
		if (first < i && quic->config_id != CFG_QUIC_CONFIG_NONE)
			cfg_error(errors, quic->config_id_pos,
				"config_id: %u is that of another configuration of the "
				"service; give each its own",
				(unsigned int)quic->config_id);
	}
}

static bool
has_length(const struct cfg_service *service, size_t n_bytes)
{
	for (size_t i = 0; i < service->n_quic; i++) {
		if (service->quic[i].server_id_bytes == n_bytes)
			return true;
	}
	return false;
}

static bool
has_id_of(const struct cfg_backend *backend, size_t n_bytes)
{
	for (size_t i = 0; i < backend->n_quic_ids; i++) {
		if (backend->quic_ids[i].n_bytes == n_bytes)
			return true;
	}
	return false;
}

/* "4", "4 or 8", "4, 8 or 10": the lengths that the service's configurations have. */
static const char *
list_lengths(const struct cfg_service *service, char out[static LENGTHS_BYTES])
{
	size_t n = 0;
	size_t used = 0;

	for (size_t i = 1; i <= CFG_QUIC_ID_BYTES_MAX; i++)
		n += has_length(service, i);
	out[0] = '\0';
	for (size_t i = 1; i <= CFG_QUIC_ID_BYTES_MAX; i++) {
		if (!has_length(service, i))
			continue;
		n--;
		used += (size_t)snprintf(out + used, LENGTHS_BYTES - used, "%zu%s", i,
			n > 1    ? ", "
			: n == 1 ? " or "
				 : "");
	}
	return out;
}

static const char *
word_of(unsigned int n_bytes)
{
	return n_bytes == 1 ? "byte" : "bytes";
}

static void
check_lengths(const struct cfg_service *service, const struct cfg_backend *backend,
	struct cfg_errors *errors)
{
	char text[CFG_QUIC_ID_TEXT_BYTES];
	char lengths[LENGTHS_BYTES];

	if (is_bad(service, CFG_BAD_QUIC) || backend->n_quic_ids == 0)
		return;
	if (service->n_quic == 0) {
		cfg_error(errors, backend->quic_ids[0].pos,
			"quic_id is for services with the key 'quic', and this one has none; "
			"remove it");
		return;
	}
	for (size_t i = 0; i < backend->n_quic_ids; i++) {
		const struct cfg_quic_id *id = &backend->quic_ids[i];

		if (!has_length(service, id->n_bytes))
			cfg_error(errors, id->pos,
				"quic_id: %s has %u %s, and no configuration of the service "
				"has server ids of so many; expected %s",
				cfg_quic_id_format(id, text), (unsigned int)id->n_bytes,
				word_of(id->n_bytes), list_lengths(service, lengths));
	}
}

/* The first configuration that a backend has no server id for, or NULL. */
static const struct cfg_quic *
find_missing(const struct cfg_service *service, const struct cfg_backend *backend)
{
	for (size_t i = 0; backend->bad == 0 && i < service->n_quic; i++) {
		if (!has_id_of(backend, service->quic[i].server_id_bytes))
			return &service->quic[i];
	}
	return NULL;
}

static void
warn_of_missing(const struct cfg_service *service, struct cfg_errors *errors)
{
	const struct cfg_backend *first = NULL;
	const struct cfg_quic *missing = NULL;
	size_t n = 0;

	if (is_bad(service, CFG_BAD_QUIC))
		return;
	for (size_t i = 0; i < service->n_backends; i++) {
		const struct cfg_quic *found = find_missing(service, &service->backends[i]);

		if (found == NULL)
			continue;
		if (n++ == 0) {
			first = &service->backends[i];
			missing = found;
		}
	}
	if (first == NULL)
		return;
	cfg_warning(errors, first->pos,
		"the backend has no quic_id of %u %s, as config_id %u has them, so its "
		"connections go by their 5-tuples (%zu such %s)",
		(unsigned int)missing->server_id_bytes, word_of(missing->server_id_bytes),
		(unsigned int)missing->config_id, n, n == 1 ? "backend" : "backends");
}

/* A server id, and whose it is. */
struct owned_id {
	const struct cfg_quic_id *id;
	const struct cfg_backend *backend;
};

static bool
is_same_id(const void *items, size_t a, size_t b)
{
	const struct owned_id *ids = items;

	return cfg_quic_id_equal(ids[a].id, ids[b].id);
}

static void
tell_same_id(const struct owned_id *again, const struct owned_id *first,
	struct cfg_errors *errors)
{
	char text[CFG_QUIC_ID_TEXT_BYTES];

	(void)cfg_quic_id_format(again->id, text);
	if (again->backend == first->backend)
		cfg_error(errors, again->id->pos,
			"quic_id: %s is there already; remove one of them", text);
	else
		cfg_error(errors, again->id->pos,
			"quic_id: %s is that of backend '%s'; give each its own", text,
			first->backend->name == NULL ? "" : first->backend->name);
}

static void
check_same_ids(const struct cfg_service *service, size_t n, struct cfg_errors *errors)
{
	struct owned_id *ids = calloc(n, sizeof(*ids));
	struct cfg_seen seen;
	size_t at = 0;

	if (ids == NULL) {
		cfg_error_memory(errors);
		return;
	}
	if (!cfg_seen_init(&seen, ids, n, is_same_id, errors)) {
		free(ids);
		return;
	}
	for (size_t i = 0; i < service->n_backends; i++) {
		const struct cfg_backend *backend = &service->backends[i];

		for (size_t k = 0; k < backend->n_quic_ids; k++, at++) {
			const struct cfg_quic_id *id = &backend->quic_ids[k];
			size_t first;

			ids[at] = (struct owned_id){id, backend};
			first = cfg_seen_find_or_add(&seen, at,
				cfg_hash_bytes(id->bytes, id->n_bytes, CFG_HASH_BEGIN));
			if (first != at)
				tell_same_id(&ids[at], &ids[first], errors);
		}
	}
	cfg_seen_fini(&seen);
	free(ids);
}

void
cfg_check_quic(const struct cfg_service *service, struct cfg_errors *errors)
{
	size_t n_ids = 0;

	check_affinity(service, errors);
	check_config_ids(service, errors);
	for (size_t i = 0; i < service->n_backends; i++) {
		check_lengths(service, &service->backends[i], errors);
		n_ids += service->backends[i].n_quic_ids;
	}
	if (n_ids > 0)
		check_same_ids(service, n_ids, errors);
	warn_of_missing(service, errors);
	if (cfg_count_quic_servers(service) > CFG_QUIC_SERVERS_MAX)
		cfg_error(errors, service->quic_pos,
			"quic: the backends have %zu server ids, each counted for each "
			"configuration of its length; expected at most %zu",
			cfg_count_quic_servers(service), CFG_QUIC_SERVERS_MAX);
}

/* Whether an id is among a backend's first n. */
static bool
has_id(const struct cfg_backend *backend, size_t n, const struct cfg_quic_id *id)
{
	for (size_t i = 0; i < n; i++) {
		if (cfg_quic_id_equal(&backend->quic_ids[i], id))
			return true;
	}
	return false;
}

void
cfg_check_quic_backend(const struct cfg_service *service, const struct cfg_backend *backend,
	struct cfg_errors *errors)
{
	check_lengths(service, backend, errors);
	for (size_t i = 0; i < backend->n_quic_ids; i++) {
		const struct owned_id mine = {&backend->quic_ids[i], backend};

		if (has_id(backend, i, mine.id))
			tell_same_id(&mine, &mine, errors);
		for (size_t k = 0; k < service->n_backends; k++) {
			const struct cfg_backend *other = &service->backends[k];
			const struct owned_id theirs = {mine.id, other};

			if (other != backend && has_id(other, other->n_quic_ids, mine.id))
				tell_same_id(&mine, &theirs, errors);
		}
	}
}
