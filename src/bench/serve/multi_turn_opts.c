/* SPDX-License-Identifier: Apache-2.0 */
/* multi_turn_opts.c - the options of `bench multi-turn` and their rules; see multi_turn.h. */
#include "bench/serve/multi_turn.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/http/url.h"
#include "core/base/limits.h"
#include "core/json/write.h"
#include "core/stats/stats.h"

#define INPUT "Conversations"
#define SERVER "Server"
#define ORDER "Order of requests"
#define BODY "Requests"
#define OUTPUT "Output"

#define RETRIES_VARIABLE "MULTITURN_BENCH_MAX_RETRIES"
#define CLIENTS_MAX 65536
#define RETRIES_MAX 1000

static const char *const groups[] = { INPUT, SERVER, ORDER, BODY, OUTPUT, NULL };
static const char *const samplings[] = { "round_robin", "random", NULL };

#define M(member, name, ...) OPT(struct multi_turn_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	M(input_file, "input-file", .letter = 'i', .group = INPUT, .arg = "FILE",
	  .words = "dataset dataset-path conversations",
	  .help = "conversations as JSON, or a generate_conversations file to make them from"),
	M(output_file, "output-file", .letter = 'o', .group = OUTPUT, .arg = "FILE",
	  .words = "output",
	  .help = "write the conversations with the server's answers as JSON"),
	M(seed, "seed", .group = ORDER, .min = 0, .max = UINT32_MAX,
	  .help = "seed of generated conversations; client i draws from generators with seed + i + 1"),
	M(model, "model", .letter = 'm', .group = SERVER, .arg = "NAME",
	  .help = "model: the tokenizer's name or path, and the name in requests"),
	M(served_model_name, "served-model-name", .group = SERVER, .arg = "NAME",
	  .help = "name of the model in requests, if it differs from --model"),
	M(url, "url", .letter = 'u', .group = SERVER, .arg = "URL", .words = "base-url host port",
	  .help = "base URL of the server"),
	M(num_clients, "num-clients", .letter = 'p', .group = ORDER, .arg = "N", .min = 1,
	  .max = CLIENTS_MAX, .words = "clients users concurrency max-concurrency -c",
	  .help = "number of clients, each with one request in flight"),
	M(max_active_conversations, "max-active-conversations", .letter = 'k', .group = ORDER,
	  .arg = "N", .min = 1, .max = REQUESTS_MAX,
	  .help = "conversations that are active at once, over all clients; default: one for each "
		  "client"),
	M(max_num_requests, "max-num-requests", .letter = 'n', .group = ORDER, .arg = "N",
	  .min = 1, .max = REQUESTS_MAX, .words = "num-prompts requests",
	  .help = "send at most this many requests; each client has an equal share, and the first one "
		  "that has sent its share ends the run, unless --no-early-stop"),
	M(warmup_step, "warmup-step", .group = ORDER,
	  .help = "send the first turn of every conversation before the measured run, which begins "
		  "with the second ones"),
	M(max_turns, "max-turns", .group = ORDER, .arg = "MESSAGES", .min = 1, .max = REQUESTS_MAX,
	  .help = "end each conversation after this many messages; those of user and assistant count"),
	M(no_early_stop, "no-early-stop", .group = ORDER,
	  .help = "do not stop all clients when the first one has no conversation left"),
	M(limit_min_tokens, "limit-min-tokens", .group = BODY, .arg = "TOKENS",
	  .min = -INFINITY, .max = LENGTH_TOKENS_MAX,
	  .help = "min_tokens of every request; 0: the length of the answer in the data; a "
		  "negative value leaves it out"),
	M(limit_max_tokens, "limit-max-tokens", .group = BODY, .arg = "TOKENS",
	  .min = -INFINITY, .max = LENGTH_TOKENS_MAX, .words = "max-tokens",
	  .help = "max_tokens of every request, with the same meaning of 0 and negative values"),
	M(request_rate, "request-rate", .group = ORDER, .arg = "RATE", .min = 0, .max = INFINITY,
	  .help = "pause of each client after each answer: exponentially distributed with a mean "
		  "of 1/RATE seconds; 0: no pause"),
	M(max_retries, "max-retries", .group = ORDER, .arg = "N", .min = 0, .max = RETRIES_MAX,
	  .help = "attempts after a failed one, 1 s, 2 s, 4 s later; $" RETRIES_VARIABLE
		  " or 0 unless given"),
	M(conversation_sampling, "conversation-sampling", .group = ORDER, .arg = "HOW",
	  .choices = samplings, .flags = OPT_DASHED,
	  .help = "which of its active conversations a client continues"),
	M(verify_output, "verify-output", .group = BODY,
	  .help = "compare the answers with those in the data: differences are counted, and the "
		  "exit status is 1; with --verify-output=stop the first one ends its client, as "
		  "in vLLM's script"),
	M(stop_on_mismatch, "verify-output-stop", .flags = OPT_HIDDEN,
	  .help = "what --verify-output=stop becomes"),
	M(request_timeout_sec, "request-timeout-sec", .group = SERVER, .arg = "SECONDS",
	  .min = 1, .max = 1e6, .words = "timeout request-timeout",
	  .help = "time limit of a request, raised to a fifth of a second for each token asked for"),
	M(no_stream, "no-stream", .group = BODY, .help = "ask for whole answers instead of streams"),
	M(excel_output, "excel-output", .letter = 'e', .group = OUTPUT,
	  .help = "write a spreadsheet statistics_<clients>_clients__<date>.xlsx"),
	M(stats_json_output, "stats-json-output", .group = OUTPUT, .arg = "FILE",
	  .help = "write the figures of every request as JSON"),
	M(verbose, "verbose", .letter = 'v', .group = OUTPUT,
	  .help = "add the time between the turns of a conversation to the statistics"),
	M(print_content, "print-content", .group = OUTPUT,
	  .help = "print questions and answers after the run"),
	M(warmup_percentages, "warmup-percentages", .group = OUTPUT, .arg = "LIST",
	  .help = "percentages of the first requests that the statistics leave out, one table for each: "
		  "0%,10%; ignored with --warmup-step"),
	M(trust_remote_code, "trust-remote-code", .group = SERVER,
	  .help = "accepted for compatibility; nothing remote is ever run"),
	M(send_conversation_id, "send-conversation-id", .group = BODY,
	  .help = "send the conversation's id as the member conversation_id and the header "
		  "X-Session-ID"),
	M(api_key, "api-key", .group = SERVER, .arg = "KEY", .flags = OPT_SECRET,
	  .help = "API key, sent as a bearer token; takes precedence over --header and "
		  "$OPENAI_API_KEY"),
	M(header, "header", .group = SERVER, .arg = "KEY=VALUE", .flags = OPT_SECRET | OPT_EACH,
	  .help = "HTTP header of every request; KEY: VALUE is also accepted"),
	M(output_len, "output-len", .group = BODY, .flags = OPT_OURS, .arg = "TOKENS", .min = 1,
	  .max = LENGTH_TOKENS_MAX,
	  .help = "output tokens to request where the data has no answer, after a last message of "
		  "the user"),
	M(compat, "compat", .group = ORDER, .flags = OPT_OURS, .arg = "LIST",
	  .help = "vLLM's script, also where it is mistaken: abandon (or multi-turn-abandon) leaves "
		  "active conversations when no new one is left, loses remainders of -n and -k and ends a "
		  "client after a timeout; usage asks for no token counts; body sends no seed, temperature and "
		  "min_tokens; multi-turn is all three"),
};

