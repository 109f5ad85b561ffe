/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DECAP_OPTIONS_H
#define DECAP_OPTIONS_H

/** @file What shunt-decap was told on its command line. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_addr.h"
#include "lb_compiler.h"
#include "shunt_decap.h"

enum decap_action {
	DECAP_RUN,
	DECAP_SHOW,
	DECAP_DETACH,
	DECAP_HELP,
	DECAP_VERSION,
};

enum decap_mode { DECAP_AUTO, DECAP_NATIVE, DECAP_GENERIC };

struct decap_options {
	enum decap_action action;
	enum decap_mode mode;
	const char *interface;
	uint16_t gue_port; /**< host order */
	bool is_json;
	bool is_verbose;
	size_t n_services;
	size_t n_outers;
	struct lb_prefix services[DECAP_SERVICES_MAX];
	struct lb_addr outers[DECAP_OUTERS_MAX]; /**< besides the interface's own */
};

/**
 * Read the command line. What is wrong with it is told on stderr.
 *
 * @param[in,out] out  All zero; on error there may be a part in it.
 * @retval 0        Success.
 * @retval -EINVAL  Bad usage.
 */
int decap_options_parse(int argc, char *argv[], struct decap_options *out) lb_must_check;

#endif
