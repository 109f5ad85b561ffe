/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PORT_H
#define DP_PORT_H

/**
 * @file
 * Ports: a device and, beside it, its twin, through which the kernel has its share.
 */

#include <rte_ethdev.h>
#include <rte_ring.h>

#include "dp.h"

/** A device's queues, and how workers share them. */
struct dp_nic {
	uint16_t id;   /**< the ethdev's */
	uint16_t n_rx; /**< queue q is polled by worker q */
	uint16_t n_tx; /**< queue q is filled by worker q; the rest of them use the ring */
	/** To the worker of queue 0; NULL where each worker has a queue. */
	struct rte_ring *tx_ring;
};

struct dp_port {
	struct dp_nic nic;
	struct dp_nic twin; /**< where has_twin */
	bool has_twin;
	struct lb_mac mac;
	struct rte_mempool *pool;
	char driver[32];
	char kernel_if[16]; /**< "" where there is none */
};

/**
 * Open a device and its twin, and start both.
 *
 * @param index     Its place among the ports.
 * @retval -errno   Why not; messages was told, with what cures it. Nothing is left open.
 */
int dp_port_open(const struct dp_port_conf *conf, unsigned int index, unsigned int n_workers,
	struct dp_port *out, FILE *messages) lb_must_check;

/** Stop and close both. */
void dp_port_close(struct dp_port *port);

/** The name that a port's device has with the EAL; out has room for RTE_DEV_NAME_MAX_LEN. */
void dp_port_device_name(const struct dp_port_conf *conf, unsigned int index, char *out);

/** Whether a device is a PCI address rather than a vdev. */
bool dp_port_is_pci(const char *device);

#endif
