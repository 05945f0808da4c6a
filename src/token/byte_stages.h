/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/byte_stages.h - the stages of a byte-level model whose files do not hold them.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "token/model.h"

struct byte_stages {
	struct str pattern;  /* cuts words, as a regular expression; empty: ByteLevel's own */
	bool is_nfc;
	bool has_prefix_space; /* ByteLevel's add_prefix_space */
	struct str bos, eos; /* stand around a sequence; empty: nothing does */
	uint32_t bos_id, eos_id;
};

/* Writes them as a tokenizer.json has them and loads them. */
int byte_stages_load(struct model *m, const struct byte_stages *s, struct err *e);
