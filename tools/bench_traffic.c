/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_traffic.h"

#include <netinet/in.h>
#include <string.h>

#include "lb_csum.h"

enum {
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	TCP_BYTES = 20,
	IPV4_SRC = 12, /* offset in the header; the destination follows */
	IPV6_SRC = 8,
	IPV4_CHECKSUM = 10,
	SPORT = 0, /* offsets in TCP's */
	DPORT = 2,
	SEQ = 4,
	FLAGS = 13,
	ETHERNET_MIN = 64,
};

/* Clients: 256 flows an address, each with ports of its own. 32.0.0.0 up to 47.255.255.255. */
#define CLIENT_V4       0x20000000u
#define FLOWS_PER_ADDR  256u
#define CLIENT_PORT_MIN 1024u
#define PORT_STEP       251u
/* Services: RFC 2544's network, and another port when its addresses are used up. */
#define SERVICE_V4       0xc6120000u
#define SERVICE_V4_ADDRS (1u << 17)
#define SERVICE_PORT     443u
#define BACKEND_V4       0x0a000001u
#define OWN_V4           0xc0000201u

const struct lb_mac bench_next_hop = {{0x02, 0, 0, 0, 0, 0xfe}};
const struct lb_mac bench_port_mac = {{0x02, 0, 0, 0, 0, 0x01}};

uint32_t
bench_packet_bytes_min(unsigned int family)
{
	const uint32_t least = BENCH_ETHER_BYTES + (family == 4 ? IPV4_BYTES : IPV6_BYTES) +
			       TCP_BYTES + BENCH_FCS_BYTES;

	return least < ETHERNET_MIN ? ETHERNET_MIN : least;
}

void
bench_order_init(struct bench_order *order, uint64_t n)
{
	unsigned int n_bits = 0;

	while (n_bits < 62 && (UINT64_C(1) << n_bits) < n)
		n_bits++;
	*order = (struct bench_order){
		.n = n,
		.mask = (UINT64_C(1) << n_bits) - 1,
		.shift = (n_bits + 1) / 2,
	};
}

uint64_t
bench_order_next(struct bench_order *order)
{
	uint64_t value;

	/*
	 * A linear congruential generator modulo a power of two has the full period (Hull and
	 * Dobell); its low bits come round early, so high ones are folded in, which maps the
	 * numbers to one another. What is n or more is passed over: less than half of them.
	 */
	do {
		order->state = (order->state * UINT64_C(6364136223846793005) +
				       UINT64_C(1442695040888963407)) &
			       order->mask;
		value = order->state ^ order->state >> order->shift;
		value = (value * UINT64_C(0x9e3779b97f4a7c15)) & order->mask;
		value ^= value >> order->shift;
	} while (value >= order->n);
	return value;
}

static void
put_u32(uint8_t *out, uint32_t value)
{
	const uint32_t be = htonl(value);

	memcpy(out, &be, sizeof(be));
}

static void
put_u16(uint8_t *out, uint32_t value)
{
	out[0] = (uint8_t)(value >> 8);
	out[1] = (uint8_t)value;
}

static struct lb_addr
make_v4(uint32_t value)
{
	uint8_t bytes[4];

	put_u32(bytes, value);
	return lb_addr_from_v4(bytes);
}

/* 2001:db8:KIND::VALUE, RFC 3849's network. */
static struct lb_addr
make_v6(uint16_t kind, uint32_t value)
{
	struct lb_addr addr = {{0x20, 0x01, 0x0d, 0xb8}};

	put_u16(addr.bytes + 4, kind);
	put_u32(addr.bytes + 12, value);
	return addr;
}

struct lb_addr
bench_service_addr(unsigned int family, uint32_t service)
{
	return family == 4 ? make_v4(SERVICE_V4 + service % SERVICE_V4_ADDRS)
			   : make_v6(5, 1 + service);
}

uint16_t
bench_service_port(uint32_t service)
{
	return (uint16_t)(SERVICE_PORT + service / SERVICE_V4_ADDRS);
}

struct lb_addr
bench_backend_addr(unsigned int family, uint32_t backend)
{
	return family == 4 ? make_v4(BACKEND_V4 + backend) : make_v6(0xa, 1 + backend);
}

struct lb_addr
bench_own_addr(unsigned int family)
{
	return family == 4 ? make_v4(OWN_V4) : make_v6(0, 1);
}

