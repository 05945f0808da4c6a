/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.h - a YAML document as the tree JSON has, so that code for one reads the other.
 *
 * One document; anchors and aliases are resolved; words without quotes become null, booleans and
 * numbers as in PyYAML's safe loader (YAML 1.1: yes, off, 0x1f, 1_000; 1e5 is a text), except that
 * dates and 1:2.5 stay texts. Merge keys (<<) are merged: the object's own keys take precedence,
 * then the first merged one. Tags other than the plain ones are refused. Keys are texts; a number
 * or boolean as a key keeps its spelling.
 */
#pragma once
#include "core/json/read.h"

/*
 * ERR_PARSE with line and column. ERR_LIMIT: deeper than JSON_DEPTH_MAX, more values than
 * YAML_VALUES_MAX (aliases counted each time), or more anchors or directives than YAML_ANCHORS_MAX
 * and YAML_DIRECTIVES_MAX. Depth, anchors and directives are limited while the text is read, so
 * that the time depends on its length alone. An empty text is null. Values live in the arena.
 */
int yaml_parse(struct arena *a, struct str text, struct json_value **out, struct err *e);
