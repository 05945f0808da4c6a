/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_tap.c - `bench tap FILE`: the traffic of another client from packets that are written
 * here, in each kind of capture file. Every time in it is known, so that the results are compared
 * to the last digit.
 */
#include "run_rig.h"
#include "traffic.h"

#define PACKETS_MAX 128
#define US(ms) (int64_t)((ms) * 1000 + 0.5)

static struct { int64_t us; uint16_t n; uint16_t wire; char bytes[1024]; } packet[PACKETS_MAX];
static size_t n_packets;
static int32_t next[2]; /* the numbers of the client and the server */

static void send_flags(char from, double ms, const char *data, uint8_t flags)
{
	bool is_client = from == 'c';
	struct traffic t = { .from = from, .seq = next[!is_client], .ack = next[is_client],
		.data = data,
			     .flags = flags };
	char bytes[TRAFFIC_BYTES];
	size_t wire, n = traffic_write(&t, bytes, &wire);

	assert_true(n_packets < PACKETS_MAX && n <= sizeof(packet->bytes));
	packet[n_packets].us = US(ms);
	packet[n_packets].n = (uint16_t)n;
	packet[n_packets].wire = (uint16_t)wire;
	memcpy(packet[n_packets++].bytes, bytes, n);
	next[!is_client] += data ? (int32_t)strlen(data) : 0;
}

static void opened(double ms)
{
	n_packets = 0;
	next[0] = next[1] = 0;
	send_flags('c', ms, NULL, T_SYN);
	send_flags('s', ms + 1, NULL, T_SYN);
}

static void request(double ms, const char *path, const char *body)
{
	char text[900];

	snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", path,
		 strlen(body), body);
	send_flags('c', ms, text, 0);
}

static void add_event(struct buf *out, const char *text)
{
	buf_printf(out, "%zx\r\ndata: %s\n\n\r\n", strlen(text) + 8, text);
}

/* Three events, the first after ttft_ms; lost: the second one is not in the capture. */
static void answered(double ms, double ttft_ms, bool has_usage, bool is_lost)
{
	struct buf last = { 0 };

	request(ms, "/v1/completions", "{\"model\": \"llama\", \"max_tokens\": 3, \"stream\": "
	  "true, \"prompt\": \"a b\"}");
	send_flags('s', ms + 5, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
		   "chunked\r\n\r\n", 0);
	for (int k = 0; k < 3; k++) {
		struct buf event = { 0 };

		add_event(&event, "{\"choices\": [{\"text\": \" a\"}]}");
		send_flags('s', ms + ttft_ms + 10 * k, event.data, 0);
		buf_release(&event);
		n_packets -= is_lost && k == 1;
		send_flags('c', ms + ttft_ms + 10 * k + 0.1, NULL, 0);
	}
	if (has_usage)
		add_event(&last, "{\"choices\": [], \"usage\": {\"prompt_tokens\": 7, \"completion_tokens\": 3}}");
	add_event(&last, "[DONE]");
	buf_add_text(&last, "0\r\n\r\n");
	send_flags('s', ms + ttft_ms + 20.5, last.data, 0);
	buf_release(&last);
}

static void whole(double ms, const char *path, const char *body, const char *answer)
{
	char text[512];

	request(ms, path, body);
	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
		 "%zu\r\n\r\n%s", strlen(answer), answer);
	send_flags('s', ms + 1, text, 0);
}

/* ---- files ---- */

/* link and head: of the link layer; is_ns: of the stamps; ng: blocks of pcapng. */
struct form { const char *name; bool is_big, is_ns,
	is_ng; uint32_t link; const char *head; size_t head_n; };

static void put(struct buf *b, const struct form *f, uint32_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		buf_add_char(b, (char)(v >> (f->is_big ? 8 * (bytes - 1 - i) : 8 * i) & 0xff));
}

static void put_packet(struct buf *b, const struct form *f, size_t i)
{
	uint32_t n = packet[i].n + (uint32_t)f->head_n, wire = packet[i].wire + (uint32_t)f->head_n;
	uint64_t at = 1700000000000000ull + (uint64_t)packet[i].us;
	uint32_t pad = (4 - n % 4) % 4;

	if (f->is_ng) {
		at *= f->is_ns ? 1000 : 1;
		put(b, f, 6, 4);
		put(b, f, 32 + n + pad, 4);
		put(b, f, 0, 4);
		put(b, f, (uint32_t)(at >> 32), 4);
		put(b, f, (uint32_t)at, 4);
	} else {
		put(b, f, (uint32_t)(at / 1000000), 4);
		put(b, f, (uint32_t)(at % 1000000) * (f->is_ns ? 1000 : 1), 4);
	}
	put(b, f, n, 4);
	put(b, f, wire, 4);
	buf_add(b, f->head, f->head_n);
	buf_add(b, packet[i].bytes, packet[i].n);
	if (f->is_ng) {
		buf_add(b, "\0\0\0", pad);
		put(b, f, 32 + n + pad, 4);
	}
}

