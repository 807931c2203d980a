/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The RESP server with real sockets: requests whole, cut and by the million; replies that are late,
 * silenced or wrong; always in the order of their questions.
 */
#include "resp_fixture.h"

static struct fixture fixture;

static int set_up(void **state)
{
	(void)state;
	fixture_init(&fixture);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_done(&fixture);
	return 0;
}

static void answers_on_both_sockets(void **state)
{
	int local, remote;

	(void)state;
	fixture_start(&fixture);
	local = connect_unix(&fixture);
	remote = connect_tcp(&fixture);
	ask(local, "*1\r\n$4\r\nPING\r\n", "+PONG\r\n");
	ask(remote, "*2\r\n$4\r\npInG\r\n$2\r\nhi\r\n", "$2\r\nhi\r\n");
	assert_int_equal(stats_of(&fixture).connections, 2);
	close(local);
	close(remote);
	wait_until(closed_count() == 2);
	assert_int_equal(stats_of(&fixture).connections, 0);
	assert_int_equal(stats_of(&fixture).commands, 2);
}

static void answers_byte_by_byte(void **state)
{
	static const char text[] = "*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\nPING \"a b\"\r\n";
	size_t i;
	int fd;

	(void)state;
	fixture_start(&fixture);
	fd = connect_tcp(&fixture);
	for (i = 0; i < sizeof(text) - 1; i++)
		send_bytes(fd, text + i, 1);
	expect(fd, "$5\r\nhello\r\n$3\r\na b\r\n");
	close(fd);
}

static void keeps_binary_arguments(void **state)
{
	static const char text[] = "*2\r\n$4\r\necho\r\n$4\r\n\0\r\n\xff\r\n";
	char got[10];
	int fd;

	(void)state;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	send_bytes(fd, text, sizeof(text) - 1);
	assert_int_equal(receive(fd, got, 10), 10);
	assert_memory_equal(got, "$4\r\n\0\r\n\xff\r\n", 10);
	close(fd);
}

