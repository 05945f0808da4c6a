/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_rig.h - `profllm run` in a test: a table of configurations and command lines, and all that
 * comes of each one: exit status, output, documents, files.
 *
 * What is measured differs from run to run and is left out: the report of the load, verdicts,
 * numbers with a fraction, ports, ids and times. A document is compared as lines "path = value";
 * of the documents of a suite, those after the first one as lines that differ from it.
 */
#pragma once
#include <ftw.h>
#include <regex.h>

#include "verb.h"

#include "core/json/read.h"
#include "core/json/write.h"

enum run_how {
	RUN_EXACT = 1,      /* nothing is measured: numbers are compared */
	RUN_SORTED = 2,     /* lines come in any order */
	RUN_NO_DOCUMENT = 4,
	RUN_NO_FILES = 8,
	RUN_NO_OUTPUT = 16,
	RUN_CUT = 32,       /* load ends at any moment */
};

struct run_case {
	const char *name;   /* of NAME.yaml, NAME.json and the folder NAME.d */
	const char *yaml;   /* NULL: what the row before wrote */
	const char *words;  /* after --config and --output; may be NULL */
	int status;
	unsigned how;
	const char *env;
	const char *files;  /* whose text is compared, too; with blanks between them */
};

struct run_mask { const char *pattern, *with; };

/* Replaces what matches; ^ is the start of a line. */
static inline void run_mask(struct buf *b, const char *pattern, const char *with)
{
	struct buf out = { 0 };
	const char *from = b->data;
	regmatch_t at;
	regex_t re;

	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NEWLINE), 0);
	while (*from && regexec(&re, from, 1, &at, from > b->data &&
	  from[-1] != '\n' ? REG_NOTBOL : 0) == 0) {
		buf_add(&out, from, (size_t)at.rm_so);
		buf_add_text(&out, with);
		from += at.rm_eo;
		if (at.rm_eo == at.rm_so && *from)
			buf_add_char(&out, *from++);
	}
	buf_add_text(&out, from);
	buf_add_char(&out, '\0');
	out.len--;
	regfree(&re);
	buf_release(b);
	*b = out;
}

static inline void run_mask_all(struct buf *b, unsigned how)
{
	static const struct run_mask always[] = {
		{ "127\\.0\\.0\\.1:[0-9]+", "127.0.0.1:PORT" },
		{ "(port|--port|ports) [0-9]+", "port PORT" },
		{ "exp_[0-9]+_[0-9]+_[0-9a-f]+", "EXP" },
		{ "(process |pid |pid=)[0-9]+", "process PID" },
		{ "[0-9]+-[0-9]+-[0-9]+[T ][0-9]+:[0-9:.]+Z?", "TIME" },
		{ "\"2[0-9]{4}\"", "\"PORT\"" },
		{ "127\\.0\\.0\\.1", "LOOPBACK" },
		{ "profllm\\.owner=[^']*", "profllm.owner=OWNER" },
		{ "(_[0-9]+)+\\.[0-9]+\\.pt", "_N.pt" }, { "^2[0-9]{4}$", "PORT" },
		{ "[0-9.]+ us\\b", "# us" },
		{ "\\(killed: [^)]*\\)", "(killed: WHY)" }, { "Failed to connect.*", "CURL" },
		{ "is [0-9.]+ ms", "is # ms" },
		{ "/[^ \"'=]*/profllm-[A-Za-z0-9-]+", "TEMPORARY" },
		{ "[0-9]{8}-[0-9]{6}", "TIME" },
	}, measured[] = {
		{ "[0-9#]+(\\.[0-9]+)? ([num]?s|min)\\b", "# s" }, { "[0-9.]+ tokens/s", "# tokens/s" },
		{ "[0-9]+ % of", "# % of" }, { "suite-[0-9a-f]+-[0-9a-f]+-[0-9]+", "SUITE" },
		{ "^squeue.*\n", "" },
		{ "^\\| (Physical cores|Total (cores|Memory|NUMA)|CPU Brand) .*\n", "" }, /* the machine's */
		{ "[0-9]+\\.[0-9]+(e[-+]?[0-9]+)?", "#" },
		{ "; about [0-9#]+ (s|min) left", "" },
		{ "about [0-9#]+ (s|min)", "about # s" },
		{ "(VALID|DEGRADED|INVALID)([:.].*|$)", "VERDICT" },
		{ "-{3,}", "---" }, { " {2,}", "  " }, { " +$", "" },
		{ "  [0-9]{3,}  ", "  #  " }, /* a rate that happens to be whole */
	};

	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		run_mask(b, always[i].pattern, always[i].with);
	for (size_t i = 0; !(how & RUN_EXACT) && i < sizeof(measured) / sizeof(*measured); i++)
		run_mask(b, measured[i].pattern, measured[i].with);
}

