/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - what all stages of a point need; see point_internal.h. */
#include "bench/serve/point_internal.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/token/tokenizer.h"
#include "version.h"

void stage_say(const struct stage *s, const char *fmt, ...)
{
	va_list ap;
	char *text;

	if (s->early || !s->hooks->line)
		return;
	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	s->hooks->line(s->hooks->self, text);
	free(text);
}

void stage_warn(const struct stage *s, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	if (s->early && (s->early->part == PART_TOKENIZER || s->early->part == PART_DATASET))
		buf_printf(&s->early->notes, "%s\n", text);
	else if (!s->early && s->hooks->warn)
		s->hooks->warn(s->hooks->self, text);
	free(text);
}

bool stage_is_cancelled(const struct stage *s)
{
	return s->hooks->cancel && atomic_load(s->hooks->cancel);
}

int stage_cancelled(struct err *e)
{
	return err_set(e, ERR_CANCELLED, "interrupted before the benchmark began");
}

bool stage_may_ask_server(const struct stage *s)
{
	return !s->early && !s->opts->dry_run && !s->hooks->transport;
}

/* The total of a progress bar; with --duration it is estimated from the current pace. */
static uint64_t total_of(const struct stage *s, const struct load_totals *load)
{
	int64_t elapsed = s->began_ns ? clock_mono_ns() - s->began_ns : 0;
	double total;

	if (s->now != STAGE_MAIN || !s->derived->load.admission_ns)
		return s->total;
	if (elapsed >= s->derived->load.admission_ns)
		return load->admitted < s->total ? load->admitted : s->total;
	total = elapsed > 0 && load->done
		? (double)load->done * (double)s->derived->load.admission_ns / (double)elapsed
		: (double)s->total;
	return total < (double)s->total ? (uint64_t)total : s->total;
}

void stage_tick(void *self)
{
	struct stage *s = self;
	struct load_totals load;

	if (!s->hooks->progress)
		return;
	load = load_progress_total(s->progress);
	s->hooks->progress(s->hooks->self, s->now, load.done, total_of(s, &load), s->progress);
}

struct load_opts stage_load_opts(struct stage *s, enum request_phase phase)
{
	struct load_opts o = s->derived->load;

	o.transport = s->point->transport;
	o.net.base_url = s->derived->base_urls;
	o.net.n_endpoints = s->derived->n_urls;
	o.net.proxy = s->proxy;
	o.endpoint = s->point->endpoint;
	o.workload = &s->point->workload;
	o.extra_body = str_of(s->derived->extra_body);
	o.phase = phase;
	o.tick = stage_tick;
	o.tick_self = s;
	if (!o.workload->sessions) {
		o.max_sessions = o.retries = 0;
		o.is_chain_dropped = false;
	}
	if (phase == PHASE_MAIN && s->hooks->ranks) {
		o.elsewhere = s->elsewhere;
		o.max_concurrency = ranks_part(s->hooks->ranks, o.max_concurrency);
		o.max_sessions = ranks_part(s->hooks->ranks, o.max_sessions);
	}
	if (phase == PHASE_MAIN) {
		o.cpu = s->cpu;
		o.close = s->hooks->close;
		o.abandon = s->hooks->abandon;
		if (s->derived->warm_connections != SERVE_WARM_AUTO)
			o.net.warm_connections = s->derived->warm_connections;
		return o;
	}
	/* What is sent apart from the measurement has none of its limits. */
	o.threads = 1;
	o.tap = LOAD_TAP_OFF;
	o.max_sessions = o.retries = o.failures_max = 0;
	o.admission_ns = o.deadline_ns = o.give_up_ns = 0;
	o.is_chain_dropped = o.is_failure_share_limited = o.is_ended_by_refusals = false;
	o.is_least_loaded = false;
	return o;
}

/* ---- processors ---- */

static unsigned allowed_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : CPUS_MAX;
}

int stage_place(struct stage *s, struct err *e)
{
	const struct serve_derived *d = s->derived;
	const struct ranks *r = s->hooks->ranks;
	const unsigned threads = d->load.threads, part = d->n_cpus / (r ? r->n_local : 1);
	cpu_set_t set;

	if (!d->cpu) {
		if (threads > allowed_cpus())
			stage_warn(s, "--threads %u: this process may use %u processor%s, so loops wait "
				   "for each other%s", threads, allowed_cpus(),
				   allowed_cpus() == 1 ? "" : "s",
				   r ? "; mpirun --bind-to none allows all of them" : "");
		return 0;
	}
	if (part < threads)
		return err_set(e, ERR_USAGE, "--cpus %s names %u processors, fewer than the %u that the "
			       "loops of %u process%s on this machine need (--threads %u)",
			       s->opts->cpus, d->n_cpus, threads * (r ? r->n_local : 1),
			       r ? r->n_local : 1, r ? "es" : "", threads);
	s->cpu = d->cpu + (r ? r->local * part : 0);
	CPU_ZERO(&set);
	for (unsigned i = 0; i < part; i++)
		CPU_SET(s->cpu[i], &set);
	if (sched_getaffinity(0, sizeof(s->cpus_before), &s->cpus_before) == 0) {
		for (unsigned i = 0; i < part; i++)
			if (!CPU_ISSET(s->cpu[i], &s->cpus_before))
				return err_set(e, ERR_USAGE, "--cpus %s: this process may not use processor "
					       "%u%s; taskset -pc $$ shows those that it may",
					       s->opts->cpus, s->cpu[i], r ?
					       " (mpirun --bind-to none allows all of them)" : "");
		if (sched_setaffinity(0, sizeof(set), &set) == 0)
			return 0;
	}
	return err_set(e, ERR_RUN, "--cpus %s: %s", s->opts->cpus, strerror(errno));
}

