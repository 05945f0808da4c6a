/* SPDX-License-Identifier: Apache-2.0 */
/* test_stages_allocate.c - GPUs and ports for experiments, on machines that are made up. */
/* threads: yes */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_gpus.h"
#include "scratch.h"

#include "core/base/file.h"
#include "experiment/stages/allocate.h"

#define SERVERS 3

/* One experiment with a server that takes so many GPUs. */
struct made {
	struct experiment x;
	struct experiment_server server[SERVERS];
};

static struct experiment *make(struct made *m, unsigned gpus)
{
	*m = (struct made){ 0 };
	m->x.name = "made";
	m->x.server = m->server;
	m->x.n_servers = 1;
	for (int i = 0; i < SERVERS; i++)
		m->server[i].name = i == 0 ? "first" : i == 1 ? "second" : "third";
	m->server[0].gpus = gpus;
	m->x.resources = (struct experiment_resources){ .want = GPUS_AUTO, .memory_free_min = 0.9 };
	return &m->x;
}

/* The places that were taken, as "0,1"; or the fault and its sentence. */
static struct {
	char places[64], text[1024];
	enum allocate_fault fault;
	struct allocation a;
} got;

static void take(const struct experiment *x, const struct gpu_set *s,
		 const struct experiment_hooks *hooks)
{
	struct err e = { 0 };

	got.places[0] = 0;
	if (allocate(x, "exp_test", s, hooks, &got.a, &got.fault, &e) == 0) {
		for (size_t i = 0; i < got.a.n_servers; i++)
			for (size_t k = 0; k < got.a.server[i].n_gpus; k++)
				snprintf(got.places + strlen(got.places), 8, "%s%zu",
					 *got.places ? "," : "", got.a.server[i].place[k]);
		assert_int_equal(got.fault, ALLOCATE_FAULT_NONE);
	} else {
		assert_int_not_equal(got.fault, ALLOCATE_FAULT_NONE);
	}
	snprintf(got.text, sizeof got.text, "%s", e.text);
}

static void give(void)
{
	allocate_release(&got.a);
}

/* How many files the folder of locks has that begin so. */
static int locks_named(const char *prefix)
{
	char command[256], text[16] = "";
	FILE *f;

	snprintf(command, sizeof command, "ls %s/locks %s/locks/queue | grep -c '^%s'", dir, dir, prefix);
	f = popen(command, "r");
	assert_non_null(fgets(text, sizeof text, f));
	pclose(f);
	return (int)strtol(text, NULL, 10);
}

/* A lock that another run seems to hold: another open file of ours. */
static void hold(const struct gpu_set *s, size_t place, struct lock *l)
{
	struct lock_holder who = { .run = "exp_holder" };
	struct buf folder = { 0 };
	char name[128];
	size_t n;

	assert_int_equal(lock_folder(&folder, NULL), 0);
	snprintf(name, sizeof name, "gpu-%s", gpu_list(s, &n)[place].uuid);
	assert_int_equal(lock_take(folder.data, name, LOCK_ALONE, &who, l, NULL, NULL), 1);
	buf_release(&folder);
}

static void assert_begins(const char *text, const char *beginning)
{
	if (strncmp(text, beginning, strlen(beginning)) != 0)
		fail_msg("%s", text);
}

static const char *env_of(size_t server, const char *name)
{
	char *const *env = got.a.server[server].env;

	for (; *env; env++)
		if (strncmp(*env, name, strlen(name)) == 0 && (*env)[strlen(name)] == '=')
			return *env + strlen(name) + 1;
	return "(not set)";
}

