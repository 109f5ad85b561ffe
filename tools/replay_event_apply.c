/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cfg_check.h"
#include "cfg_nearest.h"
#include "replay_event_decode.h"

void
replay_event_tell_missing(const struct replay_event *event, bool is_backend, const char *when,
	const struct cfg_nearest *nearest, struct cfg_errors *errors)
{
	char what[LB_NAME_BYTES_MAX + sizeof("service '' has no backend")] =
		"there is no service";

	if (is_backend)
		(void)snprintf(what, sizeof(what), "service '%s' has no backend",
			event->service);
	if (nearest->best == NULL)
		cfg_error(errors, event->pos, "%s '%s' at %s time, nor any other", what,
			nearest->wanted, when);
	else
		cfg_error(errors, event->pos, "%s '%s' at %s time; the nearest is '%s'", what,
			nearest->wanted, when, nearest->best);
}

static struct cfg_service *
find_service(const struct replay_event *event, const struct cfg_model *model,
	struct cfg_errors *errors)
{
	const size_t n_bytes = strlen(event->service);
	struct cfg_service *service = cfg_find_service(model, event->service, n_bytes);
	struct cfg_nearest nearest;

	if (service != NULL)
		return service;

	cfg_nearest_init(&nearest, event->service, n_bytes);
	for (size_t i = 0; i < model->n_services; i++)
		cfg_nearest_offer(&nearest, model->services[i].name);
	replay_event_tell_missing(event, false, "that", &nearest, errors);
	return NULL;
}

static struct cfg_backend *
find_backend(const struct replay_event *event, const struct cfg_service *service,
	struct cfg_errors *errors)
{
	struct cfg_backend *backend = cfg_find_backend(service, event->backend.name);
	struct cfg_nearest nearest;

	if (backend != NULL)
		return backend;

	cfg_nearest_init(&nearest, event->backend.name, strlen(event->backend.name));
	for (size_t i = 0; i < service->n_backends; i++)
		cfg_nearest_offer(&nearest, service->backends[i].name);
	replay_event_tell_missing(event, true, "that", &nearest, errors);
	return NULL;
}

static int
add_backend(const struct replay_event *event, const struct cfg_model *model,
	struct cfg_service *service, struct cfg_errors *errors)
{
	const char *name = event->backend.name;
	int ret;

	if (cfg_find_backend(service, name) != NULL) {
		cfg_error(errors, event->pos,
			"service '%s' has a backend '%s' already at that time; remove it "
			"before, or choose another name",
			service->name, name);
		return -EINVAL;
	}
	if (service->n_backends >= service->n_slots) {
		cfg_error(errors, event->pos,
			"service '%s' has %zu backends at that time, and room for no more in "
			"its %" PRIu32 " slots; give it a larger table",
			service->name, service->n_backends, service->n_slots);
		return -EINVAL;
	}
	if (!cfg_check_backend(model, service, &event->backend, errors))
		return -EINVAL;

	ret = cfg_add_backend(service, &event->backend);
	if (ret == -E2BIG) {
		cfg_error(errors, event->pos,
			"service '%s' has %u backends at that time, the most there may be",
			service->name, LB_SERVICE_BACKENDS_MAX);
		return -EINVAL;
	}
	if (ret != 0)
		return ret;
	if (!cfg_check_room(service, event->pos, errors)) {
		cfg_remove_backend(service, &service->backends[service->n_backends - 1]);
		return -EINVAL;
	}
	return 0;
}

static int
change_weight(const struct replay_event *event, struct cfg_service *service,
	struct cfg_backend *backend, struct cfg_errors *errors)
{
	const uint32_t before = backend->weight;

	backend->weight = event->backend.weight;
	if (cfg_check_room(service, event->pos, errors))
		return 0;
	backend->weight = before;
	return -EINVAL;
}

static int
reload_model(const struct replay_event *event, struct cfg_model *model)
{
	struct cfg_model next;
	const int ret = cfg_model_copy(event->reload, &next);

	if (ret != 0)
		return ret;
	cfg_model_fini(model);
	*model = next;
	return 0;
}

static int
change_backend(const struct replay_event *event, struct cfg_service *service,
	struct cfg_backend *backend, struct cfg_errors *errors)
{
	switch (event->kind) {
	case REPLAY_REMOVE:
		cfg_remove_backend(service, backend);
		break;
	case REPLAY_WEIGHT:
		return change_weight(event, service, backend, errors);
	case REPLAY_UP:
		backend->state = CFG_UP;
		break;
	case REPLAY_DRAIN:
		backend->state = CFG_DRAIN;
		break;
	default:
		backend->state = CFG_DOWN;
		break;
	}
	return 0;
}

static int
apply(const struct replay_event *event, struct cfg_model *model, struct cfg_errors *errors)
{
	struct cfg_service *service;
	struct cfg_backend *backend;

	if (event->kind == REPLAY_RELOAD)
		return reload_model(event, model);

	service = find_service(event, model, errors);
	if (service == NULL)
		return -EINVAL;
	if (event->kind == REPLAY_ADD)
		return add_backend(event, model, service, errors);

	backend = find_backend(event, service, errors);
	if (backend == NULL)
		return -EINVAL;
	return change_backend(event, service, backend, errors);
}

int
replay_event_apply(const struct replay_event *event, const char *file, struct cfg_model *model,
	FILE *messages)
{
	struct cfg_errors errors = {.to = messages, .file = file};
	const int ret = apply(event, model, &errors);

	if (ret == -ENOMEM)
		cfg_error_memory(&errors);
	return ret;
}
