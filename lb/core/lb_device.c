/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_device.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool
lb_device_is_pci(const char *device)
{
	/* A vdev begins with its driver's name, a PCI address with a digit or has a colon. */
	return strncmp(device, "net_", 4) != 0 && strncmp(device, "eth_", 4) != 0 &&
	       strchr(device, ':') != NULL;
}

bool
lb_device_is_packet_socket(const char *device)
{
	return strncmp(device, "net_af_packet", 13) == 0 ||
	       strncmp(device, "eth_af_packet", 13) == 0;
}

void
lb_device_find_argument(const char *device, const char *key, char *out, size_t n)
{
	const size_t n_key = strlen(key);

	out[0] = '\0';
	for (const char *at = strchr(device, ','); at != NULL; at = strchr(at, ',')) {
		at++;
		if (strncmp(at, key, n_key) != 0 || at[n_key] != '=')
			continue;
		at += n_key + 1;
		(void)snprintf(out, n, "%.*s", (int)strcspn(at, ","), at);
		return;
	}
}

/* Without what may be left out of it: "pci:" and the first domain. */
static const char *
skip_domain(const char *device)
{
	if (strncasecmp(device, "pci:", 4) == 0)
		device += 4;
	return strncmp(device, "0000:", 5) == 0 ? device + 5 : device;
}

static bool
is_same_name(const char *a, const char *b)
{
	const size_t n = strcspn(a, ",");

	return n == strcspn(b, ",") && strncasecmp(a, b, n) == 0;
}

bool
lb_device_is_same(const char *a, const char *b)
{
	char interfaces[2][64];
	const size_t n = strcspn(a, ",");

	if (lb_device_is_pci(a) || lb_device_is_pci(b))
		return is_same_name(skip_domain(a), skip_domain(b));
	lb_device_find_argument(a, "iface", interfaces[0], sizeof(interfaces[0]));
	lb_device_find_argument(b, "iface", interfaces[1], sizeof(interfaces[1]));
	if (interfaces[0][0] != '\0' && strcmp(interfaces[0], interfaces[1]) == 0)
		return true;
	/* A name without a number is completed by the port's place. */
	return is_same_name(a, b) && n > 0 && a[n - 1] >= '0' && a[n - 1] <= '9';
}
