/* SPDX-License-Identifier: Apache-2.0 */
/* test_doctor.c - machines made of files, and the rows that facts become. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "host/doctor/doctor.h"
#include "scratch.h"

#define GIB (1024.0 * 1024 * 1024)

static void put(const char *path, const char *text)
{
	char whole[300], folder[300];
	struct err e = { 0 };

	snprintf(whole, sizeof(whole), "%s%s", dir, path);
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(whole, '/') - whole), whole);
	assert_int_equal(file_mkdirs(folder, &e), 0);
	assert_int_equal(file_write_atomic(whole, str_of(text), &e), 0);
}

/* ---- reading ---- */

static void make_machine(void)
{
	put("/proc/self/limits", "Limit Soft Limit Hard Limit Units\n"
				 "Max open files            1024                 unlimited            files\n"
				 "Max realtime priority     5                    5\n");
	put("/proc/self/status", "Name:\tx\nCapEff:\t0000000000002000\nCpus_allowed_list:\t1-2\n");
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/proc/sys/fs/nr_open", "1048576\n");
	put("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
	put("/proc/sys/net/ipv4/tcp_tw_reuse", "2\n");
	put("/proc/sys/net/core/somaxconn", "128\n");
	put("/proc/net/sockstat", "sockets: used 1\nTCP: inuse 14 orphan 0 tw 316 alloc 14 mem 0\n");
	put("/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 5 kB\nMemAvailable: 4194304 kB\n");
	put("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
	put("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"); /* and that of the group above */
	put("/sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 250000\n");
	put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
	put("/sys/devices/system/cpu/online", "0-2\n");
	put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
	put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
	put("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n");
	put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
	put("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet tsc acpi_pm\n");
	put("/run/chrony/chronyd.pid", "1\n");
	put("/proc/stat", "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 900 0 0 0 0 0 0 0 0 0\n"
			  "cpu1 100 0 50 800 50 0 0 0 0 0\ncpu2 0 0 0 900 0 0 0 100 0 0\nintr 5 1\n");
	put("/proc/thread-self/schedstat", "1000 2000000 3\n");
}

static void test_read(void **state)
{
	static struct doctor_machine m;
	char folder[300];

	(void)state;
	make_machine();
	doctor_read(dir, &m);
	assert_int_equal(m.files_soft, 1024);
	assert_true(m.files_hard == INT64_MAX);
	assert_int_equal(m.files_most, 1048576);
	assert_int_equal(m.realtime_priority, 5);
	assert_true(m.may_capture); /* bit 13 alone */
	assert_int_equal(m.port_last - m.port_first, 28231);
	assert_int_equal(m.port_reuse, 2);
	assert_int_equal(m.backlog, 128);
	assert_int_equal(m.sockets_closing, 316);
	assert_string_equal(m.governor, "performance"); /* CPU 0 may not be used */
	assert_string_equal(m.clock_source, "hpet");
	assert_true(m.has_tsc);
	assert_string_equal(m.time_daemon, "chrony");
	assert_true(m.cpu_quota == 1.5);
	snprintf(folder, sizeof(folder), "%s/sys/fs/cgroup/a", dir);
	assert_string_equal(m.cpu_quota_folder, folder); /* the group above ours has it */
	assert_int_equal(m.cpus_allowed, 2);
	assert_int_equal(m.cpus_online, 3);
	assert_true(m.memory_available == 4 * GIB && m.memory_total == 8 * GIB);
	assert_true(m.memory_limit == 1 * GIB);
	doctor_count(dir, &m.before);
	assert_true(fabs(m.before.total_s - 20) < 1e-9); /* of the two that may be used */
	assert_true(fabs(m.before.busy_s - 1.5) < 1e-9);
	assert_true(fabs(m.before.steal_s - 1) < 1e-9);
	assert_true(fabs(m.before.queue_s - 0.002) < 1e-12);
	assert_true(fabs(m.before.stopped_s - 0.25) < 1e-9);
}

/* The first version of control groups has other files and other units. */
static void test_read_first_groups(void **state)
{
	static struct doctor_machine m;
	char folder[300];

	(void)state;
	make_machine();
	put("/proc/self/cgroup", "3:memory:/x\n2:cpu,cpuacct:/x\n0::/a\n");
	put("/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.stat", "nr_throttled 1\nthrottled_time 2000000000\n");
	put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "536870912\n");
	doctor_read(dir, &m);
	assert_true(m.cpu_quota == 0.5);
	snprintf(folder, sizeof(folder), "%s/sys/fs/cgroup/cpu,cpuacct/x", dir);
	assert_string_equal(m.cpu_quota_folder, folder);
	assert_true(m.memory_limit == 0.5 * GIB);
	doctor_count(dir, &m.before);
	assert_true(fabs(m.before.stopped_s - 2) < 1e-9);
}

/* Files that hold anything but what is expected, and none at all: not known, and no fault. */
static void test_nonsense(void **state)
{
	static const char *const paths[] = {
		"/proc/self/limits", "/proc/self/status", "/proc/self/cgroup", "/proc/sys/fs/nr_open",
		"/proc/sys/net/ipv4/ip_local_port_range", "/proc/net/sockstat", "/proc/meminfo",
		"/sys/devices/system/cpu/online", "/proc/stat", "/proc/thread-self/schedstat",
		"/sys/devices/system/clocksource/clocksource0/available_clocksource",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource",
	};
	static const char *const texts[] = {
		"", "\n", "cpu", "cpu0 1 2", "cpux 1 1 1 1 1 1 1 1", "9-1,x,-5", "TCP: tw", "TCP: tw x tw",
		"Max open files ", "CapEff:\tzzzzzzzzzzzzzzzzzzzzzz", "Cpus_allowed_list:\t0-99999999999",
		"-5 -9", "99999999999999999999 1", "a b c d e f g h i j k l m n o p q r s t u v w x y z",
	};
	static struct doctor_machine m;
	struct doctor_rows rows = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		for (size_t k = 0; k < sizeof(paths) / sizeof(*paths); k++)
			put(paths[k], texts[i]);
		doctor_read(dir, &m);
		doctor_count(dir, &m.before);
		doctor_judge_machine(&m, &rows);
	}
	doctor_read("/no/such/folder", &m);
	assert_int_equal(m.files_hard, -1);
	assert_int_equal(m.port_first, -1);
	assert_int_equal(m.cpus_allowed, -1);
	assert_true(isnan(m.memory_available));
	assert_false(m.may_capture);
	doctor_rows_release(&rows);
	doctor_judge_machine(&m, &rows);
	for (size_t i = 0; i < rows.n; i++)
		assert_true(rows.row[i].verdict != DOCTOR_PROBLEM ||
			    strcmp(rows.row[i].name, "receive_stamps") == 0);
	doctor_rows_release(&rows);
}

