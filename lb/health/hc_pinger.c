/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_pinger.h"

#include <errno.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* An IPv4 header with all options, and the message. */
#define HEARD_BYTES_MAX (60u + HC_ECHO_BYTES)
/* Replies to thousands of questions may come at once. */
#define RECEIVE_BYTES (1 << 20)

int
hc_pinger_init(struct hc_pinger *pinger)
{
	*pinger = (struct hc_pinger){.fds = {-1, -1}};
	if (getrandom(&pinger->secret, sizeof(pinger->secret), 0) !=
		(ssize_t)sizeof(pinger->secret))
		return -errno;
	return 0;
}

void
hc_pinger_fini(struct hc_pinger *pinger)
{
	for (size_t i = 0; i < 2; i++) {
		if (pinger->fds[i] >= 0)
			(void)close(pinger->fds[i]);
	}
}

/* Echo replies alone; the kernel gives a raw socket all there is. Without it we sort them out.
 */
static void
filter(int fd, bool is_v4)
{
	const struct icmp_filter v4 = {.data = ~(1u << ICMP_ECHOREPLY)};
	struct icmp6_filter v6;

	if (is_v4) {
		(void)setsockopt(fd, SOL_RAW, ICMP_FILTER, &v4, sizeof(v4));
		return;
	}
	ICMP6_FILTER_SETBLOCKALL(&v6);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &v6);
	(void)setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &v6, sizeof(v6));
}

static int
open_socket(struct hc_pinger *pinger, bool is_v4, int epoll_fd)
{
	const int family = is_v4 ? AF_INET : AF_INET6;
	const int protocol = is_v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
	const int n_bytes = RECEIVE_BYTES;
	struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = pinger}};
	int fd = socket(family, SOCK_RAW | flags, protocol);
	int ret;

	pinger->is_raw[is_v4] = fd >= 0;
	if (fd < 0)
		fd = socket(family, SOCK_DGRAM | flags, protocol);
	if (fd < 0)
		return -errno;
	if (pinger->is_raw[is_v4])
		filter(fd, is_v4);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n_bytes, sizeof(n_bytes));
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		ret = -errno;
		(void)close(fd);
		return ret;
	}
	pinger->fds[is_v4] = fd;
	return 0;
}

enum hc_outcome
hc_pinger_ask(struct hc_pinger *pinger, struct hc_probe *probe, int epoll_fd,
	char words[static HC_WORDS_BYTES])
{
	const struct lb_addr *address = &probe->target.address;
	const bool is_v4 = lb_addr_is_v4(address);
	const struct hc_echo echo = {.secret = pinger->secret,
		.id = probe->target.id,
		.begun_ns = probe->begun_ns};
	struct hc_socket_address to;
	const uint32_t n_to = hc_probe_address(address, 0, &to);
	uint8_t bytes[HC_ECHO_BYTES];
	int ret = 0;

	if (pinger->fds[is_v4] < 0)
		ret = open_socket(pinger, is_v4, epoll_fd);
	if (ret != 0) {
		hc_words_set_error(words, "socket", -ret);
		return HC_NOT_ASKED;
	}
	hc_echo_write(&echo, is_v4, bytes);
	if (sendto(pinger->fds[is_v4], bytes, sizeof(bytes), MSG_NOSIGNAL,
		    (const struct sockaddr *)(const void *)to.bytes, n_to) < 0) {
		const int error = errno;

		hc_words_set_error(words, "send", error);
		return hc_probe_is_local(error) ? HC_NOT_ASKED : HC_FAILED;
	}
	probe->is_running = true;
	return HC_RUNNING;
}

static struct lb_addr
address_of(const struct hc_socket_address *from, bool is_v4)
{
	struct lb_addr address;
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;
	uint8_t bytes[4];

	if (is_v4) {
		memcpy(&v4, from->bytes, sizeof(v4));
		memcpy(bytes, &v4.sin_addr, sizeof(bytes));
		return lb_addr_from_v4(bytes);
	}
	memcpy(&v6, from->bytes, sizeof(v6));
	memcpy(address.bytes, &v6.sin6_addr, LB_ADDR_BYTES);
	return address;
}

/* What one socket has next: 1 a reply, 0 something else, -1 nothing. */
static int
take_from(struct hc_pinger *pinger, bool is_v4, struct hc_echo *echo, struct lb_addr *out)
{
	struct hc_socket_address from;
	socklen_t n_from = sizeof(from.bytes);
	uint8_t bytes[HEARD_BYTES_MAX];
	ssize_t n;

	if (pinger->fds[is_v4] < 0)
		return -1;
	n = recvfrom(pinger->fds[is_v4], bytes, sizeof(bytes), 0,
		(struct sockaddr *)(void *)from.bytes, &n_from);
	if (n < 0)
		return -1;
	if (!hc_echo_read(bytes, (size_t)n, is_v4, is_v4 && pinger->is_raw[is_v4],
		    pinger->secret, echo))
		return 0;
	*out = address_of(&from, is_v4);
	return 1;
}

bool
hc_pinger_take(struct hc_pinger *pinger, unsigned int *left, struct hc_echo *echo,
	struct lb_addr *from)
{
	for (int is_v4 = 0; is_v4 < 2; is_v4++) {
		int ret;

		while (*left > 0 && (ret = take_from(pinger, is_v4 != 0, echo, from)) >= 0) {
			(*left)--;
			if (ret > 0)
				return true;
		}
	}
	return false;
}
