/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_tap.c - `profllm bench tap`: a report of another client's traffic, from an interface of
 * this machine or from a capture file.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "bench/serve/observe.h"
#include "client/endpoint/endpoint.h"
#include "client/net/capture.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/score_verb.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "input/token/tokenizer.h"

#define WAIT_MS 100
#define DEFAULT_PERCENTILE 99

struct tap_opts {
	const char *file, *port, *interface, *host, *backend, *tokenizer;
	struct opt_real duration;
	struct score_choice choice;
};

#define ROW(member, name, ...) OPT(struct tap_opts, member, name, __VA_ARGS__)
#define CHOICE(member, name, ...) OPT(struct tap_opts, choice.member, name, __VA_ARGS__)
#define CAPTURE "Capture"

static const struct opt rows[] = {
	ROW(file, "FILE", .flags = OPT_POSITIONAL,
	    .help = "a pcap or pcapng file, as tcpdump writes it; not given: live packets"),
	ROW(port, "port", .group = CAPTURE, .arg = "N[,N]",
	    .help = "TCP ports of the servers; other traffic is ignored"),
	ROW(host, "host", .group = CAPTURE, .arg = "ADDR",
	    .help = "address of the server, where others use the same port; default: any"),
	ROW(interface, "interface", .group = CAPTURE, .arg = "NAME",
	    .help = "interface of live packets, such as eth0 or lo; default: all of them"),
	ROW(duration, "duration", .group = CAPTURE, .arg = "SECONDS", .flags = OPT_MIN_EXCLUSIVE,
	    .min = 0, .max = DUE_S_MAX,
	    .help = "how long to capture live packets; default: until Ctrl-C"),
	ROW(backend, "backend", .group = CAPTURE, .arg = "NAME",
	    .help = "API of the requests, as of bench serve; default: by the path of each request"),
	ROW(tokenizer, "tokenizer", .group = CAPTURE, .arg = "NAME",
	    .help = "tokenizer for answers without token counts of the server: a file, a folder, a "
		    "name on the hub, or sim; default: each event with text counts as a token"),
	SCORE_ROWS(CHOICE, "ttft,tpot,itl,e2el", "99", "none")
};
static const struct tap_opts defaults = { .choice = { .report = "short" } };

const struct opt_set cmd_bench_tap_set = {
	.command = "bench tap",
	.summary = "Measures the traffic of another client, live or from a capture file.",
	.usage = "[FILE] --port N [options]",
	.epilog = "Examples:\n"
		  "  profllm bench tap --port 8000 --duration 60\n"
		  "  profllm bench tap --interface eth0 --port 8000,8001 --save-result\n"
		  "  tcpdump -s 0 -w traffic.pcap tcp port 8000\n"
		  "  profllm bench tap traffic.pcap --port 8000",
	OPT_SET_OF(rows, defaults),
};

static int read_ports(const char *list, struct stream_filter *f, struct err *e)
{
	struct str rest = str_of(list);

	do {
		struct str text = str_trim(str_cut(&rest, ','));
		int64_t port;

		if (!str_to_i64(text, &port) || port < 1 || port > UINT16_MAX)
			return err_set(e, ERR_USAGE, "--port: '%.*s' is not a port from 1 to %d",
				       (int)text.n, text.p, UINT16_MAX);
		if (f->n_ports == TAP_PORTS_MAX)
			return err_set(e, ERR_USAGE, "--port: at most %d ports can be followed at "
				       "a time", TAP_PORTS_MAX);
		f->port[f->n_ports++] = (uint16_t)port;
	} while (rest.n);
	return 0;
}

static int read_host(const char *text, struct stream_filter *f, struct err *e)
{
	f->has_host = true;
	if (inet_pton(AF_INET, text, f->host.addr) == 1)
		return 0;
	f->host.is_ipv6 = true;
	if (inet_pton(AF_INET6, text, f->host.addr) == 1)
		return 0;
	return err_set(e, ERR_USAGE, "--host: '%s' is not an IPv4 or IPv6 address; a capture has no "
		       "names", text);
}

static int check(const struct tap_opts *o, struct observe_opts *out, struct err *e)
{
	if (!o->port)
		return err_set(e, ERR_USAGE, "--port is missing: the TCP port of the server");
	if (read_ports(o->port, &out->filter, e) < 0 ||
	    (o->host && read_host(o->host, &out->filter, e) < 0))
		return -1;
	if (o->file && o->interface)
		return err_set(e, ERR_USAGE, "--interface is for live packets, but the file %s was "
			       "given too: leave out one of them", o->file);
	if (o->file && o->duration.is_set)
		return err_set(e, ERR_USAGE, "--duration is for live packets, but the file %s was "
			       "given too: leave out one of them", o->file);
	if (!o->backend)
		return 0;
	out->backend = endpoint_find(o->backend);
	if (!out->backend || !*out->backend->suffix)
		return err_set(e, ERR_USAGE, "--backend: '%s' is not a backend of bench serve",
			       o->backend);
	return 0;
}

