/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - what all verbs share: parsing, help, messages, checks of output files, gates, exit
 * status.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/opt/opt.h"
#include "out/compare/gate.h"

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
/* Called between cli_begin and cli_end; values: what the set parses into. See verbs/cmd.h. */
typedef int cli_work(struct cli *c, void *values);
/* Parses argv with the set, calls work, ends. Returns the exit status. */
int cli_run(const struct opt_set *set, cli_work *work, int argc, char **argv);
/* Prints the warnings gathered so far to stderr. */
void cli_flush_notes(struct cli *c);
/* ": text (profllm help TOPIC)" and a newline on stderr; the program's name comes before. */
void cli_print_error(const struct err *e);
/* Prints c->err when it is set, frees everything, and returns the status. */
int cli_end(struct cli *c);

/* The terminal's width, limited to least..most; fallback if stdout is no terminal or narrower. */
unsigned cli_columns(unsigned least, unsigned most, unsigned fallback);

void cli_out(struct str text);  /* stdout; secrets that are known by their text are hidden */
void cli_out_buf(struct buf *text); /* the same, and the buffer is released */
/*
 * Redirects stdout, also of child processes, to stderr or to nowhere; cli_result still reaches the
 * real one. May be nested; each begin needs its end, also one that returned -1 (with e).
 */
enum cli_divert_to { CLI_TO_STDERR, CLI_TO_NOWHERE };
struct cli_divert { int kept, outer; };
int cli_divert_begin(struct cli_divert *d, enum cli_divert_to to, struct err *e);
void cli_divert_end(struct cli_divert *d);
/* cli_out to where stdout was before it was diverted; -1: it could not be written there. */
int cli_result(struct str text, struct err *e);
/* The answer that a command was run for, which --quiet does not silence; -1 as with cli_result. */
int cli_answer(struct str text, bool is_quiet, struct err *e);
void cli_line(const char *text); /* a sentence or setting and a newline on stdout; no secrets */
void cli_warn(const char *text); /* "WARNING: ..." on stderr */

/*
 * From now on stderr shows a screen that enter makes and leave undoes (terminal sequences, borrowed
 * for good): whatever ends the program writes leave first, and Ctrl-Z does so while it stops. NULL:
 * the caller has undone it.
 */
void cli_terminal_taken(const char *enter, const char *leave);

/* SIGINT, SIGTERM and SIGHUP set the flag of cli_is_interrupted(); a later one kills. */
void cli_catch_signals(void);
const _Atomic _Bool *cli_is_interrupted(void);

/* ---- Files that will be written after an hour of load, checked before it ---- */

/*
 * Checks that path can be written; what names the option in the error. A new file is made and
 * removed again; a device or a pipe is not opened.
 */
int target_check(const char *what, const char *path, struct err *e);
/* The same; also makes its folder. */
int target_make(const char *what, const char *path, struct err *e);

struct report_facts;

/* The path of a run's result; other files of the run are named after it. */
struct target {
	char *path;      /* NULL: not chosen yet */
	bool is_claimed; /* an empty file is there, which goes unless it is written */
};
/*
 * Chooses the path once: filename as given, else a generated name that no other run has (unless
 * is_shared: many runs append lines to the file). Prints it where it is not the usual one. -1 with
 * e.
 */
int target_name(struct target *t, const struct report_facts *f, const char *dir,
		const char *filename, bool is_shared, struct err *e);
/* The result is in the file, which stays from now on. */
void target_written(struct target *t);
void target_release(struct target *t);

/*
 * --fail-if of all verbs, around compare/gate.h: options before anything is measured; lines on
 * stderr, --junit, --summary and the exit status at the end.
 */

struct gates {
	const struct gate_opts *o;
	struct gate *gate;
	size_t n;
	struct gate_log log;
};

/* Reads --fail-if and checks that the files can be written. Everything lives in the arena. */
int gates_begin(struct gates *g, const struct gate_opts *o, struct arena *a, struct err *e);
/* The same for conditions already read; n 0: ERR_USAGE with needs if a file is asked for. */
int gates_begin_with(struct gates *g, const struct gate_opts *o, struct gate *gate, size_t n,
		     const char *needs, struct arena *a, struct err *e);
/* Judges a result given as JSON, with a case for each condition. where: see struct gate_case. */
int gates_judge_json(struct gates *g, struct str json, const char *where, struct err *e);
/*
 * Prints the outcome on stderr and writes the files. 0 or GATE_EXIT; -1 with e when a file could
 * not be written. Without conditions: 0, and nothing is done.
 */
int gates_end(struct gates *g, const char *title, struct err *e);
