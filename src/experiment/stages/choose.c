/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - see allocate.h. */
#include "experiment/stages/allocate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "host/proc/tree.h"

#define BUSY_PERCENT 20 /* of use, on a GPU without programs that we can see */
#define GIB 1073741824.0

static const char *limit_of_environment(const struct gpu *g)
{
	static const char *const nvidia[] = { "CUDA_VISIBLE_DEVICES" };
	static const char *const amd[] = { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
					   "CUDA_VISIBLE_DEVICES" };
	const char *const *name = g->maker == GPU_AMD ? amd : nvidia;
	size_t n = g->maker == GPU_AMD ? 3 : 1;

	for (size_t i = 0; i < n; i++)
		if (getenv(name[i]))
			return name[i];
	return "the environment";
}

static int name_one(const struct gpu_set *gpus, const char *called, struct candidates *c,
		    struct err *e)
{
	size_t n;
	const struct gpu *g = gpu_list(gpus, &n);
	int i = gpu_find(gpus, called);

	if (i == -2)
		return err_set(e, ERR_USAGE, "resources.gpus: \"%s\" matches the UUIDs of several "
			       "GPUs; write more of the UUID", called);
	if (i < 0)
		return err_set(e, ERR_NO_GPU, "resources.gpus: this machine has no GPU %s (number "
			       "of GPUs: %zu); expected an index, a UUID or the start of a "
			       "UUID", called, n);
	if (!g[i].is_allowed)
		return err_set(e, ERR_USAGE, "resources.gpus: GPU %s is not one of those that %s=%s "
			       "allows", called, limit_of_environment(&g[i]),
			       getenv(limit_of_environment(&g[i])) ?
			       getenv(limit_of_environment(&g[i])) : "");
	if (g[i].is_split)
		return err_set(e, ERR_USAGE, "resources.gpus: GPU %s is split (MIG); expected its "
			       "parts, as %d:0 or by their UUIDs", called, g[i].index);
	if (c->n && g[c->place[0]].maker != g[i].maker)
		return err_set(e, ERR_USAGE, "resources.gpus: GPU %s is from another manufacturer "
			       "than the first one listed", called);
	for (size_t k = 0; k < c->n; k++)
		if (c->place[k] == (size_t)i)
			return err_set(e, ERR_USAGE, "resources.gpus: GPU %s is named twice",
				       called);
	c->are_parts |= g[i].part >= 0;
	c->place = mem_grow(c->place, c->n + 1, sizeof(*c->place));
	c->place[c->n++] = (size_t)i;
	return 0;
}

/* GPUs of one vendor, NVIDIA before AMD: a server computes on one kind. */
static void add_all(const struct gpu_set *gpus, bool is_part, struct candidates *c)
{
	size_t n;
	const struct gpu *g = gpu_list(gpus, &n);

	for (size_t i = 0; i < n; i++) {
		if (!g[i].is_allowed || g[i].is_split || (g[i].part >= 0) != is_part ||
		    (c->n && g[c->place[0]].maker != g[i].maker))
			continue;
		c->place = mem_grow(c->place, c->n + 1, sizeof(*c->place));
		c->place[c->n++] = i;
	}
}

int choose_candidates(const struct experiment_resources *r, const struct gpu_set *gpus,
		      struct candidates *c, struct err *e)
{
	*c = (struct candidates){ .is_named = r->want == GPUS_LIST };
	for (size_t i = 0; c->is_named && r->list && r->list[i]; i++)
		if (name_one(gpus, r->list[i], c, e) < 0) {
			free(c->place);
			*c = (struct candidates){ 0 };
			return -1;
		}
	if (c->is_named)
		return 0;
	add_all(gpus, false, c);
	if (c->n == 0) {
		add_all(gpus, true, c);
		c->are_parts = c->n > 0;
	}
	return 0;
}

void choose_lock_name(const struct gpu *g, char out[128])
{
	if (g->uuid[0])
		snprintf(out, 128, "gpu-%s", g->uuid);
	else
		snprintf(out, 128, "gpu-%s-%d.%d", g->pci, g->index, g->part);
	/* Drivers report neither character, which would leave the folder or break a list. */
	for (char *p = out; *p; p++)
		if (*p == '/' || *p == ' ')
			*p = '_';
}

