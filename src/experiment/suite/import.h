/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - test files of vLLM's performance dashboard as members of a suite (sweep spec 8.1 to
 * 8.3).
 *
 * A file holds tests of one kind, recognized by how their names begin: serving_, latency_,
 * throughput_, startup_. A serving test becomes one experiment for each of its rates and
 * concurrencies, named TEST_qps_Q_concurrency_C as upstream names the result; any other test one
 * experiment. Each is a configuration to be merged over the suite's own: engine arguments under
 * server, options of the verb under benchmark, so that it is typed and judged like any other.
 *
 * The key `import` of a configuration is a file, a list of files, or an object:
 *   files                    the file or files; relative to the configuration's folder
 *   select                   TEST_SELECTOR: an extended regular expression
 *   model, dtype             MODEL_FILTER, DTYPE_FILTER: exactly that
 *   prompts_per_concurrency, min_num_prompts, max_num_prompts
 *   remote                   URL of a server that runs (REMOTE_HOST, REMOTE_PORT): none is started
 *   on_cpu                   world size is compared with NUMA nodes and not with GPUs
 *   adaptive                 continues beyond the list (import_adapt.h)
 *   sla_ttft_ms, sla_tpot_ms, sla_max_failed (percent of the requests; ours)
 *   adaptive_max_probes, adaptive_max_concurrency
 *
 * In the suite's own configuration, `server` is for all tests, `benchmark` for those of its mode
 * (serve by default).
 *
 * Left out with a sentence in notes, as in upstream: tests whose client asks for another model than
 * the server has, and tests that need more devices than there are. Anything else is an error.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/sweep/sla.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "experiment/config/config.h"
#include "experiment/config/experiment.h"

struct import_opts {
	const char *select, *model, *dtype, *remote; /* NULL: not given */
	int64_t prompts_per_concurrency;  /* 0: as the tests say */
	int64_t min_num_prompts, max_num_prompts;
	bool is_on_cpu, is_adaptive, is_simulated;
	double sla_ttft_ms, sla_tpot_ms, sla_max_failed;
	int64_t adaptive_max_probes, adaptive_max_concurrency;
	unsigned devices;                 /* GPUs, or NUMA nodes; 0: not known, all tests fit */
};
#define IMPORT_DEFAULTS                                                                     \
	{ .min_num_prompts = 1, .max_num_prompts = 1000000, .sla_ttft_ms = 3000,             \
	  .sla_tpot_ms = 100, .sla_max_failed = SLA_MAX_FAILED_PERCENT,                     \
	  .adaptive_max_probes = 8, .adaptive_max_concurrency = 1024 }

/* The origin of a member. */
struct import_test {
	const char *file, *test;          /* the file's path; its test_name */
	enum experiment_mode mode;
	const char *qps;                  /* as in the name: "4", "inf"; NULL: not serving */
	int64_t concurrency;              /* 0: not serving */
	bool is_probe;                    /* made by a search (suite_internal.h) */
	const struct import_opts *o;
};

struct import_member {
	const char *name;
	const struct json_value *over;    /* to be laid over the suite's configuration */
	struct import_test test;
};
struct import_list {
	struct import_member *v;
	size_t n, cap;
};

/*
 * The value of the key `import`, every file of it. -1: f has errors.
 */
int import_read(const struct config *c, const struct json_value *import,
		const struct config_know *know, struct arena *a, struct import_list *out,
		struct config_findings *f);
/* The tests of one file's text; o must live as long as out. */
int import_parse(const struct config *c, struct str text, const char *file,
		 const struct import_opts *o, struct arena *a, struct import_list *out,
		 struct config_findings *f);

/*
 * Writes the files that upstream makes its tables from: STEM.json and STEM.commands, folders made.
 * 0 also when the outcome has no result. ERR_IO.
 */
int import_store(const struct experiment *x, const char *stem, const struct outcome *o,
		 bool is_probe, struct err *e);
/* The number of prompts of a level when prompts_per_concurrency is given. */
int64_t import_prompts(const struct import_opts *o, int64_t concurrency);

/* Commands for pasting into a shell: words quoted where needed, secrets as '***'. */
/* Words separated by blanks; values of options with a secret's name are hidden. */
void shell_words(struct buf *out, char *const *argv);
/* NAME=VALUE lines in the same form. Nothing for NULL. */
void shell_env(struct buf *out, char *const *env);

/*
 * The benchmark of x as the equivalent command: `vllm bench serve` with the given options, in the
 * order of its help. url: of the server, put in front; NULL: left out.
 */
void shell_benchmark(struct buf *out, const struct experiment *x, const char *url);
