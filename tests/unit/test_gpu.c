/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu.c - GPUs as their drivers tell of them, and what is made of one that does not. */
/* threads: yes */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <sys/stat.h>
#include <time.h>

#include "fake_gpus.h"
#include "scratch.h"

#include "core/base/clock.h"
#include "core/base/file.h"
#include "host/gpu/gpu.h"

#define GIB 1073741824.0

static void a_machine_without_gpus(void **state)
{
	struct gpu_opts o = { .nvml = "libprofllm-no-such.so.1", .sysfs = dir };
	struct gpu_set *s = gpu_open(&o);
	struct gpu_sample sample;
	size_t n = 7;

	(void)state;
	gpu_list(s, &n);
	assert_int_equal(n, 0);
	assert_string_equal(gpu_note(s), "");
	assert_int_equal(gpu_find(s, "0"), -1);
	gpu_sample(s, 0, &sample);
	assert_true(isnan(sample.power_w));
	assert_int_equal(gpu_processes(s, 0, NULL, 0), 0);
	gpu_close(s);
	gpu_close(NULL);
}

static void what_a_gpu_is(void **state)
{
	struct gpu_set *s = fake_open("count 2\ngpu 1 name NVIDIA H100 80GB HBM3\n"
				      "gpu 1 limit 650\ngpu 1 numa 3\n");
	const struct gpu *g;
	size_t n;

	(void)state;
	g = gpu_list(s, &n);
	assert_int_equal(n, 2);
	assert_int_equal(g[1].maker, GPU_NVIDIA);
	assert_int_equal(g[1].index, 1);
	assert_int_equal(g[1].part, -1);
	assert_false(g[1].is_split);
	assert_string_equal(g[1].name, "NVIDIA H100 80GB HBM3");
	assert_string_equal(g[1].uuid, "GPU-a0001111-fa4e-4e5e-8000-000000000001");
	assert_string_equal(g[1].pci, "0000:11:00.0");
	assert_string_equal(g[1].driver, "550.54.14");
	assert_string_equal(g[1].cuda, "12.4");
	assert_int_equal(g[1].capability_major, 9);
	assert_int_equal(g[1].capability_minor, 0);
	assert_int_equal(g[0].numa, 0);
	assert_int_equal(g[1].numa, 3);
	assert_true(g[1].memory_bytes == 80 * GIB);
	assert_true(g[1].power_limit_w == 650);
	assert_true(g[1].sm_clock_max_mhz == 1980);
	gpu_close(s);
}

static void what_it_does(void **state)
{
	struct gpu_set *s = fake_open("count 1\ngpu 0 used 1000000000\ngpu 0 util 37\n"
				      "gpu 0 membusy 12\ngpu 0 power 350.5\ngpu 0 temp 61\n"
				      "gpu 0 clock 1410\ngpu 0 memclock 2000\n");
	struct gpu_sample a, b;
	int64_t began_ns, took_ns;

	(void)state;
	began_ns = clock_mono_ns();
	gpu_sample(s, 0, &a);
	assert_true(a.memory_used_bytes == 1e9);
	assert_true(a.memory_free_bytes == 80 * GIB - 600000000 - 1e9);
	assert_true(a.utilization_percent == 37);
	assert_true(a.memory_busy_percent == 12);
	assert_true(a.power_w == 350.5);
	assert_true(a.temperature_c == 61);
	assert_true(a.sm_clock_mhz == 1410);
	assert_true(a.memory_clock_mhz == 2000);
	nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
	gpu_sample(s, 0, &b);
	took_ns = clock_mono_ns() - began_ns;
	/* 350.5 W over at least 50 ms and at most the time that passed here. */
	assert_true(b.energy_j - a.energy_j >= 350.5 * 0.05 - 0.002);
	assert_true(b.energy_j - a.energy_j <= 350.5 * 1e-9 * (double)took_ns + 0.002);
	/* It is read again each time. */
	fake_state("count 1\ngpu 0 util 3\n");
	gpu_sample(s, 0, &b);
	assert_true(b.utilization_percent == 3);
	gpu_close(s);
}

static void dcgm_state(const char *lines)
{
	char *path = file_join(dir, "dcgm");

	setenv("FAKE_DCGM_STATE", path, 1);
	assert_int_equal(file_write_atomic(path, str_of(lines), NULL), 0);
	free(path);
}

