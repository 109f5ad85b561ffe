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

const char *
replay_path_name(const char *path, const char *standard_name)
{
	return strcmp(path, "-") == 0 ? standard_name : path;
}
