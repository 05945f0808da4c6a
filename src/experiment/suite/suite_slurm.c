/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_slurm.c - see suite_internal.h: members as tasks of Slurm's job arrays.
 *
 * A submission is a folder, FOLDER/scheduler/NAME, made before sbatch is called, with NAME as the
 * name of its job: N.yaml and N.sh for task N (suite_child.c), array.sh, which runs the one of its
 * number, tasks.json, which maps numbers to members, and N.log. There is no other state. What a
 * member measured is in its document; whether it is waiting or running is known to Slurm, which is
 * asked by NAME. So this process may end at any moment: a later one finds the folders, asks for the
 * names, and waits for tasks that it did not submit itself. A requeued task starts its member
 * again, which replaces the document by one that says "running".
 *
 * A member has ended when Slurm says that its task has, and not when its document exists: an
 * interrupted task leaves one as well, and may be requeued.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/json/write.h"
#include "experiment/config/config_internal.h"
#include "experiment/stages/allocate.h"
#include "experiment/suite/suite_internal.h"
#include "host/proc/tool.h"
#include "results/read/read.h"

#define ARRAY_TASKS_MAX 1000   /* Slurm's own MaxArraySize is 1001 unless a site changes it */
#define COMMAND_S 120          /* sbatch and squeue wait for a busy slurmctld themselves */
#define LOOK_NS 100000000      /* between two looks at whether this process is to end */
#define LAG_NS 5000000000      /* until a document written on a node is seen on this one */
#define NAME_BYTES 64
#define CANCELS_MAX 500        /* tasks in one call of scancel */

enum progress { TASK_WAITING, TASK_RUNNING, TASK_ENDED };

struct task {
	const struct suite_member *m;
	size_t array;                /* of suite_slurm.array */
	unsigned index;              /* SLURM_ARRAY_TASK_ID */
	enum progress progress;
	bool is_seen;                /* in the last answer of Slurm */
	char state[24], node[64];    /* reported by Slurm; "": nothing yet */
	int64_t began_ns, gone_ns;   /* gone_ns: when its end was seen first */
};

struct array {
	char name[NAME_BYTES];       /* of the job and the folder */
	uint64_t job;                /* 0: not known */
	size_t n_tasks;              /* that it was submitted with */
	bool has_others;             /* tasks that still run and are not ours */
};

struct suite_slurm {
	char *folder;                /* FOLDER/scheduler, absolute */
	struct array *array;
	size_t n_arrays, arrays_cap;
	struct task *task;
	size_t n_tasks, tasks_cap;
	char why[128];               /* the reason of waiting that was shown last */
	bool is_unanswered;          /* Slurm's last answer was none, and that was said */
};

void suite_slurm_free(struct suite_slurm *s)
{
	if (!s)
		return;
	free(s->folder);
	free(s->array);
	free(s->task);
	free(s);
}

/* ---- what Slurm's states mean ---- */

struct state { const char *name, *why; };

/* The final states of a task; in any other state it waits, runs or is being ended. */
static const struct state ends[] = {
	{ "COMPLETED", "its task ended, but left no document; the folder of the document must be on a "
	  "file system that all nodes share" },
	{ "FAILED", "its process failed" },
	{ "TIMEOUT", "it reached its time limit; scheduler.time_limit raises it" },
	{ "CANCELLED", "it was cancelled" },
	{ "NODE_FAIL", "its node failed, and it was not requeued" },
	{ "OUT_OF_MEMORY", "it used more memory than its job was given; --mem in scheduler.args "
	  "raises it" },
	{ "PREEMPTED", "another job took its place, and it was not requeued" },
	{ "DEADLINE", "it would not have ended before its deadline" },
	{ "BOOT_FAIL", "its node did not start" },
	{ "REVOKED", "it was moved to another cluster" },
};

static const struct state *end_of(const struct task *task)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (strcmp(task->state, ends[i].name) == 0)
			return &ends[i];
	return NULL;
}

static bool is_waiting(const char *state)
{
	return strcmp(state, "PENDING") == 0 || strncmp(state, "REQUEUE", 7) == 0 ||
	       strcmp(state, "SPECIAL_EXIT") == 0 || strcmp(state, "RESV_DEL_HOLD") == 0;
}

