/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PORT_WHY_H
#define DP_PORT_WHY_H

/**
 * @file
 * Why a device is not there, and what cures it: asked of the machine once it has failed.
 */

#include "dp.h"

/** Tell why the EAL has no device for a port, a line. */
void dp_port_say_why_missing(const struct dp_port_conf *conf, FILE *messages);

/** What may cure a port's device that does not start. @param error  The EAL's -errno. */
const char *dp_port_find_cure(const struct dp_port_conf *conf, int error);

/** Tell why a port's twin cannot be made, a line. @param error  The EAL's -errno. */
void dp_port_say_why_no_twin(const struct dp_port_conf *conf, int error, FILE *messages);

#endif
