/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_NODE_H
#define CFG_NODE_H

/**
 * @file
 * YAML text as a tree of nodes that know where they stand, and the strict reading of
 * scalars. The configuration, the events file and the expectations file all go through
 * here, so that they complain in one voice:
 *
 *   FILE:LINE:COLUMN: what is wrong, and what would be right
 *
 * One document a file. Anchors, aliases, tags and merge keys are refused: a configuration
 * is data, and reads the same to every program. They are errors that leave a tree, as are
 * duplicate keys of a mapping, which cfg_node_check_keys() tells: none of them hides what else
 * is wrong. So whoever reads a file looks at n_errors at the end.
 *
 * Not thread-safe: one thread's own.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cfg_model.h"

/** As many errors of a file are told, and as many warnings; then that there are more. */
#define CFG_MESSAGES_MAX 1000u

/**
 * The longest file that is read. 10,000 services of ten backends are some 10 MB; and what is
 * no configuration at all is not to fill the memory, nor to keep other reloads waiting.
 */
#define CFG_FILE_BYTES_MAX ((size_t)64 << 20)

/** Collects all that is wrong with a file, so that one run shows it all. */
struct cfg_errors {
	FILE *to;         /**< where each is written as it is found; NULL: only counted */
	const char *file; /**< the name that messages begin with */
	/** Another thread sets it where reading is to end; NULL: nobody does. */
	const atomic_bool *stop;
	size_t n_errors;
	size_t n_warnings;
	bool no_memory;  /**< one of the errors was that memory is short */
	bool is_stopped; /**< one of the errors was that reading was to end */
};

