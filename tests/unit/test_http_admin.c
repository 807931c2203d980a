/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The admin routes over real HTTP: every status, body and message; the audit. */
#include "tests/unit/http_fixture.h"

#include <time.h>

#include <sqlite3.h>

static struct site site;
static int reload_result, reloads;

static int reload(void *context, struct trouble *trouble)
{
	(void)context;
	reloads++;
	return reload_result ? trouble_set(trouble, reload_result,
					   "sluice.yaml:7:12: burst: \xff is none")
			     : 0;
}

static int open_site(void **state)
{
	const struct http_server_options options = { .reload = reload };

	(void)state;
	site_open(&site, LIMITS_YAML TOKENS_YAML, true, &options);
	return 0;
}

static int close_site(void **state)
{
	(void)state;
	site_close(&site);
	return 0;
}

static void shows_limits_and_where_they_come_from(void **state)
{
	static const struct step steps[] = {
		{ "configured", "GET", ACME_PATH, READER, NULL, "200 " ACME },
		{ "unlimited", "GET", "/v1/tenants/vip/rate-limit", READER, NULL,
		  "200 {\"tenant\":\"vip\",\"rate\":null,\"burst\":null,\"unlimited\":true,"
		  "\"source\":\"config\"}" },
		{ "default", "GET", "/v1/tenants/globex/rate-limit", READER, NULL,
		  "200 {\"tenant\":\"globex\",\"rate\":0.001,\"burst\":1,\"source\":\"default\"}" },
		{ "all, sorted", "GET", "/v1/rate-limits", READER, NULL,
		  "200 {\"default\":{\"rate\":0.001,\"burst\":1},\"tenants\":[" ACME
		  ",{\"tenant\":\"vip\",\"rate\":null,\"burst\":null,\"unlimited\":true,"
		  "\"source\":\"config\"}]}" },
		{ "a page", "GET", "/v1/rate-limits?limit=1", READER, NULL,
		  "200 {\"default\":{\"rate\":0.001,\"burst\":1},\"tenants\":[" ACME
		  "],\"next\":\"acme\"}" },
		{ "the last page", "GET", "/v1/rate-limits?limit=1&after=acme", READER, NULL,
		  "200 {\"default\":{\"rate\":0.001,\"burst\":1},\"tenants\":["
		  "{\"tenant\":\"vip\",\"rate\":null,\"burst\":null,\"unlimited\":true,"
		  "\"source\":\"config\"}]}" },
		{ "a page that holds all", "GET", "/v1/rate-limits?limit=2&after=vip", READER, NULL,
		  "200 {\"default\":{\"rate\":0.001,\"burst\":1},\"tenants\":[]}" },
		{ "no page of none", "GET", "/v1/rate-limits?limit=0", READER, NULL,
		  "400 {\"error\":\"invalid_argument\",\"argument\":\"limit\",\"message\":"
		  "\"limit must be a whole number from 1 to 10000\"}" },
		{ "nor of too many", "GET", "/v1/rate-limits?limit=10001", READER, NULL,
		  "400 {\"error\":\"invalid_argument\",\"argument\":\"limit\",\"message\":"
		  "\"limit must be a whole number from 1 to 10000\"}" },
		{ "after nobody", "GET", "/v1/rate-limits?after=bad.tenant", READER, NULL,
		  "400 {\"error\":\"invalid_tenant\"}" },
	};

	(void)state;
	site_take(&site, steps, COUNT_OF(steps));
}

static void shows_null_where_there_is_no_limit(void **state)
{
	(void)state;
	assert_string_equal(site_say(&site, "GET", "/v1/tenants/acme/rate-limit", NULL, NULL),
			    "200 {\"tenant\":\"acme\",\"rate\":null,\"burst\":null,"
			    "\"source\":\"none\"}");
	assert_string_equal(site_say(&site, "GET", "/v1/rate-limits", NULL, NULL),
			    "200 {\"default\":null,\"tenants\":[]}");
}

static int open_unlimited(void **state)
{
	(void)state;
	site_open(&site, "dataplane: off\n", false, NULL);
	return 0;
}

