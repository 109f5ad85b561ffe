/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_HEALTH_H
#define CTL_HEALTH_H

/**
 * @file
 * The health of backends, as control knows it: whom to check, what came of it, and how many of
 * its slots each backend keeps. What is known of a backend outlives changes of the
 * configuration that are not about its address or whether it is checked.
 *
 * Not thread-safe: the control thread's.
 */

#include "cfg_model.h"
#include "ctl_loop.h"
#include "ctl_netlink.h"
#include "ctl_view.h"
#include "dp.h"
#include "hc_service.h"

struct ctl_health; /* opaque */

/** Who is used, and how far, has changed. */
typedef void (*ctl_health_fn)(void *context);

/** What is pointed to outlives what is made of it. */
struct ctl_health_conf {
	struct ctl_loop *loop;
	struct ctl_netlink *netlink; /**< for checks through the tunnel, as is dp */
	struct dp *dp;
	ctl_health_fn on_change; /**< called by the loop */
	void *context;
};

/** What is known of a backend. */
struct ctl_health_figures {
	bool is_checked;
	enum hc_level level;
	enum hc_use use;   /**< by health alone */
	uint32_t share;    /**< 1..HC_SHARE_WHOLE: of its slots, where it is used */
	uint64_t since_ns; /**< how long level is what it is */
	uint64_t back_ns;  /**< of one that flaps: until it is used again; otherwise 0 */
	const char
		*error; /**< the last one; NULL: none. Good until the next turn of the loop */
};

/** Checks so far, by what came of them. */
struct ctl_health_counts {
	uint64_t passed;
	uint64_t failed;
	uint64_t not_asked;
};

/**
 * Nobody is checked yet. The prober is started with the first that is.
 *
 * @retval -ENOMEM   No memory.
 */
int ctl_health_create(const struct ctl_health_conf *conf,
	struct ctl_health **out) lb_must_check;

/** NULL is allowed. */
void ctl_health_destroy(struct ctl_health *health);

/**
 * Check the backends of a model from here on.
 *
 * @param before  What is in force, whose backends are used until more is known of them; NULL at
 *                the start, when all are.
 * @retval -errno  No memory, or the prober cannot start: it goes on with what was before.
 */
int ctl_health_follow(struct ctl_health *health, const struct cfg_model *model,
	const struct cfg_model *before) lb_must_check;

/**
 * What was followed last is in force: what is known of others is forgotten, and those that are
 * checked through the tunnel can be, as the workers know them now.
 *
 * @param view  What is in force.
 */
void ctl_health_settle(struct ctl_health *health, const struct ctl_view *view);

/**
 * How many of its slots each backend keeps, as ctl_apply_set_shares() takes it.
 *
 * @param model     The one that was followed last.
 * @param[out] out  The caller's, to be freed; NULL: all are whole.
 * @param[out] n_unhealthy  Of each service, as ctl_ready_look() has it; likewise.
 * @retval -ENOMEM  No memory.
 */
int ctl_health_find_shares(struct ctl_health *health, const struct cfg_model *model,
	uint8_t **out, uint32_t **n_unhealthy) lb_must_check;

/** What is known of a backend of any model, by the names. */
void ctl_health_read(const struct ctl_health *health, const struct cfg_service *service,
	const struct cfg_backend *backend, struct ctl_health_figures *out);

/** The same of a service. Without memory it is not ready. */
struct hc_service ctl_health_read_service(const struct ctl_health *health,
	const struct cfg_service *service);

struct ctl_health_counts ctl_health_read_counts(const struct ctl_health *health);

/** A word for what is known: none, unknown, up, flapping or down. */
const char *ctl_health_word(const struct ctl_health_figures *figures);

#endif
