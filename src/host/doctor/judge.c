/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - turns facts into rows: value, verdict, why it matters, the command that fixes it.
 *
 * One function per row, and a table of them with the metrics that each row is about. See doctor.h.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "host/doctor/doctor.h"

#define COUNT_BYTES 32

const char *doctor_name(enum doctor_verdict v)
{
	static const char *const names[] = { "ok", "note", "problem" };

	assert(v <= DOCTOR_PROBLEM);
	return names[v];
}

size_t doctor_rows_count(const struct doctor_rows *rows, enum doctor_verdict v)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++)
		n += rows->row[i].verdict == v;
	return n;
}

void doctor_rows_release(struct doctor_rows *rows)
{
	free(rows->row);
	*rows = (struct doctor_rows){ 0 };
}

/* ---- parts of rows ---- */

static struct doctor_row *add(struct doctor_rows *out, const char *name, const char *title,
			      const char *spoils)
{
	struct doctor_row *r;

	out->row = mem_room(out->row, out->n, &out->room, sizeof(*out->row));
	r = &out->row[out->n++];
	*r = (struct doctor_row){ .name = name, .title = title, .spoils = spoils };
	return r;
}

/* 1048576 as "1,048,576"; INT64_MAX as "unlimited". Returns out. */
static const char *count(char out[static COUNT_BYTES], int64_t v)
{
	char digits[COUNT_BYTES];
	size_t n, at = 0;

	if (v == INT64_MAX) {
		snprintf(out, COUNT_BYTES, "unlimited");
		return out;
	}
	n = (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)v);
	for (size_t i = 0; i < n && at + 2 < COUNT_BYTES; i++) {
		if (i && (n - i) % 3 == 0 && digits[i - 1] != '-')
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = '\0';
	return out;
}

static void number(struct doctor_row *r, const char *name, double value)
{
	assert(r->n_numbers < DOCTOR_NUMBERS_MAX);
	r->number[r->n_numbers].name = name;
	r->number[r->n_numbers++].value = value;
}

static enum doctor_verdict level(double value, double note, double problem)
{
	return value > problem ? DOCTOR_PROBLEM : value > note ? DOCTOR_NOTE : DOCTOR_OK;
}

/* Text that is too long for its field is cut. */
__attribute__((format(printf, 3, 4)))
static void say(char *out, size_t room, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fmt_vtext(out, room, fmt, args);
	va_end(args);
}

#define VALUE(...) say(r->value, sizeof(r->value), __VA_ARGS__)
#define WHY(...) say(r->why, sizeof(r->why), __VA_ARGS__)
#define COMMAND(...) say(r->command, sizeof(r->command), __VA_ARGS__)
#define NOT_KNOWN() VALUE("not known")

/* Judges how many streams n of something suffices for, and returns it: a round number if many. */
static int64_t judge_streams(int64_t n, struct doctor_row *r)
{
	r->verdict = n < DOCTOR_STREAMS_MIN ? DOCTOR_PROBLEM :
		     n < DOCTOR_STREAMS_MANY ? DOCTOR_NOTE : DOCTOR_OK;
	return n >= DOCTOR_STREAMS_MOST ? DOCTOR_STREAMS_MOST :
	       n >= DOCTOR_STREAMS_MANY ? DOCTOR_STREAMS_MANY : n > 0 ? n : 0;
}

/* ---- limits of the load ---- */

static void judge_files(const struct doctor_machine *m, struct doctor_row *r)
{
	int64_t streams = m->files_hard - DOCTOR_SPARE_FILES, most = m->files_most;
	char soft[COUNT_BYTES], hard[COUNT_BYTES], enough[COUNT_BYTES];

	if (m->files_hard < 0) {
		NOT_KNOWN();
		return;
	}
	VALUE("%s (soft), %s (hard): enough for %s streams", count(soft, m->files_soft),
	      count(hard, m->files_hard), count(enough, judge_streams(streams, r)));
	number(r, "soft", (double)m->files_soft);
	number(r, "hard", (double)m->files_hard);
	number(r, "streams", streams > 0 ? (double)streams : 0);
	if (r->verdict == DOCTOR_OK)
		return;
	WHY("Each stream is an open file. The program raises the soft limit to the hard one itself; "
	    "a load with more streams than that is refused before it begins.");
	if (most >= 0 && most < DOCTOR_STREAMS_MOST + DOCTOR_SPARE_FILES)
		COMMAND("sudo sysctl -w fs.nr_open=1048576 && sudo prlimit --pid $$ --nofile=65536:65536");
	else
		COMMAND("sudo prlimit --pid $$ --nofile=65536:65536");
}

