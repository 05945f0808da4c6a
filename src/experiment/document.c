/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/document.c - the document as a whole; its parts are in document_*.c. */
#include "experiment/document.h"

#include <time.h>

#include "base/redact.h"
#include "experiment/config.h"
#include "experiment/document_parts.h"

#define DOCUMENT_INDENT 2

static const char schema_text[] =
#include "experiment/schema_text.h"
;

struct str document_schema(void)
{
	return (struct str){ schema_text, sizeof(schema_text) - 1 };
}

/* ---- the beginning ---- */

/* Two forms of the time it began; UTC. */
static void time_text(int64_t real_ns, const char *form, char *out, size_t n)
{
	time_t s = (time_t)(real_ns / 1000000000);
	struct tm tm;

	gmtime_r(&s, &tm);
	if (strftime(out, n, form, &tm) == 0)
		*out = 0;
}

static void put_run_id(struct document *d)
{
	char made[40], when[24];

	if (*d->o->run_id) {
		json_put_text(&d->w, d->o->run_id);
		return;
	}
	time_text(d->o->began_real_ns, "%Y%m%d_%H%M%S", when, sizeof(when));
	snprintf(made, sizeof(made), "exp_%s_%06x", when, (unsigned)(d->x->hash & 0xffffff));
	json_put_text(&d->w, made);
}

static void put_head(struct document *d)
{
	char when[24], stamp[40];

	json_key(&d->w, "schema_version");
	json_put_int(&d->w, DOCUMENT_SCHEMA_VERSION);
	json_key(&d->w, "run_id");
	put_run_id(d);
	json_key(&d->w, "suite");
	document_put_text(d, d->x->suite);
	time_text(d->o->began_real_ns, "%Y-%m-%dT%H:%M:%S", when, sizeof(when));
	snprintf(stamp, sizeof(stamp), "%s.%03dZ", when,
		 (int)(d->o->began_real_ns / 1000000 % 1000));
	json_key(&d->w, "timestamp");
	json_put_text(&d->w, stamp);
	json_key(&d->w, "duration");
	json_put_f64(&d->w, d->o->duration_s > 0 ? d->o->duration_s : 0);
}

/* ---- parts that others wrote ---- */

/* NULL: empty, or not an object. */
static const struct json_value *object_of(struct document *d, struct str json)
{
	struct json_value *v;

	if (!json.n || json_parse(&d->arena, json, &v, NULL) < 0 || v->kind != JSON_OBJECT)
		return NULL;
	return v;
}

static void put_system(struct document *d)
{
	static const char *const always[] = {
		"peak_gpu_memory_gb", "avg_gpu_utilization", "energy_j", "j_per_token",
		"tokens_per_s_per_w",
	};
	const struct json_value *system = object_of(d, d->o->system);

	json_begin_object(&d->w);
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		if (!json_get(system, always[i])) {
			json_key(&d->w, always[i]);
			json_put_null(&d->w);
		}
	document_put_members(d, system, NULL, DOCUMENT_NULLS);
	json_key(&d->w, "hardware_info");
	document_put(d, object_of(d, d->o->hardware), DOCUMENT_NULLS);
	json_end_object(&d->w);
}

static void put_provenance(struct document *d)
{
	static const char *const always[] = {
		"engine_commit", "branch", "pr", "build", "trigger",
	};
	const struct json_value *known = object_of(d, d->o->provenance);

	if (!known)
		known = d->x->provenance;
	json_begin_object(&d->w);
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		if (!json_get(known, always[i])) {
			json_key(&d->w, always[i]);
			json_put_null(&d->w);
		}
	document_put_members(d, known, NULL, DOCUMENT_NULLS);
	json_end_object(&d->w);
}

static void put_profiling(struct document *d)
{
	const struct outcome *o = d->o;
	const struct outcome_trace *largest = NULL;

	for (size_t i = 0; i < o->n_traces; i++)
		if (!largest || o->trace[i].bytes > largest->bytes)
			largest = &o->trace[i];
	json_begin_object(&d->w);
	json_key(&d->w, "enabled");
	json_put_bool(&d->w, d->x->profiling.is_enabled);
	json_key(&d->w, "tool");
	document_put_text(d, d->x->profiling.is_enabled ? d->x->profiling.tool : NULL);
	json_key(&d->w, "trace_file_path");
	document_put_path(d, largest ? largest->path : NULL);
	json_key(&d->w, "trace_file_size_mb");
	if (largest)
		json_put_f64(&d->w, (double)largest->bytes / 1e6);
	else
		json_put_null(&d->w);
	json_key(&d->w, "traces");
	json_begin_array(&d->w);
	for (size_t i = 0; i < o->n_traces; i++) {
		json_begin_object(&d->w);
		json_key(&d->w, "path");
		document_put_path(d, o->trace[i].path);
		json_key(&d->w, "bytes");
		json_put_int(&d->w, (int64_t)o->trace[i].bytes);
		json_end_object(&d->w);
	}
	json_end_array(&d->w);
	json_end_object(&d->w);
}

