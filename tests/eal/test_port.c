/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A device that gives a capture again and again keeps its packets in its port's buffers: as
 * many as it has for that, and no more, or there are fewer to receive in than there should be.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "capture_builder.h"
#include "dp.h"
#include "dp_port_fit.h"
#include "expect.h"
#include "lb_compiler.h"

#define FRAME_BYTES 20u /* as many packets as that fit a capture */
#define LONG_NS     UINT64_C(900000000000)

static const struct {
	const char *what;
	unsigned int n_packets;
	const char *again; /* the device's argument */
	int want;
} rows[] = {
	{"as many as it may keep", DP_PORT_KEPT_MAX, "infinite_rx=1", 0},
	{"one more, once", DP_PORT_KEPT_MAX + 1, "infinite_rx=0", 0},
	/* The last: what is refused leaves its buffers behind, and the process ends. */
	{"one more", DP_PORT_KEPT_MAX + 1, "infinite_rx=1", -ENOBUFS},
};

static char captures[LB_N_ELEMENTS(rows)][CAPTURE_PATH_BYTES];
static char devices[LB_N_ELEMENTS(rows)][128];
static struct dp_port_conf ports[LB_N_ELEMENTS(rows)];

static void
save_capture(unsigned int n_packets, char path[CAPTURE_PATH_BYTES])
{
	static const uint8_t frame[FRAME_BYTES];
	struct capture *capture = calloc(1, sizeof(*capture));

	assert_non_null(capture);
	capture_pcap_header(capture, 1);
	for (unsigned int i = 0; i < n_packets; i++)
		capture_pcap_packet(capture, 0, 0, frame, sizeof(frame), sizeof(frame));
	capture_save(capture, capture->n_bytes, path);
	free(capture);
}

static int
start(void **state)
{
	const struct dp_start_conf conf = {.program = "test_port",
		.ports = ports,
		.n_ports = LB_N_ELEMENTS(ports),
		.n_workers = 1,
		.instance = "test_port"};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		save_capture(rows[i].n_packets, captures[i]);
		(void)snprintf(devices[i], sizeof(devices[i]),
			"net_pcap%zu,rx_pcap=%s,tx_pcap=/dev/null,%s", i, captures[i],
			rows[i].again);
		ports[i] =
			(struct dp_port_conf){.name = "wan", .device = devices[i], .mtu = 1500};
	}
	return dp_start(&conf, stderr);
}

static int
end(void **state)
{
	int ret = 0;

	(void)state;
	/* What is refused has not been closed. */
	for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; id++)
		if (rte_eth_dev_is_valid_port(id) != 0)
			ret |= rte_eth_dev_close(id);
	for (size_t i = 0; i < LB_N_ELEMENTS(captures); i++)
		ret |= unlink(captures[i]);
	return ret;
}

static void
test_a_device_that_keeps_too_many_buffers_is_refused(void **state)
{
	const struct dp_conf conf = {.n_workers = 1,
		.flows = {.n_entries = 64, .timeout_ns = {LONG_NS, LONG_NS, LONG_NS, LONG_NS}}};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		char *said = NULL;
		size_t n_said = 0;
		FILE *messages = open_memstream(&said, &n_said);
		struct dp *dp;
		int ret;

		assert_non_null(messages);
		assert_int_equal(dp_create(&conf, 0, &dp), 0);
		ret = dp_open_ports(dp, &ports[i], 1, messages);
		(void)fclose(messages);
		EXPECT(ret == rows[i].want, "%s: %d, want %d: %s", rows[i].what, ret,
			rows[i].want, said);
		EXPECT((strstr(said, "it may have 16384 packets") != NULL) == (ret != 0),
			"%s: '%s'", rows[i].what, said);
		dp_stop(dp);
		dp_destroy(dp);
		free(said);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_device_that_keeps_too_many_buffers_is_refused),
	};

	return cmocka_run_group_tests(tests, start, end);
}
