/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete.c - completion scripts for bash and zsh, written from the rows.
 *
 * Completed: the words of the commands, option names, choices, and files or
 * directories where the value is named FILE or DIR. Other values are left
 * alone. The bash script needs nothing but bash; the zsh one uses _arguments.
 */
#include "core/opt/opt_internal.h"

#include <assert.h>

static bool is_shown(const struct opt *o)
{
	return !(o->flags & (OPT_HIDDEN | OPT_LATER)) && !o->alias_of;
}

static bool has_value(const struct opt *o)
{
	return o->kind != OPT_FLAG && o->kind != OPT_TRI && o != &opt_builtin[OPT_BUILTIN_HELP];
}

static bool is_path(const struct opt *o, const char *what)
{
	char arg[96];

	return strstr(opt_arg(o, arg), what) != NULL;
}

/* ---- bash ---- */

static void bash_values(const struct opt_set *set, struct buf *out)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->row[i];

		if (!is_shown(o) || o->flags & OPT_POSITIONAL || !has_value(o))
			continue;
		if (o->choices) {
			buf_printf(out, "\t\t--%s) words='", o->name);
			for (size_t j = 0; o->choices[j]; j++)
				buf_printf(out, "%s%s", j ? " " : "", o->choices[j]);
			buf_add_text(out, "' ;;\n");
		} else {
			buf_printf(out, "\t\t--%s) how=%s ;;\n", o->name,
				   is_path(o, "FILE") ? "file" : is_path(o, "DIR") ? "dir" : "any");
		}
	}
}

static void bash_foreign_values(const struct opt_foreign_rows *rows, struct buf *out)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct opt_foreign_row *r = &rows->row[i];

		if (!r->has_value)
			continue;
		if (*r->choices)
			buf_printf(out, "\t\t--%s) words='%s' ;;\n", r->name, r->choices);
		else
			buf_printf(out, "\t\t--%s) how=any ;;\n", r->name);
	}
}

static void bash_names(const struct opt_set *set, const struct opt_foreign_rows *rows,
		       struct buf *out)
{
	buf_add_text(out, "\t\t*) words='");
	for (size_t i = 0; i < set->n + OPT_BUILTINS; i++) {
		const struct opt *o = opt_row_at(set, i);

		if (!is_shown(o) || o->flags & OPT_POSITIONAL)
			continue;
		buf_printf(out, "--%s ", o->name);
		if (o->kind == OPT_TRI)
			buf_printf(out, "--no-%s ", o->name);
	}
	for (size_t i = 0; i < rows->n; i++) {
		buf_printf(out, "--%s ", rows->row[i].name);
		if (rows->row[i].is_switch)
			buf_printf(out, "--no-%s ", rows->row[i].name);
	}
	buf_add_text(out, "' how=names ;;\n");
}

/* The possible first bare words, if a positional has choices. */
static void bash_bare_words(const struct opt_set *set, struct buf *out)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->row[i];

		if (!(o->flags & OPT_POSITIONAL))
			continue;
		for (size_t j = 0; o->choices && o->choices[j]; j++)
			buf_printf(out, "%s%s", j ? " " : "", o->choices[j]);
		return;
	}
}

