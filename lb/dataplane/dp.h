/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_H
#define DP_H

/**
 * @file
 * The data plane's face: tables and snapshots to forward by, workers that forward, and a
 * batch interface that drives the same workers from memory.
 *
 * Threads: everything here is for one thread at a time, with these exceptions. Snapshots are
 * made and published by one thread, which may be another than the one that does the rest; a
 * snapshot is immutable once published. Tables may be made by any, and their references held
 * and released. What reads figures, counts and ports may be called by any thread while workers
 * run. Workers call dp_worker_burst() (in dp_worker.h) each for itself.
 */

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lb_compiler.h"
#include "lb_encap.h"
#include "lb_filter.h"
#include "lb_flow_table.h"
#include "lb_limits.h"
#include "lb_picker.h"
#include "lb_quic.h"
#include "lb_service_table.h"
#include "lb_verdict.h"

/** Packets in one burst, at most: two of the usual 32. */
#define DP_BURST_MAX 64u

#define DP_NONE UINT32_MAX

/** Where a packet's backend came from. */
enum dp_flow {
	DP_FLOW_NONE, /**< no backend was asked for */
	DP_FLOW_HIT,  /**< from the flow table */
	DP_FLOW_MISS, /**< from the service's table, re-picks included */
};

/** A packet that says nothing of its flow's state: not for a service, or an ICMP error. */
#define DP_NO_EVENT UINT8_MAX

/**
 * Beside verdicts: the packet is no longer here. It waits for its datagram's first fragment, or
 * is another worker's now; its verdict comes later, or there.
 */
#define DP_AWAY LB_N_VERDICTS

/** Beside verdicts: a frame of the packet before it, which alone is counted. */
#define DP_PIECE (LB_N_VERDICTS + 1)

/** Why a packet went where it went. */
struct dp_decision {
	struct lb_flow_hash hash; /**< of the flow; meaningful where flow is not NONE */
	uint32_t service;         /**< its place in the snapshot's services, or DP_NONE */
	uint32_t backend;         /**< its id, or DP_NONE */
	uint32_t slot;            /**< of the table, where the table decided; or DP_NONE */
	uint32_t ip_bytes;        /**< of the packet as received; 0 where it is not parsed */
	uint32_t entropy; /**< of outer headers, where the stages decide; otherwise unspecified
			   */
	uint16_t port;    /**< it goes out by, where it is forwarded */
	uint8_t verdict;  /**< enum lb_verdict, DP_AWAY or DP_PIECE */
	uint8_t flow;     /**< enum dp_flow */
	/** A flow begins with this packet. Where the flow table has no room for it, so does
	 *  one with each that follows. */
	bool is_new_flow;
	bool has_more; /**< more frames leave right after it: dp_mbuf.h */
	uint8_t event; /**< enum lb_flow_event; DP_NO_EVENT where no flow is touched */
};

/*
 * Tables, immutable once made. One may be shared by several snapshots, which hold references;
 * any thread but a worker may hold one too, and whoever does may read the table.
 */

struct dp_table; /* opaque */

struct dp_table_conf {
	struct lb_picker_conf picker;
	const struct lb_picker_backend *backends;
	const uint32_t *ids; /**< backend ids, in the same order */
	size_t n_backends;   /**< 0 is allowed: nobody to pick */
};

/**
 * Build a configured table, with one reference, the caller's.
 *
 * @param[out] out  Untouched on error.
 * @return 0, or what lb_picker_build() returns; a set with nobody to pick is no error.
 */
int dp_table_create(const struct dp_table_conf *conf, struct dp_table **out) lb_must_check;

/**
 * Make a configured table's overlay, see lb_picker_overlay_shares(), with one reference, the
 * caller's.
 *
 * @param configured  From dp_table_create(); the overlay takes a reference of its own.
 * @param shares      Of each of the conf's backends, how many of its slots it keeps, 0 to
 *                    LB_OVERLAY_WHOLE; the others have the rest.
 * @param[out] out    Untouched on error.
 * @retval 0          Success; nobody left to pick is no error.
 * @retval -ENOMEM    No memory.
 */
