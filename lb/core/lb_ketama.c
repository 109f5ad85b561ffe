/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_ketama.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lb_limits.h"

#define DIGITS_MAX 10u /* of a number of 32 bits */
#define TEXT_BYTES (LB_NAME_BYTES_MAX + 1 + DIGITS_MAX)

static uint64_t
sum_weights(const struct lb_ketama_server *servers, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += servers[i].weight;
	return sum;
}

/** Digests of one of n servers; their weights add up to sum, which is not 0. */
static uint32_t
count_digests(const struct lb_ketama_server *server, size_t n, uint64_t sum)
{
	return (uint32_t)(LB_KETAMA_DIGESTS * (uint64_t)n * server->weight / sum);
}

size_t
lb_ketama_count(const struct lb_ketama_server *servers, size_t n)
{
	const uint64_t sum = sum_weights(servers, n);
	size_t n_points = 0;

	for (size_t i = 0; i < n && sum > 0; i++)
		n_points += (size_t)LB_KETAMA_POINTS * count_digests(&servers[i], n, sum);
	return n_points;
}

static uint32_t
read_point(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/** Write "-" and k in decimal; returns how many bytes. */
static size_t
write_number(uint8_t *to, uint32_t k)
{
	uint8_t digits[DIGITS_MAX];
	size_t n_digits = 0;

	do {
		digits[n_digits++] = (uint8_t)('0' + k % 10);
		k /= 10;
	} while (k > 0 && n_digits < DIGITS_MAX);

	to[0] = '-';
	for (size_t i = 0; i < n_digits; i++)
		to[1 + i] = digits[n_digits - 1 - i];
	return 1 + n_digits;
}

static int
compare_points(const void *a, const void *b)
{
	const struct lb_ketama_point *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->server > y->server) - (x->server < y->server);
}

static int
check_servers(const struct lb_ketama_server *servers, size_t n)
{
	if (n > LB_SERVICE_BACKENDS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		if (servers[i].name_bytes < 1 || servers[i].name_bytes > LB_NAME_BYTES_MAX)
			return -EINVAL;
		if (servers[i].weight > LB_WEIGHT_MAX)
			return -EINVAL;
	}
	return lb_ketama_count(servers, n) > 0 ? 0 : -ENOENT;
}

int
lb_ketama_fill(const struct lb_ketama_server *servers, size_t n, lb_ketama_digest_fn digest,
	struct lb_ketama_point *points)
{
	const int ret = check_servers(servers, n);
	size_t n_points = 0;
	uint64_t sum;

	if (ret != 0)
		return ret;

	sum = sum_weights(servers, n);
	for (size_t i = 0; i < n; i++) {
		const uint32_t n_digests = count_digests(&servers[i], n, sum);
		const size_t name_bytes = servers[i].name_bytes;
		uint8_t text[TEXT_BYTES], bytes[LB_KETAMA_DIGEST_BYTES];

		memcpy(text, servers[i].name, name_bytes);
		for (uint32_t k = 0; k < n_digests; k++) {
			digest(text, name_bytes + write_number(text + name_bytes, k), bytes);
			for (size_t p = 0; p < LB_KETAMA_POINTS; p++)
				points[n_points++] = (struct lb_ketama_point){
					.at = read_point(bytes + 4 * p),
					.server = (uint32_t)i,
				};
		}
	}
	qsort(points, n_points, sizeof(*points), compare_points);
	return 0;
}

uint32_t
lb_ketama_hash(const void *key, size_t n_bytes, lb_ketama_digest_fn digest)
{
	uint8_t bytes[LB_KETAMA_DIGEST_BYTES];

	digest(key, n_bytes, bytes);
	return read_point(bytes);
}

uint32_t
lb_ketama_owner(const struct lb_ketama_point *points, size_t n_points, uint32_t hash)
{
	size_t low = 0, high = n_points;

	/* All points before low are below the hash, none from high on. */
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (points[middle].at < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return points[low < n_points ? low : 0].server;
}
