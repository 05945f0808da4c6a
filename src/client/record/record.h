/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - what happened, and nothing about what it means.
 *
 * While load runs only facts are appended: who, when, how many bytes. Every
 * metric is a pure function of a record (metrics/), which can be stored
 * (record/file.h, docs/record-format.md), read back and scored again.
 *
 * Shape
 *   request[]  one row per request of any phase: typed columns (RECORD_COLUMNS)
 *   shard[]    one per loop: token-event gaps, marks, text. A row belongs to
 *              exactly one shard; only that shard's thread writes it.
 *   series[]   telemetry: name, unit, labels, (time, value)... appended off the loop
 *   note[]     annotations: time, kind, text
 *   meta       resolved options, versions, host, clock anchors (JSON)
 *
 * Time: CLOCK_REALTIME nanoseconds since the epoch, int64_t, 0 = never. Stamps
 * of received bytes are the kernel's when it gave one (source "kernel"), else
 * user-space. due_s stays the plan's double, in seconds from phase start.
 *
 * Token events: the first gap counts from sent_ns, later ones from the event
 * before, in nanoseconds as uint32_t; EVENT_LONG escapes a gap of 4.29 s and
 * more, whose nanoseconds are in two marks. Gaps live in 128-byte blocks
 * chained per request, 31 gaps each, from a slab: no malloc while running.
 * When skew is kept, a second chain of the same shape holds the user-minus-
 * kernel lag of each event (saturated).
 *
 * Invariants
 *   (1) due <= admitted <= sent <= first_byte <= first event <= last event <= end,
 *       for those that are not 0 (a clock step breaks it; see meta.clock);
 *   (2) n_events is the number of gaps in the chain, of which n_reasoning, n_answer and
 *       n_shared are parts; the gaps add up to last_event - sent;
 *   (2a) where a shard is full (is_full) a row may miss its last events, marks or text: then
 *       n_events and its parts stop together, while first and last event stay true stamps,
 *       so the gaps add up to less;
 *   (3) a row is complete when state is REQ_DONE or REQ_FAILED, which is
 *       written last (release), so that a reader in another thread may copy it.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

#define RECORD_NONE UINT32_MAX
#define EVENT_LONG UINT32_MAX  /* the gap is in MARK_GAP_HIGH and MARK_GAP_LOW */
#define EVENT_GAPS 31
#define TEXT_BYTES 124

/* REQ_UNSENT: planned, but the time was over; not part of the run, and not in any record file. */
enum request_state {
	REQ_WAITING, REQ_RUNNING, REQ_DONE, REQ_FAILED, REQ_CANCELLED, REQ_UNSENT,
};
enum request_phase { PHASE_MAIN, PHASE_READY, PHASE_WARMUP, PHASE_PROBE };

/* Why a request failed; the sentence is in the row's error text. */
#define FAIL_CATEGORIES(X)                                                                \
	X(NONE, "none") X(CONNECT, "connect") X(TLS, "tls") X(RESET, "reset")             \
	X(TIMEOUT, "timeout") X(STATUS, "http_status") X(PROTOCOL, "http_protocol")       \
	X(STREAM, "stream_error") X(FORMAT, "bad_event") X(EMPTY, "no_tokens")            \
	X(TRUNCATED, "truncated") X(LIMIT, "limit") X(CANCELLED, "cancelled")
#define X(name, text) FAIL_##name,
enum fail_category { FAIL_CATEGORIES(X) FAIL_COUNT };
#undef X

/* A server's reason why an answer ended; one word each, whatever its API calls it. */
#define FINISH_REASONS(X)                                                                 \
	X(NONE, "none") X(STOP, "stop") X(LENGTH, "length") X(TOOL_CALLS, "tool_calls")   \
	X(CONTENT_FILTER, "content_filter") X(ABORT, "abort") X(ERROR, "error")           \
	X(OTHER, "other")
#define X(name, text) FINISH_##name,
enum finish_reason { FINISH_REASONS(X) FINISH_COUNT };
#undef X

