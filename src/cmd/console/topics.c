/* SPDX-License-Identifier: Apache-2.0 */
/* topics.c - see topics.h. */
#include "cmd/console/topics.h"

#include <string.h>

#include "core/opt/opt.h"

enum group { ERRORS, CATEGORIES, REASONS, GROUPS };

static const struct {
	const char *title, *intro;
} groups[GROUPS] = {
	[ERRORS] = { "Errors", "A message on stderr that ends with `(profllm help NAME)` has its "
		     "explanation here. The others say what to do themselves; the most frequent ones "
		     "are listed as well." },
	[CATEGORIES] = { "Categories of failed experiments", "`error.category` in the document of an "
			 "experiment that failed. `error.reason` gives the case, `error.log_tail` the "
			 "end of the server's log." },
	[REASONS] = { "Reasons of a verdict", "`verdict.reasons[].code` and `verdict.notes[].code` of a "
		      "result. [metrics.md](metrics.md#the-verdict) has each limit and why it is what "
		      "it is." },
};

/* Texts are plain Markdown: backquotes around code only. */
static const struct topic {
	enum group group;
	const char *name;    /* words are joined by '_' */
	const char *means;   /* whole sentences; the first one is the summary */
	const char *remedy;
	const char *example; /* a message that ends with the name, or a command that helps */
} topics[] = {
	/* ---- errors: the server ---- */
	{ ERRORS, "server_unreachable",
	  "No program accepts connections at the server's address. Either the server is not running "
	  "or has not finished loading its model, or host or port is wrong, or a firewall is between.",
	  "Open the address with `curl URL/health`. For a server that is still starting, add "
	  "`--ready-check-timeout-sec 600`: the measurement then begins when it answers.",
	  "cannot connect to http://127.0.0.1:8000: Connection refused. Is the server running?" },
	{ ERRORS, "host_unknown",
	  "The host's name has no address. It is misspelled, or this machine's DNS does not know it.",
	  "Check the name with `getent hosts NAME`, or write the address instead of the name.",
	  "cannot connect to http://gpu-7:8000: its name cannot be resolved. Is the URL right?" },
	{ ERRORS, "proxy_refused",
	  "The proxy between this machine and the server refuses the connection. A proxy is used when "
	  "`--proxy`, `http_proxy` or `https_proxy` names one.",
	  "Correct the user name and password in `--proxy`, or exempt the server: "
	  "`no_proxy=HOST profllm ...`. A proxy also delays every token; measure without one.",
	  "the proxy proxy.example:3128 refuses the user name or password (407): check --proxy" },
	{ ERRORS, "tls_scheme",
	  "One side uses TLS and the other one does not: the scheme of the URL does not fit the port.",
	  "Change `http://` to `https://` or the other way round, as the message says.",
	  "the server at https://localhost:8000 does not speak TLS on this port; use "
	  "http://localhost:8000" },
	{ ERRORS, "tls_certificate",
	  "The server's certificate is not trusted: its authority is unknown here, it has expired, or "
	  "it was issued for another name.",
	  "Name the authority's certificate with `--cacert FILE`, or use the name that the certificate "
	  "has. `--insecure` skips the check; use it in a network that you trust only.",
	  "TLS: certificate of localhost is not trusted: self-signed certificate; use --cacert FILE or "
	  "--insecure" },
	{ ERRORS, "key_refused",
	  "The server requires an API key, and got none or a wrong one (status 401 or 403).",
	  "Set `OPENAI_API_KEY`, or pass `--header 'Authorization=Bearer KEY'`. The key is never "
	  "written into a result.",
	  "the server at https://api.example requires a key (401): set OPENAI_API_KEY or pass --header "
	  "'Authorization=Bearer ...'" },
	{ ERRORS, "model_unknown",
	  "The server does not serve a model of this name. Names are compared letter by letter; a "
	  "server started with `--served-model-name` knows only that name.",
	  "Use one of the names in the message for `--model`, or for `--served-model-name` when the "
	  "tokenizer is that of `--model`. Without `--model` the server's first model is used.",
	  "the server at http://localhost:8000 has no model \"Qwen/Qwen3-8b\"; it serves: "
	  "Qwen/Qwen3-8B" },
	{ ERRORS, "path_unknown",
	  "The server answers, but has nothing at this path (404). The path of a request is "
	  "`--base-url` followed by `--endpoint`.",
	  "Leave `/v1` out of `--base-url`, because `--endpoint` already begins with it.",
	  "POST http://localhost:8000/v1/v1/completions: 404; did you mean --base-url "
	  "http://localhost:8000 (the endpoint /v1/completions is added)?" },
	{ ERRORS, "no_success",
	  "No request of the run succeeded, so there is nothing to measure. The message quotes the "
	  "first answer of the server; all errors are listed below the report.",
	  "Correct what the server names. Send one request and see what is exchanged: "
	  "`--num-prompts 1 --trace net,load`.",
	  "400 Bad Request: this model's maximum context length is 4096 tokens (the run was stopped, "
	  "no request succeeded; 10 failed)" },
	{ ERRORS, "request_timeout",
	  "A request had no complete answer within `--request-timeout` seconds and was given up.",
	  "Raise `--request-timeout`, or find out why the server is that slow: a queue that grows "
	  "(lower `--request-rate`), or a stream that stops.",
	  "no complete answer within 600 s" },
	{ ERRORS, "answer_cut",
	  "The connection was closed before the answer was complete.",
	  "See the server's log first: a worker may have died. A gateway with a time limit has the "
	  "same effect. For a server that never marks the end of an answer: `--compat stream-error`.",
	  "the server closed the connection before the answer was complete" },
	{ ERRORS, "not_a_stream",
	  "The server did not answer with a stream of events, so the time to the first token cannot "
	  "be measured.",
	  "Check that `--base-url` and `--endpoint` name an inference API; a proxy's login page has "
	  "the same effect. For another kind of API choose another `--backend`.",
	  "Never received a valid chunk: the answer's Content-Type is not text/event-stream" },
	/* ---- errors: the command line ---- */
	{ ERRORS, "unknown_option",
	  "The command has no option of this name.",
	  "Use the name that the message proposes, or search: `profllm bench serve --help=WORD` lists "
	  "the options about WORD.",
	  "unknown option --num-promts; did you mean --num-prompts?" },
	{ ERRORS, "bad_value",
	  "The option exists, but not with this value. The message says what it expects.",
	  "Correct the value. `--show-config` prints every option with its value and its source.",
	  "--request-rate: expected a number above 0 or inf, got '0'" },
	{ ERRORS, "url_form",
	  "A URL needs a scheme and a host; only `http://`, `https://` and `unix:` are supported.",
	  "Write the URL in full, for example `--base-url http://localhost:8000`.",
	  "--base-url: 'localhost:8000' has no scheme; expected http://HOST:PORT" },
	/* ---- errors: files ---- */
	{ ERRORS, "file_not_found",
	  "The path does not exist.",
	  "Check the spelling. A relative path begins in the folder where the command was started; in "
	  "a configuration it begins in the folder of that file.",
	  "cannot open prompts.jsonl: No such file or directory" },
	{ ERRORS, "permission_denied",
	  "This user may not read or write the file or folder.",
	  "`ls -ld PATH` shows its owner. Choose another place for results with `--result-dir` or "
	  "`--output`, or have the owner give access.",
	  "cannot write /srv/runs/a.json: Permission denied" },
	{ ERRORS, "disk_full",
	  "The file system has no room left, or the user's quota is used up. What was measured is in "
	  "the report on the terminal.",
	  "Make room (`df -h PATH`), or write elsewhere. If `--record` was written to another place, "
	  "`profllm bench score RECORD` makes the result again.",
	  "cannot write runs/a.json: No space left on device" },
	{ ERRORS, "syntax",
	  "A file does not follow its format at this line and column.",
	  "Correct the place that the message names. When \"the text ends in the middle of a value\", "
	  "the file was cut off: copy or download it again.",
	  "config.yaml:3:1: expected a value, found '}'" },
	{ ERRORS, "limit",
	  "Something is larger than this program accepts. Each limit protects memory or time; the "
	  "message names it and its value.",
	  "Make the input smaller or split it. For answers of a server see "
	  "[the limits](guide/troubleshooting.md#servers-that-never-stop).",
	  "big.json has more than 1073741824 bytes, the limit" },
	{ ERRORS, "record_foreign",
	  "The file is not a record, the file of raw events that `--record` writes.",
	  "`bench score` reads records only. Read a result (JSON) with `profllm bench compare`, "
	  "`profllm bench plot` or `profllm ingest`.",
	  "profllm bench score result.json" },
	{ ERRORS, "no_results",
	  "The folder holds no result of a benchmark.",
	  "Write results with `bench serve --save-result --result-dir FOLDER`, with a sweep, or with "
	  "`profllm run --output FILE`, and name that folder or file.",
	  "profllm bench compare FOLDER1 FOLDER2" },
	/* ---- errors: tokenizers, datasets, the hub ---- */
	{ ERRORS, "tokenizer_missing",
	  "The tokenizer was not found. A name is first looked for as a file or folder, then in the "
	  "hub's cache, then on the hub.",
	  "Give `--tokenizer` a folder with `tokenizer.json`, or the model's name on the hub "
	  "(`org/name`). Without any tokenizer: `--skip-tokenizer-init`, with a dataset that "
	  "brings its own lengths.",
	  "no tokenizer \"llama\": there is no such file or directory, and it is not a model name "
	  "(org/name)" },
	{ ERRORS, "tokenizer_unread",
	  "The tokenizer file uses a feature that this version does not read. Counting tokens in a "
	  "slightly different way would give wrong numbers, so nothing is guessed.",
	  "Name another tokenizer of the same model ([which are read](guide/tokenizer.md)), or use "
	  "`--skip-tokenizer-init`.",
	  "profllm tokenizer show FILE" },
	{ ERRORS, "hub_gated",
	  "The model's owner gives access only to accounts that accepted its terms.",
	  "Open the address in the message in a browser, accept the terms, make a token in the "
	  "account's settings and set `HF_TOKEN`.",
	  "HF_TOKEN=hf_... profllm tokenizer show meta-llama/Llama-3.1-8B" },
	{ ERRORS, "hub_missing",
	  "The hub has no model or dataset of this name, or it is private and the token has no access. "
	  "The hub gives both cases the same answer.",
	  "Check the name first, then set `HF_TOKEN`.",
	  "profllm tokenizer show org/name" },
	{ ERRORS, "hub_token",
	  "The hub does not accept the token: it was revoked, or is misspelled.",
	  "Set `HF_TOKEN` to a valid token, or unset it for public models. A token in "
	  "`~/.cache/huggingface/token` is used, too.",
	  "env -u HF_TOKEN profllm tokenizer show Qwen/Qwen3-8B" },
	{ ERRORS, "hub_offline",
	  "The file is not in the cache, and the hub is not asked because `HF_HUB_OFFLINE`, "
	  "`TRANSFORMERS_OFFLINE` or an option says so.",
	  "[Fill the cache](guide/models.md#a-machine-without-a-network) on a machine with a network "
	  "and copy it, or unset the variable.",
	  "env -u HF_HUB_OFFLINE profllm tokenizer show Qwen/Qwen3-8B" },
	{ ERRORS, "hub_foreign",
	  "What answered is not a model hub: a proxy's login page, or `HF_ENDPOINT` names another "
	  "service.",
	  "Correct or unset `HF_ENDPOINT`; open the address in a browser to see what answers.",
	  "env -u HF_ENDPOINT profllm tokenizer show Qwen/Qwen3-8B" },
	{ ERRORS, "dataset_empty",
	  "All requests of the dataset were skipped by its filter of lengths, the one that vLLM's "
	  "client has: fewer than 4 tokens, prompts above 1,024 tokens, or more than 2,048 in all.",
	  "See what the file holds with `profllm dataset show`, and choose another dataset or set the "
	  "length of answers yourself (`--sharegpt-output-len N`).",
	  "profllm dataset show --dataset-name sharegpt --dataset-path FILE --model MODEL" },
	/* ---- errors: this machine ---- */
	{ ERRORS, "open_files",
	  "Each connection is an open file, and this process may not open as many as the run could "
	  "need.",
	  "Raise the limit in this shell with `ulimit -n 65536` (`profllm doctor` shows how to make it "
	  "permanent), or lower `--max-concurrency`. A systemd service, and what a dashboard's pages start, "
	  "has `LimitNOFILE=` of its unit.",
	  "up to 10000 connections may be open at once, but this process may open only 1024 files "
	  "(ulimit -n, or LimitNOFILE of its service)" },
	{ ERRORS, "locks_unusable",
	  "Experiments on one machine share a folder of lock files, so that no two use the same GPU. "
	  "That folder cannot be used.",
	  "Remove the link or file at `/dev/shm/profllm`, or name another folder in `PROFLLM_LOCKS`, "
	  "the same one for all users.",
	  "the folder of locks: /dev/shm/profllm cannot be used: it is a link" },
	{ ERRORS, "capture_forbidden",
	  "Capturing packets needs the capability CAP_NET_RAW, which this program does not have.",
	  "`sudo setcap cap_net_raw+ep \"$(command -v profllm)\"` gives it once; or run as root. "
	  "Without it each read has one stamp, which is enough for most runs.",
	  "stamping every segment needs the capability CAP_NET_RAW" },
	/* ---- errors: the store and the dashboard ---- */
	{ ERRORS, "store_address",
	  "A store is an SQLite file or a PostgreSQL database; its address has one of two forms.",
	  "Write `--store sqlite:runs.db` or `--store postgresql://USER@HOST/DATABASE`.",
	  "mysql://db/runs: expected sqlite:PATH or postgresql://..." },
	{ ERRORS, "store_busy",
	  "Another process has been writing to the store for longer than writers wait.",
	  "Try again when the other `ingest`, `restore` or `store` command has ended. Many writers at "
	  "once need a store on PostgreSQL.",
	  "runs.db: another process has been writing for 60 s" },
	{ ERRORS, "store_damaged",
	  "The database file of the store, or of a backup, is damaged: a disk failed, or a copy was "
	  "made while it was written.",
	  "A store: `profllm restore BACKUP --store STORE --force`, which keeps the damaged file. A "
	  "backup: restore another one. Without one recover what is left with `sqlite3 FILE .recover`. "
	  "Make backups with `profllm backup`, never with `cp`.",
	  "profllm store check --store sqlite:runs.db" },
	{ ERRORS, "store_foreign",
	  "The file is not a store: SQLite cannot read it as a database.",
	  "Name the store's file. Result files go into a store with `profllm ingest FILE --store "
	  "STORE`; backups become a store with `profllm restore`. A store whose beginning is damaged "
	  "is not recognised either: move it away and restore a backup.",
	  "text.txt: the file is not an SQLite database, so it is not a store" },
	{ ERRORS, "store_newer",
	  "A newer version of profllm made or migrated this store, and this version does not know its "
	  "tables. Nothing was changed.",
	  "Install the version that made the store, or a later one (`profllm --version`).",
	  "profllm --version" },
	{ ERRORS, "store_read_only",
	  "The PostgreSQL server accepts no writes: it is a replica, or is set to read only.",
	  "Name the primary server in `--store` for everything that writes. A dashboard may read "
	  "from a replica.",
	  "profllm dashboard --store postgresql://replica/runs --read-only" },
	{ ERRORS, "database_unreachable",
	  "PostgreSQL refuses the connection or does not answer.",
	  "Try the same address with `psql`. Check host, port, user, password (`PGPASSWORD` or "
	  "`~/.pgpass`) and whether the server accepts connections from this machine. A database "
	  "that does not exist yet is created by `createdb --owner USER DATABASE` "
	  "([PostgreSQL](guide/store.md#postgresql)).",
	  "psql postgresql://USER@HOST/DATABASE -c 'select 1'" },
	{ ERRORS, "token_file_needed",
	  "The dashboard was to listen on an address that other machines reach. Who can use it can "
	  "start programs here, so it asks for access tokens there.",
	  "Make a file of tokens and pass `--auth-token-file FILE`, or listen on 127.0.0.1 and use an "
	  "SSH tunnel ([access](guide/dashboard.md)).",
	  "profllm dashboard --listen 0.0.0.0:8080 --auth-token-file tokens.txt" },

	/* ---- categories of experiments ---- */
	{ CATEGORIES, "bad_configuration",
	  "A value of the configuration is wrong, or two do not fit together. Every mistake is listed "
	  "with its line and column, and no server was started.",
	  "Correct the places. `profllm run --config FILE --dry-run` checks without starting anything.",
	  "profllm run --config experiment.yaml --dry-run" },
	{ CATEGORIES, "command_not_found",
	  "The program of `server.command` is not in PATH.",
	  "Activate the environment that it is installed in, write its whole path, or set "
	  "`server.python` or `server.container`.",
	  "command -v vllm" },
	{ CATEGORIES, "bad_flag",
	  "The server ended because it does not know an argument, or not with this value.",
	  "Correct `server.args`. `profllm args show NAME` shows which versions of vLLM have an "
	  "argument.",
	  "profllm args show max-num-seqs" },
	{ CATEGORIES, "no_gpu",
	  "The machine does not have the GPUs that `resources.gpus` asks for.",
	  "List them with `profllm doctor` or `nvidia-smi -L`, and ask for fewer or for others.",
	  "resources.gpus: this machine has no GPU 8 (number of GPUs: 8); expected an index, a UUID or the "
	  "start of a UUID" },
	{ CATEGORIES, "gpus_busy",
	  "Other experiments or programs used the GPUs for as long as this one was allowed to wait.",
	  "Raise `resources.wait_s`, or see who uses them: `nvidia-smi`.",
	  "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv" },
	{ CATEGORIES, "port_taken",
	  "Another program already listens on the port.",
	  "End that program (the message has its PID; else `ss -ltnp`), or choose another port. "
	  "`port: 0` or no port takes a free one.",
	  "port 8000 is already served by PID 4711 (vllm serve)" },
	{ CATEGORIES, "out_of_memory",
	  "The server ran out of GPU or host memory while it started or while load ran.",
	  "Lower `max_model_len`, `max_num_seqs` or `gpu_memory_utilization`, raise "
	  "`tensor_parallel_size`, or end what else uses the GPU.",
	  "nvidia-smi" },
	{ CATEGORIES, "model_not_found",
	  "The server could not load the model: its name is wrong, it is gated, or files are missing.",
	  "Check `server.model`; for a gated or private model pass `HF_TOKEN` in `server.env`.",
	  "profllm tokenizer show org/name" },
	{ CATEGORIES, "out_of_disk",
	  "The server or the results had no room left on the disk.",
	  "Make room (`df -h`), or set `HF_HOME` or the output to another file system.",
	  "df -h ~/.cache /dev/shm ." },
	{ CATEGORIES, "container",
	  "The container could not be started.",
	  "Start the printed command by yourself; check the image's name, and that this user may use "
	  "the runtime.",
	  "docker run --rm --gpus all IMAGE nvidia-smi" },
	{ CATEGORIES, "killed",
	  "The server was ended by signal 9, and nothing shows that memory was the reason.",
	  "Ask who ended it: a scheduler's limit, an administrator, or `kill -9`. `dmesg` shows the "
	  "kernel's own kills.",
	  "dmesg | grep -i killed" },
	{ CATEGORIES, "crash",
	  "The server ended by itself, for a reason that its log does not name in a known way.",
	  "Read the end of its log: in the document (`error.log_tail`) and in the log file that the "
	  "message names.",
	  "jq -r .error.log_tail results.json" },
	{ CATEGORIES, "not_ready_in_time",
	  "The server runs but did not answer within `server.ready_timeout_s`.",
	  "Raise the limit: large models load for minutes, and the first start compiles kernels. The "
	  "log shows how far it came.",
	  "profllm run --config experiment.yaml --set server.ready_timeout_s=1800" },
	{ CATEGORIES, "not_reachable",
	  "`server.url` names a server that does not answer.",
	  "Start it, or correct the URL; `profllm help server_unreachable` has more.",
	  "curl http://localhost:8000/health" },
	{ CATEGORIES, "no_answer",
	  "The server reports that it is ready, but a real request had no answer.",
	  "Send that request by yourself and read the server's log: the first request loads more code "
	  "than the check of readiness.",
	  "curl http://localhost:8000/v1/completions -d '{\"model\": \"M\", \"prompt\": \"a\"}' -H "
	  "'Content-Type: application/json'" },
	{ CATEGORIES, "all_requests_failed",
	  "The load ran, and not one request succeeded.",
	  "`profllm help no_success`.", "profllm help no_success" },
	{ CATEGORIES, "requests_failed",
	  "Some requests failed; the result holds the others, and its verdict says whether it can be "
	  "used.",
	  "The errors are in the result under `errors`; see `profllm help failures`.",
	  "profllm help failures" },
	{ CATEGORIES, "too_many_failures",
	  "So many requests failed that the load was stopped early.",
	  "Correct what the errors name, or lower the load; the limits are `benchmark.max_errors` and "
	  "`benchmark.max_error_rate`.",
	  "profllm help failures" },
	{ CATEGORIES, "no_trace",
	  "The profiler was to write a trace and wrote none; the measurement itself is complete.",
	  "Read the server's log: its version may want another option for traces.",
	  "profllm run --config experiment.yaml --check" },
	{ CATEGORIES, "interrupted",
	  "The run was stopped by a signal. What was measured until then is kept; in a verdict: requests "
	  "with long answers are the ones that are missing.",
	  "Run it again; a suite continues where it stopped with `--resume`.",
	  "profllm run --config suite.yaml --output results.d --resume" },

	{ CATEGORIES, "network",
	  "A server, hub or proxy that the configuration needs could not be reached.",
	  "Check the address in the message; `profllm help server_unreachable` has more.",
	  "curl URL/health" },
	{ CATEGORIES, "output",
	  "The document, or its folder, cannot be written.",
	  "Name another place with `--output`, or make room and correct the folder's permissions.",
	  "profllm run --config experiment.yaml --output results.json" },
	{ CATEGORIES, "file",
	  "A file that the load needs or writes cannot be read or written.",
	  "Correct the path or the permissions that the message names.",
	  "profllm help permission_denied" },
	{ CATEGORIES, "not_measured",
	  "The load could not be prepared or did not begin, so there are no numbers.",
	  "Read the reason; `--dry-run` prepares the same load without sending it.",
	  "profllm run --config experiment.yaml --dry-run" },

	/* ---- reasons of a verdict ---- */
	{ REASONS, "failures",
	  "More than 1 % of the requests failed. Failed requests are often the slow ones, so what "
	  "remains looks better than the server is.",
	  "Read the errors above the report and remove their cause, or lower the load.",
	  "profllm bench serve ... --max-errors 10" },
	{ REASONS, "sent_early",
	  "Requests left before they were due, so the load was not the one that was asked for.",
	  "This is always a defect of this program: please report it with the record.",
	  "profllm bench serve ... --record run.rec" },
	{ REASONS, "skew",
	  "The client read events later than they arrived. With `--timestamps user` that delay counts "
	  "as the server's; with kernel stamps (the default) it is only a note.",
	  "Use kernel stamps, and give the client a core of its own.", "profllm doctor" },
	{ REASONS, "send_stall",
	  "Writing a request took long compared with TTFT: the client was interrupted between its "
	  "clock and its write.",
	  "Give the client a core of its own (`taskset`), and end what else runs there.",
	  "taskset -c 3 profllm bench serve ..." },
	{ REASONS, "send_lag",
	  "The client sent requests later than they were due, so the server had less load than asked "
	  "for. In a closed loop some of the `--max-concurrency` slots were empty.",
	  "Give the client a core of its own or more loops (`--threads 2`); if connecting is slow, "
	  "`--warm-connections N`.", "profllm doctor" },
	{ REASONS, "shared_reads",
	  "Several events were read together and share one arrival stamp, so the times between them "
	  "are unknown and ITL is distorted.",
	  "Allow packet stamps: `sudo setcap cap_net_raw+ep \"$(command -v profllm)\"`. Otherwise give "
	  "the client a core of its own, or `--threads 2`. As a note: the server or the network sends "
	  "events together, and nothing is wrong with the client.", "profllm doctor" },
	{ REASONS, "shared_first",
	  "First tokens were read together with later ones and have their stamp: TTFT is too long and "
	  "TPOT too short.",
	  "As for `shared_reads`.", "profllm help shared_reads" },
	{ REASONS, "unstamped",
	  "Reads had no arrival stamp of the kernel and took the program's clock, so times of two "
	  "kinds are mixed.",
	  "Use a kernel and a network driver that stamp; `profllm doctor` tests it.",
	  "profllm doctor" },
	{ REASONS, "segments",
	  "A note next to `shared_reads`: why packets had no stamps of their own here.",
	  "Do what the note says, usually `setcap cap_net_raw+ep`.", "profllm doctor" },
	{ REASONS, "usage",
	  "The server's token count is not the number of events: an event holds several tokens, or "
	  "none. ITL is then the time between events, not between tokens.",
	  "Quote TPOT instead of ITL. `--compat role-chunk` leaves out events that have only a role, and "
	  "`--fix peak-tokens` makes the peak output throughput one of tokens.",
	  "profllm bench serve ... --report full" },
	{ REASONS, "cancelled",
	  "Requests were cancelled while they ran: those that `--duration` and `--grace-period` cut off, or "
	  "in captured traffic those that the capture's end or their client did. Their tokens are in no "
	  "throughput, and long answers are cut off more often than short ones.",
	  "Give the run more time against the length of an answer: a longer `--duration`, or `--grace-period` "
	  "as long as the longest answer.",
	  "profllm bench serve ... --duration 60 --grace-period 60" },
	{ REASONS, "answer_at_once",
	  "The client received the whole answer at once. TTFT is then the same as E2EL, and TPOT is 0: "
	  "neither says how fast the server made the tokens.",
	  "Ask for streams (`bench multi-turn` without `--no-stream`), and switch off buffering in a proxy "
	  "before the server (`proxy_buffering off` in nginx).",
	  "profllm bench serve ... --report full" },
	{ REASONS, "several_answers",
	  "Requests ask for several answers (`n` in `--extra-body`). Their tokens come in one stream, and TPOT "
	  "and ITL do not tell which answer a token belongs to.",
	  "Multiply TPOT by `n` for the pace of one answer, or measure with `n` 1.",
	  "profllm bench serve ... --extra-body '{\"n\": 1}'" },
	{ REASONS, "role_event",
	  "The server opens each answer with an event that has a role and no text. vLLM's client takes "
	  "it for the first token, so TTFT is too short.",
	  "`--compat role-chunk` leaves that event out.",
	  "profllm bench serve ... --compat role-chunk" },
	{ REASONS, "usage_ignored",
	  "The server sends its token counts in an event that also has text, where vLLM's client does "
	  "not look. Token counts and throughput are therefore wrong.",
	  "`--fix usage` reads them.", "profllm bench serve ... --fix usage" },
	{ REASONS, "usage_refused",
	  "The server sent token counts that cannot be right, below zero or far beyond the text.",
	  "Report it to the server's makers. With `--tokenizer` our own count of the text is used.",
	  "profllm bench serve ... --tokenizer MODEL" },
	{ REASONS, "token_count",
	  "Without token counts of the server only the answer's text is counted; reasoning and tool "
	  "calls are missing.",
	  "`--fix all-text` counts all text.", "profllm bench serve ... --fix all-text" },
	{ REASONS, "answer_length",
	  "Answers are longer or shorter than asked for, so runs did different work.",
	  "The server may read another field than the one that was sent: "
	  "`--extra-body '{\"max_tokens\": N}'`. For answers of exactly N tokens: `--ignore-eos`.",
	  "profllm bench serve ... --ignore-eos" },
	{ REASONS, "prefix_cache",
	  "The server had prompts in its prefix cache that this run alone does not explain: an earlier "
	  "run sent them. TTFT is that of the cache.",
	  "`--prompt-salt run` makes all prompts new, or clear the cache with `--reset-prefix-cache`. "
	  "`bench throughput` sends new prompts with another `--seed`.",
	  "profllm bench serve ... --prompt-salt run" },
	{ REASONS, "slots_empty",
	  "In a closed loop fewer requests were in flight than `--max-concurrency` says: there were "
	  "fewer requests than slots, or so few for each slot that most of the run was its start and "
	  "its end. The numbers are those of a lower load, and throughput is too low.",
	  "Send ten requests or more for each slot, or quote the number that was in flight. The block "
	  "*Steady State* leaves out the start and the end.",
	  "profllm bench serve ... --max-concurrency 8 --num-prompts 80" },
	{ REASONS, "rate_not_carried",
	  "Requests arrive faster than they are answered. The queue grows for as long as the run "
	  "lasts, and latency with it: latencies depend on the length of the run. If the message names "
	  "`--max-concurrency`, requests waited in the client for a slot: the load was not the "
	  "planned one, and the latencies leave the waiting out.",
	  "Quote the throughput only, lower `--request-rate`, or search the highest rate that the "
	  "server sustains. Where `--max-concurrency` limits the load, raise it or leave it out.",
	  "profllm bench serve ... --find-max-rate --slo 'p99_ttft_ms<200'" },
	{ REASONS, "queue_growing",
	  "TTFT rose during the run: the queue at the server grows.",
	  "As for `rate_not_carried`.", "profllm help rate_not_carried" },
	{ REASONS, "slow_start",
	  "The first requests were slower than the rest: the server was cold.",
	  "`--num-warmups N` sends N requests first that are not counted.",
	  "profllm bench serve ... --num-warmups 20" },
	{ REASONS, "server_restarted",
	  "The server was restarted during the run, or took no connections for a while.",
	  "Read its log, and measure again when it is stable.", "curl URL/health" },
	{ REASONS, "packet_loss",
	  "The network lost packets. Each loss costs at least 200 ms on Linux, which is in the "
	  "latencies.",
	  "Repair the network, or measure from a machine next to the server.", "profllm doctor URL" },
	{ REASONS, "capture_lost",
	  "The capture lacks packets of some requests, which are therefore not in the numbers. Long "
	  "answers are missing more often than short ones.",
	  "Capture less (`--interface`, `--host`), or write the packets to a file first.",
	  "tcpdump -B 65536 -w run.pcap port 8000" },
	{ REASONS, "capture_dropped",
	  "The capture dropped packets, none of them of a request that was seen. Requests may be "
	  "missing altogether.",
	  "As for `capture_lost`.", "profllm help capture_lost" },
	{ REASONS, "capture_tokens",
	  "The other client did not ask for token counts, so each event with text counts as a token.",
	  "Have that client send `\"stream_options\": {\"include_usage\": true}`, or count the text "
	  "with `--tokenizer`.", "profllm bench tap ... --tokenizer MODEL" },
	{ REASONS, "no_local_port",
	  "This machine had no local port left for a connection; such failures are not the server's.",
	  "Add addresses with `--source-addresses`, widen `net.ipv4.ip_local_port_range`, or lower "
	  "`--max-concurrency`.", "sudo sysctl net.ipv4.ip_local_port_range='1024 65535'" },
	{ REASONS, "no_descriptor",
	  "The client had no file descriptor left for a connection; such failures are not the "
	  "server's.",
	  "Raise the limit, or lower `--max-concurrency`.", "ulimit -n 65536" },
	{ REASONS, "client_cpu",
	  "A loop of the client used nearly all of its CPU: the client may be the bottleneck, not the "
	  "server.",
	  "Add loops with `--threads N`, each of which needs a core.",
	  "profllm bench serve ... --threads 4" },
	{ REASONS, "client_wait",
	  "Other programs used the client's core. This note names the cause of other reasons.",
	  "Give the client a core of its own (`taskset`), or measure from another machine.",
	  "taskset -c 3 profllm bench serve ..." },
	{ REASONS, "client_throttled",
	  "A CPU quota of a container or control group stopped the client. This note names the cause "
	  "of other reasons.",
	  "Raise the quota, for example `docker run --cpus 4`.", "profllm doctor" },
	{ REASONS, "clock_step",
	  "The system's clock was set during the run, so times before and after do not fit together.",
	  "Run again; let the clock be adjusted slowly (chrony does). `profllm doctor` shows whether it "
	  "is synchronized.", "profllm doctor" },
	{ REASONS, "record_full",
	  "The record reached its size limit, and later token events are missing.",
	  "Send fewer or shorter requests in one run.", "profllm bench serve ... --num-prompts N" },
	{ REASONS, "aborted",
	  "The run was stopped because too many requests failed.",
	  "Read the errors; see `profllm help failures`.", "profllm help failures" },
	{ REASONS, "broken_off",
	  "The record file has no end: the program was killed while it wrote it.",
	  "The numbers hold for the requests that are in the file; run again for the rest.",
	  "profllm bench score run.rec" },
	{ REASONS, "lost_process",
	  "A process that mpirun had started was lost, and its requests are missing.",
	  "Read what mpirun printed, and run again.", "profllm help broken_off" },
	{ REASONS, "slow_connect",
	  "Opening a connection took long compared with TTFT, which does not contain it. Users wait "
	  "for both.",
	  "`--warm-connections N` opens connections before the clock starts; *TTFT with connect* in "
	  "the report has both.", "profllm bench serve ... --warm-connections 32" },
	{ REASONS, "slow_dns",
	  "Looking up the server's name took more than 500 ms. It happens before the clock starts and "
	  "is in no number.",
	  "Write the server's address in `--base-url`.", "getent hosts NAME" },
	{ REASONS, "long_end",
	  "In a run at a rate the answers to the last requests took a large part of the time. Nothing "
	  "arrived in it, so throughput is below the rate even where the server keeps up.",
	  "Let the run last many times as long as an answer.",
	  "profllm bench serve ... --request-rate 5 --duration 600" },
	{ REASONS, "few_requests",
	  "There are too few requests for the highest percentile: another run would give another "
	  "value.",
	  "Send at least as many requests as the note says, 299 for p99.",
	  "profllm bench serve ... --num-prompts 300" },
	{ REASONS, "constraints_ignored",
	  "Constrained answers are free text: the server ignores the key that the constraint was sent "
	  "in.",
	  "Use the other `--constraint-form`, or a server with structured output.",
	  "profllm bench structured-output ... --constraint-form guided" },
	{ REASONS, "constraints_truncated",
	  "Constrained answers were cut off at the length that was asked for, and count as wrong.",
	  "Ask for longer answers.",
	  "profllm bench structured-output ... --output-len 512" },
	/* of benchmarks without a server */
	{ REASONS, "short_answers",
	  "The engine returned fewer tokens than requested, so it did less work.",
	  "Lower `--output-len`, or raise `--max-model-len`, which may cut answers off.",
	  "profllm bench latency ... --output-len 64" },
	{ REASONS, "requested_tokens",
	  "Throughput is computed from the tokens that were requested, as in vLLM, not from those that "
	  "were counted.",
	  "`--fix token-counts` uses the counted tokens.",
	  "profllm bench throughput ... --fix token-counts" },
	{ REASONS, "media_tokens",
	  "Tokens of images, videos and sound are not in the numbers of tokens.",
	  "Compare requests per second instead of tokens per second.",
	  "profllm bench throughput ... --output-json FILE" },
	{ REASONS, "unfinished",
	  "Some requests have no answer, so the time is that of less work.",
	  "Read the log of the engine's program (`--worker-log FILE`).",
	  "profllm bench throughput ... --worker-log worker.log" },
	{ REASONS, "profiled",
	  "The profiler ran inside the measured time, which makes everything slower.",
	  "Measure without `--profile`.", "profllm bench throughput ..." },
	{ REASONS, "brief",
	  "The measured time is so short that it is mostly the beginning and the end of a batch.",
	  "Send more requests (`--num-prompts`).", "profllm bench throughput ... --num-prompts 1000" },
	{ REASONS, "outside_the_clock",
	  "Much of the time passed between request and answer, outside the engine's own clock.",
	  "End other programs on this machine; `--show-log` shows what the engine's program does.",
	  "profllm doctor" },
	{ REASONS, "runs_apart",
	  "Later runs took another time than the first one: prompts were in a prefix cache, or the "
	  "engine was not warm.",
	  "`--num-warmups N`, or prompts that differ.",
	  "profllm bench throughput ... --num-warmups 10" },
	{ REASONS, "drift",
	  "Iterations became slower or faster during the run: the machine's clock changes, or it was not "
	  "warm.",
	  "More `--num-iters-warmup`; fix the clocks of CPU and GPU.",
	  "profllm bench latency ... --num-iters-warmup 20" },
	{ REASONS, "spread",
	  "Repetitions differ by more than 10 % of their mean: other programs run on this machine.",
	  "End them, and repeat more often.", "profllm doctor" },
	{ REASONS, "no_warmup",
	  "Nothing warmed the engine up, so the first measurement includes work that is done once.",
	  "Give a number of warm-up iterations of at least 1.",
	  "profllm bench latency ... --num-iters-warmup 10" },
	{ REASONS, "few",
	  "There are too few repetitions to show how much they differ.",
	  "Repeat more often (`--num-iters`, `--num-iters-cold`, `--num-iters-warm`).",
	  "profllm bench latency ... --num-iters 30" },
	{ REASONS, "first_slow",
	  "The first start was more than 20 % slower than the other cold ones: it read the model from the "
	  "disk, the others from memory.",
	  "`--drop-page-cache` makes all cold starts read from the disk, or ignore the first one.",
	  "profllm bench startup ... --drop-page-cache" },
	{ REASONS, "coarse",
	  "The start was so short that the interval of polling the server is a large part of it.",
	  "Quote the time with an error of 0.1 s.", "profllm bench startup ... --num-iters-cold 10" },
	{ REASONS, "no_request_times",
	  "The engine did not report times of single requests, so each one counts as the mean of all.",
	  "Do not quote percentiles.", "profllm bench mm-processor ..." },
};

