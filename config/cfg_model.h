/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_MODEL_H
#define CFG_MODEL_H

/**
 * @file
 * The configuration as plain structs: what a file says, defaults filled in.
 *
 * A model owns all that it points to. Not thread-safe: one thread's own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_addr.h"
#include "lb_compiler.h"
#include "lb_limits.h"

/** Where in its file something stands; lines and columns from 1, line 0: it was not written. */
struct cfg_pos {
	uint32_t line;
	uint32_t column;
};

enum cfg_protocol { CFG_PROTOCOL_TCP, CFG_PROTOCOL_UDP, CFG_PROTOCOL_ANY, CFG_N_PROTOCOLS };
enum cfg_algorithm { CFG_MAGLEV, CFG_RING, CFG_RENDEZVOUS, CFG_STABLE, CFG_N_ALGORITHMS };
enum cfg_affinity {
	CFG_AFFINITY_5_TUPLE,
	CFG_AFFINITY_SOURCE_IP,
	CFG_AFFINITY_SOURCE_IP_PORT,
	CFG_AFFINITY_QUIC, /**< by connection id; what has none that is known, by 5-tuple */
	CFG_N_AFFINITIES
};
enum cfg_forward {
	CFG_FORWARD_L2,
	CFG_FORWARD_IPIP,
	CFG_FORWARD_GRE,
	CFG_FORWARD_GUE,
	CFG_FORWARD_VXLAN,
	CFG_N_FORWARDS
};
enum cfg_state { CFG_UP, CFG_DRAIN, CFG_DOWN, CFG_N_STATES };
enum cfg_kernel { CFG_KERNEL_TAP, CFG_KERNEL_NONE, CFG_N_KERNELS };
enum cfg_echo { CFG_ECHO_REPLY, CFG_ECHO_FORWARD, CFG_ECHO_DROP, CFG_N_ECHOES };
enum cfg_fragment {
	CFG_FRAGMENT_INNER,
	CFG_FRAGMENT_OUTER,
	CFG_FRAGMENT_DROP,
	CFG_N_FRAGMENTS
};
enum cfg_health_type {
	CFG_HEALTH_NONE,
	CFG_HEALTH_TCP,
	CFG_HEALTH_HTTP,
	CFG_HEALTH_HTTPS,
	CFG_HEALTH_UDP,
	CFG_HEALTH_ICMP,
	CFG_N_HEALTH_TYPES
};
enum cfg_all_down { CFG_ALL_DOWN_KEEP, CFG_ALL_DOWN_DROP, CFG_N_ALL_DOWNS };
enum cfg_idle { CFG_IDLE_POLL, CFG_IDLE_ADAPTIVE, CFG_N_IDLES };

/** Tunnels that a service may carry; bits of cfg_service.carry. */
enum {
	CFG_CARRY_IPIP = 1 << 0 /* 4 */,
	CFG_CARRY_IPV6 = 1 << 1 /* 41 */,
	CFG_CARRY_GRE = 1 << 2 /* 47 */,
	CFG_CARRY_GUE = 1 << 3,
	CFG_CARRY_VXLAN = 1 << 4,
	CFG_CARRY_GENEVE = 1 << 5,
	CFG_N_CARRIES = 6,
	CFG_CARRIES_BY_UDP = CFG_CARRY_GUE | CFG_CARRY_VXLAN | CFG_CARRY_GENEVE
};

/** UDP ports that tunnels are known by. */
enum { CFG_VXLAN_PORT = 4789, CFG_GUE_PORT = 6080, CFG_GENEVE_PORT = 6081 };

/**
 * While a file is read: which parts of an item had errors. They have been told, and what
 * stands there instead is not checked; the rest is, so that one run shows every error.
 */
enum {
	CFG_BAD_ADDRESS = 1 << 0,
	CFG_BAD_PROTOCOL = 1 << 1,
	CFG_BAD_PORT = 1 << 2,
	CFG_BAD_TABLE = 1 << 3,
	CFG_BAD_FORWARD = 1 << 4,
	CFG_BAD_AFFINITY = 1 << 5,
	CFG_BAD_QUIC = 1 << 6,
	CFG_BAD_OTHER = 1 << 7,
	CFG_BAD_ALL = (1 << 8) - 1
};

/** cfg_service.overload of stable tables, thousandths. */
#define CFG_OVERLOAD_DEFAULT 20u
#define CFG_OVERLOAD_MAX     1000u

/** cfg_service.mss_clamp: what fits the way to each backend. */
#define CFG_MSS_AUTO UINT16_MAX

