/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - see system.h. */
#include "host/telemetry/system.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/http/prometheus.h"
#include "client/record/series.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "host/gpu/gpu.h"
#include "host/telemetry/telemetry.h"

#define FILE_BYTES (64u << 10) /* for the longest file read by every sample: /proc/net/dev */
#define GROUP_BYTES_MAX 4096
#define GROUP_ROOT "/sys/fs/cgroup"

/* The next word of a line; blanks around it go. */
static struct str next_word(struct str *rest)
{
	*rest = str_trim(*rest);
	return str_cut(rest, ' ');
}

/* ---- parsers ---- */

bool host_parse_stat(struct str text, double ticks_per_s, double *cpu_s)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, COUNT };
	struct str line = str_cut(&text, '\n');
	double busy = 0;

	assert(ticks_per_s > 0);
	if (!str_is(next_word(&line), "cpu"))
		return false;
	for (int i = 0; i < COUNT; i++) {
		uint64_t ticks;

		if (!str_to_u64(next_word(&line), &ticks))
			return false;
		if (i != IDLE && i != IOWAIT)
			busy += (double)ticks;
	}
	*cpu_s = busy / ticks_per_s;
	return true;
}

bool host_parse_meminfo(struct str text, double *used, double *total)
{
	double all = NAN, available = NAN;

	while (text.n) {
		struct str line = str_cut(&text, '\n'), name = next_word(&line);
		bool is_total = str_is(name, "MemTotal:"), is_available = str_is(name, "MemAvailable:");
		uint64_t kib;

		if ((is_total || is_available) && str_to_u64(next_word(&line), &kib))
			*(is_total ? &all : &available) = (double)kib * 1024;
		if (!isnan(all) && !isnan(available))
			break;
	}
	if (isnan(all) || isnan(available))
		return false;
	*used = all - available;
	*total = all;
	return true;
}

static bool is_named(const char (*name)[16], size_t n, struct str wanted)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(wanted, name[i]))
			return true;
	return false;
}

static bool is_counted(const struct host_nets *nets, struct str name)
{
	if (nets->n)
		return is_named(nets->name, nets->n, name);
	return !str_is(name, "lo") && !is_named(nets->left_out, nets->n_left_out, name);
}

bool host_parse_net(struct str text, const struct host_nets *nets, double *received, double *sent)
{
	enum { RECEIVED, SENT = 8 };
	double sum[2] = { 0, 0 };
	bool is_any = false;

	while (text.n) {
		struct str line = str_cut(&text, '\n'), name = str_trim(str_cut(&line, ':'));
		uint64_t bytes[2] = { 0, 0 };
		bool is_good = true;

		/* The lines of the head have no colon. */
		if (line.n == 0 || !is_counted(nets, name))
			continue;
		for (int i = 0; i <= SENT && is_good; i++) {
			struct str word = next_word(&line);

			if (i == RECEIVED || i == SENT)
				is_good = str_to_u64(word, &bytes[i == SENT]);
		}
		if (!is_good)
			continue;
		sum[0] += (double)bytes[0];
		sum[1] += (double)bytes[1];
		is_any = true;
	}
	if (!is_any)
		return false;
	*received = sum[0];
	*sent = sum[1];
	return true;
}

double host_parse_cpu_max(struct str text)
{
	struct str line = str_cut(&text, '\n'), quota = next_word(&line), period = next_word(&line);
	uint64_t us, of_us;

	if (str_is(quota, "max"))
		return INFINITY;
	if (!str_to_u64(quota, &us) || !str_to_u64(period, &of_us) || us == 0 || of_us == 0)
		return NAN;
	return (double)us / (double)of_us;
}

double host_parse_memory_max(struct str text)
{
	uint64_t bytes;

	text = str_trim(text);
	if (str_is(text, "max"))
		return INFINITY;
	return str_to_u64(text, &bytes) && bytes > 0 ? (double)bytes : NAN;
}

/* ---- this machine ---- */

