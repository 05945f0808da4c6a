/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres.c - the store on a PostgreSQL server, by libpq.
 *
 * Values travel in PostgreSQL's binary form; rows come one at a time, whatever the size of an
 * answer. Writers wait for each other at one advisory lock, so that changes become visible in the
 * order of their numbers. synchronous_commit is set to on for our sessions: a commit that returned
 * is on disk.
 *
 * No call waits for ever. A machine that is gone is detected by keepalives and by tcp_user_timeout,
 * a server that hangs by its silence: while we wait, something must arrive every tcp_user_timeout
 * milliseconds, which a URL may set; else the connection is closed and for a while no other one is
 * tried, so that not every client waits. A statement_timeout would not do: it would include the
 * time in which rows of a large answer are processed.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/library.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "results/store/store_internal.h"

/* The functions used, loaded on first use. */
#define PQ_CALLS(X) X(PQclear) X(PQconnectdbParams) X(PQconninfo) X(PQconninfoFree) \
	X(PQconsumeInput) X(PQenterPipelineMode) X(PQerrorMessage) X(PQexitPipelineMode) \
	X(PQfinish) X(PQflush) X(PQftype) X(PQgetResult) X(PQgetisnull) X(PQgetlength) \
	X(PQgetvalue) X(PQisBusy) X(PQnfields) X(PQpipelineSync) X(PQreset) X(PQresultErrorField) \
	X(PQresultErrorMessage) X(PQresultStatus) X(PQsendPrepare) X(PQsendQuery) \
	X(PQsendQueryPrepared) X(PQserverVersion) X(PQsetNoticeReceiver) X(PQsetSingleRowMode) \
	X(PQsetnonblocking) X(PQsocket) X(PQstatus)
LIBRARY(lib, PQ_CALLS, "libpq.so.5", "libpq5");

#define SENT_MAX 64     /* the server's replies to them must fit into its buffers */
#define SILENT_PER_REST 4 /* a server that hung rests for a quarter of its time */
#define VALUES_MAX 2048 /* parameters of one statement, and columns of one row */

/* Numbers that PostgreSQL gives its types. */
enum { OID_BOOL = 16, OID_BYTEA = 17, OID_INT8 = 20, OID_INT2 = 21, OID_INT4 = 23, OID_TEXT = 25,
       OID_FLOAT4 = 700, OID_FLOAT8 = 701 };

struct postgres {
	struct db db;
	PGconn *connection;
	struct map statements; /* by text: its number */
	struct arena texts;
	size_t n;
	size_t n_sent;         /* statements whose outcome has not been fetched */
	bool is_stale;         /* some statements may not be known to the server */
	bool is_read_only;
	bool is_silent;        /* given up because it was silent for too long */
	int silent_ms;
};

/* The server's sentences, in one line and without the query that it quotes. */
static const char *said(const char *message, char out[512])
{
	size_t n = 0;

	for (; *message && n < 510; message++) {
		bool is_blank = *message == '\n' || *message == '\t' || *message == ' ';

		if (!strncmp(message, "\nLINE ", 6))
			break;
		if (!strncmp(message, "\n\t", 2) && n && out[n - 1] != '.')
			out[n++] = '.';
		if (!is_blank || (n && out[n - 1] != ' '))
			out[n++] = is_blank ? ' ' : *message;
	}
	while (n && out[n - 1] == ' ')
		n--;
	out[n] = 0;
	return out;
}

static int fail(struct postgres *p, const PGresult *r, struct err *e)
{
	const char *state = r ? lib.PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
	char text[512];

	if (!state || lib.PQstatus(p->connection) == CONNECTION_BAD)
		return err_set(e, ERR_DATABASE_UNREACHABLE, "PostgreSQL: %s",
			       said(lib.PQerrorMessage(p->connection), text));
	if (!strcmp(state, "55P03"))
		return err_set(e, ERR_STORE_BUSY, "PostgreSQL: another process has been writing for %d s",
			       STORE_WRITER_SECONDS);
	if (!strcmp(state, "53100"))
		return err_set(e, ERR_DISK_FULL, "PostgreSQL: its disk is full: make room there, then do "
			       "this again; what was stored before is safe (%s)",
			       said(lib.PQresultErrorMessage(r), text));
	/* 53: out of something; 57: shut down; 58: the system under it. */
	if (!strncmp(state, "53", 2) || !strncmp(state, "57", 2) || !strncmp(state, "58", 2))
		return err_set(e, ERR_IO, "PostgreSQL: %s", said(lib.PQresultErrorMessage(r), text));
	if (!strcmp(state, "42501") || !strcmp(state, "3F000")) /* no right, no schema */
		return err_set(e, ERR_IO, "PostgreSQL: %s; for a new store the role needs a database of its own: "
			       "ALTER DATABASE name OWNER TO role; to read the store of another role: GRANT SELECT ON "
			       "ALL TABLES IN SCHEMA public TO role; to write it: GRANT owner TO role and ALTER ROLE "
			       "role IN DATABASE name SET role TO owner",
			       said(lib.PQresultErrorMessage(r), text));
	return err_set(e, ERR_RUN, "PostgreSQL: %s", said(lib.PQresultErrorMessage(r), text));
}