/* ---- judging ---- */

/* A machine with nothing against it. */
static void be_good(struct doctor_machine *m)
{
	*m = (struct doctor_machine){
		.program = "/opt/profllm", .files_soft = 1024, .files_hard = 1048576,
		.files_most = 1048576, .port_first = 1024, .port_last = 65535, .port_reuse = 1,
		.sockets_closing = 10, .backlog = 4096, .governor = "performance",
		.clock_source = "tsc", .has_tsc = true, .time_daemon = "chrony",
		.cpu_quota = INFINITY, .cpus_allowed = 8, .cpus_online = 8,
		.memory_total = 64 * GIB, .memory_available = 60 * GIB, .memory_limit = INFINITY,
		.may_capture = true, .realtime_priority = 99, .is_stamped = true, .clock_ns = 25,
		.late_us_p50 = 20, .late_us_p99 = 60, .late_us_max = 90, .measured_s = 0.3,
		.n_wakeups = 300, .is_synchronized = true, .has_time_state = true,
		.before = { 100, 0, 1000, 1, 0 }, .after = { 100.1, 0, 1002.4, 1.003, 0 },
	};
}

static void many_streams(struct doctor_machine *m) { m->files_hard = 10064; }
static void few_streams(struct doctor_machine *m) { m->files_hard = 10063; }
static void no_streams(struct doctor_machine *m) { m->files_hard = 1024; }
static void low_ceiling(struct doctor_machine *m) { m->files_hard = 512; m->files_most = 4096; }
static void few_ports(struct doctor_machine *m) { m->port_first = 60000; }
static void no_ports(struct doctor_machine *m) { m->port_first = 65000; }
static void worn_ports(struct doctor_machine *m) { m->sockets_closing = 40000; }
static void short_queue(struct doctor_machine *m) { m->backlog = 128; }
static void some_memory(struct doctor_machine *m) { m->memory_available = GIB; }
static void small_group(struct doctor_machine *m) { m->memory_limit = 256 * 1024 * 1024; }
static void busy(struct doctor_machine *m) { m->after.busy_s = 100 + 2.4 * 0.6; }
static void full(struct doctor_machine *m) { m->after.busy_s = 100 + 2.4 * 0.9; }
static void one_cpu(struct doctor_machine *m) { m->cpus_allowed = 1; }
static void quota(struct doctor_machine *m)
{
	m->cpu_quota = 4;
	snprintf(m->cpu_quota_folder, sizeof(m->cpu_quota_folder), "/sys/fs/cgroup/a");
}
static void first_quota(struct doctor_machine *m)
{
	m->cpu_quota = 0.5;
	snprintf(m->cpu_quota_folder, sizeof(m->cpu_quota_folder), "/sys/fs/cgroup/cpu/a");
}
static void stopped(struct doctor_machine *m)
{
	quota(m);
	m->container = "docker";
	m->after.stopped_s = 0.05;
}
static void governor(struct doctor_machine *m) { memcpy(m->governor, "powersave", 10); }
static void waits(struct doctor_machine *m) { m->after.queue_s = 1 + 300 * 150e-6; }
static void waits_long(struct doctor_machine *m) { m->after.queue_s = 1 + 300 * 1500e-6; }
static void stolen(struct doctor_machine *m) { m->after.steal_s = 2.4 * 0.04; }
static void stolen_before(struct doctor_machine *m) { m->before.steal_s = m->after.steal_s = 100; }
static void slow_clock(struct doctor_machine *m)
{
	m->clock_ns = 900;
	memcpy(m->clock_source, "hpet", 5);
}
static void slower_clock(struct doctor_machine *m)
{
	slow_clock(m);
	m->clock_ns = 2500;
	m->has_tsc = false;
}
static void late(struct doctor_machine *m) { m->late_us_p99 = 151; m->realtime_priority = 0; }
static void later(struct doctor_machine *m) { m->late_us_p99 = 1001; }
static void late_at(struct doctor_machine *m) { m->late_us_p99 = 150; }
static void unstamped(struct doctor_machine *m) { m->is_stamped = false; }
static void astray(struct doctor_machine *m) { m->is_synchronized = false; *m->time_daemon = 0; }
static void blind(struct doctor_machine *m) { m->may_capture = false; }