static void two_of_eight(void **state)
{
	struct gpu_set *s = fake_open("");
	struct made m;

	(void)state;
	take(make(&m, 2), s, NULL);
	assert_string_equal(got.places, "0,1");
	assert_int_equal(got.a.n_gpus, 2);
	assert_null(got.a.note);
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "0,1");
	assert_string_equal(env_of(0, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
	assert_int_equal(got.a.server[0].gpu[1].index, 1);
	assert_string_equal(got.a.server[0].gpu[1].uuid, "GPU-a0001111-fa4e-4e5e-8000-000000000001");
	assert_string_equal(got.a.server[0].gpu[1].name, "NVIDIA Fake 80GB");
	assert_in_range(got.a.server[0].port, 1024, 65535);
	assert_int_equal(locks_named("gpu-"), 2);
	assert_int_equal(locks_named("port-"), 1);
	assert_int_equal(locks_named("0"), 0); /* no ticket is left */
	give();
	assert_int_equal(locks_named("gpu-"), 0);
	assert_int_equal(locks_named("port-"), 0);
	give();
	gpu_close(s);
}

static void those_that_reach_each_other(void **state)
{
	static const struct { const char *held, *machine, *places; unsigned want; } cases[] = {
		{ "", "", "0", 1 },
		{ "0", "", "1,2", 2 }, /* among those whose group is broken already */
		{ "0", "", "1,2,3", 3 },
		{ "0", "", "4,5,6,7", 4 },
		{ "07", "", "1,2,3,4,5", 5 },
		{ "", "gpu * board -1\n", "0,1,2,3", 4 }, /* by NUMA nodes alone */
		{ "1", "gpu * board -1\n", "0,2,3", 3 },
		{ "1", "gpu * board -1\ngpu * numa -1\n", "0,2,3", 3 },
		{ "", "gpu * board 0\ngpu * numa 0\n", "0,1,2,3,4", 5 },
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct gpu_set *s = fake_open(cases[i].machine);
		struct lock held[8] = { 0 };

		for (size_t k = 0; cases[i].held[k]; k++)
			hold(s, (size_t)(cases[i].held[k] - '0'), &held[k]);
		take(make(&m, cases[i].want), s, NULL);
		if (strcmp(got.places, cases[i].places) != 0)
			fail_msg("%u with %s held: %s, not %s (%s)", cases[i].want, cases[i].held, got.places,
				 cases[i].places, got.text);
		give();
		for (size_t k = 0; k < 8; k++)
			lock_give(&held[k]);
		gpu_close(s);
	}
}

static void shares_of_servers(void **state)
{
	struct gpu_set *s = fake_open("");
	static const char *const list[] = { "6", "2", "GPU-a0004", NULL };
	struct made m;

	(void)state;
	make(&m, 2);
	m.x.n_servers = 3;
	m.server[2].gpus = 1;
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "0,1,2");
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "0,1");
	assert_string_equal(env_of(1, "CUDA_VISIBLE_DEVICES"), ""); /* a proxy sees none */
	assert_string_equal(env_of(2, "CUDA_VISIBLE_DEVICES"), "2");
	assert_int_equal(locks_named("port-"), 3);
	assert_true(got.a.server[0].port != got.a.server[1].port &&
		    got.a.server[1].port != got.a.server[2].port);
	give();

	/* Named ones go round in their order. */
	m.x.resources.want = GPUS_LIST;
	m.x.resources.list = list;
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "6,2,4");
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "6,2");
	assert_string_equal(env_of(2, "CUDA_VISIBLE_DEVICES"), "4");
	give();

	m.x.resources = (struct experiment_resources){ .want = GPUS_COUNT, .count = 4 };
	take(&m.x, s, NULL);
	assert_int_equal(got.fault, ALLOCATE_FAULT_NO_GPU);
	assert_string_equal(got.text, "resources.gpus: 4 given, but the 3 servers need 3 together");

	/* An attached server gets nothing; the only other one gets all. */
	m.server[0].url = m.server[1].url = "http://127.0.0.1:1";
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "0,1,2,3");
	assert_int_equal(got.a.server[0].n_gpus, 0);
	assert_int_equal(got.a.server[0].port, 0);
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "(not set)");
	assert_int_equal(got.a.server[2].n_gpus, 4);
	give();
	m.server[2].url = m.server[0].url;
	take(&m.x, s, NULL);
	assert_int_equal(got.a.n_gpus, 0);
	assert_int_equal(got.a.n_locks, 0);
	give();
	gpu_close(s);
}

