/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - every named maximum, with its reason. Crossing one is an error that names it. */
#pragma once

#define BUF_BYTES_MAX (1ull << 30)      /* any text we build; a result file of 1 GiB is a mistake */
#define FILE_BYTES_MAX (4ull << 30)     /* whole-file reads: ShareGPT dumps are below 1 GiB */
#define JSON_DEPTH_MAX 64               /* nesting; servers and datasets stay below 12 */
#define HTTP_HEAD_BYTES_MAX 65536       /* status line and headers together */
#define HTTP_HEADS_BYTES_MAX (4 * HTTP_HEAD_BYTES_MAX) /* heads and trailers of one transfer */
#define HTTP_HEADERS_MAX 128            /* header lines kept of one message */
#define HTTP_CHUNK_BYTES_MAX (1ull << 40)
#define HTTP_ERROR_BODY_MAX 2048        /* bytes of an error body kept for the report */
#define HTTP_BODY_BYTES_MAX (256ull << 20) /* one non-streamed answer */
#define HTTP_ERROR_READ_MAX (1u << 20)  /* bytes of an answer that is an error; then it is cut */
#define SSE_EVENT_BYTES_MAX (16ull << 20)  /* one server-sent event, all its data lines */
#define STREAM_KEPT_BYTES_MAX (1u << 20) /* larger stream buffers are freed after an answer */
#define READ_BYTES 65536                /* the one read buffer of a loop */
#define TURN_READS_MAX 4                /* full reads of one connection in a turn of its loop */
#define TAP_SERVERS_MAX 128             /* addresses and ports that one tap listens for */
#define TAP_FRAMES_MAX 32768            /* waiting to be read: 0.3 s of 100,000 events a second */
#define TAP_SEGMENTS_MAX 65536          /* received but not yet read, over all connections */
#define TAP_PORTS_MAX 16                /* ports of servers whose traffic is read */
#define STREAM_CONNECTIONS_MAX 65536    /* connections of other programs followed at a time */
#define STREAM_HELD_BYTES_MAX (8u << 20) /* early bytes held of one direction: a TCP window */
#define CAPTURE_PACKET_BYTES_MAX (1u << 20) /* one packet of a capture; tools keep 256 KiB */
#define CAPTURE_BUFFER_BYTES (64 << 20) /* packets that the kernel keeps until they are read */
#define OBSERVED_REQUESTS_MAX (1u << 22) /* rows of one capture, reserved at its start */
#define OBSERVED_FLIGHTS_MAX (1u << 18)  /* requests under way at a time */
#define OBSERVED_BODY_BYTES_MAX (16u << 20) /* body bytes kept of a request until it is complete */
#define OBSERVED_PIPELINED_MAX 64       /* requests of one connection that wait for an answer */
#define ANSWER_WIRE_BYTES_MAX (1ull << 30) /* bytes of one answer on the wire, framing included */
#define ANSWERS_HELD_BYTES_MAX (2ull << 30) /* parts of answers that one loop holds at a time */
#define ANSWER_EVENTS_MIN 65536         /* events that any answer may have */
#define ANSWER_EVENTS_UNASKED_MAX (1u << 20) /* events of an answer without a requested length */
#define ANSWER_EVENT_BYTES 64           /* average bytes of text per event beyond that */
#define ORACLE_BYTES_MAX (1ull << 30)   /* a truth file when it is read: 50 million events */
/*
 * Token counts reported by a server are accepted up to the largest of: this multiple of what was
 * asked for (several choices, hidden reasoning); a floor (hidden reasoning after a small request, a
 * video given by a short URL); the bytes of the text itself, because no token is shorter.
 */
