/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_opts.c - the rules between options, and what follows from them.
 *
 * The steps of serve_opts_check() stand in upstream's order, so that a line with
 * several mistakes is refused for the same one. Texts in quotes of upstream are
 * upstream's. What it would ignore without a word becomes a line in the notes.
 */
#include "run/serve_opts.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fmt.h"
#include "base/limits.h"
#include "http/head.h"
#include "http/url.h"
#include "json/write.h"
#include "report/plot.h"
#include "run/presets.h"
#include "run/serve_check.h"

const struct serve_fix_row serve_fixes[] = {
	{ "peak-tokens", FIX_PEAK_TOKENS,
	  "peak output tokens/s counts tokens; upstream counts events, which hold several tokens "
	  "with speculative decoding or slow reads" },
	{ "usage", FIX_USAGE,
	  "token counts are taken from usage in any event; upstream ignores usage in events that "
	  "also carry choices and counts the text again" },
	{ "all-text", FIX_ALL_TEXT,
	  "tokens of answers without usage are counted from all their text; upstream leaves out "
	  "reasoning, tool calls and refusals" },
	{ "dataset-seed", FIX_DATASET_SEED,
	  "spec_bench, speed_bench and timed_trace use --seed; upstream always takes 0 for them" },
	{ "probe-tail", FIX_PROBE_TAIL,
	  "the measured duration ends with the last request; upstream adds the probe in flight then "
	  "and the pause behind it" },
	{ NULL, 0, NULL },
};

bool serve_given(const struct check *c, const char *name)
{
	return opt_given(&serve_opt_set, c->result, name);
}

void serve_warn(const struct check *c, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_printf(&c->result->notes, "%s\n", line);
}

/* ---- small parsers ---- */

/* "KEY=VALUE" texts in order, both trimmed; a repeated key keeps its place and takes the value. */
static int parse_pairs(const struct check *c, const struct opt_list *list, const char *what,
		       struct serve_pair **out, size_t *n_out)
{
	struct serve_pair *pair = arena_alloc(c->arena, (list->n + 1) * sizeof(*pair));
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct str value = str_of(list->v[i]), key;
		const char *name;
		size_t at = 0;

