# SPDX-License-Identifier: Apache-2.0
# awk -f tools/tidy.awk FILE...: rules on single lines and single files of C.
#
# Prints `file:line: what` for lines over 100 columns, trailing blanks, functions over 70 lines,
# files over 1000, calls outside the files that may make them, words that mark unfinished work, and
# third-party headers outside the one file that may include them. Comments and strings are removed
# before calls are looked for.
#
# Two exceptions: a line with a string in it may reach 120 columns, so that texts to be searched for
# are not broken; golden data may have any width. Rows of a `static const` table inside a function
# are data and not part of its length.

BEGIN {
	LINE_MAX = 100; STRING_LINE_MAX = 120; FUNCTION_MAX = 70; FILE_MAX = 1000
	# Calls and the only places (path prefixes) that may make them. base/mem.c ends a program
	# that has no memory, base/clock.c one without a clock, base/err.h has the debugging
	# aid that writes to stderr.
	rule("printf fprintf vprintf vfprintf puts fputs putchar putc fputc perror",
	     "src/cmd/ src/main.c src/core/base/mem.c src/core/base/err.", "only cmd/ prints")
	rule("exit quick_exit abort", "src/cmd/ src/main.c src/core/base/mem.c src/core/base/clock.c",
	     "only cmd/ ends the program")
	rule("_exit", "src/cmd/ src/main.c src/core/base/mem.c src/host/proc/",
	     "only cmd/ ends the program, proc/ a fork of it")
	rule("signal sigaction sigprocmask", "src/cmd/ src/main.c",
	     "only cmd/ installs signal handlers")
	rule("malloc calloc realloc reallocarray strdup strndup", "src/core/base/",
	     "memory comes from base/mem.h, an arena or a slab")
	rule("socket connect accept accept4 bind listen send sendto sendmsg recv recvfrom recvmsg " \
	     "getaddrinfo epoll_create1 epoll_ctl epoll_wait setsockopt",
	     "src/client/net/ src/input/fetch/ src/host/worker/ src/sim/serving/worker.c",
	     "only net/, fetch/ and the two ends of worker/ touch sockets")
	rule("fork vfork execv execve execvp execl execlp popen system posix_spawn posix_spawnp",
	     "src/host/proc/", "only proc/ starts processes")
	rule("srand rand random drand48 time gettimeofday", "src/core/rng/",
	     "random numbers come from rng/, time from base/clock.h")
	# Third-party libraries: one file each.
	library("openssl/ssl", "src/client/net/tls.c"); library("openssl/evp", "src/core/base/codec.c")
	library("curl", "src/input/fetch/fetch.c src/client/load/transport_curl.c")
	library("pcre2", "src/input/encode/regex.c src/input/constrain/pattern.c"); library("utf8proc", "")
	library("turbojpeg", "src/input/media/decoders.c"); library("png", "src/input/media/decoders.c")
	library("webp/", ""); library("gif_lib", ""); library("sndfile", "src/input/media/audio.c")
	library("libav", "src/input/media/video.c"); library("libsw", "src/input/media/video.c")
	library("archive", "src/input/table/unpack.c"); library("zlib", "src/core/base/codec.c")
	library("zstd", "src/input/table/codec.c"); library("snappy", "src/input/table/codec.c")
	library("lz4", "src/input/table/codec.c"); library("brotli/", "src/input/table/codec.c")
	library("yaml.h", "src/core/json/yaml.c"); library("sqlite3", "src/results/store/sqlite.c")
	library("microhttpd", "src/web/server.c")
	library("postgresql/", "src/results/store/postgres.c")
	split("TODO FIXME XXX HACK", debt, " ")
}

function rule(names, where, why,   n, i, word) {
	n = split(names, word, " ")
	for (i = 1; i <= n; i++) { allowed[word[i]] = where; reason[word[i]] = why }
}
function library(name, where) { lib[name] = where }
function report(line, what) { printf "%s:%d: %s\n", FILENAME, line, what }
function starts_any(file, prefixes,   n, i, p) {
	n = split(prefixes, p, " ")
	for (i = 1; i <= n; i++)
		if (index(file, p[i]) == 1) return 1
	return 0
}

