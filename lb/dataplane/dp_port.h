/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PORT_H
#define DP_PORT_H

/**
 * @file
 * Ports: a device and, beside it, its twin, through which the kernel has its share.
 */

#include <stdatomic.h>

#include <rte_ethdev.h>
#include <rte_ring.h>

#include "dp.h"
#include "dp_handoff.h"
#include "dp_port_fit.h"

/** A device's queues, and how workers share them. */
struct dp_nic {
	uint16_t id;   /**< the ethdev's */
	uint16_t n_rx; /**< queue q is polled by worker q */
	uint16_t n_tx; /**< queue q is filled by worker q; the rest of them use the ring */
	bool spreads;  /**< packets by flow, a queue for each worker; else the workers do it */
	bool has_key;  /**< the device was given rss.key */
	struct dp_rss rss; /**< how, where it spreads among several, and can be told */
	/** Nothing that is sent would arrive: written by control, read by workers; relaxed, it
	 *  carries nothing but itself. */
	_Atomic bool is_down;
	enum lb_verdict down_verdict; /**< what packets are dropped by while it is */
	uint16_t mtu;                 /**< bytes */
	/** To the worker of queue 0; NULL where each worker has a queue. */
	struct rte_ring *tx_ring;
};

struct dp_port {
	struct dp_nic nic;
	struct dp_nic twin; /**< where has_twin */
	bool has_twin;
	bool is_pci;
	bool hears_itself; /**< receives what the kernel sends by the interface, too */
	bool hears_others; /**< no NIC keeps back frames for another MAC address */
	struct lb_mac mac;
	struct rte_mempool *pool;
	char driver[32];
	unsigned int if_index; /**< of the kernel's interface that the device is; 0: none */
	char device_if[16];    /**< the kernel's interface that the device is; "": none */
	char kernel_if[16];    /**< by which the kernel has its share; "" where there is none */
};

/** Of a plane: where a port stands in it. */
struct dp_port_place {
	unsigned int index;
	size_t n_ports;
	unsigned int n_workers;
	uint32_t n_waiting; /**< fragments that may wait, in the buffers they came in */
};

/**
 * Open a device and its twin, and start both.
 *
 * @retval -errno   Why not; messages was told, with what cures it. Nothing is left running;
 *                  what did not start keeps its memory.
 */
int dp_port_open(const struct dp_port_conf *conf, const struct dp_port_place *place,
	struct dp_port *out, FILE *messages) lb_must_check;

/** Stop and close both. The buffers stay, as another port's queues may hold some of them. */
void dp_port_close(struct dp_port *port);

/** Free the buffers, once all ports are closed that might hold some. */
void dp_port_free_buffers(struct dp_port *port);

/** The name that a port's device has with the EAL; out has room for RTE_DEV_NAME_MAX_LEN. */
void dp_port_device_name(const struct dp_port_conf *conf, unsigned int index, char *out);

#endif
