/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - see parts.h. */
#include "web/parts.h"

#include "base/utf8.h"
#include "web/web.h"

int parts_open(const struct web_request *r, struct parts *p, struct err *e)
{
	*p = (struct parts){ .request = r };
	if (form_open(&p->form, r->content_type, r->raw))
		return 0;
	return err_set(e, ERR_USAGE,
		       "the body is not the form (multipart/form-data) that its Content-Type promises");
}

/* Valid UTF-8 without control characters, of bounded length. */
static struct str clean(struct arena *a, struct str name)
{
	struct buf out = { 0 };
	struct str done;

	if (name.n > PARTS_NAME_BYTES_MAX)
		name.n = PARTS_NAME_BYTES_MAX;
	utf8_add_lossy(&out, name);
	for (size_t i = 0; i < out.len; i++)
		if ((unsigned char)out.data[i] < 0x20 || out.data[i] == 0x7f)
			out.data[i] = '_';
	done = arena_str(a, buf_str(&out));
	buf_release(&out);
	return done;
}

int parts_next(struct parts *p, struct part *out, struct err *e)
{
	struct form_part part;
	int rc = form_next(&p->form, &part, e);

	if (rc < 0) {
		e->code = ERR_USAGE;
		return -1;
	}
	if (rc == 0)
		return 0;
	if (++p->n > WEB_PARTS_MAX)
		return err_set(e, ERR_USAGE, "the form has more than %d parts (WEB_PARTS_MAX)",
			       WEB_PARTS_MAX);
	*out = (struct part){
		.field = clean(p->request->arena, part.name),
		.name = clean(p->request->arena, part.filename), .bytes = part.body,
	};
	return 1;
}
