/* SPDX-License-Identifier: Apache-2.0 */
/* worker_account.c - see worker_talk.h: --account, and the profiler's traces. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "json/write.h"
#include "sim/worker_talk.h"

#define TRACE_STEPS_MAX 100000

/* One line in one write, so that workers that share the file do not mix theirs. */
static void line_add(const struct talk *t, const struct buf *line)
{
	int fd = open(t->model.account, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (fd < 0)
		return;
	file_write_all(fd, buf_str(line));
	close(fd);
}

void account_load(const struct talk *t, int64_t began_ns, int64_t ended_ns)
{
	const struct sim_model *m = &t->model;
	struct buf line = { 0 };
	double modelled = 0;

	if (!t->model.account)
		return;
	for (size_t i = 0; i < m->phases; i++)
		modelled += m->phase[i].modelled_s;
	buf_add_text(&line, "{\"kind\": \"load\", \"model\": ");
	json_quote(&line, str_of(m->opts->model), false);
	buf_printf(&line, ", \"is_compiled\": %s, \"modelled_s\": %.9f, \"wall_s\": %.9f, "
		   "\"phases\": {", m->is_compiled ? "true" : "false", modelled,
		   (double)(ended_ns - began_ns) * 1e-9);
	for (size_t i = 0; i < m->phases; i++)
		buf_printf(&line, "%s\"%s\": {\"modelled_s\": %.9f, \"wall_s\": %.9f}",
			   i ? ", " : "", m->phase[i].name, m->phase[i].modelled_s, m->phase[i].s);
	buf_add_text(&line, "}}\n");
	line_add(t, &line);
	buf_release(&line);
}

void account_run(const struct talk *t, const struct worker_outcome *o)
{
	struct buf line = { 0 };

	if (!t->model.account)
		return;
	buf_printf(&line, "{\"kind\": \"%s\", \"requests\": %zu, \"prompt_tokens\": %" PRIu64
		   ", \"cached_tokens\": %" PRIu64 ", \"output_tokens\": %" PRIu64 ", \"lora\": %"
		   PRIu64 ", \"media\": %" PRIu64, o->question, o->n, o->prompt_tokens,
		   o->known_tokens, o->output_tokens, o->lora, o->media);
	buf_printf(&line, ", \"steps\": %" PRIu64 ", \"preempted\": %" PRIu64
		   ", \"frontend_s\": %.9f, \"encoder_s\": %.9f, \"steps_s\": %.9f, "
		   "\"modelled_s\": %.9f, \"wall_s\": %.9f}\n", o->sum.steps, o->sum.preempted,
		   o->frontend_s, (double)o->sum.encode_ns * 1e-9, (double)o->sum.steps_ns * 1e-9,
		   (double)o->modelled_ns * 1e-9, (double)(o->ended_ns - o->began_ns) * 1e-9);
	line_add(t, &line);
	buf_release(&line);
}

/* ---- the profiler ---- */

void profile_step(struct talk *t, int64_t end_ns)
{
	if (t->steps == TRACE_STEPS_MAX)
		return;
	if (t->steps == t->steps_cap) {
		t->steps_cap = t->steps_cap ? t->steps_cap * 2 : 256;
		t->step = mem_grow(t->step, t->steps_cap, sizeof(*t->step));
	}
	t->step[t->steps++] = t->profile_base_ns + end_ns;
}

int profile_write(struct talk *t, struct err *e)
{
	struct buf out = { 0 };
	char name[96], *path;
	int rc;

	buf_add_text(&out, "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceEvents\": [");
	for (size_t i = 0; i < t->steps; i++) {
		int64_t begin = i ? t->step[i - 1] : t->step[i];

		buf_printf(&out, "%s\n{\"ph\": \"X\", \"cat\": \"sim\", \"name\": \"step\", \"pid\": %d, "
			   "\"tid\": 1, \"ts\": %.3f, \"dur\": %.3f}", i ? "," : "", getpid(),
			   (double)begin * 1e-3, (double)(t->step[i] - begin) * 1e-3);
	}
	buf_add_text(&out, "\n]}\n");
	snprintf(name, sizeof(name), "sim_%d.%" PRId64 ".pt.trace.json", getpid(), clock_real_ns());
	path = file_join(t->model.profile_dir, name);
	rc = file_mkdirs(t->model.profile_dir, e);
	if (rc == 0)
		rc = file_write_atomic(path, buf_str(&out), e);
	free(path);
	buf_release(&out);
	return rc;
}
