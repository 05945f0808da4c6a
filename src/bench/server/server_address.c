/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_address.c - which kind of server a command starts and where it will listen.
 *
 * Upstream looks at the end of the first word and at the first --host and --port written as
 * separate words (sweep spec 7.3); what it recognizes is recognized here in the same way.
 */
#include "bench/server/server.h"

#include <stdio.h>

#include "core/base/mem.h"
#include "core/base/str.h"

struct server_program {
	const char *name;        /* the program's, or the Python module's up to a dot */
	enum server_kind kind;
	unsigned port;           /* its default port */
};

static const struct server_program kinds[] = {
	{ "vllm", SERVER_VLLM, 8000 },
	{ "vllm-openai", SERVER_VLLM, 8000 },     /* the image */
	{ "sglang", SERVER_SGLANG, 30000 },
	{ "infinity_emb", SERVER_INFINITY, 7997 },
	{ "infinity", SERVER_INFINITY, 7997 },    /* the image */
	{ "llama-server", SERVER_LLAMACPP, 8080 },
	{ "llama.cpp", SERVER_LLAMACPP, 8080 },
};
static const struct server_program sim_kind = { "profllm", SERVER_SIM, 8000 };
static const struct server_program other_kind = { "", SERVER_OTHER, 8000 };

/* Programs whose arguments hold the real command. */
static const char *const wrappers[] = {
	"env", "python", "python3", "uv", "uvx", "nohup", "nice", "ionice", "numactl", "taskset",
	"stdbuf", "time", "timeout", "setsid", "exec", "sudo", "sh", "bash", "nsys", "ncu", "conda",
	"pixi", "poetry", "torchrun", "mpirun", "srun", "docker", "podman", "nerdctl", "apptainer",
	"singularity", "chrt", "strace", "perf", "valgrind", "xvfb-run", "proxychains",
};
static const char *const shells[] = { "sh", "bash", "dash", "zsh" };
/* Programs that run the server where its sockets are not this machine's. */
static const char *const elsewhere[] = { "docker", "podman", "nerdctl", "kubectl", "ssh", "srun" };

static struct str last_part(struct str word)
{
	const char *slash = word.n ? memrchr(word.p, '/', word.n) : NULL;

	return slash ? (struct str){ slash + 1, word.n - (size_t)(slash + 1 - word.p) } : word;
}

static bool is_one_of(struct str name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(name, list[i]))
			return true;
	return false;
}
#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof(*(list)))

/* vllm, /opt/bin/vllm, vllm.entrypoints.openai.api_server, vllm/vllm-openai:v0.11 */
static const struct server_program *kind_of_word(struct str word)
{
	struct str name = last_part(word), module = name, image = name;

	module = str_cut(&module, '.');
	image = str_cut(&image, ':');
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (str_is(name, kinds[i].name) || str_is(image, kinds[i].name) ||
		    (str_is(module, kinds[i].name) && !memchr(word.p, '/', word.n)))
			return &kinds[i];
	return NULL;
}

/* A script given as one word: sh -c 'vllm serve ...'. */
static const struct server_program *kind_of_text(struct str text)
{
	while (text.n) {
		struct str word = str_cut(&text, ' ');
		const struct server_program *k = word.n ? kind_of_word(word) : NULL;

		if (k)
			return k;
	}
	return NULL;
}

static const struct server_program *kind_of(char *const *argv)
{
	struct str first = str_of(argv[0]), name = last_part(first);
	const struct server_program *k;

	if (str_is(name, "profllm") && argv[1] && strcmp(argv[1], "sim") == 0)
		return &sim_kind;
	if (str_ends(first, STR("vllm")))
		return &kinds[0];
	if (str_ends(first, STR("infinity_emb")))
		return &kinds[3];
	k = kind_of_word(first);
	if (k || (!IS_ONE_OF(name, wrappers) && !str_starts(name, STR("python3."))))
		return k ? k : &other_kind;
	for (size_t i = 1; argv[i]; i++) {
		struct str word = str_of(argv[i]);

		if (str_is(last_part(word), "profllm") && argv[i + 1] &&
		    strcmp(argv[i + 1], "sim") == 0)
			return &sim_kind;
		k = kind_of_text(word);
		if (k)
			return k;
	}
	return &other_kind;
}

/*
 * The value of the last --NAME=value or --NAME value; NULL: not given. at, if not NULL, receives
 * its index among the words.
 */
static const char *value_of(char *const *argv, const char *name, size_t *at)
{
	const char *value = NULL;
	size_t n = strlen(name);

	for (size_t i = 1; argv[i]; i++) {
		bool is_joined = strncmp(argv[i], name, n) == 0 && argv[i][n] == '=';

		if (!is_joined && (strcmp(argv[i], name) != 0 || !argv[i + 1]))
			continue;
		value = is_joined ? argv[i] + n + 1 : argv[i + 1];
		if (at)
			*at = i;
	}
	return value;
}

static bool has_word(char *const *argv, const char *name)
{
	for (size_t i = 1; argv[i]; i++)
		if (strncmp(argv[i], name, strlen(name)) == 0)
			return true;
	return false;
}

/* --port 8001 or -p 8001; of a container: -p [ADDRESS:]HOST:CONTAINER. */
static struct str port_text(char *const *argv, bool is_elsewhere)
{
	size_t short_at = 0, long_at = 0;
	struct str brief = str_of(value_of(argv, "-p", &short_at)), part = { 0 };
	struct str whole = str_of(value_of(argv, "--port", &long_at));
	const char *colon = brief.n ? memrchr(brief.p, ':', brief.n) : NULL;