		if (!strchr(list->v[i], '='))
			return err_set(c->e, ERR_RUN,
				       "Invalid %s format. Please use KEY=VALUE format.", what);
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

static int check_limits(const struct check *c)
{
	struct serve_opts *o = c->o;

	if (o->max_concurrency.is_set && o->max_concurrency.v <= 0)
		return err_set(c->e, ERR_RUN, "--max-concurrency must be greater than 0");
	if (o->seed < 0 || o->seed > UINT32_MAX)
		return err_set(c->e, ERR_RUN, "Seed must be between 0 and 2**32 - 1");
	if (o->num_prompts > (int64_t)REQUESTS_MAX)
		return err_set(c->e, ERR_LIMIT, "--num-prompts: at most %u requests fit in one "
			       "record, got %" PRId64, REQUESTS_MAX, o->num_prompts);
	if (o->num_warmups > (int64_t)REQUESTS_MAX)
		return err_set(c->e, ERR_LIMIT, "--num-warmups: at most %u requests fit in one "
			       "record, got %" PRId64, REQUESTS_MAX, o->num_warmups);
	c->d->max_concurrency = 0;
	if (o->max_concurrency.is_set)
		c->d->max_concurrency = o->max_concurrency.v < UINT32_MAX ?
			(uint32_t)o->max_concurrency.v : UINT32_MAX;
	return 0;
}

static int check_timeline(const struct check *c)
{
	if (!c->o->plot_timeline) {
		if (serve_given(c, "timeline-itl-thresholds"))
			serve_warn(c, "--timeline-itl-thresholds has no effect without --plot-timeline");
		return 0;
	}
	if (plot_thresholds(c->o->timeline_itl_thresholds, c->d->timeline_ms, c->e) < 0)
		return err_wrap(c->e, "Invalid --timeline-itl-thresholds format");
	return 0;
}

static int check_ramp_up(const struct check *c)
{
	const struct serve_opts *o = c->o;
	const struct opt_int start = o->ramp_up_start_rps, end = o->ramp_up_end_rps;
	bool is_exponential;

	c->d->ramp_up = RAMP_NONE;
	if (!o->ramp_up_strategy) {
		if (start.is_set || end.is_set)
			serve_warn(c, "--ramp-up-start-rps and --ramp-up-end-rps have no effect without "
			     "--ramp-up-strategy");
		return 0;
	}
	is_exponential = strcmp(o->ramp_up_strategy, "exponential") == 0;
	if (o->request_rate != INFINITY)
		return err_set(c->e, ERR_RUN, "When using ramp-up, do not specify --request-rate. "
			       "The request rate will be controlled by ramp-up parameters. Please "
			       "remove the --request-rate argument.");
	if (!start.is_set || !end.is_set)
		return err_set(c->e, ERR_RUN, "When using --ramp-up-strategy, both "
			       "--ramp-up-start-rps and --ramp-up-end-rps must be specified");
	if (start.v < 0 || end.v < 0)
		return err_set(c->e, ERR_RUN, "Ramp-up start and end RPS must be non-negative");
	if (start.v > end.v)
		return err_set(c->e, ERR_RUN, "Ramp-up start RPS must be less than end RPS");
	if (is_exponential && start.v == 0)
		return err_set(c->e, ERR_RUN,
			       "For exponential ramp-up, the start RPS cannot be 0.");
	c->d->ramp_up = is_exponential ? RAMP_EXPONENTIAL : RAMP_LINEAR;
	return 0;
}

static bool is_ipv6(const char *host)
{
	char address[64];
	struct in6_addr parsed;

	if (strlen(host) >= sizeof(address))
		return false;
	snprintf(address, sizeof(address), "%.*s", (int)strcspn(host, "%"), host);
	return inet_pton(AF_INET6, address, &parsed) == 1;
}

static void make_urls(const struct check *c)
{
	const struct serve_opts *o = c->o;
	bool is_v6 = is_ipv6(o->host);

	if (o->base_urls.n) {
		c->d->base_url = o->base_urls.v[0];
	} else if (o->base_url) {
		c->d->base_url = o->base_url;
		if (serve_given(c, "host") || serve_given(c, "port"))
			serve_warn(c, "--host and --port have no effect beside --base-url");
	} else {
		c->d->base_url = arena_printf(c->arena, "http://%s%s%s:%" PRId64, is_v6 ? "[" : "",
					      o->host, is_v6 ? "]" : "", o->port);
	}
	serve_take_urls(c);
	c->d->api_url = arena_printf(c->arena, "%s%s", c->d->base_url, o->endpoint);
	if (o->insecure && o->cacert)
		serve_warn(c, "--cacert has no effect beside --insecure");
	else if ((o->insecure || o->cacert) && !serve_is_any_tls(c))
		serve_warn(c, "%s has no effect: the server's URL is not https",
		     o->insecure ? "--insecure" : "--cacert");
}

/* RFC 9110: a token as name; no controls in the value, which would end the header early. */
static int check_headers(const struct check *c)
{
	if (parse_pairs(c, &c->o->header, "header", &c->d->header, &c->d->n_headers) < 0)
		return -1;
	for (size_t i = 0; i < c->d->n_headers; i++) {
		const struct serve_pair *h = &c->d->header[i];

		if (!http_is_token(str_of(h->key)))
			return err_set(c->e, ERR_RUN,
				       "--header: '%.100s' is not a valid header name", h->key);
		for (const unsigned char *p = (const unsigned char *)h->value; *p; p++)
			if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
				return err_set(c->e, ERR_RUN, "--header: the value of %.100s holds "
					       "a control character", h->key);
	}
	/* It becomes a header too. */
	for (const unsigned char *p = (const unsigned char *)c->o->request_id_prefix; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			return err_set(c->e, ERR_RUN, "--request-id-prefix holds a control character, "
				       "which no header can");
	return 0;
}

/* A URL that can never work is refused before prompts are made. */
static int check_url(const struct check *c)
{
	const struct serve_opts *o = c->o;
	struct url url;

	if (url_parse(str_of(c->d->base_url), &url, c->e) < 0)
		return err_wrap(c->e, "%s", o->base_urls.n ? "--base-urls"
				: o->base_url ? "--base-url" : "--host");
	if (serve_is_any_tls(c) && o->cacert && !o->insecure && access(o->cacert, R_OK) < 0)
		return err_set(c->e, ERR_USAGE, "--cacert: cannot read %s: %s", o->cacert,
			       strerror(errno));
	return 0;
}

static void check_model(const struct check *c)
{
	const struct serve_opts *o = c->o;

	if (!o->model && o->served_model_name)
		serve_warn(c, "--served-model-name has no effect without --model: the server is asked "
		     "for its model");
	if (o->skip_tokenizer_init && o->tokenizer)
		serve_warn(c, "--tokenizer has no effect beside --skip-tokenizer-init");
	if (o->data.trust_remote_code)
		serve_warn(c, "--trust-remote-code has no effect: no remote code is ever run");
	if (o->use_beam_search)
		serve_warn(c, "--use-beam-search has no effect, as upstream");
	if (o->logprobs.is_set && !c->d->endpoint->is_pooling && !c->d->endpoint->has_logprobs)
		serve_warn(c, "--logprobs has no effect: requests of --backend %s have no such field",
			   o->backend);
	c->d->lora = strcmp(o->lora_assignment, "round-robin") == 0 ? LORA_ROUND_ROBIN :
								      LORA_RANDOM;
	if (!o->lora_modules.n && serve_given(c, "lora-assignment"))
		serve_warn(c, "--lora-assignment has no effect without --lora-modules");
}

static int add_objective(const struct check *c, const char *text)
{
	static const char *const names[] = { "ttft", "tpot", "e2el" };
	struct serve_derived *d = c->d;
	struct str value = str_of(text), name = str_cut(&value, ':');
	const char *known = NULL;
	char number[FMT_F64_BYTES];
	size_t at = 0;
	double ms;

	if (!opt_python_float(value, &ms))
		assert(!"formats were checked before");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_is(name, names[i]))
			known = names[i];
	if (!known)
		return err_set(c->e, ERR_RUN, "Invalid metric name found, %.*s: %s. The service "
			       "level objective name should be one of ['ttft', 'tpot', 'e2el']. ",
			       (int)name.n, name.p, fmt_f64(number, ms));
	if (ms < 0)
		return err_set(c->e, ERR_RUN, "Invalid value found, %s: %s. The service level "
			       "objective value should be non-negative.", known,
			       fmt_f64(number, ms));
	while (at < d->n_goodput && strcmp(d->goodput[at].name, known) != 0)
		at++;
	d->n_goodput += at == d->n_goodput;
	assert(d->n_goodput <= SERVE_GOODPUT_MAX);
	d->goodput[at] = (struct serve_goodput){ known, ms };
	return 0;
}

/* All formats are judged before any name, as upstream does. */
static int check_goodput(const struct check *c)
{
	const struct opt_list *list = &c->o->goodput;

	for (size_t i = 0; i < list->n; i++) {
		struct str value = str_of(list->v[i]);
		double ms;

		(void)str_cut(&value, ':');
		/* Exactly one colon: a second one would be inside the number. */
		if (!strchr(list->v[i], ':') || !opt_python_float(value, &ms))
			return err_set(c->e, ERR_RUN, "Invalid format found for service level "
				       "objectives. Specify service level objectives for goodput "
				       "as \"KEY:VALUE\" pairs, where the key is a metric name, "
				       "and the value is a number in milliseconds.");
	}
	for (size_t i = 0; i < list->n; i++)
		if (add_objective(c, list->v[i]) < 0)
			return -1;
	return 0;
}

static void put_sampling(struct json_writer *w, const char *key, const struct opt_real *real,
			 const struct opt_int *whole, const struct json_value *extra)
{
	const struct json_value *over = json_get(extra, key);

	if (real ? !real->is_set : !whole->is_set)
		return;
	json_key(w, key);
	if (over)
		json_put_value(w, over);
	else if (real)
		json_put_f64(w, real->v);
	else
		json_put_int(w, whole->v);
}

/* Python's {**sampling, **extra}: a key set twice keeps its place and takes the later value. */
static void merge_body(const struct check *c, const struct json_value *extra)
{
	const struct serve_opts *o = c->o;
	const struct {
		const char *key;
		const struct opt_real *real;
		const struct opt_int *whole;
	} sampling[] = {
		{ "top_p", &o->top_p, NULL }, { "top_k", NULL, &o->top_k },
		{ "min_p", &o->min_p, NULL }, { "temperature", &o->temperature, NULL },
		{ "frequency_penalty", &o->frequency_penalty, NULL },
		{ "presence_penalty", &o->presence_penalty, NULL },
		{ "repetition_penalty", &o->repetition_penalty, NULL },
	};
	const size_t n = c->d->is_pooling ? 0 : sizeof(sampling) / sizeof(*sampling);
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	json_begin_object(&w);
	for (size_t i = 0; i < n; i++)
		put_sampling(&w, sampling[i].key, sampling[i].real, sampling[i].whole, extra);
	for (size_t i = 0; extra && i < extra->count; i++) {
		bool is_written = false;

		for (size_t j = 0; j < n; j++)
			is_written = is_written ||
				     (str_is(extra->key[i], sampling[j].key) &&
				      (sampling[j].real ? sampling[j].real->is_set :
							  sampling[j].whole->is_set));
		if (is_written)
			continue;
		json_key_str(&w, extra->key[i]);
		json_put_value(&w, &extra->item[i]);
	}
	json_end_object(&w);
	c->d->extra_body = out.len > 2 ? arena_text(c->arena, buf_str(&out)) : NULL;
	buf_release(&out);
}

static int check_body(const struct check *c)
{
	struct str text = str_of(c->o->extra_body.text);
	struct json_scan scan = { text, 0 };
	struct json_value *v = NULL;
	struct json_slice slice;

	c->d->is_temperature_unset = !c->d->is_pooling && !c->o->temperature.is_set;
	if (text.n) {
		if (json_parse(c->arena, text, &v, c->e) < 0 ||
		    json_next(&scan, &slice, c->e) < 0)
			return -1;
		/* Python's `or {}`: null, 0, "", [] and false count as nothing. */
		if (!json_truthy(slice))
			v = NULL;
		else if (v->kind != JSON_OBJECT)
			return err_set(c->e, ERR_RUN,
				       "--extra-body: expected a JSON object, got %.100s", text.p);
	}
	merge_body(c, v);
	return 0;
}

static const struct { const char *name; enum serve_metric bit; } metric_names[] = {
	{ "ttft", SERVE_TTFT }, { "tpot", SERVE_TPOT }, { "itl", SERVE_ITL },
	{ "e2el", SERVE_E2EL }, { "client_queue_time", SERVE_QUEUE_TIME },
	{ "e2el_including_client_queue", SERVE_E2EL_WITH_QUEUE },
};
#define METRIC_NAMES (sizeof(metric_names) / sizeof(*metric_names))

static void warn_metric(const struct check *c, struct str name)
{
	const char *names[METRIC_NAMES], *near;

	for (size_t i = 0; i < METRIC_NAMES; i++)
		names[i] = metric_names[i].name;
	near = opt_nearest(str_trim(name), names, METRIC_NAMES);
	serve_warn(c, "--percentile-metrics: no metric is called '%.*s'%s%s%s", (int)name.n, name.p,
	     near ? "; did you mean " : "", near ? near : "",
	     near ? " (names stand without blanks)?" : "");
}

static void select_metrics(const struct check *c)
{
	const struct serve_opts *o = c->o;
	bool is_chosen = o->percentile_metrics && *o->percentile_metrics;
	struct str rest = is_chosen ? str_of(o->percentile_metrics)
			  : c->d->is_pooling ? STR("e2el") : STR("ttft,tpot,itl");

	c->d->metrics = 0;
	for (bool is_last = false; !is_last;) {
		struct str name;
		size_t i = 0;

		is_last = !memchr(rest.p, ',', rest.n);
		name = str_cut(&rest, ',');
		while (i < METRIC_NAMES && !str_is(name, metric_names[i].name))
			i++;
		if (i == METRIC_NAMES)
			warn_metric(c, name);
		else
			c->d->metrics |= metric_names[i].bit;
	}
	if (!is_chosen)
		return;
	if (c->d->metrics & (SERVE_QUEUE_TIME | SERVE_E2EL_WITH_QUEUE) &&
	    !o->max_concurrency.is_set)
		serve_warn(c, "--percentile-metrics: client queue times need --max-concurrency");
	else if (c->d->metrics & SERVE_E2EL_WITH_QUEUE && isinf(o->request_rate))
		serve_warn(c, "--percentile-metrics: e2el_including_client_queue needs a finite "
		     "--request-rate");
	if (c->d->metrics & (SERVE_TTFT | SERVE_TPOT | SERVE_ITL) && c->d->is_pooling &&
	    serve_given(c, "percentile-metrics"))
		serve_warn(c, "--percentile-metrics: ttft, tpot and itl are not reported for --backend "
		     "%s, which generates no text", o->backend);
	else if (c->d->metrics & (SERVE_TTFT | SERVE_TPOT | SERVE_ITL) && o->skip_tokenizer_init)
		serve_warn(c, "--percentile-metrics: ttft, tpot and itl are not reported with "
		     "--skip-tokenizer-init");
}

static int parse_percentiles(const struct check *c)
{
	struct str rest = str_of(c->o->metric_percentiles);
	size_t room = 1;

	for (size_t i = 0; i < rest.n; i++)
		room += rest.p[i] == ',';
	c->d->percentile = arena_alloc(c->arena, room * sizeof(*c->d->percentile));
	c->d->percentile_name = arena_alloc(c->arena, room * sizeof(*c->d->percentile_name));
	for (size_t i = 0; i < room; i++) {
		struct str text = str_cut(&rest, ',');
		double *p = &c->d->percentile[i];
		char number[FMT_F64_BYTES];

		if (!opt_python_float(text, p))
			return err_set(c->e, ERR_RUN,
				       "--metric-percentiles: could not convert string to float: "
				       "'%.*s'", (int)text.n, text.p);
		if (!(*p >= 0 && *p <= 100))
			return err_set(c->e, ERR_RUN, "Percentiles must be in the range [0, 100]");
		if (*p == trunc(*p))
			c->d->percentile_name[i] = arena_printf(c->arena, "%d", (int)*p);
		else
			c->d->percentile_name[i] =
				arena_text(c->arena, str_of(fmt_f64(number, *p)));
	}
	c->d->n_percentiles = room;
	return 0;
}

static int check_traffic(const struct check *c)
{
	const struct serve_opts *o = c->o;
	char number[FMT_F64_BYTES];
	double first_rate = o->request_rate;

	if (!(o->burstiness > 0))
		return err_set(c->e, ERR_RUN, "A positive burstiness factor is expected, but given "
			       "%s.", fmt_f64(number, o->burstiness));
	if (c->d->ramp_up != RAMP_NONE)
		first_rate = (double)o->ramp_up_start_rps.v;
	if (!(first_rate > 0))
		return err_set(c->e, ERR_RUN, "Obtained non-positive request rate %s.",
			       fmt_f64(number, first_rate));
	if (serve_given(c, "burstiness") && isinf(first_rate))
		serve_warn(c, "--burstiness has no effect: every request is sent at once");
	if (o->num_warmups < 0)
		serve_warn(c, "--num-warmups is below 0 and has no effect");
	if (o->ready_check_timeout_sec < 0)
		serve_warn(c, "--ready-check-timeout-sec is below 0 and has no effect");
	return 0;
}

static int check_output(const struct check *c)
{
	const struct serve_opts *o = c->o;
	static const char *const only_saved[] = { "result-dir", "result-filename",
						  "save-detailed", "metadata" };
	bool is_saved = o->save_result || o->append_result;
	bool is_drawn = o->plot_timeline || o->plot_dataset_stats || o->plot_load_pattern;

	if (parse_pairs(c, &o->metadata, "metadata", &c->d->metadata, &c->d->n_metadata) < 0)
		return -1;
	c->d->label = o->label && *o->label ? o->label : o->backend;
	if (o->save_result && o->append_result)
		serve_warn(c, "--append-result is in force; --save-result adds nothing to it");
	for (size_t i = 0; i < sizeof(only_saved) / sizeof(*only_saved); i++)
		if (serve_given(c, only_saved[i]) && !is_saved && !(is_drawn && i < 2) &&
		    !(o->output_json && i == 3))
			serve_warn(c, "--%s has no effect without --save-result or --append-result",
			     only_saved[i]);
	return 0;
}

/* ---- ours ---- */

/* What the user says of the chat template; without a dataset that uses it there is a note. */
static int check_chat(const struct check *c)
{
	const struct serve_opts *o = c->o;
	struct str kwargs = str_of(o->chat_template_kwargs.text);
	struct json_scan scan = { kwargs, 0 };
	struct json_slice object;

	if (kwargs.n && json_next(&scan, &object, c->e) == 0 && object.kind != JSON_OBJECT)
		return err_set(c->e, ERR_RUN, "--chat-template-kwargs: expected a JSON object, got "
			       "%.100s", kwargs.p);
	if (o->data.skip_chat_template && strcmp(o->dataset_name, "custom") == 0 &&
	    (o->chat_prefix || o->chat_suffix || kwargs.n))
		serve_warn(c, "--chat-prefix, --chat-suffix and --chat-template-kwargs have no effect beside "
		     "--skip-chat-template");
	else if (kwargs.n && (o->chat_prefix || o->chat_suffix))
		serve_warn(c, "--chat-template-kwargs has no effect beside --chat-prefix and --chat-suffix");
	if (!o->chat_prefix && !o->chat_suffix)
		return 0;
	c->d->chat.source = CHAT_FLAGS;
	if (chat_unescape("--chat-prefix", o->chat_prefix, c->arena, &c->d->chat.prefix, c->e) < 0)
		return -1;
	return chat_unescape("--chat-suffix", o->chat_suffix, c->arena, &c->d->chat.suffix, c->e);
}

static int parse_compat(const struct check *c)
{
	static const struct { const char *name; enum serve_compat bit; } names[] = {
		{ "peak", COMPAT_PEAK }, { "role-chunk", COMPAT_ROLE_CHUNK },
		{ "stream-error", COMPAT_STREAM_ERROR }, { "detail", COMPAT_DETAIL },
		{ "v0.11", COMPAT_V011 },
	};
	const size_t n = sizeof(names) / sizeof(*names);
	struct str rest = str_of(c->o->compat);

	while (rest.n) {
		struct str name = str_trim(str_cut(&rest, ','));
		size_t i = 0;

		while (i < n && !str_is(name, names[i].name))
			i++;
		if (i == n)
			return err_set(c->e, ERR_USAGE, "--compat: expected a comma list of peak, "
				       "role-chunk, stream-error, detail, v0.11, got '%.*s'",
				       (int)name.n, name.p);
		c->d->compat |= names[i].bit;
	}
	return 0;
}

static int parse_fixes(const struct check *c)
{
	const struct opt_list *list = &c->o->fix;

	for (size_t i = 0; i < list->n; i++) {
		const struct serve_fix_row *row = serve_fixes;

		while (row->name && strcmp(row->name, list->v[i]) != 0)
			row++;
		if (!row->name)
			return err_set(c->e, ERR_USAGE, "--fix: nothing is called '%.100s'; "
				       "--fix help lists the names", list->v[i]);
		c->d->fixes |= row->bit;
		if (row->bit == FIX_DATASET_SEED)
			c->o->data.fix_seed = true;
	}
	return 0;
}

static int check_ours(const struct check *c)
{
	static const char *const forms[] = { [PROGRESS_AUTO] = "auto", [PROGRESS_BAR] = "bar",
					     [PROGRESS_LINES] = "lines",
					     [PROGRESS_NONE] = "none" };
	const struct serve_opts *o = c->o;
	struct serve_derived *d = c->d;
	int64_t n;

	d->threads = (unsigned)o->threads;
	d->warm_connections = SERVE_WARM_AUTO;
	if (str_to_i64(str_of(o->warm_connections), &n))
		d->warm_connections = (unsigned)n;
	d->is_user_stamps = strcmp(o->timestamps, "user") == 0;
	d->request_timeout_ns = (int64_t)(o->request_timeout * 1e9);
	d->connect_timeout_ns = (int64_t)(o->connect_timeout * 1e9);
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (strcmp(o->progress, forms[i]) == 0)
			d->progress = (enum serve_progress)i;
	if (o->disable_tqdm && d->progress == PROGRESS_AUTO)
		d->progress = PROGRESS_NONE;
	if (o->dry_run && (o->save_result || o->append_result || o->record_path))
		serve_warn(c, "--dry-run sends nothing, so no result and no record are written");
	return parse_compat(c) < 0 || parse_fixes(c) < 0 || check_chat(c) < 0 ? -1 : 0;
}

/* ---- entry points ---- */

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

int serve_opts_check(struct serve_opts *o, struct opt_result *result, struct arena *a,
		     struct serve_derived *out, struct err *e)
{
	const struct check c = { o, result, a, out, e };

