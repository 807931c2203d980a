/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server as such: routes, probes, many connections, where it listens, and its end. */
#include "tests/unit/http_fixture.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/un.h>

static struct site site;
static bool is_ready_now;

static bool is_ready(void *context, struct trouble *why)
{
	(void)context;
	if (!is_ready_now)
		(void)trouble_set(why, 0, "the data plane is not attached yet");
	return is_ready_now;
}

static void write_metrics(void *context, struct exposition *out)
{
	(void)context;
	exposition_family(out, EXPOSITION_GAUGE, "sluice_of_the_caller", "Added by it.");
	exposition_count(out, NULL, 0, 42);
}

static int open_site(void **state)
{
	const struct http_server_options options = {
		.workers = 2,
		.is_ready = is_ready,
		.metrics = write_metrics,
		.version = "1.2.3",
		.started_at_ms = 1764500000250,
	};

	(void)state;
	site_open(&site, LIMITS_YAML TOKENS_YAML, false, &options);
	return 0;
}

static int close_site(void **state)
{
	(void)state;
	site_close(&site);
	return 0;
}

#define ADMITTED "200 {\"admitted\":true,\"reason\":\"ok\",\"remaining\":null}"

/* The server is as well as before, on a connection of its own. */
static void must_serve(void)
{
	assert_string_equal(site_say(&site, "GET", "/v1/check?tenant=vip", NULL, NULL), ADMITTED);
}

static void knows_its_routes_and_their_methods(void **state)
{
	static const char not_found[] = "404 {\"error\":\"not_found\"}";
	static const char method[] = "405 {\"error\":\"method_not_allowed\"}";
	static const struct step steps[] = {
		{ "the root", "GET", "/", NULL, NULL, not_found },
		{ "a path of nobody", "GET", "/v2/check", NULL, NULL, not_found },
		{ "a slash too many", "GET", "/v1/check/?tenant=vip", NULL, NULL, not_found },
		{ "two slashes", "GET", "//v1/check?tenant=vip", NULL, NULL, not_found },
		{ "dots", "GET", "/v1/../v1/check?tenant=vip", NULL, NULL, not_found },
		{ "a hidden end", "GET", "/v1/check%00?tenant=vip", NULL, NULL, not_found },
		{ "a tenant and more", "GET", "/v1/tenants/a/b/rate-limit", READER, NULL,
		  not_found },
		{ "a tenant without limit", "GET", "/v1/tenants/a", READER, NULL, not_found },
		{ "reload without a way to", "POST", "/v1/reload", WRITER, NULL, not_found },
		{ "delete a check", "DELETE", "/v1/check", NULL, NULL, method },
		{ "post a limit", "POST", "/v1/tenants/a/rate-limit", WRITER, "{}", method },
		{ "get a reload", "GET", "/v1/reload", WRITER, NULL, method },
		{ "a method of nobody", "BREW", "/healthz", NULL, NULL, method },
	};
	static const struct {
		const char *name;
		const char *allow;
	} allowed[] = {
		{ "/v1/check", "GET, HEAD, POST" },
		{ "/v1/tenants/a/rate-limit", "GET, HEAD, PUT, DELETE" },
		{ "/v1/reload", "POST" },
		{ "/metrics", "GET, HEAD" },
	};
	struct answer answer;
	size_t i;

	(void)state;
	site_take(&site, steps, COUNT_OF(steps));
	for (i = 0; i < COUNT_OF(allowed); i++) {
		site_ask(&site, "OPTIONS", allowed[i].name, NULL, NULL, &answer);
		check_row_equal(&allowed[i], answer.status, 405);
		check_row_text(&allowed[i], answer_field(&answer, "Allow"), allowed[i].allow);
		answer_done(&answer);
	}
}

