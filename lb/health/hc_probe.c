/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_probe.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static_assert(sizeof(struct sockaddr_in6) <= sizeof(struct hc_socket_address), "room for both");

/* What fails while a probe is in a stage. */
static const char *const stage_words[] = {
	[HC_CONNECT] = "connect",
	[HC_HANDSHAKE] = "TLS handshake",
	[HC_SEND] = "request",
	[HC_RECEIVE] = "status",
};

void
hc_probe_init(struct hc_probe *probe, const struct hc_target *target)
{
	*probe = (struct hc_probe){
		.timer = {.place = HC_HEAP_NONE},
		.target = *target,
		.fd = -1,
	};
}

bool
hc_probe_is_local(int error)
{
	switch (error) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
	case EAGAIN:
	case EADDRNOTAVAIL:
	case EADDRINUSE:
	case EACCES:
	case EPERM:
	case EAFNOSUPPORT:
		return true;
	default:
		return false;
	}
}

uint32_t
hc_probe_address(const struct lb_addr *address, uint16_t port, struct hc_socket_address *out)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (lb_addr_is_v4(address)) {
		memcpy(&v4.sin_addr, address->bytes + LB_ADDR_BYTES - 4, 4);
		memcpy(out->bytes, &v4, sizeof(v4));
		return sizeof(v4);
	}
	memcpy(&v6.sin6_addr, address->bytes, LB_ADDR_BYTES);
	memcpy(out->bytes, &v6, sizeof(v6));
	return sizeof(v6);
}

static enum hc_outcome
fail(const char *what, int error, char words[static HC_WORDS_BYTES])
{
	hc_words_set_error(words, what, error);
	return hc_probe_is_local(error) ? HC_NOT_ASKED : HC_FAILED;
}

/*
 * By a source port that is this probe's alone, so that its packets are known by it. And to the
 * device: while that is down, the host's other routes are no way.
 */
static int
bind_socket(struct hc_probe *probe)
{
	const bool is_v4 = lb_addr_is_v4(&probe->target.address);
	const struct lb_addr near = hc_tunnel_network(is_v4).addr;
	struct hc_socket_address address;
	const uint32_t n_address = hc_probe_address(&near, probe->source_port, &address);

	if (setsockopt(probe->fd, SOL_SOCKET, SO_BINDTODEVICE, HC_TUNNEL_NAME,
		    sizeof(HC_TUNNEL_NAME)) != 0)
		return -errno;
	return bind(probe->fd, (const struct sockaddr *)(const void *)address.bytes,
		       n_address) == 0
		       ? 0
		       : -errno;
}

/* A TCP connection, which is under way then, or a datagram. */
static int
connect_socket(struct hc_probe *probe)
{
	const struct hc_target *target = &probe->target;
	const bool is_udp = target->check->type == HC_UDP;
	const struct lb_addr to =
		probe->tunnel == NULL
			? target->address
			: hc_tunnel_address(target->backend, lb_addr_is_v4(&target->address));
	struct hc_socket_address address;
	const uint32_t n_address = hc_probe_address(&to, target->check->port, &address);
	/* Closed by a reset: no connection of thousands a second waits for a minute after. */
	const struct linger at_once = {.l_onoff = 1};

	if (!is_udp &&
		setsockopt(probe->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) != 0)
		return -errno;
	if (connect(probe->fd, (const struct sockaddr *)(const void *)address.bytes,
		    n_address) != 0 &&
		errno != EINPROGRESS)
		return -errno;
	if (is_udp && send(probe->fd, "", 0, MSG_NOSIGNAL) < 0)
		return -errno;
	probe->stage = is_udp ? HC_RECEIVE : HC_CONNECT;
	return 0;
}

/* False: words say why it cannot be asked by the tunnel. */
static bool
enter_tunnel(struct hc_probe *probe, struct hc_tunnel *tunnel,
	char words[static HC_WORDS_BYTES])
{
	if (tunnel == NULL) {
		hc_words_set(words, "via: tunnel: the device for it could not be made");
		return false;
	}
	probe->source_port = hc_tunnel_borrow(tunnel, &probe->target);
	if (probe->source_port == 0) {
		hc_words_set(words, "via: tunnel: all source ports are in use");
		return false;
	}
	probe->tunnel = tunnel;
	return true;
}

