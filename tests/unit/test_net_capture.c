/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_net_capture.c - files of packets: both formats, both byte orders, every link that is read,
 * units of stamps, dropped packets, and files that are cut or damaged.
 *
 * A file is written in words: N:HEX is a number of N bytes, x:HEX are bytes, < and > begin little
 * and big endian, [N is a block of pcapng of that kind, ] its end with its length, ![N:LEN one of
 * a wrong length.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "client/net/capture.h"
#include "core/base/file.h"
#define ANSWERS_MAX 200
#include "answers.h"
#include "scratch.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static void put_number(struct buf *b, uint64_t v, int n, bool is_big)
{
	for (int i = 0; i < n; i++)
		buf_add_char(b, (char)(v >> 8 * (is_big ? n - 1 - i : i)));
}

static void write_file(const char *path, const char *text)
{
	struct buf b = { 0 };
	struct str rest = str_of(text);
	bool is_big = false;
	size_t block = 0;
	struct err e = { 0 };

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');
		char *end;

		if (!word.n)
			continue;
		if (*word.p == '<' || *word.p == '>') {
			is_big = *word.p == '>';
		} else if (*word.p == '[' || *word.p == '!') {
			bool is_wrong = *word.p == '!';

			block = b.len;
			put_number(&b, strtoull(word.p + 1 + is_wrong, &end, 16), 4, is_big);
			put_number(&b, is_wrong ? strtoull(end + 1, NULL, 16) : 0, 4, is_big);
		} else if (*word.p == ']') {
			struct buf length = { 0 };

			while (b.len % 4)
				buf_add_char(&b, 0);
			put_number(&length, b.len + 4 - block, 4, is_big);
			memcpy(b.data + block + 4, length.data, 4);
			buf_add_str(&b, buf_str(&length));
			buf_release(&length);
		} else if (*word.p == 'x') {
			for (size_t i = 2; i + 1 < word.n; i += 2) {
				char pair[3] = { word.p[i], word.p[i + 1], 0 };

				buf_add_char(&b, (char)strtoul(pair, NULL, 16));
			}
		} else {
			put_number(&b, strtoull(word.p + 2, NULL, 16), *word.p - '0', is_big);
		}
	}
	if (file_write_atomic(path, buf_str(&b), &e) < 0)
		fail_msg("%s", e.text);
	buf_release(&b);
}

/* A pcap file's head; its link follows. */
#define PCAP(magic) "4:" magic " 2:2 2:4 4:0 4:0 4:ffff "
/* Seconds and their parts, the bytes kept and those on the wire. */
#define AT(s, part, kept, wire) "4:" s " 4:" part " 4:" kept " 4:" wire " "
#define SECTION "[0a0d0d0a 4:1a2b3c4d 2:1 2:0 8:ffffffffffffffff ] "
#define ETHERNET "x:0102030405060708090a0b0c0800"
#define IP "450000a1"
#define INTERFACE(link, options) "[1 2:" link " 2:0 4:ffff " options "] "
#define PACKET(which, high, low, kept, wire, bytes) "[6 4:" which " 4:" high " 4:" low " 4:" kept " 4:" wire \
	" " bytes " ] "
#define RESOLUTION(hex) "2:9 2:1 x:" hex "000000 "