static void judge_ports(const struct doctor_machine *m, struct doctor_row *r)
{
	int64_t ports = m->port_last - m->port_first + 1, goal; /* goal: see judge_streams */
	int64_t closing = m->sockets_closing > 0 ? m->sockets_closing : 0;
	bool is_worn = closing > ports / 2;
	char n[COUNT_BYTES], enough[COUNT_BYTES], busy[COUNT_BYTES];

	if (m->port_first < 0 || ports <= 0) {
		NOT_KNOWN();
		return;
	}
	goal = judge_streams(ports, r);
	if (is_worn && r->verdict == DOCTOR_OK)
		r->verdict = DOCTOR_NOTE;
	VALUE("%s for each server address, %s closing: enough for %s streams", count(n, ports),
	      count(busy, closing), count(enough, goal));
	number(r, "ports", (double)ports);
	number(r, "closing", (double)closing);
	number(r, "tcp_tw_reuse", (double)m->port_reuse);
	if (r->verdict == DOCTOR_OK)
		return;
	WHY("Each connection to one address of a server needs a port of its own, and keeps it for a "
	    "minute after it was closed by us%s. Without one, connecting fails. "
	    "bench serve --source-addresses adds the ports of more addresses of this machine.",
	    is_worn ? "; more than half of them are closing now" : "");
	COMMAND("sudo sysctl -w net.ipv4.ip_local_port_range='1024 65535' net.ipv4.tcp_tw_reuse=1");
}

static void judge_backlog(const struct doctor_machine *m, struct doctor_row *r)
{
	char n[COUNT_BYTES];

	if (m->backlog < 0) {
		NOT_KNOWN();
		return;
	}
	VALUE("%s connections may wait for a server on this machine", count(n, m->backlog));
	number(r, "somaxconn", (double)m->backlog);
	if (m->backlog >= DOCTOR_BACKLOG_MIN)
		return;
	r->verdict = DOCTOR_NOTE;
	WHY("Of more connections that arrive at once at a server on this machine, the rest is dropped "
	    "and tried again after a second. Servers elsewhere have a limit of their own.");
	COMMAND("sudo sysctl -w net.core.somaxconn=4096");
}

static void judge_memory(const struct doctor_machine *m, struct doctor_row *r)
{
	double gib = 1024.0 * 1024 * 1024, free = fmin(m->memory_available, m->memory_limit);

	if (isnan(m->memory_available)) {
		NOT_KNOWN();
		return;
	}
	if (isfinite(m->memory_limit))
		VALUE("%.1f GiB available of %.1f GiB; limit of the control group %.1f GiB",
		      m->memory_available / gib, m->memory_total / gib, m->memory_limit / gib);
	else
		VALUE("%.1f GiB available of %.1f GiB", m->memory_available / gib,
		      m->memory_total / gib);
	number(r, "available_bytes", m->memory_available);
	number(r, "total_bytes", m->memory_total);
	number(r, "limit_bytes", m->memory_limit);
	r->verdict = level(-free, -(double)DOCTOR_MEMORY_NOTE, -(double)DOCTOR_MEMORY_PROBLEM);
	if (r->verdict == DOCTOR_OK)
		return;
	WHY("Prepared requests and the record are kept in memory. A machine that swaps stops the "
	    "program for milliseconds; one without memory ends it.");
	COMMAND("ps -eo rss,pid,comm --sort=-rss | head");
}

/* ---- processors ---- */

