/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_load.c - the rules of options about servers, their API, how load is made, and what is
 * measured of server and machine; and whether a result will have the keys of a condition.
 *
 * Serve spec 1.4, 1.5, 3.1, 3.2, 4.7. What upstream silently ignores is noted. Whether the dataset
 * has any conversations is only known once it is built: then setup.c reports which of the options
 * about them have no effect.
 */
#include "bench/options/serve_opts_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/endpoint/described.h"
#include "client/http/head.h"
#include "client/http/url.h"
#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/schema/schema.h"
#include "input/data/lengths.h"
#include "input/sets/datasets.h"

#define TURN_RETRIES 3      /* --on-turn-failure retry, as its help says */
#define INTERVAL_S_MIN 0.01 /* below, reading /metrics or the machine would be a load of its own */

/* ---- the API ---- */

static const struct endpoint *endpoint_of(const struct serve_check *c)
{
	return c->d ? c->d->endpoint : endpoint_find(c->o->backend);
}

bool serve_is_openai(const struct serve_check *c)
{
	const struct endpoint *ep = endpoint_of(c);

	return !ep || ep->is_openai;
}

int serve_choose_backend(const struct serve_check *c)
{
	struct serve_opts *o = c->o;
	const struct endpoint *ep = o->own_endpoint;

	if (o->backend_file && serve_given(c, "backend"))
		return err_set(c->e, ERR_USAGE, "--backend-file %s and --backend %s are mutually "
			       "exclusive", o->backend_file, o->backend);
	if (o->backend_file) {
		ep = endpoint_described(o->backend_file, c->arena, c->e);
		if (!ep)
			return -1;
	}
	if (!ep)
		ep = endpoint_find(o->backend);
	if (!ep)
		return err_set(c->e, ERR_USAGE, "--backend %s: not in this version", o->backend);
	o->backend = ep->name;
	c->d->endpoint = ep;
	c->d->is_chat = ep->is_chat;
	c->d->is_pooling = ep->is_pooling;
	/*
	 * The API's own path, where the default of --endpoint is not valid: upstream refuses that.
	 */
	if (serve_given(c, "endpoint") && ep->suffix && strcmp(ep->suffix, "completions") == 0 &&
	    str_ends(str_of(o->endpoint), STR("/chat/completions")))
		serve_warn(c, "--endpoint %s expects the requests of --backend openai-chat, but --backend "
			   "%s sends those of /v1/completions", o->endpoint, ep->name);
	if (serve_given(c, "endpoint") ||
	    (!ep->is_ours && endpoint_check_url(ep, o->endpoint, NULL) == 0))
		return 0;
	if (!ep->is_ours)
		serve_warn(c, "--endpoint is %s, the path of --backend %s", ep->default_path, ep->name);
	o->endpoint = ep->default_path;
	return 0;
}

int serve_check_backend(const struct serve_check *c)
{
	static const char *const silent[] = { "goodput", "output-len", "logprobs",
					      "random-output-len" };
	static const char why[] = "--%s has no effect: --backend %s generates no text";
	const struct endpoint *ep = endpoint_of(c);
	struct serve_sampling row[SERVE_SAMPLING];

	serve_sampling(c->o, row);
	for (size_t i = 0; i < SERVE_SAMPLING && !ep->is_pooling; i++)
		if (row[i].is_set && !ep->is_openai && !ep->is_ours)
			return err_set(c->e, ERR_USAGE, "--%s: sampling options are for APIs like "
				       "OpenAI's, which --backend %s is not", row[i].option, ep->name);
	if (!ep->is_pooling)
		return 0;
	for (size_t i = 0; i < SERVE_SAMPLING; i++)
		if (row[i].is_set)
			serve_warn(c, why, row[i].option, c->o->backend);
	for (size_t i = 0; i < sizeof(silent) / sizeof(*silent); i++)
		if (serve_given(c, silent[i]))
			serve_warn(c, why, silent[i], c->o->backend);
	if (serve_given(c, "extra-body") && strcmp(c->o->backend, "vllm-rerank") == 0)
		serve_warn(c, "--extra-body has no effect: rerank requests take no further keys, as "
			   "in vLLM");
	return 0;
}

/* ---- servers ---- */

