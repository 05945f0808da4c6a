/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/login.h - who sends a request, and whether they may; how a browser gets its cookie. Private
 * to web/.
 */
#pragma once
#include "web/exchange.h"

/* Fills who and role of the request. False: they may not do this, which is answered. */
bool login_check(struct exchange *x);
/*
 * The address of a page that has a token in its query string, as the dashboard prints it: answered
 * with the cookie and the same address without the token, so that it stays in no history and in no
 * Referer. False: there is none.
 */
bool login_by_address(struct exchange *x);