static void write_bash(const struct opt_set *const *sets, size_t n, const char *program,
		       struct buf *out)
{
	buf_printf(out,
		   "# bash completion for %s; use: source <(%s completion bash)\n"
		   "_%s()\n{\n"
		   "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		   "\tlocal line= words= bare= how=word i command rest\n"
		   "\tCOMPREPLY=()\n"
		   "\t# --name=value arrives as three words\n"
		   "\tif [[ $cur == = ]]; then\n\t\tcur=\n"
		   "\telif [[ $prev == = ]]; then\n\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n\tfi\n"
		   "\t[[ $prev == --* ]] && prev=${prev//_/-}\n"
		   "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		   "\t\t[[ ${COMP_WORDS[i]} == -* ]] && break\n"
		   "\t\tline+=\"${line:+ }${COMP_WORDS[i]}\"\n"
		   "\tdone\n"
		   "\tcase \"$line \" in\n", program, program, program);
	for (size_t i = 0; i < n; i++) {
		struct arena a = { 0 };
		struct opt_foreign_rows rows = opt_foreign_rows(sets[i]->foreign, &a);

		buf_printf(out, "\t'%s '*)\n\t\tbare='", sets[i]->command);
		bash_bare_words(sets[i], out);
		buf_add_text(out, "'\n\t\tcase $prev in\n");
		bash_values(sets[i], out);
		bash_foreign_values(&rows, out);
		bash_names(sets[i], &rows, out);
		buf_add_text(out, "\t\tesac ;;\n");
		arena_release(&a);
	}
	buf_add_text(out, "\t*)\n\t\twhile read -r command; do\n"
			  "\t\t\t[[ -z $line || $command == \"$line \"* ]] || continue\n"
			  "\t\t\trest=${command#\"$line\"}\n\t\t\trest=${rest# }\n"
			  "\t\t\twords+=\"${rest%% *} \"\n"
			  "\t\tdone <<'END'\n");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s\n", sets[i]->command);
	buf_printf(out,
		   "END\n\t\t;;\n\tesac\n"
		   "\tcase $how in\n"
		   "\tfile | dir) ;;\n"
		   "\tany) return ;;\n"
		   "\tnames)\n\t\tif [[ $cur != -* && -n $bare ]]; then\n\t\t\twords=$bare\n"
		   "\t\telif [[ $cur != -* && -n $cur ]]; then\n\t\t\thow=file\n\t\tfi ;;\n"
		   "\tesac\n"
		   "\tif [[ $how == file || $how == dir ]]; then\n"
		   "\t\tmapfile -t COMPREPLY < <(compgen \"-${how:0:1}\" -- \"$cur\")\n"
		   "\t\tcompopt -o filenames 2>/dev/null\n"
		   "\telse\n"
		   "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\" | sort -u)\n"
		   "\tfi\n"
		   "}\n"
		   "complete -F _%s %s\n", program, program);
}

/* ---- zsh ---- */

/* Text inside a single-quoted _arguments spec; special are characters it wants escaped. */
static void zsh_text(struct buf *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'') {
			buf_add_text(out, "'\\''");
			continue;
		}
		if (strchr(special, *text))
			buf_add_char(out, '\\');
		buf_add_char(out, *text);
	}
}

static void zsh_value(const struct opt *o, struct buf *out)
{
	char arg[96];

	buf_add_char(out, ':');
	zsh_text(out, opt_arg(o, arg), ":\\");
	buf_add_char(out, ':');
	if (o->choices) {
		buf_add_char(out, '(');
		for (size_t i = 0; o->choices[i]; i++) {
			buf_add_text(out, i ? " " : "");
			zsh_text(out, o->choices[i], "\\ ()");
		}
		buf_add_char(out, ')');
	} else if (is_path(o, "FILE")) {
		buf_add_text(out, "_files");
	} else if (is_path(o, "DIR")) {
		buf_add_text(out, "_files -/");
	} else {
		buf_add_char(out, ' ');
	}
}

static void zsh_option(const struct opt *o, const char *prefix, struct buf *out)
{
	if (o->flags & OPT_POSITIONAL) {
		buf_add_text(out, o->kind == OPT_LIST ? "\t\t'*" : "\t\t'");
		zsh_value(o, out);
		buf_add_text(out, "' \\\n");
		return;
	}
	buf_printf(out, "\t\t'%s--%s%s%s[", o->kind == OPT_LIST ? "*" : "", prefix, o->name,
		   has_value(o) ? "=" : "");
	zsh_text(out, o->help, "[]\\");
	buf_add_char(out, ']');
	if (has_value(o))
		zsh_value(o, out);
	buf_add_text(out, "' \\\n");
}

