/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_opts.c - the rules between options, and what follows from them.
 *
 * The steps of serve_opts_check() are in upstream's order, so that of several mistakes the same one
 * is reported. Rules of a single option are in its row. What upstream would ignore silently becomes
 * a line in the notes.
 */
#include "bench/options/serve_opts_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/random.h>

#include "bench/options/gpu_price.h"
#include "client/http/head.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "out/page/plot.h"

const struct serve_switch serve_fixes[] = {
	{ "peak-tokens", FIX_PEAK_TOKENS,
	  "peak output tokens/s counts tokens; vLLM counts events, which hold several tokens "
	  "with speculative decoding or slow reads" },
	{ "usage", FIX_USAGE,
	  "token counts are taken from usage in any event; vLLM ignores usage in events that "
	  "also carry choices and counts the text again" },
	{ "all-text", FIX_ALL_TEXT,
	  "tokens of answers without usage are counted from all their text; vLLM leaves out "
	  "reasoning, tool calls and refusals" },
	{ "dataset-seed", FIX_DATASET_SEED,
	  "spec_bench, speed_bench and timed_trace use --seed; vLLM always takes 0 for them" },
	{ "probe-tail", FIX_PROBE_TAIL,
	  "the measured duration ends with the last request; vLLM adds the probe in flight then "
	  "and the pause after it" },
	{ NULL, 0, NULL },
};

const struct serve_switch serve_compats[] = {
	{ "peak", COMPAT_PEAK, "exact peak concurrency in place of buckets of a second" },
	{ "role-chunk", COMPAT_ROLE_CHUNK, "an empty first chunk of a chat is not a token" },
	{ "stream-error", COMPAT_STREAM_ERROR,
	  "an error inside a 200 stream, or a stream without an end, is no failure" },
	{ "detail", COMPAT_DETAIL, "latencies in the result only with --save-detailed" },
	{ "stdout", COMPAT_STDOUT,
	  "vLLM's lines that say nothing about the measurement are printed: Namespace(...), the "
	  "default of temperature, a ready check that is not made, the tip about termplotlib" },
	{ "timed-trace-short", COMPAT_TRACE_SHORT,
	  "prompts of a trace whose ids are too few for their length end with them" },
	{ "v0.11", COMPAT_V011 | COMPAT_STDOUT, "everything as it was in that release" },
	{ NULL, 0, NULL },
};

bool serve_given(const struct serve_check *c, const char *name)
{
	return opt_given(&serve_opt_set, c->result, name);
}

void serve_warn(const struct serve_check *c, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_printf(&c->result->notes, "%s\n", line);
}

void serve_warn_unused(const struct serve_check *c, const struct serve_unused *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (row[i].is_unused && serve_given(c, row[i].option))
			serve_warn(c, "--%s has no effect%s", row[i].option, row[i].why);
}

/* ---- small parsers ---- */

/* "KEY=VALUE" texts in order, both trimmed; a repeated key keeps its place and takes the value. */
static int parse_pairs(const struct serve_check *c, const struct opt_list *list, const char *option,
		       struct serve_pair **out, size_t *n_out)
{
	struct serve_pair *pair = arena_alloc(c->arena, (list->n + 1) * sizeof(*pair));
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct str value = str_of(list->v[i]), key;
		const char *name;
		size_t at = 0;

		/* Text after a colon or a blank may be a key, so it is not repeated. */
		if (!strchr(list->v[i], '='))
			return err_set(c->e, ERR_USAGE, "--%s: expected KEY=VALUE, got '%.*s%s'", option,
				       (int)strcspn(list->v[i], ": "), list->v[i],
				       strpbrk(list->v[i], ": ") ? "..." : "");
		key = str_cut(&value, '=');
		name = arena_text(c->arena, str_trim(key));
		while (at < n && strcmp(pair[at].key, name) != 0)
			at++;
		n += at == n;
		pair[at] = (struct serve_pair){ name, arena_text(c->arena, str_trim(value)) };
	}
	*out = pair;
	*n_out = n;
	return 0;
}

