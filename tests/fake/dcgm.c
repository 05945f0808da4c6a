/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dcgm.c - stands in for the library of NVIDIA's DCGM and its host engine: the calls that
 * host/gpu/dcgm.c makes, and figures from $FAKE_DCGM_STATE, a text file that is read anew at each
 * call:
 *
 *   count 2          GPUs, with the UUIDs that nvml.c gives them, counted from the last
 *   down             there is no host engine
 *   0 1002 0.5       GPU 0: field 1002 is 0.5; a field without a line has no data
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uintptr_t handle;
enum { OK = 0, BADPARAM = -1, NO_DATA = -35, CONNECTION_NOT_VALID = -21, VER_MISMATCH = -11 };
#define ENGINE ((handle)7)
#define GROUP ((handle)9)
#define VERSION(type, n) ((unsigned)sizeof(type) | (unsigned)(n) << 24)

struct connect_how { unsigned version, persists, timeout_ms, is_socket; };
struct field_value {
	unsigned version;
	unsigned short field, type;
	int status;
	int64_t at_us;
	union { int64_t i; double d; char text[256]; char bytes[4096]; } is;
};

static int watched;

/* What the file says of a GPU's field; "count": how many GPUs, "down": whether it is there. */
static int find(const char *head, char value[64])
{
	const char *path = getenv("FAKE_DCGM_STATE");
	FILE *f = path ? fopen(path, "r") : NULL;
	char line[256];
	int found = 0;

	while (f && fgets(line, sizeof line, f)) {
		size_t n = strlen(head);

		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, head, n) != 0 || (line[n] && line[n] != ' '))
			continue;
		snprintf(value, 64, "%s", line[n] ? line + n + 1 : "");
		found = 1;
	}
	if (f)
		fclose(f);
	return found;
}

static int count(void)
{
	char value[64];

	return find("count", value) ? atoi(value) : 0;
}

int dcgmInit(void) { return OK; }

int dcgmConnect_v2(const char *address, struct connect_how *how, handle *out)
{
	char value[64];

	if (strcmp(address, "127.0.0.1") != 0 || how->is_socket)
		return BADPARAM;
	if (how->version != VERSION(struct connect_how, 2))
		return VER_MISMATCH;
	if (find("down", value))
		return CONNECTION_NOT_VALID;
	*out = ENGINE;
	return OK;
}

int dcgmDisconnect(handle engine) { return engine == ENGINE && !watched ? OK : BADPARAM; }

int dcgmGetAllSupportedDevices(handle engine, unsigned *id, int *n)
{
	*n = count();
	for (int i = 0; i < *n; i++)
		id[i] = (unsigned)i;
	return engine == ENGINE ? OK : BADPARAM;
}

int dcgmFieldGroupCreate(handle engine, int n, unsigned short *field, const char *name, handle *out)
{
	*out = GROUP;
	return engine == ENGINE && n > 0 && field[0] && *name ? OK : BADPARAM;
}

int dcgmFieldGroupDestroy(handle engine, handle group)
{
	return engine == ENGINE && group == GROUP ? OK : BADPARAM;
}

int dcgmWatchFields(handle engine, handle gpus, handle group, long long every_us, double kept_s,
		    int samples)
{
	if (engine != ENGINE || gpus != 0x7fffffff || group != GROUP || every_us <= 0 ||
	    kept_s <= 0 || samples <= 0)
		return BADPARAM;
	watched++;
	return OK;
}

int dcgmUnwatchFields(handle engine, handle gpus, handle group)
{
	watched--;
	return engine == ENGINE && gpus == 0x7fffffff && group == GROUP ? OK : BADPARAM;
}

int dcgmUpdateAllFields(handle engine, int waits)
{
	(void)waits;
	return engine == ENGINE ? OK : BADPARAM;
}

static void fill(int gpu, struct field_value *v)
{
	char head[32], value[64];

	v->status = NO_DATA;
	if (v->field == 54) {
		v->type = 's';
		v->status = OK;
		snprintf(v->is.text, sizeof v->is.text, "GPU-a000%04x-fa4e-4e5e-8000-%012x",
			 0x1111 * gpu, (unsigned)gpu);
		return;
	}
	snprintf(head, sizeof head, "%d %u", gpu, v->field);
	if (!find(head, value))
		return;
	v->status = OK;
	v->type = v->field < 1009 ? 'd' : 'i';
	if (v->type == 'd')
		v->is.d = atof(value);
	else
		v->is.i = atoll(value);
}

int dcgmGetLatestValuesForFields(handle engine, int id, unsigned short *field, unsigned n,
				 struct field_value *value)
{
	if (engine != ENGINE || !watched || id < 0 || id >= count())
		return BADPARAM;
	for (unsigned i = 0; i < n; i++) {
		if (value[i].version != VERSION(struct field_value, 1))
			return VER_MISMATCH;
		value[i].field = field[i];
		fill(count() - 1 - id, &value[i]);
	}
	return OK;
}
