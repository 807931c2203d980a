/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Questions: TENANT.*, QUEUE.*, EDGE.*, CL.THROTTLE. Every decision has one shape, in both versions
 * of the protocol: admitted, retry_after_ms, remaining, reason, and then what the command adds. A
 * refusal is never an error, and an error never a refusal.
 */
#include "server/resp_commands.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "server/resp_admin.h"

enum {
	FORWARDED_MAX = 32,
	DECISION_VALUES = 4,
	MS_MAX = INT32_MAX,
};

/* What a command adds to a decision. */
enum addition { ADD_NANOSECONDS, ADD_LEASE, ADD_CLIENT };

struct asked {
	struct resp_writer *writer;
	enum addition addition;
};

struct engine_reader *resp_reader(struct resp_call *call)
{
	struct resp_commands *commands = resp_call_context(call);

	return commands->readers[resp_call_worker(call)];
}

struct tenant_name resp_tenant(struct resp_call *call)
{
	const struct resp_argument *argument = resp_call_argument(call, 1);

	return (struct tenant_name){ argument->data, argument->length };
}

void resp_refuse_syntax(struct resp_call *call, const char *what)
{
	resp_write_error(resp_call_writer(call), "ERR %s", what);
}

void resp_refuse_tenant(struct resp_call *call)
{
	resp_refuse_syntax(call, "invalid_tenant: a tenant id is [A-Za-z0-9_-]{1,64}");
}

bool resp_integer_in(struct resp_call *call, size_t index, int64_t least, int64_t most,
		     int64_t *out)
{
	if (!resp_argument_integer(resp_call_argument(call, index), out) && *out >= least &&
	    *out <= most)
		return true;
	resp_write_error(resp_call_writer(call),
			 "ERR argument %zu must be an integer from %lld to %lld", index,
			 (long long)least, (long long)most);
	return false;
}

static void write_decision(void *context, const struct decision *decision)
{
	const struct asked *asked = context;
	struct resp_writer *writer = asked->writer;
	char address[ADDRESS_TEXT_MAX];

	resp_write_array(writer, DECISION_VALUES + 1);
	resp_write_integer(writer, decision->admitted);
	resp_write_integer(writer, decision->retry_after_ms);
	resp_write_integer(writer, decision->remaining);
	resp_write_text(writer, decision_word(decision->reason));
	switch (asked->addition) {
	case ADD_LEASE:
		resp_write_integer(writer, (int64_t)decision->lease);
		return;
	case ADD_CLIENT:
		format_address(&decision->client, address);
		resp_write_text(writer, address);
		return;
	default:
		resp_write_integer(writer, decision->retry_after_ns > INT64_MAX
						   ? RETRY_NEVER
						   : (int64_t)decision->retry_after_ns);
	}
}

/* tenant [bytes] [ATOMIC] */
static void hit(struct resp_call *call, unsigned flags)
{
	struct asked asked = { resp_call_writer(call), ADD_NANOSECONDS };
	size_t count = resp_call_count(call), next = 2;
	int64_t bytes = 0;

	if (next < count && !resp_argument_is(resp_call_argument(call, next), "ATOMIC") &&
	    !resp_integer_in(call, next++, 0, INT64_MAX, &bytes))
		return;
	if (next < count && resp_argument_is(resp_call_argument(call, next), "ATOMIC")) {
		flags |= HIT_ATOMIC;
		next++;
	}
	if (next < count)
		resp_refuse_syntax(call, "syntax: tenant [bytes] [ATOMIC]");
	else if (engine_hit(resp_reader(call), resp_tenant(call), (uint64_t)bytes, flags,
			    write_decision, &asked))
		resp_refuse_tenant(call);
}

static void tenant_hit(struct resp_call *call)
{
	hit(call, 0);
}

static void tenant_peek(struct resp_call *call)
{
	hit(call, HIT_PEEK);
}

