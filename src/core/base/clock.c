/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - see clock.h. */
#include "core/base/clock.h"

#include <stdlib.h>
#include <unistd.h>

_Noreturn void clock_failed(void)
{
	static const char text[] = "profllm: the clock cannot be read: clock_gettime failed\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	quick_exit(1);
}
