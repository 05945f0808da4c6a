/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_dataset.c - the rules between a dataset's options; see serve_opts_internal.h.
 *
 * Rules of a single dataset are in its own check (data/dataset.h), which runs with everything else
 * before the dataset is built.
 */
#include <inttypes.h>
#include <string.h>

#include "bench/options/salt.h"
#include "bench/options/serve_opts_internal.h"
#include "core/base/limits.h"
#include "input/data/lengths.h"
#include "input/sets/datasets.h"

static bool reads(const struct dataset *d, const char *option)
{
	for (const char *const *name = d->options; name && *name; name++)
		if (strcmp(*name, option) == 0)
			return true;
	return false;
}

/* Options that only other datasets read. */
static void warn_other_datasets(const struct serve_check *c, const struct dataset *d)
{
	size_t n;
	const struct dataset *const *all = dataset_all(&n);

	for (size_t i = 0; i < n; i++) {
		for (const char *const *name = all[i]->options; name && *name; name++) {
			bool is_said = reads(d, *name) || !serve_given(c, *name);

			for (size_t j = 0; j < i && !is_said; j++)
				is_said = reads(all[j], *name);
			if (!is_said)
				serve_warn(c, "--%s has no effect: the dataset is %s", *name, d->name);
		}
	}
}

/* Sets of which only some texts are templated: not those that were asked for. */
static void warn_template(const struct serve_check *c, const struct dataset *d)
{
	static const char *const option[] = { "chat-prefix", "chat-suffix", "chat-template-kwargs" };

	if (!d->is_templated_for || d->is_templated_for(&c->o->data))
		return;
	for (size_t i = 0; i < sizeof(option) / sizeof(*option); i++)
		if (reads(d, option[i]) && serve_given(c, option[i]))
			serve_warn(c, "--%s has no effect: these prompts are put through no chat template",
				   option[i]);
}

/* An option that is a length in tokens. */
struct length {
	const char *option;
	int64_t *tokens;       /* NULL: */
	struct opt_int *maybe; /* one that may be unset */
	int64_t least;         /* with the dataset that reads it */
	bool is_output;        /* --output-len sets it */
};
#define LENGTHS 15
#define OWN_ROW (-1) /* each row has its own */

static void find_lengths(struct dataset_opts *o, struct length out[LENGTHS])
{
	const struct length all[LENGTHS] = {
		{ "random-input-len", &o->random_input_len, NULL, INT64_MIN, false },
		{ "random-output-len", &o->random_output_len, NULL, INT64_MIN, true },
		{ "random-prefix-len", &o->random_prefix_len, NULL, INT64_MIN, false },
		{ "custom-output-len", &o->custom_output_len, NULL, OWN_ROW, true },
		{ "sharegpt-output-len", NULL, &o->sharegpt_output_len, 0, true },
		{ "spec-bench-output-len", &o->spec_bench_output_len, NULL, OWN_ROW, true },
		{ "speed-bench-output-len", &o->speed_bench_output_len, NULL, OWN_ROW, false },
		{ "sonnet-input-len", &o->sonnet_input_len, NULL, INT64_MIN, false },
		{ "sonnet-output-len", &o->sonnet_output_len, NULL, 0, false },
		{ "sonnet-prefix-len", &o->sonnet_prefix_len, NULL, INT64_MIN, false },
		{ "prefix-repetition-prefix-len", &o->prefix_repetition_prefix_len, NULL, INT64_MIN,
		  false },
		{ "prefix-repetition-suffix-len", &o->prefix_repetition_suffix_len, NULL, INT64_MIN,
		  false },
		{ "prefix-repetition-output-len", &o->prefix_repetition_output_len, NULL, 0, true },
		{ "hf-output-len", NULL, &o->hf_output_len, 0, true },
		{ "conversations-output-len", NULL, &o->conversations_output_len, INT64_MIN, true },
	};

	memcpy(out, all, sizeof(all));
}

