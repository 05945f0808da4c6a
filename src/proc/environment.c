/* SPDX-License-Identifier: Apache-2.0 */
/* environment.c - see environment.h. */
#include "proc/environment.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

static void set_variable(char **envp, size_t *n, char *line)
{
	size_t name = strcspn(line, "=") + 1, i = 0;

	while (i < *n && strncmp(envp[i], line, name) != 0)
		i++;
	envp[i] = line;
	*n += i == *n;
}

char **environment_with(char *const *first, char *const *second)
{
	size_t n = words_count(environ);
	char **envp = mem_array(n + words_count(first) + words_count(second) + 1, sizeof(*envp));

	memcpy(envp, environ, n * sizeof(*envp));
	for (size_t i = 0; first && first[i]; i++)
		set_variable(envp, &n, first[i]);
	for (size_t i = 0; second && second[i]; i++)
		set_variable(envp, &n, second[i]);
	return envp;
}