static void write_capture(const struct form *f)
{
	struct buf b = { 0 };
	struct err e;

	if (f->is_ng) {
		const uint32_t section[] = { 0x0a0d0d0a, 28, 0x1a2b3c4d }, more[] = { ~0u, ~0u,
			28, 1 };

		for (size_t i = 0; i < 3; i++)
			put(&b, f, section[i], 4);
		put(&b, f, 1, 2);
		put(&b, f, 0, 2);
		for (size_t i = 0; i < 4; i++)
			put(&b, f, more[i], 4);
		put(&b, f, f->is_ns ? 32 : 20, 4);
		put(&b, f, f->link, 2);
		put(&b, f, 0, 2);
		put(&b, f, 262144, 4);
		if (f->is_ns) {
			put(&b, f, 9, 2);
			put(&b, f, 1, 2);
			buf_add(&b, "\x09\0\0\0\0\0\0\0", 8);
		}
		put(&b, f, f->is_ns ? 32 : 20, 4);
		/* What dropped 2 packets: a block of statistics. */
		put(&b, f, 5, 4);
		put(&b, f, 40, 4);
		for (int i = 0; i < 3; i++)
			put(&b, f, 0, 4);
		put(&b, f, 5, 2);
		put(&b, f, 8, 2);
		put(&b, f, f->is_big ? 0 : 2, 4);
		put(&b, f, f->is_big ? 2 : 0, 4);
		put(&b, f, 0, 4);
		put(&b, f, 40, 4);
	} else {
		put(&b, f, f->is_ns ? 0xa1b23c4d : 0xa1b2c3d4, 4);
		put(&b, f, 2, 2);
		put(&b, f, 4, 2);
		put(&b, f, 0, 4);
		put(&b, f, 0, 4);
		put(&b, f, 262144, 4);
		put(&b, f, f->link, 4);
	}
	for (size_t i = 0; i < n_packets; i++)
		put_packet(&b, f, i);
	if (file_write_atomic(f->name, buf_str(&b), &e) < 0)
		fail_msg("%s", e.text);
	buf_release(&b);
}

static const struct form raw = { .name = "x.pcap", .link = 101 };

static const char *const varies[] = {
	"date = ", "profllm.date = ", "-profllm.host", "-profllm.system", "-profllm.client", "-profllm.machine",
	"-profllm.hardware", "_hash = ", "run_id = ", "-profllm.percentiles", "-profllm.sketches", "-profllm.settled",
	"-profllm.slow_gaps", "-profllm.verdicts", NULL,
};

#define TAP(file, more) "bench tap " file " --port 8000 --save-result --save-detailed --result-filename r.json " \
	"--metric-percentiles 50,99 " more

static void numbers(void **state)
{
	static const struct form form[] = {
		{ "little.pcap", .link = 101 }, { "big.pcap", .is_big = true, .is_ns = true, .link = 228 },
		{ "ethernet.pcap", .link = 1, .head = "\1\2\3\4\5\6\1\2\3\4\5\6\x81\0\0\1\x08\0", .head_n = 18 },
		{ "cooked.pcap", .link = 113, .head = "\0\0\0\1\0\6\1\2\3\4\5\6\0\0\x08\0", .head_n = 16 },
		{ "loop.pcap", .link = 0, .head = "\2\0\0\0", .head_n = 4 },
		{ "little.pcapng", .is_ng = true, .link = 101 },
		{ "big.pcapng", .is_ng = true, .is_ns = true, .is_big = true, .link = 276,
		  .head = "\x08\0\0\0\0\0\0\1\0\1\0\6\1\2\3\4\5\6\0\0", .head_n = 20 },
	};
	static const struct verb_case cases[] = {
		{ TAP("little.pcap", "--report full --goodput ttft:25 e2el:1000"), .files = "r.json", .mask = VERB_FLAT,
		  .varies = varies },
		{ .line = "bench tap big.pcap --port 8000,8001" }, { .line = "bench tap ethernet.pcap --port 8000" },
		{ .line = "bench tap cooked.pcap --port 8000" }, { .line = "bench tap loop.pcap --port 8000" },
		{ .line = "bench tap little.pcapng --port 8000 --strict" },
		{ .line = "bench tap big.pcapng --port 8000 --host 10.0.0.1" },
		{ "bench tap big.pcapng --port 8000 --host 10.0.0.9", .status = 1 },
		{ .line = "bench tap little.pcap --port 8000 --backend openai --percentile-metrics ttft" },
	};

	(void)state;
	opened(0);
	answered(10, 20, true, false);
	whole(100, "/v1/embeddings", "{}", "{}");
	whole(102, "/other", "{}", "[]");
	answered(110, 30, true, false);
	send_flags('s', 300, NULL, T_FIN);
	for (size_t i = 0; i < COUNT(form); i++)
		write_capture(&form[i]);
	verb_check_all(cases, COUNT(cases));
}

