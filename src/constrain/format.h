/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/format.h - the formats of JSON Schema that can be asserted.
 *
 * date-time, date, time (RFC 3339), duration (its appendix A), email (RFC 5321), hostname (RFC
 * 1123), ipv4 (RFC 2673), ipv6 (RFC 4291), uri and uri-reference (RFC 3986), uri-template (RFC
 * 6570), uuid (RFC 4122), json-pointer (RFC 6901), relative-json-pointer. Which letters an
 * international host name (xn--...) encodes is not looked at.
 */
#pragma once
#include <stdbool.h>

#include "base/str.h"

struct format;

const struct format *format_find(struct str name); /* NULL: not one of these */
bool format_holds(const struct format *f, struct str text);
const char *format_example(const struct format *f); /* a text that has it */
