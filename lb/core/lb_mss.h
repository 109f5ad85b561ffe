/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_MSS_H
#define LB_MSS_H

/**
 * @file
 * TCP's maximum segment size (RFC 9293, section 3.7.1), lowered on its way so that what the
 * other end sends fits a tunnel.
 *
 * Pure; callable from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

/**
 * The largest segment that fits: mtu less overhead and fixed IP and TCP headers.
 *
 * @param mtu       Of the egress port, bytes.
 * @param overhead  Bytes of outer headers, lb_encap_overhead().
 * @param is_v6     Whether the inner packet is IPv6.
 * @return 0 where nothing is left; at most 65535.
 */
uint16_t lb_mss_of(unsigned int mtu, unsigned int overhead, bool is_v6) lb_must_check;

/**
 * Lower the MSS that a SYN or SYN-ACK announces, where it announces more.
 *
 * The checksum is updated by the difference (RFC 1624), so that a right one stays right and a
 * wrong one wrong. The option is not added where there is none. Options after one that is
 * malformed, and an MSS option of another length than 4, are left as they are. (TCP-AO, where
 * it covers options, finds that they were changed: RFC 5925.)
 *
 * @param tcp      n_bytes bytes that begin with the TCP header.
 * @param n_bytes  Where the header is cut short nothing is changed.
 * @param mss      Bytes; 0: nothing is changed.
 * @return whether anything was changed.
 */
bool lb_mss_clamp(uint8_t *tcp, size_t n_bytes, uint16_t mss);

#endif
