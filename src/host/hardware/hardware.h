/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware.h - the machine an experiment ran on, as the document's hardware_info.
 *
 * GPUs (gpu/gpu.h), CPU, memory, NUMA, kernel, distribution, network cards, container and
 * virtualisation, from the files of /proc, /sys and /etc. Nothing is started and nothing blocks;
 * unknown values are null. Nothing personal: no host name, no addresses, no serial numbers but the
 * GPUs' UUIDs.
 */
#pragma once
#include <stdbool.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"

/* Appends one JSON object. root is put in front of every path ("" the machine itself; tests). */
void hardware_json(const char *root, struct buf *out);

/* "docker", "kubernetes", ...; NULL: none that is known. */
const char *hardware_container(const char *root);
/* Vendor and product of this virtual machine, into out; "": not a virtual one. Returns out. */
#define HARDWARE_NAME_BYTES 514
const char *hardware_hypervisor(const char *root, char out[static HARDWARE_NAME_BYTES]);

/*
 * Versions of all software involved, and where the measured engine came from.
 *
 * The document's `environment`: ProfLLM and its build, the libraries it runs with, kernel and
 * drivers, the server's version, and, if its Python interpreter is found, the versions of the
 * packages that affect speed. That interpreter is run outside the load and with a deadline; it
 * imports nothing. Environment variables that change what a server does (VLLM_*, CUDA_*, NCCL_*,
 * ...) are kept, secrets redacted. The host's name is not.
 */
struct environment_opts {
	char *const *command;        /* of the server, to find its interpreter; NULL: none */
	char *const *env;            /* "NAME=VALUE" lines it got in addition to ours; NULL: none */
	const char *server_kind;     /* "vllm", "sim", ...; NULL: not known */
	const char *server_version;  /* as reported by the server; NULL: it was not */
	double deadline_s;           /* for the interpreter; 0: it is not run */
};

/* Appends one JSON object. */
void environment_json(const struct environment_opts *o, struct buf *out);

/*
 * Where the engine came from, as the document's `provenance`. Each value is the first one known of:
 * the configuration's `provenance` section (given, or NULL), PROFLLM_ENGINE_COMMIT and similar
 * variables, the variables of GitHub, GitLab and Buildkite, the server's version text
 * ("0.11.1.dev12+gabcdef0": commit abcdef0). get: getenv, or a test's.
 */
void provenance_json(const struct json_value *given, const char *server_version,
		     const char *(*get)(const char *name), struct buf *out);

/*
 * The Python that a server's command runs in, and its packages.
 *
 * It is found in the command's words, as the kernel would find it: the first word after `env`,
 * NAME=VALUE, `numactl` and the like that is a Python, or a script whose first line names one. It
 * reports the versions of a fixed list of packages from their metadata; none of them is imported.
 */
struct interpreter {
	bool is_known;                     /* it has answered */
	const char *version;               /* "3.12.4" */
	const struct json_value *packages; /* an object: name -> version */
	struct arena arena;
};

/* The interpreter of a command, in the arena; NULL: none is found. */
const char *interpreter_find(char *const *command, struct arena *a);

/* is_known stays false if there is none or it does not answer in time. */
void interpreter_ask(char *const *command, double deadline_s, struct interpreter *out);
void interpreter_release(struct interpreter *p);
