/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the audit says of a change, how it is paged, and how it is kept from growing. */
#include "overrides_fixture.h"

static struct place place;
static struct override_store *store;

static void reopen(uint64_t audit_max)
{
	struct override_store_options options = { .path = place.path, .audit_max = audit_max };
	struct trouble trouble;

	override_store_close(store);
	store = NULL;
	assert_int_equal(override_store_open(&options, &store, &trouble), 0);
}

static int make_store(void **state)
{
	(void)state;
	place_make(&place);
	reopen(0);
	return 0;
}

static int remove_store(void **state)
{
	(void)state;
	override_store_close(store);
	store = NULL;
	place_remove(&place);
	return 0;
}

/* Records as lines, so that one comparison shows all that is wrong. */
static int print_record(const struct audit_record *record, void *data)
{
	FILE *out = data;

	(void)fprintf(out, "%d %s %s %s %s %s %s%s\n", (int)record->id,
		      record->actor_kind[0] ? record->actor_kind : "-",
		      record->actor[0] ? record->actor : "-", record->tenant, record->action,
		      record->before ? record->before : "-", record->after ? record->after : "-",
		      record->keep_debt ? " keep_debt" : "");
	return 0;
}

static void must_read(const struct audit_query *query, const char *wanted)
{
	struct trouble trouble;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(override_store_audit(store, query, print_record, out, &trouble), 0);
	(void)fclose(out);
	assert_string_equal(text, wanted);
	free(text);
}

static void set(const char *tenant, const struct override_change *change)
{
	struct limits_entry entry;
	struct trouble trouble;
	char json[64];

	fill(&entry, tenant, 1, json);
	assert_int_equal(override_store_put(store, &entry, change, &trouble), 0);
}

static void says_who_did_what_and_what_it_was_before(void **state)
{
	char long_name[300], cut[300];
	struct override_change by_token = { .actor = { .kind = ACTOR_TOKEN, .token = "ops" },
					    .now_ms = NOW_MS,
					    .after = "{\"rate\":1}",
					    .keep_debt = true };
	struct override_change by_peer = {
		.actor = { .kind = ACTOR_PEER, .uid = 4294967294, .pid = 2147483647 },
		.before = "{\"rate\":1}",
		.after = "{\"name\":\"\xc3\xa4'\\\"\"}"
	};
	struct override_change by_file = { .actor = { .kind = ACTOR_CONFIG } };
	struct trouble trouble;

	(void)state;
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	set("acme", &by_token);
	set("acme", &by_peer);
	set("globex", &by_file);
	assert_int_equal(override_store_remove(store, "acme", &by_peer, &trouble), 0);
	must_read(&(struct audit_query){ 0 },
		  "4 peer 4294967294:2147483647 acme unset {\"rate\":1} "
		  "{\"name\":\"\xc3\xa4'\\\"\"}\n"
		  "3 config - globex set - -\n"
		  "2 peer 4294967294:2147483647 acme set {\"rate\":1} "
		  "{\"name\":\"\xc3\xa4'\\\"\"}\n"
		  "1 token ops acme set - {\"rate\":1} keep_debt\n");

	by_token.actor.token = long_name;
	set("acme", &by_token);
	(void)snprintf(cut, sizeof(cut), "5 token %.*s acme set - {\"rate\":1} keep_debt\n",
		       AUDIT_ACTOR_MAX - 1, long_name);
	must_read(&(struct audit_query){ .limit = 1 }, cut);
	by_token.actor.token = NULL;
	set("acme", &by_token);
	reopen(0);
	must_read(&(struct audit_query){ .limit = 1 },
		  "6 token - acme set - {\"rate\":1} keep_debt\n");
}

static void gives_one_tenant_or_all_page_by_page(void **state)
{
	struct override_change change = { .actor = { .kind = ACTOR_CONFIG } };
	static const char *const tenants[] = { "a", "b", "a", "c", "b", "a" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(tenants); i++)
		set(tenants[i], &change);
	must_read(&(struct audit_query){ .limit = 2 },
		  "6 config - a set - -\n5 config - b set - -\n");
	must_read(&(struct audit_query){ .limit = 2, .before_id = 5 },
		  "4 config - c set - -\n3 config - a set - -\n");
	must_read(&(struct audit_query){ .limit = 2, .before_id = 1 }, "");
	must_read(&(struct audit_query){ .before_id = 2 }, "1 config - a set - -\n");
	must_read(&(struct audit_query){ .tenant = "a" },
		  "6 config - a set - -\n3 config - a set - -\n1 config - a set - -\n");
	must_read(&(struct audit_query){ .tenant = "a", .before_id = 6, .limit = 1 },
		  "3 config - a set - -\n");
	must_read(&(struct audit_query){ .tenant = "d" }, "");
	must_read(&(struct audit_query){ .tenant = "" }, "");
	must_read(&(struct audit_query){ .tenant = "a' OR 1" }, "");
}

