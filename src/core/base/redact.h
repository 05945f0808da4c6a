/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact.h - finds secrets in a text and hides them.
 *
 * The one place that decides which credentials are kept and shown; a hidden value is REDACTED
 * everywhere. What is sent is never changed. A secret is recognised in two ways:
 *
 *   by the text around it     the value of a secret name (api_key=X, "token": "X", --hf-token X),
 *                             user:X@ in a URL, a header's value
 *   by its value              values on the command line, in the environment, in configurations
 *                             and in token files are registered when they are read and hidden
 *                             wherever they appear later, such as in a server's answer that
 *                             quotes the key it refuses
 *
 * The register belongs to the process: a secret of one run is hidden in every other run. All
 * functions are thread-safe.
 */
#pragma once
#include "core/base/mem.h"
#include "core/base/str.h"

#define REDACTED "***"

/*
 * Whether a name (of a variable, option, key, parameter) says that its value is a secret: by its
 * words, however they are joined. "hf_token" and "X-Api-Key" are, "max_tokens" and "cache_key" not.
 */
bool redact_is_secret(struct str name);
/* Whether the value of an HTTP header is hidden: yes, unless it only describes the format. */
bool redact_is_secret_header(struct str name);

/*
 * text with its secrets hidden, for messages and settings; JSON stays JSON. Returns text itself
 * when there is nothing to hide, else the content of room, which the caller releases.
 */
struct str redact(struct str text, struct buf *room);
/*
 * As redact, but by URLs and the register only: for results, answers and other data, in which a
 * name followed by a value need not be a setting.
 */
struct str redact_data(struct str text, struct buf *room);
/* "NAME=VALUE" or "NAME: VALUE" in one line: the whole value is hidden. */
struct str redact_line(struct str line, struct buf *room);
/* Redacts what was added to b from offset `from` on. */
enum redact_kind {
	REDACT_SENTENCES, /* as redact */
	REDACT_SETTINGS,  /* also "--name VALUE", which may be ordinary words in prose */
	REDACT_DATA,      /* as redact_data */
};
void redact_tail(struct buf *b, size_t from, enum redact_kind kind);
/* A NULL-terminated command with its secrets hidden; words without any are not copied. */
char **redact_words(char *const *argv, struct arena *a);

/*
 * Registers a value that is hidden from now on, as it is and as JSON spells it: at most
 * REDACT_VALUES_MAX. Short values and plain words, which appear in other texts by chance, are not
 * registered.
 */
void redact_learn(struct str value);
void redact_learn_text(struct str text);         /* every secret that redact would hide in text */
void redact_learn_lines(char *const *lines);     /* lines NAME=VALUE, such as an environment */
void redact_learn_words(char *const *argv);      /* a command line */
