/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* COMMAND, CONFIG GET and INFO: what clients ask about the server, in the shapes they know. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/resp_handshake.h"

#define NS_PER_S UINT64_C(1000000000)

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* `*` and `?`, in any case. Looks back to the last star only: the time is that of two loops. */
static bool is_match(const struct resp_argument *pattern, const char *name)
{
	const char *at = pattern->data, *end = at + pattern->length;
	const char *star = NULL, *retry = NULL;

	while (*name) {
		if (at < end && *at == '*') {
			star = at++;
			retry = name;
		} else if (at < end && (*at == '?' || lower(*at) == lower(*name))) {
			at++;
			name++;
		} else if (star) {
			at = star + 1;
			name = ++retry;
		} else {
			return false;
		}
	}
	while (at < end && *at == '*')
		at++;
	return at == end;
}

/* ---- COMMAND */

static const struct {
	unsigned flag;
	const char *word;
} flag_words[] = {
	{ RESP_COMMAND_READ, "readonly" },     { RESP_COMMAND_WRITE, "write" },
	{ RESP_COMMAND_ADMIN, "admin" },       { RESP_COMMAND_NO_AUTH, "noauth" },
	{ RESP_COMMAND_BLOCKING, "blocking" },
};

enum { FLAG_WORDS = sizeof(flag_words) / sizeof(*flag_words) };

static const struct resp_table *table_of(const struct resp_call *call)
{
	return call->connection->worker->server->table;
}

static void write_name(struct resp_writer *writer, const struct resp_command *command)
{
	char name[RESP_NAME_ROOM];
	size_t i;

	for (i = 0; command->name[i] && i < sizeof(name) - 1; i++)
		name[i] = lower(command->name[i]);
	resp_write_bulk(writer, name, i);
}

/* Ten elements, as since Redis 7; the last four (categories, tips, keys, subcommands) are empty. */
static void write_command(struct resp_writer *writer, const struct resp_command *command)
{
	bool has_key = command->flags & RESP_COMMAND_KEY;
	bool is_exact = command->min_args == command->max_args;
	size_t i, words = 0;

	for (i = 0; i < FLAG_WORDS; i++)
		words += (command->flags & flag_words[i].flag) != 0;
	resp_write_array(writer, 10);
	write_name(writer, command);
	resp_write_integer(writer, is_exact ? command->min_args + 1 : -(command->min_args + 1));
	resp_write_array(writer, words);
	for (i = 0; i < FLAG_WORDS; i++)
		if (command->flags & flag_words[i].flag)
			resp_write_simple(writer, flag_words[i].word);
	for (i = 0; i < 3; i++) /* first key, last key, step */
		resp_write_integer(writer, has_key);
	for (i = 0; i < 4; i++)
		resp_write_array(writer, 0);
}

static void write_docs(struct resp_writer *writer, const struct resp_command *command)
{
	const char *summary = command->summary ? command->summary : "";

	write_name(writer, command);
	resp_write_map(writer, command->syntax ? 4 : 3);
	resp_write_text(writer, "summary");
	resp_write_text(writer, summary);
	resp_write_text(writer, "since");
	resp_write_text(writer, "1.0.0");
	resp_write_text(writer, "group");
	resp_write_text(writer, "module");
	if (!command->syntax)
		return;
	/* redis-cli shows the names of arguments one after the other: so all of them are one. */
	resp_write_text(writer, "arguments");
	resp_write_array(writer, 1);
	resp_write_map(writer, 2);
	resp_write_text(writer, "name");
	resp_write_text(writer, command->syntax);
	resp_write_text(writer, "type");
	resp_write_text(writer, "string");
}

static void command_count(struct resp_call *call)
{
	resp_write_integer(resp_call_writer(call), (int64_t)resp_table_count(table_of(call)));
}

static void command_docs(struct resp_call *call)
{
	struct resp_writer *writer = resp_call_writer(call);
	size_t named = resp_call_count(call), found = 0, i;

	/* Unknown names are left out. */
	for (i = 2; i < named; i++)
		found += resp_table_find(table_of(call), resp_call_argument(call, i)) != NULL;
	resp_write_map(writer, named > 2 ? found : resp_table_count(table_of(call)));
	for (i = 2; i < named; i++) {
		const struct resp_command *command =
			resp_table_find(table_of(call), resp_call_argument(call, i));

		if (command)
			write_docs(writer, command);
	}
	for (i = 0; named <= 2 && i < resp_table_count(table_of(call)); i++)
		write_docs(writer, resp_table_at(table_of(call), i));
}

