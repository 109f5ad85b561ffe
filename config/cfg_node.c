/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "cfg_character.h"

/* Deeper than any configuration, and bounded for libyaml's sake and ours. */
#define DEPTH_MAX 32u

#define CHUNK_BYTES_MIN ((size_t)4 << 10)
#define CHUNK_BYTES_MAX ((size_t)1 << 20)

/* Nodes and their texts are carved from chunks, and freed with them all at once. */
struct chunk {
	struct chunk *next;
	max_align_t bytes[];
};

/* The root is the head of its tree, so that the root alone is what callers hold. */
struct tree {
	struct cfg_node root;
	struct chunk *chunks;
	char *free;
	size_t n_free;
	size_t chunk_bytes;
};

/* A sequence or mapping that has begun and not ended. */
struct level {
	struct cfg_node *node;
	struct cfg_node **tail;
	struct cfg_node *key; /* of a mapping: the key whose value comes next */
};

struct builder {
	struct tree *tree;
	struct cfg_errors *errors;
	struct level levels[DEPTH_MAX];
	size_t depth;
	bool has_root;
	bool has_document;
};

static void
free_tree(struct tree *tree)
{
	struct chunk *chunk = tree->chunks;

	while (chunk != NULL) {
		struct chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	free(tree);
}

void
cfg_node_free(struct cfg_node *root)
{
	/* The root is the first member of its tree. */
	if (root != NULL)
		free_tree((struct tree *)root);
}

static int
add_chunk(struct tree *tree, size_t n_bytes)
{
	const size_t room = n_bytes > tree->chunk_bytes ? n_bytes : tree->chunk_bytes;
	struct chunk *chunk = malloc(sizeof(*chunk) + room);

	if (chunk == NULL)
		return -ENOMEM;
	chunk->next = tree->chunks;
	tree->chunks = chunk;
	tree->free = (char *)chunk->bytes;
	tree->n_free = room;
	if (tree->chunk_bytes < CHUNK_BYTES_MAX)
		tree->chunk_bytes *= 2;
	return 0;
}

/* Bytes aligned for a node, or NULL. */
static void *
carve(struct tree *tree, size_t n_bytes)
{
	const size_t align = _Alignof(struct cfg_node);
	void *bytes;

	n_bytes = (n_bytes + align - 1) / align * align;
	if (n_bytes > tree->n_free && add_chunk(tree, n_bytes) != 0)
		return NULL;
	bytes = tree->free;
	tree->free += n_bytes;
	tree->n_free -= n_bytes;
	return bytes;
}

static struct cfg_pos
get_pos(yaml_mark_t mark)
{
	return (struct cfg_pos){(uint32_t)mark.line + 1, (uint32_t)mark.column + 1};
}

/* A new node, hung where it belongs. -EINVAL: none may stand there, and errors was told. */
static int
add_node(struct builder *b, enum cfg_node_kind kind, struct cfg_pos pos, struct cfg_node **out)
{
	struct level *level = b->depth == 0 ? NULL : &b->levels[b->depth - 1];
	const bool is_key =
		level != NULL && level->node->kind == CFG_MAPPING && level->key == NULL;
	struct cfg_node *node;

	if (is_key && kind != CFG_SCALAR) {
		cfg_error(b->errors, pos, "a key has to be a word, found %s",
			kind == CFG_MAPPING ? "a mapping" : "a list");
		return -EINVAL;
	}
	node = b->has_root ? carve(b->tree, sizeof(*node)) : &b->tree->root;
	if (node == NULL)
		return -ENOMEM;
	*node = (struct cfg_node){.kind = kind, .pos = pos};
	b->has_root = true;
	if (is_key) {
		level->key = node;
	} else if (level != NULL) {
		node->key = level->key;
		level->key = NULL;
		*level->tail = node;
		level->tail = &node->next;
	}
	*out = node;
	return 0;
}

static int
open_level(struct builder *b, enum cfg_node_kind kind, struct cfg_pos pos)
{
	struct cfg_node *node;
	int ret;

	if (b->depth == DEPTH_MAX) {
		cfg_error(b->errors, pos,
			"nested deeper than %u levels; a configuration needs "
			"fewer than ten",
			DEPTH_MAX);
		return -EINVAL;
	}
	ret = add_node(b, kind, pos, &node);
	if (ret != 0)
		return ret;
	b->levels[b->depth++] = (struct level){.node = node, .tail = &node->first};
	return 0;
}

/* A scalar that was told of, or is about to be. */
static void
refuse(struct cfg_node *node)
{
	node->kind = CFG_REFUSED;
	node->text[0] = '\0';
}

static int
add_scalar(struct builder *b, const yaml_event_t *event)
{
	const char *value = (const char *)event->data.scalar.value;
	const size_t n = event->data.scalar.length;
	const struct cfg_pos pos = get_pos(event->start_mark);
	struct cfg_node *node;
	int ret;

	ret = add_node(b, CFG_SCALAR, pos, &node);
	if (ret != 0)
		return ret;
	node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	node->text = carve(b->tree, n + 1);
	if (node->text == NULL)
		return -ENOMEM;
	memcpy(node->text, value, n);
	node->text[n] = '\0';
	if (memchr(value, '\0', n) != NULL) {
		refuse(node);
		cfg_error(b->errors, pos,
			"a text with a NUL character (\\0) in it; leave it out");
	} else if (b->depth > 0 && b->levels[b->depth - 1].key == node && !node->is_quoted &&
		   strcmp(node->text, "<<") == 0) {
		refuse(node);
		cfg_error(b->errors, pos, "merge keys (<<) are not taken; write the keys out");
	}
	return 0;
}

/* Aliases, anchors and tags: told, and read on to tell of others. */
static void
check_plain(struct builder *b, const yaml_event_t *event)
{
	const struct cfg_pos pos = get_pos(event->start_mark);
	const yaml_char_t *anchor = NULL;
	const yaml_char_t *tag = NULL;

	if (event->type == YAML_SCALAR_EVENT) {
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
	} else if (event->type == YAML_MAPPING_START_EVENT) {
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
	}
	if (anchor != NULL)
		cfg_error(b->errors, pos,
			"anchors (&%.64s) are not taken; write the value out where it is used",
			(const char *)anchor);
	if (tag != NULL)
		cfg_error(b->errors, pos, "tags (!) are not taken; write the value alone");
}

static int
take_alias(struct builder *b, const yaml_event_t *event)
{
	struct cfg_node *node;
	const int ret = add_node(b, CFG_SCALAR, get_pos(event->start_mark), &node);

	if (ret != 0)
		return ret;
	node->text = carve(b->tree, 1);
	if (node->text == NULL)
		return -ENOMEM;
	refuse(node);
	cfg_error(b->errors, node->pos, "aliases (*%.64s) are not taken; write the value out",
		(const char *)event->data.alias.anchor);
	return 0;
}

/* -EINVAL: errors was told and nothing after it makes sense. */
static int
take_event(struct builder *b, const yaml_event_t *event)
{
	const struct cfg_pos pos = get_pos(event->start_mark);

	check_plain(b, event);
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->has_document) {
			cfg_error(b->errors, pos,
				"a second document begins; a file holds one, so remove '---'");
			return -EINVAL;
		}
		b->has_document = true;
		return 0;
	case YAML_SCALAR_EVENT:
		return add_scalar(b, event);
	case YAML_ALIAS_EVENT:
		return take_alias(b, event);
	case YAML_SEQUENCE_START_EVENT:
		return open_level(b, CFG_SEQUENCE, pos);
	case YAML_MAPPING_START_EVENT:
		return open_level(b, CFG_MAPPING, pos);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	default:
		return 0;
	}
}