enum request_flags {
	ROW_HAS_USAGE = 1,      /* the server sent token counts */
	ROW_SAW_DONE = 2,       /* [DONE] or a terminal event */
	ROW_NEW_CONNECTION = 4, /* opened for this request */
	ROW_SAW_FINISH = 8,     /* a finish reason */
	ROW_USER_STAMPS = 16,   /* at least one stamp is user-space */
	ROW_IS_POOLING = 32,    /* last_event_ns is the end of the whole body */
	ROW_COUNTED = 64,       /* tokens_out comes from re-tokenizing the text */
	ROW_COUNT_UNKNOWN = 128,/* no usage and no tokenizer: 1 token assumed */
	ROW_GIVEN_UP = 256,     /* cancelled as planned */
	ROW_ROLE_FIRST = 512,   /* the first token event has only a role */
	ROW_USAGE_REFUSED = 1024,/* the server sent an impossible token count, which is not used */
	ROW_BAD_CALL = 4096,    /* a tool call whose arguments are not a JSON object */
	ROW_HAS_CACHED = 8192,  /* the server reported the number of cached prompt tokens */
	ROW_DROPPED = 2048,     /* cancelled because a request that it waited for failed */
};

/*
 * Result of checking an answer against its constraint (a schema, a pattern...). Upstream's rule
 * differs from ours; both results are kept.
 */
enum row_correctness {
	ROW_HAS_CONSTRAINT = 1,
	ROW_CONSTRAINED = 2,       /* the constraint was sent to the server */
	ROW_SCORED = 4,
	ROW_CORRECT = 8,
	ROW_UPSTREAM_SCORED = 16,
	ROW_UPSTREAM_CORRECT = 32,
	ROW_WRONG_SHIFT = 6,       /* enum row_wrong from here on */
};

/* Why a scored answer is not correct. */
#define ROW_WRONGS(X)                                                                     \
	X(NONE, "none") X(PARSE, "parse") X(SCHEMA, "schema") X(MATCH, "no_match")        \
	X(TRUNCATED, "truncated")
#define X(name, text) WRONG_##name,
enum row_wrong { ROW_WRONGS(X) WRONG_COUNT };
#undef X

/*
 * The columns of a request: X(C type, name, unit, meaning). The list makes the
 * struct, the file's column directory and docs/record-format.md.
 */
#define RECORD_COLUMNS(X)                                                                 \
	X(f64, due_s, "s", "due time from the start of its phase; for successors, from the parent's end") \
	X(i64, due_ns, "ns", "due instant")                                                \
	X(i64, admitted_ns, "ns", "taken from the plan and given a slot under the cap")    \
	X(i64, connect_ns, "ns", "connecting began; 0 when a kept connection was used")    \
	X(i64, connected_ns, "ns", "TCP (and TLS) ready")                                  \
	X(i64, sent_ns, "ns", "clock read just before the first byte was written")         \
	X(i64, sent_all_ns, "ns", "last request byte handed to the kernel")                \
	X(i64, first_byte_ns, "ns", "first byte of the answer")                            \
	X(i64, first_event_ns, "ns", "first token event (ends TTFT)")                      \
	X(i64, first_reasoning_ns, "ns", "first event with reasoning text")                \
	X(i64, first_answer_ns, "ns", "first event with non-empty answer text")            \
	X(i64, first_content_ns, "ns", "first event with reasoning, answer text, a tool call or a refusal") \
	X(i64, last_event_ns, "ns", "last token event (ends E2EL)")                        \
	X(i64, end_ns, "ns", "end of the answer, or of the attempt")                       \
	X(i64, user_first_event_ns, "ns", "user-space clock when the first event was read") \
	X(i64, user_last_event_ns, "ns", "user-space clock when the last event was read")  \
	X(i64, priority, "", "its class: lower is served earlier; 0 if not given") \
	X(u32, sample, "", "index in the workload")                                        \
	X(u32, parent, "", "row this one waited for; RECORD_NONE for roots")               \
	X(u32, history, "", "row whose history and answer it continues; RECORD_NONE for none") \
	X(u32, session, "", "conversation; RECORD_NONE for none")                          \
	X(u32, n_events, "events", "token events")                                         \
	X(u32, n_reasoning, "events", "of these, with reasoning text")                     \
	X(u32, n_answer, "events", "of these, with non-empty answer text")                 \
	X(u32, n_other, "events", "of these, with a tool call or a refusal")               \
	X(u32, n_shared, "events", "events with the stamp of an earlier event: in one read or segment") \
	X(u32, prompt_tokens, "tokens", "prompt length: the sample's, replaced by the server's usage") \
	X(u32, sample_prompt_tokens, "tokens", "prompt length the workload states")        \
	X(u32, asked_tokens, "tokens", "output length asked for")                          \
	X(u32, output_tokens, "tokens", "from usage, else counted when scoring")           \
	X(u32, reasoning_tokens, "tokens", "from usage details; 0 if not reported")          \
	X(u32, cached_tokens, "tokens", "from usage details; 0 if not reported")             \
	X(u32, ignored_prompt_tokens, "tokens", "from usage that was ignored: in events with choices") \
	X(u32, ignored_output_tokens, "tokens", "output tokens from the same ignored usage; 0 for none") \
	X(u32, all_text_tokens, "tokens", "counted from all text, reasoning and tool calls included; 0: not") \
	X(u32, request_bytes, "bytes", "head and body sent")                               \
	X(u32, answer_bytes, "bytes", "received, heads and framing included")              \
	X(u32, sequences, "", "input sequences in the request")                            \
	X(f32, audio_s, "s", "audio in the request")                                       \
	X(u16, shard, "", "loop that owned it")                                            \
	X(u16, endpoint, "", "index of the base URL")                                      \
	X(u16, lora, "", "index of the LoRA module; UINT16_MAX for none")                  \
	X(u16, turn, "", "turn in its session")                                            \
	X(u16, status, "", "HTTP status; 0 when none arrived")                             \
	X(u16, flags, "", "enum request_flags")                                            \
	X(u16, correctness, "", "enum row_correctness")                                    \
	X(u8, phase, "", "enum request_phase")                                             \
	X(u8, fail, "", "enum fail_category")                                              \
	X(u8, finish, "", "enum finish_reason")                                            \
	X(u8, attempts, "", "times the request was written; 1 without retries")            \
	X(u8, state, "", "enum request_state; written last")

