/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 4096u

int
ctl_bytes_reserve(struct ctl_bytes *bytes, size_t n)
{
	const size_t length = ctl_bytes_length(bytes);
	size_t capacity = bytes->capacity;
	char *data;

	if (n <= capacity - bytes->end)
		return 0;
	/* Moved only where as much is free as is moved, so that a byte is moved but once. */
	if (length <= bytes->front && n <= capacity - length) {
		memcpy(bytes->data, bytes->data + bytes->front, length);
		bytes->front = 0;
		bytes->end = length;
		return 0;
	}
	capacity = 2 * length + (n > FIRST_BYTES ? n : FIRST_BYTES);
	data = malloc(capacity);
	if (data == NULL)
		return -ENOMEM;
	if (length > 0)
		memcpy(data, bytes->data + bytes->front, length);
	free(bytes->data);
	*bytes = (struct ctl_bytes){.data = data, .end = length, .capacity = capacity};
	return 0;
}

int
ctl_bytes_append(struct ctl_bytes *bytes, const void *data, size_t n)
{
	const int ret = ctl_bytes_reserve(bytes, n);

	if (ret != 0)
		return ret;
	memcpy(bytes->data + bytes->end, data, n);
	bytes->end += n;
	return 0;
}

void
ctl_bytes_drop(struct ctl_bytes *bytes, size_t n)
{
	bytes->front += n;
	if (bytes->front == bytes->end)
		ctl_bytes_fini(bytes);
}

void
ctl_bytes_fini(struct ctl_bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct ctl_bytes){0};
}