/* One change each, the row that must notice it, and what it says; all other rows stay ok. */
static const struct {
	void (*change)(struct doctor_machine *m);
	const char *row;
	enum doctor_verdict verdict;
	const char *value, *command;
} cases[] = {
	{ many_streams, "open_files", DOCTOR_OK, "enough for 10,000 streams", "" },
	{ few_streams, "open_files", DOCTOR_NOTE, "enough for 9,999 streams",
	  "sudo prlimit --pid $$ --nofile=65536:65536" },
	{ no_streams, "open_files", DOCTOR_PROBLEM, "1,024 (hard): enough for 960 streams", "prlimit" },
	{ low_ceiling, "open_files", DOCTOR_PROBLEM, "enough for 448 streams", "fs.nr_open=1048576" },
	{ few_ports, "local_ports", DOCTOR_NOTE, "5,536 for each server address",
	  "ip_local_port_range='1024 65535'" },
	{ no_ports, "local_ports", DOCTOR_PROBLEM, "enough for 536 streams", "ip_local_port_range" },
	{ worn_ports, "local_ports", DOCTOR_NOTE, "40,000 closing", "tcp_tw_reuse=1" },
	{ short_queue, "accept_queue", DOCTOR_NOTE, "128 connections", "net.core.somaxconn=4096" },
	{ some_memory, "memory", DOCTOR_NOTE, "1.0 GiB available of 64.0 GiB", "ps " },
	{ small_group, "memory", DOCTOR_PROBLEM, "control group 0.2 GiB", "ps " },
	{ busy, "cpus", DOCTOR_NOTE, "60 % busy", "ps " },
	{ full, "cpus", DOCTOR_PROBLEM, "90 % busy", "ps " },
	{ one_cpu, "cpus", DOCTOR_NOTE, "1 of 8 may be used", "taskset -pc 0-7 $$" },
	{ quota, "cpu_quota", DOCTOR_NOTE, "4.00 CPUs", "echo max | sudo tee /sys/fs/cgroup/a/cpu.max" },
	{ first_quota, "cpu_quota", DOCTOR_PROBLEM, "0.50 CPUs",
	  "echo -1 | sudo tee /sys/fs/cgroup/cpu/a/cpu.cfs_quota_us" },
	{ stopped, "cpu_quota", DOCTOR_PROBLEM, "stopped for 0.1 s so far",
	  "docker update --cpu-quota -1" },
	{ governor, "cpu_frequency", DOCTOR_NOTE, "governor powersave", "echo performance | sudo tee" },
	{ waits, "run_queue", DOCTOR_NOTE, "150 us", "ps " },
	{ waits_long, "run_queue", DOCTOR_PROBLEM, "1500 us", "ps " },
	{ stolen, "steal", DOCTOR_NOTE, "4.0 % now", "" },
	{ stolen_before, "steal", DOCTOR_PROBLEM, "0.0 % now, 10.0 %", "" },
	{ slow_clock, "clock", DOCTOR_NOTE, "hpet, 900 ns", "echo tsc | sudo tee" },
	{ slower_clock, "clock", DOCTOR_PROBLEM, "hpet, 2500 ns", "" },
	{ late_at, "wakeups", DOCTOR_OK, "150 us (p99)", "" },
	{ late, "wakeups", DOCTOR_NOTE, "151 us (p99)", "--rtprio=1" },
	{ later, "wakeups", DOCTOR_PROBLEM, "1001 us (p99)", "chrt --rr 1" },
	{ unstamped, "receive_stamps", DOCTOR_PROBLEM, "none came", "" },
	{ astray, "time_synchronization", DOCTOR_NOTE, "not synchronized", "timedatectl set-ntp true" },
	{ blind, "packet_capture", DOCTOR_NOTE, "not allowed",
	  "sudo setcap cap_net_raw+ep /opt/profllm" },
};

