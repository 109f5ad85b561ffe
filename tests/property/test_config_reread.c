/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reader that reads a configuration after each of many edits says what one says that has
 * never read another: the same result, model with all positions, and messages.
 */
#include "expect.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfg_reader.h"
#include "reader_text.h"
#include "rounds.h"
#include "xrand.h"

#define N_FILES      ROUNDS(800u)
#define EDITS_A_FILE 40u
#define TEXT_BYTES   8192u
/* Of the files, one in so many is read where something is the machine's own. */
#define OWN_EVERY 8u

/* What one reading came to. */
struct outcome {
	int ret;
	struct cfg_model model; /* if ret is 0 */
	char *messages;
};

static struct outcome
read_by(struct cfg_reader *reader, const char *text, size_t n_bytes)
{
	struct outcome outcome = {0};
	size_t n = 0;
	FILE *to = open_memstream(&outcome.messages, &n);
	char *exact = malloc(n_bytes + (n_bytes == 0));

	assert_non_null(to);
	assert_non_null(exact);
	memcpy(exact, text, n_bytes);
	if (reader != NULL)
		outcome.ret = reader_text_read(reader, "f", exact, n_bytes, to, &outcome.model);
	else
		outcome.ret = cfg_read_text_model("f", exact, n_bytes, to, &outcome.model);
	free(exact);
	assert_int_equal(fclose(to), 0);
	return outcome;
}

static void
drop(struct outcome *outcome)
{
	if (outcome->ret == 0)
		cfg_model_fini(&outcome->model);
	free(outcome->messages);
}

static bool
is_same_pos(struct cfg_pos a, struct cfg_pos b)
{
	return a.line == b.line && a.column == b.column;
}

static bool
has_same_places(const struct cfg_service *a, const struct cfg_service *b)
{
	bool is_same = is_same_pos(a->pos, b->pos) && is_same_pos(a->name_pos, b->name_pos) &&
		       is_same_pos(a->address_pos, b->address_pos) &&
		       is_same_pos(a->port_pos, b->port_pos) &&
		       is_same_pos(a->table_size_pos, b->table_size_pos) &&
		       is_same_pos(a->overload_pos, b->overload_pos) &&
		       is_same_pos(a->tunnel_port_pos, b->tunnel_port_pos) &&
		       is_same_pos(a->vni_pos, b->vni_pos) &&
		       is_same_pos(a->carry_pos, b->carry_pos) &&
		       is_same_pos(a->affinity_pos, b->affinity_pos) &&
		       is_same_pos(a->echo_pos, b->echo_pos) &&
		       is_same_pos(a->fragment_pos, b->fragment_pos) &&
		       is_same_pos(a->mss_clamp_pos, b->mss_clamp_pos) &&
		       is_same_pos(a->quic_pos, b->quic_pos) && a->bad == b->bad;

	for (size_t i = 0; i < a->n_quic; i++)
		is_same &= is_same_pos(a->quic[i].config_id_pos, b->quic[i].config_id_pos);
	for (size_t i = 0; i < a->n_backends; i++) {
		const struct cfg_backend *x = &a->backends[i];
		const struct cfg_backend *y = &b->backends[i];

		is_same &= is_same_pos(x->pos, y->pos) &&
			   is_same_pos(x->name_pos, y->name_pos) &&
			   is_same_pos(x->address_pos, y->address_pos) &&
			   is_same_pos(x->mac_pos, y->mac_pos) && x->bad == y->bad;
		for (size_t k = 0; k < x->n_quic_ids; k++)
			is_same &= is_same_pos(x->quic_ids[k].pos, y->quic_ids[k].pos);
	}
	return is_same;
}

