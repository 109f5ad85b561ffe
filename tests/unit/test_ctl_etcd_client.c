/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_etcd_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "odd_server.h"

/* Long enough for all calls of a test; what hangs for longer ends the program. */
#define PATIENCE_S 60

static int
load(const struct odd_server *server, const char *ca_path, char why[CTL_ETCD_WHY_BYTES])
{
	struct ctl_etcd_answer answer = {0};
	struct ctl_etcd_client *client;
	struct ctl_etcd_conf conf;
	char url[64];
	int ret;

	assert_int_equal(setenv("SHUNT_ETCD_CA_FILE", ca_path, 1), 0);
	(void)snprintf(url, sizeof(url), "etcds://localhost:%u/k", server->port);
	assert_int_equal(ctl_etcd_conf_read(url, stderr, &conf), 0);
	assert_int_equal(ctl_etcd_client_create(&conf, NULL, &client), 0);
	ret = ctl_etcd_client_load(client, &answer, why);
	ctl_etcd_answer_fini(&answer);
	ctl_etcd_client_destroy(client);
	ctl_etcd_conf_fini(&conf);
	return ret;
}

/* They come faster than they can be read: the call is to come back all the same. */
static void
test_no_end_of_tls_messages_is_not_waited_for(void **state)
{
	struct odd_server server = {.manner = ODD_TICKETS};
	char path[] = "/tmp/shunt-test-XXXXXX";
	const int fd = mkstemp(path);
	char why[CTL_ETCD_WHY_BYTES];
	int ret;

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	server.tls = odd_tls_create("localhost", path);
	odd_server_start(&server);
	(void)alarm(PATIENCE_S);
	ret = load(&server, path, why);
	(void)alarm(0);
	odd_server_stop(&server);
	odd_tls_destroy(server.tls);
	(void)unlink(path);
	EXPECT(ret == -EHOSTUNREACH && strstr(why, "no answer in time") != NULL, "%d: %s", ret,
		why);
}

static void
test_members_share_the_time_of_a_load(void **state)
{
	(void)state;
	assert_int_equal(ctl_etcd_member_ms(1), CTL_ETCD_CALL_MS);
	assert_int_equal(ctl_etcd_member_ms(2), CTL_ETCD_CALL_MS);
	for (size_t n = 3; n <= 16; n++) {
		assert_in_range(n * ctl_etcd_member_ms(n), CTL_ETCD_LOAD_MS - n,
			CTL_ETCD_LOAD_MS);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members_share_the_time_of_a_load),
		cmocka_unit_test(test_no_end_of_tls_messages_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
