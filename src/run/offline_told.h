/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/offline_told.h - what the result files of throughput, latency, startup and mm-processor say
 * of the engine that was measured, under "profllm": the same members in each, written once.
 *
 * version, command, backend, method, engine {name, version, device, max_model_len, told},
 * load {spawn_s, load_s, ready_s, compilation_s, encoder_compilation_s, phases}, host {...}.
 * What the engine did not tell is left out.
 */
#pragma once
#include "json/write.h"
#include "run/offline.h"
#include "run/offline_opts.h"

struct offline_told {
	const char *command;                 /* "latency" */
	const char *backend;                 /* as --backend says */
	const struct offline_about *about;   /* NULL: nothing was started */
	const struct offline_loaded *loaded; /* NULL: nothing to say of one load */
};

/* Members into the object that the caller has begun. */
void offline_told(struct json_writer *w, const struct offline_told *t);
/* "Engine: vllm 0.32.0 on cpu, in-process, loaded in 12.3 s"; without a line end. */
void offline_told_line(struct buf *out, const struct offline_told *t);
/* The member "engine_args": the engine's arguments, secrets redacted. */
void offline_told_args(struct json_writer *w, const struct offline_engine *engine);
/* The same object of a made-up engine: which keys there are. */
void offline_told_example(const char *command, struct buf *out);
/* Hands text to hooks->line, line by line, and empties it. */
void offline_say(const struct offline_hooks *hooks, struct buf *text);
