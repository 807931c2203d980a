/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One connection, one question, by hiredis. */
#include "cli/daemon_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "limit/settings.h"

enum { PATIENCE_S = 10, WORDS_MAX = 32 };

static json_t *reply_json(const redisReply *reply)
{
	json_t *array;

	switch (reply->type) {
	case REDIS_REPLY_INTEGER:
		return json_integer(reply->integer);
	case REDIS_REPLY_STRING:
	case REDIS_REPLY_STATUS:
		return json_stringn(reply->str, (size_t)reply->len);
	case REDIS_REPLY_ARRAY:
		array = json_array();
		for (size_t at = 0; at < reply->elements; at++)
			json_array_append_new(array, reply_json(reply->element[at]));
		return array;
	default:
		return json_null();
	}
}

static redisContext *try_connect(const struct cli *cli)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	redisContext *context = redisConnectUnixWithTimeout(
		cli->socket ? cli->socket : LISTEN_PATH_DEFAULT, patience);

	if (context && !context->err && !redisSetTimeout(context, patience))
		return context;
	if (context)
		redisFree(context);
	return NULL;
}

/* `name:number` on each line that is no heading. */
static json_t *read_numbers(const char *text)
{
	json_t *numbers = json_object();

	while (*text) {
		size_t length = strcspn(text, "\r\n"), name = strcspn(text, ":\r\n");

		if (text[0] != '#' && name < length) {
			char key[64];

			(void)snprintf(key, sizeof(key), "%.*s", (int)name, text);
			json_object_set_new(numbers, key,
					    json_integer(strtoll(text + name + 1, NULL, 10)));
		}
		text += length;
		text += strspn(text, "\r\n");
	}
	return numbers;
}

json_t *daemon_numbers(const struct cli *cli)
{
	redisContext *context = try_connect(cli);
	json_t *numbers = NULL;
	redisReply *reply;

	if (!context)
		return NULL;
	reply = redisCommand(context, "INFO sluice");
	if (reply && reply->type == REDIS_REPLY_STRING)
		numbers = read_numbers(reply->str);
	freeReplyObject(reply);
	redisFree(context);
	return numbers;
}

static redisContext *connect_to(const char *path, int *code)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	redisContext *context = redisConnectUnixWithTimeout(path, patience);

	if (context && !context->err && !redisSetTimeout(context, patience))
		return context;
	fprintf(stderr, "sluice: the daemon cannot be reached at %s: %s\n", path,
		context ? context->errstr : strerror(ENOMEM));
	*code = EXIT_UNAVAILABLE;
	if (errno == EACCES || errno == EPERM) {
		fprintf(stderr, "  -> run as root, or as a member of the group sluice\n");
		*code = EXIT_PERMISSION;
	} else {
		fprintf(stderr, "  -> start it (sluiced --config FILE), or name its socket with "
				"--socket\n");
	}
	if (context)
		redisFree(context);
	return NULL;
}

static json_t *read_reply(const redisContext *context, const redisReply *reply, int *code)
{
	if (!reply) {
		fprintf(stderr, "sluice: the daemon did not answer: %s\n", context->errstr);
		*code = EXIT_UNAVAILABLE;
		return NULL;
	}
	if (reply->type == REDIS_REPLY_ERROR) {
		fprintf(stderr, "sluice: %s\n", reply->str);
		*code = strncmp(reply->str, "NOPERM", 6) ? EXIT_FAILED : EXIT_PERMISSION;
		if (strstr(reply->str, "store_unavailable"))
			*code = EXIT_UNAVAILABLE;
		return NULL;
	}
	return reply_json(reply);
}

json_t *daemon_ask(const struct cli *cli, const char *const *words, size_t count, int *code)
{
	redisContext *context = connect_to(cli->socket ? cli->socket : LISTEN_PATH_DEFAULT, code);
	const char *arguments[WORDS_MAX];
	redisReply *reply;
	json_t *value;

	if (!context)
		return NULL;
	for (size_t at = 0; at < count && at < WORDS_MAX; at++)
		arguments[at] = words[at];
	reply = redisCommandArgv(context, (int)count, arguments, NULL);
	value = read_reply(context, reply, code);
	freeReplyObject(reply);
	redisFree(context);
	return value;
}

json_t *daemon_ask_json(const struct cli *cli, const char *const *words, size_t count, int *code)
{
	json_t *reply = daemon_ask(cli, words, count, code), *value;

	if (!reply || json_is_null(reply))
		return reply;
	value = json_loads(json_is_string(reply) ? json_string_value(reply) : "", 0, NULL);
	json_decref(reply);
	if (value)
		return value;
	fprintf(stderr, "sluice: the daemon answered what is no JSON\n");
	*code = EXIT_FAILED;
	return NULL;
}