typedef int64_t record_i64;
typedef double record_f64;
typedef float record_f32;
typedef uint32_t record_u32;
typedef uint16_t record_u16;
typedef uint8_t record_u8;

struct request_row {
#define X(type, name, unit, meaning) record_##type name;
	RECORD_COLUMNS(X)
#undef X
	/* Chains; private to record/. Block index + 1, 0 = none. */
	uint32_t gap_head, gap_tail, skew_head, skew_tail, text_head, text_tail, error_head,
		error_tail;
	uint32_t other_head, other_tail;
	uint32_t mark_head, mark_tail;
	uint32_t text_bytes, error_bytes; /* text is kept as it came: JSON-escaped answer text */
	uint32_t other_bytes; /* of reasoning, tool calls, refusals; not in record files */
	uint32_t first_text_bytes; /* of text_bytes, those of the first event with text */
};

struct gap_block { uint32_t next; uint32_t gap[EVENT_GAPS]; };
struct text_block { uint32_t next; char bytes[TEXT_BYTES]; };

enum mark_kind {
	MARK_TOKENS = 1,   /* this event carries value tokens, not 1 */
	MARK_EMPTY,        /* no content (role chunk, finish chunk) */
	MARK_SHARED,       /* same stamp as the event before: value is an enum record_shared */
	MARK_ANSWER,       /* first answer text after reasoning */
	MARK_LONG_GAP,     /* value is the gap in microseconds; read from older files only */
	MARK_BAD_EVENT,    /* an event that could not be read */
	MARK_GAP_HIGH,     /* value is the upper half of a long gap in nanoseconds... */
	MARK_GAP_LOW,      /* ...and its lower half, right after it */
};
/* Why two events have the same stamp: what they came in. */
enum record_shared {
	SHARED_READ = 1,   /* one read: they may have arrived at different times */
	SHARED_SEGMENT,    /* one segment: they arrived together */
};
struct record_mark { uint32_t next; uint32_t event; uint32_t kind; uint32_t value; };

struct record_shard {
	struct slab gaps, texts, marks;
	uint32_t free_text; /* reusable text blocks: index + 1 of the first, 0 = none */
	bool keeps_skew, keeps_text;
	bool is_full;      /* a slab's maximum was reached: chains are incomplete */
};

struct record_series {
	const char *name, *unit, *labels;
	struct { int64_t at_ns; double value; } *point;
	size_t n, cap;
};
struct record_note { int64_t at_ns; const char *kind, *text; };

