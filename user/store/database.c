/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opens the database and runs transactions on it so that what has been acknowledged is on the disk
 * and what has failed has left nothing.
 *
 * Journal: a write-ahead log, synchronous FULL. A commit is one append to the log and one fsync of
 * it, and readers from outside are not in the way of a writer. What a process that was killed has
 * left in the log is replayed, up to its last whole transaction, by the next one to open the file.
 *
 * A commit that fails is the one case that needs care. SQLite forgets the transaction, but if it
 * was the fsync that failed, all of it may stand in the log, and would be replayed if the process
 * died before writing again. So the log is emptied after such a failure. If that fails too, the
 * change (with its audit record) may come back after a crash, as with any disk that has begun to
 * fail.
 *
 * The log's index lives in a shared mapping of a small file. If there is no room for it, the
 * database is opened for this process alone, which keeps the index in memory: a daemon must come
 * up, with the overrides it has, on a full disk too.
 */
#include "store/database.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * errno is what SQLite's own sqlite3_system_errno() would return, were it not forgotten when a
 * COMMIT fails; so it is set to 0 before each call.
 */
static int file_errno(int code, int system_errno)
{
	switch (system_errno) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return -ENOSPC;
	case EACCES:
	case EPERM:
		return -EACCES;
	case EROFS:
		return -EROFS;
	case ENOENT:
		return code == SQLITE_CANTOPEN ? -ENOENT : -EIO;
	case ENOMEM:
		return -ENOMEM;
	}
	return -EIO;
}

static bool is_of_file(int code)
{
	return code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
}

static int errno_of(int extended, int system_errno)
{
	switch (extended) {
	case SQLITE_READONLY_DBMOVED:
		return -ESTALE;
	case SQLITE_READONLY_DIRECTORY:
		return -EACCES;
	case SQLITE_IOERR_NOMEM:
		return -ENOMEM;
	}
	switch (extended & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return -EBUSY;
	case SQLITE_ERROR: /* our statements are right, so the schema is not */
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_PERM:
		return -EACCES;
	}
	return is_of_file(extended & 0xff) ? file_errno(extended & 0xff, system_errno) : -EIO;
}

int database_trouble(const struct database *database, struct trouble *trouble)
{
	int system_errno = errno, extended, err;

	if (!database->sqlite)
		return trouble_set(trouble, -ENOMEM, "%s: no memory", database->path);
	extended = sqlite3_extended_errcode(database->sqlite);
	err = errno_of(extended, system_errno);
	if (system_errno && is_of_file(extended & 0xff))
		trouble_set(trouble, err, "%s: %s (%s)", database->path,
			    sqlite3_errmsg(database->sqlite), strerror(system_errno));
	else
		trouble_set(trouble, err, "%s: %s", database->path,
			    sqlite3_errmsg(database->sqlite));
	database_advise(trouble, err, database->path);
	return err;
}

static int run(struct database *database, const char *sql, struct trouble *trouble)
{
	errno = 0;
	if (sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK)
		return database_trouble(database, trouble);
	return 0;
}

int database_prepare(struct database *database, const char *sql, sqlite3_stmt **out,
		     struct trouble *trouble)
{
	errno = 0;
	if (sqlite3_prepare_v3(database->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) !=
	    SQLITE_OK)
		return database_trouble(database, trouble);
	return 0;
}

int database_step(sqlite3_stmt *statement)
{
	errno = 0;
	return sqlite3_step(statement);
}

int database_run(struct database *database, sqlite3_stmt *statement, struct trouble *trouble)
{
	int err = 0;

	if (database_step(statement) != SQLITE_DONE)
		err = database_trouble(database, trouble);
	(void)sqlite3_reset(statement); /* repeats the error */
	(void)sqlite3_clear_bindings(statement);
	return err;
}

/* ---- transactions */

