/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_url.c - URLs, proxies, NO_PROXY and Prometheus text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/http/prometheus.h"
#include "client/http/url.h"

/* "tls|host|port|path|Host header", a socket as "unix|path of socket|path". */
static const struct { const char *text, *parts, *error; } url_rows[] = {
	{ "http://localhost:8000", "0|localhost|8000||localhost:8000", NULL },
	{ "http://localhost:8000/", "0|localhost|8000|/|localhost:8000", NULL },
	{ "http://localhost:8000//v1/completions?a=b%20c",
	  "0|localhost|8000|//v1/completions?a=b%20c|localhost:8000", NULL },
	{ "HTTPS://Example.org/x", "1|Example.org|443|/x|Example.org", NULL },
	{ "https://example.org:443", "1|example.org|443||example.org", NULL },
	{ "http://h:443", "0|h|443||h:443", NULL },
	{ "http://h:/x", "0|h|80|/x|h", NULL },
	{ "http://h?q", "0|h|80|?q|h", NULL },
	{ "http://127.0.0.1:1/a@b:c", "0|127.0.0.1|1|/a@b:c|127.0.0.1:1", NULL },
	{ "http://[::1]:8000/v1", "0|::1|8000|/v1|[::1]:8000", NULL },
	{ "https://[2001:db8::1]", "1|2001:db8::1|443||[2001:db8::1]", NULL },
	{ "http://[fe80::1%25eth0]:80", "0|fe80::1%eth0|80||[fe80::1]", NULL },
	{ "http://[fe80::1%eth0]", "0|fe80::1%eth0|80||[fe80::1]", NULL },
	{ "http://my_host-1.x:9", "0|my_host-1.x|9||my_host-1.x:9", NULL },
	{ "unix:/run/x y.sock", "unix|/run/x y.sock|", NULL },
	{ "unix:///run/x.sock", "unix|/run/x.sock|", NULL },
	{ "http+unix://%2Frun%2fx%20y.sock/v1?q", "unix|/run/x y.sock|/v1?q", NULL },

	{ "localhost:8000", NULL, "'localhost:8000' has no scheme; expected http://HOST" },
	{ "", NULL, "has no scheme" },
	{ "ftp://h", NULL, "scheme 'ftp' is not supported" },
	{ "unix://x", NULL, "scheme 'unix' is not supported" },
	{ "http://", NULL, "no host" },
	{ "http:///v1", NULL, "no host" },
	{ "http://h:0", NULL, "port '0' of host 'h'" },
	{ "http://h:65536", NULL, "port '65536'" },
	{ "http://h:8x", NULL, "port '8x'" },
	{ "http://::1:80", NULL, "needs brackets" },
	{ "http://[::1", NULL, "closing bracket" },
	{ "http://[::g]", NULL, "'::g' is not an IPv6 address" },
	{ "http://[::1]80", NULL, "expected a colon" },
	{ "http://[fe80::1%]", NULL, "zone" },
	{ "http://user:secret@h/", NULL, "user name or password" },
	{ "user:secret@h", NULL, "has no scheme" },
	{ "http://h/#x", NULL, "fragment" },
	{ "http://h h/", NULL, "character that host names" },
	{ "http://h%41/", NULL, "character that host names" },
	{ "http://m\xc3\xbcnchen.de", NULL, "xn--" },
	{ "unix:", NULL, "names no Unix socket" },
	{ "http+unix:///v1", NULL, "names no Unix socket" },
	{ "http+unix://%2", NULL, "without two hexadecimal digits" },
	{ "http+unix://%00", NULL, "NUL" },
};

static void test_urls(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(url_rows) / sizeof(*url_rows); i++) {
		struct buf out = { 0 };
		struct err e = { 0 };
		struct url u;
		int rc = url_parse(str_of(url_rows[i].text), &u, &e);

		if (!url_rows[i].parts) {
			assert_int_equal(rc, -1);
			assert_int_equal(e.code, ERR_USAGE);
			if (!strstr(e.text, url_rows[i].error))
				fail_msg("%s: '%s' lacks '%s'", url_rows[i].text, e.text,
					 url_rows[i].error);
			assert_null(strstr(e.text, "secret"));
			continue;
		}
		if (rc < 0)
			fail_msg("%s: %s", url_rows[i].text, e.text);
		if (u.is_unix) {
			buf_printf(&out, "unix|%s|%.*s", u.socket, (int)u.path.n, u.path.p);
		} else {
			buf_printf(&out, "%d|%s|%d|%.*s|", u.is_tls, u.host, u.port,
				   (int)u.path.n, u.path.p);
			url_add_host(&out, &u);
		}
		assert_string_equal(out.data, url_rows[i].parts);
		buf_release(&out);
	}
}

