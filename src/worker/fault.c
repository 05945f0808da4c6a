/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - see fault.h. */
#include "worker/fault.h"

#include <string.h>

#include "proc/last_words.h"

#define STATUS_NOT_EXECUTABLE 126 /* what shells and env end with */
#define STATUS_NOT_FOUND 127

static const char *const names[] = {
	[WORKER_FAULT_NONE] = "none",
	[WORKER_FAULT_NOT_FOUND] = "program not found",
	[WORKER_FAULT_PACKAGE] = "package missing",
	[WORKER_FAULT_FLAG] = "bad flag",
	[WORKER_FAULT_MODEL] = "model not found",
	[WORKER_FAULT_MEMORY] = "out of memory",
	[WORKER_FAULT_UNSUPPORTED] = "unsupported",
	[WORKER_FAULT_DISK] = "out of disk",
	[WORKER_FAULT_KILLED] = "killed",
	[WORKER_FAULT_CRASHED] = "crash",
	[WORKER_FAULT_HUNG] = "no sign of life",
	[WORKER_FAULT_PROTOCOL] = "protocol",
	[WORKER_FAULT_CANCELLED] = "cancelled",
	[WORKER_FAULT_OTHER] = "error",
};

const char *worker_fault_name(enum worker_fault fault)
{
	return names[fault];
}

enum worker_fault fault_of_category(struct str category)
{
	static const struct { const char *word; enum worker_fault fault; } words[] = {
		{ "missing", WORKER_FAULT_PACKAGE }, { "flag", WORKER_FAULT_FLAG },
		{ "model", WORKER_FAULT_MODEL }, { "memory", WORKER_FAULT_MEMORY },
		{ "unsupported", WORKER_FAULT_UNSUPPORTED },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (str_is(category, words[i].word))
			return words[i].fault;
	return WORKER_FAULT_OTHER;
}

static bool has(struct str s, const char *text)
{
	return s.n && memmem(s.p, s.n, text, strlen(text)) != NULL;
}

/* Engines complain about optional packages while all is well: only the last line counts. */
static bool is_package(struct str line)
{
	return has(line, "No module named") || str_starts(line, STR("ImportError")) ||
	       has(line, "error while loading shared libraries");
}

/* Of a shell, or of an interpreter that does not find its script. */
static bool is_program(struct str line, bool has_code, int code)
{
	return (has_code && (code == STATUS_NOT_FOUND || code == STATUS_NOT_EXECUTABLE)) ||
	       has(line, "can't open") || has(line, "Can't open") || has(line, "cannot open");
}

enum worker_fault fault_of_end(struct str log, bool is_start, bool has_code, int code,
			       const struct oom_counter *oom, struct str *reason)
{
	static const enum worker_fault faults[] = {
		[LAST_SIGN_NONE] = WORKER_FAULT_CRASHED,
		[LAST_SIGN_DISK] = WORKER_FAULT_DISK,
		[LAST_SIGN_PORT] = WORKER_FAULT_CRASHED,
		[LAST_SIGN_MEMORY] = WORKER_FAULT_MEMORY,
		[LAST_SIGN_FLAG] = WORKER_FAULT_FLAG,
		[LAST_SIGN_MODEL] = WORKER_FAULT_MODEL,
		[LAST_SIGN_KILLED] = WORKER_FAULT_KILLED,
	};
	struct str line = last_words_line(log);
	enum last_sign sign;

	*reason = line;
	if (is_package(line))
		return WORKER_FAULT_PACKAGE;
	if (is_start && is_program(line, has_code, code))
		return WORKER_FAULT_NOT_FOUND;
	sign = last_words_sign(log, has_code, code, oom, reason);
	return faults[sign];
}

enum err_code fault_code(enum worker_fault fault)
{
	switch (fault) {
	case WORKER_FAULT_NOT_FOUND:
	case WORKER_FAULT_FLAG:
		return ERR_USAGE;
	case WORKER_FAULT_CANCELLED:
		return ERR_CANCELLED;
	case WORKER_FAULT_DISK:
		return ERR_IO;
	default:
		return ERR_RUN;
	}
}