static int count(const struct audit_record *record, void *data)
{
	(void)record;
	++*(size_t *)data;
	return 0;
}

static int stop(const struct audit_record *record, void *data)
{
	(void)count(record, data);
	return 7;
}

static void bounds_a_page_and_ends_it_on_request(void **state)
{
	struct audit_query queries[] = { { .limit = 0 }, { .limit = 100000 }, { .limit = 3 } };
	static const size_t wanted[] = { AUDIT_PAGE_MAX, AUDIT_PAGE_MAX, 3 };
	struct trouble trouble;
	size_t visits = 0;

	(void)state;
	run_sql(place.path,
		"INSERT INTO audit (tenant) WITH RECURSIVE n(i) AS"
		" (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) SELECT 't' FROM n");
	for (size_t i = 0; i < COUNT_OF(queries); i++) {
		visits = 0;
		assert_int_equal(override_store_audit(store, &queries[i], count, &visits, &trouble),
				 0);
		assert_int_equal(visits, wanted[i]);
	}
	visits = 0;
	assert_int_equal(override_store_audit(store, &queries[0], stop, &visits, &trouble), 7);
	assert_int_equal(visits, 1);
}

static size_t records_in_all(int64_t *oldest, int64_t *newest)
{
	struct view view;

	look(store, &view);
	*oldest = view.oldest_id;
	*newest = view.newest_id;
	return view.records;
}

static void keeps_the_newest_records_only(void **state)
{
	int64_t oldest, newest;

	(void)state;
	reopen(10);
	for (unsigned i = 1; i <= 25; i++) {
		assert_int_equal(put(store, "acme", i), 0);
		assert_int_equal(records_in_all(&oldest, &newest), i < 10 ? i : 10);
		assert_int_equal(newest, i);
	}
	assert_int_equal(oldest, 16);
	reopen(1);
	assert_int_equal(put(store, "acme", 1), 0);
	assert_int_equal(take_away(store, "acme"), 0);
	assert_int_equal(records_in_all(&oldest, &newest), 1);
	assert_int_equal(newest, 27);
	reopen(UINT64_MAX);
	assert_int_equal(put(store, "acme", 1), 0);
	assert_int_equal(records_in_all(&oldest, &newest), 2);
}

static void takes_its_time_when_the_bound_was_lowered(void **state)
{
	enum { BEFORE = 2000, AFTER = 100 };
	size_t records = BEFORE;
	int64_t oldest, newest;

	(void)state;
	run_sql(place.path,
		"INSERT INTO audit (tenant, action) WITH RECURSIVE n(i) AS"
		" (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT 't', '' FROM n");
	reopen(AFTER);
	for (unsigned i = 1; records > AFTER; i++) {
		size_t wanted = records + 1 - AUDIT_PRUNED_AT_ONCE;

		assert_int_equal(put(store, "acme", i), 0);
		if (records < AFTER + AUDIT_PRUNED_AT_ONCE)
			wanted = AFTER;
		records = records_in_all(&oldest, &newest);
		assert_int_equal(records, wanted);
		assert_int_equal(newest, BEFORE + i);
	}
	assert_int_equal(put(store, "acme", 1), 0);
	assert_int_equal(records_in_all(&oldest, &newest), AFTER);
}

static void reads_what_somebody_has_edited(void **state)
{
	(void)state;
	run_sql(place.path, "INSERT INTO audit (tenant, actor_kind, keep_debt, before)"
			    " VALUES (NULL, 5, 'x', 1.5), (x'00', NULL, 2, NULL)");
	must_read(&(struct audit_query){ 0 }, "2 - -   - - keep_debt\n1 5 -   1.5 -\n");
}

#define in_a_store(test) cmocka_unit_test_setup_teardown(test, make_store, remove_store)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_store(says_who_did_what_and_what_it_was_before),
		in_a_store(gives_one_tenant_or_all_page_by_page),
		in_a_store(bounds_a_page_and_ends_it_on_request),
		in_a_store(keeps_the_newest_records_only),
		in_a_store(takes_its_time_when_the_bound_was_lowered),
		in_a_store(reads_what_somebody_has_edited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