/* ---- talking to Slurm ---- */

/* Runs one of Slurm's programs, which must succeed; out: its output. */
static int ask(const char *const *argv, struct buf *out, struct err *e)
{
	struct buf errors = { 0 };
	struct str line, rest;
	int rc = tool_run(argv, (struct str){ 0 }, COMMAND_S, out, &errors, e);

	if (rc > 0) {
		rest = str_trim(errors.len ? buf_str(&errors) : buf_str(out));
		line = str_cut(&rest, '\n');
		rc = err_set(e, ERR_RUN, "%s failed: %.*s", argv[0], (int)line.n, line.n ? line.p : "");
	}
	buf_release(&errors);
	return rc;
}

/* Slurm's name of a task. */
static char *task_word(const struct array *of, const struct task *task, struct arena *a)
{
	return arena_printf(a, "%llu_%u", (unsigned long long)of->job, task->index);
}

static void scancel(const struct word_list *tasks, const struct experiment_hooks *hooks)
{
	for (size_t i = 0; i < tasks->n; i += CANCELS_MAX) {
		const char *argv[CANCELS_MAX + 2] = { "scancel" };
		struct buf out = { 0 };
		struct err e;

		for (size_t k = i; k < tasks->n && k < i + CANCELS_MAX; k++)
			argv[1 + k - i] = tasks->v[k];
		if (ask(argv, &out, &e) < 0 && hooks->warn)
			hooks->warn(hooks->self, e.text);
		buf_release(&out);
	}
}

static struct task *find_task(struct suite_slurm *s, struct str name, int64_t index)
{
	for (size_t i = 0; i < s->n_tasks; i++)
		if (s->task[i].index == index && str_is(name, s->array[s->task[i].array].name))
			return &s->task[i];
	return NULL;
}

static void keep_text(char *to, size_t n, struct str text)
{
	snprintf(to, n, "%.*s", (int)text.n, text.n ? text.p : "");
}

/* "NAME|JOB|TASK|STATE|NODE|REASON". A known node is kept when Slurm no longer reports one. */
static void take_line(struct suite_slurm *s, struct str line, struct str *why)
{
	struct str name = str_cut(&line, '|'), job = str_cut(&line, '|');
	struct str index = str_cut(&line, '|');
	struct str state = str_cut(&line, '|'), node = str_cut(&line, '|');
	struct task *task;
	int64_t number;
	uint64_t id;

	if (!str_to_i64(index, &number) || !(task = find_task(s, name, number)))
		return;
	if (str_to_u64(job, &id))
		s->array[task->array].job = id;
	task->is_seen = true;
	keep_text(task->state, sizeof(task->state), state);
	if (node.n)
		keep_text(task->node, sizeof(task->node), node);
	if (is_waiting(task->state) && line.n && !str_is(line, "None") && !why->n)
		*why = line;
}

/* Reads every task's state, by the names of all jobs. -1: Slurm has not answered. */
static int look(struct suite_slurm *s, struct buf *reason, struct err *e)
{
	struct buf names = { 0 }, out = { .limit = SIZE_MAX };
	struct str rest, why = { 0 };
	int rc;

	buf_add_text(&names, "--name=");
	for (size_t i = 0; i < s->n_arrays; i++)
		buf_printf(&names, "%s%s", i ? "," : "", s->array[i].name);
	rc = ask((const char *const[]){ "squeue", "--noheader", "--array", "--states=all", names.data,
					"--format=%j|%F|%K|%T|%N|%r", NULL }, &out, e);
	for (size_t i = 0; rc == 0 && i < s->n_tasks; i++)
		s->task[i].is_seen = false;
	rest = buf_str(&out);
	while (rc == 0 && rest.n)
		take_line(s, str_trim(str_cut(&rest, '\n')), &why);
	if (rc == 0 && reason)
		buf_add_str(reason, why);
	buf_release(&out);
	buf_release(&names);
	return rc;
}

/*
 * Finds the end of a task that squeue no longer lists (MinJobAge, five minutes) in the accounting,
 * if the site has it.
 */
