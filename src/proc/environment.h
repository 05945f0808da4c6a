/* SPDX-License-Identifier: Apache-2.0 */
/* proc/environment.h - our environment with lines of others' in it. */
#pragma once

/*
 * Ours, where each "NAME=VALUE" of first and then of second (lists ended by NULL, or NULL) stands in
 * place of the line of that name. The caller frees the list; its lines are borrowed.
 */
char **environment_with(char *const *first, char *const *second);
