/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_port_why.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dp_port_fit.h"
#include "lb_device.h"

static const char pci_devices[] = "/sys/bus/pci/devices";

static const char kept_cure[] = "its capture is kept in the port's buffers; it may have 16384 "
				"packets, none of them longer than mtu: allows";
static_assert(DP_PORT_KEPT_MAX == 16384, "what is refused and what it is told are one");

static bool
may_open_packet_sockets(void)
{
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno != EPERM && errno != EACCES;
	(void)close(fd);
	return true;
}

static void
say_why_no_pci(const struct dp_port_conf *conf, FILE *messages)
{
	const int n = (int)strcspn(conf->device, ",");
	const char *address =
		strncmp(conf->device, "pci:", 4) == 0 ? conf->device + 4 : conf->device;
	const bool has_domain = strchr(address, ':') != strrchr(address, ':');
	char path[PATH_MAX];
	char driver[PATH_MAX];
	ssize_t n_driver;

	(void)snprintf(path, sizeof(path), "%s/%s%.*s", pci_devices,
		has_domain ? "" : "0000:", n - (int)(address - conf->device), address);
	if (access(path, F_OK) != 0) {
		(void)fprintf(messages,
			"port '%s': this machine has no PCI device at '%.*s'; 'lspci -D' lists "
			"those it has\n",
			conf->name, n, conf->device);
		return;
	}
	(void)strncat(path, "/driver", sizeof(path) - strlen(path) - 1);
	n_driver = readlink(path, driver, sizeof(driver) - 1);
	driver[n_driver > 0 ? n_driver : 0] = '\0';
	(void)fprintf(messages,
		"port '%s': DPDK does not have the PCI device '%.*s', which has %s%s; bind it "
		"by 'dpdk-devbind.py --bind=vfio-pci %.*s'\n",
		conf->name, n, conf->device, n_driver > 0 ? "the driver " : "no driver",
		n_driver > 0 ? basename(driver) : "", n, conf->device);
}

void
dp_port_say_why_missing(const struct dp_port_conf *conf, FILE *messages)
{
	char interface[IF_NAMESIZE];

	if (lb_device_is_pci(conf->device)) {
		say_why_no_pci(conf, messages);
		return;
	}
	lb_device_find_argument(conf->device, "iface", interface, sizeof(interface));
	/* A net_tap makes its interface itself. */
	if (interface[0] != '\0' && strncmp(conf->device, "net_tap", 7) != 0 &&
		if_nametoindex(interface) == 0)
		(void)fprintf(messages,
			"port '%s': there is no interface '%s'; 'ip link' lists those there "
			"are\n",
			conf->name, interface);
	else if (interface[0] != '\0' && !may_open_packet_sockets())
		(void)fprintf(messages,
			"port '%s': this process may not open device '%s': it takes root, or "
			"CAP_NET_RAW and CAP_NET_ADMIN\n",
			conf->name, conf->device);
	else
		(void)fprintf(messages,
			"port '%s': DPDK has no device '%s'; what it wrote above says why; "
			"is it a driver's name, and are its arguments right?\n",
			conf->name, conf->device);
}

/* The end that connects, which a memif is unless it is told otherwise. */
static bool
is_memif_client(const char *device)
{
	char role[16];

	if (strncmp(device, "net_memif", strlen("net_memif")) != 0)
		return false;
	lb_device_find_argument(device, "role", role, sizeof(role));
	return strcmp(role, "server") != 0 && strcmp(role, "master") != 0;
}

const char *
dp_port_find_cure(const struct dp_port_conf *conf, int error)
{
	/* Its driver says so of a connection that is refused, whoever it is. */
	if (error == -EPERM && is_memif_client(conf->device))
		return "nobody listens at its memif socket; start the other end first, which "
		       "has role=server, or give this one role=server";
	/* Its driver has none left, or found a packet that is larger than one. */
	if ((error == -ENOBUFS || error == -EINVAL) && dp_port_n_kept(conf->device, 1) > 0)
		return kept_cure;
	/* Drivers do not always say that it was this. */
	if (error == -EPERM || error == -EACCES || geteuid() != 0)
		return "it takes root, or CAP_NET_ADMIN and CAP_NET_RAW, and for XDP "
		       "CAP_SYS_ADMIN and CAP_IPC_LOCK";
	if (error == -ENOMEM)
		return "fewer dataplane.workers need less memory, or give more by --eal '-m "
		       "MIB'";
	return "does another process have it? What its driver wrote above may say more";
}

/* As the driver does, so that the kernel's own reason is known. */
static int
try_tun(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	const int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", name);
	ret = ioctl(fd, TUNSETIFF, &request) != 0 ? -errno : 0;
	(void)close(fd);
	return ret;
}

/* Others are NICs, bridges and the like, and missed by more than us. */
static bool
is_tap(const char *interface)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {.ifr_data = (void *)&info};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_known;

	if (fd < 0)
		return false;
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", interface);
	is_known = ioctl(fd, SIOCETHTOOL, &request) == 0;
	(void)close(fd);
	return is_known && strcmp(info.driver, "tun") == 0;
}

static void
say_whose_name_it_is(const struct dp_port_conf *conf, FILE *messages)
{
	char own[IF_NAMESIZE];

	(void)fprintf(messages,
		"there is an interface of that name; give the port another name");
	lb_device_find_argument(conf->device, "iface", own, sizeof(own));
	if (strcmp(own, conf->name) != 0 && is_tap(conf->name))
		(void)fprintf(messages, ", or 'ip link del %.15s'", conf->name);
	(void)fprintf(messages, "\n");
}

void
dp_port_say_why_no_twin(const struct dp_port_conf *conf, int error, FILE *messages)
{
	const bool has_tun = access("/dev/net/tun", F_OK) == 0;
	const char *cure = "'kernel: none' does without";
	int why;

	(void)fprintf(messages,
		"port '%s': its twin, TAP device '%.15s', cannot be made: ", conf->name,
		conf->name);
	if (if_nametoindex(conf->name) != 0) {
		say_whose_name_it_is(conf, messages);
		return;
	}
	why = try_tun(conf->name);
	if (!has_tun)
		(void)fprintf(messages,
			"there is no /dev/net/tun; 'modprobe tun' may cure it, %s\n", cure);
	else if (why == -EPERM || why == -EACCES)
		(void)fprintf(messages,
			"this process may not: it takes root, or CAP_NET_ADMIN and access to "
			"/dev/net/tun; %s\n",
			cure);
	else
		(void)fprintf(messages, "%s; %s\n", strerror(why != 0 ? -why : -error), cure);
}
