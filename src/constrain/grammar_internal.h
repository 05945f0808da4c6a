/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/grammar_internal.h - a grammar as grammar.c reads it and earley.c matches it.
 *
 * Productions are runs of symbols, each ended by a SYMBOL_END that names what was produced. A
 * nonterminal is a rule, a group or a repeat; rules come first, by their index.
 */
#pragma once
#include "constrain/grammar.h"

enum symbol_kind { SYMBOL_END, SYMBOL_SET, SYMBOL_PRODUCED };

struct symbol {
	enum symbol_kind kind;
	uint32_t produced;        /* SYMBOL_END, SYMBOL_PRODUCED: index of the nonterminal */
	const struct syntax *set; /* SYMBOL_SET */
};

struct production {
	uint32_t first; /* symbol */
	uint32_t next;  /* production of the same nonterminal; GRAMMAR_NONE */
};

struct nonterminal {
	uint32_t productions; /* the first one; GRAMMAR_NONE */
	bool is_nullable;     /* can be the empty text */
};

#define GRAMMAR_NONE UINT32_MAX

struct grammar {
	struct arena arena;
	struct syntax_rule *rules;
	uint32_t rule_count;
	struct syntax *root;
	struct symbol *symbol;
	struct production *production;
	struct nonterminal *nonterminal;
	uint32_t symbol_count, production_count, nonterminal_count;
	uint32_t symbol_cap, production_cap, nonterminal_cap;
};

/* Writes the rules' trees out as productions. ERR_USAGE: they become too many. */
int grammar_lower(struct grammar *g, struct err *e);
