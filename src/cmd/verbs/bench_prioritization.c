/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_prioritization.c - `profllm bench prioritization`: in an engine, or with --base-url as a
 * run of bench serve, whose options are then accepted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/offline/prioritization.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/offline_talk.h"
#include "cmd/verbs/serve_once.h"
#include "core/base/mem.h"
#include "out/report/priorities.h"

/* ---- an engine ---- */

static int run(struct offline_talk *t, const struct prioritization_opts *o, struct err *e)
{
	if (prioritization_check(o, e) < 0)
		return -1;
	prioritization_notes(&t->engine, &t->cli.result.notes);
	offline_notes(t);
	if (o->common.dry_run)
		offline_show_plan(t);
	else if (o->output_json && target_check("--output-json", o->output_json, e) < 0)
		return -1;
	return prioritization_run(o, &t->engine, &t->hooks, e);
}

static int offline(int argc, char **argv)
{
	struct prioritization_opts opts;
	struct offline_talk talk;
	int status = offline_begin(&talk, &prioritization_opt_set, &prioritization_verb, argc, argv,
				   &opts);

	if (status != CLI_CONTINUE)
		return status;
	if (opts.output_json && !*opts.output_json)
		opts.output_json = NULL;
	if (opts.dataset && !*opts.dataset)
		opts.dataset = NULL;
	run(&talk, &opts, &talk.cli.err);
	return offline_end(&talk);
}

/* ---- a server ---- */

/* Options that bench serve has under another name, or not at all. */
enum own { OWN_DATASET, OWN_N, OWN_OUTPUT, OWN_BASELINE, OWN_DETOKENIZE, OWN_INPUT_LEN,
	   OWN_OUTPUT_LEN, OWNS };
static const struct { const char *name; bool has_value; } owns[OWNS] = {
	[OWN_DATASET] = { "dataset", true }, [OWN_N] = { "n", true },
	[OWN_OUTPUT] = { "output-json", true }, [OWN_BASELINE] = { "baseline", false },
	[OWN_DETOKENIZE] = { "disable-detokenize", false },
	[OWN_INPUT_LEN] = { "input-len", true }, [OWN_OUTPUT_LEN] = { "output-len", true },
};

struct online {
	const char *own[OWNS]; /* values; "" for those without; NULL: not given */
	char **argv;           /* for bench serve */
	int argc;
};

/*
 * Compares with "--name" or "--name=value", "_" equal to "-": the value, or "" without one; NULL:
 * different.
 */
static const char *is_option(const char *word, const char *name)
{
	if (word[0] != '-' || word[1] != '-')
		return NULL;
	for (word += 2; *name && (*word == '_' ? '-' : *word) == *name; name++)
		word++;
	if (*name || (*word && *word != '='))
		return NULL;
	return *word ? word + 1 : word;
}

static bool is_online(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (is_option(argv[i], "base-url"))
			return true;
	return false;
}

/* The arrays hold texts that live as long as argv; bench serve does not write to them. */
static void give(struct online *o, const char *text)
{
	o->argv[o->argc++] = (char *)(uintptr_t)text;
}

/* Takes out our own options; the others are bench serve's. */
static int sort_words(struct online *o, int argc, char **argv, struct err *e)
{
	for (int i = 0; i < argc; i++) {
		const char *value = NULL;
		int k = 0;

		while (k < OWNS && !(value = is_option(argv[i], owns[k].name)))
			k++;
		if (k == OWNS) {
			give(o, argv[i]);
			continue;
		}
		if (owns[k].has_value && !*value && i + 1 == argc)
			return err_set(e, ERR_USAGE, "--%s: expected a value", owns[k].name);
		o->own[k] = owns[k].has_value && !*value ? argv[++i] : value;
	}
	return 0;
}

static int check_own(const struct online *o, struct err *e)
{
	const struct prioritization_opts opts = {
		.dataset = o->own[OWN_DATASET], .input_len.is_set = o->own[OWN_INPUT_LEN] != NULL,
		.output_len.is_set = o->own[OWN_OUTPUT_LEN] != NULL,
	};

	return prioritization_check(&opts, e);
}

static bool is_given(const char *option, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (is_option(argv[i], option + 2))
			return true;
	return false;
}

