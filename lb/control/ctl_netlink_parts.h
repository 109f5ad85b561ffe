/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_NETLINK_PARTS_H
#define CTL_NETLINK_PARTS_H

/**
 * @file
 * What ctl_netlink.c and ctl_netlink_links.c share; only they include this. Control thread.
 */

#include "ctl_netlink_msg.h"

/*
 * Questions in one message. The kernel takes a page or two for an answer, and all that belong
 * to a message must fit into the socket's buffer (212,992 bytes by default).
 */
#define CTL_NETLINK_BATCH 16
/* Interfaces with many virtual functions and routes with many hops are long. */
#define CTL_NETLINK_RECEIVE_BYTES 32768

enum ctl_netlink_stage { STAGE_IDLE, STAGE_ROUTES, STAGE_NEIGHS };

struct ctl_netlink {
	struct ctl_loop *loop;
	ctl_hops_changed_fn fn;
	void *context;
	ctl_link_changed_fn link_fn; /* NULL: nobody asks */
	void *link_context;
	struct mnl_socket *events;
	struct mnl_socket *requests;
	struct mnl_socket *commands; /* the only one that waits */
	struct ctl_timer *tick;
	struct ctl_timer *settle; /* NULL: none is running */

	struct ctl_hops hops;

	bool needs_pass;
	bool needs_recheck;
	bool has_lost_events; /* and what is still queued is older than what was lost */
	bool needs_reread;

	enum ctl_netlink_stage stage;
	size_t cursor;
	bool has_new_routes; /* hops are not gathered yet */
	uint64_t pass_began_ms;
	uint64_t pass_ms;
	uint64_t asked_at_ms;

	/* The batch under way: question i has sequence number first_seq + i. */
	uint32_t first_seq;
	uint32_t next_seq;
	size_t asked[CTL_NETLINK_BATCH];
	bool is_answered[CTL_NETLINK_BATCH];
	size_t n_asked;
	size_t n_waiting;

	size_t n_out_bytes;
	_Alignas(struct nlmsghdr) uint8_t out[2 * CTL_NETLINK_BATCH * CTL_MSG_BYTES_MAX];
	_Alignas(struct nlmsghdr) uint8_t in[CTL_NETLINK_RECEIVE_BYTES];
	/* Of commands, which may be run while what is in `in` is being taken. */
	_Alignas(struct nlmsghdr) uint8_t result[CTL_NETLINK_RECEIVE_BYTES];
};

#endif
