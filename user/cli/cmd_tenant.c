/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice tenant, audit and reload: what the daemon is asked for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/daemon_client.h"
#include "limit/tenant_limit.h"

enum tenant_option {
	TENANT_RATE,
	TENANT_BURST,
	TENANT_BYTES_PER_SECOND,
	TENANT_BURST_BYTES,
	TENANT_MAX_BODY_BYTES,
	TENANT_MAX_QUEUE,
	TENANT_MAX_QUEUE_BYTES,
	TENANT_UNLIMITED,
	TENANT_TTL,
	TENANT_KEEP_DEBT,
	TENANT_BYTES,
};

#define LIST_PAGE "5000" /* tenants asked for at once */

enum {
	NUMBER_TEXT_MAX = 24,
	NS_PER_MS = 1000000,
	/* To as many digits as an operator has written. */
	RECORD_FLAGS = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15),
};

static const struct option_row tenant_options[] = {
	[TENANT_RATE] = { "rate", 0, "RATE", "set: hooks a second" },
	[TENANT_BURST] = { "burst", 0, "N", "set: hooks at once after a pause" },
	[TENANT_BYTES_PER_SECOND] = { "bytes-per-second", 0, "SIZE", "set: body bytes a second" },
	[TENANT_BURST_BYTES] = { "burst-bytes", 0, "SIZE",
				 "set: bytes at once (one second's worth)" },
	[TENANT_MAX_BODY_BYTES] = { "max-body-bytes", 0, "SIZE", "set: the biggest body" },
	[TENANT_MAX_QUEUE] = { "max-queue", 0, "N", "set: hooks in the queue at once" },
	[TENANT_MAX_QUEUE_BYTES] = { "max-queue-bytes", 0, "SIZE",
				     "set: bytes in the queue at once" },
	[TENANT_UNLIMITED] = { "unlimited", 0, NULL, "set: no limit at all" },
	[TENANT_TTL] = { "ttl", 0, "DURATION", "set: for so long only" },
	[TENANT_KEEP_DEBT] = { "keep-debt", 0, NULL, "set, unset: do not forget what is owed" },
	[TENANT_BYTES] = { "bytes", 0, "N", "hit: of the body" },
	{},
};

/* An option's number into the limit; the exit code after a message if it is none. */
static int add_number(const struct cli *cli, enum tenant_option option, const char *key,
		      json_t *limit)
{
	const char *text = cli->values[option];
	uint64_t whole;
	double number;

	if (!text)
		return 0;
	if (option == TENANT_RATE || option == TENANT_BYTES_PER_SECOND) {
		if (option == TENANT_RATE ? parse_decimal(text, &number)
					  : parse_size(text, &number))
			return misused(&command_tenant, "--%s takes a number, not %s",
				       tenant_options[option].name, text);
		json_object_set_new(limit, key, json_real(number));
		return 0;
	}
	if (parse_size_whole(text, &whole) || whole > INT64_MAX)
		return misused(&command_tenant, "--%s takes a whole number, not %s",
			       tenant_options[option].name, text);
	json_object_set_new(limit, key, json_integer((json_int_t)whole));
	return 0;
}

static int read_limit(const struct cli *cli, json_t *limit)
{
	static const struct {
		enum tenant_option option;
		const char *key;
	} keys[] = {
		{ TENANT_RATE, "rate" },
		{ TENANT_BURST, "burst" },
		{ TENANT_BYTES_PER_SECOND, "bytes_per_second" },
		{ TENANT_BURST_BYTES, "burst_bytes" },
		{ TENANT_MAX_BODY_BYTES, "max_body_bytes" },
		{ TENANT_MAX_QUEUE, "max_queue" },
		{ TENANT_MAX_QUEUE_BYTES, "max_queue_bytes" },
	};
	int code = 0;

	for (size_t at = 0; !code && at < sizeof(keys) / sizeof(keys[0]); at++)
		code = add_number(cli, keys[at].option, keys[at].key, limit);
	if (cli->values[TENANT_UNLIMITED])
		json_object_set_new(limit, "unlimited", json_true());
	return code;
}

static int report(const struct cli *cli, json_t *reply, int code, const char *done)
{
	if (!reply)
		return code;
	if (cli->json)
		return print_json(json_pack("{so}", "reply", reply));
	json_decref(reply);
	printf("%s\n", done);
	return EXIT_DONE;
}

