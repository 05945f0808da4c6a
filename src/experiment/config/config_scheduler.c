/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_scheduler.c - see config.h: `scheduler`, which starts the members of a suite, and the file
 * with the hosts of scheduler ssh.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "experiment/config/config_internal.h"

static const char *const kinds[] = { "local", "slurm", "ssh", NULL };

#define S(member, name, ...) OPT(struct experiment_scheduler, member, name, __VA_ARGS__)
static const struct opt scheduler_rows[] = {
	S(kind, "type", .arg = "NAME", .choices = kinds,
	  .help = "where experiments run: on this machine (local), as Slurm job arrays, or on "
		  "hosts listed in a file by ssh; see --scheduler"),
	S(hosts, "hosts", .arg = "FILE",
	  .help = "hosts of type ssh: on each line a name as ssh takes it, and slots=N if it may run "
		  "several experiments at once"),
	S(program, "program", .arg = "PATH",
	  .help = "path of profllm on the nodes, if it differs from the path on this machine"),
	S(partition, "partition", .arg = "NAME", .help = "partition of type slurm"),
	S(account, "account", .arg = "NAME", .help = "account of type slurm"),
	S(qos, "qos", .arg = "NAME", .help = "quality of service of type slurm"),
	S(time_limit_s, "time_limit", .arg = "SECONDS", .flags = OPT_MIN_EXCLUSIVE,
	  .max = 365 * 86400., .help = "time limit of one experiment on type slurm, in whole "
		  "minutes; default: the partition's"),
	S(args, "args", .arg = "WORDS",
	  .help = "further arguments for sbatch, or for ssh before the host; a list"),
	S(poll_s, "poll_s", .arg = "SECONDS", .min = 0.1, .max = 600,
	  .help = "time between two queries of the jobs' states"),
};
static const struct experiment_scheduler scheduler_defaults = { .kind = "local", .poll_s = 5 };
const struct opt_set config_scheduler_set = {
	.command = "scheduler", .row = scheduler_rows, .bytes = sizeof(struct experiment_scheduler),
	.n = sizeof(scheduler_rows) / sizeof(*scheduler_rows), .defaults = &scheduler_defaults,
};

void config_suite_scheduler(const struct config *c, struct arena *a,
			    struct experiment_scheduler *out, struct config_findings *f)
{
	struct experiment x = { .name = "" };
	struct config_reader r = { .c = c, .a = a, .f = f, .x = &x };
	const struct json_value *object = config_object(&r, c->tree, "scheduler");

	config_section(&r, object, "scheduler", &config_scheduler_set, out, NULL, NULL);
	/* Its words are commands, which would run as the dashboard's user. */
	if (object && c->bounds)
		config_complain_key(c, f, object, "scheduler", "a configuration that is sent to a "
				    "dashboard runs on the dashboard's machine; remove it");
}

/* ---- hosts ---- */

static int read_line(const char *path, size_t number, struct str line, struct arena *a,
		     struct config_host *out, struct err *e)
{
	struct str rest = line, name = str_cut(&rest, ' '), slots = str_trim(rest);
	int64_t n = 1;

	if (slots.n && (!str_starts(slots, STR("slots=")) ||
			!str_to_i64((struct str){ slots.p + 6, slots.n - 6 }, &n) || n < 1 ||
			n > SUITE_JOBS_MAX))
		return err_set(e, ERR_USAGE, "%s:%zu: expected a host and slots=N with N from 1 to %d, "
			       "such as \"node1 slots=2\", got '%.*s'", path, number, SUITE_JOBS_MAX,
			       (int)(line.n < 80 ? line.n : 80), line.p);
	if (name.p[0] == '-')
		return err_set(e, ERR_USAGE, "%s:%zu: expected the name of a host, got '%.*s'", path,
			       number, (int)(name.n < 80 ? name.n : 80), name.p);
	*out = (struct config_host){ arena_text(a, name), (unsigned)n };
	return 0;
}

int config_hosts(const char *path, struct arena *a, struct config_host **out, size_t *n,
		 struct err *e)
{
	struct buf text = { 0 };
	struct str rest;
	size_t number = 0, slots = 0, cap = 0;
	int rc = file_read(path, CONFIG_BYTES_MAX, &text, e);

	*out = NULL;
	*n = 0;
	for (size_t i = 0; i < text.len; i++)
		text.data[i] = text.data[i] == '\t' || text.data[i] == '\r' ? ' ' : text.data[i];
	rest = buf_str(&text);
	while (rc == 0 && rest.n) {
		struct str line = str_cut(&rest, '\n');

		number++;
		line = str_trim(str_cut(&line, '#'));
		if (!line.n)
			continue;
		*out = arena_room(a, *out, *n, &cap, sizeof(**out));
		rc = read_line(path, number, line, a, &(*out)[*n], e);
		slots += rc == 0 ? (*out)[(*n)++].slots : 0;
	}
	if (rc == 0 && *n == 0)
		rc = err_set(e, ERR_USAGE, "%s names no host; expected one on each line", path);
	if (rc == 0 && slots > SUITE_JOBS_MAX)
		rc = err_set(e, ERR_LIMIT, "%s has %zu slots, more than the %d of SUITE_JOBS_MAX", path,
			     slots, SUITE_JOBS_MAX);
	buf_release(&text);
	return rc;
}