static bool
is_same_model(const struct cfg_model *a, const struct cfg_model *b)
{
	if (!cfg_model_equal(a, b) || strcmp(a->file, b->file) != 0)
		return false;
	for (size_t i = 0; i < a->n_services; i++) {
		if (!has_same_places(&a->services[i], &b->services[i]))
			return false;
	}
	for (size_t i = 0; i < a->dataplane.n_ports; i++) {
		const struct cfg_port *x = &a->dataplane.ports[i];
		const struct cfg_port *y = &b->dataplane.ports[i];

		if (!is_same_pos(x->pos, y->pos) || !is_same_pos(x->name_pos, y->name_pos) ||
			!is_same_pos(x->device_pos, y->device_pos) ||
			!is_same_pos(x->mtu_pos, y->mtu_pos))
			return false;
	}
	return is_same_pos(a->dataplane.ports_pos, b->dataplane.ports_pos);
}

/* A reader with what is its machine's own in a file; NULL: nothing is. */
static struct cfg_reader *
make_reader(const char *own)
{
	struct cfg_reader *reader = cfg_reader_create(false);

	assert_non_null(reader);
	if (own != NULL)
		assert_int_equal(cfg_reader_read_own(reader, own, NULL), 0);
	return reader;
}

/* Reads by a reader, which has what is in own, and afresh; whether the text was right. */
static bool
check_same_with(struct cfg_reader *reader, const char *own, const char *text, size_t n_bytes)
{
	struct cfg_reader *other = own != NULL ? make_reader(own) : NULL;
	struct outcome again = read_by(reader, text, n_bytes);
	struct outcome fresh = read_by(other, text, n_bytes);
	const bool is_right = fresh.ret == 0;

	EXPECT(again.ret == fresh.ret, "%d, afresh %d: %.*s", again.ret, fresh.ret,
		(int)n_bytes, text);
	EXPECT(strcmp(again.messages, fresh.messages) == 0, "%s, afresh %s: %.*s",
		again.messages, fresh.messages, (int)n_bytes, text);
	EXPECT(!is_right || is_same_model(&again.model, &fresh.model),
		"another model than afresh: %.*s", (int)n_bytes, text);
	drop(&again);
	drop(&fresh);
	cfg_reader_destroy(other);
	return is_right;
}

static bool
check_same(struct cfg_reader *reader, const char *text, size_t n_bytes)
{
	return check_same_with(reader, NULL, text, n_bytes);
}

struct text {
	char bytes[TEXT_BYTES];
	size_t n;
};

/* Puts n bytes in the place of n_old at an offset; what has no room is left as it is. */
static void
replace(struct text *text, size_t at, size_t n_old, const char *bytes, size_t n)
{
	if (text->n - n_old + n > TEXT_BYTES)
		return;
	memmove(text->bytes + at + n, text->bytes + at + n_old, text->n - at - n_old);
	memcpy(text->bytes + at, bytes, n);
	text->n += n - n_old;
}