static bool is_ipv6(const char *host)
{
	char address[64];
	struct in6_addr parsed;

	if (strlen(host) >= sizeof(address))
		return false;
	snprintf(address, sizeof(address), "%.*s", (int)strcspn(host, "%"), host);
	return inet_pton(AF_INET6, address, &parsed) == 1;
}

bool serve_is_any_tls(const struct serve_check *c)
{
	for (unsigned i = 0; i < c->d->n_urls; i++)
		if (c->d->url[i].is_tls)
			return true;
	return false;
}

static int check_several(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;

	if (o->base_url)
		return err_set(c->e, ERR_USAGE, "--base-urls and --base-url are mutually exclusive");
	if (serve_given(c, "host") || serve_given(c, "port"))
		serve_warn(c, "--host and --port have no effect with --base-urls");
	if (o->base_urls.n > ENDPOINTS_MAX)
		return err_set(c->e, ERR_USAGE, "--base-urls: expected at most %u URLs, got %zu",
			       ENDPOINTS_MAX, o->base_urls.n);
	return 0;
}

/* A URL that can never work is refused before prompts are made. */
int serve_take_urls(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	struct serve_derived *d = c->d;
	bool is_v6 = is_ipv6(o->host);

	if (o->base_urls.n && check_several(c) < 0)
		return -1;
	if (!o->base_urls.n && o->base_url && (serve_given(c, "host") || serve_given(c, "port")))
		serve_warn(c, "--host and --port have no effect with --base-url");
	d->base_url = o->base_urls.n ? o->base_urls.v[0] : o->base_url;
	if (!d->base_url)
		d->base_url = arena_printf(c->arena, "http://%s%s%s:%" PRId64, is_v6 ? "[" : "",
					   o->host, is_v6 ? "]" : "", o->port);
	d->base_urls = o->base_urls.n ? o->base_urls.v : &d->base_url;
	d->n_urls = o->base_urls.n ? (unsigned)o->base_urls.n : 1;
	d->api_url = arena_printf(c->arena, "%s%s", d->base_url, o->endpoint);
	d->url = arena_alloc(c->arena, d->n_urls * sizeof(*d->url));
	for (unsigned i = 0; i < d->n_urls; i++)
		if (url_parse(str_of(d->base_urls[i]), &d->url[i], c->e) < 0)
			return err_wrap(c->e, "%s", o->base_urls.n ? "--base-urls"
					: o->base_url ? "--base-url" : "--host");
	if (o->insecure && o->cacert)
		serve_warn(c, "--cacert has no effect with --insecure");
	else if ((o->insecure || o->cacert) && !serve_is_any_tls(c))
		serve_warn(c, "%s has no effect: the server's URL is not https",
			   o->insecure ? "--insecure" : "--cacert");
	if (serve_is_any_tls(c) && o->cacert && !o->insecure && access(o->cacert, R_OK) < 0)
		return err_set(c->e, ERR_USAGE, "--cacert: cannot read %s: %s", o->cacert,
			       strerror(errno));
	return 0;
}

/* ---- load ---- */

static int check_duration(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	const struct dataset *set = dataset_find(o->dataset_name);
	struct serve_derived *d = c->d;

	d->is_num_prompts_given = serve_given(c, "num-prompts");
	if (!o->duration.is_set)
		return 0;
	d->load.admission_ns = clock_span_ns(o->duration.v);
	if (o->grace_period.is_set)
		d->load.deadline_ns = d->load.admission_ns + clock_span_ns(o->grace_period.v);
	if (isinf(o->request_rate) && d->ramp_up == RAMP_NONE && !d->load.max_concurrency &&
	    !o->max_sessions.is_set && !o->user_centric_rate.is_set && !d->is_num_prompts_given &&
	    o->self_timed != OPT_TRI_YES &&
	    !(set && set->may_have_timestamps && o->self_timed == OPT_TRI_UNSET))
		return err_set(c->e, ERR_USAGE, "--duration needs --request-rate, "
			       "--max-concurrency or --num-prompts; without them requests without a limit "
			       "would be sent at once");
	return 0;
}