static int tenant_set(struct cli *cli, const char *tenant)
{
	const char *words[6] = { "OVERRIDE.SET", tenant };
	json_t *limit = json_object(), *reply;
	char ttl[NUMBER_TEXT_MAX], *text;
	uint64_t ttl_ns;
	size_t count = 3;
	int code = read_limit(cli, limit);

	if (!code && cli->values[TENANT_TTL] &&
	    (parse_duration(cli->values[TENANT_TTL], &ttl_ns) || ttl_ns < NS_PER_MS))
		code = misused(&command_tenant, "--ttl takes a time, as 1h");
	text = json_dumps(limit, JSON_COMPACT);
	json_decref(limit);
	if (code || !text) {
		free(text);
		return code ? code : EXIT_FAILED;
	}
	words[2] = text;
	if (cli->values[TENANT_TTL]) {
		(void)snprintf(ttl, sizeof(ttl), "%" PRIu64, ttl_ns / NS_PER_MS);
		words[count++] = "TTL";
		words[count++] = ttl;
	}
	if (cli->values[TENANT_KEEP_DEBT])
		words[count++] = "KEEPDEBT";
	reply = daemon_ask(cli, words, count, &code);
	free(text);
	return report(cli, reply, code, "set");
}

static int tenant_unset(struct cli *cli, const char *tenant)
{
	const char *words[] = { "OVERRIDE.DEL", tenant, "KEEPDEBT" };
	int code;
	json_t *reply = daemon_ask(cli, words, cli->values[TENANT_KEEP_DEBT] ? 3 : 2, &code);

	if (reply && !json_integer_value(reply)) {
		json_decref(reply);
		fprintf(stderr, "sluice: %s has no override\n", tenant);
		return EXIT_FAILED;
	}
	return report(cli, reply, code, "unset");
}

/* 0 admitted, 1 refused. */
static int tenant_hit(struct cli *cli, const char *tenant)
{
	const char *words[] = { "TENANT.HIT", tenant, cli->values[TENANT_BYTES] };
	int code;
	json_t *reply = daemon_ask(cli, words, cli->values[TENANT_BYTES] ? 3 : 2, &code);
	bool admitted;

	if (!reply)
		return code;
	admitted = json_integer_value(json_array_get(reply, 0));
	if (cli->json)
		(void)print_json(json_pack("{sb sI sI sO}", "admitted", admitted, "retry_after_ms",
					   json_integer_value(json_array_get(reply, 1)),
					   "remaining",
					   json_integer_value(json_array_get(reply, 2)), "reason",
					   json_array_get(reply, 3)));
	else
		printf("%s: %s, %" JSON_INTEGER_FORMAT
		       " more now, retry after %" JSON_INTEGER_FORMAT " ms\n",
		       tenant, json_string_value(json_array_get(reply, 3)),
		       json_integer_value(json_array_get(reply, 2)),
		       json_integer_value(json_array_get(reply, 1)));
	json_decref(reply);
	return admitted ? EXIT_DONE : EXIT_FAILED;
}

/* One figure of a limit, or a dash. */
static void print_figure(const json_t *limit, const char *key, int width)
{
	const json_t *value = json_object_get(limit, key);

	if (json_is_integer(value))
		printf(" %*" JSON_INTEGER_FORMAT, width, json_integer_value(value));
	else if (json_is_real(value))
		printf(" %*g", width, json_real_value(value));
	else
		printf(" %*s", width, "-");
}

static void print_limit_head(void)
{
	printf("%-24s %-9s %10s %10s %14s %12s %14s %10s\n", "tenant", "from", "rate/s", "burst",
	       "bytes/s", "burst bytes", "max body", "max queue");
}

static void print_limit(const char *tenant, const json_t *limit)
{
	const char *source = json_string_value(json_object_get(limit, "source"));

	printf("%-24s %-9s", tenant, source ? source : "default");
	print_figure(limit, "rate", 10);
	print_figure(limit, "burst", 10);
	print_figure(limit, "bytes_per_second", 14);
	print_figure(limit, "burst_bytes", 12);
	print_figure(limit, "max_body_bytes", 14);
	print_figure(limit, "max_queue", 10);
	printf("%s\n", json_is_true(json_object_get(limit, "unlimited")) ? "  unlimited" : "");
}

static int tenant_show(struct cli *cli, const char *tenant)
{
	const char *words[] = { "TENANT.EFFECTIVE", tenant };
	int code;
	json_t *limit = daemon_ask_json(cli, words, 2, &code);

	if (!limit)
		return code;
	if (cli->json)
		return print_json(limit);
	print_limit_head();
	print_limit(tenant, limit);
	json_decref(limit);
	return EXIT_DONE;
}

/* The page after a tenant ("": the first). NULL, and *code, if the daemon does not give it. */
static json_t *ask_page(const struct cli *cli, const char *after, int *code)
{
	const char *words[] = { "TENANT.LIST", "LIMIT", LIST_PAGE, "AFTER", after };

	return daemon_ask_json(cli, words, *after ? 5 : 3, code);
}

static void print_page(const json_t *page, bool is_first)
{
	const json_t *fallback = json_object_get(page, "default"), *limit;
	size_t at;

	if (is_first)
		print_limit_head();
	if (is_first && json_is_object(fallback))
		print_limit("(any other)", fallback);
	json_array_foreach(json_object_get(page, "tenants"), at, limit)
		print_limit(json_string_value(json_object_get(limit, "tenant")), limit);
}

