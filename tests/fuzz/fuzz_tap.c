/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tap.c - any bytes as a capture file, and what its packets hold as traffic of a client: no
 * request is left between states, none ends before it began, and the report's counts add up.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/serve/observe.h"
#include "check.h"
#include "client/net/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const struct record *r)
{
	for (uint32_t i = 0; i < r->n_rows; i++) {
		const struct request_row *row = &r->row[i];

		CHECK(row->state >= REQ_DONE);
		CHECK(row->state == REQ_UNSENT || row->end_ns >= row->sent_ns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct observe_opts o = { .filter = { .port = { 8000, 8001 }, .n_ports = 2 },
					.requests_max = 256 };
	int fd = memfd_create("capture", 0);
	char path[32];
	struct capture *c;
	struct err e = { 0 };

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	c = capture_open_file(path, &e);
	if (c) {
		struct observer *to = observer_new(&o, &e);
		struct report_meta meta = { 0 };
		struct capture_packet p;
		int rc;

		CHECK(to);
		while ((rc = capture_next(c, 0, &p, &e)) > 0) {
			CHECK(p.wire_bytes >= p.bytes.n);
			observer_packet(to, p.bytes, p.wire_bytes, p.stamp_ns);
		}
		CHECK(rc == 0 || e.text[0]);
		observer_score(to, NULL, "capture", capture_dropped(c), &meta);
		check_record(observer_record(to));
		if (observer_check(to, &e) < 0)
			CHECK(e.text[0]);
		observer_free(to);
		capture_close(c);
	} else {
		CHECK(e.text[0]);
	}
	close(fd);
	return 0;
}
