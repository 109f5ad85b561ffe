/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a request on the control socket: read, or refused in words. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_rpc_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_request(const struct ctl_request *request)
{
	if (request->method == NULL || request->root == NULL)
		abort();
	if (request->params != NULL && !json_is_object(request->params) &&
		!json_is_array(request->params))
		abort();
}

static void
check_flaw(const struct ctl_request_flaw *flaw)
{
	const size_t n = strnlen(flaw->why, sizeof(flaw->why));

	if (flaw->code >= 0 || n == 0 || n == sizeof(flaw->why))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ctl_request request;
	struct ctl_request_flaw flaw;

	if (ctl_rpc_parse((const char *)data, size, &request, &flaw) == 0)
		check_request(&request);
	else
		check_flaw(&flaw);
	if (request.id != NULL && !json_is_string(request.id) && !json_is_number(request.id) &&
		!json_is_null(request.id))
		abort();
	ctl_request_fini(&request);
	return 0;
}
