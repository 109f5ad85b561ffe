/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DECAP_SHOW_H
#define DECAP_SHOW_H

/** @file The counters of an interface's shunt-decap, on stdout. */

#include <stdbool.h>

#include "lb_compiler.h"

/** @return 0, or a negative errno; told on stderr. */
int decap_show(const char *interface, bool is_json) lb_must_check;

#endif