static bool has_part(const char *folder, const char *name, const char *part)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s/%s", folder, name, part);

	return n > 0 && (size_t)n < sizeof(path) && file_exists(path);
}

void host_find_nets(const char *sysfs, struct host_nets *out)
{
	char folder[PATH_MAX];
	const struct dirent *entry;
	DIR *dir;

	*out = (struct host_nets){ .n = 0 };
	snprintf(folder, sizeof(folder), "%s/class/net", sysfs);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (name[0] == '.' || strlen(name) >= sizeof(out->name[0]))
			continue;
		if (has_part(folder, name, "device") && out->n < HOST_NETS_MAX)
			snprintf(out->name[out->n++], sizeof(out->name[0]), "%.15s", name);
		else if ((has_part(folder, name, "bridge") || has_part(folder, name, "bonding")) &&
			 out->n_left_out < HOST_NETS_MAX)
			snprintf(out->left_out[out->n_left_out++], sizeof(out->name[0]), "%.15s",
				 name);
	}
	if (dir)
		closedir(dir);
}

static void host_open(struct system_host *h)
{
	static const char *const path[] = { [HOST_STAT] = "/proc/stat",
					    [HOST_MEMINFO] = "/proc/meminfo",
					    [HOST_NET] = "/proc/net/dev" };
	long ticks = sysconf(_SC_CLK_TCK);

	h->ticks_per_s = ticks > 0 ? (double)ticks : 100;
	host_find_nets("/sys", &h->nets);
	for (int i = 0; i < HOST_FILES; i++)
		h->fd[i] = open(path[i], O_RDONLY | O_CLOEXEC);
}

/* Only the first line of /proc/stat is read, however long the file is. */
static struct str read_file(const struct system_host *h, int file, char *into, size_t room)
{
	ssize_t n = h->fd[file] < 0 ? -1 : pread(h->fd[file], into, room, 0);

	return (struct str){ into, n > 0 ? (size_t)n : 0 };
}

static void host_read(const struct system_host *h, struct host_values *out)
{
	char text[FILE_BYTES];

	*out = (struct host_values){ NAN, NAN, NAN, NAN, NAN };
	host_parse_stat(read_file(h, HOST_STAT, text, 512), h->ticks_per_s, &out->cpu_s);
	host_parse_meminfo(read_file(h, HOST_MEMINFO, text, 4096), &out->memory,
			   &out->memory_total);
	host_parse_net(read_file(h, HOST_NET, text, sizeof(text)), &h->nets, &out->received,
		       &out->sent);
}

static void host_close(struct system_host *h)
{
	for (int i = 0; i < HOST_FILES; i++)
		if (h->fd[i] >= 0)
			close(h->fd[i]);
}

/* ---- limits of control groups ---- */

static double limit_in(const char *folder, const char *name, double (*parse)(struct str text))
{
	char path[PATH_MAX];
	struct buf text = { 0 };
	double limit = NAN;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (file_read(path, GROUP_BYTES_MAX, &text, NULL) == 0)
		limit = parse(buf_str(&text));
	buf_release(&text);
	return isnan(limit) ? INFINITY : limit;
}

static double read_cpu_max(const char *folder)
{
	return limit_in(folder, "cpu.max", host_parse_cpu_max);
}

/* The first version of control groups keeps the two numbers of cpu.max in two files. */
static double read_cfs(const char *folder)
{
	double quota = limit_in(folder, "cpu.cfs_quota_us", host_parse_memory_max);
	double period = limit_in(folder, "cpu.cfs_period_us", host_parse_memory_max);

	return isfinite(quota) && isfinite(period) && period > 0 ? quota / period : INFINITY;
}

static double read_memory_max(const char *folder)
{
	return limit_in(folder, "memory.max", host_parse_memory_max);
}

static double read_memory_limit(const char *folder)
{
	double limit = limit_in(folder, "memory.limit_in_bytes", host_parse_memory_max);

	return limit > 0x1p60 ? INFINITY : limit;
}

