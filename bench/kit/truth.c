/* SPDX-License-Identifier: Apache-2.0 */
/* truth.c - reads what the simulator says it did; see kit.h and serving/truth.h. */
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "kit/kit.h"

#define TRUTH_BYTES_MAX (1ull << 30)

static int read_stamps(struct truth_request *r, struct json_slice list)
{
	struct json_iter it = json_iter(list);
	struct json_slice v;
	struct str key;
	uint32_t cap = 0;

	while (json_each(&it, &key, &v) == 1) {
		if (r->events == cap) {
			cap = cap ? cap * 2 : 64;
			r->send_ns = mem_grow(r->send_ns, cap, sizeof(*r->send_ns));
		}
		if (!json_to_i64(v, &r->send_ns[r->events++]))
			return -1;
	}
	return 0;
}

static int read_line(struct truth_table *t, struct str line, struct err *e)
{
	struct json_scan scan = { line, 0 };
	struct json_slice row, id, recv, send;
	uint64_t i;

	if (json_next(&scan, &row, e) < 0)
		return -1;
	if (!json_member(row, "request_id", &id) || !json_member(row, "recv_ns", &recv) ||
	    !json_member(row, "send_ns", &send))
		return err_set(e, ERR_PARSE, "request_id, recv_ns or send_ns is missing");
	if (id.kind != JSON_STRING || id.raw.n < 2 || id.raw.p[0] != 'b' ||
	    !str_to_u64((struct str){ id.raw.p + 1, id.raw.n - 1 }, &i))
		return 0; /* not one of ours */
	if (i >= t->n || t->row[i].recv_ns)
		return err_set(e, ERR_PARSE, "request b%llu was seen twice or never sent",
			       (unsigned long long)i);
	if (!json_to_i64(recv, &t->row[i].recv_ns) || read_stamps(&t->row[i], send) < 0)
		return err_set(e, ERR_PARSE, "request b%llu has a stamp that is no number",
			       (unsigned long long)i);
	return 0;
}

int truth_read(struct truth_table *t, const char *path, uint32_t requests, struct err *e)
{
	struct buf text = { 0 };
	struct str rest;
	int rc = 0;

	t->row = mem_array(requests, sizeof(*t->row));
	t->n = requests;
	if (file_read(path, TRUTH_BYTES_MAX, &text, e) < 0)
		return -1;
	rest = buf_str(&text);
	while (rc == 0 && rest.n)
		rc = read_line(t, str_cut(&rest, '\n'), e);
	for (uint32_t i = 0; rc == 0 && i < requests; i++)
		if (t->row[i].recv_ns == 0)
			rc = err_set(e, ERR_PARSE, "request b%u is not in it", i);
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "truth file %s", path) : 0;
}

void truth_release(struct truth_table *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->row[i].send_ns);
	free(t->row);
	*t = (struct truth_table){ 0 };
}
