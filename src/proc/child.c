/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - see child.h. */
#include "proc/child.h"

#include "proc/keeper.h"

#define LOOK_MS 50 /* between two looks at cancel */

int child_run(const struct child_opts *o, struct err *e)
{
	const struct keeper_opts how = {
		.argv = o->argv, .envp = o->envp, .out_fd = o->out_fd, .err_fd = o->err_fd,
		.follow_fd = -1, .grace_s = o->grace_s, .leaves_rest = true,
	};
	struct keeper_end end = { 0 };
	struct keeper *k;

	if (keeper_start(&how, &k, NULL, e) < 0)
		return -1;
	while (!keeper_has_ended(k, LOOK_MS, &end)) {
		if (!o->cancel || !atomic_load(o->cancel))
			continue;
		keeper_stop(k, NULL, NULL);
		return err_set(e, ERR_CANCELLED, "%s was stopped", o->argv[0]);
	}
	if (keeper_stop(k, NULL, e) < 0)
		return -1;
	if (!end.is_known)
		return err_set(e, ERR_RUN, "%s was killed together with its keeper", o->argv[0]);
	return end.code < 0 ? 128 - end.code : end.code;
}
