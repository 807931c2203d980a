/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The database as a file: made whole or not at all, and owned by one process.
 *
 * A new one is written under another name and linked to its own, so that an empty or half-made file
 * at that name can only be damage: it is refused, never taken for a new beginning, because losing
 * overrides silently would bring old limits back. Crashing in between leaves a file with a random
 * ending, which nobody reads.
 *
 * Ownership is a lock (F_OFD_SETLK) on one byte far behind those that SQLite locks. It ends with
 * the process, however that ends, and leaves no file behind. A daemon keeps the overrides in
 * memory; a second one on the same file would not see what the first is told. Readers such as the
 * sqlite3 program are not kept out. The descriptor must be closed after SQLite's: closing any
 * descriptor of a file drops SQLite's own locks on it.
 */
#include "store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* SQLite locks bytes from 2^30 on, and databases of sluice end long before this one. */
#define OWNER_BYTE ((off_t)1 << 62)

/*
 * No CHECK and no NOT NULL: a row that somebody has written by hand and got wrong must be skipped
 * with a warning, whereas a broken constraint would count as damage to the whole file.
 */
static const char *const migrations[] = {
	"CREATE TABLE overrides ("
	" id INTEGER PRIMARY KEY,"
	" tenant TEXT UNIQUE,"
	" rate_limit TEXT,"       /* JSON, as PUT .../rate-limit takes it */
	" expires_at_ms INTEGER," /* Unix time; 0: never */
	" changed_at_ms INTEGER);"
	"CREATE INDEX overrides_by_expiry ON overrides (expires_at_ms) WHERE expires_at_ms > 0;"
	"CREATE TABLE audit ("
	" id INTEGER PRIMARY KEY," /* one more than the newest: counts changes */
	" at_ms INTEGER,"
	" actor_kind TEXT,"
	" actor TEXT,"
	" tenant TEXT,"
	" action TEXT,"
	" keep_debt INTEGER,"
	" before TEXT," /* JSON or NULL */
	" after TEXT);"
	"CREATE INDEX audit_by_tenant ON audit (tenant);",
};

_Static_assert(sizeof(migrations) / sizeof(*migrations) == DATABASE_VERSION,
	       "one step for each version");

const char *database_migration(int version)
{
	return migrations[version - 1];
}

void database_advise(struct trouble *trouble, int err, const char *path)
{
	switch (-err) {
	case ENOSPC:
		trouble_advise(trouble, "free some space, or raise the quota, where %s lies", path);
		break;
	case EROFS:
		trouble_advise(trouble,
			       "mount the file system read-write, or choose another `state`"
			       " directory");
		break;
	case EACCES:
	case EPERM:
		trouble_advise(trouble,
			       "let the user of sluiced read and write %s and its directory", path);
		break;
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
		trouble_advise(trouble, "make the directory of %s, or correct `state`", path);
		break;
	case EBUSY:
		trouble_advise(trouble, "end whatever else uses it: `fuser -v %s` names it", path);
		break;
	case EUCLEAN:
		trouble_advise(trouble,
			       "put %s back from a backup; `sqlite3 %s .recover` shows what can be"
			       " saved; moved away together with its -wal and -shm it is made anew,"
			       " without overrides",
			       path, path);
		break;
	case ESTALE:
		trouble_advise(trouble, "put the file back, or restart sluiced");
		break;
	case EIO:
		trouble_advise(trouble, "look for errors of the disk in the kernel's log");
		break;
	}
}

int database_file_trouble(struct trouble *trouble, int err, const char *path, const char *doing)
{
	trouble_set(trouble, err, "cannot %s %s: %s", doing, path, strerror(-err));
	database_advise(trouble, err, path);
	return err;
}

