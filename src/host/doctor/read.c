/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - facts from system files: limits, settings, groups, counters. See doctor.h. */
#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "host/doctor/doctor.h"
#include "host/proc/tool.h"
#include "host/telemetry/system.h"

#define CPUS_LOOKED_AT_MAX 1024 /* whose governors are compared */
#define CAPABILITY_NET_RAW 13   /* linux/capability.h */
#define CAPABILITY_SYS_NICE 23

/* ---- small files ---- */

/* Appends; false: not there, or longer than limit. */
static bool read_file(const char *root, const char *path, size_t limit, struct buf *out)
{
	struct buf whole = { 0 };
	bool is_read;

	buf_printf(&whole, "%s%s", root, path);
	is_read = file_read(whole.data, limit, out, NULL) == 0;
	buf_release(&whole);
	return is_read;
}

static bool is_there(const char *root, const char *path)
{
	struct buf whole = { 0 };
	bool is_one;

	buf_printf(&whole, "%s%s", root, path);
	is_one = file_exists(whole.data);
	buf_release(&whole);
	return is_one;
}

/* The first line without blanks around it, cut to fit; "": not there. */
static void read_word(const char *root, const char *path, char *out, size_t room)
{
	struct buf text = { 0 };
	struct str rest, line;

	out[0] = '\0';
	if (read_file(root, path, SYSFS_BYTES_MAX, &text)) {
		rest = buf_str(&text);
		line = str_trim(str_cut(&rest, '\n'));
		if (line.n)
			snprintf(out, room, "%.*s", (int)line.n, line.p);
	}
	buf_release(&text);
}

static int64_t read_number(const char *root, const char *path)
{
	char word[64];
	int64_t v;

	read_word(root, path, word, sizeof(word));
	return str_to_i64(str_of(word), &v) ? v : -1;
}

/* The next word between blanks and tabs. */
static struct str next_word(struct str *rest)
{
	struct str word;
	size_t n = 0;

	*rest = str_trim(*rest);
	while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t')
		n++;
	word = (struct str){ rest->p, n };
	*rest = (struct str){ rest->p + n, rest->n - n };
	return word;
}

/* The text after key at the start of a line; empty: there is no such line. */
static struct str line_of(struct str text, const char *key)
{
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (str_starts(line, str_of(key)))
			return (struct str){ line.p + strlen(key), line.n - strlen(key) };
	}
	return (struct str){ 0 };
}

/* ---- limits and settings ---- */

