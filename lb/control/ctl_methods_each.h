/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_METHODS_EACH_H
#define CTL_METHODS_EACH_H

/**
 * @file
 * Each method of the control protocol, for the table in ctl_methods.c. All are ctl_method_fn;
 * their context is the struct ctl_daemon.
 */

#include "cfg_model.h"
#include "ctl_etcd.h"
#include "ctl_rpc.h"

/* ctl_methods_show.c: what is. */
void ctl_method_status(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_stats(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_service_list(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_service_show(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_backend_list(void *context, const json_t *params, struct ctl_call *call);

/* ctl_methods_edit.c: changes of what is wanted, answered once they are in force. */
void ctl_method_service_add(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_service_remove(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_backend_add(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_backend_remove(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_backend_drain(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_backend_up(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_backend_down(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_backend_weight(void *context, const json_t *params, struct ctl_call *call);

/* ctl_methods_file.c: files. */
void ctl_method_reload(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_plan(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_config_show(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_config_save(void *context, const json_t *params, struct ctl_call *call);

/* ctl_methods_etcd.c: what etcd has. */
void ctl_method_config_push(void *context, const json_t *params, struct ctl_call *call);

/* ctl_methods_explain.c. */
void ctl_method_explain(void *context, const json_t *params, struct ctl_call *call);

/* ctl_methods_trace.c. */
void ctl_method_trace_begin(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_trace_read(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_trace_end(void *context, const json_t *params, struct ctl_call *call);

/* ctl_methods_flows.c. */
void ctl_method_flows_list(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_flows_count(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_flows_clear(void *context, const json_t *params, struct ctl_call *call);
void ctl_method_flows_find(void *context, const json_t *params, struct ctl_call *call);

/* Shared by them. */

/** A service of a model by its name; NULL where there is none, and the call is answered. */
struct cfg_service *ctl_method_find_service(const struct cfg_model *model, const char *name,
	struct ctl_call *call);

#endif
