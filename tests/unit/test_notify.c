/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A supervisor's end of the protocol: a real datagram socket, and sockets that are handed over. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/notify.h"

static char directory[64], path[96];
static int supervisor = -1;

static void clear_environment(void)
{
	static const char *const names[] = { "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
					     "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		(void)unsetenv(names[i]);
}

/* name: a path, or with an @ in front an abstract name. */
static void supervise(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

	memcpy(address.sun_path, name, strlen(name) + 1);
	if (*name == '@')
		address.sun_path[0] = '\0';
	else
		length++;
	supervisor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(supervisor >= 0);
	assert_int_equal(bind(supervisor, (const struct sockaddr *)&address, length), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
}

static int make_place(void **state)
{
	(void)state;
	clear_environment();
	(void)snprintf(directory, sizeof(directory), "/tmp/sluice-test-XXXXXX");
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/notify", directory);
	return 0;
}

static int remove_place(void **state)
{
	(void)state;
	clear_environment();
	if (supervisor >= 0)
		(void)close(supervisor);
	supervisor = -1;
	(void)unlink(path);
	return rmdir(directory);
}

static void must_receive(const char *wanted)
{
	char message[1024] = "";
	ssize_t length = recv(supervisor, message, sizeof(message) - 1, 0);

	assert_int_equal(length, strlen(wanted));
	assert_string_equal(message, wanted);
}

static void must_receive_nothing(void)
{
	char byte;

	assert_int_equal(recv(supervisor, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static void tell_everything(void)
{
	struct notify notify;

	assert_int_equal(notify_open(&notify), 0);
	assert_null(getenv("NOTIFY_SOCKET"));
	must_receive_nothing();
	assert_int_equal(notify_ready(&notify), 0);
	must_receive("READY=1");
	assert_int_equal(notify_reloading(&notify, 1234567890123999), 0);
	must_receive("RELOADING=1\nMONOTONIC_USEC=1234567890123");
	assert_int_equal(notify_status(&notify, "3 tenants"), 0);
	must_receive("STATUS=3 tenants");
	assert_int_equal(notify_watchdog(&notify), 0);
	must_receive("WATCHDOG=1");
	assert_int_equal(notify_stopping(&notify), 0);
	must_receive("STOPPING=1");
	must_receive_nothing();
	notify_close(&notify);
	notify_close(&notify);
}

static void tells_its_supervisor_one_datagram_at_a_time(void **state)
{
	(void)state;
	supervise(path);
	tell_everything();
}

static void tells_it_by_an_abstract_name_too(void **state)
{
	char name[64];

	(void)state;
	(void)snprintf(name, sizeof(name), "@sluice-test-%d", (int)getpid());
	supervise(name);
	tell_everything();
}

static void keeps_a_status_to_one_line(void **state)
{
	struct notify notify;
	char text[2000], wanted[NOTIFY_STATUS_MAX];

	(void)state;
	supervise(path);
	assert_int_equal(notify_open(&notify), 0);
	assert_int_equal(notify_status(&notify, "a\nREADY=1"), 0);
	must_receive("STATUS=a");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	(void)snprintf(wanted, sizeof(wanted), "STATUS=%.504s", text);
	assert_int_equal(notify_status(&notify, text), 0);
	must_receive(wanted);
	notify_close(&notify);
}

static void does_nothing_without_a_supervisor(void **state)
{
	struct notify notify;

	(void)state;
	assert_int_equal(setenv("WATCHDOG_USEC", "1000", 1), 0);
	assert_int_equal(notify_open(&notify), 0);
	assert_int_equal(notify.fd, -1);
	assert_int_equal(notify.watchdog_ns, 0);
	assert_int_equal(notify_ready(&notify), 0);
	assert_int_equal(notify_reloading(&notify, 1), 0);
	assert_int_equal(notify_status(&notify, "x"), 0);
	assert_int_equal(notify_watchdog(&notify), 0);
	assert_int_equal(notify_stopping(&notify), 0);
	notify_close(&notify);
}

static void finds_a_supervisor_that_was_restarted(void **state)
{
	struct notify notify;

	(void)state;
	supervise(path);
	assert_int_equal(notify_open(&notify), 0);
	assert_int_equal(notify_ready(&notify), 0);
	(void)close(supervisor);
	assert_int_equal(notify_watchdog(&notify), -ECONNREFUSED);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(notify_ready(&notify), -ENOENT);
	supervise(path);
	assert_int_equal(notify_ready(&notify), 0);
	must_receive("READY=1");
	notify_close(&notify);
}

static void does_not_wait_to_say_that_it_lives(void **state)
{
	struct notify notify;
	int err, sent = 0;

	(void)state;
	supervise(path);
	assert_int_equal(notify_open(&notify), 0);
	do {
		err = notify_watchdog(&notify);
	} while (!err && ++sent < 100000);
	assert_int_equal(err, -EAGAIN);
	assert_int_equal(notify_status(&notify, "x"), -EAGAIN);
	notify_close(&notify);
}

#define LONGEST                                                                                \
	"/23456789012345678901234567890123456789012345678901234567890123456789012345678901234" \
	"56789012345678901234567"

static const struct open_row {
	const char *name; /* of the row */
	const char *socket, *watchdog_us, *watchdog_pid;
	int err;
	uint64_t watchdog_ns;
} open_rows[] = {
	{ "no watchdog", "/x", NULL, NULL, 0, 0 },
	{ "a watchdog", "/x", "30000000", NULL, 0, 30000000000 },
	{ "a watchdog for another process", "/x", "30000000", "1", 0, 0 },
	{ "a watchdog that is no number", "/x", "30s", NULL, -EINVAL, 0 },
	{ "a watchdog of no time", "/x", "0", NULL, -EINVAL, 0 },
	{ "a watchdog beyond all time", "/x", "18446744073709551615", NULL, -EINVAL, 0 },
	{ "a watchdog for no process", "/x", "30000000", "x", -EINVAL, 0 },
	{ "an empty name", "", NULL, NULL, -EPROTONOSUPPORT, 0 },
	{ "a virtual machine's", "vsock:2:1234", NULL, NULL, -EPROTONOSUPPORT, 0 },
	{ "a relative path", "run/notify", NULL, NULL, -EPROTONOSUPPORT, 0 },
	{ "a slash", "/", NULL, NULL, -EINVAL, 0 },
	{ "an empty abstract name", "@", NULL, NULL, -EINVAL, 0 },
	{ "the longest path", LONGEST, NULL, NULL, 0, 0 },
	{ "a path that is too long", LONGEST "x", NULL, NULL, -EINVAL, 0 },
};

static void reads_what_the_supervisor_asks_for(void **state)
{
	(void)state;
	assert_int_equal(strlen(LONGEST), sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	for (size_t i = 0; i < COUNT_OF(open_rows); i++) {
		const struct open_row *row = &open_rows[i];
		struct notify notify;

		check_row_equal(row, setenv("NOTIFY_SOCKET", row->socket, 1), 0);
		if (row->watchdog_us)
			check_row_equal(row, setenv("WATCHDOG_USEC", row->watchdog_us, 1), 0);
		if (row->watchdog_pid)
			check_row_equal(row, setenv("WATCHDOG_PID", row->watchdog_pid, 1), 0);
		check_row_equal(row, notify_open(&notify), row->err);
		check_row_equal(row, notify.watchdog_ns, row->watchdog_ns);
		check_row(row, (notify.fd >= 0) == !row->err);
		check_row(row, !getenv("NOTIFY_SOCKET") && !getenv("WATCHDOG_USEC") &&
				       !getenv("WATCHDOG_PID"));
		check_row(row, row->err == 0 || notify_ready(&notify) == 0);
		notify_close(&notify);
	}
}

static void knows_its_own_watchdog(void **state)
{
	struct notify notify;
	char pid[16];

	(void)state;
	supervise(path);
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_int_equal(setenv("WATCHDOG_USEC", "500", 1), 0);
	assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
	assert_int_equal(notify_open(&notify), 0);
	assert_int_equal(notify.watchdog_ns, 500000);
	notify_close(&notify);
}

/* ---- sockets that are handed over */

/* In a child: a listening socket at 3, a datagram socket at 4, a pipe at 5, nothing at 6. */
static void hand_over(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = fcntl(socket(AF_UNIX, SOCK_STREAM, 0), F_DUPFD, 20);
	int datagram = fcntl(socket(AF_INET, SOCK_DGRAM, 0), F_DUPFD, 20);
	int ends[2];

	if (bind(listener, (const struct sockaddr *)&address, sizeof(sa_family_t)) != 0 ||
	    listen(listener, 1) != 0 || pipe(ends) != 0 || dup2(listener, 3) != 3 ||
	    dup2(datagram, 4) != 4 || dup2(ends[0], 10) != 10 || dup2(10, 5) != 5)
		_exit(100);
	for (int fd = 6; fd < 20; fd++)
		(void)close(fd);
}

static const struct inherit_row {
	const char *name;
	const char *count, *pid, *names; /* pid "": this process's */
	int err;
	size_t inherited;
	const char *first, *second; /* their names */
} inherit_rows[] = {
	{ "nothing", NULL, NULL, NULL, 0, 0, NULL, NULL },
	{ "two without names", "2", "", NULL, 0, 2, "", "" },
	{ "two with names", "2", "", "resp:http", 0, 2, "resp", "http" },
	{ "two with names that are empty", "2", "", ":", 0, 2, "", "" },
	{ "one with a name", "1", "", "resp", 0, 1, "resp", NULL },
	{ "none", "0", "", "", 0, 0, NULL, NULL },
	{ "for another process", "2", "1", NULL, 0, 0, NULL, NULL },
	{ "for nobody", "2", NULL, NULL, 0, 0, NULL, NULL },
	{ "no number", "two", "", NULL, -EINVAL, 0, NULL, NULL },
	{ "a number below 0", "-1", "", NULL, -EINVAL, 0, NULL, NULL },
	{ "a process that is no number", "2", "x", NULL, -EINVAL, 0, NULL, NULL },
	{ "too many", "17", "", NULL, -E2BIG, 0, NULL, NULL },
	{ "far too many", "18446744073709551615", "", NULL, -E2BIG, 0, NULL, NULL },
	{ "one that is no socket", "3", "", NULL, -ENOTSOCK, 0, NULL, NULL },
	{ "one name for two", "2", "", "resp", -EINVAL, 0, NULL, NULL },
	{ "three names for two", "2", "", "a:b:c", -EINVAL, 0, NULL, NULL },
};

/* What does not hold, as an exit status; 0: all does. */
static int inherit(const struct inherit_row *row)
{
	struct inherited sockets[INHERITED_MAX];
	char pid[16];
	size_t count = 99;

	hand_over();
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (row->count)
		(void)setenv("LISTEN_FDS", row->count, 1);
	if (row->pid)
		(void)setenv("LISTEN_PID", *row->pid ? row->pid : pid, 1);
	if (row->names)
		(void)setenv("LISTEN_FDNAMES", row->names, 1);
	if (notify_inherited(sockets, &count) != row->err)
		return 1;
	if (count != row->inherited)
		return 2;
	if (getenv("LISTEN_FDS") || getenv("LISTEN_PID") || getenv("LISTEN_FDNAMES"))
		return 3;
	if (count > 0 && (sockets[0].fd != 3 || strcmp(sockets[0].name, row->first) != 0 ||
			  sockets[0].domain != AF_UNIX || sockets[0].type != SOCK_STREAM ||
			  !sockets[0].is_listening || fcntl(3, F_GETFD) != FD_CLOEXEC))
		return 4;
	if (count > 1 && (sockets[1].fd != 4 || strcmp(sockets[1].name, row->second) != 0 ||
			  sockets[1].domain != AF_INET || sockets[1].type != SOCK_DGRAM ||
			  sockets[1].is_listening || fcntl(4, F_GETFD) != FD_CLOEXEC))
		return 5;
	return 0;
}

static int exit_of(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void takes_over_the_sockets_that_are_meant_for_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(inherit_rows); i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(inherit(&inherit_rows[i]));
		check_row_equal(&inherit_rows[i], exit_of(child), 0);
	}
}

static int inherit_what_is_not_there(void)
{
	struct inherited sockets[INHERITED_MAX];
	char pid[16];
	size_t count;

	(void)close(3);
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	(void)setenv("LISTEN_FDS", "1", 1);
	(void)setenv("LISTEN_PID", pid, 1);
	return notify_inherited(sockets, &count) == -EBADF && count == 0 ? 0 : 1;
}

static void misses_a_descriptor_that_was_promised(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(inherit_what_is_not_there());
	assert_int_equal(exit_of(child), 0);
}

#define in_a_place(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_place(tells_its_supervisor_one_datagram_at_a_time),
		in_a_place(tells_it_by_an_abstract_name_too),
		in_a_place(keeps_a_status_to_one_line),
		in_a_place(does_nothing_without_a_supervisor),
		in_a_place(finds_a_supervisor_that_was_restarted),
		in_a_place(does_not_wait_to_say_that_it_lives),
		in_a_place(reads_what_the_supervisor_asks_for),
		in_a_place(knows_its_own_watchdog),
		in_a_place(takes_over_the_sockets_that_are_meant_for_it),
		in_a_place(misses_a_descriptor_that_was_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
