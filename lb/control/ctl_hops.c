/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_hops.h"

#include <assert.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <stdlib.h>
#include <string.h>

/* States in which the kernel would send packets to the address it has (its NUD_VALID). */
static const unsigned int usable_states =
	NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
/* States that the kernel leaves by itself, or never. */
static const unsigned int settled_states =
	NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_DELAY;

/* Both have what they are ordered by as their first member. */
static_assert(offsetof(struct ctl_neigh, place) == 0, "a neighbour is ordered by its place");
static_assert(offsetof(struct ctl_dst, addr) == 0, "a destination is ordered by its address");

static int
compare_places(const void *a, const void *b)
{
	const struct ctl_place *x = a;
	const struct ctl_place *y = b;

	if (x->if_index != y->if_index)
		return x->if_index < y->if_index ? -1 : 1;
	return memcmp(&x->addr, &y->addr, sizeof(x->addr));
}

static int
compare_addrs(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct lb_addr));
}

static struct ctl_neigh *
find_neigh(struct ctl_neigh neighs[], size_t n, const struct ctl_place *place)
{
	return n == 0 ? NULL : bsearch(place, neighs, n, sizeof(*neighs), compare_places);
}

static struct ctl_dst *
find_dst(struct ctl_dst dsts[], size_t n, const struct lb_addr *addr)
{
	return n == 0 ? NULL : bsearch(addr, dsts, n, sizeof(*dsts), compare_addrs);
}

/* Sort and keep each once. @return how many are left. */
static size_t
sort_unique(void *base, size_t n, size_t item_bytes, int (*compare)(const void *, const void *))
{
	uint8_t *items = base;
	size_t n_kept = 0;

	if (n == 0)
		return 0;
	qsort(base, n, item_bytes, compare);
	for (size_t i = 1; i < n; i++) {
		if (compare(items + n_kept * item_bytes, items + i * item_bytes) == 0)
			continue;
		n_kept++;
		memmove(items + n_kept * item_bytes, items + i * item_bytes, item_bytes);
	}
	return n_kept + 1;
}

/*
 * The neighbours behind dsts, with what was known of them.
 *
 * @param out  Room for n_dsts. @return how many they are.
 */
static size_t
gather_neighs(struct ctl_dst dsts[], size_t n_dsts, struct ctl_neigh old[], size_t n_old,
	struct ctl_neigh out[])
{
	size_t n = 0;

	for (size_t i = 0; i < n_dsts; i++)
		if (dsts[i].has_route)
			out[n++] = (struct ctl_neigh){
				.place = dsts[i].next,
				.wait_ms = CTL_HOPS_WAIT_MS,
			};
	n = sort_unique(out, n, sizeof(*out), compare_places);
	for (size_t i = 0; i < n; i++) {
		const struct ctl_neigh *before = find_neigh(old, n_old, &out[i].place);

		if (before != NULL)
			out[i] = *before;
	}
	for (size_t i = 0; i < n_dsts; i++)
		if (dsts[i].has_route)
			dsts[i].neigh_index = (size_t)(find_neigh(out, n, &dsts[i].next) - out);
	return n;
}

int
ctl_hops_set(struct ctl_hops *hops, const struct lb_addr addrs[], size_t n)
{
	const size_t n_room = n != 0 ? n : 1;
	struct ctl_hops next = {
		.dsts = calloc(n_room, sizeof(*next.dsts)),
		.neighs = calloc(n_room, sizeof(*next.neighs)),
		.spare_neighs = calloc(n_room, sizeof(*next.spare_neighs)),
	};

	if (next.dsts == NULL || next.neighs == NULL || next.spare_neighs == NULL) {
		ctl_hops_fini(&next);
		return -ENOMEM;
	}
	/* From here on nothing fails. */
	memcpy(next.kept, hops->kept, sizeof(next.kept));
	next.n_kept = hops->n_kept;
	for (size_t i = 0; i < n; i++) {
		next.dsts[i].addr = addrs[i];
		next.dsts[i].is_dirty = true;
	}
	next.n_dsts = sort_unique(next.dsts, n, sizeof(*next.dsts), compare_addrs);
	for (size_t i = 0; i < next.n_dsts; i++) {
		const struct ctl_dst *before =
			find_dst(hops->dsts, hops->n_dsts, &next.dsts[i].addr);

		if (before != NULL)
			next.dsts[i] = *before;
	}
	next.n_neighs = gather_neighs(next.dsts, next.n_dsts, hops->neighs, hops->n_neighs,
		next.neighs);
	ctl_hops_fini(hops);
	*hops = next;
	return 0;
}