/* DCGM has its own order of GPUs: they are matched by their UUIDs. */
static void what_dcgm_adds(void **state)
{
	struct gpu_opts o = { .dcgm = "" };
	struct gpu_set *s = fake_open("count 2\ngpu 0 util 37\n");
	struct gpu_sample a;
	char library[4096];

	(void)state;
	snprintf(library, sizeof library, "%s", fake_library("libfake-dcgm.so"));
	dcgm_state("count 2\n0 1002 0.5\n0 1004 0.25\n0 1005 0.75\n0 1009 1000000\n"
		   "0 1010 2000000\n0 1011 3000000\n0 1012 9223372036854775792\n1 1002 0.125\n"
		   "1 1004 140737488355328\n");
	gpu_profile(s, &o);
	gpu_sample(s, 0, &a);
	assert_true(a.utilization_percent == 37 && isnan(a.sm_active_percent));
	o.dcgm = library;
	gpu_profile(s, &o);
	gpu_sample(s, 0, &a);
	assert_true(a.utilization_percent == 37);
	assert_true(a.sm_active_percent == 50 && a.tensor_active_percent == 25);
	assert_true(a.dram_active_percent == 75);
	assert_true(a.pcie_sent_bytes_per_s == 1e6 && a.pcie_received_bytes_per_s == 2e6);
	assert_true(a.nvlink_sent_bytes_per_s == 3e6);
	assert_true(isnan(a.nvlink_received_bytes_per_s)); /* a blank of DCGM's */
	gpu_sample(s, 1, &a);
	assert_true(a.sm_active_percent == 12.5);
	assert_true(isnan(a.tensor_active_percent) && isnan(a.dram_active_percent));
	gpu_close(s);
	/* The library without its host engine. */
	s = fake_open("count 1\n");
	dcgm_state("count 1\ndown\n0 1002 0.5\n");
	gpu_profile(s, &o);
	gpu_sample(s, 0, &a);
	assert_true(isnan(a.sm_active_percent));
	assert_string_equal(gpu_note(s), "");
	gpu_close(s);
}

static void who_uses_it(void **state)
{
	char lines[256];
	struct gpu_process p[8];
	struct gpu_set *s;

	(void)state;
	snprintf(lines, sizeof lines, "gpu 2 process %d 500000000\ngpu 2 process %d -1\n"
		 "gpu 2 process 2000000000 5\n", (int)getpid(), (int)getppid());
	s = fake_open(lines);
	assert_int_equal(gpu_processes(s, 0, p, 8), 0);
	assert_int_equal(gpu_processes(s, 2, p, 8), 2);
	assert_int_equal(p[0].pid, getpid());
	assert_true(p[0].memory_bytes == 5e8);
	assert_int_equal(p[1].pid, getppid());
	assert_true(isnan(p[1].memory_bytes));
	assert_int_equal(gpu_processes(s, 2, p, 1), 2);
	gpu_close(s);
}

static void parts_of_a_gpu(void **state)
{
	struct gpu_set *s = fake_open("count 3\ngpu 1 mig 1g.10gb 3\ngpu 1 part 2 4000000000\n");
	const struct gpu *g;
	struct gpu_sample sample;
	size_t n;

	(void)state;
	g = gpu_list(s, &n);
	assert_int_equal(n, 6);
	assert_true(g[1].is_split);
	assert_false(g[0].is_split || g[5].is_split);
	for (size_t i = 2; i < 5; i++) {
		assert_int_equal(g[i].part, i - 2);
		assert_int_equal(g[i].index, 1);
		assert_string_equal(g[i].parent, g[1].uuid);
		assert_string_equal(g[i].profile, "1g.10gb");
		assert_string_equal(g[i].pci, g[1].pci);
		assert_memory_equal(g[i].uuid, "MIG-", 4);
	}
	assert_int_equal(g[5].index, 2);
	gpu_sample(s, 4, &sample);
	assert_true(sample.memory_used_bytes == 4e9);
	assert_true(isnan(sample.utilization_percent));
	assert_true(isnan(sample.energy_j));
	assert_int_equal(gpu_find(s, "1:2"), 4);
	assert_int_equal(gpu_find(s, "1:3"), -1);
	assert_int_equal(gpu_find(s, g[3].uuid), 3);
	gpu_close(s);
}

