/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_TELEMETRY_H
#define DP_TELEMETRY_H

/**
 * @file
 * Where the EAL's telemetry socket lies: in a folder that is named after this daemon, so that
 * two of one machine do not meet. Its commands are in dp.h.
 */

#include "lb_compiler.h"

/** Room for the EAL's --file-prefix. */
#define DP_TELEMETRY_PREFIX_BYTES 49u

/** The --file-prefix of an instance: the end of its name, with '-' for what is odd in a file's.
 */
void dp_telemetry_format_prefix(const char *instance,
	char out[static DP_TELEMETRY_PREFIX_BYTES]);

/**
 * Make the folder that the EAL will put its socket in, as the EAL would fail to start without.
 * It is removed at exit, where it is empty then.
 *
 * @param[out] lock  To be given to dp_telemetry_unlock_folder() when the EAL has started.
 * @retval -errno    There can be no socket: start without telemetry.
 */
int dp_telemetry_lock_folder(const char *prefix, int *lock) lb_must_check;

/** Until here no other daemon of the same name, on its way out, removes the folder. */
void dp_telemetry_unlock_folder(int lock);

#endif
