/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - the bytes of an answer: events in HTTP chunks, or one JSON body, spelled as the server
 * of each API spells them.
 *
 * A shape is one API's spelling: a table of hooks (shapes.c). A hook writes one JSON document into
 * form->json and calls event_put, which frames it: as a server-sent event or one document per line,
 * with the line ends and comments that faults ask for, in a chunk of its own. So shapes are
 * independent of faults, and pacing is independent of shapes.
 *
 * Texts come as JSON spells them, without their quotes: words are plain ASCII letters, constrained
 * text is escaped where the event is made.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/str.h"

struct event_shape;

/* EVENT_CALL begins a tool call, EVENT_ARGUMENTS continues it. */
enum event_part { EVENT_TEXT, EVENT_REASONING, EVENT_CALL, EVENT_ARGUMENTS };

struct event_form {
	const struct event_shape *shape;
	uint32_t choices;      /* 1 for APIs that have no n */
	bool has_usage_always; /* every event has usage, if the API supports that */
	bool has_cached;       /* usage has cached_tokens where that is optional */
	bool is_without_usage, is_without_done; /* faults: the counts, the closing event */
	bool is_crlf, is_commented;
	bool is_malformed;     /* event_put cuts the JSON in its middle */
	enum event_part frame_part; /* what the frame is for */
	size_t frame_at;       /* position of the text in it; 0: no frame yet */
	struct buf frame;      /* an event's chunk without its size and text; see is_uniform */
	struct str id, model;  /* borrowed for the duration of the answer */
	int64_t created;       /* seconds */
	struct buf head;       /* private to the shape: what its events have in common */
	struct buf said;       /* JSON-escaped text so far, for shapes that repeat it */
	struct buf json;       /* the event being spelled */
	uint32_t sequence;     /* private to the shape: numbers of events */
	int block;             /* private to the shape: the open part; -1: none */
	uint32_t prompt_tokens, cached_tokens;
};

struct event {
	enum event_part part;
	uint32_t choice;           /* from 0 on */
	struct str text;
	uint32_t call;             /* from 0 on in its choice */
	struct str call_id, name;  /* when it begins */
	uint32_t id;               /* of the last token */
	uint32_t output_tokens;    /* of its choice so far, this event's included */
	const char *finish_reason; /* NULL except on the last one: "stop", "length", "tool_calls" */
	struct str stop_reason;    /* the stop string that matched; empty: none */
	bool is_malformed;
};

/* The end of an answer; texts only if it is not streamed. */
struct event_ending {
	struct str reasoning, text;
	struct str calls;      /* tool calls: the members of OpenAI's list, as JSON */
	uint32_t output_tokens, reasoning_tokens; /* of all choices */
	const char *finish_reason;
	struct str stop_reason;
	const struct event_ending *next; /* the next choice's texts, calls, reasons; NULL: none */
	int64_t prefill_ns, decode_ns;
};

struct event_shape {
	const char *object;    /* value of "object", where one file serves several APIs */
	const char *id_prefix;
	const char *type;      /* Content-Type of a stream */
	const char *data;      /* text before an event's JSON */
	bool is_lines;         /* a document a line instead of server-sent events */
	bool is_opening_counted; /* the opening is an event with choices but without a token */
	/*
	 * Events of one choice and part that have neither usage nor a finish reason only differ in
	 * their text: the hook spells the first one, the others are made from that.
	 */
	bool is_uniform;
	bool has_reasoning;
	bool has_done;         /* [DONE] ends the stream, also after an error */
	/* Once per answer; prompt: the request's, as text. NULL: nothing to do. */
	void (*prepare)(struct event_form *f, struct str prompt);
	/* Before the first token; NULL: nothing. */
	void (*open)(struct event_form *f, struct buf *out);
	void (*event)(struct event_form *f, const struct event *v, struct buf *out);
	/* After the last token: counts and closing events, except [DONE]; NULL: nothing. */
	void (*close)(struct event_form *f, const struct event_ending *v, struct buf *out);
	/* Instead of the rest of the stream. */
	void (*error)(struct event_form *f, const char *message, struct buf *out);
	/* The body of an answer that is not streamed, into f->json. */
	void (*whole)(struct event_form *f, const struct event_ending *v);
};

extern const struct event_shape shape_completions, shape_chat, shape_audio, shape_responses,
	shape_anthropic, shape_tgi, shape_llamacpp, shape_sglang, shape_demo, shape_ollama,
	shape_ollama_chat;

/* id with the shape's prefix. Resets f to a new answer, keeping its memory. */
void event_prepare(struct event_form *f, const struct event_shape *shape, struct str id,
		   struct str model, int64_t created, struct str prompt);
void event_open(struct event_form *f, struct buf *out);
void event_write(struct event_form *f, const struct event *v, struct buf *out);
/* The closing events and [DONE], except those that a fault omits. */
void event_close(struct event_form *f, const struct event_ending *v, struct buf *out);
/* An error and what follows it. */
void event_error(struct event_form *f, const char *message, struct buf *out);
/* The whole answer; borrowed until f is used again. */
struct str event_whole(struct event_form *f, const struct event_ending *v);
void event_form_release(struct event_form *f);

/* ---- for the shapes ---- */

/* Frames f->json as one event, in a chunk, and empties it. name: of the event, or NULL. */
void event_put(struct event_form *f, const char *name, struct buf *out);
/* ,"key": with the comma unless it is the first one of its object. */
void event_key(struct buf *json, const char *key);
void event_text(struct buf *json, const char *key, struct str escaped);
void event_number(struct buf *json, const char *key, int64_t v);
/* {"prompt_tokens":..,"total_tokens":..,"completion_tokens":..[,"prompt_tokens_details":..]} */
void event_usage(const struct event_form *f, uint32_t output_tokens, struct buf *json);
/* The error object of vLLM as an event. */
void event_error_openai(struct event_form *f, const char *message, struct buf *out);
