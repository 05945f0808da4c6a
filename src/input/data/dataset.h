/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - one vtable and one table: a dataset is one file and one row.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>

#include "client/plan/workload.h"
#include "core/json/read.h"
#include "core/opt/opt.h"
#include "core/rng/rng.h"

struct chat_wrap;
struct dataset;
struct tokenizer;

/* Options of datasets; rows of options fill it (options/serve_rows.c). Lengths in tokens. */
struct dataset_opts {
	const char *path;                /* --dataset-path: file, folder or hub id; NULL: none */
	bool no_stream;                  /* hf: order of the whole split, not of a window */
	bool no_oversample, disable_shuffle;
	bool skip_chat_template;
	bool enable_multimodal_chat;     /* whole chat messages with their media */
	bool trust_remote_code;          /* no effect */
	/* ours */
	bool prompt_token_ids;           /* random: send ids, not text */
	double random_cache_hit_fraction, random_cache_ratio; /* 0: no bimodal prefix sharing */
	struct opt_int max_model_len;    /* requests that cannot fit are left out */
	const char *random_input_len_dist, *random_output_len_dist; /* data/lengths.h; NULL: none */
	const char *hf_text_column;      /* hf: column of prompts; NULL: found by its name */
	const char *hf_revision;         /* branch, tag or commit; NULL: main */
	struct opt_json mix;             /* mix: list of sets with weights */
	bool fix_seed;                   /* sets that upstream always seeds with 0 get --seed */
	/* data/scripted.h */
	int64_t document_length;
	const char *document_head;       /* what a document begins with; NULL: nothing */
	int64_t range_min, range_max, range_prefix; /* tokens */
	bool exact_tokens;
	/* what is done with the requests once they are drawn (data/repeat.h) */
	int64_t repeat_count;            /* copies of each request; 0 counts as 1 */
	const char *repeat_order;        /* of repeat_orders; NULL: random when there are copies */
	const char *warmup_pass;         /* "none", "same", "other" (serve/build_workload.h); NULL: none */
	/* sharegpt, custom*, spec_bench, speed_bench */
	struct opt_int sharegpt_output_len; /* unset: as many as the recorded reply */
	int64_t custom_output_len;       /* -1: each row's own */
	bool custom_ensure_client_side_data;
	int64_t spec_bench_output_len;
	const char *spec_bench_category; /* NULL: all */
	const char *speed_bench_dataset_subset;
	int64_t speed_bench_output_len;
	const char *speed_bench_category;
	struct opt_int speed_bench_max_input_len; /* longer prompts are left out */
	/* structured */
	const char *structured_dataset, *json_schema_path, *constraint_form;
	double structured_output_ratio;
	int64_t structured_output_len;
	/* sonnet */
	int64_t sonnet_input_len, sonnet_output_len, sonnet_prefix_len;
	/* timed_trace */
	int64_t timed_trace_chunk_hash_size;
	double timed_trace_sec_multiplier;
	const char *timed_trace_label_timestamp, *timed_trace_label_input_length;
	const char *timed_trace_label_output_length, *timed_trace_label_hash_ids;
	double speedup;                  /* arrival times are divided by it; 0: 1 */
	/* trace; NULL texts: the first choice of their option */
	const char *trace_format, *trace_time_unit, *trace_origin, *trace_salt;
	const char *trace_message_mode;
	struct opt_int trace_block_size; /* unset: the family's own */
	int64_t trace_output_len;        /* of rows that tell none */
	struct opt_real trace_start, trace_end; /* seconds of the file's own clock */
	bool sort_trace, sessions, speedup_gaps;
	bool is_trace_short;             /* --compat timed-trace-short: prompts end with the ids */
	/* random, random-mm, random-rerank */
	int64_t random_input_len, random_output_len, random_prefix_len, random_batch_size;
	const char *random_range_ratio;  /* as written; the two numbers are below */
	double input_range_ratio, output_range_ratio; /* in [0, 1) */
	bool no_reranker;
	int64_t random_mm_base_items_per_request;
	double random_mm_num_mm_items_range_ratio;
	struct opt_json random_mm_limit_mm_per_prompt;
	const char *random_mm_bucket_config;
	/* prefix_repetition */
	int64_t prefix_repetition_prefix_len, prefix_repetition_suffix_len;
	int64_t prefix_repetition_num_prefixes, prefix_repetition_output_len;
	/* hf */
	const char *hf_subset, *hf_split, *hf_name; /* NULL: none */
	struct opt_int hf_output_len;
	const char *bfcl_categories;     /* comma list; NULL: the usual three */
	double blazedit_min_distance, blazedit_max_distance;
	double asr_min_audio_len_sec, asr_max_audio_len_sec;
	/* conversations */
	struct opt_int conversations_output_len; /* unset: as many as the recorded answer */
	/* random, sharegpt as conversations: upstream's Rust client; sets/multi_turn.h */
	bool multi_turn;
	bool multi_turn_asks_min_tokens; /* set by the check: nothing else rules them */
	int64_t multi_turn_num_turns, multi_turn_min_turns, multi_turn_max_turns; /* 0: num_turns */
	int64_t per_turn_input_len;      /* of later turns; 0: random_input_len */
	double multi_turn_delay_ms;
	double multi_turn_prefix_global_ratio, multi_turn_prefix_conversation_ratio;
	/* ours: numbers of turns, think times in ms by laws (data/lengths.h); NULL: none */
	const char *multi_turn_turns_dist, *multi_turn_delay_dist;
	int64_t multi_turn_system_len, multi_turn_session_prefix_len; /* 0: none */
};