/* What the script sends with every request, unless an option changes it, then the options. */
static int make_words(struct online *o, int argc, char **argv, struct err *e)
{
	static const char *const always[] = {
		"--dataset-name", "prioritization", "--num-prompts", "200", "--request-rate", "inf",
		"--temperature", "1", "--top-p", "1", "--ignore-eos",
	};
	static const struct { enum own own; const char *option; } passed[] = {
		{ OWN_DATASET, "--dataset-path" }, { OWN_INPUT_LEN, "--input-len" },
		{ OWN_OUTPUT_LEN, "--output-len" }, { OWN_N, "--extra-body.n" },
	};
	const size_t n_always = sizeof(always) / sizeof(*always);

	o->argv = mem_array((size_t)argc + n_always + 2 * OWNS + 4, sizeof(*o->argv));
	for (size_t i = 0; i < n_always; i++) {
		bool has_value = i + 1 < n_always && *always[i + 1] != '-';

		if (!is_given(always[i], argc, argv)) {
			give(o, always[i]);
			if (has_value)
				give(o, always[i + 1]);
		}
		i += has_value;
	}
	if (sort_words(o, argc, argv, e) < 0 || check_own(o, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++) {
		if (!o->own[passed[i].own])
			continue;
		give(o, passed[i].option);
		give(o, o->own[passed[i].own]);
	}
	if (o->own[OWN_BASELINE])
		give(o, "--reset-prefix-cache"); /* before either run */
	return o->own[OWN_OUTPUT] ? target_check("--output-json", o->own[OWN_OUTPUT], e) : 0;
}

static int serve(const struct online *o, struct serve_outcome *out)
{
	struct serve_opts opts;
	struct cli cli;
	int status = cli_begin(&cli, &serve_opt_set, o->argc, o->argv, &opts);

	return status == CLI_CONTINUE ? serve_once(&cli, &opts, out) : status;
}

static int64_t number(const char *text)
{
	int64_t v = 0;

	return text && str_to_i64(str_of(text), &v) ? v : 0;
}

/* Reads a result of bench serve. */
static int read_run(const struct serve_outcome *from, const struct online *o,
		    struct prioritization_facts *f, struct prioritization_run *run, struct err *e)
{
	const int64_t input = number(o->own[OWN_INPUT_LEN]);
	const int64_t output = number(o->own[OWN_OUTPUT_LEN]);
	struct arena a = { 0 };
	struct json_value *doc;

	if (json_parse(&a, buf_str(&from->result), &doc, e) < 0) {
		arena_release(&a);
		return err_wrap(e, "the result of bench serve");
	}
	*run = (struct prioritization_run){
		.elapsed_s = json_real(json_get(doc, "duration"), 0), .has_counts = true,
		.prompt_tokens = (uint64_t)json_int(json_get(doc, "total_input_tokens"), 0),
		.output_tokens = (uint64_t)json_int(json_get(doc, "total_output_tokens"), 0),
	};
	run->n_classes = report_classes_read(json_get(json_get(doc, "profllm"), "priorities"),
					     run->class);
	f->n = from->requests;
	f->asked_tokens = o->own[OWN_DATASET] ? from->asked_tokens :
			  f->n * (uint64_t)(input + output);
	arena_release(&a);
	return 0;
}

static void on_line(void *self, const char *text)
{
	(void)self;
	cli_line(text);
}

static int tell(const struct online *o, struct prioritization_facts *f, struct err *e)
{
	const struct offline_hooks hooks = { .line = on_line };
	struct buf ours = { 0 };
	struct json_writer w = json_writer(&ours);
	int rc;

	json_begin_object(&w);
	json_member_text(&w, "command", "prioritization");
	json_member_text(&w, "method", "server");
	json_member_text(&w, "dataset", o->own[OWN_DATASET]);
	json_end_object(&w);
	f->ours = buf_str(&ours);
	rc = prioritization_report(f, o->own[OWN_OUTPUT], &hooks, e);
	buf_release(&ours);
	return rc;
}

/* One run of bench serve, or two of the same requests. Returns its status, unless e is set. */
static int run_all(struct online *o, struct prioritization_facts *f, struct err *e)
{
	struct serve_outcome out = { 0 };
	int status = serve(o, &out);

	if (out.result.len == 0 || status != 0)
		goto done; /* --help, --dry-run, or a reported failure */
	if (read_run(&out, o, f, &f->run, e) < 0)
		goto done;
	if (o->own[OWN_BASELINE]) {
		buf_release(&out.result);
		give(o, "--omit-body-keys");
		give(o, "priority");
		status = serve(o, &out);
		if (out.result.len == 0 || status != 0 ||
		    read_run(&out, o, f, &f->baseline, e) < 0)
			goto done;
		f->has_baseline = true;
	}
	tell(o, f, e);
done:
	buf_release(&out.result);
	return status;
}

static int online(int argc, char **argv)
{
	struct prioritization_facts facts = { 0 };
	struct cli cli = { .set = &prioritization_opt_set };
	struct online o = { 0 };
	int status = 0, end;

	if (make_words(&o, argc, argv, &cli.err) == 0) {
		if (o.own[OWN_DETOKENIZE])
			cli_warn("--disable-detokenize has no effect with --base-url: a server always "
				 "answers with text");
		status = run_all(&o, &facts, &cli.err);
	}
	free(o.argv);
	end = cli_end(&cli);
	return status ? status : end;
}

int cmd_bench_prioritization(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (is_option(argv[i], "help"))
			return offline(argc, argv);
	return is_online(argc, argv) ? online(argc, argv) : offline(argc, argv);
}
