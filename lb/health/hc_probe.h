/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_PROBE_H
#define HC_PROBE_H

/**
 * @file
 * One question to one backend, over a socket that does not block: from its begin to its answer,
 * its failure, or the end of its time. ICMP goes by a socket that all share, see hc_pinger.h.
 *
 * The prober's thread alone.
 */

#include "hc_heap.h"
#include "hc_http.h"
#include "hc_tls.h"
#include "hc_tunnel.h"

enum hc_outcome {
	HC_RUNNING,
	HC_PASSED,
	HC_FAILED,
	HC_NOT_ASKED, /**< for want of something here: that is not the backend's fault */
};

enum hc_stage { HC_CONNECT, HC_HANDSHAKE, HC_SEND, HC_RECEIVE };

struct hc_probe {
	struct hc_timer
		timer; /**< first, as timers are probes: its next begin, or its time's end */
	struct hc_target target;
	uint64_t begun_ns;
	uint64_t next_ns; /**< when it is to begin anew */
	bool is_running;
	enum hc_stage stage;
	int fd;                        /**< -1: none */
	struct hc_tls *tls;            /**< NULL: none */
	struct hc_tls_session session; /**< of its last check that has passed */
	struct hc_tunnel *tunnel;      /**< that source_port is borrowed from; NULL: none */
	uint16_t source_port;
	size_t n_sent;
	uint8_t n_doubts; /**< udp: silences that tell nothing, as it was refused before */
	struct hc_http http;
};

/** Nothing has been asked yet. */
void hc_probe_init(struct hc_probe *probe, const struct hc_target *target);

/**
 * Begin; any type but icmp.
 *
 * @param tunnel      For those that are tunnelled; NULL: there is none.
 * @param epoll_fd    Is told of its socket, edge-triggered, with the probe as data.
 * @param[out] words  Why, unless it is running or has passed.
 */
enum hc_outcome hc_probe_begin(struct hc_probe *probe, struct hc_tunnel *tunnel, int epoll_fd,
	char words[static HC_WORDS_BYTES]);

/**
 * Its socket is ready.
 *
 * @param tls     For https.
 * @param events  As epoll names them.
 */
enum hc_outcome hc_probe_go_on(struct hc_probe *probe, struct hc_tls_context *tls,
	uint32_t events, char words[static HC_WORDS_BYTES]);

/** Silences after which one is an answer again of who was refused: see hc_probe_expire(). */
#define HC_DOUBTS 15u

/**
 * Its time is over. With udp, where no reply is wanted, silence is an answer; but of a port
 * that nobody listens at, a machine tells who asks for all its ports no more than once a second
 * or so (RFC 4443, section 2.4; Linux' icmp_ratelimit). So after a refusal it takes more
 * silence.
 */
enum hc_outcome hc_probe_expire(struct hc_probe *probe, char words[static HC_WORDS_BYTES]);

/**
 * When the question after one that was due is. Those that could not begin in time are not made
 * up for, and stay at their place in the interval: others that were late have theirs.
 *
 * @param now_ns  due_ns or later.
 */
uint64_t hc_probe_next(uint64_t due_ns, uint64_t interval_ns, uint64_t now_ns);

/**
 * Whether its device may be why it fails: it is down or gone, or was when an answer came. Of
 * those that are not tunnelled, or have no socket yet, it never is.
 */
bool hc_probe_is_cut_off(const struct hc_probe *probe);

/** Close what it has open, as it has come to an outcome other than that it is running. */
void hc_probe_end(struct hc_probe *probe, enum hc_outcome outcome);

/** Give back what it has, also where it is running, or has not begun. */
void hc_probe_fini(struct hc_probe *probe);

/** Whether an error is one of this machine's: too many open files, no port, no right, … */
bool hc_probe_is_local(int error);

/** Room for either family's socket address. */
struct hc_socket_address {
	_Alignas(8) unsigned char bytes[28];
};

/** An address and a port as a socket takes them. @return its length. */
uint32_t hc_probe_address(const struct lb_addr *address, uint16_t port,
	struct hc_socket_address *out);

#endif