enum hc_outcome
hc_probe_begin(struct hc_probe *probe, struct hc_tunnel *tunnel, int epoll_fd,
	char words[static HC_WORDS_BYTES])
{
	const int type = probe->target.check->type == HC_UDP ? SOCK_DGRAM : SOCK_STREAM;
	const int family = lb_addr_is_v4(&probe->target.address) ? AF_INET : AF_INET6;
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET,
		.data = {.ptr = probe}};
	int ret;

	if (probe->target.check->is_tunnelled && !enter_tunnel(probe, tunnel, words))
		return HC_NOT_ASKED;
	probe->n_sent = 0;
	probe->http = (struct hc_http){0};
	probe->fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (probe->fd < 0)
		return fail("socket", errno, words);
	ret = probe->tunnel != NULL ? bind_socket(probe) : 0;
	if (ret != 0)
		return fail("via: tunnel: source port", -ret, words);
	ret = connect_socket(probe);
	if (ret != 0)
		return fail("connect", -ret, words);
	/* Not before: what is not connected yet is ready, as epoll has it. */
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, probe->fd, &event) != 0)
		return fail("epoll", errno, words);
	probe->is_running = true;
	return HC_RUNNING;
}

static enum hc_outcome
end_connect(struct hc_probe *probe, struct hc_tls_context *tls, uint32_t events,
	char words[static HC_WORDS_BYTES])
{
	socklen_t n_error = sizeof(int);
	int error = 0;

	if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0)
		return HC_RUNNING;
	if (getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &error, &n_error) != 0)
		return fail(stage_words[HC_CONNECT], errno, words);
	/*
	 * It came back from the network, whichever it is: of ICMPv6's "administratively
	 * prohibited" (RFC 4443, section 3.1) the kernel makes EACCES, as of a rule of our own.
	 */
	if (error != 0) {
		hc_words_set_error(words, stage_words[HC_CONNECT], error);
		return HC_FAILED;
	}
	if (probe->target.check->type == HC_TCP)
		return HC_PASSED;
	probe->stage = HC_SEND;
	if (probe->target.check->type == HC_HTTPS) {
		probe->stage = HC_HANDSHAKE;
		if (tls != NULL)
			probe->tls = hc_tls_open(tls, probe->fd, &probe->target,
				probe->begun_ns, &probe->session);
		if (probe->tls == NULL) {
			hc_words_set(words, "TLS: there is not enough memory");
			return HC_NOT_ASKED;
		}
	}
	return HC_RUNNING;
}

/* 1: done, 0: wait for the socket; or why it failed. */
static int
shake_hands(struct hc_probe *probe, char words[static HC_WORDS_BYTES])
{
	const int ret = hc_tls_handshake(probe->tls, words);

	if (ret == -EAGAIN)
		return 0;
	if (ret != 0) {
		probe->session.is_refused |= hc_tls_has_offered(probe->tls);
		return ret;
	}
	probe->stage = HC_SEND;
	return 1;
}

/* Bytes, -EAGAIN, or another error of which words tell. */
static ssize_t
send_bytes(struct hc_probe *probe, const char *bytes, size_t n,
	char words[static HC_WORDS_BYTES])
{
	ssize_t ret;

	if (probe->tls != NULL)
		return hc_tls_send(probe->tls, bytes, n, words);
	ret = send(probe->fd, bytes, n, MSG_NOSIGNAL);
	if (ret >= 0)
		return ret;
	ret = -errno;
	hc_words_set_error(words, stage_words[HC_SEND], errno);
	return ret;
}

/* As shake_hands(). */
static int
send_request(struct hc_probe *probe, char words[static HC_WORDS_BYTES])
{
	char request[HC_HTTP_REQUEST_BYTES_MAX];
	const size_t n = hc_http_write(&probe->target, request);

	while (probe->n_sent < n) {
		const ssize_t ret =
			send_bytes(probe, request + probe->n_sent, n - probe->n_sent, words);

		if (ret < 0)
			return ret == -EAGAIN ? 0 : (int)ret;
		probe->n_sent += (size_t)ret;
	}
	probe->stage = HC_RECEIVE;
	return 1;
}

/* Bytes, 0 at the end, -EAGAIN, or another error of which words tell. */
static ssize_t
receive(struct hc_probe *probe, char *bytes, size_t n, char words[static HC_WORDS_BYTES])
{
	ssize_t ret;

	if (probe->tls != NULL)
		return hc_tls_receive(probe->tls, bytes, n, words);
	ret = recv(probe->fd, bytes, n, 0);
	if (ret >= 0)
		return ret;
	ret = -errno;
	hc_words_set_error(words, probe->target.check->type == HC_UDP ? "reply" : "status",
		errno);
	return ret;
}

static void
say_expected(const struct hc_check *check, int status, char words[static HC_WORDS_BYTES])
{
	char expected[HC_WORDS_BYTES];
	size_t n = 0;

	expected[0] = '\0';
	for (size_t i = 0; i < check->n_expect && n + 16 < sizeof(expected); i++) {
		const struct hc_range *range = &check->expect[i];
		const char *comma = i > 0 ? ", " : "";

		n += (size_t)snprintf(expected + n, sizeof(expected) - n,
			range->first == range->last ? "%s%u" : "%s%u-%u", comma,
			(unsigned int)range->first, (unsigned int)range->last);
	}
	hc_words_set(words, "status %d, expected %s", status, expected);
}

