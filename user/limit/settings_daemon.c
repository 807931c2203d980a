/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads what only the daemon wants to know: where it listens, who may ask, and how large it gets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "limit/settings_draft.h"

enum { PORT_MAX = 65535, SHA256_DIGITS = 2 * SHA256_BYTES };

/* An absolute path of less than size bytes. */
static int read_path(struct yaml_reader *reader, const char *must, char *out, size_t size)
{
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	if (word[0] != '/' || strlen(word) >= size)
		return yaml_fail_got(reader, must);
	strcpy(out, word);
	return 0;
}

int read_state(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;

	return read_path(reader, "must be the absolute path of a folder, such as " STATE_DEFAULT,
			 draft->settings->state, sizeof(draft->settings->state));
}

/* ---- listen */

/* ADDRESS:PORT or [IPV6]:PORT. */
static int parse_endpoint(const char *word, struct setting_endpoint *out)
{
	const char *colon = strrchr(word, ':');
	size_t length = colon ? (size_t)(colon - word) : 0;
	bool bracketed = word[0] == '[';
	char name[ADDRESS_TEXT_MAX];
	uint64_t port;

	if (bracketed && (length < 2 || word[length - 1] != ']'))
		return -EINVAL;
	if (bracketed) {
		word++;
		length -= 2;
	}
	if (length == 0 || length >= sizeof(name) || parse_uint(colon + 1, 1, PORT_MAX, &port))
		return -EINVAL;
	memcpy(name, word, length);
	name[length] = '\0';
	if (bracketed != (strchr(name, ':') != NULL) || parse_address(name, &out->address))
		return -EINVAL;
	out->port = (uint16_t)port;
	return 0;
}

static int read_endpoint(struct yaml_reader *reader, struct setting_endpoint *out)
{
	static const char must[] = "must be ADDRESS:PORT, as 127.0.0.1:6380 or [::1]:6380, or null";
	struct setting_endpoint endpoint;
	const char *word;
	int err;

	if (yaml_is_null(reader)) {
		out->port = 0;
		return 0;
	}
	err = yaml_read_word(reader, must, &word);
	if (err)
		return err;
	if (parse_endpoint(word, &endpoint))
		return yaml_fail_got(reader, must);
	*out = endpoint;
	return 0;
}

static int read_unix(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;
	struct setting_listen *listen = &draft->settings->listen;

	if (yaml_is_null(reader)) {
		listen->unix_path[0] = '\0';
		return 0;
	}
	return read_path(
		reader,
		"must be an absolute path of at most 107 bytes, such as " LISTEN_PATH_DEFAULT
		", or null",
		listen->unix_path, sizeof(listen->unix_path));
}

static int read_tcp(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;

	return read_endpoint(reader, &draft->settings->listen.tcp);
}

static int read_http(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;

	draft->http_place = yaml_place(reader);
	return read_endpoint(reader, &draft->settings->listen.http);
}

int read_listen(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "unix", read_unix },
		{ "tcp", read_tcp },
		{ "http", read_http },
		{ NULL, NULL },
	};

	return yaml_read_map(reader, keys, target);
}

static bool is_loopback(const union address *address)
{
	static const union address ipv6_loopback = { .byte = { [15] = 1 } };

	if (address_is_v4(address))
		return address->byte[12] == 127;
	return memcmp(address, &ipv6_loopback, sizeof(*address)) == 0;
}

int check_listen(struct yaml_reader *reader, const struct settings_draft *draft)
{
	const struct setting_endpoint *http = &draft->settings->listen.http;

	if (http->port == 0 || draft->settings->token_count > 0 || is_loopback(&http->address))
		return 0;
	return yaml_fail_at(reader, draft->http_place, "listen.http",
			    "without admin.tokens must be a loopback address, as 127.0.0.1:4002, "
			    "because anyone could read the limits");
}

/* ---- size and kind */

int read_dataplane(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;
	const char *word;
	int err = yaml_read_word(reader, "must be on or off", &word);

	if (err)
		return err;
	if (strcmp(word, "on") != 0 && strcmp(word, "off") != 0)
		return yaml_fail_got(reader, "must be on or off");
	draft->settings->no_dataplane = word[1] == 'f';
	return 0;
}

int read_workers(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be auto or a whole number from 1 to 64";
	struct settings_draft *draft = target;
	const char *word;
	uint64_t workers = 0;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	if (strcmp(word, "auto") != 0 && parse_uint(word, 1, WORKERS_MAX, &workers))
		return yaml_fail_got(reader, must);
	draft->settings->workers = (unsigned)workers;
	return 0;
}

