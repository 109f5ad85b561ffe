/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "lb_compiler.h"
#include "lb_ketama.h"
#include "lb_limits.h"

#define SERVERS_MAX 9u

static void
md5(const void *bytes, size_t n_bytes, uint8_t digest[LB_KETAMA_DIGEST_BYTES])
{
	EXPECT(EVP_Digest(bytes, n_bytes, digest, NULL, EVP_md5(), NULL) == 1, "MD5");
}

/** Servers with their points; free_ring() it. */
struct ring {
	char names[SERVERS_MAX][32];
	struct lb_ketama_server servers[SERVERS_MAX];
	size_t n_points;
	struct lb_ketama_point *points;
};

static void
make_ring(struct ring *r, size_t n, const char *format, const uint32_t *weights)
{
	for (size_t i = 0; i < n; i++) {
		const int n_bytes = snprintf(r->names[i], sizeof(r->names[i]), format, (int)i);

		r->servers[i] = (struct lb_ketama_server){
			.name = r->names[i],
			.name_bytes = (uint32_t)n_bytes,
			.weight = weights != NULL ? weights[i] : 1,
		};
	}
	r->n_points = lb_ketama_count(r->servers, n);
	r->points = malloc(r->n_points * sizeof(*r->points));
	EXPECT(lb_ketama_fill(r->servers, n, md5, r->points) == 0, "fill");
}

static void
free_ring(struct ring *r)
{
	free(r->points);
}

static uint32_t
owner_of(const struct ring *r, const char *key)
{
	return lb_ketama_owner(r->points, r->n_points, lb_ketama_hash(key, strlen(key), md5));
}

static void
test_keys_of_spymemcached(void **state)
{
	/* As the tests of spymemcached have them; the first four are there for libketama. */
	static const struct {
		const char *key;
		size_t n;
		uint32_t owner;
	} rows[] = {
		{"36", 5, 2},
		{"10037", 5, 3},
		{"22051", 5, 1},
		{"49044", 5, 4},
		{"dustin", 4, 0},
		{"noelani", 4, 2},
		{"some other key", 4, 0},
		{"dustin", 5, 0},
		{"noelani", 5, 2},
		{"some other key", 5, 4},
		{"V5XS8C8N", 4, 3},
		{"8KR2DKR2", 4, 3},
		{"L9KH6X4X", 4, 3},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct ring r;

		make_ring(&r, rows[i].n, "127.0.0.1:1000%d", NULL);
		EXPECT(owner_of(&r, rows[i].key) == rows[i].owner, "%s of %zu: %u", rows[i].key,
			rows[i].n, owner_of(&r, rows[i].key));
		EXPECT(r.points[r.n_points - 1].at == 4294887009u, "the last point");
		free_ring(&r);
	}
}

static void
test_a_key_past_the_last_point_is_the_first_points(void **state)
{
	/* libmemcached's test of its ring: eight servers, and a key that lies behind. */
	static const uint32_t weights[] = {0, 600, 300, 200, 350, 1000, 800, 950, 100};
	struct ring r;

	(void)state;
	make_ring(&r, 9, "10.0.1.%d:11211", weights);
	EXPECT(lb_ketama_hash("VDEAAAAA", 8, md5) == 0xfffcd1b5, "0x%08x",
		lb_ketama_hash("VDEAAAAA", 8, md5));
	EXPECT(r.points[r.n_points - 1].at < 0xfffcd1b5, "it lies behind");
	EXPECT(owner_of(&r, "VDEAAAAA") == r.points[0].server, "%u", owner_of(&r, "VDEAAAAA"));
	free_ring(&r);
}

static void
test_points_of_weights(void **state)
{
	/* 40 * n * w / sum digests of four points each, rounded down. */
	static const struct {
		const char *what;
		size_t n;
		uint32_t weights[8];
		uint32_t n_digests[8];
	} rows[] = {
		{"one", 1, {7}, {40}},
		{"equal", 3, {5, 5, 5}, {40, 40, 40}},
		{"1 to 3", 2, {1, 3}, {20, 60}},
		{"a third is 26.67", 2, {1, 2}, {26, 53}},
		{"too light for any", 2, {1, 1000}, {0, 79}},
		{"weight 0 counts as a server", 2, {0, 1}, {0, 80}},
		{"eight of libmemcached's", 8, {600, 300, 200, 350, 1000, 800, 950, 100},
			{44, 22, 14, 26, 74, 59, 70, 7}},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		uint32_t n_points[8] = {0};
		struct ring r;

		make_ring(&r, rows[i].n, "host-%d:11211", rows[i].weights);
		for (size_t p = 0; p < r.n_points; p++)
			n_points[r.points[p].server]++;
		for (size_t b = 0; b < rows[i].n; b++)
			EXPECT(n_points[b] == 4 * rows[i].n_digests[b], "%s: %zu has %u points",
				rows[i].what, b, n_points[b]);
		free_ring(&r);
	}
}

