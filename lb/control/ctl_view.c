/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_view.h"

#include <errno.h>
#include <stdlib.h>

static int
copy_service(const struct ctl_apply *apply, const struct cfg_service *from, size_t place,
	struct ctl_view_service *to)
{
	to->ids = calloc(from->n_backends + 1, sizeof(*to->ids));
	to->slots = calloc(from->n_backends + 1, sizeof(*to->slots));
	if (to->ids == NULL || to->slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_backends; i++)
		to->ids[i] = ctl_apply_backend_id(apply, place, i);
	ctl_apply_read_slots(apply, place, to->slots);
	return 0;
}

int
ctl_view_create(const struct ctl_apply *apply, const struct cfg_model *model,
	uint64_t generation, struct ctl_view **out)
{
	struct ctl_view *view = calloc(1, sizeof(*view));
	int ret;

	if (view == NULL)
		return -ENOMEM;
	cfg_model_init(&view->model);
	view->generation = generation;
	ret = cfg_model_copy(model, &view->model);
	if (ret != 0)
		goto free_view;
	view->services = calloc(model->n_services + 1, sizeof(*view->services));
	if (view->services == NULL)
		goto no_memory;
	for (size_t i = 0; i < model->n_services; i++)
		if (copy_service(apply, &model->services[i], i, &view->services[i]) != 0)
			goto no_memory;
	*out = view;
	return 0;

no_memory:
	ret = -ENOMEM;
free_view:
	ctl_view_destroy(view);
	return ret;
}

void
ctl_view_destroy(struct ctl_view *view)
{
	if (view == NULL)
		return;
	for (size_t i = 0; view->services != NULL && i < view->model.n_services; i++) {
		free(view->services[i].ids);
		free(view->services[i].slots);
	}
	free(view->services);
	cfg_model_fini(&view->model);
	free(view);
}
