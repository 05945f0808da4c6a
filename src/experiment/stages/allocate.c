/* SPDX-License-Identifier: Apache-2.0 */
/* allocate.c - see allocate.h. */
#include "experiment/stages/allocate.h"

#include <assert.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "experiment/config/config.h"
#include "host/proc/roster.h"

#define MUTEX "mutex"
#define MUTEX_WAIT_NS 20000000000 /* looking at all GPUs takes a fraction of a second */
#define MUTEX_PAUSE_NS 2000000
#define NUMBER "%012llu"

/* releases ticket and mutex; a zeroed one is fine */
static void queue_release(struct queue *q)
{
	lock_give(&q->ticket);
	lock_give(&q->mutex);
	free(q->folder);
	free(q->tickets);
	*q = (struct queue){ 0 };
}

/* folder is that of lock_folder. -1 with e when its queue cannot be made. */
static int queue_init(struct queue *q, const char *folder, struct err *e)
{
	*q = (struct queue){ .folder = mem_text(folder), .tickets = file_join(folder, "queue") };
	if (lock_make_folder(q->tickets, e) < 0) {
		queue_release(q);
		return err_wrap(e, "the queue for GPUs");
	}
	return 0;
}

/*
 * Returns with exclusive access. -1: cancelled (ERR_CANCELLED), or another process keeps it too
 * long.
 */
static int queue_enter(struct queue *q, const struct lock_holder *me, const atomic_bool *cancel,
		struct err *e)
{
	int64_t until_ns = clock_mono_ns() + MUTEX_WAIT_NS;
	struct lock_holder who = { 0 };
	struct buf text = { 0 };

	for (;;) {
		int taken = lock_take(q->folder, MUTEX, LOCK_ALONE, me, &q->mutex, &who, e);

		if (taken)
			return taken < 0 ? -1 : 0;
		if (cancel && atomic_load(cancel))
			return err_set(e, ERR_CANCELLED, "stopped while waiting for GPUs");
		if (clock_mono_ns() > until_ns)
			break;
		nanosleep(&(struct timespec){ 0, MUTEX_PAUSE_NS }, NULL);
	}
	lock_describe(&who, &text);
	err_set(e, ERR_IO, "the lock file %s/" MUTEX " is held by %s, which should last only a "
		"moment", q->folder, text.data);
	buf_release(&text);
	return -1;
}

static void queue_leave(struct queue *q)
{
	lock_give(&q->mutex);
}

/* The number of the file, 0: no ticket. */
static unsigned long long number_of(const char *name)
{
	uint64_t number;

	return str_to_u64(str_of(name), &number) && number < UINT64_MAX ? number : 0;
}

/*
 * Call between queue_enter and queue_leave. me->wants: the names of all locks that would do, with a
 * blank after each.
 */
static int queue_take_ticket(struct queue *q, const struct lock_holder *me, struct err *e)
{
	unsigned long long highest = 0;
	DIR *dir = opendir(q->tickets);
	struct dirent *entry;
	char name[32];
	int taken;

	while (dir && (entry = readdir(dir)))
		if (number_of(entry->d_name) > highest)
			highest = number_of(entry->d_name);
	if (dir)
		closedir(dir);
	q->number = highest + 1;
	snprintf(name, sizeof(name), NUMBER, q->number);
	taken = lock_take(q->tickets, name, LOCK_ALONE, me, &q->ticket, NULL, e);
	if (taken == 0)
		return err_set(e, ERR_IO, "the ticket %s/%s is held although it was given to no "
			       "process", q->tickets, name);
	return taken < 0 ? -1 : 0;
}

/*
 * Appends to wanted what earlier tickets want, in the same form; first (zeroed: none) is the
 * earliest of them. Returns how many there are.
 */