/* All at once would keep a thread of the daemon busy; so in pages, as JSON in one list all the same. */
static int tenant_list(struct cli *cli)
{
	json_t *tenants = json_array(), *fallback = NULL;
	char after[TENANT_ID_MAX + 1] = "";
	int code = EXIT_DONE;

	do {
		json_t *page = ask_page(cli, after, &code);
		const char *next = json_string_value(json_object_get(page, "next"));

		if (!page) {
			json_decref(fallback);
			json_decref(tenants);
			return code;
		}
		if (!cli->json)
			print_page(page, !fallback);
		else
			json_array_extend(tenants, json_object_get(page, "tenants"));
		if (!fallback)
			fallback = json_incref(json_object_get(page, "default"));
		(void)snprintf(after, sizeof(after), "%s", next ? next : "");
		json_decref(page);
	} while (*after);
	if (cli->json)
		return print_json(json_pack("{so so}", "default", fallback ? fallback : json_null(),
					    "tenants", tenants));
	json_decref(fallback);
	json_decref(tenants);
	return EXIT_DONE;
}

static int run_tenant(struct cli *cli, int argc, char **argv)
{
	static const struct {
		const char *word;
		int (*run)(struct cli *cli, const char *tenant);
	} verbs[] = {
		{ "show", tenant_show },
		{ "set", tenant_set },
		{ "unset", tenant_unset },
		{ "hit", tenant_hit },
	};

	if (argc == 1 && !strcmp(argv[0], "list"))
		return tenant_list(cli);
	if (argc != 2)
		return misused(&command_tenant, "say what to do, and with which tenant");
	for (size_t at = 0; at < sizeof(verbs) / sizeof(verbs[0]); at++)
		if (!strcmp(argv[0], verbs[at].word))
			return verbs[at].run(cli, argv[1]);
	return misused(&command_tenant, "it cannot %s", argv[0]);
}

const struct command command_tenant = {
	.name = "tenant",
	.arguments = "list | show T | set T --rate R --burst B […] | unset T | hit T [--bytes N]",
	.summary = "tenants' limits, and overriding them while the daemon runs",
	.options = tenant_options,
	.run = run_tenant,
};

enum audit_option { AUDIT_TENANT, AUDIT_COUNT };

static const struct option_row audit_options[] = {
	[AUDIT_TENANT] = { "tenant", 0, "T", "of this tenant only" },
	[AUDIT_COUNT] = { "count", 'n', "N", "how many (100)" },
	{},
};

static void print_record(const json_t *record)
{
	time_t at = (time_t)(json_integer_value(json_object_get(record, "at_ms")) / 1000);
	char *after = json_dumps(json_object_get(record, "after"), RECORD_FLAGS);
	char *before = json_dumps(json_object_get(record, "before"), RECORD_FLAGS);
	char when[32] = "?";
	struct tm broken;

	if (gmtime_r(&at, &broken))
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &broken);
	printf("%s %s %s:%s %s %s -> %s\n", when,
	       json_string_value(json_object_get(record, "action")),
	       json_string_value(json_object_get(record, "actor_kind")),
	       json_string_value(json_object_get(record, "actor")),
	       json_string_value(json_object_get(record, "tenant")), before ? before : "?",
	       after ? after : "?");
	free(before);
	free(after);
}

static int run_audit(struct cli *cli, int argc, char **argv)
{
	const char *words[5] = { "AUDIT.LIST" };
	size_t count = 1, at;
	json_t *all, *record;
	int code;

	(void)argv;
	if (argc)
		return misused(&command_audit, "it takes no argument");
	if (cli->values[AUDIT_TENANT]) {
		words[count++] = "TENANT";
		words[count++] = cli->values[AUDIT_TENANT];
	}
	if (cli->values[AUDIT_COUNT]) {
		words[count++] = "LIMIT";
		words[count++] = cli->values[AUDIT_COUNT];
	}
	all = daemon_ask_json(cli, words, count, &code);
	if (!all)
		return code;
	if (cli->json)
		return print_json(all);
	json_array_foreach(json_object_get(all, "audit"), at, record) print_record(record);
	json_decref(all);
	return EXIT_DONE;
}

const struct command command_audit = {
	.name = "audit",
	.arguments = "[--tenant T] [-n N]",
	.summary = "who changed a tenant's limit, newest first",
	.options = audit_options,
	.run = run_audit,
};

static int run_reload(struct cli *cli, int argc, char **argv)
{
	const char *words[] = { "SLUICE.RELOAD" };
	json_t *reply;
	int code;

	(void)argv;
	if (argc)
		return misused(&command_reload, "it takes no argument");
	reply = daemon_ask(cli, words, 1, &code);
	return report(cli, reply, code, "the configuration is in force");
}

const struct command command_reload = {
	.name = "reload",
	.arguments = "",
	.summary = "have the daemon read its configuration anew",
	.run = run_reload,
};
