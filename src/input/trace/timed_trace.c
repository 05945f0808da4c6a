/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timed_trace.c - prompts and times of a recorded trace; datasets spec 5.10.
 *
 * A row's hash ids identify chunks of a prompt. Their tokens are not recorded: they are drawn from
 * a generator seeded with the id and the chunk size, so that equal ids are equal chunks in every
 * run, and a shortened chunk is the beginning of the whole one. Whole chunks equal those of
 * upstream started with PYTHONHASHSEED=0; otherwise its chunks differ from run to run.
 */
#include <inttypes.h>
#include <math.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/rng/rng.h"
#include "input/data/build.h"
#include "input/trace/trace_internal.h"

#define AT_ONCE 256
#define AT_ONCE_TOKENS (4u << 20)

struct timed_row {
	struct str hash_ids; /* elements as texts, each followed by a NUL */
	size_t wanted, made; /* tokens */
	struct buf prompt;
};

struct timed_trace {
	struct dataset_rows rows;
	const struct dataset_opts *o;
	const struct dataset_env *env;
	uint32_t *id; /* ascending; what chunks are drawn from */
	size_t ids;
	struct arena arena;
	struct timed_row row[AT_ONCE];
	struct sample sample[AT_ONCE];
	size_t n;
};

/* ---- chunks ---- */

static bool make_prompt(void *self, size_t i, unsigned worker)
{
	struct timed_trace *t = self;
	struct timed_row *row = &t->row[i];
	struct str rest = row->hash_ids;
	size_t chunk = (size_t)t->o->timed_trace_chunk_hash_size;
	struct buf key = { 0 };

	(void)worker;
	buf_reset(&row->prompt);
	buf_add_char(&row->prompt, '[');
	while (rest.n && row->made < row->wanted) {
		size_t left = row->wanted - row->made;
		struct pyrandom rng;

		buf_reset(&key);
		buf_add_str(&key, str_cut(&rest, '\0'));
		buf_printf(&key, ":%zu", chunk);
		pyrandom_seed(&rng, (int64_t)(uint32_t)pyhash_str(buf_str(&key)));
		for (size_t k = 0; k < (left < chunk ? left : chunk); k++) {
			double at = floor(pyrandom_double(&rng) * (double)t->ids);

			trace_ids_put(&row->prompt, t->id[(size_t)at]);
			row->made++;
		}
	}
	buf_add_char(&row->prompt, ']');
	buf_release(&key);
	return !row->prompt.is_over;
}

/* ---- rows ---- */

static int refuse_missing(const struct timed_trace *t, size_t i, struct json_slice row,
			  const char *label, const char *option, struct err *e)
{
	struct json_iter it = json_iter(row);
	struct json_slice v;
	struct str key;
	struct buf keys = { 0 };

	while (json_each(&it, &key, &v) == 1 && keys.len < 200) {
		buf_add_text(&keys, keys.len ? ", " : "");
		buf_add_str(&keys, key);
	}
	rows_refuse(&t->rows, i, e, "no \"%s\" field; the row has: %.250s. --%s names the field to "
		    "take", label, keys.len ? keys.data : "nothing", option);
	buf_release(&keys);
	return -1;
}

static int read_tokens(const struct timed_trace *t, size_t i, struct json_slice row,
		       const char *label, const char *option, int64_t *out, struct err *e)
{
	struct json_slice v;

	if (!json_member(row, label, &v))
		return refuse_missing(t, i, row, label, option, e);
	if (!json_to_i64(v, out) || *out < 0 || *out > LENGTH_TOKENS_MAX)
		return rows_refuse(&t->rows, i, e, "\"%s\" must be a whole number of tokens, at most %u",
				   label, LENGTH_TOKENS_MAX);
	return 0;
}

static int read_time(const struct timed_trace *t, size_t i, struct json_slice row, double *out,
		     struct err *e)
{
	const char *label = t->o->timed_trace_label_timestamp;
	struct json_slice v;
	double stamp;

	if (!json_member(row, label, &v))
		return refuse_missing(t, i, row, label, "timed-trace-label-timestamp", e);
	if (!(v.kind == JSON_STRING ? opt_python_float(v.raw, &stamp) : json_to_f64(v, &stamp)) ||
	    !isfinite(stamp * t->o->timed_trace_sec_multiplier))
		return rows_refuse(&t->rows, i, e, "\"%s\" must be a number", label);
	*out = stamp * t->o->timed_trace_sec_multiplier / dataset_speedup(t->o);
	return 0;
}

/* An empty list is an empty prompt, as upstream. */
static int read_hash_ids(struct timed_trace *t, size_t i, struct json_slice row, struct str *out,
			 struct err *e)
{
	const char *label = t->o->timed_trace_label_hash_ids;
	struct json_slice list, v;
	struct json_iter it;
	struct buf text = { 0 };
	int rc = 0;

	if (!json_member(row, label, &list))
		return 0;
	if (list.kind != JSON_ARRAY)
		return rows_refuse(&t->rows, i, e, "\"%s\" must be a list of ids", label);
	it = json_iter(list);
	while (rc == 0 && json_each(&it, NULL, &v) == 1) {
		if (!trace_ids_name(v, &text))
			rc = rows_refuse(&t->rows, i, e, "\"%s\" must be a list of numbers or texts",
					 label);
		buf_add_char(&text, '\0');
	}
	*out = arena_take(&t->arena, &text);
	return rc;
}

