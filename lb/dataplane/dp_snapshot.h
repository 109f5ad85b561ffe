/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_SNAPSHOT_H
#define DP_SNAPSHOT_H

/**
 * @file
 * The inside of tables and snapshots, for the packet path. dp.h has what others may do.
 */

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "dp.h"
#include "lb_hash.h"
#include "lb_limits.h"
#include "lb_martian.h"

struct dp_table {
	const struct lb_picker *picker; /**< NULL: nobody to pick */
	const uint32_t *ids;            /**< picker's result -> backend id */
	struct dp_table *base;          /**< held: whose ids or picker they are; or NULL */
	uint32_t *ids_mem;
	void *picker_mem;
	size_t picker_bytes;
	/** Of snapshots, of who builds them and of who tells of them: threads of control's. */
	_Atomic unsigned int n_refs;
};

struct dp_service {
	const struct lb_picker *picker;   /**< the table's */
	const uint32_t *ids;              /**< the table's */
	struct dp_table *table;           /**< held; not read by workers */
	uint8_t affinity;                 /**< enum lb_affinity */
	uint8_t carry;                    /**< LB_TUNNEL_* */
	uint8_t refused;                  /**< LB_TUNNEL_* by UDP */
	uint8_t echo;                     /**< enum dp_echo */
	uint8_t fragment;                 /**< enum dp_fragmenting */
	uint16_t mss_clamp;               /**< 0: none; or DP_MSS_AUTO */
	uint32_t number;                  /**< its maker's for it */
	const struct lb_quic_table *quic; /**< server ids to backend ids; NULL: none */
	void *quic_mem;
	size_t quic_bytes;
};

/*
 * What the table of services finds is a service's place, and beside it whether there is more to
 * it than its table. So of most services a packet of a known flow reads nothing.
 */
#define DP_MATCH_PLACE (LB_SERVICES_MAX - 1)
#define DP_MATCH_MORE  (UINT32_C(1) << 31) /* refused, affinity or quic are out of the usual */

static_assert((DP_MATCH_PLACE & LB_SERVICES_MAX) == 0 && DP_MATCH_PLACE < DP_MATCH_MORE,
	"a place leaves room for the mark");

/** An Ethernet header without tags. */
struct dp_ether {
	struct lb_mac dst;
	struct lb_mac src;
	uint16_t type_be;
};

static_assert(sizeof(struct dp_ether) == 14, "as on the wire");

/** The mode of a template and its family, in one number. */
#define DP_KIND(mode, is_v6) ((unsigned int)(mode)*2 + ((is_v6) ? 1u : 0u))

/**
 * Whether more of a template is read than LB_ENCAP_SHORT_BYTES: of IPv6, and of VXLAN; of L2
 * nothing is.
 */
static inline bool
dp_kind_is_long(unsigned int kind)
{
	return kind >= DP_KIND(LB_FORWARD_VXLAN, false) ||
	       (kind % 2 != 0 && kind != DP_KIND(LB_FORWARD_L2, true));
}

static_assert(LB_FORWARD_VXLAN + 1 == LB_N_FORWARD_MODES, "VXLAN's are the last kinds");

/*
 * What a packet needs of its backend, on two lines that are its own. The first of them has
 * what is read for every packet of outer headers, but for VXLAN over IPv6.
 */
struct dp_backend {
	alignas(LB_CACHE_LINE) struct lb_encap encap;
	/** The next hop, the port it goes out by where has_source, and the outer header's type.
	 */
	struct dp_ether ether;
	uint8_t port;     /**< it goes out by */
	uint8_t kind;     /**< of outer headers: DP_KIND() of its encap */
	uint32_t service; /**< place of its service */
	/** IP packets of so many bytes need no more than dp_usual_send() does; 0: none, as of
	 * one that is not live. */
	uint16_t plain_bytes;
	bool has_next_hop : 1;
	bool is_live : 1;    /**< false too for an id that nobody has */
	bool has_source : 1; /**< otherwise frames are from whom they came to */
	uint16_t vlan;       /**< DP_VLAN_* or an id */
	uint16_t mtu;
};

