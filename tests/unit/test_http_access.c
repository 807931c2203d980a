/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who may ask what over HTTP: tokens, scopes, and the address that the server listens on. */
#include "tests/unit/http_fixture.h"

static struct site site;
static int reloads;

static int reload(void *context, struct trouble *trouble)
{
	(void)context;
	(void)trouble;
	reloads++;
	return 0;
}

static int open_site(void **state)
{
	const struct http_server_options options = { .reload = reload };

	(void)state;
	reloads = 0;
	site_open(&site, LIMITS_YAML TOKENS_YAML, false, &options);
	return 0;
}

static int open_without_tokens(void **state)
{
	const struct http_server_options options = { .reload = reload };

	(void)state;
	site_open(&site, LIMITS_YAML, true, &options);
	return 0;
}

static int close_site(void **state)
{
	(void)state;
	site_close(&site);
	return 0;
}

#define UNAUTHORIZED "401 {\"error\":\"unauthorized\"}"
#define NEEDS(scope) "403 {\"error\":\"forbidden\",\"scope\":\"rate_limits:" scope "\"}"
#define READS "/v1/rate-limits"

static void asks_for_a_token_and_its_scope(void **state)
{
	static const struct step steps[] = {
		{ "list: nobody", "GET", READS, NULL, NULL, UNAUTHORIZED },
		{ "list: a stranger", "GET", READS, "wrong", NULL, UNAUTHORIZED },
		{ "list: only writes", "GET", READS, WRITER, NULL, NEEDS("read") },
		{ "get: nobody", "GET", ACME_PATH, NULL, NULL, UNAUTHORIZED },
		{ "get: only writes", "GET", ACME_PATH, WRITER, NULL, NEEDS("read") },
		{ "put: nobody", "PUT", ACME_PATH, NULL, "{}", UNAUTHORIZED },
		{ "put: a stranger", "PUT", ACME_PATH, "write-tokeN", "{}", UNAUTHORIZED },
		{ "put: a beginning", "PUT", ACME_PATH, "write-toke", "{}", UNAUTHORIZED },
		{ "put: empty", "PUT", ACME_PATH, "", "{}", UNAUTHORIZED },
		{ "put: only reads", "PUT", ACME_PATH, READER, "{}", NEEDS("write") },
		{ "put: before the tenant", "PUT", "/v1/tenants/a.b/rate-limit", NULL, "",
		  UNAUTHORIZED },
		{ "delete: nobody", "DELETE", ACME_PATH, NULL, NULL, UNAUTHORIZED },
		{ "delete: only reads", "DELETE", ACME_PATH, READER, NULL, NEEDS("write") },
		{ "audit: nobody", "GET", "/v1/audit", NULL, NULL, UNAUTHORIZED },
		{ "audit: only writes", "GET", "/v1/audit", WRITER, NULL, NEEDS("read") },
		{ "reload: nobody", "POST", "/v1/reload", NULL, NULL, UNAUTHORIZED },
		{ "reload: only reads", "POST", "/v1/reload", READER, NULL, NEEDS("write") },
		{ "health is open", "GET", "/healthz", NULL, NULL, "200 ok" },
		{ "so is a check on the host", "GET", "/v1/check?tenant=vip", NULL, NULL,
		  "200 {\"admitted\":true,\"reason\":\"ok\",\"remaining\":null}" },
		{ "nothing has changed", "GET", ACME_PATH, READER, NULL, "200 " ACME },
	};
	struct answer answer;

	(void)state;
	site_take(&site, steps, COUNT_OF(steps));
	assert_int_equal(reloads, 0);
	site_ask(&site, "GET", READS, NULL, NULL, &answer);
	assert_string_equal(answer_field(&answer, "WWW-Authenticate"), "Bearer realm=\"sluice\"");
	answer_done(&answer);
	site_ask(&site, "GET", READS, "wrong", NULL, &answer);
	assert_string_equal(answer_field(&answer, "WWW-Authenticate"),
			    "Bearer realm=\"sluice\", error=\"invalid_token\"");
	answer_done(&answer);
	site_ask(&site, "GET", READS, WRITER, NULL, &answer);
	assert_string_equal(answer_field(&answer, "WWW-Authenticate"),
			    "Bearer realm=\"sluice\", error=\"insufficient_scope\", "
			    "scope=\"rate_limits:read\"");
	answer_done(&answer);
}

