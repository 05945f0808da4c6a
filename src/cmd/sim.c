/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd/sim.c - `profllm sim`: option rows, one server, SIGINT and SIGTERM.
 *
 * Options that vLLM's server has keep its names. Bad options exit with 2, what
 * the world refuses (a taken port, an unwritable file) with 1, a stop by signal
 * with 0.
 */
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/cli.h"
#include "cmd/cmd.h"
#include "opt/opt.h"
#include "sim/counters.h"
#include "sim/sim.h"

struct sim_cli {
	const char *host, *uds, *port_file, *cert_file, *key_file, *client_ca_file, *api_key;
	int64_t port, keep_alive_ms;
	const char *model, *tokenizer;
	struct opt_list served;
	int64_t max_model_len, seed;
	const char *ttft_ms, *itl_ms, *output_len;
	double burst_ms;
	int64_t tokens_per_event, reasoning, spec_tokens, diffusion_block, diffusion_steps;
	double spec_acceptance;
	struct opt_list faults;
	int64_t max_num_seqs, max_num_batched_tokens, kv_cache_tokens;
	double prefill_base_us, prefill_us_per_token, decode_base_us, decode_us_per_seq;
	enum opt_tri prefix_caching;
	bool is_cached_told;
	const char *truth_file, *requests_file;
};

#define ROW(member, name, ...) OPT(struct sim_cli, member, name, __VA_ARGS__)
#define SERVER "Server"
#define MODEL "Model"
#define ORACLE "Oracle: exact pacing (any of the first three switches it on)"
#define ENGINE "Engine model: continuous batching"
#define FILES "Files"