void stage_unplace(struct stage *s)
{
	if (s->cpu)
		(void)sched_setaffinity(0, sizeof(s->cpus_before), &s->cpus_before);
	s->cpu = NULL;
}

struct prepare_opts stage_prepare_opts(const struct stage *s, bool is_without_ids)
{
	const struct serve_derived *d = s->derived;

	return (struct prepare_opts){
		.endpoint = s->point->endpoint,
		.encode = {
			.model = str_of(s->point->model_name),
			.is_ignore_eos = s->opts->ignore_eos || s->point->workload.is_eos_ignored,
			.has_logprobs = s->opts->logprobs.is_set, .logprobs = s->opts->logprobs.v,
			.extra_body = str_of(d->extra_body),
		},
		.omit = d->omit, .n_omit = d->n_omit,
		.base_url = d->base_urls, .path = s->opts->endpoint, .proxy = s->proxy,
		.n_urls = d->n_urls,
		.header = d->header, .n_headers = d->n_headers, .api_key = s->remote.api_key,
		.key_header = s->remote.key_header,
		.lora = s->opts->lora_modules.n ? s->opts->lora_modules.v : NULL,
		.is_without_ids = is_without_ids, .version = PROFLLM_VERSION,
		.request_id_prefix = s->opts->request_id_prefix,
		.salt = is_without_ids ? NULL : &s->salt,
	};
}

int stage_load(struct stage *s, enum point_stage now, const struct load_opts *opts,
	       const struct prepare_opts *how, const struct plan *plan, uint32_t first_row,
	       struct err *e)
{
	struct load_progress *progress = mem_alloc(sizeof(*progress));
	struct prepared prepared = { 0 };
	struct load_stats stats;
	int64_t began_ns;
	int rc = -1;

	assert(!s->progress && !s->early && now < STAGE_MAIN); /* one load at a time */
	s->now = now;
	s->progress = progress;
	s->total = plan->n;
	stage_tick(s);
	if (prepare(how, plan, opts->workload, &prepared, e) == 0) {
		began_ns = clock_mono_ns();
		rc = load_run(opts, plan, &prepared, &s->point->record, first_row, progress, &stats,
			      s->hooks->cancel, e);
		s->load_s = (double)(clock_mono_ns() - began_ns) / 1e9;
		stage_tick(s);
	}
	prepared_release(&prepared);
	s->progress = NULL;
	free(progress);
	return rc;
}

/* ---- before there is a server ---- */

void stage_part(struct stage *s, enum point_part part)
{
	if (s->early)
		s->early->part = part;
}

void stage_wait(struct stage *s, const struct err *why)
{
	if (s->early->waits.code == ERR_NONE)
		s->early->waits = *why;
}

int stage_stand_in(struct stage *s, const struct err *why, struct err *e)
{
	stage_wait(s, why);
	s->early->has_tokenizer = false;
	s->point->tokenizer = tokenizer_load(TOKENIZER_SIM, NULL, e);
	return s->point->tokenizer ? 0 : -1;
}

int stage_render_stand_in(void *stage, struct str messages, struct str tools, struct buf *text,
			  struct err *e)
{
	struct err why = { 0 };

	(void)tools;
	(void)e;
	err_set(&why, ERR_RUN, "the server renders whole conversations");
	stage_wait(stage, &why);
	buf_add_str(text, messages);
	return 0;
}

/*
 * Lengths in tokens differ with the substitute tokenizer, so texts that are too long or short for
 * it may be right. Sets without a file have the requested lengths.
 */
bool stage_may_pass(const struct stage *s, const struct dataset *d, bool is_building,
		    const struct err *e)
{
	if (!s->early || s->early->has_tokenizer || s->opts->skip_tokenizer_init || !is_building)
		return false;
	return e->code == ERR_RUN || e->code == ERR_LIMIT ||
	       (e->code == ERR_USAGE && !d->forbids_path);
}

void stage_made(struct stage *s)
{
	if (!s->early)
		return;
	s->early->n_requests = s->point->workload.n;
	s->early->rng = s->rng;
}

int stage_check_record(const struct stage *s, struct err *e)
{
	const char *path = s->opts->record_path;
	char *folder;
	int rc = 0;

	if (!path)
		return 0;
	folder = file_beside(path, ".");
	if (file_is_dir(path))
		rc = err_set(e, ERR_USAGE, "--record: %s is a folder, not a file", path);
	else if (!file_is_dir(folder))
		rc = err_set(e, ERR_USAGE, "--record: cannot write %s: there is no such folder", path);
	else if (access(file_exists(path) ? path : folder, W_OK) < 0)
		rc = err_set(e, ERR_USAGE, "--record: cannot write %s: %s", path, strerror(errno));
	free(folder);
	return rc;
}

/* Prompts already include a salt, and the server's counts are of prompts without one. */
bool stage_is_whole(const struct stage *s)
{
	return s->early->waits.code == ERR_NONE && s->point->salt == SALT_NONE;
}

bool stage_take_early(struct stage *s)
{
	struct point_early *early = s->hooks->early;
	struct point *p = s->point, *from = early ? &early->point : NULL;
	struct str rest;

	if (s->early || !early || !early->is_whole)
		return false;
	early->is_whole = false;
	p->tokenizer = from->tokenizer;
	p->tokenizer_id = from->tokenizer_id;
	p->chat_template = from->chat_template;
	p->workload = from->workload;
	from->tokenizer = NULL;
	from->tokenizer_id = NULL;
	from->workload = (struct workload){ 0 };
	s->rng = early->rng;
	rest = buf_str(&early->notes);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		stage_warn(s, "%.*s", (int)line.n, line.p);
	}
	return true;
}