static enum hc_outcome
read_status(struct hc_probe *probe, char words[static HC_WORDS_BYTES])
{
	char bytes[HC_HTTP_STATUS_BYTES];

	for (;;) {
		const ssize_t n = receive(probe, bytes, sizeof(bytes), words);
		int status;

		if (n < 0)
			return n == -EAGAIN ? HC_RUNNING : HC_FAILED;
		if (n == 0) {
			hc_words_set(words, "status: the connection was closed before it");
			return HC_FAILED;
		}
		status = hc_http_read(&probe->http, bytes, (size_t)n);
		if (status == -EBADMSG) {
			hc_words_set(words, "status: the answer is no HTTP");
			return HC_FAILED;
		}
		if (status == 0)
			continue;
		if (hc_check_expects(probe->target.check, (unsigned int)status))
			return HC_PASSED;
		say_expected(probe->target.check, status, words);
		return HC_FAILED;
	}
}

static enum hc_outcome
read_datagram(struct hc_probe *probe, char words[static HC_WORDS_BYTES])
{
	char byte;
	const ssize_t n = receive(probe, &byte, sizeof(byte), words);

	if (n == -EAGAIN)
		return HC_RUNNING;
	probe->n_doubts = n >= 0 ? 0 : HC_DOUBTS;
	return n >= 0 ? HC_PASSED : HC_FAILED;
}

enum hc_outcome
hc_probe_go_on(struct hc_probe *probe, struct hc_tls_context *tls, uint32_t events,
	char words[static HC_WORDS_BYTES])
{
	int ret = 1;

	if (probe->target.check->type == HC_UDP)
		return read_datagram(probe, words);
	if (probe->stage == HC_CONNECT) {
		const enum hc_outcome outcome = end_connect(probe, tls, events, words);

		if (outcome != HC_RUNNING || probe->stage == HC_CONNECT)
			return outcome;
	}
	if (probe->stage == HC_HANDSHAKE)
		ret = shake_hands(probe, words);
	if (ret > 0 && probe->stage == HC_SEND)
		ret = send_request(probe, words);
	if (ret < 0)
		return HC_FAILED;
	return ret == 0 ? HC_RUNNING : read_status(probe, words);
}

enum hc_outcome
hc_probe_expire(struct hc_probe *probe, char words[static HC_WORDS_BYTES])
{
	const struct hc_check *check = probe->target.check;
	const char *what = stage_words[probe->stage];

	if (check->type == HC_UDP && !check->wants_reply && probe->n_doubts == 0)
		return HC_PASSED;
	if (check->type == HC_UDP && !check->wants_reply) {
		probe->n_doubts--;
		hc_words_set(words, "reply: none, and it was refused before");
		return HC_FAILED;
	}
	if (check->type == HC_UDP || check->type == HC_ICMP)
		what = "reply";
	hc_words_set_timeout(words, what, check->timeout_ns);
	return HC_FAILED;
}

uint64_t
hc_probe_next(uint64_t due_ns, uint64_t interval_ns, uint64_t now_ns)
{
	return due_ns + ((now_ns - due_ns) / interval_ns + 1) * interval_ns;
}

bool
hc_probe_is_cut_off(const struct hc_probe *probe)
{
	struct ifreq request = {.ifr_name = HC_TUNNEL_NAME};

	return probe->tunnel != NULL && probe->fd >= 0 &&
	       (hc_tunnel_has_lost(probe->tunnel, probe->source_port) ||
		       ioctl(probe->fd, SIOCGIFFLAGS, &request) != 0 ||
		       (request.ifr_flags & IFF_UP) == 0);
}

static void
close_all(struct hc_probe *probe)
{
	hc_tls_close(probe->tls);
	probe->tls = NULL;
	if (probe->fd >= 0)
		(void)close(probe->fd);
	probe->fd = -1;
	if (probe->tunnel != NULL)
		hc_tunnel_return(probe->tunnel, probe->source_port);
	probe->tunnel = NULL;
	probe->is_running = false;
}

void
hc_probe_end(struct hc_probe *probe, enum hc_outcome outcome)
{
	if (probe->tls != NULL && outcome == HC_PASSED)
		hc_tls_keep(probe->tls, probe->begun_ns, &probe->session);
	else if (outcome == HC_FAILED)
		hc_tls_session_drop(&probe->session);
	close_all(probe);
}

void
hc_probe_fini(struct hc_probe *probe)
{
	hc_tls_session_drop(&probe->session);
	close_all(probe);
}
