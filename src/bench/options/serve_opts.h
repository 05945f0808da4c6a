/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_opts.h - the options of `bench serve`: struct, rows, defaults, and
 * what follows from them before anything is read or sent.
 *
 * The fields of struct serve_opts are in the order in which upstream prints
 * them (Namespace), ours after. Every upstream option has a row; those of later
 * versions are refused by name unless they are given with their default value.
 *
 * Use: opt_parse(&serve_opt_set, ...), serve_opts_fill(), print the namespace,
 * serve_opts_check(). After the check the struct serve_opts holds the values in
 * force (length shortcuts applied, ignore_eos forced) and is const from there.
 *
 * Not here: what needs the server or a file (model discovery, tokenizer,
 * dataset); the suffix rule of an endpoint (endpoint/).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/endpoint/endpoint.h"
#include "client/http/url.h"
#include "client/load/load.h"
#include "client/metrics/metrics.h"
#include "client/plan/plan.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/opt/opt.h"
#include "host/telemetry/system.h"
#include "input/chat/chat.h"
#include "input/data/dataset.h"
#include "out/compare/gate.h"

struct multi_turn;

struct serve_opts {
	int64_t seed;                       /* 0..2^32-1 */
	int64_t num_prompts;
	const char *dataset_name;           /* never NULL; as the user spelled it */
	struct dataset_opts data;
	/* server, model, traffic, output */
	const char *label;                  /* NULL: none */
	const char *backend;                /* one that this version has */
	const char *base_url, *host;
	int64_t port;
	const char *endpoint;
	struct opt_list header;             /* raw; derived holds the pairs */
	struct opt_int max_concurrency;
	const char *model;                  /* NULL: ask the server */
	struct opt_int input_len, output_len; /* shortcuts, already applied after the check */
	const char *tokenizer, *tokenizer_mode;
	bool use_beam_search;               /* no effect; warned about */
	struct opt_int logprobs;
	double request_rate;                /* requests/s; INFINITY: all at once */
	double burstiness;
	double probe_request_rate;          /* requests/s in addition to the load; 0 or less:
					     * none */
	bool disable_tqdm;
	int64_t num_warmups;
	bool profile;
	bool save_result, save_detailed, append_result;
	struct opt_list metadata;           /* raw; derived holds the pairs */
	const char *result_dir, *result_filename;
	bool ignore_eos;                    /* forced on by the check where upstream does */
	enum opt_tri self_timed;            /* unset: where the dataset has times */
	const char *percentile_metrics, *metric_percentiles; /* raw; see derived */
	struct opt_list goodput;            /* raw; see derived */
	const char *request_id_prefix;      /* set by serve_opts_fill */
	struct opt_real top_p;
	struct opt_int top_k;
	struct opt_real min_p, temperature, frequency_penalty, presence_penalty;
	struct opt_real repetition_penalty;
	const char *served_model_name;
	struct opt_list lora_modules;
	const char *lora_assignment;
	const char *ramp_up_strategy;       /* NULL: none */
	struct opt_int ramp_up_start_rps, ramp_up_end_rps;
	int64_t ready_check_timeout_sec;
	struct opt_json chat_template_kwargs; /* an object; only the server renders with it */
	struct opt_json extra_body;         /* raw; derived.extra_body has the sampling flags too */
	bool skip_tokenizer_init, insecure;
	bool plot_timeline;
	const char *timeline_itl_thresholds;
	bool plot_dataset_stats;

