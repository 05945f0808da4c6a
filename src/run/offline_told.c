/* SPDX-License-Identifier: Apache-2.0 */
/* offline_told.c - see offline_told.h. */
#include "run/offline_told.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/fmt.h"
#include "version.h"

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	json_member_text(w, key, text);
}

static void put_seconds(struct json_writer *w, const char *key, double v)
{
	if (isnan(v))
		return;
	json_member_f64(w, key, v);
}

static void put_engine(struct json_writer *w, const struct offline_about *about)
{
	struct json_slice told;

	json_member_object(w, "engine");
	put_text(w, "name", about->engine);
	put_text(w, "version", about->version);
	put_text(w, "device", about->device);
	if (about->max_model_len > 0)
		json_member_int(w, "max_model_len", about->max_model_len);
	if (json_next(&(struct json_scan){ about->json, 0 }, &told, NULL) == 0 &&
	    told.kind == JSON_OBJECT) {
		json_member_foreign(w, "told", told.raw);
	}
	json_end_object(w);
}

/* Each name once, with all that was spent under it. */
static void put_phases(struct json_writer *w, const struct offline_loaded *l)
{
	json_member_object(w, "phases");
	for (size_t i = 0; i < l->n_phases; i++) {
		const char *name = l->phase[i].name;
		size_t first = 0;
		double s = 0;

		while (strcmp(l->phase[first].name, name) != 0)
			first++;
		for (size_t k = i; first == i && k < l->n_phases; k++)
			s += strcmp(l->phase[k].name, name) == 0 ? l->phase[k].s : 0;
		if (first == i)
			put_seconds(w, name, s);
	}
	json_end_object(w);
}

static void put_load(struct json_writer *w, const struct offline_loaded *l)
{
	json_member_object(w, "load");
	put_seconds(w, "spawn_s", l->spawn_s);
	put_seconds(w, "load_s", l->load_s);
	put_seconds(w, "ready_s", l->ready_s);
	put_seconds(w, "compilation_s", l->compilation_s);
	put_seconds(w, "encoder_compilation_s", l->encoder_compilation_s);
	if (l->n_phases)
		put_phases(w, l);
	json_end_object(w);
}

static void put_cpu(struct json_writer *w)
{
	struct buf text = { 0 }, name = { 0 };
	struct str rest;

	if (file_read("/proc/cpuinfo", 1u << 22, &text, NULL) == 0) {
		rest = buf_str(&text);
		while (rest.n && !name.len) {
			struct str value = str_cut(&rest, '\n');
			struct str key = str_trim(str_cut(&value, ':'));

			if (str_is(key, "model name"))
				buf_add_str(&name, str_trim(value));
		}
	}
	if (name.len)
		put_text(w, "cpu", name.data);
	buf_release(&name);
	buf_release(&text);
}

static void put_host(struct json_writer *w)
{
	struct utsname u;

	json_member_object(w, "host");
	put_cpu(w);
	json_member_int(w, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	json_member_int(w, "memory_bytes", (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
	if (uname(&u) == 0) {
		put_text(w, "kernel", u.release);
		put_text(w, "machine", u.machine);
	}
	json_end_object(w);
}

void offline_told(struct json_writer *w, const struct offline_told *t)
{
	put_text(w, "version", PROFLLM_VERSION);
	put_text(w, "command", t->command);
	put_text(w, "backend", t->backend);
	if (t->about) {
		put_text(w, "method", t->about->method);
		put_engine(w, t->about);
	}
	if (t->loaded)
		put_load(w, t->loaded);
	put_host(w);
}

void offline_told_line(struct buf *out, const struct offline_told *t)
{
	const struct offline_about *about = t->about;
	char duration[FMT_F64_BYTES];

	buf_printf(out, "Engine: %s", about && about->engine && *about->engine ? about->engine
		   : t->backend);
	if (about && about->version && *about->version)
		buf_printf(out, " %s", about->version);
	if (about && about->device && *about->device)
		buf_printf(out, " on %s", about->device);
	if (about && about->method && *about->method)
		buf_printf(out, ", %s", about->method);
	if (t->loaded && !isnan(t->loaded->load_s))
		buf_printf(out, ", loaded in %s",
			   fmt_duration(duration, (int64_t)(t->loaded->load_s * 1e9)));
}

void offline_told_args(struct json_writer *w, const struct offline_engine *engine)
{
	json_member_array(w, "engine_args");
	for (char *const *arg = engine->shown_argv; arg && *arg; arg++)
		json_put_text(w, *arg);
	json_end_array(w);
}

void offline_told_example(const char *command, struct buf *out)
{
	const struct offline_loaded loaded = {
		.spawn_s = 1, .load_s = 1, .ready_s = 1, .compilation_s = 1,
		.encoder_compilation_s = 1,
	};
	const struct offline_told told = { .command = command, .loaded = &loaded };
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	offline_told(&w, &told);
	json_end_object(&w);
}

void offline_say(const struct offline_hooks *hooks, struct buf *text)
{
	struct str rest = buf_str(text);

	while (rest.n && hooks->line) {
		struct str line = str_cut(&rest, '\n');
		char *copy = mem_copy(line.p, line.n);

		hooks->line(hooks->self, copy);
		free(copy);
	}
	buf_reset(text);
}