static void test_judge(void **state)
{
	static struct doctor_machine m;
	struct doctor_rows rows = { 0 };

	(void)state;
	be_good(&m);
	doctor_judge_machine(&m, &rows);
	for (size_t i = 0; i < rows.n; i++)
		if (rows.row[i].verdict != DOCTOR_OK)
			fail_msg("%s: %s", rows.row[i].name, rows.row[i].value);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool is_found = false;

		be_good(&m);
		cases[i].change(&m);
		rows.n = 0;
		doctor_judge_machine(&m, &rows);
		for (size_t k = 0; k < rows.n; k++) {
			const struct doctor_row *r = &rows.row[k];
			bool is_it = strcmp(r->name, cases[i].row) == 0;

			is_found |= is_it;
			if (r->verdict != (is_it ? cases[i].verdict : DOCTOR_OK) ||
			    (is_it && (!strstr(r->value, cases[i].value) ||
				       !strstr(r->command, cases[i].command) ||
				       (!*cases[i].command && *r->command))))
				fail_msg("case %zu: %s is %s: %s $ %s", i, r->name,
					 doctor_name(r->verdict), r->value, r->command);
			assert_true((r->verdict == DOCTOR_OK) == (*r->why == '\0'));
		}
		assert_true(is_found);
	}
	doctor_rows_release(&rows);
}

static const struct doctor_row *row_of(const struct doctor_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->n; i++)
		if (strcmp(rows->row[i].name, name) == 0)
			return &rows->row[i];
	return NULL;
}

static void test_links(void **state)
{
	struct link l = { .name = "eth7", .gro = LINK_NO, .lro = LINK_NO, .coalesce_us = 20,
			  .hardware_stamp = LINK_YES };
	struct doctor_rows rows = { 0 };
	const struct doctor_row *r;

	(void)state;
	doctor_judge_link(&l, &rows);
	assert_int_equal(row_of(&rows, "offloads")->verdict, DOCTOR_OK);
	assert_string_equal(row_of(&rows, "offloads")->about, "eth7");
	assert_non_null(strstr(row_of(&rows, "hardware_stamps")->value, "can stamp"));
	rows.n = 0;
	l.gro = LINK_YES;
	doctor_judge_link(&l, &rows);
	r = row_of(&rows, "offloads");
	assert_int_equal(r->verdict, DOCTOR_NOTE);
	assert_string_equal(r->command, "sudo ethtool -K eth7 gro off lro off");
	rows.n = 0;
	l.gro = LINK_NO;
	l.coalesce_us = 500;
	doctor_judge_link(&l, &rows);
	assert_non_null(strstr(row_of(&rows, "offloads")->command, "ethtool -C eth7"));
	/* A time that follows the traffic is short where segments are few. */
	rows.n = 0;
	l.is_adaptive = true;
	doctor_judge_link(&l, &rows);
	assert_int_equal(row_of(&rows, "offloads")->verdict, DOCTOR_OK);
	doctor_rows_release(&rows);
}

