/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The events file: any bytes are read or refused, and what is read can be applied, in any
 * order, to the configuration it was rehearsed on. A rehearsal in file order says the same.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"
#include "replay_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static const char config[] =
	"dataplane:\n"
	"  ports:\n"
	"    - {name: wan, device: net_null, addresses: [192.0.2.1/24, '2001:db8::1/64']}\n"
	"services:\n"
	"  - name: web\n"
	"    address: 198.51.100.10\n"
	"    protocol: tcp\n"
	"    port: 443\n"
	"    backends:\n"
	"      - {name: web-1, address: 10.0.0.11}\n"
	"      - {name: web-2, address: 10.0.0.12}\n"
	"  - name: dns\n"
	"    address: 198.51.100.53\n"
	"    protocol: udp\n"
	"    port: 53\n"
	"    table: {algorithm: maglev, size: 7}\n"
	"    backends: []\n";

static void
apply_all(const struct replay_events *events, const struct cfg_model *model)
{
	struct cfg_model copy;

	if (cfg_model_copy(model, &copy) != 0)
		return;
	for (size_t i = 0; i < events->n_items; i++) {
		const struct replay_event *event = &events->items[events->n_items - 1 - i];

		/* Backwards it may well not fit; the model then stays whole. */
		if (event->title == NULL || replay_event_apply(event, "e", &copy, NULL) > 0)
			abort();
	}
	cfg_model_fini(&copy);
}

/* What can be applied in file order is what a rehearsal in that order takes. */
static void
rehearse_all(const struct replay_events *events, const struct cfg_model *model)
{
	size_t *order = calloc(events->n_items + 1, sizeof(*order));
	struct cfg_model copy;
	int want = 0;

	if (order == NULL || cfg_model_copy(model, &copy) != 0)
		abort();
	for (size_t i = 0; i < events->n_items; i++) {
		order[i] = i;
		if (want == 0)
			want = replay_event_apply(&events->items[i], "e", &copy, NULL);
	}
	if (replay_events_rehearse(events, order, events->n_items, model, NULL) != want)
		abort();
	cfg_model_fini(&copy);
	free(order);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct replay_events events;
	struct cfg_model model;
	char *messages = NULL;
	size_t n_messages;
	FILE *to;
	int ret;

	if (cfg_read_text_model("c.yaml", config, sizeof(config) - 1, NULL, &model) != 0)
		abort();
	to = open_memstream(&messages, &n_messages);
	if (to == NULL)
		abort();

	ret = replay_events_parse((const char *)data, n_bytes, "e.yaml", &model, to, &events);
	if (fclose(to) != 0)
		abort();
	/* An error is always told, and told with the file's name. */
	if (ret != 0 && strncmp(messages, "e.yaml:", 7) != 0)
		abort();
	if (ret == 0) {
		apply_all(&events, &model);
		rehearse_all(&events, &model);
		replay_events_free(&events);
	}
	free(messages);
	cfg_model_fini(&model);
	return 0;
}
