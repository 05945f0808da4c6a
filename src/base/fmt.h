/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fmt.h - numbers as people and as Python write them, with a decimal point whatever
 * locale the host program of the library has chosen.
 */
#pragma once
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define FMT_F64_BYTES 32

/*
 * The shortest decimal that reads back as v, spelled as CPython's repr(float):
 * always with ".0" or an exponent; the exponent form (1e-05, 1e+16) when the
 * decimal exponent is below -4 or at least 16; inf, -inf, nan. Returns out.
 */
char *fmt_f64(char out[FMT_F64_BYTES], double v);

/* 950 ns, 12.3 us, 4.56 ms, 1.23 s. Returns out. */
char *fmt_duration(char out[FMT_F64_BYTES], int64_t ns);
/* 1.5 s, 42 s, 12 min, 3.4 h: for times to come, and for long ones. Returns out. */
char *fmt_rough_time(char out[FMT_F64_BYTES], double s);

/* The C locale: a decimal point, and letters of ASCII. Never freed. */
locale_t fmt_c_locale(void);
/* vsnprintf in that locale; all text that is made (buf_printf, err_set) goes through it. */
__attribute__((format(printf, 3, 0)))
int fmt_vtext(char *out, size_t cap, const char *fmt, va_list ap);
