/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_proc.c - arbitrary bytes as a roster, as a lock file, as /proc/PID/stat and as lines of
 * socket tables.
 *
 * A roster or a lock file that is read is printed and read again as the same; what would be ended
 * by a roster can never be process 0 or 1; what a lock file says is a line without control bytes.
 */
#include <stdint.h>
#include <stdlib.h>

#include "check.h"
#include "core/base/str.h"
#include "host/proc/lock.h"
#include "host/proc/roster.h"
#include "host/proc/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_roster(struct str text)
{
	struct roster r, again;
	struct buf printed = { 0 };

	if (roster_parse(text, &r) == 0) {
		/* The owner is process 1 in many containers; only members are ever ended. */
		CHECK(r.owner.pid > 0 && r.keeper.pid > 0 && r.grace_s >= 0);
		roster_print(&r, &printed);
		CHECK(roster_parse(buf_str(&printed), &again) == 0);
		CHECK(again.n == r.n && strcmp(again.mark, r.mark) == 0 &&
		      strcmp(again.command, r.command) == 0 && strcmp(again.boot, r.boot) == 0);
		for (size_t i = 0; i < r.n; i++)
			CHECK(r.member[i].pid > 1 && r.member[i].pid == again.member[i].pid &&
			      r.member[i].start == again.member[i].start);
		roster_release(&again);
	}
	roster_release(&r);
	buf_release(&printed);
}

static void check_lock(struct str text)
{
	struct lock_holder h, again;
	struct buf printed = { 0 }, twice = { 0 };

	if (lock_parse(text, &h) == 0) {
		lock_print(&h, &printed);
		CHECK(lock_parse(buf_str(&printed), &again) == 0);
		lock_print(&again, &twice);
		CHECK(str_eq(buf_str(&printed), buf_str(&twice)));
		buf_reset(&twice);
		lock_describe(&h, &twice);
		for (size_t i = 0; i < twice.len; i++)
			CHECK((unsigned char)twice.data[i] >= 0x20);
	}
	buf_release(&printed);
	buf_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct tree_process p = { 0 };

	check_roster(text);
	check_lock(text);
	if (tree_parse_stat(text, &p))
		CHECK(p.pid > 0 && p.parent >= 0);
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		port_line_inode(line, 8000);
		port_line_unix(line, "/tmp/socket");
	}
	return 0;
}
