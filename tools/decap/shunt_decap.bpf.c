/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */

/*
 * The XDP program of shunt-decap: takes the balancer's outer headers off, in place, before the
 * kernel sees the packet. Whatever it does not understand, or was not told to touch, it hands
 * on as it came.
 *
 * The headers are read through the kernel's own structs: the verifier proves every access to
 * lie in the packet, and BPF has unaligned loads.
 */
#include <linux/bpf.h>

#include <stdbool.h>

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "shunt_decap.h"

#define TAGS_MAX 2

/* More than all headers: Ethernet, tags, IPv4 with options, UDP, where the inner IP begins. */
#define HEADERS_BYTES_MAX 128

#define IPV4_MORE_FRAGMENTS 0x2000
#define IPV4_OFFSET         0x1fff
#define IPV4_HALFWORDS_MAX  30

#define ECN_MASK 3
#define ECN_NONE 0
#define ECN_ECT1 1
#define ECN_ECT0 2
#define ECN_CE   3

struct vlan_tag {
	__be16 tpid;
	__be16 tci;
};

struct ipv6_fragment {
	__u8 nexthdr;
	__u8 reserved;
	__be16 offset;
	__be32 id;
};

struct gre {
	__be16 flags_version;
	__be16 protocol;
};

/* What is known of a packet. Offsets count from the frame's first byte. */
struct packet {
	struct vlan_tag tags[TAGS_MAX];
	__u32 n_tags;
	__u32 ip;            /* the outer IP header */
	__u32 ip_bytes;      /* of that header, options included */
	__u32 at;            /* what comes next to be looked at; at last the inner IP header */
	__u32 payload_bytes; /* from there to the end that the headers announce */
	__u32 inner_bytes;   /* the inner IP packet */
	struct decap_addr outer_dst;
	struct decap_addr inner_dst;
	__u8 proto; /* of the outer IP header */
	__u8 outer_ecn;
	__u8 inner_ecn;
	__u8 inner_version; /* 4 or 6; until known, what the tunnel header announces, or 0 */
	bool is_outer_v6;
	bool is_fragment;
	__u8 tunnel; /* enum decap_tunnel */
};

/* The loader fills these three before the program gets its first packet. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, DECAP_SERVICES_MAX);
	__type(key, struct decap_prefix);
	__type(value, __u32);
} services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DECAP_OUTERS_MAX);
	__type(key, struct decap_addr);
	__type(value, __u32);
} outers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct decap_settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DECAP_N_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

static __always_inline void
count(enum decap_counter counter, __u64 n)
{
	__u32 key = counter;
	__u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value != NULL)
		*value += n;
}

/* n_bytes (a constant) of the frame, or NULL where it ends before them. */
static __always_inline void *
bytes_at(struct xdp_md *ctx, __u32 offset, __u32 n_bytes)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	void *at;

	/*
	 * The verifier wants a bound for what it lost sight of. The two asm keep clang from
	 * leaving that out, and from comparing another sum than the one that is used.
	 */
	asm volatile("" : "+r"(offset));
	if (offset > HEADERS_BYTES_MAX)
		return NULL;
	at = data + offset;
	asm volatile("" : "+r"(at));
	return at + n_bytes > end ? NULL : at;
}

static __always_inline void
set_v4(struct decap_addr *out, const __be32 *v4)
{
	__builtin_memset(out, 0, 10);
	out->addr[10] = 0xff;
	out->addr[11] = 0xff;
	__builtin_memcpy(&out->addr[12], v4, sizeof(*v4));
}

/*
 * The steps of parsing. Each returns 0 to go on, or the counter that says why the packet is
 * left alone. They lean on ->payload_bytes for what the headers announce, and on bytes_at()
 * for what is there.
 */