#define CHECK_ACME "/v1/check?tenant=acme"
#define OVERRIDE "200 {\"tenant\":\"acme\",\"rate\":0.001,\"burst\":2,\"source\":\"override\"}"
#define ADMITTED_1 "200 {\"admitted\":true,\"reason\":\"ok\",\"remaining\":1}"
#define ADMITTED_0 "200 {\"admitted\":true,\"reason\":\"ok\",\"remaining\":0}"

static void lives_through_an_override(void **state)
{
	static const struct step before[] = {
		{ "one", "GET", CHECK_ACME, NULL, NULL, ADMITTED_1 },
		{ "two", "GET", CHECK_ACME, NULL, NULL, ADMITTED_0 },
	};
	static const struct step after[] = {
		{ "set", "PUT", ACME_PATH, WRITER, "{\"rate\":0.001,\"burst\":2}", OVERRIDE },
		{ "debts are gone", "GET", CHECK_ACME, NULL, NULL, ADMITTED_1 },
		{ "and new ones are made", "GET", CHECK_ACME, NULL, NULL, ADMITTED_0 },
		{ "shown, and whole", "GET", ACME_PATH, READER, NULL, OVERRIDE },
		{ "set again, debts kept", "PUT", ACME_PATH "?keep_debt=true", WRITER,
		  "{\"rate\":0.001,\"burst\":3}",
		  "200 {\"tenant\":\"acme\",\"rate\":0.001,\"burst\":3,\"source\":\"override\"}" },
		{ "only the third is new", "GET", CHECK_ACME, NULL, NULL, ADMITTED_0 },
		{ "unset", "DELETE", ACME_PATH "?keep_debt=false", WRITER, NULL, "204 " },
		{ "what is configured is back", "GET", ACME_PATH, READER, NULL, "200 " ACME },
		{ "and full", "GET", CHECK_ACME, NULL, NULL, ADMITTED_1 },
		{ "unset again", "DELETE", ACME_PATH, WRITER, NULL,
		  "404 {\"error\":\"rate_limit_not_found\"}" },
		{ "which resets nothing", "GET", CHECK_ACME, NULL, NULL, ADMITTED_0 },
	};

	(void)state;
	site_take(&site, before, COUNT_OF(before));
	assert_int_equal(strncmp(site_say(&site, "GET", CHECK_ACME, NULL, NULL), "429 ", 4), 0);
	site_take(&site, after, COUNT_OF(after));
}

static void ends_an_override_by_its_ttl(void **state)
{
	struct answer answer;
	const char *said;
	long long ends_ms, now_ms;
	int tries;

	(void)state;
	site_ask(&site, "PUT", ACME_PATH "?ttl=1h&keep_debt=true", WRITER,
		 "{\"rate\":1,\"burst\":2}", &answer);
	assert_int_equal(answer.status, 200);
	said = strstr(answer.body, "\"source\":\"override\",\"expires_at_ms\":");
	assert_non_null(said);
	ends_ms = atoll(strrchr(said, ':') + 1);
	now_ms = (long long)time(NULL) * 1000;
	assert_in_range(ends_ms, now_ms + 3500000, now_ms + 3602000);
	answer_done(&answer);
	assert_non_null(strstr(site_say(&site, "GET", ACME_PATH, READER, NULL), "expires_at_ms"));
	assert_non_null(
		strstr(site_say(&site, "GET", "/v1/rate-limits", READER, NULL), "expires_at_ms"));
	/* Over as soon as it is set: rounded up to a millisecond, not to for good. */
	assert_int_equal(strncmp(site_say(&site, "PUT", ACME_PATH "?ttl=1ns", WRITER,
					  "{\"rate\":1,\"burst\":2}"),
				 "200 ", 4),
			 0);
	for (tries = 0; tries < 1000; tries++) {
		said = site_say(&site, "GET", ACME_PATH, READER, NULL);
		if (strcmp(said, "200 " ACME) == 0)
			break;
		usleep(10000);
	}
	assert_string_equal(said, "200 " ACME);
}