/* ---- steps, in upstream's order ---- */

static int check_timeline(const struct serve_check *c)
{
	const struct serve_unused row = { "timeline-itl-thresholds", !c->o->plot_timeline,
					  " without --plot-timeline" };

	serve_warn_unused(c, &row, 1);
	if (!serve_given(c, row.option))
		return 0; /* the default is upstream's; ours come from the run */
	return plot_thresholds(c->o->timeline_itl_thresholds, c->d->timeline_ms, c->e);
}

static int check_ramp_up(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	const struct opt_int start = o->ramp_up_start_rps, end = o->ramp_up_end_rps;

	c->d->ramp_up = RAMP_NONE;
	if (!o->ramp_up_strategy) {
		if (start.is_set || end.is_set)
			serve_warn(c, "--ramp-up-start-rps and --ramp-up-end-rps have no effect without "
			     "--ramp-up-strategy");
		return 0;
	}
	if (o->request_rate != INFINITY)
		return err_set(c->e, ERR_USAGE, "--request-rate and --ramp-up-strategy are mutually "
			       "exclusive: the ramp sets the rate; leave out --request-rate");
	if (!start.is_set || !end.is_set)
		return err_set(c->e, ERR_USAGE, "--ramp-up-strategy needs --ramp-up-start-rps and "
			       "--ramp-up-end-rps; --ramp-up-%s-rps is missing",
			       start.is_set ? "end" : "start");
	if (start.v > end.v)
		return err_set(c->e, ERR_USAGE, "--ramp-up-start-rps: expected at most "
			       "--ramp-up-end-rps, %" PRId64 ", got %" PRId64, end.v, start.v);
	c->d->ramp_up = strcmp(o->ramp_up_strategy, "exponential") == 0 ? RAMP_EXPONENTIAL :
									 RAMP_LINEAR;
	return 0;
}

