/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* /v1/check as proxies call it: every answer and its fields, in each of the ways to ask. */
#include "tests/unit/http_fixture.h"

#define CHECK_YAML                                                                        \
	"rate_limits:\n"                                                                  \
	"  per_ip: {rate: 0.001, burst: 3}\n"                                             \
	"  node: {rate: 0.001, burst: 6}\n"                                               \
	"  sources: {default: {bytes_per_second: 0.001}}\n"                               \
	"  tenants:\n"                                                                    \
	"    one: {rate: 0.001, burst: 1}\n"                                              \
	"    wide: {rate: 0.001, burst: 100}\n"                                           \
	"    heavy: {rate: 0.001, burst: 9, bytes_per_second: 0.001, burst_bytes: 1000, " \
	"max_body_bytes: 5000}\n"                                                         \
	"routes: {trusted_proxies: [10.0.0.0/8]}\n"

static struct site site;

static int open_site(void **state)
{
	(void)state;
	site_open(&site, CHECK_YAML, false, NULL);
	return 0;
}

static int close_site(void **state)
{
	(void)state;
	site_close(&site);
	return 0;
}

#define ADMITTED(remaining) "200 {\"admitted\":true,\"reason\":\"ok\",\"remaining\":" #remaining "}"
#define ARGUMENT(name, what)                                                                \
	"400 {\"error\":\"invalid_argument\",\"argument\":\"" name "\",\"message\":\"" name \
	" " what "\"}"
#define TENANT "400 {\"error\":\"invalid_tenant\"}"
#define CLIENT "400 {\"error\":\"invalid_client_address\"}"

/* A refusal of this scope whose wait, in ms, lies within bounds; its fields agree with it. */
static void must_refuse(const char *path, const char *scope, long long least_ms, long long most_ms)
{
	char wanted[128], text[32];
	struct answer answer;
	long long wait_ms;

	site_ask(&site, "GET", path, NULL, NULL, &answer);
	assert_int_equal(answer.status, 429);
	snprintf(wanted, sizeof(wanted),
		 "{\"error\":\"rate_limited\",\"scope\":\"%s\",\"retry_after_ms\":", scope);
	assert_int_equal(strncmp(answer.body, wanted, strlen(wanted)), 0);
	wait_ms = atoll(answer.body + strlen(wanted));
	assert_in_range(wait_ms, least_ms, most_ms);
	assert_string_equal(answer_field(&answer, "Content-Type"), "application/json");
	snprintf(text, sizeof(text), "%lld", wait_ms);
	assert_string_equal(answer_field(&answer, "X-Retry-After-Ms"), text);
	snprintf(text, sizeof(text), "%lld", (wait_ms + 999) / 1000);
	assert_string_equal(answer_field(&answer, "Retry-After"), text);
	answer_done(&answer);
}

static void admits_and_refuses_a_tenant(void **state)
{
	struct answer answer;

	(void)state;
	site_ask(&site, "GET", "/v1/check?tenant=one", NULL, NULL, &answer);
	assert_int_equal(answer.status, 200);
	assert_string_equal(answer.body, "{\"admitted\":true,\"reason\":\"ok\",\"remaining\":0}");
	assert_string_equal(answer_field(&answer, "RateLimit"), "\"hooks\";r=0;t=1000");
	assert_string_equal(answer_field(&answer, "RateLimit-Policy"), "\"hooks\";q=1;w=1000");
	assert_null(answer_field(&answer, "Retry-After"));
	answer_done(&answer);
	must_refuse("/v1/check?tenant=one", "tenant", 500000, 1000000);
	site_ask(&site, "GET", "/v1/check?tenant=one", NULL, NULL, &answer);
	assert_int_equal(strncmp(answer_field(&answer, "RateLimit"), "\"hooks\";r=0;t=", 14), 0);
	assert_string_equal(answer_field(&answer, "RateLimit-Policy"), "\"hooks\";q=1;w=1000");
	answer_done(&answer);
	assert_string_equal(site_say(&site, "GET", "/v1/check?tenant=nobody", NULL, NULL),
			    ADMITTED(null));
	assert_string_equal(site_say(&site, "HEAD", "/v1/check?tenant=nobody", NULL, NULL), "200 ");
}