static void busy_ones(void **state)
{
	char lines[256];
	struct gpu_set *s;
	struct lock held;
	struct made m;

	(void)state;
	snprintf(lines, sizeof lines, "count 5\ngpu 0 process %d 400\ngpu 1 used 20000000000\n"
		 "gpu 2 util 60\n", (int)getppid());
	s = fake_open(lines);
	hold(s, 3, &held);
	take(make(&m, 1), s, NULL);
	assert_string_equal(got.places, "4");
	give();
	take(make(&m, 2), s, NULL);
	assert_int_equal(got.fault, ALLOCATE_FAULT_GPUS_BUSY);
	assert_string_equal(allocate_fault_name(got.fault), "gpus busy");
	assert_begins(got.text, "2 GPUs are needed, but 1 of 5 is free: GPU 0 is used by process ");
	assert_non_null(strstr(got.text, "; GPU 1 has 60.8 of 80.0 GiB free, less than 90 %; "));
	assert_non_null(strstr(got.text, "GPU 2 is busy 60 % of the time with programs "
					"that are not visible from here"));
	assert_non_null(strstr(got.text, "; and 1 more"));
	assert_int_equal(locks_named("gpu-"), 1);

	m.x.resources.want = GPUS_LIST; /* one that is named is not replaced by another */
	m.x.resources.list = (const char *const[]){ "3", NULL };
	take(&m.x, s, NULL);
	assert_int_equal(got.fault, ALLOCATE_FAULT_GPUS_BUSY);
	assert_begins(got.text, "1 GPU is needed, but 0 of 1 are free: GPU 3 is held by exp_holder "
			    "(process ");
	assert_non_null(strstr(got.text, ", since 20"));
	/* How much must be free is the user's choice. */
	m.x.resources.list = (const char *const[]){ "1", NULL };
	m.x.resources.memory_free_min = 0.7;
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "1");
	give();
	lock_give(&held);
	gpu_close(s);
}

static void shared_ones(void **state)
{
	char lines[128];
	struct allocation first;
	struct gpu_set *s;
	struct made m, n;

	(void)state;
	snprintf(lines, sizeof lines, "count 1\ngpu 0 process %d 4000000000\n", (int)getppid());
	s = fake_open(lines);
	make(&m, 1);
	m.x.resources.is_shared = true;
	m.x.resources.memory_free_min = 0.5;
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "0");
	first = got.a;
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "0");
	give();
	fake_state("count 1\n");
	take(make(&n, 1), s, NULL);
	assert_int_equal(got.fault, ALLOCATE_FAULT_GPUS_BUSY);
	allocate_release(&first);
	take(&n.x, s, NULL);
	assert_string_equal(got.places, "0");
	first = got.a;
	take(&m.x, s, NULL);
	assert_int_equal(got.fault, ALLOCATE_FAULT_GPUS_BUSY);
	allocate_release(&first);
	fake_state("count 1\ngpu 0 used 50000000000\n");
	take(&m.x, s, NULL);
	assert_non_null(strstr(got.text, "32.9 of 80.0 GiB free, less than 50 %"));
	gpu_close(s);
}

static void split_ones(void **state)
{
	struct gpu_set *s = fake_open("count 2\ngpu 0 mig 1g.10gb 2\n");
	struct made m;

	(void)state;
	/* Whole ones as long as there are any. */
	take(make(&m, 1), s, NULL);
	assert_string_equal(got.places, "3");
	give();
	take(make(&m, 2), s, NULL);
	assert_string_equal(got.text, "2 GPUs are needed, but this machine has 1 that may be used");
	m.x.resources.want = GPUS_LIST;
	m.x.resources.list = (const char *const[]){ "0:1", NULL };
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "2");
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "MIG-a0000000-fa4e-4e5e-8000-000000000000-1");
	give();
	m.x.resources.list = (const char *const[]){ "0", NULL };
	take(&m.x, s, NULL);
	assert_string_equal(got.text, "resources.gpus: GPU 0 is split (MIG); expected its parts, as 0:0 or by "
			    "their UUIDs");
	gpu_close(s);

	s = fake_open("count 1\ngpu 0 mig 3g.40gb 2\ngpu 0 part 0 9000000000\n");
	take(make(&m, 1), s, NULL);
	assert_string_equal(got.places, "2"); /* the other one's memory is in use */
	give();
	take(make(&m, 2), s, NULL);
	assert_string_equal(got.text, "first needs 2 GPUs, but the GPUs here are split (MIG), and a program can "
			    "use only one part");
	gpu_close(s);
}