/** cfg_port.vlan: tags leave as they came, or not at all. Others are a VLAN's id, 1..4094. */
#define CFG_VLAN_KEEP 0u
#define CFG_VLAN_NONE UINT16_MAX

/** QUIC configurations of a service: config ids 0..6. */
#define CFG_QUIC_CONFIGS_MAX 7u
/** Server ids of one backend: one for each configuration, and to spare. */
#define CFG_QUIC_IDS_MAX         16u
#define CFG_QUIC_ID_BYTES_MAX    15u
#define CFG_QUIC_NONCE_BYTES_MIN 4u
#define CFG_QUIC_NONCE_BYTES_MAX 18u
/** Server id and nonce together: with its first octet a connection id has 20 bytes at most. */
#define CFG_QUIC_BOTH_BYTES_MAX 19u
#define CFG_QUIC_KEY_BYTES      16u

/** The config id of a configuration whose own had an error. */
#define CFG_QUIC_CONFIG_NONE UINT8_MAX

/** How the servers of a service make QUIC connection ids, draft-ietf-quic-load-balancers. */
struct cfg_quic {
	uint8_t config_id;       /**< 0..6; CFG_QUIC_CONFIG_NONE while a file is read */
	uint8_t server_id_bytes; /**< 1..15 */
	uint8_t nonce_bytes;     /**< 4..18 */
	bool has_key;
	bool has_length;                 /**< the first octet encodes the length */
	uint8_t key[CFG_QUIC_KEY_BYTES]; /**< where has_key; a secret */
	struct cfg_pos config_id_pos;    /**< of its value */
};

/** A server id in QUIC connection ids. */
struct cfg_quic_id {
	uint8_t n_bytes; /**< 1..15 */
	uint8_t bytes[CFG_QUIC_ID_BYTES_MAX];
	struct cfg_pos pos;
};

/** Ranges of statuses of one check. */
#define CFG_HEALTH_RANGES_MAX     8u
#define CFG_HEALTH_PATH_BYTES_MAX 1024u
#define CFG_HEALTH_HOST_BYTES_MAX 253u

/** Both ends included. */
struct cfg_range {
	uint16_t first;
	uint16_t last;
};

/** How the backends of a service are checked. */
struct cfg_health {
	enum cfg_health_type type; /**< none: the others have no meaning */
	uint16_t port;             /**< 0: the service's */
	bool wants_reply;          /**< udp */
	bool is_verified;          /**< https */
	bool is_tunnelled;         /**< via: tunnel; not of icmp */
	uint32_t rise;
	uint32_t fall;
	uint64_t interval_ns;
	uint64_t timeout_ns;   /**< at most interval_ns */
	uint64_t half_life_ns; /**< of flap damping; 0: off */
	struct cfg_range expect[CFG_HEALTH_RANGES_MAX];
	size_t n_expect; /**< 0: 200-399 */
	char *path;      /**< NULL: "/" */
	char *host;      /**< NULL: the address that is asked */
};

struct cfg_backend {
	char *name;
	struct lb_addr address;
	uint32_t weight; /**< 0..LB_WEIGHT_MAX */
	enum cfg_state state;
	struct lb_mac mac; /**< l2: the next hop; vxlan: the inner destination */
	bool has_mac;
	char *zone;  /**< what fails together with it; NULL: not said */
	uint8_t bad; /**< CFG_BAD_*, 0 outside of cfg_read_*() */
	struct cfg_quic_id *quic_ids;
	size_t n_quic_ids;
	struct cfg_pos pos;         /**< of the item */
	struct cfg_pos name_pos;    /**< of its name's value */
	struct cfg_pos address_pos; /**< of its address' value */
	struct cfg_pos mac_pos;     /**< of its MAC address' value */
};