#define TOPICS (sizeof(topics) / sizeof(*topics))
#define PAGE_COLUMNS 100

static bool is_same(struct str a, struct str b)
{
	for (size_t i = 0; i < a.n && a.n == b.n; i++) {
		char c = a.p[i] == '-' || a.p[i] == ' ' ? '_' : a.p[i];

		if (c != b.p[i])
			return false;
	}
	return a.n == b.n;
}

/* Words of text in lines, without the marks of Markdown. */
static void put_wrapped(struct buf *out, const char *text)
{
	struct str rest = str_of(text);
	size_t column = 0;

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		if (column && column + 1 + word.n > PAGE_COLUMNS) {
			buf_add_char(out, '\n');
			column = 0;
		} else if (column) {
			buf_add_char(out, ' ');
			column++;
		}
		column += word.n;
		for (size_t i = 0; i < word.n; i++)
			if (word.p[i] != '`')
				buf_add_char(out, word.p[i]);
	}
	buf_add_char(out, '\n');
}

static struct str first_sentence(const char *text)
{
	const char *end = strstr(text, ". ");

	return end ? (struct str){ text, (size_t)(end - text) + 1 } : str_of(text);
}

bool topic_show(struct str word, struct buf *out)
{
	for (size_t i = 0; i < TOPICS; i++) {
		const struct topic *t = &topics[i];

		if (!is_same(word, str_of(t->name)))
			continue;
		buf_printf(out, "%s (%s)\n\n", t->name, groups[t->group].title);
		put_wrapped(out, t->means);
		buf_add_text(out, "\nWhat to do:\n");
		put_wrapped(out, t->remedy);
		buf_printf(out, "\nExample:\n  %s\n", t->example);
		return true;
	}
	return false;
}

