/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PROTO_H
#define CTL_PROTO_H

/**
 * @file
 * The words of the control protocol, JSON-RPC 2.0 on a Unix socket: what the daemon offers and
 * its clients ask for. Every result is an object with CTL_KEY_SCHEMA in it, and its names are
 * stable.
 */

/** Of every result. */
#define CTL_SCHEMA 1

/** Code of the error of who finds all places taken: nothing of it was read, and it may try
 * again. */
#define CTL_ERROR_FULL 2

/** Code of the error of a call that the workers did not answer in time: it may be made again.
 */
#define CTL_ERROR_LATE 3

/* Methods. */

#define CTL_METHOD_STATUS         "status"
#define CTL_METHOD_STATS          "stats"
#define CTL_METHOD_SERVICE_LIST   "service.list"
#define CTL_METHOD_SERVICE_SHOW   "service.show"
#define CTL_METHOD_SERVICE_ADD    "service.add" /**< the keys of the file */
#define CTL_METHOD_SERVICE_REMOVE "service.remove"
#define CTL_METHOD_BACKEND_LIST   "backend.list"
#define CTL_METHOD_BACKEND_ADD    "backend.add" /**< the keys of the file, and the service */
#define CTL_METHOD_BACKEND_REMOVE "backend.remove"
#define CTL_METHOD_BACKEND_DRAIN  "backend.drain"
#define CTL_METHOD_BACKEND_UP     "backend.up"
#define CTL_METHOD_BACKEND_DOWN   "backend.down"
#define CTL_METHOD_BACKEND_WEIGHT "backend.weight"
#define CTL_METHOD_EXPLAIN        "explain"
#define CTL_METHOD_PLAN           "plan"
#define CTL_METHOD_RELOAD         "reload"
#define CTL_METHOD_TRACE_BEGIN    "trace.begin" /**< one at a time; it is to be read on */
#define CTL_METHOD_TRACE_READ     "trace.read"  /**< what came since the last time */
#define CTL_METHOD_TRACE_END      "trace.end"
#define CTL_METHOD_FLOWS_LIST     "flows.list"  /**< a page at a time: CTL_KEY_CURSOR */
#define CTL_METHOD_FLOWS_COUNT    "flows.count" /**< the same */
#define CTL_METHOD_FLOWS_CLEAR    "flows.clear" /**< the same */
#define CTL_METHOD_FLOWS_FIND     "flows.find"
#define CTL_METHOD_CONFIG_SHOW    "config.show"
#define CTL_METHOD_CONFIG_SAVE    "config.save"
#define CTL_METHOD_CONFIG_PUSH    "config.push"

/* Keys, of parameters and of results. */

#define CTL_KEY_SCHEMA           "schema"
#define CTL_KEY_GENERATION       "generation"
#define CTL_KEY_NAME             "name"
#define CTL_KEY_SERVICE          "service"
#define CTL_KEY_SERVICES         "services"
#define CTL_KEY_BACKEND          "backend"
#define CTL_KEY_BACKENDS         "backends"
#define CTL_KEY_BACKEND_ADDRESS  "backend_address"
#define CTL_KEY_ADDRESS          "address"
#define CTL_KEY_PROTOCOL         "protocol"
#define CTL_KEY_PORT             "port"
#define CTL_KEY_TABLE            "table"
#define CTL_KEY_ALGORITHM        "algorithm"
#define CTL_KEY_SIZE             "size"
#define CTL_KEY_OVERLOAD         "overload" /**< of stable alone: "2%" */
#define CTL_KEY_AFFINITY         "affinity"
#define CTL_KEY_FORWARD          "forward"
#define CTL_KEY_TUNNEL_PORT      "tunnel_port"
#define CTL_KEY_VNI              "vni"
#define CTL_KEY_CARRY            "carry"
#define CTL_KEY_ECHO             "echo"
#define CTL_KEY_FRAGMENT         "fragment"
#define CTL_KEY_MSS_CLAMP        "mss_clamp" /**< null: none */
#define CTL_KEY_QUIC             "quic"
#define CTL_KEY_CONFIG_ID        "config_id"
#define CTL_KEY_SERVER_ID_LENGTH "server_id_length"
#define CTL_KEY_NONCE_LENGTH     "nonce_length"
#define CTL_KEY_CID_KEY          "cid_key" /**< of results: CTL_CID_KEY_*; null: none */
#define CTL_KEY_CID_HAS_LENGTH   "first_octet_encodes_cid_length"
#define CTL_KEY_QUIC_ID          "quic_id"
#define CTL_KEY_WEIGHT           "weight"
#define CTL_KEY_STATE            "state"
#define CTL_KEY_STATE_SECONDS    "state_seconds" /**< since when; null: not known */
#define CTL_KEY_UP               "up"
#define CTL_KEY_MAC              "mac"
#define CTL_KEY_ZONE             "zone" /**< null: none */
#define CTL_KEY_PATH             "path"
#define CTL_KEY_TEXT             "text"
#define CTL_KEY_CLIENT           "client"
#define CTL_KEY_DESTINATION      "destination"
#define CTL_KEY_SOURCE           "source"
#define CTL_KEY_VERDICT          "verdict"
#define CTL_KEY_REASON           "reason"
#define CTL_KEY_HASH             "hash"
#define CTL_KEY_SLOT             "slot"
#define CTL_KEY_SLOTS            "slots"
#define CTL_KEY_SLOTS_MOVED      "slots_moved"
#define CTL_KEY_FLOW             "flow"
#define CTL_KEY_FLOWS            "flows"
#define CTL_KEY_ENTRY            "entry" /**< of explain: a worker's, of the flow; null: none */
#define CTL_KEY_WORKER           "worker"
#define CTL_KEY_IDLE_SECONDS     "idle_seconds"
#define CTL_KEY_CONFIRMED        "confirmed"
#define CTL_KEY_TRACE            "trace" /**< its number, from trace.begin on */
#define CTL_KEY_HOST             "host"
#define CTL_KEY_NET              "net"
#define CTL_KEY_IDLE             "idle"      /**< seconds, at least */
#define CTL_KEY_ALL              "all"       /**< of flows.clear: without any filter */
#define CTL_KEY_CLOSING          "closing"   /**< TCP after FIN or RST */
#define CTL_KEY_ADDRESSES        "addresses" /**< whether flows' are kept */
#define CTL_KEY_CLEARED          "cleared"
#define CTL_KEY_CURSOR           "cursor" /**< of the next page; null: there is none */
#define CTL_KEY_SAMPLE           "sample"
#define CTL_KEY_SECONDS          "seconds"
#define CTL_KEY_MISSED                                                                         \
	"missed" /**< of a port: by the device, by reason; of a trace: for want of room */
