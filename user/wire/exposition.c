/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text grows in memory; once it cannot, what follows is dropped and the failure remembered.
 * (Streams in memory, open_memstream(), forget it: glibc sets no error flag.)
 *
 * A label's value goes between quotes with three characters escaped. Prometheus refuses a whole
 * scrape for one byte that is not UTF-8 in it, and takes a zero byte for the end of the text; so
 * each such byte is written as U+FFFD, the replacement character.
 */
#include "wire/exposition.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 32 };

struct exposition {
	char *text; /* ends in a zero byte */
	size_t length;
	size_t room;
	bool failed;
	const char *family; /* the caller's name; NULL: none yet */
	enum exposition_type type;
};

struct exposition *exposition_new(void)
{
	struct exposition *exposition = calloc(1, sizeof(*exposition));

	if (!exposition)
		return NULL;
	exposition->room = 4096;
	exposition->text = calloc(1, exposition->room);
	if (!exposition->text) {
		free(exposition);
		return NULL;
	}
	return exposition;
}

void exposition_free(struct exposition *exposition)
{
	if (!exposition)
		return;
	free(exposition->text);
	free(exposition);
}

int exposition_finish(struct exposition *exposition, char **text, size_t *length)
{
	int err = exposition->failed ? -ENOMEM : 0;

	if (!err) {
		*text = exposition->text;
		*length = exposition->length;
		exposition->text = NULL;
	}
	exposition_free(exposition);
	return err;
}

static void put_bytes(struct exposition *exposition, const void *bytes, size_t count)
{
	size_t room = exposition->room;
	char *text;

	while (exposition->length + count >= room)
		room *= 2;
	if (room > exposition->room && !exposition->failed) {
		text = realloc(exposition->text, room);
		if (text) {
			exposition->text = text;
			exposition->room = room;
		} else {
			exposition->failed = true;
		}
	}
	if (exposition->failed)
		return;
	memcpy(exposition->text + exposition->length, bytes, count);
	exposition->length += count;
	exposition->text[exposition->length] = '\0';
}

static void put(struct exposition *exposition, const char *text)
{
	put_bytes(exposition, text, strlen(text));
}

/* ---- names */

static bool is_name(const char *name, bool may_have_colons)
{
	if (isdigit((unsigned char)*name) || !*name)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_' &&
		    !(*name == ':' && may_have_colons))
			return false;
	return true;
}

static bool ends_in(const char *text, const char *ending)
{
	size_t length = strlen(text), ending_length = strlen(ending);

	return length > ending_length && !strcmp(text + length - ending_length, ending);
}

static bool is_label_name(const char *name, enum exposition_type type)
{
	return is_name(name, false) && strncmp(name, "__", 2) != 0 &&
	       !(type == EXPOSITION_HISTOGRAM && !strcmp(name, "le"));
}

/* ---- text */

