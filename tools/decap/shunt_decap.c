/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * shunt-decap: the backend's side. Loads an XDP program that takes the balancer's outer headers
 * off, keeps its list of the interface's addresses right, and detaches it at the end.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "decap_options.h"
#include "decap_program.h"
#include "decap_show.h"

enum exit_status { EXIT_DONE, EXIT_FAILED, EXIT_USAGE };

static const char help[] =
	"Usage: shunt-decap --interface IF --service ADDRESS[/LENGTH]... [OPTION]...\n"
	"       shunt-decap --interface IF --show [--json]\n"
	"       shunt-decap --interface IF --detach\n"
	"Take Shunt's outer headers (IPIP, GRE, GUE) off what a backend receives, by XDP,\n"
	"so that it needs no tunnel interfaces. Runs until SIGTERM or SIGINT.\n"
	"\n"
	"  -i, --interface IF              where the tunnelled packets arrive\n"
	"  -s, --service ADDRESS[/LENGTH]  an inner destination to do this for; repeat it\n"
	"                                  for more\n"
	"  -o, --outer ADDRESS             an outer destination besides the interface's\n"
	"                                  own addresses; repeat it for more\n"
	"  -g, --gue-port N                GUE's UDP port (default: 6080)\n"
	"  -m, --mode auto|native|generic  in the driver, or after it (default: auto,\n"
	"                                  native where it can)\n"
	"      --show, --stats             the counters of what is attached; SIGUSR1 has\n"
	"                                  a running shunt-decap print them\n"
	"  -j, --json                      the counters as JSON\n"
	"  -d, --detach                    take off what a killed shunt-decap has left\n"
	"  -v, --verbose                   libbpf's own messages too\n"
	"  -h, --help                      this text\n"
	"  -V, --version                   the version\n"
	"\n"
	"It takes root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON.\n"
	"Exit status: 0 done; 1 the work failed; 2 bad usage.\n";

/* A signal is read, not caught: it cannot come between attaching and the way to detach. */
static int
open_signals(void)
{
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0)
		return -errno;
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

/* Hears of every change of addresses and links; what has changed is then looked up. */
static int
open_changes(void)
{
	struct sockaddr_nl local = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -1;
	if (bind(fd, (const struct sockaddr *)&local, sizeof(local)) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int
take_changes(int fd, const struct decap *decap, const struct decap_options *options)
{
	char name[IF_NAMESIZE];
	char unread[8192];

	/* ENOBUFS, some were lost, is no matter: all is read anew below. */
	while (recv(fd, unread, sizeof(unread), 0) > 0 || errno == EINTR || errno == ENOBUFS)
		;
	if (if_indextoname(decap->ifindex, name) == NULL) {
		(void)fprintf(stderr, "shunt-decap: %s: the interface is gone\n",
			options->interface);
		return -ENODEV;
	}
	if (!decap_is_attached(decap)) {
		(void)fprintf(stderr,
			"shunt-decap: %s: somebody has taken the XDP program off\n", name);
		return -ENOENT;
	}
	return decap_refresh_outers(decap, options, name);
}

/* Returns 0 to go on, 1 to stop. */
static int
take_signal(int fd, const struct decap_options *options)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	if (info.ssi_signo != SIGUSR1)
		return 1;
	if (decap_show(options->interface, options->is_json) != 0)
		(void)fprintf(stderr, "shunt-decap: %s: going on\n", options->interface);
	return 0;
}

static int
wait_for_end(int signals, int changes, const struct decap *decap,
	const struct decap_options *options)
{
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
		{.fd = changes, .events = POLLIN}};
	int ret = 0;

	while (ret == 0) {
		if (poll(fds, 2, -1) < 0) {
			ret = errno == EINTR ? 0 : -errno;
			continue;
		}
		if (fds[1].revents != 0)
			ret = take_changes(changes, decap, options);
		if (ret == 0 && fds[0].revents != 0)
			ret = take_signal(signals, options);
	}
	return ret < 0 ? ret : 0;
}

static int
run(const struct decap_options *options)
{
	struct decap decap = {0};
	int signals = open_signals();
	int changes = open_changes();
	int ret;

	if (signals < 0 || changes < 0) {
		(void)fprintf(stderr, "shunt-decap: cannot listen: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	ret = decap_attach(&decap, options);
	if (ret != 0)
		return EXIT_FAILED;
	(void)fprintf(stderr, "shunt-decap: %s: attached, %s mode; services: %zu\n",
		options->interface,
		decap.attach_flags == XDP_FLAGS_SKB_MODE ? "generic" : "native",
		options->n_services);
	ret = wait_for_end(signals, changes, &decap, options);
	decap_detach(&decap);
	return ret == 0 ? EXIT_DONE : EXIT_FAILED;
}

static int
print(const char *text)
{
	return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILED : EXIT_DONE;
}

int
main(int argc, char *argv[])
{
	static struct decap_options options; /* 20 KiB of services: not for the stack */

	if (decap_options_parse(argc, argv, &options) != 0) {
		(void)fprintf(stderr, "Try 'shunt-decap --help'.\n");
		return EXIT_USAGE;
	}
	decap_set_verbose(options.is_verbose);
	switch (options.action) {
	case DECAP_HELP:
		return print(help);
	case DECAP_VERSION:
		return print("shunt-decap " SHUNT_VERSION "\n");
	case DECAP_SHOW:
		return decap_show(options.interface, options.is_json) == 0 ? EXIT_DONE
									   : EXIT_FAILED;
	case DECAP_DETACH:
		return decap_detach_left_over(options.interface) == 0 ? EXIT_DONE : EXIT_FAILED;
	case DECAP_RUN:
		break;
	}
	return run(&options);
}