static void charges_bytes_after_the_hook(void **state)
{
	(void)state;
	assert_string_equal(site_say(&site, "GET", "/v1/check?tenant=heavy&bytes=600", NULL, NULL),
			    ADMITTED(8));
	must_refuse("/v1/check?tenant=heavy&bytes=600", "bytes", 150000000, 200000000);
	/* The refused hook was spent, unless it was to be all or nothing. */
	must_refuse("/v1/check?tenant=heavy&bytes=600&atomic=true", "bytes", 150000000, 200000000);
	assert_string_equal(site_say(&site, "GET", "/v1/check?tenant=heavy&bytes=400", NULL, NULL),
			    ADMITTED(6));
	assert_string_equal(site_say(&site, "GET", "/v1/check?tenant=heavy&bytes=0", NULL, NULL),
			    ADMITTED(5));
	assert_string_equal(site_say(&site, "GET", "/v1/check?tenant=heavy&bytes=5001", NULL, NULL),
			    "413 {\"error\":\"payload_too_large\",\"limit\":5000}");
	assert_string_equal(site_say(&site, "GET", "/v1/check?tenant=heavy", NULL, NULL),
			    ADMITTED(4));
}

#define SOURCE(peer) "/v1/check?tenant=wide&source=s&peer=" peer

static void asks_before_the_body_is_read(void **state)
{
	static const struct step steps[] = {
		{ "one", "GET", SOURCE("192.0.2.1"), NULL, NULL, ADMITTED(99) },
		{ "two", "GET", SOURCE("192.0.2.1"), NULL, NULL, ADMITTED(98) },
		{ "mapped is the same", "GET", SOURCE("::ffff:192.0.2.1"), NULL, NULL,
		  ADMITTED(97) },
	};
	static const struct step others[] = {
		{ "another, no tenant yet", "GET", "/v1/check?source=s&peer=192.0.2.2", NULL, NULL,
		  ADMITTED(null) },
		{ "another", "GET", SOURCE("192.0.2.2") "&bytes=1", NULL, NULL, ADMITTED(96) },
	};

	(void)state;
	site_take(&site, steps, COUNT_OF(steps));
	/* Refused by address, the node and the tenant have not been charged. */
	must_refuse(SOURCE("192.0.2.1"), "ip", 500000, 1000000);
	must_refuse(SOURCE("192.0.2.1"), "ip", 500000, 1000000);
	site_take(&site, others, COUNT_OF(others));
	must_refuse(SOURCE("192.0.2.2") "&bytes=1", "source", 500000, 1000000);
	must_refuse(SOURCE("192.0.2.3"), "node", 500000, 1000000);
}

/* Each asks until its address has used up its three; so its key shows who was charged. */
static void finds_the_client_behind_proxies(void **state)
{
	static const struct step steps[] = {
		{ "believed from a proxy", "GET",
		  SOURCE("10.0.0.9") "&forwarded_for=6.6.6.6,%201.2.3.4", NULL, NULL,
		  ADMITTED(99) },
		{ "the same", "GET", SOURCE("1.2.3.4"), NULL, NULL, ADMITTED(98) },
		{ "not believed from others", "GET", SOURCE("1.2.3.4") "&forwarded_for=7.7.7.7",
		  NULL, NULL, ADMITTED(97) },
		{ "unreadable", "GET", SOURCE("10.0.0.9") "&forwarded_for=1.2.3.4,garbage", NULL,
		  NULL, CLIENT },
		{ "no address", "GET", SOURCE("localhost"), NULL, NULL, CLIENT },
		{ "an address and more", "GET", SOURCE("1.2.3.4%00"), NULL, NULL, CLIENT },
		{ "a port", "GET", SOURCE("1.2.3.4:80"), NULL, NULL, CLIENT },
		{ "a Unix socket", "GET", SOURCE("unix:"), NULL, NULL, CLIENT },
		{ "no peer", "GET", "/v1/check?tenant=wide&source=s", NULL, NULL,
		  ARGUMENT("peer", "is required beside source") },
		{ "an empty peer", "GET", SOURCE(""), NULL, NULL,
		  ARGUMENT("peer", "is required beside source") },
	};

	(void)state;
	site_take(&site, steps, COUNT_OF(steps));
	must_refuse(SOURCE("1.2.3.4"), "ip", 500000, 1000000);
	must_refuse(SOURCE("10.0.0.9") "&forwarded_for=1.2.3.4,%2010.0.0.7", "ip", 500000, 1000000);
}