	/* ours */
	const char *chat_prefix, *chat_suffix; /* escaped, NULL: none; derived.chat has the texts */
	int64_t threads;                    /* event loops */
	const char *cpus;                   /* NULL: any; see derived */
	struct opt_list source_addresses;   /* empty: the kernel chooses */
	const char *warm_connections;       /* "auto" or a number; see derived */
	const char *timestamps;             /* "auto", "kernel", "tap" or "user" */
	bool calibrate;
	struct opt_real calibrate_itl;      /* ms; not set: as measured */
	double request_timeout, connect_timeout; /* seconds */
	const char *cacert;                 /* PEM file, NULL: the system's */
	const char *record_path;            /* --record FILE */
	const char *dump_workload;          /* FILE */
	bool dry_run;
	bool strict;                        /* exit 3 when the verdict is not VALID */
	struct gate_opts gate;              /* --fail-if and what belongs to it */
	const char *progress;               /* "auto", "bar", "lines", "none" */
	struct opt_list omit_body_keys;     /* raw; see derived */
	const char *backend_file;           /* NULL: --backend */
	struct opt_list base_urls;          /* empty: --base-url, or --host and --port */
	const char *balance;                /* "round-robin", "random", "least-loaded" */
	struct opt_real duration, grace_period; /* seconds */
	struct opt_int max_errors;
	struct opt_real max_error_rate;     /* 0..1 */
	double request_cancellation_rate;   /* percent */
	double request_cancellation_delay;  /* seconds after sent */
	const char *gpus, *gpu_price;       /* as gpu_price_read reads them; NULL: not known */
	const char *prompt_salt;            /* as salt_parse reads it */
	const char *priority_classes;       /* as data/priority.h reads them; NULL: none */
	int64_t num_runs;
	const char *sweep_max_concurrency, *sweep_request_rate; /* comma lists; NULL: one point */
	struct opt_int sweep_num_prompts_factor;
	const char *sweep_summary_percentiles; /* comma list; NULL: none */
	bool find_max_rate, find_max_concurrency;
	const char *slo;                    /* as sweep/slo.h reads it; NULL: none */
	double precision, budget, level_seconds; /* of a search: percent, seconds */
	struct opt_int multi_turn_concurrency; /* becomes max_concurrency */
	struct opt_list compare;            /* two result files; empty: none */
	bool reset_prefix_cache;
	double steady_state_threshold;
	struct opt_real steady_state_min_window; /* seconds */
	bool no_steady_state;
	bool report_cached_tokens;
	struct opt_int profile_batch_threshold;
	double profile_duration;            /* seconds */
	/* --profile's window, set by programs: start and length; 0 0: the whole run. */
	double profile_from_s, profile_for_s;
	double profile_stop_timeout_s;      /* for the answer to /stop_profile; 0: 300 */
	struct opt_list profile_urls;       /* the servers to profile; empty: the base URLs */
	const char *output_json;            /* FILE */
	const char *report;                 /* "short", "full", "json" */
	bool quiet;                         /* the summary alone */
	const char *client_cert, *client_key; /* PEM files */
	const char *transport;              /* "auto", "native", "curl" */
	const char *http_version;           /* "1.1", "2" */
	const char *proxy;                  /* URL; NULL: the environment's */
	bool follow_redirects;
	double metrics_interval;            /* seconds; 0: before and after only */
	const char *metrics_url;            /* NULL: base URL + /metrics */
	const char *system_metrics;         /* "off", "all", or of gpu, host, process; see derived */
	double system_interval;             /* seconds; 0: before and after only */
	struct opt_list system_gpus;        /* indices or UUIDs; empty: all that may be used */
	struct opt_list system_pid;         /* "[NAME=]PID"; empty: the process that listens at
					     * the base URL */
	const char *charts;                 /* "auto", "always", "never" */
	bool live;
	const char *dashboard;              /* where the run reports; NULL: nowhere */
	const char *load_pattern;           /* NULL: none */
	bool plot_load_pattern;
	bool plot_turns;
	struct opt_list fix;
	const char *compat;                 /* comma list; see derived */
	const char *trace;                  /* comma list of categories */
	struct opt_int max_sessions;
	const char *on_turn_failure;        /* "drop", "retry", "continue" */
	struct opt_real user_centric_rate;  /* requests/s of all users together */
	struct opt_int num_users;
	const char *think_time, *tool_time; /* laws (data/lengths.h); NULL: the dataset's */
	const char *session_header;         /* its name; "": none */
	const char *session_affinity;       /* "url", "spread" */
	const char *session_token_header;   /* its name; NULL: none */
	const char *bad_tool_calls;         /* "replace", "fail" */
	int64_t tool_result_words;
	const char *old_dataset;            /* --dataset of old scripts; NULL once it is taken */
	struct multi_turn *multi_turn;      /* of bench multi-turn; NULL: another verb */
	const struct endpoint *own_endpoint; /* of that verb, in place of --backend */
};

extern const struct opt_set serve_opt_set;

/* --compat: upstream behavior, current or former, that is not our default. */
enum serve_compat {
	COMPAT_PEAK = 1,         /* exact sweep-line peak concurrency instead of 1-s buckets */
	COMPAT_ROLE_CHUNK = 2,   /* an empty role chunk is not a token event */
	COMPAT_STREAM_ERROR = 4, /* errors and cuts of a 200 stream are ignored, as main does */
	COMPAT_DETAIL = 8,       /* latencies and queue_times only with --save-detailed */
	COMPAT_V011 = 16,        /* all that was so then (run/compat.c, report/release.c) */
	COMPAT_STDOUT = 32,      /* also the lines that say nothing about the measurement */
	COMPAT_TRACE_SHORT = 64, /* prompts of a trace end with their ids */
};