static unsigned queue_in_front(const struct queue *q, struct buf *wanted, struct lock_holder *first)
{
	unsigned long long lowest = q->number;
	DIR *dir = opendir(q->tickets);
	struct dirent *entry;
	unsigned n = 0;

	*first = (struct lock_holder){ 0 };
	while (dir && (entry = readdir(dir))) {
		unsigned long long number = number_of(entry->d_name);
		struct lock_holder who;

		if (number == 0 || number >= q->number ||
		    !lock_is_held(q->tickets, entry->d_name, &who))
			continue;
		n++;
		buf_add_text(wanted, who.wants);
		if (number < lowest) {
			lowest = number;
			*first = who;
		}
	}
	if (dir)
		closedir(dir);
	return n;
}

/* ---- what an allocation tells each server ---- */

/* "0,1", or "MIG-..." */
static char *join(struct allocation *out, const struct gpu *g, const size_t *place, size_t n)
{
	struct buf text = { 0 };
	char *joined;

	for (size_t i = 0; i < n; i++) {
		const struct gpu *one = &g[place[i]];

		buf_add_text(&text, i ? "," : "");
		if (one->part >= 0)
			buf_add_text(&text, one->uuid);
		else
			buf_printf(&text, "%d", one->index);
	}
	joined = arena_text(&out->arena, buf_str(&text));
	buf_release(&text);
	return joined;
}

/* Indices as HIP counts: all GPUs, or from 0 those that ROCR leaves. */
static void env_amd(struct allocation *out, const struct gpu *g, struct allocation_server *s,
		    char **env)
{
	char *list = join(out, g, s->place, s->n_gpus);

	if (getenv("ROCR_VISIBLE_DEVICES")) {
		struct buf own = { 0 };

		*env++ = arena_printf(&out->arena, "ROCR_VISIBLE_DEVICES=%s", list);
		for (size_t i = 0; i < s->n_gpus; i++)
			buf_printf(&own, "%s%zu", i ? "," : "", i);
		list = arena_text(&out->arena, buf_str(&own));
		buf_release(&own);
	}
	*env++ = arena_printf(&out->arena, "HIP_VISIBLE_DEVICES=%s", list);
	/* HIP reads this variable too, and programs compare the two. */
	*env = arena_printf(&out->arena, "CUDA_VISIBLE_DEVICES=%s", list);
}

static void tell_server(struct allocation *out, const struct experiment_server *of,
			const struct gpu_set *gpus, unsigned share, const size_t *place,
			struct allocation_server *s)
{
	size_t n;
	const struct gpu *g = gpu_list(gpus, &n);
	char **env = arena_alloc(&out->arena, 4 * sizeof(*env));

