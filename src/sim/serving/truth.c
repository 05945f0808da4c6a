/* SPDX-License-Identifier: Apache-2.0 */
/* truth.c - see truth.h. */
#include "sim/serving/truth.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/http/prometheus.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"

int sink_open(struct truth_sink *s, const char *option, const char *path, struct err *e)
{
	assert(path);
	*s = (struct truth_sink){ .path = path };
	s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->fd >= 0)
		return 0;
	s->path = NULL;
	return err_set(e, ERR_IO, "%s: cannot write %s: %s", option, path, strerrordesc_np(errno));
}

bool sink_flush(struct truth_sink *s, size_t bytes_max)
{
	if (!s->path || s->failure.code) {
		buf_reset(&s->lines);
		s->written = 0;
		return false;
	}
	if (s->lines.is_over)
		err_set(&s->failure, ERR_LIMIT, "%s: more lines than fit into memory came at once",
			s->path);
	while (bytes_max && s->written < s->lines.len && !s->failure.code) {
		size_t left = s->lines.len - s->written;
		ssize_t n = write(s->fd, s->lines.data + s->written,
				  left < bytes_max ? left : bytes_max);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_set(&s->failure, ERR_IO, "cannot write %s: %s", s->path,
				strerrordesc_np(errno));
			break;
		}
		s->written += (size_t)n;
		bytes_max -= (size_t)n;
	}
	if (s->written < s->lines.len && !s->failure.code)
		return true;
	buf_reset(&s->lines);
	s->written = 0;
	return false;
}

int sink_close(struct truth_sink *s, struct err *e)
{
	int rc = 0;

	if (!s->path)
		return 0;
	sink_flush(s, SIZE_MAX);
	if (close(s->fd) < 0 && !s->failure.code)
		err_set(&s->failure, ERR_IO, "cannot write %s: %s", s->path,
			strerrordesc_np(errno));
	if (s->failure.code)
		rc = err_set(e, s->failure.code, "%s", s->failure.text);
	buf_release(&s->lines);
	*s = (struct truth_sink){ 0 };
	return rc;
}

/* Upper bounds in seconds, ascending; +Inf follows. */
static const double ttft_bounds[] = {
	0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
	10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
};
static const double itl_bounds[] = {
	0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
	20.0, 40.0, 80.0,
};
static const double e2e_bounds[] = {
	0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
	240.0, 480.0, 960.0, 1920.0, 7680.0,
};

#define BOUNDS(a) a, sizeof(a) / sizeof(*(a))
static const struct event_shape {
	const char *name, *help;
	const double *bound;
	size_t bounds;
} shapes[HISTS] = {
	[HIST_TTFT] = { "vllm:time_to_first_token_seconds", "Time to first token in seconds.",
			BOUNDS(ttft_bounds) },
	[HIST_ITL] = { "vllm:inter_token_latency_seconds",
		       "Time between two outputs of a request in seconds.", BOUNDS(itl_bounds) },
	[HIST_TPOT] = { "vllm:request_time_per_output_token_seconds",
			"Decode time of a request over its tokens after the first, in seconds.",
			BOUNDS(itl_bounds) },
	[HIST_E2E] = { "vllm:e2e_request_latency_seconds",
		       "Time from arrival to the last token in seconds.", BOUNDS(e2e_bounds) },
};

const char *counters_finish_name(enum counter_finish f)
{
	static const char *const names[FINISHES] = { "stop", "length", "abort", "error" };

	assert((size_t)f < FINISHES);
	return names[f];
}

void counters_observe(struct counters *c, enum counter_histogram which, int64_t ns)
{
	const struct event_shape *s = &shapes[which];
	struct histogram *h = &c->hist[which];
	double seconds = (double)ns / 1e9;
	size_t i = 0;

	assert(s->bounds < COUNTER_BUCKETS_MAX);
	while (i < s->bounds && seconds > s->bound[i])
		i++;
	h->bucket[i]++;
	h->count++;
	h->sum += seconds;
}

static void histogram_write(const struct histogram *h, const struct event_shape *s,
			    struct buf *labels, struct buf *out)
{
	size_t bare = labels->len;
	uint64_t below = 0;
	char name[80], bound[FMT_F64_BYTES];