static const struct { const char *name, *text; } file[] = {
	{ "microseconds, Ethernet", "< " PCAP("a1b2c3d4") "4:1 " AT("1", "7a120", "12", "40") ETHERNET IP " "
	  AT("2", "1", "12", "12") ETHERNET "45000002" },
	{ "nanoseconds", "< " PCAP("a1b23c4d") "4:1 " AT("1", "7a120", "12", "40") ETHERNET IP },
	{ "the other order", "> " PCAP("a1b2c3d4") "4:1 " AT("1", "7a120", "12", "40") ETHERNET IP },
	{ "the other order, nanoseconds", "> " PCAP("a1b23c4d") "4:65 " AT("3", "5", "4", "4") "x:" IP },
	{ "VLANs", "< " PCAP("a1b2c3d4") "4:1 " AT("1", "0", "16", "40")
	  "x:0102030405060708090a0b0c810000010800" IP " " AT("1", "0", "1a", "40")
	  "x:0102030405060708090a0b0c88a80001810000020800" IP },
	{ "loopback", "< " PCAP("a1b2c3d4") "4:0 " AT("1", "0", "8", "8") "x:02000000" IP },
	{ "OpenBSD's loopback", "< " PCAP("a1b2c3d4") "4:6c " AT("1", "0", "8", "8") "x:00000002" IP },
	{ "raw", "< " PCAP("a1b2c3d4") "4:c " AT("1", "0", "4", "9") "x:" IP },
	{ "raw, OpenBSD", "< " PCAP("a1b2c3d4") "4:e " AT("1", "0", "4", "4") "x:" IP },
	{ "IPv4", "< " PCAP("a1b2c3d4") "4:e4 " AT("1", "0", "4", "4") "x:" IP },
	{ "IPv6", "< " PCAP("a1b2c3d4") "4:e5 " AT("1", "0", "4", "4") "x:60000000" },
	{ "cooked", "< " PCAP("a1b2c3d4") "4:71 " AT("1", "0", "14", "14")
	  "x:000102030405060708090a0b0c0d0e0f" IP },
	{ "cooked, version 2", "< " PCAP("a1b2c3d4") "4:114 " AT("1", "0", "18", "18")
	  "x:000102030405060708090a0b0c0d0e0f00010203" IP },
	{ "a link with flags", "< " PCAP("a1b2c3d4") "4:f0000065 " AT("1", "0", "4", "4") "x:" IP },
	{ "a link that is not read", "< " PCAP("a1b2c3d4") "4:93 " AT("1", "0", "4", "4") "x:" IP },
	{ "less than a head was kept", "< " PCAP("a1b2c3d4") "4:1 " AT("1", "0", "3", "40") "x:010203 "
	  AT("1", "0", "0", "40") },
	{ "less on the wire than kept", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "4", "2") "x:" IP " "
	  AT("1", "0", "4", "0") "x:" IP },
	{ "cut in a head", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "4", "4") "x:" IP " 4:1 4:0" },
	{ "cut in a packet", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "4", "4") "x:4500" },
	{ "cut before a packet", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "4", "4") },
	{ "too long", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "7fffffff", "4") "x:" IP },
	{ "no packets", "< " PCAP("a1b2c3d4") "4:65" }, { "cut in its beginning", "< 4:a1b2c3d4 2:2 2:4" },
	{ "two bytes", "x:d4c3" }, { "empty", "" }, { "text", "x:7b226122207d0a" },

	{ "blocks", "< " SECTION INTERFACE("65", "") PACKET("0", "0", "f4240", "4", "9", "x:" IP)
	  "[b 4:0 ] " PACKET("0", "1", "0", "3", "3", "x:450000") },
	{ "blocks of the other order", "> " SECTION INTERFACE("1", "")
	  PACKET("0", "0", "f4240", "12", "40", ETHERNET IP) },
	{ "units", "< " SECTION INTERFACE("65", RESOLUTION("09")) INTERFACE("65", RESOLUTION("8a"))
	  INTERFACE("65", RESOLUTION("00")) INTERFACE("65", RESOLUTION("9e"))
	  PACKET("0", "1", "2", "4", "4", "x:" IP) PACKET("1", "0", "600", "4", "4", "x:" IP)
	  PACKET("2", "0", "7", "4", "4", "x:" IP) PACKET("3", "0", "60000000", "4", "4", "x:" IP) },
	{ "units that are too fine", "< " SECTION INTERFACE("65", RESOLUTION("0a")) },
	{ "units that are too fine, of two", "< " SECTION INTERFACE("65", RESOLUTION("9f")) },
	{ "an offset", "< " SECTION INTERFACE("65", "2:e 2:8 8:64 2:2 2:3 x:65746800 2:0 2:0 ")
	  PACKET("0", "0", "f4240", "4", "4", "x:" IP) },
	{ "an offset before 1970", "< " SECTION INTERFACE("65", "2:e 2:8 8:ffffffffffffff00 ")
	  PACKET("0", "0", "f4240", "4", "4", "x:" IP) },
	{ "a stamp beyond all years", "< " SECTION INTERFACE("65", RESOLUTION("00"))
	  PACKET("0", "ffffffff", "0", "4", "4", "x:" IP) },
	{ "options that are cut", "< " SECTION INTERFACE("65", "2:e 2:20 8:64 ")
	  PACKET("0", "0", "f4240", "4", "4", "x:" IP) },
	{ "options that are too short", "< " SECTION INTERFACE("65", "2:e 2:4 4:64 2:9 2:0 ")
	  PACKET("0", "0", "f4240", "4", "4", "x:" IP) },
	{ "dropped", "< " SECTION INTERFACE("65", "") INTERFACE("65", "")
	  "[5 4:0 8:0 2:4 2:8 8:9 2:5 2:8 8:3 ] [5 4:1 8:0 2:5 2:8 8:4 ] [5 4:1 8:0 2:5 2:8 8:5 ] "
	  "[5 4:7 8:0 2:5 2:8 8:99 ] [5 4:0 8:0 2:5 2:4 4:99 ] " PACKET("1", "0", "1", "4", "4", "x:" IP) },
	{ "dropped in two sections of both orders", "< " SECTION INTERFACE("65", "")
	  "[5 4:0 8:0 2:5 2:8 8:3 ] > " SECTION INTERFACE("65", "") "[5 4:0 8:0 2:5 2:8 8:4 ] "
	  PACKET("0", "0", "1", "4", "4", "x:" IP) },
	{ "an interface of an earlier section", "< " SECTION INTERFACE("65", "") SECTION
	  PACKET("0", "0", "1", "4", "4", "x:" IP) },
	{ "longer than its block", "< " SECTION INTERFACE("65", "") PACKET("0", "0", "1", "5", "5", "x:" IP) },
	{ "exactly its block", "< " SECTION INTERFACE("65", "") PACKET("0", "0", "1", "4", "5", "x:" IP) },
	{ "without stamps", "< " SECTION INTERFACE("65", "") "[3 4:4 x:" IP " ]" },
	{ "a link that is not read, in a block", "< " SECTION INTERFACE("93", "") },
	{ "a length that is no multiple of 4", "< " SECTION "![b:e 4:0 2:0" },
	{ "a length that is too small", "< " SECTION "![b:8 4:0" },
	{ "an interface that is too small", "< " SECTION "![1:10 4:65 4:10" },
	{ "a packet that is too small", "< " SECTION INTERFACE("65", "") "![6:1c 8:0 4:0 4:1c" },
	{ "statistics that are too small", "< " SECTION INTERFACE("65", "") "![5:14 8:0 4:14" },
	{ "a length that is too large", "< " SECTION "![b:7ffffff0 4:0" },
	{ "a first block that is too small", "< 4:0a0d0d0a 4:c 4:1a2b3c4d" },
	{ "a first block of an odd length", "< 4:0a0d0d0a 4:1d 4:1a2b3c4d 8:0 8:0 4:0" },
	{ "no byte order", "< 4:0a0d0d0a 4:1c 4:11111111" },
	{ "a section without a byte order", "< " SECTION "[0a0d0d0a 4:0 4:0 ]" },
	{ "cut in its first block", "< 4:0a0d0d0a 4:1c" }, { "cut after its kind", "< 4:0a0d0d0a" },
	{ "cut in a block", "< " SECTION "![b:20 4:0" }, { "cut in a block's head", "< " SECTION "4:b" },
	{ "only a section", "< " SECTION },
};

