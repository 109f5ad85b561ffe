/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"
#include "xrand.h"

#define LETTERS_MAX 64

/* What the callbacks leave: one letter each, in the order in which they were called. */
static char letters[LETTERS_MAX];
static struct ctl_loop *loop;

struct note {
	char letter;
	struct ctl_timer *timer;   /* this is it, or another to remove */
	struct ctl_timer **remove; /* NULL: none */
	unsigned int n_calls;
};

static int
set_up(void **state)
{
	(void)state;
	memset(letters, 0, sizeof(letters));
	return ctl_loop_create(&loop);
}

static int
tear_down(void **state)
{
	(void)state;
	ctl_loop_destroy(loop);
	loop = NULL;
	return 0;
}

static void
write_letter(char letter)
{
	const size_t n = strlen(letters);

	if (n < LETTERS_MAX - 1)
		letters[n] = letter;
}

static void
on_timer(void *context)
{
	struct note *note = context;

	note->n_calls++;
	write_letter(note->letter);
	if (note->remove != NULL) {
		ctl_loop_remove_timer(loop, *note->remove);
		*note->remove = NULL;
	}
}

static void
stop(void *context)
{
	(void)context;
	ctl_loop_stop(loop);
}

static void
run_for(uint64_t ms)
{
	assert_int_equal(ctl_loop_add_timer(loop, ms, 0, stop, NULL, NULL), 0);
	assert_int_equal(ctl_loop_run(loop), 0);
}

static void
add(struct note *note, uint64_t delay_ms, uint64_t interval_ms)
{
	assert_int_equal(ctl_loop_add_timer(loop, delay_ms, interval_ms, on_timer, note,
				 &note->timer),
		0);
}

static void
test_timers_come_when_due_and_then_in_the_order_they_were_added(void **state)
{
	struct note notes[] = {{.letter = 'd'}, {.letter = 'b'}, {.letter = 'c'},
		{.letter = 'a'}, {.letter = 'e'}};
	const uint64_t delays[] = {9, 3, 6, 0, 9};

	(void)state;
	for (size_t i = 0; i < 5; i++)
		add(&notes[i], delays[i], 0);
	run_for(9);
	assert_string_equal(letters, "abcde");
	run_for(15);
	assert_string_equal(letters, "abcde");
}

static void
test_a_timer_is_never_early(void **state)
{
	(void)state;
	for (uint64_t ms = 1; ms < 12; ms++) {
		struct timespec from;
		struct timespec to;
		int64_t ns;

		assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &from), 0);
		run_for(ms);
		assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &to), 0);
		ns = (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
		EXPECT(ns >= (int64_t)ms * 1000000, "%lu ms took %ld ns", ms, ns);
	}
}

static void
test_an_interval_comes_again_until_removed_by_its_own_callback(void **state)
{
	struct note note = {.letter = 'i'};
	unsigned int n_calls;

	(void)state;
	add(&note, 1, 2);
	while (note.n_calls < 4)
		run_for(1);
	n_calls = note.n_calls;
	note.remove = &note.timer;
	run_for(10);
	assert_int_equal(note.n_calls, n_calls + 1);
}

static void
test_a_timer_that_comes_once_may_remove_itself(void **state)
{
	struct note note = {.letter = 'x'};

	(void)state;
	note.remove = &note.timer;
	add(&note, 0, 0);
	run_for(2);
	assert_string_equal(letters, "x");
}

static void
test_a_timer_due_in_the_same_turn_can_be_removed(void **state)
{
	struct note second = {.letter = 'b'};
	struct note first = {.letter = 'a', .remove = &second.timer};

	(void)state;
	add(&first, 0, 0);
	add(&second, 0, 0);
	run_for(3);
	assert_string_equal(letters, "a");
}

static void
sleep_ms(long ms)
{
	const struct timespec time = {.tv_nsec = ms * 1000000};

	assert_int_equal(nanosleep(&time, NULL), 0);
}