static void judge_cpus(const struct doctor_machine *m, struct doctor_row *r)
{
	double all = m->after.total_s - m->before.total_s;
	double busy = all > 0 ? (m->after.busy_s - m->before.busy_s) / all : NAN;
	bool is_bound = m->cpus_allowed < m->cpus_online;

	if (m->cpus_allowed <= 0) {
		NOT_KNOWN();
		return;
	}
	VALUE("%lld of %lld may be used", (long long)m->cpus_allowed, (long long)m->cpus_online);
	if (!isnan(busy))
		VALUE("%lld of %lld may be used, %.0f %% busy", (long long)m->cpus_allowed,
		      (long long)m->cpus_online, 100 * busy);
	number(r, "allowed", (double)m->cpus_allowed);
	number(r, "online", (double)m->cpus_online);
	number(r, "busy_share", busy);
	if (!isnan(busy))
		r->verdict = level(busy, DOCTOR_BUSY_NOTE, DOCTOR_BUSY_PROBLEM);
	if (r->verdict != DOCTOR_OK) {
		WHY("Other programs use the CPUs that the load generator needs: it sends late and "
		    "reads late.");
		COMMAND("ps -eo pcpu,pid,comm --sort=-pcpu | head");
	} else if (m->cpus_allowed == 1) {
		r->verdict = DOCTOR_NOTE;
		WHY("Load generator, kernel and everything else share one CPU.");
		if (is_bound)
			COMMAND("taskset -pc 0-%lld $$", (long long)m->cpus_online - 1);
	}
}

static void judge_quota(const struct doctor_machine *m, struct doctor_row *r)
{
	double now_ms = (m->after.stopped_s - m->before.stopped_s) * 1000;
	bool is_stopped = now_ms > 0, is_limited = isfinite(m->cpu_quota);
	const char *folder = m->cpu_quota_folder;
	char before[64] = "";

	if (!isnan(m->after.stopped_s) && m->after.stopped_s > 0)
		snprintf(before, sizeof(before), ", stopped for %.1f s so far", m->after.stopped_s);
	if (is_limited)
		VALUE("%.2f CPUs%s", m->cpu_quota, before);
	else
		VALUE("none%s", before);
	number(r, "quota_cpus", m->cpu_quota);
	number(r, "stopped_s", m->after.stopped_s);
	number(r, "stopped_now_ms", now_ms);
	if (!is_limited && !is_stopped)
		return;
	r->verdict = is_stopped || m->cpu_quota < 1 ? DOCTOR_PROBLEM : DOCTOR_NOTE;
	WHY("A control group that has used up its quota is stopped until the next period (mostly 100 ms)"
	    "%s. Requests leave late, and reads that are late together look like gaps of the server.",
	    is_stopped ? ", and this one was stopped while we looked" : "");
	if (m->container && strcmp(m->container, "kubernetes") == 0)
		COMMAND("kubectl set resources deployment NAME --limits=cpu=0");
	else if (m->container && strcmp(m->container, "docker") == 0)
		COMMAND("docker update --cpu-quota -1 $(hostname)   # on the host of the container");
	else if (*folder && strstr(folder, "/cpu/"))
		COMMAND("echo -1 | sudo tee %s/cpu.cfs_quota_us", folder);
	else if (*folder)
		COMMAND("echo max | sudo tee %s/cpu.max", folder);
}

static void judge_governor(const struct doctor_machine *m, struct doctor_row *r)
{
	static const char path[] = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";

	if (!*m->governor) {
		VALUE("not visible here%s", *m->hypervisor ? ": the virtual machine's host decides" : "");
		return;
	}
	VALUE("governor %s", m->governor);
	if (strcmp(m->governor, "performance") == 0)
		return;
	r->verdict = DOCTOR_NOTE;
	WHY("A CPU that is clocked down between events handles each of them more slowly, and the less "
	    "load there is, the slower: the client's own delays depend on the rate.");
	COMMAND("echo performance | sudo tee %s", path);
}

static void judge_queue(const struct doctor_machine *m, struct doctor_row *r)
{
	double waited_us = (m->after.queue_s - m->before.queue_s) * 1e6 / m->n_wakeups;

	if (isnan(waited_us) || !(m->n_wakeups > 0)) {
		NOT_KNOWN();
		return;
	}
	VALUE("%.0f us for each wake-up", waited_us);
	number(r, "wait_us_mean", waited_us);
	r->verdict = level(waited_us, DOCTOR_QUEUE_NOTE_US, DOCTOR_QUEUE_PROBLEM_US);
	if (r->verdict == DOCTOR_OK)
		return;
	WHY("A thread that should run waits for other programs to give up a CPU. The client then sends "
	    "and reads late.");
	COMMAND("ps -eo pcpu,pid,comm --sort=-pcpu | head");
}