static void names_that_do_not_fit(void **state)
{
	static const struct { const char *list[3], *text; } cases[] = {
		{ { "9" }, "resources.gpus: this machine has no GPU 9 (number of GPUs: 4); expected an index, "
			   "a UUID or the start of a UUID" },
		{ { "GPU-a0" }, "resources.gpus: \"GPU-a0\" matches the UUIDs of several GPUs; write more of the "
				"UUID" },
		{ { "2", "GPU-a0002" }, "resources.gpus: GPU GPU-a0002 is named twice" },
		{ { "1" }, "resources.gpus: GPU 1 is not one of those that CUDA_VISIBLE_DEVICES=2,3 allows" },
	};
	struct gpu_set *s;
	struct made m;

	(void)state;
	setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
	s = fake_open("count 4\n");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		make(&m, 1);
		m.x.resources.want = GPUS_LIST;
		m.x.resources.list = cases[i].list;
		take(&m.x, s, NULL);
		assert_int_equal(got.fault, ALLOCATE_FAULT_NO_GPU);
		assert_string_equal(got.text, cases[i].text);
	}
	take(make(&m, 2), s, NULL);
	assert_string_equal(got.places, "2,3");
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "2,3");
	give();
	take(make(&m, 3), s, NULL);
	assert_string_equal(got.text, "3 GPUs are needed, but this machine has 2 that may be used");
	unsetenv("CUDA_VISIBLE_DEVICES");
	gpu_close(s);
}

static void none_at_all(void **state)
{
	struct gpu_set *s = fake_open("init 18\n");
	struct made m;

	(void)state;
	take(make(&m, 1), s, NULL);
	assert_int_equal(got.a.n_gpus, 0);
	assert_string_equal(got.a.note, "no GPU here (NVIDIA's driver does not start: Driver/library version "
			    "mismatch): the servers run without GPUs");
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "(not set)");
	give();
	make(&m, 1);
	m.x.resources = (struct experiment_resources){ .want = GPUS_COUNT, .count = 1 };
	take(&m.x, s, NULL);
	assert_string_equal(got.text, "1 GPU is needed, but this machine has 0 that may be used: NVIDIA's "
			    "driver does not start: Driver/library version mismatch");
	gpu_close(s);

	s = fake_open("");
	m.x.resources.want = GPUS_NONE;
	take(&m.x, s, NULL);
	assert_int_equal(got.a.n_gpus, 0);
	assert_null(got.a.note);
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "");
	give();
	gpu_close(s);
}

/* ---- AMD's ---- */

static void put(const char *name, const char *text)
{
	char path[256], *slash;

	snprintf(path, sizeof path, "%s/sys/class/%s", dir, name);
	slash = strrchr(path, '/');
	*slash = 0;
	assert_int_equal(file_mkdirs(path, NULL), 0);
	*slash = '/';
	assert_int_equal(file_write_atomic(path, str_of(text), NULL), 0);
}

static struct gpu_set *open_amd(void)
{
	static char path[64];

	snprintf(path, sizeof path, "%s/sys", dir);
	return gpu_open(&(struct gpu_opts){ .nvml = "", .sysfs = path });
}

