/* SPDX-License-Identifier: BSD-3-Clause */
#include "shuntctl_table.h"

#include <stdarg.h>
#include <stdlib.h>

void
shuntctl_table_init(struct shuntctl_table *table, const struct shuntctl_column columns[],
	size_t n)
{
	*table = (struct shuntctl_table){.columns = columns, .n_columns = n};
}

/* Takes text; NULL: there was no memory for it. */
static void
add_cell(struct shuntctl_table *table, char *text)
{
	if (table->n_cells == table->room) {
		const size_t room = table->room * 2 + 64;
		char **cells = realloc(table->cells, room * sizeof(*cells));

		if (cells == NULL) {
			table->no_memory = true;
			free(text);
			return;
		}
		table->cells = cells;
		table->room = room;
	}
	table->no_memory |= text == NULL;
	table->cells[table->n_cells++] = text;
}

void
shuntctl_table_add(struct shuntctl_table *table, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	add_cell(table, text);
}

void
shuntctl_table_add_member(struct shuntctl_table *table, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_string(value))
		shuntctl_table_add(table, "%s", json_string_value(value));
	else if (json_is_integer(value))
		shuntctl_table_add(table, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		shuntctl_table_add(table, "-");
}

/* Characters of UTF-8: all bytes but those that continue one. */
static size_t
count_characters(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void
print_cell(const struct shuntctl_table *table, size_t column, const char *text, size_t width,
	FILE *to)
{
	const int n_blanks = (int)(width - count_characters(text));
	const bool is_last = column + 1 == table->n_columns;

	if (column > 0)
		(void)fputs("  ", to);
	if (table->columns[column].is_right)
		(void)fprintf(to, "%*s", n_blanks, "");
	(void)fputs(text, to);
	if (!table->columns[column].is_right && !is_last)
		(void)fprintf(to, "%*s", n_blanks, "");
	if (is_last)
		(void)fputc('\n', to);
}

static void
print_rows(const struct shuntctl_table *table, FILE *to)
{
	const size_t n_columns = table->n_columns;
	size_t widths[SHUNTCTL_COLUMNS_MAX];

	for (size_t i = 0; i < n_columns; i++)
		widths[i] = count_characters(table->columns[i].title);
	for (size_t row = 0; row < table->n_cells; row += n_columns) {
		for (size_t i = 0; i < n_columns; i++) {
			const size_t width = count_characters(table->cells[row + i]);

			widths[i] = width > widths[i] ? width : widths[i];
		}
	}
	for (size_t i = 0; i < n_columns; i++)
		print_cell(table, i, table->columns[i].title, widths[i], to);
	for (size_t row = 0; row < table->n_cells; row += n_columns)
		for (size_t i = 0; i < n_columns; i++)
			print_cell(table, i, table->cells[row + i], widths[i], to);
}

bool
shuntctl_table_print(struct shuntctl_table *table, FILE *to)
{
	const bool is_whole = !table->no_memory;

	if (is_whole)
		print_rows(table, to);
	for (size_t i = 0; i < table->n_cells; i++)
		free(table->cells[i]);
	free(table->cells);
	table->cells = NULL;
	table->n_cells = 0;
	return is_whole;
}
