/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c - see lock.h. */
#include "host/proc/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#define FIRST_LINE "profllm lock 1"
#define DEFAULT_FOLDER "/dev/shm/profllm"
#define TRIES_MAX 100 /* a file that is removed each time we have opened it */

/* ---- what a lock file says ---- */

static void host_name(char out[256])
{
	struct utsname name;

	snprintf(out, 256, "%s", uname(&name) == 0 ? name.nodename : "unknown");
}

/* Replaces control characters: any user who may lock can write anything into the file. */
static void keep(char *out, size_t room, struct str text)
{
	size_t n = text.n < room - 1 ? text.n : room - 1;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		out[i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	out[n] = 0;
}

static bool parse_line(struct str line, struct lock_holder *h)
{
	struct str word = str_cut(&line, ' ');

	if (str_is(word, "process"))
		return tree_parse_process(line, &h->pid, &h->start);
	if (str_is(word, "since"))
		return str_to_i64(line, &h->since_s);
	if (str_is(word, "host"))
		keep(h->host, sizeof(h->host), line);
	else if (str_is(word, "run"))
		keep(h->run, sizeof(h->run), line);
	else if (str_is(word, "user"))
		keep(h->user, sizeof(h->user), line);
	else if (str_is(word, "command"))
		keep(h->command, sizeof(h->command), line);
	else if (str_is(word, "wants"))
		keep(h->wants, sizeof(h->wants), line);
	else
		return false;
	return true;
}

int lock_parse(struct str text, struct lock_holder *h)
{
	*h = (struct lock_holder){ 0 };
	if (!str_ends(text, STR("\n")) || !str_is(str_cut(&text, '\n'), FIRST_LINE))
		return -1;
	while (text.n)
		if (!parse_line(str_cut(&text, '\n'), h))
			return -1;
	return h->pid ? 0 : -1;
}

void lock_print(const struct lock_holder *h, struct buf *out)
{
	buf_printf(out, FIRST_LINE "\nhost %s\nprocess %d %llu\nsince %lld\nrun %s\n", h->host,
		   (int)h->pid, (unsigned long long)h->start, (long long)h->since_s, h->run);
	if (h->user[0])
		buf_printf(out, "user %s\n", h->user);
	buf_printf(out, "command %s\n", h->command);
	if (h->wants[0])
		buf_printf(out, "wants %s\n", h->wants);
}

static void user_name(char out[64])
{
	struct passwd user, *found = NULL;
	char room[1024];

	if (getpwuid_r(geteuid(), &user, room, sizeof(room), &found) == 0 && found)
		snprintf(out, 64, "%s", user.pw_name);
	else
		snprintf(out, 64, "%u", (unsigned)geteuid());
}

static bool is_verb(struct str word)
{
	for (size_t i = 0; i < word.n; i++)
		if ((word.p[i] < 'a' || word.p[i] > 'z') && word.p[i] != '-')
			return false;
	return word.n > 0 && word.p[0] != '-';
}

/* "profllm bench serve" of this process. Arguments may hold secrets and paths. */
static void own_command(char out[TREE_COMMAND_BYTES])
{
	struct buf text = { 0 };
	struct str rest, word, verb;
	const char *slash;

	out[0] = 0;
	if (file_read("/proc/self/cmdline", PROC_FILE_BYTES_MAX, &text, NULL) < 0) {
		buf_release(&text);
		return;
	}
	rest = buf_str(&text);
	word = str_cut(&rest, 0);
	slash = word.n ? memrchr(word.p, '/', word.n) : NULL;
	if (slash)
		word = (struct str){ slash + 1, word.n - (size_t)(slash + 1 - word.p) };
	keep(out, TREE_COMMAND_BYTES, word);
	for (size_t i = 0; str_is(word, "profllm") && i < 2; i++) {
		size_t at = strlen(out);

		verb = str_cut(&rest, 0);
		if (!is_verb(verb))
			break;
		snprintf(out + at, TREE_COMMAND_BYTES - at, " %.*s", (int)verb.n, verb.p);
		if (!str_is(verb, "bench"))
			break;
	}
	buf_release(&text);
}

void lock_name(const struct lock_holder *h, struct buf *out)
{
	char since[32] = "", here[256], us[64];
	time_t at = (time_t)h->since_s;
	struct tm tm;

	if (h->pid == 0) {
		buf_add_text(out, "an unknown process");
		return;
	}
	host_name(here);
	user_name(us);
	if (h->since_s && localtime_r(&at, &tm))
		strftime(since, sizeof(since), ", since %Y-%m-%d %H:%M:%S", &tm);
	buf_printf(out, "%s%sprocess %d", h->run, h->run[0] ? " (" : "", (int)h->pid);
	if (h->user[0] && strcmp(h->user, us) != 0)
		buf_printf(out, " of %s", h->user);
	if (strcmp(h->host, here) != 0)
		buf_printf(out, " on %s", h->host);
	buf_add_text(out, since);
	buf_add_text(out, h->run[0] ? ")" : "");
}

void lock_describe(const struct lock_holder *h, struct buf *out)
{
	lock_name(h, out);
	if (h->pid && h->command[0])
		buf_printf(out, ": %s", h->command);
}

/* ---- the folder ---- */

int lock_make_folder(const char *path, struct err *e)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(path, flags), rc = 0;

	if (fd < 0 && errno == ENOENT) {
		char *copy = mem_text(path);

		rc = file_mkdirs(dirname(copy), e);
		free(copy);
		if (rc < 0)
			return -1;
		rc = mkdir(path, 0777);
		if (rc == 0 || errno == EEXIST)
			fd = open(path, flags);
		/* Others' umask must not shut us out, nor ours them; by the descriptor, for the
		 * name may be another thing's by now. */
		if (fd >= 0 && rc == 0)
			(void)fchmod(fd, 01777);
	}
	if (fd < 0)
		return err_set(e, ERR_IO, "the folder %s cannot be used: %s", path,
			       errno == ELOOP || errno == ENOTDIR ? "it is not a folder, or a link" :
								    strerror(errno));
	close(fd);
	return 0;
}

