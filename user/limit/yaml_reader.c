/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libyaml's events, one at a time, and the only file that knows libyaml. Anchors, aliases, tags and
 * further documents are refused: none of them is needed to write settings, and without them a file
 * cannot grow while it is read, nor mean something else than what stands there.
 */
#include "limit/yaml_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "limit/settings.h"

enum {
	SHOWN_MAX = 40, /* characters of a foreign word that a message repeats */
	ALLOWED_MAX = 192,
};

struct yaml_reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the last one read; the beginning of the value to be read */
	bool has_event;
	struct yaml_place key_place;
	const char *text;
	size_t length;
	char path[sizeof(((struct settings_error *)0)->key)];
	struct settings_error *error;
};

static struct yaml_place place_of(yaml_mark_t mark)
{
	struct yaml_place place = { (unsigned)mark.line + 1, (unsigned)mark.column + 1 };

	return place;
}

struct yaml_place yaml_place(const struct yaml_reader *reader)
{
	return place_of(reader->event.start_mark);
}

struct yaml_place yaml_key_place(const struct yaml_reader *reader)
{
	return reader->key_place;
}

void yaml_show(const char *from, char *to, size_t size)
{
	size_t length = 0;

	for (; *from && length + 1 < size; from++) {
		unsigned char byte = (unsigned char)*from;

		if ((byte & 0xc0) == 0x80)
			continue;
		to[length++] = byte >= 0x20 && byte < 0x7f ? (char)byte : '?';
	}
	to[length] = '\0';
}

/* Append to the dotted path; what does not fit is left out. */
static void push(struct yaml_reader *reader, const char *separator, const char *name)
{
	size_t length = strlen(reader->path);
	char shown[SHOWN_MAX + 12];

	yaml_show(name, shown, sizeof(shown));
	(void)snprintf(reader->path + length, sizeof(reader->path) - length, "%s%s",
		       length ? separator : "", shown);
}

static void report(struct yaml_reader *reader, struct yaml_place place, const char *child,
		   const char *format, va_list arguments)
{
	struct settings_error *error = reader->error;
	size_t length = strlen(reader->path);

	error->line = place.line;
	error->column = place.column;
	(void)vsnprintf(error->message, sizeof(error->message), format, arguments);
	if (child)
		push(reader, ".", child);
	memcpy(error->key, reader->path, sizeof(error->key));
	reader->path[length] = '\0';
}

int yaml_fail_at(struct yaml_reader *reader, struct yaml_place place, const char *child,
		 const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(reader, place, child, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

int yaml_fail(struct yaml_reader *reader, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(reader, yaml_place(reader), NULL, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static const char *word_of(const yaml_event_t *event)
{
	return (const char *)event->data.scalar.value;
}

static bool is_nothing(const yaml_event_t *event)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };
	size_t i;

	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(word_of(event), words[i]) == 0)
			return true;
	return false;
}

bool yaml_is_null(const struct yaml_reader *reader)
{
	return reader->event.type == YAML_SCALAR_EVENT && is_nothing(&reader->event) &&
	       word_of(&reader->event)[0];
}

int yaml_fail_got(struct yaml_reader *reader, const char *must)
{
	char shown[SHOWN_MAX + 1];

	switch (reader->event.type) {
	case YAML_MAPPING_START_EVENT:
		return yaml_fail(reader, "%s, got a map", must);
	case YAML_SEQUENCE_START_EVENT:
		return yaml_fail(reader, "%s, got a list", must);
	case YAML_SCALAR_EVENT:
		if (is_nothing(&reader->event))
			return yaml_fail(reader, "%s, got nothing", must);
		yaml_show(word_of(&reader->event), shown, sizeof(shown));
		return yaml_fail(reader, "%s, got \"%s\"%s", must, shown,
				 strlen(word_of(&reader->event)) > SHOWN_MAX ? "..." : "");
	default:
		return yaml_fail(reader, "%s", must);
	}
}

/* libyaml pretends that a last line without an end has one; an editor knows no line after it. */
static struct yaml_place within_text(const struct yaml_reader *reader, struct yaml_place place)
{
	struct yaml_place end = yaml_text_place(reader->text, reader->length);

	return place.line > end.line ? end : place;
}

/* What libyaml has to say. Its key is none: it looks ahead of the value that is being read. */
static int fail_syntax(struct yaml_reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	const char *problem = parser->problem ? parser->problem : "unknown problem";
	struct yaml_place place = within_text(reader, place_of(parser->problem_mark));

	reader->path[0] = '\0';
	if (parser->error == YAML_MEMORY_ERROR) {
		(void)yaml_fail_at(reader, (struct yaml_place){ 0, 0 }, NULL, "not enough memory");
		return -ENOMEM;
	}
	if (parser->error == YAML_READER_ERROR)
		return yaml_fail_at(reader, yaml_text_place(reader->text, parser->problem_offset),
				    NULL, "is not text: %s", problem);
	if (parser->context)
		return yaml_fail_at(reader, place, NULL,
				    "is not valid YAML: %s (%s that begins on line %u)", problem,
				    parser->context, place_of(parser->context_mark).line);
	return yaml_fail_at(reader, place, NULL, "is not valid YAML: %s", problem);
}

static int check_features(struct yaml_reader *reader)
{
	const yaml_event_t *event = &reader->event;
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return yaml_fail(reader, "aliases are not supported: write the value out again");
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	default:
		break;
	}
	if (anchor)
		return yaml_fail(reader, "anchors are not supported: remove the &name");
	if (tag)
		return yaml_fail(reader, "tags are not supported: remove the !name");
	if (event->type == YAML_SCALAR_EVENT && strlen(word_of(event)) != event->data.scalar.length)
		return yaml_fail(reader, "holds a zero byte");
	return 0;
}