static void links(void **state)
{
	struct gpu_set *s = fake_open("count 6\ngpu 5 numa -1\ngpu 5 board 7\n"
				      "gpu 3 fail nvmlDeviceGetP2PStatus 3\n"
				      "gpu 4 fail nvmlDeviceGetP2PStatus 3\n"
				      "gpu 4 fail nvmlDeviceGetTopologyCommonAncestor 3\n");

	(void)state;
	assert_int_equal(gpu_link(s, 0, 1), GPU_LINK_DIRECT);
	assert_int_equal(gpu_link(s, 3, 1), GPU_LINK_NODE);
	assert_int_equal(gpu_link(s, 0, 4), GPU_LINK_SYSTEM);
	assert_int_equal(gpu_link(s, 4, 5), GPU_LINK_UNKNOWN);
	assert_int_equal(gpu_link(s, 4, 0), GPU_LINK_SYSTEM);
	assert_int_equal(gpu_link(s, 0, 0), GPU_LINK_UNKNOWN);
	assert_int_equal(gpu_link(s, 0, 9), GPU_LINK_UNKNOWN);
	gpu_close(s);
}

static void names(void **state)
{
	struct gpu_set *s = fake_open("count 3\n");

	(void)state;
	assert_int_equal(gpu_find(s, "2"), 2);
	assert_int_equal(gpu_find(s, "3"), -1);
	assert_int_equal(gpu_find(s, "-1"), -1);
	assert_int_equal(gpu_find(s, ""), -1);
	assert_int_equal(gpu_find(s, "GPU-"), -1);
	assert_int_equal(gpu_find(s, "GPU-a0"), -2);
	assert_int_equal(gpu_find(s, "gpu-a0002"), 2);
	assert_int_equal(gpu_find(s, "GPU-a0000000-fa4e-4e5e-8000-000000000000"), 0);
	assert_int_equal(gpu_find(s, "GPU-a0000000-fa4e-4e5e-8000-0000000000000"), -1);
	gpu_close(s);
}

/* A driver that fails, in part or as a whole, costs what it did not tell and nothing else. */
static void drivers_that_fail(void **state)
{
	struct gpu_set *s = fake_open("count 2\ngpu 1 fail nvmlDeviceGetPowerUsage 3\n"
				      "gpu 1 fail nvmlDeviceGetMemoryInfo_v2 15\n"
				      "gpu 1 fail nvmlDeviceGetMemoryInfo 15\n"
				      "gpu 1 fail nvmlDeviceGetUUID 15\n"
				      "gpu 1 fail nvmlDeviceGetComputeRunningProcesses_v3 4\n"
				      "gpu 1 fail nvmlDeviceGetMigMode 3\n");
	struct gpu_sample sample;
	struct gpu_process p[1];
	const struct gpu *g;
	size_t n;

	(void)state;
	g = gpu_list(s, &n);
	assert_int_equal(n, 2);
	assert_string_equal(g[1].uuid, "");
	assert_true(isnan(g[1].memory_bytes));
	gpu_sample(s, 1, &sample);
	assert_true(isnan(sample.power_w) && isnan(sample.memory_used_bytes));
	assert_true(sample.temperature_c == 40);
	assert_int_equal(gpu_processes(s, 1, p, 1), 0);
	gpu_close(s);

	s = fake_open("count 2\ngpu 0 fail nvmlDeviceGetHandleByIndex_v2 15\n");
	g = gpu_list(s, &n);
	assert_int_equal(n, 1);
	assert_int_equal(g[0].index, 1);
	assert_string_equal(gpu_note(s), "GPU 0 is not available: GPU is lost");
	gpu_sample(s, 0, &sample);
	assert_true(sample.temperature_c == 40);
	gpu_close(s);

	s = fake_open("init 18\n");
	gpu_list(s, &n);
	assert_int_equal(n, 0);
	assert_string_equal(gpu_note(s),
			    "NVIDIA's driver does not start: Driver/library version mismatch");
	gpu_close(s);
}

static void a_driver_that_hangs(void **state)
{
	struct gpu_opts o = { .nvml = fake_library("libfake-nvml.so"), .sysfs = dir,
			      .timeout_s = 0.05 };
	struct gpu_set *s;
	size_t n;

	(void)state;
	fake_state("hang init\n");
	s = gpu_open(&o);
	gpu_list(s, &n);
	assert_int_equal(n, 0);
	assert_string_equal(gpu_note(s), "NVIDIA's driver does not answer within 0.05 s");
	gpu_close(s);
}

