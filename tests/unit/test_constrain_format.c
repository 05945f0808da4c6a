/* SPDX-License-Identifier: Apache-2.0 */
/* test_constrain_format.c - formats of JSON Schema, and references that are resolved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "input/constrain/schema.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define TEXTS_MAX 24
#define TEN "aaaaaaaaaa"
#define SIXTY TEN TEN TEN TEN TEN TEN

/* What has a format, and what does not; each list ends with NULL. */
static const struct {
	const char *format, *good[TEXTS_MAX], *bad[TEXTS_MAX];
} formats[] = {
	{ "date",
	  { "2024-02-29", "2000-02-29", "2023-12-31", "0000-01-01", "2024-04-30" },
	  { "2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-04-31", "2024-01-00",
	    "2024-1-01", "2024-01-01 ", "2024/01-01", "2024-01/01", "", "2024-01", "20a4-01-01" } },
	{ "time",
	  { "09:30:00Z", "23:59:59z", "00:00:00+23:59", "09:30:00.123-05:30", "23:59:60Z",
	    "15:59:60-08:00", "00:29:60+00:30" },
	  { "24:00:00Z", "09:60:00Z", "09:30:61Z", "09:30:00", "09:30:00.Z", "09:30:00+24:00",
	    "09:30:00+01:60", "22:59:60Z", "15:59:60+08:00", "09:30:00Z ", "9:30:00Z", "09-30-00Z",
	    "09:30:00+0100" } },
	{ "date-time",
	  { "2024-05-17T09:30:00Z", "2024-05-17t09:30:00.5+01:00" },
	  { "2024-05-17 09:30:00Z", "2024-05-17", "2024-05-17T09:30:00", "2024-02-30T09:30:00Z" } },
	{ "duration",
	  { "P3DT4H", "P1Y", "P1Y2M3D", "PT5S", "PT1H2M3S", "P12W", "P4M3D", "P10DT0S" },
	  { "", "P", "3D", "PT", "P1DT", "P1H", "P1Y3D", "PT1H3S", "P3D1M", "P1", "P1W2D", "P1D2H",
	    "PW", "P1DT1", "T1H" } },
	{ "hostname",
	  { "www.example.com", "a", "1a.b-c", "xn--bcher-kva.example", "XN--a", SIXTY "aaa",
	    SIXTY "." SIXTY "." SIXTY "." SIXTY ".aaaaaaaaa", "ab-c", "a--b" },
	  { "", ".", "a..b", "a.", "-a", "a-", "a_b", "ab--c", SIXTY "aaaa",
	    SIXTY "." SIXTY "." SIXTY "." SIXTY ".aaaaaaaaaa", "a.-b", "a b" } },
	{ "ipv4",
	  { "192.0.2.17", "0.0.0.0", "255.255.255.255" },
	  { "256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.", ".1.2.3", "1.2.3.4 ", "a.2.3.4",
	    "1..2.3", "1.2.3.0004", "" } },
	{ "ipv6",
	  { "2001:db8::17", "::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:1.2.3.4",
	    "::ffff:1.2.3.4", "1:2:3:4:5:6::8", "ABCD::", "::2:3:4:5:6:7:8" },
	  { "", ":", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", ":1::", "1:",
	    "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "g::", "1:2:3:4:5:6:7:8::", "1:2:3:4:5:6:7:",
	    "::1:2:3:4:5:6:1.2.3.4", "1.2.3.4", "1:2:3:4:5:1.2.3.4" } },
	{ "email",
	  { "alan.turing@example.com", "a@b", "a+b@c.d", "\"a b\"@c", "\"a\\\"b\"@c", "a@[1.2.3.4]",
	    "a@[IPv6:::1]", "\"a@b\"@c", SIXTY "aaaa@b" },
	  { "", "@", "a", "a@", "@b", ".a@b", "a.@b", "a..b@c", "a b@c", "\"a\"b\"@c", "\"@c",
	    "\"a\\\"@c", "a@[1.2.3]", "a@[IPv6:1]", "a@b_c", SIXTY "aaaaa@b", "a@[]", "a\x01@b",
	    "\"a\x01\"@b", "\"a\x7f\"@b" } },
	{ "uri",
	  { "https://example.com/a?b=c", "urn:a:b", "a+b-c.1:", "http://u:p@h:80/%41#f?/",
	    "http://[::1]:8/", "http://[v1.a]/", "mailto:a@b.c", "file:///a", "http://h?a/b?c" },
	  { "", "/a", "1a:b", "a b:c", "http://h:8a/", "http://h/%4", "http://h/%zz", "http://[::1",
	    "http://[1]/", "http://[::1]a/", "http://h/a b", "http://h/#a#b", "http://h/?a b",
	    "http://h/{a}", "http://a@b@c/", "a/b:c", "http://u\\:p@h/", "http://h/#\"" } },
	{ "uri-reference",
	  { "/a/b?c=d", "", "a", "#a", "?a:b", "./a:b", "a/b:c", "//h/a", "http://h" },
	  { "a b", "1:b", "//h:x/", "%", "#a#b", "a\\b" } },
	{ "uri-template",
	  { "https://example.com/{name}", "", "{+a}", "{/a,b}", "{?a:3,b*}", "{a.b}", "{a_1}",
	    "{a:9999}", "{%41}" },
	  { "{", "}", "{}", "{a", "{a,}", "{+}", "{a:0}", "{a:12345}", "{a:x}", "{.a.}", "{a..b}", "a b",
	    "{a-b}", "a<b", "{a b}", "{..a}", "a\x7f" } },
	{ "uuid",
	  { "2f4a1f0e-8c1d-4b52-9a54-0d9f6a3f7c11", "2F4A1F0E-8C1D-4B52-9A54-0D9F6A3F7C11" },
	  { "2f4a1f0e8c1d4b529a540d9f6a3f7c11", "2f4a1f0e-8c1d-4b52-9a54-0d9f6a3f7c1",
	    "2f4a1f0e-8c1d-4b52-9a54-0d9f6a3f7c111", "2f4a1f0e-8c1d-4b52-9a540-d9f6a3f7c11",
	    "2f4a1f0e-8c1d-4b52-9a54-0d9f6a3f7c1g", "2f4a1f0-e8c1d-4b52-9a54-0d9f6a3f7c11",
	    "2f4a1f0e-8c1-d4b52-9a54-0d9f6a3f7c11", "2f4a1f0e-8c1d-4b5-29a54-0d9f6a3f7c11" } },
	{ "json-pointer",
	  { "", "/", "/a/0", "/a~0b~1c", "//" },
	  { "a", "/~", "/~2", "#/a", "/a~" } },
	{ "relative-json-pointer",
	  { "0", "1/a", "10#", "0#", "2/", "0/a~1b" },
	  { "", "/a", "01", "a", "1a", "0##", "-1", "1/~" } },
};

