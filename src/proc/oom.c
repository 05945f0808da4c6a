/* SPDX-License-Identifier: Apache-2.0 */
/* oom.c - see oom.h. */
#include "proc/oom.h"

#include <stdio.h>

#include "base/file.h"
#include "base/limits.h"

#define MOUNT "/sys/fs/cgroup"

static bool read_kills(const char *path, uint64_t *kills)
{
	struct buf text = { 0 };
	struct str rest;
	bool is_found = false;

	if (file_read(path, PROC_FILE_BYTES_MAX, &text, NULL) == 0) {
		rest = buf_str(&text);
		while (rest.n && !is_found) {
			struct str line = str_cut(&rest, '\n'), name = str_cut(&line, ' ');

			is_found = str_is(name, "oom_kill") && str_to_u64(line, kills);
		}
	}
	buf_release(&text);
	return is_found;
}

/* In a container the path may be the host's, and the mount is its own cgroup. */
static bool try_file(struct oom_counter *c, const char *mount, const char *hierarchy,
		     struct str path, const char *name)
{
	snprintf(c->path, sizeof(c->path), "%s%s%.*s/%s", mount, hierarchy, (int)path.n, path.p,
		 name);
	if (read_kills(c->path, &c->kills))
		return true;
	snprintf(c->path, sizeof(c->path), "%s%s/%s", mount, hierarchy, name);
	if (read_kills(c->path, &c->kills))
		return true;
	c->path[0] = 0;
	return false;
}

static bool has_memory(struct str controllers)
{
	while (controllers.n)
		if (str_is(str_cut(&controllers, ','), "memory"))
			return true;
	return false;
}

/* Lines "NUMBER:CONTROLLERS:PATH"; the one of version 2 has no controllers. */
void oom_begin_at(struct oom_counter *c, const char *mount, struct str cgroups)
{
	bool is_found = false;

	*c = (struct oom_counter){ 0 };
	while (cgroups.n && !is_found) {
		struct str path = str_cut(&cgroups, '\n'), number = str_cut(&path, ':');
		struct str controllers = str_cut(&path, ':');

		if (has_memory(controllers))
			is_found = try_file(c, mount, "/memory", path, "memory.oom_control");
		else if (str_is(number, "0") && controllers.n == 0)
			is_found = try_file(c, mount, "", path, "memory.events");
	}
}

void oom_begin(struct oom_counter *c, pid_t pid)
{
	struct buf text = { 0 };
	char path[64];

	*c = (struct oom_counter){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (file_read(path, PROC_FILE_BYTES_MAX, &text, NULL) == 0)
		oom_begin_at(c, MOUNT, buf_str(&text));
	buf_release(&text);
}

bool oom_has_risen(const struct oom_counter *c)
{
	uint64_t now;

	return c->path[0] && read_kills(c->path, &now) && now > c->kills;
}