static void reads_header_lines(void **state)
{
	static const struct {
		const char *name;
		const char *path;
		const char *fields;
		const char *wanted;
	} rows[] = {
		{ "tenant and bytes", "/v1/check", "x-tenant: heavy\r\nX-Body-Bytes: 600\r\n",
		  ADMITTED(8) },
		{ "the query wins", "/v1/check?tenant=wide&bytes=1",
		  "X-Tenant: heavy\r\nX-Body-Bytes: 600\r\n", ADMITTED(99) },
		{ "an empty one is none", "/v1/check?tenant=heavy&bytes=", "X-Body-Bytes: \r\n",
		  ADMITTED(7) },
		{ "but not an empty tenant", "/v1/check?tenant=", "X-Tenant: heavy\r\n", TENANT },
		{ "peer and chain", "/v1/check?tenant=wide&source=s",
		  "X-Real-IP: 10.0.0.1\r\nX-Forwarded-For: 6.6.6.6\r\nx-forwarded-for: 1.2.3.4\r\n",
		  ADMITTED(98) },
		{ "its own chain in the query",
		  "/v1/check?tenant=wide&source=s&forwarded_for=1.2.3.4",
		  "X-Real-IP: 10.0.0.1\r\nX-Forwarded-For: junk\r\n", ADMITTED(97) },
		{ "which is read to the client only", "/v1/check?tenant=wide&source=s",
		  "X-Real-IP: 10.0.0.1\r\nX-Forwarded-For: junk, 1.2.3.4\r\n", ADMITTED(96) },
		{ "two tenants", "/v1/check", "X-Tenant: heavy\r\nX-Tenant: wide\r\n",
		  "400 {\"error\":\"bad_request\",\"message\":\"the header is ambiguous\"}" },
		{ "words for bytes", "/v1/check?tenant=wide", "X-Body-Bytes: many\r\n",
		  ARGUMENT("bytes", "must be a whole number of at least 0") },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct answer answer;
		char said[512];
		int fd = client_connect(&site);

		client_request(fd, "GET", rows[i].path, NULL, rows[i].fields, NULL, 0);
		client_receive(fd, false, &answer);
		snprintf(said, sizeof(said), "%d %s", answer.status,
			 answer.body ? answer.body : "");
		check_row_text(&rows[i], said, rows[i].wanted);
		answer_done(&answer);
		close(fd);
	}
	must_refuse(SOURCE("1.2.3.4"), "ip", 500000, 1000000);
}

#define BYTES ARGUMENT("bytes", "must be a whole number of at least 0")
#define LINES ARGUMENT("forwarded_for", "must be a string or a list of strings")
#define OBJECT ARGUMENT("body", "must be a JSON object without a key twice")
#define POST(body) "POST", "/v1/check", NULL, body

