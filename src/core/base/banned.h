/* SPDX-License-Identifier: Apache-2.0 */
/*
 * banned.h - calls this program never makes; force-included in every source file.
 *
 * Each has a safer spelling: snprintf for sprintf, base/str.h for ato*, strtok
 * and strcpy. `make tidy` checks for what a poison pragma cannot express.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#pragma GCC poison sprintf vsprintf strcpy strcat strncat strtok gets atoi atol atof