static void tenant_refund(struct resp_call *call)
{
	int64_t hooks = 1, bytes = 0;

	if (resp_call_count(call) > 2 && !resp_integer_in(call, 2, 0, INT64_MAX, &hooks))
		return;
	if (resp_call_count(call) > 3 && !resp_integer_in(call, 3, 0, INT64_MAX, &bytes))
		return;
	if (engine_refund(resp_reader(call), resp_tenant(call), (uint64_t)hooks, (uint64_t)bytes))
		resp_refuse_tenant(call);
	else
		resp_write_simple(resp_call_writer(call), "OK");
}

static void tenant_body_limit(struct resp_call *call)
{
	uint64_t bytes;

	if (engine_body_limit(resp_reader(call), resp_tenant(call), &bytes))
		resp_refuse_tenant(call);
	else if (bytes == UINT64_MAX)
		resp_write_null(resp_call_writer(call));
	else
		resp_write_integer(resp_call_writer(call), (int64_t)bytes);
}

/* tenant bytes [TTL ms] */
static void queue_acquire(struct resp_call *call)
{
	struct asked asked = { resp_call_writer(call), ADD_LEASE };
	int64_t bytes, ttl_ms = 0;

	if (!resp_integer_in(call, 2, 0, INT64_MAX, &bytes))
		return;
	if (resp_call_count(call) == 4 ||
	    (resp_call_count(call) == 5 && !resp_argument_is(resp_call_argument(call, 3), "TTL"))) {
		resp_refuse_syntax(call, "syntax: tenant bytes [TTL ms]");
		return;
	}
	if (resp_call_count(call) == 5 && !resp_integer_in(call, 4, 1, MS_MAX, &ttl_ms))
		return;
	if (engine_queue_acquire(resp_reader(call), resp_tenant(call), (uint64_t)bytes,
				 resp_call_connection(call), (uint64_t)ttl_ms, write_decision,
				 &asked))
		resp_refuse_tenant(call);
}

static void queue_release(struct resp_call *call)
{
	int64_t lease;

	if (!resp_integer_in(call, 1, 0, INT64_MAX, &lease))
		return;
	resp_write_integer(resp_call_writer(call),
			   engine_queue_release(resp_reader(call), (uint64_t)lease,
						resp_call_connection(call)));
}

/* [BYTES n] [XFF value]…, from argument 3 on. */
static bool read_preread(struct resp_call *call, struct preread *preread,
			 struct forwarded_for forwarded[FORWARDED_MAX])
{
	for (size_t at = 3; at < resp_call_count(call); at += 2) {
		const struct resp_argument *word = resp_call_argument(call, at), *value;
		int64_t bytes;

		if (at + 1 == resp_call_count(call))
			break;
		value = resp_call_argument(call, at + 1);
		if (resp_argument_is(word, "BYTES")) {
			if (!resp_integer_in(call, at + 1, 0, INT64_MAX, &bytes))
				return false;
			preread->has_bytes = true;
			preread->bytes = (uint64_t)bytes;
		} else if (resp_argument_is(word, "XFF") &&
			   preread->forwarded_count < FORWARDED_MAX) {
			forwarded[preread->forwarded_count++] =
				(struct forwarded_for){ value->data, value->length };
		} else {
			break;
		}
		if (at + 2 == resp_call_count(call))
			return true;
	}
	if (resp_call_count(call) == 3)
		return true;
	resp_refuse_syntax(call, "syntax: peer source [BYTES n] [XFF value]... (32 at most)");
	return false;
}

static void edge_preread(struct resp_call *call)
{
	const struct resp_argument *peer = resp_call_argument(call, 1);
	const struct resp_argument *source = resp_call_argument(call, 2);
	struct asked asked = { resp_call_writer(call), ADD_CLIENT };
	struct forwarded_for forwarded[FORWARDED_MAX];
	struct preread preread = { .source = source->data,
				   .source_bytes = source->length,
				   .forwarded = forwarded };
	union address address;

	if (strlen(peer->data) != peer->length || parse_address(peer->data, &address)) {
		resp_refuse_syntax(call, "the peer is not an IPv4 or IPv6 address");
		return;
	}
	preread.peer = &address;
	if (!read_preread(call, &preread, forwarded))
		return;
	if (engine_preread(resp_reader(call), &preread, write_decision, &asked))
		resp_refuse_syntax(call,
				   "the client's address cannot be read from X-Forwarded-For");
}