static void forget(struct postgres *p)
{
	map_release(&p->statements);
	arena_release(&p->texts);
	p->n = 0;
}

static void close_(struct db *d)
{
	struct postgres *p = (struct postgres *)d;

	forget(p);
	lib.PQfinish(p->connection);
	free(p);
}

static void no_notice(void *self, const PGresult *r)
{
	(void)self;
	(void)r;
}

/* ---- waiting for the server ---- */

/* Waits until the server has sent something, or accepted some of what PQflush left unsent. */
static int await(struct postgres *p, bool is_unsent, struct err *e)
{
	struct pollfd at = { .fd = lib.PQsocket(p->connection),
			     .events = is_unsent ? POLLIN | POLLOUT : POLLIN };
	int n;

	if (at.fd < 0)
		return fail(p, NULL, e);
	do
		n = poll(&at, 1, p->silent_ms);
	while (n < 0 && errno == EINTR);
	if (n > 0 && !(at.revents & ~POLLOUT))
		return 0;
	if (n == 0)
		shutdown(at.fd, SHUT_RDWR);
	/* After a shutdown that learns that the connection is gone. */
	if (lib.PQconsumeInput(p->connection) && n > 0)
		return 0;
	if (n > 0)
		return fail(p, NULL, e);
	p->is_silent = true;
	p->db.rest_until_ns = clock_mono_ns() + p->silent_ms * 1000000ll / SILENT_PER_REST;
	return err_set(e, ERR_DATABASE_UNREACHABLE, "PostgreSQL: no answer for %g s "
		       "(tcp_user_timeout): the server hangs, is overloaded or cannot be reached",
		       p->silent_ms / 1000.0);
}

/* Sends what is left of all queries; the server need not have answered. */
static int send_all(struct postgres *p, struct err *e)
{
	int unsent;

	while ((unsent = lib.PQflush(p->connection)) > 0)
		if (await(p, true, e) < 0)
			return -1;
	return unsent < 0 ? fail(p, NULL, e) : 0;
}

/* The next result; NULL: that was all, or *rc is -1. */
static PGresult *next_result(struct postgres *p, int *rc, struct err *e)
{
	int unsent;

	while ((unsent = lib.PQflush(p->connection)) > 0 || lib.PQisBusy(p->connection))
		if (unsent < 0 ? fail(p, NULL, e) : await(p, unsent > 0, e)) {
			*rc = -1;
			return NULL;
		}
	return lib.PQgetResult(p->connection);
}

/* For statements without an answer: whether they succeeded. */
static int outcome(struct postgres *p, struct err *e)
{
	PGresult *r;
	int rc = 0;

	while ((r = next_result(p, &rc, e))) {
		if (rc == 0 && lib.PQresultStatus(r) != PGRES_COMMAND_OK)
			rc = fail(p, r, e);
		lib.PQclear(r);
	}
	return rc;
}

static int command(struct postgres *p, const char *sql, struct err *e)
{
	return lib.PQsendQuery(p->connection, sql) ? outcome(p, e) : fail(p, NULL, e);
}

/* ---- connections ---- */

static int silent_ms(PGconn *connection)
{
	PQconninfoOption *option = lib.PQconninfo(connection);
	uint64_t ms = 0;

	for (PQconninfoOption *o = option; o && o->keyword; o++)
		if (!strcmp(o->keyword, "tcp_user_timeout") && o->val)
			str_to_u64(str_of(o->val), &ms);
	lib.PQconninfoFree(option);
	return ms > 0 && ms <= INT_MAX ? (int)ms : STORE_SILENT_MS;
}

