/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_LOOP_H
#define CTL_LOOP_H

/**
 * @file
 * The control thread's loop: files, timers and signals, one callback at a time.
 *
 * Not thread-safe: everything here is the thread's that runs it, but ctl_loop_stop() may be
 * called from a callback, and ctl_loop_enter() and ctl_loop_leave() are for other threads.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

struct ctl_loop;  /* opaque */
struct ctl_timer; /* opaque */

/** A file is ready; events as epoll names them (EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP). */
typedef void (*ctl_fd_fn)(void *context, uint32_t events);

/** A timer has come due. */
typedef void (*ctl_timer_fn)(void *context);

/** A signal has come. */
typedef void (*ctl_signal_fn)(void *context, int signal);

/** @retval -errno  The kernel's reason. */
int ctl_loop_create(struct ctl_loop **out) lb_must_check;

/** Its files are not closed: they are their owners'. NULL is allowed. */
void ctl_loop_destroy(struct ctl_loop *loop);

/**
 * Call fn when a file is ready. One callback a file.
 *
 * @retval -errno  The kernel's reason; -EEXIST where the file is there.
 */
int ctl_loop_add_fd(struct ctl_loop *loop, int fd, uint32_t events, ctl_fd_fn fn,
	void *context) lb_must_check;

/** Wait for other events on a file that was added. */
void ctl_loop_change_fd(struct ctl_loop *loop, int fd, uint32_t events);

/** No callback for it comes any more, also none that was ready in this turn. */
void ctl_loop_remove_fd(struct ctl_loop *loop, int fd);

/**
 * Call fn after delay_ms, and then every interval_ms; once where that is 0.
 *
 * @param[out] out  For ctl_loop_remove_timer(); NULL where nobody will. A timer that is called
 *                  once is gone after its call.
 * @retval -ENOMEM  No memory.
 */
int ctl_loop_add_timer(struct ctl_loop *loop, uint64_t delay_ms, uint64_t interval_ms,
	ctl_timer_fn fn, void *context, struct ctl_timer **out);

void ctl_loop_remove_timer(struct ctl_loop *loop, struct ctl_timer *timer);

/**
 * Take signals from here on by callback; they are blocked for the calling thread and all that
 * it starts later.
 *
 * @param signals  n signal numbers.
 */
int ctl_loop_take_signals(struct ctl_loop *loop, const int signals[], size_t n,
	ctl_signal_fn fn, void *context) lb_must_check;

/** Run callbacks until ctl_loop_stop(). @retval -errno  The kernel's reason. */
int ctl_loop_run(struct ctl_loop *loop) lb_must_check;

/** ctl_loop_run() returns 0 after the callback that is running. */
void ctl_loop_stop(struct ctl_loop *loop);

/**
 * Keep callbacks from running, from another thread, to read what is theirs. Those who enter and
 * the loop take turns in the order they come, and callbacks wait meanwhile: be quick.
 *
 * @retval -EAGAIN  ctl_loop_run() does not run, and the data is not there to be read.
 */
int ctl_loop_enter(struct ctl_loop *loop) lb_must_check;

/** After ctl_loop_enter() that was successful. */
void ctl_loop_leave(struct ctl_loop *loop);

/** Milliseconds of a clock that never goes back. */
uint64_t ctl_loop_now_ms(void);

/** The same clock's nanoseconds. */
uint64_t ctl_loop_now_ns(void);

#endif
