/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_model.h"

const char *const cfg_health_words[] = {"none", "tcp", "http", "https", "udp", "icmp", NULL};
const char *const cfg_all_down_words[] = {"keep", "drop", NULL};

static_assert(LB_N_ELEMENTS(cfg_health_words) == CFG_N_HEALTH_TYPES + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_all_down_words) == CFG_N_ALL_DOWNS + 1, "a word each");

void
cfg_health_init(struct cfg_health *health)
{
	*health = (struct cfg_health){
		.is_verified = true,
		.rise = 2,
		.fall = 3,
		.interval_ns = UINT64_C(2000000000),
		.timeout_ns = UINT64_C(1000000000),
		.half_life_ns = UINT64_C(60000000000),
	};
}

void
cfg_health_fini(struct cfg_health *health)
{
	free(health->path);
	free(health->host);
}

int
cfg_health_copy(const struct cfg_health *health, struct cfg_health *out)
{
	struct cfg_health copy = *health;

	copy.path = health->path != NULL ? strdup(health->path) : NULL;
	copy.host = health->host != NULL ? strdup(health->host) : NULL;
	if ((copy.path == NULL && health->path != NULL) ||
		(copy.host == NULL && health->host != NULL)) {
		cfg_health_fini(&copy);
		return -ENOMEM;
	}
	*out = copy;
	return 0;
}

static bool
is_same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool
cfg_health_equal(const struct cfg_health *a, const struct cfg_health *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == CFG_HEALTH_NONE)
		return true;
	if (a->port != b->port || a->wants_reply != b->wants_reply ||
		a->is_verified != b->is_verified || a->is_tunnelled != b->is_tunnelled ||
		a->rise != b->rise || a->fall != b->fall || a->interval_ns != b->interval_ns ||
		a->timeout_ns != b->timeout_ns || a->half_life_ns != b->half_life_ns ||
		a->n_expect != b->n_expect || !is_same_text(a->path, b->path) ||
		!is_same_text(a->host, b->host))
		return false;
	for (size_t i = 0; i < a->n_expect; i++) {
		if (a->expect[i].first != b->expect[i].first ||
			a->expect[i].last != b->expect[i].last)
			return false;
	}
	return true;
}