static void amd(void **state)
{
	struct gpu_set *s;
	struct made m;

	(void)state;
	for (int i = 0; i < 3; i++) {
		static const char *const files[][2] = { { "vendor", "0x1002\n" }, { "numa_node", "0\n" },
			{ "mem_info_vram_total", "64000000000\n" }, { "mem_info_vram_used", "1000\n" } };
		char name[96], pci[40];

		for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
			snprintf(name, sizeof name, "drm/card%d/device/%s", i, files[k][0]);
			put(name, files[k][1]);
		}
		snprintf(name, sizeof name, "drm/card%d/device/uevent", i);
		snprintf(pci, sizeof pci, "PCI_SLOT_NAME=0000:%02x:00.0\n", i + 1);
		put(name, pci);
		snprintf(name, sizeof name, "kfd/kfd/topology/nodes/%d/gpu_id", i);
		snprintf(pci, sizeof pci, "%d\n", 100 + i);
		put(name, pci);
		snprintf(name, sizeof name, "kfd/kfd/topology/nodes/%d/properties", i);
		snprintf(pci, sizeof pci, "location_id %d\ndomain 0\n", (i + 1) << 8);
		put(name, pci);
	}
	s = open_amd();
	make(&m, 2);
	m.x.n_servers = 2;
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "0,1");
	assert_string_equal(env_of(0, "HIP_VISIBLE_DEVICES"), "0,1");
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "0,1");
	assert_string_equal(env_of(0, "ROCR_VISIBLE_DEVICES"), "(not set)");
	assert_string_equal(env_of(1, "HIP_VISIBLE_DEVICES"), "-1");
	give();
	gpu_close(s);

	/* Who uses one is known by the driver's own list. */
	put("kfd/kfd/proc/77777/vram_100", "5000000\n");
	setenv("ROCR_VISIBLE_DEVICES", "2,0,1", 1);
	s = open_amd();
	take(make(&m, 2), s, NULL);
	assert_string_equal(got.places, "1,2");
	assert_string_equal(env_of(0, "ROCR_VISIBLE_DEVICES"), "1,2");
	assert_string_equal(env_of(0, "HIP_VISIBLE_DEVICES"), "0,1");
	assert_string_equal(env_of(0, "CUDA_VISIBLE_DEVICES"), "0,1");
	give();
	take(make(&m, 3), s, NULL);
	assert_begins(got.text, "3 GPUs are needed, but 2 of 3 are free: GPU 0 is used by process 77777");
	unsetenv("ROCR_VISIBLE_DEVICES");
	gpu_close(s);
}

/* ---- ports ---- */

static void ports(void **state)
{
	struct gpu_set *s = fake_open("count 0\n");
	struct allocation first;
	struct made m;
	unsigned port;

	(void)state;
	make(&m, 0);
	m.x.n_servers = 2;
	take(&m.x, s, NULL);
	port = got.a.server[0].port;
	assert_true(got.a.server[1].port != port);
	give();
	m.server[1].port = port;
	m.x.resources.port_first = m.x.resources.port_last = port;
	take(&m.x, s, NULL);
	assert_int_equal(got.fault, ALLOCATE_FAULT_PORTS);
	assert_begins(got.text, "second: port ");
	assert_non_null(strstr(got.text, " is reserved by exp_test (process "));
	assert_int_equal(locks_named("port-"), 0);
	m.x.n_servers = 1;
	take(&m.x, s, NULL);
	assert_int_equal(got.a.server[0].port, port);
	first = got.a;
	take(&m.x, s, NULL);
	assert_begins(got.text, "first: port ");
	allocate_release(&first);
	gpu_close(s);
}

/* ---- waiting ---- */

struct said {
	char text[4][2048];
	int n;
	atomic_bool cancel;
};

static void say(void *self, const char *text)
{
	struct said *said = self;

	if (said->n < 4)
		snprintf(said->text[said->n], sizeof said->text[0], "%s", text);
	said->n++;
}

static void *give_late(void *lock)
{
	nanosleep(&(struct timespec){ 0, 300000000 }, NULL);
	lock_give(lock);
	return NULL;
}

static void *cancel_late(void *flag)
{
	nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	atomic_store((atomic_bool *)flag, true);
	return NULL;
}