static void edge_source_bytes(struct resp_call *call)
{
	const struct resp_argument *source = resp_call_argument(call, 1);
	struct asked asked = { resp_call_writer(call), ADD_NANOSECONDS };
	int64_t bytes;

	if (!resp_integer_in(call, 2, 0, INT64_MAX, &bytes))
		return;
	if (engine_source_bytes(resp_reader(call), source->data, source->length, (uint64_t)bytes,
				write_decision, &asked))
		resp_refuse_syntax(call, "the source is longer than 65536 bytes");
}

static void throttle(struct resp_call *call)
{
	const struct resp_argument *key = resp_call_argument(call, 1);
	struct cell_argument arguments[CELL_ARGUMENTS_MAX];
	struct resp_writer *writer = resp_call_writer(call);
	size_t count = resp_call_count(call) - 2;
	char message[CELL_MESSAGE_MAX];
	struct cell_request request;
	struct cell_answer answer;
	int err;

	for (size_t at = 0; at < count; at++)
		arguments[at] = (struct cell_argument){ resp_call_argument(call, at + 2)->data,
							resp_call_argument(call, at + 2)->length };
	if (cell_parse(arguments, count, &request, message)) {
		resp_write_error(writer, "%s", message);
		return;
	}
	err = engine_throttle(resp_reader(call), key->data, key->length, &request, &answer);
	if (err) {
		resp_write_error(writer, err == -E2BIG ? "ERR the key is longer than 65536 bytes"
						       : "OOM no room for another key");
		return;
	}
	resp_write_array(writer, 5);
	resp_write_integer(writer, answer.limited);
	resp_write_integer(writer, answer.limit);
	resp_write_integer(writer, answer.remaining);
	resp_write_integer(writer, answer.retry_after_s);
	resp_write_integer(writer, answer.reset_after_s);
}

static const struct resp_command table[] = {
	{ "TENANT.HIT", 1, 3, RESP_COMMAND_WRITE | RESP_COMMAND_KEY, tenant_hit,
	  "tenant [bytes] [ATOMIC]", "charge a tenant a hook and its bytes" },
	{ "TENANT.PEEK", 1, 3, RESP_COMMAND_READ | RESP_COMMAND_KEY, tenant_peek,
	  "tenant [bytes] [ATOMIC]", "what TENANT.HIT would answer" },
	{ "TENANT.REFUND", 1, 3, RESP_COMMAND_WRITE | RESP_COMMAND_KEY, tenant_refund,
	  "tenant [hooks [bytes]]", "give hooks and bytes back" },
	{ "TENANT.BODYLIMIT", 1, 1, RESP_COMMAND_READ | RESP_COMMAND_KEY, tenant_body_limit,
	  "tenant", "the biggest body a tenant may send" },
	{ "TENANT.EFFECTIVE", 1, 1, RESP_COMMAND_READ | RESP_COMMAND_KEY, resp_tenant_effective,
	  "tenant", "a tenant's limit, and where it comes from" },
	{ "TENANT.LIST", 0, 4, RESP_COMMAND_READ, resp_tenant_list, "[LIMIT n] [AFTER tenant]",
	  "all tenants with a limit" },
	{ "QUEUE.ACQUIRE", 2, 4, RESP_COMMAND_WRITE | RESP_COMMAND_KEY, queue_acquire,
	  "tenant bytes [TTL ms]", "a place in the queue, as a lease" },
	{ "QUEUE.RELEASE", 1, 1, RESP_COMMAND_WRITE, queue_release, "lease", "give a lease back" },
	{ "EDGE.PREREAD", 2, -1, RESP_COMMAND_WRITE, edge_preread,
	  "peer source [BYTES n] [XFF value]...", "may this request be read" },
	{ "EDGE.SOURCEBYTES", 2, 2, RESP_COMMAND_WRITE | RESP_COMMAND_KEY, edge_source_bytes,
	  "source bytes", "charge a source for a body without a declared length" },
	{ "OVERRIDE.SET", 2, 5, RESP_COMMAND_WRITE | RESP_COMMAND_KEY | RESP_COMMAND_ADMIN,
	  resp_override_set, "tenant limit-json [TTL ms] [KEEPDEBT]", "override a tenant's limit" },
	{ "OVERRIDE.GET", 1, 1, RESP_COMMAND_READ | RESP_COMMAND_KEY, resp_override_get, "tenant",
	  "a tenant's override" },
	{ "OVERRIDE.DEL", 1, 2, RESP_COMMAND_WRITE | RESP_COMMAND_KEY | RESP_COMMAND_ADMIN,
	  resp_override_del, "tenant [KEEPDEBT]", "take an override away" },
	{ "OVERRIDE.LIST", 0, 0, RESP_COMMAND_READ, resp_override_list, "", "all overrides" },
	{ "AUDIT.LIST", 0, 6, RESP_COMMAND_READ | RESP_COMMAND_ADMIN, resp_audit_list,
	  "[TENANT t] [LIMIT n] [BEFORE id]", "who changed a limit, newest first" },
	{ "SLUICE.RELOAD", 0, 0, RESP_COMMAND_WRITE | RESP_COMMAND_ADMIN, resp_reload, "",
	  "read the configuration anew" },
	{ "CL.THROTTLE", 4, 5, RESP_COMMAND_WRITE | RESP_COMMAND_KEY, throttle,
	  "key max_burst count period [quantity]", "redis-cell's command" },
};