/* Seconds; below zero, so that the least one is of the group that was stopped for longest. */
static double stopped_s(struct str text, const char *key, double unit_s)
{
	while (text.n) {
		struct str line = str_cut(&text, '\n');
		uint64_t n;

		if (str_is(next_word(&line), key) && str_to_u64(next_word(&line), &n))
			return -(double)n * unit_s;
	}
	return NAN;
}

static double parse_stopped_us(struct str text)
{
	return stopped_s(text, "throttled_usec", 1e-6);
}

static double parse_stopped_ns(struct str text)
{
	return stopped_s(text, "throttled_time", 1e-9);
}

static double read_stopped(const char *folder)
{
	double s = limit_in(folder, "cpu.stat", parse_stopped_us);

	return isfinite(s) ? s : limit_in(folder, "cpu.stat", parse_stopped_ns);
}

/*
 * The least of what read finds for our group and those above it; controller "": version 2. where
 * receives its folder, unless NULL or nothing is below INFINITY.
 */
static double least_limit(const char *root, const char *mount, const char *controller,
			  double (*read)(const char *folder), struct buf *where)
{
	char path[PATH_MAX], folder[PATH_MAX];
	double least = INFINITY, one;
	struct buf text = { 0 };
	struct str rest, own = { 0 };

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	if (file_read(path, PROC_FILE_BYTES_MAX, &text, NULL) == 0)
		for (rest = buf_str(&text); rest.n && own.n == 0;) { /* "4:memory:/path", "0::/path" */
			struct str group = str_cut(&rest, '\n');

			str_cut(&group, ':');
			if (str_is(str_cut(&group, ':'), controller))
				own = group;
		}
	for (;;) {
		snprintf(folder, sizeof(folder), "%s" GROUP_ROOT "%s%.*s", root, mount,
			 (int)(own.n > 1 ? own.n : 0), own.n ? own.p : "");
		one = read(folder);
		if (one < least) {
			least = one;
			if (where) {
				buf_reset(where);
				buf_add_text(where, folder);
			}
		}
		if (!own.n)
			break;
		while (own.n && own.p[--own.n] != '/')
			;
	}
	buf_release(&text);
	return least;
}

/* In either version of control groups, and under either mount name of version 1. */
static double least_cpu(const char *root, double (*second)(const char *folder),
			double (*first)(const char *folder), struct buf *where)
{
	static const char *const mounts[] = { "cpu", "cpu,cpuacct" };
	double least = least_limit(root, "", "", second, where);

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		char mount[32];
		struct buf here = { 0 };
		double one;

		snprintf(mount, sizeof(mount), "/%s", mounts[i]);
		one = least_limit(root, mount, mounts[i], first, &here);
		if (one < least) {
			least = one;
			if (where) {
				buf_reset(where);
				buf_add_str(where, buf_str(&here));
			}
		}
		buf_release(&here);
	}
	return least;
}

double host_group_cpus(const char *root, struct buf *where)
{
	return least_cpu(root, read_cpu_max, read_cfs, where);
}

double host_group_stopped_s(const char *root)
{
	double s = least_cpu(root, read_stopped, read_stopped, NULL);

	return isfinite(s) ? -s : NAN;
}

double host_group_memory(const char *root)
{
	return fmin(least_limit(root, "", "", read_memory_max, NULL),
		    least_limit(root, "/memory", "memory", read_memory_limit, NULL));
}

double host_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return fmin(n > 0 ? (double)n : 1, host_group_cpus("", NULL));
}

double host_memory_limit(double total)
{
	double limit = host_group_memory("");

	return isnan(total) ? (isfinite(limit) ? limit : NAN) : fmin(total, limit);
}

#define STAT_BYTES 1024

struct watched_process {
	pid_t pid;
	uint64_t start, ticks;
	int fd;           /* its stat file; reading gives ESRCH once the process is gone */
	bool is_seen;     /* in the snapshot being searched */
};

