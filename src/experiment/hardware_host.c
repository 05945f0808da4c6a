/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/hardware_host.c - network cards, and the walls that this program itself is behind. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "experiment/hardware_parts.h"

/* ---- network ---- */

static int no_dots(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Names in a folder, sorted; free with free_names. */
static size_t names_in(const struct hardware *h, const char *folder, struct dirent ***out)
{
	struct buf path = { 0 };
	int n;

	buf_printf(&path, "%s%s", h->root, folder);
	n = scandir(path.data, out, no_dots, alphasort);
	buf_release(&path);
	return n > 0 ? (size_t)n : 0;
}

static void free_names(struct dirent **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	if (n)
		free(names);
}

/* The last part of what a link leads to. */
static void link_word(const struct hardware *h, const char *path, char out[static 256])
{
	struct buf whole = { 0 };
	ssize_t n;
	char *slash;

	buf_printf(&whole, "%s%s", h->root, path);
	n = readlink(whole.data, out, 255);
	out[n > 0 ? n : 0] = 0;
	slash = strrchr(out, '/');
	if (slash)
		memmove(out, slash + 1, strlen(slash));
	buf_release(&whole);
}

static void put_card(const struct hardware *h, const char *name, struct json_writer *w)
{
	char path[400], driver[256], state[HARDWARE_WORD_BYTES];
	int64_t speed;

	json_begin_object(w);
	json_member_text(w, "name", name);
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	hardware_put_count(w, "speed_mbit", hardware_number(h, &speed, path) ? speed : -1);
	snprintf(path, sizeof(path), "/sys/class/net/%s/device/driver", name);
	link_word(h, path, driver);
	hardware_put_word(w, "driver", driver);
	snprintf(path, sizeof(path), "/sys/class/net/%s/operstate", name);
	hardware_word(h, state, path);
	json_member_bool(w, "is_up", strcmp(state, "up") == 0);
	json_end_object(w);
}

/* "mlx5_0: 200 Gb/sec (4X HDR)" */
static void put_rdma(const struct hardware *h, struct json_writer *w)
{
	struct dirent **names = NULL;
	size_t n = names_in(h, "/sys/class/infiniband", &names);

	json_member_array(w, "rdma");
	for (size_t i = 0; i < n && i < HARDWARE_CARDS_MAX; i++) {
		char path[400], rate[HARDWARE_WORD_BYTES];
		struct buf text = { 0 };

		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/rate",
			 names[i]->d_name);
		buf_add_text(&text, names[i]->d_name);
		if (hardware_word(h, rate, path))
			buf_printf(&text, ": %s", rate);
		json_put_str(w, buf_str(&text));
		buf_release(&text);
	}
	json_end_array(w);
	free_names(names, n);
}

void hardware_put_network(const struct hardware *h, struct json_writer *w)
{
	struct dirent **names = NULL;
	size_t n = names_in(h, "/sys/class/net", &names);

	json_member_array(w, "network");
	for (size_t i = 0; i < n && i < HARDWARE_CARDS_MAX; i++)
		if (strcmp(names[i]->d_name, "lo") != 0)
			put_card(h, names[i]->d_name, w);
	json_end_array(w);
	free_names(names, n);
	put_rdma(h, w);
}

/* ---- control groups ---- */

/* Our group's path under a controller of version 1, or of version 2 with ""; false: none. */
static bool group_path(const struct hardware *h, const char *controller,
		       char out[static HARDWARE_WORD_BYTES])
{
	struct buf text = { 0 };
	struct str rest;
	bool is_found = false;

	hardware_read(h, &text, "/proc/self/cgroup");
	rest = buf_str(&text);
	while (rest.n && !is_found) { /* "4:memory:/path", "0::/path" */
		struct str path = str_cut(&rest, '\n');

		str_cut(&path, ':');
		is_found = str_is(str_cut(&path, ':'), controller);
		if (is_found)
			snprintf(out, HARDWARE_WORD_BYTES, "%.*s", (int)path.n, path.p);
	}
	buf_release(&text);
	return is_found;
}

/*
 * The smallest value of a file in our group and those above it. Each is read by read; INFINITY: no
 * limit.
 */
static double least(const struct hardware *h, const char *mount, const char *controller,
		    double (*read)(const struct hardware *h, const char *folder))
{
	char group[HARDWARE_WORD_BYTES], folder[2 * HARDWARE_WORD_BYTES];
	double v = INFINITY;

	if (!group_path(h, controller, group))
		return v;
	for (;;) {
		char *slash = strrchr(group, '/');

		snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s%s", mount,
			 strcmp(group, "/") == 0 ? "" : group);
		v = fmin(v, read(h, folder));
		if (!slash)
			return v;
		*slash = 0;
	}
}

