/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * shuntctl top: the terminal's side, and when to ask. It waits for keys, signals and the
 * daemon's answer at once, so that it can be left whatever the daemon does.
 */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Its functions are functions then, and none of them is called as an everyday word. */
#define NCURSES_NOMACROS 1
#include <curses.h>

#include "ctl_client.h"
#include "ctl_proto.h"
#include "shuntctl.h"
#include "top_page.h"

#define PERIOD_MS 1000u
/* To connect, to send, and to read an answer whose beginning is there: keys wait that long. */
#define CONNECT_MS 200u
#define SEND_MS    200u
#define TAKE_MS    50u
/* Without an answer, before that is told. */
#define SILENT_MS 3000u
/* After an Escape, for the rest of a key's bytes. */
#define ESCAPE_MS 50

#define MESSAGE_BYTES 256u

struct top {
	struct shuntctl *ctl;
	struct top_page page;
	json_t *now;
	json_t *before;  /* NULL: none that a rate could be counted from */
	uint64_t now_ms; /* when it came */
	double seconds;  /* between the two */
	uint64_t due_ms; /* the next request */
	uint64_t asked_ms;
	bool is_asked; /* and not answered */
	bool is_new;   /* the next answer continues none */
	char message[MESSAGE_BYTES];
};

static volatile sig_atomic_t is_over;

static void
end(int signal_number)
{
	(void)signal_number;
	is_over = 1;
}

static uint64_t
clock_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* Samples. */

static void
drop_sample(json_t **sample)
{
	json_decref(*sample);
	*sample = NULL;
}

/* Of another daemon, or one that was away: its counts are no continuation. */
static void
lose(struct top *top, const char *what, const char *why)
{
	ctl_client_close(top->ctl->client);
	top->ctl->client = NULL;
	top->is_asked = false;
	top->is_new = true;
	(void)snprintf(top->message, sizeof(top->message), "%s: %s; trying again", what, why);
	top->page.message = top->message;
}

static void
keep(struct top *top, json_t *sample)
{
	const uint64_t ms = clock_ms();

	drop_sample(&top->before);
	if (top->is_new)
		drop_sample(&top->now);
	top->before = top->now;
	top->now = sample;
	top->seconds = (double)(ms - top->now_ms) / 1e3;
	top->now_ms = ms;
	top->is_new = false;
	top->page.message = NULL;
}

static void
ask(struct top *top)
{
	int ret = 0;

	if (top->ctl->client == NULL)
		ret = ctl_client_open(top->ctl->socket, CONNECT_MS, &top->ctl->client);
	if (ret == 0)
		ret = ctl_client_ask(top->ctl->client, CTL_METHOD_STATS, NULL, SEND_MS);
	top->asked_ms = clock_ms();
	top->due_ms = top->asked_ms + PERIOD_MS;
	top->is_asked = ret == 0;
	if (ret != 0)
		lose(top, "no connection to shuntd", strerror(-ret));
}

static void
take(struct top *top)
{
	struct ctl_client_error error;
	json_t *sample;
	const int ret = ctl_client_take(top->ctl->client, TAKE_MS, &sample, &error);

	if (ret == -ETIMEDOUT)
		return;
	if (ret == -EREMOTEIO) {
		lose(top, "shuntd refuses", error.message);
		free(error.message);
	} else if (ret != 0) {
		lose(top, "no answer from shuntd",
			ret == -ECONNRESET ? "it closed the connection" : strerror(-ret));
	} else {
		top->is_asked = false;
		keep(top, sample);
	}
}

static void
look_at_silence(struct top *top)
{
	const uint64_t ms = clock_ms() - top->asked_ms;

	if (!top->is_asked || ms < SILENT_MS)
		return;
	(void)snprintf(top->message, sizeof(top->message),
		"no answer from shuntd for %u s: it is stopped, or busy",
		(unsigned int)(ms / 1000));
	top->page.message = top->message;
}

/* The terminal. */

static void
put_line(void *context, unsigned int n, const char *text, enum top_look look)
{
	static const attr_t attributes[] = {
		[TOP_PLAIN] = A_NORMAL,
		[TOP_STRONG] = A_BOLD,
		[TOP_HEAD] = A_REVERSE,
	};

	(void)context;
	(void)wmove(stdscr, (int)n, 0);
	(void)wattrset(stdscr, (int)attributes[look]);
	(void)waddnstr(stdscr, text, -1);
	(void)wattrset(stdscr, A_NORMAL);
	(void)wclrtoeol(stdscr);
}

static int
draw(struct top *top)
{
	const struct top_sample sample = {top->now, top->before, top->seconds};
	const struct top_screen screen = {.n_lines = (unsigned int)getmaxy(stdscr),
		.n_columns = (unsigned int)getmaxx(stdscr),
		.put = put_line};
	const int ret = top_page_draw(&top->page, &sample, &screen);

	(void)wrefresh(stdscr);
	return ret;
}