static const struct multi_turn_opts defaults = {
	.url = "http://localhost:8000", .num_clients = 1, .conversation_sampling = "round_robin",
	.request_timeout_sec = 120, .warmup_percentages = "0%", .output_len = 128,
};

const struct opt_set multi_turn_opt_set = {
	.command = "bench multi-turn",
	.summary = "Measures a server with conversations: clients that send turn after turn, with the "
		   "server's own answers as history.",
	.usage = "--input-file FILE --model MODEL [options] [options of bench serve]",
	.epilog = "Options of bench serve about the server, the report and its files are also accepted,\n"
		  "such as --save-result, --goodput, --record and --tokenizer.\n\n"
		  "Examples:\n"
		  "  profllm bench multi-turn -i conversations.json -m MODEL -p 4 -k 8\n"
		  "  profllm bench multi-turn -i generate_multi_turn.json -m MODEL --warmup-step \\\n"
		  "      --save-result --stats-json-output requests.json",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.takes_prefixes = true,
};

/* ---- rules ---- */

static int read_warmup(const struct multi_turn_opts *o, struct arena *a, struct multi_turn *m,
		       struct err *e)
{
	struct str rest = str_of(o->warmup_step ? "0%" : o->warmup_percentages);

	m->warmup = arena_alloc(a, (rest.n + 1) * sizeof(*m->warmup));
	do {
		struct str one = str_trim(str_cut(&rest, ',')), number = one;
		double v;

		if (number.n && number.p[number.n - 1] == '%')
			number.n--;
		if (!str_to_f64(str_trim(number), &v) || !(v >= 0 && v < 100))
			return err_set(e, ERR_USAGE, "--warmup-percentages: expected percentages from 0%% up "
				       "to but not including 100%%, got '%.*s'", (int)(one.n < 80 ? one.n : 80),
				       one.p ? one.p : "");
		m->warmup[m->n_warmup++] = v / 100;
	} while (rest.n);
	stats_sort(m->warmup, m->n_warmup);
	return 0;
}