struct cfg_service {
	char *name;
	struct lb_prefix address;
	enum cfg_protocol protocol;
	uint16_t port; /**< 0: any */
	enum cfg_algorithm algorithm;
	uint32_t n_slots;
	uint32_t overload; /**< of stable: thousandths, 0..CFG_OVERLOAD_MAX; else 0 */
	enum cfg_affinity affinity;
	enum cfg_forward forward;
	uint16_t tunnel_port; /**< of gue or vxlan; 0: the mode's own */
	uint32_t vni;         /**< of vxlan */
	uint8_t carry;        /**< CFG_CARRY_* */
	enum cfg_echo echo;
	enum cfg_fragment fragment;
	uint16_t mss_clamp; /**< bytes, CFG_MSS_AUTO, or 0: none */
	struct cfg_health health;
	uint64_t slow_start_ns; /**< 0: a backend has its whole share at once */
	uint32_t min_healthy;   /**< backends that it takes to be ready; 0 is as 1 */
	enum cfg_all_down when_all_down;
	uint8_t bad; /**< CFG_BAD_*, 0 outside of cfg_read_*() */
	struct cfg_quic *quic;
	size_t n_quic;
	struct cfg_backend *backends;
	size_t n_backends;
	size_t backends_room;
	struct cfg_pos pos; /**< of the item; the others of a value */
	struct cfg_pos name_pos;
	struct cfg_pos address_pos;
	struct cfg_pos port_pos;
	struct cfg_pos table_size_pos;
	struct cfg_pos overload_pos;
	struct cfg_pos tunnel_port_pos;
	struct cfg_pos vni_pos;
	struct cfg_pos carry_pos;
	struct cfg_pos affinity_pos;
	struct cfg_pos echo_pos;
	struct cfg_pos fragment_pos;
	struct cfg_pos mss_clamp_pos;
	struct cfg_pos quic_pos;
	struct cfg_pos health_pos;
	struct cfg_pos min_healthy_pos;
};

/** A route that the kernel is to have by a port's twin. */
struct cfg_route {
	struct lb_prefix to; /**< without host bits */
	struct lb_addr via;  /**< of the same family, on one of the port's networks */
	struct cfg_pos pos;
};

struct cfg_port {
	char *name;
	char *device;
	struct lb_prefix *addresses; /**< with host bits: the balancer's own */
	size_t n_addresses;
	struct cfg_route *routes;
	size_t n_routes;
	struct lb_mac next_hop;
	bool has_next_hop;
	uint16_t mtu; /**< bytes, IP packet; 576..9216, and 1280 at least where it has IPv6 */
	bool answer_arp; /**< ARP and ND for service addresses of its networks */
	uint16_t vlan;   /**< what tags a frame leaves with: 1..4094 or CFG_VLAN_* */
	uint8_t bad;     /**< CFG_BAD_*, 0 outside of cfg_read_*() */
	struct cfg_pos pos;
	struct cfg_pos name_pos;
	struct cfg_pos device_pos;
	struct cfg_pos mtu_pos;
};

struct cfg_dataplane {
	uint32_t workers; /**< 0: auto */
	enum cfg_kernel kernel;
	enum cfg_idle idle;
	uint64_t idle_sleep_ns;
	uint32_t flow_entries; /**< per worker */
	bool flow_addresses;   /**< kept beside the entries, to be listed */
	uint64_t tcp_syn_ns;
	uint64_t tcp_ns;
	uint64_t tcp_closing_ns;
	uint64_t udp_ns;
	bool answer_arp;             /**< of ports that do not say */
	uint32_t fragment_datagrams; /**< per worker */
	uint32_t fragment_waiting;   /**< per worker */
	uint32_t handoff;            /**< packets, a power of two */
	uint32_t replies_total;      /**< per second */
	uint32_t replies_source;     /**< per source and second */
	struct cfg_port *ports;
	size_t n_ports;
	uint8_t bad;              /**< CFG_BAD_OTHER: of ports; 0 outside of cfg_read_*() */
	struct cfg_pos ports_pos; /**< of the ports' value, or the nearest around it */
};

/** The kernel's table of routes that packets go by, rtnetlink(7)'s RT_TABLE_MAIN. */
#define CFG_TABLE_MAIN 254u

/** The routes by which a routing daemon learns which services are ready. */
struct cfg_announce {
	char *interface; /**< they lead to; NULL: there are none; set by cfg_model_set_text() */
	uint32_t table;  /**< of the kernel's, that they are in; 1.., not 255 */
	uint32_t metric; /**< 0: the kernel's own */
	uint64_t withdraw_before_stop_ns;
	struct cfg_pos interface_pos; /**< of its value */
};

struct cfg_model {
	struct cfg_dataplane dataplane;
	char *control_socket;  /**< read it; only cfg_model_set_text() replaces it */
	char *control_metrics; /**< ADDRESS:PORT, or NULL: off; likewise */
	struct cfg_announce announce;
	struct cfg_service *services;
	size_t n_services;
	uint64_t hash_seed;
	char *file; /**< the name it was read under, for messages; may be NULL */
};

/**
 * The words of the language, indexed by the enums above, those of carry by the number of the
 * bit; each array ends with NULL.
 */
