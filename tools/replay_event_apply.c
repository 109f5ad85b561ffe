/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cfg_check.h"
#include "replay_events.h"
#include "replay_nearest.h"

/* An unknown name, with the nearest that is there. */
static void
tell_missing(struct cfg_errors *errors, const struct replay_event *event, const char *what,
	const struct replay_nearest *nearest)
{
	if (nearest->best == NULL)
		cfg_error(errors, event->pos, "%s '%s' at that time, nor any other", what,
			nearest->wanted);
	else
		cfg_error(errors, event->pos, "%s '%s' at that time; the nearest is '%s'", what,
			nearest->wanted, nearest->best);
}

static struct cfg_service *
find_service(const struct replay_event *event, const struct cfg_model *model,
	struct cfg_errors *errors)
{
	const size_t n_bytes = strlen(event->service);
	struct cfg_service *service = cfg_find_service(model, event->service, n_bytes);
	struct replay_nearest nearest;

	if (service != NULL)
		return service;

	replay_nearest_init(&nearest, event->service, n_bytes);
	for (size_t i = 0; i < model->n_services; i++)
		replay_nearest_offer(&nearest, model->services[i].name);
	tell_missing(errors, event, "there is no service", &nearest);
	return NULL;
}

static struct cfg_backend *
find_backend(const struct replay_event *event, const struct cfg_service *service,
	struct cfg_errors *errors)
{
	struct cfg_backend *backend = cfg_find_backend(service, event->backend.name);
	char what[LB_NAME_BYTES_MAX + sizeof("service '' has no backend")];
	struct replay_nearest nearest;

	if (backend != NULL)
		return backend;

	replay_nearest_init(&nearest, event->backend.name, strlen(event->backend.name));
	for (size_t i = 0; i < service->n_backends; i++)
		replay_nearest_offer(&nearest, service->backends[i].name);
	(void)snprintf(what, sizeof(what), "service '%s' has no backend", service->name);
	tell_missing(errors, event, what, &nearest);
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
			"before, "
			"or choose another name",
			service->name, name);
		return -EINVAL;
	}
	if (service->n_backends >= service->n_slots) {
		cfg_error(errors, event->pos,
			"service '%s' has %zu backends at that time, and room for no more in "
			"its "
			"%" PRIu32 " slots; give it a larger table",
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
	return ret;
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

static void
change_backend(const struct replay_event *event, struct cfg_service *service,
	struct cfg_backend *backend)
{
	switch (event->kind) {
	case REPLAY_REMOVE:
		cfg_remove_backend(service, backend);
		break;
	case REPLAY_WEIGHT:
		backend->weight = event->backend.weight;
		break;
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
	change_backend(event, service, backend);
	return 0;
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
