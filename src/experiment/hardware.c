/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/hardware.c - see hardware.h: GPUs, and the pieces in their order. */
#include "experiment/hardware.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "experiment/hardware_parts.h"
#include "gpu/gpu.h"

/* ---- small files ---- */

bool hardware_read(const struct hardware *h, struct buf *out, const char *fmt, ...)
{
	struct buf path = { 0 };
	va_list args;
	char tail[256];
	bool is_there;

	va_start(args, fmt);
	vsnprintf(tail, sizeof(tail), fmt, args);
	va_end(args);
	buf_printf(&path, "%s%s", h->root, tail);
	buf_reset(out);
	is_there = file_read(path.data, HARDWARE_FILE_BYTES_MAX, out, NULL) == 0;
	buf_release(&path);
	return is_there;
}

bool hardware_word(const struct hardware *h, char out[static HARDWARE_WORD_BYTES],
		   const char *path)
{
	struct buf text = { 0 };
	struct str word;

	*out = 0;
	if (hardware_read(h, &text, "%s", path)) {
		word = str_trim(buf_str(&text));
		snprintf(out, HARDWARE_WORD_BYTES, "%.*s", (int)word.n, word.p ? word.p : "");
	}
	buf_release(&text);
	return *out;
}

bool hardware_number(const struct hardware *h, int64_t *out, const char *path)
{
	char word[HARDWARE_WORD_BYTES];

	return hardware_word(h, word, path) && str_to_i64(str_of(word), out);
}

void hardware_put_word(struct json_writer *w, const char *key, const char *word)
{
	json_member_text(w, key, word && *word ? word : NULL);
}

void hardware_put_number(struct json_writer *w, const char *key, double v)
{
	json_member_f64(w, key, v);
}

void hardware_put_count(struct json_writer *w, const char *key, int64_t v)
{
	json_key(w, key);
	if (v >= 0)
		json_put_int(w, v);
	else
		json_put_null(w);
}

/* ---- GPUs ---- */

static void put_links(struct json_writer *w, const struct gpu_set *set, const struct gpu *g,
		      size_t n, size_t i)
{
	static const char *const names[] = { "unknown", "system", "node", "bridge", "switch",
					     "nvlink" };

	json_member_array(w, "links");
	for (size_t k = 0; k < n && g[i].part < 0; k++)
		if (g[k].part < 0)
			json_put_text(w, k == i ? "self" : names[gpu_link(set, i, k)]);
	json_end_array(w);
}

static void put_gpu(struct json_writer *w, const struct gpu *g)
{
	char capability[32] = "";

	if (g->capability_major >= 0)
		snprintf(capability, sizeof(capability), "%d.%d", g->capability_major,
			 g->capability_minor);
	json_member_int(w, "index", g->index);
	hardware_put_word(w, "name", g->name);
	hardware_put_word(w, "uuid", g->uuid);
	json_member_text(w, "vendor", g->maker == GPU_AMD ? "amd" : "nvidia");
	hardware_put_number(w, "memory_bytes", g->memory_bytes);
	hardware_put_word(w, "driver", g->driver);
	hardware_put_word(w, "cuda", g->cuda);
	hardware_put_word(w, "compute_capability", capability);
	hardware_put_number(w, "power_limit_w", g->power_limit_w);
	hardware_put_number(w, "sm_clock_max_mhz", g->sm_clock_max_mhz);
	hardware_put_number(w, "memory_clock_max_mhz", g->memory_clock_max_mhz);
	hardware_put_count(w, "numa", g->numa);
	hardware_put_word(w, "pci", g->pci);
	hardware_put_word(w, "mig_profile", g->profile);
}

static void put_gpus(struct json_writer *w)
{
	struct gpu_set *set = gpu_open(NULL);
	size_t n;
	const struct gpu *g = gpu_list(set, &n);

	json_member_array(w, "gpus");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		put_gpu(w, &g[i]);
		put_links(w, set, g, n, i);
		json_end_object(w);
	}
	json_end_array(w);
	hardware_put_word(w, "gpu_note", gpu_note(set));
	gpu_close(set);
}

/* ---- the system ---- */

/* NAME="value" of os-release. */
static void put_distribution(const struct hardware *h, struct json_writer *w)
{
	struct buf text = { 0 };
	struct str rest, name = STR("");

	hardware_read(h, &text, "/etc/os-release");
	rest = buf_str(&text);
	while (rest.n) {
		struct str value = str_cut(&rest, '\n'), key = str_cut(&value, '=');

		if (!str_is(key, "PRETTY_NAME"))
			continue;
		name = str_trim(value);
		if (name.n >= 2 && (*name.p == '"' || *name.p == '\''))
			name = (struct str){ name.p + 1, name.n - 2 };
	}
	json_key(w, "name");
	if (name.n)
		json_put_str(w, name);
	else
		json_put_null(w);
	buf_release(&text);
}

static void put_os(const struct hardware *h, struct json_writer *w)
{
	char kernel[HARDWARE_WORD_BYTES], libc[64];

	hardware_word(h, kernel, "/proc/sys/kernel/osrelease");
	snprintf(libc, sizeof(libc), "glibc %s", gnu_get_libc_version());
	json_member_object(w, "os");
	hardware_put_word(w, "kernel", kernel);
	put_distribution(h, w);
	hardware_put_word(w, "libc", libc);
	json_end_object(w);
}

void hardware_json(const char *root, struct buf *out)
{
	struct hardware h = { .root = root };
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	put_gpus(&w);
	hardware_put_cpu(&h, &w);
	hardware_put_memory(&h, &w);
	put_os(&h, &w);
	hardware_put_network(&h, &w);
	hardware_put_walls(&h, &w);
	json_end_object(&w);
}
