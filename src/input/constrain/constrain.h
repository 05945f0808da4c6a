/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain.h - constraints on an answer: a JSON Schema, a pattern, a choice, a grammar.
 *
 * Compiled once, then used to check answers (scoring of structured output) or to generate one (the
 * simulator). A compiled constraint is read-only: any number of threads may use it. Pure: no clock,
 * no files.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

enum constraint_kind {
	CONSTRAINT_JSON,     /* text: a JSON Schema, draft 2020-12, or 7 where $schema says so */
	CONSTRAINT_REGEX,    /* text: a pattern; the whole answer has to match */
	CONSTRAINT_CHOICE,   /* text: a JSON list of texts; the answer has to be one of them */
	CONSTRAINT_GRAMMAR,  /* text: EBNF of the GBNF kind; Lark is not scored */
};

struct constraint_opts {
	bool is_format_asserted; /* JSON Schema's "format" decides, and is no annotation */
};

struct constraint;

/*
 * ERR_USAGE: text is not a valid constraint of this kind; e says why and where in it. text may be
 * released afterwards.
 */
struct constraint *constraint_compile(enum constraint_kind kind, struct str text,
				      const struct constraint_opts *o, struct err *e);
/* The member of {"json"|"regex"|"choice"|"grammar": ...}, as in samples and bodies. */
struct constraint *constraint_compile_member(struct str object, const struct constraint_opts *o,
					     struct err *e);
void constraint_free(struct constraint *c);
enum constraint_kind constraint_kind(const struct constraint *c);

enum constraint_verdict { CONSTRAINT_KEPT, CONSTRAINT_BROKEN, CONSTRAINT_NOT_SCORED };

#define CONSTRAINT_WHY_BYTES 256

struct constraint_result {
	enum constraint_verdict verdict;
	char why[CONSTRAINT_WHY_BYTES]; /* "parse ...", "schema /0/age type", "no match"; empty when kept */
};

/*
 * Whether an answer satisfies it: JSON is trimmed, parsed strictly (no NaN, no duplicate keys) and
 * validated; patterns and grammars have to match all of it.
 */
void constraint_check(const struct constraint *c, struct str answer, struct constraint_result *out);
/*
 * Whether an answer that was cut off could have become one that satisfies it. For JSON only its
 * first characters count; true where it cannot be decided.
 */
bool constraint_can_follow(const struct constraint *c, struct str answer);
/* Upstream's rule (conversations spec 4.4): 1 true, 0 false, -1 not scored. */
int constraint_check_upstream(const struct constraint *c, struct str answer);

/*
 * Appends an answer that satisfies it, of about this many bytes where it can choose; the same seed
 * gives the same answer. ERR_RUN: none was found (a schema that nothing satisfies).
 */
int constraint_generate(const struct constraint *c, uint64_t seed, size_t bytes, struct buf *out,
			struct err *e);
