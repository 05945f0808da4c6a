/* SPDX-License-Identifier: Apache-2.0 */
/* Which token goes to which dashboard, and the files that tokens are kept in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "input/fetch/dashboard.h"
#include "scratch.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define BEARER "Authorization: Bearer " TOKEN

static void use_folder(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(setenv("XDG_STATE_HOME", path, 1), 0);
}

static struct buf keep(const char *name)
{
	struct buf path = { 0 };
	struct err e = { 0 };

	if (dashboard_keep(name, TOKEN, &path, &e) < 0)
		fail_msg("%s", e.text);
	return path;
}

/* The token is only sent to that address, over a path that cannot lead elsewhere. */
static void the_token_goes_to_its_dashboard_alone(void **state)
{
	static const struct { const char *kept, *name, *base; bool is_known; } rows[] = {
		{ "http://127.0.0.1:8080", "http://127.0.0.1:8080", "http://127.0.0.1:8080", true },
		{ "http://127.0.0.1:8080", "http://127.0.0.1:8080//", "http://127.0.0.1:8080", true },
		{ "http://127.0.0.1:8080", "http://localhost:8080/", "http://127.0.0.1:8080", true },
		{ "http://127.0.0.1:8080", "http://127.0.0.1:8080/raw", "http://127.0.0.1:8080/raw", true },
		{ "http://127.0.0.1:80", "http://127.0.0.1", "http://127.0.0.1:80", true },
		{ "http://[::1]:8080", "http://localhost:8080", "http://[::1]:8080", true },
		{ "http://[::1]:8080", "http://[::1]:8080/x/", "http://[::1]:8080/x", true },
		{ "http://127.0.0.1:8080", "http://127.0.0.1:8081", "http://127.0.0.1:8081", false },
		{ "http://127.0.0.1:8080", "http://127.0.0.2:8080", "http://127.0.0.2:8080", false },
		{ "http://127.0.0.1:8080", "http://[::1]:8080", "http://[::1]:8080", false },
		{ "http://127.0.0.1:8080", "https://127.0.0.1:8080", "https://127.0.0.1:8080", false },
		{ "http://127.0.0.1:8080", "http://bench.example:8080", "http://bench.example:8080", false },
		{ "http://127.0.0.1:8080", "http://localhost.example:8080", "http://localhost.example:8080",
		  false },
		{ "http://127.0.0.1:8080", "http://127.0.0.1:8080@evil.example/",
		  "http://127.0.0.1:8080@evil.example", false },
		{ "http://127.0.0.1:8080", "http://u@127.0.0.1:8080", "http://u@127.0.0.1:8080", false },
		{ "http://127.0.0.1:8080", "http://127.0.0.1:8080?@evil.example",
		  "http://127.0.0.1:8080?@evil.example", false },
		{ "http://127.0.0.1:8080", "http://127.1:8080", "http://127.1:8080", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct dashboard d;
		struct buf path;
		struct err e = { 0 };
		struct fetch_opts o;
		char folder[16];

		snprintf(folder, sizeof(folder), "row%zu", i);
		use_folder(folder);
		path = keep(rows[i].kept);
		assert_int_equal(dashboard_find(rows[i].name, NULL, &d, &e), 0);
		assert_string_equal(d.base.data, rows[i].base);
		o = dashboard_opts(&d);
		if (rows[i].is_known != (o.header[0] != NULL))
			fail_msg("%s for %s", rows[i].kept, rows[i].name);
		if (rows[i].is_known) {
			assert_string_equal(o.header[0], BEARER);
			assert_string_equal(o.proxy, ""); /* no proxy */
		}
		assert_null(o.unix_socket);
		dashboard_release(&d);
		dashboard_forget(&path);
		assert_int_equal(dashboard_find(rows[i].name, NULL, &d, &e), 0);
		assert_null(dashboard_opts(&d).header[0]);
		dashboard_release(&d);
	}
}

static void a_file_that_is_named_takes_precedence(void **state)
{
	struct buf path, own = { 0 };
	struct dashboard d;
	struct err e = { 0 };

	(void)state;
	use_folder("named");
	path = keep("http://127.0.0.1:8080");
	buf_printf(&own, "%s/own", dir);
	assert_int_equal(file_write_atomic(own.data, STR("another-token \n rest"), &e), 0);
	assert_int_equal(dashboard_find("http://127.0.0.1:8080", own.data, &d, &e), 0);
	assert_string_equal(dashboard_opts(&d).header[0], "Authorization: Bearer another-token");
	dashboard_release(&d);
	assert_int_equal(file_write_atomic(own.data, STR("two words"), &e), 0);
	assert_int_equal(dashboard_find("http://127.0.0.1:8080", own.data, &d, &e), -1);
	assert_null(strstr(e.text, "two"));
	dashboard_release(&d);
	dashboard_forget(&path);
	buf_release(&own);
}

/* What another user could read, or could have laid there, is neither used nor written through. */
static void the_file_is_private(void **state)
{
	struct buf path, victim = { 0 }, text = { 0 };
	struct dashboard d;
	struct err e = { 0 };
	struct stat st;
	char *folder;

	(void)state;
	use_folder("private");
	umask(0);
	path = keep("http://127.0.0.1:8080");
	umask(022);
	assert_int_equal(stat(path.data, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	folder = file_beside(path.data, ".");
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	chmod(path.data, 0644);
	assert_int_equal(dashboard_find("http://127.0.0.1:8080", NULL, &d, &e), -1);
	assert_non_null(strstr(e.text, "mode 0600"));
	dashboard_release(&d);
	buf_printf(&victim, "%s/victim", dir);
	assert_int_equal(file_write_atomic(victim.data, STR("untouched"), &e), 0);
	unlink(path.data);
	assert_int_equal(symlink(victim.data, path.data), 0);
	assert_int_equal(dashboard_find("http://127.0.0.1:8080", NULL, &d, &e), -1);
	dashboard_release(&d);
	chmod(folder, 0777);
	buf_release(&path);
	path = keep("http://127.0.0.1:8080");
	assert_int_equal(lstat(path.data, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(file_read(victim.data, 100, &text, &e), 0);
	assert_true(str_is(buf_str(&text), "untouched"));
	free(folder);
	dashboard_forget(&path);
	buf_release(&victim);
	buf_release(&text);
}

static void a_socket_is_known_by_its_path(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char name[128], other[160];
	struct buf path;
	struct dashboard d;
	struct err e = { 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	use_folder("sockets");
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	snprintf(name, sizeof(name), "unix:%s/s", dir);
	snprintf(other, sizeof(other), "unix:%s/private/../s", dir);
	path = keep(name);
	assert_int_equal(dashboard_find(other, NULL, &d, &e), 0);
	assert_string_equal(dashboard_opts(&d).header[0], BEARER);
	assert_string_equal(dashboard_opts(&d).unix_socket, other + 5);
	assert_string_equal(d.base.data, "http://localhost");
	dashboard_release(&d);
	close(fd);
	dashboard_forget(&path);
	for (size_t i = 0; i < 3; i++) {
		static const char *const bad[] = { "unix:", "ftp://host", "127.0.0.1:8080" };

		assert_int_equal(dashboard_find(bad[i], NULL, &d, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		dashboard_release(&d);
	}
}

/* A proxy answers with pages of its own, which say nothing to the user of a command. */
static void answers_are_explained(void **state)
{
	static const struct { long status; const char *body, *redirect, *says; } rows[] = {
		{ 403, "{\"detail\": \"no\\nway\"}", NULL, "answered 403: no way" },
		{ 422, "plain\ttext", NULL, "answered 422: plain text" },
		{ 503, "", NULL, "answered 503" },
		{ 404, "<html>404</html>", NULL, "answered 404" },
		{ 413, "<html>413</html>", NULL, "answered 413: a proxy in front of the dashboard accepts "
		  "no body of this size; nginx has client_max_body_size for that" },
		{ 502, "\n<html>502</html>", NULL, "answered 502: a proxy in front of the dashboard "
		  "cannot reach it" },
		{ 400, "<p>The plain HTTP request was sent to HTTPS port</p>", NULL,
		  "answered 400: this port expects TLS: write https:// instead of http://" },
		{ 301, "<html>301</html>", "https://a:1",
		  "answered 301: it redirects to https://a:1; name that address" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fetch_reply reply = { .status = rows[i].status };
		struct buf text = { 0 };

		buf_add_text(&reply.body, rows[i].body);
		if (rows[i].redirect)
			buf_add_text(&reply.redirect, rows[i].redirect);
		dashboard_add_answer(&reply, &text);
		assert_string_equal(text.data, rows[i].says);
		fetch_reply_release(&reply);
		buf_release(&text);
	}
}

static void there_may_be_no_folder(void **state)
{
	struct buf path = { 0 };
	struct err e = { 0 };

	(void)state;
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	assert_int_equal(dashboard_keep("http://127.0.0.1:8080", TOKEN, &path, &e), -1);
	assert_null(strstr(e.text, TOKEN));
	use_folder("none");
	assert_int_equal(dashboard_keep("http://bench.example:8080", TOKEN, &path, &e), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_token_goes_to_its_dashboard_alone),
		cmocka_unit_test(a_file_that_is_named_takes_precedence),
		cmocka_unit_test(the_file_is_private),
		cmocka_unit_test(a_socket_is_known_by_its_path),
		cmocka_unit_test(answers_are_explained),
		cmocka_unit_test(there_may_be_no_folder),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