struct record {
	struct request_row *row;     /* rows of all phases; main rows first, in plan order */
	struct disk *disk;           /* private: keeps rows and chains in files; NULL: in memory */
	size_t disk_rows_bytes;      /* private: bytes of rows in a file; 0: they are on the heap */
	uint32_t n_rows, rows_cap;
	struct record_shard *shard;
	uint32_t n_shards;
	struct record_series **series; size_t n_series; /* each has a fixed address */
	struct record_note *note; size_t n_notes;
	struct arena arena;          /* meta text, names, notes */
	const char *meta;            /* JSON object, see docs/record-format.md; NULL until set */
	int64_t start_ns;            /* main phase: the instant due_s = 0 */
	int64_t stop_ns;             /* main phase: the last request ended */
	bool is_interrupted;
};

/*
 * Allocates rows_cap rows and n_shards shards; events_hint: expected token events. Memory for that
 * many, at most PREFAULT_EVENTS_MAX, is allocated now, for more when they come.
 */
int record_init(struct record *r, uint32_t rows_cap, uint32_t n_shards, uint64_t events_hint,
		bool keeps_skew, bool keeps_text, struct err *e);
/*
 * Call right after record_init without a hint: keeps rows and chains in files without a name in the
 * folder (NULL: TMPDIR), so that a long run takes as much memory as a short one; see disk.h. -1: no
 * space or no support for such files there; the record stays in memory, at least partly.
 */
int record_to_disk(struct record *r, const char *folder, struct err *e);
void record_release(struct record *r);
/* n new zeroed rows (parent, session = RECORD_NONE, lora = UINT16_MAX); index of the first. */
uint32_t record_add_rows(struct record *r, uint32_t n);

/* ---- hot path: only the owning shard's thread ---- */

/*
 * Appends a token event that arrived gap_ns after the last (or after sent). False when the shard is
 * full: it is not counted.
 */
bool record_event(struct record_shard *s, struct request_row *row, int64_t gap_ns, int64_t skew_ns);
/* Marks the event that record_event appends next. */
void record_mark(struct record_shard *s, struct request_row *row, enum mark_kind kind,
		 uint32_t value);
void record_text(struct record_shard *s, struct request_row *row, struct str escaped);
/* Text that is not part of the answer, kept until the row's tokens are known. */
void record_other_text(struct record_shard *s, struct request_row *row, struct str escaped);
void record_drop_other_text(struct record_shard *s, struct request_row *row);
/* Appends. First line: what upstream would report; more lines: our additions (an error's body). */
void record_error(struct record_shard *s, struct request_row *row, struct str text);
/* Publishes the row: state written last, with release. */
void record_finish(struct request_row *row, enum request_state state);

/* ---- reading ---- */

/*
 * sent_ns and first_event_ns of a row may be read from any thread while it runs: 0, or the stamp.
 */
static inline int64_t record_stamp(const int64_t *stamp)
{
	return __atomic_load_n(stamp, __ATOMIC_RELAXED);
}
static inline void record_set_stamp(int64_t *stamp, int64_t ns)
{
	__atomic_store_n(stamp, ns, __ATOMIC_RELAXED);
}

/* The row has ended and may be read from any thread: this pairs with record_finish. */
static inline bool record_is_published(const struct request_row *row)
{
	return __atomic_load_n(&row->state, __ATOMIC_ACQUIRE) >= REQ_DONE;
}

/* The row's gaps in ns, in order, into out[n_events]; escapes resolved. */
void record_gaps(const struct record *r, const struct request_row *row, int64_t *out);
void record_skews(const struct record *r, const struct request_row *row, int64_t *out);
/* As it came: JSON-escaped. */
void record_text_of(const struct record *r, const struct request_row *row, struct buf *out);
void record_other_text_of(const struct record *r, const struct request_row *row,
			  struct buf *out);
void record_error_of(const struct record *r, const struct request_row *row, struct buf *out);
/* Marks of a row in order: pass NULL first, then what came back; NULL at the end. */
const struct record_mark *record_marks(const struct record *r, const struct request_row *row,
				       const struct record_mark *after);

/* ---- telemetry, off the loop ---- */

struct record_series *record_series_add(struct record *r, const char *name, const char *unit,
					const char *labels);
void record_series_point(struct record_series *s, int64_t at_ns, double value);
/*
 * Whether an earlier series has the same name and labels as series i, for example because several
 * client hosts read the same server.
 */
bool record_series_is_repeated(const struct record *r, size_t i);
void record_note_add(struct record *r, int64_t at_ns, const char *kind, const char *text);

const char *fail_name(enum fail_category c);
const char *finish_name(enum finish_reason r);
const char *wrong_name(enum row_wrong w);