/* PROFLLM_LOCKS may name a link: it is the user's own choice. */
int lock_folder(struct buf *out, struct err *e)
{
	const char *given = getenv("PROFLLM_LOCKS");
	const char *folder = given && *given ? given : DEFAULT_FOLDER;

	if ((folder != given || !file_is_dir(folder)) && lock_make_folder(folder, e) < 0)
		return err_wrap(e, "the folder of locks");
	if (access(folder, R_OK | W_OK | X_OK) < 0)
		return err_set(e, ERR_LOCKS_UNUSABLE, "the folder of locks %s cannot be used: %s; all users "
			       "need to read and write there, or PROFLLM_LOCKS names another one",
			       folder, strerror(errno));
	buf_add_text(out, folder);
	return 0;
}

/* ---- one lock ---- */

static int lock_set(int fd, short type)
{
	struct flock f = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &f);
}

/* Opens an existing file or a new one; never a link's target. -1 with errno. */
static int open_file(const char *path)
{
	int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	struct stat st;
	int fd = open(path, flags);

	if (fd < 0 && errno == ENOENT) {
		/* Two steps, because the kernel refuses O_CREAT for another user's file here. */
		fd = open(path, flags | O_CREAT | O_EXCL, 0666);
		if (fd >= 0)
			(void)fchmod(fd, 0666);
	}
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

static bool is_still_named(int fd, const char *path)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 &&
	       opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

static void read_holder(int fd, struct lock_holder *who)
{
	char text[LOCK_FILE_BYTES_MAX], here[256];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	host_name(here);
	/* If the named holder has ended, another one shared the lock or has not written yet. */
	if (n <= 0 || lock_parse((struct str){ text, (size_t)n }, who) < 0 ||
	    (strcmp(who->host, here) == 0 && !tree_is_running(who->pid, who->start)))
		*who = (struct lock_holder){ 0 };
}

static void write_holder(int fd, const struct lock_holder *me)
{
	struct lock_holder h = *me;
	struct tree_process self;
	struct buf text = { 0 };

	h.pid = getpid();
	h.start = tree_process_read(h.pid, &self) ? self.start : 0;
	h.since_s = clock_real_ns() / 1000000000;
	host_name(h.host);
	own_command(h.command);
	user_name(h.user);
	lock_print(&h, &text);
	/* The lock holds without it: a full disk only makes others' messages poorer. */
	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, text.data, text.len, 0);
	buf_release(&text);
}

