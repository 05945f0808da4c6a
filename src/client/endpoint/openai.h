/* SPDX-License-Identifier: Apache-2.0 */
/* openai.h - what completions and chat share. Private to endpoint/. */
#pragma once
#include "client/endpoint/endpoint.h"
#include "core/json/scan.h"

/* The members of an OpenAI stream event we look at, in this order in the paths below. */
enum openai_member {
	OPENAI_CHOICES, OPENAI_USAGE, OPENAI_ERROR, OPENAI_FINISH, OPENAI_TEXT, OPENAI_REASONING,
	OPENAI_REASONING_OLD, OPENAI_ROLE,
	/* chat only */
	OPENAI_CHAT_MEMBERS,
	OPENAI_REFUSAL = OPENAI_CHAT_MEMBERS, OPENAI_TOOLS, OPENAI_ARGUMENTS, OPENAI_FUNCTION,
	OPENAI_MEMBERS,
};

/* data is one event's payload. text_path: where the answer text is. */
int openai_decode(const struct json_paths *paths, struct str data, struct decoded *out,
		  struct err *e);
/* An endpoint's decode for events of completions. */
int openai_decode_text(const struct endpoint *self, struct str data, struct decoded *out,
		       struct err *e);
/* An endpoint's decode for events of chat, and of audio, which look the same. */
int openai_decode_chat(const struct endpoint *self, struct str data, struct decoded *out,
		       struct err *e);
/* Success needs at least one token event (serve spec 3.4), and an end: openai.c. */
const char *openai_finish(const struct request_row *row);
/* Common end of both encoders: ignore_eos, then the overlays, then the bytes. */
int openai_finish_body(struct body *b, const struct encode_opts *o, const struct sample *s,
		       struct encoded *out, struct err *e);
/* Appends a sample as a JSON list of chat messages (serve spec 3.6). */
void openai_messages(const struct sample *s, struct buf *out);
/* As openai_messages, but never the sample's ready-made list; media before or after the text. */
void openai_user_message(const struct sample *s, bool is_media_first, struct buf *out);
/* The prompt as a JSON value (quoted text, or its own JSON); scratch holds the quoted form. */
struct str openai_prompt(const struct sample *s, struct buf *scratch);