static void files(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/f.pcap", dir);
	for (size_t i = 0; i < COUNT(file); i++) {
		struct capture_packet p;
		struct buf out = { 0 };
		struct capture *c;
		struct err e = { 0 };
		int rc;

		write_file(path, file[i].text);
		buf_printf(&out, "%s\n", file[i].name);
		c = capture_open_file(path, &e);
		while (c && (rc = capture_next(c, 0, &p, &e)) > 0) {
			buf_printf(&out, "%lld: %zu of %zu:", (long long)p.stamp_ns, p.bytes.n, p.wire_bytes);
			for (size_t k = 0; k < p.bytes.n; k++)
				buf_printf(&out, " %02x", (unsigned char)p.bytes.p[k]);
			buf_add_char(&out, '\n');
		}
		if (c)
			buf_printf(&out, "dropped %llu, %d\n", (unsigned long long)capture_dropped(c), rc);
		buf_printf(&out, "%d: %s\n", (int)e.code, e.text);
		capture_close(c);
		answers_release(&out);
	}
}

static void many_interfaces(void **state)
{
	struct buf text = { 0 };
	struct capture_packet p;
	struct capture *c;
	struct err e = { 0 };
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/many.pcap", dir);
	for (int extra = 0; extra < 2; extra++) {
		buf_reset(&text);
		buf_add_text(&text, "< " SECTION);
		for (int i = 0; i < 256 + extra; i++)
			buf_add_text(&text, INTERFACE("65", ""));
		buf_add_text(&text, PACKET("ff", "0", "1", "4", "4", "x:" IP));
		write_file(path, text.data);
		c = capture_open_file(path, &e);
		assert_non_null(c);
		assert_int_equal(capture_next(c, 0, &p, &e), extra ? -1 : 1);
		capture_close(c);
	}
	answers_check(e.text, strlen(e.text));
	buf_release(&text);
}

static void no_files(void **state)
{
	struct err missing = { 0 }, folder = { 0 };

	(void)state;
	assert_null(capture_open_file("/nonexistent/x.pcap", &missing));
	assert_int_equal(missing.code, ERR_IO);
	answers_check(missing.text, strlen(missing.text));
	assert_null(capture_open_file(dir, &folder));
	assert_int_equal(folder.code, ERR_IO);
	answers_check(folder.text, strlen(folder.text));
	capture_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files), cmocka_unit_test(many_interfaces),
		cmocka_unit_test(no_files),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
