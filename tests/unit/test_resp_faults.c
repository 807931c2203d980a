/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The RESP server against clients that do not take, do not end, send nonsense or are too many: each
 * hurts itself only, and memory stays within its bounds.
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

/* ---- output */

enum {
	BIG_BYTES = 64 * 1024,
	BIG_REPLY_BYTES = 8 + BIG_BYTES + 2, /* $65536, its line ends, and as many bytes */
	BIG_COUNT = 1000,
};

static void *send_big_requests(void *data)
{
	int fd = *(int *)data, i;

	for (i = 0; i < BIG_COUNT; i++)
		send_text(fd, "TEST.BIG 65536\r\n");
	return NULL;
}

/* 64 MB are asked for by who does not read, and arrive once it does. */
static void lets_a_slow_reader_wait_for_itself(void **state)
{
	static char got[BIG_REPLY_BYTES];
	struct resp_server_stats stats;
	pthread_t sender;
	int slow, other, i;

	(void)state;
	fixture.options.workers = 1;
	fixture.options.output_soft_bytes = 1 << 20;
	fixture_start(&fixture);
	slow = connect_unix(&fixture);
	other = connect_unix(&fixture);
	assert_int_equal(pthread_create(&sender, NULL, send_big_requests, &slow), 0);
	wait_until(stats_of(&fixture).pool_bytes > 1 << 20);
	for (i = 0; i < 100; i++)
		ask(other, "PING\r\n", "+PONG\r\n");
	stats = stats_of(&fixture);
	assert_true(stats.commands < 200);
	assert_true(stats.pool_bytes < 4 << 20);
	for (i = 0; i < BIG_COUNT; i++) {
		assert_int_equal(receive(slow, got, sizeof(got)), sizeof(got));
		assert_memory_equal(got, "$65536\r\n", 8);
	}
	pthread_join(sender, NULL);
	ask(slow, "PING\r\n", "+PONG\r\n");
	assert_int_equal(stats_of(&fixture).closed_full, 0);
	close(slow);
	close(other);
	wait_until(stats_of(&fixture).pool_bytes == 0);
}

static void closes_who_asks_for_more_than_can_be(void **state)
{
	int fd, other;

	(void)state;
	fixture.options.output_hard_bytes = 1 << 20;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	other = connect_unix(&fixture);
	send_text(fd, "TEST.BIG 2097152\r\n");
	expect_end(fd);
	assert_int_equal(stats_of(&fixture).closed_full, 1);
	ask(other, "PING\r\n", "+PONG\r\n");
	close(fd);
	close(other);
}

static void closes_who_takes_nothing_for_long(void **state)
{
	int fd, other;

	(void)state;
	fixture.options.stall_timeout_ms = 50;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	other = connect_unix(&fixture);
	send_text(fd, "TEST.BIG 4000000\r\n");
	wait_until(closed_count() == 1);
	assert_int_equal(stats_of(&fixture).closed_stalled, 1);
	ask(other, "PING\r\n", "+PONG\r\n");
	close(fd);
	close(other);
}

/* ---- input */

static void waits_for_the_rest_of_a_command(void **state)
{
	int fd, half;

	(void)state;
	fixture_start(&fixture);
	half = connect_unix(&fixture);
	fd = connect_unix(&fixture);
	send_text(half, "*2\r\n$4\r\nECHO\r\n$2\r\nh");
	ask(fd, "PING\r\n", "+PONG\r\n");
	assert_true(has_nothing(half));
	ask(half, "i\r\n", "$2\r\nhi\r\n");
	close(fd);
	close(half);
}

static void closes_the_idle_but_not_who_awaits(void **state)
{
	int half, idle, waiting;

	(void)state;
	fixture.options.idle_timeout_ms = 50;
	fixture_start(&fixture);
	half = connect_unix(&fixture);
	idle = connect_tcp(&fixture);
	waiting = connect_unix(&fixture);
	send_text(half, "*2\r\n$4\r\nECHO\r\n");
	send_text(waiting, "TEST.LATER 1\r\n");
	expect_end(half);
	expect_end(idle);
	wait_until(kept_count() == 1);
	assert_int_equal(stats_of(&fixture).closed_idle, 2);
	assert_int_equal(finish(1), 1);
	expect(waiting, ":1\r\n");
	expect_end(waiting);
	close(half);
	close(idle);
	close(waiting);
}

static const struct {
	const char *name;
	const char *text;
	const char *answer;
} malformed[] = {
	{ "512 MB are announced", "*2\r\n$4\r\nECHO\r\n$536870912\r\nxxxxxxxxxx",
	  "-ERR Protocol error: invalid bulk length\r\n" },
	{ "a billion arguments", "*1000000000\r\n",
	  "-ERR Protocol error: invalid multibulk length\r\n" },
	{ "after a good command", "PING\r\n*1\r\n+PING\r\nPING\r\n",
	  "+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n" },
	{ "quotes", "ECHO \"\r\nPING\r\n",
	  "-ERR Protocol error: unbalanced quotes in request\r\n" },
	{ "a browser", "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nTEST.BIG 5\r\n",
	  "-ERR this is not an HTTP server\r\n" },
	{ "farewell", "PING\r\nQUIT\r\nPING\r\n", "+PONG\r\n+OK\r\n" },
	{ "farewell with words", "QUIT now\r\n", "+OK\r\n" },
};