static void
fill_ip(struct bench_traffic *traffic)
{
	uint8_t *ip = traffic->frame + BENCH_ETHER_BYTES;
	const uint32_t ip_bytes = traffic->frame_bytes - BENCH_ETHER_BYTES;

	if (traffic->family == 4) {
		put_u16(ip - 2, 0x0800);
		ip[0] = 0x45;
		put_u16(ip + 2, ip_bytes);
		ip[6] = 0x40; /* DF */
		ip[8] = 64;
		ip[9] = IPPROTO_TCP;
		traffic->header_sum = (uint32_t)(uint16_t)~ntohs(
			lb_csum_finish(lb_csum_add(0, ip, IPV4_BYTES)));
	} else {
		put_u16(ip - 2, 0x86dd);
		ip[0] = 0x60;
		put_u16(ip + 4, ip_bytes - IPV6_BYTES);
		ip[6] = IPPROTO_TCP;
		ip[7] = 64;
	}
}

void
bench_traffic_init(struct bench_traffic *traffic, unsigned int family, uint32_t n_services,
	uint32_t packet_bytes, bool is_syn)
{
	/* Not to whom it leaves from: that is its backend's to say. */
	static const struct lb_mac receiver = {{0x02, 0, 0, 0, 0, 0x03}};
	static const struct lb_mac router = {{0x02, 0, 0, 0, 0, 0x02}};
	const size_t n_headers =
		BENCH_ETHER_BYTES + (family == 4 ? IPV4_BYTES : IPV6_BYTES) + TCP_BYTES;
	uint8_t *tcp;

	*traffic = (struct bench_traffic){
		.family = family,
		.n_services = n_services,
		.frame_bytes = (uint16_t)(packet_bytes - BENCH_FCS_BYTES),
		.is_syn = is_syn,
	};
	memcpy(traffic->frame, receiver.bytes, sizeof(receiver.bytes));
	memcpy(traffic->frame + sizeof(router.bytes), router.bytes, sizeof(router.bytes));
	fill_ip(traffic);
	tcp = traffic->frame + n_headers - TCP_BYTES;
	tcp[12] = TCP_BYTES / 4 << 4;
	tcp[FLAGS] = is_syn ? 0x02 : 0x10;
	put_u16(tcp + 14, 0xffff);
	for (size_t i = n_headers; i < traffic->frame_bytes; i++)
		traffic->frame[i] = (uint8_t)i;
}

uint32_t
bench_traffic_service(const struct bench_traffic *traffic, uint64_t flow)
{
	/* In 32 bits, as the division is the generator's largest cost. */
	return (uint32_t)flow % traffic->n_services;
}

static void
write_v4(const struct bench_traffic *traffic, uint32_t client, uint32_t service, uint8_t *ip)
{
	const uint32_t dst = SERVICE_V4 + service % SERVICE_V4_ADDRS;
	uint32_t sum = traffic->header_sum + (client >> 16) + (client & 0xffff) + (dst >> 16) +
		       (dst & 0xffff);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put_u16(ip + IPV4_CHECKSUM, ~sum);
	put_u32(ip + IPV4_SRC, client);
	put_u32(ip + IPV4_SRC + 4, dst);
}

static void
write_v6(uint32_t client, uint32_t service, uint8_t *ip)
{
	const struct lb_addr src = make_v6(0xf, client);
	const struct lb_addr dst = make_v6(5, 1 + service);

	memcpy(ip + IPV6_SRC, src.bytes, sizeof(src.bytes));
	memcpy(ip + IPV6_SRC + LB_ADDR_BYTES, dst.bytes, sizeof(dst.bytes));
}

void
bench_traffic_write(const struct bench_traffic *traffic, uint64_t flow, uint32_t seq,
	uint8_t *out)
{
	const uint32_t client = CLIENT_V4 + (uint32_t)(flow / FLOWS_PER_ADDR);
	const uint32_t sport = CLIENT_PORT_MIN + (uint32_t)(flow % FLOWS_PER_ADDR) * PORT_STEP;
	const uint32_t service = bench_traffic_service(traffic, flow);
	uint8_t *ip = out + BENCH_ETHER_BYTES;
	uint8_t *tcp = ip + (traffic->family == 4 ? IPV4_BYTES : IPV6_BYTES);

	memcpy(out, traffic->frame, traffic->frame_bytes);
	if (traffic->family == 4)
		write_v4(traffic, client, service, ip);
	else
		write_v6(client, service, ip);
	put_u16(tcp + SPORT, sport);
	put_u16(tcp + DPORT, bench_service_port(service));
	put_u32(tcp + SEQ, seq);
}