int read_tenant_slots(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be a power of two from 1024 to 16777216";
	struct settings_draft *draft = target;
	const char *word;
	uint64_t slots;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	if (parse_uint(word, TENANT_SLOTS_MIN, TENANT_SLOTS_MAX, &slots) || (slots & (slots - 1)))
		return yaml_fail_got(reader, must);
	draft->settings->tenant_slots = (uint32_t)slots;
	return 0;
}

int read_ratelimit_headers(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be off, legacy, draft6, draft7 or draft8";
	struct settings_draft *draft = target;
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	return ratelimit_headers_parse(word, &draft->settings->ratelimit_headers)
		       ? yaml_fail_got(reader, must)
		       : 0;
}

/* ---- admin */

struct draft_token {
	struct setting_token token;
	bool has_sha256;
};

static int read_token_name(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be 1 to 64 of A-Z, a-z, 0-9, _, . and -";
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	struct draft_token *draft = target;
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	if (!word[0] || strlen(word) > ADMIN_NAME_MAX || word[strspn(word, allowed)])
		return yaml_fail_got(reader, must);
	strcpy(draft->token.name, word);
	return 0;
}

static unsigned digit_of(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);
}

/* What is wrong is not repeated: it may be the token itself. */
static int read_sha256(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be the 64 hexadecimal digits of the token's SHA-256, as "
				   "`printf %s TOKEN | sha256sum` prints them";
	struct draft_token *draft = target;
	const char *word;
	size_t i;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	if (strlen(word) != SHA256_DIGITS || word[strspn(word, "0123456789abcdefABCDEF")])
		return yaml_fail(reader, "%s", must);
	for (i = 0; i < SHA256_BYTES; i++)
		draft->token.sha256[i] =
			(uint8_t)(digit_of(word[2 * i]) << 4 | digit_of(word[2 * i + 1]));
	draft->has_sha256 = true;
	return 0;
}

static int read_scope_word(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be rate_limits:read or rate_limits:write";
	struct draft_token *draft = target;
	enum admin_scope scope;
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	if (admin_scope_parse(word, &scope))
		return yaml_fail_got(reader, must);
	draft->token.scopes |= scope;
	return 0;
}

static int read_scopes(struct yaml_reader *reader, void *target)
{
	return yaml_read_list(reader,
			      "must be a list such as [rate_limits:read, rate_limits:write]",
			      read_scope_word, target);
}

static int add_token(struct yaml_reader *reader, struct settings_draft *draft,
		     const struct setting_token *token, struct yaml_place place)
{
	struct settings *settings = draft->settings;
	struct setting_token *grown;
	size_t i;

	for (i = 0; i < settings->token_count; i++) {
		if (strcmp(settings->tokens[i].name, token->name) == 0)
			return yaml_fail_at(reader, place, "name",
					    "%s is given twice; the first is on line %u",
					    token->name, draft->token_lines[i]);
		if (memcmp(settings->tokens[i].sha256, token->sha256, SHA256_BYTES) == 0)
			return yaml_fail_at(reader, place, "sha256",
					    "is that of %s, on line %u: give each a token of its "
					    "own, so that the audit can tell them apart",
					    settings->tokens[i].name, draft->token_lines[i]);
	}
	if (settings->token_count == ADMIN_TOKENS_MAX)
		return yaml_fail_at(reader, place, NULL, "there can be at most %d tokens",
				    ADMIN_TOKENS_MAX);
	grown = reallocarray(settings->tokens, settings->token_count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	draft->token_lines[settings->token_count] = place.line;
	grown[settings->token_count++] = *token;
	settings->tokens = grown;
	return 0;
}

static int read_token(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "name", read_token_name },
		{ "sha256", read_sha256 },
		{ "scopes", read_scopes },
		{ NULL, NULL },
	};
	struct draft_token draft = { .has_sha256 = false };
	struct yaml_place place = yaml_place(reader);
	int err = yaml_read_map(reader, keys, &draft);

	if (err)
		return err;
	if (!draft.token.name[0] || !draft.has_sha256 || !draft.token.scopes)
		return yaml_fail_at(reader, place, NULL,
				    "%s missing: a token needs all of name, sha256 and scopes",
				    !draft.token.name[0] ? "name is"
				    : !draft.has_sha256  ? "sha256 is"
							 : "scopes are");
	return add_token(reader, target, &draft.token, place);
}

static int read_tokens(struct yaml_reader *reader, void *target)
{
	return yaml_read_list(reader,
			      "must be a list such as [{name: ops, sha256: ..., scopes: [...]}]",
			      read_token, target);
}

int read_admin(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "tokens", read_tokens },
		{ NULL, NULL },
	};

	return yaml_read_map(reader, keys, target);
}