static void zsh_foreign(const struct opt_foreign *f, struct buf *out)
{
	struct arena a = { 0 };
	struct opt_foreign_rows rows = opt_foreign_rows(f, &a);

	for (size_t i = 0; i < rows.n; i++) {
		const struct opt_foreign_row *r = &rows.row[i];

		for (int is_off = 0; is_off < 1 + r->is_switch; is_off++) {
			buf_printf(out, "\t\t'--%s%s%s[", is_off ? "no-" : "", r->name,
				   r->has_value ? "=" : "");
			zsh_text(out, r->help, "[]\\");
			buf_printf(out, "]%s", r->has_value ? *r->choices ? ":value:(" : ":value: " :
				   "");
			buf_printf(out, "%s%s' \\\n", r->has_value ? r->choices : "",
				   r->has_value && *r->choices ? ")" : "");
		}
	}
	arena_release(&a);
}

static void zsh_function_name(const struct opt_set *set, const char *program, struct buf *out)
{
	buf_printf(out, "_%s_", program);
	for (const char *p = set->command; *p; p++)
		buf_add_char(out, *p == ' ' || *p == '-' ? '_' : *p);
}

static unsigned count_words(const char *command)
{
	unsigned n = 1;

	for (; *command; command++)
		n += *command == ' ';
	return n;
}

static void zsh_dispatch(const struct opt_set *set, const char *program, struct buf *out)
{
	unsigned n = count_words(set->command);

	buf_printf(out, "\tif (( CURRENT > %u )) && [[ \"${words[2,%u]}\" == '%s' ]]; then\n",
		   n + 1, n + 1, set->command);
	buf_printf(out, "\t\tshift %u words\n\t\t(( CURRENT -= %u ))\n\t\t", n, n);
	zsh_function_name(set, program, out);
	buf_add_text(out, "\n\t\treturn\n\tfi\n");
}

static void write_zsh(const struct opt_set *const *sets, size_t n, const char *program,
		      struct buf *out)
{
	buf_printf(out, "#compdef %s\n# zsh completion for %s; use: source <(%s completion zsh)\n",
		   program, program, program);
	for (size_t i = 0; i < n; i++) {
		zsh_function_name(sets[i], program, out);
		buf_add_text(out, "()\n{\n\t_arguments \\\n");
		for (size_t j = 0; j < sets[i]->n + OPT_BUILTINS; j++) {
			const struct opt *o = opt_row_at(sets[i], j);

			if (!is_shown(o))
				continue;
			zsh_option(o, "", out);
			if (o->kind == OPT_TRI)
				zsh_option(o, "no-", out);
		}
		zsh_foreign(sets[i]->foreign, out);
		buf_add_text(out, "\t\t&& return 0\n\treturn 1\n}\n");
	}
	buf_printf(out, "_%s()\n{\n\tlocal command rest line\n\tlocal -a found\n", program);
	/* Longer commands first would matter only if one command were the start of another. */
	for (size_t i = 0; i < n; i++)
		zsh_dispatch(sets[i], program, out);
	buf_add_text(out, "\tline=\"${(j: :)words[2,CURRENT-1]}\"\n\tfor command in");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, " '%s'", sets[i]->command);
	buf_printf(out,
		   "; do\n\t\t[[ -z $line || $command == \"$line \"* ]] || continue\n"
		   "\t\trest=${command#\"$line\"}\n\t\trest=${rest# }\n"
		   "\t\tfound+=(${rest%%%% *})\n\tdone\n\tcompadd -- ${(u)found}\n}\n"
		   "compdef _%s %s\n", program, program);
}

int opt_completion(const struct opt_set *const *sets, size_t n, const char *program,
		   const char *shell, struct buf *out, struct err *e)
{
	assert(n > 0);
	if (strcmp(shell, "bash") == 0)
		write_bash(sets, n, program, out);
	else if (strcmp(shell, "zsh") == 0)
		write_zsh(sets, n, program, out);
	else
		return err_set(e, ERR_USAGE, "shell: expected bash or zsh, got '%.60s'", shell);
	return 0;
}
