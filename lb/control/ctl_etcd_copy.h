/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_ETCD_COPY_H
#define CTL_ETCD_COPY_H

/**
 * @file
 * A configuration that etcd has, and the copy of it that is kept on the disk, so that a start
 * without etcd finds what was last in force.
 *
 * A copy is a file that shuntd could be started with: the configuration to the letter, below a
 * comment that says what it is a copy of, and a hash by which damage is noticed. It may have
 * secrets in it, so it is its owner's alone.
 *
 * On any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

struct ctl_etcd_document {
	char *text; /**< owned; NUL behind it */
	size_t n_bytes;
	uint64_t cluster;  /**< that it is from */
	uint64_t revision; /**< at which the key was written: 1 and up */
	uint64_t hash;     /**< ctl_etcd_document_hash() of it: the same on every balancer */
};

/** The hash of a configuration's text. */
uint64_t ctl_etcd_document_hash(const char *text, size_t n_bytes);

/** All zero is allowed. */
void ctl_etcd_document_fini(struct ctl_etcd_document *document);

/**
 * Where the copy of a key is: in the first folder of STATE_DIRECTORY, as systemd has it, or in
 * CTL_ETCD_COPY_FOLDER, by a name that the key alone decides.
 *
 * @return the caller's to free; NULL: no memory.
 */
char *ctl_etcd_copy_path(const char *key);

#define CTL_ETCD_COPY_FOLDER "/var/lib/shunt"

/**
 * Write a copy in the place of the one before, whole or not at all: it is on the disk before it
 * takes the name. Its folder is made, 0700, where that alone is missing.
 *
 * @param path  Of ctl_etcd_copy_path().
 * @retval -EBUSY  Others have the folder locked (flock()), for half a second.
 * @retval -errno  The kernel's reason; the old copy is as it was.
 */
int ctl_etcd_copy_write(const char *path, const char *key,
	const struct ctl_etcd_document *document) lb_must_check;

/**
 * Read a copy.
 *
 * @param[out] out      To be given to ctl_etcd_document_fini(); untouched on error.
 * @param[out] saved_s  When it was written, in seconds of Unix time; untouched on error.
 * @retval -ENOENT   There is none.
 * @retval -EBADMSG  It is damaged, or no copy of this key.
 * @retval -errno    The kernel's reason, or -ENOMEM.
 */
int ctl_etcd_copy_read(const char *path, const char *key, struct ctl_etcd_document *out,
	int64_t *saved_s) lb_must_check;

/** The same of bytes that were read. @retval -EBADMSG  The same. @retval -ENOMEM  The same. */
int ctl_etcd_copy_parse(const char *bytes, size_t n_bytes, const char *key,
	struct ctl_etcd_document *out) lb_must_check;

#endif