static void waiting(void **state)
{
	struct gpu_set *s = fake_open("count 2\n");
	struct said said = { .n = 0 };
	struct experiment_hooks hooks = { .self = &said, .line = say, .cancel = &said.cancel };
	struct lock held = { 0 };
	pthread_t thread;
	struct made m;

	(void)state;
	hold(s, 1, &held);
	assert_int_equal(pthread_create(&thread, NULL, give_late, &held), 0);
	make(&m, 2);
	m.x.resources.wait_s = 60;
	take(&m.x, s, &hooks);
	pthread_join(thread, NULL);
	assert_string_equal(got.places, "0,1");
	assert_int_equal(said.n, 1);
	assert_begins(said.text[0], "Waiting for GPUs: 2 GPUs are needed, but 1 of 2 is free: GPU 1 is held "
			    "by exp_holder (process ");
	assert_null(strstr(said.text[0], "): ")); /* but not the holder's whole command */
	give();

	hold(s, 0, &held);
	m.x.resources.wait_s = 0.1;
	take(&m.x, s, &hooks);
	assert_int_equal(got.fault, ALLOCATE_FAULT_GPUS_BUSY);
	assert_non_null(strstr(got.text, "GPU 0 is held by exp_holder"));
	assert_non_null(strstr(got.text, "): "));
	assert_non_null(strstr(got.text, " (waited 0.1 s)"));
	m.x.resources.wait_s = INFINITY;
	assert_int_equal(pthread_create(&thread, NULL, cancel_late, &said.cancel), 0);
	take(&m.x, s, &hooks);
	pthread_join(thread, NULL);
	assert_int_equal(got.fault, ALLOCATE_FAULT_CANCELLED);
	assert_int_equal(locks_named("gpu-"), 1);
	assert_int_equal(locks_named("0"), 0);
	lock_give(&held);
	gpu_close(s);
}

/* A process that wants so many GPUs for a moment, and makes a file while it has them. */
static pid_t other(unsigned want, const char *made_name)
{
	pid_t pid = fork();
	char *path = file_join(dir, made_name);
	struct gpu_set *s;
	struct made m;

	if (pid) {
		free(path);
		return pid;
	}
	s = gpu_open(&(struct gpu_opts){ .nvml = fake_library("libfake-nvml.so"), .sysfs = dir });
	make(&m, want);
	m.x.resources.wait_s = 60;
	take(&m.x, s, NULL);
	if (got.text[0] || file_write_atomic(path, STR("x"), NULL) < 0)
		_exit(1);
	pause();
	_exit(0);
}

/* With something in it: who locks a file writes his name there after he has it. */
static void await_file(const char *name)
{
	struct stat st = { 0 };
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (int i = 0; i < 30000 && (stat(path, &st) < 0 || st.st_size == 0); i++)
		nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
	assert_true(st.st_size > 0);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void first_come(void **state)
{
	struct gpu_set *s = fake_open("count 3\n");
	struct lock held = { 0 };
	pid_t early;
	struct made m;

	(void)state;
	hold(s, 2, &held);
	early = other(3, "early");
	await_file("locks/queue/000000000001");
	/* Two are free, but there is one in front that waits for all three. */
	take(make(&m, 1), s, NULL);
	assert_int_equal(got.fault, ALLOCATE_FAULT_GPUS_BUSY);
	assert_begins(got.text, "1 GPU is needed, but 0 of 3 are free; 1 experiment is ahead in the queue, first "
			    "exp_test (process ");
	lock_give(&held);
	await_file("early");
	take(&m.x, s, NULL);
	assert_non_null(strstr(got.text, "GPU 0 and 2 more are held by exp_test (process "));
	end(early);
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "0");
	give();

	/*
	 * An experiment that was killed while it waited does not block others, nor does its file.
	 */
	hold(s, 2, &held);
	early = other(3, "never");
	await_file("locks/queue/000000000001");
	end(early);
	take(&m.x, s, NULL);
	assert_string_equal(got.places, "0");
	assert_int_equal(locks_named("0"), 0);
	give();
	lock_give(&held);
	gpu_close(s);
}

/* One that waits for a particular GPU does not keep others from the rest. */
static void names_apart(void **state)
{
	struct gpu_set *s = fake_open("count 2\n");
	struct lock held = { 0 };
	struct made m;
	pid_t early;

	(void)state;
	hold(s, 1, &held);
	early = fork();
	if (early == 0) {
		make(&m, 1);
		m.x.resources.want = GPUS_LIST;
		m.x.resources.list = (const char *const[]){ "1", NULL };
		m.x.resources.wait_s = 60;
		take(&m.x, s, NULL);
		_exit(0);
	}
	await_file("locks/queue/000000000001");
	take(make(&m, 1), s, NULL);
	assert_string_equal(got.places, "0");
	give();
	end(early);
	lock_give(&held);
	gpu_close(s);
}