	s->env = env;
	s->n_gpus = share;
	if (of->url)
		return;
	if (s->n_gpus == 0) { /* it sees none of those that are not its own */
		if (n && g[0].maker == GPU_NVIDIA)
			*env++ = arena_text(&out->arena, STR("CUDA_VISIBLE_DEVICES="));
		if (n && g[n - 1].maker == GPU_AMD)
			*env = arena_text(&out->arena, STR("HIP_VISIBLE_DEVICES=-1"));
		return;
	}
	s->gpu = arena_alloc(&out->arena, s->n_gpus * sizeof(*s->gpu));
	s->place = arena_alloc(&out->arena, s->n_gpus * sizeof(*s->place));
	memcpy(s->place, place, s->n_gpus * sizeof(*place));
	for (size_t k = 0; k < s->n_gpus; k++)
		s->gpu[k] = (struct outcome_gpu){ .index = g[place[k]].index,
			.uuid = arena_text(&out->arena, str_of(g[place[k]].uuid)),
			.name = arena_text(&out->arena, str_of(g[place[k]].name)) };
	if (g[place[0]].maker == GPU_AMD) {
		env_amd(out, g, s, env);
		return;
	}
	/* Indices are in PCI bus order, which is not CUDA's default. */
	env[0] = arena_text(&out->arena, STR("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
	env[1] = arena_printf(&out->arena, "CUDA_VISIBLE_DEVICES=%s",
			      join(out, g, place, s->n_gpus));
}

/* Fills out's servers and what allocate_settle needs; place: as many as the sum of the shares. */
static void allocation_tell(struct allocation *out, const struct experiment *x,
			    const struct gpu_set *gpus, const unsigned *share, const size_t *place)
{
	for (size_t i = 0; i < out->n_servers; i++)
		out->n_gpus += share[i];
	out->used_place = arena_alloc(&out->arena, (out->n_gpus + 1) * sizeof(*out->used_place));
	out->used_bytes = arena_alloc(&out->arena, (out->n_gpus + 1) * sizeof(*out->used_bytes));
	for (size_t i = 0; i < out->n_gpus; i++) {
		struct gpu_sample now;

		gpu_sample(gpus, place[i], &now);
		out->used_place[i] = place[i];
		out->used_bytes[i] = now.memory_used_bytes;
	}
	for (size_t i = 0; i < out->n_servers; i++) {
		tell_server(out, &x->server[i], gpus, share[i], place, &out->server[i]);
		place += share[i];
	}
}

#define POLL_NS 200000000
#define SLICE_NS 20000000          /* between two looks at the flag that cancels */
#define LINE_EVERY_NS 10000000000  /* between two lines that name whom we wait for, */
#define SAME_EVERY_NS 60000000000  /* and between two that say the same */
#define AT_ONCE_S 2.0              /* how long drivers and ending locks may lag, with wait_s 0 */
#define SHOWN_MAX 3                /* obstacles that a message names */
#define SHOWN_BYTES 260            /* of each */
#define SETTLE_S 30.0
#define SETTLE_BYTES (512.0 * 1048576)
#define SETTLE_SHARE 0.02          /* of the GPU's memory */
#define GIB 1073741824.0

/* Why a GPU is not free; GPUs of one holder are one obstacle. */
struct obstacle {
	char call[48], text[SHOWN_BYTES];
	char command[TREE_COMMAND_BYTES]; /* of the holder; "": not known */
	bool is_held;                  /* text is the holder of its lock, else the reason */
	pid_t pid;                     /* of the holder; 0: not known */
	unsigned more;                 /* GPUs that the same one holds */
};

/* An allocation in progress. */
struct taking {
	const struct experiment *x;
	const struct gpu_set *gpus;
	const struct experiment_hooks *hooks;
	struct candidates may;
	unsigned *share;               /* GPUs of each server */
	unsigned want;
	struct queue queue;
	struct lock_holder me;
	struct allocation *out;
	size_t *place;                 /* the GPUs taken: want of them */
	int64_t began_ns, said_ns;     /* waiting; the last line about it, 0: none */
	struct buf said;
	/* of the last attempt that failed */
	struct obstacle shown[SHOWN_MAX];
	unsigned n_shown, n_hidden, n_free, n_front;
	bool may_pass;                 /* nothing but figures that drivers tell late */
	struct lock_holder first;
};

const char *allocate_fault_name(enum allocate_fault fault)
{
	static const char *const names[] = {
		[ALLOCATE_FAULT_NONE] = "none",
		[ALLOCATE_FAULT_GPUS_BUSY] = "gpus busy",
		[ALLOCATE_FAULT_NO_GPU] = "no gpu",
		[ALLOCATE_FAULT_PORTS] = "port taken",
		[ALLOCATE_FAULT_LOCKS] = "locks unusable",
		[ALLOCATE_FAULT_CANCELLED] = "cancelled",
	};

	return names[fault];
}

static int fail(enum allocate_fault *fault, enum allocate_fault with)
{
	if (fault)
		*fault = with;
	return -1;
}

/* Sets the fault for a failure of the queue or a lock file. */
static int fail_locks(enum allocate_fault *fault, const struct err *e)
{
	return fail(fault, e->code == ERR_CANCELLED ? ALLOCATE_FAULT_CANCELLED :
						      ALLOCATE_FAULT_LOCKS);
}

static const atomic_bool *cancel_of(const struct taking *t)
{
	return t->hooks ? t->hooks->cancel : NULL;
}

static bool is_cancelled(const struct experiment_hooks *hooks)
{
	return hooks && hooks->cancel && atomic_load(hooks->cancel);
}

/* ---- how many for each server ---- */

/* Shares of a given number of GPUs: as the servers say, or all to the only one. */
static int share_out(const struct experiment *x, unsigned given, unsigned *share, struct err *e)
{
	size_t started = 0, one = x->serving;
	unsigned sum = 0;

	for (size_t i = 0; i < x->n_servers; i++) {
		if (x->server[i].url)
			continue;
		started++;
		one = i;
		share[i] = x->server[i].gpus;
		sum += share[i];
	}
	if (started > 1 && sum == given)
		return 0;
	if (started > 1 && sum)
		return err_set(e, ERR_USAGE, "resources.gpus: %u given, but the %zu servers need "
			       "%u together", given, started, sum);
	if (started > 1)
		one = x->serving;
	for (size_t i = 0; i < x->n_servers; i++)
		share[i] = i == one && started && !x->server[i].url ? given : 0;
	return 0;
}

static int find_shares(struct taking *t, struct err *e)
{
	const struct experiment_resources *r = &t->x->resources;

	t->share = mem_array(t->x->n_servers + 1, sizeof(*t->share));
	for (size_t i = 0; r->want == GPUS_AUTO && i < t->x->n_servers; i++)
		t->share[i] = t->x->server[i].url ? 0 : t->x->server[i].gpus;
	if ((r->want == GPUS_COUNT || r->want == GPUS_LIST) &&
	    share_out(t->x, choose_wanted(t->x), t->share, e) < 0)
		return -1;
	for (size_t i = 0; i < t->x->n_servers; i++)
		t->want += t->share[i];
	return 0;
}

/* Whether this machine could ever provide it. */
static int check_machine(struct taking *t, enum allocate_fault *fault, struct err *e)
{
	const char *note = gpu_note(t->gpus);
	size_t n;

	gpu_list(t->gpus, &n);
	if (choose_candidates(&t->x->resources, t->gpus, &t->may, e) < 0)
		return fail(fault, ALLOCATE_FAULT_NO_GPU);
	if (t->want && n == 0 && t->x->resources.want == GPUS_AUTO) {
		t->out->note = arena_printf(&t->out->arena, "no GPU here%s%s%s: the servers run "
					    "without GPUs", *note ? " (" : "", note, *note ? ")" : "");
		memset(t->share, 0, t->x->n_servers * sizeof(*t->share));
		t->want = 0;
		return 0;
	}
	if (t->want > t->may.n) {
		err_set(e, ERR_RUN, "%u GPU%s needed, but this machine has %zu that may be "
				    "used%s%s",
			t->want, t->want == 1 ? " is" : "s are", t->may.n,
			*note ? ": " : "", note);
		return fail(fault, ALLOCATE_FAULT_NO_GPU);
	}
	for (size_t i = 0; t->may.are_parts && i < t->x->n_servers; i++)
		if (t->share[i] > 1) {
			err_set(e, ERR_RUN, "%s needs %u GPUs, but the GPUs here are split (MIG), "
				"and a program can use only one part", t->x->server[i].name,
				t->share[i]);
			return fail(fault, ALLOCATE_FAULT_NO_GPU);
		}
	return 0;
}

/* ---- taking them ---- */

static void keep_lock(struct allocation *out, const struct lock *l)
{
	out->lock = mem_grow(out->lock, out->n_locks + 1, sizeof(*out->lock));
	out->lock[out->n_locks++] = *l;
}

static void add_obstacle(struct taking *t, const struct gpu *g, const struct lock_holder *who,
			 const struct buf *text)
{
	struct buf call = { 0 };
	struct obstacle *o;

	for (unsigned i = 0; who && who->pid && i < t->n_shown; i++)
		if (t->shown[i].pid == who->pid) {
			t->shown[i].more++;
			return;
		}
	if (t->n_shown == SHOWN_MAX) {
		t->n_hidden++;
		return;
	}
	o = &t->shown[t->n_shown++];
	*o = (struct obstacle){ .is_held = who, .pid = who ? who->pid : 0 };
	choose_call(g, &call);
	snprintf(o->call, sizeof(o->call), "%s", call.data);
	snprintf(o->text, sizeof(o->text), "%s", text->data);
	snprintf(o->command, sizeof(o->command), "%s", who ? who->command : "");
	buf_release(&call);
}

/* 1: locked and free; 0: an obstacle has been noted. */
static int try_one(struct taking *t, size_t place, struct lock *l, struct err *e)
{
	const struct experiment_resources *r = &t->x->resources;
	size_t n;
	const struct gpu *g = &gpu_list(t->gpus, &n)[place];
	struct buf why = { 0 };
	struct lock_holder who = { 0 };
	bool may_pass;
	char name[128];
	int taken;

	choose_lock_name(g, name);
	taken = lock_take(t->queue.folder, name, r->is_shared ? LOCK_SHARED : LOCK_ALONE, &t->me, l,
			  &who, e);
	if (taken < 0)
		return -1;
	if (taken == 0) {
		t->may_pass = false;
		lock_name(&who, &why);
		add_obstacle(t, g, &who, &why);
	} else if (choose_is_busy(r, t->gpus, place, &why, &may_pass)) {
		t->may_pass &= may_pass;
		add_obstacle(t, g, NULL, &why);
		lock_give(l);
		taken = 0;
	}
	buf_release(&why);
	return taken;
}

/* Tries each GPU that no earlier ticket wants; then locks the best of the free ones. */
static int try_all(struct taking *t, const struct buf *wanted, struct err *e)
{
	struct lock *lock = mem_array(t->may.n + 1, sizeof(*lock));
	size_t *place = mem_array(t->may.n + 1, sizeof(*place)), n, kept = 0;
	const struct gpu *g = gpu_list(t->gpus, &n);
	int taken = 0;

	for (size_t i = 0; i < t->may.n && taken >= 0; i++) {
		char name[128];

		choose_lock_name(&g[t->may.place[i]], name);
		if (config_has_item(buf_str(wanted), ' ', str_of(name)))
			continue;
		taken = try_one(t, t->may.place[i], &lock[i], e);
		if (taken == 1)
			place[t->n_free++] = t->may.place[i];
	}
	if (taken >= 0 && t->n_free >= t->want) {
		if (t->n_free > t->want)
			choose_best(t->gpus, place, t->n_free, t->want);
		memcpy(t->place, place, t->want * sizeof(*place));
		kept = t->want;
	}
	for (size_t i = 0; i < t->may.n; i++) {
		bool is_kept = false;

		for (size_t k = 0; k < kept; k++)
			is_kept |= t->place[k] == t->may.place[i];
		if (is_kept)
			keep_lock(t->out, &lock[i]);
		else
			lock_give(&lock[i]);
	}
	free(lock);
	free(place);
	return taken < 0 ? -1 : kept > 0;
}

/* 1: all of them are ours; 0: not now, with obstacles noted; -1: e. */
static int attempt(struct taking *t, struct err *e)
{
	struct buf wanted = { 0 };
	int result;

	if (queue_enter(&t->queue, &t->me, cancel_of(t), e) < 0)
		return -1;
	t->n_free = t->n_shown = t->n_hidden = 0;
	t->may_pass = true;
	t->n_front = queue_in_front(&t->queue, &wanted, &t->first);
	result = try_all(t, &wanted, e);
	queue_leave(&t->queue);
	buf_release(&wanted);
	return result;
}

/*
 * "2 GPUs are wanted and 1 of 8 is free: GPU 0 is held by ...; and 5 more"; is_whole: with the
 * commands of the holders.
 */
static void describe(const struct taking *t, bool is_whole, struct buf *out)
{
	buf_printf(out, "%u GPU%s needed, but %u of %zu %s free", t->want,
		   t->want == 1 ? " is" : "s are", t->n_free, t->may.n,
		   t->n_free == 1 ? "is" : "are");
	for (unsigned i = 0; i < t->n_shown; i++) {
		const struct obstacle *o = &t->shown[i];

		buf_printf(out, "%s%s", i ? "; " : ": ", o->call);
		if (o->more)
			buf_printf(out, " and %u more", o->more);
		if (o->is_held)
			buf_printf(out, " %s held by", o->more ? "are" : "is");
		buf_printf(out, " %s", o->text);
		if (is_whole && o->command[0])
			buf_printf(out, ": %s", o->command);
	}
	if (t->n_hidden)
		buf_printf(out, "; and %u more", t->n_hidden);
	if (!t->n_front)
		return;
	buf_printf(out, "; %u experiment%s ahead in the queue, first ", t->n_front,
		   t->n_front == 1 ? " is" : "s are");
	lock_name(&t->first, out);
}

static void pause_until(const struct taking *t, int64_t until_ns)
{
	while (clock_mono_ns() < until_ns && !is_cancelled(t->hooks))
		nanosleep(&(struct timespec){ 0, SLICE_NS }, NULL);
}

static double waited_s(const struct taking *t)
{
	return (double)(clock_mono_ns() - t->began_ns) * 1e-9;
}

/* text: "Waiting for ...". An unchanged text is repeated less often. */
static void say_waiting(struct taking *t, const struct buf *text)
{
	int64_t now_ns = clock_mono_ns();
	bool is_same = str_eq(buf_str(&t->said), buf_str(text));

	if (!t->hooks || !t->hooks->line || (t->said_ns && now_ns - t->said_ns <
					     (is_same ? SAME_EVERY_NS : LINE_EVERY_NS)))
		return;
	t->said_ns = now_ns;
	buf_reset(&t->said);
	buf_add_str(&t->said, buf_str(text));
	t->hooks->line(t->hooks->self, text->data);
}

/* Tries until it is our turn and they are free, or the time is over. */
static int wait_for_all(struct taking *t, enum allocate_fault *fault, struct err *e)
{
	double wait_s = t->x->resources.wait_s;
	struct buf text = { 0 };
	int result;

	for (unsigned n = 0; (result = attempt(t, e)) == 0; n++) {
		int64_t now_ns = clock_mono_ns();

		if (is_cancelled(t->hooks)) {
			result = err_set(e, ERR_CANCELLED, "stopped while waiting for GPUs");
			break;
		}
		/*
		 * A lock may be about to end and a reading late, so there is at least one more
		 * attempt.
		 */
		if (waited_s(t) >= wait_s && n > 0 && !(t->may_pass && waited_s(t) < AT_ONCE_S))
			break;
		if (wait_s > 0) {
			buf_reset(&text);
			buf_add_text(&text, "Waiting for GPUs: ");
			describe(t, false, &text);
			say_waiting(t, &text);
		}
		pause_until(t, now_ns + POLL_NS);
	}
	if (result == 0) {
		buf_reset(&text);
		describe(t, true, &text);
		if (wait_s > 0)
			buf_printf(&text, " (waited %g s)", wait_s);
		err_set(e, ERR_RUN, "%s", text.data);
	}
	buf_release(&text);
	if (result > 0)
		return 0;
	return result == 0 ? fail(fault, ALLOCATE_FAULT_GPUS_BUSY) : fail_locks(fault, e);
}

static int take_gpus(struct taking *t, enum allocate_fault *fault, struct err *e)
{
	struct buf wants = { 0 };
	size_t n;
	const struct gpu *g = gpu_list(t->gpus, &n);
	const struct roster_hooks hooks = {
		.self = t->hooks ? t->hooks->self : NULL,
		.warn = t->hooks ? t->hooks->warn : NULL,
		.cancel = cancel_of(t),
	};
	int result;

	for (size_t i = 0; i < t->may.n; i++) {
		char name[128];

		choose_lock_name(&g[t->may.place[i]], name);
		buf_printf(&wants, "%s ", name);
	}
	if (wants.len >= sizeof(t->me.wants)) {
		err_set(e, ERR_LIMIT, "%zu GPUs to choose from: their names are longer than the "
			"%zu bytes that can be stored; list the GPUs in "
			"resources.gpus", t->may.n, sizeof(t->me.wants));
		buf_release(&wants);
		return fail(fault, ALLOCATE_FAULT_NO_GPU);
	}
	memcpy(t->me.wants, wants.data, wants.len + 1);
	buf_release(&wants);
	free(t->place);
	t->place = mem_array(t->want, sizeof(*t->place));
	/* Servers of killed runs may be ending, with the GPUs they had. */
	roster_clean(&hooks);
	result = queue_enter(&t->queue, &t->me, cancel_of(t), e);
	if (result == 0) {
		lock_clean(t->queue.tickets);
		result = queue_take_ticket(&t->queue, &t->me, e);
		queue_leave(&t->queue);
	}
	if (result < 0)
		return fail_locks(fault, e);
	result = wait_for_all(t, fault, e);
	lock_give(&t->queue.ticket);
	t->me.wants[0] = 0;
	return result;
}

/* Whether the ports that servers name are available now. -1 with e: ERR_NET when one is busy. */
static int try_named_ports(struct taking *t, struct err *e)
{
	int result = queue_enter(&t->queue, &t->me, cancel_of(t), e);

	if (result < 0)
		return -1;
	for (size_t i = 0; i < t->x->n_servers && result == 0; i++) {
		const struct experiment_server *s = &t->x->server[i];
		struct lock l = { 0 };
		unsigned port;

		if (s->url || !s->port)
			continue;
		result = port_take(t->queue.folder, s->port, s->port, &t->me, &port, &l, e);
		lock_give(&l);
		if (result < 0)
			err_wrap(e, "%s", s->name);
	}
	queue_leave(&t->queue);
	return result;
}

/* Waits until they are free or the time is over. Nothing is held meanwhile. */
static int wait_for_ports(struct taking *t, enum allocate_fault *fault, struct err *e)
{
	double wait_s = t->x->resources.wait_s;
	struct buf text = { 0 };

	while (try_named_ports(t, e) < 0) {
		int64_t now_ns = clock_mono_ns();

		if (is_cancelled(t->hooks))
			err_set(e, ERR_CANCELLED, "stopped while waiting for a port");
		if (e->code == ERR_CANCELLED)
			return fail(fault, ALLOCATE_FAULT_CANCELLED);
		if (e->code != ERR_NET)
			return fail(fault, ALLOCATE_FAULT_LOCKS);
		if (waited_s(t) >= wait_s) {
			if (wait_s > 0)
				err_add(e, " (waited %g s)", wait_s);
			return fail(fault, ALLOCATE_FAULT_PORTS);
		}
		buf_reset(&text);
		buf_printf(&text, "Waiting for a port: %s", e->text);
		say_waiting(t, &text);
		buf_release(&text);
		*e = (struct err){ 0 };
		pause_until(t, now_ns + POLL_NS);
	}
	return 0;
}

static int take_ports(struct taking *t, enum allocate_fault *fault, struct err *e)
{
	unsigned first = t->x->resources.port_first, last = t->x->resources.port_last;
	int result = queue_enter(&t->queue, &t->me, cancel_of(t), e);

	if (result < 0)
		return fail_locks(fault, e);
	/* Removes what killed runs left, while no other process is looking. */
	lock_clean(t->queue.folder);
	if (first == 0)
		port_range(&first, &last);
	for (size_t i = 0; i < t->x->n_servers && result == 0; i++) {
		const struct experiment_server *s = &t->x->server[i];
		unsigned from = s->port ? s->port : first, to = s->port ? s->port : last;
		struct lock l = { 0 };

		if (s->url)
			continue;
		result = port_take(t->queue.folder, from, to, &t->me, &t->out->server[i].port, &l,
				   e);
		if (result == 0)
			keep_lock(t->out, &l);
		else
			err_wrap(e, "%s", s->name);
	}
	queue_leave(&t->queue);
	return result < 0 ? fail(fault, ALLOCATE_FAULT_PORTS) : 0;
}

/* ---- all of it ---- */

/* GPUs are not held while waiting for a port, which may have been taken in the meantime. */
static int take_all(struct taking *t, enum allocate_fault *fault, struct err *e)
{
	bool has_names = false;
	int result;

	for (size_t i = 0; i < t->x->n_servers; i++)
		has_names |= !t->x->server[i].url && t->x->server[i].port;
	for (;;) {
		if (has_names && wait_for_ports(t, fault, e) < 0)
			return -1;
		if (t->want && take_gpus(t, fault, e) < 0)
			return -1;
		result = take_ports(t, fault, e);
		if (result == 0 || !has_names || e->code != ERR_NET ||
		    waited_s(t) >= t->x->resources.wait_s)
			return result;
		while (t->out->n_locks)
			lock_give(&t->out->lock[--t->out->n_locks]);
		*e = (struct err){ 0 };
	}
}

static int take(struct taking *t, enum allocate_fault *fault, struct err *e)
{
	struct buf folder = { 0 };
	size_t n_started = 0;
	int result = -1;

	for (size_t i = 0; i < t->x->n_servers; i++)
		n_started += !t->x->server[i].url;
	if (n_started == 0)
		return 0;
	if (find_shares(t, e) < 0)
		return fail(fault, ALLOCATE_FAULT_NO_GPU);
	if (check_machine(t, fault, e) < 0)
		return -1;
	t->began_ns = clock_mono_ns();
	if (lock_folder(&folder, e) < 0 || queue_init(&t->queue, folder.data, e) < 0)
		fail(fault, ALLOCATE_FAULT_LOCKS);
	else
		result = take_all(t, fault, e);
	if (result == 0)
		allocation_tell(t->out, t->x, t->gpus, t->share, t->place);
	buf_release(&folder);
	return result;
}

int allocate(const struct experiment *x, const char *run_id, const struct gpu_set *gpus,
	     const struct experiment_hooks *hooks, struct allocation *out,
	     enum allocate_fault *fault, struct err *e)
{
	struct taking t = { .x = x, .gpus = gpus, .hooks = hooks, .out = out };
	struct err own = { 0 };
	int result;

	assert(x->serving < x->n_servers || x->n_servers == 0);
	*out = (struct allocation){ .n_servers = x->n_servers };
	out->server = arena_alloc(&out->arena, (x->n_servers + 1) * sizeof(*out->server));
	snprintf(t.me.run, sizeof(t.me.run), "%s", run_id ? run_id : "");
	if (fault)
		*fault = ALLOCATE_FAULT_NONE;
	result = take(&t, fault, e ? e : &own);
	if (result < 0)
		allocate_release(out);
	queue_release(&t.queue);
	buf_release(&t.said);
	free(t.may.place);
	free(t.share);
	free(t.place);
	return result;
}

bool allocate_settle(const struct allocation *a, const struct gpu_set *gpus,
		     const struct experiment_hooks *hooks)
{
	int64_t until_ns = clock_mono_ns() + (int64_t)(SETTLE_S * 1e9);
	size_t n;
	const struct gpu *g = gpu_list(gpus, &n);

	for (size_t i = 0; i < a->n_gpus; i++) {
		const struct gpu *one = &g[a->used_place[i]];
		double room = fmax(SETTLE_BYTES, SETTLE_SHARE * one->memory_bytes);
		struct gpu_sample now;

		for (;;) {
			gpu_sample(gpus, a->used_place[i], &now);
			/* Memory use is unknown, then or now: there is nothing to wait for. */
			if (!(now.memory_used_bytes > a->used_bytes[i] + room))
				break;
			if (is_cancelled(hooks))
				return false;
			if (clock_mono_ns() > until_ns) {
				struct buf text = { 0 };

				choose_call(one, &text);
				buf_printf(&text, " still has %.1f GiB in use %g s after its server "
					   "was stopped, %.1f more than before",
					   now.memory_used_bytes / GIB, SETTLE_S,
					   (now.memory_used_bytes - a->used_bytes[i]) / GIB);
				if (hooks && hooks->warn)
					hooks->warn(hooks->self, text.data);
				buf_release(&text);
				return false;
			}
			nanosleep(&(struct timespec){ 0, POLL_NS / 2 }, NULL);
		}
	}
	return true;
}

void allocate_release(struct allocation *a)
{
	for (size_t i = 0; i < a->n_locks; i++)
		lock_give(&a->lock[i]);
	free(a->lock);
	arena_release(&a->arena);
	*a = (struct allocation){ 0 };
}