FNR == 1 {
	if (last_file != "" && last_line > FILE_MAX)
		printf "%s:%d: %d lines, the limit is %d\n", last_file, last_line, last_line, FILE_MAX
	in_comment = 0; opened = 0; is_src = index(FILENAME, "src/") == 1
	if ($0 !~ /SPDX-License-Identifier: Apache-2\.0/) report(1, "no SPDX line on top")
}
{
	last_file = FILENAME; last_line = FNR
	width()
	words()
	lengths()
	if (/^[ \t]*#[ \t]*include </) third_party()
	code = bare($0)
	if (code ~ /^[a-z].*\(/ && match(code, /[a-z_0-9]+\(/))
		own[FILENAME, substr(code, RSTART, RLENGTH - 1)] = 1
	if (is_src && code ~ /\(/) calls(code)
}
END {
	if (last_line > FILE_MAX)
		printf "%s:%d: %d lines, the limit is %d\n", last_file, last_line, last_line, FILE_MAX
	for (name in lib)
		if (split(users[name], u, " ") > 1 && split(lib[name], places, " ") < 2)
			printf "%s:1: %s is included by more than one file:%s\n", u[2], name, users[name]
}

# A function is the text between braces in column 0.
function lengths() {
	if (/^{/) { opened = FNR; rows = 0; table = 0 }
	if (opened && /^\tstatic const .*= {$/) table = FNR
	if (table && /^\t};/) { rows += FNR - table; table = 0 }
	if (/^}/ && opened) {
		if (FNR - opened - 1 - rows > FUNCTION_MAX)
			report(opened, "function of " FNR - opened - 1 - rows " lines, the limit is " \
				FUNCTION_MAX)
		opened = 0
	}
}

# Columns with tabs of 8; a UTF-8 character counts once.
function width(   text, n, col, cell, i) {
	if (/[ \t]$/) report(FNR, "blanks at the end of the line")
	if (length($0) <= LINE_MAX / 8 || FILENAME ~ /golden/) return
	text = $0
	gsub(/[\200-\277]/, "", text)
	n = split(text, cell, "\t")
	col = 0
	for (i = 1; i <= n; i++) {
		col += length(cell[i])
		if (i < n) col += 8 - col % 8
	}
	if (col > (/"/ ? STRING_LINE_MAX : LINE_MAX))
		report(FNR, col " columns, the limit is " LINE_MAX)
}

function words(   i, low) {
	for (i in debt)
		if ($0 ~ ("(^|[^A-Za-z])" debt[i] "([^A-Za-z]|$)"))
			report(FNR, "\"" debt[i] "\" marks unfinished work")
	low = tolower($0)
	gsub(/"([^"\\]|\\.)*"/, "", low)
	if (low ~ /not (yet )?implemented|unimplemented|placeholder|(^|[^a-z])stub(bed)?([^a-z]|$)/)
		report(FNR, "the wording of unfinished work")
}

# The line without comments and without the content of strings.
function bare(text,   at) {
	if (in_comment) {
		at = index(text, "*/")
		if (!at) return ""
		text = substr(text, at + 2)
		in_comment = 0
	}
	gsub(/'([^'\\]|\\.)+'/, "0", text)
	gsub(/"([^"\\]|\\.)*"/, "\"\"", text)
	gsub(/\/\*[^*]*\*+([^\/*][^*]*\*+)*\//, " ", text)
	at = index(text, "/*")
	if (at) { in_comment = 1; text = substr(text, 1, at - 1) }
	sub(/\/\/.*/, "", text)
	return text
}

# Members (x.send, x->send) and a file's own functions are not the calls that are meant.
function calls(text,   name, before) {
	while (match(text, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/)) {
		before = RSTART > 1 ? substr(text, RSTART - 1, 1) : ""
		name = substr(text, RSTART, RLENGTH - 1)
		sub(/[ \t]+$/, "", name)
		text = substr(text, RSTART + RLENGTH)
		if (before ~ /[.>]/ || !(name in allowed) || (FILENAME, name) in own ||
		    starts_any(FILENAME, allowed[name])) continue
		report(FNR, name "(): " reason[name])
	}
}

function third_party(   name, part) {
	split($0, part, /[<>]/)
	for (name in lib) {
		if (index(part[2], name) != 1) continue
		if (is_src && users[name] !~ (" " FILENAME "( |$)")) users[name] = users[name] " " FILENAME
		if (is_src && lib[name] != "" && !starts_any(FILENAME, lib[name]))
			report(FNR, part[2] " belongs in " lib[name] " alone")
		if (is_src && FILENAME ~ /\.h$/) report(FNR, part[2] " in a header")
	}
}