static int read_compat(const struct multi_turn_opts *o, unsigned *out, struct err *e)
{
	static const struct { const char *name; unsigned bits; } known[] = {
		{ "abandon", MULTI_TURN_ABANDON }, { "multi-turn-abandon", MULTI_TURN_ABANDON },
		{ "usage", MULTI_TURN_USAGE }, { "multi-turn-usage", MULTI_TURN_USAGE },
		{ "body", MULTI_TURN_BODY },
		{ "multi-turn", MULTI_TURN_ABANDON | MULTI_TURN_USAGE | MULTI_TURN_BODY },
	};
	struct str rest = str_of(o->compat);

	while (rest.n) {
		struct str name = str_trim(str_cut(&rest, ','));
		size_t i = 0;

		while (i < sizeof(known) / sizeof(*known) && !str_is(name, known[i].name))
			i++;
		if (i == sizeof(known) / sizeof(*known))
			return err_set(e, ERR_USAGE, "--compat: expected names from abandon, usage, body and "
				       "multi-turn, separated by commas, got '%.*s'",
				       (int)(name.n < 80 ? name.n : 80), name.p);
		*out |= known[i].bits;
	}
	return 0;
}

static int read_retries(const struct multi_turn_opts *o, uint32_t *out, struct err *e)
{
	const char *text = getenv(RETRIES_VARIABLE);
	int64_t n = o->max_retries.is_set ? o->max_retries.v : 0;

	if (!o->max_retries.is_set && text && *text &&
	    (!str_to_i64(str_of(text), &n) || n < 0 || n > RETRIES_MAX))
		return err_set(e, ERR_USAGE, "$" RETRIES_VARIABLE ": expected an integer from 0 to %d, got "
			       "'%.80s'", RETRIES_MAX, text);
	*out = (uint32_t)n;
	return 0;
}

/* Shared totals must be at least one per client. */
static int check_shares(const struct multi_turn_opts *o, int64_t active, struct err *e)
{
	if (o->max_num_requests.is_set && o->max_num_requests.v < o->num_clients)
		return err_set(e, ERR_USAGE, "--max-num-requests %lld is below --num-clients %lld: each "
			       "client sends at least one request", (long long)o->max_num_requests.v,
			       (long long)o->num_clients);
	if (active < o->num_clients)
		return err_set(e, ERR_USAGE, "--max-active-conversations %lld is below --num-clients %lld: "
			       "each client has at least one", (long long)active,
			       (long long)o->num_clients);
	return 0;
}

static int check_limits(const struct multi_turn_opts *o, struct err *e)
{
	int64_t least = o->limit_min_tokens, most = o->limit_max_tokens;

	if (least <= 0 && most <= 0)
		return 0;
	if (least < 1 || most < 1)
		return err_set(e, ERR_USAGE, "--limit-%s-tokens %lld: expected at least 1, because "
			       "--limit-%s-tokens is %lld", least < 1 ? "min" : "max",
			       (long long)(least < 1 ? least : most), least < 1 ? "max" : "min",
			       (long long)(least < 1 ? most : least));
	if (least > most)
		return err_set(e, ERR_USAGE, "--limit-min-tokens %lld is above --limit-max-tokens %lld",
			       (long long)least, (long long)most);
	return 0;
}