int dp_table_overlay(struct dp_table *configured, const uint8_t *shares,
	struct dp_table **out) lb_must_check;

/**
 * Make a table of others in the same places as a table's, with one reference, the caller's: the
 * slots are shared, and are there once.
 *
 * @param like      Any table, of n backends; the copy takes a reference.
 * @param ids       The copy's backend ids, in the order of like's.
 * @param[out] out  Untouched on error.
 * @retval -ENOMEM  No memory.
 */
int dp_table_copy(struct dp_table *like, const uint32_t *ids, size_t n,
	struct dp_table **out) lb_must_check;

/** Take another reference. */
void dp_table_hold(struct dp_table *table);

/** Give a reference back; the last one frees. NULL is allowed. */
void dp_table_release(struct dp_table *table);

/** Slots of each of the conf's n backends; all 0 where there is nobody to pick. */
void dp_table_count(const struct dp_table *table, uint32_t *counts, size_t n);

/**
 * What the table says of a flow.
 *
 * @param pick        As lb_hash_pick() has it.
 * @param[out] slot   The flow's.
 * @param[out] id     Of the backend that has it.
 * @return whether there is anybody to pick; otherwise nothing is written.
 */
bool dp_table_pick(const struct dp_table *table, uint64_t pick, uint32_t *slot, uint32_t *id);

/* Snapshots. */

/** What becomes of an echo request to a service's address. */
enum dp_echo {
	DP_ECHO_REPLY,   /**< the balancer answers */
	DP_ECHO_FORWARD, /**< to a backend, by address pair */
	DP_ECHO_DROP,
};

/** What becomes of an IPv4 packet without DF that does not fit with its outer header. */
enum dp_fragmenting {
	DP_FRAGMENT_INNER, /**< cut, then each piece encapsulated */
	DP_FRAGMENT_OUTER, /**< encapsulated, then cut: the backend's tunnel puts it together */
	DP_FRAGMENT_DROP,
};

/** mss_clamp: what fits each backend's MTU. */
#define DP_MSS_AUTO UINT16_MAX

struct dp_service_conf {
	struct lb_service_match match; /**< its service is set from the place in the array */
	enum lb_affinity affinity;
	uint8_t carry;                /**< LB_TUNNEL_*: tunnels it takes */
	enum lb_forward_mode forward; /**< its backends' */
	uint32_t number; /**< the caller's for it, the same in all snapshots: traces have it */
	uint16_t tunnel_port; /**< of GUE or VXLAN, host order; otherwise unused */
	enum dp_echo echo;    /**< of services with one prefix, the first one's holds */
	enum dp_fragmenting fragment;
	uint16_t mss_clamp; /**< largest MSS of a SYN; 0: as it is; or DP_MSS_AUTO */
	/** Server ids in QUIC connection ids; value is a backend's id. */
	const struct lb_quic_config *quic;
	size_t n_quic; /**< 0: connection ids are not looked at */
	const struct lb_quic_server *quic_servers;
	size_t n_quic_servers;
	struct dp_table *table; /**< the snapshot takes a reference of its own */
};

struct dp_backend_conf {
	uint32_t id;       /**< below LB_BACKEND_IDS_MAX, no two alike */
	uint32_t service;  /**< place of its service among the snapshot's */
	uint16_t port;     /**< it goes out by: its place among dp_open_ports()'s; 0 without */
	bool is_live;      /**< up or draining: its flows stay with it */
	bool has_next_hop; /**< otherwise its packets are dropped no_next_hop */
	struct lb_mac next_hop; /**< destination MAC of the outgoing frame */
	uint16_t mtu;           /**< of the port it goes out by, bytes */
	uint16_t vlan; /**< of that port: a VLAN id 1..4094, DP_VLAN_KEEP or DP_VLAN_NONE */
	struct lb_encap_conf encap;
};

/** Tags leave as they came, or not at all. Zero, so that a conf of zeros changes nothing. */
#define DP_VLAN_KEEP 0u
#define DP_VLAN_NONE UINT16_MAX