/* A whole megabyte as an argument, in pieces, between small ones. */
static void takes_a_large_argument(void **state)
{
	static char text[1 << 20], got[1 << 20];
	size_t i;
	int fd;

	(void)state;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	for (i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	send_text(fd, "PING\r\n*2\r\n$4\r\nECHO\r\n$1048576\r\n");
	send_bytes(fd, text, sizeof(text));
	send_text(fd, "\r\nPING\r\n");
	expect(fd, "+PONG\r\n$1048576\r\n");
	assert_int_equal(receive(fd, got, sizeof(text)), sizeof(text));
	assert_memory_equal(got, text, sizeof(text));
	expect(fd, "\r\n+PONG\r\n");
	wait_until(stats_of(&fixture).pool_bytes == 0);
	close(fd);
}

enum {
	MILLION = 1000000,
	ECHO_BYTES = 4 + 7 + 2,
	ECHOES_AT_ONCE = 1000,
};

static void *send_a_million(void *data)
{
	static char text[64 * 1024];
	int fd = *(int *)data, i, length = 0;

	for (i = 0; i < MILLION; i++) {
		length += sprintf(text + length, "*2\r\n$4\r\nECHO\r\n$7\r\n%07d\r\n", i);
		if (length > (int)sizeof(text) - 64 || i == MILLION - 1) {
			send_bytes(fd, text, (size_t)length);
			length = 0;
		}
	}
	return NULL;
}

static void answers_a_million_commands_of_one_pipeline(void **state)
{
	static char got[ECHO_BYTES * ECHOES_AT_ONCE], wanted[ECHO_BYTES * ECHOES_AT_ONCE + 1];
	pthread_t sender;
	int fd, other, i, k;

	(void)state;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	other = connect_tcp(&fixture);
	assert_int_equal(pthread_create(&sender, NULL, send_a_million, &fd), 0);
	for (i = 0; i < MILLION; i += ECHOES_AT_ONCE) {
		for (k = 0; k < ECHOES_AT_ONCE; k++)
			sprintf(wanted + k * ECHO_BYTES, "$7\r\n%07d\r\n", i + k);
		assert_int_equal(receive(fd, got, sizeof(got)), sizeof(got));
		assert_memory_equal(got, wanted, sizeof(got));
		if (i % (MILLION / 10) == 0)
			ask(other, "PING\r\n", "+PONG\r\n");
	}
	pthread_join(sender, NULL);
	assert_true(has_nothing(fd));
	close(fd);
	close(other);
}

/* Who sends everything, says that it was all, and only then reads. */
static void answers_who_has_shut_its_own_side(void **state)
{
	static char got[600000];
	size_t length;
	int fd;

	(void)state;
	fixture.options.output_soft_bytes = 4096;
	fixture_start(&fixture);
	fd = connect_tcp(&fixture);
	send_text(fd, "TEST.BIG 3000\r\nTEST.BIG 3000\r\nTEST.BIG 500000\r\nPING\r\n");
	shutdown(fd, SHUT_WR);
	length = receive(fd, got, sizeof(got));
	assert_int_equal(length, 2 * (7 + 3000 + 2) + 9 + 500000 + 2 + 7);
	assert_memory_equal(got + length - 7, "+PONG\r\n", 7);
	close(fd);
}

static void spreads_connections_over_workers(void **state)
{
	char got[256];
	unsigned seen = 0;
	int fd[8], i;

	(void)state;
	fixture.options.workers = 4;
	fixture_start(&fixture);
	for (i = 0; i < 8; i++) {
		fd[i] = connect_unix(&fixture);
		send_text(fd[i], "TEST.WHO\r\n");
	}
	for (i = 0; i < 8; i++) {
		unsigned uid, pid, is_authenticated, scopes, worker;
		ssize_t length;

		wait_until(!has_nothing(fd[i]));
		length = recv(fd[i], got, sizeof(got) - 1, 0);
		assert_true(length > 0);
		got[length] = '\0';
		assert_int_equal(sscanf(got, "*6\r\n:%u\r\n:%u\r\n:%u\r\n:%u\r\n:%u", &uid, &pid,
					&is_authenticated, &scopes, &worker),
				 5);
		assert_int_equal(uid, getuid());
		assert_int_equal(pid, getpid());
		assert_int_equal(is_authenticated, 0);
		seen |= 1u << worker;
	}
	assert_int_equal(seen, 0xf);
	for (i = 0; i < 8; i++)
		close(fd[i]);
}

/* ---- late replies */

static void keeps_the_order_of_late_replies(void **state)
{
	int fd, other;

	(void)state;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	other = connect_unix(&fixture);
	send_text(fd, "PING\r\nTEST.LATER 1\r\nPING\r\nPING\r\nTEST.LATER 2\r\nPING\r\n");
	expect(fd, "+PONG\r\n");
	wait_until(kept_count() == 2);
	/* The second first, by a connection of the other worker; nothing may come of it yet. */
	ask(other, "TEST.FINISH 2\r\n", ":1\r\n");
	ask(other, "PING\r\n", "+PONG\r\n");
	assert_true(has_nothing(fd));
	/* The first by a thread that is none of the server's. */
	assert_int_equal(finish(1), 1);
	expect(fd, ":1\r\n+PONG\r\n+PONG\r\n:2\r\n+PONG\r\n");
	ask(fd, "PING\r\n", "+PONG\r\n");
	close(fd);
	close(other);
}

static void finishes_its_own_late_reply(void **state)
{
	int fd;

	(void)state;
	fixture.options.workers = 1;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	ask(fd, "TEST.LATER 5\r\nPING\r\nTEST.FINISH 5\r\nPING\r\n",
	    ":5\r\n+PONG\r\n:1\r\n+PONG\r\n");
	ask(fd, "PING\r\nTEST.AT-ONCE\r\nPING\r\nTEST.AT-ONCE\r\n",
	    "+PONG\r\n+at once\r\n+PONG\r\n+at once\r\n");
	close(fd);
}

static void wakes_another_of_the_same_worker(void **state)
{
	int fd, other;

	(void)state;
	fixture.options.workers = 1;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	other = connect_unix(&fixture);
	send_text(fd, "TEST.LATER 6\r\n");
	wait_until(kept_count() == 1);
	ask(other, "TEST.FINISH 6\r\n", ":1\r\n");
	expect(fd, ":6\r\n");
	close(fd);
	close(other);
}

static void bounds_what_a_connection_awaits(void **state)
{
	int fd;

	(void)state;
	fixture.options.awaited_max = 2;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	send_text(fd, "TEST.LATER 1\r\nTEST.LATER 1\r\nTEST.LATER 1\r\nPING\r\n");
	wait_until(kept_count() == 2 && stats_of(&fixture).commands == 4);
	assert_int_equal(finish(1), 2);
	expect(fd, ":1\r\n:1\r\n-ERR too many replies are awaited\r\n+PONG\r\n");
	close(fd);
}

static void goes_on_without_a_client_that_awaits(void **state)
{
	int fd, other;

	(void)state;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	other = connect_tcp(&fixture);
	send_text(fd, "TEST.LATER 1\r\nPING\r\nTEST.LATER 2\r\n");
	wait_until(kept_count() == 2);
	close(fd);
	wait_until(closed_count() == 1);
	assert_true(board.last_closed != 0);
	assert_int_equal(finish(1) + finish(2), 2);
	ask(other, "PING\r\n", "+PONG\r\n");
	close(other);
}

/* Much more than fits is ready behind a reply that is awaited: nothing is read, nothing written. */
static void notices_the_end_of_a_client_that_it_does_not_read(void **state)
{
	int fd, remote;

	(void)state;
	fixture.options.output_soft_bytes = 1024;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	remote = connect_tcp(&fixture);
	send_text(fd, "TEST.LATER 1\r\nTEST.BIG 2000\r\nPING\r\n");
	send_text(remote, "TEST.LATER 1\r\nTEST.BIG 2000\r\nPING\r\n");
	wait_until(kept_count() == 2 && stats_of(&fixture).commands == 4);
	/* Bytes that come meanwhile do not matter. */
	send_text(fd, "PING\r\n");
	send_text(remote, "PING\r\n");
	close(fd);
	wait_until(closed_count() == 1);
	/* A reset instead of an end. */
	assert_int_equal(setsockopt(remote, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
				    sizeof(struct linger)),
			 0);
	close(remote);
	wait_until(closed_count() == 2);
	assert_int_equal(finish(1), 2);
}

static void goes_on_with_what_waited_behind_a_late_reply(void **state)
{
	static char got[2006]; /* $1997, its line ends, and as many bytes */
	int fd, i;

	(void)state;
	fixture.options.output_soft_bytes = 1024;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	send_text(fd, "TEST.LATER 1\r\n");
	for (i = 0; i < 20; i++)
		send_text(fd, "TEST.BIG 1997\r\n");
	wait_until(kept_count() == 1 && stats_of(&fixture).commands >= 2);
	assert_int_equal(finish(1), 1);
	expect(fd, ":1\r\n");
	for (i = 0; i < 20; i++) {
		assert_int_equal(receive(fd, got, sizeof(got)), sizeof(got));
		assert_memory_equal(got, "$1997\r\n", 7);
		assert_memory_equal(got + 2004, "\r\n", 2);
	}
	ask(fd, "PING\r\n", "+PONG\r\n");
	close(fd);
}

/* ---- wrong and silent commands */

static void answers_for_commands_that_do_not(void **state)
{
	int fd;

	(void)state;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	ask(fd,
	    "TEST.WRONG 0\r\nPING\r\nTEST.WRONG 2\r\nPING\r\nTEST.WRONG 1\r\nTEST.HALF\r\nPING\r\n",
	    "-ERR internal error: not one whole reply\r\n+PONG\r\n"
	    "-ERR internal error: not one whole reply\r\n+PONG\r\n:0\r\n"
	    "-ERR internal error: not one whole reply\r\n+PONG\r\n");
	close(fd);
}

static void stays_silent_when_told_to(void **state)
{
	int fd;

	(void)state;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	ask(fd, "CLIENT REPLY SKIP\r\nPING 1\r\nPING 2\r\n", "$1\r\n2\r\n");
	ask(fd, "CLIENT REPLY SKIP\r\nTEST.AT-ONCE\r\nPING 3\r\n", "$1\r\n3\r\n");
	ask(fd,
	    "CLIENT REPLY OFF\r\nPING\r\nTEST.AT-ONCE\r\nTEST.LATER 1\r\nCLIENT REPLY SKIP\r\n"
	    "NOTHING\r\nTEST.FINISH 1\r\nCLIENT REPLY ON\r\nPING 4\r\n",
	    "+OK\r\n$1\r\n4\r\n");
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(answers_on_both_sockets),
		TEST(answers_byte_by_byte),
		TEST(keeps_binary_arguments),
		TEST(takes_a_large_argument),
		TEST(answers_a_million_commands_of_one_pipeline),
		TEST(answers_who_has_shut_its_own_side),
		TEST(spreads_connections_over_workers),
		TEST(keeps_the_order_of_late_replies),
		TEST(finishes_its_own_late_reply),
		TEST(wakes_another_of_the_same_worker),
		TEST(bounds_what_a_connection_awaits),
		TEST(goes_on_without_a_client_that_awaits),
		TEST(notices_the_end_of_a_client_that_it_does_not_read),
		TEST(goes_on_with_what_waited_behind_a_late_reply),
		TEST(answers_for_commands_that_do_not),
		TEST(stays_silent_when_told_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
