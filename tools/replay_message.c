/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
replay_message_set(struct replay_message *message, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (vsnprintf(message->text, sizeof(message->text), format, arguments) < 0)
		message->text[0] = '\0';
	va_end(arguments);
}

/* A byte of UTF-8 that is not a character's first. */
static bool
is_continuation(char byte)
{
	return ((uint8_t)byte & 0xc0) == 0x80;
}

void
replay_path_name(char name[REPLAY_NAME_BYTES], const char *path, const char *standard_name)
{
	static const char cut[] = "...";
	const char *end = strcmp(path, "-") == 0 ? standard_name : path;
	size_t n = strlen(end);
	size_t at = 0;

	if (n > REPLAY_NAME_BYTES - 1) {
		at = strlen(cut);
		memcpy(name, cut, at);
		end += n - (REPLAY_NAME_BYTES - 1 - at);
		while (is_continuation(*end))
			end++;
	}
	for (; *end != '\0'; end++, at++) {
		bool is_control = (uint8_t)*end < ' ' || *end == 0x7f;

		name[at] = '?';
		if (!is_control)
			name[at] = *end;
	}
	name[at] = '\0';
}