/* One set of a mix, with its own options; opts.mix is not set. */
struct dataset_component {
	const struct dataset *dataset;
	struct dataset_opts opts;
	const struct chat_wrap *chat; /* as dataset_env.chat */
	double weight;                /* above 0; only their ratios matter */
	/*
	 * Request keys for all its samples, in addition to their rows' (request_keys.h); texts in
	 * the arena.
	 */
	struct sample own;
	bool has_priority, has_length;
};

/* What a dataset is built with. */
struct dataset_env {
	int64_t num_prompts;
	uint64_t seed;
	const struct tokenizer *tokenizer; /* NULL with --skip-tokenizer-init */
	const char *tokenizer_name;        /* as asked for; NULL: none */
	const char *request_id_prefix;
	const char *backend;               /* --backend */
	bool is_chat_backend;
	bool is_guided_server;             /* it knows guided_*, and not structured_outputs yet */
	/*
	 * The requests go to an engine, not a server's API: backend is "vllm" or the like, or
	 * "vllm-chat", which carry media with every request, or one that takes only texts.
	 */
	bool is_offline;
	/* The chat template around the texts of templated sets; NULL: none. */
	const struct chat_wrap *chat;
	/*
	 * mix: reads an element of --mix: "weight", "dataset-name" and options by their names,
	 * checked like those of the command line. Memory in a. ERR_USAGE or ERR_RUN. NULL: mixes
	 * are not supported.
	 */
	int (*component)(void *self, struct json_slice object, struct arena *a,
			 struct dataset_component *out, struct err *e);
	void *component_self;
	/*
	 * Appends to text the chat template's rendering of whole messages (JSON list; tools: JSON
	 * list or empty): by the server, or by a known template where the messages are one optional
	 * system and one user text. NULL: not available. ERR_RUN, ERR_NET.
	 */
	int (*render)(void *self, struct str messages, struct str tools, struct buf *text,
		      struct err *e);
	void *render_self;
	unsigned threads;                  /* 0: as many as cores; the result is the same */
	/* Requests made, and wanted; may be NULL. Called from this thread only. */
	void (*progress)(void *self, size_t done, size_t total);
	/* Bytes of a file that is downloaded (above 1 MB) or read; may be NULL. */
	void (*download)(void *self, const char *file, int64_t done, int64_t total);
	void (*note)(void *self, const char *text); /* a sentence for people; may be NULL */
	void *self;
	const atomic_bool *cancel; /* set: build ends with ERR_CANCELLED; may be NULL */
};

struct dataset {
	const char *name;            /* --dataset-name */
	const char *summary;         /* for help and errors */
	/*
	 * Names (without dashes) of all options it reads beyond dataset-name, dataset-path, seed
	 * and num-prompts, so that others can be warned about: also disable-shuffle,
	 * no-oversample, skip-chat-template, enable-multimodal-chat, input-len where they have
	 * an effect. NULL-terminated; NULL: none.
	 */
	const char *const *options;
	bool needs_path, forbids_path, needs_tokenizer;
	bool is_templated; /* each text is a user message put through the model's chat template */
	/* If that depends on the options: whether it applies. NULL: always. */
	bool (*is_templated_for)(const struct dataset_opts *o);
	bool is_always_templated; /* --skip-chat-template has no effect, as upstream */
	bool is_chat_plain;       /* with --enable-multimodal-chat nothing is templated */
	bool is_rewritten_by_server; /* prompts are aligned through /tokenize (serve spec 2.9) */
	bool ignores_eos;            /* --ignore-eos is forced on */
	bool takes_all;              /* --num-prompts 0 or less means every row */
	bool is_whole;               /* every row, unless --num-prompts is given */
	bool has_timestamps;         /* requests are sent at the set's own times */
	bool is_told_version;        /* env.is_guided_server is asked of the server */
	bool may_have_timestamps;    /* whether, is known once it is built (struct workload) */
	/*
	 * Refuses, before anything is loaded, backends that cannot carry the set and malformed
	 * options. ERR_RUN with upstream's reason. May be NULL.
	 */
	int (*check)(const struct dataset_opts *o, const struct dataset_env *env, struct err *e);
	/*
	 * Fills w. Advances rng exactly as upstream's loader advances Python's and
	 * NumPy's global generators. ERR_RUN or ERR_IO with file and line.
	 */
	int (*build)(const struct dataset_opts *o, const struct dataset_env *env,
		     struct compat_rng *rng, struct workload *w, struct err *e);
};

/*
 * Leaves out requests whose prompt and answer together have more tokens than --max-model-len,
 * if it is given, and notes how many; for a workload that is built. Sets of rows that
 * come through dataset_take have put other rows in their place already. ERR_RUN: none fits.
 */
int dataset_drop_long(struct workload *w, const struct dataset_opts *o, struct err *e);