static inline int run_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The lines of a text without those that differ from run to run. */
static inline void run_add_text(struct buf *out, const char *title, const char *path, unsigned how)
{
	static const char *const left_out[] = {
		"TTFT median", "The measurement is", "Best ", "Highest ", "Within ", "No best ", "Next: ",
		"  Note: ", "note: 1 of these values is DEGRADED",
		"Note: ", " VERDICT", "  VERDICT", "  What to do", "It is ", "Verdict:", " What to do",
	};
	struct buf text = { 0 };
	char *line[4096], *rest, *one;
	bool is_report = false;
	size_t n = 0;
	struct err e;

	if (file_read(path, (size_t)1 << 30, &text, &e) < 0) {
		buf_printf(out, "-- %s: absent\n", title);
		return;
	}
	buf_add_char(&text, '\0');
	text.len--;
	run_mask_all(&text, how);
	if (how & RUN_CUT)
		run_mask(&text, "^(Error|[0-9]+ requests? to) .*\n", "");
	if (how & RUN_SORTED)
		run_mask(&text, "^\\[[0-9]+/", "[N/");
	for (rest = text.data; (one = strsep(&rest, "\n"));) {
		const char *own = strstr(one, ": ");
		bool is_out = !*one;

		own = own && (how & RUN_SORTED) ? own + 2 : one;
		if (strstr(one, "==== Serving Benchmark")) {
			is_report = !(how & RUN_EXACT);
		} else if (is_report && strstr(one, "Server metrics, intervals")) {
			is_report = false;
			continue;
		}
		is_report = is_report && !str_starts(str_of(one), STR("Status: "));
		for (size_t i = 0; !(how & RUN_EXACT) &&
		  i < sizeof(left_out) / sizeof(*left_out); i++)
			is_out |= str_starts(str_of(own), str_of(left_out[i])) ||
				  str_starts(str_of(one), str_of(left_out[i]));
		if (!is_out && !is_report && n < sizeof(line) / sizeof(*line))
			line[n++] = one;
	}
	if (how & RUN_SORTED)
		qsort(line, n, sizeof(*line), run_compare);
	if (n)
		buf_printf(out, "-- %s\n", title);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s\n", line[i]);
	buf_release(&text);
}

/* ---- documents ---- */

static inline bool run_is_left_out(struct str key)
{
	static const char *const name[] = {
		"timestamp", "run_id", "duration", "environment", "trust", "date", "hash", "configured_hash",
		"started_by", "profllm", "series", "max_output_tokens_per_s", "rtfx", "peak", "verdict",
		"kv_tokens", "max_concurrent_requests", "given", "system", "bytes", "trace_file_size_mb",
		"server_defaults", "started_s", "points", "started_at", "spent_s", "n_levels",
	};

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (str_is(key, name[i]))
			return true;
	return false;
}

static inline void run_add_value(struct buf *out, const struct json_value *v, const char *path)
{
	bool is_list = v->kind == JSON_ARRAY, is_config = str_ends(str_of(path), STR("config")) ||
	  strstr(path, "config.");
	struct json_writer w = json_writer(out);

	if ((v->kind == JSON_OBJECT || is_list) && v->count) {
		for (size_t i = 0; i < v->count; i++) {
			struct buf below = { 0 };

			/* What a configuration becomes is test_config_document.c's. */
			if (!is_list && (run_is_left_out(v->key[i]) || (is_config &&
			    (str_is(v->key[i], "server") || str_is(v->key[i], "benchmark")))))
				continue;
			if (is_list)
				buf_printf(&below, "%s[%zu]", path, i);
			else
				buf_printf(&below, "%s%s%.*s", path, *path ? "." : "", (int)v->key[i].n,
					   v->key[i].p);
			run_add_value(out, &v->item[i], below.data);
			buf_release(&below);
		}
		return;
	}
	if (v->kind == JSON_NULL)
		return;
	if (v->kind == JSON_REAL && (!is_config || strstr(path, "startup_s") || strstr(path, "capacity")))
		return;
	buf_printf(out, "%s = ", path);
	json_put_value(&w, v);
	buf_add_char(out, '\n');
}