static void note_tokenizer(void *self, const char *text)
{
	(void)self;
	cli_warn(text);
}

/* Passes every packet on until the end of the file or the time, or an interrupt. */
static int read_packets(const struct tap_opts *o, struct capture *c, struct observer *to,
			struct err *e)
{
	int64_t end = o->duration.is_set ? clock_mono_ns() + clock_span_ns(o->duration.v)
					 : INT64_MAX;
	int64_t over_ns = 0; /* what came before that is read to its end */

	for (;;) {
		struct capture_packet p;
		int rc;

		if (!over_ns && (*cli_is_interrupted() || clock_mono_ns() >= end))
			over_ns = clock_real_ns();
		if (over_ns && o->file)
			return 0;
		rc = capture_next(c, over_ns ? 0 : WAIT_MS, &p, e);
		if (rc < 0)
			return -1;
		if (rc == 0 && (o->file || over_ns))
			return 0;
		if (rc == 0)
			continue;
		if (over_ns && p.stamp_ns > over_ns)
			return 0;
		observer_packet(to, p.bytes, p.wire_bytes, p.stamp_ns);
	}
}

static struct capture *open_capture(const struct tap_opts *o, const struct stream_filter *f,
				    struct err *e)
{
	if (o->file)
		return capture_open_file(o->file, e);
	return capture_open_live(o->interface, f->port, f->n_ports, e);
}

/* Report settings without an option. */
static void set_defaults(struct report_meta *meta)
{
	static const double percentile[] = { DEFAULT_PERCENTILE };

	meta->opts.percentile = percentile;
	meta->opts.n_percentiles = 1;
	meta->opts.selected = BLOCK_BIT(BLOCK_TTFT) | BLOCK_BIT(BLOCK_TPOT) | BLOCK_BIT(BLOCK_ITL) |
			      BLOCK_BIT(BLOCK_E2EL);
}

static int tap(const struct tap_opts *o, const struct observe_opts *how, struct tokenizer *t,
	       struct arena *a, struct err *e)
{
	struct observer *to = NULL;
	struct capture *c = open_capture(o, &how->filter, e);
	struct report_meta meta = { 0 };
	const char *source;
	int rc = -1;

	if (!c)
		return -1;
	source = o->file ? o->file : o->interface ? arena_printf(a, "interface %s", o->interface)
						  : "all interfaces of this machine";
	to = observer_new(how, e);
	if (!to)
		goto done;
	if (!o->file)
		fprintf(stderr, "profllm bench tap: listening to %s; Ctrl-C ends it with the report\n",
			source);
	if (read_packets(o, c, to, e) < 0) {
		if (!observer_requests(to))
			goto done;
		cli_warn(e->text); /* what came before is right */
		*e = (struct err){ 0 };
	}
	set_defaults(&meta);
	meta.facts.tokenizer_id = o->tokenizer;
	if (score_choose(&o->choice, &meta, a, e) < 0)
		goto done;
	observer_score(to, t, source, capture_dropped(c), &meta);
	if (observer_check(to, e) == 0)
		rc = score_show(&o->choice, observer_record(to), observer_info(to), &meta, a, e);
done:
	observer_free(to);
	capture_close(c);
	return rc;
}

int cmd_bench_tap(struct cli *cli, void *values)
{
	const struct tap_opts *o = values;
	struct observe_opts how = { .keeps_text = o->tokenizer != NULL,
				    .requests_max = OBSERVED_REQUESTS_MAX };
	struct report_meta unread = { 0 };
	struct tokenizer *t = NULL;
	int rc;

	if (check(o, &how, &cli->err) < 0 ||
	    score_choose(&o->choice, &unread, &cli->arena, &cli->err) < 0)
		return -1;
	cli_catch_signals();
	if (o->tokenizer) {
		const struct tokenizer_load_opts load = { .note = note_tokenizer };

		t = tokenizer_load(o->tokenizer, &load, &cli->err);
		if (!t)
			return err_wrap(&cli->err, "--tokenizer");
	}
	rc = tap(o, &how, t, &cli->arena, &cli->err);
	tokenizer_free(t);
	return rc;
}