/** A port, as far as a snapshot knows it. */
struct dp_snapshot_port_conf {
	uint16_t id;       /**< the device's, which packets that came by it carry */
	struct lb_mac mac; /**< its own: what it sends is from there */
	bool has_mac; /**< otherwise, as in a replay, what it sends is from whom it came to;
			 a plane whose workers have ports takes no such snapshot */
	bool answers; /**< ARP and ND for service addresses of its networks */
	const struct lb_prefix *networks; /**< with host bits: its own addresses, too */
	size_t n_networks;
};

struct dp_snapshot_conf {
	const struct dp_service_conf *services;
	size_t n_services;
	const struct dp_backend_conf *backends;
	size_t n_backends;
	const struct dp_snapshot_port_conf *ports; /**< none: nothing is answered */
	size_t n_ports;
	uint64_t hash_seed;
	bool has_kernel; /**< what is not for a service goes to the kernel; else it is dropped
			  */
};

struct dp_snapshot; /* opaque */

/**
 * Make a snapshot.
 *
 * @param[out] out  Untouched on error.
 * @retval 0        Success.
 * @retval -EINVAL  A service's match, or a backend's encapsulation, id or service is out of
 *                  range, or there are more than LB_SERVICES_MAX services.
 * @retval -EEXIST  Two services match alike, or two backends have one id.
 * @retval -ENOMEM  No memory.
 */
int dp_snapshot_create(const struct dp_snapshot_conf *conf,
	struct dp_snapshot **out) lb_must_check;

/** Free a snapshot that was never published, or is no longer. NULL is allowed. */
void dp_snapshot_destroy(struct dp_snapshot *snapshot);

/* The plane. */

struct dp; /* opaque */

struct dp_conf {
	unsigned int n_workers;          /**< 1..LB_WORKERS_MAX */
	struct lb_flow_table_conf flows; /**< of each worker */
	uint64_t secret[2];   /**< of the hashes that flows and others are known by: random in
				 the daemon, fixed in a replay */
	bool keeps_flow_keys; /**< clients and services of flows, for who asks: 40 bytes more a
				 flow */
	uint16_t mtu_max; /**< of all ports, bytes: for the buffers of what waits or is cut */
	uint32_t
		n_datagrams; /**< of each worker: those in fragments that are known at a time */
	uint32_t n_waiting;  /**< of each worker: fragments that wait for their first */
	uint32_t buffer_bytes; /**< the most of dp_port_buffer_bytes() of all ports, for what
				 waits; 0: what the MTU asks for */
	uint32_t
		n_handoff; /**< packets on their way from one worker to another, a power of 2 */
	/** ICMP replies of the balancer's own: of all workers together. Those on threads of
	 * their own have even shares, rounded down, of 1 at least. And those to one source, by
	 * each of these: its pings of one address come to one worker. */
	uint32_t replies_per_s;
	uint32_t replies_per_s_source;
	bool is_one_thread; /**< batches alone drive the workers, who count replies together */
};

/** What dp_create() takes where a number above is 0. */
#define DP_DATAGRAMS_DEFAULT      4096u
#define DP_WAITING_DEFAULT        1024u
#define DP_HANDOFF_DEFAULT        2048u
#define DP_REPLIES_DEFAULT        10000u
#define DP_REPLIES_SOURCE_DEFAULT 100u
#define DP_MTU_DEFAULT            1500u

/** A port as the configuration has it. */
struct dp_port_conf {
	const char *name;   /**< the configuration's; also its twin's: under 16 bytes */
	const char *device; /**< a PCI address, or a vdev with its arguments */
	uint16_t mtu;       /**< bytes */
	bool wants_twin; /**< a TAP device carries to and from the kernel what is no service's
			  */
};

/** Bytes of a packet buffer of the port's, headroom included. */
uint32_t dp_port_buffer_bytes(const struct dp_port_conf *conf);

/** What became of a port. */
struct dp_port_info {
	uint16_t id; /**< the device's */
	struct lb_mac mac;
	const char *driver; /**< the device's driver, "net_af_packet" */
	const char *
		kernel_if; /**< the kernel's interface beside it: twin, or iface=; NULL: none */
	bool has_twin;     /**< kernel_if is ours to set up */
	uint16_t kernel_mtu;   /**< of the twin: the port's, or less where it takes no more */
	const char *device_if; /**< the kernel's interface that the device is; NULL: none */
	bool spreads; /**< the device spreads packets by flow; otherwise the workers do */
	uint16_t n_rx_queues;
	uint16_t n_tx_queues;
};

