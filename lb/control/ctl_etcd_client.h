/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_ETCD_CLIENT_H
#define CTL_ETCD_CLIENT_H

/**
 * @file
 * Speaks with etcd, by libcurl, through the JSON gateway of its API v3. Each call blocks: for
 * CTL_ETCD_CALL_MS at most, and as long for a login; a watch for as long as it lasts.
 *
 * Nothing that comes is trusted: an answer is CTL_ETCD_ANSWER_BYTES_MAX long at most, whole, in
 * time, and what its reader takes (ctl_etcd_json.h).
 *
 * A client is one thread's at a time, but for ctl_etcd_client_wake(). The configuration is
 * read by any number of them.
 */

#include <stdatomic.h>
#include <stdio.h>

#include "ctl_etcd_json.h"
#include "ctl_etcd_url.h"

#define CTL_ETCD_CALL_MS          5000u
#define CTL_ETCD_LOAD_MS          10000u
#define CTL_ETCD_CONNECT_MS       2000u
#define CTL_ETCD_ANSWER_BYTES_MAX ((size_t)24 << 20)

struct ctl_etcd_client; /* opaque */

/** Where it is, and who asks. The texts but the address are the environment's. */
struct ctl_etcd_conf {
	struct ctl_etcd_url url;
	const char *user;          /**< NULL: nobody in particular */
	const char *password;      /**< NULL: it is in a file */
	const char *password_file; /**< read at each login */
	const char *ca_file;       /**< NULL: the system's */
	const char *cert_file;     /**< of this client; NULL: none */
	const char *key_file;
};

/**
 * Take an address apart, and read SHUNT_ETCD_USER, _PASSWORD, _PASSWORD_FILE, _CA_FILE,
 * _CERT_FILE and _KEY_FILE from the environment. Before there are other threads.
 *
 * @param[out] out  To be given to ctl_etcd_conf_fini(); untouched on error.
 * @retval -EINVAL  Something is wrong with them; messages was told.
 * @retval -ENOMEM  No memory; the same.
 */
int ctl_etcd_conf_read(const char *url, FILE *messages,
	struct ctl_etcd_conf *out) lb_must_check;

void ctl_etcd_conf_fini(struct ctl_etcd_conf *conf);

/**
 * @param conf      Not owned.
 * @param stop      Once another thread sets it, whatever is being waited for ends with
 *                  -ECANCELED: at once after ctl_etcd_client_wake(), else within a second.
 *                  NULL: nobody does.
 * @param[out] out  Untouched on error.
 * @retval -ENOMEM  No memory.
 */
int ctl_etcd_client_create(const struct ctl_etcd_conf *conf, const atomic_bool *stop,
	struct ctl_etcd_client **out) lb_must_check;

/** NULL is allowed. */
void ctl_etcd_client_destroy(struct ctl_etcd_client *client);

/** Have it look at stop. On any thread. */
void ctl_etcd_client_wake(struct ctl_etcd_client *client);

/** Ask another member from here on: what this one says is no good. */
void ctl_etcd_client_turn(struct ctl_etcd_client *client);

/*
 * Calls. What failed is told in words, with the member that was asked:
 * -EHOSTUNREACH  It cannot be reached, does not answer in time, or the answer breaks off.
 * -EPROTO        It answers what is none.
 * -EMSGSIZE      It answers too much.
 * -EACCES        It does not know who asks, or does not let them.
 * -EREMOTEIO     It answers with another error.
 * -ECANCELED     Somebody has set stop.
 * -ENOMEM        No memory.
 */

/**
 * Ask at which revision the key is, without its value: the member alone that another client
 * asks, and by a connection of this one's own, as the other may be watching.
 */
int ctl_etcd_client_look(struct ctl_etcd_client *client, const struct ctl_etcd_client *as,
	struct ctl_etcd_answer *out, char why[CTL_ETCD_WHY_BYTES]) lb_must_check;

/**
 * How long each of n members is waited for when the key is read: as long as another call,
 * unless all of them would take longer than CTL_ETCD_LOAD_MS then. Milliseconds.
 */
static inline unsigned int
ctl_etcd_member_ms(size_t n)
{
	const size_t share = CTL_ETCD_LOAD_MS / n;

	return share < CTL_ETCD_CALL_MS ? (unsigned int)share : CTL_ETCD_CALL_MS;
}

/**
 * Read the key; members are asked in turns until one answers, each for ctl_etcd_member_ms(),
 * and that long for a login.
 */
int ctl_etcd_client_load(struct ctl_etcd_client *client, struct ctl_etcd_answer *out,
	char why[CTL_ETCD_WHY_BYTES]) lb_must_check;

/**
 * Write the key if it was last written at a revision; 0: if it is not there. One member is
 * asked: where its answer does not come, nobody knows whether it was done.
 *
 * @param[out] out  is_succeeded, and the revision that it has now.
 */
int ctl_etcd_client_put(struct ctl_etcd_client *client, const char *text, size_t n_bytes,
	uint64_t revision, struct ctl_etcd_answer *out,
	char why[CTL_ETCD_WHY_BYTES]) lb_must_check;

/**
 * Told what a watch says, a line each; may take value away, and leave NULL.
 *
 * @return 0 to go on; a negative errno ends the watch, which returns it.
 */
typedef int (*ctl_etcd_watch_fn)(void *context, struct ctl_etcd_answer *answer);

/** Who watches. */
struct ctl_etcd_watcher {
	ctl_etcd_watch_fn fn;
	/**
	 * Once the watch has begun: called each second, and oftener where lines come. As fn,
	 * it ends the watch by a negative errno. It may take as long as a call of another
	 * client's.
	 */
	int (*turn)(void *context);
	void *context;
};

/**
 * Follow the key from a revision on, on the member that answered last; until that fails.
 * Whether it is silent because nothing happens, it does not know: turn may find out.
 */
int ctl_etcd_client_watch(struct ctl_etcd_client *client, uint64_t revision,
	const struct ctl_etcd_watcher *watcher, char why[CTL_ETCD_WHY_BYTES]) lb_must_check;

#endif
