/* SPDX-License-Identifier: Apache-2.0 */
/* store_newest.c - see store_newest.h. */
#include "cmd/verbs/store_newest.h"

#include "results/store/store.h"

int store_newest_open(const char *url, struct store **out, struct err *e)
{
	const struct store_opts how = { .url = url, .is_read_only = true };

	return store_open(&how, out, e);
}

void store_newest_close(struct store *s)
{
	if (s)
		store_close(s);
}

static int find(struct store *s, struct str filter, size_t n, struct arena *a, struct answer *out,
		struct err *e)
{
	struct query q = { .limit = n, .n_sorts = 1,
			   .sort = { { .column = STR("timestamp"), .is_descending = true } } };
	struct json_value *v = NULL;
	struct filter *f = NULL;
	struct index_view *view;
	int rc;

	if (json_parse(a, filter, &v, e) < 0 || filter_read(v, NULL, a, &f, e) < 0)
		return -1;
	q.filter = f;
	view = store_view(s);
	rc = index_query(view, &q, a, out, e);
	index_view_release(view);
	return rc;
}

int store_newest(struct store *s, struct str filter, size_t n, void *self,
		 int (*take)(void *self, struct str document, struct err *e), struct err *e)
{
	struct answer answer = { 0 };
	struct arena a = { 0 };
	struct run_whole run;
	int rc = find(s, filter, n, &a, &answer, e);

	for (size_t i = 0; rc == 0 && i < answer.n_rows; i++) {
		rc = store_run(s, answer.row[i].id, &a, &run, e);
		if (rc == 0)
			rc = take(self, run.document, e);
	}
	arena_release(&a);
	return rc;
}
