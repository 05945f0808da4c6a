/* SPDX-License-Identifier: Apache-2.0 */
/* test_stages_ports.c - ports that no other program takes, whether it knows of locks or not. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scratch.h"

#include "experiment/stages/allocate.h"

static int listen_on(const char *address, unsigned *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)*port) };
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, address, &at.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

static void one_port(void **state)
{
	struct lock_holder holder = { .run = "exp_holder" };
	struct lock a = { 0 }, b = { 0 }, c = { 0 };
	unsigned first, last, one, two, taken = 0;
	struct err e;
	int fd;

	(void)state;
	port_range(&first, &last);
	assert_true(first >= 1024 && first < last && last <= 65535);
	assert_int_equal(port_take(dir, first, last, &holder, &one, &a, &e), 0);
	assert_int_equal(port_take(dir, first, last, &holder, &two, &b, &e), 0);
	assert_in_range(one, first, last);
	assert_in_range(two, first, last);
	assert_true(one != two);
	assert_int_equal(port_take(dir, one, one, &holder, &taken, &c, &e), -1);
	assert_non_null(strstr(e.text, " is reserved by exp_holder (process "));
	lock_give(&a);
	assert_int_equal(port_take(dir, one, one, &holder, &taken, &a, &e), 0);
	lock_give(&a);
	lock_give(&b);

	/* Two neighbours that are both reserved: the range is full. */
	for (two = first + 1; two <= last; two++) {
		if (port_take(dir, two - 1, two - 1, &holder, &one, &a, &e) < 0)
			continue;
		if (port_take(dir, two, two, &holder, &taken, &b, &e) == 0)
			break;
		lock_give(&a);
	}
	assert_int_equal(port_take(dir, one, two, &holder, &taken, &c, &e), -1);
	assert_non_null(strstr(e.text, " is free: all 2 are reserved or taken"));
	lock_give(&b);
	assert_int_equal(port_take(dir, one, two, &holder, &taken, &b, &e), 0);
	assert_int_equal(taken, two);
	lock_give(&a);
	lock_give(&b);

	/* A program that knows nothing of locks, on one address only. */
	taken = 0;
	fd = listen_on("127.0.0.1", &taken);
	assert_int_equal(port_take(dir, taken, taken, &holder, &one, &a, &e), -1);
	assert_non_null(strstr(e.text, " is taken by process "));
	assert_null(a.path);
	close(fd);
	assert_int_equal(port_take(dir, taken, taken, &holder, &one, &a, &e), 0);
	/* It is proved free, not kept: the server can have it. */
	close(listen_on("0.0.0.0", &taken));
	lock_give(&a);
	assert_int_equal(port_take(dir, 0, 5, &holder, &one, &a, &e), -1);
	assert_int_equal(port_take(dir, 9, 8, &holder, &one, &a, &e), -1);
	assert_int_equal(port_take(dir, 9, 65536, &holder, &one, &a, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_port),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
