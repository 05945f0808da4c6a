/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - the bytes of the worker protocol, and the meaning of a frame. Pure.
 *
 * A frame is four bytes of length, big-endian, then one JSON object of that many bytes, at most
 * WORKER_FRAME_BYTES_MAX. docs/guide/adapters.md documents its members.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/json/read.h"

/* Received bytes. Zeroed: empty. */
struct frames {
	struct buf in;
	size_t at; /* everything before it has been read */
};
void frames_release(struct frames *f);
/* Room for n more bytes; frames_add() says how many came. Ends the life of returned frames. */
char *frames_room(struct frames *f, size_t n);
void frames_add(struct frames *f, size_t n);
/* 1: the next frame, borrowed; 0: more bytes are needed; -1 with e: not a frame. */
int frames_next(struct frames *f, struct str *frame, struct err *e);
/* Whether part of a frame has come and the rest has not. */
bool frames_is_amid(const struct frames *f);

/* Writes a frame: frame_begin, one JSON object, frame_end (-1: longer than a frame may be). */
size_t frame_begin(struct buf *out);
int frame_end(struct buf *out, size_t begin, struct err *e);

enum message_kind {
	MESSAGE_HELLO, MESSAGE_OK, MESSAGE_ERROR, MESSAGE_PROGRESS, MESSAGE_LINE,
};

struct worker_message {
	enum message_kind kind;
	bool has_id;
	int64_t id;
	struct json_slice body;    /* the whole object */
	int64_t protocol;          /* of a hello */
	struct str engine, version; /* of a hello; still escaped, as all texts here */
	struct json_slice features; /* of a hello; an array of texts, may be empty */
	struct str category, text; /* of an error; text of a line too */
	uint64_t done, total;      /* of progress */
};

/* Parses a frame; -1 with e: not a message of the protocol, or a member has another type. */
int message_read(struct str frame, struct worker_message *m, struct err *e);
