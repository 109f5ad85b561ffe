/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "replay_report.h"

/* Longest number in a cell, with its share. */
#define CELL_BYTES  64u
#define SHARE_BYTES 32u

/* Phases side by side, and the width up to which their titles may stand above them. */
#define BLOCK_PHASES      6u
#define TITLE_COLUMNS_MAX 24u
#define PHASE_COLUMNS_MAX 96u

/* The backend's name, its state and four numbers, or a block of phases after the name. */
#define COLUMNS_MAX (BLOCK_PHASES + 1)

enum backend_column {
	COLUMN_NAME,
	COLUMN_STATE,
	COLUMN_PACKETS,
	COLUMN_SHARE,
	COLUMN_FLOWS,
	COLUMN_SLOTS,
	N_BACKEND_COLUMNS
};

static_assert(N_BACKEND_COLUMNS <= COLUMNS_MAX, "a table has room for all columns");

/* One table: which part of the report it shows is up to the function that names a cell. */
struct view {
	const struct replay_report *report;
	const struct replay_report_service *service;
	size_t n_columns;
	size_t n_left;                 /* columns of words, aligned left; they come first */
	size_t first_phase;            /* of a block of phases */
	bool has_titles;               /* the phases' titles are short enough to stand above */
	uint64_t totals[BLOCK_PHASES]; /* the service's packets in each of the block's phases */
};

/**
 * The text of a cell.
 *
 * @param row  0 is the head, others a backend from 1.
 * @param out  Scratch for numbers.
 * @return out, or a text that lives in the report.
 */
typedef const char *(*cell_fn)(const struct view *view, size_t row, size_t column,
	char out[static CELL_BYTES]);

/* Whether all was written is asked of the stream, once, at the end. */
static void __attribute__((format(printf, 2, 3))) print(FILE *to, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vfprintf(to, format, args);
	va_end(args);
}

