/* SPDX-License-Identifier: Apache-2.0 */
/* web/server.h - what starts and ends the HTTP server; its listening socket is w->listener. */
#pragma once
#include <sys/socket.h>

#include "base/err.h"
#include "web/web.h"

/* What carrier_tick looks at; before there are threads. */
void carrier_make(struct web *w);
int carrier_open(struct web *w, struct err *e);
/* No more connections are taken. */
void carrier_quiesce(struct web *w);
/* Nothing may be suspended any more but event streams. */
void carrier_close(struct web *w);

/*
 * "127.0.0.1", "::1": an address without its port. Addresses of IPv4 in IPv6 are those of IPv4; ""
 * for what is none.
 */
void server_address_text(const struct sockaddr_storage *address, char out[static 46]);
/*
 * Whether two connections count as those of one client: they have one address of IPv4, also where
 * it came as one of IPv6, or one /64 of IPv6, which is what a household has.
 */
bool server_is_same_client(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* The same for the same client. */
uint64_t server_client_key(const struct sockaddr_storage *address);
