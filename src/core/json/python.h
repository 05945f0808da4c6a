/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python.h - values as Python prints them: repr() and str() of what json.loads returns.
 *
 * Bytes that are not UTF-8 are shown as Python shows those of an argument: as lone surrogates.
 */
#pragma once
#include "core/base/str.h"
#include "core/json/read.h"

void json_repr_str(struct buf *out, struct str text); /* 'text', with Python's escapes */
void json_repr(struct buf *out, const struct json_value *v);
void json_python_str(struct buf *out, const struct json_value *v); /* strings as they are */
