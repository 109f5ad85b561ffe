/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A decision as a line of JSON. Written by hand: there is one a packet, and a tree of values
 * that is built, printed and freed for each would take most of a replay's time.
 */

#include <errno.h>
#include <string.h>

#include "replay_report.h"

/* Any usual line; a longer one goes out in pieces. */
#define LINE_BYTES 1024u

/* The longest piece that is put at once: a number, an escape or a literal. */
#define PIECE_BYTES_MAX 32u

struct line {
	FILE *to;
	bool is_bad;
	size_t n_bytes;
	char bytes[LINE_BYTES];
};

static void
flush(struct line *line)
{
	if (fwrite_unlocked(line->bytes, 1, line->n_bytes, line->to) != line->n_bytes)
		line->is_bad = true;
	line->n_bytes = 0;
}

static inline void
put(struct line *line, const char *bytes, size_t n_bytes)
{
	if (line->n_bytes + n_bytes > LINE_BYTES)
		flush(line);
	memcpy(line->bytes + line->n_bytes, bytes, n_bytes);
	line->n_bytes += n_bytes;
}

#define PUT_LITERAL(line, literal) put(line, literal, sizeof(literal) - 1)

static void
put_number(struct line *line, uint64_t value)
{
	char digits[PIECE_BYTES_MAX];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	put(line, digits + at, sizeof(digits) - at);
}

/* What RFC 8259, section 7 wants escaped: quote, backslash and controls. */
static void
put_escaped(struct line *line, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	const char pair[2] = {'\\', (char)c};
	const char code[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

	if (c == '"' || c == '\\')
		put(line, pair, sizeof(pair));
	else
		put(line, code, sizeof(code));
}

static void
put_text(struct line *line, const char *text)
{
	PUT_LITERAL(line, "\"");
	for (; *text != '\0'; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == '"' || c == '\\') {
			put_escaped(line, c);
			continue;
		}
		if (line->n_bytes == LINE_BYTES)
			flush(line);
		line->bytes[line->n_bytes++] = *text;
	}
	PUT_LITERAL(line, "\"");
}

static void
put_text_or_null(struct line *line, const char *text)
{
	if (text == NULL)
		PUT_LITERAL(line, "null");
	else
		put_text(line, text);
}

int
replay_decision_write(const struct replay_decision *decision, FILE *to)
{
	struct line line;

	/* Not an initializer: it would zero the bytes too, for each packet. */
	line.to = to;
	line.is_bad = false;
	line.n_bytes = 0;

	PUT_LITERAL(&line, "{\"packet\":");
	put_number(&line, decision->packet);
	PUT_LITERAL(&line, ",\"verdict\":");
	put_text(&line, lb_verdict_name(decision->verdict));
	PUT_LITERAL(&line, ",\"service\":");
	put_text_or_null(&line, decision->service);
	PUT_LITERAL(&line, ",\"backend\":");
	put_text_or_null(&line, decision->backend);
	PUT_LITERAL(&line, ",\"flow\":");
	put_text(&line, decision->flow);
	PUT_LITERAL(&line, ",\"slot\":");
	if (decision->slot < 0)
		PUT_LITERAL(&line, "null");
	else
		put_number(&line, (uint64_t)decision->slot);
	PUT_LITERAL(&line, ",\"reason\":");
	put_text_or_null(&line, lb_verdict_reason(decision->verdict));
	PUT_LITERAL(&line, "}\n");
	flush(&line);
	return line.is_bad ? -EIO : 0;
}