#define INVALID(message) "400 {\"error\":\"invalid_rate_limit\",\"message\":\"" message "\"}"
#define NO_OBJECT INVALID("body must be a JSON object")
#define ARGUMENT(name, what)                                                                \
	"400 {\"error\":\"invalid_argument\",\"argument\":\"" name "\",\"message\":\"" name \
	" " what "\"}"
#define TENANT "400 {\"error\":\"invalid_tenant\"}"

static void refuses_what_is_no_limit(void **state)
{
	static const struct step steps[] = {
		{ "nothing", "PUT", ACME_PATH, WRITER, NULL, NO_OBJECT },
		{ "empty", "PUT", ACME_PATH, WRITER, "", NO_OBJECT },
		{ "no JSON", "PUT", ACME_PATH, WRITER, "rate=1", NO_OBJECT },
		{ "cut short", "PUT", ACME_PATH, WRITER, "{\"rate\":1", NO_OBJECT },
		{ "a list", "PUT", ACME_PATH, WRITER, "[1,2]", NO_OBJECT },
		{ "a number", "PUT", ACME_PATH, WRITER, "1", NO_OBJECT },
		{ "an unknown field", "PUT", ACME_PATH, WRITER, "{\"zoo\":1,\"per\":1,\"rate\":0}",
		  INVALID("unknown field \\\"per\\\"") },
		{ "no rate", "PUT", ACME_PATH, WRITER, "{}", INVALID("rate is required") },
		{ "no burst", "PUT", ACME_PATH, WRITER, "{\"rate\":0}",
		  INVALID("burst is required") },
		{ "rate 0", "PUT", ACME_PATH, WRITER, "{\"rate\":0,\"burst\":1.5}",
		  INVALID("rate must be a number greater than 0, got 0") },
		{ "rate in words", "PUT", ACME_PATH, WRITER, "{\"rate\":\"fast\",\"burst\":1}",
		  INVALID("rate must be a number greater than 0, got \\\"fast\\\"") },
		{ "rate null", "PUT", ACME_PATH, WRITER, "{\"rate\":null,\"burst\":1}",
		  INVALID("rate must be a number greater than 0, got nil") },
		{ "half a burst", "PUT", ACME_PATH, WRITER, "{\"rate\":1,\"burst\":1.5}",
		  INVALID("burst must be an integer of at least 1, got 1.5") },
		{ "a burst of 2.0", "PUT", ACME_PATH, WRITER, "{\"rate\":1,\"burst\":2.0}",
		  INVALID("burst must be an integer of at least 1, got 2.0") },
		{ "bytes alone", "PUT", ACME_PATH, WRITER,
		  "{\"rate\":1,\"burst\":2,\"burst_bytes\":3}",
		  INVALID("burst_bytes needs bytes_per_second") },
		{ "a bad tenant", "PUT", "/v1/tenants/bad.tenant/rate-limit", WRITER, "", TENANT },
		{ "a bad tenant, looked at", "GET", "/v1/tenants/bad.tenant/rate-limit", READER,
		  NULL, TENANT },
		{ "a bad tenant, unset", "DELETE", "/v1/tenants/bad.tenant/rate-limit", WRITER,
		  NULL, TENANT },
		{ "no tenant", "GET", "/v1/tenants//rate-limit", READER, NULL, TENANT },
		{ "a hidden end", "GET", "/v1/tenants/acme%00/rate-limit", READER, NULL, TENANT },
		{ "a tenant in escapes", "GET", "/v1/tenants/%61cm%65/rate-limit", READER, NULL,
		  "200 " ACME },
		{ "no ttl", "PUT", ACME_PATH "?ttl=0s", WRITER, "{\"rate\":1,\"burst\":2}",
		  ARGUMENT("ttl", "must be a duration above 0 with its unit, as 30s or 1h") },
		{ "a ttl without unit", "PUT", ACME_PATH "?ttl=60", WRITER,
		  "{\"rate\":1,\"burst\":2}",
		  ARGUMENT("ttl", "must be a duration above 0 with its unit, as 30s or 1h") },
		{ "a doubtful keep_debt", "PUT", ACME_PATH "?keep_debt=yes", WRITER,
		  "{\"rate\":1,\"burst\":2}", ARGUMENT("keep_debt", "must be true or false") },
		{ "a misspelt argument", "PUT", ACME_PATH "?keep_dept=true", WRITER,
		  "{\"rate\":1,\"burst\":2}",
		  ARGUMENT("keep_dept", "is no argument of this route") },
		{ "an argument twice", "PUT", ACME_PATH "?ttl=1s&ttl=2s", WRITER,
		  "{\"rate\":1,\"burst\":2}", ARGUMENT("ttl", "is given twice") },
		{ "a ttl for an end", "DELETE", ACME_PATH "?ttl=1s", WRITER, NULL,
		  ARGUMENT("ttl", "is no argument of this route") },
		{ "nothing has changed", "GET", ACME_PATH, READER, NULL, "200 " ACME },
	};

	(void)state;
	site_take(&site, steps, COUNT_OF(steps));
}