struct dp_start_conf {
	const char *program; /**< argv[0], for messages */
	const struct dp_port_conf *ports;
	size_t n_ports;
	unsigned int n_workers; /**< 1..LB_WORKERS_MAX: an lcore each, besides the main one */
	uint32_t n_waiting;     /**< as in struct dp_conf: they are in the ports' buffers */
	const char *extra;      /**< more arguments of the EAL, split at blanks; NULL: none */
	const char *instance; /**< what no other daemon of the machine has: its control socket's
				   path. It becomes the EAL's --file-prefix */
};

/** Bytes of the packet path's memory that one of each takes. */
struct dp_footprint {
	double flow_bytes;    /**< an entry of a worker's flow table */
	double service_bytes; /**< without its slots; services with one set of backends share
			       * them
			       */
	double backend_bytes; /**< with its counters, of every worker */
	double slot_bytes;
};

/**
 * From the sizes of structures and tables, for so many.
 *
 * @param n_flow_entries  Of a worker, as configured: 1..LB_FLOW_ENTRIES_MAX.
 * @param n_services      0..LB_SERVICES_MAX.
 * @param n_workers       1..LB_WORKERS_MAX.
 */
struct dp_footprint dp_footprint(uint32_t n_flow_entries, size_t n_services,
	unsigned int n_workers);

/** Workers where the configuration leaves it open: a CPU for control, the rest theirs. */
unsigned int dp_workers_auto(void);

/**
 * Start the EAL for a daemon, with arguments derived from its ports: devices, lcores, and
 * memory from huge pages where some are free, ordinary pages otherwise.
 *
 * Once a process. The calling thread becomes the main lcore.
 *
 * @param messages  Told what is wrong and what cures it.
 * @retval -E2BIG   More arguments than there is room for.
 * @retval -errno   The EAL's reason; messages was told.
 */
int dp_start(const struct dp_start_conf *conf, FILE *messages) lb_must_check;

/**
 * Let dpdk-dumpcap and its like capture at the ports, where conf->extra has --proc-type;
 * nothing otherwise. After dp_start(), and for a program with all of DPDK.
 *
 * @retval -errno  DPDK's reason; messages was told.
 */
int dp_capture_start(const struct dp_start_conf *conf, FILE *messages) lb_must_check;

/**
 * Start the EAL for a process without privileges: no hugepages, no devices, no files.
 *
 * Once a process. The calling thread becomes the main lcore and keeps its CPU affinity.
 *
 * @param program    argv[0], for messages.
 * @param n_workers  Of all planes there will be at a time: for the memory that it takes.
 * @retval 0         Success.
 * @retval -errno    The EAL's reason; it has written it to stderr.
 */
int dp_start_unprivileged(const char *program, unsigned int n_workers) lb_must_check;

/**
 * Make the workers, with an empty snapshot in force: no service.
 *
 * @param now_ns    Time at which the flow tables begin.
 * @param[out] out  Untouched on error.
 * @retval -EINVAL  A field of conf is out of range.
 * @retval -ENOMEM  No memory.
 */
int dp_create(const struct dp_conf *conf, uint64_t now_ns, struct dp **out) lb_must_check;

void dp_destroy(struct dp *dp);

/**
 * Put a snapshot in force, wait until no worker can see the one before it, and free that.
 * The plane owns next from now on. No worker's burst may be running on the calling thread.
 */
void dp_publish(struct dp *dp, struct dp_snapshot *next);

/** Nanoseconds of the clock that the workers go by, which never goes back. */
uint64_t dp_now_ns(void);

/** Draw the flow tables' secret from the kernel. @retval -errno  It has none to give. */
int dp_draw_secret(uint64_t secret[static 2]) lb_must_check;