static void tells_those_who_watch(void **state)
{
	static const char *const lines[] = {
		"sluice_build_info{version=\"1.2.3\"} 1\n",
		"process_start_time_seconds 1764500000.25\n",
		"sluice_decisions_total{question=\"tenant_hit\",reason=\"ok\"} 1\n",
		"sluice_decisions_total{question=\"tenant_hit\",reason=\"rate_limited\"} 0\n",
		"sluice_decisions_would_refuse_total{question=\"edge_preread\",reason=\"ip\"} 0\n",
		"sluice_keys{table=\"tenants\"} 0\n",
		"sluice_http_answers_total{method=\"GET\",route=\"/v1/check\",status=\"200\"} 1\n",
		"sluice_http_answers_total{method=\"GET\",route=\"/readyz\",status=\"503\"} 1\n",
		"sluice_of_the_caller 42\n",
	};
	struct answer answer;
	FILE *promtool;
	size_t i;

	(void)state;
	is_ready_now = false;
	assert_string_equal(site_say(&site, "GET", "/readyz", NULL, NULL),
			    "503 the data plane is not attached yet");
	is_ready_now = true;
	assert_string_equal(site_say(&site, "GET", "/readyz", NULL, NULL), "200 ok");
	assert_string_equal(site_say(&site, "GET", "/healthz", NULL, NULL), "200 ok");
	must_serve();
	site_ask(&site, "GET", "/metrics", NULL, NULL, &answer);
	assert_string_equal(answer_field(&answer, "Content-Type"),
			    "text/plain; version=0.0.4; charset=utf-8");
	for (i = 0; i < COUNT_OF(lines); i++)
		if (!strstr(answer.body, lines[i]))
			fail_msg("no line %s in\n%s", lines[i], answer.body);
	if (system("command -v promtool >/dev/null 2>&1") == 0) {
		promtool = popen("promtool check metrics", "w");
		assert_non_null(promtool);
		assert_int_equal(fwrite(answer.body, 1, answer.body_length, promtool),
				 answer.body_length);
		assert_int_equal(pclose(promtool), 0);
	} else {
		print_message("promtool (package prometheus) is not installed: not asked\n");
	}
	answer_done(&answer);
}

/* Whatever strangers ask for, there are no more series than before. */
static void mints_no_series_for_strangers(void **state)
{
	struct answer before, after;
	char path[64];
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		(void)site_say(&site, i ? "GET" : "BREW", "/nowhere", NULL, NULL);
	(void)site_say(&site, "GET", "/v1/check?tenant=t", NULL, NULL);
	(void)site_say(&site, "GET", "/metrics", NULL, NULL);
	site_ask(&site, "GET", "/metrics", NULL, NULL, &before);
	for (i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "/nowhere/%d", i);
		(void)site_say(&site, i % 2 ? "GET" : "SPIN", path, NULL, NULL);
		snprintf(path, sizeof(path), "/v1/check?tenant=t%d", i);
		(void)site_say(&site, "GET", path, NULL, NULL);
	}
	site_ask(&site, "GET", "/metrics", NULL, NULL, &after);
	assert_null(strstr(after.body, "nowhere"));
	assert_null(strstr(after.body, "SPIN"));
	assert_in_range(after.body_length, before.body_length, before.body_length + 64);
	answer_done(&before);
	answer_done(&after);
}

enum { CONNECTIONS = 1000 };

static void serves_a_thousand_connections_at_once(void **state)
{
	struct rlimit files = { .rlim_cur = 0 };
	int fds[CONNECTIONS];
	struct answer answer;
	int i, round;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur < 2 * CONNECTIONS + 100) {
		files.rlim_cur = 2 * CONNECTIONS + 100;
		if (files.rlim_cur > files.rlim_max || setrlimit(RLIMIT_NOFILE, &files)) {
			print_message("fewer than %d files may be open\n", 2 * CONNECTIONS + 100);
			skip();
		}
	}
	for (i = 0; i < CONNECTIONS; i++)
		fds[i] = client_connect(&site);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < CONNECTIONS; i++)
			client_request(fds[i], "GET", "/v1/check?tenant=vip", NULL, NULL, NULL, 0);
		for (i = CONNECTIONS - 1; i >= 0; i--) {
			client_receive(fds[i], false, &answer);
			assert_int_equal(answer.status, 200);
			answer_done(&answer);
		}
	}
	for (i = 0; i < CONNECTIONS; i++)
		close(fds[i]);
}

enum { CLIENTS = 8, HITS = 50 };

static void *hit(void *admitted)
{
	int i, fd = client_connect(&site);
	struct answer answer;

	for (i = 0; i < HITS; i++) {
		client_request(fd, "GET", "/v1/check?tenant=shared", NULL, NULL, NULL, 0);
		client_receive(fd, false, &answer);
		if (answer.status == 200)
			__atomic_add_fetch((int *)admitted, 1, __ATOMIC_RELAXED);
		answer_done(&answer);
	}
	close(fd);
	return NULL;
}

