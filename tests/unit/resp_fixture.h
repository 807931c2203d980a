/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A RESP server in the test's own process, on a Unix socket in a temporary folder and on a port of
 * 127.0.0.1, with a few commands that are easy to foretell; and a client of plain sockets. Whatever
 * is waited for is waited for with a bound, after which the test fails.
 */
#ifndef SLUICE_TEST_RESP_FIXTURE_H
#define SLUICE_TEST_RESP_FIXTURE_H

#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "server/resp_server.h"

enum {
	PATIENCE_MS = 20000,
	KEPT_MAX = 4096, /* deferred replies at one time */
};

/* ---- the commands' side */

static struct {
	pthread_mutex_t lock;
	struct resp_reply *kept[KEPT_MAX];
	int64_t tags[KEPT_MAX];
	size_t count;
	uint64_t closed_count;
	uint64_t last_closed;
} board = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* TEST.LATER tag: answers with the tag, when the tag is finished. */
static inline void run_later(struct resp_call *call)
{
	int64_t tag = 0;
	struct resp_reply *reply;

	(void)resp_argument_integer(resp_call_argument(call, 1), &tag);
	reply = resp_call_defer(call);
	if (!reply)
		return;
	pthread_mutex_lock(&board.lock);
	if (board.count == KEPT_MAX)
		abort();
	board.kept[board.count] = reply;
	board.tags[board.count++] = tag;
	pthread_mutex_unlock(&board.lock);
}

/* Answer every reply with this tag. How many there were. */
static inline size_t finish(int64_t tag)
{
	size_t finished = 0, i = 0;
	struct resp_reply *reply;

	for (;;) {
		pthread_mutex_lock(&board.lock);
		while (i < board.count && board.tags[i] != tag)
			i++;
		if (i == board.count)
			break;
		reply = board.kept[i];
		board.kept[i] = board.kept[--board.count];
		board.tags[i] = board.tags[board.count];
		pthread_mutex_unlock(&board.lock);
		resp_write_integer(resp_reply_writer(reply), tag);
		resp_reply_done(reply);
		finished++;
	}
	pthread_mutex_unlock(&board.lock);
	return finished;
}

/* TEST.FINISH tag: how many it has finished. */
static inline void run_finish(struct resp_call *call)
{
	int64_t tag = 0;

	(void)resp_argument_integer(resp_call_argument(call, 1), &tag);
	resp_write_integer(resp_call_writer(call), (int64_t)finish(tag));
}

/* TEST.AT-ONCE: deferred, and done before run() returns. */
static inline void run_at_once(struct resp_call *call)
{
	struct resp_reply *reply = resp_call_defer(call);

	if (!reply)
		return;
	resp_write_simple(resp_reply_writer(reply), "at once");
	resp_reply_done(reply);
}

/* TEST.BIG bytes: that many. */
static inline void run_big(struct resp_call *call)
{
	int64_t bytes = 0;
	char *text;

	(void)resp_argument_integer(resp_call_argument(call, 1), &bytes);
	text = calloc(1, (size_t)bytes + 1);
	if (!text)
		abort();
	resp_write_bulk(resp_call_writer(call), text, (size_t)bytes);
	free(text);
}

/* TEST.WRONG values: so many instead of one. */
static inline void run_wrong(struct resp_call *call)
{
	int64_t values = 0;

	(void)resp_argument_integer(resp_call_argument(call, 1), &values);
	while (values-- > 0)
		resp_write_integer(resp_call_writer(call), values);
}

/* TEST.HALF: a deferred reply that is not whole. */
static inline void run_half(struct resp_call *call)
{
	struct resp_reply *reply = resp_call_defer(call);

	if (!reply)
		return;
	resp_write_array(resp_reply_writer(reply), 2);
	resp_write_integer(resp_reply_writer(reply), 1);
	resp_reply_done(reply);
}

/* TEST.GATE: blocks its worker, as no command should, until the test opens the gate. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static unsigned at_gate;

static inline void run_gate(struct resp_call *call)
{
	__atomic_add_fetch(&at_gate, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	__atomic_sub_fetch(&at_gate, 1, __ATOMIC_SEQ_CST);
	resp_write_simple(resp_call_writer(call), "OK");
}

static inline unsigned gate_count(void)
{
	return __atomic_load_n(&at_gate, __ATOMIC_SEQ_CST);
}

/* TEST.WHO: uid, pid, authenticated, scopes, worker, connection. */
static inline void run_who(struct resp_call *call)
{
	const struct resp_peer *peer = resp_call_peer(call);
	struct resp_writer *writer = resp_call_writer(call);

	resp_write_array(writer, 6);
	resp_write_integer(writer, (int64_t)peer->uid);
	resp_write_integer(writer, (int64_t)peer->pid);
	resp_write_boolean(writer, peer->is_authenticated);
	resp_write_integer(writer, (int64_t)peer->identity.scopes);
	resp_write_integer(writer, resp_call_worker(call));
	resp_write_integer(writer, (int64_t)resp_call_connection(call));
}