/**
 * Open the ports that dp_start() was told of, a receive queue for each worker where the device
 * has as many, and their twins.
 *
 * @retval -errno  Why not; messages was told, with what cures it.
 */
int dp_open_ports(struct dp *dp, const struct dp_port_conf ports[], size_t n_ports,
	FILE *messages) lb_must_check;

/** A port that was opened. */
void dp_port_read(const struct dp *dp, size_t port, struct dp_port_info *out);

/** A device's link, as its driver has it. */
struct dp_port_link {
	bool is_up;
	uint32_t speed_mbps; /**< 0: unknown, as of all but PCI devices */
};

void dp_port_read_link(const struct dp *dp, size_t port, struct dp_port_link *out);

/** Why a device itself dropped a packet, which then no worker received or counted. */
enum dp_missed {
	DP_MISSED_NO_ROOM,   /**< the workers were late, and its queue full */
	DP_MISSED_ERROR,     /**< damaged, or too long */
	DP_MISSED_NO_BUFFER, /**< all packet buffers of the port were in use */
	DP_N_MISSED,
};

/** "no_room", "error", "no_buffer". */
extern const char *const dp_missed_words[DP_N_MISSED];

/**
 * What a device itself dropped, as far as its driver counts it.
 *
 * @param[out] packets  Of each reason, since the start; 0 where the driver does not say.
 */
void dp_port_read_missed(const struct dp *dp, size_t port,
	uint64_t packets[static DP_N_MISSED]);

/**
 * Say whether a port's device and its twin are down or gone. Packets that would
 * leave by them are dropped from then on, port_down and kernel_down; what the kernel sends is
 * dropped and not counted, as it was not received. The workers may be running.
 */
void dp_port_set_down(struct dp *dp, size_t port, bool is_down, bool is_twin_down);

/**
 * Set the workers running, each on its lcore.
 *
 * @param sleep_ns  How long a worker with nothing to do sleeps at most, each time, below a
 *                  second; 0: it never does. The kernel's timers may add their slack, 50 us.
 * @retval -errno   An lcore did not start.
 */
int dp_run(struct dp *dp, uint64_t sleep_ns) lb_must_check;

/**
 * Stop the workers and wait for them; then the ports. What is under way between workers then is
 * dealt with before, and what waits given up: each packet has been counted under one verdict.
 */
void dp_stop(struct dp *dp);

/** What one backend got, summed over the workers. They may be running. */
struct dp_backend_counts {
	uint64_t packets;
	uint64_t bytes; /**< IP bytes as received */
	uint64_t flows; /**< begun on it */
};

void dp_read_backend(const struct dp *dp, uint32_t id, struct dp_backend_counts *out);

/** The last one holds turns of 17 seconds and more: 2^34 ns. */
#define DP_TURN_BUCKETS 36u

/**
 * What one worker's loop does; all 0 where a batch drives it. It may be running meanwhile: one
 * figure may be some turns older than another.
 */
struct dp_worker_figures {
	uint64_t polls;        /**< turns of the loop */
	uint64_t busy_polls;   /**< those that found packets */
	uint64_t flow_entries; /**< in use in its flow table, at the last turn */
	/** Turns that found packets, by how long they took: below 2^i ns, and in the last all
	 *  that took longer. */
	uint64_t turns[DP_TURN_BUCKETS];
	uint64_t turns_ns; /**< what they took together */
};

unsigned int dp_n_workers(const struct dp *dp);

/** @param worker  Below dp_n_workers(). */
void dp_read_worker(const struct dp *dp, unsigned int worker, struct dp_worker_figures *out);

/** Packets by verdict, summed over the workers. They may be running. */
void dp_read_verdicts(const struct dp *dp, uint64_t counts[static LB_N_VERDICTS]);

/*
 * Questions to the workers about their flow tables, which they alone may read. A question is
 * put to all of them at the same time, and each answers between two turns of its loop, so that
 * no packet waits for a lock. The caller sleeps meanwhile, 20 microseconds at a time and
 * DP_ASK_MS in all: an idle worker answers within its nap, a busy one within a turn or, where
 * the table is to be read through, some hundreds. A question that comes too late to be of use
 * stays with its worker, and the next one waits for it.
 */