/* What people mostly did where libyaml says this. */
static const struct {
	const char *problem;
	const char *hint;
} hints[] = {
	{"found character that cannot start any token", "put the value in quotes"},
	{"did not find expected key", "indent the keys of a mapping alike, and put quotes "
				      "around a text with special characters"},
	{"did not find expected '-' indicator", "begin each item of the list with '- ' in "
						"one column"},
	{"mapping values are not allowed in this context",
		"indent the keys of a mapping alike, and put quotes around a text with ': '"},
	{"could not find expected ':'", "write KEY: VALUE, with a space after the colon"},
	{"block sequence entries are not allowed in this context",
		"begin a list on a line of its own"},
	{"did not find expected ',' or ']'", "close the list with ']'"},
	{"did not find expected ',' or '}'", "close the mapping with '}'"},
	{"found unexpected end of stream", "close the quote"},
	{"did not find expected <document start>", "a file holds one document"},
};

/* The byte at a mark, which counts characters; '\0' at the end. */
static char
get_byte(const char *text, size_t n_bytes, size_t n_characters)
{
	size_t i = 0;

	for (; i < n_bytes; i++) {
		if (((unsigned char)text[i] & 0xc0) == 0x80)
			continue;
		if (n_characters-- == 0)
			return text[i];
	}
	return '\0';
}