static int advance(struct yaml_reader *reader)
{
	if (reader->has_event)
		yaml_event_delete(&reader->event);
	reader->has_event = false;
	if (!yaml_parser_parse(&reader->parser, &reader->event))
		return fail_syntax(reader);
	reader->has_event = true;
	return check_features(reader);
}

int yaml_enter(struct yaml_reader *reader)
{
	return advance(reader);
}

int yaml_reader_open(const char *text, size_t length, struct settings_error *error,
		     struct yaml_reader **out)
{
	struct yaml_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	if (!yaml_parser_initialize(&reader->parser)) {
		free(reader);
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text, length);
	reader->text = text;
	reader->length = length;
	reader->error = error;
	*out = reader;
	return 0;
}

void yaml_reader_close(struct yaml_reader *reader)
{
	if (!reader)
		return;
	if (reader->has_event)
		yaml_event_delete(&reader->event);
	yaml_parser_delete(&reader->parser);
	free(reader);
}

int yaml_read_document(struct yaml_reader *reader, yaml_read_fn *read, void *target)
{
	int err = advance(reader); /* the beginning of the stream */

	if (!err)
		err = advance(reader);
	if (err)
		return err;
	if (reader->event.type == YAML_STREAM_END_EVENT)
		return yaml_fail_at(reader, (struct yaml_place){ 0, 0 }, NULL,
				    "is empty; write {} for a configuration that limits nothing");
	err = advance(reader);
	if (!err)
		err = read(reader, target);
	if (!err)
		err = advance(reader); /* the end of the document */
	if (!err)
		err = advance(reader);
	if (!err && reader->event.type != YAML_STREAM_END_EVENT)
		err = yaml_fail(reader, "holds a second document; one file is one configuration");
	return err;
}

static size_t count_keys(const struct yaml_key *keys)
{
	size_t count = 0;

	while (keys[count].name)
		count++;
	return count;
}

static void list_allowed(const struct yaml_key *keys, char *out, size_t size)
{
	size_t length = 0;

	for (out[0] = '\0'; keys->name && length < size; keys++)
		length += (size_t)snprintf(out + length, size - length, "%s%s", length ? ", " : "",
					   keys->name);
}

/* Whether one letter too many, too few, wrong, or two swapped make the one word of the other. */
static bool is_one_letter_off(const char *a, const char *b)
{
	size_t a_length = strlen(a), b_length = strlen(b), same = 0;

	while (a[same] && a[same] == b[same])
		same++;
	a += same;
	b += same;
	if (a_length + 1 == b_length)
		return strcmp(a, b + 1) == 0;
	if (b_length + 1 == a_length)
		return strcmp(a + 1, b) == 0;
	if (a_length != b_length || !a[0])
		return false;
	return strcmp(a + 1, b + 1) == 0 ||
	       (a[1] && a[0] == b[1] && a[1] == b[0] && strcmp(a + 2, b + 2) == 0);
}

