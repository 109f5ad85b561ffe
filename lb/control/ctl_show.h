/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SHOW_H
#define CTL_SHOW_H

/**
 * @file
 * Pieces of what is told of a running daemon, the same to whoever asks: on the control socket
 * and at /status.json.
 *
 * Values are the caller's; NULL: no memory. What adds to an object returns not 0 then; what is
 * put makes the text fail. Not thread-safe: the control thread's.
 */

#include "ctl_daemon.h"
#include "ctl_json.h"
#include "dp.h"

json_t *ctl_show_mac(const struct lb_mac *mac);

/** How it is with etcd; null where the configuration is a file. */
json_t *ctl_show_etcd(const struct ctl_daemon *daemon);

/** A list, in the order of the configuration. */
json_t *ctl_show_ports(const struct ctl_daemon *daemon, const struct cfg_dataplane *plane);

/** How many packets were received, and what became of them. */
json_t *ctl_show_packets(const uint64_t verdicts[static LB_N_VERDICTS]);

/** Packets by each reason there is, also 0 of them. */
json_t *ctl_show_drops(const uint64_t verdicts[static LB_N_VERDICTS]);

json_t *ctl_show_table(const struct cfg_service *service);

/** The keys of a service in a file that say what it is found by, and how it goes on. */
int ctl_show_add_service(json_t *object, const struct cfg_service *service);

int ctl_show_add_total(json_t *object, const struct dp_backend_counts *total);

/** Whether a service, by its place in force, is announced, and why not. */
int ctl_show_add_announced(json_t *object, const struct ctl_daemon *daemon, size_t place);

/** A backend's figures behind other members, added to what total has of its service. */
void ctl_show_put_figures(const struct ctl_daemon *daemon, size_t service, size_t backend,
	struct ctl_json *json, struct dp_backend_counts *total);

/**
 * Begin an object: the keys of a backend in a file that each has, and since when its state is
 * what it is. Its end is the caller's.
 */
void ctl_show_put_backend(const struct ctl_daemon *daemon, size_t service, size_t backend,
	struct ctl_json *json);

/** Whether a backend has a next hop, behind other members. */
void ctl_show_put_reached(const struct ctl_daemon *daemon, size_t service, size_t backend,
	struct ctl_json *json);

/** What is known of a backend's health, behind other members. */
void ctl_show_put_health(const struct ctl_daemon *daemon, const struct cfg_service *service,
	const struct cfg_backend *backend, struct ctl_json *json);

/**
 * A service with its backends: behind the members of an object, which is taken over, a list
 * that was written before.
 */
void ctl_show_put_backends(struct ctl_json *json, json_t *object, struct ctl_json *list);

#endif
