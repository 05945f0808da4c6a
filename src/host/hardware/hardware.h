/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware.h - the machine an experiment ran on, as the document's hardware_info.
 *
 * GPUs (gpu/gpu.h), CPU, memory, NUMA, kernel, distribution, network cards, container and
 * virtualisation, as the files of /proc, /sys and /etc say. Nothing is started and nothing waits;
 * what is not said is null. Nothing personal: no host name, no addresses, no serial numbers but
 * the GPUs' UUIDs.
 */
#pragma once
#include <stdbool.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"

/* Appends one JSON object. root is put in front of every path ("" the machine itself; tests). */
void hardware_json(const char *root, struct buf *out);

/* "docker", "kubernetes", ...; NULL: in none that is known. */
const char *hardware_container(const char *root);
/* Vendor and product of the virtual machine that this is, into out; "": it is none. Returns out. */
#define HARDWARE_NAME_BYTES 514
const char *hardware_hypervisor(const char *root, char out[static HARDWARE_NAME_BYTES]);

/*
 * Versions of everything, and where the measured engine came from.
 *
 * The document's `environment`: ProfLLM and its build, the libraries it runs with, kernel and
 * drivers, the server's version, and, where its Python interpreter is found, the versions of the
 * packages that matter to speed. That interpreter is asked outside of the load and with
 * a deadline; it imports nothing. Variables of the environment that change what a server does
 * (VLLM_*, CUDA_*, NCCL_*, ...) are kept, secrets redacted. The host's name is not.
 */
struct environment_opts {
	char *const *command;        /* of the server, to find its interpreter; NULL: none */
	char *const *env;            /* "NAME=VALUE" lines it got beside ours; NULL: none */
	const char *server_kind;     /* "vllm", "sim", ...; NULL: not known */
	const char *server_version;  /* as the server told it; NULL: it did not */
	double deadline_s;           /* for asking the interpreter; 0: it is not asked */
};

/* Appends one JSON object. */
void environment_json(const struct environment_opts *o, struct buf *out);

/*
 * Where the engine came from, as the document's `provenance`: of each value the first that is
 * known of the configuration's `provenance` section (given, or NULL), PROFLLM_ENGINE_COMMIT and
 * its like, the variables of GitHub, GitLab and Buildkite, and the server's version text
 * ("0.11.1.dev12+gabcdef0": commit abcdef0). get: getenv, or a test's.
 */
void provenance_json(const struct json_value *given, const char *server_version,
		     const char *(*get)(const char *name), struct buf *out);

/*
 * The Python that a server's command runs in, and its packages.
 *
 * Found by words, as the kernel would find it: the first word behind `env`, NAME=VALUE, `numactl`
 * and their like that is a Python itself, or a script whose first line names one. It is asked
 * for versions of a fixed list of packages by its own metadata; none of them is imported.
 */
struct interpreter {
	bool is_known;                     /* it has answered */
	const char *version;               /* "3.12.4" */
	const struct json_value *packages; /* an object: name -> version */
	struct arena arena;
};

/* The interpreter of a command, in the arena; NULL: none is found. */
const char *interpreter_find(char *const *command, struct arena *a);

/* is_known stays false when there is none or it says nothing in time. */
void interpreter_ask(char *const *command, double deadline_s, struct interpreter *out);
void interpreter_release(struct interpreter *p);