/* RFC 9110: a token as name; no controls in the value, which would end the header early. */
static int check_headers(const struct serve_check *c)
{
	if (parse_pairs(c, &c->o->header, "header", &c->d->header, &c->d->n_headers) < 0)
		return -1;
	for (size_t i = 0; i < c->d->n_headers; i++) {
		const struct serve_pair *h = &c->d->header[i];

		if (!http_is_token(str_of(h->key)))
			return err_set(c->e, ERR_USAGE,
				       "--header: '%.100s' is not a valid header name", h->key);
		for (const unsigned char *p = (const unsigned char *)h->value; *p; p++)
			if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
				return err_set(c->e, ERR_USAGE, "--header: the value of %.100s holds "
					       "a control character", h->key);
	}
	/* It becomes a header too. */
	for (const unsigned char *p = (const unsigned char *)c->o->request_id_prefix; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			return err_set(c->e, ERR_USAGE, "--request-id-prefix: expected text without "
				       "control characters: it becomes a header");
	return 0;
}

static void check_model(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;

	if (!o->model && o->served_model_name)
		serve_warn(c, "--served-model-name has no effect without --model: the server is asked "
		     "for its model");
	if (o->skip_tokenizer_init && o->tokenizer)
		serve_warn(c, "--tokenizer has no effect with --skip-tokenizer-init");
	if (o->data.trust_remote_code)
		serve_warn(c, "--trust-remote-code has no effect: no remote code is ever run");
	if (o->use_beam_search)
		serve_warn(c, "--use-beam-search has no effect, as in vLLM");
	if (o->logprobs.is_set && !c->d->endpoint->is_pooling && !c->d->endpoint->has_logprobs)
		serve_warn(c, "--logprobs has no effect: requests of --backend %s have no such field",
			   o->backend);
	c->d->lora = strcmp(o->lora_assignment, "round-robin") == 0 ? LORA_ROUND_ROBIN :
								      LORA_RANDOM;
	if (!o->lora_modules.n && serve_given(c, "lora-assignment"))
		serve_warn(c, "--lora-assignment has no effect without --lora-modules");
}

static int check_goodput(const struct serve_check *c)
{
	const struct opt_list *list = &c->o->goodput;

	for (size_t i = 0; i < list->n; i++) {
		struct str value = str_of(list->v[i]), name = str_cut(&value, ':');
		double ms;

		/* Exactly one colon: a second one would be inside the number. */
		if (!strchr(list->v[i], ':') || !opt_python_float(value, &ms) || isnan(ms))
			return err_set(c->e, ERR_USAGE, "--goodput: expected NAME:MS, a metric and its "
				       "limit in milliseconds, got '%.100s'", list->v[i]);
		if (!metrics_opts_add_goodput(&c->d->metrics, name, ms))
			return err_set(c->e, ERR_USAGE, "--goodput: unknown metric '%.*s'; expected ttft, "
				       "tpot, e2el or session_duration", (int)name.n, name.p);
		if (ms < 0)
			return err_set(c->e, ERR_USAGE, "--goodput: expected a limit of at least 0 "
				       "milliseconds, got '%.100s'", list->v[i]);
	}
	return 0;
}

void serve_sampling(const struct serve_opts *o, struct serve_sampling out[SERVE_SAMPLING])
{
#define REAL(option, name) { option, #name, &o->name, NULL, o->name.is_set }
	const struct serve_sampling all[SERVE_SAMPLING] = {
		REAL("top-p", top_p), { "top-k", "top_k", NULL, &o->top_k, o->top_k.is_set },
		REAL("min-p", min_p), REAL("temperature", temperature),
		REAL("frequency-penalty", frequency_penalty),
		REAL("presence-penalty", presence_penalty),
		REAL("repetition-penalty", repetition_penalty),
	};
#undef REAL

	memcpy(out, all, sizeof(all));
}

static void put_sampling(struct json_writer *w, const struct serve_sampling *row,
			 const struct json_value *extra)
{
	const struct json_value *over = json_get(extra, row->key);

	if (!row->is_set || (over && over->kind == JSON_NULL))
		return;
	json_key(w, row->key);
	if (over)
		json_put_value(w, over);
	else if (row->real)
		json_put_f64(w, row->real->v);
	else
		json_put_int(w, row->whole->v);
}

/* A form has no null: upstream sends the word None. */
static bool is_form(const struct serve_check *c)
{
	return strcmp(c->o->backend, "openai-audio") == 0;
}

/* Python's {**sampling, **extra}: a key set twice keeps its place and takes the later value. */
static void merge_body(const struct serve_check *c, const struct json_value *extra)
{
	const size_t n = c->d->is_pooling ? 0 : SERVE_SAMPLING;
	struct serve_sampling sampling[SERVE_SAMPLING];
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	serve_sampling(c->o, sampling);
	w.is_python = true; /* as upstream sends it */
	json_begin_object(&w);
	for (size_t i = 0; i < n; i++)
		put_sampling(&w, &sampling[i], extra);
	for (size_t i = 0; extra && i < extra->count; i++) {
		bool is_written = false;

		for (size_t j = 0; j < n; j++)
			is_written = is_written ||
				     (sampling[j].is_set && str_is(extra->key[i], sampling[j].key));
		if (is_written || (extra->item[i].kind == JSON_NULL && !is_form(c)))
			continue;
		json_key_str(&w, extra->key[i]);
		json_put_value(&w, &extra->item[i]);
	}
	json_end_object(&w);
	c->d->extra_body = out.len > 2 ? arena_text(c->arena, buf_str(&out)) : NULL;
	buf_release(&out);
}

/*
 * Keys of --omit-body-keys, in one word or several, and those that --extra-body has as null. Forms
 * support neither.
 */
static int take_omitted(const struct serve_check *c, const struct json_value *extra)
{
	const struct opt_list *list = &c->o->omit_body_keys;
	struct serve_derived *d = c->d;
	size_t room = extra ? extra->count : 0;

	for (size_t i = 0; i < list->n; i++)
		room += strlen(list->v[i]) + 1;
	d->omit = arena_alloc(c->arena, (room + 1) * sizeof(*d->omit));
	for (size_t i = 0; i < list->n; i++)
		for (struct str rest = str_of(list->v[i]), key; rest.n;) {
			key = str_trim(str_cut(&rest, ','));
			if (key.n == 0)
				return err_set(c->e, ERR_USAGE, "--omit-body-keys: expected keys with "
					       "commas between, got '%.100s'", list->v[i]);
			d->omit[d->n_omit++] = arena_text(c->arena, key);
		}
	for (size_t i = 0; extra && i < extra->count; i++)
		if (extra->item[i].kind == JSON_NULL && !is_form(c))
			d->omit[d->n_omit++] = arena_text(c->arena, extra->key[i]);
	if (d->n_omit && is_form(c))
		return err_set(c->e, ERR_USAGE, "--omit-body-keys: requests of --backend openai-audio are "
			       "forms, not JSON");
	return 0;
}

static int check_body(const struct serve_check *c)
{
	struct str text = str_of(c->o->extra_body.text);
	struct json_scan scan = { text, 0 };
	struct json_value *v = NULL;
	struct json_slice slice;

	c->d->is_temperature_unset = !c->d->is_pooling && !c->o->temperature.is_set;
	if (text.n) {
		if (json_parse(c->arena, text, &v, c->e) < 0 ||
		    json_next(&scan, &slice, c->e) < 0)
			return err_wrap(c->e, "--extra-body");
		/* Python's `or {}`: null, 0, "", [] and false count as nothing. */
		if (!json_truthy(slice))
			v = NULL;
		else if (v->kind != JSON_OBJECT)
			return err_set(c->e, ERR_USAGE,
				       "--extra-body: expected a JSON object, got %.100s", text.p);
	}
	merge_body(c, v);
	return take_omitted(c, v);
}

static int unknown_metric(const struct serve_check *c, struct str name)
{
	const char *names[BLOCK_COUNT], *near;

	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		names[b] = metric_block_key(b);
	near = opt_nearest(name, names, BLOCK_COUNT);
	return err_set(c->e, ERR_USAGE, "--percentile-metrics: unknown metric '%.*s'; %s%s%s",
		       (int)name.n, name.p, near ? "did you mean " : "expected some of ttft, tpot, itl, "
		       "e2el, client_queue_time, e2el_including_client_queue", near ? near : "",
		       near ? "?" : "");
}

#define TOKEN_BLOCKS (BLOCK_BIT(BLOCK_TTFT) | BLOCK_BIT(BLOCK_TPOT) | BLOCK_BIT(BLOCK_ITL))

static void warn_metrics(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	const unsigned selected = c->d->metrics.selected;

	if (selected & (BLOCK_BIT(BLOCK_QUEUE_TIME) | BLOCK_BIT(BLOCK_E2EL_WITH_QUEUE)) &&
	    !o->max_concurrency.is_set)
		serve_warn(c, "--percentile-metrics: client queue times need --max-concurrency");
	else if (selected & BLOCK_BIT(BLOCK_E2EL_WITH_QUEUE) && isinf(o->request_rate))
		serve_warn(c, "--percentile-metrics: e2el_including_client_queue needs a finite "
		     "--request-rate");
	if (selected & TOKEN_BLOCKS && c->d->is_pooling &&
	    serve_given(c, "percentile-metrics"))
		serve_warn(c, "--percentile-metrics: ttft, tpot and itl are not reported for --backend "
		     "%s, which generates no text", o->backend);
	else if (selected & TOKEN_BLOCKS && o->skip_tokenizer_init)
		serve_warn(c, "--percentile-metrics: ttft, tpot and itl are not reported with "
		     "--skip-tokenizer-init");
}

static int select_metrics(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	bool is_chosen = o->percentile_metrics && *o->percentile_metrics;
	struct str rest = is_chosen ? str_of(o->percentile_metrics)
			  : c->d->is_pooling ? STR("e2el") : STR("ttft,tpot,itl");

	while (rest.n) {
		struct str name = str_trim(str_cut(&rest, ','));
		enum metric_block block = metric_block_find(name);

		if (block != BLOCK_COUNT)
			c->d->metrics.selected |= BLOCK_BIT(block);
		else if (name.n)
			return unknown_metric(c, name);
	}
	if (is_chosen)
		warn_metrics(c);
	return 0;
}

static int parse_percentiles(const struct serve_check *c)
{
	struct str rest = str_of(c->o->metric_percentiles);
	double *percentile;
	size_t room = 1;

	for (size_t i = 0; i < rest.n; i++)
		room += rest.p[i] == ',';
	percentile = arena_alloc(c->arena, room * sizeof(*percentile));
	for (size_t i = 0; i < room; i++) {
		struct str text = str_cut(&rest, ',');
		double *p = &percentile[i];

		if (!opt_python_float(text, p) || !(*p >= 0 && *p <= 100))
			return err_set(c->e, ERR_USAGE, "--metric-percentiles: expected numbers from 0 to "
				       "100 with commas between, got '%.*s'", (int)text.n, text.p);
	}
	c->d->metrics.percentile = percentile;
	c->d->metrics.n_percentiles = room;
	return 0;
}

static void take_metrics(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	struct metrics_opts *m = &c->d->metrics;

	m->is_pooling = c->d->is_pooling;
	m->is_rate_finite = !isinf(o->request_rate);
	m->is_user_stamps = c->d->load.is_user_stamps;
	m->is_peak_exact = c->d->compat & COMPAT_PEAK;
	m->is_prompt_from_sample = c->d->compat & COMPAT_V011;
	m->is_peak_in_tokens = c->d->fixes & FIX_PEAK_TOKENS;
	m->max_concurrency = c->d->load.max_concurrency;
	m->max_sessions = c->d->load.max_sessions;
	m->reports_cached_tokens = o->report_cached_tokens;
	m->finds_steady_state = !o->no_steady_state;
	m->steady_threshold = o->steady_state_threshold;
	m->steady_min_window_s = o->steady_state_min_window.is_set
				 ? o->steady_state_min_window.v : 0;
}

static void check_traffic(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;

	if (serve_given(c, "burstiness") && c->d->ramp_up == RAMP_NONE && isinf(o->request_rate))
		serve_warn(c, "--burstiness has no effect without a finite --request-rate");
	if (o->num_warmups < 0)
		serve_warn(c, "--num-warmups is below 0 and has no effect");
	if (o->ready_check_timeout_sec < 0)
		serve_warn(c, "--ready-check-timeout-sec is below 0 and has no effect");
}

static int check_output(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	static const char *const only_saved[] = { "result-dir", "result-filename",
						  "save-detailed", "metadata" };
	bool is_saved = o->save_result || o->append_result;
	bool is_drawn = o->plot_timeline || o->plot_dataset_stats || o->plot_load_pattern ||
			o->plot_turns;

	if (parse_pairs(c, &o->metadata, "metadata", &c->d->metadata, &c->d->n_metadata) < 0)
		return -1;
	c->d->label = o->label && *o->label ? o->label : o->backend;
	if (o->save_result && o->append_result)
		serve_warn(c, "--save-result has no effect with --append-result");
	for (size_t i = 0; i < sizeof(only_saved) / sizeof(*only_saved); i++)
		if (serve_given(c, only_saved[i]) && !is_saved && !(is_drawn && i < 2) &&
		    !(o->output_json && i == 3))
			serve_warn(c, "--%s has no effect without --save-result or --append-result",
			     only_saved[i]);
	return 0;
}

/* ---- ours ---- */

/* Checks options about the chat template; without a dataset that uses it there is a note. */
static int check_chat(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	struct str kwargs = str_of(o->chat_template_kwargs.text);
	struct json_scan scan = { kwargs, 0 };
	struct json_slice object;

	if (kwargs.n && json_next(&scan, &object, c->e) == 0 && object.kind != JSON_OBJECT)
		return err_set(c->e, ERR_USAGE, "--chat-template-kwargs: expected a JSON object, got "
			       "%.100s", kwargs.p);
	if (o->data.skip_chat_template && strcmp(o->dataset_name, "custom") == 0 &&
	    (o->chat_prefix || o->chat_suffix || kwargs.n))
		serve_warn(c, "--chat-prefix, --chat-suffix and --chat-template-kwargs have no effect with "
		     "--skip-chat-template");
	else if (kwargs.n && (o->chat_prefix || o->chat_suffix))
		serve_warn(c, "--chat-template-kwargs has no effect with --chat-prefix and --chat-suffix");
	if (!o->chat_prefix && !o->chat_suffix)
		return 0;
	c->d->chat.source = CHAT_FLAGS;
	if (chat_unescape("--chat-prefix", o->chat_prefix, c->arena, &c->d->chat.prefix, c->e) < 0)
		return -1;
	return chat_unescape("--chat-suffix", o->chat_suffix, c->arena, &c->d->chat.suffix, c->e);
}

/* NULL: there is none of that name. */
static const struct serve_switch *find_switch(const struct serve_switch *row, struct str name)
{
	while (row->name && !str_is(name, row->name))
		row++;
	return row->name ? row : NULL;
}

unsigned serve_compat_bits(const char *list)
{
	struct str rest = str_of(list);
	unsigned bits = 0;

	while (rest.n) {
		const struct serve_switch *row = find_switch(serve_compats,
							     str_trim(str_cut(&rest, ',')));

		bits |= row ? row->bits : 0;
	}
	return bits;
}

static int parse_compat(const struct serve_check *c)
{
	struct str rest = str_of(c->o->compat);

	while (rest.n) {
		struct str name = str_trim(str_cut(&rest, ','));
		const struct serve_switch *row = find_switch(serve_compats, name);

		if (!row)
			return err_set(c->e, ERR_USAGE, "--compat: unknown name '%.*s'; --compat help "
				       "lists the names", (int)name.n, name.p);
		c->d->compat |= row->bits;
	}
	c->o->data.is_trace_short = c->d->compat & COMPAT_TRACE_SHORT;
	return 0;
}

static int parse_fixes(const struct serve_check *c)
{
	const struct opt_list *list = &c->o->fix;

	for (size_t i = 0; i < list->n; i++) {
		const struct serve_switch *row = find_switch(serve_fixes, str_of(list->v[i]));

		if (!row)
			return err_set(c->e, ERR_USAGE, "--fix: unknown name '%.100s'; "
				       "--fix help lists the names", list->v[i]);
		c->d->fixes |= row->bits;
		if (row->bits == FIX_DATASET_SEED)
			c->o->data.fix_seed = true;
	}
	return 0;
}

enum serve_progress serve_progress_of(const struct serve_opts *o)
{
	static const char *const forms[] = { [PROGRESS_AUTO] = "auto", [PROGRESS_BAR] = "bar",
					     [PROGRESS_LINES] = "lines" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (strcmp(o->progress, forms[i]) == 0 && (i != PROGRESS_AUTO || !o->disable_tqdm))
			return (enum serve_progress)i;
	return PROGRESS_NONE;
}

static int check_ours(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	struct serve_derived *d = c->d;
	int64_t n;

	d->load.threads = (unsigned)o->threads;
	d->warm_connections = SERVE_WARM_AUTO;
	if (str_to_i64(str_of(o->warm_connections), &n))
		d->warm_connections = (unsigned)n;
	d->load.is_user_stamps = strcmp(o->timestamps, "user") == 0;
	d->load.tap = strcmp(o->timestamps, "tap") == 0 ? LOAD_TAP_NEEDED
		      : strcmp(o->timestamps, "auto") == 0 ? LOAD_TAP_ALLOWED : LOAD_TAP_OFF;
	d->load.net.request_timeout_ns = clock_span_ns(o->request_timeout);
	d->load.net.connect_timeout_ns = clock_span_ns(o->connect_timeout);
	d->progress = serve_progress_of(o);
	if (o->dry_run && (o->save_result || o->append_result || o->record_path))
		serve_warn(c, "--dry-run sends nothing, so no result and no record are written");
	if (parse_compat(c) < 0 || parse_fixes(c) < 0 || check_chat(c) < 0)
		return -1;
	d->load.is_role_chunk_skipped = d->compat & COMPAT_ROLE_CHUNK;
	d->load.is_stream_error_ignored = d->compat & COMPAT_STREAM_ERROR;
	d->load.is_usage_with_choices = d->fixes & FIX_USAGE;
	d->load.net.is_insecure = o->insecure;
	d->load.net.ca_file = o->cacert;
	d->load.net.cert_file = o->client_cert;
	d->load.net.key_file = o->client_key;
	d->load.net.is_http2 = strcmp(o->http_version, "2") == 0;
	d->load.net.is_redirected = o->follow_redirects;
	d->load.net.is_stamped = true;
	return 0;
}

/* ---- entry points ---- */

bool serve_is_salt_free(const struct serve_opts *o, const struct opt_result *given)
{
	return !opt_given(&serve_opt_set, given, "prompt-salt") && !o->reset_prefix_cache;
}

void serve_opts_fill(struct serve_opts *o, struct arena *a)
{
	uint32_t random;

	if (o->request_id_prefix)
		return;
	/* 4 bytes are never cut short; without a generator the prefix is merely less unique. */
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = (uint32_t)(uintptr_t)o;
	o->request_id_prefix = arena_printf(a, "bench-%08" PRIx32 "-", random);
}

/* benchmark_serving.py --dataset FILE, from before there were names of datasets. */
static int take_old_dataset(const struct serve_check *c)
{
	struct serve_opts *o = c->o;
	struct str path = str_of(o->old_dataset);

	if (!o->old_dataset)
		return 0;
	if (serve_given(c, "dataset-path"))
		return err_set(c->e, ERR_USAGE, "--dataset and --dataset-path are mutually exclusive: --dataset "
			       "is the old spelling");
	o->old_dataset = NULL;
	if (!serve_given(c, "dataset-name") &&
	    opt_give(&serve_opt_set, o, c->result, "dataset-name", STR("sharegpt"), c->arena, c->e) < 0)
		return -1;
	serve_warn(c, "--dataset is an old spelling of --dataset-name %s --dataset-path", o->dataset_name);
	return opt_give(&serve_opt_set, o, c->result, "dataset-path", path, c->arena, c->e);
}

int serve_opts_check(struct serve_opts *o, struct opt_result *result, struct arena *a,
		     struct serve_derived *out, struct err *e)
{
	const struct serve_check c = { o, result, a, out, e };

	*out = (struct serve_derived){ 0 };
	if (serve_presets(o, result, a, e) < 0 || take_old_dataset(&c) < 0)
		return -1;
	serve_opts_fill(o, a);
	if (check_ours(&c) < 0 || check_timeline(&c) < 0 || check_ramp_up(&c) < 0)
		return -1;
	if (serve_choose_backend(&c) < 0 || serve_take_urls(&c) < 0 ||
	    serve_check_route(&c) < 0 || check_headers(&c) < 0)
		return -1;
	check_model(&c);
	if (gpu_price_read(o->gpus, o->gpu_price, &out->gpus, &out->gpu_price, e) < 0)
		return -1;
	if (serve_check_dataset(&c) < 0 || serve_check_range_ratio(&c) < 0 ||
	    check_goodput(&c) < 0 || serve_check_backend(&c) < 0 ||
	    serve_check_compat(&c) < 0 || check_body(&c) < 0)
		return -1;
	if (o->max_concurrency.is_set) /* also set by --multi-turn-concurrency */
		out->load.max_concurrency = o->max_concurrency.v < UINT32_MAX
					    ? (uint32_t)o->max_concurrency.v : UINT32_MAX;
	if (select_metrics(&c) < 0)
		return -1;
	if (out->compat & COMPAT_V011)
		out->metrics.selected &= ~(BLOCK_BIT(BLOCK_QUEUE_TIME) |
					   BLOCK_BIT(BLOCK_E2EL_WITH_QUEUE));
	check_traffic(&c);
	if (parse_percentiles(&c) < 0 || check_output(&c) < 0 || serve_check_load(&c) < 0)
		return -1;
	take_metrics(&c);
	return 0;
}