/* Lines of b that a does not have. */
static inline void run_add_other_lines(struct buf *out, const char *a, struct buf *b)
{
	char *rest = b->data, *one;

	while ((one = strsep(&rest, "\n"))) {
		struct buf line = { 0 };

		buf_printf(&line, "\n%s\n", one);
		if (*one && !strstr(a, line.data))
			buf_add_text(out, line.data + 1);
		buf_release(&line);
	}
}

static inline void run_add_document(struct buf *out, const char *path, unsigned how)
{
	struct buf text = { 0 }, first = { 0 };
	struct arena a = { 0 };
	struct json_value *v, *list;
	struct err e;

	if (file_read(path, (size_t)1 << 30, &text, &e) < 0) {
		buf_printf(out, "-- %s: absent\n", path);
		return;
	}
	buf_printf(out, "-- %s\n", path);
	if (json_parse(&a, buf_str(&text), &v, &e) < 0)
		fail_msg("%s: %s", path, e.text);
	list = json_get(v, "experiments");
	for (size_t i = 0; list && i < list->count; i++) {
		struct buf shape = { 0 };

		buf_add_char(&shape, '\n');
		run_add_value(&shape, &list->item[i], "");
		buf_add_char(&shape, '\0');
		run_mask_all(&shape, RUN_EXACT);
		buf_printf(out, "- experiment %zu\n", i);
		if (i == 0)
			buf_add_text(out, shape.data + 1);
		else
			run_add_other_lines(out, first.data, &shape);
		if (i == 0)
			first = shape;
		else
			buf_release(&shape);
	}
	for (size_t i = 0; v->kind == JSON_OBJECT && i < v->count; i++)
		if (str_is(v->key[i], "experiments"))
			v->item[i].kind = JSON_NULL;
	buf_reset(&text);
	run_add_value(&text, v, "");
	buf_add_char(&text, '\0');
	run_mask_all(&text, RUN_EXACT);
	if (how & RUN_CUT)
		run_mask(&text, "[0-9]+ requests, [0-9]+ events, [0-9]+ tokens", "N requests");
	if (how & RUN_CUT)
		run_mask(&text, "^results\\..*_(requests|tokens) = .*\n", "");
	buf_add_text(out, text.data);
	buf_release(&first);
	buf_release(&text);
	arena_release(&a);
}

/* ---- files ---- */

static char *run_found[1024];
static size_t run_n_found;

static inline int run_keep_name(const char *path, const struct stat *st, int kind)
{
	(void)st;
	if (kind == FTW_F && run_n_found < sizeof(run_found) / sizeof(*run_found))
		run_found[run_n_found++] = strdup(path);
	return 0;
}

static inline void run_add_names(struct buf *out, const char *folder)
{
	struct buf names = { 0 };

	run_n_found = 0;
	if (ftw(folder, run_keep_name, 16) < 0 || !run_n_found)
		return;
	qsort(run_found, run_n_found, sizeof(*run_found), run_compare);
	for (size_t i = 0; i < run_n_found; i++) {
		buf_printf(&names, "%s\n", run_found[i]);
		free(run_found[i]);
	}
	run_mask(&names, "(_[0-9]+)+\\.[0-9]+\\.pt", "_N.pt");
	run_mask(&names, "\\.[0-9]{9,}\\.[0-9]+\\.", ".AT.");
	run_mask(&names, "scheduler/[^/]*/", "scheduler/RUN/");
	run_mask(&names, "[0-9]{8}[-_T][0-9]{6}[^/\n]*", "TIME");
	buf_printf(out, "-- files\n%s", names.data);
	buf_release(&names);
}

/* ---- a row ---- */

static inline void run_write(const char *path, const char *text)
{
	char *filled = verb_filled(text);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(filled, f);
	fclose(f);
	free(filled);
}

static char run_folder[440];
static char run_program[480]; /* this program by the name profllm, which tells engines apart */