/* --fix: corrections of upstream defects that change numbers. */
enum serve_fix {
	FIX_PEAK_TOKENS = 1,     /* peak tok/s counts tokens, not events */
	FIX_USAGE = 2,           /* usage in an event that also has choices is taken */
	FIX_DATASET_SEED = 4,    /* every dataset is shuffled by --seed */
	FIX_PROBE_TAIL = 8,      /* the duration ends with the load, not with a probe's pause */
	FIX_ALL_TEXT = 16,       /* tokens counted by us are of all text, not of the answer's */
};
struct serve_switch { const char *name; unsigned bits; const char *help; };
extern const struct serve_switch serve_fixes[], serve_compats[]; /* end with a NULL name */
/* Bits of the known names in a list that has not been checked yet. */
unsigned serve_compat_bits(const char *list);

enum serve_balance { BALANCE_ROUND_ROBIN, BALANCE_RANDOM, BALANCE_LEAST_LOADED };

enum serve_progress { PROGRESS_AUTO, PROGRESS_BAR, PROGRESS_LINES, PROGRESS_NONE };

#define SERVE_WARM_AUTO UINT32_MAX
#define TOOL_RESULT_WORDS 32 /* of the generated result of a tool call */

struct serve_pair { const char *key, *value; };

/* What follows from the options; all texts are in the arena given to the check. */
struct serve_derived {
	const char *const *base_urls; /* --base-urls, or base_url alone */
	struct url *url;         /* the same, parsed */
	unsigned n_urls;
	const char *base_url;    /* --base-url as given, else http://host:port */
	const char *api_url;     /* base_url + endpoint */
	struct serve_pair *header;   /* trimmed, in order, the last value of a repeated key */
	size_t n_headers;
	struct serve_pair *metadata; /* --metadata, in the form of header */
	size_t n_metadata;
	struct metrics_opts metrics; /* but for what only the run knows (score.c) */
	struct load_opts load;       /* of the main run, without what only the run knows: limits,
				      * network, compatibility */
	const char *extra_body;      /* JSON: sampling flags, then --extra-body; NULL: empty */
	const char **omit;           /* keys left out: --omit-body-keys, null in --extra-body */
	size_t n_omit;
	bool is_temperature_unset;   /* upstream's greedy warning is due */
	const char *label;           /* --label, else the backend: file names */
	const struct endpoint *endpoint; /* --backend or --backend-file; never NULL */
	bool is_chat;                /* the server puts prompts through its chat template */
	bool is_pooling;             /* the backend gives vectors or scores, no text */
	enum plan_ramp_up ramp_up;
	enum plan_lora lora;
	uint32_t gpus;               /* that serve; 0: not known */
	double gpu_price;            /* of one, per hour; 0: not known */
	unsigned warm_connections;   /* SERVE_WARM_AUTO: the run decides */
	const uint16_t *cpu;         /* --cpus, in its order; NULL: any */
	unsigned n_cpus;
	double timeline_ms[2];       /* --timeline-itl-thresholds; 0 0: not given */
	bool is_num_prompts_given;
	enum serve_balance balance;
	const char *session_header;  /* NULL: none */
	enum serve_progress progress;
	struct system_opts system;   /* --system-metrics and what belongs to it */
	struct chat_wrap chat;       /* --chat-prefix, --chat-suffix; CHAT_NONE without them */
	unsigned compat, fixes;      /* enum serve_compat, enum serve_fix bits */
};

/* Whether no option concerns caches, so that later points may use new prompts. */
bool serve_is_salt_free(const struct serve_opts *o, const struct opt_result *given);

/*
 * Sets values that are new in every process (the request id prefix). Call before printing the
 * namespace.
 */
void serve_opts_fill(struct serve_opts *o, struct arena *a);

/* How progress is shown: --progress, and --disable-tqdm where that is auto. */
enum serve_progress serve_progress_of(const struct serve_opts *o);

/*
 * Checks every rule that needs neither server nor file, in upstream's order. A wrong value is
 * ERR_USAGE, a sentence that begins with the option. Warnings (options without effect...) are lines
 * in result->notes. Changes *o as upstream does: shortcuts, ignore_eos.
 */
int serve_opts_check(struct serve_opts *o, struct opt_result *result, struct arena *a,
		     struct serve_derived *out, struct err *e);

/* ---- by what requests travel ---- */

/* What upstream takes from the environment; texts are borrowed, NULL: not set. */
struct point_env { const char *api_key, *http_proxy, *https_proxy, *all_proxy, *no_proxy; };
void point_env_read(struct point_env *env); /* of this process */