static int read_row(struct timed_trace *t, size_t i, struct err *e)
{
	struct timed_row *row = &t->row[t->n];
	struct sample *s = &t->sample[t->n];
	struct json_slice object;
	int64_t input;

	*s = (struct sample){ .kind = PROMPT_JSON };
	row->made = 0;
	row->hash_ids = STR("");
	if (rows_get(&t->rows, i, &object, e) < 0 ||
	    read_time(t, i, object, &s->timestamp_s, e) < 0 ||
	    read_tokens(t, i, object, t->o->timed_trace_label_input_length,
			"timed-trace-label-input-length", &input, e) < 0 ||
	    read_tokens(t, i, object, t->o->timed_trace_label_output_length,
			"timed-trace-label-output-length", &s->output_len, e) < 0 ||
	    read_hash_ids(t, i, object, &row->hash_ids, e) < 0)
		return -1;
	row->wanted = (size_t)input;
	t->n++;
	return 0;
}

/* Reads rows from *next on, as many as are processed together. */
static int read_lot(struct timed_trace *t, size_t *next, size_t wanted, struct err *e)
{
	size_t tokens = 0;

	t->n = 0;
	arena_release(&t->arena);
	while (*next < wanted && t->n < AT_ONCE && tokens < AT_ONCE_TOKENS) {
		if (dataset_go_on(t->env, e) < 0 || read_row(t, *next, e) < 0)
			return -1;
		tokens += t->row[t->n - 1].wanted;
		(*next)++;
	}
	return 0;
}

static int keep_lot(struct timed_trace *t, struct workload *w, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		struct sample *s = workload_add(w);

		*s = t->sample[i];
		s->prompt = buf_str(&t->row[i].prompt);
		s->prompt_len = (uint32_t)t->row[i].made;
		s->request_id = dataset_request_id(w, t->env, w->n - 1);
		if (workload_keep(w, &s->prompt, e) < 0)
			return -1;
	}
	return 0;
}

static int make_all(struct timed_trace *t, struct workload *w, struct err *e)
{
	size_t wanted = t->env->num_prompts > 0 ? (size_t)t->env->num_prompts : t->rows.n, next = 0;
	size_t failed;

	if (t->rows.n == 0)
		return err_set(e, ERR_RUN, "%s: the file has no rows", t->o->path);
	if (wanted > t->rows.n)
		dataset_note(w, "the trace has %zu rows: fewer requests than --num-prompts are sent",
			     t->rows.n);
	wanted = wanted < t->rows.n ? wanted : t->rows.n;
	while (next < wanted) {
		if (read_lot(t, &next, wanted, e) < 0)
			return -1;
		failed = parallel_for(t->env->threads, t->n, make_prompt, t);
		if (failed < t->n)
			return rows_refuse(&t->rows, next - t->n + failed, e, "the prompt has more than "
					   "%llu bytes", BUF_BYTES_MAX);
		if (keep_lot(t, w, e) < 0)
			return -1;
		dataset_progress(t->env, next, wanted);
	}
	return 0;
}

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	int64_t chunk = o->timed_trace_chunk_hash_size;

	if (env->backend && !env->is_offline && strcmp(env->backend, "vllm") != 0 &&
	    strcmp(env->backend, "openai") != 0)
		return err_set(e, ERR_USAGE, "--dataset-name timed_trace sends token ids, which --backend "
			       "%s does not take: use vllm or openai", env->backend);
	if (chunk < 1 || chunk > LENGTH_TOKENS_MAX)
		return err_set(e, ERR_USAGE, "--timed-trace-chunk-hash-size: expected 1 to %u tokens, got %"
			       PRId64, LENGTH_TOKENS_MAX, chunk);
	if (!isfinite(o->timed_trace_sec_multiplier) || o->timed_trace_sec_multiplier < 0)
		return err_set(e, ERR_USAGE, "--timed-trace-sec-multiplier: expected a factor of 0 or more, "
			       "got %g", o->timed_trace_sec_multiplier);
	return 0;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct dataset_opts unshuffled = *o;
	struct timed_trace *t = mem_alloc(sizeof(*t));
	const struct rows_opts opts = { .o = &unshuffled, .env = env };
	int rc = -1;

	unshuffled.disable_shuffle = true;
	t->o = o;
	t->env = env;
	if (rows_open(&t->rows, &o->path, 1, &opts, rng, e) == 0 &&
	    trace_ids_all(env->tokenizer, &t->id, &t->ids, e) == 0) {
		/* Seeds both generators, from which the arrival times are then drawn. */
		compat_rng_seed(rng, (uint32_t)dataset_fixed_seed(w, o, env));
		rc = make_all(t, w, e);
	}
	for (size_t i = 0; i < AT_ONCE; i++)
		buf_release(&t->row[i].prompt);
	rows_release(&t->rows);
	arena_release(&t->arena);
	free(t->id);
	free(t);
	return rc;
}

static const char *const options[] = {
	"timed-trace-chunk-hash-size", "timed-trace-sec-multiplier", "timed-trace-label-timestamp",
	"timed-trace-label-input-length", "timed-trace-label-output-length",
	"timed-trace-label-hash-ids", "self-timed", "speedup", NULL,
};

const struct dataset dataset_timed_trace = {
	.name = "timed_trace", .summary = "prompts and times of a recorded trace (JSON lines)",
	.options = options, .needs_path = true, .needs_tokenizer = true, .ignores_eos = true,
	.takes_all = true, .has_timestamps = true, .check = check, .build = build,
};
