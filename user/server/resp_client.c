/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CLIENT: what a connection says about itself, and who else is there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/resp_handshake.h"

#define NS_PER_S UINT64_C(1000000000)

/* Other threads read these texts: CLIENT LIST. */
static void set_text(struct resp_connection *connection, char out[RESP_NAME_ROOM],
		     const struct resp_argument *text)
{
	pthread_mutex_lock(&connection->worker->lock);
	memcpy(out, text->data, text->length);
	out[text->length] = '\0';
	pthread_mutex_unlock(&connection->worker->lock);
}

int resp_client_check_name(struct resp_call *call, const struct resp_argument *name)
{
	if (!resp_is_client_text(name)) {
		resp_write_error(resp_call_writer(call),
				 "ERR Client names cannot contain spaces, newlines or special "
				 "characters.");
		return -EINVAL;
	}
	if (name->length >= RESP_NAME_ROOM) {
		resp_write_error(resp_call_writer(call),
				 "ERR Client names cannot be longer than %d bytes.",
				 RESP_NAME_ROOM - 1);
		return -EINVAL;
	}
	return 0;
}

void resp_client_set_name(struct resp_call *call, const struct resp_argument *name)
{
	set_text(call->connection, call->connection->name, name);
}

static void setname(struct resp_call *call)
{
	const struct resp_argument *name = resp_call_argument(call, 2);

	if (resp_client_check_name(call, name))
		return;
	resp_client_set_name(call, name);
	resp_write_simple(resp_call_writer(call), "OK");
}

static void getname(struct resp_call *call)
{
	if (call->connection->name[0])
		resp_write_text(resp_call_writer(call), call->connection->name);
	else
		resp_write_null(resp_call_writer(call));
}

static void setinfo(struct resp_call *call)
{
	struct resp_writer *writer = resp_call_writer(call);
	const struct resp_argument *option = resp_call_argument(call, 2);
	const struct resp_argument *text = resp_call_argument(call, 3);
	bool is_name = resp_argument_is(option, "LIB-NAME");
	const char *what = is_name ? "lib-name" : "lib-ver";

	if (!is_name && !resp_argument_is(option, "LIB-VER")) {
		resp_write_error(writer, "ERR Unrecognized option '%.128s'", option->data);
	} else if (!resp_is_client_text(text)) {
		resp_write_error(writer,
				 "ERR %s cannot contain spaces, newlines or special characters.",
				 what);
	} else if (text->length >= RESP_NAME_ROOM) {
		resp_write_error(writer, "ERR %s cannot be longer than %d bytes.", what,
				 RESP_NAME_ROOM - 1);
	} else {
		set_text(call->connection,
			 is_name ? call->connection->library_name
				 : call->connection->library_version,
			 text);
		resp_write_simple(writer, "OK");
	}
}

static void id(struct resp_call *call)
{
	resp_write_integer(resp_call_writer(call), (int64_t)resp_call_connection(call));
}

/* What Redis might do with a connection, and we never do, is switched off without effect. */
static void set_switch(struct resp_call *call)
{
	const struct resp_argument *value = resp_call_argument(call, 2);

	if (resp_argument_is(value, "ON") || resp_argument_is(value, "OFF"))
		resp_write_simple(resp_call_writer(call), "OK");
	else
		resp_write_error(resp_call_writer(call), "ERR syntax error");
}

static void set_reply(struct resp_call *call)
{
	const struct resp_argument *value = resp_call_argument(call, 2);

	if (resp_argument_is(value, "ON"))
		call->connection->mute = RESP_MUTE_NONE;
	else if (resp_argument_is(value, "OFF"))
		call->connection->mute = RESP_MUTE_ALL;
	else if (!resp_argument_is(value, "SKIP"))
		goto fail;
	else if (call->connection->mute == RESP_MUTE_NONE)
		call->connection->mute = RESP_MUTE_ONE;
	resp_write_simple(resp_call_writer(call), "OK");
	return;

fail:
	resp_write_error(resp_call_writer(call), "ERR syntax error");
}

/* ---- LIST and INFO */