static int set_up(struct postgres *p, struct err *e)
{
	char settings[320];

	if (lib.PQstatus(p->connection) != CONNECTION_OK)
		return fail(p, NULL, e);
	if (lib.PQserverVersion(p->connection) < 120000)
		return err_set(e, ERR_USAGE, "PostgreSQL %d is too old for the store, it needs 12",
			       lib.PQserverVersion(p->connection) / 10000);
	lib.PQsetNoticeReceiver(p->connection, no_notice, NULL);
	if (lib.PQsetnonblocking(p->connection, 1) < 0)
		return fail(p, NULL, e);
	p->silent_ms = silent_ms(p->connection);
	p->is_silent = false;
	snprintf(settings, sizeof(settings),
		 "SET synchronous_commit = on; SET client_min_messages = error;"
		 " SET extra_float_digits = 3; SET statement_timeout = 0; SET bytea_output = hex;"
		 " SET standard_conforming_strings = on; SET lock_timeout = '%ds'%s",
		 STORE_WRITER_SECONDS,
		 p->is_read_only ? "; SET default_transaction_read_only = on" : "");
	return command(p, settings, e);
}

static int take_truth(void *self, const struct db_got *got)
{
	*(bool *)self = db_as_int(got->v[0]) != 0;
	return 1;
}

/* A read replica, or a database or user whose owner allows no writes. */
static int find_replica(struct postgres *p, struct err *e)
{
	return db_run(&p->db, "SELECT pg_is_in_recovery()"
			      " OR current_setting('transaction_read_only')::boolean", NULL, 0, take_truth,
		      &p->db.is_replica, e);
}

/* Connects again in the same way. */
static int reconnect(struct postgres *p, struct err *e)
{
	lib.PQreset(p->connection);
	forget(p);
	p->n_sent = 0;
	p->is_stale = false;
	return set_up(p, e);
}

static int open_(const char *place, bool is_read_only, struct db **out, struct err *e)
{
	char connect[12], silent[12], idle[12], count[12];
	const char *key[] = { "application_name", "connect_timeout", "tcp_user_timeout",
			      "keepalives_idle", "keepalives_interval", "keepalives_count", "dbname",
			      "client_encoding", NULL };
	const char *value[] = { "profllm", connect, silent, idle, idle, count, place, "UTF8", NULL };
	struct postgres *p;

	if (library_open(&lib_library, e) < 0)
		return -1;
	p = mem_alloc(sizeof(*p));
	p->db.hooks = &db_postgres;
	p->is_read_only = is_read_only;
	snprintf(connect, sizeof(connect), "%d", STORE_CONNECT_SECONDS);
	snprintf(silent, sizeof(silent), "%d", STORE_SILENT_MS);
	snprintf(idle, sizeof(idle), "%d", STORE_KEEPALIVE_SECONDS);
	snprintf(count, sizeof(count), "%d", STORE_KEEPALIVES_MAX);
	/* dbname is expanded in place: what the URL says overrides earlier parameters. */
	p->connection = lib.PQconnectdbParams(key, value, 1);
	if (set_up(p, e) < 0 || (!is_read_only && find_replica(p, e) < 0)) {
		close_(&p->db);
		return -1;
	}
	*out = &p->db;
	return 0;
}

/* ---- values ---- */

/* Parameters in the server's binary form; number holds those with another byte order. */
struct params {
	Oid type[VALUES_MAX];
	const char *value[VALUES_MAX];
	int length[VALUES_MAX], format[VALUES_MAX];
	uint64_t number[VALUES_MAX];
};

static void set_number(struct params *p, size_t i, Oid type, uint64_t bits)
{
	p->type[i] = type;
	p->number[i] = htobe64(bits);
	p->value[i] = (const char *)&p->number[i];
	p->length[i] = 8;
}

static void set_param(struct params *p, size_t i, struct db_value v)
{
	uint64_t bits;

	p->type[i] = 0;
	p->value[i] = NULL;
	p->length[i] = 0;
	p->format[i] = 1;
	switch (v.kind) {
	case DB_NULL: break;
	case DB_BOOL:
		p->type[i] = OID_BOOL;
		p->value[i] = v.integer ? "\1" : "\0";
		p->length[i] = 1;
		break;
	case DB_INT: set_number(p, i, OID_INT8, (uint64_t)v.integer); break;
	case DB_REAL:
		memcpy(&bits, &v.real, sizeof(bits));
		set_number(p, i, OID_FLOAT8, bits);
		break;
	case DB_TEXT:
	case DB_BLOB:
		p->type[i] = v.kind == DB_TEXT ? OID_TEXT : OID_BYTEA;
		p->value[i] = v.bytes.n ? v.bytes.p : "";
		p->length[i] = (int)v.bytes.n;
		break;
	}
}