static void judge_steal(const struct doctor_machine *m, struct doctor_row *r)
{
	double all = m->after.total_s - m->before.total_s;
	double now = all > 0 ? (m->after.steal_s - m->before.steal_s) / all : NAN;
	double ever = m->after.total_s > 0 ? m->after.steal_s / m->after.total_s : NAN;
	double worst = fmax(now, ever);

	if (isnan(worst)) {
		NOT_KNOWN();
		return;
	}
	VALUE("%.1f %% now, %.1f %% since the machine started", isnan(now) ? 0 : 100 * now, 100 * ever);
	number(r, "now_share", now);
	number(r, "since_start_share", ever);
	r->verdict = level(worst, DOCTOR_STEAL_NOTE, DOCTOR_STEAL_PROBLEM);
	if (r->verdict != DOCTOR_OK)
		WHY("The host gives this virtual machine's CPUs to others, for milliseconds at a time: "
		    "sends and even the kernel's stamps are late. Only another host solves that.");
}

static void judge_guest(const struct doctor_machine *m, struct doctor_row *r)
{
	if (!*m->hypervisor && !m->container)
		VALUE("none");
	else
		VALUE("%s%s%s", *m->hypervisor ? m->hypervisor : "",
		      *m->hypervisor && m->container ? ", " : "",
		      m->container ? m->container : "");
}

/* ---- time ---- */

static void judge_clock_source(const struct doctor_machine *m, struct doctor_row *r)
{
	if (isnan(m->clock_ns)) {
		NOT_KNOWN();
		return;
	}
	VALUE("%s, %.0f ns to read", *m->clock_source ? m->clock_source : "not known", m->clock_ns);
	number(r, "read_ns", m->clock_ns);
	r->verdict = level(m->clock_ns, DOCTOR_CLOCK_NOTE_NS, DOCTOR_CLOCK_PROBLEM_NS);
	if (r->verdict == DOCTOR_OK)
		return;
	WHY("The clock is read several times for each event, and this source needs a call of the kernel "
	    "or of the host: at a high rate that is the load generator's CPU.");
	if (m->has_tsc && strcmp(m->clock_source, "tsc") != 0)
		COMMAND("echo tsc | sudo tee "
			"/sys/devices/system/clocksource/clocksource0/current_clocksource");
}

static void judge_wakeups(const struct doctor_machine *m, struct doctor_row *r)
{
	if (isnan(m->late_us_p99)) {
		NOT_KNOWN();
		return;
	}
	VALUE("%.0f us late (median), %.0f us (p99), %.0f us (max)", m->late_us_p50, m->late_us_p99,
	      m->late_us_max);
	number(r, "late_us_p50", m->late_us_p50);
	number(r, "late_us_p99", m->late_us_p99);
	number(r, "late_us_max", m->late_us_max);
	r->verdict = level(m->late_us_p99, DOCTOR_LATE_NOTE_US, DOCTOR_LATE_PROBLEM_US);
	if (r->verdict == DOCTOR_OK)
		return;
	WHY("A sleeping thread is woken so much later than it asked for. Before a request is due the "
	    "client polls for %d us, and for up to 1 ms where wake-ups are late: what is later than "
	    "that is sent late. Arrival stamps are the kernel's and do not suffer.",
	    DOCTOR_LATE_NOTE_US);
	if (m->realtime_priority > 0)
		COMMAND("chrt --rr 1 profllm bench serve ...");
	else
		COMMAND("sudo prlimit --pid $$ --rtprio=1 && chrt --rr 1 profllm bench serve ...");
}

static void judge_realtime(const struct doctor_machine *m, struct doctor_row *r)
{
	number(r, "priority_max", (double)m->realtime_priority);
	if (m->realtime_priority < 0)
		NOT_KNOWN();
	else if (m->realtime_priority == 0)
		VALUE("not allowed (ulimit -r is 0)");
	else
		VALUE("up to %lld", (long long)m->realtime_priority);
}

static void judge_stamps(const struct doctor_machine *m, struct doctor_row *r)
{
	VALUE(m->is_stamped ? "yes, tested with a connection of this program" : "none came");
	if (m->is_stamped)
		return;
	r->verdict = DOCTOR_PROBLEM;
	WHY("Without the kernel's receive stamps an event's time is when the program read it: whatever "
	    "delays the client is in TTFT and ITL.");
}

