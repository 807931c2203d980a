/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Greeting, proving who one is, and leaving. The order of checks is that of Redis. */
#include "server/resp_handshake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char noauth_hello[] =
	"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
	"<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
	"RESP protocol version at the same time";
static const char no_password[] =
	"ERR AUTH <password> called without any password configured for the default user. Are you "
	"sure your configuration is correct?";
static const char wrong_password[] =
	"WRONGPASS invalid username-password pair or user is disabled.";

/* ---- families of commands */

static void write_help(struct resp_call *call, const char *family, const struct resp_command *rows,
		       size_t count)
{
	struct resp_writer *writer = resp_call_writer(call);
	char line[160];
	size_t i;

	resp_write_array(writer, 2 * count + 3);
	snprintf(line, sizeof(line),
		 "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", family);
	resp_write_simple(writer, line);
	for (i = 0; i < count; i++) {
		snprintf(line, sizeof(line), "%s%s%s", rows[i].name, rows[i].syntax ? " " : "",
			 rows[i].syntax ? rows[i].syntax : "");
		resp_write_simple(writer, line);
		snprintf(line, sizeof(line), "    %s", rows[i].summary);
		resp_write_simple(writer, line);
	}
	resp_write_simple(writer, "HELP");
	resp_write_simple(writer, "    Print this help.");
}

static void write_wrong_count(struct resp_call *call, const char *family, const char *name)
{
	char text[2 * RESP_NAME_ROOM];
	size_t i;

	snprintf(text, sizeof(text), "%s|%s", family, name);
	for (i = 0; text[i]; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] = (char)(text[i] | 0x20);
	resp_write_error(resp_call_writer(call), "ERR wrong number of arguments for '%s' command",
			 text);
}

void resp_run_subcommand(struct resp_call *call, const char *family,
			 const struct resp_command *rows, size_t count)
{
	const struct resp_argument *name = resp_call_argument(call, 1);
	int arguments = (int)resp_call_count(call) - 2;
	size_t i;

	for (i = 0; i < count && !resp_argument_is(name, rows[i].name); i++)
		;
	if (i < count && (arguments < rows[i].min_args ||
			  (rows[i].max_args >= 0 && arguments > rows[i].max_args)))
		write_wrong_count(call, family, rows[i].name);
	else if (i < count)
		rows[i].run(call);
	else if (resp_argument_is(name, "HELP") && arguments == 0)
		write_help(call, family, rows, count);
	else
		resp_write_error(resp_call_writer(call),
				 "ERR unknown subcommand '%.128s'. Try %s HELP.", name->data,
				 family);
}

bool resp_is_client_text(const struct resp_argument *text)
{
	size_t i;

	for (i = 0; i < text->length; i++)
		if (text->data[i] < '!' || text->data[i] > '~')
			return false;
	return true;
}

/* ---- AUTH, HELLO, RESET */

static void set_identity(struct resp_connection *connection, const struct resp_identity *identity)
{
	pthread_mutex_lock(&connection->worker->lock);
	connection->peer.is_authenticated = identity != NULL;
	connection->peer.identity = identity ? *identity : (struct resp_identity){ 0 };
	pthread_mutex_unlock(&connection->worker->lock);
}

static bool authenticate(struct resp_call *call, const struct resp_argument *user,
			 const struct resp_argument *password)
{
	const struct resp_server_options *options = &call->connection->worker->server->options;
	struct resp_identity identity = { 0 };

	if (!options->authenticate ||
	    !options->authenticate(options->context, user, password, &identity))
		return false;
	set_identity(call->connection, &identity);
	call->connection->peer.is_admitted = true;
	return true;
}

static void auth(struct resp_call *call)
{
	static const struct resp_argument user_default = { "default", 7 };
	struct resp_writer *writer = resp_call_writer(call);
	size_t count = resp_call_count(call);
	const struct resp_argument *user = count == 3 ? resp_call_argument(call, 1) : &user_default;

	if (count > 3)
		resp_write_error(writer, "ERR syntax error");
	else if (count == 2 && !call->connection->worker->server->options.authenticate)
		resp_write_error(writer, "%s", no_password);
	else if (authenticate(call, user, resp_call_argument(call, count - 1)))
		resp_write_simple(writer, "OK");
	else
		resp_write_error(writer, "%s", wrong_password);
}

static void set_protocol(struct resp_call *call, unsigned protocol)
{
	pthread_mutex_lock(&call->connection->worker->lock);
	call->connection->protocol = protocol;
	pthread_mutex_unlock(&call->connection->worker->lock);
	call->writer->protocol = protocol;
}

/* `0.3.1` to 301, as modules of Redis number theirs. */
static int64_t version_number(const char *version)
{
	unsigned major = 0, minor = 0, patch = 0;

	(void)sscanf(version, "%u.%u.%u", &major, &minor, &patch);
	return major * INT64_C(10000) + minor * INT64_C(100) + patch;
}

static void write_hello(struct resp_call *call)
{
	const char *version = call->connection->worker->server->options.version;
	struct resp_writer *writer = resp_call_writer(call);

	resp_write_map(writer, 7);
	resp_write_text(writer, "server");
	resp_write_text(writer, "redis");
	resp_write_text(writer, "version");
	resp_write_text(writer, RESP_REDIS_VERSION);
	resp_write_text(writer, "proto");
	resp_write_integer(writer, resp_call_protocol(call));
	resp_write_text(writer, "id");
	resp_write_integer(writer, (int64_t)resp_call_connection(call));
	resp_write_text(writer, "mode");
	resp_write_text(writer, "standalone");
	resp_write_text(writer, "role");
	resp_write_text(writer, "master");
	resp_write_text(writer, "modules");
	/* Some clients insist on `redis` above, so who we are is said here. */
	resp_write_array(writer, 1);
	resp_write_map(writer, 2);
	resp_write_text(writer, "name");
	resp_write_text(writer, "sluice");
	resp_write_text(writer, "ver");
	resp_write_integer(writer, version_number(version));
}