static void
test_an_interval_that_is_late_does_not_make_up_for_it(void **state)
{
	struct note note = {.letter = 'i'};

	(void)state;
	add(&note, 1, 1);
	sleep_ms(30);
	run_for(0);
	assert_int_equal(note.n_calls, 1);
}

static void
test_delays_beyond_what_can_be_counted_never_come(void **state)
{
	struct note notes[] = {{.letter = 'a'}, {.letter = 'b'}, {.letter = 'c'}};

	(void)state;
	add(&notes[0], UINT64_MAX, 0);
	add(&notes[1], UINT64_MAX / 1000000, UINT64_MAX);
	add(&notes[2], 0, UINT64_MAX);
	run_for(3);
	assert_string_equal(letters, "c");
}

#define RANDOM_TIMERS 300

struct random_timer {
	uint64_t delay_ms;
	struct ctl_timer *timer;
	bool is_removed;
	unsigned int n_calls;
};

/* How long it took to add them all: so far from the order of their delays they may come. */
static uint64_t spread_ms;
static uint64_t last_delay_ms;

static void
on_random(void *context)
{
	struct random_timer *timer = context;

	timer->n_calls++;
	EXPECT(timer->delay_ms + spread_ms >= last_delay_ms, "%lu ms after %lu ms",
		timer->delay_ms, last_delay_ms);
	last_delay_ms = timer->delay_ms;
}

static void
test_many_timers_all_come_once_and_in_order_but_those_removed(void **state)
{
	static struct random_timer timers[RANDOM_TIMERS];
	const uint64_t from_ms = ctl_loop_now_ms();
	uint64_t random = 7;

	(void)state;
	for (size_t i = 0; i < RANDOM_TIMERS; i++) {
		struct random_timer *other = &timers[xrand_below(&random, (uint32_t)i + 1)];

		timers[i].delay_ms = xrand_below(&random, 50);
		assert_int_equal(ctl_loop_add_timer(loop, timers[i].delay_ms, 0, on_random,
					 &timers[i], &timers[i].timer),
			0);
		if (i % 3 == 0 && !other->is_removed) {
			ctl_loop_remove_timer(loop, other->timer);
			other->is_removed = true;
		}
	}
	spread_ms = ctl_loop_now_ms() - from_ms + 1;
	sleep_ms(60);
	run_for(1);
	for (size_t i = 0; i < RANDOM_TIMERS; i++)
		EXPECT(timers[i].n_calls == (timers[i].is_removed ? 0u : 1u), "timer %zu: %u",
			i, timers[i].n_calls);
}

/* Files. */

struct file {
	char letter;
	int fd;
	struct file *remove;
	bool add_again;
	bool is_last;
	uint32_t events;
};

static void
on_file(void *context, uint32_t events)
{
	struct file *file = context;

	write_letter(file->letter);
	file->events = events;
	if (file->remove != NULL) {
		ctl_loop_remove_fd(loop, file->remove->fd);
		if (file->add_again)
			assert_int_equal(ctl_loop_add_fd(loop, file->remove->fd, EPOLLOUT,
						 on_file, file->remove),
				0);
		file->remove = NULL;
	}
	if (file->is_last)
		ctl_loop_stop(loop);
}

/* A pipe with a byte in it. */
static void
open_full_pipe(int fds[2])
{
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
}

static void
close_pipe(const int fds[2])
{
	assert_int_equal(close(fds[0]), 0);
	assert_int_equal(close(fds[1]), 0);
}

