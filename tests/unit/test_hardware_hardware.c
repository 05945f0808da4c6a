/* SPDX-License-Identifier: Apache-2.0 */
/* test_hardware_hardware.c - a machine made of files, and the one that the test runs on. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "core/json/read.h"
#include "host/hardware/hardware.h"
#include "fake_gpus.h"
#include "scratch.h"

static void put(const char *path, const char *text)
{
	char whole[300], folder[300];
	struct err e = { 0 };

	snprintf(whole, sizeof(whole), "%s%s", dir, path);
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(whole, '/') - whole), whole);
	assert_int_equal(file_mkdirs(folder, &e), 0);
	assert_int_equal(file_write_atomic(whole, str_of(text), &e), 0);
}

static struct json_value *look(const char *root, struct arena *a, struct buf *text)
{
	struct json_value *v;

	buf_reset(text);
	hardware_json(root, text);
	assert_int_equal(json_parse(a, buf_str(text), &v, NULL), 0);
	return v;
}

static const struct json_value *at(const struct json_value *v, const char *part, const char *key)
{
	const struct json_value *found = json_get(json_get(v, part), key);

	assert_non_null(found);
	return found;
}

static char sys_of_gpus[64];

static void make_machine(void)
{
	put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Example 9000\ncpu MHz\t\t: 2000.0\n"
			     "flags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\n"
			     "model name\t: Other\ncpu MHz\t\t: 3000.0\n");
	put("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 5 kB\nSwapTotal:       20 kB\n");
	put("/proc/self/cgroup", "0::/kubepods/pod1\n");
	put("/proc/sys/kernel/osrelease", "6.1.0-test\n");
	put("/etc/os-release", "ID=x\nPRETTY_NAME=\"Example Linux 12\"\n");
	put("/sys/fs/cgroup/kubepods/cpu.max", "250000 100000\n");
	put("/sys/fs/cgroup/kubepods/pod1/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/kubepods/memory.max", "max\n");
	put("/sys/fs/cgroup/kubepods/pod1/memory.max", "512000\n");
	put("/sys/devices/system/cpu/online", "0-2,4\n");
	for (int i = 0; i < 5; i++) {
		char path[128], text[32];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/core_id", i);
		snprintf(text, sizeof(text), "%d\n", i / 2);
		put(path, text);
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
		put(path, i < 4 ? "0\n" : "1\n");
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", i);
		put(path, i == 4 ? "powersave\n" : "performance\n");
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", i);
		put(path, "3500000\n");
	}
	put("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
	put("/sys/devices/system/node/online", "0-1\n");
	put("/sys/devices/system/node/node0/cpulist", "0-2\n");
	put("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       600 kB\n");
	put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
	put("/sys/class/net/lo/operstate", "unknown\n");
	put("/sys/class/net/eth1/operstate", "down\n");
	put("/sys/class/net/eth0/operstate", "up\n");
	put("/sys/class/net/eth0/speed", "100000\n");
	put("/sys/class/net/eth1/speed", "-1\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
	put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
	put("/sys/class/dmi/id/product_name", "Standard PC\n");
}

static void test_machine(void **state)
{
	struct buf text = { 0 };
	struct arena a = { 0 };
	const struct json_value *v, *list;

	(void)state;
	make_machine();
	v = look(dir, &a, &text);
	assert_string_equal(at(v, "cpu", "model")->text.p, "Example 9000");
	assert_int_equal(at(v, "cpu", "threads")->integer, 4);
	assert_int_equal(at(v, "cpu", "sockets")->integer, 2);
	assert_int_equal(at(v, "cpu", "cores")->integer, 3);
	assert_true(at(v, "cpu", "quota")->real == 2.5);
	assert_string_equal(at(v, "cpu", "governor")->text.p, "mixed");
	assert_true(at(v, "cpu", "clock_mhz")->real == 2500);
	assert_true(at(v, "cpu", "clock_max_mhz")->real == 3500);
	assert_int_equal(at(v, "cpu", "boost")->kind, JSON_FALSE);
	list = at(v, "cpu", "numa_nodes");
	assert_int_equal(list->count, 2);
	assert_int_equal(json_int(json_get(&list->item[0], "memory_bytes"), 0), 600 * 1024);
	assert_int_equal(json_get(&list->item[1], "cpus")->kind, JSON_NULL);
	assert_int_equal(at(v, "memory", "total_bytes")->integer, 1000 * 1024);
	assert_int_equal(at(v, "memory", "limit_bytes")->integer, 512000);
	assert_int_equal(at(v, "memory", "swap_bytes")->integer, 20 * 1024);
	assert_string_equal(at(v, "memory", "hugepages")->text.p, "madvise");
	assert_string_equal(at(v, "os", "name")->text.p, "Example Linux 12");
	assert_string_equal(at(v, "os", "kernel")->text.p, "6.1.0-test");
	list = json_get(v, "network");
	assert_int_equal(list->count, 2);
	assert_string_equal(json_get(&list->item[0], "name")->text.p, "eth0");
	assert_int_equal(json_int(json_get(&list->item[0], "speed_mbit"), 0), 100000);
	assert_int_equal(json_get(&list->item[1], "speed_mbit")->kind, JSON_NULL);
	assert_int_equal(json_get(&list->item[1], "is_up")->kind, JSON_FALSE);
	assert_string_equal(json_get(v, "rdma")->item[0].text.p, "mlx5_0: 200 Gb/sec (4X HDR)");
	assert_string_equal(json_get(v, "container")->text.p, "kubernetes");
	assert_string_equal(json_get(v, "virtualization")->text.p, "QEMU Standard PC");
	arena_release(&a);
	buf_release(&text);
}

/* Files with unexpected content: nothing is reported, nothing fails. */
static void test_nonsense(void **state)
{
	static const char *const paths[] = {
		"/proc/cpuinfo", "/proc/meminfo", "/proc/self/cgroup", "/etc/os-release",
		"/sys/devices/system/cpu/online", "/sys/devices/system/node/online",
		"/sys/kernel/mm/transparent_hugepage/enabled", "/sys/class/net/eth0/speed",
		"/sys/fs/cgroup/kubepods/pod1/memory.max",
	};
	static const char *const texts[] = {
		"", "\n", "9-1,x,-5", ":::::", "99999999999999999999", "0-99999999999,1", "[", "]",
		"PRETTY_NAME=\"", "MemTotal: -5 kB", "0::",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct buf text = { 0 };
		struct arena a = { 0 };

		for (size_t k = 0; k < sizeof(paths) / sizeof(*paths); k++)
			put(paths[k], texts[i]);
		assert_int_equal(at(look(dir, &a, &text), "memory", "total_bytes")->kind,
				 JSON_NULL);
		arena_release(&a);
		buf_release(&text);
	}
}