/** One error at a place; format as printf, without a line end. */
void cfg_error(struct cfg_errors *errors, struct cfg_pos pos, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** One warning at a place: "FILE:LINE:COLUMN: warning: …". */
void cfg_warning(struct cfg_errors *errors, struct cfg_pos pos, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Whether to read no further: more errors were found than are told, or reading is to end, which
 * is told as an error. Asked between items, so that no file keeps anybody for long.
 */
bool cfg_must_stop(struct cfg_errors *errors);

/** The error that memory is short. */
void cfg_error_memory(struct cfg_errors *errors);

/** A copy of a text, to be freed; NULL without memory, of which errors is told. */
char *cfg_keep_text(const char *text, struct cfg_errors *errors);

/**
 * What stands at a place. CFG_REFUSED is an alias, a merge key or a text with a NUL: it was
 * told, so no reader takes it and none tells it again.
 */
enum cfg_node_kind { CFG_SCALAR, CFG_SEQUENCE, CFG_MAPPING, CFG_REFUSED };

struct cfg_node {
	enum cfg_node_kind kind;
	bool is_quoted; /**< a scalar in quotes: a string whatever it looks like */
	struct cfg_pos pos;
	char *text;             /**< scalar: NUL-terminated, without NUL inside; refused: "" */
	struct cfg_node *key;   /**< item of a mapping: its key, a scalar or refused */
	struct cfg_node *first; /**< first item of a sequence or mapping */
	struct cfg_node *next;  /**< next item of the parent */
};

/**
 * Read a whole YAML stream.
 *
 * @param errors     Told of everything that is not well-formed or not taken.
 * @param[out] out   The root, to be given to cfg_node_free(); NULL for a file without a
 *                   document (empty, or comments alone). Untouched on error.
 * @retval 0         There is a tree; what is not taken in it was told, and counted in
 *                   errors->n_errors.
 * @retval -EINVAL   It is not well-formed, or cfg_must_stop(); errors was told.
 * @retval -ENOMEM   No memory; errors was told.
 * @retval -EIO      The stream cannot be read (a directory, say); errors was told.
 */
int cfg_node_read(FILE *stream, struct cfg_errors *errors, struct cfg_node **out) lb_must_check;

/**
 * As cfg_node_read(), from the file that errors->file names.
 *
 * @retval -errno   Also: it cannot be opened; errors was told.
 */
int cfg_node_read_file(struct cfg_errors *errors, struct cfg_node **out) lb_must_check;

/**
 * The bytes of the file that errors->file names, to be freed. Errors as of
 * cfg_node_read_file(), and -EINVAL for a file of more than CFG_FILE_BYTES_MAX.
 */
int cfg_read_bytes(struct cfg_errors *errors, char **out, size_t *n_out) lb_must_check;

/** As cfg_read_bytes(), from a stream. Where it would have to wait, that is an error. */
int cfg_read_stream(FILE *stream, struct cfg_errors *errors, char **out,
	size_t *n_out) lb_must_check;

/** As cfg_node_read(), from memory. */
int cfg_node_parse(const char *text, size_t n_bytes, struct cfg_errors *errors,
	struct cfg_node **out) lb_must_check;

void cfg_node_free(struct cfg_node *root);

/** Room for what cfg_node_describe() says; a longer value is cut. */
#define CFG_DESCRIBE_BYTES 96u

/**
 * "a mapping", "a list", "nothing", "the value 'x'" for messages; out has room for n bytes.
 * What could confuse a terminal stands as \xNN.
 */
const char *cfg_node_describe(const struct cfg_node *node, char *out, size_t n);

/** The item of a mapping under a key, or NULL. */
const struct cfg_node *cfg_node_get(const struct cfg_node *mapping, const char *key);

/** Whether a node is the YAML null: nothing at all, ~ or null, without quotes. */
bool cfg_node_is_null(const struct cfg_node *node);

/** Most keys that a mapping of ours knows. */
#define CFG_KEYS_MAX 32u

/**
 * Complain of each key of a mapping that is not among keys (NULL-terminated, at most
 * CFG_KEYS_MAX), naming the nearest one; of each that is there twice; and of a node that is no
 * mapping at all.
 *
 * @return whether it is a mapping.
 */
bool cfg_node_check_keys(const struct cfg_node *node, const char *const keys[],
	struct cfg_errors *errors);

/*
 * Strict scalars. Each returns true and writes *out, or tells errors what was found and
 * what would be right, returns false and leaves *out alone. `what` names the value in the
 * message ("weight").
 */

/** Tell errors: "WHAT: expected EXPECTED, found …". Returns false. */
bool cfg_expected(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	const char *expected);

/** The same where one of the words (NULL-terminated) is expected; the nearest is suggested. */
bool cfg_expected_word(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	const char *const words[]);

/** The place of a text among words (NULL-terminated), or that of their NULL. */
size_t cfg_find_word(const char *text, const char *const words[]);

/** Text alone, as cfg_read_u64() reads it; says nothing. */
bool cfg_scan_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/** ADDRESS:PORT, an IPv6 address in brackets; a port of port_min or more. Says nothing. */
bool cfg_scan_endpoint(const char *text, uint16_t port_min, struct lb_addr *addr,
	uint16_t *port);

/** Whether text can be a name, see cfg_read_name(). */
bool cfg_is_name(const char *text);

/** The same of n bytes, which may be any. */
bool cfg_is_name_bytes(const char *text, size_t n);

#define CFG_DURATION_TEXT_BYTES 24u

/** A duration in the largest unit that needs no fraction, as cfg_read_duration() reads it. */
char *cfg_format_duration(uint64_t ns, char out[static CFG_DURATION_TEXT_BYTES]);

/** Decimal digits alone, no sign, leading zero, point, exponent or unit: min..max. */
bool cfg_read_u64(const struct cfg_node *node, const char *what, uint64_t min, uint64_t max,
	struct cfg_errors *errors, uint64_t *out);

/** A number with its unit, ns us ms s m h d, a decimal fraction allowed ("1.5s"): min..max ns.
 */
bool cfg_read_duration(const struct cfg_node *node, const char *what, uint64_t min_ns,
	uint64_t max_ns, struct cfg_errors *errors, uint64_t *out);

#define CFG_PERCENT_TEXT_BYTES 16u

/** Thousandths as a percentage, "0.5%", as cfg_read_percent() reads it. */
char *cfg_format_percent(uint32_t thousandths, char out[static CFG_PERCENT_TEXT_BYTES]);

/** A percentage with at most one decimal ("2%", "0.5%"), or 0 alone: 0..1000 thousandths. */
bool cfg_read_percent(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	uint32_t *out);

/** A decimal number with or without fraction, a sign allowed, no exponent. */
bool cfg_read_decimal(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	double *out);

/** One of the words (NULL-terminated); *out is its index. */
bool cfg_read_word(const struct cfg_node *node, const char *what, const char *const words[],
	struct cfg_errors *errors, unsigned int *out);

/** true or false, and no other of YAML's words for them. */
bool cfg_read_bool(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	bool *out);

/** A name: 1..LB_NAME_BYTES_MAX bytes of UTF-8, no '/', no control characters. Points into
 * node. */
bool cfg_read_name(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	const char **out);

/** Any scalar text that is not empty. Points into node. */
bool cfg_read_text(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	const char **out);

bool cfg_read_address(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	struct lb_addr *out);

bool cfg_read_prefix(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	struct lb_prefix *out);

bool cfg_read_mac(const struct cfg_node *node, const char *what, struct cfg_errors *errors,
	struct lb_mac *out);

#endif
