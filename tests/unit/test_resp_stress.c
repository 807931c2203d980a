/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The RESP server with everything at once: clients that come and go, many workers, and threads of
 * the test's own that complete late replies in no order. Every client checks that its answers are
 * those to its questions. And the tools of Redis themselves, if they are installed.
 */
#include "resp_fixture.h"

enum {
	CLIENTS = 8,
	ROUNDS = 150,
	PIPELINE_MAX = 40,
	FINISHERS = 2,
};

static struct fixture fixture;
static bool is_over;

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

static unsigned draw(unsigned *seed, unsigned below)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 16) % below;
}

/* One of the replies that are awaited, whichever. False: there is none. */
static bool finish_any(unsigned *seed)
{
	struct resp_reply *reply = NULL;
	int64_t tag = 0;
	size_t at;

	pthread_mutex_lock(&board.lock);
	if (board.count) {
		at = draw(seed, (unsigned)board.count);
		reply = board.kept[at];
		tag = board.tags[at];
		board.kept[at] = board.kept[--board.count];
		board.tags[at] = board.tags[board.count];
	}
	pthread_mutex_unlock(&board.lock);
	if (!reply)
		return false;
	resp_write_integer(resp_reply_writer(reply), tag);
	resp_reply_done(reply);
	return true;
}

