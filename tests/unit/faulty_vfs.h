/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A disk that fails on demand, put under SQLite as its default file system: the n-th step that
 * changes something fails once, fails from then on, or kills the process. A write that fails or
 * kills is done by half before. It also knows whether the log has been synced since it was written.
 */
#ifndef SLUICE_FAULTY_VFS_H
#define SLUICE_FAULTY_VFS_H

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

enum fault { FAULT_NONE, FAULT_ONCE, FAULT_ALWAYS, FAULT_KILL };

static struct {
	enum fault fault;
	long at;       /* the step that fails, from 1 */
	long steps;    /* so far */
	bool is_full;  /* writes fail with SQLITE_FULL, not with an I/O error */
	bool failed;   /* a step did */
	bool unsynced; /* the log was written to and not synced since */
	sqlite3_vfs *real;
} disk;

struct faulty_file {
	sqlite3_file file;
	bool is_log;
	sqlite3_file *real;
};

static inline sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct faulty_file *)file)->real;
}

static inline bool step_fails(void)
{
	disk.steps++;
	if (disk.fault == FAULT_NONE || disk.steps < disk.at)
		return false;
	if (disk.fault == FAULT_ONCE && disk.steps > disk.at)
		return false;
	disk.failed = true;
	return true;
}

static inline int fail_with(int status)
{
	if (disk.fault == FAULT_KILL)
		(void)kill(getpid(), SIGKILL);
	return status;
}

static inline int faulty_close(sqlite3_file *file)
{
	return real_of(file)->pMethods->xClose(real_of(file));
}

static inline int faulty_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 at)
{
	return real_of(file)->pMethods->xRead(real_of(file), bytes, count, at);
}

static inline int faulty_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at)
{
	sqlite3_file *real = real_of(file);

	if (((struct faulty_file *)file)->is_log)
		disk.unsynced = true;
	if (step_fails()) {
		(void)real->pMethods->xWrite(real, bytes, count / 2, at);
		return fail_with(disk.is_full ? SQLITE_FULL : SQLITE_IOERR_WRITE);
	}
	return real->pMethods->xWrite(real, bytes, count, at);
}

static inline int faulty_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	if (step_fails())
		return fail_with(SQLITE_IOERR_TRUNCATE);
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static inline int faulty_sync(sqlite3_file *file, int flags)
{
	if (step_fails())
		return fail_with(SQLITE_IOERR_FSYNC);
	if (((struct faulty_file *)file)->is_log)
		disk.unsynced = false;
	return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static inline int faulty_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static inline int faulty_lock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xLock(real_of(file), level);
}

static inline int faulty_unlock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static inline int faulty_check_lock(sqlite3_file *file, int *out)
{
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static inline int faulty_control(sqlite3_file *file, int operation, void *argument)
{
	return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static inline int faulty_sector(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static inline int faulty_characteristics(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static inline int faulty_map(sqlite3_file *file, int page, int size, int extend,
			     void volatile **out)
{
	if (extend && step_fails())
		return fail_with(SQLITE_IOERR_SHMSIZE);
	return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, out);
}

/* Only death strikes here: a lock that is not given is another test's matter. */
static inline int faulty_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
	if (disk.fault == FAULT_KILL && step_fails())
		(void)fail_with(SQLITE_OK);
	return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static inline void faulty_barrier(sqlite3_file *file)
{
	real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static inline int faulty_unmap(sqlite3_file *file, int delete)
{
	return real_of(file)->pMethods->xShmUnmap(real_of(file), delete);
}

static const sqlite3_io_methods faulty_methods = {
	.iVersion = 2,
	.xClose = faulty_close,
	.xRead = faulty_read,
	.xWrite = faulty_write,
	.xTruncate = faulty_truncate,
	.xSync = faulty_sync,
	.xFileSize = faulty_size,
	.xLock = faulty_lock,
	.xUnlock = faulty_unlock,
	.xCheckReservedLock = faulty_check_lock,
	.xFileControl = faulty_control,
	.xSectorSize = faulty_sector,
	.xDeviceCharacteristics = faulty_characteristics,
	.xShmMap = faulty_map,
	.xShmLock = faulty_shm_lock,
	.xShmBarrier = faulty_barrier,
	.xShmUnmap = faulty_unmap,
};

static inline int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
			      int *out_flags)
{
	struct faulty_file *faulty = (struct faulty_file *)file;
	int status;

	(void)vfs;
	faulty->file.pMethods = NULL;
	faulty->is_log = (flags & SQLITE_OPEN_WAL) != 0;
	faulty->real = (sqlite3_file *)(faulty + 1);
	if ((flags & SQLITE_OPEN_CREATE) && step_fails())
		return fail_with(SQLITE_CANTOPEN);
	status = disk.real->xOpen(disk.real, name, faulty->real, flags, out_flags);
	if (faulty->real->pMethods)
		faulty->file.pMethods = &faulty_methods;
	return status;
}

static inline int faulty_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
	(void)vfs;
	if (step_fails())
		return fail_with(SQLITE_IOERR_DELETE);
	return disk.real->xDelete(disk.real, name, sync_directory);
}

/* From now on all databases of this process lie on the faulty disk, which works for now. */
static inline void disk_install(void)
{
	static sqlite3_vfs vfs;

	disk.real = sqlite3_vfs_find(NULL);
	vfs = *disk.real;
	vfs.zName = "faulty";
	vfs.szOsFile = (int)sizeof(struct faulty_file) + disk.real->szOsFile;
	vfs.xOpen = faulty_open;
	vfs.xDelete = faulty_delete;
	(void)sqlite3_vfs_register(&vfs, 1);
}

static inline void disk_break(enum fault fault, long at)
{
	disk.fault = fault;
	disk.at = at;
	disk.steps = 0;
	disk.failed = false;
}

static inline void disk_repair(void)
{
	disk.fault = FAULT_NONE;
}

#endif