/* Code points: what a terminal gives a column each, for most scripts. */
static size_t
count_columns(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static const char *
format_number(uint64_t value, char out[static CELL_BYTES])
{
	(void)snprintf(out, CELL_BYTES, "%" PRIu64, value);
	return out;
}

static const char *
format_share(uint64_t part, uint64_t whole, char out[static SHARE_BYTES])
{
	if (whole == 0)
		return "-";
	(void)snprintf(out, SHARE_BYTES, "%.1f%%", 100.0 * (double)part / (double)whole);
	return out;
}

static void
print_cell(FILE *to, const char *text, size_t room, bool is_left, bool is_last)
{
	const size_t n = count_columns(text);
	const int pad = (int)(room > n ? room - n : 0);

	/* No blanks at a line's end. */
	if (is_left)
		print(to, "%s%*s", text, is_last ? 0 : pad, "");
	else
		print(to, "%*s%s", pad, "", text);
}

static void
print_table(FILE *to, const struct view *view, cell_fn cell)
{
	const size_t n_rows = view->service->n_backends + 1;
	size_t room[COLUMNS_MAX] = {0};
	char scratch[CELL_BYTES];

	for (size_t row = 0; row < n_rows; row++) {
		for (size_t i = 0; i < view->n_columns; i++) {
			const size_t n = count_columns(cell(view, row, i, scratch));

			room[i] = n > room[i] ? n : room[i];
		}
	}

	for (size_t row = 0; row < n_rows; row++) {
		for (size_t i = 0; i < view->n_columns; i++) {
			print(to, "  ");
			print_cell(to, cell(view, row, i, scratch), room[i], i < view->n_left,
				i + 1 == view->n_columns);
		}
		print(to, "\n");
	}
}

static const char *
name_backend_cell(const struct view *view, size_t row, size_t column,
	char out[static CELL_BYTES])
{
	static const char *const heads[N_BACKEND_COLUMNS] = {"backend", "state", "packets",
		"share", "flows", "slots"};
	const struct replay_report_backend *backend;

	if (row == 0)
		return heads[column];

	backend = &view->service->backends[row - 1];
	switch ((enum backend_column)column) {
	case COLUMN_NAME:
		return backend->name;
	case COLUMN_STATE:
		return backend->state;
	case COLUMN_PACKETS:
		return format_number(backend->packets, out);
	case COLUMN_SHARE:
		return format_share(backend->packets, view->service->packets, out);
	case COLUMN_FLOWS:
		return format_number(backend->flows, out);
	default:
		return format_number(backend->slots, out);
	}
}

static uint64_t
add_up_phase(const struct replay_report_service *service, size_t phase)
{
	uint64_t n = 0;

	for (size_t i = 0; i < service->n_backends; i++)
		n += service->backends[i].phase_packets[phase];
	return n;
}

static const char *
name_phase_cell(const struct view *view, size_t row, size_t column, char out[static CELL_BYTES])
{
	const size_t phase = view->first_phase + column - 1;
	const struct replay_report_backend *backend;
	char percent[SHARE_BYTES];
	uint64_t packets;

	if (row == 0 && column == 0)
		return "backend";
	if (row == 0)
		return view->has_titles ? view->report->phases[phase].title
					: format_number(phase + 1, out);

	backend = &view->service->backends[row - 1];
	if (column == 0)
		return backend->name;

	packets = backend->phase_packets[phase];
	(void)snprintf(out, CELL_BYTES, "%" PRIu64 " %6s", packets,
		format_share(packets, view->totals[column - 1], percent));
	return out;
}

static void
print_phase_table(FILE *to, const struct replay_report *report,
	const struct replay_report_service *service, bool has_titles)
{
	struct view view = {
		.report = report,
		.service = service,
		.n_left = 1,
		.has_titles = has_titles,
	};
	size_t n;

	print(to, "\n  service %s\n", service->name);
	for (size_t i = 0; i < report->n_phases; i += n) {
		n = report->n_phases - i < BLOCK_PHASES ? report->n_phases - i : BLOCK_PHASES;
		view.first_phase = i;
		view.n_columns = n + 1;
		for (size_t k = 0; k < n; k++)
			view.totals[k] = add_up_phase(service, i + k);
		if (i != 0)
			print(to, "\n");
		print_table(to, &view, name_phase_cell);
	}
}

/* Titles stand above their columns where they fit; otherwise numbers do, and a legend. */
static bool
has_short_titles(const struct replay_report *report)
{
	size_t n = 0;

	if (report->n_phases > BLOCK_PHASES)
		return false;
	for (size_t i = 0; i < report->n_phases; i++) {
		const size_t columns = count_columns(report->phases[i].title);

		if (columns > TITLE_COLUMNS_MAX)
			return false;
		n += columns + 2;
	}
	return n <= PHASE_COLUMNS_MAX;
}

static void
print_phases(FILE *to, const struct replay_report *report)
{
	const bool has_titles = has_short_titles(report);
	char scratch[CELL_BYTES];
	const int room = (int)count_columns(format_number(report->n_phases, scratch));

	if (report->n_phases < 2)
		return;

	print(to, "\nwhere the packets went\n");
	for (size_t i = 0; i < report->n_phases; i++) {
		const struct replay_report_phase *phase = &report->phases[i];

		if (!has_titles)
			print(to, "  %*zu  ", room, i + 1);
		print(to, "%s%s, from packet %" PRIu64 "\n", has_titles ? "  " : "",
			phase->title, phase->first_packet);
	}
	for (size_t i = 0; i < report->n_services; i++) {
		if (report->services[i].n_backends != 0)
			print_phase_table(to, report, &report->services[i], has_titles);
	}
}

static void
print_summary(FILE *to, const struct replay_report *report)
{
	char scratch[CELL_BYTES];
	const int room =
		(int)count_columns(format_number(replay_report_received(report), scratch));

	print(to, "packets\n");
	print(to, "  received   %*" PRIu64 "\n", room, replay_report_received(report));
	print(to, "  forwarded  %*" PRIu64 "\n", room, report->verdicts[LB_FORWARD]);
	print(to, "  replied    %*" PRIu64 "\n", room, report->verdicts[LB_REPLY]);
	print(to, "  to kernel  %*" PRIu64 "\n", room, report->verdicts[LB_TO_KERNEL]);
	print(to, "  dropped    %*" PRIu64 "\n", room, replay_report_dropped(report));
	for (int i = LB_FIRST_DROP; i < LB_N_VERDICTS; i++) {
		if (report->verdicts[i] != 0)
			print(to, "             %*" PRIu64 "  %s\n", room, report->verdicts[i],
				lb_verdict_reason((enum lb_verdict)i));
	}
}

static void
print_service(FILE *to, const struct replay_report *report,
	const struct replay_report_service *service)
{
	const struct view view = {
		.report = report,
		.service = service,
		.n_columns = N_BACKEND_COLUMNS,
		.n_left = COLUMN_STATE + 1,
	};

	print(to, "\nservice %s%s\n", service->name, service->is_removed ? " (removed)" : "");
	print(to, "  packets %" PRIu64 ", bytes %" PRIu64 ", flows %" PRIu64, service->packets,
		service->bytes, service->flows);
	print(to, ", table %s of %" PRIu32 " slots\n", service->algorithm, service->n_slots);
	if (service->n_backends == 0)
		print(to, "  no backends\n");
	else
		print_table(to, &view, name_backend_cell);
}

static void
print_flows(FILE *to, const struct replay_report *report)
{
	const uint64_t moved = report->moved;
	const uint64_t broken = report->broken;

	print(to, "\nflows\n  total %" PRIu64 ", moved %" PRIu64 ", broken %" PRIu64 "\n  ",
		report->flows, moved, broken);
	if (moved == 0)
		print(to, "No flow moved.\n");
	else if (broken == 0 && moved == 1)
		print(to, "1 flow moved, off a backend that was gone; it was not broken.\n");
	else if (broken == 0)
		print(to,
			"%" PRIu64 " flows moved, all of them off backends that were gone; "
			"none was broken.\n",
			moved);
	else if (moved == 1)
		print(to, "1 flow moved, and was broken: its first backend was still there.\n");
	else
		print(to,
			"%" PRIu64 " flows moved, and %" PRIu64 " of them %s broken: moved "
			"although the first backend was still there.\n",
			moved, broken, broken == 1 ? "was" : "were");
	if (report->unwatched > 0)
		print(to,
			"  More flows lived at a time than are watched: %" PRIu64 " were given "
			"up, so more may have moved or broken.\n",
			report->unwatched);
}

int
replay_report_write_text(const struct replay_report *report, FILE *to)
{
	print_summary(to, report);
	for (size_t i = 0; i < report->n_services; i++)
		print_service(to, report, &report->services[i]);
	print_phases(to, report);
	print_flows(to, report);
	print(to, "\nrate\n  %.6f seconds, %.3f million packets a second\n", report->seconds,
		replay_report_mpps(report));

	if (fflush(to) != 0 || ferror(to) != 0)
		return -EIO;
	return 0;
}