/* A log beside a missing database would be replayed into the new one. */
static int refuse_orphan(const char *path, struct trouble *trouble)
{
	char log[4096];
	struct stat status;

	(void)snprintf(log, sizeof(log), "%s-wal", path);
	if (stat(log, &status) != 0 || status.st_size == 0)
		return -ENOENT;
	trouble_set(trouble, -EUCLEAN, "%s is gone, but its log %s is there", path, log);
	trouble_advise(trouble, "put the database back beside its log, or remove the log: then all"
				" overrides are lost");
	return -EUCLEAN;
}

int database_file_own(const char *path, struct trouble *trouble)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = OWNER_BYTE, .l_len = 1 };
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat status;
	int err;

	if (fd < 0 && errno == ENOENT)
		return refuse_orphan(path, trouble);
	if (fd < 0)
		return database_file_trouble(trouble, -errno, path, "open");
	if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
		err = errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
		if (err == -EBUSY) {
			trouble_set(trouble, err, "%s belongs to another process", path);
			database_advise(trouble, err, path);
		} else {
			database_file_trouble(trouble, err, path, "lock");
		}
		goto fail;
	}
	if (fstat(fd, &status) != 0) {
		err = database_file_trouble(trouble, -errno, path, "open");
		goto fail;
	}
	if (status.st_size == 0) {
		err = trouble_set(trouble, -EUCLEAN, "%s is empty: it is no database", path);
		database_advise(trouble, err, path);
		goto fail;
	}
	return fd;

fail:
	(void)close(fd);
	return err;
}

static int write_schema(sqlite3 *sqlite)
{
	char *pragmas = sqlite3_mprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;",
					DATABASE_APPLICATION_ID, DATABASE_VERSION);
	int version, status;

	if (!pragmas)
		return SQLITE_NOMEM;
	/* A draft that fails is thrown away, so its journal need not be a file. */
	status = sqlite3_exec(sqlite, "PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE", NULL, NULL,
			      NULL);
	for (version = 1; version <= DATABASE_VERSION && status == SQLITE_OK; version++)
		status = sqlite3_exec(sqlite, database_migration(version), NULL, NULL, NULL);
	if (status == SQLITE_OK)
		status = sqlite3_exec(sqlite, pragmas, NULL, NULL, NULL);
	if (status == SQLITE_OK)
		status = sqlite3_exec(sqlite, "COMMIT", NULL, NULL, NULL);
	sqlite3_free(pragmas);
	return status;
}

static int write_empty(const char *draft, struct trouble *trouble)
{
	struct database database = { .owner_fd = -1, .path = (char *)draft };
	int err = 0;

	errno = 0;
	if (sqlite3_open_v2(draft, &database.sqlite, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
			    NULL) != SQLITE_OK ||
	    write_schema(database.sqlite) != SQLITE_OK)
		err = database_trouble(&database, trouble);
	(void)sqlite3_close(database.sqlite);
	return err;
}

/* The name must be as lasting as what is in the file. */
static int sync_directory(const char *path)
{
	char *copy = strdup(path);
	int fd, err = 0;

	if (!copy)
		return -ENOMEM;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(copy);
	if (fd < 0)
		return -errno;
	if (fsync(fd) != 0)
		err = -errno;
	(void)close(fd);
	return err;
}

int database_file_make(const char *path, struct trouble *trouble)
{
	char *draft = NULL;
	int fd, err;

	if (asprintf(&draft, "%s.XXXXXX", path) < 0)
		return trouble_set(trouble, -ENOMEM, "no memory");
	fd = mkostemp(draft, O_CLOEXEC); /* 0600 */
	if (fd < 0) {
		err = database_file_trouble(trouble, -errno, path, "make");
		free(draft);
		return err;
	}
	(void)close(fd);
	err = write_empty(draft, trouble);
	if (err)
		goto out;
	/* Unlike rename() it does not replace what another process has made meanwhile. */
	if (link(draft, path) != 0 && errno != EEXIST) {
		err = database_file_trouble(trouble, -errno, path, "make");
		goto out;
	}
	err = sync_directory(path);
	if (err)
		database_file_trouble(trouble, err, path, "make");
out:
	(void)unlink(draft);
	free(draft);
	return err;
}
