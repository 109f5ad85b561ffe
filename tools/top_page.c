/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_page.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ctl_proto.h"

#define NUMBER_COLUMNS 8u
#define PART_COLUMNS   7u
#define STATE_COLUMNS  11u
#define NAME_COLUMNS   16u
/* Of a name with the number that goes with it, a count, a worker. */
#define ITEM_BYTES 128u

static const char *const help[] = {
	"b          backends",
	"s          services",
	"Tab        the other of the two",
	"p          sort by packets a second",
	"t          sort by bits a second, of traffic as received",
	"f          sort by new flows a second",
	"d          sort by how far a share is from what is due by weight",
	"n          sort by name",
	"r          the other way round",
	"/          show only names that contain a text; Enter keeps it, Esc ends it",
	"arrows     up and down; also j and k, Page Up and Page Down, Home and End",
	"h, ?       this help; any key ends it",
	"q          quit; Ctrl-C too",
	"",
	"SHARE is of the packets of its service, for a service of all; DUE by weight.",
	"Busy, of a worker: the part of its time in turns that found packets.",
};

/* A line in the making, and where it goes. */
struct sheet {
	const struct top_screen *screen;
	unsigned int n; /* the next line */
	struct top_text text;
};

static void
begin_line(struct sheet *sheet)
{
	top_text_begin(&sheet->text, sheet->screen->n_columns);
}

static void
end_line(struct sheet *sheet, enum top_look look)
{
	if (sheet->n < sheet->screen->n_lines)
		sheet->screen->put(sheet->screen->context, sheet->n++, sheet->text.bytes, look);
	begin_line(sheet);
}

/* Adds an item of a list if the line has room for all of it, and for "+N" of those after it. */
static bool
put_item(struct sheet *sheet, const char *item, size_t n_after)
{
	const unsigned int room = top_text_room(&sheet->text);

	if (top_text_measure(item) + (n_after > 0 ? 5 : 0) > room) {
		top_text_print(&sheet->text, " +%zu", n_after + 1);
		return false;
	}
	top_text_put(&sheet->text, item);
	return true;
}

static void
draw_title(struct sheet *sheet, const struct top_page *page, const struct top_sample *sample,
	const struct top_rows *rows)
{
	top_text_print(&sheet->text,
		"shuntctl top: generation %" JSON_INTEGER_FORMAT ", services %zu, "
		"backends %zu  ",
		json_integer_value(json_object_get(sample->now, CTL_KEY_GENERATION)),
		rows->n_services, rows->n_backends);
	top_text_put_cell(&sheet->text, page->socket, top_text_room(&sheet->text), true);
	end_line(sheet, TOP_STRONG);
}

static void
draw_packets(struct sheet *sheet, const struct top_sample *sample)
{
	struct top_count counts[TOP_COUNTS_MAX];
	const size_t n = top_count_packets(sample, counts);
	char rate[TOP_NUMBER_BYTES];
	char item[ITEM_BYTES];

	top_text_print(&sheet->text, "packets/s:");
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(item, sizeof(item), "  %s %s", counts[i].name,
			top_format_rate(counts[i].rate, rate));
		if (!put_item(sheet, item, n - i - 1))
			break;
	}
	end_line(sheet, TOP_PLAIN);
}

static void
draw_drops(struct sheet *sheet, const struct top_sample *sample)
{
	struct top_count counts[TOP_COUNTS_MAX];
	const size_t n = top_count_drops(sample, counts);
	char rate[TOP_NUMBER_BYTES];
	char total[TOP_NUMBER_BYTES];
	char item[ITEM_BYTES];

	top_text_print(&sheet->text, "drops/s (all):%s", n == 0 ? "  none" : "");
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(item, sizeof(item), "  %s %s (%s)", counts[i].name,
			top_format_rate(counts[i].rate, rate),
			top_format_count(counts[i].total, total));
		if (!put_item(sheet, item, n - i - 1))
			break;
	}
	end_line(sheet, TOP_PLAIN);
}

