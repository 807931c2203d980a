/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Gets the text of a configuration file, and says clearly why not: most of what goes wrong with a
 * configuration is a wrong path.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "limit/settings.h"

static int fail(struct settings_error *error, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct settings_error *error, int err, const char *format, ...)
{
	va_list arguments;

	memset(error, 0, sizeof(*error));
	va_start(arguments, format);
	(void)vsnprintf(error->message, sizeof(error->message), format, arguments);
	va_end(arguments);
	return err;
}

static int fail_too_large(struct settings_error *error)
{
	return fail(error, -EFBIG, "is larger than %d MiB; is it a configuration file?",
		    SETTINGS_BYTES_MAX >> 20);
}

static int fail_unreadable(struct settings_error *error, int err)
{
	switch (err) {
	case -ENOENT:
		return fail(error, err, "does not exist; create it or give another path");
	case -EACCES:
	case -EPERM:
		return fail(error, err, "may not be read; change its permissions or run as root");
	case -EISDIR:
		return fail(error, err, "is a directory; give the path of a file in it");
	default:
		return fail(error, err, "cannot be read: %s", strerror(-err));
	}
}

/* Refuse by what is known before reading: a wrong path often leads to something huge. */
static int check_file(int fd, struct settings_error *error)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return fail_unreadable(error, -errno);
	if (S_ISDIR(status.st_mode))
		return fail_unreadable(error, -EISDIR);
	if (S_ISREG(status.st_mode) && status.st_size > SETTINGS_BYTES_MAX)
		return fail_too_large(error);
	return 0;
}

/* Up to the end, which of a pipe or a growing file is not known before. */
static int read_all(int fd, char *text, size_t room, size_t *out_length)
{
	size_t length = 0;

	while (length < room) {
		ssize_t got = read(fd, text + length, room - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	*out_length = length;
	return 0;
}

int settings_load(const char *path, struct settings **out, struct settings_error *error)
{
	size_t room = SETTINGS_BYTES_MAX + 1, length = 0;
	char *text = NULL;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return fail_unreadable(error, -errno);
	err = check_file(fd, error);
	if (err)
		goto out;
	/* Untouched pages of so large a block cost nothing. */
	text = malloc(room);
	err = text ? read_all(fd, text, room, &length) : -ENOMEM;
	if (err)
		(void)fail_unreadable(error, err);
	else if (length == room)
		err = fail_too_large(error);
	else
		err = settings_parse(text, length, out, error);
out:
	free(text);
	close(fd);
	return err;
}
