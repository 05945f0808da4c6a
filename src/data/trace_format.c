/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_format.c - the families of traces; conversations spec 6.1.
 *
 * The order is that of detection: the first family whose is_its holds for the file's first row.
 */
#include "data/trace_source.h"

#include <math.h>

#define TURN_MAX 1000000000 /* the number of a turn in its session */

static bool has(struct json_slice row, const char *column)
{
	struct json_slice v;

	return json_member(row, column, &v);
}

/* ---- Bailian ---- */

static bool is_bailian(struct json_slice row)
{
	return has(row, "chat_id") && has(row, "parent_chat_id");
}

static int read_bailian(struct trace_source *s, size_t i, struct json_slice row,
			struct trace_row *out, struct err *e)
{
	double turn, parent;
	int rc = trace_number(s, i, row, "turn", &turn, e);

	if (rc < 0)
		return -1;
	if (rc && (turn < 0 || turn > TURN_MAX))
		return trace_refuse(s, i, e, "\"turn\" must be a number from 0 to %d, got %g", TURN_MAX,
				    turn);
	out->turn = rc ? (int64_t)turn : 0;
	if (!json_member(row, "chat_id", &out->id))
		return trace_refuse_missing(s, i, row, "chat_id", e);
	rc = trace_number(s, i, row, "parent_chat_id", &parent, e);
	if (rc <= 0)
		return rc < 0 ? -1 : trace_refuse_missing(s, i, row, "parent_chat_id", e);
	out->key = trace_key(s, row, "chat_id");
	out->parent = parent < 0 ? TRACE_NOBODY : trace_key(s, row, "parent_chat_id");
	return 0;
}

/* ---- Azure, BurstGPT, ServeGen ---- */

static bool is_azure(struct json_slice row)
{
	return has(row, "TIMESTAMP");
}

static bool is_burstgpt(struct json_slice row)
{
	return has(row, "Request tokens");
}

static bool is_servegen(struct json_slice row)
{
	return has(row, "request_id") && !has(row, "timestamp");
}

static bool is_mooncake(struct json_slice row)
{
	return has(row, "timestamp") && (has(row, "input_length") || has(row, "hash_ids"));
}

/* ---- aiperf ---- */

static bool is_aiperf(struct json_slice row)
{
	return has(row, "payload") || has(row, "messages") || has(row, "text_input") ||
	       (has(row, "input_length") && (has(row, "session_id") || has(row, "delay") ||
					     has(row, "extra") || !has(row, "timestamp")) &&
		!has(row, "request_id"));
}

static int read_content(const struct trace_source *s, size_t i, struct json_slice row,
			struct trace_row *out, struct err *e)
{
	static const char *const names[] = { "input_length", "text_input", "messages", "payload" };
	static const enum json_kind kinds[] = { JSON_INT, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
	struct json_slice none, *const to[] = { &none, &out->text, &out->messages, &out->payload };
	struct json_slice v;
	size_t n = 0;

	for (size_t k = 0; k < 4; k++) {
		if (!json_member(row, names[k], &v) || v.kind == JSON_NULL)
			continue;
		n++;
		if (k && v.kind != kinds[k])
			return trace_refuse(s, i, e, "\"%s\" must be %s", names[k], k == 1 ? "a text" :
					    k == 2 ? "a list of messages" : "an object");
		*to[k] = v;
	}
	if (n == 1)
		return 0;
	if (n == 0)
		return trace_refuse_missing(s, i, row, "input_length", e);
	return trace_refuse(s, i, e, "a row must have exactly one of input_length, text_input, messages "
			    "and payload, got %zu of them", n);
}

static int read_aiperf(struct trace_source *s, size_t i, struct json_slice row,
		       struct trace_row *out, struct err *e)
{
	double delay;
	int rc = trace_number(s, i, row, "delay", &delay, e);

	if (rc < 0 || read_content(s, i, row, out, e) < 0)
		return -1;
	if (rc && delay < 0)
		return trace_refuse(s, i, e, "\"delay\" must be 0 or more, got %g", delay);
	if (rc)
		out->delay_s = delay / s->per_s;
	if (json_member(row, "extra", &out->extra) && out->extra.kind != JSON_OBJECT)
		return trace_refuse(s, i, e, "\"extra\" must be an object");
	if (json_member(row, "tools", &out->tools) && out->tools.kind != JSON_ARRAY)
		return trace_refuse(s, i, e, "\"tools\" must be a list");
	out->key = trace_key(s, row, "session_id");
	json_member(row, "session_id", &out->id);
	return 0;
}

/* ---- the table ---- */

const struct trace_format trace_formats[] = {
	{ .name = "bailian", .title = "a Bailian (Qwen) trace",
	  .keys = "chat_id, parent_chat_id, timestamp, input_length, output_length, turn, hash_ids",
	  .time = "timestamp", .input = "input_length", .output = "output_length",
	  .ids = "hash_ids", .per_s = 1, .block = 16, .is_its = is_bailian,
	  .read = read_bailian },
	{ .name = "azure", .title = "an Azure trace",
	  .keys = "TIMESTAMP, ContextTokens, GeneratedTokens",
	  .time = "TIMESTAMP", .input = "ContextTokens", .output = "GeneratedTokens",
	  .per_s = 1, .is_clock = true, .is_its = is_azure },
	{ .name = "burstgpt", .title = "a BurstGPT trace",
	  .keys = "Timestamp, Model, Request tokens, Response tokens, Total tokens, Log Type",
	  .time = "Timestamp", .input = "Request tokens", .output = "Response tokens",
	  .per_s = 1, .is_its = is_burstgpt },
	{ .name = "aiperf", .title = "an aiperf mooncake_trace",
	  .keys = "input_length, text_input, messages or payload, output_length, timestamp, delay, "
		  "session_id, hash_ids",
	  .time = "timestamp", .input = "input_length", .output = "output_length",
	  .ids = "hash_ids", .per_s = 1e3, .block = 512, .is_time_optional = true,
	  .is_output_optional = true, .is_chain = true, .is_its = is_aiperf,
	  .read = read_aiperf },
	{ .name = "servegen", .title = "a ServeGen file of requests",
	  .keys = "request_id, type, input_length, and output_length or hash_ids",
	  .input = "input_length", .output = "output_length", .ids = "hash_ids", .per_s = 1,
	  .block = 16, .is_output_optional = true, .is_its = is_servegen },
	{ .name = "mooncake", .title = "a Mooncake trace",
	  .keys = "timestamp, input_length, output_length, hash_ids",
	  .time = "timestamp", .input = "input_length", .output = "output_length",
	  .ids = "hash_ids", .per_s = 1e3, .block = 512, .is_its = is_mooncake },
	{ .name = "record", .title = "a record of bench serve --record", .keys = "requests",
	  .time = "due_ns", .per_s = 1e9, .is_record = true },
};
const size_t trace_formats_n = sizeof(trace_formats) / sizeof(*trace_formats);