static void look_back(const struct suite_slurm *s, struct task *task)
{
	char job[64];
	struct buf out = { 0 };
	struct str rest, state;
	struct err e;

	if (!s->array[task->array].job || !tool_exists("sacct"))
		return;
	snprintf(job, sizeof(job), "--jobs=%llu_%u",
		 (unsigned long long)s->array[task->array].job, task->index);
	if (ask((const char *const[]){ "sacct", "--noheader", "--parsable2", "--allocations", job,
				       "--format=State,NodeList", NULL }, &out, &e) == 0 && out.len) {
		rest = buf_str(&out);
		rest = str_cut(&rest, '\n');
		state = str_cut(&rest, '|');
		keep_text(task->state, sizeof(task->state), str_cut(&state, ' '));
		keep_text(task->node, sizeof(task->node), rest);
	}
	buf_release(&out);
}

/* ---- submissions that are there ---- */

static size_t add_array(struct suite_slurm *s, const char *name)
{
	s->array = mem_room(s->array, s->n_arrays, &s->arrays_cap, sizeof(*s->array));
	s->array[s->n_arrays] = (struct array){ 0 };
	snprintf(s->array[s->n_arrays].name, NAME_BYTES, "%s", name);
	return s->n_arrays++;
}

static struct task *add_task(struct suite_slurm *s, const struct suite_member *m, size_t array,
			     unsigned index)
{
	s->task = mem_room(s->task, s->n_tasks, &s->tasks_cap, sizeof(*s->task));
	s->task[s->n_tasks] = (struct task){ .m = m, .array = array, .index = index };
	return &s->task[s->n_tasks++];
}

static void stem_of(const struct suite_slurm *s, const char *name, unsigned index, struct buf *out)
{
	buf_reset(out);
	buf_printf(out, "%s/%s/%u", s->folder, name, index);
}

/* Removes a finished submission's files, except its members' output. */
static void forget_array(const struct suite_slurm *s, const char *name, size_t n)
{
	static const char *const own[] = { "array.sh", "tasks.json" };
	struct buf path = { 0 };

	for (size_t i = 0; i < n; i++) {
		stem_of(s, name, (unsigned)i, &path);
		suite_child_forget(path.data);
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		buf_reset(&path);
		buf_printf(&path, "%s/%s/%s", s->folder, name, own[i]);
		unlink(path.data);
	}
	buf_release(&path);
}

/* tasks.json of a submission; NULL: not a submission, or removed. */
static const struct json_value *read_tasks(const struct suite_slurm *s, const char *name,
					   struct arena *a)
{
	const char *path = arena_printf(a, "%s/%s/tasks.json", s->folder, name);
	struct err e;
	const struct json_value *v = file_exists(path) ?
				     result_json(path, CONFIG_BYTES_MAX, a, &e) : NULL;

	return v && v->kind == JSON_ARRAY && v->count <= ARRAY_TASKS_MAX ? v : NULL;
}

/* Finds the place in due of the task's member, if its configuration is the one submitted. */
static bool find_due(const struct suite_sitting *t, const struct json_value *task, size_t *at,
		     bool *is_changed)
{
	struct str label = json_text(json_get(task, "experiment"), STR(""));
	char hash[24];

	for (size_t i = 0; i < t->n_due; i++) {
		const struct suite_member *m = &t->s->member[t->due[i]];

		if (!str_is(label, m->label))
			continue;
		snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)m->x.hash);
		*is_changed = !str_is(json_text(json_get(task, "hash"), STR("")), hash);
		*at = i;
		return true;
	}
	return false;
}

/*
 * Whether a waiting task is unnecessary: its member is completed, but its node was lost before
 * Slurm knew, and it was requeued.
 */
static bool is_needless(const struct suite_sitting *t, const struct task *task,
			const struct json_value *tasks)
{
	struct str label = json_text(json_get(&tasks->item[task->index], "experiment"), STR(""));

	for (size_t i = 0; is_waiting(task->state) && i < t->s->n; i++)
		if (str_is(label, t->s->member[i].label))
			return suite_is_done(&t->s->member[i]);
	return false;
}

/*
 * Looks up a submission's tasks in Slurm's last answer: existing ones are taken over, refused (e),
 * or cancelled.
 */
