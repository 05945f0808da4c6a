/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what must hold whatever the input: the fuzzer reports it when it does not.
 */
#pragma once
#include <stdlib.h>

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition))                                              \
			abort();                                               \
	} while (0)
