/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_damp.h"

#include "lb_compiler.h"

/* 2^32 * 2^(-1/2), 2^32 * 2^(-1/4), ...: a factor for each bit of a fraction of a half-life. */
static const uint32_t roots[] = {3037000500, 3611622603, 3938502376, 4112874773, 4202935003,
	4248701965, 4271771996, 4283353945, 4289156690, 4292061010, 4293513907, 4294240540,
	4294603903, 4294785595, 4294876445, 4294921870};

/* A half-life is split into as many parts. */
#define FRACTION_BITS LB_N_ELEMENTS(roots)

uint32_t
hc_damp_decay(uint32_t penalty, uint64_t elapsed_ns, uint64_t half_life_ns)
{
	const uint64_t n_halves = elapsed_ns / half_life_ns;
	const uint64_t rest_ns = elapsed_ns % half_life_ns;
	const uint64_t fraction = (rest_ns << FRACTION_BITS) / half_life_ns;
	uint64_t left;

	if (n_halves >= 64)
		return 0;
	left = (uint64_t)penalty << 32 >> n_halves;
	for (unsigned int i = 0; i < FRACTION_BITS; i++) {
		if ((fraction >> (FRACTION_BITS - 1 - i) & 1) == 0)
			continue;
		/* The penalty has 14 bits, and so left 46 at most: 14 of them are let go. */
		left = (left >> 14) * roots[i] >> 18;
	}
	return (uint32_t)(left >> 32);
}

void
hc_damp_fail(struct hc_damp *damp, uint64_t half_life_ns, uint64_t now_ns)
{
	const bool was_out = hc_damp_is_out(damp, half_life_ns, now_ns);
	const uint32_t left = hc_damp_decay(damp->penalty, now_ns - damp->at_ns, half_life_ns);
	const uint32_t sum = left + HC_DAMP_PENALTY;

	damp->penalty = sum < HC_DAMP_CEILING ? sum : HC_DAMP_CEILING;
	damp->at_ns = now_ns;
	damp->is_out = was_out || damp->penalty > HC_DAMP_SUPPRESS;
}

bool
hc_damp_is_out(const struct hc_damp *damp, uint64_t half_life_ns, uint64_t now_ns)
{
	return damp->is_out && hc_damp_decay(damp->penalty, now_ns - damp->at_ns,
				       half_life_ns) >= HC_DAMP_REUSE;
}

uint64_t
hc_damp_back_ns(const struct hc_damp *damp, uint64_t half_life_ns)
{
	uint64_t low = 0;
	uint64_t high = 5 * half_life_ns;

	if (!damp->is_out)
		return 0;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;

		if (hc_damp_decay(damp->penalty, middle, half_life_ns) >= HC_DAMP_REUSE)
			low = middle + 1;
		else
			high = middle;
	}
	return damp->at_ns + low;
}