static void
tell_problem(const yaml_parser_t *parser, const char *text, size_t n_bytes,
	struct cfg_errors *errors)
{
	const struct cfg_pos pos = get_pos(parser->problem_mark);
	const char *problem = parser->problem == NULL ? "it cannot be read" : parser->problem;
	const char *hint = NULL;

	if (get_byte(text, n_bytes, parser->problem_mark.index) == '\t') {
		cfg_error(errors, pos, "a tab where a value or an indent begins; use spaces");
		return;
	}
	for (size_t i = 0; i < LB_N_ELEMENTS(hints); i++) {
		if (strcmp(problem, hints[i].problem) == 0)
			hint = hints[i].hint;
	}
	cfg_error(errors, pos, "not well-formed YAML: %s%s%s%s%s", problem,
		parser->context == NULL ? "" : " ",
		parser->context == NULL ? "" : parser->context, hint == NULL ? "" : "; ",
		hint == NULL ? "" : hint);
}

/* Tell what is wrong with the character at text, if anything. */
static bool
check_character(const char *text, size_t n_bytes, uint32_t c, struct cfg_pos pos,
	struct cfg_errors *errors)
{
	const char *flaw = n_bytes == 0 ? NULL : cfg_find_character_flaw(c);

	if (n_bytes > 0 && (flaw == NULL || c == '\t' || c == '\n' || c == '\r'))
		return true;
	if (n_bytes > 1)
		cfg_error(errors, pos,
			"the character U+%04" PRIX32
			" cannot stand here, as it %s; expected text without it",
			c, flaw);
	else
		cfg_error(errors, pos,
			"the byte 0x%02x cannot stand here; expected UTF-8 text without "
			"control characters",
			(unsigned char)*text);
	return false;
}

/* libyaml names no line where the text is not UTF-8, so that is looked at first. */
static bool
check_text(const char *text, size_t n_bytes, struct cfg_errors *errors)
{
	struct cfg_pos pos = {1, 1};
	size_t i = 0;

	while (i < n_bytes) {
		uint32_t c = (unsigned char)text[i];
		size_t n = 1;

		if (c < 0x20 || c > 0x7e) {
			n = cfg_decode_character(text + i, n_bytes - i, &c);
			if (!check_character(text + i, n, c, pos, errors))
				return false;
		}
		pos.column++;
		if (c == '\n')
			pos = (struct cfg_pos){pos.line + 1, 1};
		i += n;
	}
	return true;
}

static int
run_parser(yaml_parser_t *parser, struct builder *b, const char *text, size_t n_bytes)
{
	bool is_end = false;

	while (!is_end) {
		yaml_event_t event;
		int ret;

		if (cfg_must_stop(b->errors))
			return -EINVAL;
		if (yaml_parser_parse(parser, &event) == 0) {
			if (parser->error == YAML_MEMORY_ERROR)
				return -ENOMEM;
			tell_problem(parser, text, n_bytes, b->errors);
			return -EINVAL;
		}
		ret = take_event(b, &event);
		is_end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
		if (ret != 0)
			return ret;
	}
	return 0;
}

static int
build_tree(struct builder *b, const char *text, size_t n_bytes)
{
	yaml_parser_t parser;
	int ret;

	if (yaml_parser_initialize(&parser) == 0)
		return -ENOMEM;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n_bytes);
	ret = run_parser(&parser, b, text, n_bytes);
	yaml_parser_delete(&parser);
	return ret;
}

int
cfg_node_parse(const char *text, size_t n_bytes, struct cfg_errors *errors,
	struct cfg_node **out)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	struct builder b = {.errors = errors};
	int ret;

	if (n_bytes >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
		text += 3;
		n_bytes -= 3;
	}
	if (!check_text(text, n_bytes, errors))
		return -EINVAL;

	b.tree = calloc(1, sizeof(*b.tree));
	if (b.tree == NULL) {
		cfg_error_memory(errors);
		return -ENOMEM;
	}
	b.tree->chunk_bytes = CHUNK_BYTES_MIN;
	ret = build_tree(&b, text, n_bytes);
	if (ret == -ENOMEM)
		cfg_error_memory(errors);
	if (ret != 0) {
		free_tree(b.tree);
		return ret;
	}
	if (!b.has_root) {
		free_tree(b.tree);
		*out = NULL;
		return 0;
	}
	*out = &b.tree->root;
	return 0;
}

const struct cfg_node *
cfg_node_get(const struct cfg_node *mapping, const char *key)
{
	if (mapping->kind != CFG_MAPPING)
		return NULL;
	for (const struct cfg_node *item = mapping->first; item != NULL; item = item->next) {
		if (strcmp(item->key->text, key) == 0)
			return item;
	}
	return NULL;
}