static void
draw_workers(struct sheet *sheet, const struct top_sample *sample)
{
	const size_t n = top_n_workers(sample);
	char busy[TOP_NUMBER_BYTES];
	char entries[TOP_NUMBER_BYTES];
	char item[ITEM_BYTES];

	top_text_print(&sheet->text, "workers, busy (flows):");
	for (size_t i = 0; i < n; i++) {
		const struct top_worker worker = top_read_worker(sample, i);

		(void)snprintf(item, sizeof(item), "  %" JSON_INTEGER_FORMAT ": %s (%s)",
			worker.number, top_format_part(worker.busy, busy),
			top_format_count(worker.entries, entries));
		if (!put_item(sheet, item, n - i - 1))
			break;
	}
	end_line(sheet, TOP_PLAIN);
}

/* The table. Its columns from the left; those at the end go first where there is no room. */

enum column { STATE, PACKETS, BITS, FLOWS, SHARE, DUE, N_COLUMNS };

static const struct {
	const char *title;
	unsigned int width;
} columns[N_COLUMNS] = {
	[STATE] = {"STATE", STATE_COLUMNS},
	[PACKETS] = {"PACKETS/S", NUMBER_COLUMNS + 1},
	[BITS] = {"BITS/S", NUMBER_COLUMNS},
	[FLOWS] = {"FLOWS/S", NUMBER_COLUMNS},
	[SHARE] = {"SHARE", PART_COLUMNS},
	[DUE] = {"DUE", PART_COLUMNS},
};

struct layout {
	unsigned int name_columns;
	unsigned int n_columns; /* of columns[] */
};

static struct layout
make_layout(unsigned int width)
{
	struct layout layout = {.name_columns = width};

	while (layout.n_columns < N_COLUMNS) {
		const unsigned int wanted = columns[layout.n_columns].width + 1;

		if (layout.name_columns < NAME_COLUMNS + wanted)
			break;
		layout.name_columns -= wanted;
		layout.n_columns++;
	}
	return layout;
}

static void
put_column(struct sheet *sheet, enum column column, const char *text)
{
	top_text_put(&sheet->text, " ");
	top_text_put_cell(&sheet->text, text, columns[column].width, column != STATE);
}

static void
draw_head(struct sheet *sheet, const struct top_page *page, const struct layout *layout)
{
	top_text_put_cell(&sheet->text, page->of_services ? "SERVICE" : "BACKEND",
		layout->name_columns, false);
	for (unsigned int i = 0; i < layout->n_columns; i++)
		put_column(sheet, (enum column)i,
			page->of_services && i == STATE ? "UP" : columns[i].title);
	end_line(sheet, TOP_HEAD);
}

static void
draw_row(struct sheet *sheet, const struct top_row *row, const struct layout *layout)
{
	char name[TOP_TEXT_COLUMNS_MAX * 4];
	char state[ITEM_BYTES];
	char texts[N_COLUMNS][TOP_NUMBER_BYTES];
	const char *cells[N_COLUMNS] = {
		[STATE] = row->state,
		[PACKETS] = top_format_rate(row->packets, texts[PACKETS]),
		[BITS] = top_format_rate(row->bits, texts[BITS]),
		[FLOWS] = top_format_rate(row->flows, texts[FLOWS]),
		[SHARE] = top_format_part(row->share, texts[SHARE]),
		[DUE] = top_format_part(row->due, texts[DUE]),
	};

	(void)snprintf(name, sizeof(name), "%s%s%s", row->service,
		row->backend != NULL ? "/" : "", row->backend != NULL ? row->backend : "");
	if (row->backend == NULL) {
		(void)snprintf(state, sizeof(state), "%zu of %zu", row->n_up, row->n_backends);
		cells[STATE] = state;
	}
	top_text_put_cell(&sheet->text, name, layout->name_columns, false);
	for (unsigned int i = 0; i < layout->n_columns; i++)
		put_column(sheet, (enum column)i, cells[i]);
	end_line(sheet, TOP_PLAIN);
}