static void test_servers(void **state)
{
	static struct doctor_server s;
	struct doctor_rows rows = { 0 };

	(void)state;
	s = (struct doctor_server){ .host = "h", .authority = "h:1",
				    .name = { DOCTOR_DONE, 1, "1.2.3.4:1" },
				    .connect = { DOCTOR_DONE, 0.1, "" }, .connect_max_ms = 0.2,
				    .models = { DOCTOR_DONE, 2, "m" }, .models_status = 200,
				    .metrics = { DOCTOR_DONE, 2, "" }, .metrics_status = 200,
				    .n_series = 5 };
	doctor_judge_server("http://h:1", &s, &rows);
	assert_int_equal(rows.n, 4);
	assert_int_equal(doctor_rows_count(&rows, DOCTOR_OK), 4);
	/* A far server is a note; a loopback that is as slow is a busy machine, not a way. */
	rows.n = 0;
	s.connect.ms = 5;
	doctor_judge_server("http://h:1", &s, &rows);
	assert_int_equal(row_of(&rows, "connect")->verdict, DOCTOR_NOTE);
	rows.n = 0;
	s.route = (struct link){ .name = "lo", .is_loopback = true };
	doctor_judge_server("http://h:1", &s, &rows);
	assert_int_equal(row_of(&rows, "connect")->verdict, DOCTOR_OK);
	rows.n = 0;
	s.connect_max_ms = 1020; /* the first packet was lost */
	s.models_status = 401;
	s.metrics_status = 404;
	doctor_judge_server("http://h:1", &s, &rows);
	assert_int_equal(row_of(&rows, "connect")->verdict, DOCTOR_PROBLEM);
	assert_non_null(strstr(row_of(&rows, "connect")->why, "lost"));
	assert_int_equal(row_of(&rows, "models")->verdict, DOCTOR_PROBLEM);
	assert_string_equal(row_of(&rows, "models")->command, "export OPENAI_API_KEY=...");
	assert_int_equal(row_of(&rows, "metrics")->verdict, DOCTOR_NOTE);
	/* A wrong address: /v1 twice; a program that is no model server; a socket. */
	rows.n = 0;
	s.models_status = 404;
	doctor_judge_server("http://h:1/v1", &s, &rows);
	assert_int_equal(row_of(&rows, "models")->verdict, DOCTOR_PROBLEM);
	assert_string_equal(row_of(&rows, "models")->command, "profllm doctor http://h:1");
	rows.n = 0;
	s.models_status = 200;
	s.models.text[0] = '\0';
	doctor_judge_server("unix:/run/s", &s, &rows);
	assert_int_equal(row_of(&rows, "models")->verdict, DOCTOR_NOTE);
	assert_string_equal(row_of(&rows, "models")->command,
			    "curl -s --unix-socket /run/s http://localhost/v1/models | head");
	/* What an earlier failure left untried is not called right. */
	rows.n = 0;
	s = (struct doctor_server){ .host = "h", .name = { DOCTOR_FAILED, 0, "no such name" } };
	doctor_judge_server("http://h:1", &s, &rows);
	assert_int_equal(rows.n, 1);
	assert_int_equal(rows.row[0].verdict, DOCTOR_PROBLEM);
	assert_string_equal(rows.row[0].why, "no such name.");
	doctor_rows_release(&rows);
}

/* The machine that the test runs on: it is measured, whatever that gives. */
static void test_here(void **state)
{
	static struct doctor_machine m;
	struct link loopback;

	(void)state;
	doctor_read("", &m);
	doctor_measure("", 0.05, &m);
	assert_true(m.measured_s >= 0.05 && m.n_wakeups >= 1);
	assert_true(m.clock_ns > 0 && m.clock_ns < 1e6);
	assert_true(m.late_us_p50 >= 0 && m.late_us_p99 >= m.late_us_p50);
	assert_true(m.late_us_max >= m.late_us_p99);
	assert_true(m.after.total_s >= m.before.total_s);
	link_look("lo", &loopback);
	assert_true(loopback.is_loopback);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_first_groups),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_here),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