static void texts_of_formats(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(formats); i++) {
		const struct format *f = format_find(str_of(formats[i].format));

		assert_non_null(f);
		assert_true(format_holds(f, str_of(format_example(f))));
		for (size_t k = 0; k < TEXTS_MAX && formats[i].good[k]; k++)
			if (!format_holds(f, str_of(formats[i].good[k])))
				fail_msg("%s: '%s' is refused", formats[i].format, formats[i].good[k]);
		for (size_t k = 0; k < TEXTS_MAX && formats[i].bad[k]; k++)
			if (format_holds(f, str_of(formats[i].bad[k])))
				fail_msg("%s: '%s' is accepted", formats[i].format, formats[i].bad[k]);
	}
	assert_null(format_find(STR("dates")));
}

/* RFC 3986, 5.4; then what it does not have. */
static const struct { const char *base, *reference, *want; } references[] = {
	{ NULL, "g:h", "g:h" }, { NULL, "g", "http://a/b/c/g" }, { NULL, "./g", "http://a/b/c/g" },
	{ NULL, "g/", "http://a/b/c/g/" }, { NULL, "/g", "http://a/g" }, { NULL, "//g", "http://g" },
	{ NULL, "?y", "http://a/b/c/d;p?y" }, { NULL, "g?y", "http://a/b/c/g?y" },
	{ NULL, ";x", "http://a/b/c/;x" }, { NULL, "", "http://a/b/c/d;p?q" },
	{ NULL, ".", "http://a/b/c/" }, { NULL, "./", "http://a/b/c/" }, { NULL, "..", "http://a/b/" },
	{ NULL, "../g", "http://a/b/g" }, { NULL, "../..", "http://a/" },
	{ NULL, "../../g", "http://a/g" }, { NULL, "../../../g", "http://a/g" },
	{ NULL, "/./g", "http://a/g" }, { NULL, "/../g", "http://a/g" }, { NULL, "g.", "http://a/b/c/g." },
	{ NULL, "..g", "http://a/b/c/..g" }, { NULL, "./g/.", "http://a/b/c/g/" },
	{ NULL, "g/../h", "http://a/b/c/h" }, { NULL, "g;x=1/../y", "http://a/b/c/y" },
	{ NULL, "g?y/../x", "http://a/b/c/g?y/../x" },
	{ "http://a", "g", "http://a/g" }, { "urn:x:y", "", "urn:x:y" },
	{ "http://a/b", "urn:x/../y", "urn:x/../y" }, { "", "a/b", "a/b" },
};

static void references_are_resolved(void **state)
{
	struct arena a = { 0 };
	struct str fragment;

	(void)state;
	for (size_t i = 0; i < COUNT(references); i++) {
		const char *base = references[i].base ? references[i].base : "http://a/b/c/d;p?q";
		struct str got = uri_resolve(&a, str_of(base), str_of(references[i].reference));

		if (!str_is(got, references[i].want))
			fail_msg("%s from %s: %.*s, not %s", references[i].reference, base,
				 (int)got.n, got.p, references[i].want);
	}
	assert_true(str_is(uri_without_fragment(STR("a#b"), &fragment), "a"));
	assert_true(str_is(fragment, "b"));
	assert_true(str_is(uri_decoded(&a, STR("%41%2f%4a%")), "A/J%"));
	assert_true(str_is(uri_decoded(&a, STR("%4")), "%4"));
	assert_true(str_is(uri_decoded(&a, STR("%zz%4x")), "%zz%4x"));
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_formats), cmocka_unit_test(references_are_resolved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