void
ctl_hops_fini(struct ctl_hops *hops)
{
	free(hops->dsts);
	free(hops->neighs);
	free(hops->spare_neighs);
	*hops = (struct ctl_hops){0};
}

void
ctl_hops_gather(struct ctl_hops *hops)
{
	struct ctl_neigh *old = hops->neighs;

	hops->n_neighs = gather_neighs(hops->dsts, hops->n_dsts, old, hops->n_neighs,
		hops->spare_neighs);
	hops->neighs = hops->spare_neighs;
	hops->spare_neighs = old;
}

void
ctl_hops_doubt_all(struct ctl_hops *hops)
{
	for (size_t i = 0; i < hops->n_dsts; i++)
		hops->dsts[i].is_dirty = true;
	for (size_t i = 0; i < hops->n_neighs; i++) {
		hops->neighs[i].ask_at_ms = 0;
		hops->neighs[i].wait_ms = CTL_HOPS_WAIT_MS;
	}
}

void
ctl_hops_doubt_neighs(struct ctl_hops *hops)
{
	for (size_t i = 0; i < hops->n_neighs; i++)
		hops->neighs[i].is_known = false;
}

bool
ctl_hops_doubt_prefix(struct ctl_hops *hops, const struct lb_addr *addr, unsigned int n_bits)
{
	const struct lb_addr first = lb_addr_mask(addr, n_bits);
	size_t low = 0;
	size_t high = hops->n_dsts;
	bool has_any = false;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare_addrs(&hops->dsts[middle].addr, &first) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < hops->n_dsts; low++) {
		const struct lb_addr masked = lb_addr_mask(&hops->dsts[low].addr, n_bits);

		if (!lb_addr_equal(&masked, &first))
			break;
		hops->dsts[low].is_dirty = true;
		has_any = true;
	}
	return has_any;
}

struct ctl_neigh *
ctl_hops_neigh(const struct ctl_hops *hops, const struct ctl_place *place)
{
	return find_neigh(hops->neighs, hops->n_neighs, place);
}

bool
ctl_neigh_is_due(const struct ctl_neigh *neigh, uint64_t now_ms)
{
	if (!neigh->is_known)
		return true;
	return (neigh->state.nud & settled_states) == 0 && neigh->ask_at_ms <= now_ms;
}

void
ctl_neigh_note_asked(struct ctl_neigh *neigh, uint64_t now_ms)
{
	const uint32_t next_ms = neigh->wait_ms * 2;

	neigh->is_asked = true;
	neigh->ask_at_ms = now_ms + neigh->wait_ms;
	neigh->wait_ms = next_ms < CTL_HOPS_WAIT_MAX_MS ? next_ms : CTL_HOPS_WAIT_MAX_MS;
}

void
ctl_neigh_take(struct ctl_neigh *neigh, const struct ctl_neigh_state *state)
{
	neigh->is_known = true;
	neigh->is_asked = false;
	neigh->state = state != NULL ? *state : (struct ctl_neigh_state){.nud = NUD_NONE};
	if ((neigh->state.nud & usable_states) != 0)
		neigh->wait_ms = CTL_HOPS_WAIT_MS;
}

static bool
is_same_hop(const struct ctl_hop *a, const struct ctl_hop *b)
{
	return a->if_index == b->if_index && a->is_resolved == b->is_resolved &&
	       a->is_gateway == b->is_gateway && memcmp(&a->mac, &b->mac, sizeof(a->mac)) == 0;
}

