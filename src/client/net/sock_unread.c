/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sock_unread.c - TCP's view of a connection: see sock.h. Separate, because <linux/tcp.h> and
 * <netinet/tcp.h> exclude each other.
 */
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include "client/net/sock.h"

int64_t sock_unread(int fd, uint64_t *acked)
{
	struct tcp_info info = { 0 };
	socklen_t n = sizeof(info);
	int unread;

	*acked = 0;
	if (ioctl(fd, SIOCOUTQ, &unread) < 0)
		return -1;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0)
		*acked = info.tcpi_bytes_acked;
	return unread;
}

struct sock_path sock_path(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t n = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0)
		return (struct sock_path){ 0 };
	/* In microseconds; all ones until the first acknowledgement. */
	return (struct sock_path){ info.tcpi_total_retrans, info.tcpi_rcv_ooopack,
				   info.tcpi_min_rtt == UINT32_MAX ? 0 :
				   (int64_t)info.tcpi_min_rtt * 1000 };
}