#define CTL_KEY_ENDED            "ended" /**< of trace.read: CTL_ENDED_*; null: it goes on */
#define CTL_KEY_TIME             "time"
#define CTL_KEY_IN_PORT          "in_port"
#define CTL_KEY_KIND             "kind"
#define CTL_KEY_NEXT_HOP         "next_hop"
#define CTL_KEY_OUTER            "outer"
#define CTL_KEY_MODE             "mode"
#define CTL_KEY_UDP_SOURCE_PORT  "udp_source_port"
#define CTL_KEY_UDP_PORT         "udp_port"
#define CTL_KEY_OVERHEAD         "overhead"
#define CTL_KEY_PACKETS          "packets"
#define CTL_KEY_BYTES            "bytes"
#define CTL_KEY_DROPS            "drops"
#define CTL_KEY_RECEIVED         "received"
#define CTL_KEY_FORWARDED        "forwarded"
#define CTL_KEY_REPLIED          "replied"
#define CTL_KEY_TO_KERNEL        "to_kernel"
#define CTL_KEY_DROPPED          "dropped"
#define CTL_KEY_VERSION          "version"
#define CTL_KEY_PID              "pid"
#define CTL_KEY_UPTIME_SECONDS   "uptime_seconds"
#define CTL_KEY_CONFIG           "config"
#define CTL_KEY_WORKERS          "workers"
#define CTL_KEY_WORKER           "worker"
#define CTL_KEY_POLLS            "polls"
#define CTL_KEY_BUSY_POLLS       "busy_polls"
#define CTL_KEY_BUSY_RATIO       "busy_ratio" /**< of /status.json: over the last second */
#define CTL_KEY_FLOW_ENTRIES     "flow_entries"
#define CTL_KEY_FLOW_ENTRIES_MAX "flow_entries_max"
#define CTL_KEY_TURNS            "turns"
#define CTL_KEY_TOTAL_NS         "total_ns"
#define CTL_KEY_BUCKETS          "buckets"
#define CTL_KEY_BELOW_NS         "below_ns" /**< null: no bound */
#define CTL_KEY_COUNT            "count"
#define CTL_KEY_PORTS            "ports"
#define CTL_KEY_DEVICE           "device"
#define CTL_KEY_DRIVER           "driver"
#define CTL_KEY_KERNEL_INTERFACE "kernel_interface"
#define CTL_KEY_RX_QUEUES        "rx_queues"
#define CTL_KEY_TX_QUEUES        "tx_queues"
#define CTL_KEY_LINK             "link"        /**< up, down or gone */
#define CTL_KEY_KERNEL_LINK      "kernel_link" /**< of the twin; null: there is none */
#define CTL_KEY_KEPT_NEXT_HOPS   "kept_next_hops"
#define CTL_KEY_SPEED_MBPS       "speed_mbps" /**< null: nobody knows */
#define CTL_KEY_SPREAD_BY        "spread_by"  /**< over the workers: device or workers */
#define CTL_KEY_MTU              "mtu"
#define CTL_KEY_ETCD             "etcd"     /**< of status; null: the configuration is a file */
#define CTL_KEY_SINCE            "since"    /**< seconds of Unix time */
#define CTL_KEY_ERROR            "error"    /**< in words; null: there is none */
#define CTL_KEY_FAILURES         "failures" /**< loads and watches that failed */
#define CTL_KEY_REVISION         "revision" /**< of the key, in etcd; null: none */
#define CTL_KEY_KNOWN_REVISION   "known_revision" /**< the same of the last heard of */
#define CTL_KEY_FROM_COPY        "from_copy"
#define CTL_KEY_APPLIED          "applied"
#define CTL_KEY_REFUSED_DOCUMENT "refused_document" /**< the last; null: it was not refused */
#define CTL_KEY_COPY             "copy"
#define CTL_KEY_SAVED            "saved"         /**< seconds of Unix time; null: never */
#define CTL_KEY_ANNOUNCE         "announce"      /**< null: off */
#define CTL_KEY_ANNOUNCED        "announced"     /**< of status: how many; null: off */
#define CTL_KEY_NOT_ANNOUNCED    "not_announced" /**< why, in words; null */
#define CTL_KEY_INTERFACE        "interface"
#define CTL_KEY_METRIC           "metric"
#define CTL_KEY_UNREACHED        "unreached"
#define CTL_KEY_BUILD_SECONDS    "build_seconds"
#define CTL_KEY_MEMORY           "memory"
#define CTL_KEY_FLOW_BYTES       "flow_bytes"
#define CTL_KEY_SERVICE_BYTES    "service_bytes"
#define CTL_KEY_BACKEND_BYTES    "backend_bytes"
#define CTL_KEY_SLOT_BYTES       "slot_bytes"
#define CTL_KEY_RPC              "rpc"
#define CTL_KEY_CLIENTS          "clients"
#define CTL_KEY_ACCEPTED         "accepted"
#define CTL_KEY_REFUSED          "refused"
#define CTL_KEY_EVICTED          "evicted"
#define CTL_KEY_REQUESTS         "requests"
#define CTL_KEY_ERRORS           "errors"
#define CTL_KEY_OVERSIZED        "oversized"
#define CTL_KEY_STALLED          "stalled"
#define CTL_KEY_CHANGE           "change"
#define CTL_KEY_HEALTH           "health" /**< of a service: its check; of a backend: a word */
#define CTL_KEY_HEALTH_SECONDS   "health_seconds" /**< since when; null: it is not checked */
#define CTL_KEY_HEALTH_ERROR     "health_error"   /**< the last one; null: none */
#define CTL_KEY_HEALTH_BACK      "health_back_seconds" /**< it flaps: for how long; null */
#define CTL_KEY_SHARE            "share"      /**< by health: sixteenths of its slots */
#define CTL_KEY_SLOW_START       "slow_start" /**< null: none */
#define CTL_KEY_MIN_HEALTHY      "min_healthy"
#define CTL_KEY_WHEN_ALL_DOWN    "when_all_down"
#define CTL_KEY_HEALTHY          "healthy" /**< of a service: backends */
#define CTL_KEY_READY            "ready"
#define CTL_KEY_NOT_READY        "not_ready" /**< why, in words; null */
#define CTL_KEY_REACHED          "reached"   /**< a backend: whether it has a next hop */
#define CTL_KEY_WARNINGS         "warnings"  /**< of a file that was read: lines */
#define CTL_KEY_OBSTACLE         "obstacle"  /**< of plan: why it takes a restart; null */
#define CTL_KEY_RESTART          "restart"   /**< of plan: the keys for which; a list */
#define CTL_KEY_SETTINGS         "settings"
#define CTL_KEY_CHANGES          "changes"
#define CTL_KEY_KEY              "key"
#define CTL_KEY_FROM             "from"
#define CTL_KEY_TO               "to"

