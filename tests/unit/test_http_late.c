/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers that come later than their questions, from another thread. No question of today's engine
 * is answered late, so this program brings an engine of its own, which the linker takes in place of
 * the library's: it admits everybody, when it is told to.
 */
#include "tests/unit/http_fixture.h"

#include <pthread.h>

struct engine_reader {
	struct engine *engine;
};

struct question {
	engine_answer *answer;
	void *context;
};

enum { QUESTIONS_MAX = 1024 };

struct engine {
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t has_changed;
	struct question waiting[QUESTIONS_MAX];
	size_t waiting_count;
	size_t asked;         /* since the beginning */
	size_t seen;          /* of these, by the test */
	bool answers_at_once; /* the answering thread does not wait for the test's word */
	bool is_ending;
	size_t may_answer; /* how many questions */
	bool is_audit_stuck, is_audit_asked;
};

static const struct gcra_limit limit = { .interval = 1, .capacity = 1, .burst = 7 };

/* ---- the engine that is linked in place of the other */

static int ask(struct engine_reader *reader, engine_answer *answer, void *context)
{
	struct engine *engine = reader->engine;

	(void)pthread_mutex_lock(&engine->lock);
	assert_true(engine->waiting_count < QUESTIONS_MAX);
	engine->waiting[engine->waiting_count++] = (struct question){ answer, context };
	engine->asked++;
	(void)pthread_cond_broadcast(&engine->has_changed);
	(void)pthread_mutex_unlock(&engine->lock);
	return 0;
}

int engine_hit(struct engine_reader *reader, struct tenant_name tenant, uint64_t bytes,
	       unsigned flags, engine_answer *answer, void *context)
{
	(void)tenant;
	(void)bytes;
	(void)flags;
	return ask(reader, answer, context);
}

int engine_preread(struct engine_reader *reader, const struct preread *preread,
		   engine_answer *answer, void *context)
{
	(void)preread;
	return ask(reader, answer, context);
}

int engine_new(const struct engine_options *options, struct engine **out, struct trouble *trouble)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	(void)options;
	(void)trouble;
	assert_non_null(engine);
	assert_int_equal(pthread_mutex_init(&engine->lock, NULL), 0);
	assert_int_equal(pthread_cond_init(&engine->has_changed, NULL), 0);
	*out = engine;
	return 0;
}

void engine_free(struct engine *engine)
{
	free(engine);
}

int engine_reader_new(struct engine *engine, struct engine_reader **out)
{
	*out = malloc(sizeof(**out));
	assert_non_null(*out);
	(*out)->engine = engine;
	return 0;
}

void engine_reader_free(struct engine_reader *reader)
{
	free(reader);
}

const char *decision_word(enum decision_reason reason)
{
	(void)reason;
	return "ok";
}

const char *engine_question_word(enum engine_question question)
{
	(void)question;
	return "hit";
}

int engine_body_limit(struct engine_reader *reader, struct tenant_name tenant, uint64_t *bytes)
{
	(void)reader;
	(void)tenant;
	(void)bytes;
	return -EINVAL;
}

int engine_effective(struct engine *engine, struct tenant_name tenant, struct limits_entry *out,
		     enum limit_source *source)
{
	(void)engine;
	(void)tenant;
	(void)out;
	(void)source;
	return -EINVAL;
}

struct limits *engine_limits(struct engine *engine)
{
	(void)engine;
	return NULL;
}

int engine_override_set(struct engine *engine, struct tenant_name tenant,
			const struct tenant_limit *wanted, const struct engine_change *change,
			struct trouble *trouble)
{
	(void)engine;
	(void)tenant;
	(void)wanted;
	(void)change;
	return trouble_set(trouble, -EROFS, "not here");
}

int engine_override_unset(struct engine *engine, struct tenant_name tenant,
			  const struct engine_change *change, struct trouble *trouble)
{
	(void)engine;
	(void)tenant;
	(void)change;
	return trouble_set(trouble, -EROFS, "not here");
}

int engine_audit(struct engine *engine, const struct audit_query *query,
		 int (*visit)(const struct audit_record *record, void *data), void *data,
		 struct trouble *trouble)
{
	(void)query;
	(void)visit;
	(void)data;
	(void)pthread_mutex_lock(&engine->lock);
	engine->is_audit_asked = true;
	(void)pthread_cond_broadcast(&engine->has_changed);
	while (engine->is_audit_stuck)
		(void)pthread_cond_wait(&engine->has_changed, &engine->lock);
	(void)pthread_mutex_unlock(&engine->lock);
	return trouble_set(trouble, -EIO, "not here");
}

void engine_numbers(struct engine *engine, struct engine_numbers *out)
{
	(void)engine;
	*out = (struct engine_numbers){ .swept = 0 };
}

/* ---- who answers */

static struct site site;
static pthread_t answerer;

