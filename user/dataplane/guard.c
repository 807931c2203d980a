/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The guard's child, and taking back. */
#include "dataplane/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dataplane/apply.h"
#include "dataplane/maps.h"
#include "dataplane/takeover.h"

static void turn_back(const struct undo *undo)
{
	struct trouble trouble;
	struct maps maps;

	if (maps_open(&maps, &undo->pins, true, &trouble))
		return;
	if ((maps.config->active & 1) != undo->active_before)
		apply_turn_over(&maps);
	maps_close(&maps);
}

/* What was made may have got as far as staging, or into the set, or nowhere. */
static void take_back_step(const struct undo *undo, const struct undo_step *step)
{
	const struct pins *pins = &undo->pins;
	char path[PATH_MAX];

	if (step->what != UNDO_MADE) {
		link_put_back(pins_version_path(pins, step->version, path), step->kind,
			      step->ifindex);
		return;
	}
	(void)link_remove(link_path(pins->staging, step->kind, step->ifindex, path));
	(void)link_remove(link_path(pins->set, step->kind, step->ifindex, path));
}

static void take_back(const struct undo *undo)
{
	takeover_withdraw(undo);
	for (uint32_t at = undo->step_count; at > 0; at--)
		take_back_step(undo, &undo->steps[at - 1]);
	(void)pins_remove(undo->pins.staging);
	if (undo->fresh) {
		(void)pins_remove(undo->pins.set);
		(void)rmdir(undo->pins.root);
		return;
	}
	if (undo->turned_over)
		turn_back(undo);
}

/* What is left to do when all is in force: let go what would have been put back. */
static void finish(const struct undo *undo)
{
	char folder[PATH_MAX], path[PATH_MAX];

	for (uint32_t at = 0; at < undo->step_count; at++) {
		const struct undo_step *step = &undo->steps[at];

		(void)pins_version_path(&undo->pins, step->version, folder);
		if (step->what == UNDO_RENEWED)
			link_let_go(folder, step->kind, step->ifindex);
		if (step->what == UNDO_PARKED)
			(void)link_remove(link_path(folder, step->kind, step->ifindex, path));
	}
	takeover_finish(undo);
}

/* Ctrl-C and a closed terminal reach the child as well; it outlives them to clean up. */
static void guard_child(const struct undo *undo, int fd)
{
	static const char message[] = "sluice: attach was interrupted; taken back\n";
	char all_is_well;

	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	if (read(fd, &all_is_well, 1) == 1)
		_exit(0);
	if (undo->is_final) {
		finish(undo);
		_exit(0);
	}
	take_back(undo);
	(void)!write(STDERR_FILENO, message, sizeof(message) - 1);
	_exit(0);
}

int guard_start(struct guard *guard, const struct pins *pins)
{
	int ends[2], err;

	guard->undo = mmap(NULL, sizeof(*guard->undo), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard->undo == MAP_FAILED)
		return -errno;
	guard->undo->pins = *pins;
	if (pipe2(ends, O_CLOEXEC)) {
		err = -errno;
		goto fail;
	}
	guard->child = fork();
	if (guard->child < 0) {
		err = -errno;
		(void)close(ends[0]);
		(void)close(ends[1]);
		goto fail;
	}
	if (!guard->child) {
		(void)close(ends[1]);
		guard_child(guard->undo, ends[0]);
	}
	(void)close(ends[0]);
	guard->pipe_fd = ends[1];
	return 0;
fail:
	(void)munmap(guard->undo, sizeof(*guard->undo));
	return err;
}

static void end(struct guard *guard)
{
	static const char all_is_well = 1;

	(void)!write(guard->pipe_fd, &all_is_well, 1);
	(void)close(guard->pipe_fd);
	while (waitpid(guard->child, NULL, 0) < 0 && errno == EINTR)
		;
	(void)munmap(guard->undo, sizeof(*guard->undo));
}

void guard_commit(struct guard *guard)
{
	guard->undo->is_final = true;
	finish(guard->undo);
	end(guard);
}

void guard_roll_back(struct guard *guard)
{
	take_back(guard->undo);
	end(guard);
}