	if (!is_elsewhere || !colon)
		return short_at > long_at ? brief : whole;
	brief.n = (size_t)(colon - brief.p);
	while (brief.n)
		part = str_cut(&brief, ':');
	return part;
}

/* The address to connect to: loopback for a server that listens on all addresses. */
static const char *host_to_ask(const char *host)
{
	if (strcmp(host, "0.0.0.0") == 0 || !host[0])
		return "127.0.0.1";
	if (strcmp(host, "::") == 0 || strcmp(host, "[::]") == 0)
		return "::1";
	return host;
}

/* The words of a script: sh -c 'vllm serve MODEL --port 8001 &'. False: none, or not plain. */
static bool split_script(char *const *argv, size_t at, struct arena *arena, char ***words,
			 size_t *n)
{
	struct err ignored = { 0 };
	struct str flag = str_of(at > 1 ? argv[at - 1] : NULL);

	if (!str_starts(flag, STR("-")) || str_starts(flag, STR("--")) ||
	    !str_ends(flag, STR("c")) ||
	    !IS_ONE_OF(last_part(str_of(argv[at - 2])), shells) ||
	    words_split(str_of(argv[at]), arena, words, n, &ignored) < 0)
		return false;
	for (size_t i = 0; i < *n; i++)
		(*words)[i][strcspn((*words)[i], ";&|")] = 0;
	return true;
}

/* The command with a shell script split into words. */
static char **spread(char *const *argv, struct arena *arena)
{
	size_t n = 0, more = 0;
	char **words = NULL, **out;

	while (argv[n] && !split_script(argv, n, arena, &words, &more))
		n++;
	if (!argv[n])
		return (char **)(uintptr_t)argv;
	out = arena_alloc(arena, (n + more + 1) * sizeof(*out));
	memcpy(out, argv, n * sizeof(*out));
	memcpy(out + n, words, more * sizeof(*out));
	return out;
}

static int set_host(struct server_address *a, const char *scheme, const char *host, struct err *e)
{
	const char *ask;
	bool is_bare;

	if (strlen(host) >= sizeof(a->host))
		return err_set(e, ERR_USAGE, "--host: a name has at most %zu bytes", sizeof(a->host) - 1);
	snprintf(a->host, sizeof(a->host), "%s", host);
	ask = host_to_ask(a->host);
	is_bare = strchr(ask, ':') && ask[0] != '[';
	snprintf(a->url, sizeof(a->url), "%s://%s%s%s:%u", scheme, is_bare ? "[" : "", ask,
		 is_bare ? "]" : "", a->port);
	return 0;
}

static int address_of(char *const *argv, const struct server_program *kind,
		      struct server_address *a, struct err *e)
{
	const char *host = value_of(argv, "--host", NULL), *uds = value_of(argv, "--uds", NULL);
	bool is_tls = has_word(argv, "--ssl-certfile") || has_word(argv, "--ssl-keyfile");
	const char *scheme = is_tls ? "https" : "http";
	struct str port;
	int64_t number;

	*a = (struct server_address){ .kind = kind->kind, .port = kind->port };
	a->is_elsewhere = IS_ONE_OF(last_part(str_of(argv[0])), elsewhere);
	if (uds) {
		a->port = 0;
		if (strlen(uds) >= sizeof(a->uds))
			return err_set(e, ERR_USAGE, "--uds %s: a socket's path has at most %zu bytes",
				       uds, sizeof(a->uds) - 1);
		snprintf(a->uds, sizeof(a->uds), "%s", uds);
		snprintf(a->host, sizeof(a->host), "localhost");
		snprintf(a->url, sizeof(a->url), "%s://localhost", scheme);
		return 0;
	}
	port = port_text(argv, a->is_elsewhere);
	if (port.p) {
		if (!str_to_i64(port, &number) || number < 1 || number > 65535)
			return err_set(e, ERR_USAGE, "--port %.*s: the server's port must be a number from "
				       "1 to 65535, so that it is known where to ask", (int)port.n, port.p);
		a->port = (unsigned)number;
	}
	return set_host(a, scheme, host ? host : "localhost", e);
}

int server_at(struct server_address *a, const char *host, unsigned port, struct err *e)
{
	const char *scheme = strncmp(a->url, "https:", 6) == 0 ? "https" : "http";

	a->port = port ? port : a->port;
	a->uds[0] = 0;
	return set_host(a, scheme, host, e);
}

int server_address(char *const *argv, struct server_address *a, struct err *e)
{
	struct arena arena = { 0 };
	int rc = address_of(spread(argv, &arena), kind_of(argv), a, e);

	arena_release(&arena);
	return rc;
}

int server_refuse_shell(char *const *argv, struct err *e)
{
	static const char *const operators[] = { "|", "||", "&", "&&", ";", "<", ">", ">>", "2>&1" };
	struct str rest = str_of(argv[0]), name = str_cut(&rest, '=');

	if (name.n && name.n < strlen(argv[0]) && !memchr(name.p, '/', name.n))
		return err_set(e, ERR_USAGE, "%.*s=... before the command needs a shell, and there is none; "
			       "set the variable beforehand (export; env in a file of experiments), or "
			       "begin the command with env", (int)name.n, name.p);
	for (; *argv; argv++)
		for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
			if (strcmp(*argv, operators[i]) == 0)
				return err_set(e, ERR_USAGE, "'%s' needs a shell, and there is none; leave it "
					       "out, or put the command into a script", *argv);
	return 0;
}
