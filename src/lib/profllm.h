/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profllm.h - libprofllm: `profllm run` as a function.
 *
 * One call runs what one configuration describes, an experiment or a suite: GPUs and ports are
 * found and locked, servers started, load sent, the system watched, everything stopped, and the
 * document written. It returns when nothing of it is left running.
 *
 * The library never prints, never exits and takes no signals. Messages go to the hooks, on the
 * calling thread. That thread has the C locale until the call returns, so that numbers have a
 * decimal point whatever the program has set. Several threads may make calls at once; they find
 * each other's GPUs and ports taken, as separate programs would.
 *
 * Servers live below a small process of the program profllm, which must be installed: it is looked
 * for as $PROFLLM_PROGRAM, then next to the library, in ../bin and ../../bin from there, then in
 * PATH.
 *
 * All texts are UTF-8 and end with NUL. Structs begin with their size, so that later versions can
 * add fields at their ends: set it with the initialisers below. PROFLLM_API counts changes that
 * break programs that were built before; the library's soname has the same number.
 *
 *   cc run.c $(pkg-config --cflags --libs profllm)
 */
#ifndef PROFLLM_H
#define PROFLLM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROFLLM_API 1

#if defined(__GNUC__)
#define PROFLLM_EXPORT __attribute__((visibility("default")))
#else
#define PROFLLM_EXPORT
#endif

/* All may be NULL. text is valid until the hook returns and has no newline at its end. */
struct profllm_hooks {
	void *self;                                    /* given to each hook */
	void (*line)(void *self, const char *text);    /* messages */
	void (*report)(void *self, const char *text);  /* the table of a benchmark, several lines */
	void (*warn)(void *self, const char *text);
	/* what: "Benchmark", "Loading tokenizer", ...; total 0: not known. */
	void (*progress)(void *self, const char *what, uint64_t done, uint64_t total);
};

struct profllm_request {
	size_t size;               /* sizeof(struct profllm_request) */
	const char *config_path;   /* a file, YAML or JSON; or NULL and */
	const char *config_text;   /* the configuration itself */
	const char *const *set;    /* "dotted.key=VALUE", the last one counts; ends with NULL; or
				    * NULL */
	const char *output_path;   /* of the document; NULL: the configuration's, else none */
	struct profllm_hooks hooks;
	/*
	 * Set to 1 from any thread (or a signal handler) it ends the run soon; what was measured
	 * until then is in the document. NULL: never.
	 */
	const unsigned char *cancel;
};
#define PROFLLM_REQUEST_INIT { sizeof(struct profllm_request), 0, 0, 0, 0, { 0, 0, 0, 0, 0 }, 0 }

enum profllm_status {
	PROFLLM_COMPLETED = 0,     /* of a suite: every member */
	PROFLLM_PARTIAL = 1,       /* some requests failed; of a suite: some members */
	PROFLLM_FAILED = 2,        /* the document says at which stage and why */
	PROFLLM_INTERRUPTED = 3,   /* by cancel */
	PROFLLM_REFUSED = 4        /* nothing was begun: error says why, a line for each mistake */
};

struct profllm_outcome {
	size_t size;               /* sizeof(struct profllm_outcome) */
	int status;                /* enum profllm_status */
	const char *document;      /* JSON, as `profllm run --output` writes it; or NULL */
	const char *error;         /* NULL unless REFUSED, FAILED or the document was not written */
	void *own;                 /* the library's */
};
#define PROFLLM_OUTCOME_INIT { sizeof(struct profllm_outcome), 0, 0, 0, 0 }

/* "1.2.3"; of the library that runs, which may be newer than this header. */
PROFLLM_EXPORT const char *profllm_version(void);
/* PROFLLM_API of the library that runs. */
PROFLLM_EXPORT unsigned profllm_api(void);

/*
 * Fills outcome and returns its status. Release outcome afterwards, whatever the status. An outcome
 * without a size is not filled: REFUSED.
 */
PROFLLM_EXPORT int profllm_run(const struct profllm_request *request,
			       struct profllm_outcome *outcome);
/* Once or several times; outcome's texts are gone then. */
PROFLLM_EXPORT void profllm_release(struct profllm_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