static void append(struct text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void
append(struct text *text, const char *format, ...)
{
	char line[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	assert_in_range(n, 0, sizeof(line) - 1);
	replace(text, text->n, 0, line, (size_t)n);
}

static const char *
pick(uint64_t *random, const char *const words[], size_t n)
{
	return words[xrand_below(random, (uint32_t)n)];
}

#define PICK(random, ...)                                                                      \
	pick(random, (const char *const[]){__VA_ARGS__},                                       \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* The end of a service's lines, where it is one of QUIC; edits make it wrong. */
static void
append_quic_service(struct text *text, int indent)
{
	append(text, "%*s  affinity: quic\n%*s  quic:\n", indent, "", indent, "");
	append(text, "%*s  - {config_id: 1, server_id_length: 2, nonce_length: 8}\n", indent,
		"");
	append(text, "%*s  - {config_id: 3, server_id_length: 1, nonce_length: 8}\n", indent,
		"");
	append(text, "%*s  backends:\n", indent, "");
	append(text, "%*s  - {name: a, address: 10.2.0.1, quic_id: [0012, 0b]}\n", indent, "");
	append(text, "%*s  - {name: b, address: 10.2.0.2,\n%*s      quic_id: [1e10, 0c]}\n",
		indent, "", indent, "");
}

/* A service's lines; indent is that of its dash. */
static void
append_service(struct text *text, int indent, uint32_t id, uint64_t *random)
{
	const uint32_t n_backends = xrand_below(random, 4);
	const bool is_quic = xrand_below(random, 4) == 0;

	if (xrand_below(random, 6) == 0) {
		append(text,
			"%*s- {name: s%u, address: 10.1.0.%u, protocol: tcp, port: 80,\n"
			"%*s   mss_clamp: 1400,\n"
			"%*s   backends: [{name: a, address: 10.2.0.1}, {name: b,\n"
			"%*s     address: 10.2.0.2}]}\n",
			indent, "", id, id % 250, indent, "", indent, "", indent, "");
		return;
	}
	append(text, "%*s- name: %s%u%s", indent, "",
		PICK(random, "s", "s", "s", "\xc3\xa9", "'s", "\"s", "s "), id,
		PICK(random, "\n", "\n", "\n", " # c\n", "\n\n", "'\n", "\"\n"));
	append(text, "%*s  address: 10.1.0.%u\n", indent, "", id % 250);
	append(text, "%*s  protocol: %s\n", indent, "",
		is_quic ? "udp" : PICK(random, "tcp", "udp", "any"));
	append(text, "%*s  port: %s\n", indent, "", PICK(random, "80", "any", "\"443\""));
	if (xrand_below(random, 4) == 0)
		append(text, "%*s  table: {size: %s%s}\n", indent, "",
			PICK(random, "251", "7", "250"),
			PICK(random, "", "", ", algorithm: stable, overload: 1%",
				", overload: 1%"));
	if (xrand_below(random, 4) == 0)
		append(text, "%*s  forward: vxlan\n%*s  vni: 7\n%*s  tunnel_port: 99\n", indent,
			"", indent, "", indent, "");
	if (xrand_below(random, 8) == 0)
		append(text, "%*s  carry: [gre]\n", indent, "");
	if (xrand_below(random, 4) == 0)
		append(text, "%*s  echo: %s\n%*s  fragment: outer\n", indent, "",
			PICK(random, "reply", "drop"), indent, "");
	if (is_quic) {
		append_quic_service(text, indent);
		return;
	}
	append(text, "%*s  backends:\n", indent, "");
	for (uint32_t i = 0; i < n_backends; i++)
		append(text, "%*s    - {name: b%u, address: 10.2.0.%u, weight: %s%s}\n", indent,
			"", i, i + 1, PICK(random, "100", "50", "0"),
			PICK(random, "", "", ", zone: r1", ", zone: r2", ", zone: ''"));
	append(text, "%s", PICK(random, "", "", "", "\n", "# c\n", "    # c\n", "  \n"));
}

static void
append_dataplane(struct text *text)
{
	append(text, "dataplane:\n  ports:\n  - name: wan\n    device: net_null0\n"
		     "    addresses: [192.0.2.1/24, '2001:db8::1/64']\n    mtu: 1500\n");
}

static int
write_file(struct text *text, uint64_t *random)
{
	const int indent = (int)xrand_below(random, 4);
	const uint32_t n = 1 + xrand_below(random, 6);
	const bool has_ports = xrand_below(random, 2) == 0;
	const bool is_first = xrand_below(random, 2) == 0;

	text->n = 0;
	append(text, "%s", PICK(random, "", "", "# head\n", "---\n", "%YAML 1.1\n---\n", "\n"));
	if (has_ports && is_first)
		append_dataplane(text);
	append(text, "%s",
		PICK(random, "services:\n", "services:\n", "services:  # c\n\n",
			"\"services\":\n", "services: \n  # c\n", "? services\n:\n"));
	for (uint32_t i = 0; i < n; i++)
		append_service(text, indent, i, random);
	if (has_ports && !is_first)
		append_dataplane(text);
	append(text, "%s", PICK(random, "", "", "hash_seed: 5\n", "...\n", "# end", "\n\n"));
	return indent;
}

/* Where a line begins: a random one's offset. */
static size_t
find_line(const struct text *text, uint64_t *random)
{
	size_t at = xrand_below(random, (uint32_t)text->n + 1);

	while (at > 0 && text->bytes[at - 1] != '\n')
		at--;
	return at;
}

static size_t
find_line_end(const struct text *text, size_t at)
{
	while (at < text->n && text->bytes[at] != '\n')
		at++;
	return at < text->n ? at + 1 : at;
}

/* Where a dash begins in a column, from a random line on. */
static size_t
find_item(const struct text *text, size_t at, int indent)
{
	while (at < text->n) {
		const size_t dash = at + (size_t)indent;

		if (dash < text->n && text->bytes[dash] == '-' &&
			memchr(text->bytes + at, '\n', (size_t)indent) == NULL)
			return at;
		at = find_line_end(text, at);
	}
	return at;
}

/* What confuses one that reads a part alone. */
static const char *const pieces[] = {"'", "\"", "{", "}", "[", "]", "#", " # ", ": ", "- ", "-",
	"\n", "\n\n", " ", "  ", "\t", "\r", "\r\n", "|", "|\n", ">+\n", "&a ", "*a", "!t ",
	"%", "...", "\n...\n", "\n---\n", "\n%YAML 1.1\n", "\xc2\x85", "\xe2\x80\xa8",
	"\xef\xbb\xbf", "?", "? ", ",", "\\", "\nservices:\n", "\nhash_seed: 1\n", "0", "9",
	"x", "\xc3\xa9", "\xff", "<<: 1\n", "\n- \n", "\n  - x\n", "\n    ", "'\n\n", "\n'",
	"~"};

static void
edit_bytes(struct text *text, uint64_t *random)
{
	const char *piece = pieces[xrand_below(random, LB_N_ELEMENTS(pieces))];
	const size_t at = xrand_below(random, 3) == 0
				  ? find_line(text, random)
				  : xrand_below(random, (uint32_t)text->n + 1);
	const size_t room = text->n - at;
	size_t n_old = xrand_below(random, 3) == 0 ? 1 + xrand_below(random, 8) : 0;

	if (n_old > room)
		n_old = room;
	replace(text, at, n_old, piece, xrand_below(random, 4) == 0 ? 0 : strlen(piece));
}

static void
edit_line(struct text *text, uint64_t *random)
{
	char line[TEXT_BYTES];
	const size_t at = find_line(text, random);
	const size_t n = find_line_end(text, at) - at;

	memcpy(line, text->bytes + at, n);
	switch (xrand_below(random, 4)) {
	case 0:
		replace(text, at, n, "", 0);
		break;
	case 1:
		replace(text, find_line(text, random), 0, line, n);
		break;
	case 2:
		replace(text, at, 0, "  ", 1 + xrand_below(random, 2));
		break;
	default:
		replace(text, at, n > 0 && line[0] == ' ', "", 0);
	}
}

static void
edit_item(struct text *text, int indent, uint64_t *random)
{
	const size_t at = find_item(text, find_line(text, random), indent);
	const size_t end = find_item(text, find_line_end(text, at), indent);
	struct text item = {.n = 0};

	if (xrand_below(random, 2) == 0)
		append_service(&item, indent, 10 + xrand_below(random, 200), random);
	if (xrand_below(random, 4) == 0)
		append_service(&item, indent, 10 + xrand_below(random, 200), random);
	replace(text, at, xrand_below(random, 2) == 0 ? end - at : 0, item.bytes, item.n);
}

static void
edit_digit(struct text *text, uint64_t *random)
{
	const size_t begin = xrand_below(random, (uint32_t)text->n + 1);

	for (size_t at = begin; at < text->n; at++) {
		if (text->bytes[at] >= '0' && text->bytes[at] <= '9') {
			text->bytes[at] = (char)('0' + xrand_below(random, 10));
			return;
		}
	}
}

static void
edit(struct text *text, int indent, uint64_t *random)
{
	switch (xrand_below(random, 5)) {
	case 0:
		edit_line(text, random);
		break;
	case 1:
		edit_item(text, indent, random);
		break;
	case 2:
		edit_digit(text, random);
		break;
	default:
		edit_bytes(text, random);
	}
}

/* A file of what is one machine's own; its name, to be freed. */
static char *
write_own(void)
{
	static const char own[] = "dataplane:\n  ports:\n  - {name: own, device: net_null0, "
				  "addresses: [10.1.0.9/24]}\n";
	char *path = strdup("/tmp/shunt-own-XXXXXX");
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, own, sizeof(own) - 1), sizeof(own) - 1);
	assert_int_equal(close(fd), 0);
	return path;
}

static void
test_reading_after_edits_is_reading_afresh(void **state)
{
	uint64_t random = 1;
	uint64_t n_partial = 0;
	unsigned int n_right = 0;
	char *path = write_own();

	(void)state;
	for (unsigned int i = 0; i < N_FILES; i++) {
		const char *own = i % OWN_EVERY == 0 ? path : NULL;
		struct cfg_reader *reader = make_reader(own);
		struct text text;
		const int indent = write_file(&text, &random);

		(void)check_same_with(reader, own, text.bytes, text.n);
		for (unsigned int k = 0; k < EDITS_A_FILE; k++) {
			struct text next = text;

			do
				edit(&next, indent, &random);
			while (xrand_below(&random, 4) == 0);
			if (!check_same_with(reader, own, next.bytes, next.n))
				continue;
			n_right++;
			text = next;
		}
		n_partial += cfg_reader_count_partial(reader);
		cfg_reader_destroy(reader);
	}
	assert_int_equal(unlink(path), 0);
	free(path);
	/* Else the edits are such that the test says nothing. */
	EXPECT(n_partial > N_FILES * EDITS_A_FILE / 20, "only %u parts were read",
		(unsigned int)n_partial);
	EXPECT(n_right > N_FILES * EDITS_A_FILE / 10, "only %u texts were right", n_right);
}

static const char base[] = "hash_seed: 1\n"
			   "services:\n"
			   "  - name: a\n"
			   "    address: 10.1.0.1\n"
			   "    protocol: tcp\n"
			   "    port: 80\n"
			   "    backends:\n"
			   "      - {name: x, address: 10.2.0.1, weight: 10}\n"
			   "  # the second\n"
			   "  - {name: b, address: 10.1.0.2, protocol: tcp, port: 80}\n"
			   "  - name: c\n"
			   "    address: 10.1.0.3\n"
			   "    protocol: udp\n"
			   "    port: any\n"
			   "dataplane:\n"
			   "  ports:\n"
			   "    - {name: wan, device: net_null0, addresses: [192.0.2.1/24]}\n";

static const struct {
	const char *what;
	const char *old; /* the first such bytes of the text */
	const char *with;
	bool is_partial;
	bool is_right;
} edits[] = {
	{"nothing changed", "", "", true, true},
	{"a weight in the first item", "10}", "20}", true, true},
	{"a port in an item on one line", "port: 80}", "port: 81}", true, true},
	{"a value in the last item", "port: any", "port: 53", true, true},
	{"a line more in an item", "    protocol: udp\n", "    protocol: udp\n    vni: 5\n",
		true, false},
	{"a comment before the second item", "  # the second\n", "", true, true},
	{"an item goes", "  - {name: b, address: 10.1.0.2, protocol: tcp, port: 80}\n", "",
		true, true},
	{"an item comes", "  - name: c\n",
		"  - {name: d, address: 10.1.0.4, protocol: tcp, port: 80}\n  - name: c\n",
		true, true},
	{"a name that another service has", "name: c", "name: a", true, false},
	{"all weights 0, a warning", "10}", "0}", true, true},
	{"an unknown key", "    port: any", "    prot: any", false, false},
	{"the seed", "hash_seed: 1", "hash_seed: 2", false, true},
	{"the dash of the first item", "  - name: a", "  -  name: a", false, false},
	{"an item comes before the first", "services:\n",
		"services:\n  - {name: d, address: 10.1.0.4, protocol: tcp, port: 80}\n", true,
		true},
	{"a port's address", "192.0.2.1", "192.0.2.2", false, true},
	{"quotes that open", "name: c", "name: 'c", false, false},
	{"quotes that open and take an item in", "name: b,", "name: 'b,", false, false},
	{"a list that opens", "port: any", "port: [any", false, false},
	{"an item in another column", "  - name: c", "   - name: c", false, false},
	{"a document's end between items", "  # the second\n", "...\n", false, false},
	{"a key of the root between items", "  # the second\n", "control:\n", false, false},
	{"a key of the root after the items", "dataplane:", "control:\ndataplane:", false,
		true},
	{"a block scalar", "name: c", "name: |-\n      c", false, true},
	{"an anchor", "name: c", "name: &c c", false, false},
};

static void
test_what_is_read_in_part(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(edits); i++) {
		struct cfg_reader *reader = cfg_reader_create(false);
		struct text text = {.n = 0};
		const char *at = strstr(base, edits[i].old);

		assert_non_null(reader);
		assert_non_null(at);
		EXPECT(check_same(reader, base, sizeof(base) - 1), "the base is right");
		replace(&text, 0, 0, base, sizeof(base) - 1);
		replace(&text, (size_t)(at - base), strlen(edits[i].old), edits[i].with,
			strlen(edits[i].with));
		EXPECT(check_same(reader, text.bytes, text.n) == edits[i].is_right, "%s: right",
			edits[i].what);
		EXPECT(cfg_reader_count_partial(reader) == (edits[i].is_partial ? 1 : 0),
			"%s: in part %u times", edits[i].what,
			(unsigned int)cfg_reader_count_partial(reader));
		/* And what is kept now is as good: back again. */
		EXPECT(check_same(reader, base, sizeof(base) - 1), "%s: back", edits[i].what);
		cfg_reader_destroy(reader);
	}
}

