/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BURST_FRAMES_H
#define BURST_FRAMES_H

/**
 * @file
 * One frame of each kind that the packet path treats in a way of its own, for burst_plane.h's
 * configuration.
 */

#include <stddef.h>
#include <stdint.h>

#include "packet_builder.h"

size_t burst_frames_count(void);

/** A frame's kind, in words. @param i  Below burst_frames_count(). */
const char *burst_frames_name(size_t i);

/** @param[out] out  Room for PB_FRAME_MAX bytes. @return the frame's length. */
size_t burst_frames_build(size_t i, uint8_t *out);

#endif