static void reads_a_json_body(void **state)
{
	static const struct step steps[] = {
		{ "tenant and bytes", POST("{\"tenant\":\"heavy\",\"bytes\":600}"), ADMITTED(8) },
		{ "null is nothing", POST("{\"tenant\":\"heavy\",\"bytes\":null,\"source\":null}"),
		  ADMITTED(7) },
		{ "preread",
		  POST("{\"tenant\":\"wide\",\"source\":\"a\\u0000b\",\"peer\":"
		       "\"10.0.0.1\",\"forwarded_for\":[\"6.6.6.6\",\"1.2.3.4\"]}"),
		  ADMITTED(99) },
		{ "one line",
		  POST("{\"tenant\":\"wide\",\"source\":\"s\",\"peer\":\"10.0.0.1\","
		       "\"forwarded_for\":\"1.2.3.4\"}"),
		  ADMITTED(98) },
		{ "beside the query, over which it wins", "POST",
		  "/v1/check?tenant=heavy&atomic=false", NULL,
		  "{\"tenant\":\"wide\",\"atomic\":true}", ADMITTED(97) },
		{ "no body", "POST", "/v1/check?tenant=wide", NULL, NULL, ADMITTED(96) },
		{ "no JSON", POST("tenant=wide"), OBJECT },
		{ "a list", POST("[]"), OBJECT },
		{ "a key twice", POST("{\"tenant\":\"a\",\"tenant\":\"b\"}"), OBJECT },
		{ "an unknown key", POST("{\"tennant\":\"wide\"}"),
		  ARGUMENT("body", "must hold only tenant, bytes, atomic, source, peer and "
				   "forwarded_for") },
		{ "no tenant", POST("{}"), ARGUMENT("tenant", "is required, or a source") },
		{ "a bad tenant", POST("{\"tenant\":\"a.b\"}"), TENANT },
		{ "a hidden end", POST("{\"tenant\":\"wide\\u0000\"}"), TENANT },
		{ "a tenant in numbers", POST("{\"tenant\":1}"),
		  ARGUMENT("tenant", "must be a string") },
		{ "half a byte", POST("{\"tenant\":\"wide\",\"bytes\":0.5}"), BYTES },
		{ "less than none", POST("{\"tenant\":\"wide\",\"bytes\":-1}"), BYTES },
		{ "more than all", POST("{\"tenant\":\"wide\",\"bytes\":9223372036854775808}"),
		  OBJECT },
		{ "in words", POST("{\"tenant\":\"wide\",\"bytes\":\"1\"}"), BYTES },
		{ "atomic", POST("{\"tenant\":\"wide\",\"atomic\":1}"),
		  ARGUMENT("atomic", "must be true or false") },
		{ "a chain of numbers",
		  POST("{\"source\":\"s\",\"peer\":\"10.0.0.1\","
		       "\"forwarded_for\":[1]}"),
		  LINES },
		{ "a chain of 17",
		  POST("{\"source\":\"s\",\"peer\":\"10.0.0.1\",\"forwarded_for\":"
		       "[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\","
		       "\"\",\"\",\"\",\"\",\"\",\"\"]}"),
		  ARGUMENT("forwarded_for", "must have at most 16 lines") },
		{ "a hidden end of the peer",
		  POST("{\"source\":\"s\",\"peer\":\"1.2.3.4\\u0000\"}"), CLIENT },
	};

	(void)state;
	site_take(&site, steps, COUNT_OF(steps));
	must_refuse("/v1/check?tenant=heavy&bytes=600", "bytes", 150000000, 200000000);
}

static void refuses_what_it_does_not_understand(void **state)
{
	static const struct step steps[] = {
		{ "nothing asked", "GET", "/v1/check", NULL, NULL,
		  ARGUMENT("tenant", "is required, or a source") },
		{ "a bad tenant", "GET", "/v1/check?tenant=bad.tenant", NULL, NULL, TENANT },
		{ "and a source, which is not charged", "GET",
		  "/v1/check?tenant=bad.tenant&source=s&peer=192.0.2.1", NULL, NULL, TENANT },
		{ "an argument of others", "GET", "/v1/check?tenant=wide&byte=1", NULL, NULL,
		  ARGUMENT("byte", "is no argument of this route") },
		{ "one without value", "GET", "/v1/check?tenant", NULL, NULL, TENANT },
		{ "one that is no text", "GET", "/v1/check?%ff=1", NULL, NULL,
		  ARGUMENT("?", "is no argument of this route") },
		{ "one twice", "GET", "/v1/check?tenant=wide&tenant=one", NULL, NULL,
		  ARGUMENT("tenant", "is given twice") },
		{ "bytes in words", "GET", "/v1/check?tenant=wide&bytes=-1", NULL, NULL, BYTES },
		{ "too many bytes", "GET", "/v1/check?tenant=wide&bytes=9223372036854775808", NULL,
		  NULL, BYTES },
		{ "atomic", "GET", "/v1/check?tenant=wide&atomic=1", NULL, NULL,
		  ARGUMENT("atomic", "must be true or false") },
		{ "a mode", "GET", "/v1/check?tenant=wide&mode=apache", NULL, NULL,
		  ARGUMENT("mode", "must be nginx, or left out") },
		{ "nothing was charged", "GET", "/v1/check?tenant=wide", NULL, NULL, ADMITTED(99) },
	};

	(void)state;
	site_take(&site, steps, COUNT_OF(steps));
}