/** Longest wait for an answer, milliseconds. */
#define DP_ASK_MS 200u

/** A flow that a worker knows. */
struct dp_flow_answer {
	unsigned int worker;
	struct lb_flow_info info;
};

/** The hash that a flow is known by. */
struct lb_flow_hash dp_flow_hash(const struct dp *dp, const struct lb_flow_key *key);

/**
 * Ask who knows a flow; where it is more than one, whoever saw it last.
 *
 * @param hash        The flow's, dp_flow_hash().
 * @param[out] out    Untouched on error.
 * @retval -ENOENT    Nobody knows it.
 * @retval -ENODEV    The workers are not running.
 * @retval -ETIMEDOUT Nobody that answered in time knows it, and somebody did not.
 */
int dp_ask_flow(struct dp *dp, const struct lb_flow_hash *hash,
	struct dp_flow_answer *out) lb_must_check;

/**
 * Count live flows by backend, over all workers. Flows come and go meanwhile, so a flow more or
 * less is nothing to rely on.
 *
 * @param[out] counts  n of them, by backend id; untouched on error.
 * @retval -ENODEV     The workers are not running.
 * @retval -ETIMEDOUT  Somebody did not answer in time.
 * @retval -ENOMEM     No memory.
 */
int dp_count_flows(struct dp *dp, uint32_t *counts, uint32_t n) lb_must_check;

/** Whether workers keep the keys of flows. */
bool dp_keeps_flow_keys(const struct dp *dp);

/** Where going through all flows has come to; all zero at first. */
struct dp_flow_cursor {
	unsigned int worker; /**< dp_n_workers(): at the end */
	uint32_t bucket;     /**< below dp_flow_buckets() */
};

/** Buckets of each worker's flow table. */
uint32_t dp_flow_buckets(const struct dp *dp);

/*
 * Go on with going through the flows of a query: through a share of one worker's table, at most
 * 262144 entries of it, so that no call takes long. Between calls flows come, go and move, so
 * one may be seen twice or not at all; those that stay where they are are seen once. Errors are
 * those of dp_count_flows(), and leave everything but a question on its way untouched.
 */

/**
 * List flows.
 *
 * @param[in,out] at  Before the end.
 * @param[in,out] n   Room in entries, LB_FLOW_LIST_MIN at least; how many were listed.
 */
int dp_list_flows(struct dp *dp, const struct lb_flow_query *query, struct dp_flow_cursor *at,
	struct lb_flow_entry *entries, size_t *n) lb_must_check;

/** Count flows by backend. @param[out] counts  n of them, by id; of this share alone. */
int dp_tally_flows(struct dp *dp, const struct lb_flow_query *query, struct dp_flow_cursor *at,
	uint32_t *counts, uint32_t n) lb_must_check;

/**
 * Have flows forgotten: their next packets find none, and begin others where the tables say.
 *
 * @param[out] cleared  How many were, of this share. After -ETIMEDOUT some may be,
 * nevertheless.
 */
int dp_clear_flows(struct dp *dp, const struct lb_flow_query *query, struct dp_flow_cursor *at,
	uint64_t *cleared) lb_must_check;

/*
 * A trace: what the workers decide on packets as they come, one record a packet. They leave in
 * bounded lanes what is wanted; what finds no room there is missed, and counted. A packet is in
 * it once it is decided: one that waits for its datagram's first fragment when that has come,
 * and one that is handed on with the worker that it is handed to. What is lost on the way to a
 * device, or to another worker, is decided before, and is in none.
 *
 * Begin, read and end are for one thread.
 */

struct dp_trace_conf {
	struct lb_filter filter;
	bool has_service;
	uint32_t service;  /**< number of the one whose packets are wanted */
	bool dropped_only; /**< none but dropped packets are wanted */
	uint32_t sample;   /**< 1..DP_TRACE_SAMPLE_MAX: by chance one in so many is looked at */
};

#define DP_TRACE_SAMPLE_MAX (1u << 30)

/** Beside enum lb_packet_kind: not an IP packet, or one that could not be parsed. */
#define DP_TRACE_UNPARSED UINT8_MAX

