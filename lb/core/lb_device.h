/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_DEVICE_H
#define LB_DEVICE_H

/**
 * @file
 * What the name of a port's device says: a PCI address, or a virtual device of a driver's with
 * its arguments, as DPDK's options -a and --vdev take them.
 *
 * All functions are pure and may be called from any thread; texts are NUL-terminated.
 */

#include <stdbool.h>
#include <stddef.h>

/** Whether a device is a PCI address rather than a virtual device. */
bool lb_device_is_pci(const char *device);

/** Whether a device is a packet socket, by its driver's name or the alias of that. */
bool lb_device_is_packet_socket(const char *device);

/**
 * The value of one of a virtual device's arguments, "iface" say.
 *
 * @param[out] out  Room for n bytes, 1 or more; cut where it is longer, "" where there is none.
 */
void lb_device_find_argument(const char *device, const char *key, char *out, size_t n);

/** Whether two are one: a PCI address, an interface, or a virtual device's full name. */
bool lb_device_is_same(const char *a, const char *b);

#endif