/* Up to the last line but one. */
static void
draw_table(struct sheet *sheet, struct top_page *page, const struct top_rows *rows)
{
	const struct layout layout = make_layout(sheet->screen->n_columns);
	const unsigned int n_lines = sheet->screen->n_lines;

	draw_head(sheet, page, &layout);
	page->n_shown = n_lines - 1 - sheet->n;
	if (page->first + page->n_shown > rows->n)
		page->first = rows->n > page->n_shown ? rows->n - page->n_shown : 0;
	for (size_t i = page->first; i < rows->n && sheet->n + 1 < n_lines; i++)
		draw_row(sheet, &rows->items[i], &layout);
	while (sheet->n + 1 < n_lines)
		end_line(sheet, TOP_PLAIN);
}

/* The last line. */
static void
draw_foot(struct sheet *sheet, const struct top_page *page, const struct top_rows *rows)
{
	enum top_look look = TOP_PLAIN;

	if (page->is_asking) {
		top_text_print(&sheet->text, "names that contain: %s_", page->filter);
		look = TOP_STRONG;
	} else if (page->message != NULL) {
		top_text_print(&sheet->text, "%s", page->message);
		look = TOP_STRONG;
	} else if (rows != NULL) {
		top_text_print(&sheet->text, "%zu-%zu of %zu by %s%s",
			rows->n > 0 ? page->first + 1 : 0,
			page->first + page->n_shown < rows->n ? page->first + page->n_shown
							      : rows->n,
			rows->n, top_sort_words[page->sort],
			page->is_reverse ? ", reversed" : "");
		if (page->filter[0] != '\0')
			top_text_print(&sheet->text, ", with '%s'", page->filter);
		top_text_put_cell(&sheet->text, "  h help  q quit", top_text_room(&sheet->text),
			true);
	}
	end_line(sheet, look);
}

static void
draw_summary(struct sheet *sheet, const struct top_page *page, const struct top_sample *sample,
	const struct top_rows *rows)
{
	/* The table's head, a row and the foot go before the rest. */
	const unsigned int room = sheet->screen->n_lines - 3;

	if (room > 0)
		draw_title(sheet, page, sample, rows);
	if (room > 1)
		draw_packets(sheet, sample);
	if (room > 2)
		draw_drops(sheet, sample);
	if (room > 3)
		draw_workers(sheet, sample);
	if (room > 8)
		end_line(sheet, TOP_PLAIN);
}

static int
draw_all(struct sheet *sheet, struct top_page *page, const struct top_sample *sample)
{
	const struct top_choice choice = {.of_services = page->of_services,
		.is_reverse = page->is_reverse,
		.sort = page->sort,
		.filter = page->filter};
	struct top_rows rows;
	const int ret = top_rows_init(sample, &choice, &rows);

	if (ret != 0)
		return ret;
	draw_summary(sheet, page, sample, &rows);
	draw_table(sheet, page, &rows);
	draw_foot(sheet, page, &rows);
	top_rows_fini(&rows);
	return 0;
}

static void
draw_help(struct sheet *sheet)
{
	const unsigned int n_lines = sheet->screen->n_lines;

	top_text_print(&sheet->text, "shuntctl top: keys");
	end_line(sheet, TOP_STRONG);
	for (size_t i = 0; i < LB_N_ELEMENTS(help) && sheet->n < n_lines; i++) {
		top_text_print(&sheet->text, "%s", help[i]);
		end_line(sheet, TOP_PLAIN);
	}
	while (sheet->n < n_lines)
		end_line(sheet, TOP_PLAIN);
}