void choose_call(const struct gpu *g, struct buf *out)
{
	buf_printf(out, "GPU %d", g->index);
	if (g->part >= 0)
		buf_printf(out, ":%d (MIG %s)", g->part, g->profile);
}

bool choose_is_busy(const struct experiment_resources *r, const struct gpu_set *gpus, size_t place,
		    struct buf *why, bool *may_pass)
{
	struct gpu_process process[GPU_PROCESSES_MAX];
	char command[TREE_COMMAND_BYTES];
	struct gpu_sample now;
	double total;
	size_t n;

	*may_pass = false;
	gpu_sample(gpus, place, &now);
	total = gpu_list(gpus, &n)[place].memory_bytes;
	n = r->is_shared ? 0 : gpu_processes(gpus, place, process, GPU_PROCESSES_MAX);
	if (n) {
		tree_command(process[0].pid, command);
		buf_printf(why, "is used by process %d%s%s", (int)process[0].pid,
			   command[0] ? ": " : "", command);
		if (n > 1)
			buf_printf(why, " and %zu more", n - 1);
		return true;
	}
	if (now.memory_free_bytes < r->memory_free_min * total) {
		buf_printf(why, "has %.1f of %.1f GiB free, less than %g %%",
			   now.memory_free_bytes / GIB, total / GIB, r->memory_free_min * 100);
		return true;
	}
	if (!r->is_shared && now.utilization_percent >= BUSY_PERCENT) {
		buf_printf(why, "is busy %.0f %% of the time with programs that are not visible "
				"from here",
			   now.utilization_percent);
		*may_pass = true;
		return true;
	}
	return false;
}

unsigned choose_wanted(const struct experiment *x)
{
	unsigned n = 0;

	if (x->resources.want == GPUS_NONE)
		return 0;
	if (x->resources.want == GPUS_COUNT)
		return x->resources.count;
	if (x->resources.want == GPUS_LIST) {
		while (x->resources.list && x->resources.list[n])
			n++;
		return n;
	}
	for (size_t i = 0; i < x->n_servers; i++)
		n += x->server[i].url ? 0 : x->server[i].gpus;
	return n;
}

/* ---- the best of the free ones ---- */

static double worth(const struct gpu_set *gpus, size_t a, size_t b)
{
	static const double of[] = {
		[GPU_LINK_UNKNOWN] = 0, [GPU_LINK_SYSTEM] = 1, [GPU_LINK_NODE] = 2,
		[GPU_LINK_BRIDGE] = 3, [GPU_LINK_SWITCH] = 4, [GPU_LINK_DIRECT] = 16,
	};

	return of[gpu_link(gpus, a, b)];
}

/* The sum of i's links with the chosen ones (is_in), or with the rest. */
static double ties(const double *link, size_t n, const bool *is_in, bool with_chosen, size_t i)
{
	double sum = 0;

	for (size_t k = 0; k < n; k++)
		if (k != i && is_in[k] == with_chosen)
			sum += link[i * n + k];
	return sum;
}

/* Starting with one GPU, always adds the one with the best links to those chosen. */
static void grow(const double *link, size_t n, size_t want, size_t seed, bool *is_in)
{
	memset(is_in, 0, n * sizeof(*is_in));
	is_in[seed] = true;
	for (size_t have = 1; have < want; have++) {
		double best = -1, best_left = 0;
		size_t next = n;

		for (size_t i = 0; i < n; i++) {
			double inside, left;

			if (is_in[i])
				continue;
			inside = ties(link, n, is_in, true, i);
			left = ties(link, n, is_in, false, i);
			if (inside > best || (inside >= best && left < best_left)) {
				best = inside;
				best_left = left;
				next = i;
			}
		}
		is_in[next] = true;
	}
}