/*
 * The API's own variable before OPENAI_API_KEY; is_given: env is not this process's. header: see
 * prepare_opts. Only the API's own key goes into the API's own header: other servers of such an API
 * (vLLM's of Anthropic's) expect a bearer token.
 */
const char *serve_api_key(const struct endpoint *ep, const struct point_env *env, bool is_given,
			  const char **header);
/* The proxy that the environment names for a base URL, or NULL. */
const char *serve_env_proxy(const struct point_env *env, const struct url *url);
/*
 * The proxy of one base URL: --proxy, else what the environment names for it; NULL: none. ERR_USAGE
 * for an unknown kind of proxy.
 */
int serve_proxy(const struct serve_opts *o, const struct point_env *env, const struct url *url,
		const char **proxy, struct err *e);
/*
 * What carries requests by these n proxies: the native transport, unless an option or a proxy
 * needs libcurl's (--http-version 2, --follow-redirects, SOCKS, a proxy by TLS or with a
 * password). ERR_USAGE where --transport cannot.
 */
int serve_transport(const struct serve_opts *o, const struct serve_derived *d,
		    const char *const *proxy, unsigned n, const struct transport **out,
		    struct err *e);

/* ---- options that set others ---- */

struct preset { const char *option, *value; }; /* as on a command line, without the dashes */

#define PRESET_OPTIONS_MAX 6

/* --load-pattern NAME */
struct load_pattern {
	const char *name, *help;
	struct preset set[PRESET_OPTIONS_MAX]; /* ends with a NULL option */
};
extern const struct load_pattern load_patterns[]; /* ends with a NULL name */

/*
 * Sets the options that o->load_pattern and o->compat imply, except those on the command line;
 * repeated calls change nothing. ERR_USAGE.
 */
int serve_presets(struct serve_opts *o, const struct opt_result *given, struct arena *a,
		  struct err *e);
/* "--request-rate 10 --burstiness inf": the options that o->load_pattern implies here. */
void load_pattern_flags(const struct serve_opts *o, const struct opt_result *given,
			struct buf *out);

/* ---- conditions ---- */

/*
 * Before a load is sent: checks that its result will have the keys of a condition. Decided by the
 * options and schema/result.json, which says of each key when it is there. What only the server or
 * the machine decides (a GPU's power, drafted tokens) passes.
 *
 * o and d: after serve_opts_check. ERR_USAGE: a sentence that begins with the condition in quotes
 * and names the option to set, as an experiment's key when is_experiment.
 */
int serve_gate_check(const struct gate *g, const struct serve_opts *o,
		     const struct serve_derived *d, bool is_experiment, struct err *e);

/* ---- rows of several verbs ---- */

/* A search for the largest load (sweep/find.h): `bench serve` and `bench sweep serve_sla`. */
#define FIND_PRECISION_PERCENT (100 * CAPACITY_PRECISION)

#define FIND_ROWS(type, group_)                                                             \
	OPT(type, precision, "precision", .group = group_, .flags = OPT_OURS | OPT_MIN_EXCLUSIVE, \
	    .arg = "PERCENT", .max = 99,                                                        \
	    .help = "half width of the 95 % interval at which a search for the largest load ends"), \
	OPT(type, budget, "budget", .group = group_, .flags = OPT_OURS | OPT_MIN_EXCLUSIVE,    \
	    .arg = "SECONDS", .max = 1e7,                                                       \
	    .help = "longest time of a search for the largest load; the interval is wider when it " \
		    "ends first"),                                                              \
	OPT(type, level_seconds, "level-seconds", .group = group_,                             \
	    .flags = OPT_OURS | OPT_MIN_EXCLUSIVE, .arg = "SECONDS", .max = 86400,              \
	    .help = "shortest measuring level of a search for the largest load; less makes the " \
		    "interval too narrow unless answers take well under a second")

#define SERVE_ROWS_FIND(group_)                                                             \
	OPT(struct serve_opts, find_max_rate, "find-max-rate", .group = group_,                \
	    .flags = OPT_OURS, .help = "find the largest request rate that keeps the limits of " \
				       "--slo"),                                                \
	OPT(struct serve_opts, find_max_concurrency, "find-max-concurrency", .group = group_,  \
	    .flags = OPT_OURS, .help = "find the largest number of requests at once that keeps " \
				       "the limits of --slo"),                                  \
	OPT(struct serve_opts, slo, "slo", .group = group_, .flags = OPT_OURS, .arg = "LIMITS", \
	    .help = "limits on latency in ms, such as p99_ttft_ms<200,p99_tpot_ms<30; without a " \
		    "search: say whether this load holds them (exit 3 unless it does)"),        \
	FIND_ROWS(struct serve_opts, group_)