static void admits_exactly_the_burst_to_many_at_once(void **state)
{
	pthread_t threads[CLIENTS];
	int i, admitted = 0;

	(void)state;
	site_open(&site, "rate_limits: {tenants: {shared: {rate: 0.001, burst: 50}}}\n", false,
		  &(struct http_server_options){ .workers = 4 });
	for (i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hit, &admitted), 0);
	for (i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(admitted, 50);
	site_close(&site);
}

static void closes_a_connection_that_idles(void **state)
{
	const struct http_server_options options = { .idle_timeout_s = 1 };
	struct answer answer;
	int fd;

	(void)state;
	site_open(&site, LIMITS_YAML, false, &options);
	fd = client_connect(&site);
	client_send(fd, "GET /healthz HT", 15);
	client_receive(fd, false, &answer);
	assert_int_equal(answer.status, 0);
	answer_done(&answer);
	close(fd);
	must_serve();
	site_close(&site);
}

static void makes_those_beyond_the_limit_wait(void **state)
{
	const struct http_server_options options = { .connections_max = 2 };
	struct answer answer;
	int first, second, third;

	(void)state;
	site_open(&site, LIMITS_YAML, false, &options);
	first = client_connect(&site);
	second = client_connect(&site);
	client_request(first, "GET", "/healthz", NULL, NULL, NULL, 0);
	client_receive(first, false, &answer);
	answer_done(&answer);
	client_request(second, "GET", "/healthz", NULL, NULL, NULL, 0);
	client_receive(second, false, &answer);
	answer_done(&answer);
	third = client_connect(&site);
	client_request(third, "GET", "/healthz", NULL, NULL, NULL, 0);
	close(first);
	client_receive(third, false, &answer);
	assert_int_equal(answer.status, 200);
	answer_done(&answer);
	close(second);
	close(third);
	site_close(&site);
}

static void stops_once_and_frees_its_port(void **state)
{
	struct setting_endpoint endpoint = { .port = 0 };
	struct http_server_options options = { .workers = 3 };
	struct trouble trouble;
	struct http_server *other;
	unsigned port;

	(void)state;
	assert_int_equal(parse_address("127.0.0.1", &endpoint.address), 0);
	site_open(&site, LIMITS_YAML, false, &options);
	port = site.port;
	endpoint.port = (uint16_t)port;
	options.engine = site.engine;
	options.settings = site.settings;
	options.endpoint = endpoint;
	assert_int_equal(http_server_start(&options, &other, &trouble), -EADDRINUSE);
	assert_non_null(strstr(trouble.remedy, "another server"));
	must_serve();
	http_server_stop(site.server, 1000);
	http_server_stop(site.server, 1000);
	http_server_free(site.server);
	assert_int_equal(http_server_start(&options, &site.server, &site.trouble), 0);
	must_serve();
	site_close(&site);
}

static void serves_a_socket_that_others_opened(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct http_server_options options = { .listener = 0 };
	struct answer answer;
	int fd;

	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/sluice-http-%d.sock", getpid());
	options.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(options.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	site_open(&site, LIMITS_YAML, false, NULL);
	options.engine = site.engine;
	options.settings = site.settings;
	http_server_free(site.server);
	assert_int_equal(listen(options.listener, 8), 0);
	assert_int_equal(http_server_start(&options, &site.server, &site.trouble), 0);
	assert_int_equal(http_server_port(site.server), 0);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	client_request(fd, "GET", "/v1/check?tenant=vip", NULL, NULL, NULL, 0);
	client_receive(fd, false, &answer);
	assert_int_equal(answer.status, 200);
	answer_done(&answer);
	close(fd);
	assert_int_equal(unlink(address.sun_path), 0);
	site_close(&site);
}

#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, open_site, close_site)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SITE(knows_its_routes_and_their_methods),
		WITH_SITE(tells_those_who_watch),
		WITH_SITE(mints_no_series_for_strangers),
		WITH_SITE(serves_a_thousand_connections_at_once),
		cmocka_unit_test(admits_exactly_the_burst_to_many_at_once),
		cmocka_unit_test(closes_a_connection_that_idles),
		cmocka_unit_test(makes_those_beyond_the_limit_wait),
		cmocka_unit_test(stops_once_and_frees_its_port),
		cmocka_unit_test(serves_a_socket_that_others_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
