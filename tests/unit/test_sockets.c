/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets as a supervisor would have opened them, and which server they are taken to be for. */
#include "test.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/sockets.h"

enum { HANDED_MAX = 4, IS_RESP = 'r', IS_HTTP = 'h' };

/* What is handed over: `u` a Unix socket, `t` TCP, `6` the same for IPv6, `l` TCP on the port of
 * listen.tcp, `d` one of datagrams, `n` one that does not listen. wanted: which server's each is.
 */
static const struct row {
	const char *name;
	const char *kinds;
	const char *names[HANDED_MAX];
	const char *wanted; /* NULL: refused */
	bool has_unix, has_tcp;
} rows[] = {
	{ "nothing", "", { "" }, "", false, false },
	{ "a Unix socket", "u", { "" }, "r", true, false },
	{ "TCP", "t", { "" }, "h", false, false },
	{ "TCP over IPv6", "6", { "" }, "h", false, false },
	{ "the port of listen.tcp", "l", { "" }, "r", false, true },
	{ "one unit for all",
	  "utl",
	  { "sluiced.socket", "sluiced.socket", "sluiced.socket" },
	  "rhr",
	  true,
	  true },
	{ "TCP by its name", "t", { "resp" }, "r", false, true },
	{ "a Unix socket by its name", "u", { "http" }, "h", false, false },
	{ "the port of listen.tcp, but another name", "l", { "http" }, "h", false, false },
	{ "two for RESP", "uu", { "", "" }, "rr", true, false },
	{ "two for HTTP", "tt", { "", "" }, NULL, false, false },
	{ "two for HTTP, one by its name", "tu", { "", "http" }, NULL, false, false },
	{ "datagrams", "d", { "resp" }, NULL, false, false },
	{ "one that does not listen", "un", { "", "" }, NULL, false, false },
};

static struct setting_listen listen_setting;

static int open_one(char kind)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	int type = kind == 'd' ? SOCK_DGRAM : SOCK_STREAM;
	int domain = kind == 'u' ? AF_UNIX : kind == '6' ? AF_INET6 : AF_INET;
	int fd = socket(domain, type, 0), err;

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* A Unix socket without a name gets an abstract one. */
	if (domain == AF_UNIX)
		err = bind(fd, (struct sockaddr *)&local, sizeof(local.sun_family));
	else if (domain == AF_INET6)
		err = bind(fd, (struct sockaddr *)&v6, sizeof(v6));
	else
		err = bind(fd, (struct sockaddr *)&v4, sizeof(v4));
	assert_int_equal(err, 0);
	if (kind != 'd' && kind != 'n')
		assert_int_equal(listen(fd, 1), 0);
	if (kind == 'l') {
		socklen_t length = sizeof(v4);

		assert_int_equal(getsockname(fd, (struct sockaddr *)&v4, &length), 0);
		listen_setting.tcp.port = ntohs(v4.sin_port);
	}
	return fd;
}

static void each_goes_to_the_server_it_is_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];
		struct inherited inherited[HANDED_MAX] = { 0 };
		size_t count = strlen(row->kinds), resp = 0;
		struct trouble trouble = { 0 };
		struct sockets sockets;
		int err;

		listen_setting = (struct setting_listen){ .tcp = { .port = 0 } };
		for (size_t at = 0; at < count; at++) {
			char kind = row->kinds[at];

			inherited[at] = (struct inherited){
				.fd = open_one(kind),
				.domain = kind == 'u'   ? AF_UNIX
					  : kind == '6' ? AF_INET6
							: AF_INET,
				.type = kind == 'd' ? SOCK_DGRAM : SOCK_STREAM,
				.is_listening = kind != 'd' && kind != 'n',
			};
			strcpy(inherited[at].name, row->names[at]);
		}
		err = sockets_sort(inherited, count, &listen_setting, &sockets, &trouble);
		check_row_equal(row, err, row->wanted ? 0 : -EINVAL);
		check_row(row, !err == !trouble.cause[0] && !err == !trouble.remedy[0]);
		for (size_t at = 0; at < count; at++) {
			if (!err && row->wanted[at] == IS_RESP)
				check_row_equal(row, sockets.resp[resp++], inherited[at].fd);
			if (!err && row->wanted[at] == IS_HTTP)
				check_row_equal(row, sockets.http, inherited[at].fd);
			close(inherited[at].fd);
		}
		if (err)
			continue;
		check_row_equal(row, sockets.resp_count, resp);
		check_row_equal(row, sockets.has_resp_unix, row->has_unix);
		check_row_equal(row, sockets.has_resp_tcp, row->has_tcp);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_goes_to_the_server_it_is_for),
	};

	return cmocka_run_group_tests_name("sockets", tests, NULL, NULL);
}