static void take_limits(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	struct load_opts *load = &c->d->load;

	load->failures_max = o->max_errors.is_set && o->max_errors.v < UINT32_MAX
			     ? (uint32_t)o->max_errors.v : 0;
	load->is_failure_share_limited = o->max_error_rate.is_set;
	load->failure_share_max = o->max_error_rate.v;
	/* If any limit is given, it is the only one. */
	load->is_ended_by_refusals = !o->max_errors.is_set && !o->max_error_rate.is_set &&
				     !(c->d->compat & COMPAT_V011);
	load->give_up_ns = clock_span_ns(o->request_cancellation_delay);
}

static void take_balance(const struct serve_check *c)
{
	static const char *const hows[] = { [BALANCE_ROUND_ROBIN] = "round-robin",
					    [BALANCE_RANDOM] = "random",
					    [BALANCE_LEAST_LOADED] = "least-loaded" };

	for (size_t i = 0; i < sizeof(hows) / sizeof(*hows); i++)
		if (strcmp(c->o->balance, hows[i]) == 0)
			c->d->balance = (enum serve_balance)i;
	c->d->load.is_least_loaded = c->d->balance == BALANCE_LEAST_LOADED && c->d->n_urls > 1;
}

/* ---- where the client runs ---- */

static int take_own_addresses(const struct serve_check *c)
{
	const struct opt_list *list = &c->o->source_addresses;
	struct sock_addr *own = arena_alloc(c->arena, list->n * sizeof(*own));

	if (list->n > OWN_ADDRESSES_MAX)
		return err_set(c->e, ERR_USAGE, "--source-addresses: expected at most %d addresses, got "
			       "%zu", OWN_ADDRESSES_MAX, list->n);
	if (list->n && strcmp(c->o->transport, "curl") == 0)
		return err_set(c->e, ERR_USAGE, "--source-addresses: --transport curl cannot choose where "
			       "connections come from; use --transport native");
	for (size_t i = 0; i < list->n; i++)
		if (sock_addr_own(list->v[i], &own[i], c->e) < 0)
			return err_wrap(c->e, "--source-addresses");
	c->d->load.net.own = own;
	c->d->load.net.n_own = (unsigned)list->n;
	return 0;
}

/* "2-5,8" */
static int take_cpus(const struct serve_check *c)
{
	struct str rest = str_of(c->o->cpus ? c->o->cpus : "");
	uint16_t *cpu = arena_alloc(c->arena, CPUS_MAX * sizeof(*cpu));
	bool is_named[CPUS_MAX] = { false };
	unsigned n = 0;

	if (!c->o->cpus)
		return 0;
	do {
		struct str last = str_trim(str_cut(&rest, ','));
		bool is_range = last.n && memchr(last.p, '-', last.n);
		struct str first = is_range ? str_cut(&last, '-') : last;
		uint64_t from, to;

		if (!str_to_u64(first, &from) || !str_to_u64(last, &to) || from > to ||
		    to >= CPUS_MAX)
			return err_set(c->e, ERR_USAGE, "--cpus: expected numbers of processors below %d "
				       "such as 2-5,8, got '%.100s'", CPUS_MAX, c->o->cpus);
		for (; from <= to; from++) {
			if (is_named[from])
				return err_set(c->e, ERR_USAGE, "--cpus %.100s: processor %u is named twice",
					       c->o->cpus, (unsigned)from);
			is_named[from] = true;
			cpu[n++] = (uint16_t)from;
		}
	} while (rest.n);
	c->d->cpu = cpu;
	c->d->n_cpus = n;
	return 0;
}

/* ---- conversations ---- */

int serve_check_time(const struct opt *o, const void *field, struct err *e)
{
	const char *text = *(const char *const *)field;
	struct lengths law = { 0 };
	char option[32];
	int rc;

	snprintf(option, sizeof(option), "--%s", o->name);
	rc = text ? lengths_parse_time(option, text, &law, e) : 0;
	lengths_release(&law);
	return rc;
}

static int check_header(const struct serve_check *c, const char *option, const char *name)
{
	if (http_is_token(str_of(name)) && !http_head_is_framing(str_of(name)))
		return 0;
	return err_set(c->e, ERR_USAGE, "--%s '%.100s': expected the name of a header that profllm does "
		       "not set itself, such as X-Session-ID", option, name);
}