static void answer(const struct question *question)
{
	struct gcra_limit gone = limit;
	struct decision decision = { .admitted = true, .remaining = 3, .limit = &gone };

	question->answer(question->context, &decision);
	/* It was valid during the callback only. */
	memset(&gone, 0xff, sizeof(gone));
}

/* The newest first, so that answers come in another order than their questions. */
static void *answer_all(void *context)
{
	struct engine *engine = context;

	(void)pthread_mutex_lock(&engine->lock);
	for (;;) {
		struct question question;

		while (!(engine->waiting_count &&
			 (engine->answers_at_once || engine->may_answer > 0)) &&
		       !engine->is_ending)
			(void)pthread_cond_wait(&engine->has_changed, &engine->lock);
		if (engine->waiting_count == 0)
			break;
		question = engine->waiting[--engine->waiting_count];
		if (engine->may_answer > 0)
			engine->may_answer--;
		(void)pthread_mutex_unlock(&engine->lock);
		answer(&question);
		(void)pthread_mutex_lock(&engine->lock);
	}
	(void)pthread_mutex_unlock(&engine->lock);
	return NULL;
}

static void let_answer(size_t count, bool at_once)
{
	(void)pthread_mutex_lock(&site.engine->lock);
	site.engine->may_answer += count;
	site.engine->answers_at_once = at_once;
	(void)pthread_cond_broadcast(&site.engine->has_changed);
	(void)pthread_mutex_unlock(&site.engine->lock);
}

/* Until so many more have been asked since this was called last. */
static void wait_for_questions(size_t count)
{
	(void)pthread_mutex_lock(&site.engine->lock);
	site.engine->seen += count;
	while (site.engine->asked < site.engine->seen)
		(void)pthread_cond_wait(&site.engine->has_changed, &site.engine->lock);
	(void)pthread_mutex_unlock(&site.engine->lock);
}

static int open_site(void **state)
{
	(void)state;
	site_open(&site, "dataplane: off\n", false, &(struct http_server_options){ .workers = 2 });
	assert_int_equal(pthread_create(&answerer, NULL, answer_all, site.engine), 0);
	return 0;
}

static void end_answerer(void)
{
	(void)pthread_mutex_lock(&site.engine->lock);
	site.engine->is_ending = true;
	(void)pthread_cond_broadcast(&site.engine->has_changed);
	(void)pthread_mutex_unlock(&site.engine->lock);
	assert_int_equal(pthread_join(answerer, NULL), 0);
}

static int close_site(void **state)
{
	(void)state;
	end_answerer();
	site_close(&site);
	return 0;
}

static void must_be_admitted(int fd)
{
	struct answer answered;

	client_receive(fd, false, &answered);
	assert_int_equal(answered.status, 200);
	assert_string_equal(answered.body, "{\"admitted\":true,\"reason\":\"ok\",\"remaining\":3}");
	assert_string_equal(answer_field(&answered, "RateLimit-Policy"), "\"hooks\";q=7;w=1");
	answer_done(&answered);
}

static void replies_when_the_answer_comes(void **state)
{
	int i, fd = client_connect(&site);

	(void)state;
	for (i = 0; i < 3; i++) {
		client_request(fd, "GET", "/v1/check?tenant=a", NULL, NULL, NULL, 0);
		wait_for_questions(1);
		/* Others are served meanwhile, on each thread. */
		assert_string_equal(site_say(&site, "GET", "/healthz", NULL, NULL), "200 ok");
		assert_string_equal(site_say(&site, "GET", "/healthz", NULL, NULL), "200 ok");
		let_answer(1, false);
		must_be_admitted(fd);
	}
	close(fd);
}

static void asks_the_second_question_after_the_first(void **state)
{
	static const char path[] = "/v1/check?tenant=a&source=s&peer=1.2.3.4";
	static const char body[] = "{\"tenant\":\"a\",\"source\":\"s\",\"peer\":\"::1\"}";
	int fd = client_connect(&site);

	(void)state;
	client_request(fd, "GET", path, NULL, NULL, NULL, 0);
	wait_for_questions(1);
	let_answer(1, false);
	wait_for_questions(1);
	let_answer(1, false);
	must_be_admitted(fd);
	client_request(fd, "POST", "/v1/check", NULL, NULL, body, sizeof(body) - 1);
	wait_for_questions(1);
	let_answer(2, false);
	wait_for_questions(1);
	must_be_admitted(fd);
	close(fd);
}

enum { WAITERS = 200 };

static void lets_many_wait(void **state)
{
	int i, fds[WAITERS];

	(void)state;
	for (i = 0; i < WAITERS; i++) {
		fds[i] = client_connect(&site);
		client_request(fds[i], "GET", "/v1/check?tenant=a", NULL, NULL, NULL, 0);
	}
	wait_for_questions(WAITERS);
	let_answer(WAITERS, false);
	for (i = 0; i < WAITERS; i++) {
		must_be_admitted(fds[i]);
		close(fds[i]);
	}
}

