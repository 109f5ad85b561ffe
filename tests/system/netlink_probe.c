/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: netlink_probe DST...
 *
 * Watches destinations in the network namespace it runs in, and prints
 *
 *	callback                for each call about changes, before what has changed
 *	DST if IF_INDEX mac MAC
 *	DST if IF_INDEX unresolved
 *	DST unreachable
 *
 * for each that is other than before, at first for each that is not unreachable. It takes
 * commands from its input, answers each with "done RC", and ends with its input:
 *
 *	watch DST...            in place of those before
 *	show                    all that is watched
 *	up IF_INDEX MTU
 *	address IF_INDEX PREFIX
 *	route IF_INDEX PREFIX GATEWAY
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "ctl_netlink.h"

struct seen {
	struct lb_addr addr;
	bool has_hop;
	struct ctl_hop hop;
};

struct probe {
	struct ctl_loop *loop;
	struct ctl_netlink *netlink;
	struct seen *seen;
	size_t n_seen;
	size_t n_input_bytes;
	char input[1 << 17];
};

static void
fail(const char *what, int rc)
{
	(void)fprintf(stderr, "netlink_probe: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void
print_seen(const struct seen *seen)
{
	char addr[LB_ADDR_TEXT_BYTES];
	char mac[LB_MAC_TEXT_BYTES];

	lb_addr_format(&seen->addr, addr);
	if (!seen->has_hop)
		printf("%s unreachable\n", addr);
	else if (!seen->hop.is_resolved)
		printf("%s if %d unresolved\n", addr, seen->hop.if_index);
	else
		printf("%s if %d mac %s\n", addr, seen->hop.if_index,
			lb_mac_format(&seen->hop.mac, mac));
}

static bool
is_same(const struct seen *a, const struct seen *b)
{
	return a->has_hop == b->has_hop && a->hop.if_index == b->hop.if_index &&
	       a->hop.is_resolved == b->hop.is_resolved &&
	       memcmp(&a->hop.mac, &b->hop.mac, sizeof(a->hop.mac)) == 0;
}

static void
look(struct probe *probe, bool wants_all)
{
	for (size_t i = 0; i < probe->n_seen; i++) {
		struct seen *seen = &probe->seen[i];
		struct seen now = {.addr = seen->addr};

		now.has_hop = ctl_netlink_find(probe->netlink, &now.addr, &now.hop);
		if (wants_all || !is_same(seen, &now))
			print_seen(&now);
		*seen = now;
	}
}

static void
on_changes(void *context)
{
	printf("callback\n");
	look(context, false);
}

static int
watch(struct probe *probe, char *const texts[], size_t n)
{
	struct lb_addr *addrs = calloc(n + 1, sizeof(*addrs));
	struct seen *seen = calloc(n + 1, sizeof(*seen));
	int rc = addrs != NULL && seen != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = lb_addr_parse(texts[i], &addrs[i]);
		if (rc == 0)
			seen[i].addr = addrs[i];
	}
	if (rc == 0)
		rc = ctl_netlink_watch(probe->netlink, addrs, n);
	free(addrs);
	if (rc != 0) {
		free(seen);
		return rc;
	}
	free(probe->seen);
	probe->seen = seen;
	probe->n_seen = n;
	return 0;
}

/* Words of the line, which is cut at its spaces. @return how many. */
static size_t
split(char *line, char *words[], size_t n_max)
{
	char *rest = NULL;
	size_t n = 0;

	for (char *word = strtok_r(line, " ", &rest); word != NULL && n < n_max;
		word = strtok_r(NULL, " ", &rest))
		words[n++] = word;
	return n;
}

static int
run_command(struct probe *probe, char *const words[], size_t n)
{
	struct lb_prefix prefix;
	struct lb_addr via;

	if (n >= 1 && strcmp(words[0], "watch") == 0)
		return watch(probe, words + 1, n - 1);
	if (n == 1 && strcmp(words[0], "show") == 0) {
		look(probe, true);
		return 0;
	}
	if (n == 3 && strcmp(words[0], "up") == 0)
		return ctl_netlink_set_up(probe->netlink, (int)strtol(words[1], NULL, 10),
			(unsigned int)strtoul(words[2], NULL, 10));
	if (n == 3 && strcmp(words[0], "address") == 0 &&
		lb_prefix_parse(words[2], &prefix) == 0)
		return ctl_netlink_add_address(probe->netlink, (int)strtol(words[1], NULL, 10),
			&prefix);
	if (n == 4 && strcmp(words[0], "route") == 0 &&
		lb_prefix_parse(words[2], &prefix) == 0 && lb_addr_parse(words[3], &via) == 0)
		return ctl_netlink_add_route(probe->netlink, (int)strtol(words[1], NULL, 10),
			&prefix, &via);
	return -EINVAL;
}

static void
run_line(struct probe *probe, char *line)
{
	static char *words[4096];
	const size_t n = split(line, words, LB_N_ELEMENTS(words));

	printf("done %d\n", run_command(probe, words, n));
}

static void
on_input(void *context, uint32_t events)
{
	struct probe *probe = context;
	const ssize_t n = read(STDIN_FILENO, probe->input + probe->n_input_bytes,
		sizeof(probe->input) - probe->n_input_bytes);
	char *line = probe->input;
	char *end;

	(void)events;
	if (n <= 0) {
		ctl_loop_stop(probe->loop);
		return;
	}
	probe->n_input_bytes += (size_t)n;
	while ((end = memchr(line, '\n',
			probe->n_input_bytes - (size_t)(line - probe->input))) != NULL) {
		*end = '\0';
		run_line(probe, line);
		line = end + 1;
	}
	probe->n_input_bytes -= (size_t)(line - probe->input);
	memmove(probe->input, line, probe->n_input_bytes);
}

int
main(int argc, char *argv[])
{
	static struct probe probe;
	int rc = ctl_loop_create(&probe.loop);

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (rc != 0)
		fail("loop", rc);
	rc = ctl_netlink_open(probe.loop, on_changes, &probe, &probe.netlink);
	if (rc != 0)
		fail("netlink", rc);
	rc = watch(&probe, argv + 1, (size_t)argc - 1);
	if (rc != 0)
		fail("watch", rc);
	rc = ctl_loop_add_fd(probe.loop, STDIN_FILENO, EPOLLIN, on_input, &probe);
	if (rc != 0)
		fail("input", rc);
	rc = ctl_loop_run(probe.loop);
	if (rc != 0)
		fail("loop", rc);
	ctl_netlink_close(probe.netlink);
	ctl_loop_destroy(probe.loop);
	free(probe.seen);
	return 0;
}