static int check_users(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;

	if (!o->user_centric_rate.is_set && !o->num_users.is_set)
		return 0;
	if (!o->user_centric_rate.is_set)
		return err_set(c->e, ERR_USAGE, "--num-users needs --user-centric-rate, the requests per "
			       "second of all users together");
	if (!o->num_users.is_set)
		return err_set(c->e, ERR_USAGE, "--user-centric-rate needs --num-users, the number of "
			       "users that send them");
	if (serve_given(c, "request-rate") || c->d->ramp_up != RAMP_NONE)
		return err_set(c->e, ERR_USAGE, "--user-centric-rate and --%s are mutually exclusive: "
			       "both say when conversations begin",
			       c->d->ramp_up != RAMP_NONE ? "ramp-up-strategy" : "request-rate");
	if (o->think_time)
		return err_set(c->e, ERR_USAGE, "--user-centric-rate and --think-time are mutually "
			       "exclusive: both say when the next turn is sent");
	return 0;
}

static int check_sessions(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	struct load_opts *load = &c->d->load;

	if ((*o->session_header && check_header(c, "session-header", o->session_header) < 0) ||
	    (o->session_token_header &&
	     check_header(c, "session-token-header", o->session_token_header) < 0))
		return -1;
	c->d->session_header = *o->session_header ? o->session_header : NULL;
	load->max_sessions = o->max_sessions.is_set && o->max_sessions.v < REQUESTS_MAX
			     ? (uint32_t)o->max_sessions.v : 0;
	load->is_chain_dropped = strcmp(o->on_turn_failure, "continue") != 0;
	load->retries = strcmp(o->on_turn_failure, "retry") == 0 ? TURN_RETRIES : 0;
	load->is_session_spread = strcmp(o->session_affinity, "spread") == 0;
	return check_users(c);
}

/* ---- what is measured of server and machine ---- */

static int check_interval(const struct serve_check *c, const char *option, double seconds)
{
	if (seconds > 0 && seconds < INTERVAL_S_MIN)
		return err_set(c->e, ERR_USAGE, "--%s: expected 0 or at least %g seconds, got %g", option,
			       INTERVAL_S_MIN, seconds);
	return 0;
}

static int check_metrics(const struct serve_check *c)
{
	struct str rest = str_of(c->o->metrics_url);
	double probes = c->o->probe_request_rate;
	struct url url;

	if (probes > 0 && 1.0 / probes > DUE_S_MAX)
		return err_set(c->e, ERR_USAGE, "--probe-request-rate %g: expected at least one request a "
			       "year (%d s); use a higher rate, or 0 for none", probes, DUE_S_MAX);
	if (check_interval(c, "metrics-interval", c->o->metrics_interval) < 0)
		return -1;
	while (rest.n) /* one, or several with commas between */
		if (url_parse(str_trim(str_cut(&rest, ',')), &url, c->e) < 0) {
			c->e->code = ERR_USAGE;
			return err_wrap(c->e, "--metrics-url");
		}
	return 0;
}

static int parse_system(const struct serve_check *c)
{
	struct system_opts *s = &c->d->system;
	struct str rest = str_of(c->o->system_metrics);
	const struct { const char *name; bool *wanted; } row[] = {
		{ "gpu", &s->gpu }, { "host", &s->host }, { "process", &s->process },
	};
	bool is_known = rest.n > 0 && !str_ends(rest, STR(","));

	if (str_is(rest, "off"))
		return 0;
	if (str_is(rest, "all")) {
		s->gpu = s->host = s->process = true;
		return 0;
	}
	while (rest.n && is_known) {
		struct str word = str_trim(str_cut(&rest, ','));

		is_known = false;
		for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
			if (str_is(word, row[i].name))
				*row[i].wanted = is_known = true;
	}
	if (is_known)
		return 0;
	return err_set(c->e, ERR_USAGE, "--system-metrics: expected off, all, or a comma list of gpu, "
		       "host, process, got '%s'", c->o->system_metrics);
}

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char ch = s.p[i];

		if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
		      (ch >= '0' && ch <= '9') || ch == '-' || ch == '_' || ch == '.'))
			return false;
	}
	return s.n > 0;
}