static void survives_a_client_that_does_not_wait(void **state)
{
	int i, fds[WAITERS];

	(void)state;
	for (i = 0; i < WAITERS; i++) {
		fds[i] = client_connect(&site);
		client_request(fds[i], "GET", "/v1/check?tenant=a", NULL, NULL, NULL, 0);
	}
	wait_for_questions(WAITERS);
	for (i = 0; i < WAITERS; i++)
		close(fds[i]);
	let_answer(WAITERS, false);
	assert_string_equal(site_say(&site, "GET", "/healthz", NULL, NULL), "200 ok");
}

enum { RACERS = 4, ROUNDS = 2000 };

static void *race(void *unused)
{
	int i, fd = client_connect(&site);

	(void)unused;
	for (i = 0; i < ROUNDS; i++) {
		client_request(fd, "GET", "/v1/check?tenant=a", NULL, NULL, NULL, 0);
		must_be_admitted(fd);
	}
	close(fd);
	return NULL;
}

/* The answer comes while the connection is being set aside, a moment before or after. */
static void loses_no_answer_that_comes_at_once(void **state)
{
	pthread_t threads[RACERS];
	int i;

	(void)state;
	let_answer(0, true);
	for (i = 0; i < RACERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race, NULL), 0);
	for (i = 0; i < RACERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void *stop(void *unused)
{
	(void)unused;
	http_server_stop(site.server, 0);
	return NULL;
}

static void stops_only_when_all_is_answered(void **state)
{
	int i, fds[WAITERS];
	pthread_t stopper;

	(void)state;
	for (i = 0; i < WAITERS; i++) {
		fds[i] = client_connect(&site);
		client_request(fds[i], "GET", "/v1/check?tenant=a", NULL, NULL, NULL, 0);
	}
	wait_for_questions(WAITERS);
	assert_int_equal(pthread_create(&stopper, NULL, stop, NULL), 0);
	let_answer(WAITERS, false);
	assert_int_equal(pthread_join(stopper, NULL), 0);
	for (i = 0; i < WAITERS; i++)
		close(fds[i]);
}

static void answers_what_was_asked_before_it_stops(void **state)
{
	struct answer answered;
	pthread_t stopper;
	int fd = client_connect(&site);

	(void)state;
	client_request(fd, "GET", "/v1/check?tenant=a", NULL, NULL, NULL, 0);
	wait_for_questions(1);
	assert_int_equal(pthread_create(&stopper, NULL, stop, NULL), 0);
	let_answer(1, false);
	client_receive(fd, false, &answered);
	/* Without grace it may be cut off, but it is never half an answer. */
	assert_true(answered.status == 200 || answered.status == 0);
	answer_done(&answered);
	assert_int_equal(pthread_join(stopper, NULL), 0);
	close(fd);
}

static void hold_audit(bool is_stuck)
{
	(void)pthread_mutex_lock(&site.engine->lock);
	site.engine->is_audit_stuck = is_stuck;
	(void)pthread_cond_broadcast(&site.engine->has_changed);
	(void)pthread_mutex_unlock(&site.engine->lock);
}

/* Each thread of the server is asked, for there are two and each accepts some. */
static void serves_checks_while_the_disk_is_slow(void **state)
{
	static const char unavailable[] = "{\"error\":\"store_unavailable\"}";
	struct answer answered;
	int i, slow[3];

	(void)state;
	hold_audit(true);
	for (i = 0; i < 3; i++) {
		slow[i] = client_connect(&site);
		client_request(slow[i], "GET", "/v1/audit", NULL, NULL, NULL, 0);
	}
	(void)pthread_mutex_lock(&site.engine->lock);
	while (!site.engine->is_audit_asked)
		(void)pthread_cond_wait(&site.engine->has_changed, &site.engine->lock);
	(void)pthread_mutex_unlock(&site.engine->lock);
	let_answer(0, true);
	for (i = 0; i < 20; i++)
		assert_int_equal(strncmp(site_say(&site, "GET", "/v1/check?tenant=a", NULL, NULL),
					 "200 ", 4),
				 0);
	hold_audit(false);
	for (i = 0; i < 3; i++) {
		client_receive(slow[i], false, &answered);
		assert_int_equal(answered.status, 503);
		assert_string_equal(answered.body, unavailable);
		answer_done(&answered);
		close(slow[i]);
	}
}

#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, open_site, close_site)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SITE(replies_when_the_answer_comes),
		WITH_SITE(asks_the_second_question_after_the_first),
		WITH_SITE(lets_many_wait),
		WITH_SITE(survives_a_client_that_does_not_wait),
		WITH_SITE(loses_no_answer_that_comes_at_once),
		WITH_SITE(serves_checks_while_the_disk_is_slow),
		WITH_SITE(stops_only_when_all_is_answered),
		WITH_SITE(answers_what_was_asked_before_it_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