static void test_encoding(void **state)
{
	struct buf out = { 0 };
	struct url u;
	struct err e;

	(void)state;
	url_add_encoded(&out, STR("/a b~\xff\0"));
	assert_string_equal(out.data, "%2Fa%20b~%FF%00");
	buf_reset(&out);
	assert_true(url_add_decoded(&out, STR("%2fa%20b~%FF+")));
	assert_string_equal(out.data, "/a b~\xff+");
	buf_reset(&out);
	assert_false(url_add_decoded(&out, STR("a%4")));
	assert_false(url_add_decoded(&out, STR("a%4g")));
	buf_reset(&out);
	url_add_target(&out, STR("?a b=%20\xc3\xbc|"));
	assert_string_equal(out.data, "/?a%20b=%20%C3%BC%7C");
	buf_reset(&out);
	url_add_target(&out, STR("//v1?q"));
	assert_string_equal(out.data, "//v1?q");
	buf_reset(&out);
	assert_int_equal(url_parse(STR("https://[::1]/"), &u, &e), 0);
	url_add_authority(&out, &u);
	assert_string_equal(out.data, "[::1]:443");
	buf_release(&out);
}

static void test_proxies(void **state)
{
	static const struct { const char *text, *authority, *error; } rows[] = {
		{ "http://proxy:3128", "proxy:3128", NULL },
		{ "http://proxy:3128/", "proxy:3128", NULL },
		{ "proxy:3128", "proxy:3128", NULL },
		{ "proxy", "proxy:80", NULL },
		{ "[::1]:3128", "[::1]:3128", NULL },
		{ "socks5://proxy:1080", NULL, "kind 'socks5' are not supported" },
		{ "https://proxy", NULL, "kind 'https'" },
		{ "http://me:secret@proxy", NULL, "user name or password" },
		{ "me:secret@proxy:1", NULL, "user name or password" },
		{ "http://proxy:x", NULL, "proxy: port 'x'" },
		{ "", NULL, "no host" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf out = { 0 };
		struct err e = { 0 };
		struct url u;
		int rc = url_parse_proxy(str_of(rows[i].text), &u, &e);

		assert_int_equal(rc, rows[i].authority ? 0 : -1);
		if (rc < 0) {
			if (!strstr(e.text, rows[i].error))
				fail_msg("%s: '%s' lacks '%s'", rows[i].text, e.text,
					 rows[i].error);
			assert_null(strstr(e.text, "secret"));
			continue;
		}
		url_add_authority(&out, &u);
		assert_string_equal(out.data, rows[i].authority);
		buf_release(&out);
	}
}

static void test_no_proxy(void **state)
{
	static const struct { const char *url, *list; bool is_exempt; } rows[] = {
		{ "http://localhost:8000", "", false },
		{ "http://localhost:8000", "localhost", true },
		{ "http://localhost:8000", "other, localhost", true },
		{ "http://localhost:8000", "other localhost", true },
		{ "http://localhost:8000", "*", true },
		{ "http://localhost:8000", "localhost:8000", true },
		{ "http://localhost:8000", "localhost:8001", false },
		{ "http://localhost", "localhost:80", true },
		{ "https://localhost", "localhost:443", true },
		{ "http://a.example.com", "example.com", true },
		{ "http://a.example.com", ".example.com", true },
		{ "http://a.example.com", "*.example.com", true },
		{ "http://A.Example.COM", "example.com", true },
		{ "http://example.com", ".example.com", true },
		{ "http://notexample.com", "example.com", false },
		{ "http://example.com", "a.example.com", false },
		{ "http://127.0.0.1:1", "127.0.0.1", true },
		{ "http://127.0.0.1:1", "0.0.1", false },
		{ "http://127.0.0.1:1", "127.0.0.1:1", true },
		{ "http://[::1]:1", "::1", true },
		{ "http://[::1]:1", "[::1]", true },
		{ "http://[::1]:1", "[::1]:1", true },
		{ "http://[::1]:1", "[::1]:2", false },
		{ "http://[2001:db8:0::1]:1", "2001:DB8::1", true },
		{ "http://h", ":80,,. ,*.", false },
		{ "unix:/x", "", true },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err e;
		struct url u;

		assert_int_equal(url_parse(str_of(rows[i].url), &u, &e), 0);
		if (url_is_proxy_exempt(&u, str_of(rows[i].list)) != rows[i].is_exempt)
			fail_msg("%s with NO_PROXY=%s", rows[i].url, rows[i].list);
	}
}

static void test_prometheus_read(void **state)
{
	static const char text[] =
		"# HELP vllm:num_requests_running Number of requests.\n"
		"# TYPE vllm:num_requests_running gauge\n"
		"vllm:num_requests_running{engine=\"0\",model_name=\"a b, {c}\"} 3.0\r\n"
		"\n"
		"plain 1e3 1700000000000\n"
		"spaced { a = \"x\" , b=\"q\\\"\\\\\\n\" , }\t+Inf\n"
		"bucket{le=\"0.1\"} 5 # {trace=\"x\"} 0.05\n"
		"empty{} NaN\n"
		"9bad 1\n"
		"bad{a=\"x} 1\n"
		"bad{a=\"x\" b=\"y\"} 1\n"
		"bad{a} 1\n"
		"bad x\n"
		"bad\n"
		"last -1";
	struct str rest = { text, sizeof(text) - 1 }, value;
	struct prometheus_sample s;
	struct buf plain = { 0 };
	struct err e;
	int bad = 0, rc;

	(void)state;
	assert_int_equal(prometheus_next(&rest, &s, &e), 1);
	assert_true(str_is(s.name, "vllm:num_requests_running"));
	assert_true(s.value == 3);
	assert_true(prometheus_label(s.labels, "model_name", &value));
	assert_true(str_is(value, "a b, {c}"));
	assert_false(prometheus_label(s.labels, "model", &value));
	assert_int_equal(prometheus_next(&rest, &s, &e), 1);
	assert_true(str_is(s.name, "plain") && s.labels.n == 0 && s.value == 1000);
	assert_int_equal(prometheus_next(&rest, &s, &e), 1);
	assert_true(isinf(s.value) && s.value > 0);
	assert_true(prometheus_label(s.labels, "a", &value) && str_is(value, "x"));
	assert_true(prometheus_label(s.labels, "b", &value));
	prometheus_unescape(&plain, value);
	assert_string_equal(plain.data, "q\"\\\n");
	assert_int_equal(prometheus_next(&rest, &s, &e), 1);
	assert_true(str_is(s.name, "bucket") && s.value == 5);
	assert_int_equal(prometheus_next(&rest, &s, &e), 1);
	assert_true(isnan(s.value));
	while ((rc = prometheus_next(&rest, &s, &e)) < 0) {
		assert_non_null(strstr(e.text, "bad"));
		bad++;
	}
	assert_int_equal(bad, 6);
	assert_int_equal(rc, 1);
	assert_true(str_is(s.name, "last") && s.value == -1);
	assert_int_equal(prometheus_next(&rest, &s, &e), 0);
	buf_release(&plain);
}

static void test_prometheus_write(void **state)
{
	struct buf out = { 0 }, labels = { 0 };
	struct prometheus_sample s;
	struct str rest, value;
	struct err e;

	(void)state;
	prometheus_add_label(&labels, "engine", STR("0"));
	prometheus_add_label(&labels, "model_name", STR("a\"b\\\n"));
	prometheus_add_family(&out, "x_total", "counter", "All \"x\"\nand more");
	prometheus_add_sample(&out, "x_total", buf_str(&labels), 12);
	prometheus_add_sample(&out, "y", STR(""), INFINITY);
	prometheus_add_sample(&out, "y", STR(""), NAN);
	assert_string_equal(out.data, "# HELP x_total All \"x\"\\nand more\n"
			    "# TYPE x_total counter\n"
			    "x_total{engine=\"0\",model_name=\"a\\\"b\\\\\\n\"} 12.0\n"
			    "y +Inf\ny NaN\n");
	rest = buf_str(&out);
	assert_int_equal(prometheus_next(&rest, &s, &e), 1);
	assert_true(prometheus_label(s.labels, "model_name", &value));
	buf_reset(&labels);
	prometheus_unescape(&labels, value);
	assert_string_equal(labels.data, "a\"b\\\n");
	buf_release(&out);
	buf_release(&labels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_encoding),
		cmocka_unit_test(test_proxies),
		cmocka_unit_test(test_no_proxy),
		cmocka_unit_test(test_prometheus_read),
		cmocka_unit_test(test_prometheus_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