/* A number or "unlimited" of /proc/self/limits. */
static int64_t limit_of(struct str word)
{
	uint64_t v;

	if (str_is(word, "unlimited"))
		return INT64_MAX;
	return !str_to_u64(word, &v) ? -1 : v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

static void read_limits(const char *root, struct doctor_machine *m)
{
	struct buf text = { 0 };
	struct str files = { 0 }, priority = { 0 };

	if (read_file(root, "/proc/self/limits", PROC_FILE_BYTES_MAX, &text)) {
		files = line_of(buf_str(&text), "Max open files ");
		priority = line_of(buf_str(&text), "Max realtime priority ");
	}
	m->files_soft = limit_of(next_word(&files));
	m->files_hard = limit_of(next_word(&files));
	m->files_most = read_number(root, "/proc/sys/fs/nr_open");
	m->realtime_priority = limit_of(next_word(&priority));
	if (m->realtime_priority > 99)
		m->realtime_priority = 99;
	buf_release(&text);
}

static void read_capabilities(const char *root, struct doctor_machine *m)
{
	struct buf text = { 0 };
	struct str word = { 0 };
	uint64_t bits = 0;

	if (read_file(root, "/proc/self/status", PROC_FILE_BYTES_MAX, &text))
		word = str_trim(line_of(buf_str(&text), "CapEff:"));
	for (size_t i = 0; i < word.n && i < 16; i++) {
		int digit = str_hex(word.p[i]);

		bits = bits << 4 | (uint64_t)(digit < 0 ? 0 : digit);
	}
	m->may_capture = bits >> CAPABILITY_NET_RAW & 1;
	if (bits >> CAPABILITY_SYS_NICE & 1)
		m->realtime_priority = 99;
	buf_release(&text);
}

static void read_network(const char *root, struct doctor_machine *m)
{
	struct buf text = { 0 };
	char word[64];
	struct str rest;

	read_word(root, "/proc/sys/net/ipv4/ip_local_port_range", word, sizeof(word));
	rest = str_of(word);
	if (!str_to_i64(next_word(&rest), &m->port_first) ||
	    !str_to_i64(next_word(&rest), &m->port_last))
		m->port_first = m->port_last = -1;
	m->port_reuse = read_number(root, "/proc/sys/net/ipv4/tcp_tw_reuse");
	m->backlog = read_number(root, "/proc/sys/net/core/somaxconn");
	m->sockets_closing = -1;
	if (read_file(root, "/proc/net/sockstat", PROC_FILE_BYTES_MAX, &text))
		for (rest = line_of(buf_str(&text), "TCP:"); rest.n;)
			if (str_is(next_word(&rest), "tw") &&
			    !str_to_i64(next_word(&rest), &m->sockets_closing))
				break;
	buf_release(&text);
}

/* ---- processors and clocks ---- */

/* "0-3,8": false: not of that form. */
static bool parse_cpus(struct str list, cpu_set_t *set)
{
	CPU_ZERO(set);
	list = str_trim(list);
	if (!list.n)
		return false;
	while (list.n) {
		struct str to = str_cut(&list, ','), from = str_cut(&to, '-');
		uint64_t first, last = 0;

		if (!str_to_u64(from, &first) || (to.n && !str_to_u64(to, &last)))
			return false;
		for (uint64_t i = first; i <= (to.n ? last : first) && i < CPU_SETSIZE; i++)
			CPU_SET(i, set);
	}
	return true;
}

/* CPUs that this process may use; false: unknown, and set has all possible ones. */
static bool allowed_cpus(const char *root, cpu_set_t *set)
{
	struct buf text = { 0 };
	bool is_known = read_file(root, "/proc/self/status", PROC_FILE_BYTES_MAX, &text) &&
			parse_cpus(line_of(buf_str(&text), "Cpus_allowed_list:"), set);

	buf_release(&text);
	for (size_t i = 0; !is_known && i < CPU_SETSIZE; i++)
		CPU_SET(i, set);
	return is_known;
}

static bool may_use(const cpu_set_t *set, int64_t cpu)
{
	return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET((size_t)cpu, set);
}

static void read_governor(const char *root, struct doctor_machine *m)
{
	cpu_set_t set;

	allowed_cpus(root, &set);
	m->governor[0] = '\0';
	for (int i = 0; i < CPUS_LOOKED_AT_MAX; i++) {
		char path[96], word[sizeof(m->governor)];

		if (!may_use(&set, i))
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
			 i);
		read_word(root, path, word, sizeof(word));
		if (*word && *m->governor && strcmp(word, m->governor) != 0)
			snprintf(m->governor, sizeof(m->governor), "mixed");
		else if (*word)
			memcpy(m->governor, word, sizeof(word));
	}
}

static void read_clocks(const char *root, struct doctor_machine *m)
{
	static const struct { const char *path, *name; } daemons[] = {
		{ "/run/chrony/chronyd.pid", "chrony" }, { "/run/chronyd.pid", "chrony" },
		{ "/run/chrony.pid", "chrony" }, { "/run/ntpd.pid", "ntpd" },
		{ "/run/ntpsec/ntpd.pid", "ntpd" },
		{ "/run/systemd/timesync/synchronized", "systemd-timesyncd" },
	};
	char all[256];

	read_word(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		  m->clock_source, sizeof(m->clock_source));
	read_word(root, "/sys/devices/system/clocksource/clocksource0/available_clocksource", all,
		  sizeof(all));
	m->has_tsc = false;
	for (struct str rest = str_of(all); rest.n;)
		m->has_tsc |= str_is(next_word(&rest), "tsc");
	m->time_daemon[0] = '\0';
	for (size_t i = 0; i < sizeof(daemons) / sizeof(*daemons) && !*m->time_daemon; i++)
		if (is_there(root, daemons[i].path))
			snprintf(m->time_daemon, sizeof(m->time_daemon), "%s", daemons[i].name);
}

/* ---- counters ---- */