	prometheus_add_family(out, s->name, "histogram", s->help);
	snprintf(name, sizeof(name), "%s_bucket", s->name);
	for (size_t i = 0; i <= s->bounds; i++) {
		below += h->bucket[i];
		prometheus_add_label(labels, "le", str_of(i < s->bounds ?
				     fmt_f64(bound, s->bound[i]) : "+Inf"));
		prometheus_add_sample(out, name, buf_str(labels), (double)below);
		labels->len = bare;
	}
	snprintf(name, sizeof(name), "%s_count", s->name);
	prometheus_add_sample(out, name, buf_str(labels), (double)h->count);
	snprintf(name, sizeof(name), "%s_sum", s->name);
	prometheus_add_sample(out, name, buf_str(labels), h->sum);
}

static void finished_write(const struct counters *c, struct buf *labels, struct buf *out)
{
	const char *name = "vllm:request_success_total";
	size_t bare = labels->len;

	prometheus_add_family(out, name, "counter", "Requests that ended, by reason.");
	for (int i = 0; i < FINISHES; i++) {
		prometheus_add_label(labels, "finished_reason", str_of(counters_finish_name(i)));
		prometheus_add_sample(out, name, buf_str(labels), (double)c->finished[i]);
		labels->len = bare;
	}
}

struct counter_row {
	const char *name, *type, *help;
	double value;
};

static void rows_write(const struct counter_row *row, size_t n, const struct buf *labels,
		       struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		prometheus_add_family(out, row[i].name, row[i].type, row[i].help);
		prometheus_add_sample(out, row[i].name, buf_str(labels), row[i].value);
	}
}

#define ROWS(a) a, sizeof(a) / sizeof(*(a))

static void spec_write(const struct counters *c, struct buf *labels, struct buf *out)
{
	const struct counter_row rows[] = {
		{ "vllm:spec_decode_num_drafts_total", "counter", "Drafts.", (double)c->drafts },
		{ "vllm:spec_decode_num_draft_tokens_total", "counter", "Tokens of drafts.",
		  (double)c->draft_tokens },
		{ "vllm:spec_decode_num_accepted_tokens_total", "counter",
		  "Tokens of drafts that were accepted.", (double)c->accepted_tokens },
	};
	const char *name = "vllm:spec_decode_num_accepted_tokens_per_pos_total";
	size_t bare = labels->len;
	char position[24];

	if (c->positions == 0)
		return;
	rows_write(ROWS(rows), labels, out);
	prometheus_add_family(out, name, "counter", "Accepted tokens by place in their draft.");
	for (size_t i = 0; i < c->positions; i++) {
		snprintf(position, sizeof(position), "%zu", i);
		prometheus_add_label(labels, "position", str_of(position));
		prometheus_add_sample(out, name, buf_str(labels), (double)c->accepted_at[i]);
		labels->len = bare;
	}
}

static void diffusion_write(const struct counters *c, const struct buf *labels, struct buf *out)
{
	const struct counter_row rows[] = {
		{ "vllm:diffusion_num_denoising_steps_total", "counter", "Denoising steps.",
		  (double)c->denoising_steps },
		{ "vllm:diffusion_num_canvas_positions_total", "counter",
		  "Positions of canvases over all steps.", (double)c->canvas_positions },
		{ "vllm:diffusion_num_committed_tokens_total", "counter", "Tokens committed.",
		  (double)c->committed_tokens },
	};

	if (c->has_diffusion)
		rows_write(ROWS(rows), labels, out);
}

/* Sizes of the caches, one sample per engine, in labels as in vLLM. */
static void cache_write(const struct counters *c, struct buf *out)
{
	const char *name = "vllm:cache_config_info";
	size_t engines = c->engines ? c->engines : 1;
	struct buf labels = { 0 };
	char number[24];

	prometheus_add_family(out, name, "gauge", "Sizes of the KV cache.");
	for (size_t i = 0; i < engines; i++) {
		buf_reset(&labels);
		snprintf(number, sizeof(number), "%" PRIu64, c->kv_block_tokens);
		prometheus_add_label(&labels, "block_size", str_of(number));
		snprintf(number, sizeof(number), "%zu", i);
		prometheus_add_label(&labels, "engine", str_of(number));
		snprintf(number, sizeof(number), "%" PRIu64, c->kv_blocks);
		prometheus_add_label(&labels, "num_gpu_blocks", str_of(number));
		prometheus_add_sample(out, name, buf_str(&labels), 1);
	}
	buf_release(&labels);
}