static struct ctl_kept *
find_kept(struct ctl_hops *hops, int if_index)
{
	for (size_t i = 0; i < hops->n_kept; i++)
		if (hops->kept[i].if_index == if_index)
			return &hops->kept[i];
	return NULL;
}

void
ctl_hops_keep(struct ctl_hops *hops, int if_index)
{
	struct ctl_kept *kept = find_kept(hops, if_index);

	if (kept == NULL)
		kept = &hops->kept[hops->n_kept++];
	*kept = (struct ctl_kept){.if_index = if_index};
}

void
ctl_hops_settle(struct ctl_hops *hops, int if_index, uint64_t now_ms)
{
	struct ctl_kept *kept = find_kept(hops, if_index);

	if (kept == NULL || kept->is_up)
		return;
	kept->is_up = true;
	kept->until_ms = now_ms + CTL_HOPS_SETTLE_MS;
}

static void
forget_settled(struct ctl_hops *hops, uint64_t now_ms)
{
	size_t n = 0;

	for (size_t i = 0; i < hops->n_kept; i++)
		if (!hops->kept[i].is_up || now_ms < hops->kept[i].until_ms)
			hops->kept[n++] = hops->kept[i];
	hops->n_kept = n;
}

/* What is known of the way to dst, where it has a route. */
static struct ctl_hop
known_hop(const struct ctl_hops *hops, const struct ctl_dst *dst)
{
	const struct ctl_neigh *neigh = &hops->neighs[dst->neigh_index];
	struct ctl_hop hop = {.if_index = dst->next.if_index,
		.is_gateway = !lb_addr_equal(&dst->next.addr, &dst->addr),
		.is_resolved = neigh->state.has_mac && (neigh->state.nud & usable_states) != 0};

	if (hop.is_resolved)
		hop.mac = neigh->state.mac;
	return hop;
}

/* Whether the hop that is shown stays, in place of what is known. */
static bool
is_to_stay(struct ctl_hops *hops, const struct ctl_dst *dst, const struct ctl_hop *known)
{
	const struct ctl_kept *kept;

	if (!dst->has_hop || !dst->hop.is_resolved || is_same_hop(&dst->hop, known))
		return false;
	kept = find_kept(hops, dst->hop.if_index);
	if (kept == NULL)
		return false;
	return !kept->is_up || !known->is_resolved || known->if_index != kept->if_index;
}

/* @return whether anything is other than it was shown. */
static bool
show_hop(struct ctl_hops *hops, struct ctl_dst *dst)
{
	const bool had_hop = dst->has_hop;
	const struct ctl_hop before = dst->hop;
	const struct ctl_hop known =
		dst->has_route ? known_hop(hops, dst) : (struct ctl_hop){0};

	dst->is_kept = is_to_stay(hops, dst, &known);
	if (dst->is_kept)
		return false;
	dst->has_hop = dst->has_route;
	dst->hop = known;
	return had_hop != dst->has_hop || !is_same_hop(&before, &dst->hop);
}

bool
ctl_hops_show(struct ctl_hops *hops, uint64_t now_ms)
{
	bool is_changed = false;

	forget_settled(hops, now_ms);
	for (size_t i = 0; i < hops->n_dsts; i++)
		if (show_hop(hops, &hops->dsts[i]))
			is_changed = true;
	return is_changed;
}

size_t
ctl_hops_count_kept(const struct ctl_hops *hops, int if_index)
{
	size_t n = 0;

	for (size_t i = 0; i < hops->n_dsts; i++)
		n += hops->dsts[i].is_kept && hops->dsts[i].hop.if_index == if_index;
	return n;
}

bool
ctl_hops_find(const struct ctl_hops *hops, const struct lb_addr *dst, struct ctl_hop *out)
{
	const struct ctl_dst *found = find_dst(hops->dsts, hops->n_dsts, dst);

	if (found == NULL || !found->has_hop)
		return false;
	*out = found->hop;
	return true;
}