static void judge_time(const struct doctor_machine *m, struct doctor_row *r)
{
	const char *who = *m->time_daemon ? m->time_daemon : NULL;

	if (!m->has_time_state) {
		NOT_KNOWN();
		return;
	}
	number(r, "offset_ms", m->time_offset_ms);
	number(r, "error_max_ms", m->time_error_ms);
	if (m->is_synchronized) {
		VALUE("synchronized%s%s, within %.1f ms", who ? " by " : "", who ? who : "",
		      m->time_error_ms);
		return;
	}
	VALUE("not synchronized%s%s%s", who ? ", although " : "", who ? who : "", who ? " runs" : "");
	r->verdict = DOCTOR_NOTE;
	WHY("Figures of one machine are right all the same: they are differences on one clock. Records "
	    "of several hosts, server logs and dates cannot be laid over each other.");
	COMMAND(who ? "chronyc tracking || timedatectl timesync-status" :
		      "sudo timedatectl set-ntp true");
}

static void judge_capture(const struct doctor_machine *m, struct doctor_row *r)
{
	VALUE(m->may_capture ? "allowed" : "not allowed");
	if (m->may_capture)
		return;
	r->verdict = DOCTOR_NOTE;
	WHY("With it, every TCP segment has an arrival stamp of its own (--timestamps auto). Without it, "
	    "events that are read late share the stamp of the read.");
	COMMAND("sudo setcap cap_net_raw+ep %s", *m->program ? m->program : "PROGRAM");
}