static void external_write(const struct counters *c, const struct buf *labels, struct buf *out)
{
	const struct counter_row rows[] = {
		{ "vllm:external_prefix_cache_queries_total", "counter",
		  "Prompt tokens looked up in caches elsewhere.", (double)c->external_queries },
		{ "vllm:external_prefix_cache_hits_total", "counter",
		  "Prompt tokens found there.", (double)c->external_hits },
	};

	if (c->has_external)
		rows_write(ROWS(rows), labels, out);
}

/* As in vLLM: the adapters in labels, the time as the value. */
static void loras_write(const struct counters *c, struct buf *out)
{
	const char *name = "vllm:lora_requests_info";
	struct buf labels = { 0 };
	char number[24];

	snprintf(number, sizeof(number), "%zu", c->loras_max);
	prometheus_add_label(&labels, "max_lora", str_of(number));
	prometheus_add_label(&labels, "running_lora_adapters", buf_str(&c->loras_running));
	prometheus_add_label(&labels, "waiting_lora_adapters", buf_str(&c->loras_waiting));
	prometheus_add_family(out, name, "gauge", "Adapters of requests that run and wait.");
	prometheus_add_sample(out, name, buf_str(&labels), (double)clock_real_ns() / 1e9);
	buf_release(&labels);
}

void counters_write(const struct counters *c, struct str model, struct buf *out)
{
	const struct counter_row rows[] = {
		{ "vllm:num_requests_running", "gauge",
		  "Requests in the batch of the engine.", (double)c->running },
		{ "vllm:num_requests_waiting", "gauge",
		  "Requests waiting to be admitted.", (double)c->waiting },
		{ "vllm:kv_cache_usage_perc", "gauge",
		  "KV cache in use; 1 is all of it.", c->kv_share },
		{ "vllm:num_preemptions_total", "counter",
		  "Requests put back because the KV cache was full.", (double)c->preemptions },
		{ "vllm:prefix_cache_queries_total", "counter",
		  "Prompt tokens looked up in the prefix cache.", (double)c->prefix_queries },
		{ "vllm:prefix_cache_hits_total", "counter",
		  "Prompt tokens found in the prefix cache.", (double)c->prefix_hits },
		{ "vllm:prompt_tokens_total", "counter",
		  "Prompt tokens processed.", (double)c->prompt_tokens },
		{ "vllm:generation_tokens_total", "counter",
		  "Tokens generated.", (double)c->generation_tokens },
	};
	struct buf labels = { 0 };

	prometheus_add_label(&labels, "engine", STR("0"));
	prometheus_add_label(&labels, "model_name", model);
	rows_write(ROWS(rows), &labels, out);
	spec_write(c, &labels, out);
	diffusion_write(c, &labels, out);
	external_write(c, &labels, out);
	finished_write(c, &labels, out);
	if (c->kv_blocks)
		cache_write(c, out);
	if (c->loras_max)
		loras_write(c, out);
	for (int i = 0; i < HISTS; i++)
		histogram_write(&c->hist[i], &shapes[i], &labels, out);
	buf_release(&labels);
}

#define FLUSH_BYTES 16384 /* one share of spelling and writing: below 50 us */
#define EXPECTED_MAX 65536 /* events of a row whose memory is allocated in advance: 1 MB */

struct truth_row *truth_row_new(const char *request_id, int64_t recv_ns)
{
	struct truth_row *r = mem_alloc(sizeof(*r));

	r->request_id = mem_text(request_id);
	r->recv_ns = recv_ns;
	r->status = 200;
	return r;
}

void truth_row_free(struct truth_row *r)
{
	if (!r)
		return;
	free(r->request_id);
	free(r->sent);
	free(r->choice);
	free(r);
}

