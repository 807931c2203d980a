/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A folder that two processes want. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"

static char folder[64];

static int open_folder(void)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* A process that has the lock until it is killed. */
static pid_t start_holder(void)
{
	char holder[LOCK_HOLDER_MAX], byte = 0;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		byte = lock_take(open_folder(), holder) ? 'f' : 't';
		(void)!write(ends[1], &byte, 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(byte, 't');
	close(ends[0]);
	close(ends[1]);
	return child;
}

static void it_is_ones_until_that_one_is_gone(void **state)
{
	char holder[LOCK_HOLDER_MAX] = "?", wanted[LOCK_HOLDER_MAX];
	pid_t child = start_holder();
	int fd = open_folder();

	(void)state;
	assert_int_equal(lock_take(fd, holder), -EWOULDBLOCK);
	(void)snprintf(wanted, sizeof(wanted), " (process %d)", child);
	assert_string_equal(holder, wanted);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(lock_take(fd, holder), 0);
	assert_string_equal(holder, "");
	close(fd);
}

static void it_needs_something_to_lock(void **state)
{
	char holder[LOCK_HOLDER_MAX] = "?";

	(void)state;
	assert_int_equal(lock_take(-1, holder), -EBADF);
	assert_string_equal(holder, "");
}

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/sluice-lock-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_ones_until_that_one_is_gone, make_folder,
						remove_folder),
		cmocka_unit_test(it_needs_something_to_lock),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