static double number_in(const struct hardware *h, const char *folder, const char *file)
{
	char path[2 * HARDWARE_WORD_BYTES + 64];
	int64_t v;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return hardware_number(h, &v, path) ? (double)v : NAN;
}

/* "200000 100000" or "max 100000" */
static double read_cpu_max(const struct hardware *h, const char *folder)
{
	char path[2 * HARDWARE_WORD_BYTES + 64], word[HARDWARE_WORD_BYTES];
	struct str period, quota;
	int64_t a, b;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	hardware_word(h, word, path);
	period = str_of(word);
	quota = str_cut(&period, ' ');
	if (!str_to_i64(quota, &a) || !str_to_i64(str_trim(period), &b) || b <= 0)
		return INFINITY;
	return (double)a / (double)b;
}

static double read_cfs(const struct hardware *h, const char *folder)
{
	double quota = number_in(h, folder, "cpu.cfs_quota_us");
	double period = number_in(h, folder, "cpu.cfs_period_us");

	return quota > 0 && period > 0 ? quota / period : INFINITY;
}

static double read_memory_max(const struct hardware *h, const char *folder)
{
	double v = number_in(h, folder, "memory.max");

	return isnan(v) ? INFINITY : v;
}

static double read_memory_limit(const struct hardware *h, const char *folder)
{
	double v = number_in(h, folder, "memory.limit_in_bytes");

	return isnan(v) || v > 0x1p60 ? INFINITY : v;
}

double hardware_cpu_quota(const struct hardware *h)
{
	double v = fmin(least(h, "", "", read_cpu_max), least(h, "/cpu", "cpu", read_cfs));

	v = fmin(v, least(h, "/cpu,cpuacct", "cpu,cpuacct", read_cfs));
	return isinf(v) ? NAN : v;
}

int64_t hardware_memory_limit(const struct hardware *h)
{
	double v = fmin(least(h, "", "", read_memory_max),
			least(h, "/memory", "memory", read_memory_limit));

	return isinf(v) ? -1 : (int64_t)v;
}

/* ---- container, virtualisation ---- */

static bool is_there(const struct hardware *h, const char *path)
{
	struct buf whole = { 0 };
	bool is_file;

	buf_printf(&whole, "%s%s", h->root, path);
	is_file = file_exists(whole.data);
	buf_release(&whole);
	return is_file;
}

static const char *container(const struct hardware *h)
{
	static const struct { const char *in_group, *name; } groups[] = {
		{ "kubepods", "kubernetes" }, { "/docker", "docker" }, { "libpod", "podman" },
		{ "/lxc", "lxc" }, { "containerd", "containerd" },
	};
	char kernel[HARDWARE_WORD_BYTES];
	struct buf group = { 0 };
	const char *name = NULL;

	if (getenv("KUBERNETES_SERVICE_HOST"))
		return "kubernetes";
	if (is_there(h, "/run/.containerenv"))
		return "podman";
	hardware_read(h, &group, "/proc/self/cgroup");
	for (size_t i = 0; group.len && i < sizeof(groups) / sizeof(*groups) && !name; i++)
		if (strstr(group.data, groups[i].in_group))
			name = groups[i].name;
	buf_release(&group);
	if (name)
		return name;
	if (is_there(h, "/.dockerenv"))
		return "docker";
	if (hardware_word(h, kernel, "/proc/sys/kernel/osrelease") &&
	    (strstr(kernel, "microsoft") || strstr(kernel, "WSL")))
		return "wsl";
	return getenv("container"); /* systemd-nspawn, lxc and their like say it themselves */
}

/* Whether the processor says that a hypervisor is below. */
static bool is_guest(const struct hardware *h)
{
	struct buf text = { 0 };
	bool is_one = hardware_read(h, &text, "/proc/cpuinfo") && text.len &&
		      strstr(text.data, " hypervisor");

	buf_release(&text);
	return is_one || is_there(h, "/sys/hypervisor/type");
}

void hardware_put_walls(const struct hardware *h, struct json_writer *w)
{
	char maker[HARDWARE_WORD_BYTES], product[HARDWARE_WORD_BYTES];
	char name[2 * HARDWARE_WORD_BYTES + 2] = "";

	if (is_guest(h)) {
		hardware_word(h, maker, "/sys/class/dmi/id/sys_vendor");
		hardware_word(h, product, "/sys/class/dmi/id/product_name");
		snprintf(name, sizeof(name), "%s%s%s", maker, *maker && *product ? " " : "",
			 product);
		if (!*name)
			snprintf(name, sizeof(name), "unknown");
	}
	hardware_put_word(w, "container", container(h));
	hardware_put_word(w, "virtualization", name);
}