static void says_what_is_wrong_and_closes(void **state)
{
	size_t i;
	int other, fd;

	(void)state;
	fixture_start(&fixture);
	other = connect_unix(&fixture);
	for (i = 0; i < 2 * COUNT_OF(malformed); i++) {
		fd = i % 2 ? connect_unix(&fixture) : connect_tcp(&fixture);
		ask(fd, malformed[i / 2].text, malformed[i / 2].answer);
		expect_end(fd);
		close(fd);
		ask(other, "PING\r\n", "+PONG\r\n");
	}
	wait_until(stats_of(&fixture).connections == 1);
	assert_int_equal(stats_of(&fixture).malformed, 8);
	close(other);
}

/* Everything before a refusal is answered, also what is late; a client that goes on sending is
 * not reset before it has read why it is not heard. */
static void answers_first_what_came_before_a_refusal(void **state)
{
	char block[4096];
	int fd, i;

	(void)state;
	fixture_start(&fixture);
	fd = connect_tcp(&fixture);
	memset(block, 'x', sizeof(block));
	send_text(fd, "TEST.LATER 1\r\nPING\r\n*x\r\n");
	wait_until(kept_count() == 1 && stats_of(&fixture).malformed == 1);
	for (i = 0; i < 10; i++)
		send_bytes(fd, block, sizeof(block));
	assert_int_equal(finish(1), 1);
	expect(fd, ":1\r\n+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n");
	expect_end(fd);
	close(fd);
	wait_until(closed_count() == 1);
}

/* Half a megabyte each, of a request that does not end, from more clients than the pool can hold.
 */
static void bounds_what_all_of_them_hold(void **state)
{
	enum { CLIENTS = 40, PART_BYTES = 512 * 1024 };
	static char part[PART_BYTES];
	int fd[CLIENTS], other, i;

	(void)state;
	fixture.options.pool_bytes = 4 << 20;
	fixture_start(&fixture);
	other = connect_unix(&fixture);
	for (i = 0; i < CLIENTS; i++) {
		size_t sent = 0;

		fd[i] = connect_unix(&fixture);
		send_text(fd[i], "*2\r\n$4\r\nECHO\r\n$1000000\r\n");
		/* May be closed meanwhile, which is the point. */
		while (sent < sizeof(part)) {
			ssize_t bytes = send(fd[i], part, sizeof(part) - sent, MSG_NOSIGNAL);

			if (bytes < 0)
				break;
			sent += (size_t)bytes;
		}
		ask(other, "PING\r\n", "+PONG\r\n");
	}
	wait_until(stats_of(&fixture).closed_full > 0);
	assert_true(stats_of(&fixture).pool_bytes < (4 << 20) + (2 << 20));
	/* Little ones are served although the pool is used up. */
	ask(other, "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n", "$2\r\nhi\r\n");
	for (i = 0; i < CLIENTS; i++)
		close(fd[i]);
	wait_until(stats_of(&fixture).connections == 1);
	wait_until(stats_of(&fixture).pool_bytes == 0);
	close(other);
}

/* ---- many */

static void serves_two_thousand_connections(void **state)
{
	enum { CLIENTS = 2000 };
	static int fd[CLIENTS];
	int i;

	(void)state;
	fixture_start(&fixture);
	for (i = 0; i < CLIENTS; i++) {
		fd[i] = i % 2 ? connect_unix(&fixture) : connect_tcp(&fixture);
		send_text(fd[i], "PING\r\n*2\r\n$4\r\nECHO\r\n$2\r\n");
	}
	for (i = 0; i < CLIENTS; i++)
		ask(fd[i], "ab\r\n", "+PONG\r\n$2\r\nab\r\n");
	assert_int_equal(stats_of(&fixture).connections, CLIENTS);
	assert_int_equal(stats_of(&fixture).pool_bytes, 0);
	for (i = 0; i < CLIENTS; i++)
		close(fd[i]);
	wait_until(closed_count() == CLIENTS);
	assert_int_equal(stats_of(&fixture).accepted, CLIENTS);
}

static void refuses_one_client_too_many(void **state)
{
	int fd[3], late, i;

	(void)state;
	fixture.options.connections_max = 3;
	fixture_start(&fixture);
	for (i = 0; i < 3; i++) {
		fd[i] = connect_unix(&fixture);
		ask(fd[i], "PING\r\n", "+PONG\r\n");
	}
	late = connect_unix(&fixture);
	expect(late, "-ERR max number of clients reached\r\n");
	expect_end(late);
	close(late);
	assert_int_equal(stats_of(&fixture).refused, 1);
	close(fd[0]);
	wait_until(stats_of(&fixture).connections == 2);
	fd[0] = connect_unix(&fixture);
	ask(fd[0], "PING\r\n", "+PONG\r\n");
	for (i = 0; i < 3; i++)
		close(fd[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(lets_a_slow_reader_wait_for_itself),
		TEST(closes_who_asks_for_more_than_can_be),
		TEST(closes_who_takes_nothing_for_long),
		TEST(waits_for_the_rest_of_a_command),
		TEST(closes_the_idle_but_not_who_awaits),
		TEST(says_what_is_wrong_and_closes),
		TEST(answers_first_what_came_before_a_refusal),
		TEST(bounds_what_all_of_them_hold),
		TEST(serves_two_thousand_connections),
		TEST(refuses_one_client_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
