/* SPDX-License-Identifier: BSD-3-Clause */
#include "decap_program.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static_assert(sizeof(struct decap_addr) == sizeof(struct lb_addr), "the same 16 bytes");

static int
print_message(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, format, args);
}

void
decap_set_verbose(bool is_verbose)
{
	(void)libbpf_set_print(is_verbose ? print_message : NULL);
}

/* What to do about an error, where that is known. */
static const char *
cure(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return ": run it as root, or with the capabilities CAP_BPF, CAP_NET_ADMIN and "
		       "CAP_PERFMON; a container may withhold them";
	case ENOSYS:
		return ": this kernel is built without BPF (CONFIG_BPF_SYSCALL)";
	case EOPNOTSUPP:
	case ERANGE:
		return ": the interface's driver cannot; try --mode generic";
	default:
		return "; --verbose says more";
	}
}

/* Returns -error, so that it can be returned at once. */
static int
tell(int error, const char *what, const char *interface)
{
	(void)fprintf(stderr, "shunt-decap: %s: %s: %s%s\n", interface, what, strerror(error),
		cure(error));
	return -error;
}

int
decap_find_interface(const char *name, unsigned int *ifindex)
{
	*ifindex = if_nametoindex(name);
	if (*ifindex != 0)
		return 0;
	(void)fprintf(stderr,
		"shunt-decap: there is no interface '%s' here; ip link lists those there are\n",
		name);
	return -ENODEV;
}

static int
program_info(uint32_t id, struct bpf_prog_info *info)
{
	uint32_t info_bytes = sizeof(*info);
	int fd = bpf_prog_get_fd_by_id(id);
	int ret;

	if (fd < 0)
		return -errno;
	ret = bpf_obj_get_info_by_fd(fd, info, &info_bytes) != 0 ? -errno : 0;
	(void)close(fd);
	return ret;
}

int
decap_find(unsigned int ifindex, struct decap_found *out)
{
	struct bpf_xdp_query_opts query;
	struct bpf_prog_info info = {0};
	int ret;

	memset(&query, 0, sizeof(query)); /* libbpf insists on zero padding */
	query.sz = sizeof(query);
	ret = bpf_xdp_query((int)ifindex, 0, &query);
	if (ret != 0)
		return ret;
	*out = (struct decap_found){.id = query.prog_id, .flags = XDP_FLAGS_DRV_MODE};
	if (query.attach_mode == XDP_ATTACHED_SKB)
		out->flags = XDP_FLAGS_SKB_MODE;
	else if (query.attach_mode == XDP_ATTACHED_HW)
		out->flags = XDP_FLAGS_HW_MODE;
	else if (query.attach_mode == XDP_ATTACHED_MULTI)
		out->id = query.drv_prog_id;
	if (out->id == 0)
		return 0;
	ret = program_info(out->id, &info);
	if (ret != 0)
		return ret;
	memcpy(out->name, info.name, sizeof(out->name));
	out->name[sizeof(out->name) - 1] = '\0';
	out->is_ours = strcmp(out->name, DECAP_PROGRAM) == 0;
	return 0;
}

static int
tell_busy(const char *interface, const struct decap_found *found)
{
	if (found->is_ours)
		(void)fprintf(stderr,
			"shunt-decap: %s: shunt-decap is attached already; if none runs, take "
			"what is left of it off with shunt-decap --detach --interface %s\n",
			interface, interface);
	else
		(void)fprintf(stderr,
			"shunt-decap: %s: another XDP program is attached, '%s', number %u; "
			"stop what it belongs to, or take it off with ip link set dev %s xdp "
			"off\n",
			interface, found->name, found->id, interface);
	return -EBUSY;
}

/* Before anything is loaded, so that the usual mistake gets the best message. */
static int
check_free(const char *interface, unsigned int ifindex)
{
	struct decap_found found;
	int ret = decap_find(ifindex, &found);

	if (ret != 0)
		return tell(-ret, "cannot ask for its XDP program", interface);
	return found.id == 0 ? 0 : tell_busy(interface, &found);
}

static int
map_fd(const struct decap *decap, const char *name)
{
	return bpf_object__find_map_fd_by_name(decap->object, name);
}

static int
load(struct decap *decap, const char *interface)
{
	struct bpf_object_open_opts open;
	int ret;

	memset(&open, 0, sizeof(open));
	open.sz = sizeof(open);
	open.object_name = DECAP_PROGRAM;
	decap->object = bpf_object__open_mem(decap_object, decap_object_bytes, &open);
	if (decap->object == NULL)
		return tell(errno, "cannot read the XDP program", interface);
	ret = bpf_object__load(decap->object);
	if (ret != 0) {
		ret = tell(-ret, "the kernel does not take the XDP program", interface);
		bpf_object__close(decap->object);
		return ret;
	}
	decap->program_fd =
		bpf_program__fd(bpf_object__find_program_by_name(decap->object, DECAP_PROGRAM));
	decap->outers_fd = map_fd(decap, "outers");
	return 0;
}

