/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_heap.h"

static void
set(struct hc_heap *heap, size_t place, struct hc_timer *timer)
{
	heap->timers[place] = timer;
	timer->place = place;
}

/* Towards the top as far as it has to go. */
static void
sift_up(struct hc_heap *heap, struct hc_timer *timer, size_t place)
{
	while (place > 0) {
		const size_t parent = (place - 1) / 2;

		if (heap->timers[parent]->due_ns <= timer->due_ns)
			break;
		set(heap, place, heap->timers[parent]);
		place = parent;
	}
	set(heap, place, timer);
}

static void
sift_down(struct hc_heap *heap, struct hc_timer *timer, size_t place)
{
	for (;;) {
		size_t child = 2 * place + 1;

		if (child >= heap->n)
			break;
		if (child + 1 < heap->n &&
			heap->timers[child + 1]->due_ns < heap->timers[child]->due_ns)
			child++;
		if (heap->timers[child]->due_ns >= timer->due_ns)
			break;
		set(heap, place, heap->timers[child]);
		place = child;
	}
	set(heap, place, timer);
}

void
hc_heap_put(struct hc_heap *heap, struct hc_timer *timer, uint64_t due_ns)
{
	const size_t place = timer->place == HC_HEAP_NONE ? heap->n++ : timer->place;

	timer->due_ns = due_ns;
	sift_up(heap, timer, place);
	sift_down(heap, timer, timer->place);
}

void
hc_heap_remove(struct hc_heap *heap, struct hc_timer *timer)
{
	const size_t place = timer->place;
	struct hc_timer *last = heap->timers[--heap->n];

	timer->place = HC_HEAP_NONE;
	if (last == timer)
		return;
	sift_up(heap, last, place);
	sift_down(heap, last, last->place);
}

struct hc_timer *
hc_heap_first(const struct hc_heap *heap)
{
	return heap->n > 0 ? heap->timers[0] : NULL;
}