void truth_expect(struct truth_row *r, uint64_t events)
{
	assert(!r->sent);
	r->cap = events < EXPECTED_MAX ? (size_t)events : EXPECTED_MAX;
	r->sent = mem_grow(NULL, r->cap, sizeof(*r->sent));
}

void truth_event(struct truth_row *r, int64_t at_ns, uint32_t tokens)
{
	if (r->events == r->cap)
		r->sent = mem_room(r->sent, r->events, &r->cap, sizeof(*r->sent));
	r->sent[r->events++] = (struct truth_send){ at_ns, tokens };
}

void truth_choice(struct truth_row *r, size_t i, const struct truth_choice *c)
{
	if (i >= r->choices) {
		r->choice = mem_grow(r->choice, i + 1, sizeof(*r->choice));
		while (r->choices <= i)
			r->choice[r->choices++] = (struct truth_choice){ 0 };
	}
	r->choice[i] = *c;
}

void truth_end(struct truth *t, struct truth_row *r)
{
	r->next = NULL;
	if (t->last)
		t->last->next = r;
	else
		t->first = r;
	t->last = r;
}

static void faults_write(const struct fault_set *set, uint64_t hit, struct json_writer *w)
{
	struct buf names = { 0 };

	for (size_t i = 0; i < set->n; i++) {
		if (!(hit & 1ull << i))
			continue;
		if (names.len)
			buf_add_char(&names, ',');
		buf_add_text(&names, set->fault[i].text);
	}
	json_member_text(w, "fault", names.len ? names.data : NULL);
	buf_release(&names);
}

/* Nothing for an answer of only words, which the row itself describes. */
static void choices_write(const struct truth_row *r, struct json_writer *w)
{
	const struct truth_choice *c = r->choice;

	if (r->choices == 0 || (r->choices == 1 && !c->constraint && !c->calls))
		return;
	json_member_array(w, "choices");
	for (size_t i = 0; i < r->choices; i++, c++) {
		json_begin_object(w);
		json_member_int(w, "output_tokens", c->output_tokens);
		json_member_text(w, "finish", counters_finish_name(c->finish));
		json_member_text(w, "constraint", c->constraint);
		json_member_text(w, "mistake", c->mistake);
		json_member_int(w, "tool_calls", c->calls);
		json_member_int(w, "malformed", c->malformed);
		json_end_object(w);
	}
	json_end_array(w);
}

static void row_write(const struct truth *t, const struct truth_row *r, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_text(&w, "request_id", r->request_id);
	json_member_int(&w, "recv_ns", r->recv_ns);
	json_member_array(&w, "send_ns");
	for (size_t i = 0; i < r->events; i++)
		json_put_int(&w, r->sent[i].at_ns);
	json_end_array(&w);
	json_member_array(&w, "tokens");
	for (size_t i = 0; i < r->events; i++)
		json_put_int(&w, r->sent[i].tokens);
	json_end_array(&w);
	if (r->end_ns)
		json_member_int(&w, "end_ns", r->end_ns);
	else
		json_member_null(&w, "end_ns");
	json_member_int(&w, "prompt_tokens", r->prompt_tokens);
	json_member_int(&w, "cached_tokens", r->cached_tokens);
	json_member_int(&w, "output_tokens", r->output_tokens);
	json_member_int(&w, "status", r->status);
	json_member_text(&w, "finish", counters_finish_name(r->finish));
	faults_write(t->faults, r->faults, &w);
	if (r->transferred_tokens) {
		json_member_int(&w, "transferred_tokens", r->transferred_tokens);
		json_member_int(&w, "transfer_ns", r->transfer_ns);
	}
	choices_write(r, &w);
	json_end_object(&w);
	buf_add_char(out, '\n');
}

bool truth_flush(struct truth *t)
{
	while (t->first && t->sink.lines.len - t->sink.written < FLUSH_BYTES) {
		struct truth_row *r = t->first;

		t->first = r->next;
		if (!t->first)
			t->last = NULL;
		row_write(t, r, &t->sink.lines);
		truth_row_free(r);
	}
	return sink_flush(&t->sink, FLUSH_BYTES) || t->first;
}

int truth_close(struct truth *t, struct err *e)
{
	while (truth_flush(t))
		;
	return sink_close(&t->sink, e);
}