static void write_commands(struct resp_call *call)
{
	struct resp_writer *writer = resp_call_writer(call);
	size_t i;

	resp_write_array(writer, resp_table_count(table_of(call)));
	for (i = 0; i < resp_table_count(table_of(call)); i++)
		write_command(writer, resp_table_at(table_of(call), i));
}

static void command_info(struct resp_call *call)
{
	struct resp_writer *writer = resp_call_writer(call);
	size_t count = resp_call_count(call), i;

	if (count == 2) {
		write_commands(call);
		return;
	}
	resp_write_array(writer, count - 2);
	for (i = 2; i < count; i++) {
		const struct resp_command *command =
			resp_table_find(table_of(call), resp_call_argument(call, i));

		if (command)
			write_command(writer, command);
		else
			resp_write_null(writer);
	}
}

static void command_list(struct resp_call *call)
{
	static const struct resp_argument every = { "*", 1 }, none = { "", 0 };
	struct resp_writer *writer = resp_call_writer(call);
	size_t count = resp_call_count(call), found = 0, i;
	const struct resp_argument *pattern = &every;

	if (count != 2 &&
	    (count != 5 || !resp_argument_is(resp_call_argument(call, 2), "FILTERBY"))) {
		resp_write_error(writer, "ERR syntax error");
		return;
	}
	/* Nothing here belongs to a module or to a category of access control. */
	if (count == 5)
		pattern = resp_argument_is(resp_call_argument(call, 3), "PATTERN")
				  ? resp_call_argument(call, 4)
				  : &none;
	for (i = 0; i < resp_table_count(table_of(call)); i++)
		found += is_match(pattern, resp_table_at(table_of(call), i)->name);
	resp_write_array(writer, found);
	for (i = 0; i < resp_table_count(table_of(call)); i++)
		if (is_match(pattern, resp_table_at(table_of(call), i)->name))
			write_name(writer, resp_table_at(table_of(call), i));
}

static const struct resp_command command_rows[] = {
	{ "COUNT", 0, 0, 0, command_count, NULL, "Return the number of commands." },
	{ "DOCS", 0, -1, 0, command_docs, "[<command-name> ...]", "Return what they are for." },
	{ "INFO", 0, -1, 0, command_info, "[<command-name> ...]", "Return how they are called." },
	{ "LIST", 0, -1, 0, command_list, "[FILTERBY PATTERN <pattern>]", "Return their names." },
};

void resp_command_run(struct resp_call *call)
{
	if (resp_call_count(call) == 1)
		write_commands(call);
	else
		resp_run_subcommand(call, "COMMAND", command_rows,
				    sizeof(command_rows) / sizeof(*command_rows));
}

/* ---- CONFIG GET */

static const struct {
	const char *name;
	const char *value;
} parameters[] = {
	{ "appendonly", "no" }, { "databases", "1" },
	{ "maxmemory", "0" },   { "maxmemory-policy", "noeviction" },
	{ "save", "" },         { "timeout", "0" },
};

enum { PARAMETERS = sizeof(parameters) / sizeof(*parameters) };

static bool is_parameter_asked_for(const struct resp_call *call, const char *name)
{
	size_t i;

	for (i = 2; i < resp_call_count(call); i++)
		if (is_match(resp_call_argument(call, i), name))
			return true;
	return false;
}

static void config_get(struct resp_call *call)
{
	struct resp_writer *writer = resp_call_writer(call);
	size_t found = 0, i;

	for (i = 0; i < PARAMETERS; i++)
		found += is_parameter_asked_for(call, parameters[i].name);
	resp_write_map(writer, found);
	for (i = 0; i < PARAMETERS; i++) {
		if (!is_parameter_asked_for(call, parameters[i].name))
			continue;
		resp_write_text(writer, parameters[i].name);
		resp_write_text(writer, parameters[i].value);
	}
}

static const struct resp_command config_rows[] = {
	{ "GET", 1, -1, 0, config_get, "<pattern> [<pattern> ...]",
	  "Return what a Redis of this kind would say." },
};