static const struct opt rows[] = {
	ROW(host, "host", .group = SERVER, .help = "Address to listen on."),
	ROW(port, "port", .group = SERVER, .min = 0, .max = 65535,
	    .help = "TCP port; 0 picks a free one."),
	ROW(port_file, "port-file", .group = SERVER, .arg = "FILE", .flags = OPT_OURS,
	    .help = "Gets the port number once the server listens."),
	ROW(uds, "uds", .group = SERVER, .arg = "PATH",
	    .help = "Listen on this Unix socket instead of a TCP port."),
	ROW(cert_file, "ssl-certfile", .group = SERVER, .arg = "FILE",
	    .help = "Certificate (PEM); with --ssl-keyfile the server speaks https."),
	ROW(key_file, "ssl-keyfile", .group = SERVER, .arg = "FILE", .help = "Private key (PEM)."),
	ROW(client_ca_file, "ssl-ca-certs", .group = SERVER, .arg = "FILE",
	    .help = "Clients must show a certificate of one of these authorities (PEM)."),
	ROW(api_key, "api-key", .group = SERVER, .flags = OPT_SECRET,
	    .help = "Key that requests under /v1 must bring as a bearer token."),
	ROW(keep_alive_ms, "keep-alive-ms", .group = SERVER, .arg = "MS", .flags = OPT_OURS,
	    .min = 0, .max = 1e9,
	    .help = "Close connections that were idle this long; 0 never does."),

	ROW(model, "model", .group = MODEL, .help = "Name of the model, the root in /v1/models."),
	ROW(served, "served-model-name", .group = MODEL, .arg = "NAME", .flags = OPT_MANY,
	    .help = "Ids the model is served under; default: its name."),
	ROW(tokenizer, "tokenizer", .group = MODEL, .arg = "PATH",
	    .help = "What tokens are counted and answers are written with: sim (built in), a "
		    "tokenizer.json, its directory, or a cached model name."),
	ROW(max_model_len, "max-model-len", .group = MODEL, .arg = "TOKENS", .min = 2, .max = 1e9,
	    .help = "Most tokens of prompt and answer together."),
	ROW(seed, "seed", .group = MODEL, .min = 0, .max = 9e15,
	    .help = "Seed of answers, distributions and faults."),

	ROW(ttft_ms, "ttft-ms", .group = ORACLE, .arg = "DIST", .flags = OPT_OURS,
	    .help = "Time from the request's arrival to its first token: 20, uniform:10:30, "
		    "normal:20:5, exp:20 or lognormal:20:0.5 (median, sigma)."),
	ROW(itl_ms, "itl-ms", .group = ORACLE, .arg = "DIST", .flags = OPT_OURS,
	    .help = "Time between two token events, likewise."),
	ROW(burst_ms, "burst-ms", .group = ORACLE, .arg = "MS", .flags = OPT_OURS, .min = 0,
	    .max = 1e7, .help = "All streams send together on a grid of this many milliseconds."),
	ROW(tokens_per_event, "tokens-per-event", .group = ORACLE, .arg = "K", .flags = OPT_OURS,
	    .min = 1, .max = 1024, .help = "Tokens that one event carries."),
	ROW(reasoning, "reasoning", .group = ORACLE, .arg = "N", .flags = OPT_OURS, .min = 0,
	    .max = 1e9, .help = "The first N tokens of a chat answer are reasoning."),
	ROW(spec_tokens, "spec-tokens", .group = ORACLE, .arg = "K", .flags = OPT_OURS, .min = 0,
	    .max = COUNTER_POSITIONS_MAX,
	    .help = "Speculative decoding, in the engine model, too: K tokens are drafted for "
		    "each event after the first; 0 drafts none."),
	ROW(spec_acceptance, "spec-acceptance", .group = ORACLE, .arg = "P", .flags = OPT_OURS,
	    .min = 0, .max = 1, .help = "Probability that a drafted token is accepted, when "
					"those before it were."),
	ROW(diffusion_block, "diffusion-block", .group = ORACLE, .arg = "TOKENS",
	    .flags = OPT_OURS, .min = 0, .max = 4096,
	    .help = "A diffusion model, in the engine model, too: events are canvases of this "
		    "many tokens; 0: none."),
	ROW(diffusion_steps, "diffusion-steps", .group = ORACLE, .arg = "N", .flags = OPT_OURS,
	    .min = 1, .max = 4096, .help = "Denoising steps of each canvas."),
	ROW(output_len, "output-len", .group = ORACLE, .arg = "DIST", .flags = OPT_OURS,
	    .help = "Answers end by themselves after that many tokens unless ignore_eos is set."),
	ROW(faults, "fault", .group = ORACLE, .arg = "SPEC", .flags = OPT_OURS | OPT_MANY,
	    .help = "What goes wrong: KIND[@TOKEN][=VALUE][:PROBABILITY or :id=PATTERN]; see the "
		    "end of this page."),

	ROW(max_num_seqs, "max-num-seqs", .group = ENGINE, .min = 1, .max = 1e6,
	    .help = "Most requests in one batch."),
	ROW(max_num_batched_tokens, "max-num-batched-tokens", .group = ENGINE, .min = 1,
	    .max = 1e9, .help = "Most tokens of one step, prefill and decode together."),
	ROW(kv_cache_tokens, "kv-cache-tokens", .group = ENGINE, .flags = OPT_OURS, .min = 1,
	    .max = 1e12, .help = "Tokens the KV cache holds; running requests that need more "
				 "are preempted, the newest first."),
	ROW(prefix_caching, "enable-prefix-caching", .group = ENGINE,
	    .help = "Beginnings of prompts that were seen before are not computed again."),
	ROW(is_cached_told, "enable-prompt-tokens-details", .group = ENGINE,
	    .help = "Usage says how many prompt tokens were cached."),
	ROW(prefill_base_us, "prefill-base-us", .group = ENGINE, .arg = "US", .flags = OPT_OURS,
	    .min = 0, .max = 1e9, .help = "Cost of a step with any prefill."),
	ROW(prefill_us_per_token, "prefill-us-per-token", .group = ENGINE, .arg = "US",
	    .flags = OPT_OURS, .min = 0, .max = 1e9, .help = "Cost of each prompt token."),
	ROW(decode_base_us, "decode-base-us", .group = ENGINE, .arg = "US", .flags = OPT_OURS,
	    .min = 0, .max = 1e9, .help = "Cost of a step with any decoding."),
	ROW(decode_us_per_seq, "decode-us-per-seq", .group = ENGINE, .arg = "US",
	    .flags = OPT_OURS, .min = 0, .max = 1e9, .help = "Cost of each decoding request."),

	ROW(truth_file, "truth", .group = FILES, .arg = "FILE", .flags = OPT_OURS,
	    .help = "JSON lines: what was sent for each request, and when."),
	ROW(requests_file, "requests", .group = FILES, .arg = "FILE", .flags = OPT_OURS,
	    .help = "JSON lines: every request as it was received."),
};

static const char epilog[] =
	"Faults: status=503, slow-start=500ms, slow-headers=1s, slow-body=1s, stall@5=2s,\n"
	"reset@5, close@5, malformed@3, error-event@4, drop-usage, no-done, crlf, comments,\n"
	"split, coalesce=2. The token after @ counts from 1. Examples:\n"
	"  profllm sim --ttft-ms 20 --itl-ms 10 --truth truth.jsonl\n"
	"  profllm sim --itl-ms 10 --fault status=503:0.1 reset@5:0.05 'stall@3=1s:id=slow-*'\n"
	"  profllm sim --max-num-seqs 64 --decode-base-us 8000\n";

static struct sim_cli cli_defaults(void)
{
	struct sim_opts d = sim_defaults();

