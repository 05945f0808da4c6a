/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - see ranks.h. Messages between rank 0 and another rank, each with a tag; a message of
 * variable length is preceded by its length.
 *
 * The declarations are the binary interface of Open MPI (libmpi.so.40, versions 4 and 5): handles
 * are addresses of objects of the library, and a status may be NULL.
 */
#include "host/ranks/ranks.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/library.h"
#include "core/base/mem.h"

#define LOOK_NS 500000            /* between two looks for a message */
#define CLOCK_ROUNDS 64           /* exchanges with each rank; the shortest counts */
#define START_AHEAD_NS 100000000  /* from the agreement to the start */
#define PIECE_BYTES (64 << 20)    /* of a long message */
#define BOOT_ID_BYTES 40

struct mpi_object;
extern struct mpi_object *ompi_mpi_comm_world, *ompi_mpi_byte, *ompi_mpi_errors_return;
int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Comm_rank(void *comm, int *rank);
int MPI_Comm_size(void *comm, int *size);
int MPI_Comm_set_errhandler(void *comm, void *handler);
int MPI_Iprobe(int from, int tag, void *comm, int *is_there, void *status);
int MPI_Send(const void *data, int n, void *type, int to, int tag, void *comm);
int MPI_Recv(void *data, int n, void *type, int from, int tag, void *comm, void *status);

#define MPI_CALLS(X) X(MPI_Init) X(MPI_Finalize) X(MPI_Comm_rank) X(MPI_Comm_size) \
	X(MPI_Comm_set_errhandler) X(MPI_Iprobe) X(MPI_Send) X(MPI_Recv) \
	X(ompi_mpi_comm_world) X(ompi_mpi_byte) X(ompi_mpi_errors_return)
#define MPI_FILE "libmpi.so.40"
LIBRARY(mpi, MPI_CALLS, MPI_FILE, "openmpi-bin");

enum tag { TAG_HELLO = 1, TAG_SHARED, TAG_OUTCOME, TAG_VERDICT, TAG_CLOCK, TAG_START, TAG_REPORT,
	   TAG_ENDED, TAG_GO, TAG_BYTES, TAG_PIECE };

struct hello { char host[RANK_HOST_BYTES], boot_id[BOOT_ID_BYTES]; };
struct outcome { int rc; struct err err; };
struct report { uint64_t done, failed, tokens; };

static void put(int to, enum tag tag, const void *data, size_t n)
{
	mpi.MPI_Send(data, (int)n, mpi.ompi_mpi_byte, to, tag, mpi.ompi_mpi_comm_world);
}

static bool is_there(int from, enum tag tag)
{
	int is = 0;

	return mpi.MPI_Iprobe(from, tag, mpi.ompi_mpi_comm_world, &is, NULL) == 0 && is;
}

static void receive(int from, enum tag tag, void *data, size_t n)
{
	mpi.MPI_Recv(data, (int)n, mpi.ompi_mpi_byte, from, tag, mpi.ompi_mpi_comm_world, NULL);
}

/* False: it had not come by then. */
static bool take_until(int from, enum tag tag, int64_t until_mono_ns, void *data, size_t n)
{
	const struct timespec pause = { 0, LOOK_NS };

	while (!is_there(from, tag)) {
		if (clock_mono_ns() >= until_mono_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	receive(from, tag, data, n);
	return true;
}

static void take(int from, enum tag tag, void *data, size_t n)
{
	take_until(from, tag, INT64_MAX, data, n);
}

bool ranks_are_started(void)
{
	const char *text = getenv("OMPI_COMM_WORLD_SIZE");
	int64_t n;

	return text && str_to_i64(str_of(text), &n) && n > 1;
}

/* A number that Open MPI has in the environment of each process. */
static unsigned from_env(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);
	uint64_t n;

	return text && str_to_u64(str_of(text), &n) && n <= RANKS_MAX ? (unsigned)n : otherwise;
}

static void say_hello(struct hello *h)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	*h = (struct hello){ 0 };
	if (gethostname(h->host, sizeof(h->host) - 1) < 0)
		snprintf(h->host, sizeof(h->host), "unknown");
	if (fd >= 0) {
		if (read(fd, h->boot_id, sizeof(h->boot_id) - 1) < 0)
			h->boot_id[0] = 0;
		close(fd);
	}
}