/* ---- the end ---- */

static void put_error(struct document *d)
{
	const struct outcome *o = d->o;

	if (!o->reason && o->status != OUTCOME_FAILED) {
		json_put_null(&d->w);
		return;
	}
	json_begin_object(&d->w);
	json_key(&d->w, "stage");
	json_put_text(&d->w, outcome_stage_name(o->stage));
	json_key(&d->w, "category");
	document_put_text(d, o->category ? o->category : o->is_interrupted ? "interrupted" : NULL);
	json_key(&d->w, "reason");
	document_put_text(d, o->reason ? o->reason : "It failed.");
	json_key(&d->w, "log_tail");
	if (o->log_tail.n)
		document_put_str(d, o->log_tail);
	else
		json_put_null(&d->w);
	json_end_object(&d->w);
}

static void put_files(struct document *d)
{
	const struct outcome *o = d->o;

	json_begin_object(&d->w);
	json_key(&d->w, "folder");
	document_put_path(d, d->x->output.folder);
	json_key(&d->w, "record");
	document_put_path(d, o->record_path);
	json_key(&d->w, "logs");
	json_begin_array(&d->w);
	for (size_t i = 0; o->server && i < d->x->n_servers; i++)
		if (o->server[i].log)
			document_put_path(d, o->server[i].log);
	json_end_array(&d->w);
	json_end_object(&d->w);
}

/* As they came out when the document was written. */
static void put_requirements(struct document *d)
{
	const struct experiment *x = d->x;
	struct gate_log log = { .a = &d->arena };

	if (d->result)
		gate_judge(x->require, x->n_require, d->result, "", &log);
	else
		gate_judge_none(x->require, x->n_require, d->o->reason ? d->o->reason : "it failed", "",
				&log);
	json_begin_array(&d->w);
	for (size_t i = 0; i < log.n; i++) {
		json_begin_object(&d->w);
		json_key(&d->w, "condition");
		document_put_text(d, log.item[i].condition);
		json_key(&d->w, "outcome");
		json_put_text(&d->w, gate_outcome_name(log.item[i].outcome));
		json_key(&d->w, "text");
		document_put_text(d, log.item[i].text);
		json_end_object(&d->w);
	}
	json_end_array(&d->w);
}

static void put_end(struct document *d)
{
	const struct outcome *o = d->o;

	json_key(&d->w, "status");
	json_put_text(&d->w, outcome_status_name(o->status));
	json_key(&d->w, "error");
	put_error(d);
	if (d->x->n_require) {
		json_key(&d->w, "requirements");
		put_requirements(d);
	}
	json_key(&d->w, "warnings");
	json_begin_array(&d->w);
	for (size_t i = 0; i < o->n_warnings; i++)
		document_put_text(d, o->warning[i]);
	json_end_array(&d->w);
	json_key(&d->w, "files");
	put_files(d);
}

static void put_environment(struct document *d)
{
	document_put(d, object_of(d, d->o->environment), DOCUMENT_NULLS);
}

/* Results hold texts of others, in which "token=x" need not be a setting. */
static const struct {
	const char *key;
	void (*put)(struct document *d);
	enum redact_kind kind;
} parts[] = {
	{ "config", document_put_config, REDACT_SETTINGS },
	{ "results", document_put_results, REDACT_DATA },
	{ "trust", document_put_trust, REDACT_SENTENCES },
	{ "system", put_system, REDACT_SENTENCES },
	{ "profiling", put_profiling, REDACT_SENTENCES },
	{ "environment", put_environment, REDACT_SETTINGS },
	{ "provenance", put_provenance, REDACT_SETTINGS },
};

void document_learn(const struct experiment *x)
{
	for (size_t i = 0; i < x->n_servers; i++) {
		const struct experiment_server *s = &x->server[i];

		redact_learn_lines(s->env);
		redact_learn_words(s->command);
		redact_learn_words(s->extra_args);
		config_learn(s->args);
		config_learn(s->container);
	}
	redact_learn_words(x->offline_argv);
	config_learn(x->given);
}

void document_write(const struct experiment *x, const struct outcome *o, struct buf *out)
{
	struct document d = { .w = json_writer(out), .x = x, .o = o };
	size_t from;

	d.w.indent = DOCUMENT_INDENT;
	document_learn(x);
	d.result = object_of(&d, o->result);
	json_begin_object(&d.w);
	put_head(&d);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		from = out->len;
		json_key(&d.w, parts[i].key);
		parts[i].put(&d);
		redact_tail(out, from, parts[i].kind);
	}
	from = out->len;
	put_end(&d);
	redact_tail(out, from, REDACT_SENTENCES);
	json_end_object(&d.w);
	buf_add_char(out, '\n');
	arena_release(&d.arena);
}