static int fail_unknown_key(struct yaml_reader *reader, const struct yaml_key *keys)
{
	char allowed[ALLOWED_MAX];
	const struct yaml_key *key;

	list_allowed(keys, allowed, sizeof(allowed));
	for (key = keys; key->name; key++)
		if (is_one_letter_off(word_of(&reader->event), key->name))
			return yaml_fail(reader,
					 "unknown key, did you mean \"%s\"? Allowed here: %s",
					 key->name, allowed);
	return yaml_fail(reader, "unknown key; allowed here: %s", allowed);
}

/* The reader stands at a key, which is already on the path. */
static int read_known_key(struct yaml_reader *reader, const struct yaml_key *keys,
			  unsigned *first_line, void *target)
{
	size_t i = 0;
	int err;

	while (keys[i].name && strcmp(keys[i].name, word_of(&reader->event)) != 0)
		i++;
	if (!keys[i].name)
		return fail_unknown_key(reader, keys);
	if (first_line[i])
		return yaml_fail(reader, "is given twice; the first is on line %u", first_line[i]);
	reader->key_place = yaml_place(reader);
	first_line[i] = reader->key_place.line;
	err = advance(reader);
	return err ? err : keys[i].read(reader, target);
}

static int check_key(struct yaml_reader *reader)
{
	if (reader->event.type != YAML_SCALAR_EVENT)
		return yaml_fail_got(reader, "a key must be a word");
	return 0;
}

int yaml_read_map(struct yaml_reader *reader, const struct yaml_key *keys, void *target)
{
	unsigned first_line[YAML_KEYS_MAX] = { 0 };
	size_t outer = strlen(reader->path);
	char must[ALLOWED_MAX + 32], allowed[ALLOWED_MAX];
	int err;

	if (count_keys(keys) > YAML_KEYS_MAX)
		return -E2BIG;
	if (reader->event.type != YAML_MAPPING_START_EVENT) {
		list_allowed(keys, allowed, sizeof(allowed));
		snprintf(must, sizeof(must), "must be a map of %s", allowed);
		return yaml_fail_got(reader, must);
	}
	for (;;) {
		err = advance(reader);
		if (err || reader->event.type == YAML_MAPPING_END_EVENT)
			return err;
		err = check_key(reader);
		if (err)
			return err;
		push(reader, ".", word_of(&reader->event));
		err = read_known_key(reader, keys, first_line, target);
		if (err)
			return err;
		reader->path[outer] = '\0';
	}
}

/* The key outlives its event while its value is read. */
static int read_open_key(struct yaml_reader *reader,
			 int (*read)(struct yaml_reader *reader, const char *key, void *target),
			 void *target)
{
	char *key = strdup(word_of(&reader->event));
	int err;

	if (!key)
		return -ENOMEM;
	push(reader, ".", key);
	err = read(reader, key, target);
	free(key);
	return err;
}

int yaml_read_open_map(struct yaml_reader *reader, const char *must,
		       int (*read)(struct yaml_reader *reader, const char *key, void *target),
		       void *target)
{
	size_t outer = strlen(reader->path);
	int err;

	if (reader->event.type != YAML_MAPPING_START_EVENT)
		return yaml_fail_got(reader, must);
	for (;;) {
		err = advance(reader);
		if (err || reader->event.type == YAML_MAPPING_END_EVENT)
			return err;
		err = check_key(reader);
		if (!err)
			err = read_open_key(reader, read, target);
		if (err)
			return err;
		reader->path[outer] = '\0';
	}
}

int yaml_read_list(struct yaml_reader *reader, const char *must, yaml_read_fn *read, void *target)
{
	size_t outer = strlen(reader->path);
	char index[24];
	size_t i;
	int err;

	if (reader->event.type != YAML_SEQUENCE_START_EVENT)
		return yaml_fail_got(reader, must);
	for (i = 0;; i++) {
		err = advance(reader);
		if (err || reader->event.type == YAML_SEQUENCE_END_EVENT)
			return err;
		snprintf(index, sizeof(index), "[%zu]", i);
		push(reader, "", index);
		err = read(reader, target);
		if (err)
			return err;
		reader->path[outer] = '\0';
	}
}

int yaml_read_word(struct yaml_reader *reader, const char *must, const char **out)
{
	if (reader->event.type != YAML_SCALAR_EVENT || is_nothing(&reader->event))
		return yaml_fail_got(reader, must);
	/* YAML would join the lines, and what is left open would be looked for in vain. */
	if (reader->event.start_mark.line != reader->event.end_mark.line)
		return yaml_fail(reader,
				 "%s, on one line; look for an open bracket or quote, or a line "
				 "indented too far",
				 must);
	*out = word_of(&reader->event);
	return 0;
}