#define USAGE_ASKED_FACTOR 16
#define USAGE_OUTPUT_MIN 4096
#define USAGE_PROMPT_MIN (1u << 20)
#define ERROR_EXAMPLES_MAX 10           /* distinct failure texts kept per category */
#define DUE_S_MAX 31536000              /* a year: no request is due later, none thinks longer */
#define REQUESTS_MAX (1u << 28)         /* rows in one record */
#define RECORD_DISK_ROWS (1u << 20)     /* --record keeps runs of more rows in files */
#define RECORD_DISK_BYTES (256u << 20)  /* record files from this size on are mapped */
#define EVENT_BLOCKS_MAX (1u << 30)     /* 31 gaps each: 33e9 token events a shard */
#define MARKS_MAX (1u << 30)
#define SLAB_ITEMS_MIN (1u << 16)       /* less room for a record than this is an error */
#define TEXT_BLOCKS_MAX (1u << 29)      /* 120 bytes each */
#define THREADS_MAX 64
#define ENDPOINTS_MAX 64                /* base URLs of one run */
#define OWN_ADDRESSES_MAX 256           /* --source-addresses: 7 million connections per server */
#define CPUS_MAX 1024                   /* --cpus: a cpu_set_t */
#define RANKS_MAX 1024                  /* processes that mpirun starts as one run */
#define RANK_HOST_BYTES 64              /* the name of a rank's machine, cut to fit */
#define PIPE_BYTES_MAX (64ull << 30)    /* bytes copied from a pipe that is read as a file */
#define TOKEN_FILE_BYTES_MAX (256u << 20) /* one tokenizer.json; the largest known is 33 MB */
#define TOKEN_ID_MAX (1u << 22)         /* vocabularies stay below 300,000 */
#define TOKEN_ENTRY_BYTES_MAX 4096      /* one token of a vocabulary, or added; known: 512 */
#define TOKEN_CONFIG_BYTES_MAX (4u << 20) /* a tokenizer's companion file; templates are 30 KB */
#define TOKEN_STAGE_BYTES_MAX (2u << 20) /* JSON of one stage; a character map has 400 KB */
#define TOKEN_RANKED_BYTES_MAX 1024     /* one token with a rank; the longest known has 128 */
#define TOKEN_SHOWN_BYTES_MAX 65536     /* what one token decodes to; known ones stay below 1,000 */
#define TOKEN_SHOWN_ALL_BYTES_MAX (64u << 20) /* what all tokens decode to; known ones 8 MB */
#define TOKEN_SHOWN_WORK_BYTES_MAX (1ull << 30) /* bytes written by all steps of decoding them */
#define TOKEN_ADDED_MAX 65536           /* added tokens of one file; the most known is 6,415 */
#define TOKEN_ADDED_BYTES_MAX (4u << 20) /* bytes of all of them together */
#define TOKEN_AROUND_MAX 1024           /* ids around one sequence; templates have up to four */
#define TOKEN_CACHE_FILES_MAX 32        /* compiled tokenizers kept; 10 to 40 MB each */
#define TOKEN_CACHE_BYTES_MIN (256 << 10) /* smaller files load as fast from their source */
#define TOKEN_TEXT_BYTES_MAX (256u << 20) /* one text to encode; its stages may grow it */
#define TOKEN_GROWTH_MAX 64             /* text after all stages over text before; NFKD: 11 */
#define TOKEN_GROWTH_FREE_BYTES (64u << 10) /* on top, for short texts */
#define TOKEN_GROWN_BYTES_MAX (64u << 20) /* bytes of a text that grew more than fourfold */
#define TOKEN_SEARCH_NS 300000000ll     /* CPU time for regular expressions on one text ... */
#define TOKEN_SEARCH_BYTE_NS 2000       /* ... and for each of its bytes; common ones need 100 */
#define TOKEN_SEARCH_HEAP_KB (128u << 10) /* for one match by PCRE2's interpreter */
#define TOKEN_STAGES_MAX 16             /* stages of one pre-tokenizer or post-processor */
#define TOKEN_REGEX_DEPTH_MAX 64        /* groups open at once in one regular expression */
#define TOKEN_REGEX_BYTES_MAX 65536     /* one regular expression; the longest known is 400 */
#define CHAT_TEMPLATE_BYTES_MAX (1u << 20) /* one chat template; the longest known is 30 KB */
#define TOKEN_REMOTE_TEXTS_MAX 1024      /* answers of a server's tokenizer kept in memory */
#define TOKEN_REMOTE_IDS_MAX 8192        /* ids kept of each, 32 MiB in all; longer: not cached */
#define SPEC_POSITIONS_MAX 64           /* draft positions kept; engines draft fewer than 16 */
#define TELEMETRY_POINTS_MAX (1u << 17) /* of one series: a day and a half at one a second */
#define SYSTEM_PROCESSES_MAX 256        /* watched processes of a server, one descriptor each */
#define RAMP_EVENTS_MAX (1u << 20)      /* whole rates one ramp-up passes; each is a line */
#define OPT_ROWS_MAX 512              /* options of one command; bench serve has 128 */
#define FETCH_BODY_BYTES_MAX (64ull << 20) /* one answer outside the measurement */
#define FETCH_MANY_BODY_BYTES_MIN (1u << 20) /* many downloads at once: any answer may have this, */
#define FETCH_MANY_BODY_FACTOR 64       /* or this many times the request's bytes */
#define HUB_FILE_BYTES_MAX (64ll << 30) /* one file of a hub; it serves none above 50 GB */
#define HUB_FILES_MAX (1u << 20)        /* files of one repository on a hub */
#define HUB_DEPTH_MAX 16                /* folders in folders of a cached repository */
#define HUB_NAME_BYTES_MAX 255          /* one name in the cache: a commit, an ETag */
#define WORKLOAD_DUMP_BYTES_MAX (16ull << 30) /* --dump-workload: prompts of a very large run */
#define WORKLOAD_MEMORY_BYTES_MAX (2ull << 30) /* texts of requests in memory; more: a file */
#define RECORD_SHARDS_MAX 4096          /* loops of all hosts in one record */
#define PREPARED_BYTES_MAX (1ull << 30) /* bytes of prompts kept as bodies; more: look-ahead */
#define REPEATED_BYTES_MAX (64ull << 20) /* the same for a plan that repeats its prompts */
#define OPEN_ENDED_REQUESTS_MAX (1u << 20) /* requests planned for --duration without a rate */
#define PROBES_MAX (1u << 17)           /* rows for probe requests, which run next to the load */
#define ENGINES_MAX 256                 /* engines of one server whose sizes are added up */
#define SWEEP_POINTS_MAX 1000           /* values of --sweep-max-concurrency: a row each */
#define SWEEP_COMBINATIONS_MAX 4096     /* objects of one parameter file; a grid of months */
#define SWEEP_PARAMS_BYTES_MAX (16u << 20) /* bytes of one parameter file */
#define HOST_NETS_MAX 64                /* network devices of a machine whose bytes are added up */
#define RESULT_NAMES_MAX 10000          /* results of one second in one folder */
#define SLA_LIMITS_MAX 32               /* limits that must hold together */
#define WORKLOAD_LEVELS_MAX 10000       /* of serve_workload; each is at least one run */
#define SEARCH_LEVELS_MAX 128           /* levels of one search; 2^16 take 16 halvings */
#define SWEEP_RUNS_MAX 100000           /* runs of one combination */
#define SWEEP_LEVELS_MAX 65536          /* pairs of combinations of one sweep */
#define SWEEP_LOG_BYTES_MAX (64u << 20) /* of a server's log, read for its KV cache's size */
#define FILE_NAME_BYTES_MAX 255         /* what Linux file systems take */
#define PREFAULT_EVENTS_MAX (1u << 24)  /* events with memory before the load: 70 MB a lane */
#define TRACE_CHAINS_MAX (1u << 23)     /* distinct prompt prefixes of a trace: 200 MB */
#define UNUSED_KEYS_MAX 16              /* unused dataset columns that a warning names */
#define MIX_PARTS_MAX 64                /* sets of one mix */
#define LENGTH_TOKENS_MAX (1u << 26)    /* one prompt or answer; contexts are below 2^24 */
#define LINE_BYTES_MAX (512u << 20) /* one line of JSON or of ids: 256 MiB of text, escaped */
#define ORDERED_OUT_BYTES_MAX (4ull << 30) /* bytes that one such line becomes: 10 per id */
#define TABLE_WINDOW_BYTES (16u << 20)  /* part of a mapped data file kept in memory */
#define TABLE_ROW_BYTES_MAX (256ull << 20) /* one row of a data file, spelled as JSON */
#define TABLE_ROWS_MAX (1ull << 31)     /* rows of one file: 16 GiB of places */
#define SHUFFLED_ROWS_MAX (1ull << 27)  /* rows put in a random order: 1 GiB of places */
#define TABLE_COLUMNS_MAX 4096          /* leaves of a Parquet schema; image sets have ten */
#define TABLE_UNPACKED_BYTES_MAX (64ull << 30) /* what one compressed file may unpack to */
#define SOURCE_CARD_BYTES_MAX (16u << 20) /* README.md of a dataset; the longest known has 2 MB */
#define BACKEND_FILE_BYTES_MAX (1u << 20) /* one description of an API; they have hundreds */
#define PARQUET_PAGE_BYTES_MAX (1ull << 30) /* one page, unpacked; writers make them 1 MB */
#define PARQUET_FOOTER_BYTES_MAX (256u << 20) /* the description of all row groups */
#define PARQUET_ROWS_PER_BYTE_MAX 8192 /* of a file; all its rows equal, writers reach 1,000 */
#define PARQUET_PLACES_MAX (1u << 20) /* page positions kept for one file: 24 MiB */
#define FRAME_RECORDS_MAX 1000000       /* records of sweeps at once; a sweep has hundreds */
#define FRAME_FILE_BYTES_MAX (1ull << 30) /* one summary.json or result file */
#define COMPARE_SIDES_MAX 64            /* operands of bench compare, one table row each */
#define PROC_FILE_BYTES_MAX (4u << 20)  /* one file of /proc: an environment, a command line */
#define PROC_SOCKETS_BYTES_MAX (64u << 20) /* /proc/net/tcp of 400,000 sockets */
#define PROC_TREE_MAX (1u << 22)        /* processes of a machine; Linux numbers no more */
#define ROSTER_BYTES_MAX (1u << 20)     /* one roster: 40,000 members */
#define LOCK_FILE_BYTES_MAX 8192        /* bytes of a lock file's description of its holder */
#define GPUS_MAX 256                    /* GPUs of one machine; the largest have 32 */
#define SYSFS_BYTES_MAX 4096            /* one file of sysfs: a page */
#define GPU_PARTS_MAX 64                /* instances of one split GPU; MIG makes seven */
#define GPU_PROCESSES_MAX 256           /* distinct programs on one GPU */
#define GPU_START_S_MAX 30              /* time for a driver to start: 15 s for eight idle GPUs */
#define SERVER_LOG_READ_BYTES (256 << 10) /* end of a server's log that is searched for its error */
#define SERVER_TAIL_LINES 20            /* log lines shown to the user */
#define WORKER_FRAME_BYTES_MAX (256u << 20) /* one message from or to an engine's worker */
#define WORKER_PUT_BYTES (8u << 20)     /* bytes of requests sent to a worker at once */
#define LATENCY_TOKENS_MAX (1 << 24)    /* one batch of bench latency: 128 MiB of ids as text */
#define MM_STAGES_MAX 64                /* multimodal preprocessing stages; vLLM reports eight */
#define LATENCY_ITERATIONS_MAX 10000000 /* iterations of bench latency: 80 MB of times */
#define DOCUMENT_BYTES_MAX (256u << 20) /* bytes of one experiment's document */
#define SUITE_MEMBERS_MAX 4096          /* experiments of one suite, repeats counted */
#define SUITE_VALUES_MAX (16u << 20)    /* members x axes of its matrix x values of its file */
#define SUITE_SEARCH_REPEATS_MAX 16 /* full-length repeats of the best candidates */
#define SUITE_JOBS_MAX 256              /* experiments of a suite running at once */
#define SUITE_LINE_BYTES_MAX 65536      /* bytes of one line printed by a child experiment */
#define IMPORT_FILE_BYTES_MAX (16u << 20) /* one of vLLM's test files */
#define IMPORT_POINTS_MAX 1000          /* rates or concurrencies of one test */
#define YAML_VALUES_MAX 1000000         /* values of one document, aliases counted each time */
#define YAML_ANCHORS_MAX 256            /* each alias is compared with all anchors */
#define YAML_DIRECTIVES_MAX 64          /* each is compared with those before it */
#define CONFIG_BYTES_MAX (16u << 20)    /* one configuration file */
#define UPLOAD_BYTES_MAX (256ull << 20)     /* a document on its way to a dashboard */
#define EXPERIMENT_BYTES_MAX (4u << 20) /* one file of an experiment's configuration */
#define EXPERIMENT_FILES_MAX 256        /* files one configuration includes, repeats counted */
#define EXPERIMENT_FINDINGS_MAX 20      /* mistakes of a configuration that are shown at once */
#define EXPERIMENT_DEPTH_MAX 48         /* nesting of a configuration; its document adds to it */
#define EXPERIMENT_KEYS_MAX 4096        /* keys of one section; vLLM's server has 350 */
#define REFERRED_BYTES_MAX (16u << 20)  /* bytes that ${...} adds to one configuration */
#define REFERENCES_MAX 32               /* depth of ${...} that leads to another ${...} */
#define EXPERIMENT_GPUS_MAX 1024        /* GPUs of one experiment; also of server.gpus */
#define EXPERIMENT_SERVERS_MAX 64       /* servers of one experiment */
#define TRACE_BYTES_MAX (2047ull << 20) /* a trace sent to a dashboard, whose forms have 2 GiB */
#define TRACES_MAX 4096                 /* files of one profiler; a rank leaves one or two */
#define HARDWARE_FILE_BYTES_MAX (16u << 20) /* /proc/cpuinfo of 8,192 threads */
#define HARDWARE_CPUS_MAX 8192          /* hardware threads listed; Linux has at most 8,192 */
#define HARDWARE_CARDS_MAX 64           /* network cards that are listed */
#define ENGINE_EXTRA_MAX 4096           /* arguments of one server; vLLM has 250 */
#define ENGINE_HELP_BYTES_MAX (16u << 20) /* help of a server; vLLM's is 160 KB */
#define REDACT_VALUES_MAX 1024          /* secrets of one process that are recognised by value */
#define STORE_CONNECT_SECONDS 10        /* for a PostgreSQL server to take a connection */
#define STORE_WRITER_SECONDS 30         /* for another process to finish writing to the store */
#define STORE_PARTITION_RUNS (1 << 20)  /* run numbers per PostgreSQL partition */
#define STORE_DROP_SECONDS 3            /* wait for readers of a partition to be dropped */
#define STORE_SILENT_MS 40000           /* silence of PostgreSQL; more than the wait for a writer */
#define STORE_KEEPALIVE_SECONDS 10      /* seconds between TCP keepalive probes */
#define STORE_KEEPALIVES_MAX 3          /* unanswered probes until the connection is closed */