/* Sums "cpu3 user nice system idle iowait irq softirq steal ..." over the CPUs we may use. */
static void count_cpus(const char *root, double ticks_per_s, struct doctor_counters *c)
{
	enum { IDLE = 3, IOWAIT, STEAL = 7, FIELDS };
	struct buf text = { 0 };
	struct str rest;
	cpu_set_t set;

	allowed_cpus(root, &set);
	if (read_file(root, "/proc/stat", PROC_FILE_BYTES_MAX, &text))
		for (rest = buf_str(&text); str_starts(rest, STR("cpu"));) {
			struct str line = str_cut(&rest, '\n'), word = next_word(&line);
			double busy = 0, all = 0, steal = 0;
			int64_t cpu;
			int i;

			word = (struct str){ word.p + 3, word.n - 3 };
			if (!word.n || !str_to_i64(word, &cpu) || !may_use(&set, cpu))
				continue;
			for (i = 0; i < FIELDS; i++) {
				uint64_t ticks;

				if (!str_to_u64(next_word(&line), &ticks))
					break;
				all += (double)ticks;
				busy += i == IDLE || i == IOWAIT || i == STEAL ? 0 : (double)ticks;
				steal += i == STEAL ? (double)ticks : 0;
			}
			if (i < FIELDS)
				continue;
			if (isnan(c->total_s))
				c->busy_s = c->total_s = c->steal_s = 0;
			c->busy_s += busy / ticks_per_s;
			c->steal_s += steal / ticks_per_s;
			c->total_s += all / ticks_per_s;
		}
	buf_release(&text);
}

void doctor_count(const char *root, struct doctor_counters *c)
{
	long ticks = sysconf(_SC_CLK_TCK);
	char text[128];
	struct str rest;
	uint64_t ns;

	*c = (struct doctor_counters){ NAN, NAN, NAN, NAN, NAN };
	count_cpus(root, ticks > 0 ? (double)ticks : 100, c);
	read_word(root, "/proc/thread-self/schedstat", text, sizeof(text)); /* "RAN WAITED TIMES" */
	rest = str_of(text);
	next_word(&rest);
	if (str_to_u64(next_word(&rest), &ns))
		c->queue_s = (double)ns / 1e9;
	c->stopped_s = host_group_stopped_s(root);
}

/* ---- all of it ---- */

static void read_memory(const char *root, struct doctor_machine *m)
{
	struct buf text = { 0 };
	double used = NAN, total = NAN;

	if (read_file(root, "/proc/meminfo", PROC_FILE_BYTES_MAX, &text))
		host_parse_meminfo(buf_str(&text), &used, &total);
	buf_release(&text);
	m->memory_total = total;
	m->memory_available = total - used;
	m->memory_limit = host_group_memory(root);
}

static void read_cpus(const char *root, struct doctor_machine *m)
{
	struct buf folder = { 0 };
	char list[1024];
	cpu_set_t set, online;

	read_word(root, "/sys/devices/system/cpu/online", list, sizeof(list));
	m->cpus_online = parse_cpus(str_of(list), &online) ? CPU_COUNT(&online) : -1;
	m->cpus_allowed = m->cpus_online;
	if (allowed_cpus(root, &set)) {
		if (m->cpus_online > 0) /* the list also has CPUs that are not there */
			CPU_AND(&set, &set, &online);
		m->cpus_allowed = CPU_COUNT(&set);
	}
	m->cpu_quota = host_group_cpus(root, &folder);
	snprintf(m->cpu_quota_folder, sizeof(m->cpu_quota_folder), "%s",
		 folder.data ? folder.data : "");
	buf_release(&folder);
}

void doctor_read(const char *root, struct doctor_machine *m)
{
	struct buf path = { 0 };

	*m = (struct doctor_machine){ .clock_ns = NAN, .late_us_p50 = NAN, .late_us_p99 = NAN,
				      .late_us_max = NAN, .time_offset_ms = NAN,
				      .time_error_ms = NAN };
	if (program_path(&path, NULL) == 0)
		snprintf(m->program, sizeof(m->program), "%s", path.data);
	buf_release(&path);
	read_limits(root, m);
	read_capabilities(root, m);
	read_network(root, m);
	read_governor(root, m);
	read_clocks(root, m);
	read_memory(root, m);
	read_cpus(root, m);
	m->container = hardware_container(root);
	hardware_hypervisor(root, m->hypervisor);
	m->before = m->after = (struct doctor_counters){ NAN, NAN, NAN, NAN, NAN };
}

size_t doctor_links(const char *root, struct link out[DOCTOR_LINKS_MAX])
{
	char folder[512];
	struct host_nets nets;
	const struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/sys", root);
	host_find_nets(folder, &nets);
	for (size_t i = 0; i < nets.n && n < DOCTOR_LINKS_MAX; i++)
		link_look(nets.name[i], &out[n++]);
	if (n)
		return n;
	snprintf(folder, sizeof(folder), "%s/sys/class/net", root);
	dir = opendir(folder);
	while (dir && n < DOCTOR_LINKS_MAX && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lo") != 0 &&
		    strlen(entry->d_name) < LINK_NAME_BYTES)
			link_look(entry->d_name, &out[n++]);
	if (dir)
		closedir(dir);
	return n;
}