static int
fill_maps(const struct decap *decap, const struct decap_options *options)
{
	struct decap_settings settings = {.gue_port = options->gue_port};
	uint32_t value = 1;
	uint32_t zero = 0;

	if (bpf_map_update_elem(map_fd(decap, "settings"), &zero, &settings, BPF_ANY) != 0)
		return tell(errno, "cannot set the GUE port", options->interface);
	for (size_t i = 0; i < options->n_services; i++) {
		struct decap_prefix key = {.n_bits = options->services[i].n_bits};

		memcpy(key.addr, options->services[i].addr.bytes, sizeof(key.addr));
		if (bpf_map_update_elem(map_fd(decap, "services"), &key, &value, BPF_ANY) != 0)
			return tell(errno, "cannot add a service", options->interface);
	}
	return decap_refresh_outers(decap, options, options->interface);
}

static int
attach_in(struct decap *decap, uint32_t mode)
{
	decap->attach_flags = mode;
	return bpf_xdp_attach((int)decap->ifindex, decap->program_fd,
		mode | XDP_FLAGS_UPDATE_IF_NOEXIST, NULL);
}

/* auto: native where the driver has it, and takes this program at this MTU. */
static int
attach(struct decap *decap, const struct decap_options *options)
{
	struct decap_found found;
	int ret = -EOPNOTSUPP;

	if (options->mode != DECAP_GENERIC)
		ret = attach_in(decap, XDP_FLAGS_DRV_MODE);
	if (ret != 0 && ret != -EBUSY && ret != -EEXIST && options->mode != DECAP_NATIVE)
		ret = attach_in(decap, XDP_FLAGS_SKB_MODE);
	if (ret == 0)
		return 0;
	if ((ret == -EBUSY || ret == -EEXIST) && decap_find(decap->ifindex, &found) == 0 &&
		found.id != 0)
		return tell_busy(options->interface, &found);
	return tell(-ret, "cannot attach the XDP program", options->interface);
}

int
decap_attach(struct decap *out, const struct decap_options *options)
{
	int ret = decap_find_interface(options->interface, &out->ifindex);

	if (ret != 0)
		return ret;
	ret = check_free(options->interface, out->ifindex);
	if (ret != 0)
		return ret;
	ret = load(out, options->interface);
	if (ret != 0)
		return ret;
	ret = fill_maps(out, options);
	if (ret == 0)
		ret = attach(out, options);
	if (ret != 0)
		bpf_object__close(out->object);
	return ret;
}

/* Only if it still is that program: another may have come in its place. */
static int
detach(int ifindex, int program_fd, uint32_t flags)
{
	struct bpf_xdp_attach_opts expected;

	memset(&expected, 0, sizeof(expected));
	expected.sz = sizeof(expected);
	expected.old_prog_fd = program_fd;
	return bpf_xdp_detach(ifindex, flags, &expected);
}

void
decap_detach(struct decap *decap)
{
	(void)detach((int)decap->ifindex, decap->program_fd, decap->attach_flags);
	bpf_object__close(decap->object);
}

bool
decap_is_attached(const struct decap *decap)
{
	struct bpf_prog_info info = {0};
	uint32_t info_bytes = sizeof(info);
	struct decap_found found;

	return decap_find(decap->ifindex, &found) == 0 &&
	       bpf_obj_get_info_by_fd(decap->program_fd, &info, &info_bytes) == 0 &&
	       info.id == found.id;
}

static bool
has_addr(const struct lb_addr *addrs, size_t n, const struct lb_addr *addr)
{
	for (size_t i = 0; i < n; i++) {
		if (lb_addr_equal(&addrs[i], addr))
			return true;
	}
	return false;
}

/* An IPv4 address of the interface may go under a label: eth0:1. */
static bool
is_of_interface(const struct ifaddrs *entry, const char *interface)
{
	size_t n = strcspn(entry->ifa_name, ":");

	return entry->ifa_addr != NULL && strlen(interface) == n &&
	       strncmp(entry->ifa_name, interface, n) == 0;
}

static int
addr_of(const struct sockaddr *from, struct lb_addr *out)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (from->sa_family == AF_INET) {
		memcpy(&v4, from, sizeof(v4));
		*out = lb_addr_from_v4((const uint8_t *)&v4.sin_addr);
		return 0;
	}
	if (from->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	memcpy(&v6, from, sizeof(v6));
	memcpy(out->bytes, &v6.sin6_addr, sizeof(out->bytes));
	return 0;
}

/* wanted has n of DECAP_OUTERS_MAX. Those that find no more room are left out. */
static int
add_own(const char *interface, struct lb_addr *wanted, size_t *n)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) != 0)
		return tell(errno, "cannot list its addresses", interface);
	for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
		struct lb_addr addr;

		if (!is_of_interface(entry, interface) || addr_of(entry->ifa_addr, &addr) != 0)
			continue;
		if (*n < DECAP_OUTERS_MAX && !has_addr(wanted, *n, &addr))
			wanted[(*n)++] = addr;
	}
	freeifaddrs(list);
	return 0;
}

