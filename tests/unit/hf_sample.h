/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_sample.h - a folder of rows, taken for a dataset of the hub, and what is made of it.
 */
#pragma once
#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/chat/chat.h"
#include "input/sets/datasets.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

static struct tokenizer *sim;
static unsigned folders;

struct fixture {
	struct dataset_opts opts;
	struct dataset_env env;
	struct chat_wrap chat;
	struct compat_rng rng;
	struct workload w;
	char path[64];
	struct buf rendered; /* what a renderer was given last */
	int render_rc;
	struct err e;
};

static void write_text(const char *folder, const char *name, const char *text)
{
	char *path = file_join(folder, name), *slash;
	struct err e;

	slash = strrchr(path, '/');
	*slash = 0;
	assert_int_equal(file_mkdirs(path, &e), 0);
	*slash = '/';
	assert_int_equal(file_write_atomic(path, str_of(text), &e), 0);
	free(path);
}

/* A folder of its own with train.jsonl in it, that is to be taken for what id names. */
static void start(struct fixture *f, const char *id, const char *rows)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->path, sizeof(f->path), "%s/%u", dir, folders++);
	write_text(f->path, "train.jsonl", rows);
	f->chat = (struct chat_wrap){ CHAT_FLAGS, .prefix = STR("<u>"), .suffix = STR("<a>") };
	f->opts = (struct dataset_opts){
		.path = f->path, .hf_name = id, .hf_split = "train", .disable_shuffle = true,
		.no_oversample = true, .blazedit_max_distance = 1, .asr_max_audio_len_sec = 1e9,
	};
	f->env = (struct dataset_env){
		.num_prompts = 100, .tokenizer = sim, .tokenizer_name = "sim", .chat = &f->chat,
		.request_id_prefix = "r-", .backend = "openai-chat", .is_chat_backend = true,
		.threads = 2, .render_self = f,
	};
	compat_rng_seed(&f->rng, 0);
}

static int build(struct fixture *f)
{
	const struct dataset *d = dataset_find("hf");

	if (d->check(&f->opts, &f->env, &f->e) < 0)
		return -1;
	return d->build(&f->opts, &f->env, &f->rng, &f->w, &f->e);
}

static void finish(struct fixture *f)
{
	workload_release(&f->w);
	buf_release(&f->rendered);
}

/* Builds n requests. */
static void expect(struct fixture *f, size_t n)
{
	if (build(f) < 0)
		fail_msg("%s", f->e.text);
	assert_int_equal(f->w.n, n);
}

/* Builds nothing and says why. */
static void expect_error(struct fixture *f, const char *part)
{
	assert_int_equal(build(f), -1);
	if (!strstr(f->e.text, part))
		fail_msg("'%s' is not in: %s", part, f->e.text);
	finish(f);
}

static void expect_note(const struct fixture *f, const char *part)
{
	if (!f->w.notes.n || !strstr(f->w.notes.p, part))
		fail_msg("'%s' is not in: %s", part, f->w.notes.n ? f->w.notes.p : "(no notes)");
}

static void is_text(struct str got, const char *wanted)
{
	if (!str_is(got, wanted))
		fail_msg("got:\n%.*s\nwanted:\n%s", (int)got.n, got.p, wanted);
}

static size_t tokens(const char *text)
{
	return tokenizer_count(sim, str_of(text), true);
}

static int load_tokenizer(void **state)
{
	struct err e;

	if (make_dir(state) < 0)
		return -1;
	sim = tokenizer_load("sim", NULL, &e);
	return sim ? 0 : -1;
}

static int free_tokenizer(void **state)
{
	tokenizer_free(sim);
	return remove_dir(state);
}
