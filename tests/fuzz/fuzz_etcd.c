/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What comes from etcd, or from whoever answers in its place; addresses; and a copy on the
 * disk. What is taken holds together, and what was decoded is encoded to the same again.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_base64.h"
#include "ctl_etcd_copy.h"
#include "ctl_etcd_json.h"
#include "ctl_etcd_url.h"

#define KEY "k"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void
hold(struct ctl_etcd_answer *answer)
{
	if (answer->has_key &&
		(answer->key_revision == 0 || answer->key_revision > answer->revision ||
			answer->revision > INT64_MAX))
		abort();
	if (answer->value != NULL && answer->value[answer->n_value] != '\0')
		abort();
	if (strpbrk(answer->reason, "\n\x1b") != NULL)
		abort();
	ctl_etcd_answer_fini(answer);
}

static void
read_answers(const char *text, size_t n)
{
	struct ctl_etcd_answer answer;
	char words[CTL_ETCD_WHY_BYTES];
	char *token;

	if (ctl_etcd_json_read_range(text, n, KEY, &answer) == 0)
		hold(&answer);
	if (ctl_etcd_json_read_put(text, n, KEY, &answer) == 0)
		hold(&answer);
	if (ctl_etcd_json_read_watch(text, n, KEY, &answer) == 0)
		hold(&answer);
	if (ctl_etcd_json_read_login(text, n, &token) == 0)
		free(token);
	ctl_etcd_json_read_error(text, n, words);
}

static void
read_base64(const char *text, size_t n)
{
	size_t n_bytes;
	char *bytes;
	char *again;

	if (ctl_base64_decode(text, n, &bytes, &n_bytes) != 0)
		return;
	again = ctl_base64_encode(bytes, n_bytes);
	if (again == NULL || strlen(again) != n || memcmp(again, text, n) != 0)
		abort();
	free(again);
	free(bytes);
}

static void
read_url(const char *text, size_t n)
{
	char *copy = strndup(text, n);
	struct ctl_etcd_url url;
	const char *why;

	if (copy == NULL)
		return;
	if (ctl_etcd_url_is(copy) && ctl_etcd_url_parse(copy, &url, &why) == 0) {
		if (url.n_endpoints == 0 || url.key[0] == '\0')
			abort();
		ctl_etcd_url_fini(&url);
	}
	free(copy);
}

static void
read_copy(const char *bytes, size_t n)
{
	struct ctl_etcd_document document;

	if (ctl_etcd_copy_parse(bytes, n, KEY, &document) != 0)
		return;
	if (document.n_bytes >= n ||
		document.hash != ctl_etcd_document_hash(document.text, document.n_bytes))
		abort();
	ctl_etcd_document_fini(&document);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char *copy = malloc(n_bytes + (n_bytes == 0));

	if (copy == NULL)
		return 0;
	if (n_bytes > 0)
		memcpy(copy, data, n_bytes);
	read_answers(copy, n_bytes);
	read_base64(copy, n_bytes);
	read_url(copy, n_bytes);
	read_copy(copy, n_bytes);
	free(copy);
	return 0;
}