static void
test_a_file_is_called_for_what_it_waits_for(void **state)
{
	int fds[2];
	struct file file = {.letter = 'f'};

	(void)state;
	open_full_pipe(fds);
	file.fd = fds[0];
	assert_int_equal(ctl_loop_add_fd(loop, fds[0], EPOLLIN, on_file, &file), 0);
	assert_int_equal(ctl_loop_add_fd(loop, fds[0], EPOLLIN, on_file, &file), -EEXIST);
	run_for(0);
	assert_string_equal(letters, "f");
	assert_int_equal(file.events, EPOLLIN);

	ctl_loop_change_fd(loop, fds[0], 0);
	run_for(0);
	assert_string_equal(letters, "f");
	ctl_loop_change_fd(loop, fds[0], EPOLLIN);
	run_for(0);
	assert_string_equal(letters, "ff");

	ctl_loop_remove_fd(loop, fds[0]);
	ctl_loop_remove_fd(loop, fds[0]);
	ctl_loop_change_fd(loop, fds[0], EPOLLIN);
	run_for(0);
	assert_string_equal(letters, "ff");
	close_pipe(fds);
}

static void
test_files_that_cannot_be_waited_for_are_refused(void **state)
{
	FILE *regular = tmpfile();
	int fds[2];

	(void)state;
	open_full_pipe(fds);
	close_pipe(fds);
	assert_non_null(regular);
	assert_int_equal(ctl_loop_add_fd(loop, -1, EPOLLIN, on_file, NULL), -EBADF);
	assert_int_equal(ctl_loop_add_fd(loop, fds[0], EPOLLIN, on_file, NULL), -EBADF);
	assert_int_equal(ctl_loop_add_fd(loop, fileno(regular), EPOLLIN, on_file, NULL),
		-EPERM);
	ctl_loop_remove_fd(loop, -1);
	ctl_loop_remove_fd(loop, 100000);
	assert_int_equal(fclose(regular), 0);
}

/* Two files that are ready in one turn, of which each would remove the other. */
static void
check_removal(bool add_again)
{
	int fds[2][2];
	struct file files[2] = {{.letter = 'f', .add_again = add_again},
		{.letter = 'f', .add_again = add_again}};

	for (size_t i = 0; i < 2; i++) {
		open_full_pipe(fds[i]);
		files[i].fd = fds[i][0];
		files[i].remove = &files[1 - i];
		assert_int_equal(ctl_loop_add_fd(loop, fds[i][0], EPOLLIN, on_file, &files[i]),
			0);
	}
	run_for(0);
	/* A pipe's reading end is never ready for writing. */
	assert_string_equal(letters, "f");
	for (size_t i = 0; i < 2; i++) {
		ctl_loop_remove_fd(loop, fds[i][0]);
		close_pipe(fds[i]);
	}
}

static void
test_a_file_removed_in_its_turn_is_not_called(void **state)
{
	(void)state;
	check_removal(false);
}

static void
test_a_file_removed_and_added_in_its_turn_is_not_called_for_what_was(void **state)
{
	(void)state;
	check_removal(true);
}

static void
test_stop_leaves_the_other_files_for_the_next_run(void **state)
{
	int fds[2][2];
	struct file files[2] = {{.letter = 'f', .is_last = true},
		{.letter = 'f', .is_last = true}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		open_full_pipe(fds[i]);
		assert_int_equal(ctl_loop_add_fd(loop, fds[i][0], EPOLLIN, on_file, &files[i]),
			0);
	}
	assert_int_equal(ctl_loop_run(loop), 0);
	assert_string_equal(letters, "f");
	assert_int_equal(ctl_loop_run(loop), 0);
	assert_string_equal(letters, "ff");
	for (size_t i = 0; i < 2; i++)
		close_pipe(fds[i]);
}

static void
test_a_stop_before_the_run_counts_once(void **state)
{
	(void)state;
	ctl_loop_stop(loop);
	assert_int_equal(ctl_loop_run(loop), 0);
	run_for(1);
}

static void
arm_again(void *context)
{
	assert_int_equal(ctl_loop_add_timer(loop, 0, 0, arm_again, context, NULL), 0);
}