static void
test_points_are_the_words_of_the_digests(void **state)
{
	size_t n_found = 0;
	struct ring r;

	(void)state;
	make_ring(&r, 3, "10.9.8.%d:7", NULL);
	for (size_t p = 1; p < r.n_points; p++)
		EXPECT(r.points[p - 1].at < r.points[p].at, "point %zu", p);
	for (int k = 0; k < 40; k++) {
		uint8_t digest[LB_KETAMA_DIGEST_BYTES];
		char text[32];
		const int n_bytes = snprintf(text, sizeof(text), "10.9.8.1:7-%d", k);

		md5(text, (size_t)n_bytes, digest);
		for (size_t word = 0; word < 4; word++) {
			const uint8_t *d = digest + 4 * word;
			const uint32_t at = (uint32_t)d[3] << 24 | (uint32_t)d[2] << 16 |
					    (uint32_t)d[1] << 8 | d[0];

			for (size_t p = 0; p < r.n_points; p++)
				n_found += r.points[p].at == at && r.points[p].server == 1;
			EXPECT(lb_ketama_owner(r.points, r.n_points, at) == 1,
				"a point is its own");
		}
	}
	EXPECT(n_found == 160, "%zu of the second's points", n_found);
	free_ring(&r);
}

/** Every digest is the same. */
static void
constant_digest(const void *bytes, size_t n_bytes, uint8_t digest[LB_KETAMA_DIGEST_BYTES])
{
	(void)bytes;
	(void)n_bytes;
	memset(digest, 0x80, LB_KETAMA_DIGEST_BYTES);
}

static void
test_of_equal_points_the_earlier_server_wins(void **state)
{
	static const struct lb_ketama_server servers[] = {{"b", 1, 1}, {"a", 1, 1}};
	struct lb_ketama_point *points = malloc(320 * sizeof(*points));

	(void)state;
	EXPECT(lb_ketama_fill(servers, 2, constant_digest, points) == 0, "fill");
	EXPECT(lb_ketama_owner(points, 320, 0x80808080) == 0, "at the point");
	EXPECT(lb_ketama_owner(points, 320, 0x80808081) == 0, "after it");
	EXPECT(lb_ketama_owner(points, 320, 0) == 0, "before it");
	free(points);
}

static void
test_a_name_may_have_255_bytes(void **state)
{
	char *name = malloc(LB_NAME_BYTES_MAX);
	const struct lb_ketama_server servers[] = {{"x", 1, 0},
		{name, LB_NAME_BYTES_MAX, LB_WEIGHT_MAX}};
	struct lb_ketama_point *points = malloc(320 * sizeof(*points));

	(void)state;
	memset(name, 'n', LB_NAME_BYTES_MAX);
	EXPECT(lb_ketama_fill(servers, 2, md5, points) == 0, "fill");
	free(points);
	free(name);
}

static void
test_limits(void **state)
{
	static struct lb_ketama_server servers[LB_SERVICE_BACKENDS_MAX + 1];
	static const struct {
		const char *what;
		size_t n;
		struct lb_ketama_server server;
		int want;
	} rows[] = {
		{"nobody", 0, {"a", 1, 1}, -ENOENT},
		{"no weight", 3, {"a", 1, 0}, -ENOENT},
		{"no name", 3, {"a", 0, 1}, -EINVAL},
		{"too long a name", 3, {"a", LB_NAME_BYTES_MAX + 1, 1}, -EINVAL},
		{"too heavy", 3, {"a", 1, LB_WEIGHT_MAX + 1}, -EINVAL},
		{"too many", LB_SERVICE_BACKENDS_MAX + 1, {"a", 1, 1}, -E2BIG},
	};
	struct lb_ketama_point point = {1, 2};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		for (size_t b = 0; b < rows[i].n; b++)
			servers[b] = rows[i].server;
		EXPECT(lb_ketama_fill(servers, rows[i].n, md5, &point) == rows[i].want, "%s",
			rows[i].what);
		EXPECT(point.at == 1 && point.server == 2, "untouched: %s", rows[i].what);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_of_spymemcached),
		cmocka_unit_test(test_a_key_past_the_last_point_is_the_first_points),
		cmocka_unit_test(test_points_of_weights),
		cmocka_unit_test(test_points_are_the_words_of_the_digests),
		cmocka_unit_test(test_of_equal_points_the_earlier_server_wins),
		cmocka_unit_test(test_a_name_may_have_255_bytes),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