static void test_nothing(void **state)
{
	struct buf text = { 0 };
	struct arena a = { 0 };
	const struct json_value *v;

	(void)state;
	v = look("/there-is-no-such-root", &a, &text);
	assert_int_equal(at(v, "cpu", "model")->kind, JSON_NULL);
	assert_int_equal(at(v, "cpu", "threads")->kind, JSON_NULL);
	assert_int_equal(json_get(v, "network")->count, 0);
	arena_release(&a);
	buf_release(&text);
}

/* NVIDIA's GPUs and AMD's, with their links, and parts. */
static void test_gpus(void **state)
{
	struct buf text = { 0 };
	struct arena a = { 0 };
	const struct json_value *v, *g;
	const char *sysfs = getenv("PROFLLM_SYSFS");

	(void)state;
	put("/cards/class/drm/card1/device/vendor", "0x1002\n");
	put("/cards/class/drm/card1/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c1:00.0\n");
	put("/cards/class/drm/card1/device/mem_info_vram_total", "206141652992\n");
	put("/cards/class/drm/card1/device/product_name", "AMD Instinct MI300X\n");
	snprintf(sys_of_gpus, sizeof(sys_of_gpus), "%s/cards", dir);
	setenv("PROFLLM_SYSFS", sys_of_gpus, 1);
	setenv("PROFLLM_NVML", fake_library("libfake-nvml.so"), 1);
	fake_state("count 2\ngpu 1 name NVIDIA H100 80GB HBM3\ngpu 1 limit 650\ngpu 1 numa 3\n");
	v = look("/there-is-no-such-root", &a, &text);
	g = json_get(v, "gpus");
	assert_int_equal(g->count, 3);
	assert_int_equal(json_get(v, "gpu_note")->kind, JSON_NULL);
	assert_string_equal(json_get(&g->item[0], "vendor")->text.p, "nvidia");
	assert_int_equal(json_int(json_get(&g->item[1], "index"), -1), 1);
	assert_string_equal(json_get(&g->item[1], "name")->text.p, "NVIDIA H100 80GB HBM3");
	assert_string_equal(json_get(&g->item[1], "uuid")->text.p, "GPU-a0001111-fa4e-4e5e-8000-000000000001");
	assert_string_equal(json_get(&g->item[1], "pci")->text.p, "0000:11:00.0");
	assert_string_equal(json_get(&g->item[1], "driver")->text.p, "550.54.14");
	assert_string_equal(json_get(&g->item[1], "cuda")->text.p, "12.4");
	assert_string_equal(json_get(&g->item[1], "compute_capability")->text.p, "9.0");
	assert_int_equal(json_int(json_get(&g->item[1], "numa"), -1), 3);
	assert_true(json_real(json_get(&g->item[1], "power_limit_w"), -1) == 650);
	assert_true(json_real(json_get(&g->item[1], "memory_bytes"), -1) == 80ll << 30);
	assert_true(json_real(json_get(&g->item[1], "sm_clock_max_mhz"), -1) == 1980);
	assert_int_equal(json_get(&g->item[1], "mig_profile")->kind, JSON_NULL);
	assert_int_equal(json_get(&g->item[1], "links")->count, 3);
	assert_string_equal(json_get(&g->item[1], "links")->item[0].text.p, "nvlink");
	assert_string_equal(json_get(&g->item[1], "links")->item[1].text.p, "self");
	assert_string_equal(json_get(&g->item[2], "vendor")->text.p, "amd");
	assert_string_equal(json_get(&g->item[2], "name")->text.p, "AMD Instinct MI300X");
	assert_true(json_real(json_get(&g->item[2], "memory_bytes"), -1) == 206141652992);
	assert_int_equal(json_get(&g->item[2], "compute_capability")->kind, JSON_NULL);
	fake_state("count 1\ngpu 0 mig 1g.10gb 2\n");
	v = look("/there-is-no-such-root", &a, &text);
	g = json_get(v, "gpus");
	assert_int_equal(g->count, 4);
	assert_string_equal(json_get(&g->item[1], "mig_profile")->text.p, "1g.10gb");
	assert_int_equal(json_get(&g->item[1], "links")->count, 0);
	assert_int_equal(json_get(&g->item[0], "links")->count, 2); /* parts have none */
	assert_string_equal(json_get(&g->item[0], "links")->item[1].text.p, "unknown");
	setenv("PROFLLM_NVML", "", 1);
	if (sysfs)
		setenv("PROFLLM_SYSFS", sysfs, 1);
	else
		unsetenv("PROFLLM_SYSFS");
	arena_release(&a);
	buf_release(&text);
}

/* The machine itself has a processor, memory and a kernel. */
static void test_here(void **state)
{
	struct buf text = { 0 };
	struct arena a = { 0 };
	const struct json_value *v;

	(void)state;
	if (access("/sys/devices/system/cpu", R_OK) != 0) {
		print_message("# /sys is not mounted\n");
		skip();
	}
	v = look("", &a, &text);
	assert_true(json_int(at(v, "cpu", "threads"), 0) >= 1);
	assert_true(json_int(at(v, "cpu", "allowed"), 0) >= 1);
	assert_true(json_int(at(v, "memory", "total_bytes"), 0) > 1 << 20);
	assert_int_equal(at(v, "os", "kernel")->kind, JSON_STRING);
	arena_release(&a);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machine), cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_here),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