static void hello(struct resp_call *call)
{
	struct resp_writer *writer = resp_call_writer(call);
	const struct resp_argument *user = NULL, *name = NULL;
	size_t count = resp_call_count(call), i;
	int64_t protocol = resp_call_protocol(call);

	if (count > 1 && resp_argument_integer(resp_call_argument(call, 1), &protocol)) {
		resp_write_error(writer, "ERR Protocol version is not an integer or out of range");
		return;
	}
	if (protocol < 2 || protocol > 3) {
		resp_write_error(writer, "NOPROTO unsupported protocol version");
		return;
	}
	for (i = 2; i < count; i++) {
		const struct resp_argument *option = resp_call_argument(call, i);

		if (resp_argument_is(option, "AUTH") && i + 2 < count) {
			user = resp_call_argument(call, i + 1);
			i += 2;
		} else if (resp_argument_is(option, "SETNAME") && i + 1 < count) {
			name = resp_call_argument(call, ++i);
			if (resp_client_check_name(call, name))
				return;
		} else {
			resp_write_error(writer, "ERR Syntax error in HELLO option '%.128s'",
					 option->data);
			return;
		}
	}
	/* The password is the argument after the user's. */
	if (user && !authenticate(call, user, user + 1)) {
		resp_write_error(writer, "%s", wrong_password);
		return;
	}
	if (!call->connection->peer.is_admitted) {
		resp_write_error(writer, "%s", noauth_hello);
		return;
	}
	if (name)
		resp_client_set_name(call, name);
	set_protocol(call, (unsigned)protocol);
	write_hello(call);
}

static void reset(struct resp_call *call)
{
	static const struct resp_argument no_name = { "", 0 };
	struct resp_connection *connection = call->connection;
	const struct resp_server *server = connection->worker->server;

	set_identity(connection, NULL);
	connection->peer.is_admitted =
		connection->peer.is_unix || !server->options.is_auth_required;
	connection->mute = RESP_MUTE_NONE;
	resp_client_set_name(call, &no_name);
	set_protocol(call, 2);
	resp_write_simple(resp_call_writer(call), "RESET");
}

/* ---- the small ones */

static void ping(struct resp_call *call)
{
	const struct resp_argument *text = resp_call_argument(call, 1);

	if (resp_call_count(call) == 1)
		resp_write_simple(resp_call_writer(call), "PONG");
	else
		resp_write_bulk(resp_call_writer(call), text->data, text->length);
}

static void echo(struct resp_call *call)
{
	const struct resp_argument *text = resp_call_argument(call, 1);

	resp_write_bulk(resp_call_writer(call), text->data, text->length);
}

static void select_database(struct resp_call *call)
{
	int64_t number;

	if (resp_argument_integer(resp_call_argument(call, 1), &number))
		resp_write_error(resp_call_writer(call),
				 "ERR value is not an integer or out of range");
	else if (number != 0)
		resp_write_error(resp_call_writer(call), "ERR DB index is out of range");
	else
		resp_write_simple(resp_call_writer(call), "OK");
}

static void quit(struct resp_call *call)
{
	resp_write_simple(resp_call_writer(call), "OK");
	call->must_close = true;
}

/*
 * A browser that was made to speak to us: what follows the headers would be executed. Redis hangs
 * up on these two words for the same reason.
 */
static void hang_up(struct resp_call *call)
{
	resp_write_error(resp_call_writer(call), "ERR this is not an HTTP server");
	call->must_close = true;
}

enum { OPEN = RESP_COMMAND_READ | RESP_COMMAND_NO_AUTH };

const struct resp_command resp_handshake[] = {
	{ "AUTH", 1, -1, OPEN, auth, "[username] password", "Authenticates the connection." },
	{ "CLIENT", 1, -1, RESP_COMMAND_READ, resp_client_run, "subcommand [argument ...]",
	  "Commands about connections." },
	{ "COMMAND", 0, -1, RESP_COMMAND_READ, resp_command_run, "[subcommand [argument ...]]",
	  "Describes the commands." },
	{ "CONFIG", 1, -1, RESP_COMMAND_READ, resp_config_run, "GET parameter [parameter ...]",
	  "Answers what Redis clients ask for before they begin." },
	{ "ECHO", 1, 1, RESP_COMMAND_READ, echo, "message", "Returns the message." },
	{ "HELLO", 0, -1, OPEN, hello, "[protover [AUTH username password] [SETNAME clientname]]",
	  "Greets, and chooses the protocol's version." },
	{ "HOST:", 0, -1, OPEN, hang_up, NULL, "Refuses to be spoken to as an HTTP server." },
	{ "INFO", 0, -1, RESP_COMMAND_READ, resp_info_run, "[section [section ...]]",
	  "Facts about the server." },
	{ "PING", 0, 1, RESP_COMMAND_READ, ping, "[message]", "Answers PONG, or the message." },
	{ "POST", 0, -1, OPEN, hang_up, NULL, "Refuses to be spoken to as an HTTP server." },
	{ "QUIT", 0, -1, OPEN, quit, NULL, "Closes the connection." },
	{ "RESET", 0, 0, OPEN, reset, NULL, "Makes the connection as it was when it was opened." },
	{ "SELECT", 1, 1, RESP_COMMAND_READ, select_database, "index",
	  "There is database 0 only." },
};

const size_t resp_handshake_count = sizeof(resp_handshake) / sizeof(*resp_handshake);