static_assert(offsetof(struct dp_backend, encap.bytes) + 40 + 8 <= LB_CACHE_LINE,
	"IPv6 and UDP are on the first line");
static_assert(LB_PORTS_MAX <= UINT8_MAX, "a port is a byte");
static_assert(sizeof(struct dp_backend) == (size_t)2 * LB_CACHE_LINE, "a backend is two lines");

/** A port that answers ARP and ND. */
struct dp_answering_port {
	uint16_t id;
	struct lb_mac mac;
	const struct lb_prefix *networks; /**< without host bits */
	size_t n_networks;
};

struct dp_snapshot {
	const struct lb_service_table *match; /**< finds DP_MATCH_* */
	/** A hash of all that match says: of two snapshots' the same, but for one in 2^64. */
	uint64_t match_print;
	/** How many snapshots, up to this one, had a backend less than those before them that
	 *  flows may be with. Whose flow has had a packet since the last of them is with one.
	 */
	uint64_t n_losses;
	/** How many have been published up to this one; 0: it is the first, and empty. */
	uint64_t generation;
	bool has_odd_datagrams; /**< to some service: it refuses some, or reads QUIC's ids */
	const struct lb_service_table *echo; /**< whose echo a service address' is */
	/**
	 * Of TCP and of UDP: the service whose backend a packet's addresses decide, whatever
	 * its ports; n_services where ports may make it another's, or another backend's.
	 */
	const struct lb_service_table *portless[2];
	const struct dp_service *services;
	const struct dp_backend *backends; /**< by id */
	const uint8_t *tunnels;            /**< LB_TUNNEL_* by UDP port, host order */
	uint32_t n_ids;
	uint32_t fits_bytes; /**< IP packets of so many fit every backend as they are */
	uint64_t hash_seed;
	struct lb_hash_seeded seeded; /**< with it */
	bool has_kernel;
	/** Of all backends: has_source, and no tag is put in. */
	bool is_plain;
	/** Of services of IPv4, and of IPv6: there is a backend that dp_worker_backend does not
	 *  have all of. */
	bool has_long[2];
	size_t n_answering;
	const struct dp_answering_port *answering;
	size_t n_own;
	const struct lb_addr *own; /**< the balancer's addresses */
	/** Has those, and services' of one address. */
	struct lb_martian_filter hosts;

	/* The control thread's. */
	void *match_mem;
	size_t match_bytes;
	void *echo_mem;
	size_t echo_bytes;
	void *portless_mem[2];
	size_t portless_bytes[2];
	struct dp_service *services_mem;
	size_t n_services;
	struct dp_backend *backends_mem;
	/** By backend id a bit, 64 ids a word: is_live, as a comparison of snapshots reads it.
	 */
	uint64_t *live;
	uint8_t *tunnels_mem;
	struct dp_answering_port *answering_mem;
	struct lb_prefix *networks_mem;
	struct lb_addr *own_mem;
	uint64_t *hosts_mem;
	size_t hosts_bytes;
};

/** A backend by an id from a flow entry, which may be of an older snapshot; NULL if gone. */
static inline const struct dp_backend *
dp_snapshot_live_backend(const struct dp_snapshot *snapshot, uint32_t id)
{
	if (id >= snapshot->n_ids || !snapshot->backends[id].is_live)
		return NULL;
	return &snapshot->backends[id];
}

/** Whether a backend that is live in one snapshot is not in the next one. */
bool dp_snapshot_has_lost(const struct dp_snapshot *snapshot, const struct dp_snapshot *next);

/**
 * The port that answers ARP and ND by a device's id, or NULL. Packets that came by no port
 * carry an id that no device has.
 */
const struct dp_answering_port *dp_snapshot_find_answering(const struct dp_snapshot *snapshot,
	uint16_t id);

/** lb_martian_source() with the services and addresses of a snapshot. */
bool dp_snapshot_is_martian(const struct dp_snapshot *snapshot, const struct lb_addr *source,
	const struct lb_addr *dst);

/** Whether an address is a service's and on a network of the port. */
bool dp_snapshot_answers_for(const struct dp_snapshot *snapshot,
	const struct dp_answering_port *port, const struct lb_addr *target);

#endif