#define ITEM "- {name: a, address: 10.1.0.1, protocol: tcp, port: 80}\n"

static const struct {
	const char *what;
	const char *text;
	bool is_partial; /* the second time */
} layouts[] = {
	{"a list in the column of its key", "services:\n" ITEM, true},
	{"an indented list", "services:\n  " ITEM "  # c\n", true},
	{"no line end at the end",
		"services:\n- {name: a, address: 10.1.0.1, protocol: tcp, "
		"port: 80}",
		true},
	{"an indented root", " services:\n  " ITEM, false},
	{"a key written with a question mark", "? services\n:\n" ITEM, false},
	{"the next key written with a question mark", "services:\n" ITEM "? hash_seed\n: 1\n",
		false},
	{"a list in brackets",
		"services: [\n {name: a, address: 10.1.0.1, protocol: tcp,\n"
		" port: 80}]\n",
		false},
	{"a dash on a line of its own",
		"services:\n-\n  name: a\n  address: 10.1.0.1\n"
		"  protocol: tcp\n  port: 80\n",
		false},
	{"line ends as of Windows", "services:\r\n" ITEM, false},
	{"a line end without a line feed", "# a\r# b\nservices:\n" ITEM, false},
	{"a byte order mark", "\xef\xbb\xbfservices:\n" ITEM, false},
	{"no services", "hash_seed: 1\n", false},
	{"an empty list", "services: []\n", false},
};

static void
test_what_is_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(layouts); i++) {
		struct cfg_reader *reader = cfg_reader_create(false);
		const size_t n_bytes = strlen(layouts[i].text);

		assert_non_null(reader);
		EXPECT(check_same(reader, layouts[i].text, n_bytes), "%s", layouts[i].what);
		EXPECT(check_same(reader, layouts[i].text, n_bytes), "%s", layouts[i].what);
		EXPECT(cfg_reader_count_partial(reader) == layouts[i].is_partial, "%s",
			layouts[i].what);
		cfg_reader_destroy(reader);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_kept),
		cmocka_unit_test(test_what_is_read_in_part),
		cmocka_unit_test(test_reading_after_edits_is_reading_afresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
