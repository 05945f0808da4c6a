/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/pattern.h - regular expressions as tokenizer.json files mean them,
 * rewritten for PCRE2.
 *
 * The files are written for Oniguruma in Ruby syntax. The two libraries read
 * these differently, and each is spelled out: \s (White_Space only), \w and \b
 * (marks and connectors are word characters), \d, script names (the script, not
 * its extensions), [A&&[^B]], nested classes, and X{n,m}+ or X{n}? (a second
 * quantifier over the first). Anything that cannot be carried over for certain
 * is an error naming the construct.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

int pattern_rewrite(struct str pattern, struct buf *out, struct err *e);