/* An offset of 0 where the clocks are one. */
static void meet(struct ranks *r)
{
	struct hello own, other;

	say_hello(&own);
	if (r->rank) {
		put(0, TAG_HELLO, &own, sizeof(own));
		return;
	}
	for (int i = 1; i < r->n; i++) {
		take(i, TAG_HELLO, &other, sizeof(other));
		other.host[sizeof(other.host) - 1] = 0;
		snprintf(r->peer[i].host, sizeof(r->peer[i].host), "%s", other.host);
		r->peer[i].is_same_clock = *own.boot_id &&
			memcmp(own.boot_id, other.boot_id, sizeof(own.boot_id)) == 0;
	}
}

int ranks_join(struct ranks *r, struct err *e)
{
	assert(ranks_are_started());
	*r = (struct ranks){ 0 };
	/* Its plugins look up symbols globally. */
	dlopen(MPI_FILE, RTLD_NOW | RTLD_GLOBAL);
	if (library_open(&mpi_library, e) < 0)
		return err_wrap(e, "mpirun started this process");
	if (mpi.MPI_Init(NULL, NULL) != 0)
		return err_set(e, ERR_RUN, "mpirun started this process, but MPI_Init failed");
	mpi.MPI_Comm_set_errhandler(mpi.ompi_mpi_comm_world, mpi.ompi_mpi_errors_return);
	mpi.MPI_Comm_rank(mpi.ompi_mpi_comm_world, &r->rank);
	mpi.MPI_Comm_size(mpi.ompi_mpi_comm_world, &r->n);
	if (r->n > RANKS_MAX)
		return err_set(e, ERR_LIMIT, "mpirun started %d processes; the limit is %d (RANKS_MAX)",
			       r->n, RANKS_MAX);
	r->n_local = from_env("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
	r->local = from_env("OMPI_COMM_WORLD_LOCAL_RANK", 0);
	if (r->n_local == 0 || r->local >= r->n_local)
		return err_set(e, ERR_RUN, "mpirun says that this is process %u of %u on this machine",
			       r->local, r->n_local);
	r->peer = mem_array((size_t)r->n, sizeof(*r->peer));
	meet(r);
	return 0;
}

void ranks_leave(struct ranks *r)
{
	bool is_whole = true;

	for (int i = 1; i < r->n && r->peer; i++)
		is_whole = is_whole && !r->peer[i].is_lost;
	if (r->n && is_whole) /* it waits for every rank */
		mpi.MPI_Finalize();
	for (int i = 1; i < r->n && r->peer; i++)
		free(r->peer[i].facts);
	free(r->peer);
	*r = (struct ranks){ 0 };
}

int ranks_share(struct ranks *r, void *data, size_t bytes, struct err *e)
{
	if (bytes > PIECE_BYTES)
		return err_set(e, ERR_LIMIT, "a message of %zu bytes is longer than the limit of %d",
			       bytes, PIECE_BYTES);
	for (int i = 1; r->rank == 0 && i < r->n; i++)
		if (!r->peer[i].is_lost)
			put(i, TAG_SHARED, data, bytes);
	if (r->rank)
		take(0, TAG_SHARED, data, bytes);
	return 0;
}

int ranks_agree(struct ranks *r, int rc, struct err *e)
{
	struct outcome own = { rc, *e }, first = own, other;

	if (r->rank) {
		put(0, TAG_OUTCOME, &own, sizeof(own));
		take(0, TAG_VERDICT, &first, sizeof(first));
		return first.rc < 0 ? -1 : 0;
	}
	for (int i = 1; i < r->n; i++) {
		if (r->peer[i].is_lost)
			continue;
		take(i, TAG_OUTCOME, &other, sizeof(other));
		if (first.rc == 0 && other.rc < 0) {
			first = other;
			err_wrap(&first.err, "rank %d on %s", i, r->peer[i].host);
		}
	}
	for (int i = 1; i < r->n; i++)
		if (!r->peer[i].is_lost)
			put(i, TAG_VERDICT, &first, sizeof(first));
	if (first.rc < 0)
		*e = first.err;
	return first.rc < 0 ? -1 : 0;
}

/* ---- clocks ---- */

/* Its clock minus ours, and how wrong that may be. */
static void ask_clock(int from, int64_t *offset_ns, int64_t *error_ns)
{
	int64_t best = INT64_MAX;

	for (int k = 0; k < CLOCK_ROUNDS; k++) {
		int64_t there, sent = clock_real_ns(), trip;

		put(from, TAG_CLOCK, &sent, sizeof(sent));
		receive(from, TAG_CLOCK, &there, sizeof(there));
		trip = clock_real_ns() - sent;
		if (trip >= best)
			continue;
		best = trip;
		*offset_ns = there - (sent + trip / 2);
	}
	*error_ns = best / 2 + 1;
}

static void tell_clock(void)
{
	int64_t now;

	take(0, TAG_CLOCK, &now, sizeof(now));
	for (int k = 0; k < CLOCK_ROUNDS; k++) {
		now = clock_real_ns();
		put(0, TAG_CLOCK, &now, sizeof(now));
		if (k + 1 < CLOCK_ROUNDS)
			receive(0, TAG_CLOCK, &now, sizeof(now));
	}
}

int ranks_start(struct ranks *r, int64_t *start_mono_ns, struct err *e)
{
	int64_t at, ahead;

	if (ranks_agree(r, 0, e) < 0)
		return -1;
	if (r->rank) {
		tell_clock();
		take(0, TAG_START, &at, sizeof(at));
		ahead = at - clock_real_ns();
		*start_mono_ns = clock_mono_ns() + ahead;
		return 0;
	}
	for (int i = 1; i < r->n; i++) {
		struct rank_peer *p = &r->peer[i];

		ask_clock(i, &p->offset_ns, &p->error_ns);
		if (p->is_same_clock && llabs(p->offset_ns) <= p->error_ns)
			p->offset_ns = p->error_ns = 0;
	}
	at = clock_real_ns() + START_AHEAD_NS;
	for (int i = 1; i < r->n; i++) {
		int64_t theirs = at + r->peer[i].offset_ns;

		r->peer[i].heard_ns = clock_mono_ns() + START_AHEAD_NS;
		put(i, TAG_START, &theirs, sizeof(theirs));
	}
	ahead = at - clock_real_ns();
	*start_mono_ns = clock_mono_ns() + ahead;
	return 0;
}

void ranks_check_clocks(struct ranks *r)
{
	if (r->rank) {
		tell_clock();
		return;
	}
	for (int i = 1; i < r->n; i++) {
		int64_t offset, error;

		if (r->peer[i].is_lost)
			continue;
		ask_clock(i, &offset, &error);
		offset = llabs(offset - r->peer[i].offset_ns);
		r->peer[i].drift_ns = offset > error ? offset : 0;
	}
}

/* ---- while load runs ---- */

static void listen(struct ranks *r)
{
	for (int i = 1; i < r->n; i++) {
		struct rank_peer *p = &r->peer[i];
		struct report now;
		int64_t silence;

		while (!p->is_lost && !p->has_ended && is_there(i, TAG_REPORT)) {
			receive(i, TAG_REPORT, &now, sizeof(now));
			p->done = now.done;
			p->failed = now.failed;
			p->tokens = now.tokens;
			silence = clock_mono_ns() - p->heard_ns;
			p->silence_ns = silence > p->silence_ns ? silence : p->silence_ns;
			p->heard_ns = clock_mono_ns();
		}
		if (!p->is_lost && !p->has_ended && is_there(i, TAG_ENDED)) {
			p->facts = mem_alloc(RANK_FACTS_BYTES);
			receive(i, TAG_ENDED, p->facts, RANK_FACTS_BYTES);
			p->has_ended = true;
		}
		if (!p->has_ended && clock_mono_ns() - p->heard_ns > RANK_SILENT_NS)
			p->is_lost = true;
	}
}

void ranks_tick(struct ranks *r, uint64_t done, uint64_t failed, uint64_t tokens)
{
	struct report now = { done, failed, tokens };

	if (r->rank)
		put(0, TAG_REPORT, &now, sizeof(now));
	else
		listen(r);
}

void ranks_ended(struct ranks *r, const void *facts, size_t n)
{
	assert(r->rank && n <= RANK_FACTS_BYTES);
	put(0, TAG_ENDED, facts, n);
}

static bool is_running(const struct ranks *r)
{
	for (int i = 1; i < r->n; i++)
		if (!r->peer[i].has_ended && !r->peer[i].is_lost)
			return true;
	return false;
}

void ranks_wait(struct ranks *r, void (*tick)(void *self), void *self)
{
	const struct timespec pause = { 0, 100000000 };

	assert(r->rank == 0);
	for (listen(r); is_running(r); listen(r)) {
		tick(self);
		nanosleep(&pause, NULL);
	}
}

/* ---- files ---- */

int ranks_deliver(struct ranks *r, const char *path, struct err *e)
{
	struct str file = { 0 };
	int rc = file_map(path, &file, e);
	uint64_t n = file.n; /* 0: no file */
	char go;

	assert(r->rank);
	if (!take_until(0, TAG_GO, clock_mono_ns() + RANK_DELIVERY_NS, &go, 1))
		rc = err_set(e, ERR_RUN, "rank 0 did not ask for the record of rank %d", r->rank);
	else
		put(0, TAG_BYTES, &n, sizeof(n));
	for (size_t at = 0, piece; rc == 0 && at < n; at += piece) {
		piece = n - at < PIECE_BYTES ? n - at : PIECE_BYTES;
		put(0, TAG_PIECE, file.p + at, piece);
	}
	if (file.n)
		file_unmap(file);
	return rc;
}

/* Receives the next piece; returns its length, -1: none. */
static int64_t take_piece(int from, uint64_t left, char *piece)
{
	size_t n = left < PIECE_BYTES ? left : PIECE_BYTES;

	if (!take_until(from, TAG_PIECE, clock_mono_ns() + RANK_SILENT_NS, piece, n))
		return -1;
	return (int64_t)n;
}

int ranks_take(struct ranks *r, int from, const char *path, struct err *e)
{
	struct rank_peer *p = &r->peer[from];
	uint64_t left;
	char *piece;
	int fd, rc = -1;

	assert(r->rank == 0 && from > 0 && from < r->n && !p->is_lost);
	put(from, TAG_GO, "", 1);
	if (!take_until(from, TAG_BYTES, clock_mono_ns() + RANK_DELIVERY_NS, &left, sizeof(left)) ||
	    left == 0) {
		p->is_lost = true;
		return err_set(e, ERR_RUN, "rank %d on %s delivered no record", from, p->host);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	piece = mem_alloc(PIECE_BYTES);
	while (left) {
		int64_t n = take_piece(from, left, piece);

		if (n < 0) {
			p->is_lost = true;
			err_set(e, ERR_RUN, "the record of rank %d on %s broke off", from, p->host);
			goto done;
		}
		if (fd >= 0 && file_write_all(fd, (struct str){ piece, (size_t)n }) < 0) {
			close(fd);
			fd = -1;
		}
		left -= (uint64_t)n;
	}
	rc = fd >= 0 ? 0 : err_set(e, ERR_IO, "cannot write %s: %s", path, strerror(errno));
done:
	if (fd >= 0)
		close(fd);
	free(piece);
	return rc;
}
