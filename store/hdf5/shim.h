//go:build cgo && !nolibhdf5

// What gonum.org/v1/hdf5 does not offer. Every function that can fail takes a buffer for
// the library's own words and fills it before it cleans up, as each call into the library
// clears the error stack of its thread.

#ifndef PENSTOCK_HDF5_SHIM_H
#define PENSTOCK_HDF5_SHIM_H

#include <hdf5.h>
#include <stdint.h>

typedef struct {
    char text[512];
} h5x_error;

// h5x_last_error copies the error stack of this thread: its innermost entry, which says what
// went wrong, and its outermost one, which says during what.
void h5x_last_error(h5x_error *err);

// h5x_create and h5x_open give a file whose new objects start at multiples of align; without
// write, nothing is written. File locks are off: some network file systems refuse them.
// Elements are written at once: a write that fails fails where it can be handled, not when a
// dataset is closed.
hid_t h5x_create(const char *path, hsize_t align, h5x_error *err);
hid_t h5x_open(const char *path, int write, hsize_t align, h5x_error *err);
herr_t h5x_close_file(hid_t file, h5x_error *err);

// h5x_open_handles counts the handles on a file, itself included.
long h5x_open_handles(hid_t file);

// h5x_chunks says how a dataset is cut into chunks and which filters they go through.
typedef struct {
    hsize_t dims[H5S_MAX_RANK];
    int shuffle;
    unsigned level; // of deflate
} h5x_chunks;

// h5x_create_dataset makes a dataset without time stamps and fill: of chunks, or contiguous if
// chunks is NULL. Then its bytes get their place now, or in h5x_allocate if late is set. Rank 0
// is a scalar.
hid_t h5x_create_dataset(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims, int late,
                         const h5x_chunks *chunks, h5x_error *err);

// h5x_write_chunk writes a chunk that went through all filters but those in mask, and that
// begins at a row.
herr_t h5x_write_chunk(hid_t dataset, hsize_t row, uint32_t mask, size_t size, const void *bytes, h5x_error *err);

// h5x_allocate gives a late dataset its place in the file.
herr_t h5x_allocate(hid_t dataset, h5x_error *err);

// h5x_write writes a whole dataset from bytes that have the type of the file. The caller
// made sure that there are enough of them.
herr_t h5x_write(hid_t dataset, const void *bytes, h5x_error *err);

// h5x_close_dataset closes what h5x_create_dataset gave.
herr_t h5x_close_dataset(hid_t dataset);

// h5x_offset is where a dataset's bytes start in the file, or HADDR_UNDEF.
haddr_t h5x_offset(hid_t dataset);
haddr_t h5x_no_offset(void);

// Types that gonum has no name for, in the shape that h5py gives them: IEEE binary16, an
// enumeration of FALSE and TRUE over int8, and UTF-8 text of size bytes padded with zeros.
hid_t h5x_float16(h5x_error *err);
hid_t h5x_bool(h5x_error *err);
hid_t h5x_text(size_t size, h5x_error *err);

#endif