static void
remove_unwanted(int fd, const struct lb_addr *wanted, size_t n)
{
	struct lb_addr key;
	struct lb_addr kept;
	const struct lb_addr *previous = NULL;

	while (bpf_map_get_next_key(fd, previous, &key) == 0) {
		if (has_addr(wanted, n, &key)) {
			kept = key;
			previous = &kept;
		} else {
			(void)bpf_map_delete_elem(fd, &key);
			previous = NULL; /* a key that is gone is no place to go on from */
		}
	}
}

int
decap_refresh_outers(const struct decap *decap, const struct decap_options *options,
	const char *interface)
{
	struct lb_addr wanted[DECAP_OUTERS_MAX];
	uint32_t value = 1;
	size_t n = options->n_outers;
	int ret;

	memcpy(wanted, options->outers, n * sizeof(wanted[0]));
	ret = add_own(interface, wanted, &n);
	if (ret != 0)
		return ret;
	/* Removed first: otherwise there might be no room for the new. */
	remove_unwanted(decap->outers_fd, wanted, n);
	for (size_t i = 0; i < n; i++) {
		if (bpf_map_update_elem(decap->outers_fd, &wanted[i], &value, BPF_ANY) != 0)
			return tell(errno, "cannot add an outer address", interface);
	}
	return 0;
}

/* The interface's program, which has to be shunt-decap's. */
static int
find_ours(const char *interface, unsigned int *ifindex, struct decap_found *out)
{
	int ret = decap_find_interface(interface, ifindex);

	if (ret != 0)
		return ret;
	ret = decap_find(*ifindex, out);
	if (ret != 0)
		return tell(-ret, "cannot ask for its XDP program", interface);
	if (out->is_ours)
		return 0;
	(void)fprintf(stderr, "shunt-decap: %s: shunt-decap is not attached%s%s\n", interface,
		out->id != 0 ? ", but another XDP program is: " : "", out->name);
	return -ENOENT;
}

int
decap_detach_left_over(const char *interface)
{
	struct decap_found found = {0};
	unsigned int ifindex = 0;
	int ret = find_ours(interface, &ifindex, &found);
	int fd;

	if (ret != 0)
		return ret;
	fd = bpf_prog_get_fd_by_id(found.id);
	if (fd < 0)
		return tell(errno, "cannot open its XDP program", interface);
	ret = detach((int)ifindex, fd, found.flags);
	(void)close(fd);
	return ret == 0 ? 0 : tell(-ret, "cannot detach the XDP program", interface);
}

/* The map `counters` among a program's maps, as a file descriptor or a negative errno. */
static int
open_counters(uint32_t program_id)
{
	uint32_t ids[8] = {0};
	struct bpf_prog_info program = {.map_ids = (uint64_t)(uintptr_t)ids, .nr_map_ids = 8};
	int ret = program_info(program_id, &program);

	if (ret != 0)
		return ret;
	for (uint32_t i = 0; i < program.nr_map_ids && i < 8; i++) {
		struct bpf_map_info map = {0};
		uint32_t map_bytes = sizeof(map);
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (fd < 0)
			return -errno;
		if (bpf_obj_get_info_by_fd(fd, &map, &map_bytes) == 0 &&
			strcmp(map.name, "counters") == 0 &&
			map.max_entries == DECAP_N_COUNTERS)
			return fd;
		(void)close(fd);
	}
	return -EPROTO;
}

static int
sum_counters(int fd, uint64_t counters[])
{
	int n_cpus = libbpf_num_possible_cpus();
	uint64_t *values = n_cpus > 0 ? calloc((size_t)n_cpus, sizeof(*values)) : NULL;
	int ret = 0;

	if (values == NULL)
		return -ENOMEM;
	for (uint32_t key = 0; key < DECAP_N_COUNTERS && ret == 0; key++) {
		ret = bpf_map_lookup_elem(fd, &key, values) != 0 ? -errno : 0;
		counters[key] = 0;
		for (int i = 0; i < n_cpus; i++)
			counters[key] += values[i];
	}
	free(values);
	return ret;
}

int
decap_read_counters(const char *interface, struct decap_found *found, uint64_t counters[])
{
	unsigned int ifindex;
	int ret = find_ours(interface, &ifindex, found);
	int fd;

	if (ret != 0)
		return ret;
	fd = open_counters(found->id);
	if (fd == -EPROTO) {
		(void)fprintf(stderr,
			"shunt-decap: %s: the program attached is of another version; restart "
			"it\n",
			interface);
		return fd;
	}
	ret = fd < 0 ? fd : sum_counters(fd, counters);
	if (fd >= 0)
		(void)close(fd);
	return ret == 0 ? 0 : tell(-ret, "cannot read the counters", interface);
}
