/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_state.h"

void
hc_state_init(struct hc_state *state, bool is_trusted, uint64_t now_ns)
{
	*state = (struct hc_state){
		.since_ns = now_ns,
		.level = HC_UNKNOWN,
		.is_trusted = is_trusted,
	};
}

void
hc_state_begin(struct hc_state *state, const struct hc_rules *rules, uint64_t now_ns)
{
	state->begin_ns = rules->slow_start_ns > 0 ? now_ns : 0;
}

void
hc_state_forgive(struct hc_state *state)
{
	state->damp = (struct hc_damp){0};
}

static void
change_level(struct hc_state *state, const struct hc_rules *rules, bool is_up, uint64_t now_ns)
{
	const bool was_trusted = state->level == HC_UNKNOWN && state->is_trusted;
	const bool has_failed = !is_up && (state->level == HC_UP || was_trusted);

	state->level = is_up ? HC_UP : HC_DOWN;
	state->since_ns = now_ns;
	state->n_against = 0;
	if (has_failed && rules->half_life_ns > 0)
		hc_damp_fail(&state->damp, rules->half_life_ns, now_ns);
	if (is_up && !was_trusted)
		hc_state_begin(state, rules, now_ns);
}

bool
hc_state_take(struct hc_state *state, const struct hc_rules *rules, bool has_passed,
	uint64_t now_ns)
{
	const bool is_first = state->level == HC_UNKNOWN && (has_passed || !state->is_trusted);
	const uint32_t n_needed = is_first ? 1 : has_passed ? rules->rise : rules->fall;

	if (state->level == (has_passed ? HC_UP : HC_DOWN)) {
		state->n_against = 0;
		return false;
	}
	state->n_against++;
	if (state->n_against < n_needed)
		return false;
	change_level(state, rules, has_passed, now_ns);
	return true;
}

static bool
is_damped(const struct hc_state *state, const struct hc_rules *rules, uint64_t now_ns)
{
	return rules->half_life_ns > 0 &&
	       hc_damp_is_out(&state->damp, rules->half_life_ns, now_ns);
}

enum hc_use
hc_state_use(const struct hc_state *state, const struct hc_rules *rules, uint64_t now_ns)
{
	if (state->level == HC_DOWN || (state->level == HC_UNKNOWN && !state->is_trusted))
		return HC_USE_NO;
	return is_damped(state, rules, now_ns) ? HC_USE_LAST : HC_USE_YES;
}

/* When one that flaps comes back, its share begins only then. */
static uint64_t
find_begin(const struct hc_state *state, const struct hc_rules *rules)
{
	const uint64_t back_ns = rules->half_life_ns > 0
					 ? hc_damp_back_ns(&state->damp, rules->half_life_ns)
					 : 0;

	return back_ns > state->begin_ns ? back_ns : state->begin_ns;
}

uint32_t
hc_state_share(const struct hc_state *state, const struct hc_rules *rules, uint64_t now_ns)
{
	uint64_t begin_ns;

	if (state->begin_ns == 0 || rules->slow_start_ns == 0)
		return HC_SHARE_WHOLE;
	begin_ns = find_begin(state, rules);
	if (now_ns <= begin_ns)
		return 1;
	if (now_ns - begin_ns >= rules->slow_start_ns)
		return HC_SHARE_WHOLE;
	return (uint32_t)(1 +
			  (now_ns - begin_ns) * (HC_SHARE_WHOLE - 1) / rules->slow_start_ns);
}

void
hc_state_settle(struct hc_state *state, const struct hc_rules *rules, uint64_t now_ns)
{
	if (hc_state_share(state, rules, now_ns) == HC_SHARE_WHOLE)
		state->begin_ns = 0;
}

bool
hc_state_is_moving(const struct hc_state *state, const struct hc_rules *rules, uint64_t now_ns)
{
	return is_damped(state, rules, now_ns) ||
	       hc_state_share(state, rules, now_ns) < HC_SHARE_WHOLE;
}
