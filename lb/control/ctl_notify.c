/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_notify.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-daemon.h>

#define US_PER_MS 1000u
/* What the orderly stop takes, at most. */
#define STOP_MS 10000u

void
ctl_notify_ready(void)
{
	(void)sd_notify(0, "READY=1");
}

void
ctl_notify_reloading(void)
{
	struct timespec now;

	/* The time, so that systemd can tell this reload's READY=1 from one before it. */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		(uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u);
}

void
ctl_notify_refused(const char *errors)
{
	if (errors == NULL)
		(void)sd_notify(0, "STATUS=");
	else
		(void)sd_notifyf(0, "STATUS=reload refused: %.*s", (int)strcspn(errors, "\n"),
			errors);
}

void
ctl_notify_stopping(uint64_t delay_ms)
{
	if (delay_ms == 0)
		(void)sd_notify(0, "STOPPING=1");
	else
		(void)sd_notifyf(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
			(delay_ms + STOP_MS) * US_PER_MS);
}

static void
on_time(void *context)
{
	(void)context;
	(void)sd_notify(0, "WATCHDOG=1");
}

int
ctl_notify_watch(struct ctl_loop *loop)
{
	uint64_t limit_us;
	uint64_t ms;

	if (sd_watchdog_enabled(0, &limit_us) <= 0)
		return 0;
	ms = limit_us / 2 / US_PER_MS;
	if (ms == 0)
		ms = 1;
	return ctl_loop_add_timer(loop, ms, ms, on_time, NULL, NULL);
}