/* Files of one name each, since a capture is made before each line. */
static void incomplete(void **state)
{
	struct form f = raw;
	static const struct verb_case cases[] = {
		{ .line = "bench tap middle.pcap --port 8000 --report short" },
		{ TAP("hole.pcap", ""), .files = "r.json", .mask = VERB_FLAT | VERB_NO_OUT, .varies = varies },
		{ .line = "bench tap usage.pcap --port 8000 --report full" },
		{ .line = "bench tap usage.pcap --port 8000 --tokenizer sim" },
		{ "bench tap cut.pcap --port 8000", .status = 1 },
		{ .line = TAP("chat.pcap", "--report full") }, { "bench tap tls.pcap --port 8000", .status = 1 },
		{ "bench tap empty.pcap --port 8000", .status = 1 }, { "bench tap hole.pcap --port 9000", .status = 1 },
		{ "bench tap text.pcap --port 8000", .status = 1 }, { "bench tap none.pcap --port 8000", .status = 1 },
		{ "bench tap short.pcap --port 8000", .status = 1 }, { "bench tap link.pcap --port 8000", .status = 1 },
		{ "bench tap hole.pcap", .status = 2 }, { "bench tap hole.pcap --port x", .status = 2 },
		{ "bench tap hole.pcap --port 8000 --interface lo", .status = 2 },
		{ "bench tap hole.pcap --port 8000 --duration 3", .status = 2 },
		{ "bench tap hole.pcap --port 8000 --host nobody", .status = 2 },
		{ "bench tap hole.pcap --port 8000 --backend none", .status = 2 },
	};
	struct buf text = { 0 };
	struct err e;

	(void)state;
	opened(0);
	answered(10, 20, true, false);
	answered(110, 30, true, false);
	memmove(packet, packet + 2, (n_packets -= 2) * sizeof(*packet));
	f.name = "middle.pcap";
	write_capture(&f);
	opened(0);
	answered(10, 20, true, false);
	answered(110, 20, true, true);
	answered(210, 40, true, false);
	f.name = "hole.pcap";
	write_capture(&f);
	f.name = "link.pcap";
	f.link = 147;
	write_capture(&f);
	f.link = 101;
	opened(0);
	answered(10, 20, false, false);
	f.name = "usage.pcap";
	write_capture(&f);
	n_packets -= 2;
	f.name = "cut.pcap";
	write_capture(&f);
	opened(0);
	whole(10, "/v1/chat/completions", "{\"model\": \"llama\", \"messages\": [{\"role\": \"user\", \"content\": "
	      "\"hi\"}]}", "{\"choices\": [{\"message\": {\"content\": \"yes\"}}], \"usage\": {\"prompt_tokens\": 5, "
	      "\"completion_tokens\": 2}}");
	whole(20, "/v1/chat/completions", "{\"model\": \"other\"", "{}");
	request(30, "/v1/chat/completions", "{\"model\": \"llama\", \"messages\": []}");
	send_flags('s', 31, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nlate", 0);
	request(40, "/v1/chat/completions", "{\"model\": \"llama\", \"messages\": []}");
	send_flags('s', 41, NULL, T_RST);
	f.name = "chat.pcap";
	write_capture(&f);
	opened(0);
	send_flags('c', 5, "\x16\x03\x01 a handshake", 0);
	f.name = "tls.pcap";
	write_capture(&f);
	n_packets = 0;
	f.name = "empty.pcap";
	write_capture(&f);
	run_write("text.pcap", "{\"not\": \"a capture\"}");
	assert_int_equal(file_read("hole.pcap", SIZE_MAX, &text, &e), 0);
	assert_int_equal(file_write_atomic("short.pcap", (struct str){ text.data, 60 }, &e), 0);
	buf_release(&text);
	verb_check_all(cases, COUNT(cases));
}

RUN_MAIN(run_setup, cmocka_unit_test(numbers), cmocka_unit_test(incomplete))