	*out = (struct serve_derived){ 0 };
	if (serve_presets(o, result, a, e) < 0)
		return -1;
	serve_opts_fill(o, a);
	if (check_ours(&c) < 0 || check_limits(&c) < 0 || check_timeline(&c) < 0 ||
	    check_ramp_up(&c) < 0)
		return -1;
	if (serve_choose_backend(&c) < 0)
		return -1;
	make_urls(&c);
	if (check_url(&c) < 0 || serve_check_travel(&c) < 0 || check_headers(&c) < 0)
		return -1;
	check_model(&c);
	serve_find_backend(&c);
	if (serve_check_dataset(&c) < 0 || serve_check_range_ratio(&c) < 0 ||
	    check_goodput(&c) < 0 || serve_check_backend(&c) < 0 ||
	    serve_check_compat(&c) < 0 || check_body(&c) < 0)
		return -1;
	select_metrics(&c);
	if (out->compat & COMPAT_V011)
		out->metrics &= ~(unsigned)(SERVE_QUEUE_TIME | SERVE_E2EL_WITH_QUEUE);
	if (parse_percentiles(&c) < 0 || check_traffic(&c) < 0 || check_output(&c) < 0 ||
	    serve_check_load(&c) < 0 || serve_check_measure(&c) < 0 ||
	    serve_check_system(&c) < 0)
		return -1;
	return 0;
}
