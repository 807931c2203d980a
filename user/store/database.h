/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SQLite file that sluice keeps its overrides and its audit in: made, owned, checked and
 * brought up to date; transactions; and SQLite's errors as -errno with a cause and a remedy. Used
 * within store/ only. Nothing here locks: the caller lets one thread in at a time.
 */
#ifndef SLUICE_STORE_DATABASE_H
#define SLUICE_STORE_DATABASE_H

#include <stdint.h>

#include <sqlite3.h>

#include "base/trouble.h"

enum {
	DATABASE_APPLICATION_ID = 0x736c6375, /* "slcu", in the file's header: `file` shows it */
	DATABASE_VERSION = 1, /* user_version of the schema that this program writes */
};

/* All zeros is a database that is not open. */
struct database {
	sqlite3 *sqlite;
	int owner_fd; /* holds the lock that says whose the file is; -1: none */
	char *path;
};

/*
 * Open the database of that path, or make it (mode 0600) if there is none. On failure *database is
 * closed, *trouble says why and what would help:
 *
 *	-EUCLEAN	damaged, empty, or not a database of sluice
 *	-ENOTSUP	written by a newer sluice, or on a file system that cannot do what is needed
 *	-EBUSY		another process owns it, or holds a lock for longer than busy_timeout_ms
 *	-EACCES -EROFS -ENOENT -ENOTDIR -EISDIR -ENOSPC -EIO -ENOMEM …	as for any file
 */
int database_open(const char *path, int busy_timeout_ms, struct database *database,
		  struct trouble *trouble);

/* All statements must have been finalized. Fine with one that is not open. */
void database_close(struct database *database);

int database_prepare(struct database *database, const char *sql, sqlite3_stmt **out,
		     struct trouble *trouble);

/* Begin a transaction that writes. -ESTALE: the file is no longer the one at its path. */
int database_begin(struct database *database, struct trouble *trouble);

/* 0: everything since database_begin() is on the disk. Else nothing of it is, and it is over. */
int database_commit(struct database *database, struct trouble *trouble);

void database_rollback(struct database *database);

/* Within a transaction: write what the file says already, as a change would. */
int database_touch(struct database *database, struct trouble *trouble);

/* Run a statement that returns no rows, and reset it. */
int database_run(struct database *database, sqlite3_stmt *statement, struct trouble *trouble);

/* sqlite3_step(), of which database_trouble() can tell the cause. */
int database_step(sqlite3_stmt *statement);

/* What the last call of SQLite, just now, failed of: sets *trouble and returns -errno. */
int database_trouble(const struct database *database, struct trouble *trouble);

/* Used by database_open(); in database_file.c. */

/* Make a file at path with an empty database in it, all at once. 0 also if one appeared meanwhile.
 */
int database_file_make(const char *path, struct trouble *trouble);

/* Open the file and lock it for this process: a descriptor, or -errno with *trouble. -ENOENT: there
 * is none, nor anything left of one. */
int database_file_own(const char *path, struct trouble *trouble);

/* The statements that bring a database from the version before to this one: 1 to DATABASE_VERSION.
 */
const char *database_migration(int version);

/* -errno and *trouble for an errno of the file system. */
int database_file_trouble(struct trouble *trouble, int err, const char *path, const char *doing);

/* A phrase of what would help against -errno; "" if there is nothing to advise. */
void database_advise(struct trouble *trouble, int err, const char *path);

#endif