/* Fields after the name, which ends with the last parenthesis. */
enum { UTIME = 11, STIME = 12, THREADS = 17, START = 19, RSS = 21, FIELDS };

bool tree_parse_usage(struct str text, struct process_usage *out)
{
	const char *end = text.n ? memrchr(text.p, ')', text.n) : NULL;
	uint64_t field[FIELDS] = { 0 };
	struct str rest;

	if (!end)
		return false;
	rest = (struct str){ end + 1, (size_t)(text.p + text.n - end - 1) };
	if (str_cut(&rest, ' ').n)
		return false;
	for (int i = 0; i < FIELDS; i++) {
		struct str word = str_trim(str_cut(&rest, ' '));

		if (i != UTIME && i != STIME && i != THREADS && i != START && i != RSS)
			continue;
		if (!str_to_u64(word, &field[i]))
			return false;
	}
	*out = (struct process_usage){ field[START], field[UTIME] + field[STIME], field[THREADS],
				       field[RSS] };
	return true;
}

static bool read_usage(const struct watched_process *p, struct process_usage *out)
{
	char text[STAT_BYTES];
	ssize_t n = pread(p->fd, text, sizeof(text), 0);

	return n > 0 && tree_parse_usage((struct str){ text, (size_t)n }, out) &&
	       out->start == p->start;
}

/* A process that ended before its file was open is left out. */
static void add_process(struct tree_watch *w, const struct tree_process *p)
{
	struct watched_process new = { .pid = p->pid, .start = p->start, .is_seen = true };
	struct process_usage usage;
	char path[64];

	if (w->n == SYSTEM_PROCESSES_MAX)
		return;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)p->pid);
	new.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (new.fd < 0)
		return;
	if (!read_usage(&new, &usage)) {
		close(new.fd);
		return;
	}
	if (w->n == w->room) {
		w->room = w->room ? w->room * 2 : 16;
		w->process = mem_grow(w->process, w->room, sizeof(*w->process));
	}
	w->process[w->n++] = new;
}

static void drop_process(struct tree_watch *w, size_t i)
{
	close(w->process[i].fd);
	w->ended_ticks += w->process[i].ticks;
	w->process[i] = w->process[--w->n];
}

static void see_process(struct tree_watch *w, const struct tree_process *p)
{
	for (size_t i = 0; i < w->n; i++) {
		if (w->process[i].pid == p->pid && w->process[i].start == p->start) {
			w->process[i].is_seen = true;
			return;
		}
	}
	add_process(w, p);
}

bool tree_watch_find(struct tree_watch *w, struct tree *t)
{
	const struct tree_process *root = tree_find(t, w->root);
	bool is_there = root && !root->is_zombie &&
			(w->root_start == 0 || w->root_start == root->start);

	if (!is_there)
		return false;
	w->root_start = root->start;
	for (size_t i = 0; i < w->n; i++)
		w->process[i].is_seen = false;
	see_process(w, root);
	tree_mark(t, w->root);
	for (size_t i = 0; i < t->n; i++)
		if (t->process[i].is_in_tree && !t->process[i].is_zombie)
			see_process(w, &t->process[i]);
	for (size_t i = w->n; i-- > 0;)
		if (!w->process[i].is_seen)
			drop_process(w, i);
	return true;
}

bool tree_watch_read(struct tree_watch *w, struct tree_values *out)
{
	double ticks_per_s = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
	uint64_t ticks = 0, threads = 0, pages = 0;

	for (size_t i = w->n; i-- > 0;) {
		struct process_usage usage;

		if (!read_usage(&w->process[i], &usage)) {
			drop_process(w, i);
			continue;
		}
		w->process[i].ticks = usage.ticks;
		ticks += usage.ticks;
		threads += usage.threads;
		pages += usage.rss_pages;
	}
	*out = (struct tree_values){
		.cpu_s = (double)(ticks + w->ended_ticks) / ticks_per_s,
		.rss = (double)pages * page, .threads = (double)threads,
		.processes = (double)w->n,
	};
	return w->n > 0;
}