/* The worker's lock is held, unless the connection is the caller's own. */
static void describe(const struct resp_connection *connection, uint64_t now_ns, FILE *out)
{
	const struct resp_peer *peer = &connection->peer;

	fprintf(out,
		"id=%llu addr=%s%s fd=%d name=%s age=%llu flags=%c db=0 user=%s resp=%u "
		"lib-name=%s lib-ver=%s",
		(unsigned long long)connection->id, peer->address, peer->is_unix ? ":0" : "",
		connection->fd, connection->name,
		(unsigned long long)((now_ns - connection->opened_ns) / NS_PER_S),
		peer->is_unix ? 'U' : 'N', peer->is_authenticated ? peer->identity.name : "default",
		connection->protocol, connection->library_name, connection->library_version);
	if (peer->is_unix)
		fprintf(out, " uid=%lld pid=%lld", (long long)peer->uid, (long long)peer->pid);
	fputc('\n', out);
}

/* Whether CLIENT LIST has been asked for this one, by `ID id ...`. */
static bool is_asked_for(struct resp_call *call, uint64_t connection)
{
	int64_t asked;
	size_t i;

	if (resp_call_count(call) == 2)
		return true;
	for (i = 3; i < resp_call_count(call); i++)
		if (resp_argument_integer(resp_call_argument(call, i), &asked) == 0 &&
		    (uint64_t)asked == connection)
			return true;
	return false;
}

static void describe_all(struct resp_call *call, FILE *out)
{
	struct resp_server *server = call->connection->worker->server;
	uint64_t now_ns = clock_monotonic_ns();
	struct resp_connection *connection;
	unsigned i;

	for (i = 0; i < server->options.workers; i++) {
		struct resp_worker *worker = &server->workers[i];

		pthread_mutex_lock(&worker->lock);
		TAILQ_FOREACH(connection, &worker->connections, link)
		if (is_asked_for(call, connection->id))
			describe(connection, now_ns, out);
		pthread_mutex_unlock(&worker->lock);
	}
}

static void write_description(struct resp_call *call, void (*print)(struct resp_call *, FILE *))
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (out)
		print(call, out);
	if (out && fclose(out) == 0)
		resp_write_bulk(resp_call_writer(call), text, length);
	else
		resp_write_error(resp_call_writer(call), "ERR out of memory");
	free(text);
}

static void list(struct resp_call *call)
{
	const struct resp_peer *peer = resp_call_peer(call);
	const struct resp_argument *filter = resp_call_argument(call, 2);
	size_t count = resp_call_count(call), i;
	int64_t asked;

	/* Who else is there is no stranger's business. */
	if (!peer->is_unix && !peer->is_authenticated) {
		resp_write_error(resp_call_writer(call), "NOAUTH Authentication required.");
		return;
	}
	if (count > 2 && (count == 3 || !resp_argument_is(filter, "ID"))) {
		resp_write_error(resp_call_writer(call), "ERR syntax error");
		return;
	}
	for (i = 3; i < count; i++)
		if (resp_argument_integer(resp_call_argument(call, i), &asked)) {
			resp_write_error(resp_call_writer(call), "ERR Invalid client ID");
			return;
		}
	write_description(call, describe_all);
}

static void describe_own(struct resp_call *call, FILE *out)
{
	describe(call->connection, clock_monotonic_ns(), out);
}

static void info(struct resp_call *call)
{
	write_description(call, describe_own);
}

static const struct resp_command rows[] = {
	{ "GETNAME", 0, 0, 0, getname, NULL, "Return the name of the connection." },
	{ "ID", 0, 0, 0, id, NULL, "Return the ID of the connection." },
	{ "INFO", 0, 0, 0, info, NULL, "Return information about the connection." },
	{ "LIST", 0, -1, 0, list, "[ID <id> [<id> ...]]", "Return information about connections." },
	{ "NO-EVICT", 1, 1, 0, set_switch, "(ON|OFF)", "Accepted; has no meaning here." },
	{ "NO-TOUCH", 1, 1, 0, set_switch, "(ON|OFF)", "Accepted; has no meaning here." },
	{ "REPLY", 1, 1, 0, set_reply, "(ON|OFF|SKIP)", "Control the replies to the connection." },
	{ "SETINFO", 2, 2, 0, setinfo, "<option> <value>", "Set lib-name or lib-ver." },
	{ "SETNAME", 1, 1, 0, setname, "<name>", "Name the connection." },
};

void resp_client_run(struct resp_call *call)
{
	resp_run_subcommand(call, "CLIENT", rows, sizeof(rows) / sizeof(*rows));
}