/* How long the UTF-8 character at the beginning is (RFC 3629); 0: none is. */
static size_t character_bytes(const unsigned char *at, size_t left)
{
	size_t bytes = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;

	if (*at > 0xf4 || *at == 0 || bytes > left)
		return 0;
	for (size_t i = 1; i < bytes; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than need be, surrogates, beyond U+10FFFF. */
	if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
	    (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
		return 0;
	return bytes;
}

static void put_text(struct exposition *exposition, const char *text, size_t length, bool is_quoted)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + length;

	while (at < end) {
		size_t bytes = character_bytes(at, (size_t)(end - at));

		if (bytes == 0)
			put(exposition, "\xef\xbf\xbd");
		else if (*at == '\n')
			put(exposition, "\\n");
		else if (*at == '\\')
			put(exposition, "\\\\");
		else if (*at == '"' && is_quoted)
			put(exposition, "\\\"");
		else
			put_bytes(exposition, at, bytes);
		at += bytes ? bytes : 1;
	}
}

/* The shortest of the usual lengths that reads back as the same number. */
static void format_number(double value, char out[NUMBER_MAX])
{
	if (isnan(value)) {
		(void)snprintf(out, NUMBER_MAX, "NaN");
		return;
	}
	if (isinf(value)) {
		(void)snprintf(out, NUMBER_MAX, "%cInf", value > 0 ? '+' : '-');
		return;
	}
	(void)snprintf(out, NUMBER_MAX, "%.15g", value);
	if (strtod(out, NULL) != value)
		(void)snprintf(out, NUMBER_MAX, "%.17g", value);
}

/* `name_suffix{a="b",le="0.5"} value` and a newline. le: NULL for none. */
static void put_sample(struct exposition *exposition, const char *suffix,
		       const struct exposition_label *labels, size_t label_count, const char *le,
		       const char *value)
{
	assert(exposition->family);
	put(exposition, exposition->family);
	put(exposition, suffix);
	for (size_t i = 0; i < label_count; i++) {
		const struct exposition_label *label = &labels[i];

		assert(is_label_name(label->name, exposition->type));
		put(exposition, i ? "," : "{");
		put(exposition, label->name);
		put(exposition, "=\"");
		put_text(exposition, label->value,
			 label->length ? label->length : strlen(label->value), true);
		put(exposition, "\"");
	}
	if (le) {
		put(exposition, label_count ? ",le=\"" : "{le=\"");
		put(exposition, le);
		put(exposition, "\"");
	}
	put(exposition, label_count || le ? "} " : " ");
	put(exposition, value);
	put(exposition, "\n");
}

/* ---- families and samples */

void exposition_family(struct exposition *exposition, enum exposition_type type, const char *name,
		       const char *help)
{
	static const char *const types[] = {
		[EXPOSITION_COUNTER] = " counter\n",
		[EXPOSITION_GAUGE] = " gauge\n",
		[EXPOSITION_HISTOGRAM] = " histogram\n",
	};

	assert(is_name(name, true));
	assert(ends_in(name, "_total") == (type == EXPOSITION_COUNTER));
	exposition->family = name;
	exposition->type = type;
	put(exposition, "# HELP ");
	put(exposition, name);
	put(exposition, " ");
	put_text(exposition, help, strlen(help), false);
	put(exposition, "\n# TYPE ");
	put(exposition, name);
	put(exposition, types[type]);
}

void exposition_count(struct exposition *exposition, const struct exposition_label *labels,
		      size_t label_count, uint64_t value)
{
	char number[NUMBER_MAX];

	assert(exposition->type != EXPOSITION_HISTOGRAM);
	(void)snprintf(number, sizeof(number), "%" PRIu64, value);
	put_sample(exposition, "", labels, label_count, NULL, number);
}

void exposition_value(struct exposition *exposition, const struct exposition_label *labels,
		      size_t label_count, double value)
{
	char number[NUMBER_MAX];

	assert(exposition->type != EXPOSITION_HISTOGRAM);
	format_number(value, number);
	put_sample(exposition, "", labels, label_count, NULL, number);
}

void exposition_histogram(struct exposition *exposition, const struct exposition_label *labels,
			  size_t label_count, const struct exposition_buckets *buckets)
{
	char number[NUMBER_MAX], bound[NUMBER_MAX];
	uint64_t total = 0;

	assert(exposition->type == EXPOSITION_HISTOGRAM);
	for (size_t i = 0; i <= buckets->bound_count; i++) {
		format_number(i < buckets->bound_count ? buckets->bounds[i] : INFINITY, bound);
		total += __atomic_load_n(&buckets->counts[i], __ATOMIC_RELAXED);
		(void)snprintf(number, sizeof(number), "%" PRIu64, total);
		put_sample(exposition, "_bucket", labels, label_count, bound, number);
	}
	format_number(buckets->sum, bound);
	put_sample(exposition, "_sum", labels, label_count, NULL, bound);
	put_sample(exposition, "_count", labels, label_count, NULL, number);
}