/*
 * Checks lengths of the dataset in use; upstream sends wrong requests or changes the values
 * silently.
 */
static int check_lengths(const struct serve_check *c, const struct dataset *d)
{
	const struct dataset_opts *o = &c->o->data;
	struct length row[LENGTHS];

	find_lengths(&c->o->data, row);
	for (size_t i = 0; i < LENGTHS; i++) {
		int64_t tokens = row[i].tokens ? *row[i].tokens : row[i].maybe->v;

		if (tokens > LENGTH_TOKENS_MAX)
			return err_set(c->e, ERR_USAGE, "--%s: expected at most %u tokens, got %" PRId64,
				       row[i].option, LENGTH_TOKENS_MAX, tokens);
		if (tokens < row[i].least && reads(d, row[i].option))
			return err_set(c->e, ERR_USAGE, "--%s: expected 0 or more tokens%s, got %" PRId64,
				       row[i].option, row[i].least == OWN_ROW ?
				       ", or -1 for each row's own" : "", tokens);
	}
	if (reads(d, "random-output-len") && o->random_output_len < 1)
		serve_warn(c, "--random-output-len %" PRId64 " is below 1: one token is asked for",
			   o->random_output_len);
	if (reads(d, "random-prefix-len") && o->random_prefix_len < 0)
		serve_warn(c, "--random-prefix-len is below 0 and has no effect");
	return 0;
}

static void apply_shortcuts(const struct serve_check *c, const struct dataset *d)
{
	struct serve_opts *o = c->o;
	struct length row[LENGTHS];
	bool is_read = false;

	if (o->input_len.is_set) {
		if (serve_given(c, "random-input-len") &&
		    o->data.random_input_len != o->input_len.v)
			serve_warn(c, "--random-input-len is overridden by --input-len");
		o->data.random_input_len = o->input_len.v;
	}
	if (!o->output_len.is_set)
		return;
	find_lengths(&o->data, row);
	for (size_t i = 0; i < LENGTHS; i++) {
		if (!row[i].is_output)
			continue;
		is_read |= reads(d, row[i].option);
		if (serve_given(c, row[i].option))
			serve_warn(c, "--%s is overridden by --output-len", row[i].option);
		if (row[i].tokens)
			*row[i].tokens = o->output_len.v;
		else
			*row[i].maybe = o->output_len;
	}
	if (!is_read)
		serve_warn(c, "--output-len has no effect: the dataset is %s", d->name);
}

/* --multi-turn of upstream's Rust client. */
static int check_multi_turn(const struct serve_check *c, const struct dataset *d)
{
	static const char *const only_with[] = {
		"multi-turn-num-turns", "multi-turn-min-turns", "multi-turn-max-turns",
		"multi-turn-concurrency", "multi-turn-delay-ms", "per-turn-input-len",
		"multi-turn-prefix-global-ratio", "multi-turn-prefix-conversation-ratio",
		"multi-turn-turns-dist", "multi-turn-delay-dist", "multi-turn-system-len",
		"multi-turn-session-prefix-len",
	};
	struct serve_opts *o = c->o;
	struct json_scan scan = { str_of(o->extra_body.text), 0 };
	struct json_slice extra, v;

	for (size_t i = 0; !o->data.multi_turn && i < sizeof(only_with) / sizeof(*only_with); i++)
		if (serve_given(c, only_with[i]))
			serve_warn(c, "--%s has no effect without --multi-turn", only_with[i]);
	if (!o->data.multi_turn)
		return 0;
	if (!reads(d, "multi-turn"))
		return err_set(c->e, ERR_USAGE, "--multi-turn: conversations are made of --dataset-name "
			       "random, sharegpt or hf, not of %s", d->name);
	if (o->multi_turn_concurrency.is_set)
		o->max_concurrency = o->multi_turn_concurrency;
	o->data.multi_turn_asks_min_tokens = !o->ignore_eos && serve_is_openai(c) &&
		!(o->extra_body.text && json_next(&scan, &extra, NULL) == 0 &&
		  json_member(extra, "min_tokens", &v));
	return 0;
}