static int adopt_array(struct suite_sitting *t, struct suite_slurm *found, size_t array,
		       const struct json_value *tasks, struct word_list *cancelled, struct err *e)
{
	struct suite_slurm *s = t->slurm;
	struct array *of = &found->array[array];
	size_t n = 0, n_own = 0, n_other = 0, at, to = SIZE_MAX;
	bool is_changed;

	for (size_t i = 0; i < tasks->count; i++) {
		const struct task *task = find_task(found, str_of(of->name), (int64_t)i);

		if (!task || !task->is_seen || end_of(task))
			continue;
		if (!find_due(t, &tasks->item[i], &at, &is_changed)) {
			if (is_needless(t, task, tasks))
				words_add(cancelled, task_word(of, task, cancelled->arena));
			else
				n++;
			continue;
		}
		n++;
		if (!t->o->is_resumed || is_changed || t->is_adopted[at]) {
			n_other++;
			continue;
		}
		to = to == SIZE_MAX ? add_array(s, of->name) : to;
		s->array[to].job = of->job;
		s->array[to].n_tasks = tasks->count;
		add_task(s, &t->s->member[t->due[at]], to, (unsigned)i);
		t->is_adopted[at] = true;
		n_own++;
	}
	if (n_own)
		s->array[to].has_others = n > n_own;
	if (n == 0)
		forget_array(found, of->name, tasks->count);
	if (n_other)
		return err_set(e, ERR_RUN, "Slurm's job %llu of an earlier run still has %zu of these "
			       "experiments%s. %s`scancel %llu` ends it", (unsigned long long)of->job,
			       n_other, t->o->is_resumed ? " with another configuration" : "",
			       t->o->is_resumed ? "" : "--resume waits for it; ",
			       (unsigned long long)of->job);
	return 0;
}

int suite_slurm_adopt(struct suite_sitting *t, struct err *e)
{
	struct suite_slurm found = { 0 };
	struct arena a = { 0 };
	struct word_list cancelled = { .arena = &a };
	const struct json_value **tasks = NULL;
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;
	int rc = 0;

	if (!tool_exists("sbatch"))
		return err_set(e, ERR_RUN, "scheduler slurm: sbatch is not in PATH; run this where jobs "
			       "of Slurm can be submitted");
	suite_slurm_free(t->slurm);
	t->slurm = mem_alloc(sizeof(*t->slurm));
	free(t->is_adopted);
	t->is_adopted = mem_array(t->n_due + 1, sizeof(*t->is_adopted));
	t->slurm->folder = suite_scheduler_folder(t->s, e);
	if (!t->slurm->folder)
		return -1;
	found.folder = t->slurm->folder;
	dir = opendir(found.folder);
	while (dir && (entry = readdir(dir))) {
		const struct json_value *v = read_tasks(&found, entry->d_name, &a);

		if (!v)
			continue;
		tasks = mem_grow(tasks, found.n_arrays + 1, sizeof(struct json_value *));
		tasks[found.n_arrays] = v;
		n = add_array(&found, entry->d_name);
		for (size_t i = 0; i < v->count; i++)
			add_task(&found, NULL, n, (unsigned)i);
	}
	if (dir)
		closedir(dir);
	if (found.n_arrays && look(&found, NULL, e) < 0)
		rc = err_wrap(e, "cannot ask Slurm about the jobs of an earlier run");
	for (size_t i = 0; rc == 0 && i < found.n_arrays; i++)
		rc = adopt_array(t, &found, i, tasks[i], &cancelled, e);
	if (rc == 0 && t->o->is_resumed)
		scancel(&cancelled, &t->hooks->run);
	free(tasks);
	free(found.array);
	free(found.task);
	arena_release(&a);
	return rc;
}

/* ---- submitting ---- */

/* A simulator needs no GPU: it only gets those asked for by number. */
static unsigned gpus_of(const struct experiment *x)
{
	bool is_sim = x->n_servers > 0;

	for (size_t i = 0; i < x->n_servers; i++)
		is_sim = is_sim && config_is_sim(x->server[i].command);
	return is_sim && x->resources.want == GPUS_AUTO ? 0 : choose_wanted(x);
}

