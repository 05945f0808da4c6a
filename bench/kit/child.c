/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - child processes and the simulator as one; see kit.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "kit/kit.h"

#define START_NS 10000000000
#define STOP_NS 5000000000
#define SIM_ARGS_MAX 40

static void nap(void)
{
	nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
}

int child_exec(struct child *c, const char *const *argv, struct err *e)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	c->pid = fork();
	if (c->pid < 0)
		return err_set(e, ERR_RUN, "cannot start %s: %s", argv[0], strerror(errno));
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bench_pin_server();
		dup2(null, 1);
		dup2(null, 2);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(null);
	return 0;
}

int child_hog(struct child *c, struct err *e)
{
	c->pid = fork();
	if (c->pid < 0)
		return err_set(e, ERR_RUN, "cannot start a busy loop: %s", strerror(errno));
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bench_set_realtime(false); /* it competes; it does not lock everyone else out */
		bench_pin_client();
		for (volatile unsigned n = 0;; n++)
			;
	}
	return 0;
}

void child_stop(struct child *c, struct rusage *use)
{
	int64_t deadline = clock_mono_ns() + STOP_NS;
	struct rusage ignored;

	if (c->pid <= 0)
		return;
	kill(c->pid, SIGTERM);
	while (wait4(c->pid, NULL, WNOHANG, use ? use : &ignored) == 0) {
		if (clock_mono_ns() > deadline)
			kill(c->pid, SIGKILL);
		nap();
	}
	c->pid = 0;
}

/* The port, once the file holds a whole line. */
static int read_port(const struct sim_child *s, const char *path, uint64_t *port, struct err *e)
{
	int64_t deadline = clock_mono_ns() + START_NS;
	struct buf text = { 0 };
	int rc = -1;

	while (rc < 0 && clock_mono_ns() < deadline &&
	       waitpid(s->child.pid, NULL, WNOHANG) == 0) {
		nap();
		buf_reset(&text);
		if (file_read(path, 64, &text, e) == 0 && str_ends(buf_str(&text), STR("\n")) &&
		    str_to_u64(str_trim(buf_str(&text)), port))
			rc = 0;
	}
	buf_release(&text);
	if (rc < 0)
		return err_set(e, ERR_RUN, "the simulator did not start listening");
	e->code = ERR_NONE;
	return 0;
}

int sim_child_start(struct sim_child *s, const struct bench *b, bool is_tls,
		    const char *const *extra, struct err *e)
{
	const char *argv[SIM_ARGS_MAX] = { b->binary, "sim", "--port", "0", "--port-file" };
	char port_file[64], cert[64], key[64];
	uint64_t port;
	int n = 5;

	*s = (struct sim_child){ .dir = "/tmp/profllm-bench-XXXXXX" };
	if (!mkdtemp(s->dir)) {
		s->dir[0] = 0;
		return err_set(e, ERR_RUN, "cannot make a directory in /tmp: %s", strerror(errno));
	}
	snprintf(port_file, sizeof(port_file), "%s/port", s->dir);
	snprintf(s->truth, sizeof(s->truth), "%s/truth.jsonl", s->dir);
	argv[n++] = port_file;
	argv[n++] = "--truth";
	argv[n++] = s->truth;
	if (is_tls) {
		snprintf(cert, sizeof(cert), "%s/cert.pem", s->dir);
		snprintf(key, sizeof(key), "%s/key.pem", s->dir);
		if (cert_make(s->dir, e) < 0)
			return -1;
		memcpy(&argv[n], (const char *[]){ "--ssl-certfile", cert, "--ssl-keyfile", key },
		       4 * sizeof(*argv));
		n += 4;
	}
	while (*extra && n < SIM_ARGS_MAX - 1)
		argv[n++] = *extra++;
	argv[n] = NULL;
	if (child_exec(&s->child, argv, e) < 0 || read_port(s, port_file, &port, e) < 0)
		return -1;
	snprintf(s->url, sizeof(s->url), "%s://127.0.0.1:%u", is_tls ? "https" : "http",
		 (unsigned)port);
	return 0;
}

void sim_child_stop(struct sim_child *s, struct rusage *use)
{
	child_stop(&s->child, use);
}

void sim_child_release(struct sim_child *s)
{
	static const char *const files[] = { "port", "truth.jsonl", "cert.pem", "key.pem" };
	char path[64];

	child_stop(&s->child, NULL);
	for (size_t i = 0; s->dir[0] && i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s", s->dir, files[i]);
		unlink(path);
	}
	if (s->dir[0])
		rmdir(s->dir);
	s->dir[0] = 0;
}