static __always_inline enum decap_counter
parse_ethernet(struct xdp_md *ctx, struct packet *packet, __be16 *ethertype)
{
	const struct ethhdr *eth = bytes_at(ctx, 0, sizeof(*eth));

	if (eth == NULL)
		return DECAP_PASSED_OTHER;
	*ethertype = eth->h_proto;
	packet->ip = ETH_HLEN;
#pragma unroll
	for (__u32 i = 0; i < TAGS_MAX; i++) {
		const __be16 *rest; /* the tag's TCI, the next EtherType */

		if (*ethertype != bpf_htons(ETH_P_8021Q) &&
			*ethertype != bpf_htons(ETH_P_8021AD))
			break;
		rest = bytes_at(ctx, packet->ip, 2 * sizeof(*rest));
		if (rest == NULL)
			return DECAP_PASSED_OTHER;
		packet->tags[i].tpid = *ethertype;
		packet->tags[i].tci = rest[0];
		packet->n_tags = i + 1;
		packet->ip += sizeof(struct vlan_tag);
		*ethertype = rest[1];
	}
	return 0;
}

static __always_inline bool
is_tunnel_protocol(__u8 proto)
{
	return proto == IPPROTO_IPIP || proto == IPPROTO_IPV6 || proto == IPPROTO_GRE ||
	       proto == IPPROTO_UDP;
}

static __always_inline enum decap_counter
parse_outer_v4(struct xdp_md *ctx, struct packet *packet)
{
	const struct iphdr *ip = bytes_at(ctx, packet->ip, sizeof(*ip));
	__u32 frame_bytes = bpf_xdp_get_buff_len(ctx);
	__u32 total;

	if (ip == NULL || ip->version != 4 || !is_tunnel_protocol(ip->protocol))
		return DECAP_PASSED_OTHER;
	packet->proto = ip->protocol;
	packet->outer_ecn = ip->tos & ECN_MASK;
	packet->ip_bytes = ip->ihl * 4;
	packet->is_fragment =
		(ip->frag_off & bpf_htons(IPV4_MORE_FRAGMENTS | IPV4_OFFSET)) != 0;
	set_v4(&packet->outer_dst, &ip->daddr);
	total = bpf_ntohs(ip->tot_len);
	if (packet->ip_bytes < sizeof(*ip) || total < packet->ip_bytes ||
		packet->ip + total > frame_bytes)
		return DECAP_PASSED_LENGTH;
	packet->at = packet->ip + packet->ip_bytes;
	packet->payload_bytes = total - packet->ip_bytes;
	return 0;
}

/*
 * No extension headers: the balancer sends none. A fragment header is looked into, to count
 * fragments of tunnels as such.
 */
static __always_inline enum decap_counter
parse_outer_v6(struct xdp_md *ctx, struct packet *packet)
{
	const struct ipv6hdr *ip = bytes_at(ctx, packet->ip, sizeof(*ip));
	__u32 frame_bytes = bpf_xdp_get_buff_len(ctx);

	if (ip == NULL || ip->version != 6)
		return DECAP_PASSED_OTHER;
	packet->is_outer_v6 = true;
	packet->proto = ip->nexthdr;
	packet->outer_ecn = ip->flow_lbl[0] >> 4 & ECN_MASK;
	packet->ip_bytes = sizeof(*ip);
	packet->at = packet->ip + sizeof(*ip);
	packet->payload_bytes = bpf_ntohs(ip->payload_len);
	__builtin_memcpy(&packet->outer_dst, &ip->daddr, sizeof(packet->outer_dst));
	if (packet->proto == IPPROTO_FRAGMENT) {
		const struct ipv6_fragment *fragment =
			bytes_at(ctx, packet->at, sizeof(*fragment));

		if (fragment == NULL)
			return DECAP_PASSED_OTHER;
		packet->is_fragment = true;
		packet->proto = fragment->nexthdr;
	}
	if (!is_tunnel_protocol(packet->proto))
		return DECAP_PASSED_OTHER;
	if (packet->at + packet->payload_bytes > frame_bytes)
		return DECAP_PASSED_LENGTH;
	return 0;
}