int multi_turn_opts_check(const struct multi_turn_opts *o, struct arena *a, struct multi_turn *m,
		     struct err *e)
{
	int64_t active = o->max_active_conversations.is_set ? o->max_active_conversations.v
							    : o->num_clients;
	struct url url;

	m->o = o;
	m->warmup_s = NAN;
	if (!o->input_file || !o->model)
		return err_set(e, ERR_USAGE, "--%s is missing: %s", o->input_file ? "model" : "input-file",
			       o->input_file ? "the model's name, or the path of its tokenizer"
					     : "a file with conversations, or one to make them from");
	if (url_parse(str_of(o->url), &url, e) < 0)
		return err_wrap(e, "--url");
	if (check_shares(o, active, e) < 0 || check_limits(o, e) < 0)
		return -1;
	if (read_warmup(o, a, m, e) < 0 || read_compat(o, &m->compat, e) < 0 ||
	    read_retries(o, &m->order.retries_max, e) < 0)
		return -1;
	m->order.clients = (uint32_t)o->num_clients;
	m->order.active_max = (uint32_t)active;
	m->order.requests_max = o->max_num_requests.is_set ? (uint32_t)o->max_num_requests.v : 0;
	m->order.messages_max = o->max_turns.is_set ? (uint32_t)o->max_turns.v : 0;
	m->order.seed = (uint32_t)o->seed;
	m->order.sampling = strcmp(o->conversation_sampling, "random") == 0 ? TURN_RANDOM
									    : TURN_ROUND_ROBIN;
	m->order.request_rate = isinf(o->request_rate) ? 0 : o->request_rate;
	m->order.skips_first = o->warmup_step;
	m->order.stops_early = !o->no_early_stop;
	m->order.abandons = m->compat & MULTI_TURN_ABANDON;
	return 0;
}

int multi_turn_header(const char *text, struct arena *a, struct serve_pair *out, struct err *e)
{
	const char *at = strpbrk(text, ":=");
	struct str key = { text, at ? (size_t)(at - text) : 0 };

	key = str_trim(key);
	/* Text after a blank or a separator may be a key, so it is not repeated. */
	if (!at || key.n == 0)
		return err_set(e, ERR_USAGE, "--header: expected KEY=VALUE or KEY: VALUE, got '%.*s%s'",
			       (int)strcspn(text, ":= "), text, *text ? "..." : "");
	out->key = arena_text(a, key);
	out->value = arena_text(a, str_trim(str_of(at + 1)));
	return 0;
}

/* ---- with bench serve ---- */

/* Options of bench serve that mean the same here. */
static const char *const passed[] = {
	"tokenizer", "tokenizer-mode", "endpoint", "extra-body", "omit-body-keys", "top-p", "top-k",
	"min-p", "temperature", "frequency-penalty", "presence-penalty", "repetition-penalty",
	"label", "disable-tqdm", "progress", "profile", "save-result", "save-detailed",
	"append-result", "metadata", "result-dir", "result-filename", "output-json", "record",
	"percentile-metrics", "metric-percentiles", "goodput", "request-id-prefix",
	"ready-check-timeout-sec", "insecure", "cacert", "client-cert", "client-key", "proxy",
	"transport", "http-version", "follow-redirects", "connect-timeout", "warm-connections",
	"threads", "cpus", "source-addresses", "timestamps", "calibrate", "calibrate-itl",
	"max-errors", "max-error-rate", "reset-prefix-cache",
	"steady-state-threshold", "steady-state-min-window", "no-steady-state",
	"report-cached-tokens", "metrics-interval", "metrics-url", "system-metrics",
	"system-interval", "system-gpus", "system-pid", "plot-timeline", "plot-turns",
	"timeline-itl-thresholds", "charts", "live", "strict", "dry-run", "dump-workload", "trace",
	"fail-if", "allow-unjudged", "junit", "summary",
};

/* Whether the typed option, also with "no-", is this one; "_" equals "-". */
static bool is_named(struct str typed, const char *name)
{
	if (str_starts(typed, STR("no-")) && strncmp(name, "no-", 3) != 0)
		typed = (struct str){ typed.p + 3, typed.n - 3 };
	if (typed.n != strlen(name))
		return false;
	for (size_t i = 0; i < typed.n; i++)
		if ((typed.p[i] == '_' ? '-' : typed.p[i]) != name[i])
			return false;
	return true;
}