struct dp_trace_record {
	uint64_t now_ns; /**< when it came, by dp_now_ns() */
	struct lb_flow_key
		key;      /**< of an ICMP error about a flow: the flow's. Unparsed: zero */
	uint32_t service; /**< its number, or DP_NONE */
	uint32_t backend; /**< its id, or DP_NONE */
	uint32_t slot;    /**< or DP_NONE */
	uint32_t n_bytes; /**< of its frame, as received */
	uint16_t port;    /**< the device's id by which it came */
	uint8_t kind;     /**< enum lb_packet_kind, or DP_TRACE_UNPARSED */
	uint8_t protocol; /**< the packet's own, IPPROTO_* */
	uint8_t verdict;  /**< enum lb_verdict */
	uint8_t flow;     /**< enum dp_flow */
	uint8_t worker;
};

/**
 * Begin a trace; the workers may be running.
 *
 * @retval -EBUSY   There is one.
 * @retval -ENOMEM  No memory.
 */
int dp_trace_begin(struct dp *dp, const struct dp_trace_conf *conf) lb_must_check;

/**
 * Take records out, of each worker in the order of its packets.
 *
 * @return how many, n at most; 0 where there are none, or no trace.
 */
size_t dp_trace_read(struct dp *dp, struct dp_trace_record *records, size_t n);

/** Packets that were to be looked at and were not, for want of room, so far. */
uint64_t dp_trace_missed(const struct dp *dp);

/** End it, if there is one; records that were not taken out are gone. */
void dp_trace_end(struct dp *dp);

/*
 * Probes: IP packets that a health check sends to one backend through the balancer's own
 * forwarding, and what comes back for them. One thread's at a time, whichever; workers may be
 * running.
 */

/** Longest of either, in bytes. */
#define DP_PROBE_BYTES_MAX 1500u

/**
 * From here on what comes from a service's address to one of the balancer's own, at a port from
 * LB_PROBE_PORT_FIRST to LB_PROBE_PORT_LAST, is for dp_probe_take(), and counted as the
 * kernel's. For good.
 */
void dp_probe_open(struct dp *dp);

/**
 * Whether a probe has one of these ports now. What comes to another of them is late or forged,
 * and lost, so that nobody fills the way of answers but who hits one.
 */
void dp_probe_lend(struct dp *dp, uint16_t port, bool is_lent);

/**
 * Send a packet to a backend, up or not, as those of its flows go; it is counted nowhere.
 *
 * @param backend     Its id. Where nobody has it, or has no next hop, the packet is lost.
 * @param ip          n_bytes from the IP header on.
 * @retval -ENOBUFS   The workers are behind.
 * @retval -EMSGSIZE  It is longer than DP_PROBE_BYTES_MAX.
 */
int dp_probe_send(struct dp *dp, uint32_t backend, const uint8_t *ip,
	size_t n_bytes) lb_must_check;

/** Take an answer. @return its bytes; 0: there is none. */
size_t dp_probe_take(struct dp *dp, uint8_t ip[static DP_PROBE_BYTES_MAX]);

/*
 * Telemetry: commands in the EAL's own socket, which `dpdk-telemetry.py` asks. They are called
 * from threads of the EAL's, one at a time.
 */

struct dp_answer; /* opaque: what a command says; more than there is room for is left out */

/**
 * Answer a command.
 *
 * @param command  Its place in the commands.
 * @param param    What follows its name and a comma; NULL: nothing.
 * @retval 0       answer has it.
 * @retval -errno  There is no such thing, and nothing was added: the client is told null.
 */
typedef int (*dp_telemetry_fn)(void *context, size_t command, const char *param,
	struct dp_answer *answer);

struct dp_telemetry_command {
	const char *name; /**< "/shunt/…", 55 bytes at most */
	const char *help; /**< 127 bytes at most */
};

/**
 * Answer commands from here on; without telemetry nobody ever asks. Once a process, as the EAL
 * takes no command back.
 *
 * @param commands  Good until dp_telemetry_close(), as is the context of fn.
 * @retval -errno   The EAL's reason.
 */