static void keeps_to_the_bounds_of_a_body(void **state)
{
	static const char limit[] = "{\"rate\":1,\"burst\":2}";
	static const struct {
		const char *name;
		size_t bytes;
		int status;
	} rows[] = {
		{ "just within", 65536, 200 },
		{ "just beyond", 65537, 400 },
		{ "far beyond", 1000000, 400 },
	};
	struct answer answer;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		char *body = malloc(rows[i].bytes + 1);

		assert_non_null(body);
		memset(body, ' ', rows[i].bytes);
		memcpy(body, limit, sizeof(limit) - 1);
		body[rows[i].bytes] = '\0';
		site_ask(&site, "PUT", ACME_PATH, WRITER, body, &answer);
		check_row_equal(&rows[i], answer.status, rows[i].status);
		if (answer.status == 400)
			check_row(&rows[i], strstr(answer.body, "body must be a JSON object"));
		answer_done(&answer);
		free(body);
	}
}

static void tells_who_changed_what(void **state)
{
	static const struct step changes[] = {
		{ "set", "PUT", ACME_PATH "?keep_debt=true", WRITER, "{\"rate\":1,\"burst\":2}",
		  "200 {\"tenant\":\"acme\",\"rate\":1,\"burst\":2,\"source\":\"override\"}" },
		{ "another", "PUT", "/v1/tenants/globex/rate-limit", WRITER, "{\"unlimited\":true}",
		  "200 {\"tenant\":\"globex\",\"rate\":null,\"burst\":null,\"unlimited\":true,"
		  "\"source\":\"override\"}" },
		{ "unset", "DELETE", ACME_PATH, WRITER, NULL, "204 " },
	};
	static const struct step bad[] = {
		{ "no number", "GET", "/v1/audit?limit=x", READER, NULL,
		  ARGUMENT("limit", "must be a whole number from 1 to 1000") },
		{ "too many", "GET", "/v1/audit?limit=1001", READER, NULL,
		  ARGUMENT("limit", "must be a whole number from 1 to 1000") },
		{ "none", "GET", "/v1/audit?limit=0", READER, NULL,
		  ARGUMENT("limit", "must be a whole number from 1 to 1000") },
		{ "before nothing", "GET", "/v1/audit?before=0", READER, NULL,
		  ARGUMENT("before", "must be the id of a record, a whole number from 1 on") },
		{ "a bad tenant", "GET", "/v1/audit?tenant=a.b", READER, NULL, TENANT },
		{ "nobody's", "GET", "/v1/audit?tenant=initech", READER, NULL,
		  "200 {\"records\":[],\"next_before\":null}" },
	};
	struct answer answer;

	(void)state;
	site_take(&site, changes, COUNT_OF(changes));
	site_ask(&site, "GET", "/v1/audit?tenant=acme", READER, NULL, &answer);
	assert_non_null(strstr(
		answer.body,
		"\"actor_kind\":\"token\",\"actor\":\"writer\",\"tenant\":\"acme\",\"action\":"
		"\"unset\",\"keep_debt\":false,\"before\":{\"rate\":1,\"burst\":2},\"after\":"));
	assert_non_null(strstr(answer.body,
			       "\"action\":\"set\",\"keep_debt\":true,\"before\":{\"rate\":0.5,"));
	assert_null(strstr(answer.body, "globex"));
	answer_done(&answer);

	/* Page by page, newest first. */
	site_ask(&site, "GET", "/v1/audit?limit=2", READER, NULL, &answer);
	assert_int_equal(strncmp(answer.body, "{\"records\":[{\"id\":3,", 20), 0);
	assert_non_null(strstr(answer.body, "],\"next_before\":2}"));
	answer_done(&answer);
	site_ask(&site, "GET", "/v1/audit?limit=2&before=2", READER, NULL, &answer);
	assert_int_equal(strncmp(answer.body, "{\"records\":[{\"id\":1,", 20), 0);
	assert_non_null(strstr(answer.body, "],\"next_before\":null}"));
	answer_done(&answer);
	site_take(&site, bad, COUNT_OF(bad));
}