static inline pid_t run_begin(const char *line, const char *env)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		char *argv[VERB_WORDS_MAX + 1];

		verb_words(verb_filled(line), argv);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!freopen("/dev/null", "r", stdin) || !freopen(".out", "w", stdout) ||
		    !freopen(".err", "w", stderr))
			_exit(127);
		verb_environment(env);
		execv(run_program, argv);
		_exit(127);
	}
	return pid;
}

static inline void run_check(const struct run_case *c)
{
	struct buf line = { 0 }, got = { 0 }, title = { 0 };
	char path[256], *files, *rest, *one;
	int64_t began_ns;
	int status;

	snprintf(path, sizeof(path), "%s.yaml", c->name);
	if (c->yaml)
		run_write(path, c->yaml);
	buf_printf(&line, "run --progress none --config %s.yaml --output %s.json %s", c->name, c->name,
		   c->words ? c->words : "");
	buf_printf(&title, "%s %s", c->name, c->words ? c->words : "");
	began_ns = clock_mono_ns();
	status = verb_end(run_begin(line.data, c->env));
	if (getenv("VERBOSE"))
		print_message("%s: %lld ms\n", title.data, (clock_mono_ns() - began_ns) / 1000000ll);
	buf_printf(&got, "status %d\n", status);
	if (!(c->how & RUN_NO_OUTPUT)) {
		run_add_text(&got, "stdout", ".out", c->how);
		run_add_text(&got, "stderr", ".err", c->how);
	}
	if (!(c->how & RUN_NO_DOCUMENT)) {
		snprintf(path, sizeof(path), "%s.json", c->name);
		run_add_document(&got, path, c->how);
	}
	if (!(c->how & RUN_NO_FILES)) {
		snprintf(path, sizeof(path), "%s.d", c->name);
		run_add_names(&got, path);
	}
	files = rest = verb_filled(c->files ? c->files : "");
	while ((one = strsep(&rest, " ")))
		if (*one)
			run_add_text(&got, one, one, c->how);
	free(files);
	if (status != c->status)
		fail_msg("%s: status %d instead of %d\n%s", title.data, status, c->status, got.data);
	verb_replace(&got, run_program, "PROFLLM");
	verb_answer(title.data, &got);
	buf_release(&title);
	buf_release(&line);
}

static inline void run_check_all(const struct run_case *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		run_check(&c[i]);
}
#define RUN_CHECK_ALL(c) run_check_all(c, sizeof(c) / sizeof(*(c)))

/* verb_setup, and a machine without GPUs. */
static inline int run_setup(void **state)
{
	char self[400] = "";

	if (verb_setup(state) < 0 || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -1;
	snprintf(run_folder, sizeof(run_folder), "%s.%d", self, (int)getpid());
	snprintf(run_program, sizeof(run_program), "%s/profllm", run_folder);
	if (mkdir(run_folder, 0700) < 0 || link(self, run_program) < 0)
		return -1;
	verb_let("PROFLLM", run_program);
	verb_let("DIR", dir);
	mkdir("state", 0700);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	setenv("XDG_STATE_HOME", dir, 1);
	setenv("PROFLLM_LOCKS", dir, 1);
	setenv("PROFLLM_NVML", "", 1);
	setenv("HF_HUB_OFFLINE", "1", 1);
	setenv("PATH", "/usr/bin:/bin", 1);
	return 0;
}

static inline int run_teardown(void **state)
{
	unlink(run_program);
	rmdir(run_folder);
	return verb_teardown(state);
}

#define RUN_MAIN(setup, ...) \
	int main(int argc, char **argv) \
	{ \
		const struct CMUnitTest tests[] = { __VA_ARGS__ }; \
		if (argc > 1) \
			return profllm_main(argc, argv); \
		return cmocka_run_group_tests(tests, setup, run_teardown); \
	}

#define RUN_SIM "server: {command: sim, model: sim, ttft_ms: 2, itl_ms: 1}\n"
#define RUN_BENCH "benchmark: {tokenizer: sim, num_prompts: 2, random_input_len: 8, random_output_len: 2, " \
	"max_concurrency: 2, temperature: 0"
#define RUN_QUIET "telemetry: {enabled: false}\n"
#define RUN_LOAD RUN_BENCH "}\n" RUN_QUIET