int
top_page_draw(struct top_page *page, const struct top_sample *sample,
	const struct top_screen *screen)
{
	struct sheet sheet = {.screen = screen};

	begin_line(&sheet);
	if (screen->n_columns < TOP_PAGE_COLUMNS_MIN || screen->n_lines < TOP_PAGE_LINES_MIN) {
		top_text_print(&sheet.text, "it takes %ux%u", TOP_PAGE_COLUMNS_MIN,
			TOP_PAGE_LINES_MIN);
		while (sheet.n < screen->n_lines)
			end_line(&sheet, TOP_PLAIN);
		return 0;
	}
	if (page->is_help) {
		draw_help(&sheet);
		return 0;
	}
	return draw_all(&sheet, page, sample);
}

/* Keys. */

static void
type(struct top_page *page, int key)
{
	const size_t n = strlen(page->filter);

	switch (key) {
	case TOP_KEY_ESCAPE:
		page->filter[0] = '\0';
		page->is_asking = false;
		break;
	case TOP_KEY_ENTER:
		page->is_asking = false;
		break;
	case TOP_KEY_BACKSPACE:
		/* All bytes of a character of UTF-8. */
		for (size_t i = n; i > 0; i--) {
			const bool is_rest =
				((unsigned char)page->filter[i - 1] & 0xc0) == 0x80;

			page->filter[i - 1] = '\0';
			if (!is_rest)
				break;
		}
		break;
	default:
		if (key >= ' ' && key <= 0xff && key != 0x7f && n + 1 < sizeof(page->filter)) {
			page->filter[n] = (char)key;
			page->filter[n + 1] = '\0';
		}
		break;
	}
	page->first = 0;
}

static void
scroll(struct top_page *page, int key)
{
	const size_t n = page->n_shown > 0 ? page->n_shown : 1;

	switch (key) {
	case TOP_KEY_UP:
	case 'k':
		page->first -= page->first > 0;
		break;
	case TOP_KEY_DOWN:
	case 'j':
		page->first++;
		break;
	case TOP_KEY_PAGE_UP:
		page->first -= page->first < n ? page->first : n;
		break;
	case TOP_KEY_PAGE_DOWN:
		page->first += n;
		break;
	case TOP_KEY_HOME:
		page->first = 0;
		break;
	case TOP_KEY_END: /* drawing stops at the last row */
		page->first = SIZE_MAX / 2;
		break;
	default:
		break;
	}
}

static bool
press_sort(struct top_page *page, int key)
{
	static const char keys[TOP_N_SORTS + 1] = {
		[TOP_SORT_PACKETS] = 'p',
		[TOP_SORT_BITS] = 't',
		[TOP_SORT_FLOWS] = 'f',
		[TOP_SORT_SHARE] = 'd',
		[TOP_SORT_NAME] = 'n',
	};
	const char *found = key > 0 && key < 0x80 ? strchr(keys, key) : NULL;

	if (found == NULL)
		return false;
	page->sort = (enum top_sort)(found - keys);
	page->first = 0;
	return true;
}

static void
set_view(struct top_page *page, bool of_services)
{
	page->of_services = of_services;
	page->first = 0;
}

bool
top_page_press(struct top_page *page, int key)
{
	if (page->is_help) {
		page->is_help = false;
		return key != 'q';
	}
	if (page->is_asking) {
		type(page, key);
		return true;
	}
	if (press_sort(page, key))
		return true;
	switch (key) {
	case 'q':
		return false;
	case 'b':
	case 's':
		set_view(page, key == 's');
		break;
	case '\t':
		set_view(page, !page->of_services);
		break;
	case 'r':
		page->is_reverse = !page->is_reverse;
		break;
	case 'h':
	case '?':
		page->is_help = true;
		break;
	case '/':
		page->is_asking = true;
		break;
	case TOP_KEY_ESCAPE:
		page->filter[0] = '\0';
		break;
	default:
		scroll(page, key);
		break;
	}
	return true;
}
