/* SPDX-License-Identifier: Apache-2.0 */
/* sys/pidfd.h - a header that came with glibc 2.36; compat.h has its one function that is used. */
#pragma once
