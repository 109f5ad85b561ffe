/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_PINGER_H
#define HC_PINGER_H

/**
 * @file
 * ICMP echo for all checks, by one socket of each family: a socket a check would have every one
 * of them read every reply. A raw socket where this process may have one, and otherwise the
 * kernel's own for echo (net.ipv4.ping_group_range).
 *
 * The prober's thread alone.
 */

#include "hc_echo.h"
#include "hc_probe.h"

struct hc_pinger {
	int fds[2]; /**< IPv6, IPv4; -1: not open */
	bool is_raw[2];
	uint64_t secret;
};

/** Nothing is open before it is needed. @retval -errno  The kernel has no random bytes. */
int hc_pinger_init(struct hc_pinger *pinger) lb_must_check;

void hc_pinger_fini(struct hc_pinger *pinger);

/**
 * Ask a probe's backend.
 *
 * @param epoll_fd    Is told of the socket, once, with the pinger as data.
 * @param[out] words  Why not, unless it is running.
 */
enum hc_outcome hc_pinger_ask(struct hc_pinger *pinger, struct hc_probe *probe, int epoll_fd,
	char words[static HC_WORDS_BYTES]);

/**
 * Take a reply that has come.
 *
 * @param left       Less by one for each that was looked at, strangers' among them: a machine
 * is sent what others like. At 0 no more are.
 * @param[out] echo  Whose it is; from whom it came is in from.
 * @return whether there was one.
 */
bool hc_pinger_take(struct hc_pinger *pinger, unsigned int *left, struct hc_echo *echo,
	struct lb_addr *from);

#endif