const struct resp_command *resp_commands_table(size_t *count)
{
	*count = sizeof(table) / sizeof(table[0]);
	return table;
}

int resp_commands_init(struct resp_commands *commands, struct engine *engine, unsigned workers)
{
	int err = 0;

	*commands = (struct resp_commands){ .engine = engine };
	for (unsigned at = 0; !err && at < workers && at < RESP_WORKERS_MAX; at++)
		err = engine_reader_new(engine, &commands->readers[at]);
	return err;
}

void resp_commands_done(struct resp_commands *commands)
{
	for (unsigned at = 0; at < RESP_WORKERS_MAX; at++) {
		engine_reader_free(commands->readers[at]);
		commands->readers[at] = NULL;
	}
}

void resp_commands_closed(void *context, uint64_t connection)
{
	struct resp_commands *commands = context;

	(void)engine_connection_closed(commands->engine, connection);
}

void resp_commands_info(void *context, const char *section, FILE *out)
{
	struct resp_commands *commands = context;
	struct engine_numbers numbers;

	if (section[0] && strcmp(section, "sluice") && strcmp(section, "all") &&
	    strcmp(section, "everything") && strcmp(section, "default"))
		return;
	engine_numbers(commands->engine, &numbers);
	fprintf(out, "# Sluice\r\ntenants:%zu\r\ntenant_room:%zu\r\nsources:%zu\r\n",
		numbers.tenants, numbers.tenant_room, numbers.sources);
	fprintf(out, "throttle_keys:%zu\r\nleases:%zu\r\noverrides:%zu\r\nreloads:%llu\r\n",
		numbers.throttle_keys, numbers.leases, numbers.overrides,
		(unsigned long long)numbers.reloads);
	for (int question = 0; question < QUESTIONS; question++)
		for (int reason = 0; reason < DECISIONS; reason++)
			if (numbers.decisions[question][reason])
				fprintf(out, "%s_%s:%llu\r\n", engine_question_word(question),
					decision_word(reason),
					(unsigned long long)numbers.decisions[question][reason]);
	for (int reason = 0; reason < DECISIONS; reason++)
		if (numbers.would_refuse[reason])
			fprintf(out, "%s_would_refuse_%s:%llu\r\n",
				engine_question_word(QUESTION_PREREAD), decision_word(reason),
				(unsigned long long)numbers.would_refuse[reason]);
}