const char *topic_nearest(struct str word)
{
	const char *names[TOPICS];

	for (size_t i = 0; i < TOPICS; i++)
		names[i] = topics[i].name;
	return opt_nearest(word, names, TOPICS);
}

void topic_list(struct buf *out)
{
	for (enum group g = 0; g < GROUPS; g++) {
		buf_printf(out, "%s%s\n", g ? "\n" : "", groups[g].title);
		for (size_t i = 0; i < TOPICS; i++) {
			struct str means = first_sentence(topics[i].means);
			const char *colon = memchr(means.p, ':', means.n);

			if (topics[i].group == g)
				buf_printf(out, "  %-22s %.*s%s\n", topics[i].name,
					   (int)(colon ? (size_t)(colon - means.p) : means.n),
					   means.p, colon ? "." : "");
		}
	}
	buf_add_text(out, "\nprofllm help NAME explains one of them.\n");
}

void topic_markdown(struct buf *out)
{
	buf_add_text(out, "<!-- Made by `profllm help --markdown`. -->\n# Errors, failures and verdicts\n\n"
		     "What a message means and what to do about it. `profllm help NAME` shows the same "
		     "text in a terminal,\n`profllm help errors` lists the names.\n");
	for (enum group g = 0; g < GROUPS; g++) {
		buf_printf(out, "\n## %s\n\n%s\n", groups[g].title, groups[g].intro);
		for (size_t i = 0; i < TOPICS; i++)
			if (topics[i].group == g)
				buf_printf(out, "\n### %s\n\n%s\n\n*What to do:* %s\n\n    %s\n",
					   topics[i].name, topics[i].means, topics[i].remedy,
					   topics[i].example);
	}
}
