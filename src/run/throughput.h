/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/throughput.h - `bench throughput`: a whole set of requests at once, and how many of them and
 * of their tokens an engine works off in a second (sweep spec 3).
 *
 * Options, their rules, the requests and the printed numbers are those of vLLM's command, with one
 * exception: an option that was typed counts. vLLM lets defaults override --input-len and the name
 * of a dataset without a file; --compat restores that, with a warning that names the values in
 * force.
 */
#pragma once
#include "report/gate.h"
#include "run/offline_data.h"
#include "run/offline_opts.h"

struct throughput_opts {
	struct offline_opts common;  /* first: offline_opts.h */
	struct offline_data data;    /* after the check: what is drawn */
	struct opt_int custom_output_len, input_len, output_len;
	int64_t n;                   /* sequences for each prompt */
	struct opt_int hf_max_batch_size;
	bool hf_enable_torch_compile;
	const char *output_json;     /* NULL: no file */
	bool async_engine, prequeue_requests, disable_detokenize;
	const char *lora_path;       /* NULL: none */
	const char *lora_assignment; /* "random", "round-robin" */
	int64_t prefix_len;
	bool profile;
	struct opt_int repeat_prefix_len, repeat_suffix_len, repeat_num_prefixes, repeat_output_len;
	/* ours */
	int64_t num_runs;
	const char *dump_workload;   /* NULL: no file */
	const char *chat_prefix, *chat_suffix; /* as typed; NULL: not given */
	struct gate_opts gate;
};
extern const struct opt_set throughput_opt_set;
extern const struct offline_verb throughput_verb;

enum throughput_fix {
	THROUGHPUT_FIX_TOKENS = 1,   /* tokens are counted wherever the engine reports them */
};
enum throughput_compat {
	THROUGHPUT_COMPAT_LENGTHS = 1, /* --input-len loses to the default of --random-input-len */
	THROUGHPUT_COMPAT_DATASET = 2, /* sets without a file become random */
};

/* What follows from the options. */
struct throughput_plan {
	const char *backend;     /* as upstream calls it: "vllm", "vllm-chat", "hf", or ours */
	bool is_async;
	bool is_random_by_default; /* upstream says so on stdout */
	/* Upstream takes the requested numbers of tokens, one sequence each. */
	bool is_as_requested;
	bool is_own_dataset;     /* a set that upstream's command does not have */
};

/*
 * Upstream's rules in upstream's order, with its texts (ERR_RUN); what it would ignore is a line
 * in notes. Fills the lengths and the name in force into o->data.
 */
int throughput_check(struct throughput_opts *o, const struct opt_result *given,
		     const struct offline_engine *engine, struct throughput_plan *out,
		     struct buf *notes, struct err *e);
/* A result as these options give it, of made-up values: which keys it has. */
void throughput_example(const struct throughput_opts *o, struct buf *out);
/*
 * Runs it, says it through hooks->line, and writes --output-json. With --dry-run the requests are
 * drawn and described, and nothing is started.
 */
int throughput_run(const struct throughput_opts *o, const struct throughput_plan *plan,
		   const struct offline_engine *engine, const struct offline_hooks *hooks,
		   struct err *e);
