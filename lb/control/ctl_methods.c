/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_methods.h"

#include <string.h>

#include "cfg_nearest.h"
#include "ctl_methods_each.h"
#include "ctl_proto.h"

static const struct ctl_method methods[] = {
	{CTL_METHOD_STATUS, ctl_method_status},
	{CTL_METHOD_STATS, ctl_method_stats},
	{CTL_METHOD_SERVICE_LIST, ctl_method_service_list},
	{CTL_METHOD_SERVICE_SHOW, ctl_method_service_show},
	{CTL_METHOD_SERVICE_ADD, ctl_method_service_add},
	{CTL_METHOD_SERVICE_REMOVE, ctl_method_service_remove},
	{CTL_METHOD_BACKEND_LIST, ctl_method_backend_list},
	{CTL_METHOD_BACKEND_ADD, ctl_method_backend_add},
	{CTL_METHOD_BACKEND_REMOVE, ctl_method_backend_remove},
	{CTL_METHOD_BACKEND_DRAIN, ctl_method_backend_drain},
	{CTL_METHOD_BACKEND_UP, ctl_method_backend_up},
	{CTL_METHOD_BACKEND_DOWN, ctl_method_backend_down},
	{CTL_METHOD_BACKEND_WEIGHT, ctl_method_backend_weight},
	{CTL_METHOD_EXPLAIN, ctl_method_explain},
	{CTL_METHOD_TRACE_BEGIN, ctl_method_trace_begin},
	{CTL_METHOD_TRACE_READ, ctl_method_trace_read},
	{CTL_METHOD_TRACE_END, ctl_method_trace_end},
	{CTL_METHOD_FLOWS_LIST, ctl_method_flows_list},
	{CTL_METHOD_FLOWS_COUNT, ctl_method_flows_count},
	{CTL_METHOD_FLOWS_CLEAR, ctl_method_flows_clear},
	{CTL_METHOD_FLOWS_FIND, ctl_method_flows_find},
	{CTL_METHOD_PLAN, ctl_method_plan},
	{CTL_METHOD_RELOAD, ctl_method_reload},
	{CTL_METHOD_CONFIG_SHOW, ctl_method_config_show},
	{CTL_METHOD_CONFIG_SAVE, ctl_method_config_save},
	{CTL_METHOD_CONFIG_PUSH, ctl_method_config_push},
};

const struct ctl_method *
ctl_methods(size_t *n)
{
	*n = LB_N_ELEMENTS(methods);
	return methods;
}

struct cfg_service *
ctl_method_find_service(const struct cfg_model *model, const char *name, struct ctl_call *call)
{
	const size_t n_bytes = strlen(name);
	struct cfg_service *service = cfg_find_service(model, name, n_bytes);
	struct cfg_nearest nearest;

	if (service != NULL)
		return service;
	cfg_nearest_init(&nearest, name, n_bytes);
	for (size_t i = 0; i < model->n_services; i++)
		cfg_nearest_offer(&nearest, model->services[i].name);
	if (nearest.best == NULL)
		ctl_call_error(call, CTL_RPC_REFUSED, "there is no service '%s', nor any other",
			name);
	else
		ctl_call_error(call, CTL_RPC_REFUSED,
			"there is no service '%s'; the nearest is '%s'", name, nearest.best);
	return NULL;
}
