/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "cfg_check_parts.h"
#include "lb_limits.h"
#include "lb_prime.h"

/*
 * Where hashes decide, a backend of a share of s slots has none about as often as
 * sqrt(2 * pi * s) * e^(-s * pi^2 / 6) says with stable (lb_stable.h), and e^-s with
 * rendezvous: for s = 10, once in a million, and in twenty thousand.
 */
#define SAFE_SLOTS 10u

/** A share by points that differs from that by weight by more than one in so many is told. */
#define POINTS_OFF_MAX_INVERSE 10u

/** The first backend that something is to be said of, and how many there are. */
struct finding {
	const struct cfg_backend *first;
	size_t n;
};

static void
find(struct finding *finding, const struct cfg_backend *backend)
{
	if (finding->n++ == 0)
		finding->first = backend;
}

static const char *
backends_word(const struct finding *finding)
{
	return finding->n == 1 ? "backend" : "backends";
}

/** The share of slots below which a backend is told of. */
static uint32_t
least_share(const struct cfg_service *service)
{
	/* Maglev gives each one at least, and the largest remainder misses by less than one. */
	const bool is_bounded = service->algorithm == CFG_MAGLEV ||
				(service->algorithm == CFG_STABLE && service->overload == 0);

	return is_bounded ? 1 : SAFE_SLOTS;
}

/** The size at which the least weight has its share, or 0 where none is large enough. */
static uint32_t
find_size(const struct cfg_service *service, uint64_t total, uint32_t weight)
{
	const uint64_t n_slots = (total * least_share(service) + weight - 1) / weight;
	const uint32_t size = n_slots < LB_SLOTS_MAX ? lb_next_prime((uint32_t)n_slots) : 0;
	const bool is_slow = service->algorithm == CFG_RENDEZVOUS &&
			     (uint64_t)size * service->n_backends > LB_HRW_SCORES_MAX;

	return is_slow ? 0 : size;
}

static void
tell_shares(const struct cfg_service *service, const struct finding *small, uint64_t total,
	uint32_t least_weight, struct cfg_errors *errors)
{
	const uint32_t share = least_share(service);
	const uint64_t tenths = (uint64_t)small->first->weight * service->n_slots * 10 / total;
	const uint32_t size = find_size(service, total, least_weight);
	const char *word = cfg_algorithm_words[service->algorithm];
	char larger[64] = "weights that differ less";
	char what[96] = "it may have none";

	if (service->algorithm == CFG_MAGLEV)
		(void)snprintf(what, sizeof(what),
			"it has one nonetheless, which is more than its share");
	else if (share > 1)
		(void)snprintf(what, sizeof(what),
			"%s may leave one of less than %" PRIu32 " without any", word, share);
	if (size != 0)
		(void)snprintf(larger, sizeof(larger), "size: %" PRIu32 ", or a larger weight",
			size);
	cfg_warning(errors, small->first->pos,
		"the weight %" PRIu32 " of %" PRIu64 " is a share of %" PRIu64 ".%" PRIu64
		" of %" PRIu32 " slots (%zu such %s), and %s; expected %s%s",
		small->first->weight, total, tenths / 10, tenths % 10, service->n_slots,
		small->n, backends_word(small), what, larger,
		share > 1 ? ", or algorithm: maglev" : "");
}

static void
check_slots(const struct cfg_service *service, uint64_t total, struct cfg_errors *errors)
{
	const uint64_t least = least_share(service) * total;
	uint32_t least_weight = UINT32_MAX;
	struct finding small = {0};

	for (size_t i = 0; i < service->n_backends; i++) {
		const uint32_t weight = service->backends[i].weight;

		if (weight == 0 || (uint64_t)weight * service->n_slots >= least)
			continue;
		least_weight = weight < least_weight ? weight : least_weight;
		find(&small, &service->backends[i]);
	}
	if (small.n > 0)
		tell_shares(service, &small, total, least_weight, errors);
}

uint32_t
cfg_check_points(uint32_t weight)
{
	return (LB_RING_POINTS_PER_100 * weight + 50) / 100;
}

/** As points are whole, small weights are not in proportion. */
static void
check_points(const struct cfg_service *service, uint64_t total, struct cfg_errors *errors)
{
	struct finding off = {0};
	uint64_t n_points = 0;

	for (size_t i = 0; i < service->n_backends; i++)
		n_points += cfg_check_points(service->backends[i].weight);
	for (size_t i = 0; i < service->n_backends; i++) {
		const uint32_t weight = service->backends[i].weight;
		const uint64_t has = cfg_check_points(weight) * total;
		const uint64_t due = weight * n_points;

		if ((has > due ? has - due : due - has) * POINTS_OFF_MAX_INVERSE > due)
			find(&off, &service->backends[i]);
	}
	if (off.n == 0)
		return;
	cfg_warning(errors, off.first->pos,
		"the weight %" PRIu32 " of %" PRIu64 " is %" PRIu32 " of %" PRIu64
		" points on the ring, as they are whole, and so more than a tenth off its "
		"share (%zu such %s); expected larger weights in the same proportions; "
		"multiples of 5 are exact",
		off.first->weight, total, cfg_check_points(off.first->weight), n_points, off.n,
		backends_word(&off));
}

void
cfg_check_shares(const struct cfg_service *service, struct cfg_errors *errors)
{
	uint64_t total = 0;

	for (size_t i = 0; i < service->n_backends; i++) {
		if (service->backends[i].bad != 0)
			return;
		total += service->backends[i].weight;
	}
	if (service->n_backends > 0 && total == 0)
		cfg_warning(errors, service->pos,
			"all backends have weight 0, so the service has none to send to; "
			"give one a weight from 1 to %u",
			LB_WEIGHT_MAX);
	if (total == 0)
		return;
	check_slots(service, total, errors);
	if (service->algorithm == CFG_RING)
		check_points(service, total, errors);
}