/* A name that no other submission has, and that squeue --name takes: letters, digits, "-". */
static void make_name(const struct suite *s, size_t number, char out[NAME_BYTES])
{
	const char *given = s->name ? s->name : "suite";
	size_t n = 0;

	for (; n < 24 && given[n]; n++)
		out[n] = isalnum((unsigned char)given[n]) ? given[n] : '-';
	snprintf(out + n, NAME_BYTES - n, "-%llx-%lx-%zu",
		 (unsigned long long)clock_real_ns() / 1000000, (unsigned long)getpid(), number);
}

static int write_array(const struct suite_slurm *s, const char *name, struct err *e)
{
	struct buf text = { 0 }, path = { 0 }, script = { 0 };
	struct json_writer w = json_writer(&text);
	int rc;

	json_begin_array(&w);
	for (size_t i = 0; i < s->n_tasks; i++) {
		const struct task *task = &s->task[i];
		char hash[24];

		if (strcmp(s->array[task->array].name, name) != 0)
			continue;
		snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)task->m->x.hash);
		json_begin_object(&w);
		json_member_text(&w, "experiment", task->m->label);
		json_member_text(&w, "hash", hash);
		json_end_object(&w);
	}
	json_end_array(&w);
	buf_add_char(&text, '\n');
	buf_printf(&path, "%s/%s/tasks.json", s->folder, name);
	rc = file_write_atomic(path.data, buf_str(&text), e);
	buf_reset(&path);
	buf_printf(&path, "%s/%s", s->folder, name);
	buf_add_text(&script, "#!/bin/sh\n# A job array of profllm run: task N is the experiment of N.sh.\n"
		     "exec sh ");
	words_quote(&script, buf_str(&path));
	buf_add_text(&script, "/\"$SLURM_ARRAY_TASK_ID\".sh\n");
	buf_add_text(&path, "/array.sh");
	if (rc == 0)
		rc = file_write_atomic_mode(path.data, buf_str(&script), 0700, e);
	buf_release(&text);
	buf_release(&script);
	buf_release(&path);
	return rc;
}

static bool has_arg(const struct experiment_scheduler *o, const char *prefix)
{
	for (size_t i = 0; i < o->args.n; i++)
		if (str_starts(str_of(o->args.v[i]), str_of(prefix)))
			return true;
	return false;
}

/* The words of sbatch for n tasks with this many GPUs each, in a. */
static char **sbatch_words(const struct suite_slurm *s, const struct suite *suite, const char *name,
			   size_t n, unsigned gpus, struct arena *a)
{
	const struct experiment_scheduler *o = &suite->scheduler;
	const struct { const char *option, *value; } given[] = {
		{ "partition", o->partition }, { "account", o->account }, { "qos", o->qos },
	};
	struct word_list w = { .arena = a };

	words_add(&w, arena_text(a, STR("sbatch")));
	words_add(&w, arena_text(a, STR("--parsable")));
	words_add(&w, arena_printf(a, "--job-name=%s", name));
	words_add(&w, suite->jobs ? arena_printf(a, "--array=0-%zu%%%u", n - 1, suite->jobs) :
				    arena_printf(a, "--array=0-%zu", n - 1));
	words_add(&w, arena_printf(a, "--output=%s/%s/%%a.log", s->folder, name));
	words_add(&w, arena_text(a, STR("--open-mode=append")));
	words_add(&w, arena_text(a, STR("--requeue")));
	words_add(&w, arena_text(a, STR("--nodes=1")));
	words_add(&w, arena_text(a, STR("--ntasks=1")));
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		if (given[i].value)
			words_add(&w, arena_printf(a, "--%s=%s", given[i].option, given[i].value));
	if (o->time_limit_s > 0)
		words_add(&w, arena_printf(a, "--time=%.0f", ceil(o->time_limit_s / 60)));
	if (gpus && !has_arg(o, "--gres") && !has_arg(o, "--gpus") && !has_arg(o, "-G"))
		words_add(&w, arena_printf(a, "--gres=gpu:%u", gpus));
	for (size_t i = 0; i < o->args.n; i++)
		words_add(&w, arena_text(a, str_of(o->args.v[i])));
	words_add(&w, arena_printf(a, "%s/%s/array.sh", s->folder, name));
	return w.v;
}