/* Prompts that a prefix cache is to find again must be sent unchanged. */
static int check_reuse(const struct serve_check *c)
{
	struct serve_opts *o = c->o;
	bool is_warm = o->data.warmup_pass && strcmp(o->data.warmup_pass, "same") == 0;

	if ((o->data.repeat_count > 1 || is_warm) && str_starts(str_of(o->prompt_salt), STR("request")))
		return err_set(c->e, ERR_USAGE, "--prompt-salt %s makes every prompt differ from all "
			       "others, and --%s sends prompts again; use --prompt-salt run",
			       o->prompt_salt, is_warm ? "warmup-pass same" : "repeat-count");
	if (is_warm && o->reset_prefix_cache)
		serve_warn(c, "--reset-prefix-cache empties the cache that --warmup-pass same has filled");
	if (is_warm && o->num_runs > 1 && str_starts(str_of(o->prompt_salt), STR("run")))
		serve_warn(c, "--warmup-pass same warms up the first run alone: --prompt-salt run gives "
			   "each later one other prompts");
	/*
	 * Later runs would be measured on the first run's prompts, unless a warm cache was asked
	 * for.
	 */
	if (o->num_runs > 1 && !is_warm && serve_is_salt_free(o, c->result))
		o->prompt_salt = salt_kind_name(SALT_FRESH);
	return 0;
}

int serve_check_dataset(const struct serve_check *c)
{
	struct serve_opts *o = c->o;
	const struct dataset *d = dataset_find(o->dataset_name);

	if (o->multi_turn)
		return 0; /* it reads its own conversations */
	if (!d)
		return err_set(c->e, ERR_USAGE, "--dataset-name: unknown dataset '%s'",
			       o->dataset_name);
	if (d->forbids_path && o->data.path)
		return err_set(c->e, ERR_USAGE, "--dataset-path %.300s: the %s dataset reads no file; "
			       "--dataset-name says what the file holds, such as sharegpt, custom or hf",
			       o->data.path, o->dataset_name);
	warn_other_datasets(c, d);
	warn_template(c, d);
	apply_shortcuts(c, d);
	if (check_lengths(c, d) < 0 || check_multi_turn(c, d) < 0 || check_reuse(c) < 0)
		return -1;
	if (d->ignores_eos && serve_is_openai(c) && !o->data.multi_turn)
		o->ignore_eos = true;
	if (d->has_timestamps && o->self_timed == OPT_TRI_UNSET)
		o->self_timed = OPT_TRI_YES;
	if (o->self_timed == OPT_TRI_YES &&
	    (serve_given(c, "request-rate") || c->d->ramp_up != RAMP_NONE))
		serve_warn(c, "%s has no effect: requests are sent at the trace's times",
			   serve_given(c, "request-rate") ? "--request-rate" : "--ramp-up-strategy");
	if (!d->has_timestamps && !d->may_have_timestamps && o->self_timed != OPT_TRI_UNSET)
		return err_set(c->e, ERR_USAGE, "--%sself-timed: only the datasets trace and "
			       "timed_trace have arrival times, not %s", o->self_timed == OPT_TRI_NO ? "no-" : "",
			       d->name);
	if (d->is_whole && !serve_given(c, "num-prompts"))
		o->num_prompts = 0;
	if (o->num_prompts <= 0 && !d->takes_all)
		return err_set(c->e, ERR_USAGE, "--num-prompts: expected at least 1, got %" PRId64,
			       o->num_prompts);
	return 0;
}

int serve_check_range_ratio(const struct serve_check *c)
{
	struct dataset_opts *o = &c->o->data;

	return range_ratio_parse("--random-range-ratio", o->random_range_ratio,
				 &o->input_range_ratio, &o->output_range_ratio, c->e);
}
