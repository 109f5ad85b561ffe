/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_ETCD_JSON_H
#define CTL_ETCD_JSON_H

/**
 * @file
 * What is asked of etcd's JSON gateway (the protocol buffers of etcdserverpb/rpc.proto, in
 * their JSON form: 64-bit numbers as texts, bytes as base64), and what it answers.
 *
 * Answers come from a network: any bytes are taken, and what is not as it has to be, or has
 * more than CTL_ETCD_PARTS_MAX parts, is -EPROTO.
 *
 * Pure; on any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

/** Of a configuration, there and in the copy. */
#define CTL_ETCD_VALUE_BYTES_MAX ((size_t)16 << 20)

/**
 * Of an answer: objects, lists and members. It has some twenty, and ten for each event; what
 * has more would take a thousand times the memory of its text, and its time.
 */
#define CTL_ETCD_PARTS_MAX 65536u

/** Room for what is told of an error; longer words are cut. */
#define CTL_ETCD_WHY_BYTES 256u

/** What an answer says of one key. All zero is allowed. */
struct ctl_etcd_answer {
	uint64_t cluster;   /**< which cluster answers; one that is restored has another */
	uint64_t revision;  /**< of all that the cluster holds, 1 and up; 0: it is not told */
	bool has_key;       /**< it is there, with key_revision and value */
	bool is_deleted;    /**< it is gone since key_revision */
	bool is_succeeded;  /**< of what was asked for under a condition: it was done */
	bool is_created;    /**< of a watch: it has begun */
	bool is_canceled;   /**< of a watch: it is over; reason says why */
	uint64_t compacted; /**< of such a watch: revisions up to this are gone; 0: not told */
	uint64_t key_revision; /**< at which it was last written, 1 to revision */
	char *value;           /**< owned; NUL behind it. NULL: none was asked for */
	size_t n_value;
	char reason[CTL_ETCD_WHY_BYTES];
};

void ctl_etcd_answer_fini(struct ctl_etcd_answer *answer);

/* What is asked: a text, the caller's to free; NULL: no memory. */

/**
 * The key and its value: /v3/kv/range.
 *
 * @param is_bare  Without the value: it is "" in what is answered.
 */
char *ctl_etcd_json_range(const char *key, bool is_bare);

/**
 * Write a value, if the key was last written at a revision: /v3/kv/txn.
 *
 * @param revision  0: if it is not there.
 */
char *ctl_etcd_json_put(const char *key, const char *value, size_t n_value, uint64_t revision);

/** All that happens to the key from a revision on: /v3/watch. */
char *ctl_etcd_json_watch(const char *key, uint64_t revision);

/** A token for a user: /v3/auth/authenticate. */
char *ctl_etcd_json_login(const char *user, const char *password);

/*
 * What is answered: n characters, of which a NUL may be one.
 * -EPROTO: it is no such answer. -EMSGSIZE: its value is longer than CTL_ETCD_VALUE_BYTES_MAX.
 * -ENOMEM: no memory. Results are untouched on error.
 */

/** To ctl_etcd_json_range(). */
int ctl_etcd_json_read_range(const char *text, size_t n, const char *key,
	struct ctl_etcd_answer *out) lb_must_check;

/** To ctl_etcd_json_put(). Where it is not done, key_revision says what stands there. */
int ctl_etcd_json_read_put(const char *text, size_t n, const char *key,
	struct ctl_etcd_answer *out) lb_must_check;

/** One line of what a watch answers. Of several events the last one counts. */
int ctl_etcd_json_read_watch(const char *text, size_t n, const char *key,
	struct ctl_etcd_answer *out) lb_must_check;

/** To ctl_etcd_json_login(). @param[out] token  The caller's to free. */
int ctl_etcd_json_read_login(const char *text, size_t n, char **token) lb_must_check;

/** An error's words, with '?' for control characters; "" where there are none. */
void ctl_etcd_json_read_error(const char *text, size_t n, char words[CTL_ETCD_WHY_BYTES]);

#endif
