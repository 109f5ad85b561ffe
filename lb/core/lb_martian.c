/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_martian.h"

#include "lb_bytes.h"
#include "lb_service_lookup.h"
#include "lb_usual.h"

/* 0/8, 127/8, 224/4 and 240/4, with all-ones among it; ::, ::1 and ff00::/8. */
static bool
is_no_host(const uint64_t source[2])
{
	if (lb_usual_is_mapped(source[0], source[1])) {
		const uint32_t first = (uint32_t)(source[1] >> 32) & 0xff;

		return first == 0 || first == 127 || first >= 224;
	}
	return (source[0] & 0xff) == 0xff ||
	       (source[0] == 0 && (source[1] & ~(UINT64_C(1) << 56)) == 0);
}

bool
lb_martian_source(const struct lb_service_table *services, const struct lb_addr *own,
	size_t n_own, const struct lb_addr *source, const struct lb_addr *dst)
{
	const uint64_t from[] = {lb_bytes_load64(source->bytes),
		lb_bytes_load64(source->bytes + 8)};
	const uint64_t to[] = {lb_bytes_load64(dst->bytes), lb_bytes_load64(dst->bytes + 8)};

	return lb_martian_words(services, own, n_own, from, to);
}

bool
lb_martian_words(const struct lb_service_table *services, const struct lb_addr *own,
	size_t n_own, const uint64_t source[2], const uint64_t dst[2])
{
	if (is_no_host(source) || ((source[0] ^ dst[0]) | (source[1] ^ dst[1])) == 0)
		return true;
	for (size_t i = 0; i < n_own; i++)
		if (((source[0] ^ lb_bytes_load64(own[i].bytes)) |
			    (source[1] ^ lb_bytes_load64(own[i].bytes + 8))) == 0)
			return true;
	return lb_service_has_host_words(services, source);
}