static void *finish_all(void *data)
{
	unsigned seed = (unsigned)(uintptr_t)data;

	while (finish_any(&seed) || !__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		if (draw(&seed, 4) == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	return NULL;
}

/* A random pipeline and what must come of it. */
static void make_pipeline(unsigned *seed, bool is_unix, char *asked, char *wanted)
{
	unsigned count = 1 + draw(seed, PIPELINE_MAX), i;

	*asked = *wanted = '\0';
	for (i = 0; i < count; i++) {
		unsigned number = 1000 + draw(seed, 9000);

		switch (draw(seed, 5)) {
		case 0:
			asked += sprintf(asked, "TEST.LATER %u\r\n", number);
			wanted += sprintf(wanted, ":%u\r\n", number);
			break;
		case 1:
			asked += sprintf(asked, "TEST.AT-ONCE\r\n");
			wanted += sprintf(wanted, "+at once\r\n");
			break;
		case 2:
			/* The list looks at all workers' connections; it is not for strangers. */
			asked += sprintf(asked, "CLIENT SETNAME c%u\r\n%s\r\n", number,
					 is_unix ? "CLIENT LIST ID 0" : "ECHO \"\"");
			wanted += sprintf(wanted, "+OK\r\n$0\r\n\r\n");
			break;
		default:
			asked += sprintf(asked, "*2\r\n$4\r\nECHO\r\n$4\r\n%u\r\n", number);
			wanted += sprintf(wanted, "$4\r\n%u\r\n", number);
		}
	}
}

static void *be_a_client(void *data)
{
	char asked[PIPELINE_MAX * 64], wanted[PIPELINE_MAX * 32];
	unsigned seed = (unsigned)(uintptr_t)data, round;
	bool is_unix = true;
	int fd = connect_unix(&fixture);

	for (round = 0; round < ROUNDS; round++) {
		make_pipeline(&seed, is_unix, asked, wanted);
		send_text(fd, asked);
		if (draw(&seed, 10) != 0) {
			expect(fd, wanted);
			continue;
		}
		/* Gone without having read. */
		close(fd);
		is_unix = draw(&seed, 2);
		fd = is_unix ? connect_unix(&fixture) : connect_tcp(&fixture);
	}
	close(fd);
	return NULL;
}

static void answers_everybody_in_order(void **state)
{
	pthread_t clients[CLIENTS], finishers[FINISHERS];
	uintptr_t i;

	(void)state;
	fixture.options.workers = 3;
	fixture_start(&fixture);
	is_over = false;
	for (i = 0; i < FINISHERS; i++)
		assert_int_equal(pthread_create(&finishers[i], NULL, finish_all, (void *)(i + 1)),
				 0);
	for (i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&clients[i], NULL, be_a_client, (void *)(i + 77)),
				 0);
	for (i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	wait_until(stats_of(&fixture).connections == 0);
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	for (i = 0; i < FINISHERS; i++)
		pthread_join(finishers[i], NULL);
	assert_int_equal(stats_of(&fixture).accepted, closed_count());
	assert_int_equal(stats_of(&fixture).pool_bytes, 0);
}

/* The server ends in the middle of it all. */
static void *be_a_client_to_the_end(void *data)
{
	char asked[PIPELINE_MAX * 64], wanted[PIPELINE_MAX * 32], got[4096];
	unsigned seed = (unsigned)(uintptr_t)data;
	int fd = connect_unix(&fixture);

	do {
		make_pipeline(&seed, true, asked, wanted);
		if (send(fd, asked, strlen(asked), MSG_NOSIGNAL) < 0)
			break;
	} while (recv(fd, got, sizeof(got), 0) > 0);
	close(fd);
	return NULL;
}

static void stops_in_the_middle_of_it(void **state)
{
	pthread_t clients[CLIENTS], finisher;
	uintptr_t i;

	(void)state;
	fixture.options.workers = 3;
	fixture_start(&fixture);
	is_over = false;
	assert_int_equal(pthread_create(&finisher, NULL, finish_all, (void *)1), 0);
	for (i = 0; i < CLIENTS; i++)
		assert_int_equal(
			pthread_create(&clients[i], NULL, be_a_client_to_the_end, (void *)(i + 7)),
			0);
	wait_until(stats_of(&fixture).commands > 2000);
	resp_server_stop(fixture.server, PATIENCE_MS);
	assert_int_equal(stats_of(&fixture).connections, 0);
	for (i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	pthread_join(finisher, NULL);
	assert_int_equal(stats_of(&fixture).accepted, closed_count());
}

/* ---- the tools of Redis */

static bool has_program(const char *name)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s > /dev/null 2>&1", name);
	return system(command) == 0;
}

/* What a command of the shell prints. */
static void run_shell(const char *command, char *out, size_t room)
{
	FILE *pipe = popen(command, "r");
	size_t length;
	int status;

	assert_non_null(pipe);
	length = fread(out, 1, room - 1, pipe);
	out[length] = '\0';
	status = pclose(pipe);
	if (status != 0)
		fail_msg("%s ended with %d:\n%s", command, status, out);
}

static void redis_cli_works(void **state)
{
	static const struct {
		const char *name;
		const char *command; /* %s: the socket */
		const char *wanted;
	} rows[] = {
		{ "ping", "timeout 20 redis-cli -s %s ping 2>&1", "PONG\n" },
		{ "version 3", "timeout 20 redis-cli -3 -s %s echo hi 2>&1", "hi\n" },
		{ "an error", "timeout 20 redis-cli -s %s nonsense 2>&1 || true",
		  "ERR unknown command 'nonsense', with args beginning with: \n\n" },
		{ "lines of standard input",
		  "printf 'ping a\\nping b\\n' | timeout 20 redis-cli -s %s 2>&1", "a\nb\n" },
		{ "a hundred thousand at once",
		  "yes PING | head -n 100000 | timeout 20 redis-cli -s %s --pipe 2>&1 | tail -n 1",
		  "errors: 0, replies: 100000\n" },
	};
	static char command[512], got[65536];
	size_t i;

	(void)state;
	fixture_start(&fixture);
	if (!has_program("redis-cli"))
		skip();
	for (i = 0; i < COUNT_OF(rows); i++) {
		snprintf(command, sizeof(command), rows[i].command, fixture.path);
		run_shell(command, got, sizeof(got));
		check_row_text(&rows[i], got, rows[i].wanted);
	}
}

static void redis_benchmark_works(void **state)
{
	static char command[512], got[65536];
	int i;

	(void)state;
	fixture_start(&fixture);
	if (!has_program("redis-benchmark"))
		skip();
	for (i = 0; i < 4; i++) {
		snprintf(command, sizeof(command),
			 "timeout 20 redis-benchmark -s %s %s -c 20 -P %d -n 20000 --csv ping 2>&1",
			 fixture.path, i % 2 ? "-3" : "", i < 2 ? 1 : 16);
		run_shell(command, got, sizeof(got));
		if (strstr(got, "WARN") || strstr(got, "rror"))
			fail_msg("%s says\n%s", command, got);
	}
	assert_true(stats_of(&fixture).commands >= 80000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(answers_everybody_in_order),
		TEST(stops_in_the_middle_of_it),
		TEST(redis_cli_works),
		TEST(redis_benchmark_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