static void libraries_of_other_kinds(void **state)
{
	struct gpu_opts o = { .nvml = fake_library("libfake-nvml-old.so"), .sysfs = dir };
	char lines[80], path[64];
	struct gpu_sample sample;
	struct gpu_process p[2];
	struct gpu_set *s;
	size_t n;

	(void)state;
	snprintf(lines, sizeof lines, "gpu 1 process %d 77\ngpu 1 used 1000\n", (int)getpid());
	fake_state(lines);
	s = gpu_open(&o);
	gpu_list(s, &n);
	assert_int_equal(n, 8);
	gpu_sample(s, 1, &sample);
	assert_true(sample.memory_used_bytes == 1077);
	assert_true(isnan(sample.energy_j));
	assert_int_equal(gpu_processes(s, 1, p, 2), 1);
	assert_int_equal(p[0].pid, getpid());
	assert_true(p[0].memory_bytes == 77);
	assert_int_equal(gpu_link(s, 0, 1), GPU_LINK_UNKNOWN);
	gpu_close(s);

	/* A library, but another; and a file that is none. */
	o.nvml = "libm.so.6";
	s = gpu_open(&o);
	assert_string_equal(gpu_note(s), "libm.so.6 has not the functions of NVML");
	gpu_close(s);
	snprintf(path, sizeof path, "%s/none.so", dir);
	o.nvml = path;
	s = gpu_open(&o);
	assert_non_null(strstr(gpu_note(s), "none.so"));
	gpu_close(s);
}

/* What the variables leave, as one letter for each GPU or part of the machine. */
static void visible(void **state)
{
	static const struct { const char *text, *left; } cases[] = {
		{ NULL, "+++++++" },
		{ "", "......." },
		{ "-1", "......." },
		{ "2,3", "..+++++" }, /* a split GPU brings its parts */
		{ "0", "+......" },
		{ "3, 0", "+.....+" },
		{ "0,9,3", "+......" },
		{ "0,0,3", "+......" },
		{ "NoDevFiles", "......." },
		{ "GPU-a0003", "......+" },
		{ "GPU-a000", "......." },
		{ "gpu-A0003", "......+" },
		{ "MIG-a0002222-fa4e-4e5e-8000-000000000002-1", "....+.." },
		{ "2", "..++++." },
	};
	struct gpu_set *s;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char left[16] = "";
		const struct gpu *g;
		size_t n;

		if (cases[i].text)
			setenv("CUDA_VISIBLE_DEVICES", cases[i].text, 1);
		else
			unsetenv("CUDA_VISIBLE_DEVICES");
		s = fake_open("count 4\ngpu 2 mig 1g.10gb 3\n");
		g = gpu_list(s, &n);
		assert_int_equal(n, 7);
		for (size_t k = 0; k < n; k++)
			left[k] = g[k].is_allowed ? '+' : '.';
		if (strcmp(left, cases[i].left) != 0)
			fail_msg("%s: %s, not %s", cases[i].text, left, cases[i].left);
		gpu_close(s);
	}
	unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---- AMD's ---- */

