/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyhash.h - CPython's hash() of a text when it is started with PYTHONHASHSEED=0.
 *
 * SipHash-1-3 with a key of zeros. Equal for ASCII texts; others are hashed in their UTF-8,
 * which is stable but not what CPython does.
 */
#pragma once
#include <stdint.h>

#include "base/str.h"

int64_t pyhash_str(struct str text);