void tree_watch_release(struct tree_watch *w)
{
	for (size_t i = 0; i < w->n; i++)
		close(w->process[i].fd);
	free(w->process);
	*w = (struct tree_watch){ 0 };
}

/*
 * The share of a core that the thread may use: further samples are skipped. Finding the members of
 * a tree may use a part of that.
 */
#define CPU_SHARE_MAX 0.01
#define CPU_FREE_NS 20000000  /* whatever the share: a short run may begin at once */
#define FIND_SHARE_MAX 0.0025
#define FIND_INTERVAL_NS 1000000000ll
#define PATIENCE_S 10         /* with a driver call that does not return */

/* The series of one thing, each NULL until it has a point. */
struct slots {
	struct record_series *series[SYSTEM_SERIES_COUNT];
	const char *labels;
};

struct watched_gpu {
	size_t place;                  /* in the list of gpu.h */
	double memory_total;
	struct slots slots;
	_Atomic double utilization, memory, power; /* sampled last */
};

/* A counter's last two values, and how fast it went. */
struct counter_pace {
	int64_t at_ns;
	double value;
	_Atomic double per_s;
};

struct watched_tree {
	struct tree_watch tree;
	struct slots slots;
	struct counter_pace pace;
	_Atomic double rss;
};

struct system_watch {
	struct record own;             /* only its series, notes and arena are used */
	struct ticker beat;
	int64_t began_ns, thread_ns;   /* monotonic; of the thread's processor time */

	struct gpu_set *gpus;
	struct watched_gpu *gpu;
	size_t n_gpus;

	bool has_host;
	struct system_host host;
	struct slots host_slots;
	struct counter_pace host_pace;
	double cpus, memory_limit;
	_Atomic double memory;

	struct watched_tree *trees;
	size_t n_trees;
	struct tree picture;           /* kept to be read into again */
	int64_t find_ns;               /* monotonic: not before */

	struct slots self;
};

static void add_point(struct system_watch *w, struct slots *of, enum system_series id,
		      int64_t at_ns, double value)
{
	struct record_series **s = &of->series[id];

	if (isnan(value))
		return;
	if (!*s)
		*s = record_series_add(&w->own, system_series_name(id), system_series_unit(id),
				       of->labels ? of->labels : "");
	record_series_point(*s, at_ns, value);
}

__attribute__((format(printf, 2, 3)))
static void note(struct system_watch *w, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	record_note_add(&w->own, clock_real_ns(), NOTE_SYSTEM, text);
}

static void keep(_Atomic double *to, double v)
{
	atomic_store_explicit(to, v, memory_order_relaxed);
}