static void
test_a_timer_that_is_always_due_leaves_files_a_turn(void **state)
{
	int fds[2];
	struct file file = {.letter = 'f', .is_last = true};

	(void)state;
	open_full_pipe(fds);
	arm_again(NULL);
	run_for(0);
	assert_int_equal(ctl_loop_add_fd(loop, fds[0], EPOLLIN, on_file, &file), 0);
	assert_int_equal(ctl_loop_run(loop), 0);
	assert_string_equal(letters, "f");
	close_pipe(fds);
}

/* Signals. */

static void
on_signal(void *context, int signal)
{
	const char *letter = context;

	if (signal == SIGUSR1)
		write_letter(*letter);
	else
		write_letter(signal == SIGUSR2 ? (char)'2' : (char)'?');
}

static bool
is_blocked(int signal)
{
	sigset_t set;

	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	return sigismember(&set, signal) == 1;
}

static void
test_signals_come_as_calls(void **state)
{
	const int signals[] = {SIGUSR1, SIGUSR2};
	const int others[] = {SIGWINCH};
	char letter = '1';

	(void)state;
	assert_int_equal(ctl_loop_take_signals(loop, signals, 2, on_signal, &letter), 0);
	assert_int_equal(ctl_loop_take_signals(loop, others, 1, on_signal, &letter), 0);
	assert_true(is_blocked(SIGUSR1) && is_blocked(SIGUSR2) && is_blocked(SIGWINCH));
	assert_int_equal(raise(SIGUSR1), 0);
	run_for(2);
	assert_string_equal(letters, "1");
	assert_int_equal(raise(SIGUSR2), 0);
	run_for(2);
	assert_string_equal(letters, "12");
	assert_int_equal(raise(SIGWINCH), 0);
	run_for(2);
	assert_string_equal(letters, "12?");
}

static void
test_no_signal_is_blocked_where_one_is_none(void **state)
{
	const int signals[] = {SIGHUP, 12345};

	(void)state;
	assert_int_equal(ctl_loop_take_signals(loop, signals, 2, on_signal, NULL), -EINVAL);
	assert_false(is_blocked(SIGHUP));
}

static void
test_destroy_frees_what_is_left(void **state)
{
	int fds[2];
	struct note note = {.letter = 't'};

	(void)state;
	open_full_pipe(fds);
	add(&note, 1000, 1000);
	assert_int_equal(ctl_loop_add_fd(loop, fds[0], EPOLLIN, on_file, NULL), 0);
	ctl_loop_destroy(loop);
	loop = NULL;
	close_pipe(fds); /* were still open */
	ctl_loop_destroy(NULL);
}

/* What callbacks and guests write, and may only write one at a time. */
struct shared {
	uint64_t first;
	uint64_t second;
	unsigned int n_calls;
	unsigned int n_torn;
	unsigned int n_visits; /* of each guest */
	unsigned int n_guests; /* that have not made theirs; with none left the loop stops */
};

static void
write_both(struct shared *shared)
{
	shared->n_torn += shared->first != shared->second;
	shared->first++;
	(void)sched_yield();
	shared->second++;
}

static void
on_turn(void *context)
{
	struct shared *shared = context;

	shared->n_calls++;
	write_both(shared);
	if (shared->n_guests == 0)
		ctl_loop_stop(loop);
}

/* It comes when the loop may not run yet. */
static void *
visit(void *context)
{
	struct shared *shared = context;

	for (unsigned int i = 0; i < shared->n_visits;) {
		if (ctl_loop_enter(loop) != 0) {
			(void)sched_yield();
			continue;
		}
		write_both(shared);
		i++;
		shared->n_guests -= i == shared->n_visits;
		ctl_loop_leave(loop);
	}
	return NULL;
}

