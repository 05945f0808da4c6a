/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/config_sets.h - what the rows of a configuration's own sections fill. */
#pragma once
#include "opt/opt.h"

struct config_resources {
	struct opt_list gpus;
	double wait_s;
	bool shared;
	double memory_free;
	const char *ports;
};

struct config_profiling {
	bool enabled;
	const char *tool, *dir;
	double delay_s, duration_s, stop_timeout_s;
};

struct config_telemetry {
	bool enabled;
	double interval_s;
	bool gpu, host, process, server;
};

struct config_output {
	const char *path, *folder;
	bool record, detailed;
	struct opt_json upload;
};

/* Keys of a server that are no arguments of its own. Lists and objects are read from the tree. */
struct config_server {
	struct opt_list command, after, extra_args;
	const char *url, *name, *role, *host;
	struct opt_json container, ready, env;
	double ready_timeout_s, grace_s;
	int64_t port;
	struct opt_int gpus;
};

extern const struct opt_set config_resources_set, config_profiling_set, config_telemetry_set,
	config_output_set, config_server_set;