bool multi_turn_passes(struct str typed)
{
	for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
		if (is_named(typed, passed[i]))
			return true;
	return false;
}

/* --header and --api-key as bench serve's --header; the key's is the last one, which counts. */
static int take_headers(const struct multi_turn_opts *o, struct serve_opts *serve, struct arena *a,
			struct err *e)
{
	const char **v = arena_alloc(a, (o->header.n + 1) * sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < o->header.n; i++) {
		struct serve_pair pair;

		if (multi_turn_header(o->header.v[i], a, &pair, e) < 0)
			return -1;
		if (!o->api_key || !str_eq_nocase(str_of(pair.key), STR("Authorization")))
			v[n++] = arena_printf(a, "%s=%s", pair.key, pair.value);
	}
	if (o->api_key)
		v[n++] = arena_printf(a, "Authorization=Bearer %s", o->api_key);
	serve->header = (struct opt_list){ v, n, n > 0 };
	return 0;
}

int multi_turn_over_serve(struct multi_turn *m, struct serve_opts *serve,
			  const struct opt_result *given, struct arena *a, struct err *e)
{
	const struct multi_turn_opts *o = m->o;

	serve->backend = "openai-chat";
	if (!opt_given(&serve_opt_set, given, "endpoint"))
		serve->endpoint = multi_turn_endpoint(m)->default_path;
	serve->base_url = o->url;
	serve->model = o->model;
	serve->served_model_name = o->served_model_name;
	serve->seed = o->seed;
	serve->max_concurrency = (struct opt_int){ true, o->num_clients };
	serve->request_timeout = (double)o->request_timeout_sec;
	serve->multi_turn = m;
	serve->own_endpoint = multi_turn_endpoint(m);
	m->serve = serve;
	m->sends_ids = opt_given(&serve_opt_set, given, "request-id-prefix");
	return take_headers(o, serve, a, e);
}

/* Options of the verb that do not describe the run, or that bench serve has in another form. */
static bool is_aside(struct str key)
{
	static const char *const aside[] = { "url", "output_file", "stats_json_output", "api_key",
					     "header", "verbose", "print_content", "excel_output",
					     "request_rate" };

	for (size_t i = 0; i < sizeof(aside) / sizeof(*aside); i++)
		if (str_is(key, aside[i]))
			return true;
	return false;
}

static struct str options_text(const struct opt_set *set, const void *values, struct arena *a)
{
	struct buf json = { 0 };
	struct str text;

	opt_json(set, values, &json);
	text = arena_str(a, buf_str(&json));
	buf_release(&json);
	return text;
}

static struct json_value *tree_of(struct str text, struct arena *a)
{
	struct json_value *v;
	int rc = json_parse(a, text, &v, NULL);

	assert(rc == 0); /* it was written here */
	(void)rc;
	return v;
}

struct str multi_turn_options(const struct serve_opts *serve, const struct multi_turn_opts *turns,
			      struct arena *a)
{
	struct str text = options_text(&serve_opt_set, serve, a);
	const struct json_value *all, *own;
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	if (!turns)
		return text;
	all = tree_of(text, a);
	own = tree_of(options_text(&multi_turn_opt_set, turns, a), a);
	json_begin_object(&w);
	for (size_t i = 0; i < all->count; i++) {
		const struct json_value *v = is_aside(all->key[i]) ? NULL :
					     json_get(own, all->key[i].p);

		json_key_str(&w, all->key[i]);
		if (str_is(all->key[i], "dataset_name"))
			json_put_text(&w, "conversations");
		else
			json_put_value(&w, v ? v : &all->item[i]);
	}
	for (size_t i = 0; i < own->count; i++) {
		if (is_aside(own->key[i]) || json_get(all, own->key[i].p))
			continue;
		json_key_str(&w, own->key[i]);
		json_put_value(&w, &own->item[i]);
	}
	json_member_value(&w, "client_request_rate", json_get(own, "request_rate"));
	json_end_object(&w);
	text = arena_str(a, buf_str(&out));
	buf_release(&out);
	return text;
}
