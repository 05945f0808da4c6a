/* SPDX-License-Identifier: Apache-2.0 */
/* import_store.c - see import.h: a result and its commands, as upstream's tables want them. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "experiment/import.h"
#include "experiment/shell.h"
#include "json/write.h"

/* The word behind the maker's, one line for each GPU: "H100\nH100"; upstream's table counts them. */
static void add_gpus(const struct outcome *o, const struct experiment *x, struct buf *out)
{
	for (size_t i = 0; o->server && i < x->n_servers; i++)
		for (size_t k = 0; k < o->server[i].n_gpus; k++) {
			const char *name = o->server[i].gpu[k].name;
			struct str rest = str_of(name ? name : "GPU"), first = str_cut(&rest, ' ');

			buf_add_text(out, out->len ? "\n" : "");
			buf_add_str(out, rest.n ? str_cut(&rest, ' ') : first);
		}
	if (!out->len)
		buf_add_text(out, "cpu");
}

static void put_command(struct json_writer *w, const char *key, const struct buf *text)
{
	json_member_str(w, key, buf_str(text));
}

static void put_commands(const struct experiment *x, const struct outcome *o, bool is_probe,
			 struct buf *out)
{
	const struct outcome_server *served = o->server ? &o->server[x->serving] : NULL;
	struct buf server = { 0 }, client = { 0 }, gpus = { 0 };
	struct json_writer w = json_writer(out);
	char key[32];

	if (served && served->argv)
		shell_words(&server, (char *const *)(uintptr_t)served->argv);
	shell_benchmark(&client, x, served && mode_is_served(x->mode) ? served->url : NULL);
	add_gpus(o, x, &gpus);
	json_begin_object(&w);
	if (mode_is_served(x->mode)) {
		put_command(&w, "server_command", &server);
		put_command(&w, "client_command", &client);
	} else {
		snprintf(key, sizeof(key), "%s_command", experiment_mode_name(x->mode));
		put_command(&w, key, &client);
	}
	put_command(&w, "gpu_type", &gpus);
	if (is_probe)
		json_member_bool(&w, "adaptive_search", true);
	json_end_object(&w);
	buf_add_char(out, '\n');
	buf_release(&server);
	buf_release(&client);
	buf_release(&gpus);
}

static int write_file(const char *stem, const char *ending, struct str bytes, struct err *e)
{
	struct buf path = { 0 };
	int rc;

	buf_printf(&path, "%s%s", stem, ending);
	rc = file_write_atomic(path.data, bytes, e);
	buf_release(&path);
	return rc;
}

int import_store(const struct experiment *x, const char *stem, const struct outcome *o,
		 bool is_probe, struct err *e)
{
	const char *slash = strrchr(stem, '/');
	struct buf commands = { 0 };
	int rc = 0;

	if (o->result.n == 0)
		return 0;
	if (slash) {
		char *dir = mem_copy(stem, (size_t)(slash - stem));

		rc = file_mkdirs(dir, e);
		free(dir);
	}
	put_commands(x, o, is_probe, &commands);
	if (rc == 0)
		rc = write_file(stem, ".commands", buf_str(&commands), e);
	if (rc == 0)
		rc = write_file(stem, ".json", o->result, e);
	buf_release(&commands);
	return rc;
}