/* Writes the files of the tasks from first on, then submits the job. */
static int submit(struct suite_sitting *t, size_t array, size_t first, unsigned gpus, struct err *e)
{
	const struct experiment_hooks *hooks = &t->hooks->run;
	struct suite_slurm *s = t->slurm;
	const char *name = s->array[array].name;
	struct buf path = { 0 }, out = { 0 }, line = { 0 };
	struct arena a = { 0 };
	size_t n = s->n_tasks - first;
	struct str answer;
	int rc;

	buf_printf(&path, "%s/%s", s->folder, name);
	rc = file_mkdirs_mode(path.data, 0700, e);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		stem_of(s, name, (unsigned)i, &path);
		rc = suite_child_files(t, s->task[first + i].m, path.data, NULL, e);
	}
	if (rc == 0)
		rc = write_array(s, name, e);
	if (rc == 0)
		rc = ask((const char *const *)sbatch_words(s, t->s, name, n, gpus, &a), &out, e);
	answer = str_trim(buf_str(&out));
	answer = str_cut(&answer, ';'); /* "JOB;CLUSTER" */
	if (rc == 0 && !str_to_u64(answer, &s->array[array].job))
		rc = err_set(e, ERR_RUN, "sbatch printed '%.*s' instead of a job number",
			     (int)(answer.n < 80 ? answer.n : 80), answer.n ? answer.p : "");
	s->array[array].n_tasks = n;
	if (rc < 0) {
		forget_array(s, name, n);
		s->n_tasks = first; /* it never was */
		s->n_arrays = array;
	}
	if (rc == 0 && hooks->line) {
		buf_printf(&line, "Slurm job %llu: %zu experiment%s", (unsigned long long)
			   s->array[array].job, n, n == 1 ? "" : "s");
		if (gpus)
			buf_printf(&line, " with %u GPU%s each", gpus, gpus == 1 ? "" : "s");
		hooks->line(hooks->self, line.data);
	}
	buf_release(&line);
	buf_release(&path);
	buf_release(&out);
	arena_release(&a);
	return rc;
}

/* Members with the same number of GPUs are one array, or several of at most ARRAY_TASKS_MAX. */
static int submit_all(struct suite_sitting *t, struct err *e)
{
	struct suite_slurm *s = t->slurm;
	bool *is_done = mem_array(t->n_due + 1, sizeof(*is_done));
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n_due; i++) {
		size_t first = s->n_tasks, array = SIZE_MAX;
		unsigned gpus = gpus_of(&t->s->member[t->due[i]].x);
		char name[NAME_BYTES];

		for (size_t k = i; k < t->n_due && s->n_tasks - first < ARRAY_TASKS_MAX; k++) {
			const struct suite_member *m = &t->s->member[t->due[k]];

			if (is_done[k] || t->is_adopted[k] || gpus_of(&m->x) != gpus)
				continue;
			if (array == SIZE_MAX) {
				make_name(t->s, s->n_arrays, name);
				array = add_array(s, name);
			}
			add_task(s, m, array, (unsigned)(s->n_tasks - first));
			is_done[k] = true;
		}
		if (array != SIZE_MAX)
			rc = submit(t, array, first, gpus, e);
	}
	free(is_done);
	return rc;
}

/* ---- waiting ---- */

static void say(const struct experiment_hooks *hooks, bool is_warning, struct buf *text)
{
	void (*to)(void *, const char *) = is_warning ? hooks->warn : hooks->line;

	if (to)
		to(hooks->self, text->data);
	buf_reset(text);
}

/* "Slurm job 12_3 on node2 ended as TIMEOUT: it reached its time limit" and where its log is. */
static void describe(const struct suite_slurm *s, const struct task *task, struct buf *out)
{
	const struct array *of = &s->array[task->array];
	const struct state *end = end_of(task);

	buf_printf(out, "Slurm job %llu_%u", (unsigned long long)of->job, task->index);
	if (*task->node)
		buf_printf(out, " on %s", task->node);
	if (end)
		buf_printf(out, " ended as %s: %s", end->name, end->why);
	else
		buf_add_text(out, *task->node ? " left no document, and Slurm does not list it any more" :
			     " is not in Slurm's list any more: it was cancelled before it started, or "
			     "ended long ago");
	buf_printf(out, "; --resume runs it again, its log is %s/%s/%u.log", s->folder, of->name,
		   task->index);
}

