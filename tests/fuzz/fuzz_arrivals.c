/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_arrivals.c - when bytes of a stream arrived, against a slow reader that keeps a stamp for
 * every byte. The first byte says where sequence numbers begin. Then steps of four bytes: a segment
 * (where, how long), a read of so many bytes, or bytes of a raw packet, which another set of
 * arrivals gets.
 */
#include <assert.h>

#include "../unit/packets.h"
#include "check.h"
#include "core/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PORT 50000
#define STREAM_BYTES 8192
#define NEVER 0

struct slow { int64_t first_ns[STREAM_BYTES]; size_t at; int64_t latest_ns; };

static void slow_segment(struct slow *s, size_t from, size_t bytes, int64_t stamp_ns)
{
	for (size_t i = from; i < from + bytes && i < STREAM_BYTES; i++)
		if (i >= s->at && s->first_ns[i] == NEVER)
			s->first_ns[i] = stamp_ns;
}

/* The stamp of the next byte; NEVER: unknown. */
static int64_t slow_byte(struct slow *s, int64_t read_ns)
{
	int64_t first = s->first_ns[s->at++], at = first == NEVER ? read_ns : first;

	s->latest_ns = at > s->latest_ns ? at : s->latest_ns;
	return first == NEVER ? NEVER : s->latest_ns;
}

static void read_bytes(struct arrivals *a, struct arrival_flow *f, struct slow *s, size_t bytes,
		       int64_t read_ns)
{
	if (bytes > STREAM_BYTES - s->at)
		bytes = STREAM_BYTES - s->at;
	while (bytes) {
		int64_t stamp_ns;
		bool is_known;
		size_t n = arrivals_take(a, f, bytes, read_ns, &stamp_ns, &is_known);

		CHECK(n >= 1 && n <= bytes);
		for (size_t i = 0; i < n; i++)
			CHECK(slow_byte(s, read_ns) == (is_known ? stamp_ns : NEVER));
		CHECK(is_known || stamp_ns == read_ns);
		bytes -= n;
	}
}

static void raw_packet(struct arrivals *a, const uint8_t *data, size_t n)
{
	char *copy = malloc(n + 1);

	assert(copy);
	memcpy(copy, data, n);
	CHECK(arrivals_packet(a, (struct str){ copy, n }, n + 4, 1) <= n + 4);
	free(copy);
}

/*
 * Two servers, of which a connection to the first is followed: what a packet may be about. Made
 * once: their memory is much more than one input needs.
 */
static struct arrivals *begin(struct arrivals **once, struct arrival_flow *f, uint32_t isn)
{
	struct sock_addr server[2] = { packet_server(false, 1), packet_server(true, 1) };
	struct arrivals *a = *once ? *once : arrivals_new();

	*once = a;
	arrivals_server(a, &server[0]);
	arrivals_server(a, &server[1]);
	packet_show(a, (struct packet){ .host = 1, .to = PORT, .seq = isn,
					.flags = FLAG_SYN_ACK }, 0);
	*f = (struct arrival_flow){ 0 };
	CHECK(arrivals_follow(a, f, PORT, 0));
	return a;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arrivals *once[2];
	uint32_t isn = size ? (uint32_t)data[0] * 16 - 2048 : 0;
	struct arrival_flow flow, other_flow;
	struct arrivals *a, *other;
	struct slow *slow;
	int64_t now = 1;

	if (size < 5)
		return 0;
	a = begin(&once[0], &flow, isn);
	other = begin(&once[1], &other_flow, isn);
	slow = calloc(1, sizeof(*slow));
	assert(slow);
	for (size_t i = 1; i + 4 <= size; i += 4, now++) {
		const uint8_t *step = data + i;
		uint32_t where = (uint32_t)(step[1] | step[2] << 8) % STREAM_BYTES;
		size_t rest = size - i - 4, n = step[3] < rest ? step[3] : rest;

		if (step[0] % 4 < 2) {
			packet_show(a, (struct packet){ .host = 1, .to = PORT, .bytes = step[3],
							.seq = isn + 1 + where }, now);
			slow_segment(slow, where, step[3], now);
		} else if (step[0] % 4 == 2) {
			read_bytes(a, &flow, slow, step[3], now);
		} else {
			raw_packet(other, step + 4, n);
			i += n;
		}
	}
	read_bytes(a, &flow, slow, STREAM_BYTES, now);
	arrivals_forget(a, &flow);
	arrivals_forget(other, &other_flow);
	free(slow);
	return 0;
}