static int parse_pids(const struct serve_check *c)
{
	const struct opt_list *list = &c->o->system_pid;
	struct system_process *p = arena_alloc(c->arena, list->n * sizeof(*p));

	for (size_t i = 0; i < list->n; i++) {
		struct str rest = str_of(list->v[i]), name = STR("server");
		uint64_t pid;

		if (memchr(rest.p, '=', rest.n))
			name = str_cut(&rest, '=');
		if (!is_name(name) || !str_to_u64(rest, &pid) || pid == 0 || pid > PROC_TREE_MAX)
			return err_set(c->e, ERR_USAGE, "--system-pid: expected the number of a process, "
				       "or NAME=NUMBER with a name of letters, digits, '-', '_' and '.', "
				       "got '%s'", list->v[i]);
		p[i] = (struct system_process){ (pid_t)pid, arena_text(c->arena, name) };
	}
	c->d->system.processes = p;
	c->d->system.n_processes = list->n;
	return 0;
}

static int check_system(const struct serve_check *c)
{
	const struct opt_list *gpus = &c->o->system_gpus;

	if (parse_system(c) < 0 || parse_pids(c) < 0)
		return -1;
	for (size_t i = 0; i < gpus->n; i++)
		if (!is_name(str_of(gpus->v[i])))
			return err_set(c->e, ERR_USAGE, "--system-gpus: expected the index of a GPU or its "
				       "UUID, got '%s'", gpus->v[i]);
	if (check_interval(c, "system-interval", c->o->system_interval) < 0)
		return -1;
	c->d->system.interval_ns = (int64_t)(c->o->system_interval * 1e9);
	c->d->system.gpus = gpus->v;
	c->d->system.n_gpus = gpus->n;
	return 0;
}

static void warn_unused(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;
	const struct system_opts *s = &c->d->system;
	const bool is_old = c->d->compat & COMPAT_V011;
	const char *unsteady = o->no_steady_state ? " with --no-steady-state"
			       : !c->d->load.max_concurrency ? " without --max-concurrency"
			       : !isinf(o->request_rate) ? " with a finite --request-rate" : NULL;
	const struct serve_unused rows[] = {
		{ "grace-period", !o->duration.is_set, " without --duration" },
		{ "calibrate-itl", !o->calibrate, " without --calibrate" },
		{ "balance", o->base_urls.n < 2, " without several --base-urls" },
		{ "request-cancellation-delay", o->request_cancellation_rate == 0,
		  " without --request-cancellation-rate" },
		{ "profile-duration", !o->profile_batch_threshold.is_set,
		  " without --profile-batch-threshold" },
		{ "session-affinity", c->d->n_urls < 2, " without several --base-urls" },
		{ "metrics-interval", is_old, ": v0.11 does not read /metrics" },
		{ "metrics-url", is_old, ": v0.11 does not read /metrics" },
		{ "steady-state-threshold", unsteady != NULL, unsteady },
		{ "steady-state-min-window", unsteady != NULL, unsteady },
		{ "system-interval", !s->gpu && !s->host && !s->process, " without --system-metrics" },
		{ "system-gpus", !s->gpu, " unless --system-metrics has gpu" },
		{ "system-pid", !s->process, " unless --system-metrics has process" },
	};

	serve_warn_unused(c, rows, sizeof(rows) / sizeof(*rows));
	if (o->probe_request_rate < 0)
		serve_warn(c, "--probe-request-rate %g has no effect: only rates above 0 have one",
			   o->probe_request_rate);
	if (o->live && o->disable_tqdm)
		serve_warn(c, "--live has no effect with --disable-tqdm");
	if (o->profile && o->profile_batch_threshold.is_set)
		serve_warn(c, "--profile has no effect with --profile-batch-threshold, which starts "
			   "the profiler");
}

int serve_check_load(const struct serve_check *c)
{
	if (check_duration(c) < 0)
		return -1;
	take_limits(c);
	take_balance(c);
	if (take_own_addresses(c) < 0 || take_cpus(c) < 0 || check_sessions(c) < 0 ||
	    check_metrics(c) < 0 || check_system(c) < 0)
		return -1;
	warn_unused(c);
	return 0;
}

/* ---- conditions ---- */

#define STEADY "a cap, an infinite rate and no --no-steady-state"

struct gate_question {
	const struct gate *g;
	const struct serve_opts *o;
	const struct serve_derived *d;
	bool is_experiment;
	struct err *e;
};

