/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - see probe.h. The plan is a chain: each probe is due some time after the one before. */
#include "run/probe.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

#define PROBE_SECONDS 21600.0 /* probes are planned for the longest a request may take */

struct probe {
	struct stage *stage;
	struct load_opts opts;
	struct workload workload;
	struct sample sample;
	struct plan plan;
	struct prepared prepared;
	struct load_progress progress;
	struct load_stats stats;
	struct err err;
	uint32_t first_row;
	atomic_bool close, cancel, is_over;
	pthread_t thread;
	bool is_running;
};

uint32_t probe_shards(const struct serve_opts *o)
{
	return o->probe_request_rate > 0 ? 1 : 0;
}

static uint32_t count_probes(const struct serve_opts *o)
{
	double seconds = o->duration.is_set ? o->duration.v + 1 : PROBE_SECONDS;
	double n = ceil(o->probe_request_rate * seconds);

	return n < PROBES_MAX ? (uint32_t)n + 1 : PROBES_MAX;
}

/* The prompt of one token; what else the bodies carry is the first request's. */
static void make_sample(struct probe *p)
{
	const struct workload *w = &p->stage->point->workload;

	p->sample = (struct sample){
		.prompt = STR("Hi"), .kind = PROMPT_TEXT, .prompt_len = 1, .output_len = 1,
		.timestamp_s = NAN, .overrides = w->v[0].overrides,
		.headers = w->v[0].headers,
	};
	if (strcmp(p->stage->point->endpoint->name, "vllm-rerank") == 0) {
		p->sample.prompt = STR("[\"Hi\", \"Hi\"]"); /* a query and one document */
		p->sample.kind = PROMPT_JSON;
	}
	p->workload = (struct workload){
		.v = &p->sample, .n = 1, .is_eos_ignored = w->is_eos_ignored,
	};
}

/* Every request is the same; its bytes are made once. */
static int make_requests(struct probe *p, struct err *e)
{
	struct prepare_opts how = stage_prepare_opts(p->stage, true);
	struct plan one;
	struct str bytes;
	int rc;

	plan_same(&one, 1, 0);
	rc = prepare(&how, &one, &p->workload, &p->prepared, e);
	plan_release(&one);
	if (rc < 0)
		return err_wrap(e, "--probe-request-rate");
	bytes = p->prepared.request[0];
	p->prepared.n = p->plan.n;
	p->prepared.request = mem_grow(p->prepared.request, p->plan.n, sizeof(bytes));
	for (uint32_t i = 0; i < p->plan.n; i++)
		p->prepared.request[i] = bytes;
	return 0;
}

static void probe_free(struct probe *p)
{
	prepared_release(&p->prepared);
	plan_release(&p->plan);
	free(p);
}

/* Load looks at one flag, which is ours: probes also end with a load that was broken off. */
static void look_for_cancel(void *self)
{
	struct probe *p = self;

	if (stage_is_cancelled(p->stage))
		atomic_store(&p->cancel, true);
}

int probe_new(struct stage *s, struct probe **out, struct err *e)
{
	struct probe *p;

	*out = NULL;
	if (!probe_shards(s->opts))
		return 0;
	p = mem_alloc(sizeof(*p));
	p->stage = s;
	make_sample(p);
	plan_chain(&p->plan, count_probes(s->opts), 1.0 / s->opts->probe_request_rate);
	if (make_requests(p, e) < 0) {
		probe_free(p);
		return -1;
	}
	p->first_row = record_add_rows(&s->point->record, p->plan.n);
	p->opts = stage_load_opts(s, PHASE_PROBE);
	p->opts.workload = &p->workload;
	p->opts.first_shard = s->derived->threads;
	p->opts.max_concurrency = 0;
	p->opts.close = &p->close;
	p->opts.tick = look_for_cancel;
	p->opts.tick_self = p;
	*out = p;
	return 0;
}

void probe_say(const struct probe *p)
{
	char number[FMT_F64_BYTES];
	struct buf text = { 0 };

	buf_printf(&text, "Probe request rate: %s req/s",
		   fmt_f64(number, p->stage->opts->probe_request_rate));
	stage_say(p->stage, text.data);
	buf_release(&text);
}

static void *run(void *self)
{
	struct probe *p = self;

	if (load_run(&p->opts, &p->plan, &p->prepared, &p->stage->point->record, p->first_row,
		     &p->progress, &p->stats, &p->cancel, &p->err) == 0)
		p->err.code = ERR_NONE;
	atomic_store(&p->is_over, true);
	return NULL;
}

void probe_start(struct probe *p)
{
	p->is_running = pthread_create(&p->thread, NULL, run, p) == 0;
	if (!p->is_running)
		err_set(&p->err, ERR_LIMIT, "cannot start their thread");
}

/* When upstream's loop would have ended: the last probe's end and the pause after it. */
static int64_t tail_ns(const struct probe *p)
{
	const struct request_row *row = &p->stage->point->record.row[p->first_row];
	int64_t last = 0;

	for (uint32_t i = 0; i < p->plan.n; i++)
		if (row[i].end_ns > last && row[i].state != REQ_CANCELLED)
			last = row[i].end_ns;
	return last ? last + (int64_t)(1e9 / p->stage->opts->probe_request_rate) : 0;
}

/* Rows of a run that never began would look as if it were still going on. */
static void forget_rows(struct probe *p)
{
	for (uint32_t i = 0; i < p->plan.n; i++) {
		struct request_row *row = &p->stage->point->record.row[p->first_row + i];

		row->phase = PHASE_PROBE;
		record_finish(row, REQ_UNSENT);
	}
}

/* As upstream, a load of whatever length has one. */
static void wait_for_first(const struct probe *p)
{
	while (!atomic_load(&p->is_over) && load_progress_total(&p->progress).admitted == 0) {
		struct timespec step = { 0, 1000000 };

		nanosleep(&step, NULL);
	}
}

void probe_end(struct probe *p)
{
	struct record *record;
	int64_t tail;

	if (!p)
		return;
	record = &p->stage->point->record;
	if (p->is_running)
		wait_for_first(p);
	atomic_store(&p->close, true);
	if (p->stage->point->load.end != LOAD_WHOLE)
		atomic_store(&p->cancel, true);
	if (p->is_running)
		pthread_join(p->thread, NULL);
	if (p->err.code) {
		struct buf text = { 0 };

		buf_printf(&text, "no probes were sent: %s", p->err.text);
		stage_warn(p->stage, text.data);
		buf_release(&text);
	}
	if (!p->is_running || p->err.code) {
		forget_rows(p);
	} else if (!(p->stage->derived->fixes & FIX_PROBE_TAIL) && !record->is_interrupted) {
		tail = tail_ns(p);
		if (tail > record->stop_ns)
			record->stop_ns = tail;
	}
	probe_free(p);
}