static double kept(const _Atomic double *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

static void keep_pace(struct counter_pace *p, int64_t at_ns, double value)
{
	if (p->at_ns && at_ns > p->at_ns)
		keep(&p->per_s, (value - p->value) / ((double)(at_ns - p->at_ns) / 1e9));
	p->at_ns = at_ns;
	p->value = value;
}

/* ---- GPUs ---- */

static void sample_gpu(struct system_watch *w, struct watched_gpu *g)
{
	struct gpu_sample now;
	int64_t at_ns;

	gpu_sample(w->gpus, g->place, &now);
	at_ns = clock_real_ns();
	add_point(w, &g->slots, SYSTEM_GPU_MEMORY, at_ns, now.memory_used_bytes);
	add_point(w, &g->slots, SYSTEM_GPU_UTILIZATION, at_ns, now.utilization_percent);
	add_point(w, &g->slots, SYSTEM_GPU_MEMORY_BUSY, at_ns, now.memory_busy_percent);
	add_point(w, &g->slots, SYSTEM_GPU_SM_CLOCK, at_ns, now.sm_clock_mhz);
	add_point(w, &g->slots, SYSTEM_GPU_MEMORY_CLOCK, at_ns, now.memory_clock_mhz);
	add_point(w, &g->slots, SYSTEM_GPU_POWER, at_ns, now.power_w);
	add_point(w, &g->slots, SYSTEM_GPU_TEMPERATURE, at_ns, now.temperature_c);
	add_point(w, &g->slots, SYSTEM_GPU_ENERGY, at_ns, now.energy_j);
	add_point(w, &g->slots, SYSTEM_GPU_SM_ACTIVE, at_ns, now.sm_active_percent);
	add_point(w, &g->slots, SYSTEM_GPU_TENSOR_ACTIVE, at_ns, now.tensor_active_percent);
	add_point(w, &g->slots, SYSTEM_GPU_DRAM_ACTIVE, at_ns, now.dram_active_percent);
	add_point(w, &g->slots, SYSTEM_GPU_NVLINK_SENT, at_ns, now.nvlink_sent_bytes_per_s);
	add_point(w, &g->slots, SYSTEM_GPU_NVLINK_RECEIVED, at_ns, now.nvlink_received_bytes_per_s);
	add_point(w, &g->slots, SYSTEM_GPU_PCIE_SENT, at_ns, now.pcie_sent_bytes_per_s);
	add_point(w, &g->slots, SYSTEM_GPU_PCIE_RECEIVED, at_ns, now.pcie_received_bytes_per_s);
	keep(&g->utilization, now.utilization_percent);
	keep(&g->memory, now.memory_used_bytes);
	keep(&g->power, now.power_w);
}

static void add_gpu(struct system_watch *w, const struct gpu *list, size_t place)
{
	const struct gpu *gpu = &list[place];
	struct watched_gpu *g = &w->gpu[w->n_gpus];
	struct buf labels = { 0 };
	char index[32];

	for (size_t i = 0; i < w->n_gpus; i++)
		if (w->gpu[i].place == place)
			return;
	snprintf(index, sizeof(index), "%d", gpu->index);
	prometheus_add_label(&labels, "gpu", str_of(index));
	prometheus_add_label(&labels, "uuid", str_of(gpu->uuid));
	prometheus_add_label(&labels, "name", str_of(gpu->name));
	g->place = place;
	g->memory_total = gpu->memory_bytes;
	g->slots.labels = arena_text(&w->own.arena, buf_str(&labels));
	add_point(w, &g->slots, SYSTEM_GPU_MEMORY_TOTAL, clock_real_ns(), gpu->memory_bytes);
	w->n_gpus++;
	buf_release(&labels);
}

/* For a split GPU its parts are monitored, or it would be counted twice. */
static void find_gpus(struct system_watch *w, const struct system_opts *o)
{
	const struct gpu *list;
	size_t n;

	w->gpus = gpu_open(NULL);
	gpu_profile(w->gpus, NULL);
	list = gpu_list(w->gpus, &n);
	w->gpu = mem_array(n, sizeof(*w->gpu));
	if (*gpu_note(w->gpus))
		note(w, "gpu: %s", gpu_note(w->gpus));
	else if (n == 0)
		note(w, "gpu: there is none on this machine that can be seen");
	for (size_t i = 0; o->n_gpus == 0 && i < n; i++)
		if (list[i].is_allowed && !list[i].is_split)
			add_gpu(w, list, i);
	for (size_t i = 0; i < o->n_gpus; i++) {
		int found = gpu_find(w->gpus, o->gpus[i]);

		if (found >= 0)
			add_gpu(w, list, (size_t)found);
		else if (n)
			note(w, "gpu: %s is called '%s'", found == -2 ? "more than one" : "none",
			     o->gpus[i]);
	}
}

/* ---- host ---- */

static void sample_host(struct system_watch *w)
{
	struct host_values now;
	int64_t at_ns;

	host_read(&w->host, &now);
	at_ns = clock_real_ns();
	add_point(w, &w->host_slots, SYSTEM_HOST_CPU, at_ns, now.cpu_s);
	add_point(w, &w->host_slots, SYSTEM_HOST_MEMORY, at_ns, now.memory);
	add_point(w, &w->host_slots, SYSTEM_HOST_RECEIVED, at_ns, now.received);
	add_point(w, &w->host_slots, SYSTEM_HOST_SENT, at_ns, now.sent);
	keep_pace(&w->host_pace, at_ns, now.cpu_s);
	keep(&w->memory, now.memory);
}

static void find_host(struct system_watch *w)
{
	int64_t at_ns = clock_real_ns();
	struct host_values now;

	w->has_host = true;
	host_open(&w->host);
	host_read(&w->host, &now);
	w->cpus = host_cpus();
	w->memory_limit = host_memory_limit(now.memory_total);
	add_point(w, &w->host_slots, SYSTEM_HOST_CPUS, at_ns, w->cpus);
	add_point(w, &w->host_slots, SYSTEM_HOST_MEMORY_TOTAL, at_ns, w->memory_limit);
}

/* ---- processes ---- */

static void sample_tree(struct system_watch *w, struct watched_tree *t)
{
	struct tree_values now;
	int64_t at_ns;

	if (!tree_watch_read(&t->tree, &now)) {
		keep(&t->rss, NAN);
		return;
	}
	at_ns = clock_real_ns();
	add_point(w, &t->slots, SYSTEM_PROCESS_CPU, at_ns, now.cpu_s);
	add_point(w, &t->slots, SYSTEM_PROCESS_RSS, at_ns, now.rss);
	add_point(w, &t->slots, SYSTEM_PROCESS_THREADS, at_ns, now.threads);
	add_point(w, &t->slots, SYSTEM_PROCESS_COUNT, at_ns, now.processes);
	keep_pace(&t->pace, at_ns, now.cpu_s);
	keep(&t->rss, now.rss);
}

/* Reads all of /proc, so the next time is as far away as this one was dear. */
static void find_trees(struct system_watch *w)
{
	int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID), wait;

	if (tree_read(&w->picture) == 0)
		for (size_t i = 0; i < w->n_trees; i++)
			tree_watch_find(&w->trees[i].tree, &w->picture);
	wait = (int64_t)((double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / FIND_SHARE_MAX);
	w->find_ns = clock_mono_ns() + (wait > FIND_INTERVAL_NS ? wait : FIND_INTERVAL_NS);
}

static void add_trees(struct system_watch *w, const struct system_opts *o)
{
	w->trees = mem_array(o->n_processes, sizeof(*w->trees));
	w->n_trees = o->n_processes;
	for (size_t i = 0; i < o->n_processes; i++) {
		struct watched_tree *t = &w->trees[i];
		struct buf labels = { 0 };
		char pid[32];

		snprintf(pid, sizeof(pid), "%d", (int)o->processes[i].pid);
		prometheus_add_label(&labels, "process", str_of(o->processes[i].name));
		prometheus_add_label(&labels, "pid", str_of(pid));
		t->slots.labels = arena_text(&w->own.arena, buf_str(&labels));
		t->tree.root = o->processes[i].pid;
		buf_release(&labels);
	}
	find_trees(w);
	for (size_t i = 0; i < w->n_trees; i++)
		if (w->trees[i].tree.n == 0)
			note(w, "process: there is none with the number %d that we may look at",
			     (int)w->trees[i].tree.root);
	if (w->n_trees == 0)
		note(w, "process: it is not known which are the server's");
}

/* ---- one sample ---- */

static void sample_all(struct system_watch *w)
{
	for (size_t i = 0; i < w->n_gpus; i++)
		sample_gpu(w, &w->gpu[i]);
	if (w->has_host)
		sample_host(w);
	if (w->n_trees && clock_mono_ns() >= w->find_ns)
		find_trees(w);
	for (size_t i = 0; i < w->n_trees; i++)
		sample_tree(w, &w->trees[i]);
}

static void sample_self(struct system_watch *w)
{
	int64_t at_ns = clock_real_ns();

	add_point(w, &w->self, SYSTEM_SAMPLER_CPU, at_ns, (double)w->thread_ns / 1e9);
	add_point(w, &w->self, SYSTEM_SAMPLER_MISSED, at_ns, (double)w->beat.missed);
}

static void thin_when_full(struct system_watch *w)
{
	/* It has a point of every sample. */
	const struct record_series *longest = w->self.series[SYSTEM_SAMPLER_CPU];

	if (longest->n < TELEMETRY_POINTS_MAX)
		return;
	for (size_t i = 0; i < w->own.n_series; i++)
		series_thin(w->own.series[i]);
	w->beat.interval_ns *= 2;
}

static void sample_again(void *self)
{
	struct system_watch *w = self;

	sample_all(w);
	w->thread_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	sample_self(w);
	thin_when_full(w);
	w->beat.not_before_ns = w->began_ns +
				(int64_t)((double)(w->thread_ns - CPU_FREE_NS) / CPU_SHARE_MAX);
}

/* ---- begin, now, end ---- */

struct system_watch *system_begin(const struct system_opts *o)
{
	struct system_watch *w = mem_alloc(sizeof(*w));

	keep(&w->host_pace.per_s, NAN);
	keep(&w->memory, NAN);
	w->cpus = w->memory_limit = NAN;
	if (o->gpu)
		find_gpus(w, o);
	if (o->host)
		find_host(w);
	if (o->process)
		add_trees(w, o);
	for (size_t i = 0; i < w->n_trees; i++)
		keep(&w->trees[i].pace.per_s, NAN);
	sample_all(w);
	sample_self(w);
	w->began_ns = clock_mono_ns();
	w->beat.patience_s = PATIENCE_S;
	if (o->interval_ns > 0)
		ticker_start(&w->beat, o->interval_ns, sample_again, w);
	return w;
}

/* NAN counts as 0 unless both are NAN. */
static double plus(double sum, double v)
{
	return isnan(sum) ? v : isnan(v) ? sum : sum + v;
}

void system_now(const struct system_watch *w, struct system_now *out)
{
	size_t told = 0;

	*out = (struct system_now){ 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
	if (!w)
		return;
	out->gpus = (double)w->n_gpus;
	for (size_t i = 0; i < w->n_gpus; i++) {
		const struct watched_gpu *g = &w->gpu[i];
		double utilization = kept(&g->utilization);

		told += isnan(utilization) ? 0 : 1;
		out->gpu_utilization = plus(out->gpu_utilization, utilization);
		out->gpu_memory = plus(out->gpu_memory, kept(&g->memory));
		out->gpu_memory_total = plus(out->gpu_memory_total, g->memory_total);
		out->gpu_power = plus(out->gpu_power, kept(&g->power));
	}
	if (told)
		out->gpu_utilization /= (double)told;
	out->host_cpus_busy = kept(&w->host_pace.per_s);
	out->host_cpus = w->cpus;
	out->host_memory = kept(&w->memory);
	out->host_memory_total = w->memory_limit;
	for (size_t i = 0; i < w->n_trees; i++) {
		out->process_cpus_busy = plus(out->process_cpus_busy,
					      kept(&w->trees[i].pace.per_s));
		out->process_rss = plus(out->process_rss, kept(&w->trees[i].rss));
	}
}

void system_end(struct system_watch *w, struct record *into)
{
	if (!w)
		return;
	if (!ticker_stop(&w->beat)) {
		record_note_add(into, clock_real_ns(), NOTE_SYSTEM,
				"a sample did not come to its end: the driver of the GPUs hangs");
		return;
	}
	if (w->beat.cpu_ns)
		w->thread_ns = w->beat.cpu_ns;
	w->find_ns = INT64_MAX;
	sample_all(w);
	sample_self(w);
	series_move(into, &w->own);
	record_release(&w->own);
	gpu_close(w->gpus);
	if (w->has_host)
		host_close(&w->host);
	for (size_t i = 0; i < w->n_trees; i++)
		tree_watch_release(&w->trees[i].tree);
	tree_release(&w->picture);
	free(w->gpu);
	free(w->trees);
	free(w);
}