static const struct resp_command test_commands[] = {
	{ "TEST.LATER", 1, 1, RESP_COMMAND_BLOCKING, run_later, "tag", "Answers later." },
	{ "TEST.FINISH", 1, 1, RESP_COMMAND_WRITE, run_finish, "tag", "Ends the waiting." },
	{ "TEST.AT-ONCE", 0, 0, RESP_COMMAND_READ, run_at_once, NULL, NULL },
	{ "TEST.BIG", 1, 1, RESP_COMMAND_READ, run_big, "bytes", "Answers with many bytes." },
	{ "TEST.WRONG", 1, 1, RESP_COMMAND_READ, run_wrong, "values", NULL },
	{ "TEST.HALF", 0, 0, RESP_COMMAND_READ, run_half, NULL, NULL },
	{ "TEST.GATE", 0, 0, RESP_COMMAND_READ, run_gate, NULL, NULL },
	{ "TEST.WHO", 0, 2, RESP_COMMAND_READ | RESP_COMMAND_KEY, run_who, "[key] [n]", NULL },
};

static inline void on_closed(void *context, uint64_t connection)
{
	(void)context;
	pthread_mutex_lock(&board.lock);
	board.closed_count++;
	board.last_closed = connection;
	pthread_mutex_unlock(&board.lock);
}

static inline uint64_t closed_count(void)
{
	uint64_t count;

	pthread_mutex_lock(&board.lock);
	count = board.closed_count;
	pthread_mutex_unlock(&board.lock);
	return count;
}

static inline size_t kept_count(void)
{
	size_t count;

	pthread_mutex_lock(&board.lock);
	count = board.count;
	pthread_mutex_unlock(&board.lock);
	return count;
}

/* ---- the server's side */

struct fixture {
	char folder[64];
	char path[96];
	struct resp_server_options options;
	struct resp_server *server;
};

static inline void fixture_init(struct fixture *fixture)
{
	*fixture = (struct fixture){ 0 };
	strcpy(fixture->folder, "/tmp/sluice-resp-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	snprintf(fixture->path, sizeof(fixture->path), "%s/sock", fixture->folder);
	fixture->options = (struct resp_server_options){
		.commands = test_commands,
		.command_count = COUNT_OF(test_commands),
		.closed = on_closed,
		.unix_path = fixture->path,
		.tcp = "127.0.0.1:0",
		.workers = 2,
		.version = "1.2.3",
	};
	board.closed_count = 0;
	board.last_closed = 0;
}

static inline void fixture_start(struct fixture *fixture)
{
	struct trouble trouble;

	if (resp_server_start(&fixture->options, &fixture->server, &trouble))
		fail_msg("%s; %s", trouble.cause, trouble.remedy);
}

static inline void fixture_done(struct fixture *fixture)
{
	resp_server_free(fixture->server);
	assert_int_equal(board.count, 0);
	assert_int_equal(access(fixture->path, F_OK), -1);
	assert_int_equal(rmdir(fixture->folder), 0);
}

static inline struct resp_server_stats stats_of(const struct fixture *fixture)
{
	struct resp_server_stats stats;

	resp_server_stats(fixture->server, &stats);
	return stats;
}

/* Wait until the condition holds. */
#define wait_until(condition)                                                      \
	do {                                                                       \
		int tries_ = PATIENCE_MS;                                          \
		while (!(condition) && tries_-- > 0)                               \
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); \
		if (tries_ <= 0)                                                   \
			fail_msg("waited in vain: %s", #condition);                \
	} while (0)

/* ---- the client's side */

static inline int connect_unix(const struct fixture *fixture)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, fixture->path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static inline int connect_tcp(const struct fixture *fixture)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)resp_server_port(fixture->server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static inline void send_bytes(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length > 0) {
		ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);

		if (sent < 0)
			fail_msg("cannot send: %s", strerror(errno));
		at += sent;
		length -= (size_t)sent;
	}
}

static inline void send_text(int fd, const char *text)
{
	send_bytes(fd, text, strlen(text));
}

/* So many bytes, or fewer if the server closes. */
static inline size_t receive(int fd, char *out, size_t length)
{
	struct pollfd state = { .fd = fd, .events = POLLIN };
	size_t got = 0;

	while (got < length) {
		ssize_t bytes;

		if (poll(&state, 1, PATIENCE_MS) != 1)
			fail_msg("nothing came after %zu of %zu bytes", got, length);
		bytes = recv(fd, out + got, length - got, 0);
		if (bytes <= 0)
			break;
		got += (size_t)bytes;
	}
	return got;
}

/* These bytes come next. */
static inline void expect(int fd, const char *wanted)
{
	size_t length = strlen(wanted);
	char *got = calloc(1, length + 1);

	assert_non_null(got);
	receive(fd, got, length);
	if (strcmp(got, wanted) != 0)
		fail_msg("got\n%s\nnot\n%s", got, wanted);
	free(got);
}

static inline void ask(int fd, const char *text, const char *wanted)
{
	send_text(fd, text);
	expect(fd, wanted);
}

/* Nothing more comes, and the server closes. */
static inline void expect_end(int fd)
{
	char byte;

	if (receive(fd, &byte, 1) != 0)
		fail_msg("got %c, not the end", byte);
}

/* Nothing comes now: what is asked on the side is answered first. */
static inline bool has_nothing(int fd)
{
	struct pollfd state = { .fd = fd, .events = POLLIN };

	return poll(&state, 1, 0) == 0;
}

#endif