/* The number of the latest begun task plus one, from 1. */
static size_t count_begun(const struct suite_slurm *s)
{
	size_t n = 1;

	for (size_t i = 0; i < s->n_tasks; i++)
		n += s->task[i].progress != TASK_WAITING;
	return n;
}

/* The task has ended: uses its document, or writes one with the state of the task. */
static int conclude(struct suite_sitting *t, struct task *task, struct err *e)
{
	const struct suite_slurm *s = t->slurm;
	const struct state *end = end_of(task);
	struct suite_document d;
	struct buf text = { 0 };
	bool is_there = suite_document_of(task->m, &d);
	double took_s;
	int rc = 0;

	if (is_there && task->progress == TASK_WAITING)
		suite_say_begin(t, task->m, count_begun(s)); /* it ran between two looks */
	task->progress = TASK_ENDED;
	describe(s, task, &text);
	if (!is_there) {
		rc = suite_write_lost(task->m, "scheduler", text.data, e);
	} else if (d.status != OUTCOME_COMPLETED && end && end != &ends[0] && end != &ends[1]) {
		/* Its document only says that it was interrupted. */
		char *own = buf_take(&text);

		buf_printf(&text, "%s: %s", task->m->label, own);
		free(own);
		say(&t->hooks->run, true, &text);
	}
	buf_release(&text);
	if (!task->began_ns)
		task->began_ns = clock_mono_ns();
	took_s = is_there && isfinite(d.duration_s) ? d.duration_s :
		 (double)(clock_mono_ns() - task->began_ns) / 1e9;
	return rc < 0 ? -1 : suite_ended(t, task->m, took_s, e);
}

/* Cancels the selected tasks and drops them. */
static void cancel(struct suite_sitting *t, bool (*is_meant)(struct suite_sitting *,
							      const struct task *))
{
	struct suite_slurm *s = t->slurm;
	struct arena a = { 0 };
	struct word_list tasks = { .arena = &a };

	for (size_t i = 0; i < s->n_tasks; i++) {
		struct task *task = &s->task[i];

		if (task->progress == TASK_ENDED || !is_meant(t, task))
			continue;
		words_add(&tasks, task_word(&s->array[task->array], task, &a));
		task->progress = TASK_ENDED;
	}
	scancel(&tasks, &t->hooks->run);
	arena_release(&a);
}

static bool is_any(struct suite_sitting *t, const struct task *task)
{
	return t && task;
}

static bool is_futile(struct suite_sitting *t, const struct task *task)
{
	return task->progress == TASK_WAITING && suite_is_futile(t, task->m);
}

/* Handles Slurm's state of one task; counts running ones and those that have just ended. */
static int step(struct suite_sitting *t, struct task *task, size_t *n_running, size_t *n_ended,
		struct err *e)
{
	int64_t now = clock_mono_ns();
	struct suite_document d;
	bool is_running = task->is_seen && !end_of(task) && !is_waiting(task->state);

	if (is_running) {
		if (task->progress == TASK_WAITING)
			suite_say_begin(t, task->m, count_begun(t->slurm));
		task->began_ns = task->progress == TASK_WAITING ? now : task->began_ns;
		task->progress = TASK_RUNNING;
	} else if (task->is_seen && !end_of(task)) {
		task->progress = TASK_WAITING; /* once more, when it was requeued */
	}
	*n_running += is_running;
	if (task->is_seen && !end_of(task)) {
		task->gone_ns = 0;
		return 0;
	}
	if (!task->gone_ns) {
		task->gone_ns = now;
		if (!task->is_seen && !end_of(task))
			look_back(t->slurm, task);
	}
	/* Its files may appear here a moment later, and Slurm's answer may be a moment old. */
	if (!(task->is_seen && suite_document_of(task->m, &d)) && now - task->gone_ns < LAG_NS)
		return 0;
	++*n_ended;
	return conclude(t, task, e);
}

