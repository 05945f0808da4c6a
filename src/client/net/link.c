/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - see link.h. */
#include "client/net/link.h"

#include <assert.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

static_assert(LINK_NAME_BYTES == IFNAMSIZ, "names of interfaces fit");

/* One question to the driver; its answer replaces what data points to. */
static bool ask(int fd, const char *name, void *data)
{
	struct ifreq request = { .ifr_data = data };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

static enum link_answer ask_flag(int fd, const char *name, uint32_t what, uint32_t bits)
{
	struct ethtool_value value = { .cmd = what };

	if (!ask(fd, name, &value))
		return LINK_UNKNOWN;
	return value.data & bits ? LINK_YES : LINK_NO;
}

void link_look(const char *name, struct link *out)
{
	struct ethtool_ts_info stamps = { .cmd = ETHTOOL_GET_TS_INFO };
	struct ethtool_coalesce wait = { .cmd = ETHTOOL_GCOALESCE };
	struct ifreq request = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*out = (struct link){ .coalesce_us = -1 };
	snprintf(out->name, sizeof(out->name), "%s", name);
	if (fd < 0)
		return;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFFLAGS, &request) == 0)
		out->is_loopback = request.ifr_flags & IFF_LOOPBACK;
	out->gro = ask_flag(fd, name, ETHTOOL_GGRO, UINT32_MAX);
	out->lro = ask_flag(fd, name, ETHTOOL_GFLAGS, ETH_FLAG_LRO);
	if (ask(fd, name, &stamps))
		out->hardware_stamp = stamps.so_timestamping & SOF_TIMESTAMPING_RX_HARDWARE ?
				      LINK_YES : LINK_NO;
	if (ask(fd, name, &wait)) {
		out->coalesce_us = wait.rx_coalesce_usecs;
		out->is_adaptive = wait.use_adaptive_rx_coalesce;
	}
	sock_close(fd);
}

/* The address of an interface, without its port. */
static bool is_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (!a || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

bool link_to(const struct sock_addr *addr, char name[static LINK_NAME_BYTES])
{
	struct sock_addr own = { .len = sizeof(own.storage) };
	struct ifaddrs *all = NULL;
	bool is_found = false;
	int fd = -1;

	name[0] = '\0';
	if (addr->any.sa_family == AF_UNIX)
		return false;
	/* Connecting a datagram socket sends nothing: the kernel only looks up the route. */
	fd = socket(addr->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, &addr->any, addr->len) < 0 ||
	    getsockname(fd, &own.any, &own.len) < 0 || getifaddrs(&all) < 0)
		goto done;
	for (const struct ifaddrs *i = all; i && !is_found; i = i->ifa_next) {
		is_found = is_same_host(i->ifa_addr, &own.any);
		if (is_found)
			snprintf(name, LINK_NAME_BYTES, "%s", i->ifa_name);
	}
done:
	if (all)
		freeifaddrs(all);
	sock_close(fd);
	return is_found;
}