static uint64_t take_u64(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static struct db_value field(const PGresult *r, int at)
{
	const char *p = lib.PQgetvalue(r, 0, at);
	size_t n = (size_t)lib.PQgetlength(r, 0, at);
	struct db_value v = { .kind = DB_NULL };
	uint64_t bits;
	uint32_t word;
	float small;

	if (lib.PQgetisnull(r, 0, at))
		return v;
	switch (lib.PQftype(r, at)) {
	case OID_BOOL: return (struct db_value){ .kind = DB_BOOL, .integer = *p != 0 };
	case OID_INT8: return db_int((int64_t)take_u64(p));
	case OID_INT4:
		memcpy(&word, p, sizeof(word));
		return db_int((int32_t)ntohl(word));
	case OID_FLOAT8:
		bits = take_u64(p);
		v.kind = DB_REAL;
		memcpy(&v.real, &bits, sizeof(bits));
		return v;
	case OID_FLOAT4:
		memcpy(&word, p, sizeof(word));
		word = ntohl(word);
		memcpy(&small, &word, sizeof(word));
		return db_real((double)small);
	case OID_BYTEA:
		v = db_blob((struct str){ p, n });
		return v;
	default: return db_text((struct str){ p, n });
	}
}

/* ---- statements ---- */

/* The statement's name; *is_new: the server does not have it yet. */
static void name_of(struct postgres *p, const char *sql, char name[24], bool *is_new)
{
	uint64_t at = p->n;

	*is_new = !map_get(&p->statements, str_of(sql), &at);
	if (*is_new)
		map_put(&p->statements, arena_str(&p->texts, str_of(sql)), p->n++);
	snprintf(name, 24, "s%llu", (unsigned long long)at);
}

static void forget_all(struct postgres *p)
{
	command(p, "DEALLOCATE ALL", NULL);
	forget(p);
	p->is_stale = false;
}

static int prepare(struct postgres *p, const char *sql, const struct params *params, size_t n,
		   char name[24], struct err *e)
{
	bool is_new;
	int rc;

	if (p->n == DB_STATEMENTS_MAX)
		forget_all(p);
	name_of(p, sql, name, &is_new);
	if (!is_new)
		return 0;
	rc = lib.PQsendPrepare(p->connection, name, sql, (int)n, params->type) ? outcome(p, e) :
									     fail(p, NULL, e);
	if (rc)
		p->is_stale = true;
	return rc;
}

static int give_row(const PGresult *r, db_row *row, void *self, struct err *e)
{
	struct db_value small[64], *v = small;
	int n = lib.PQnfields(r), rc;

	if (n > 64)
		v = mem_array((size_t)n, sizeof(*v));
	for (int i = 0; i < n; i++)
		v[i] = field(r, i);
	rc = row(self, &(struct db_got){ v, (size_t)n, e });
	if (v != small)
		free(v);
	return rc;
}

/* Every result must be fetched, also after the first error and when no more rows are wanted. */
static int drain(struct postgres *p, db_row *row, void *self, struct err *e)
{
	PGresult *r;
	int rc = 0;

	while ((r = next_result(p, &rc, e))) {
		switch (lib.PQresultStatus(r)) {
		case PGRES_SINGLE_TUPLE:
			if (!rc && row)
				rc = give_row(r, row, self, e);
			break;
		case PGRES_COMMAND_OK:
		case PGRES_TUPLES_OK: break;
		default:
			if (rc >= 0)
				rc = fail(p, r, e);
			break;
		}
		lib.PQclear(r);
	}
	return rc < 0 ? -1 : 0;
}

/* ---- statements without an answer ---- */

/* Receives the results of everything sent; reports the first error. */
static int settle(struct postgres *p, struct err *e)
{
	bool is_over = false;
	PGresult *r;
	int rc = 0;

	if (!p->n_sent)
		return 0;
	p->n_sent = 0;
	if (!lib.PQpipelineSync(p->connection))
		rc = fail(p, NULL, e);
	/* NULL separates the results of two statements; two in a row: the connection is gone. */
	for (int empty = 0;
	     !is_over && empty < 2 && lib.PQstatus(p->connection) == CONNECTION_OK;) {
		r = next_result(p, &rc, e);
		empty = r ? 0 : empty + 1;
		is_over = r && lib.PQresultStatus(r) == PGRES_PIPELINE_SYNC;
		if (r && lib.PQresultStatus(r) == PGRES_FATAL_ERROR && !rc)
			rc = fail(p, r, e);
		lib.PQclear(r);
	}
	if (!rc && (!is_over || !lib.PQexitPipelineMode(p->connection)))
		rc = fail(p, NULL, e);
	if (rc) {
		lib.PQexitPipelineMode(p->connection);
		p->is_stale = true;
	}
	return rc;
}

static int send_on(struct postgres *p, const char *sql, const struct params *params, size_t n,
		   struct err *e)
{
	char name[24];
	bool is_new;

	if ((p->n_sent == SENT_MAX || p->n == DB_STATEMENTS_MAX) && settle(p, e) < 0)
		return -1;
	if (p->n == DB_STATEMENTS_MAX)
		forget_all(p);
	if (!p->n_sent && !lib.PQenterPipelineMode(p->connection))
		return fail(p, NULL, e);
	p->n_sent++;
	name_of(p, sql, name, &is_new);
	if (is_new && !lib.PQsendPrepare(p->connection, name, sql, (int)n, params->type))
		return fail(p, NULL, e);
	if (!lib.PQsendQueryPrepared(p->connection, name, (int)n, params->value, params->length,
				 params->format, 1))
		return fail(p, NULL, e);
	/* Otherwise large values would pile up here. */
	return send_all(p, e);
}

/* BEGIN and its like are not prepared: a transaction that failed takes no prepared statement. */
static bool is_plain(const char *sql, size_t n)
{
	return n == 0 && strncmp(sql, "SELECT", 6) != 0;
}

static int run_once(struct postgres *p, const char *sql, const struct params *params, size_t n,
		    db_row *row, void *self, struct err *e)
{
	char name[24];
	int sent;

	if (p->db.is_inside && n && !row)
		return send_on(p, sql, params, n, e);
	/* Whatever went wrong before it, a transaction is ended. */
	if (settle(p, e) < 0 && strcmp(sql, "ROLLBACK") != 0)
		return -1;
	if (p->is_stale && !p->db.is_inside)
		forget_all(p);
	if (is_plain(sql, n)) {
		sent = lib.PQsendQuery(p->connection, sql);
	} else {
		if (prepare(p, sql, params, n, name, e) < 0)
			return -1;
		sent = lib.PQsendQueryPrepared(p->connection, name, (int)n, params->value,
					   params->length, params->format, 1);
	}
	if (!sent || !lib.PQsetSingleRowMode(p->connection))
		return fail(p, NULL, e);
	return drain(p, row, self, e);
}

/* Statements outside a transaction only read, or begin one, so repeating them is harmless. */
static int run(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
	       void *self, struct err *e)
{
	struct postgres *p = (struct postgres *)d;
	struct params *params = NULL;
	int rc = 0;

	assert(n <= VALUES_MAX);
	if (n) {
		params = mem_alloc(sizeof(*params));
		for (size_t i = 0; i < n; i++)
			set_param(params, i, v[i]);
	} else {
		static struct params none;

		params = &none;
	}
	if (p->is_silent && !d->is_inside)
		rc = reconnect(p, e);
	if (!rc)
		rc = run_once(p, sql, params, n, row, self, e);
	/* A server that did not answer in time is not tried again at once. */
	if (rc < 0 && !d->is_inside && lib.PQstatus(p->connection) == CONNECTION_BAD &&
	    !p->is_silent) {
		rc = reconnect(p, e);
		if (!rc)
			rc = run_once(p, sql, params, n, row, self, e);
	}
	if (n)
		free(params);
	return rc;
}

/* The number identifies our writers among all advisory locks of the database. */
const struct db_hooks db_postgres = {
	.name = "postgresql",
	.begin = {
		[DB_WRITE] = { "BEGIN", "SELECT pg_advisory_xact_lock(7306089135123461)" },
		[DB_READ] = { "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" },
	},
	.word = { "BIGINT", "DOUBLE PRECISION", "BYTEA", "" },
	.is_partitioned = true,
	.open = open_,
	.close = close_,
	.run = run,
	.bytes = "SELECT pg_database_size(current_database())",
};
