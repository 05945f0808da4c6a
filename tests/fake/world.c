/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - stands in for things that a test must not do to the machine it runs on (LD_PRELOAD):
 *
 *   FAKE_CLOCK_STEP_MS=N   CLOCK_REALTIME is set by N ms, FAKE_CLOCK_AT_S seconds after the start
 *   FAKE_RESOLVE_MS=N      looking up a name takes N ms longer
 *
 * Stamps of the kernel do not step with such a clock: use it with --timestamps user.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef int clock_function(clockid_t id, struct timespec *t);
typedef int resolve_function(const char *host, const char *service, const struct addrinfo *hints,
			     struct addrinfo **found);

static int64_t step_ns, step_at_ns, resolve_ns;
static clock_function *real_clock;
static resolve_function *real_resolve;

static int64_t number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoll(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	struct timespec now;

	*(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
	*(void **)&real_resolve = dlsym(RTLD_NEXT, "getaddrinfo");
	real_clock(CLOCK_MONOTONIC, &now);
	step_ns = 1000000 * number("FAKE_CLOCK_STEP_MS");
	step_at_ns = now.tv_sec * 1000000000ll + now.tv_nsec + 1000000000 * number("FAKE_CLOCK_AT_S");
	resolve_ns = 1000000 * number("FAKE_RESOLVE_MS");
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	struct timespec mono;
	int64_t ns;
	int rc;

	if (!real_clock)
		begin();
	rc = real_clock(id, t);
	if (rc < 0 || id != CLOCK_REALTIME || !step_ns)
		return rc;
	real_clock(CLOCK_MONOTONIC, &mono);
	if (mono.tv_sec * 1000000000ll + mono.tv_nsec < step_at_ns)
		return rc;
	ns = t->tv_sec * 1000000000ll + t->tv_nsec + step_ns;
	*t = (struct timespec){ ns / 1000000000, ns % 1000000000 };
	return rc;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		struct addrinfo **found)
{
	struct timespec wait = { resolve_ns / 1000000000, resolve_ns % 1000000000 };

	nanosleep(&wait, NULL);
	return real_resolve(host, service, hints, found);
}
