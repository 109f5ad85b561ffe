/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_CHECK_H
#define HC_CHECK_H

/**
 * @file
 * What a check is: how backends of a service are asked, and what answer is right.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_addr.h"
#include "lb_compiler.h"

enum hc_type {
	HC_TCP,   /**< a connection is taken */
	HC_HTTP,  /**< GET, and a status; nothing behind the status is read */
	HC_HTTPS, /**< the same through TLS */
	HC_UDP,   /**< an empty datagram: something comes back, or no ICMP error does */
	HC_ICMP,  /**< echo; `port` has no meaning */
};

/** Ranges of statuses of one check. */
#define HC_RANGES_MAX 8u

/** Longest `path` and `host`, in bytes. */
#define HC_PATH_BYTES_MAX 1024u
#define HC_HOST_BYTES_MAX 253u

/** Statuses, both ends included. */
struct hc_range {
	uint16_t first;
	uint16_t last;
};

struct hc_check {
	enum hc_type type;
	uint16_t port;        /**< 1..65535 */
	bool wants_reply;     /**< udp: silence is a failure */
	bool is_verified;     /**< https: the certificate has to be right */
	bool is_tunnelled;    /**< by the balancer's own forwarding; any type but icmp */
	uint64_t interval_ns; /**< from begin to begin; 1 to an hour's */
	uint64_t timeout_ns;  /**< 1..interval_ns */
	struct hc_range expect[HC_RANGES_MAX];
	size_t n_expect;  /**< http, https: 1 or more */
	const char *path; /**< http, https: begins with '/' */
	const char *
		host; /**< http, https: of the request and the certificate; NULL: the address */
};

/** Whom a check asks. */
struct hc_target {
	uint64_t id;            /**< the caller's; no two have the same */
	struct lb_addr address; /**< of the backend; of the service where it is tunnelled */
	const struct hc_check *check; /**< not owned */
	uint32_t backend;             /**< tunnelled: its id in the data plane */
	struct lb_addr source;        /**< tunnelled: the balancer's own, of the same family */
};

/** Whether two checks ask and expect the same. */
bool hc_check_equal(const struct hc_check *a, const struct hc_check *b);

/** A check, and the texts that it points to. */
struct hc_own_check {
	struct hc_check check;
	char *path;
	char *host;
};

/**
 * @param[out] out  To be given to hc_own_check_fini(); untouched on error.
 * @retval -ENOMEM  No memory.
 */
int hc_own_check_init(const struct hc_check *check, struct hc_own_check *out) lb_must_check;

void hc_own_check_fini(struct hc_own_check *own);

/** Whether a status is one of those that are expected. */
bool hc_check_expects(const struct hc_check *check, unsigned int status);

#endif