int database_begin(struct database *database, struct trouble *trouble)
{
	int has_moved = 0;

	/* SQLite would go on writing to a file that has no name any more. */
	(void)sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
	if (has_moved) {
		trouble_set(trouble, -ESTALE, "%s was removed or replaced while in use",
			    database->path);
		database_advise(trouble, -ESTALE, database->path);
		return -ESTALE;
	}
	return run(database, "BEGIN IMMEDIATE", trouble);
}

void database_rollback(struct database *database)
{
	/* After some errors SQLite has already done it. */
	if (!sqlite3_get_autocommit(database->sqlite))
		(void)sqlite3_exec(database->sqlite, "ROLLBACK", NULL, NULL, NULL);
}

int database_touch(struct database *database, struct trouble *trouble)
{
	char pragma[48];

	(void)snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", DATABASE_VERSION);
	return run(database, pragma, trouble);
}

int database_commit(struct database *database, struct trouble *trouble)
{
	int err = run(database, "COMMIT", trouble);

	if (!err)
		return 0;
	database_rollback(database);
	/* Nothing can be done if this fails as well: see above. */
	(void)sqlite3_wal_checkpoint_v2(database->sqlite, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
					NULL);
	return err;
}

/* ---- opening */

/* The first column of the first row, to be freed with free(). */
static int ask(struct database *database, const char *sql, char **out, struct trouble *trouble)
{
	sqlite3_stmt *statement = NULL;
	int err = database_prepare(database, sql, &statement, trouble);

	if (err)
		return err;
	if (database_step(statement) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(statement, 0);

		*out = strdup(text ? text : "");
		if (!*out)
			err = trouble_set(trouble, -ENOMEM, "%s: no memory", database->path);
	} else {
		err = database_trouble(database, trouble);
	}
	(void)sqlite3_finalize(statement);
	return err;
}

static int ask_number(struct database *database, const char *sql, long *out,
		      struct trouble *trouble)
{
	char *text = NULL;
	int err = ask(database, sql, &text, trouble);

	if (err)
		return err;
	*out = strtol(text, NULL, 10);
	free(text);
	return 0;
}

static int refuse(const struct database *database, int err, const char *why,
		  struct trouble *trouble)
{
	trouble_set(trouble, err, "%s %s", database->path, why);
	database_advise(trouble, err, database->path);
	return err;
}

/* Settings of the connection. What a hostile file could run on its own is turned off. */
static int connect_to(struct database *database, int busy_timeout_ms, bool alone,
		      struct trouble *trouble)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

	errno = 0;
	if (sqlite3_open_v2(database->path, &database->sqlite, flags, NULL) != SQLITE_OK)
		return database_trouble(database, trouble);
	(void)sqlite3_busy_timeout(database->sqlite, busy_timeout_ms);
	(void)sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	(void)sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	if (alone)
		return run(database, "PRAGMA locking_mode = EXCLUSIVE", trouble);
	return 0;
}

/* Before anything is changed: a file of somebody else's is left as it is. */
static int recognise(struct database *database, long *version, struct trouble *trouble)
{
	long application_id;
	int err = ask_number(database, "PRAGMA application_id", &application_id, trouble);

	if (!err)
		err = ask_number(database, "PRAGMA user_version", version, trouble);
	if (err)
		return err;
	if (application_id != DATABASE_APPLICATION_ID || *version < 1)
		return refuse(database, -EUCLEAN, "is not a database of sluice", trouble);
	if (*version > DATABASE_VERSION) {
		trouble_set(trouble, -ENOTSUP,
			    "%s has version %ld, and this sluiced knows versions up to %d",
			    database->path, *version, DATABASE_VERSION);
		trouble_advise(trouble, "run the sluiced that wrote it, or a newer one");
		return -ENOTSUP;
	}
	return 0;
}

