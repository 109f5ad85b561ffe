/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_METHODS_H
#define CTL_METHODS_H

/**
 * @file
 * The methods of the control protocol; ctl_proto.h has their names. Their context is the
 * struct ctl_daemon.
 */

#include "ctl_rpc.h"

/** All methods, n of them. */
const struct ctl_method *ctl_methods(size_t *n);

#endif