/* Values of CTL_KEY_CHANGE. */

#define CTL_CHANGE_ADD    "add"
#define CTL_CHANGE_REMOVE "remove"
#define CTL_CHANGE_CHANGE "change"

/* Values of CTL_KEY_CID_KEY in results: the key itself is for nobody who asks, but config.show.
 */

#define CTL_CID_KEY_SET     "set"
#define CTL_CID_KEY_CHANGED "changed" /**< of plan: another than before */

/* Values of CTL_KEY_FLOW; null where the workers do not say, or nobody was asked. */

#define CTL_FLOW_HIT  "hit"
#define CTL_FLOW_MISS "miss"
#define CTL_FLOW_NONE "none" /**< of a trace: no backend was asked for */

/** Values of CTL_KEY_ENDED. */
#define CTL_ENDED_COUNT "count"
#define CTL_ENDED_TIME  "time"

/** Of a trace.begin that does not say. */
#define CTL_TRACE_SECONDS_DEFAULT 600u
#define CTL_TRACE_SECONDS_MAX     86400u

/** A trace that nobody has read for so long ends: its client is gone. */
#define CTL_TRACE_LEASE_MS 2000u

/** Where a daemon listens whose configuration says nothing of it. */
#define CTL_SOCKET_DEFAULT "/run/shunt/shunt.sock"

#endif