int dp_telemetry_open(const struct dp_telemetry_command commands[], size_t n,
	dp_telemetry_fn fn, void *context) lb_must_check;

/** Wait for the command that is being answered; from here on all are told null. */
void dp_telemetry_close(void);

/** Longest text in an answer, and most elements of a list. A longer text is cut. */
#define DP_ANSWER_TEXT_BYTES_MAX 127u
#define DP_ANSWER_LIST_MAX       512u

/**
 * Add a member; keys are of letters, digits and '_'.
 *
 * @param text  In ASCII, without control characters: the EAL spoils other bytes.
 */
void dp_answer_number(struct dp_answer *answer, const char *key, uint64_t value);
void dp_answer_text(struct dp_answer *answer, const char *key, const char *text);

/** Begin a list of numbers, or of texts; it takes what is appended until the next member. */
void dp_answer_begin_numbers(struct dp_answer *answer, const char *key);
void dp_answer_begin_texts(struct dp_answer *answer, const char *key);
void dp_answer_append_number(struct dp_answer *answer, uint64_t value);
void dp_answer_append_text(struct dp_answer *answer, const char *text);

/*
 * Batches: frames from memory through the workers' own burst, on the calling thread, each
 * worker in turn. Frames are spread by flow, as a NIC's RSS does: an ICMP error goes to the
 * worker of the flow it quotes.
 */

struct dp_batch; /* opaque */

/** @retval -errno  The EAL's reason: too little memory for the packet buffers, above all. */
int dp_batch_create(struct dp *dp, struct dp_batch **out) lb_must_check;

/** What still waits of it is given up, and counted, as in dp_batch_end(). NULL is allowed. */
void dp_batch_destroy(struct dp_batch *batch);

/**
 * Add one frame; it is copied.
 *
 * @param wire_bytes  Its length on the wire, n_bytes or more.
 * @param now_ns      When it came; not before the frame added before it.
 * @param cookie      The caller's, given back with its results.
 * @retval 0          Success.
 * @retval -ENOBUFS   The batch holds DP_BURST_MAX frames: run it first.
 * @retval -EMSGSIZE  More than DP_FRAME_BYTES_MAX bytes.
 * @retval -ENOMEM    The buffers of long frames are used up: run it first; or, where it is
 * empty, there is no memory for them.
 */
int dp_batch_add(struct dp_batch *batch, const uint8_t *bytes, uint32_t n_bytes,
	uint32_t wire_bytes, uint64_t now_ns, uint64_t cookie) lb_must_check;

/** Longest frame that a batch takes: libpcap's own limit, and an Ethernet header before it. */
#define DP_FRAME_BYTES_MAX (262144u + 14u)

/**
 * Run what was added through the workers, and free what an earlier run gave. Packets that
 * are fragments, may be cut or answered, run by themselves, as the results before them have
 * been taken: what becomes of them hangs on the order of all, and is the same for any number
 * of workers. So take all results before dp_publish().
 */
void dp_batch_run(struct dp_batch *batch);

/**
 * The end: fragments that still wait for their first wait no more. A run of its own; what was
 * added and not run is freed.
 */
void dp_batch_end(struct dp_batch *batch);

/** Frames in the batch: added and not yet run, or of the last run. */
unsigned int dp_batch_count(const struct dp_batch *batch);

/** What a run gave: what became of a packet, or one more frame that it became. */
struct dp_result {
	uint64_t number; /**< of the packet: from 0, as they were added */
	uint64_t now_ns; /**< when it came */
	uint64_t cookie;
	const struct dp_decision *decision; /**< NULL: one more frame of an earlier result's */
	const uint8_t *bytes;               /**< the frame that leaves; NULL where none does */
	uint32_t n_bytes;
};

/**
 * The results of the last run, one after the other, in the order in which frames leave. Each
 * packet is decided once; one that waits for its datagram's first fragment in a later run than
 * its own, until dp_batch_end() at the latest.
 *
 * @param[out] out  Good until the batch is used again; untouched where there are no more.
 * @return whether there was one.
 */
bool dp_batch_next(struct dp_batch *batch, struct dp_result *out) lb_must_check;

#endif
