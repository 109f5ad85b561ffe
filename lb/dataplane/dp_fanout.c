/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_fanout.h"

#include <stdatomic.h>

#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dp.h"

/* The flags of a fan-out, beside its type, in the upper half of its argument. */
#define FLAGS_SHIFT 16

#define SOCKETS_MAX (LB_PORTS_MAX * LB_WORKERS_MAX)

struct fanout_socket {
	int fd;
	unsigned int interface;
	_Atomic uint64_t missed; /* the kernel forgets what it has told */
};

static struct fanout_socket sockets[SOCKETS_MAX];
/* Release: pairs with the acquire in dp_fanout_missed(), which sees the sockets below it. */
static atomic_uint n_sockets;

static void
remember(int fd)
{
	const unsigned int n = atomic_load_explicit(&n_sockets, memory_order_relaxed);
	struct sockaddr_ll address = {0};
	socklen_t n_bytes = sizeof(address);

	if (n == SOCKETS_MAX || getsockname(fd, (struct sockaddr *)&address, &n_bytes) != 0)
		return;
	sockets[n].fd = fd;
	sockets[n].interface = (unsigned int)address.sll_ifindex;
	atomic_store_explicit(&n_sockets, n + 1, memory_order_release);
}

int
setsockopt(int fd, int level, int option, const void *value, socklen_t n_bytes)
{
	uint32_t fanout;

	if (level != SOL_PACKET || option != PACKET_FANOUT || n_bytes != sizeof(fanout))
		return (int)syscall(SYS_setsockopt, fd, level, option, value, n_bytes);
	memcpy(&fanout, value, sizeof(fanout));
	fanout &= ~((uint32_t)PACKET_FANOUT_FLAG_DEFRAG << FLAGS_SHIFT);
	remember(fd);
	return (int)syscall(SYS_setsockopt, fd, level, option, &fanout, sizeof(fanout));
}

uint64_t
dp_fanout_missed(unsigned int interface)
{
	const unsigned int n = atomic_load_explicit(&n_sockets, memory_order_acquire);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct tpacket_stats told = {0};
		socklen_t n_bytes = sizeof(told);

		if (sockets[i].interface != interface)
			continue;
		(void)getsockopt(sockets[i].fd, SOL_PACKET, PACKET_STATISTICS, &told, &n_bytes);
		sum += told.tp_drops + atomic_fetch_add_explicit(&sockets[i].missed,
					       told.tp_drops, memory_order_relaxed);
	}
	return sum;
}