/* "...; add --max-concurrency", "...; add benchmark.max_concurrency". */
static int refuse(const struct gate_question *q, const char *why, const char *what,
		  const char *option)
{
	char spelled[64];

	snprintf(spelled, sizeof(spelled), "%s%s", q->is_experiment ? "benchmark." : "--", option);
	for (char *p = spelled + 2; q->is_experiment && *p; p++)
		*p = *p == '-' ? '_' : *p;
	return err_set(q->e, ERR_USAGE, "'%s': %s; %s %s", q->g->text, why, what, spelled);
}

/* "p99.9_ttft_ms", "mean_ttft_ms": splits the text before the first "_" from the metric. */
static int check_latency(const struct gate_question *q, bool is_percentile)
{
	struct str metric = str_of(q->g->key), statistic = str_cut(&metric, '_');
	char why[64], what[48];
	double v = NAN;

	metric.n -= strlen("_ms");
	if (!(q->d->metrics.selected & BLOCK_BIT(metric_block_find(metric)))) {
		snprintf(why, sizeof(why), "%.*s is not computed", (int)metric.n, metric.p);
		return refuse(q, why, "add it to", "percentile-metrics");
	}
	if (!is_percentile)
		return 0;
	str_to_f64((struct str){ statistic.p + 1, statistic.n - 1 }, &v);
	for (size_t i = 0; i < q->d->metrics.n_percentiles; i++)
		if (!(q->d->metrics.percentile[i] < v) && !(q->d->metrics.percentile[i] > v))
			return 0;
	snprintf(what, sizeof(what), "add %.*s to", (int)statistic.n - 1, statistic.p + 1);
	return refuse(q, "this percentile is not computed", what, "metric-percentiles");
}

static int check_steady_state(const struct gate_question *q)
{
	static const char why[] = "a steady state needs a cap and an infinite rate";

	if (q->o->no_steady_state)
		return refuse(q, "the steady state is not computed", "leave out", "no-steady-state");
	if (!q->d->load.max_concurrency)
		return refuse(q, why, "add", "max-concurrency");
	return isinf(q->o->request_rate) ? 0 : refuse(q, why, "leave out", "request-rate");
}

/* An experiment has its own keys for watching the machine and for repeats. */
static int check_need(const struct gate_question *q, const char *when)
{
	const struct serve_opts *o = q->o;
	const struct system_opts *s = &q->d->system;
	const bool is_own = q->is_experiment;
	const struct { const char *when, *option; bool is_met; } need[] = {
		{ "ramp-up", "ramp-up-strategy", q->d->ramp_up != RAMP_NONE },
		{ "--report-cached-tokens", "report-cached-tokens", o->report_cached_tokens },
		{ "probe requests were sent", "probe-request-rate", o->probe_request_rate > 0 },
		{ "--gpu-price", "gpu-price", q->d->gpu_price > 0 },
		{ "--gpus and --gpu-price", "gpu-price", q->d->gpu_price > 0 },
		{ "--num-runs above 1", "num-runs", is_own || o->num_runs > 1 },
		{ "--system-metrics", "system-metrics", is_own || s->gpu || s->host || s->process },
	};

	for (size_t i = 0; i < sizeof(need) / sizeof(*need); i++)
		if (strcmp(when, need[i].when) == 0 && !need[i].is_met)
			return refuse(q, "the result will not have it", "add", need[i].option);
	return 0;
}

int serve_gate_check(const struct gate *g, const struct serve_opts *o,
		     const struct serve_derived *d, bool is_experiment, struct err *e)
{
	const struct gate_question q = { g, o, d, is_experiment, e };
	const struct schema_field *field = schema_field_find(g->key);

	if (gate_check_alone(g, e) < 0)
		return -1;
	if (strcmp(field->when, d->is_pooling ? "generation" : "pooling") == 0)
		return err_set(e, ERR_USAGE, "'%s': a result of backend %s does not have it; it is for "
			       "backends that %s", g->text, o->backend, d->is_pooling ?
			       "generate text" : "give vectors or scores");
	if (strcmp(g->key, "request_goodput") == 0 && !d->metrics.n_goodput)
		return refuse(&q, "there is no goodput without limits", "add them with", "goodput");
	if (strcmp(field->key, "p<p>_<metric>_ms") == 0)
		return check_latency(&q, true);
	if (strcmp(field->when, "metric selected") == 0)
		return check_latency(&q, false);
	if (str_starts(str_of(field->when), STR(STEADY)))
		return check_steady_state(&q);
	return check_need(&q, field->when);
}
