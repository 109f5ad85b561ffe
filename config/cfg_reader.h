/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_READER_H
#define CFG_READER_H

/**
 * @file
 * Reads one configuration file again and again, in about the time that its changes take.
 *
 * A reader keeps the last text that was right, and its model. Where the next text differs in
 * some items of `services` alone, only those are parsed; of the others the reader copies what
 * it has. All else, and all that is wrong or doubtful, is read whole. So the result and the
 * messages are always those of cfg_read_file(), but for ports that are needed.
 *
 * Not thread-safe: at most one thread at a time.
 */

#include "cfg_yaml.h"

struct cfg_reader;

/**
 * @param needs_ports  Whether a file without ports is wrong, as it is for shuntd.
 * @return a reader that has read nothing, to be given to cfg_reader_destroy(); NULL: no memory.
 */
struct cfg_reader *cfg_reader_create(bool needs_ports);

void cfg_reader_destroy(struct cfg_reader *reader);

/**
 * Read a file of what is one machine's own: from then on the `dataplane`, `control` and
 * `announce` of every configuration that is read are that file's, whatever it says of them, and
 * it is checked with those. Once, before anything else is read.
 *
 * @param messages  As of cfg_read_file().
 * @retval -EINVAL  Something is wrong with it; or it has services, or a hash_seed, which are
 * for all machines. messages was told.
 * @retval -errno   As of cfg_read_file().
 */
int cfg_reader_read_own(struct cfg_reader *reader, const char *path,
	FILE *messages) lb_must_check;

/** As cfg_read_file(). The path may be another each time. */
int cfg_reader_read(struct cfg_reader *reader, const char *path, FILE *messages,
	struct cfg_model *out) lb_must_check;

/**
 * As cfg_reader_read(), from a stream that the caller has opened; name stands in messages.
 *
 * @param stop  Where another thread sets it, reading is given up, with -EINVAL and a message;
 *              NULL: nobody does.
 */
int cfg_reader_read_stream(struct cfg_reader *reader, const char *name, FILE *stream,
	const atomic_bool *stop, FILE *messages, struct cfg_model *out) lb_must_check;

/**
 * As cfg_read_text_model(), of what is for a whole fleet: a text without `services`, as another
 * file is that was put there by mistake, would take all of them away, and is wrong.
 */
int cfg_reader_read_text(struct cfg_reader *reader, const char *name, const char *text,
	size_t n_bytes, FILE *messages, struct cfg_model *out) lb_must_check;

/** How many reads so far did not have to parse the whole text. */
uint64_t cfg_reader_count_partial(const struct cfg_reader *reader);

#endif
