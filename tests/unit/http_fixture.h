/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A daemon's HTTP half on a port of its own, and a client that shows every byte. */
#ifndef SLUICE_TESTS_HTTP_FIXTURE_H
#define SLUICE_TESTS_HTTP_FIXTURE_H

#include "tests/unit/test.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/parse.h"
#include "server/http_server.h"

/* `printf %s TOKEN | sha256sum` of write-token and read-token. */
#define TOKENS_YAML                                                              \
	"admin:\n"                                                               \
	"  tokens:\n"                                                            \
	"    - name: writer\n"                                                   \
	"      scopes: [rate_limits:write]\n"                                    \
	"      sha256: ab893cb32670dc9e3bf2563af8d7487b88c279c5850c76f35d6eafa8" \
	"fa34acf2\n"                                                             \
	"    - name: reader\n"                                                   \
	"      scopes: [rate_limits:read]\n"                                     \
	"      sha256: 0328587016f9e316b9c31c94f944a2c453e1494a564062b5eab68039" \
	"c75b58bf\n"

#define LIMITS_YAML                                                                       \
	"rate_limits:\n"                                                                  \
	"  default: {rate: 0.001, burst: 1}\n"                                            \
	"  tenants:\n"                                                                    \
	"    vip: {unlimited: true}\n"                                                    \
	"    acme: {rate: 0.5, burst: 2, bytes_per_second: 1000, max_body_bytes: 64KiB, " \
	"max_queue: 7}\n"

#define ACME                                                                       \
	"{\"tenant\":\"acme\",\"rate\":0.5,\"burst\":2,\"bytes_per_second\":1000," \
	"\"max_body_bytes\":65536,\"max_queue\":7,\"source\":\"config\"}"
#define ACME_PATH "/v1/tenants/acme/rate-limit"

#define WRITER "write-token"
#define READER "read-token"

enum { CLIENT_TIMEOUT_S = 30, ANSWER_MAX = 1 << 20 };

struct site {
	struct settings *settings;
	struct engine *engine;
	struct http_server *server;
	unsigned port;
	char folder[64]; /* "": no database */
	char database[80];
	struct trouble trouble;
};

struct answer {
	int status; /* 0: the connection ended before a whole answer */
	char *head; /* status line and fields, ended by a zero byte */
	char *body;
	size_t body_length;
};

/* options: NULL, or what is not the default; its engine, settings and endpoint are set here. */
static inline void site_open(struct site *site, const char *yaml, bool has_database,
			     const struct http_server_options *wanted)
{
	struct http_server_options options = wanted ? *wanted : (struct http_server_options){ 0 };
	struct engine_options engine_options = { 0 };
	struct settings_error error;

	*site = (struct site){ .port = 0 };
	if (settings_parse(yaml, strlen(yaml), &site->settings, &error))
		fail_msg("%u:%u: %s: %s", error.line, error.column, error.key, error.message);
	engine_options.settings = site->settings;
	if (has_database) {
		strcpy(site->folder, "/tmp/sluice-http-XXXXXX");
		assert_non_null(mkdtemp(site->folder));
		snprintf(site->database, sizeof(site->database), "%s/sluice.db", site->folder);
		engine_options.database = site->database;
	}
	if (engine_new(&engine_options, &site->engine, &site->trouble))
		fail_msg("%s", site->trouble.cause);
	options.engine = site->engine;
	options.settings = site->settings;
	if (!options.endpoint.address.half[0] && !options.endpoint.address.half[1])
		assert_int_equal(parse_address("127.0.0.1", &options.endpoint.address), 0);
	if (http_server_start(&options, &site->server, &site->trouble))
		fail_msg("%s", site->trouble.cause);
	site->port = http_server_port(site->server);
	assert_true(site->port > 0);
}

static inline void site_close(struct site *site)
{
	char command[128];

	http_server_stop(site->server, 2000);
	http_server_free(site->server);
	engine_free(site->engine);
	settings_free(site->settings);
	if (site->folder[0]) {
		snprintf(command, sizeof(command), "rm -rf '%s'", site->folder);
		assert_int_equal(system(command), 0);
	}
	*site = (struct site){ .port = 0 };
}

static inline int client_connect(const struct site *site)
{
	const struct timeval timeout = { .tv_sec = CLIENT_TIMEOUT_S };
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)site->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)), 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		fail_msg("cannot connect: %s", strerror(errno));
	return fd;
}

