/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the RESP server starts and stops: on which sockets, whose place it takes, and what becomes of
 * those it serves when it ends.
 */
#include "resp_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

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

enum { DEEP_BYTES = 2 * (7 + 3000 + 2) + 9 + 900000 + 2 + 7 };

static void *read_then_finish(void *data)
{
	static char got[DEEP_BYTES];
	int fd = *(int *)data;

	if (receive(fd, got, sizeof(got)) != sizeof(got) ||
	    memcmp(got + sizeof(got) - 7, "+PONG\r\n", 7) != 0)
		abort();
	wait_until(finish(7) == 1);
	return NULL;
}

/* One waits for what another thread has to say, one has more to take than fits, one is idle. */
static void answers_what_it_has_read_before_it_stops(void **state)
{
	pthread_t reader;
	int late, deep, idle;

	(void)state;
	fixture.options.output_soft_bytes = 4096;
	fixture_start(&fixture);
	late = connect_unix(&fixture);
	deep = connect_unix(&fixture);
	idle = connect_tcp(&fixture);
	ask(idle, "PING\r\n", "+PONG\r\n");
	send_text(late, "TEST.LATER 7\r\nPING\r\n");
	send_text(deep, "TEST.BIG 3000\r\nTEST.BIG 3000\r\nTEST.BIG 900000\r\nPING\r\n");
	wait_until(stats_of(&fixture).commands == 1 + 2 + 3);
	assert_int_equal(pthread_create(&reader, NULL, read_then_finish, &deep), 0);
	resp_server_stop(fixture.server, PATIENCE_MS);
	pthread_join(reader, NULL);
	assert_int_equal(stats_of(&fixture).connections, 0);
	assert_int_equal(closed_count(), 3);
	expect(late, ":7\r\n+PONG\r\n");
	expect_end(late);
	expect_end(deep);
	expect_end(idle);
	close(late);
	close(deep);
	close(idle);
}

static void *stop(void *data)
{
	(void)data;
	resp_server_stop(fixture.server, PATIENCE_MS);
	return NULL;
}

/* The only worker is busy while others send, and the end is ordered. */
static void reads_what_has_arrived_before_it_stops(void **state)
{
	pthread_t stopper;
	int busy, fd;

	(void)state;
	fixture.options.workers = 1;
	fixture_start(&fixture);
	busy = connect_unix(&fixture);
	fd = connect_unix(&fixture);
	ask(fd, "PING\r\n", "+PONG\r\n");
	pthread_mutex_lock(&gate);
	send_text(busy, "TEST.GATE\r\n");
	wait_until(gate_count() == 1);
	send_text(fd, "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\nPING\r\n*1\r\n$4\r\nPI");
	assert_int_equal(pthread_create(&stopper, NULL, stop, NULL), 0);
	/* Whichever of the two it sees first, the bytes or the end. */
	pthread_mutex_unlock(&gate);
	expect(fd, "$2\r\nhi\r\n+PONG\r\n");
	expect_end(fd);
	expect(busy, "+OK\r\n");
	expect_end(busy);
	pthread_join(stopper, NULL);
	close(fd);
	close(busy);
}

static void gives_up_what_is_not_answered_in_time(void **state)
{
	int fd;

	(void)state;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	send_text(fd, "TEST.LATER 1\r\n");
	wait_until(kept_count() == 1);
	resp_server_stop(fixture.server, 20);
	expect_end(fd);
	assert_int_equal(closed_count(), 1);
	assert_int_equal(finish(1), 1);
	resp_server_stop(fixture.server, 20);
	close(fd);
}

static int try_to_start(const struct resp_server_options *options)
{
	struct resp_server *second = NULL;
	struct trouble trouble = { 0 };
	int err = resp_server_start(options, &second, &trouble);

	if (err) {
		assert_null(second);
		assert_true(trouble.cause[0] != '\0');
	}
	resp_server_free(second);
	return err;
}

static void takes_the_place_of_the_dead_only(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct resp_server_options options;
	struct stat status;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	fixture.options.tcp = NULL;
	options = fixture.options;
	/* A server that was killed leaves its file. */
	strcpy(address.sun_path, fixture.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(try_to_start(&options), -EADDRINUSE);
	close(fd);
	fixture_start(&fixture);
	assert_int_equal(stat(fixture.path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0660);
	/* A living one keeps it. */
	assert_int_equal(try_to_start(&options), -EADDRINUSE);
	fd = connect_unix(&fixture);
	ask(fd, "PING\r\n", "+PONG\r\n");
	close(fd);
	resp_server_stop(fixture.server, 0);
	/* What is no socket is nobody's business. */
	fd = open(fixture.path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(try_to_start(&options), -EEXIST);
	assert_int_equal(access(fixture.path, F_OK), 0);
	unlink(fixture.path);
	options.unix_group = "no-such-group-here";
	assert_int_equal(try_to_start(&options), -ENOENT);
	options.unix_path = "/nowhere/at/all";
	assert_int_equal(try_to_start(&options), -ENOENT);
}

static const struct {
	const char *name;
	const char *tcp;
} addresses[] = {
	{ "no port", "127.0.0.1" },
	{ "a name", "localhost:1" },
	{ "empty port", "127.0.0.1:" },
	{ "port too high", "127.0.0.1:65536" },
	{ "no address", ":6380" },
	{ "no brackets", "::1:6380" },
	{ "one bracket", "[::1:6380" },
	{ "port with a sign", "127.0.0.1:+1" },
	{ "nothing", "" },
	{ "brackets only", "[]:1" },
};

static void refuses_addresses_it_cannot_read(void **state)
{
	size_t i;

	(void)state;
	fixture.options.unix_path = NULL;
	for (i = 0; i < COUNT_OF(addresses); i++) {
		fixture.options.tcp = addresses[i].tcp;
		check_row_equal(&addresses[i], try_to_start(&fixture.options), -EINVAL);
	}
	fixture.options.tcp = NULL;
	fixture_start(&fixture);
}

static void refuses_two_commands_of_one_name(void **state)
{
	static const struct resp_command twice[] = {
		{ "ping", 0, 0, RESP_COMMAND_READ, run_at_once, NULL, NULL },
	};
	struct resp_server_options options;

	(void)state;
	options = fixture.options;
	options.commands = twice;
	options.command_count = 1;
	assert_int_equal(try_to_start(&options), -EEXIST);
	fixture_start(&fixture);
}

static void serves_inherited_sockets(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct resp_server_options options;
	socklen_t length = sizeof(address);
	int inherited = socket(AF_INET, SOCK_STREAM, 0), none, fd;

	(void)state;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(inherited, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(inherited, 16), 0);
	assert_int_equal(getsockname(inherited, (struct sockaddr *)&address, &length), 0);
	fixture.options.inherited = &inherited;
	fixture.options.inherited_count = 1;
	fixture_start(&fixture);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, length), 0);
	ask(fd, "PING\r\n", "+PONG\r\n");
	close(fd);
	/* One that does not listen. */
	options = fixture.options;
	none = socket(AF_INET, SOCK_STREAM, 0);
	options.inherited = &none;
	options.unix_path = options.tcp = NULL;
	assert_int_equal(try_to_start(&options), -EINVAL);
	close(none);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(answers_what_it_has_read_before_it_stops),
		TEST(reads_what_has_arrived_before_it_stops),
		TEST(gives_up_what_is_not_answered_in_time),
		TEST(takes_the_place_of_the_dead_only),
		TEST(refuses_addresses_it_cannot_read),
		TEST(refuses_two_commands_of_one_name),
		TEST(serves_inherited_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