	return (struct sim_cli){
		.host = d.host, .port = d.port, .model = d.model, .tokenizer = d.tokenizer,
		.max_model_len = d.max_model_len, .tokens_per_event = d.tokens_per_event,
		.max_num_seqs = d.max_num_seqs, .kv_cache_tokens = d.kv_cache_tokens,
		.max_num_batched_tokens = d.max_num_batched_tokens,
		.prefill_base_us = d.cost.prefill_base_us,
		.prefill_us_per_token = d.cost.prefill_us_per_token,
		.decode_base_us = d.cost.decode_base_us,
		.decode_us_per_seq = d.cost.decode_us_per_seq,
		.spec_acceptance = d.spec_acceptance, .diffusion_steps = d.diffusion_steps,
		.prefix_caching = d.is_prefix_cached ? OPT_TRI_YES : OPT_TRI_NO,
	};
}

static struct sim_opts cli_opts(const struct sim_cli *c)
{
	return (struct sim_opts){
		.host = c->host, .port = (uint16_t)c->port, .uds = c->uds,
		.port_file = c->port_file, .cert_file = c->cert_file, .key_file = c->key_file,
		.client_ca_file = c->client_ca_file,
		.api_key = c->api_key, .keep_alive_ms = c->keep_alive_ms, .model = c->model,
		.served = c->served.v, .served_count = c->served.n, .tokenizer = c->tokenizer,
		.max_model_len = c->max_model_len, .seed = (uint64_t)c->seed,
		.ttft_ms = c->ttft_ms, .itl_ms = c->itl_ms, .burst_ms = c->burst_ms,
		.tokens_per_event = c->tokens_per_event, .reasoning = c->reasoning,
		.output_len = c->output_len, .faults = c->faults.v, .fault_count = c->faults.n,
		.max_num_seqs = c->max_num_seqs, .kv_cache_tokens = c->kv_cache_tokens,
		.max_num_batched_tokens = c->max_num_batched_tokens,
		.cost = { .prefill_base_us = c->prefill_base_us,
			  .prefill_us_per_token = c->prefill_us_per_token,
			  .decode_base_us = c->decode_base_us,
			  .decode_us_per_seq = c->decode_us_per_seq },
		.spec_tokens = c->spec_tokens, .spec_acceptance = c->spec_acceptance,
		.diffusion_block = c->diffusion_block, .diffusion_steps = c->diffusion_steps,
		.is_prefix_cached = c->prefix_caching == OPT_TRI_YES,
		.is_cached_told = c->is_cached_told,
		.truth_file = c->truth_file, .requests_file = c->requests_file,
	};
}

/* What the signal handler stops; one server per process. */
static struct sim *_Atomic serving;
static volatile sig_atomic_t is_stop_wanted;

static void on_signal(int signal)
{
	struct sim *s = serving;

	(void)signal;
	is_stop_wanted = 1;
	if (s)
		sim_stop(s);
}

static void signals_catch(void)
{
	struct sigaction act = { .sa_handler = on_signal };

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

static void summary_print(const struct sim *s)
{
	struct sim_summary m = sim_summary(s);
	char p50[FMT_F64_BYTES], p99[FMT_F64_BYTES], max[FMT_F64_BYTES];

	fprintf(stderr, "profllm sim: %" PRIu64 " requests, %" PRIu64 " events, %" PRIu64 " tokens",
		m.requests, m.events, m.tokens);
	if (sim_is_oracle(s))
		fprintf(stderr, "; sent after due: p50 %s, p99 %s, max %s",
			fmt_duration(p50, m.late_p50_ns), fmt_duration(p99, m.late_p99_ns),
			fmt_duration(max, m.late_max_ns));
	fputc('\n', stderr);
}

static int serve(const struct sim_cli *cli, struct err *e)
{
	struct sim_opts opts = cli_opts(cli);
	struct sim *s;
	int rc;

	/* Before the port file exists, so that whoever waits for it may stop us at once. */
	signals_catch();
	s = sim_new(&opts, e);
	if (!s)
		return -1;
	serving = s;
	if (is_stop_wanted)
		sim_stop(s);
	fprintf(stderr, "profllm sim: serving model %s on %s (%s)\n",
		opts.served_count ? opts.served[0] : opts.model, sim_url(s),
		sim_is_oracle(s) ? "oracle" : "engine");
	rc = sim_run(s, e);
	serving = NULL; /* a signal that comes twice, as timeout(1) sends it, changes nothing */
	summary_print(s);
	sim_free(s);
	return rc;
}

const struct opt_set *cmd_sim_options(void)
{
	static struct sim_cli defaults;
	static const struct opt_set set = {
		.command = "sim", .summary = "A simulated inference server that speaks vLLM's API.",
		.usage = "[options]", .epilog = epilog, .row = rows,
		.n = sizeof(rows) / sizeof(*rows), .defaults = &defaults,
		.bytes = sizeof(defaults),
	};

	defaults = cli_defaults();
	return &set;
}

int cmd_sim(int argc, char **argv)
{
	struct sim_cli options;
	struct cli cli;
	int status = cli_begin(&cli, cmd_sim_options(), argc, argv, &options);

	if (status != CLI_CONTINUE)
		return status;
	cli_flush_notes(&cli);
	serve(&options, &cli.err);
	return cli_end(&cli);
}
