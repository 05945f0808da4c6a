/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_text.h - finds the new part of answers whose every event has the whole text so far. Texts
 * are JSON-escaped, as received; nothing is copied.
 */
#pragma once
#include <stdbool.h>

#include "core/base/str.h"

/*
 * The part of text after *seen bytes; moves *seen. A replacement character (U+FFFD) at the end is
 * the beginning of an incomplete character: it is left for the next event unless this is_last. A
 * text that has shrunk has nothing new.
 */
struct str whole_text_new(struct str text, size_t *seen, bool is_last);

/*
 * The bytes of text that spell prompt's characters (UTF-8), which some servers put in front of the
 * answer. Counts characters, since both may escape them differently.
 */
size_t whole_text_prompt(struct str text, struct str prompt);
