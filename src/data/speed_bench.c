/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speed_bench.c - first messages of one subset of SPEED-Bench; datasets spec 5.9.
 *
 * The path is the folder with SUBSET.jsonl that the set's own preparation script writes. Without
 * that file it is read as the set lies on the hub: Parquet files with "turns", many of
 * which hold only a notice that the text must be fetched. The order is that of seed 0
 * whatever --seed says, as upstream.
 */
#include "base/file.h"
#include "base/mem.h"
#include "data/custom.h"
#include "data/source.h"

/* messages[0].content, or turns[0]. */
static bool first_text(struct json_slice row, struct buf *out)
{
	struct json_slice list, first;

	if (json_member(row, "messages", &list))
		return rows_item(list, 0, &first) && rows_text(first, "content", out);
	if (!json_member(row, "turns", &list) || !rows_item(list, 0, &first) ||
	    first.kind != JSON_STRING)
		return false;
	json_unescape(out, first.raw);
	return true;
}

static bool has_word(struct str text, struct str word)
{
	return memmem(text.p, text.n, word.p, word.n) != NULL;
}

/* In capitals, saying that the full data must be fetched; only raw files have such rows. */
static bool is_notice(struct json_slice row)
{
	struct json_slice list;
	struct buf text = { 0 };
	bool is_capital = true;

	if (json_member(row, "messages", &list) || !first_text(row, &text)) {
		buf_release(&text);
		return false;
	}
	for (size_t i = 0; i < text.len && is_capital; i++)
		is_capital = text.data[i] < 'a' || text.data[i] > 'z';
	is_capital = is_capital && has_word(buf_str(&text), STR("FETCHED")) &&
		     has_word(buf_str(&text), STR("DATA"));
	buf_release(&text);
	return is_capital;
}

static int sample_files(struct custom_sampler *s, const struct source_opts *opts,
			struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct source source = { 0 };
	const char **path;
	int rc = source_open(opts, &source, e);

	if (rc < 0)
		return err_wrap(e, "--dataset-path %s has no %s.jsonl, nor is it SPEED-Bench itself",
				opts->path, opts->subset);
	path = mem_array(source.count, sizeof(*path));
	for (size_t i = 0; i < source.count && rc == 0; i++) {
		struct buf one = { 0 };

		rc = source_path(opts, &source, i, &one, e);
		path[i] = arena_text(&source.arena, buf_str(&one));
		buf_release(&one);
	}
	if (rc == 0)
		rc = custom_sample(s, path, source.count, rng, w, e);
	free(path);
	source_release(&source);
	return rc;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	static const char *const columns[] = { "messages", "turns", "category", "output_tokens", NULL };
	struct dataset_env seeded = *env;
	struct custom_sampler s = {
		.o = o, .env = &seeded, .columns = columns, .field = "messages", .text = first_text,
		.category = o->speed_bench_category, .is_notice = is_notice,
		.output_len = o->speed_bench_output_len, .output_option = "speed-bench-output-len",
		.input_max = o->speed_bench_max_input_len, .input_option = "speed-bench-max-input-len",
	};
	const struct source_opts opts = {
		.path = o->path, .subset = o->speed_bench_dataset_subset, .cancel = env->cancel,
		.revision = o->hf_revision,
		.progress = env->download, .note = env->note, .self = env->self,
	};
	struct buf name = { 0 };
	char *path;
	int rc;

	seeded.seed = dataset_fixed_seed(w, o, env);
	buf_printf(&name, "%s.jsonl", o->speed_bench_dataset_subset);
	path = file_join(o->path, name.data);
	rc = file_exists(path) ? custom_sample(&s, &(const char *){ path }, 1, rng, w, e) :
				 sample_files(&s, &opts, rng, w, e);
	free(path);
	buf_release(&name);
	return rc;
}

static const char *const options[] = {
	"speed-bench-dataset-subset", "speed-bench-output-len", "speed-bench-category",
	"speed-bench-max-input-len",
	"disable-shuffle", "no-oversample", "skip-chat-template", "chat-template-kwargs",
	"chat-prefix", "chat-suffix", "hf-revision", NULL,
};

const struct dataset dataset_speed_bench = {
	.name = "speed_bench", .summary = "first messages of a SPEED-Bench subset (a folder)",
	.options = options, .needs_path = true, .needs_tokenizer = true, .is_templated = true,
	.takes_all = true, .build = build,
};
