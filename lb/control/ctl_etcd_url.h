/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_ETCD_URL_H
#define CTL_ETCD_URL_H

/**
 * @file
 * Where in etcd a configuration is: etcd://HOST[:PORT][,HOST[:PORT]]…/KEY, or etcds:// where it
 * is spoken to by TLS. Several hosts are members of one cluster. An IPv6 address stands in
 * brackets; the usual port is 2379. The key is all that comes after the first slash, with
 * %XX for a byte: the key of etcd://a//b begins with a slash.
 *
 * Pure; on any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "lb_compiler.h"

#define CTL_ETCD_ENDPOINTS_MAX 9u
/** Of a key, once it is decoded. */
#define CTL_ETCD_KEY_BYTES_MAX 512u

struct ctl_etcd_url {
	char *endpoints[CTL_ETCD_ENDPOINTS_MAX]; /**< as curl takes them: http://HOST:PORT */
	size_t n_endpoints;
	char *key; /**< NUL-terminated, without control characters */
	bool is_tls;
};

/** Whether a text is meant as such an address, and not as a file's name. */
bool ctl_etcd_url_is(const char *text);

/**
 * Take an address apart.
 *
 * @param text      For which ctl_etcd_url_is() holds.
 * @param[out] out  To be given to ctl_etcd_url_fini(); untouched on error.
 * @param[out] why  What is wrong, in words that are not to be freed; set where it is -EINVAL.
 * @retval -EINVAL  It is none.
 * @retval -ENOMEM  No memory.
 */
int ctl_etcd_url_parse(const char *text, struct ctl_etcd_url *out,
	const char **why) lb_must_check;

/** All zero is allowed. */
void ctl_etcd_url_fini(struct ctl_etcd_url *url);

#endif