void resp_config_run(struct resp_call *call)
{
	resp_run_subcommand(call, "CONFIG", config_rows,
			    sizeof(config_rows) / sizeof(*config_rows));
}

/* ---- INFO */

/* Sections are asked for by name; none, or one of three words, asks for all. */
static bool is_section_asked_for(const struct resp_call *call, const char *section)
{
	size_t i;

	for (i = 1; i < resp_call_count(call); i++) {
		const struct resp_argument *asked = resp_call_argument(call, i);

		if (resp_argument_is(asked, section) || resp_argument_is(asked, "all") ||
		    resp_argument_is(asked, "default") || resp_argument_is(asked, "everything"))
			return true;
	}
	return resp_call_count(call) == 1;
}

static void print_server(const struct resp_server *server, FILE *out)
{
	unsigned long long seconds = (clock_monotonic_ns() - server->started_ns) / NS_PER_S;

	fprintf(out,
		"# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nsluice_version:%s\r\n"
		"process_id:%ld\r\ntcp_port:%u\r\nuptime_in_seconds:%llu\r\nio_threads:%u\r\n\r\n",
		RESP_REDIS_VERSION, server->options.version, (long)getpid(), server->tcp_port,
		seconds, server->options.workers);
}

static void print_stats(const struct resp_server_stats *stats, FILE *out)
{
	fprintf(out,
		"# Stats\r\ntotal_connections_received:%llu\r\ntotal_commands_processed:%llu\r\n"
		"total_net_input_bytes:%llu\r\ntotal_net_output_bytes:%llu\r\n"
		"rejected_connections:%llu\r\nprotocol_errors:%llu\r\nclosed_idle:%llu\r\n"
		"closed_stalled:%llu\r\nclosed_full:%llu\r\n\r\n",
		(unsigned long long)stats->accepted, (unsigned long long)stats->commands,
		(unsigned long long)stats->input_bytes, (unsigned long long)stats->output_bytes,
		(unsigned long long)stats->refused, (unsigned long long)stats->malformed,
		(unsigned long long)stats->closed_idle, (unsigned long long)stats->closed_stalled,
		(unsigned long long)stats->closed_full);
}

static void print_info(struct resp_call *call, FILE *out)
{
	const struct resp_server *server = call->connection->worker->server;
	struct resp_server_stats stats;

	resp_server_stats(server, &stats);
	if (is_section_asked_for(call, "server"))
		print_server(server, out);
	if (is_section_asked_for(call, "clients"))
		fprintf(out,
			"# Clients\r\nconnected_clients:%llu\r\nmaxclients:%u\r\n"
			"buffers_beyond_floor_bytes:%llu\r\n\r\n",
			(unsigned long long)stats.connections, server->options.connections_max,
			(unsigned long long)stats.pool_bytes);
	/* Clients wait until `loading` is 0, and look for the role. */
	if (is_section_asked_for(call, "persistence"))
		fputs("# Persistence\r\nloading:0\r\n\r\n", out);
	if (is_section_asked_for(call, "stats"))
		print_stats(&stats, out);
	if (is_section_asked_for(call, "replication"))
		fputs("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n", out);
	if (is_section_asked_for(call, "cluster"))
		fputs("# Cluster\r\ncluster_enabled:0\r\n\r\n", out);
}

/* What the sections are called to the caller of the server: "" is all of them. */
static void print_more(struct resp_call *call, FILE *out)
{
	const struct resp_server_options *options = &call->connection->worker->server->options;
	char section[RESP_NAME_ROOM];
	size_t i, k;

	if (!options->info)
		return;
	if (is_section_asked_for(call, "")) {
		options->info(options->context, "", out);
		return;
	}
	for (i = 1; i < resp_call_count(call); i++) {
		const struct resp_argument *asked = resp_call_argument(call, i);

		if (asked->length >= sizeof(section))
			continue;
		for (k = 0; k < asked->length; k++)
			section[k] = lower(asked->data[k]);
		section[k] = '\0';
		options->info(options->context, section, out);
	}
}

void resp_info_run(struct resp_call *call)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (out) {
		print_info(call, out);
		print_more(call, out);
	}
	if (out && fclose(out) == 0)
		resp_write_bulk(resp_call_writer(call), text, length);
	else
		resp_write_error(resp_call_writer(call), "ERR out of memory");
	free(text);
}
