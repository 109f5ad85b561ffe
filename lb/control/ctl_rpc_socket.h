/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_RPC_SOCKET_H
#define CTL_RPC_SOCKET_H

/**
 * @file
 * A Unix socket to listen at: made in place of a stale one, and removed only if it is ours.
 */

#include <sys/stat.h>
#include <sys/un.h>

#include "lb_compiler.h"

struct ctl_rpc_socket {
	int fd; /**< listens, does not block */
	struct sockaddr_un address;
	dev_t device; /**< with inode: what we made at the path */
	ino_t inode;
};

/**
 * Listen at a path, as ctl_rpc_open() says.
 *
 * @param[out] out  Untouched on error.
 */
int ctl_rpc_socket_open(const char *path, struct ctl_rpc_socket *out) lb_must_check;

void ctl_rpc_socket_close(const struct ctl_rpc_socket *socket);

#endif