static __always_inline enum decap_counter
parse_outer(struct xdp_md *ctx, struct packet *packet)
{
	__be16 ethertype = 0;
	enum decap_counter why = parse_ethernet(ctx, packet, &ethertype);

	if (why != 0)
		return why;
	if (ethertype == bpf_htons(ETH_P_IP))
		return parse_outer_v4(ctx, packet);
	if (ethertype == bpf_htons(ETH_P_IPV6))
		return parse_outer_v6(ctx, packet);
	return DECAP_PASSED_OTHER;
}

/* Most UDP is no tunnel: leave it before anything is looked up. */
static __always_inline bool
is_gue_port(struct xdp_md *ctx, const struct packet *packet)
{
	const struct udphdr *udp = bytes_at(ctx, packet->at, sizeof(*udp));
	__u32 key = 0;
	const struct decap_settings *found = bpf_map_lookup_elem(&settings, &key);

	return udp != NULL && found != NULL && udp->dest == bpf_htons(found->gue_port);
}

/* RFC 1122, section 3.2.1.2: once the header is off, nobody else can check it. */
static __always_inline bool
is_checksum_right(struct xdp_md *ctx, const struct packet *packet)
{
	__u32 sum = 0;

	if (packet->is_outer_v6)
		return true;
	for (__u32 i = 0; i < IPV4_HALFWORDS_MAX && i * 2 < packet->ip_bytes; i++) {
		const __be16 *halfword = bytes_at(ctx, packet->ip + i * 2, sizeof(*halfword));

		if (halfword == NULL)
			return false;
		sum += *halfword;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static __always_inline enum decap_counter
open_gre(struct xdp_md *ctx, struct packet *packet)
{
	const struct gre *gre = bytes_at(ctx, packet->at, sizeof(*gre));

	if (gre == NULL || packet->payload_bytes < sizeof(*gre))
		return DECAP_PASSED_LENGTH;
	if (gre->flags_version != 0)
		return DECAP_PASSED_GRE;
	if (gre->protocol == bpf_htons(ETH_P_IP))
		packet->inner_version = 4;
	else if (gre->protocol == bpf_htons(ETH_P_IPV6))
		packet->inner_version = 6;
	else
		return DECAP_PASSED_GRE;
	packet->tunnel = DECAP_GRE;
	packet->at += sizeof(*gre);
	packet->payload_bytes -= sizeof(*gre);
	return 0;
}

static __always_inline enum decap_counter
open_gue(struct xdp_md *ctx, struct packet *packet)
{
	const struct udphdr *udp = bytes_at(ctx, packet->at, sizeof(*udp));
	const __u8 *first;
	__u32 udp_bytes;

	if (udp == NULL)
		return DECAP_PASSED_LENGTH;
	udp_bytes = bpf_ntohs(udp->len);
	if (udp_bytes <= sizeof(*udp) || udp_bytes > packet->payload_bytes)
		return DECAP_PASSED_LENGTH;
	packet->tunnel = DECAP_GUE;
	packet->at += sizeof(*udp);
	packet->payload_bytes = udp_bytes - sizeof(*udp);
	first = bytes_at(ctx, packet->at, sizeof(*first));
	if (first == NULL)
		return DECAP_PASSED_LENGTH;
	/* The variant is the first two bits; 01 of variant 1 is how 4 and 6 begin. */
	return *first >> 6 == 1 ? 0 : DECAP_PASSED_GUE;
}

/* From the outer IP header to the inner. */
static __always_inline enum decap_counter
open_tunnel(struct xdp_md *ctx, struct packet *packet)
{
	if (packet->proto == IPPROTO_UDP)
		return open_gue(ctx, packet);
	if (packet->proto == IPPROTO_GRE)
		return open_gre(ctx, packet);
	packet->tunnel = DECAP_IPIP;
	packet->inner_version = packet->proto == IPPROTO_IPIP ? 4 : 6;
	return 0;
}

static __always_inline enum decap_counter
parse_inner_v4(struct xdp_md *ctx, struct packet *packet)
{
	const struct iphdr *ip = bytes_at(ctx, packet->at, sizeof(*ip));

	if (ip == NULL || packet->payload_bytes < sizeof(*ip))
		return DECAP_PASSED_LENGTH;
	if (ip->ihl * 4 < sizeof(*ip))
		return DECAP_PASSED_INNER;
	packet->inner_bytes = bpf_ntohs(ip->tot_len);
	packet->inner_ecn = ip->tos & ECN_MASK;
	set_v4(&packet->inner_dst, &ip->daddr);
	if (packet->inner_bytes < ip->ihl * 4 || packet->inner_bytes > packet->payload_bytes)
		return DECAP_PASSED_LENGTH;
	return 0;
}

static __always_inline enum decap_counter
parse_inner_v6(struct xdp_md *ctx, struct packet *packet)
{
	const struct ipv6hdr *ip = bytes_at(ctx, packet->at, sizeof(*ip));

	if (ip == NULL || packet->payload_bytes < sizeof(*ip))
		return DECAP_PASSED_LENGTH;
	packet->inner_bytes = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	packet->inner_ecn = ip->flow_lbl[0] >> 4 & ECN_MASK;
	__builtin_memcpy(&packet->inner_dst, &ip->daddr, sizeof(packet->inner_dst));
	return packet->inner_bytes > packet->payload_bytes ? DECAP_PASSED_LENGTH : 0;
}

static __always_inline enum decap_counter
parse_inner(struct xdp_md *ctx, struct packet *packet)
{
	const __u8 *first = bytes_at(ctx, packet->at, sizeof(*first));
	__u8 version;

	if (first == NULL || packet->payload_bytes == 0)
		return DECAP_PASSED_LENGTH;
	version = *first >> 4;
	if (packet->inner_version != 0 && version != packet->inner_version)
		return DECAP_PASSED_INNER;
	packet->inner_version = version;
	if (version == 4)
		return parse_inner_v4(ctx, packet);
	if (version == 6)
		return parse_inner_v6(ctx, packet);
	return DECAP_PASSED_INNER;
}

static __always_inline bool
is_service(const struct packet *packet)
{
	struct decap_prefix key = {.n_bits = 128};

	__builtin_memcpy(key.addr, packet->inner_dst.addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&services, &key) != NULL;
}

static __always_inline enum decap_counter
parse(struct xdp_md *ctx, struct packet *packet)
{
	enum decap_counter why = parse_outer(ctx, packet);

	if (why != 0)
		return why;
	if (packet->proto == IPPROTO_UDP && !packet->is_fragment && !is_gue_port(ctx, packet))
		return DECAP_PASSED_OTHER;
	if (bpf_map_lookup_elem(&outers, &packet->outer_dst) == NULL)
		return DECAP_PASSED_OUTER;
	if (packet->is_fragment)
		return DECAP_PASSED_FRAGMENT;
	if (!is_checksum_right(ctx, packet))
		return DECAP_PASSED_CHECKSUM;
	why = open_tunnel(ctx, packet);
	if (why != 0)
		return why;
	why = parse_inner(ctx, packet);
	if (why != 0)
		return why;
	return is_service(packet) ? 0 : DECAP_PASSED_SERVICE;
}

/*
 * RFC 6040, section 4.2, figure 4, but for its one cell that drops: what becomes of the inner
 * ECN field.
 */
static __always_inline __u8
combined_ecn(const struct packet *packet)
{
	if (packet->inner_ecn == ECN_NONE)
		return ECN_NONE;
	if (packet->outer_ecn == ECN_CE)
		return ECN_CE;
	if (packet->outer_ecn == ECN_ECT1 && packet->inner_ecn == ECN_ECT0)
		return ECN_ECT1;
	return packet->inner_ecn;
}

static __always_inline void
set_ecn_v4(struct iphdr *ip, __u8 ecn)
{
	__be16 *first = (__be16 *)ip; /* version, header length, TOS: what the checksum sums */
	__u32 sum = (__u16)~ip->check + (__u16) ~*first;

	ip->tos = (ip->tos & ~ECN_MASK) | ecn;
	/* RFC 1624: ~(~HC + ~m + m') */
	sum += *first;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = ~sum;
}

static __always_inline void
set_ecn_v6(struct ipv6hdr *ip, __u8 ecn)
{
	ip->flow_lbl[0] = (ip->flow_lbl[0] & ~(ECN_MASK << 4)) | ecn << 4;
}

/* The inner header's ECN field, while all is still in its place. */
static __always_inline void
mark_ecn(struct xdp_md *ctx, const struct packet *packet, __u8 ecn)
{
	if (packet->inner_version == 4) {
		struct iphdr *ip = bytes_at(ctx, packet->at, sizeof(*ip));

		if (ip != NULL)
			set_ecn_v4(ip, ecn);
	} else {
		struct ipv6hdr *ip = bytes_at(ctx, packet->at, sizeof(*ip));

		if (ip != NULL)
			set_ecn_v6(ip, ecn);
	}
	count(DECAP_ECN_MARKED, 1);
}

/*
 * Copy the MACs and tags to right before the inner header, its EtherType behind them. They may
 * overlap the old ones, so all is read before anything is written. Returns their first byte's
 * offset, 0 on failure.
 */
static __always_inline __u32
move_link_header(struct xdp_md *ctx, const struct packet *packet)
{
	__u32 start = packet->at - packet->ip;
	__u8 macs[2 * ETH_ALEN];
	const __u8 *old = bytes_at(ctx, 0, sizeof(macs));
	__u8 *new;
	__be16 *type;

	if (old == NULL)
		return 0;
	__builtin_memcpy(macs, old, sizeof(macs));
	new = bytes_at(ctx, start, sizeof(macs));
	if (new == NULL)
		return 0;
	__builtin_memcpy(new, macs, sizeof(macs));
#pragma unroll
	for (__u32 i = 0; i < TAGS_MAX; i++) {
		struct vlan_tag *tag;

		if (i >= packet->n_tags)
			break;
		tag = bytes_at(ctx, start + sizeof(macs) + i * sizeof(*tag), sizeof(*tag));
		if (tag == NULL)
			return 0;
		*tag = packet->tags[i];
	}
	type = bytes_at(ctx, packet->at - sizeof(*type), sizeof(*type));
	if (type == NULL)
		return 0;
	*type = bpf_htons(packet->inner_version == 4 ? ETH_P_IP : ETH_P_IPV6);
	return start;
}

static __always_inline enum decap_counter
take_off(struct xdp_md *ctx, const struct packet *packet)
{
	__u8 ecn = combined_ecn(packet);
	__u32 start;

	if (packet->outer_ecn == ECN_CE && packet->inner_ecn == ECN_NONE)
		return DECAP_DROPPED_ECN;
	if (ecn != packet->inner_ecn)
		mark_ecn(ctx, packet, ecn);
	start = move_link_header(ctx, packet);
	if (start == 0 || bpf_xdp_adjust_head(ctx, (int)start) != 0)
		return DECAP_DROPPED_FAILED;
	count(DECAP_BYTES, packet->inner_bytes);
	return decap_taken_off(packet->tunnel, packet->is_outer_v6, packet->inner_version == 6);
}

/* xdp.frags: larger MTUs than a page holds; the headers are in the first part all the same. */
SEC("xdp.frags")
int
shunt_decap(struct xdp_md *ctx)
{
	struct packet packet = {};
	enum decap_counter what;

	count(DECAP_RECEIVED, 1);
	what = parse(ctx, &packet);
	if (what == 0)
		what = take_off(ctx, &packet);
	count(what, 1);
	if (what == DECAP_DROPPED_FAILED)
		return XDP_ABORTED;
	return what == DECAP_DROPPED_ECN ? XDP_DROP : XDP_PASS;
}

char decap_license[] SEC("license") = "Dual BSD/GPL";