void choose_best(const struct gpu_set *gpus, size_t *place, size_t n, size_t want)
{
	double *link = mem_array(n * n + 1, sizeof(*link)), best = -1, best_left = 0;
	bool *is_in = mem_array(n + 1, sizeof(*is_in)), *kept = mem_array(n + 1, sizeof(*kept));
	size_t m = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			link[i * n + k] = i == k ? 0 : worth(gpus, place[i], place[k]);
	for (size_t seed = 0; want && seed < n; seed++) {
		double inside = 0, left = 0;

		grow(link, n, want, seed, is_in);
		for (size_t i = 0; i < n; i++)
			if (is_in[i]) {
				inside += ties(link, n, is_in, true, i);
				left += ties(link, n, is_in, false, i);
			}
		if (inside > best || (inside >= best && left < best_left)) {
			best = inside;
			best_left = left;
			memcpy(kept, is_in, n * sizeof(*kept));
		}
	}
	for (size_t i = 0; i < n; i++)
		if (kept[i])
			place[m++] = place[i];
	free(link);
	free(is_in);
	free(kept);
}

#define RANGE_FIRST 20000u
#define RANGE_LAST 29999u
#define PORT_MAX 65535u
#define PORT_UNPRIVILEGED 1024u

void port_range(unsigned *first, unsigned *last)
{
	struct buf text = { 0 };
	uint64_t low = 0;

	*first = RANGE_FIRST;
	*last = RANGE_LAST;
	if (file_read("/proc/sys/net/ipv4/ip_local_port_range", PROC_FILE_BYTES_MAX, &text,
		      NULL) == 0) {
		struct str rest = buf_str(&text);

		/*
		 * If the kernel's range begins at 20000 or lower, only the ports below it are left.
		 */
		if (str_to_u64(str_cut(&rest, '\t'), &low) && low <= RANGE_LAST &&
		    low > PORT_UNPRIVILEGED) {
			*last = (unsigned)low - 1;
			if (*last < RANGE_FIRST)
				*first = PORT_UNPRIVILEGED;
		}
	}
	buf_release(&text);
}

/* Why the requested port is unavailable. */
static int refuse(unsigned port, int error, const struct lock_holder *who, struct err *e)
{
	char command[TREE_COMMAND_BYTES] = "";
	struct buf text = { 0 };
	pid_t pid = 0;

	if (who) {
		lock_describe(who, &text);
		err_set(e, ERR_NET, "port %u is reserved by %s", port, text.data);
		buf_release(&text);
		return -1;
	}
	if (error == EADDRINUSE)
		port_look((uint16_t)port, NULL, 0, &pid);
	if (pid)
		tree_command(pid, command);
	if (pid)
		return err_set(e, ERR_NET, "port %u is taken by process %d: %s", port, (int)pid,
			       command);
	return err_set(e, ERR_NET, "port %u cannot be listened on: %s", port, strerror(error));
}

/*
 * Where to begin to look: random, so that processes with other lock folders (another container on
 * this network, a test) rarely try the same port at the same time.
 */
static unsigned somewhere(unsigned n)
{
	uint64_t mixed = (uint64_t)clock_mono_ns() ^ (uint64_t)getpid() << 20;

	mixed *= 0x9e3779b97f4a7c15;
	return (unsigned)((mixed >> 32) % n);
}

int port_take(const char *folder, unsigned first, unsigned last, const struct lock_holder *me,
	      unsigned *port, struct lock *l, struct err *e)
{
	unsigned start;

	if (first == 0 || last > PORT_MAX || first > last)
		return err_set(e, ERR_USAGE, "ports %u-%u: expected two ports from 1 to %u, the "
			       "lower one first", first, last, PORT_MAX);
	start = somewhere(last - first + 1);
	for (unsigned i = 0; i <= last - first; i++) {
		unsigned p = first + (start + i) % (last - first + 1);
		struct lock_holder who = { 0 };
		char name[32];
		int error, taken;

		snprintf(name, sizeof(name), "port-%u", p);
		taken = lock_take(folder, name, LOCK_ALONE, me, l, &who, e);
		if (taken < 0)
			return -1;
		if (taken == 0 && first == last)
			return refuse(p, 0, &who, e);
		if (taken == 0)
			continue;
		error = sock_try_port((uint16_t)p);
		if (error == 0) {
			*port = p;
			return 0;
		}
		lock_give(l);
		if (first == last)
			return refuse(p, error, NULL, e);
	}
	return err_set(e, ERR_NET, "no port from %u to %u is free: all %u are reserved or taken",
		       first, last, last - first + 1);
}