static void reads_the_authorization_as_it_is_written(void **state)
{
	static const struct {
		const char *name;
		const char *fields;
		int status;
	} rows[] = {
		{ "as usual", "Authorization: Bearer read-token\r\n", 200 },
		{ "the scheme in any case", "authorization: bEARER   read-token\r\n", 200 },
		{ "another scheme", "Authorization: Basic read-token\r\n", 401 },
		{ "no scheme", "Authorization: read-token\r\n", 401 },
		{ "no token", "Authorization: Bearer\r\n", 401 },
		{ "more than a token", "Authorization: Bearer read-token x\r\n", 401 },
		{ "twice",
		  "Authorization: Bearer read-token\r\nAuthorization: Bearer read-token\r\n", 400 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct answer answer;
		int fd = client_connect(&site);

		client_request(fd, "GET", READS, NULL, rows[i].fields, NULL, 0);
		client_receive(fd, false, &answer);
		check_row_equal(&rows[i], answer.status, rows[i].status);
		answer_done(&answer);
		close(fd);
	}
}

static void only_shows_while_no_token_is_configured(void **state)
{
	static const char refusal[] =
		"403 {\"error\":\"forbidden\",\"scope\":\"rate_limits:write\",\"message\":"
		"\"nothing can be changed over HTTP until admin.tokens holds a token for it\"}";
	static const struct step steps[] = {
		{ "get", "GET", ACME_PATH, NULL, NULL, "200 " ACME },
		{ "audit", "GET", "/v1/audit", NULL, NULL,
		  "200 {\"records\":[],\"next_before\":null}" },
		{ "put", "PUT", ACME_PATH, NULL, "{\"rate\":1,\"burst\":2}", refusal },
		{ "put with a token", "PUT", ACME_PATH, WRITER, "{\"rate\":1,\"burst\":2}",
		  refusal },
		{ "delete", "DELETE", ACME_PATH, NULL, NULL, refusal },
		{ "reload", "POST", "/v1/reload", NULL, NULL, refusal },
	};

	(void)state;
	site_take(&site, steps, COUNT_OF(steps));
}

static void exchanges_tokens_without_a_restart(void **state)
{
	struct settings settings = *site.settings;

	(void)state;
	settings.tokens = &site.settings->tokens[1]; /* the reader's */
	settings.token_count = 1;
	assert_int_equal(http_server_configure(site.server, &settings, &site.trouble), 0);
	assert_string_equal(site_say(&site, "PUT", ACME_PATH, WRITER, "{}"), UNAUTHORIZED);
	assert_string_equal(site_say(&site, "GET", ACME_PATH, READER, NULL), "200 " ACME);
	settings.token_count = 0;
	assert_int_equal(http_server_configure(site.server, &settings, &site.trouble), 0);
	assert_string_equal(site_say(&site, "GET", ACME_PATH, NULL, NULL), "200 " ACME);
}

static void what_is_made_ready_is_not_in_force_yet(void **state)
{
	struct settings settings = *site.settings;
	struct http_prepared *prepared, *given_up;

	(void)state;
	settings.tokens = &site.settings->tokens[1]; /* the reader's */
	settings.token_count = 1;
	assert_int_equal(http_server_prepare(site.server, &settings, &prepared, &site.trouble), 0);
	assert_int_equal(http_server_prepare(site.server, &settings, &given_up, &site.trouble), 0);
	http_server_discard(given_up);
	http_server_discard(NULL);
	assert_non_null(strstr(site_say(&site, "PUT", ACME_PATH, WRITER, "{}"), "400"));
	http_server_commit(site.server, prepared);
	assert_string_equal(site_say(&site, "PUT", ACME_PATH, WRITER, "{}"), UNAUTHORIZED);
	assert_string_equal(site_say(&site, "GET", ACME_PATH, READER, NULL), "200 " ACME);
}

/* 0.0.0.0, to which a client of the host can come as well. */
static void open_to_all(const char *yaml)
{
	struct http_server_options options = { .workers = 1 };

	assert_int_equal(parse_address("0.0.0.0", &options.endpoint.address), 0);
	site_open(&site, yaml, false, &options);
}

static void asks_for_a_token_for_checks_that_come_from_elsewhere(void **state)
{
	static const char admitted[] =
		"200 {\"admitted\":true,\"reason\":\"ok\",\"remaining\":null}";
	static const struct step steps[] = {
		{ "nobody", "GET", "/v1/check?tenant=vip", NULL, NULL, UNAUTHORIZED },
		{ "a stranger", "POST", "/v1/check?tenant=vip", "wrong", "{}", UNAUTHORIZED },
		{ "one who reads", "GET", "/v1/check?tenant=vip", READER, NULL, admitted },
		{ "one who writes", "GET", "/v1/check?tenant=vip", WRITER, NULL, admitted },
		{ "health is open", "GET", "/healthz", NULL, NULL, "200 ok" },
	};
	struct settings settings;

	(void)state;
	open_to_all(LIMITS_YAML TOKENS_YAML);
	site_take(&site, steps, COUNT_OF(steps));
	/* Without tokens it would stand open. */
	settings = *site.settings;
	settings.token_count = 0;
	assert_int_equal(http_server_configure(site.server, &settings, &site.trouble), -EPERM);
	site_take(&site, steps, COUNT_OF(steps));
	site_close(&site);
}

static void does_not_start_in_the_open_without_a_token(void **state)
{
	static const struct {
		const char *name;
		int result;
	} rows[] = {
		{ "0.0.0.0", -EPERM },
		{ "::", -EPERM },
		{ "127.8.9.10", 0 },
		{ "::1", 0 },
		{ "192.0.2.1", -EADDRNOTAVAIL },
	};
	struct settings *settings = settings_new();
	struct engine *engine;
	size_t i;

	(void)state;
	assert_non_null(settings);
	assert_int_equal(engine_new(&(struct engine_options){ .settings = settings }, &engine,
				    &site.trouble),
			 0);
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct http_server_options options = { .engine = engine, .settings = settings };
		struct trouble trouble = { .cause = "" };
		struct http_server *server = NULL;
		int err;

		assert_int_equal(parse_address(rows[i].name, &options.endpoint.address), 0);
		err = http_server_start(&options, &server, &trouble);
		if (err == -EAFNOSUPPORT || (rows[i].result == 0 && err == -EADDRNOTAVAIL))
			continue; /* a host without IPv6 */
		check_row_equal(&rows[i], err, rows[i].result);
		check_row(&rows[i], (err != 0) == (trouble.cause[0] && trouble.remedy[0]));
		http_server_free(server);
	}
	engine_free(engine);
	settings_free(settings);
}

#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, open_site, close_site)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SITE(asks_for_a_token_and_its_scope),
		WITH_SITE(reads_the_authorization_as_it_is_written),
		cmocka_unit_test_setup_teardown(only_shows_while_no_token_is_configured,
						open_without_tokens, close_site),
		WITH_SITE(exchanges_tokens_without_a_restart),
		WITH_SITE(what_is_made_ready_is_not_in_force_yet),
		cmocka_unit_test(asks_for_a_token_for_checks_that_come_from_elsewhere),
		cmocka_unit_test(does_not_start_in_the_open_without_a_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
