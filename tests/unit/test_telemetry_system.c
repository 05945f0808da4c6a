/* SPDX-License-Identifier: Apache-2.0 */
/* What is sampled of the machine: files of /proc, trees of processes, GPUs that are not there. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "scratch.h"

#include "fake_gpus.h"
#include "host/telemetry/system.h"
#include "host/telemetry/telemetry.h"

#define MS 1000000ll

static void sleep_ms(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * MS };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/* ---- parsers ---- */

static void stat_of_all(void **state)
{
	static const struct { const char *text; double want; } row[] = {
		/* user nice system, not idle and iowait, irq softirq; not steal; guest is user */
		{ "cpu  100 20 30 9999 888 4 6 77 50 5\ncpu0 1 2 3 4 5 6 7\n", 1.6 },
		{ "cpu 1 1 1 1 1 1 1", 0.05 },
		{ "cpu  100 20 30 9999", -1 }, /* cut off */
		{ "cpu0 100 20 30 1 1 1 1\n", -1 },
		{ "cpu  a b c d e f g\n", -1 },
		{ "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		double got = -1;
		bool is_good = host_parse_stat(str_of(row[i].text), 100, &got);

		assert_int_equal(is_good, row[i].want >= 0);
		assert_true(fabs(got - row[i].want) < 1e-12);
	}
}

static void meminfo(void **state)
{
	double used = -1, total = -1;

	(void)state;
	assert_true(host_parse_meminfo(STR("MemTotal:       1000 kB\nMemFree:  1 kB\n"
					   "MemAvailable:    400 kB\nBuffers: 3 kB\n"),
				       &used, &total));
	assert_true(used == 600 * 1024.0 && total == 1000 * 1024.0);
	used = total = -1;
	assert_false(host_parse_meminfo(STR("MemTotal: 1000 kB\nMemFree: 1 kB\n"), &used, &total));
	assert_false(host_parse_meminfo(STR("MemTotal: x kB\nMemAvailable: 1 kB\n"), &used, &total));
	assert_false(host_parse_meminfo(STR(""), &used, &total));
	assert_true(used == -1 && total == -1);
}

static void net(void **state)
{
	static const char head[] =
		"Inter-|   Receive                                                |  Transmit\n"
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n";
	struct host_nets nets = { .n = 0 };
	char text[1024];
	double received = -1, sent = -1;

	(void)state;
	snprintf(text, sizeof(text), "%s    lo: 500 5 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n"
		 "  eth0: 1000 9 0 0 0 0 0 0 70 3 0 0 0 0 0 0\n eth1:20 9 0 0 0 0 0 0 7 3 0 0 0 0 0 0\n"
		 "  bad: 1000 9 0\n", head);
	assert_true(host_parse_net(str_of(text), &nets, &received, &sent));
	assert_true(received == 1020 && sent == 77);
	received = sent = -1;
	snprintf(text, sizeof(text), "%s    lo: 500 5 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n", head);
	assert_false(host_parse_net(str_of(text), &nets, &received, &sent));
	assert_true(received == -1 && sent == -1);
}

/* A bond and its two cards, a bridge and the host's end of a container: each byte counts once. */
static void net_stacked(void **state)
{
	static const char text[] = "bond0: 1000 0 0 0 0 0 0 0 100 0 0 0 0 0 0 0\n"
				   "eth0: 500 0 0 0 0 0 0 0 50 0 0 0 0 0 0 0\n"
				   "eth1: 500 0 0 0 0 0 0 0 50 0 0 0 0 0 0 0\n"
				   "docker0: 300 0 0 0 0 0 0 0 30 0 0 0 0 0 0 0\n"
				   "veth7: 300 0 0 0 0 0 0 0 30 0 0 0 0 0 0 0\n"
				   "lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n";
	static const char *const made[] = {
		"class", "class/net", "class/net/lo", "class/net/veth7", "class/net/bond0",
		"class/net/bond0/bonding", "class/net/docker0", "class/net/docker0/bridge",
		"class/net/eth0", "class/net/eth1",
	};
	struct host_nets nets;
	char sys[256], path[512];
	double received, sent;

	(void)state;
	snprintf(sys, sizeof(sys), "%s/sys", dir);
	assert_int_equal(mkdir(sys, 0777), 0);
	host_find_nets(sys, &nets);
	assert_true(nets.n == 0 && nets.n_left_out == 0);
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		snprintf(path, sizeof(path), "%s/%s", sys, made[i]);
		assert_int_equal(mkdir(path, 0777), 0);
	}
	/* No device at all, as in a container: interfaces that cannot be distinguished count. */
	host_find_nets(sys, &nets);
	assert_true(nets.n == 0 && nets.n_left_out == 2);
	assert_true(host_parse_net(str_of(text), &nets, &received, &sent));
	assert_true(received == 1300 && sent == 130);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/class/net/eth%d/device", sys, i);
		assert_int_equal(mkdir(path, 0777), 0);
	}
	host_find_nets(sys, &nets);
	assert_int_equal(nets.n, 2);
	assert_true(host_parse_net(str_of(text), &nets, &received, &sent));
	assert_true(received == 1000 && sent == 100);
}