static void speaks_to_nginx(void **state)
{
	static const struct {
		const char *name;
		const char *path;
		int status;
		const char *meant;
	} rows[] = {
		{ "admitted", "/v1/check?tenant=one&mode=nginx", 200, NULL },
		{ "refused", "/v1/check?tenant=one&mode=nginx", 403, "429" },
		{ "too large", "/v1/check?tenant=heavy&bytes=6000&mode=nginx", 403, "413" },
		{ "misspelt", "/v1/check?tennant=one&mode=nginx", 403, "400" },
		{ "a bad tenant", "/v1/check?mode=nginx&tenant=a.b", 403, "400" },
		{ "a bad address", "/v1/check?mode=nginx&source=s&peer=x", 403, "400" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct answer answer;
		const char *meant;

		site_ask(&site, "GET", rows[i].path, NULL, NULL, &answer);
		check_row_equal(&rows[i], answer.status, rows[i].status);
		meant = answer_field(&answer, "X-RL-Status");
		check_row(&rows[i], (meant != NULL) == (rows[i].meant != NULL));
		if (meant)
			check_row_text(&rows[i], meant, rows[i].meant);
		if (meant && strcmp(meant, "429") == 0)
			check_row(&rows[i], answer_field(&answer, "Retry-After") != NULL);
		check_row(&rows[i],
			  (answer.body_length > 0) == (meant && strcmp(meant, "400") == 0));
		answer_done(&answer);
	}
}

static void says_overload_when_there_is_no_room(void **state)
{
	static const char full[] = "503 {\"error\":\"overload\",\"retry_after_ms\":1000}";
	char path[64];
	int i, refused = 0;

	(void)state;
	site_open(&site, "rate_limits: {default: {rate: 0.001, burst: 1}}\ntenant_slots: 1024\n",
		  false, NULL);
	for (i = 0; i < 2000; i++) {
		const char *said;

		snprintf(path, sizeof(path), "/v1/check?tenant=t%d", i);
		said = site_say(&site, "GET", path, NULL, NULL);
		if (strcmp(said, ADMITTED(0)) == 0)
			continue;
		assert_string_equal(said, full);
		refused++;
	}
	assert_true(refused >= 2000 - 1024);
	/* None that owes was dropped for another. */
	must_refuse("/v1/check?tenant=t0", "tenant", 1, 1000000);
	site_close(&site);
}

static void writes_the_fields_that_are_configured(void **state)
{
	struct settings settings;
	struct answer answer;

	(void)state;
	settings = *site.settings;
	settings.ratelimit_headers = HEADERS_DRAFT7;
	assert_int_equal(http_server_configure(site.server, &settings, &site.trouble), 0);
	site_ask(&site, "GET", "/v1/check?tenant=one", NULL, NULL, &answer);
	assert_string_equal(answer_field(&answer, "RateLimit"), "limit=1, remaining=0, reset=1000");
	answer_done(&answer);
	settings.ratelimit_headers = HEADERS_OFF;
	assert_int_equal(http_server_configure(site.server, &settings, &site.trouble), 0);
	site_ask(&site, "GET", "/v1/check?tenant=one", NULL, NULL, &answer);
	assert_null(answer_field(&answer, "RateLimit"));
	assert_non_null(answer_field(&answer, "Retry-After"));
	answer_done(&answer);
}

#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, open_site, close_site)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SITE(admits_and_refuses_a_tenant),
		WITH_SITE(charges_bytes_after_the_hook),
		WITH_SITE(asks_before_the_body_is_read),
		WITH_SITE(finds_the_client_behind_proxies),
		WITH_SITE(reads_header_lines),
		WITH_SITE(reads_a_json_body),
		WITH_SITE(refuses_what_it_does_not_understand),
		WITH_SITE(speaks_to_nginx),
		cmocka_unit_test(says_overload_when_there_is_no_room),
		WITH_SITE(writes_the_fields_that_are_configured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
