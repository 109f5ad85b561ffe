/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_port_xdp.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lb_device.h"

/* What the kernel says of an interface's channels; all 0 where its driver has none to tell of:
 * then there is one queue, as DPDK takes it too. */
static struct ethtool_channels
read_channels(const char *interface)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq request = {.ifr_data = (void *)&channels};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_known;

	if (fd < 0)
		return (struct ethtool_channels){0};
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", interface);
	is_known = ioctl(fd, SIOCETHTOOL, &request) == 0;
	(void)close(fd);
	return is_known ? channels : (struct ethtool_channels){0};
}

static void
say_cures(const char *interface, const struct ethtool_channels *channels, unsigned int n_read,
	FILE *messages)
{
	const unsigned int n_rx = channels->combined_count + channels->rx_count;

	if (channels->combined_count > 0)
		(void)fprintf(messages,
			"'ethtool -L %s combined %u', or queue_count=%u in device: and "
			"dataplane.workers: %u",
			interface, n_read, n_rx, n_rx);
	else
		(void)fprintf(messages, "'ethtool -L %s rx %u'", interface, n_read);
	(void)fprintf(messages,
		"; or if it steers to these what is for services, begin with one of them, "
		"start_queue=0 say\n");
}

int
dp_port_check_xdp_queues(const struct dp_port_conf *conf, unsigned int n_read, FILE *messages)
{
	struct ethtool_channels channels;
	char interface[IF_NAMESIZE];
	char begin[16]; /* whether there is any is all that is looked at */
	unsigned int n_rx;

	lb_device_find_argument(conf->device, "iface", interface, sizeof(interface));
	lb_device_find_argument(conf->device, "start_queue", begin, sizeof(begin));
	channels = read_channels(interface);
	n_rx = channels.combined_count + channels.rx_count;
	if (n_rx <= n_read)
		return 0;
	if (begin[0] != '\0') {
		(void)fprintf(messages,
			"port '%s': device '%s' reads %u of the %u queues of its interface; "
			"what comes by others is the kernel's\n",
			conf->name, conf->device, n_read, n_rx);
		return 0;
	}
	(void)fprintf(messages,
		"port '%s': interface '%s' receives by %u queues, and device '%s' reads %u: ",
		conf->name, interface, n_rx, conf->device, n_read);
	say_cures(interface, &channels, n_read, messages);
	return -EINVAL;
}
