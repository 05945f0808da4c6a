/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - what every verb does around its work: parse, help, messages, exit status. */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/opt/opt.h"

struct cli {
	const struct opt_set *set;
	struct opt_result result;
	struct arena arena;
	struct err err;
};

#define CLI_CONTINUE (-1)

/*
 * Parses argv into values. Returns CLI_CONTINUE, or the exit status when help,
 * --show-config or an error already answered the command.
 */
int cli_begin(struct cli *c, const struct opt_set *set, int argc, char **argv, void *values);
/* Between cli_begin and cli_end; values: what the set parses into. See verbs/cmd.h. */
typedef int cli_work(struct cli *c, void *values);
/* Parses argv by the set, works, ends. The exit status. */
int cli_run(const struct opt_set *set, cli_work *work, int argc, char **argv);
/* Warnings gathered so far go to stderr. */
void cli_flush_notes(struct cli *c);
/* Prints c->err when it is set, frees everything, and returns the status. */
int cli_end(struct cli *c);

/* The terminal's width from least to most; fallback where stdout is no terminal or narrower. */
unsigned cli_columns(unsigned least, unsigned most, unsigned fallback);

void cli_out(struct str text);  /* stdout; secrets that are known by their text are hidden */
void cli_line(const char *text); /* a sentence or setting and a newline on stdout; no secrets */
void cli_warn(const char *text); /* "WARNING: ..." on stderr */

/*
 * From here on stderr shows a screen that enter makes and leave undoes (terminal sequences,
 * borrowed for good): whatever ends the program writes leave first, and Ctrl-Z does so
 * for the time it stops. NULL: the caller has undone it.
 */
void cli_terminal_taken(const char *enter, const char *leave);

/* SIGINT, SIGTERM and SIGHUP set the flag of cli_is_interrupted(); a second one kills. */
void cli_catch_signals(void);
const _Atomic _Bool *cli_is_interrupted(void);
