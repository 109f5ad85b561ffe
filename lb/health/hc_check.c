/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool
is_same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool
hc_check_equal(const struct hc_check *a, const struct hc_check *b)
{
	if (a->type != b->type || a->port != b->port || a->wants_reply != b->wants_reply ||
		a->is_verified != b->is_verified || a->is_tunnelled != b->is_tunnelled ||
		a->interval_ns != b->interval_ns || a->timeout_ns != b->timeout_ns ||
		a->n_expect != b->n_expect || !is_same_text(a->path, b->path) ||
		!is_same_text(a->host, b->host))
		return false;
	for (size_t i = 0; i < a->n_expect; i++) {
		if (a->expect[i].first != b->expect[i].first ||
			a->expect[i].last != b->expect[i].last)
			return false;
	}
	return true;
}

int
hc_own_check_init(const struct hc_check *check, struct hc_own_check *out)
{
	struct hc_own_check own = {.check = *check};

	own.path = check->path != NULL ? strdup(check->path) : NULL;
	own.host = check->host != NULL ? strdup(check->host) : NULL;
	if ((own.path == NULL && check->path != NULL) ||
		(own.host == NULL && check->host != NULL)) {
		hc_own_check_fini(&own);
		return -ENOMEM;
	}
	own.check.path = own.path;
	own.check.host = own.host;
	*out = own;
	return 0;
}

void
hc_own_check_fini(struct hc_own_check *own)
{
	free(own->path);
	free(own->host);
}

bool
hc_check_expects(const struct hc_check *check, unsigned int status)
{
	for (size_t i = 0; i < check->n_expect; i++) {
		if (status >= check->expect[i].first && status <= check->expect[i].last)
			return true;
	}
	return false;
}
