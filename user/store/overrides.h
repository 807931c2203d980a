/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Overrides of tenants' limits, and the audit of their changes, in one SQLite file. A change and
 * its audit record are one transaction: both are on the disk when the function returns 0, and
 * neither is, nor will be, when it returns an error (but see store/database.c for a disk that fails
 * twice and a crash after that). What is in force is not decided here: the engine keeps the limits
 * in memory, and applies a change after it has been stored.
 *
 * All functions are thread safe (one lock for all) and block on the disk; when another process has
 * locked the file, for up to the busy timeout. Open a file only once in a process. A store must not
 * be used in a forked child. Functions that visit call back with the lock held where it says so:
 * then the visitor must not call the store.
 *
 * Errors of all functions: -errno, and *trouble with cause and remedy. -ENOSPC no room (disk,
 * quota, file size), -EROFS, -EACCES, -EBUSY locked, -EIO, -EUCLEAN damaged, -ESTALE the file was
 * removed or replaced under us, -ENOMEM; those that a function adds stand with it.
 */
#ifndef SLUICE_STORE_OVERRIDES_H
#define SLUICE_STORE_OVERRIDES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trouble.h"
#include "limit/limits.h"
#include "store/audit.h"

struct override_store;

enum { OVERRIDE_BUSY_TIMEOUT_MS = 250 };

struct override_store_options {
	const char *path;    /* of the file; its directory must exist */
	uint64_t audit_max;  /* records that are kept; 0: AUDIT_MAX_DEFAULT */
	int busy_timeout_ms; /* 0: OVERRIDE_BUSY_TIMEOUT_MS */
};

/*
 * Open the file, or make it (0600) if there is none. A file that cannot be read and trusted is
 * refused, for starting without overrides would silently bring old limits back: damaged, empty,
 * not ours (-EUCLEAN), of a newer version (-ENOTSUP), locked or owned by another process (-EBUSY).
 * Opens on a full disk if the file exists; changes then fail.
 */
int override_store_open(const struct override_store_options *options, struct override_store **out,
			struct trouble *trouble);

/* NULL is fine. */
void override_store_close(struct override_store *store);

struct override_visitor {
	/* Not 0 ends the load, which returns it. */
	int (*entry)(const struct limits_entry *entry, void *data);
	/* A row that cannot be read. It stays in the file until its tenant is put or removed. */
	void (*skipped)(int64_t row_id, const char *why, void *data);
	void *data;
};

/* Visit each override, in no order, with the lock held. Those whose time is over as well: call
 * override_store_expire() before. */
int override_store_load(struct override_store *store, const struct override_visitor *visitor,
			struct trouble *trouble);

/*
 * What is recorded of a change. The caller lets one change happen at a time, from looking at what
 * is in force (`before`) to having applied the change: the lock here covers the file only.
 */
struct override_change {
	struct audit_actor actor;
	int64_t now_ms;     /* Unix time */
	const char *before; /* JSON; NULL: none */
	const char *after;
	bool keep_debt;
};

/* Set a tenant's override, replacing. -EINVAL: not a tenant id, or an impossible time. */
int override_store_put(struct override_store *store, const struct limits_entry *entry,
		       const struct override_change *change, struct trouble *trouble);

/* Take a tenant's override away, also one that cannot be read. -ENOENT: there is none, and nothing
 * is recorded. */
int override_store_remove(struct override_store *store, const char *tenant,
			  const struct override_change *change, struct trouble *trouble);

/*
 * Take away what has expired at now_ms, with a record each (actor ttl; before is the override's
 * limit, after is NULL). This is a change too, see above. Done in transactions of bounded size;
 * after each, without the lock, expired() is called for every tenant in it (NULL is fine). An error
 * leaves the transactions before it done. Rows that cannot be read are left.
 */
int override_store_expire(struct override_store *store, int64_t now_ms,
			  void (*expired)(const char *tenant, void *data), void *data,
			  struct trouble *trouble);

/* Whether a change could be stored now: writes a page to the disk, as a change would, and changes
 * nothing. */
int override_store_try(struct override_store *store, struct trouble *trouble);

/* Visit audit records, newest first, with the lock held, until visit returns other than 0, which is
 * then returned. To page, pass the last id as before_id. */
int override_store_audit(struct override_store *store, const struct audit_query *query,
			 int (*visit)(const struct audit_record *record, void *data), void *data,
			 struct trouble *trouble);

#endif