/* Ten at once, one to three GPUs each on a machine of four: no GPU is given out twice. */
static void many_at_once(void **state)
{
	enum { PROCESSES = 10 };
	pid_t pid[PROCESSES];
	int status;

	(void)state;
	fake_state("count 4\n");
	for (int p = 0; p < PROCESSES; p++) {
		struct gpu_set *s;
		struct made m;

		pid[p] = fork();
		if (pid[p])
			continue;
		s = gpu_open(&(struct gpu_opts){ .nvml = fake_library("libfake-nvml.so"), .sysfs = dir });
		make(&m, 1 + (unsigned)p % 3);
		m.x.resources.wait_s = 100;
		take(&m.x, s, NULL);
		if (got.a.n_gpus != 1 + (size_t)p % 3)
			_exit(2);
		for (size_t i = 0; i <= got.a.n_gpus; i++) {
			char name[64], *path;
			int fd;

			/* The last turn is the port's. */
			snprintf(name, sizeof name, "in-use-%zu", i < got.a.n_gpus ?
				 got.a.server[0].place[i] : (size_t)got.a.server[0].port);
			path = file_join(dir, name);
			fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
			if (fd < 0)
				_exit(3);
			nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
			unlink(path);
		}
		give();
		_exit(0);
	}
	for (int p = 0; p < PROCESSES; p++) {
		assert_int_equal(waitpid(pid[p], &status, 0), pid[p]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(locks_named("gpu-"), 0);
	assert_int_equal(locks_named("0"), 0);
}

/* ---- afterwards ---- */

static void *free_late(void *ctx)
{
	(void)ctx;
	nanosleep(&(struct timespec){ 0, 250000000 }, NULL);
	fake_state("count 1\ngpu 0 used 1400000000\n");
	return NULL;
}

static void memory_comes_back(void **state)
{
	struct gpu_set *s = fake_open("count 1\ngpu 0 used 1000000000\n");
	struct said said = { .n = 0 };
	struct experiment_hooks hooks = { .self = &said, .warn = say, .cancel = &said.cancel };
	struct gpu_sample now;
	pthread_t thread;
	struct made m;

	(void)state;
	take(make(&m, 1), s, NULL);
	assert_true(allocate_settle(&got.a, s, &hooks));
	fake_state("count 1\ngpu 0 used 70000000000\n");
	assert_int_equal(pthread_create(&thread, NULL, free_late, NULL), 0);
	assert_true(allocate_settle(&got.a, s, &hooks));
	gpu_sample(s, 0, &now);
	assert_true(now.memory_used_bytes < 2e9);
	pthread_join(thread, NULL);
	fake_state("count 1\ngpu 0 used 70000000000\n");
	atomic_store(&said.cancel, true);
	assert_false(allocate_settle(&got.a, s, &hooks));
	assert_int_equal(said.n, 0);
	give();
	gpu_close(s);
}

static int make_locks(void **state)
{
	static char locks[64];

	if (make_dir(state) != 0)
		return -1;
	snprintf(locks, sizeof locks, "%s/locks", dir);
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("HIP_VISIBLE_DEVICES");
	unsetenv("ROCR_VISIBLE_DEVICES");
	return setenv("PROFLLM_LOCKS", locks, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_of_eight),
		cmocka_unit_test(those_that_reach_each_other),
		cmocka_unit_test(shares_of_servers),
		cmocka_unit_test(busy_ones),
		cmocka_unit_test(shared_ones),
		cmocka_unit_test(split_ones),
		cmocka_unit_test(names_that_do_not_fit),
		cmocka_unit_test(none_at_all), cmocka_unit_test(amd), cmocka_unit_test(ports),
		cmocka_unit_test(waiting), cmocka_unit_test(first_come),
		cmocka_unit_test(names_apart), cmocka_unit_test(many_at_once),
		cmocka_unit_test(memory_comes_back),
	};

	return cmocka_run_group_tests(tests, make_locks, remove_dir);
}
