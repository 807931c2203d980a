/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Families of the engine's numbers. Their names are a contract: see docs/operations.md. */
#include "server/metrics.h"

static struct exposition_label label(const char *name, const char *value)
{
	return (struct exposition_label){ .name = name, .value = value };
}

static void write_process(const char *version, int64_t started_at_ms, struct exposition *out)
{
	const struct exposition_label version_label = label("version", version);

	exposition_family(out, EXPOSITION_GAUGE, "sluice_build_info",
			  "Which sluice this is; always 1.");
	exposition_count(out, &version_label, 1, 1);
	exposition_family(out, EXPOSITION_GAUGE, "process_start_time_seconds",
			  "Unix time at which the process began.");
	exposition_value(out, NULL, 0, (double)started_at_ms / 1000);
}

/* All of them from the beginning on, so that a rate over the first refusal is not lost. */
static void write_decisions(const struct engine_numbers *numbers, struct exposition *out)
{
	exposition_family(out, EXPOSITION_COUNTER, "sluice_decisions_total",
			  "Questions decided, by what was asked and why it was answered so.");
	for (int question = 0; question < QUESTIONS; question++)
		for (int reason = 0; reason < DECISIONS; reason++) {
			const struct exposition_label labels[] = {
				label("question",
				      engine_question_word((enum engine_question)question)),
				label("reason", decision_word((enum decision_reason)reason)),
			};

			exposition_count(out, labels, 2, numbers->decisions[question][reason]);
		}
}

static void write_would_refuse(const struct engine_numbers *numbers, struct exposition *out)
{
	static const enum decision_reason reasons[] = { DECISION_IP, DECISION_NODE };

	exposition_family(out, EXPOSITION_COUNTER, "sluice_decisions_would_refuse_total",
			  "Refusals of limits in a dry run: counted, and the question let pass.");
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
		const struct exposition_label labels[] = {
			label("question", engine_question_word(QUESTION_PREREAD)),
			label("reason", decision_word(reasons[i])),
		};

		exposition_count(out, labels, 2, numbers->would_refuse[reasons[i]]);
	}
}

static void write_tables(const struct engine_numbers *numbers, struct exposition *out)
{
	const struct {
		struct exposition_label label;
		size_t used, room;
	} tables[] = {
		{ label("table", "tenants"), numbers->tenants, numbers->tenant_room },
		{ label("table", "sources"), numbers->sources, numbers->source_room },
		{ label("table", "throttle"), numbers->throttle_keys, numbers->throttle_room },
	};
	const size_t count = sizeof(tables) / sizeof(*tables);
	size_t i;

	exposition_family(out, EXPOSITION_GAUGE, "sluice_keys",
			  "Keys that have a bucket, by table.");
	for (i = 0; i < count; i++)
		exposition_count(out, &tables[i].label, 1, tables[i].used);
	exposition_family(out, EXPOSITION_GAUGE, "sluice_keys_max",
			  "Keys that a table has room for; beyond it new ones are refused.");
	for (i = 0; i < count; i++)
		exposition_count(out, &tables[i].label, 1, tables[i].room);
	exposition_family(out, EXPOSITION_COUNTER, "sluice_swept_total",
			  "Buckets dropped because they were full again.");
	exposition_count(out, NULL, 0, numbers->swept);
}

static void write_changes(const struct engine_numbers *numbers, struct exposition *out)
{
	exposition_family(out, EXPOSITION_GAUGE, "sluice_leases", "Shares of queues held now.");
	exposition_count(out, NULL, 0, numbers->leases);
	exposition_family(out, EXPOSITION_GAUGE, "sluice_overrides",
			  "Tenants whose limit was set while running.");
	exposition_count(out, NULL, 0, numbers->overrides);
	exposition_family(out, EXPOSITION_COUNTER, "sluice_override_errors_total",
			  "Changes of limits that could not be stored, and changed nothing.");
	exposition_count(out, NULL, 0, numbers->override_errors);
	exposition_family(out, EXPOSITION_COUNTER, "sluice_reloads_total",
			  "Configurations put in force since the start.");
	exposition_count(out, NULL, 0, numbers->reloads);
}

void metrics_write(struct engine *engine, const char *version, int64_t started_at_ms,
		   struct exposition *out)
{
	struct engine_numbers numbers;

	engine_numbers(engine, &numbers);
	write_process(version, started_at_ms, out);
	write_decisions(&numbers, out);
	write_would_refuse(&numbers, out);
	write_tables(&numbers, out);
	write_changes(&numbers, out);
}
