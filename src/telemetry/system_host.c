/* SPDX-License-Identifier: Apache-2.0 */
/* system_host.c - see system_host.h. */
#include "telemetry/system_host.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/str.h"

#define FILE_BYTES (64u << 10) /* of a file that every sample reads: /proc/net/dev is longest */
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

void host_open(struct host *h)
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

/* Only the first line of /proc/stat is looked at, however long the file is. */
static struct str read_file(const struct host *h, int file, char *into, size_t room)
{
	ssize_t n = h->fd[file] < 0 ? -1 : pread(h->fd[file], into, room, 0);

	return (struct str){ into, n > 0 ? (size_t)n : 0 };
}

void host_read(const struct host *h, struct host_values *out)
{
	char text[FILE_BYTES];

	*out = (struct host_values){ NAN, NAN, NAN, NAN, NAN };
	host_parse_stat(read_file(h, HOST_STAT, text, 512), h->ticks_per_s, &out->cpu_s);
	host_parse_meminfo(read_file(h, HOST_MEMINFO, text, 4096), &out->memory,
			   &out->memory_total);
	host_parse_net(read_file(h, HOST_NET, text, sizeof(text)), &h->nets, &out->received,
		       &out->sent);
}

void host_close(struct host *h)
{
	for (int i = 0; i < HOST_FILES; i++)
		if (h->fd[i] >= 0)
			close(h->fd[i]);
}

/* ---- limits of control groups ---- */

static double limit_in(const char *folder, const char *name, double (*parse)(struct str text))
{
	char path[GROUP_BYTES_MAX + 64];
	struct buf text = { 0 };
	double limit = NAN;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (file_read(path, GROUP_BYTES_MAX, &text, NULL) == 0)
		limit = parse(buf_str(&text));
	buf_release(&text);
	return isnan(limit) ? INFINITY : limit;
}

/* The least of the limits of our group and of those above it (the second version's, "0::/path"). */
static double least_limit(const char *name, double (*parse)(struct str text))
{
	char folder[GROUP_BYTES_MAX + 32];
	double least = limit_in(GROUP_ROOT, name, parse);
	struct buf text = { 0 };
	struct str rest, own = { 0 };

	if (file_read("/proc/self/cgroup", PROC_FILE_BYTES_MAX, &text, NULL) == 0)
		for (rest = buf_str(&text); rest.n && own.n == 0;) {
			struct str line = str_cut(&rest, '\n');

			if (str_starts(line, STR("0::/")))
				own = (struct str){ line.p + 3, line.n - 3 };
		}
	while (own.n > 1 && own.n < GROUP_BYTES_MAX) {
		snprintf(folder, sizeof(folder), "%s%.*s", GROUP_ROOT, (int)own.n, own.p);
		least = fmin(least, limit_in(folder, name, parse));
		while (own.n && own.p[--own.n] != '/')
			;
	}
	buf_release(&text);
	return least;
}

/* The first version of control groups keeps the two numbers of cpu.max in two files. */
static double first_version_cpus(void)
{
	double quota = limit_in(GROUP_ROOT "/cpu", "cpu.cfs_quota_us", host_parse_memory_max);
	double period = limit_in(GROUP_ROOT "/cpu", "cpu.cfs_period_us", host_parse_memory_max);

	return isfinite(quota) && isfinite(period) ? quota / period : INFINITY;
}

double host_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	double limit = fmin(least_limit("cpu.max", host_parse_cpu_max), first_version_cpus());

	return fmin(n > 0 ? (double)n : 1, limit);
}

double host_memory_limit(double total)
{
	double limit = fmin(least_limit("memory.max", host_parse_memory_max),
			    limit_in(GROUP_ROOT "/memory", "memory.limit_in_bytes",
				     host_parse_memory_max));

	return isnan(total) ? (isfinite(limit) ? limit : NAN) : fmin(total, limit);
}
