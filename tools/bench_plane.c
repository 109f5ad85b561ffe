/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_plane.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_traffic.h"
#include "cfg_yaml.h"
#include "ctl_apply.h"

/* The largest frame fits with the largest outer header. */
#define MTU (1500u + LB_ENCAP_BYTES_MAX)

/* MiB of packet buffers where the EAL has to be told: up to so many workers it need not be. */
#define WORKERS_UNTOLD 4u
#define BASE_MIB       64u
#define WORKER_MIB     8u

static int
fail(int ret, const char *what)
{
	(void)fprintf(stderr, "shunt-bench: %s: %s\n", what, strerror(-ret));
	return ret;
}

int
bench_start(const char *program, uint32_t n_workers)
{
	char instance[64];
	char extra[64] = "--no-telemetry";
	const struct dp_start_conf conf = {
		.program = program,
		.n_workers = n_workers,
		.extra = extra,
		.instance = instance,
	};

	(void)snprintf(instance, sizeof(instance), "shunt-bench-%ld", (long)getpid());
	if (n_workers > WORKERS_UNTOLD)
		(void)snprintf(extra, sizeof(extra), "--no-telemetry -m %" PRIu32,
			BASE_MIB + n_workers * WORKER_MIB);
	return dp_start(&conf, stderr);
}

static void
write_service(const struct bench_case *c, uint32_t service, FILE *to)
{
	const struct lb_addr addr = bench_service_addr(c->family, service);
	const uint32_t n_backends = c->options->n_backends;
	char text[LB_ADDR_TEXT_BYTES];

	(void)fprintf(to,
		"- name: s%" PRIu32 "\n"
		"  address: '%s'\n"
		"  protocol: tcp\n"
		"  port: %u\n"
		"  forward: %s\n"
		"  table: {algorithm: %s}\n"
		"  backends:\n",
		service, lb_addr_format(&addr, text), bench_service_port(service),
		cfg_forward_words[c->forward], cfg_algorithm_words[c->algorithm]);
	for (uint32_t i = 0; i < n_backends; i++) {
		const struct lb_addr backend =
			bench_backend_addr(c->family, service * n_backends + i);

		(void)fprintf(to, "  - {name: b%" PRIu32 ", address: '%s'}\n", i,
			lb_addr_format(&backend, text));
	}
}

static void
write_config(const struct bench_case *c, FILE *to)
{
	const struct lb_addr v4 = bench_own_addr(4);
	const struct lb_addr v6 = bench_own_addr(6);
	char v4_text[LB_ADDR_TEXT_BYTES];
	char v6_text[LB_ADDR_TEXT_BYTES];
	char mac_text[LB_MAC_TEXT_BYTES];

	(void)fprintf(to,
		"dataplane:\n"
		"  kernel: none\n"
		"  flow_entries: %" PRIu32 "\n"
		"  ports:\n"
		"  - {name: memory, device: net_null0, mtu: %u, next_hop: '%s',\n"
		"     addresses: ['%s/24', '%s/64']}\n"
		"services:\n",
		c->flow_entries, MTU, lb_mac_format(&bench_next_hop, mac_text),
		lb_addr_format(&v4, v4_text), lb_addr_format(&v6, v6_text));
	for (uint32_t i = 0; i < c->options->n_services; i++)
		write_service(c, i, to);
}

static int
read_config(const struct bench_case *c, struct cfg_model *out)
{
	char *text = NULL;
	size_t n_bytes = 0;
	FILE *to = open_memstream(&text, &n_bytes);
	int ret = -ENOMEM;

	if (to == NULL)
		return fail(-ENOMEM, "no room for the configuration");
	write_config(c, to);
	if (fclose(to) == 0)
		ret = cfg_read_text_model("measurement", text, n_bytes, stderr, out);
	else
		(void)fail(ret, "no room for the configuration");
	free(text);
	return ret;
}

static int
publish(struct bench_plane *plane)
{
	const struct ctl_paths paths = {.port = &plane->model.dataplane.ports[0],
		.mac = &bench_port_mac};
	struct dp_snapshot *snapshot;
	const int ret = ctl_apply_build(plane->apply, &plane->model, &paths, stderr, &snapshot);

	if (ret == 0)
		dp_publish(plane->dp, snapshot);
	return ret;
}

static int
list_places(struct bench_plane *plane)
{
	const struct bench_options *options = plane->c->options;

	plane->n_ids = ctl_apply_n_backends(plane->apply);
	plane->places = malloc((plane->n_ids + 1u) * sizeof(*plane->places));
	if (plane->places == NULL)
		return fail(-ENOMEM, "no room for the backends");
	for (uint32_t i = 0; i < plane->n_ids; i++)
		plane->places[i] = UINT32_MAX;
	for (uint32_t s = 0; s < options->n_services; s++)
		for (uint32_t b = 0; b < options->n_backends; b++)
			plane->places[ctl_apply_backend_id(plane->apply, s, b)] =
				s * options->n_backends + b;
	return 0;
}

int
bench_plane_open(const struct bench_case *c, struct bench_plane *out)
{
	/* Any secret will do: nobody is aiming at us, and runs are alike. */
	static const uint64_t secret[2] = {0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u};
	struct dp_conf conf;
	int ret;

	*out = (struct bench_plane){.c = c};
	cfg_model_init(&out->model);
	ret = read_config(c, &out->model);
	if (ret != 0)
		return ret;
	ret = ctl_apply_create(&out->apply);
	if (ret != 0)
		return fail(ret, "no room for the configuration");
	conf = ctl_apply_dp_conf(&out->model, c->options->n_workers, secret);
	ret = dp_create(&conf, dp_now_ns(), &out->dp);
	if (ret != 0)
		return fail(ret,
			"no room for the workers; fewer --flows or --workers need less");
	ret = publish(out);
	return ret != 0 ? ret : list_places(out);
}

void
bench_plane_close(struct bench_plane *plane)
{
	free(plane->places);
	dp_destroy(plane->dp);
	ctl_apply_destroy(plane->apply);
	cfg_model_fini(&plane->model);
}

int
bench_plane_swap(struct bench_plane *plane)
{
	struct cfg_backend *backend = &plane->model.services[0].backends[0];
	int ret;

	backend->weight = backend->weight == 100 ? 50 : 100;
	ret = publish(plane);
	plane->n_swaps += ret == 0;
	return ret;
}

uint32_t
bench_plane_place(const struct bench_plane *plane, uint32_t id)
{
	return id < plane->n_ids ? plane->places[id] : UINT32_MAX;
}
