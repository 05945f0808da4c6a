/* SPDX-License-Identifier: Apache-2.0 */
/* serve_line.h - a line of `bench serve`, parsed and checked, for tests of its options. */
#pragma once
#include "bench/options/serve_opts.h"

#define ARGS_MAX 16
#define TOKEN_BLOCKS (BLOCK_BIT(BLOCK_TTFT) | BLOCK_BIT(BLOCK_TPOT) | BLOCK_BIT(BLOCK_ITL))

/* The texts of argv live as long as the options do. */
struct line {
	struct serve_opts o;
	struct serve_derived d;
	struct opt_result r;
	struct arena a;
	struct err e;
	int rc;
};

static void run(struct line *l, const char *const *arg)
{
	char *argv[ARGS_MAX];
	int argc = 0;

	*l = (struct line){ 0 };
	for (; argc < ARGS_MAX && arg[argc]; argc++)
		argv[argc] = arena_text(&l->a, str_of(arg[argc]));
	l->rc = opt_parse(&serve_opt_set, argc, argv, &l->o, &l->r, &l->a, &l->e);
	if (l->rc == 0)
		l->rc = serve_opts_check(&l->o, &l->r, &l->a, &l->d, &l->e);
}

#define RUN(l, ...) run(l, (const char *const[ARGS_MAX]){ __VA_ARGS__ })

static void done(struct line *l)
{
	opt_result_release(&l->r);
	arena_release(&l->a);
}