static void group_limits(void **state)
{
	(void)state;
	assert_true(host_parse_cpu_max(STR("150000 100000\n")) == 1.5);
	assert_true(isinf(host_parse_cpu_max(STR("max 100000\n"))));
	assert_true(isnan(host_parse_cpu_max(STR("0 100000\n"))));
	assert_true(isnan(host_parse_cpu_max(STR("150000\n"))));
	assert_true(isnan(host_parse_cpu_max(STR("-1 100000\n"))));
	assert_true(host_parse_memory_max(STR("1048576\n")) == 1048576);
	assert_true(isinf(host_parse_memory_max(STR("max\n"))));
	assert_true(isnan(host_parse_memory_max(STR("-1\n"))));
	assert_true(host_cpus() > 0);
	assert_true(host_memory_limit(1000) == 1000);
}

static void usage_lines(void **state)
{
	static const struct {
		const char *line;
		bool is_good;
		struct process_usage want;
	} row[] = {
		{ "7 (cat) R 3 7 1 0 -1 4194304 99 0 0 0 11 22 3 4 20 0 5 0 1234 3133440 362 18446744073709551615\n",
		  true, { 1234, 33, 5, 362 } },
		{ "7 (a) b ) R 3 7 1 0 -1 4194304 99 0 0 0 1 2 3 4 20 0 5 0 9 3133440 362\n", true,
		  { 9, 3, 5, 362 } },
		{ "7 (cat) R 3 7 1 0 -1 4194304 99 0 0 0 11 22 3 4 20 0 5 0 1234 3133440\n", false, { 0 } },
		{ "7 (cat) R 3 7 1 0 -1 4194304 99 0 0 0 11 -22 3 4 20 0 5 0 1234 3133440 362\n", false,
		  { 0 } },
		{ "7 cat R 3\n", false, { 0 } },
		{ ")", false, { 0 } },
		{ "", false, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct process_usage got = { 0 };

		assert_int_equal(tree_parse_usage(str_of(row[i].line), &got), row[i].is_good);
		assert_memory_equal(&got, &row[i].want, sizeof(got));
	}
}

/* ---- trees ---- */

/* A child that spends ms of processor time, then says so and waits. */
static pid_t busy_child(int ms, int *told)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < ms * MS)
			;
		if (write(ends[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ends[1]);
	*told = ends[0];
	return pid;
}

static void await(int told)
{
	char c;

	assert_int_equal(read(told, &c, 1), 1);
	close(told);
}

static void end_child(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void find(struct tree_watch *w, bool is_there)
{
	struct tree t = { 0 };

	assert_int_equal(tree_read(&t), 0);
	assert_int_equal(tree_watch_find(w, &t), is_there);
	tree_release(&t);
}

/* Time of a process that ended stays in the sum. */
static void own_tree(void **state)
{
	struct tree_watch w = { .root = getpid() };
	struct tree_values before, now, after;
	pid_t child;
	int told;

	(void)state;
	find(&w, true);
	assert_true(tree_watch_read(&w, &before));
	assert_true(before.processes == 1 && before.threads >= 1 && before.rss > 0);
	child = busy_child(150, &told);
	await(told);
	assert_true(tree_watch_read(&w, &now));
	assert_true(now.processes == 1); /* not looked for yet */
	find(&w, true);
	assert_true(tree_watch_read(&w, &now));
	assert_true(now.processes == 2);
	assert_true(now.cpu_s >= before.cpu_s + 0.1);
	end_child(child);
	assert_true(tree_watch_read(&w, &after));
	assert_true(after.processes == 1 && after.cpu_s >= now.cpu_s);
	tree_watch_release(&w);
}

static void gone_tree(void **state)
{
	struct tree_watch w = { 0 };
	struct tree_values v;
	int told;

	(void)state;
	w.root = busy_child(0, &told);
	await(told);
	find(&w, true);
	assert_true(tree_watch_read(&w, &v));
	end_child(w.root);
	assert_false(tree_watch_read(&w, &v));
	assert_true(v.processes == 0);
	find(&w, false);
	/* A reused process number does not mean the old process. */
	w.root = getpid();
	find(&w, false);
	tree_watch_release(&w);
}

/* ---- all of it ---- */

static const struct record_series *series(const struct record *r, enum system_series id,
					  const char *labels)
{
	for (size_t i = 0; i < r->n_series; i++)
		if (strcmp(r->series[i]->name, system_series_name(id)) == 0 &&
		    strcmp(r->series[i]->labels, labels) == 0)
			return r->series[i];
	return NULL;
}

static double first(const struct record *r, enum system_series id, const char *labels)
{
	const struct record_series *s = series(r, id, labels);

	return s && s->n ? s->point[0].value : NAN;
}

static bool has_note(const struct record *r, const char *text)
{
	for (size_t i = 0; i < r->n_notes; i++)
		if (strcmp(r->note[i].kind, NOTE_SYSTEM) == 0 && strstr(r->note[i].text, text))
			return true;
	return false;
}

static void fake(const char *lines)
{
	setenv("PROFLLM_NVML", fake_library("libfake-nvml.so"), 1);
	setenv("PROFLLM_SYSFS", dir, 1);
	fake_state(lines);
}

#define GPU(n) "gpu=\"" #n "\",uuid=\"U" #n "\",name=\"T\""
#define TWO "count 3\ngpu * name T\ngpu 0 uuid U0\ngpu 1 uuid U1\ngpu 2 uuid U2\ngpu * total 80e9\n" \
	"gpu 0 used 7e9\ngpu 0 util 90\ngpu 0 power 500\ngpu 1 power 200\ngpu 1 used 1e9\ngpu 1 util 10\n"

/* Before and after alone: two points each, and facts one. */
static void before_and_after(void **state)
{
	const struct system_process self = { getpid(), "me" };
	struct system_opts o = { .gpu = true, .host = true, .process = true,
				 .processes = &self, .n_processes = 1 };
	const char *gpus[] = { "1", "U0" };
	struct record r = { 0 };
	struct system_watch *w;
	struct system_now now;
	char own[64];

	(void)state;
	fake(TWO);
	o.gpus = gpus;
	o.n_gpus = 2;
	snprintf(own, sizeof(own), "process=\"me\",pid=\"%d\"", (int)getpid());
	w = system_begin(&o);
	system_now(w, &now);
	assert_true(now.gpus == 2 && now.gpu_utilization == 50);
	assert_true(now.gpu_memory == 8e9 && now.gpu_memory_total == 160e9 && now.gpu_power == 700);
	assert_true(now.host_cpus > 0 && now.host_memory > 0 && now.process_rss > 0);
	assert_true(isnan(now.host_cpus_busy)); /* it takes two samples */
	system_end(w, &r);
	assert_int_equal(series(&r, SYSTEM_GPU_POWER, GPU(0))->n, 2);
	assert_int_equal(series(&r, SYSTEM_GPU_MEMORY_TOTAL, GPU(0))->n, 1);
	assert_true(first(&r, SYSTEM_GPU_MEMORY, GPU(0)) == 7e9);
	assert_true(first(&r, SYSTEM_GPU_UTILIZATION, GPU(1)) == 10);
	assert_null(series(&r, SYSTEM_GPU_POWER, GPU(2)));
	assert_int_equal(series(&r, SYSTEM_HOST_CPU, "")->n, 2);
	assert_true(first(&r, SYSTEM_HOST_MEMORY_TOTAL, "") > 0);
	assert_true(first(&r, SYSTEM_PROCESS_COUNT, own) == 1);
	assert_int_equal(series(&r, SYSTEM_SAMPLER_CPU, "")->n, 2);
	assert_int_equal(r.n_notes, 0);
	record_release(&r);
}

/* Energy is the time it took times the power, and points are on the record's clock, in order. */
static void a_while(void **state)
{
	struct system_opts o = { .gpu = true, .host = true, .interval_ns = 20 * MS };
	const struct record_series *energy, *cpu;
	struct record r = { 0 };
	struct system_watch *w;
	int64_t from_ns = clock_real_ns(), to_ns;
	double took_s, joules;

	(void)state;
	fake(TWO);
	w = system_begin(&o);
	sleep_ms(400);
	system_end(w, &r);
	to_ns = clock_real_ns();
	energy = series(&r, SYSTEM_GPU_ENERGY, GPU(0));
	assert_true(energy->n >= 3 && energy->n <= 23);
	for (size_t i = 0; i < energy->n; i++) {
		assert_true(energy->point[i].at_ns >= from_ns && energy->point[i].at_ns <= to_ns);
		assert_true(i == 0 || energy->point[i].at_ns > energy->point[i - 1].at_ns);
	}
	took_s = (double)(energy->point[energy->n - 1].at_ns - energy->point[0].at_ns) / 1e9;
	joules = energy->point[energy->n - 1].value - energy->point[0].value;
	assert_true(took_s >= 0.4);
	/* A point is stamped just after its reading; both ends by much less than this. */
	assert_true(fabs(joules - 500 * took_s) <= 500 * 0.1);
	cpu = series(&r, SYSTEM_SAMPLER_CPU, "");
	assert_true(cpu->n == energy->n);
	assert_true(cpu->point[0].value == 0 && cpu->point[cpu->n - 1].value > 0);
	record_release(&r);
}

/* What the thread may take of a core is bounded, whatever one sample costs. */
static void never_dear(void **state)
{
	struct system_opts o = { .gpu = true, .host = true, .interval_ns = MS / 10 };
	const struct record_series *cpu, *missed;
	struct record r = { 0 };
	struct system_watch *w;
	double took_s, cpu_s;

	(void)state;
	fake(TWO);
	w = system_begin(&o);
	sleep_ms(1500);
	system_end(w, &r);
	cpu = series(&r, SYSTEM_SAMPLER_CPU, "");
	missed = series(&r, SYSTEM_SAMPLER_MISSED, "");
	took_s = (double)(cpu->point[cpu->n - 1].at_ns - cpu->point[0].at_ns) / 1e9;
	cpu_s = cpu->point[cpu->n - 1].value;
	/* 20 ms are free, and the last sample may be as dear as it likes. */
	assert_true(cpu_s <= 0.02 + 0.01 * took_s + 0.03);
	assert_true(missed->point[missed->n - 1].value > 0);
	assert_true((double)cpu->n + missed->point[missed->n - 1].value >= 10000);
	record_release(&r);
}

/* A sampler that never returns is abandoned, and the run continues. */
static atomic_bool is_released, is_entered;
static void hangs(void *self)
{
	(void)self;
	atomic_store(&is_entered, true);
	while (!atomic_load(&is_released))
		sleep_ms(1);
}

static void comes_back(void *self)
{
	(void)self;
}

static void patience(void **state)
{
	static struct ticker stuck; /* the thread's own from then on */
	struct ticker good = { 0 };

	(void)state;
	stuck.patience_s = 0.05;
	ticker_start(&stuck, MS, hangs, &stuck);
	while (!atomic_load(&is_entered))
		sleep_ms(1);
	assert_false(ticker_stop(&stuck));
	atomic_store(&is_released, true);
	assert_true(ticker_stop(&good)); /* never started */
	ticker_start(&good, MS, comes_back, &good);
	sleep_ms(20);
	assert_true(ticker_stop(&good));
	assert_false(good.has_thread || atomic_load(&good.is_over));
}

/* What is not there is a note. */
static void not_there(void **state)
{
	const struct system_process nobody = { 0x3fffff, "nobody" };
	const char *gpus[] = { "7" };
	struct system_opts o = { .gpu = true, .process = true, .gpus = gpus, .n_gpus = 1,
				 .processes = &nobody, .n_processes = 1 };
	struct record r = { 0 };

	(void)state;
	fake(TWO);
	system_end(system_begin(&o), &r);
	assert_true(has_note(&r, "gpu: none is called '7'"));
	assert_true(has_note(&r, "process: there is none with the number 4194303"));
	assert_null(series(&r, SYSTEM_GPU_POWER, GPU(0)));
	record_release(&r);

	setenv("PROFLLM_NVML", "/no/such/library.so", 1);
	r = (struct record){ 0 };
	o = (struct system_opts){ .gpu = true, .process = true };
	system_end(system_begin(&o), &r);
	assert_true(has_note(&r, "gpu: "));
	assert_true(has_note(&r, "process: it is not known"));
	record_release(&r);
}

/* A GPU that is split is watched by its parts. */
static void parts(void **state)
{
	struct system_opts o = { .gpu = true };
	struct record r = { 0 };
	size_t powers = 0, memories = 0;

	(void)state;
	fake("count 2\ngpu 0 mig 1g.10gb 2\ngpu 0 part 1 5e9\ngpu 1 power 100\n");
	system_end(system_begin(&o), &r);
	for (size_t i = 0; i < r.n_series; i++) {
		powers += strcmp(r.series[i]->name, "gpu_power") == 0;
		memories += strcmp(r.series[i]->name, "gpu_memory_used") == 0;
	}
	assert_int_equal(memories, 3);
	assert_int_equal(powers, 1);
	record_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_of_all),
		cmocka_unit_test(meminfo),
		cmocka_unit_test(net), cmocka_unit_test(net_stacked),
		cmocka_unit_test(group_limits),
		cmocka_unit_test(usage_lines),
		cmocka_unit_test(own_tree),
		cmocka_unit_test(gone_tree),
		cmocka_unit_test(before_and_after),
		cmocka_unit_test(a_while),
		cmocka_unit_test(never_dear),
		cmocka_unit_test(patience),
		cmocka_unit_test(not_there),
		cmocka_unit_test(parts),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
