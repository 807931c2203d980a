/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluiced: reads its configuration, starts the service, keeps it up, ends it at a signal. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/notify.h"
#include "base/version.h"
#include "daemon/log.h"
#include "daemon/service.h"
#include "engine/engine.h"

#define CONFIG_DEFAULT "/etc/sluice/sluice.yaml"

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_PERMISSION = 77,
	EXIT_CONFIG = 78,
	NS_PER_MS = 1000000,
};

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static void print_help(FILE *out)
{
	fprintf(out,
		"usage: sluiced [--config FILE]\n\n"
		"Answers whether a request may be read, a tenant may send it, and it may wait.\n\n"
		"  -c, --config FILE   the configuration (" CONFIG_DEFAULT ")\n"
		"  -h, --help          print this help\n"
		"      --version       print the version\n\n"
		"SIGHUP reads the configuration anew; SIGTERM and SIGINT end it. See "
		"sluiced(8).\n");
}

static int complain(int err, const struct trouble *trouble)
{
	log_line(LOG_LEVEL_ERROR, "%s%s%s", trouble->cause[0] ? trouble->cause : strerror(-err),
		 trouble->remedy[0] ? " -> " : "", trouble->remedy);
	return err == -EPERM || err == -EACCES ? EXIT_PERMISSION : EXIT_FAILED;
}

static int load(const char *config, struct settings **out)
{
	struct settings_error error = { 0 };
	int err = settings_load(config, out, &error);

	if (err)
		settings_error_print(&error, config, stderr);
	return err ? EXIT_CONFIG : EXIT_DONE;
}

/* Wait for a signal until the next tick; 0: none came. */
static int wait_for_signal(const sigset_t *signals, uint64_t until_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	const struct timespec left = { .tv_nsec = (long)left_ns };
	int number = sigtimedwait(signals, NULL, &left);

	return number < 0 ? 0 : number;
}

static void reload(struct service *service, const struct notify *notify)
{
	struct trouble trouble;

	(void)notify_reloading(notify, clock_monotonic_ns());
	(void)service_reload(service, &trouble);
	(void)notify_ready(notify);
}

static void run(struct service *service, const struct notify *notify, const sigset_t *signals)
{
	uint64_t next_ns = clock_monotonic_ns(), fed_ns = 0;

	for (;;) {
		int number;

		if (clock_monotonic_ns() >= next_ns) {
			service_tick(service);
			/* Fed by upkeep: if that hangs, the watchdog is right to bark. */
			if (notify->watchdog_ns && next_ns - fed_ns > notify->watchdog_ns / 3) {
				(void)notify_watchdog(notify);
				fed_ns = next_ns;
			}
			next_ns = clock_monotonic_ns() + (uint64_t)ENGINE_TICK_MS * NS_PER_MS;
		}
		number = wait_for_signal(signals, next_ns);
		if (number == SIGHUP)
			reload(service, notify);
		else if (number)
			return;
	}
}

static int serve(const char *config)
{
	struct inherited inherited[INHERITED_MAX];
	struct service_options start = { .config = config, .inherited = inherited };
	struct trouble trouble = { 0 };
	struct service *service;
	struct settings *settings;
	struct notify notify;
	sigset_t signals;
	int err, code;

	/* Blocked before there is any thread, so that only run() sees them. */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	if (notify_open(&notify))
		log_line(LOG_LEVEL_WARNING, "NOTIFY_SOCKET makes no sense and is passed over");
	err = notify_inherited(inherited, &start.inherited_count);
	if (err) {
		trouble_set(&trouble, 0, "LISTEN_FDS names what is no socket, or too many: %s",
			    strerror(-err));
		return complain(err, &trouble);
	}
	code = load(config, &settings);
	if (code)
		return code;
	start.settings = settings;
	err = service_start(&start, &service, &trouble);
	settings_free(settings);
	if (err)
		return complain(err, &trouble);
	(void)notify_ready(&notify);
	run(service, &notify, &signals);
	(void)notify_stopping(&notify);
	service_stop(service);
	notify_close(&notify);
	log_line(LOG_LEVEL_INFO, "ended");
	return EXIT_DONE;
}

int main(int argc, char **argv)
{
	const char *config = CONFIG_DEFAULT;
	int chosen;

	while ((chosen = getopt_long(argc, argv, "c:hV", options, NULL)) != -1) {
		switch (chosen) {
		case 'c':
			config = optarg;
			break;
		case 'h':
			print_help(stdout);
			return EXIT_DONE;
		case 'V':
			printf("sluiced " SLUICE_VERSION "\n");
			return EXIT_DONE;
		default:
			fprintf(stderr, "sluiced --help tells how it is used\n");
			return EXIT_USAGE;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "sluiced takes no argument; sluiced --help tells how it is used\n");
		return EXIT_USAGE;
	}
	return serve(config);
}