static void changes_nothing_when_the_store_fails(void **state)
{
	static const char unavailable[] = "503 {\"error\":\"store_unavailable\"}";
	static const struct step broken[] = {
		{ "put", "PUT", ACME_PATH, WRITER, "{\"rate\":1,\"burst\":9}", unavailable },
		{ "delete", "DELETE", "/v1/tenants/globex/rate-limit", WRITER, NULL, unavailable },
		{ "acme is as it was", "GET", ACME_PATH, READER, NULL, "200 " ACME },
	};
	static const struct step mended[] = {
		{ "put", "PUT", ACME_PATH, WRITER, "{\"rate\":1,\"burst\":9}",
		  "200 {\"tenant\":\"acme\",\"rate\":1,\"burst\":9,\"source\":\"override\"}" },
	};
	sqlite3 *other = NULL;
	struct answer answer;

	(void)state;
	assert_int_equal(strncmp(site_say(&site, "PUT", "/v1/tenants/globex/rate-limit", WRITER,
					  "{\"rate\":1,\"burst\":2}"),
				 "200 ", 4),
			 0);
	assert_int_equal(sqlite3_open(site.database, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	site_take(&site, broken, COUNT_OF(broken));
	site_ask(&site, "PUT", ACME_PATH, WRITER, "{\"rate\":1,\"burst\":9}", &answer);
	assert_string_equal(answer_field(&answer, "Retry-After"), "1");
	answer_done(&answer);
	assert_non_null(
		strstr(site_say(&site, "GET", "/v1/tenants/globex/rate-limit", READER, NULL),
		       "\"source\":\"override\""));
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	site_take(&site, mended, COUNT_OF(mended));
}

static void reloads_and_says_what_is_wrong(void **state)
{
	static const struct step good = { "good", "POST", "/v1/reload",
					  WRITER, NULL,   "200 {\"status\":\"reloaded\"}" };
	static const struct step wrong = {
		"wrong",
		"POST",
		"/v1/reload",
		WRITER,
		NULL,
		"422 {\"error\":\"invalid_configuration\",\"message\":\"sluice.yaml:7:12: burst: ? "
		"is none\"}"
	};
	static const struct step failed = {
		"failed",
		"POST",
		"/v1/reload",
		WRITER,
		NULL,
		"500 {\"error\":\"reload_failed\",\"message\":\"sluice.yaml:7:12: burst: ? is "
		"none\"}"
	};

	(void)state;
	reloads = reload_result = 0;
	site_take(&site, &good, 1);
	reload_result = -EINVAL;
	site_take(&site, &wrong, 1);
	reload_result = -EIO;
	site_take(&site, &failed, 1);
	assert_int_equal(reloads, 3);
	reload_result = 0;
}

#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, open_site, close_site)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SITE(shows_limits_and_where_they_come_from),
		cmocka_unit_test_setup_teardown(shows_null_where_there_is_no_limit, open_unlimited,
						close_site),
		WITH_SITE(lives_through_an_override),
		WITH_SITE(ends_an_override_by_its_ttl),
		WITH_SITE(refuses_what_is_no_limit),
		WITH_SITE(keeps_to_the_bounds_of_a_body),
		WITH_SITE(tells_who_changed_what),
		WITH_SITE(changes_nothing_when_the_store_fails),
		WITH_SITE(reloads_and_says_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
