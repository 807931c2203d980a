/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes metrics as Prometheus reads them (text format 0.0.4). Names are the program's own and are
 * asserted to be well formed; the values of labels may be any bytes, and come out so that they
 * cannot spoil the rest of the text. Numbers are written with the C locale's decimal point. One
 * thread per exposition.
 *
 * An exposition is one text. Begin a family, give all of its samples, begin the next; no family
 * twice, no two samples of a family with the same labels, the same labels' names in all of them.
 * Running out of memory on the way is remembered, and said by exposition_finish().
 */
#ifndef SLUICE_WIRE_EXPOSITION_H
#define SLUICE_WIRE_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct exposition;

enum exposition_type {
	EXPOSITION_COUNTER, /* only grows; its name ends in _total */
	EXPOSITION_GAUGE,
	EXPOSITION_HISTOGRAM,
};

struct exposition_label {
	const char *name; /* [a-zA-Z_][a-zA-Z0-9_]*, not __… nor, in a histogram, le */
	const char *value;
	size_t length; /* of the value; 0: it ends in a zero byte */
};

struct exposition_buckets {
	const double *bounds; /* upper bounds, included, ascending, without the infinite one */
	size_t bound_count;
	/* What fell into each, not into those below it as well; one more than bounds: the rest. */
	const uint64_t *counts;
	double sum; /* of all that was observed */
};

/* NULL: no memory. */
struct exposition *exposition_new(void);
void exposition_free(struct exposition *exposition); /* NULL is fine */

/* name: [a-zA-Z_:][a-zA-Z0-9_:]*. help: any text. */
void exposition_family(struct exposition *exposition, enum exposition_type type, const char *name,
		       const char *help);

/* A sample of a counter or gauge: whole, to the last digit. labels may be NULL if there are none.
 */
void exposition_count(struct exposition *exposition, const struct exposition_label *labels,
		      size_t label_count, uint64_t value);

/* The same for any number, also infinite or none (NaN). */
void exposition_value(struct exposition *exposition, const struct exposition_label *labels,
		      size_t label_count, double value);

/* A sample of a histogram: _bucket, _sum and _count, which agree even if counts changes meanwhile.
 */
void exposition_histogram(struct exposition *exposition, const struct exposition_label *labels,
			  size_t label_count, const struct exposition_buckets *buckets);

/*
 * 0: *text (*length bytes and a zero behind them) is the caller's, to be freed with free().
 * -ENOMEM: it could not be held. The exposition is freed either way.
 */
int exposition_finish(struct exposition *exposition, char **text, size_t *length);

#endif