void doctor_judge_machine(const struct doctor_machine *m, struct doctor_rows *out)
{
	static const struct {
		const char *name, *title, *spoils;
		void (*judge)(const struct doctor_machine *m, struct doctor_row *r);
	} rows[] = {
		{ "open_files", "open files", "the number of streams", judge_files },
		{ "local_ports", "local ports", "the number of streams", judge_ports },
		{ "accept_queue", "accept queue", "TTFT, failures", judge_backlog },
		{ "memory", "memory", "every metric", judge_memory },
		{ "cpus", "CPUs", "TTFT, ITL, throughput", judge_cpus },
		{ "cpu_quota", "CPU quota", "TTFT, ITL, throughput", judge_quota },
		{ "cpu_frequency", "CPU frequency", "TTFT, ITL", judge_governor },
		{ "run_queue", "wait for a CPU", "TTFT, send lag", judge_queue },
		{ "steal", "stolen time", "TTFT, ITL", judge_steal },
		{ "virtualization", "virtualization", "", judge_guest },
		{ "clock", "clock", "throughput", judge_clock_source },
		{ "wakeups", "wake-ups", "TTFT, send lag", judge_wakeups },
		{ "realtime_priority", "real-time priority", "", judge_realtime },
		{ "receive_stamps", "receive stamps", "TTFT, ITL, TPOT, E2EL", judge_stamps },
		{ "time_synchronization", "time", "comparisons of hosts", judge_time },
		{ "packet_capture", "packet capture", "ITL", judge_capture },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		rows[i].judge(m, add(out, rows[i].name, rows[i].title, rows[i].spoils));
}

/* ---- interfaces ---- */

static const char *answer(enum link_answer a)
{
	static const char *const words[] = { "not known", "off", "on" };

	return words[a];
}

static void judge_merging(const struct link *l, struct doctor_row *r)
{
	char wait[64] = "";
	bool is_slow = !l->is_adaptive && l->coalesce_us > DOCTOR_COALESCE_NOTE_US;

	if (l->is_loopback) {
		VALUE("loopback: nothing is merged on the way");
		return;
	}
	if (l->coalesce_us >= 0)
		snprintf(wait, sizeof(wait), ", interrupts after %lld us%s",
			 (long long)l->coalesce_us, l->is_adaptive ? " (adaptive)" : "");
	VALUE("GRO %s, LRO %s%s", answer(l->gro), answer(l->lro), wait);
	number(r, "gro", l->gro == LINK_UNKNOWN ? NAN : l->gro == LINK_YES);
	number(r, "lro", l->lro == LINK_UNKNOWN ? NAN : l->lro == LINK_YES);
	number(r, "coalesce_us", l->coalesce_us < 0 ? NAN : (double)l->coalesce_us);
	if (l->gro != LINK_YES && l->lro != LINK_YES && !is_slow)
		return;
	r->verdict = DOCTOR_NOTE;
	if (is_slow)
		WHY("Segments wait up to %lld us for an interrupt, and those of that time may share one "
		    "arrival stamp: gaps between their events read 0.", (long long)l->coalesce_us);
	else
		WHY("Segments of a connection that arrive within one interrupt, some tens of "
		    "microseconds, may be merged and share one arrival stamp: gaps between their events "
		    "read 0. It matters for streams of more than 1,000 events a second.");
	COMMAND("sudo ethtool -K %s gro off lro off%s%s%s", l->name,
		is_slow ? "; sudo ethtool -C " : "", is_slow ? l->name : "",
		is_slow ? " adaptive-rx off rx-usecs 10" : "");
}

void doctor_judge_link(const struct link *l, struct doctor_rows *out)
{
	struct doctor_row *r = add(out, "offloads", "merged segments", "ITL");

	snprintf(r->about, sizeof(r->about), "%s", l->name);
	judge_merging(l, r);
	if (l->is_loopback)
		return;
	r = add(out, "hardware_stamps", "hardware stamps", "TTFT, ITL");
	snprintf(r->about, sizeof(r->about), "%s", l->name);
	VALUE("%s", l->hardware_stamp == LINK_YES ? "the card can stamp what it receives" :
		    l->hardware_stamp == LINK_NO ? "none: the kernel stamps after the interrupt" :
		    "not known");
	number(r, "hardware", l->hardware_stamp == LINK_UNKNOWN ? NAN :
			      l->hardware_stamp == LINK_YES);
}

/* ---- servers ---- */

static struct doctor_row *about(struct doctor_rows *out, const char *url, const char *name,
				const char *title, const char *spoils)
{
	struct doctor_row *r = add(out, name, title, spoils);

	snprintf(r->about, sizeof(r->about), "%s", url);
	return r;
}

/* Whether the step failed: the row then says why. */
static bool has_failed(const struct doctor_stage *s, struct doctor_row *r)
{
	assert(s->is != DOCTOR_NOT_TRIED);
	if (s->is == DOCTOR_DONE)
		return false;
	VALUE("failed");
	r->verdict = DOCTOR_PROBLEM;
	WHY("%s.", s->text);
	return true;
}

static void judge_name(const char *url, const struct doctor_server *s, struct doctor_rows *out)
{
	struct doctor_row *r = about(out, url, "name", "name", "");

	if (has_failed(&s->name, r)) {
		COMMAND("getent ahosts %s", s->host);
		return;
	}
	VALUE("%s, %.1f ms%s", s->name.text, s->name.ms,
	      s->n_addresses > 1 ? "; the first of several addresses" : "");
	number(r, "resolve_ms", s->name.ms);
	number(r, "addresses", (double)s->n_addresses);
	if (s->name.ms <= DOCTOR_NAME_NOTE_MS)
		return;
	r->verdict = DOCTOR_NOTE;
	WHY("Names are resolved once, before load begins, so no figure contains this.");
	COMMAND("resolvectl query %s", s->host);
}

/* The command that asks the server for a path, as the program did. */
static void ask_it(struct doctor_row *r, const char *options, const char *url, const char *path)
{
	if (strncmp(url, "unix:", 5) == 0)
		COMMAND("curl %s --unix-socket %s http://localhost%s", options, url + 5, path);
	else
		COMMAND("curl %s %s%s", options, url, path);
}

static void judge_connect(const char *url, const struct doctor_server *s, struct doctor_rows *out)
{
	struct doctor_row *r = about(out, url, "connect", "TCP connection", "TTFT, E2EL");

	if (has_failed(&s->connect, r)) {
		ask_it(r, "-sv", url, "/v1/models");
		return;
	}
	VALUE("%.3f ms (median), %.3f ms (max)", s->connect.ms, s->connect_max_ms);
	number(r, "connect_ms_median", s->connect.ms);
	number(r, "connect_ms_max", s->connect_max_ms);
	if (s->connect_max_ms > DOCTOR_CONNECT_PROBLEM_MS) {
		r->verdict = DOCTOR_PROBLEM;
		WHY("A connection took so long as only a first packet that was lost and sent again does: "
		    "the path drops packets, or the server's accept queue is full.");
		COMMAND("nstat -az TcpRetransSegs TcpExtTCPSynRetrans TcpExtListenOverflows");
	} else if (s->connect.ms > DOCTOR_CONNECT_NOTE_MS && !s->route.is_loopback) {
		r->verdict = DOCTOR_NOTE;
		WHY("Each TTFT contains one round trip of the network, which is about as long as this. "
		    "A client closer to the server measures the server.");
	}
}

static void judge_tls(const char *url, const struct doctor_server *s, struct doctor_rows *out)
{
	struct doctor_row *r = about(out, url, "tls", "TLS", "TTFT with connect");

	if (has_failed(&s->tls, r)) {
		COMMAND("openssl s_client -connect %s -servername %s </dev/null", s->authority, s->host);
		return;
	}
	VALUE("%s, %.1f ms", s->tls_version, s->tls.ms);
	number(r, "handshake_ms", s->tls.ms);
}

static void judge_models(const char *url, const struct doctor_server *s, struct doctor_rows *out)
{
	struct doctor_row *r = about(out, url, "models", "/v1/models", "");
	size_t n = strlen(url);

	if (has_failed(&s->models, r)) {
		ask_it(r, "-sv", url, "/v1/models");
		return;
	}
	VALUE("%ld in %.1f ms%s%s", s->models_status, s->models.ms, *s->models.text ? ": " : "",
	      s->models.text);
	number(r, "status", (double)s->models_status);
	number(r, "answer_ms", s->models.ms);
	if (s->models_status == 401 || s->models_status == 403) {
		r->verdict = DOCTOR_PROBLEM;
		WHY("The server requires a key, or refuses the one that it was sent.");
		COMMAND("export OPENAI_API_KEY=...");
	} else if (s->models_status != 200 && n >= 3 && strcmp(url + n - 3, "/v1") == 0) {
		r->verdict = DOCTOR_PROBLEM;
		WHY("The URL ends in /v1, which the program adds itself.");
		COMMAND("profllm doctor %.*s", (int)n - 3, url);
	} else if (s->models_status != 200) {
		r->verdict = DOCTOR_NOTE;
		WHY("The server does not list its models: name one with --model.");
	} else if (!*s->models.text) {
		r->verdict = DOCTOR_NOTE;
		WHY("The answer names no model: is this the address of the server, or another program's?");
		ask_it(r, "-s", url, "/v1/models | head");
	}
}

static void judge_metrics(const char *url, const struct doctor_server *s, struct doctor_rows *out)
{
	struct doctor_row *r = about(out, url, "metrics", "/metrics", "");

	if (s->metrics.is == DOCTOR_DONE)
		VALUE("%ld, %llu series", s->metrics_status, (unsigned long long)s->n_series);
	else
		VALUE("no answer");
	number(r, "status", (double)s->metrics_status);
	number(r, "series", (double)s->n_series);
	if (s->metrics_status == 200 && s->n_series)
		return;
	r->verdict = DOCTOR_NOTE;
	WHY("Without them, running and waiting requests, KV cache, preemptions and a restart of the "
	    "server during the load stay unknown.");
	ask_it(r, "-s", url, "/metrics | head");
}

static void judge_route(const char *url, const struct doctor_server *s, struct doctor_rows *out)
{
	struct doctor_row *r = about(out, url, "route", "route", "");

	VALUE("by %s%s", s->route.name,
	      s->has_proxy ? "; load goes through the environment's proxy" : "");
	if (s->has_proxy) {
		r->verdict = DOCTOR_NOTE;
		WHY("Connection and TLS below are of a direct connection; a proxy adds its own delay to "
		    "every event.");
		COMMAND("export NO_PROXY=%s", s->host);
	}
	judge_merging(&s->route, about(out, url, "offloads", "merged segments", "ITL"));
}

/* A step that another one's failure left untried has no row. */
void doctor_judge_server(const char *url, const struct doctor_server *s, struct doctor_rows *out)
{
	if (s->name.is != DOCTOR_NOT_TRIED)
		judge_name(url, s, out);
	if (*s->route.name)
		judge_route(url, s, out);
	if (s->connect.is != DOCTOR_NOT_TRIED)
		judge_connect(url, s, out);
	if (s->tls.is != DOCTOR_NOT_TRIED)
		judge_tls(url, s, out);
	if (s->models.is != DOCTOR_NOT_TRIED)
		judge_models(url, s, out);
	if (s->metrics.is != DOCTOR_NOT_TRIED)
		judge_metrics(url, s, out);
}
