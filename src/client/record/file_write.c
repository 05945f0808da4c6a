/* SPDX-License-Identifier: Apache-2.0 */
/* file_write.c - saving a record; see file.h and docs/record-format.md. */
#include "client/record/file_write.h"

#include <errno.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"

void record_info_release(struct record_info *info)
{
	if (!info)
		return;
	free(info->host);
	free(info->row_index);
	*info = (struct record_info){ 0 };
}

void record_info_here(struct record_info *info, uint32_t number, uint32_t n_shards)
{
	struct record_host *h = mem_alloc(sizeof(*h));

	if (gethostname(h->name, sizeof(h->name) - 1) < 0)
		snprintf(h->name, sizeof(h->name), "unknown");
	h->number = number;
	h->n_shards = n_shards;
	h->start_real_ns = clock_real_ns();
	h->start_mono_ns = clock_mono_ns();
	*info = (struct record_info){ .host = h, .n_hosts = 1, .is_complete = true };
}

void record_info_stop(struct record_info *info)
{
	info->host[0].stop_real_ns = clock_real_ns();
	info->host[0].stop_mono_ns = clock_mono_ns();
}

int64_t record_host_step_ns(const struct record_host *h)
{
	if (!h->start_real_ns || !h->stop_real_ns)
		return 0;
	return (h->stop_real_ns - h->start_real_ns) - (h->stop_mono_ns - h->start_mono_ns);
}

/* ---- blocks ---- */

static void put_text(struct buf *out, const char *text)
{
	buf_add_text(out, text);
}

static void write_columns(struct buf *out)
{
	size_t at = block_begin(out, BLOCK_COLUMNS);

	put_u32(out, (uint32_t)record_n_columns);
	for (size_t i = 0; i < record_n_columns; i++) {
		const struct record_column *c = &record_columns[i];

		buf_add_char(out, (char)c->type);
		buf_add_char(out, (char)c->size);
		put_u16(out, (uint16_t)strlen(c->name));
		put_u16(out, (uint16_t)strlen(c->unit));
		put_u16(out, 0);
		put_text(out, c->name);
		put_text(out, c->unit);
	}
	block_end(out, at);
}

static void write_host(struct buf *out, const struct record_host *h)
{
	size_t at = block_begin(out, BLOCK_HOST);

	put_i64(out, h->start_real_ns);
	put_i64(out, h->start_mono_ns);
	put_i64(out, h->stop_real_ns);
	put_i64(out, h->stop_mono_ns);
	put_u32(out, h->number);
	put_u32(out, h->first_shard);
	put_u32(out, h->n_shards);
	put_u32(out, (uint32_t)strlen(h->name));
	put_text(out, h->name);
	block_end(out, at);
}

static void write_shape(struct buf *out, const struct record *r)
{
	size_t at = block_begin(out, BLOCK_SHAPE);

	put_u32(out, r->n_rows);
	put_u32(out, r->n_shards);
	for (uint32_t i = 0; i < r->n_shards; i++) {
		const struct record_shard *s = &r->shard[i];

		buf_add_char(out, (char)((s->keeps_skew ? SHARD_SKEW : 0) |
					 (s->keeps_text ? SHARD_TEXT : 0) |
					 (s->is_full ? SHARD_FULL : 0)));
	}
	block_end(out, at);
}

static void write_state(struct buf *out, const struct record *r, const struct record_info *info)
{
	if (r->meta) {
		size_t at = block_begin(out, BLOCK_META);

		put_text(out, r->meta);
		block_end(out, at);
	}
	for (uint32_t i = 0; i < info->n_hosts; i++)
		write_host(out, &info->host[i]);
	write_shape(out, r);
}

void write_opening(struct buf *out, const struct record *r, const struct record_info *info)
{
	buf_add(out, RECORD_MAGIC, RECORD_MAGIC_BYTES);
	write_columns(out);
	write_state(out, r, info);
}

static void write_series(struct buf *out, const struct record_series *s)
{
	size_t at = block_begin(out, BLOCK_SERIES);

	put_u32(out, (uint32_t)s->n);
	put_u32(out, (uint32_t)strlen(s->name));
	put_u32(out, (uint32_t)strlen(s->unit));
	put_u32(out, (uint32_t)strlen(s->labels));
	put_text(out, s->name);
	put_text(out, s->unit);
	put_text(out, s->labels);
	for (size_t i = 0; i < s->n; i++)
		put_i64(out, s->point[i].at_ns);
	for (size_t i = 0; i < s->n; i++)
		buf_add(out, &s->point[i].value, sizeof(s->point[i].value));
	block_end(out, at);
}

static void write_note(struct buf *out, const struct record_note *n)
{
	size_t at = block_begin(out, BLOCK_NOTE);

	put_i64(out, n->at_ns);
	put_u32(out, (uint32_t)strlen(n->kind));
	put_u32(out, (uint32_t)strlen(n->text));
	put_text(out, n->kind);
	put_text(out, n->text);
	block_end(out, at);
}

void write_closing(struct buf *out, const struct record *r, const struct record_info *info,
		   uint32_t n_rows, uint64_t n_events)
{
	size_t at;

	for (size_t i = 0; i < r->n_series; i++)
		write_series(out, r->series[i]);
	for (size_t i = 0; i < r->n_notes; i++)
		write_note(out, &r->note[i]);
	write_state(out, r, info);
	at = block_begin(out, BLOCK_END);
	put_i64(out, r->start_ns);
	put_i64(out, r->stop_ns);
	put_u32(out, n_rows);
	put_u32(out, r->is_interrupted ? END_INTERRUPTED : 0);
	put_i64(out, (int64_t)n_events);
	block_end(out, at);
}

int write_out(int fd, struct buf *b)
{
	if (b->is_over) {
		errno = EFBIG;
		return -1;
	}
	if (file_write_all(fd, buf_str(b)) < 0)
		return -1;
	buf_reset(b);
	return 0;
}

/* ---- whole files ---- */

static int write_all_rows(int fd, const struct record *r, const struct record_info *info)
{
	struct buf out = { 0 };
	struct batch batch;
	uint32_t n_rows = 0;
	int rc = -1;

	batch_init(&batch);
	write_opening(&out, r, info);
	for (uint32_t i = 0; i < r->n_rows; i++) {
		if (r->row[i].state == REQ_UNSENT)
			continue;
		batch_add(&batch, r, i);
		n_rows++;
		if (batch.n_rows < BATCH_ROWS_MAX && batch_bytes(&batch) < BATCH_BYTES_MAX)
			continue;
		batch_flush(&batch, &out);
		if (write_out(fd, &out) < 0)
			goto done;
	}
	batch_flush(&batch, &out);
	write_closing(&out, r, info, n_rows, batch.n_events);
	rc = write_out(fd, &out);
done:
	batch_release(&batch);
	buf_release(&out);
	return rc;
}

int record_file_save(const struct record *r, const struct record_info *info, const char *path,
		     struct err *e)
{
	struct record_info here = { 0 };
	struct file_swap swap;
	int rc;

	if (!info) {
		record_info_here(&here, 0, r->n_shards);
		record_info_stop(&here);
		info = &here;
	}
	rc = file_swap_begin(&swap, path);
	if (rc == 0)
		rc = file_swap_end(&swap, write_all_rows(swap.fd, r, info) == 0);
	if (rc < 0)
		err_set(e, ERR_IO, "cannot write %s: %s", path, strerror(errno));
	record_info_release(&here);
	return rc;
}
