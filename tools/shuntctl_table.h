/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHUNTCTL_TABLE_H
#define SHUNTCTL_TABLE_H

/**
 * @file
 * A table of text with aligned columns, for people.
 */

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#define SHUNTCTL_COLUMNS_MAX 16u

struct shuntctl_column {
	const char *title;
	bool is_right; /**< numbers stand to the right */
};

struct shuntctl_table {
	const struct shuntctl_column *columns;
	size_t n_columns;
	char **cells;
	size_t n_cells;
	size_t room;
	bool no_memory;
};

/** @param columns  n of them, at most SHUNTCTL_COLUMNS_MAX; not copied. */
void shuntctl_table_init(struct shuntctl_table *table, const struct shuntctl_column columns[],
	size_t n);

/** The next cell, row by row. */
void shuntctl_table_add(struct shuntctl_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** The next cell from a member of an object: "-" for one that is null or not there. */
void shuntctl_table_add_member(struct shuntctl_table *table, const json_t *object,
	const char *key);

/** Print and free. Returns whether there was memory for all of it. */
bool shuntctl_table_print(struct shuntctl_table *table, FILE *to);

#endif
