/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* HTTP as strangers speak it: in pieces, in chunks, without end, in two senses, or not at all. */
#include "tests/unit/http_fixture.h"

static struct site site;

static int open_site(void **state)
{
	(void)state;
	site_open(&site, LIMITS_YAML TOKENS_YAML, false, NULL);
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

static void answers_in_order_on_one_connection(void **state)
{
	char text[4096] = "";
	struct answer answer;
	int i, fd = client_connect(&site);

	(void)state;
	for (i = 0; i < 20; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "GET %s HTTP/1.1\r\nHost: x\r\n\r\n",
			 i % 3 == 2 ? "/nowhere" : "/v1/check?tenant=vip");
	client_send(fd, text, strlen(text));
	for (i = 0; i < 20; i++) {
		client_receive(fd, false, &answer);
		assert_int_equal(answer.status, i % 3 == 2 ? 404 : 200);
		answer_done(&answer);
	}
	/* Refused with its body unread, the connection is as good as before. */
	client_request(fd, "PUT", "/v1/tenants/acme/rate-limit", NULL, NULL, "{\"rate\":1}", 10);
	client_receive(fd, false, &answer);
	assert_int_equal(answer.status, 401);
	answer_done(&answer);
	client_request(fd, "GET", "/healthz", NULL, NULL, NULL, 0);
	client_receive(fd, false, &answer);
	assert_int_equal(answer.status, 200);
	answer_done(&answer);
	close(fd);
}

static void takes_a_request_byte_by_byte_and_in_chunks(void **state)
{
	static const char request[] =
		"POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		"9\r\n{\"tenant\"\r\n7\r\n:\"vip\"}\r\n0\r\n\r\n";
	struct answer answer;
	size_t i, length = sizeof(request) - 1;
	int fd = client_connect(&site);

	(void)state;
	for (i = 0; i < length; i++)
		client_send(fd, request + i, 1);
	client_receive(fd, false, &answer);
	assert_int_equal(answer.status, 200);
	answer_done(&answer);
	close(fd);
	/* Ended at each byte, it is no request, and nobody minds. */
	for (i = 0; i < length; i++) {
		fd = client_connect(&site);
		client_send(fd, request, i);
		close(fd);
	}
	must_serve();
}

static void bounds_a_body_that_says_nothing_of_its_length(void **state)
{
	char chunk[4096 + 16];
	struct answer answer;
	int i, fd = client_connect(&site);

	(void)state;
	memset(chunk, ' ', sizeof(chunk));
	memcpy(chunk, "1000\r\n", 6);
	memcpy(chunk + 6 + 4096, "\r\n", 2);
	client_request(fd, "POST", "/v1/check", NULL, "Transfer-Encoding: chunked\r\n", NULL, 0);
	for (i = 0; i < 17; i++)
		client_send(fd, chunk, 6 + 4096 + 2);
	client_send(fd, "0\r\n\r\n", 5);
	client_receive(fd, false, &answer);
	assert_int_equal(answer.status, 413);
	assert_string_equal(answer.body, "{\"error\":\"payload_too_large\",\"limit\":65536}");
	answer_done(&answer);
	/* Without an end, there is one. */
	client_request(fd, "POST", "/v1/check", NULL, "Transfer-Encoding: chunked\r\n", NULL, 0);
	for (i = 0; i < 10000; i++)
		client_send(fd, chunk, 6 + 4096 + 2);
	client_receive(fd, false, &answer);
	assert_int_equal(answer.status, 0);
	answer_done(&answer);
	close(fd);
	must_serve();
}

static void refuses_before_the_body_whoever_asks_first(void **state)
{
	static const struct {
		const char *name;
		const char *head;
		int status;
	} rows[] = {
		{ "without a token",
		  "PUT /v1/tenants/a/rate-limit HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
		  "Content-Length: 20\r\n\r\n",
		  401 },
		{ "too large a limit",
		  "PUT /v1/tenants/a/rate-limit HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
		  "Authorization: Bearer write-token\r\nContent-Length: 65537\r\n\r\n",
		  400 },
		{ "too large a check",
		  "POST /v1/check HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
		  "Content-Length: 65537\r\n\r\n",
		  413 },
		{ "half a gigabyte",
		  "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 536870912\r\n\r\n", 413 },
		{ "what is welcome",
		  "POST /v1/check?tenant=vip HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
		  "Content-Length: 2\r\n\r\n",
		  100 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct answer answer;
		int fd = client_connect(&site);

		client_send(fd, rows[i].head, strlen(rows[i].head));
		client_receive(fd, false, &answer);
		check_row_equal(&rows[i], answer.status, rows[i].status);
		answer_done(&answer);
		close(fd);
	}
}

/* Two readings of where a request ends are how one request is smuggled within another. */
static void does_not_guess_where_a_request_ends(void **state)
{
	static const char smuggled[] = "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n";
	static const struct {
		const char *name;
		const char *fields;
	} rows[] = {
		{ "both lengths", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" },
		{ "two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n" },
		{ "the same twice", "Content-Length: 0\r\nContent-Length: 0\r\n" },
		{ "a list of lengths", "Content-Length: 5, 5\r\n" },
		{ "a sign", "Content-Length: +5\r\n" },
		{ "less than none", "Content-Length: -5\r\n" },
		{ "hexadecimal", "Content-Length: 0x5\r\n" },
		{ "beyond 64 bits", "Content-Length: 18446744073709551621\r\n" },
		{ "another encoding", "Transfer-Encoding: gzip, chunked\r\n" },
		{ "an encoding of nobody", "Transfer-Encoding: xchunked\r\n" },
		{ "two encodings",
		  "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct answer answer;
		int fd = client_connect(&site);

		client_request(fd, "POST", "/v1/check?tenant=vip", NULL, rows[i].fields, NULL, 0);
		client_send(fd, "0\r\n\r\n", 5);
		client_send(fd, smuggled, sizeof(smuggled) - 1);
		client_receive(fd, false, &answer);
		if (answer.status > 0 && answer.status < 400)
			fail_msg("row \"%s\": answered %d", rows[i].name, answer.status);
		answer_done(&answer);
		client_receive(fd, false, &answer);
		check_row_equal(&rows[i], answer.status, 0);
		answer_done(&answer);
		close(fd);
	}
	must_serve();
}

static void survives_what_is_no_http(void **state)
{
	static const struct {
		const char *name;
		const char *bytes;
	} rows[] = {
		{ "TLS", "\x16\x03\x01\x02\x01\x01\xfc\x03\x03" },
		{ "RESP", "*1\r\n$4\r\nPING\r\n" },
		{ "empty lines", "\r\n\r\n\r\n\r\n" },
		{ "one word", "GET\r\n\r\n" },
		{ "no version", "GET /healthz\r\n\r\n" },
		{ "version 9", "GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n" },
		{ "no host", "GET /healthz HTTP/1.1\r\n\r\n" },
		{ "no colon", "GET /healthz HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n" },
		{ "a folded line", "GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n" },
		{ "escapes", "GET /%zz%1%%%0 HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ "no name", "GET /v1/check?=&&==&%= HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ "HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
		{ "a proxy's request", "GET http://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ "a tunnel", "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n" },
	};
	unsigned seed = 1;
	char junk[2048];
	size_t i, j;

	(void)state;
	for (i = 0; i < COUNT_OF(rows) + 300; i++) {
		int fd = client_connect(&site);

		for (j = 0; j < sizeof(junk); j++)
			junk[j] = (char)(rand_r(&seed) >> 8);
		if (i < COUNT_OF(rows))
			client_send(fd, rows[i].bytes, strlen(rows[i].bytes));
		else
			client_send(fd, junk, sizeof(junk));
		(void)shutdown(fd, SHUT_WR);
		while (recv(fd, junk, sizeof(junk), 0) > 0)
			;
		close(fd);
	}
	must_serve();
}

static void bounds_header_and_query(void **state)
{
	static char long_text[60000];
	static const struct {
		const char *name;
		size_t bytes;
		bool in_path;
		int status;
	} rows[] = {
		{ "a long line", 6000, false, 200 },
		{ "too long a line", 59000, false, 431 },
		{ "too long a path", 59000, true, 414 },
	};
	char many[1024] = "/v1/check?tenant=vip";
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct answer answer;
		int fd = client_connect(&site);

		memset(long_text, 'a', sizeof(long_text));
		memcpy(long_text, rows[i].in_path ? "/" : "Cookie: ", rows[i].in_path ? 1 : 8);
		long_text[rows[i].bytes] = '\0';
		if (!rows[i].in_path)
			memcpy(long_text + rows[i].bytes - 2, "\r\n", 2);
		client_request(fd, "GET", rows[i].in_path ? long_text : "/healthz", NULL,
			       rows[i].in_path ? NULL : long_text, NULL, 0);
		client_receive(fd, false, &answer);
		/* A refusal may be lost when the rest was not read. */
		if (answer.status || rows[i].status == 200)
			check_row_equal(&rows[i], answer.status, rows[i].status);
		answer_done(&answer);
		close(fd);
	}
	for (i = 0; i < 20; i++)
		strcat(many, "&source=");
	assert_int_equal(strncmp(site_say(&site, "GET", many, NULL, NULL), "400 ", 4), 0);
	must_serve();
}

#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, open_site, close_site)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SITE(answers_in_order_on_one_connection),
		WITH_SITE(takes_a_request_byte_by_byte_and_in_chunks),
		WITH_SITE(bounds_a_body_that_says_nothing_of_its_length),
		WITH_SITE(refuses_before_the_body_whoever_asks_first),
		WITH_SITE(does_not_guess_where_a_request_ends),
		WITH_SITE(survives_what_is_no_http),
		WITH_SITE(bounds_header_and_query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
