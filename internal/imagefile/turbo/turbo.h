// One libjpeg-turbo decompressor, driven a few rows at a time from Go.

#include <stddef.h>

typedef struct pst_decoder pst_decoder;

// What the rows that pst_read returns begin and end with, and their bytes a pixel.
typedef struct {
	unsigned first, width;
	int step;
} pst_rows;

enum { PST_GRAY, PST_RGBX, PST_CMYK };

const char *pst_version(void);

pst_decoder *pst_new(void);
void pst_free(pst_decoder *d);

// pst_start begins to decode the n bytes at file, which it copies, up to row y. Rows will
// hold columns [x, x+w) and what the library's own units add on both sides.
// It returns 0, or -1 with pst_message set, as does pst_read.
int pst_start(pst_decoder *d, const unsigned char *file, size_t n, int space,
              unsigned x, unsigned w, unsigned y, pst_rows *rows);

// pst_read writes the next count rows to dst, stride bytes apart.
int pst_read(pst_decoder *d, unsigned char *dst, size_t stride, unsigned count);

// pst_message says what went wrong, pst_row near which row of the image.
const char *pst_message(const pst_decoder *d);
unsigned pst_row(const pst_decoder *d);
