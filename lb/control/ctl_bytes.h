/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_BYTES_H
#define CTL_BYTES_H

/**
 * @file
 * A queue of bytes: put in at the end, taken from the front, bounded by who uses it.
 */

#include <stddef.h>

#include "lb_compiler.h"

/** All zero is an empty one. */
struct ctl_bytes {
	char *data; /**< NULL: no memory is held */
	size_t front;
	size_t end;
	size_t capacity;
};

static inline size_t
ctl_bytes_length(const struct ctl_bytes *bytes)
{
	return bytes->end - bytes->front;
}

/** NULL where no memory is held. */
static inline char *
ctl_bytes_front(struct ctl_bytes *bytes)
{
	return bytes->data == NULL ? NULL : bytes->data + bytes->front;
}

/**
 * Make room for n bytes at the end; moves what is there.
 *
 * @retval -ENOMEM  No memory; nothing has changed.
 */
int ctl_bytes_reserve(struct ctl_bytes *bytes, size_t n) lb_must_check;

/** @retval -ENOMEM  No memory; nothing has changed. */
int ctl_bytes_append(struct ctl_bytes *bytes, const void *data, size_t n) lb_must_check;

/** Take n bytes away from the front; memory is given back with the last. */
void ctl_bytes_drop(struct ctl_bytes *bytes, size_t n);

void ctl_bytes_fini(struct ctl_bytes *bytes);

#endif