/* A timer that is always due never waits, and guests always wait: neither may starve. */
static void
test_guests_and_callbacks_take_turns(void **state)
{
	enum { N_GUESTS = 4, N_VISITS = 500 };
	struct shared shared = {.n_visits = N_VISITS, .n_guests = N_GUESTS};
	pthread_t guests[N_GUESTS];

	(void)state;
	assert_int_equal(ctl_loop_add_timer(loop, 0, 1, on_turn, &shared, NULL), 0);
	for (size_t i = 0; i < N_GUESTS; i++)
		assert_int_equal(pthread_create(&guests[i], NULL, visit, &shared), 0);
	assert_int_equal(ctl_loop_run(loop), 0);
	for (size_t i = 0; i < N_GUESTS; i++)
		assert_int_equal(pthread_join(guests[i], NULL), 0);
	assert_int_equal(shared.n_torn, 0);
	assert_int_equal(shared.first, shared.n_calls + N_GUESTS * N_VISITS);
	assert_int_equal(shared.second, shared.first);
}

static void
test_nobody_enters_a_loop_that_does_not_run(void **state)
{
	(void)state;
	assert_int_equal(ctl_loop_enter(loop), -EAGAIN);
	run_for(1);
	assert_int_equal(ctl_loop_enter(loop), -EAGAIN);
	assert_int_equal(ctl_loop_enter(loop), -EAGAIN);
	run_for(1);
}

/* A file that is always ready: the loop never sleeps, and is back at once. */
static void
on_ready(void *context, uint32_t events)
{
	(void)events;
	on_turn(context);
}

static void
test_a_loop_that_never_sleeps_lets_a_guest_in(void **state)
{
	struct shared shared = {.n_visits = 1000, .n_guests = 1};
	pthread_t guest;
	int fds[2];

	(void)state;
	open_full_pipe(fds);
	assert_int_equal(ctl_loop_add_fd(loop, fds[0], EPOLLIN, on_ready, &shared), 0);
	assert_int_equal(pthread_create(&guest, NULL, visit, &shared), 0);
	assert_int_equal(ctl_loop_run(loop), 0);
	assert_int_equal(pthread_join(guest, NULL), 0);
	assert_int_equal(shared.n_torn, 0);
	assert_int_equal(shared.first, shared.n_calls + 1000);
	ctl_loop_remove_fd(loop, fds[0]);
	close_pipe(fds);
}

#define LOOP_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOOP_TEST(test_timers_come_when_due_and_then_in_the_order_they_were_added),
		LOOP_TEST(test_a_timer_is_never_early),
		LOOP_TEST(test_an_interval_comes_again_until_removed_by_its_own_callback),
		LOOP_TEST(test_a_timer_that_comes_once_may_remove_itself),
		LOOP_TEST(test_a_timer_due_in_the_same_turn_can_be_removed),
		LOOP_TEST(test_an_interval_that_is_late_does_not_make_up_for_it),
		LOOP_TEST(test_delays_beyond_what_can_be_counted_never_come),
		LOOP_TEST(test_many_timers_all_come_once_and_in_order_but_those_removed),
		LOOP_TEST(test_a_file_is_called_for_what_it_waits_for),
		LOOP_TEST(test_files_that_cannot_be_waited_for_are_refused),
		LOOP_TEST(test_a_file_removed_in_its_turn_is_not_called),
		LOOP_TEST(test_a_file_removed_and_added_in_its_turn_is_not_called_for_what_was),
		LOOP_TEST(test_stop_leaves_the_other_files_for_the_next_run),
		LOOP_TEST(test_a_stop_before_the_run_counts_once),
		LOOP_TEST(test_a_timer_that_is_always_due_leaves_files_a_turn),
		LOOP_TEST(test_signals_come_as_calls),
		LOOP_TEST(test_no_signal_is_blocked_where_one_is_none),
		LOOP_TEST(test_guests_and_callbacks_take_turns),
		LOOP_TEST(test_nobody_enters_a_loop_that_does_not_run),
		LOOP_TEST(test_a_loop_that_never_sleeps_lets_a_guest_in),
		LOOP_TEST(test_destroy_frees_what_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
