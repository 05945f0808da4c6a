/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_worker.c - arbitrary bytes from a worker's socket, in pieces as the first byte says.
 *
 * The frames are the same however the bytes are cut, and a message that is accepted has what its
 * kind must have. What we send is read back as we sent it.
 */
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "core/base/limits.h"
#include "host/worker/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
	size_t frames, bytes;
	bool is_refused;
};

static void check_message(struct str frame)
{
	struct worker_message m;
	struct err e = { 0 };

	if (message_read(frame, &m, &e) < 0) {
		CHECK(e.code == ERR_PARSE && e.text[0]);
		return;
	}
	CHECK(m.body.kind == JSON_OBJECT);
	CHECK(m.kind != MESSAGE_OK || m.has_id);
	CHECK(m.kind != MESSAGE_ERROR || m.text.n);
	CHECK(m.kind != MESSAGE_HELLO || m.features.kind == JSON_ARRAY);
}

static struct sum read_in(const uint8_t *data, size_t size, size_t piece)
{
	struct frames f = { 0 };
	struct sum s = { 0 };
	struct str frame;
	int rc = 0;

	while (size && rc >= 0) {
		size_t n = size < piece ? size : piece;

		memcpy(frames_room(&f, n), data, n);
		frames_add(&f, n);
		data += n;
		size -= n;
		while ((rc = frames_next(&f, &frame, NULL)) == 1) {
			CHECK(frame.n <= WORKER_FRAME_BYTES_MAX);
			s.frames++;
			s.bytes += frame.n;
			check_message(frame);
		}
	}
	s.is_refused = rc < 0;
	frames_release(&f);
	return s;
}

static void check_sent(const uint8_t *data, size_t size)
{
	struct buf out = { 0 };
	struct frames f = { 0 };
	struct str frame;
	size_t begin = frame_begin(&out);

	buf_add(&out, data, size);
	CHECK(frame_end(&out, begin, NULL) == 0);
	memcpy(frames_room(&f, out.len), out.data, out.len);
	frames_add(&f, out.len);
	CHECK(frames_next(&f, &frame, NULL) == 1);
	CHECK(str_eq(frame, (struct str){ (const char *)data, size }));
	CHECK(!frames_is_amid(&f));
	frames_release(&f);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sum whole, cut;

	if (!size)
		return 0;
	whole = read_in(data + 1, size - 1, size);
	cut = read_in(data + 1, size - 1, data[0] ? data[0] : 1);
	CHECK(whole.frames == cut.frames && whole.bytes == cut.bytes);
	CHECK(whole.is_refused == cut.is_refused);
	check_message((struct str){ (const char *)data + 1, size - 1 });
	check_sent(data + 1, size - 1);
	return 0;
}
