//go:build turbo && cgo

#include "turbo.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#define STR_(x) #x
#define STR(x) STR_(x)
const char *pst_version(void) { return STR(LIBJPEG_TURBO_VERSION); }

// The margin that makes a cropped row's chroma equal to the whole row's: the triangle
// filter looks one sample aside, and one sample is at most four columns wide.
#define MARGIN 16

struct pst_decoder {
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr err;
	jmp_buf escape;
	char message[JMSG_LENGTH_MAX];
	unsigned char *file;
	size_t capacity;
};

static void fail(j_common_ptr c)
{
	pst_decoder *d = c->client_data;
	c->err->format_message(c, d->message);
	longjmp(d->escape, 1);
}

// Warnings mean pixels made up, but for these, which leave them as they should be.
static void emit(j_common_ptr c, int level)
{
	if (level >= 0)
		return;
	switch (c->err->msg_code) {
	case JWRN_EXTRANEOUS_DATA:
	case JWRN_ADOBE_XFORM:
	case JWRN_JFIF_MAJOR:
	case JWRN_BOGUS_PROGRESSION:
	case JWRN_NOT_SEQUENTIAL:
		return;
	}
	fail(c);
}

static void silent(j_common_ptr c) { (void)c; }

pst_decoder *pst_new(void)
{
	pst_decoder *d = calloc(1, sizeof *d);
	if (d == NULL)
		return NULL;
	d->c.err = jpeg_std_error(&d->err);
	d->err.error_exit = fail;
	d->err.emit_message = emit;
	d->err.output_message = silent;
	d->c.client_data = d;
	if (setjmp(d->escape)) {
		pst_free(d);
		return NULL;
	}
	jpeg_create_decompress(&d->c);
	return d;
}

void pst_free(pst_decoder *d)
{
	jpeg_destroy_decompress(&d->c);
	free(d->file);
	free(d);
}

const char *pst_message(const pst_decoder *d) { return d->message; }

unsigned pst_row(const pst_decoder *d) { return d->c.output_scanline; }

// keep copies the file, as the library reads it in later calls too.
static int keep(pst_decoder *d, const unsigned char *file, size_t n)
{
	if (n > d->capacity) {
		free(d->file);
		d->capacity = 0;
		d->file = malloc(n + n / 4);
		if (d->file == NULL) {
			snprintf(d->message, sizeof d->message, "no memory for a file of %zu bytes", n);
			return -1;
		}
		d->capacity = n + n / 4;
	}
	memcpy(d->file, file, n);
	return 0;
}

static void configure(struct jpeg_decompress_struct *c, int space)
{
	switch (space) {
	case PST_GRAY:
		c->out_color_space = JCS_GRAYSCALE;
		break;
	case PST_CMYK:
		c->out_color_space = JCS_CMYK;
		break;
	default:
		c->out_color_space = JCS_EXT_RGBX;
	}
	c->dct_method = JDCT_ISLOW;
	c->do_fancy_upsampling = TRUE;
}

// crop narrows the rows to columns [x, x+w) and a margin.
static void crop(struct jpeg_decompress_struct *c, unsigned x, unsigned w, pst_rows *rows)
{
	JDIMENSION first = x > MARGIN ? x - MARGIN : 0;
	JDIMENSION end = c->output_width - (x + w) > MARGIN ? x + w + MARGIN : c->output_width;
	JDIMENSION width = end - first;
	if (width < c->output_width)
		jpeg_crop_scanline(c, &first, &width);
	rows->first = first;
	rows->width = width;
	rows->step = c->output_components;
}

int pst_start(pst_decoder *d, const unsigned char *file, size_t n, int space,
              unsigned x, unsigned w, unsigned y, pst_rows *rows)
{
	struct jpeg_decompress_struct *c = &d->c;
	// Tables outlive jpeg_abort, and would be those of a file that has none.
	jpeg_destroy_decompress(c);
	if (setjmp(d->escape))
		return -1;
	jpeg_create_decompress(c);
	if (keep(d, file, n) != 0)
		return -1;
	jpeg_mem_src(c, d->file, n);
	jpeg_read_header(c, TRUE);
	configure(c, space);
	jpeg_start_decompress(c);
	if (x >= c->output_width || w > c->output_width - x || y >= c->output_height) {
		snprintf(d->message, sizeof d->message, "the header changed");
		return -1;
	}
	crop(c, x, w, rows);
	if (y > 0)
		jpeg_skip_scanlines(c, y);
	return 0;
}

int pst_read(pst_decoder *d, unsigned char *dst, size_t stride, unsigned count)
{
	if (setjmp(d->escape))
		return -1;
	for (unsigned i = 0; i < count; i++) {
		JSAMPROW row = dst + i * stride;
		if (jpeg_read_scanlines(&d->c, &row, 1) != 1) {
			snprintf(d->message, sizeof d->message, "the library returned no row");
			return -1;
		}
	}
	return 0;
}
