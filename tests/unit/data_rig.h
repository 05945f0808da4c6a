/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_rig.h - a dataset built from a file of the test's own, with the built-in tokenizer.
 *
 * Its tokens: a space and three lower-case letters are one, any other byte is one.
 */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/chat/chat.h"
#include "input/sets/datasets.h"
#include "input/token/tokenizer.h"
#include "answers.h"
#include "scratch.h"

struct fixture {
	struct dataset_opts opts;
	struct dataset_env env;
	struct chat_wrap chat;
	struct compat_rng rng;
	struct workload w;
	struct tokenizer *tokenizer;
	char path[64];
	struct err e;
};

/* name: the file's, in the scratch folder, which becomes --dataset-path; NULL: none. */
static void fixture_init(struct fixture *f, const char *name, const char *content)
{
	memset(f, 0, sizeof(*f));
	f->tokenizer = tokenizer_load("sim", NULL, &f->e);
	assert_non_null(f->tokenizer);
	f->opts = (struct dataset_opts){
		.random_input_len = 1024, .random_output_len = 128, .custom_output_len = 256,
		.spec_bench_output_len = 256, .speed_bench_output_len = 4096,
		.speed_bench_dataset_subset = "qualitative",
		.sonnet_input_len = 550, .sonnet_output_len = 150, .sonnet_prefix_len = 200,
		.timed_trace_chunk_hash_size = 16, .timed_trace_sec_multiplier = 1,
		.timed_trace_label_timestamp = "timestamp",
		.timed_trace_label_input_length = "input_length",
		.timed_trace_label_output_length = "output_length",
		.timed_trace_label_hash_ids = "hash_ids",
	};
	f->env = (struct dataset_env){
		.num_prompts = 4, .tokenizer = f->tokenizer, .request_id_prefix = "r-",
		.chat = &f->chat,
	};
	if (name) {
		snprintf(f->path, sizeof(f->path), "%s/%s", dir, name);
		assert_int_equal(file_write_atomic(f->path, str_of(content), &f->e), 0);
		f->opts.path = f->path;
	}
	compat_rng_seed(&f->rng, (uint32_t)f->env.seed);
}

/* What was made, with the beginnings of its texts. */
static void check_made(const struct workload *w)
{
	struct buf out = { 0 };

	buf_printf(&out, "%zu of %s%s%s%s%s\n%.*s", w->n, w->dataset ? w->dataset : "-",
		   w->is_eos_ignored ? ", EOS ignored" : "", w->is_self_timed ? ", self timed" : "",
		   w->has_priorities ? ", priorities" : "", w->sessions ? ", sessions" : "",
		   (int)w->notes.n, w->notes.p);
	for (size_t i = 0; i < w->n && i < 8; i++) {
		const struct sample *v = &w->v[i];
		const struct str part[] = { v->prompt, v->request_id, v->messages, v->media,
					    v->overrides, v->headers, v->expected, v->constraint };

		buf_printf(&out, "kind %d, %u to %lld tokens, at %g, class %lld, %u sequences\n",
			   (int)v->kind, v->prompt_len, (long long)v->output_len, v->timestamp_s,
			   (long long)v->priority, v->sequences);
		for (size_t k = 0; k < sizeof(part) / sizeof(*part); k++)
			if (part[k].n)
				buf_printf(&out, "  %zu: %zu bytes: %.*s\n", k, part[k].n,
					   (int)(part[k].n < 120 ? part[k].n : 120), part[k].p);
	}
	answers_release(&out);
}

static int build(struct fixture *f, const char *name)
{
	const struct dataset *d = dataset_find(name);

	assert_non_null(d);
	if ((d->check && d->check(&f->opts, &f->env, &f->e) < 0) ||
	    d->build(&f->opts, &f->env, &f->rng, &f->w, &f->e) < 0)
		return -1;
	check_made(&f->w);
	return 0;
}

static void fixture_release(struct fixture *f)
{
	if (*f->path)
		unlink(f->path);
	workload_release(&f->w);
	tokenizer_free(f->tokenizer);
}

/* The same once more, into an empty workload. */
__attribute__((unused))
static int build_again(struct fixture *f, const char *name)
{
	workload_release(&f->w);
	compat_rng_seed(&f->rng, (uint32_t)f->env.seed);
	return build(f, name);
}

/* The workload's i-th prompt is this text. */
__attribute__((unused))
static void assert_prompt(const struct fixture *f, size_t i, const char *want)
{
	assert_in_range(i, 0, f->w.n - 1);
	if (!str_is(f->w.v[i].prompt, want))
		fail_msg("prompt %zu: %.*s, not %s", i, (int)f->w.v[i].prompt.n,
			 f->w.v[i].prompt.p, want);
}

/* A build that is refused with this in the sentence. */
__attribute__((unused))
static void assert_refused(struct fixture *f, const char *name, const char *want)
{
	f->e = (struct err){ 0 };
	workload_release(&f->w);
	assert_int_equal(build(f, name), -1);
	if (!strstr(f->e.text, want))
		fail_msg("%s: \"%s\", not \"%s\"", name, f->e.text, want);
}