/* Prints why Slurm lets tasks wait, when the reason is new. */
static void say_why(const struct suite_sitting *t, const struct buf *why)
{
	struct suite_slurm *s = t->slurm;
	struct buf text = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < s->n_tasks; i++)
		n += s->task[i].progress == TASK_WAITING;
	if (!why->len || strcmp(why->data, s->why) == 0)
		return;
	snprintf(s->why, sizeof(s->why), "%s", why->data);
	buf_printf(&text, "Slurm keeps %zu experiment%s waiting (%s)", n, n == 1 ? "" : "s", s->why);
	say(&t->hooks->run, false, &text);
	buf_release(&text);
}

static int look_and_step(struct suite_sitting *t, struct err *e)
{
	struct suite_slurm *s = t->slurm;
	struct buf why = { 0 };
	size_t n_ended = 0, n_running = 0;
	struct err own;
	int rc = 0;

	if (look(s, &why, &own) < 0) {
		/* Slurm may be restarting; its jobs continue. */
		if (!s->is_unanswered && t->hooks->run.warn)
			t->hooks->run.warn(t->hooks->run.self, own.text);
		s->is_unanswered = true;
		buf_release(&why);
		return 0;
	}
	s->is_unanswered = false;
	for (size_t i = 0; rc == 0 && i < s->n_tasks; i++)
		if (s->task[i].progress != TASK_ENDED)
			rc = step(t, &s->task[i], &n_running, &n_ended, e);
	t->n_running = n_running > t->n_running ? n_running : t->n_running;
	say_why(t, &why);
	buf_release(&why);
	if (rc == 0 && t->s->stop_on_error && t->tally->failed)
		cancel(t, is_any);
	else if (rc == 0 && n_ended && t->n_causes)
		cancel(t, is_futile);
	return rc;
}

static size_t count_left(const struct suite_slurm *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_tasks; i++)
		n += s->task[i].progress != TASK_ENDED;
	return n;
}

/* Prints what continues without this process, and how to return to it. */
static void say_left(const struct suite_sitting *t)
{
	const struct suite_slurm *s = t->slurm;
	struct buf text = { 0 }, jobs = { 0 };
	size_t n = count_left(s);

	for (size_t i = 0; i < s->n_arrays; i++)
		buf_printf(&jobs, " %llu", (unsigned long long)s->array[i].job);
	if (n)
		buf_printf(&text, "%zu experiment%s %s on in Slurm; the same command with --resume "
			   "collects %s, scancel%s ends %s", n, n == 1 ? "" : "s",
			   n == 1 ? "goes" : "go", n == 1 ? "it" : "them", jobs.data,
			   n == 1 ? "it" : "them");
	if (n)
		say(&t->hooks->run, false, &text);
	buf_release(&jobs);
	buf_release(&text);
}

int suite_slurm_run(struct suite_sitting *t, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct suite_slurm *s = t->slurm;
	size_t n_adopted = s->n_tasks;
	struct buf text = { 0 };
	int rc;

	if (n_adopted) {
		buf_printf(&text, "%zu experiment%s of an earlier run %s still in Slurm's queue and "
			   "%s waited for", n_adopted, n_adopted == 1 ? "" : "s",
			   n_adopted == 1 ? "is" : "are", n_adopted == 1 ? "is" : "are");
		say(&t->hooks->run, false, &text);
	}
	rc = submit_all(t, e);
	while (rc == 0 && count_left(s) && !t->o->is_detached && !suite_is_cancelled(t)) {
		int64_t until = clock_mono_ns() + clock_span_ns(t->s->scheduler.poll_s);

		rc = look_and_step(t, e);
		while (rc == 0 && count_left(s) && clock_mono_ns() < until &&
		       !suite_is_cancelled(t))
			nanosleep(&pause, NULL);
	}
	t->is_detached = rc == 0 && count_left(s) > 0;
	say_left(t);
	for (size_t i = 0; rc == 0 && i < s->n_arrays && !t->is_detached; i++)
		if (!s->array[i].has_others)
			forget_array(s, s->array[i].name, s->array[i].n_tasks);
	buf_release(&text);
	return rc;
}
