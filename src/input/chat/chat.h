/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat.h - the text that a model's chat template puts around one user message.
 *
 * Templates are programs in a language of their own, and none is run here. For a conversation of a
 * single user message with the generation prompt after it, the templates of served models reduce to
 * prefix + content + suffix, which is all that a benchmark's prompt needs. The two texts come from
 * one of several sources. Nothing is guessed: a template that is not known for certain is not used.
 *
 * For some templates a preceding system message is supported, too. Not here: longer conversations,
 * tools.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/token/tokenizer.h"

enum chat_source {
	CHAT_NONE,   /* no template: a message is its content */
	CHAT_FLAGS,  /* the user gave the text around a message */
	CHAT_KNOWN,  /* the template's text is in the table of chat_known.h */
	CHAT_SERVER, /* the server's own rendering of probes */
	CHAT_ENGINE, /* an engine's rendering, without a server */
};

/* Zeroed: no template. Texts are in the arena that was given, or static. */
struct chat_wrap {
	enum chat_source source;
	struct str prefix, suffix;
	bool is_stripping;  /* blanks at both ends of the content go, as with Python's strip() */
	/* With a system message: system_prefix + system + system_middle + content + suffix. */
	bool has_system, is_system_stripping;
	struct str system_prefix, system_middle;
	const char *family; /* CHAT_KNOWN: a model that has this template; otherwise NULL */
};

const char *chat_source_name(enum chat_source source); /* "none", "flags", "known" ... */

/* Appends one user message with its wrap. content is UTF-8. */
void chat_apply(const struct chat_wrap *w, struct str content, struct buf *out);

/* Appends a system message and one user message. Only with w->has_system. */
void chat_apply_system(const struct chat_wrap *w, struct str system, struct str content,
	struct buf *out);

/*
 * A text as the user types it: \n \r \t \\ and \xHH are escapes, any other backslash is an error
 * (ERR_USAGE). NULL counts as empty. what names the text in errors ("--chat-prefix").
 */
int chat_unescape(const char *what, const char *text, struct arena *a, struct str *out,
	struct err *e);

/*
 * Looks up the template of a tokenizer's file (path) in the table of known ones:
 * chat_template.jinja next to it, else "chat_template" of tokenizer_config.json (of several the one
 * called "default"), else that of chat_template.json. 1: *out is filled; 0: no template, one that
 * is not in the table, or one with a special token that those files do not define; -1: a file
 * cannot be read.
 */
int chat_from_files(const char *path, struct arena *a, struct chat_wrap *out, struct err *e);

/*
 * Finds the wrap from the server's rendering of a few probes (token/remote.h), whose ids t decodes:
 * the texts around them, and whether blanks at their ends are removed. An error (ERR_RUN, ERR_NET,
 * ERR_PARSE) if t does not encode the text to the same ids, if the server does not render, or if
 * the template does more than surround the content. kwargs: a JSON object of template variables;
 * empty: none.
 */
struct token_server;
int chat_from_server(const struct token_server *s, const struct tokenizer *t, struct str kwargs,
	struct arena *a, struct chat_wrap *out, struct err *e);

/* The same with a renderer that appends one user message as text; name: for errors. */
struct chat_renderer {
	const char *name;
	int (*render)(void *self, struct str content, struct buf *text, struct err *e);
	void *self;
};
int chat_from_renderer(const struct chat_renderer *r, struct arena *a, struct chat_wrap *out,
	struct err *e);

/*
 * Whether a wrapped text begins with the token that the tokenizer puts before every sequence, so
 * that a server which tokenizes the text has two of them.
 */
bool chat_doubles_bos(const struct chat_wrap *w, const struct tokenizer *t);

/* ---- Known templates ---- */

/*
 * Templates whose effect on one user message is known.
 *
 * schema/chat_templates.json is written by tools/chat/generate.mjs, which renders real templates
 * and keeps those that are prefix + content + suffix for every content it tries.
 * A text names special tokens by one byte each: CHAT_TOKEN_FIRST + i is entry i of
 * CHAT_TOKEN_NAMES.
 */

struct chat_known {
	const char *sha256; /* of the text without a newline at its end; hexadecimal */
	const char *family; /* a model with this template */
	const char *prefix, *suffix;
	bool is_stripping;
	/* With a system message: prefix + system + middle + content + suffix; NULL: unknown. */
	const char *system_prefix, *system_middle;
	bool is_system_stripping;
};

extern const struct chat_known chat_known[]; /* sorted by sha256 */
extern const size_t chat_known_count;

#define CHAT_TOKEN_FIRST 1
#define CHAT_TOKEN_NAMES { "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", \
	"cls_token", "mask_token" }
