/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact.h - what is secret in a text, and the text without it.
 *
 * The one place that decides what is kept and shown of credentials; a hidden value is REDACTED
 * everywhere. What is sent is never touched. A secret is found in two ways:
 *
 *   by the text around it     the value of a secret name (api_key=X, "token": "X", --hf-token X),
 *                              user:X@ in a URL, a header's value
 *   by itself                  values that were learned: those of the command line, of the
 *                              environment, of configurations and of token files are registered
 *                              when they are read, and hidden wherever they appear later, such
 *                              as in the answer of a server that quotes the key it refuses
 *
 * The register belongs to the process: a secret of one run is none that another may show. All
 * functions are safe in every thread.
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
/* Whether the value of an HTTP header is hidden: all are, but those that only say how to read. */
bool redact_is_secret_header(struct str name);

/*
 * text without what is secret, for messages and settings: JSON stays JSON. text itself when there
 * is nothing to hide, else what room holds; the caller releases room.
 */
struct str redact(struct str text, struct buf *room);
/*
 * Likewise, but by URLs and the register alone: for results, answers and other data, in which a
 * name followed by a value need not be a setting.
 */
struct str redact_data(struct str text, struct buf *room);
/* "NAME=VALUE" or "NAME: VALUE" as one line: the value is hidden to its end. */
struct str redact_line(struct str line, struct buf *room);
/* What was added to b from there on is replaced likewise. */
enum redact_kind {
	REDACT_SENTENCES, /* as redact */
	REDACT_SETTINGS,  /* and "--name VALUE" is an option with its value, which prose may not be */
	REDACT_DATA,      /* as redact_data */
};
void redact_tail(struct buf *b, size_t from, enum redact_kind kind);
/* The words of a command without secrets, ended by NULL; the words themselves where possible. */
char **redact_words(char *const *argv, struct arena *a);

/*
 * Values that are hidden from now on, as they are and as JSON spells them. Short ones and plain
 * words are not registered, because they appear in other texts by chance; REDACT_VALUES_MAX.
 */
void redact_learn(struct str value);
void redact_learn_text(struct str text);         /* every secret that redact would hide in it */
void redact_learn_lines(char *const *lines);     /* NAME=VALUE each, such as an environment */
void redact_learn_words(char *const *argv);      /* a command line */