extern const char *const cfg_protocol_words[];
extern const char *const cfg_algorithm_words[];
extern const char *const cfg_affinity_words[];
extern const char *const cfg_forward_words[];
extern const char *const cfg_state_words[];
extern const char *const cfg_kernel_words[];
extern const char *const cfg_idle_words[];
extern const char *const cfg_carry_words[];
extern const char *const cfg_echo_words[];
extern const char *const cfg_fragment_words[];
extern const char *const cfg_health_words[];
extern const char *const cfg_all_down_words[];
extern const char *const cfg_bool_words[]; /**< "false" and "true" */

/** An empty model with every default. */
void cfg_model_init(struct cfg_model *model);

/** Free what the model owns, and leave it as cfg_model_init() does. */
void cfg_model_fini(struct cfg_model *model);

/**
 * Replace control_socket, control_metrics or announce.interface: the defaults are not on the
 * heap.
 *
 * @param where   Of a model.
 * @param text    Copied; NULL leaves nothing there.
 * @retval 0        Success.
 * @retval -ENOMEM  No memory; the old text stays.
 */
int cfg_model_set_text(char **where, const char *text) lb_must_check;

/**
 * A deep copy.
 *
 * @param[out] out  Untouched on error; to be given to cfg_model_fini().
 * @retval 0        Success.
 * @retval -ENOMEM  No memory.
 */
int cfg_model_copy(const struct cfg_model *model, struct cfg_model *out) lb_must_check;

/**
 * A deep copy of one service.
 *
 * @param[out] out  To be given to cfg_service_fini(), also on error.
 * @retval 0        Success.
 * @retval -ENOMEM  No memory.
 */
int cfg_service_copy(const struct cfg_service *service, struct cfg_service *out) lb_must_check;

/** No check, and what a check has where it does not say. */
void cfg_health_init(struct cfg_health *health);

void cfg_health_fini(struct cfg_health *health);

/**
 * @param[out] out  To be given to cfg_health_fini(); untouched on error.
 * @retval -ENOMEM  No memory.
 */
int cfg_health_copy(const struct cfg_health *health, struct cfg_health *out) lb_must_check;

bool cfg_health_equal(const struct cfg_health *a, const struct cfg_health *b);

/** Free what a service owns. */
void cfg_service_fini(struct cfg_service *service);

/** Free what a backend owns. */
void cfg_backend_fini(struct cfg_backend *backend);

/** What cfg_quic_id_format() writes at most: hex digits and NUL. */
#define CFG_QUIC_ID_TEXT_BYTES (2 * CFG_QUIC_ID_BYTES_MAX + 1)

/** A server id in hex digits; returns out. */
const char *cfg_quic_id_format(const struct cfg_quic_id *id,
	char out[static CFG_QUIC_ID_TEXT_BYTES]);

/** Most server ids of a service, each counted once for each configuration that it is of. */
#define CFG_QUIC_SERVERS_MAX ((size_t)CFG_QUIC_CONFIGS_MAX * LB_SERVICE_BACKENDS_MAX)

/** Server ids of a service, each counted once for each configuration of its length. */
size_t cfg_count_quic_servers(const struct cfg_service *service);

/** Whether two ports have the same routes, in the same order. */
bool cfg_has_same_routes(const struct cfg_port *a, const struct cfg_port *b);

/** Whether two server ids are the same bytes. */
bool cfg_quic_id_equal(const struct cfg_quic_id *a, const struct cfg_quic_id *b);

/** Whether two configurations have the same key, or none. */
bool cfg_quic_key_equal(const struct cfg_quic *a, const struct cfg_quic *b);

/**
 * Whether two models say the same, in the same order; positions and file name do not count.
 */
bool cfg_model_equal(const struct cfg_model *a, const struct cfg_model *b);

/** A service by name, or NULL. Linear; n_bytes may name a part of a longer text. */
struct cfg_service *cfg_find_service(const struct cfg_model *model, const char *name,
	size_t n_bytes);

/** A backend of a service by name, or NULL. Linear. */
struct cfg_backend *cfg_find_backend(const struct cfg_service *service, const char *name);

/**
 * Append a backend; what it points to is copied.
 *
 * @retval 0        Success.
 * @retval -EEXIST  The name is there.
 * @retval -E2BIG   The service has LB_SERVICE_BACKENDS_MAX.
 * @retval -ENOMEM  No memory; the service is as it was.
 */
int cfg_add_backend(struct cfg_service *service,
	const struct cfg_backend *backend) lb_must_check;

/** Remove a backend of the service, given by its place in service->backends. */
void cfg_remove_backend(struct cfg_service *service, struct cfg_backend *backend);

#endif
