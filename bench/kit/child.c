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

int child_exec(struct child *c, const char *const *argv, const char *out, struct err *e)
{
	int fd = open(out, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(e, ERR_RUN, "cannot write %s: %s", out, strerror(errno));
	c->pid = fork();
	if (c->pid < 0)
		return err_set(e, ERR_RUN, "cannot start %s: %s", argv[0], strerror(errno));
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bench_pin_server();
		dup2(fd, 1);
		dup2(fd, 2);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(fd);
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
	char port_file[64], out[64], cert[64], key[64];
	uint64_t port;
	int n = 5;

	*s = (struct sim_child){ .dir = "/tmp/profllm-bench-XXXXXX" };
	if (!mkdtemp(s->dir)) {
		s->dir[0] = 0;
		return err_set(e, ERR_RUN, "cannot make a directory in /tmp: %s", strerror(errno));
	}
	snprintf(port_file, sizeof(port_file), "%s/port", s->dir);
	snprintf(out, sizeof(out), "%s/out", s->dir);
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
	if (child_exec(&s->child, argv, out, e) < 0 || read_port(s, port_file, &port, e) < 0)
		return -1;
	s->port = (uint16_t)port;
	snprintf(s->url, sizeof(s->url), "%s://127.0.0.1:%u", is_tls ? "https" : "http",
		 (unsigned)port);
	return 0;
}

void sim_child_stop(struct sim_child *s, struct rusage *use)
{
	child_stop(&s->child, use);
}

/* "27.5 us" in nanoseconds. */
static double duration_of(const char *number, const char *unit)
{
	static const struct { const char *unit; double ns; } units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(unit, units[i].unit) == 0)
			return str_strtod(number, NULL) * units[i].ns;
	return 0;
}

int sim_child_said(const struct sim_child *s, struct sim_said *out, struct err *e)
{
	char path[64], number[4][16], unit[3][4];
	struct buf text = { 0 };
	const char *at;
	int n = 0;

	snprintf(path, sizeof(path), "%s/out", s->dir);
	if (file_read(path, 1 << 20, &text, e) < 0)
		return -1;
	at = text.data ? strstr(text.data, "; CPU per event ") : NULL;
	if (at)
		n = sscanf(at, "; CPU per event %15s us; sent after due: p50 %15s %3[a-z], p99 "
			   "%15s %3[a-z], max %15s %3[a-z]", number[0], number[1], unit[0], number[2],
			   unit[1], number[3], unit[2]);
	buf_release(&text);
	if (n != 7)
		return err_set(e, ERR_RUN, "the simulator did not print what its events cost");
	*out = (struct sim_said){
		.cpu_us = str_strtod(number[0], NULL),
		.late_p50_ns = duration_of(number[1], unit[0]),
		.late_p99_ns = duration_of(number[2], unit[1]),
		.late_max_ns = duration_of(number[3], unit[2]),
	};
	return 0;
}

void sim_child_release(struct sim_child *s)
{
	static const char *const files[] = { "port", "out", "truth.jsonl", "cert.pem",
					     "key.pem" };
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
