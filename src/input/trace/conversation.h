/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conversation.h - conversations as data, and as sessions of a workload.
 *
 * A file is either
 *   (a) a JSON list (or JSON lines) of {"id": text or integer, "messages": [{"role", "content"}]},
 *       other members of an item ignored: one optional system message, then user and assistant in
 *       turn, the user first; content is a text or a list of parts. The last message may be the
 *       user's: its answer is unknown.
 *   (b) {"filetype": "generate_conversations", ...}: how many conversations to generate from texts
 *       and distributions of lengths; trace/conversation_gen.c has the order of draws.
 * conversations_read detects which it is, reads and checks it.
 *
 * Everything is in the arena of struct conversations, also text borrowed by messages and ids.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/plan/workload.h"
#include "core/json/write.h"
#include "core/rng/rng.h"
#include "input/data/lengths.h"

struct tokenizer;

enum speaker { SPEAKER_SYSTEM, SPEAKER_USER, SPEAKER_ASSISTANT };

struct message {
	enum speaker role;
	struct str text;   /* UTF-8; of a list of parts, the texts of its text parts, joined */
	struct str parts;  /* the list as Python's json.dumps spells it; empty: content is text */
	uint32_t tokens;   /* of text, without special tokens; 0 without a tokenizer */
};

struct conversation {
	struct str id;     /* unique in its file; an integer in decimal */
	size_t first, n;   /* conversations.message[first..first + n) */
};

/*
 * The parameters of form (b), each distribution as upstream prints it: "UniformDistribution[2, 6]".
 */
struct conversation_params {
	bool is_generated;   /* form (b); form (a) leaves the rest empty */
	bool prints_stats;   /* print_stats */
	struct str text_files; /* joined by ", " */
	struct str num_turns, common_prefix_num_tokens, prefix_num_tokens, num_tokens;
	struct str output_num_tokens;
};

/* Zeroed is a valid empty one. */
struct conversations {
	struct conversation *v;
	size_t n;
	struct message *message;
	size_t n_messages;
	struct conversation_params params;
	struct arena arena;
};

struct conversations_opts {
	const struct tokenizer *tokenizer; /* NULL: tokens are not counted, and (b) is refused */
	struct legacy *np;         /* of (b): numpy.random as the caller has seeded it */
	unsigned threads;          /* that count tokens; 0: as many as cores */
	const atomic_bool *cancel; /* may be NULL */
};

/*
 * Reads a file of either form. ERR_IO; ERR_PARSE, ERR_RUN: one sentence with the file, the item
 * ("chats.json:17", "item 3") and the message; ERR_LIMIT, ERR_CANCELLED. *out must be released
 * in either case.
 */
int conversations_read(const char *path, const struct conversations_opts *o,
		       struct conversations *out, struct err *e);
void conversations_release(struct conversations *c);

/* Writes one message as in a body: {"role": "user", "content": ...}. */
void conversation_put_message(struct json_writer *w, const struct message *m);

/* How conversations become turns. Zeroed: all messages, answers as long as the data has them. */
struct conversation_turns {
	/*
	 * Number of user and assistant messages that count, --max-turns of upstream's script: a
	 * user message is sent when fewer precede it (a system message is not counted). 0: all.
	 */
	size_t messages_max;
	/* Tokens requested for every answer; 0: as many as the dataset's, at least 1. */
	int64_t output_len;
	int64_t tail_output_len; /* of an answer that the data lack; 0: no limit is sent (-1) */
	/*
	 * The most tokens of messages and answers together: a conversation ends before the first
	 * turn that would have more (is_without_history: that turn is left out). 0: no limit.
	 */
	int64_t tokens_max;
	size_t turns_min;        /* conversations of fewer turns are left out; 0 counts as 1 */
	double gap_s;            /* think time before each turn but the first; 0: none */
	bool is_without_history; /* each turn sends its own messages alone */
	bool is_named_by_turn;   /* request ids are <prefix><id>-turn<t>, else <prefix><sample> */
	const char *request_id_prefix; /* NULL: no request ids */
};

/*
 * Adds one session for each of the n conversations named (NULL: all, in order) to an empty w: one
 * sample per user message that is sent, with `messages` (the system message before the first one),
 * `expected` (the dataset's answer), output_len and prompt_len: the tokens of all messages up to
 * it, with the requested lengths for answers. A conversation named again gets the id "<id>#2".
 * Fills w->sessions: each turn continues and waits for the one before. Returns how many
 * conversations were left out (tokens_max, turns_min). -1: ERR_IO, as workload_keep; ERR_LIMIT.
 */
int64_t conversations_to_workload(const struct conversations *c, const size_t *which, size_t n,
				  const struct conversation_turns *t, struct workload *w,
				  struct err *e);

/* Form (b) of conversations (trace/conversation.h). */

/*
 * Generates what object, a part of f, asks for. Tokens of messages are not counted yet. ERR_RUN
 * with file, line and key; ERR_IO: a text file.
 */
int conversations_generate(const struct json_file *f, struct json_slice object,
			   const struct conversations_opts *o, struct conversations *out,
			   struct err *e);
/* Appends a message to the last conversation. */
struct message *conversations_add_message(struct conversations *c, enum speaker role);
struct conversation *conversations_add(struct conversations *c, struct str id);
/* Sets the tokens of all messages. ERR_LIMIT. */
int conversations_count(struct conversations *c, const struct tokenizer *t, unsigned threads,
			struct err *e);

/*
 * ShareGPT's raw files as conversations (trace/conversation.h), after upstream's
 * convert_sharegpt_to_openai.py.
 *
 * The parts of a conversation, "<id>_<number>", are joined in the order of their numbers; if a part
 * begins with the speaker of the last kept message, its first message is dropped. Conversations are
 * shuffled, those that do not alternate between user and assistant or that exceed the limits are
 * dropped, and of the rest max_items are drawn. Different from upstream: it joins parts in the
 * order of the shuffled file, and its language filter keeps what it is meant to drop.
 */

struct sharegpt_convert_opts {
	int64_t seed;                        /* of Python's random */
	int64_t max_items;                   /* 0: all */
	int64_t min_turns, max_turns;        /* messages of a conversation; 0: any */
	int64_t min_content_len, max_content_len; /* characters of every message; 0: any */
	bool any_language;                   /* else all characters must be ASCII */
	const atomic_bool *cancel;           /* may be NULL */
};

struct sharegpt_converted {
	size_t items, joined;                /* of the file; conversations made of them */
	size_t too_short, not_alternating, wrong_length, wrong_language; /* dropped for that */
	size_t kept;                         /* before max_items */
};

/* ERR_IO, ERR_PARSE, ERR_RUN with item and message. *out must be released in either case. */
int sharegpt_convert(const char *path, const struct sharegpt_convert_opts *o,
		     struct conversations *out, struct sharegpt_converted *count, struct err *e);
