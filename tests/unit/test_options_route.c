/* SPDX-License-Identifier: Apache-2.0 */
/* test_options_route.c - which proxy serves a URL, and which transport that takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/options/serve_opts.h"

static const struct serve_opts plain = { .transport = "auto", .http_version = "1.1" };

static void test_proxy(void **state)
{
	static const struct point_env env = {
		.http_proxy = "http://h:1", .https_proxy = "socks5://s:2", .no_proxy = "near,10.0.0.1",
	};
	static const struct point_env all = { .http_proxy = "http://h:1", .all_proxy = "socks4://a:3" };
	static const struct point_env odd = { .http_proxy = "gopher://h:1" };
	static const struct {
		const struct point_env *env;
		const char *option, *url, *want; /* want NULL: none; "": refused */
	} row[] = {
		{ &env, NULL, "http://far", "http://h:1" },
		{ &env, NULL, "https://far", "socks5://s:2" },
		{ &env, NULL, "http://near:8000", NULL },
		{ &env, NULL, "https://10.0.0.1", NULL },
		{ &env, NULL, "unix:/tmp/x", NULL },
		{ &env, "http://o:9", "http://near", "http://o:9" },
		{ &env, "http://o:9", "unix:/tmp/x", NULL },
		{ &env, "http://o:9", "http+unix://%2Ftmp%2Fx", NULL },
		{ &env, "", "http://far", "http://h:1" },
		{ &env, "o:9", "http://far", "o:9" },
		{ &env, "ftp://o:9", "http://far", "" },
		{ &all, NULL, "http://far", "http://h:1" },
		{ &all, NULL, "https://far", "socks4://a:3" },
		{ &odd, NULL, "http://far", "" },
		{ &odd, NULL, "https://far", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct serve_opts o = plain;
		const char *proxy = "unset";
		struct err e = { 0 };
		struct url url;
		int rc;

		o.proxy = row[i].option;
		assert_int_equal(url_parse(str_of(row[i].url), &url, &e), 0);
		rc = serve_proxy(&o, row[i].env, &url, &proxy, &e);
		if (row[i].want && !*row[i].want) {
			assert_int_equal(rc, -1);
			assert_int_equal(e.code, ERR_USAGE);
			assert_non_null(strstr(e.text, "are not supported; expected http"));
			continue;
		}
		assert_int_equal(rc, 0);
		if (row[i].want)
			assert_string_equal(proxy, row[i].want);
		else
			assert_null(proxy);
	}
}

static void test_transport(void **state)
{
	static const struct {
		const char *transport, *http_version;
		bool is_redirected;
		const char *proxy;
		unsigned warm;
		const char *want; /* "native", "curl", or what the refusal says */
	} row[] = {
		{ "auto", "1.1", false, NULL, SERVE_WARM_AUTO, "native" },
		{ "auto", "1.1", false, "http://h:1", 4, "native" },
		{ "auto", "1.1", false, "HTTP://h:1", SERVE_WARM_AUTO, "native" },
		{ "auto", "1.1", false, "h:1", SERVE_WARM_AUTO, "native" },
		{ "auto", "1.1", false, "me:word@h:1", SERVE_WARM_AUTO, "curl" },
		{ "auto", "1.1", false, "http://me@h:1/", SERVE_WARM_AUTO, "curl" },
		{ "auto", "1.1", false, "http://h:1/a@b", SERVE_WARM_AUTO, "native" },
		{ "auto", "1.1", false, "https://h:1", SERVE_WARM_AUTO, "curl" },
		{ "auto", "1.1", false, "socks5h://h:1", SERVE_WARM_AUTO, "curl" },
		{ "auto", "2", false, NULL, SERVE_WARM_AUTO, "curl" },
		{ "auto", "1.1", true, NULL, 0, "curl" },
		{ "curl", "1.1", false, NULL, SERVE_WARM_AUTO, "curl" },
		{ "curl", "1.1", false, NULL, 2, "--warm-connections 2: libcurl opens" },
		{ "auto", "2", false, NULL, 2, "libcurl (for --http-version 2) opens" },
		{ "native", "2", false, NULL, SERVE_WARM_AUTO, "native cannot do --http-version 2" },
		{ "native", "1.1", true, NULL, SERVE_WARM_AUTO, "cannot do --follow-redirects" },
		{ "native", "1.1", false, "socks4://h:1", SERVE_WARM_AUTO, "cannot do a proxy other" },
		{ "native", "1.1", false, "http://a:b@h", SERVE_WARM_AUTO,
		  "cannot do a proxy with a user name or password" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct serve_opts o = { .transport = row[i].transport,
					.http_version = row[i].http_version,
					.follow_redirects = row[i].is_redirected };
		struct serve_derived d = { .warm_connections = row[i].warm };
		const char *proxy[2] = { NULL, row[i].proxy }; /* one of two servers is enough */
		const struct transport *got;
		struct err e = { 0 };

		if (serve_transport(&o, &d, proxy, 2, &got, &e) == 0) {
			assert_string_equal(got->name, row[i].want);
			continue;
		}
		assert_int_equal(e.code, ERR_USAGE);
		assert_non_null(strstr(e.text, row[i].want));
		assert_null(strstr(e.text, "a:b"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proxy),
		cmocka_unit_test(test_transport),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