/* As much as the other end takes: it may hang up on what it does not like. */
static inline void client_send(int fd, const char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		bytes += sent;
		count -= (size_t)sent;
	}
}

/* The value of a field, or NULL; until the next call. */
static inline const char *answer_field(const struct answer *answer, const char *name)
{
	static _Thread_local char value[1024];
	const char *line = answer->head ? strchr(answer->head, '\n') : NULL;
	size_t length = strlen(name);

	for (; line; line = strchr(line + 1, '\n'))
		if (strncasecmp(line + 1, name, length) == 0 && line[1 + length] == ':') {
			snprintf(value, sizeof(value), "%s", line + 1 + length + 2);
			value[strcspn(value, "\r")] = '\0';
			return value;
		}
	return NULL;
}

static inline void answer_done(struct answer *answer)
{
	free(answer->head);
	free(answer->body);
	*answer = (struct answer){ .status = 0 };
}

static inline bool read_bytes(int fd, char *to, size_t count)
{
	while (count > 0) {
		ssize_t got = recv(fd, to, count, 0);

		if (got <= 0)
			return false;
		to += got;
		count -= (size_t)got;
	}
	return true;
}

/* One answer, of which no byte too many is read. without_body: to HEAD. */
static inline void client_receive(int fd, bool without_body, struct answer *out)
{
	size_t length = 0;
	char *head = malloc(ANSWER_MAX);
	const char *said;

	*out = (struct answer){ .head = head };
	assert_non_null(head);
	head[0] = '\0';
	while (length < 4 || memcmp(head + length - 4, "\r\n\r\n", 4) != 0) {
		assert_true(length < ANSWER_MAX - 1);
		if (!read_bytes(fd, head + length, 1))
			return;
		head[++length] = '\0';
	}
	said = answer_field(out, "Content-Length");
	out->body_length = said && !without_body ? (size_t)atoi(said) : 0;
	out->body = calloc(1, out->body_length + 1);
	assert_non_null(out->body);
	if (read_bytes(fd, out->body, out->body_length))
		out->status = atoi(head + strlen("HTTP/1.1 "));
}

/* A whole request; token and fields may be NULL, fields end in CR LF each. */
static inline void client_request(int fd, const char *method, const char *path, const char *token,
				  const char *fields, const char *body, size_t body_length)
{
	char *text = malloc(ANSWER_MAX);
	int length;

	assert_non_null(text);
	length = snprintf(text, ANSWER_MAX, "%s %s HTTP/1.1\r\nHost: sluice\r\n%s%s%s%s", method,
			  path, token ? "Authorization: Bearer " : "", token ? token : "",
			  token ? "\r\n" : "", fields ? fields : "");
	if (body)
		length += snprintf(text + length, ANSWER_MAX - (size_t)length,
				   "Content-Length: %zu\r\n", body_length);
	length += snprintf(text + length, ANSWER_MAX - (size_t)length, "\r\n");
	client_send(fd, text, (size_t)length);
	if (body)
		client_send(fd, body, body_length);
	free(text);
}

/* On a connection of its own. */
static inline void site_ask(const struct site *site, const char *method, const char *path,
			    const char *token, const char *body, struct answer *out)
{
	int fd = client_connect(site);

	client_request(fd, method, path, token, NULL, body, body ? strlen(body) : 0);
	client_receive(fd, strcmp(method, "HEAD") == 0, out);
	close(fd);
}

/* What was answered, as `200 {"…"}`; until the next call. */
static inline const char *site_say(const struct site *site, const char *method, const char *path,
				   const char *token, const char *body)
{
	static _Thread_local char text[8192];
	struct answer answer;

	site_ask(site, method, path, token, body, &answer);
	snprintf(text, sizeof(text), "%d %s", answer.status, answer.body ? answer.body : "");
	answer_done(&answer);
	return text;
}

/* What is asked one after the other, and what must be answered. */
struct step {
	const char *name;
	const char *method;
	const char *path;
	const char *token;
	const char *body;
	const char *wanted;
};

static inline void site_take(const struct site *site, const struct step *steps, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		check_row_text(&steps[i],
			       site_say(site, steps[i].method, steps[i].path, steps[i].token,
					steps[i].body),
			       steps[i].wanted);
}

#endif