static int
translate(int key)
{
	switch (key) {
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_END:
		return TOP_KEY_END;
	case KEY_ENTER:
	case '\n':
	case '\r':
		return TOP_KEY_ENTER;
	case '\033':
		return TOP_KEY_ESCAPE;
	case KEY_BACKSPACE:
	case '\b':
	case 0x7f:
		return TOP_KEY_BACKSPACE;
	default:
		return key;
	}
}

/* All keys that are there. Whether it goes on. */
static bool
read_keys(struct top *top)
{
	int key;

	while ((key = wgetch(stdscr)) != ERR) {
		if (key == KEY_RESIZE)
			(void)wclear(stdscr);
		else if (!top_page_press(&top->page, translate(key)))
			return false;
	}
	return true;
}

/* Signals are taken while it waits, and only then. Whether the terminal is still there. */
static bool
wait_for_something(struct top *top, const sigset_t *mask)
{
	struct pollfd files[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = -1}};
	const uint64_t now = clock_ms();
	const uint64_t ms = top->due_ms <= now ? 0 : top->due_ms - now;
	const struct timespec limit = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000) * 1000000,
	};

	if (top->is_asked)
		files[1] = (struct pollfd){.fd = ctl_client_fd(top->ctl->client),
			.events = POLLIN};
	if (ppoll(files, 2, &limit, mask) <= 0)
		return true;
	if (files[1].revents != 0)
		take(top);
	return (files[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

static int
run(struct top *top, const sigset_t *mask)
{
	while (read_keys(top) && is_over == 0) {
		if (clock_ms() >= top->due_ms) {
			if (!top->is_asked)
				ask(top);
			else
				top->due_ms += PERIOD_MS;
			look_at_silence(top);
		}
		if (draw(top) != 0)
			return -ENOMEM;
		if (!wait_for_something(top, mask))
			break;
	}
	return 0;
}

/* They end it only where it waits: no wait is begun that a signal before it should have ended.
 */
static void
take_signals(sigset_t *before)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = end};
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGWINCH);
	for (size_t i = 0; i < LB_N_ELEMENTS(ends); i++) {
		(void)sigaction(ends[i], &action, NULL);
		(void)sigaddset(&signals, ends[i]);
	}
	(void)sigprocmask(SIG_BLOCK, &signals, before);
}

/* Names are UTF-8, as the daemon sends them: where the terminal has another code they are shown
 * as far as they are ASCII. */
static void
choose_locale(void)
{
	if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		(void)setlocale(LC_CTYPE, "C");
}

static int
tell_no_terminal(const char *why)
{
	return shuntctl_usage_error("top takes a terminal, and %s; 'shuntctl stats --watch' "
				    "does without",
		why);
}

static bool
can_move(void)
{
	static char name[] = "cup";
	const char *words = tigetstr(name);

	/* Its other answer for none is (char *)-1. */
	return words != NULL && (intptr_t)words != -1;
}

static int
show(struct top *top)
{
	SCREEN *terminal;
	sigset_t mask;
	int ret;

	choose_locale();
	terminal = newterm(NULL, stdout, stdin);
	if (terminal == NULL)
		return tell_no_terminal("this one's name, TERM, is not known");
	if (!can_move()) {
		(void)endwin();
		delscreen(terminal);
		return tell_no_terminal("this one, by its name, TERM, moves no cursor");
	}
	take_signals(&mask);
	(void)set_escdelay(ESCAPE_MS);
	(void)cbreak();
	(void)noecho();
	(void)curs_set(0);
	(void)keypad(stdscr, TRUE);
	(void)nodelay(stdscr, TRUE);
	ret = run(top, &mask);
	(void)endwin();
	delscreen(terminal);
	return ret == 0 ? SHUNTCTL_DONE : shuntctl_no_memory();
}

int
shuntctl_top(struct shuntctl *ctl)
{
	struct top top = {.ctl = ctl, .page = {.socket = ctl->socket}};
	int status;

	if (ctl->is_json)
		return shuntctl_usage_error("--json is not for 'top'; 'shuntctl stats --watch "
					    "--json' has the figures");
	if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
		return tell_no_terminal("standard input or output is none");
	/* What is wrong from the start is told as of every other command. */
	status = shuntctl_call(ctl, CTL_METHOD_STATS, NULL, &top.now);
	if (status != SHUNTCTL_DONE)
		return status;
	top.now_ms = clock_ms();
	top.due_ms = top.now_ms + PERIOD_MS;
	status = show(&top);
	drop_sample(&top.now);
	drop_sample(&top.before);
	return status;
}