static int set_journal(struct database *database, struct trouble *trouble)
{
	char *mode = NULL;
	int err = ask(database, "PRAGMA journal_mode = WAL", &mode, trouble);
	bool is_log;

	if (err)
		return err;
	is_log = !strcmp(mode, "wal");
	free(mode);
	if (!is_log) {
		trouble_set(trouble, -ENOTSUP,
			    "the file system of %s cannot hold a write-ahead log", database->path);
		trouble_advise(trouble, "choose a `state` directory on a local disk");
		return -ENOTSUP;
	}
	/* The log shrinks back to 4 MiB after something has kept it from being emptied. */
	return run(database,
		   "PRAGMA synchronous = FULL;"
		   "PRAGMA journal_size_limit = 4194304",
		   trouble);
}

static int check(struct database *database, struct trouble *trouble)
{
	char *found = NULL;
	int err = ask(database, "PRAGMA quick_check(1)", &found, trouble);

	if (err)
		return err;
	if (strcmp(found, "ok") != 0) {
		for (char *c = found; *c; c++)
			if (*c == '\n')
				*c = ' ';
		trouble_set(trouble, -EUCLEAN, "%s is damaged: %.160s", database->path, found);
		database_advise(trouble, -EUCLEAN, database->path);
		err = -EUCLEAN;
	}
	free(found);
	return err;
}

/* Begins a transaction even if there is nothing to do: it shows that writing is possible at all. */
static int migrate(struct database *database, long version, struct trouble *trouble)
{
	char pragma[48];
	int err = database_begin(database, trouble);

	if (err)
		return err;
	while (version < DATABASE_VERSION && !err) {
		version++;
		(void)snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %ld", version);
		err = run(database, database_migration((int)version), trouble);
		if (!err)
			err = run(database, pragma, trouble);
	}
	if (err) {
		database_rollback(database);
		return err;
	}
	return database_commit(database, trouble);
}

static int connect_and_check(struct database *database, int busy_timeout_ms, bool alone,
			     struct trouble *trouble)
{
	long version;
	int err = connect_to(database, busy_timeout_ms, alone, trouble);

	if (!err)
		err = recognise(database, &version, trouble);
	if (!err)
		err = set_journal(database, trouble);
	if (!err)
		err = check(database, trouble);
	if (!err)
		err = migrate(database, version, trouble);
	if (err) {
		(void)sqlite3_close(database->sqlite);
		database->sqlite = NULL;
	}
	return err;
}

static int own(struct database *database, struct trouble *trouble)
{
	int fd = database_file_own(database->path, trouble);
	int err;

	if (fd == -ENOENT) {
		err = database_file_make(database->path, trouble);
		if (err)
			return err;
		fd = database_file_own(database->path, trouble);
	}
	if (fd == -ENOENT)
		return refuse(database, -ENOENT, "vanished as soon as it was made", trouble);
	if (fd < 0)
		return fd;
	database->owner_fd = fd;
	return 0;
}

int database_open(const char *path, int busy_timeout_ms, struct database *database,
		  struct trouble *trouble)
{
	int err;

	*database = (struct database){ .owner_fd = -1 };
	/* A path that begins with `file:` or a colon means something else to SQLite. */
	if (asprintf(&database->path, "%s%s", *path == '/' ? "" : "./", path) < 0) {
		database->path = NULL;
		return trouble_set(trouble, -ENOMEM, "%s: no memory", path);
	}
	err = own(database, trouble);
	if (!err)
		err = connect_and_check(database, busy_timeout_ms, false, trouble);
	if (err == -ENOSPC && database->owner_fd >= 0)
		err = connect_and_check(database, busy_timeout_ms, true, trouble);
	if (err)
		database_close(database);
	return err;
}

void database_close(struct database *database)
{
	if (!database->path)
		return;
	if (database->sqlite)
		(void)sqlite3_close(database->sqlite);
	if (database->owner_fd >= 0)
		(void)close(database->owner_fd);
	free(database->path);
	*database = (struct database){ .owner_fd = -1 };
}
