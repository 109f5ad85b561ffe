/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_FILTER_H
#define CTL_FILTER_H

/**
 * @file
 * What calls say of the packets or flows that are wanted, and how protocols and ends are told.
 * What is wrong answers the call, as bad parameters. Control thread.
 */

#include "cfg_model.h"
#include "ctl_rpc.h"
#include "lb_filter.h"

/**
 * Read the parameters host, net, client, port and protocol, each of which may be absent or
 * null.
 *
 * @param[out] out  Untouched where false is returned.
 * @return false: the call is answered.
 */
bool ctl_filter_read(const json_t *params, struct ctl_call *call, struct lb_filter *out);

/**
 * Read the parameters protocol, tcp or udp, client and destination, which are to be there.
 *
 * @param[out] key  Of the flow.
 * @return false: the call is answered.
 */
bool ctl_filter_read_flow(const json_t *params, struct ctl_call *call, struct lb_flow_key *key);

/** A text, NULL where it is absent or null. @return false: the call is answered. */
bool ctl_filter_read_text(const json_t *params, const char *key, struct ctl_call *call,
	const char **text);

/**
 * Read the parameter service.
 *
 * @param[out] out  NULL where it is absent or null.
 * @return false: the call is answered.
 */
bool ctl_filter_read_service(const json_t *params, const struct cfg_model *model,
	struct ctl_call *call, const struct cfg_service **out);

/**
 * Read a whole number, as one or as its digits.
 *
 * @param[in,out] value  What holds where it is absent or null.
 * @return false: the call is answered.
 */
bool ctl_filter_read_number(const json_t *params, const char *key, uint64_t min, uint64_t max,
	struct ctl_call *call, uint64_t *value);

/** Read true or false. @param[in,out] value  As above. @return false: the call is answered. */
bool ctl_filter_read_flag(const json_t *params, const char *key, struct ctl_call *call,
	bool *value);

#define CTL_PROTOCOL_TEXT_BYTES 8u
#define CTL_END_TEXT_BYTES      (LB_ADDR_TEXT_BYTES + 8u)

/** "tcp", "udp", "icmp", "icmpv6", or the number's digits. */
const char *ctl_filter_protocol(uint8_t protocol, char out[static CTL_PROTOCOL_TEXT_BYTES]);

/** ADDRESS:PORT, an IPv6 address in brackets; the address alone where there are no ports. */
const char *ctl_filter_end(const struct lb_addr *addr, uint16_t port_be, bool has_port,
	char out[static CTL_END_TEXT_BYTES]);

#endif