int lock_take(const char *folder, const char *name, enum lock_kind kind,
	      const struct lock_holder *me, struct lock *l, struct lock_holder *who, struct err *e)
{
	char *path = file_join(folder, name);
	int result = -1;

	*l = (struct lock){ 0 };
	errno = 0;
	for (int i = 0; i < TRIES_MAX && result < 0; i++) {
		int fd = open_file(path);

		if (fd < 0 && (errno == EEXIST || errno == ENOENT))
			continue;
		if (fd < 0)
			break;
		if (lock_set(fd, kind == LOCK_SHARED ? F_RDLCK : F_WRLCK) < 0) {
			result = errno == EAGAIN || errno == EACCES ? 0 : -1;
			if (result == 0 && who)
				read_holder(fd, who);
			close(fd);
			break;
		}
		if (is_still_named(fd, path)) {
			struct lock_holder other = { 0 };

			/* Of several that share it, the last one to stay should be named. */
			if (kind == LOCK_SHARED)
				read_holder(fd, &other);
			if (!other.pid)
				write_holder(fd, me);
			*l = (struct lock){ .path = path, .fd = fd, .kind = kind };
			return 1;
		}
		close(fd);
	}
	if (result < 0)
		err_set(e, ERR_IO, "the lock file %s cannot be used: %s", path,
			errno ? strerror(errno) : "it is removed again and again");
	free(path);
	return result;
}

void lock_give(struct lock *l)
{
	if (!l->path)
		return;
	/* Only the last of those that share it may remove the name. */
	if ((l->kind == LOCK_ALONE || lock_set(l->fd, F_WRLCK) == 0) && unlink(l->path) < 0)
		(void)!ftruncate(l->fd, 0);
	close(l->fd);
	free(l->path);
	*l = (struct lock){ 0 };
}

bool lock_is_held(const char *folder, const char *name, struct lock_holder *who)
{
	struct flock f = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *path = file_join(folder, name);
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	bool is_held;

	free(path);
	if (who)
		*who = (struct lock_holder){ 0 };
	if (fd < 0)
		return false;
	is_held = fcntl(fd, F_OFD_GETLK, &f) == 0 && f.l_type != F_UNLCK;
	if (is_held && who)
		read_holder(fd, who);
	close(fd);
	return is_held;
}

/* The folder may have been named by mistake and be full of other files. */
static bool is_lock_file(int fd)
{
	char text[sizeof(FIRST_LINE)];

	return pread(fd, text, sizeof(text), 0) == (ssize_t)sizeof(text) &&
	       memcmp(text, FIRST_LINE "\n", sizeof(text)) == 0;
}

unsigned lock_clean(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir))) {
		struct stat st;
		char *path;
		int fd;

		if (entry->d_name[0] == '.')
			continue;
		path = file_join(folder, entry->d_name);
		fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_lock_file(fd) &&
		    lock_set(fd, F_WRLCK) == 0 && is_still_named(fd, path) && unlink(path) == 0)
			n++;
		if (fd >= 0)
			close(fd);
		free(path);
	}
	if (dir)
		closedir(dir);
	return n;
}