static void put(const char *name, const char *text)
{
	char path[256], *slash;
	FILE *f;

	snprintf(path, sizeof path, "%s/sys/%s", dir, name);
	slash = strrchr(path, '/');
	*slash = 0;
	assert_int_equal(file_mkdirs(path, NULL), 0);
	*slash = '/';
	f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

static void put_card(int number, const char *file, const char *text)
{
	char name[128];

	snprintf(name, sizeof name, "class/drm/card%d/device/%s", number, file);
	put(name, text);
}

static struct gpu_set *open_sysfs(void)
{
	static char path[64];
	struct gpu_opts o = { .nvml = "", .sysfs = path };

	snprintf(path, sizeof path, "%s/sys", dir);
	return gpu_open(&o);
}

static void put_machine(void)
{
	put_card(0, "vendor", "0x1a03\n"); /* a board's console */
	put("class/drm/card1-DP-1/status", "disconnected\n");
	for (int i = 1; i < 3; i++) {
		put_card(i, "vendor", "0x1002\n");
		put_card(i, "mem_info_vram_total", "206141652992\n");
		put_card(i, "mem_info_vram_used", i == 1 ? "1000000\n" : "300000\n");
		put_card(i, "uevent", i == 1 ? "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c1:00.0\n" :
			 "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:05:00.0\n");
		put_card(i, "unique_id", i == 1 ? "f3f1b56ca0c1e6b9\n" : "00aa\n");
		put_card(i, "numa_node", i == 1 ? "1\n" : "0\n");
	}
	put_card(1, "product_name", "AMD Instinct MI300X\n");
	put_card(1, "gpu_busy_percent", "93\n");
	put_card(1, "pp_dpm_sclk", "0: 500Mhz\n1: 1700Mhz *\n2: 2100Mhz\n");
	put_card(1, "pp_dpm_mclk", "0: 900Mhz *\n1: 1300Mhz\n");
	put_card(1, "hwmon/hwmon4/power1_average", "412000000\n");
	put_card(1, "hwmon/hwmon4/power1_cap", "750000000\n");
	put_card(1, "hwmon/hwmon4/energy1_input", "99000000\n");
	put_card(1, "hwmon/hwmon4/temp1_input", "55000\n");
	put_card(2, "hwmon/hwmon5/power1_input", "90000000\n");
	put("module/amdgpu/version", "6.7.0\n");
	put("class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
	/* Node 3 is at c1:00.0, node 10 at 05:00.0: HIP counts the former first. */
	put("class/kfd/kfd/topology/nodes/3/gpu_id", "5005\n");
	put("class/kfd/kfd/topology/nodes/3/properties", "cpu_cores_count 0\nlocation_id 49408\n"
	    "domain 0\n");
	put("class/kfd/kfd/topology/nodes/10/gpu_id", "7007\n");
	put("class/kfd/kfd/topology/nodes/10/properties", "location_id 1280\ndomain 0\n");
	put("class/kfd/kfd/proc/1234/vram_5005", "123456\n");
	put("class/kfd/kfd/proc/1234/vram_7007", "0\n");
}

static void amd(void **state)
{
	struct gpu_process p[4];
	struct gpu_sample sample;
	const struct gpu *g;
	struct gpu_set *s;
	size_t n;

	(void)state;
	put_machine();
	s = open_sysfs();
	g = gpu_list(s, &n);
	assert_int_equal(n, 2);
	assert_int_equal(g[0].maker, GPU_AMD);
	assert_string_equal(g[0].pci, "0000:c1:00.0");
	assert_string_equal(g[0].uuid, "GPU-f3f1b56ca0c1e6b9");
	assert_string_equal(g[0].name, "AMD Instinct MI300X");
	assert_string_equal(g[0].driver, "6.7.0");
	assert_int_equal(g[0].numa, 1);
	assert_true(g[0].memory_bytes == 206141652992.0);
	assert_true(g[0].power_limit_w == 750);
	assert_true(g[0].sm_clock_max_mhz == 2100);
	assert_string_equal(g[1].name, "AMD GPU");
	gpu_sample(s, 0, &sample);
	assert_true(sample.utilization_percent == 93);
	assert_true(sample.memory_used_bytes == 1e6);
	assert_true(sample.sm_clock_mhz == 1700 && sample.memory_clock_mhz == 900);
	assert_true(fabs(sample.power_w - 412) < 1e-9 && fabs(sample.energy_j - 99) < 1e-9);
	assert_true(fabs(sample.temperature_c - 55) < 1e-9);
	gpu_sample(s, 1, &sample);
	assert_true(fabs(sample.power_w - 90) < 1e-9);
	assert_true(isnan(sample.energy_j) && isnan(sample.utilization_percent));
	assert_int_equal(gpu_processes(s, 0, p, 4), 1);
	assert_int_equal(p[0].pid, 1234);
	assert_int_equal(gpu_processes(s, 1, p, 4), 0);
	assert_int_equal(gpu_link(s, 0, 1), GPU_LINK_SYSTEM);
	gpu_close(s);

	/* HIP counts what ROCR leaves. */
	setenv("ROCR_VISIBLE_DEVICES", "1", 1);
	setenv("HIP_VISIBLE_DEVICES", "0", 1);
	s = open_sysfs();
	g = gpu_list(s, &n);
	assert_false(g[0].is_allowed);
	assert_true(g[1].is_allowed);
	gpu_close(s);
	setenv("HIP_VISIBLE_DEVICES", "1", 1);
	s = open_sysfs();
	g = gpu_list(s, &n);
	assert_false(g[0].is_allowed || g[1].is_allowed);
	gpu_close(s);
	unsetenv("ROCR_VISIBLE_DEVICES");
	unsetenv("HIP_VISIBLE_DEVICES");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_without_gpus),
		cmocka_unit_test(what_a_gpu_is),
		cmocka_unit_test(what_it_does),
		cmocka_unit_test(what_dcgm_adds),
		cmocka_unit_test(who_uses_it),
		cmocka_unit_test(parts_of_a_gpu),
		cmocka_unit_test(links),
		cmocka_unit_test(names),
		cmocka_unit_test(drivers_that_fail),
		cmocka_unit_test(a_driver_that_hangs),
		cmocka_unit_test(libraries_of_other_kinds),
		cmocka_unit_test(visible),
		cmocka_unit_test(amd),
	};

	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("HIP_VISIBLE_DEVICES");
	unsetenv("ROCR_VISIBLE_DEVICES");
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
