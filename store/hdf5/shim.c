//go:build cgo && !nolibhdf5

#include "shim.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

// At exit the library would close what is open, and crash on a file that it could not flush
// (see file.close). A Go program runs no exit handlers, except in race builds. The library
// must be told before its first use, which is gonum's init.
__attribute__((constructor)) static void no_exit_handler(void) { H5dont_atexit(); }

// keep is the H5Ewalk2 callback: entry 0 is the innermost one.
static herr_t keep(unsigned n, const H5E_error2_t *entry, void *out) {
    const char **desc = out;
    desc[n == 0 ? 0 : 1] = entry->desc;
    return 0;
}

void h5x_last_error(h5x_error *err) {
    const char *desc[2] = {NULL, NULL};
    err->text[0] = 0;
    if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep, desc) < 0 || desc[0] == NULL) {
        return;
    }
    if (desc[1] == NULL || strcmp(desc[0], desc[1]) == 0) {
        snprintf(err->text, sizeof err->text, "%s", desc[0]);
        return;
    }
    snprintf(err->text, sizeof err->text, "%s: %s", desc[1], desc[0]);
}

static int silent(void) { return H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0; }

// discard closes a property list that could not be finished.
static hid_t discard(hid_t list, h5x_error *err) {
    h5x_last_error(err);
    if (list >= 0) {
        H5Pclose(list);
    }
    return H5I_INVALID_HID;
}

// file_access gives the property list of h5x_create and h5x_open.
static hid_t file_access(hsize_t align, h5x_error *err) {
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    if (fapl < 0 || H5Pset_libver_bounds(fapl, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) < 0 ||
        H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) < 0 ||
        H5Pset_sieve_buf_size(fapl, 0) < 0 ||
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 12 && H5_VERS_RELEASE == 0)
        H5Pset_file_locking(fapl, 0, 1) < 0 ||
#endif
        H5Pset_alignment(fapl, 1, align) < 0) {
        return discard(fapl, err);
    }
    return fapl;
}

static hid_t open_file(const char *path, hsize_t align, int create, unsigned flags, h5x_error *err) {
    hid_t fapl, file = H5I_INVALID_HID;
    if (!silent() || (fapl = file_access(align, err)) < 0) {
        return file;
    }
    file = create ? H5Fcreate(path, flags, H5P_DEFAULT, fapl) : H5Fopen(path, flags, fapl);
    if (file < 0) {
        h5x_last_error(err);
    }
    H5Pclose(fapl);
    return file;
}

hid_t h5x_create(const char *path, hsize_t align, h5x_error *err) { return open_file(path, align, 1, H5F_ACC_EXCL, err); }

hid_t h5x_open(const char *path, int write, hsize_t align, h5x_error *err) {
    return open_file(path, align, 0, write ? H5F_ACC_RDWR : H5F_ACC_RDONLY, err);
}

herr_t h5x_close_file(hid_t file, h5x_error *err) {
    herr_t rc = H5Fclose(file);
    if (rc < 0) {
        h5x_last_error(err);
    }
    return rc;
}

long h5x_open_handles(hid_t file) { return (long)H5Fget_obj_count(file, H5F_OBJ_ALL | H5F_OBJ_LOCAL); }

// contiguous and chunked set the layout of a new dataset.
static int contiguous(hid_t dcpl, int late) {
    return H5Pset_layout(dcpl, H5D_CONTIGUOUS) >= 0 &&
           H5Pset_alloc_time(dcpl, late ? H5D_ALLOC_TIME_LATE : H5D_ALLOC_TIME_EARLY) >= 0;
}

static int chunked(hid_t dcpl, int rank, const h5x_chunks *chunks) {
    return H5Pset_chunk(dcpl, rank, chunks->dims) >= 0 && (!chunks->shuffle || H5Pset_shuffle(dcpl) >= 0) &&
           H5Pset_deflate(dcpl, chunks->level) >= 0;
}

// dataset_creation gives the property list of h5x_create_dataset.
static hid_t dataset_creation(int rank, int late, const h5x_chunks *chunks, h5x_error *err) {
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    if (dcpl < 0 || !(chunks == NULL ? contiguous(dcpl, late) : chunked(dcpl, rank, chunks)) ||
        H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) < 0 ||
        H5Pset_obj_track_times(dcpl, 0) < 0) {
        return discard(dcpl, err);
    }
    return dcpl;
}

hid_t h5x_create_dataset(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims, int late,
                         const h5x_chunks *chunks, h5x_error *err) {
    hid_t dcpl, space, dataset = H5I_INVALID_HID;
    if (!silent() || (dcpl = dataset_creation(rank, late, chunks, err)) < 0) {
        return dataset;
    }
    space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dims, NULL);
    if (space >= 0) {
        dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    }
    if (dataset < 0) {
        h5x_last_error(err);
    }
    if (space >= 0) {
        H5Sclose(space);
    }
    H5Pclose(dcpl);
    return dataset;
}

// write_first writes the first element, as nothing less makes the library allocate.
static herr_t write_first(hid_t dataset, hid_t type, hid_t space, h5x_error *err) {
    static const uint64_t zero[1] = {0};
    const hsize_t origin[H5S_MAX_RANK] = {0};
    hid_t one = H5I_INVALID_HID;
    herr_t rc = -1;
    if (H5Tget_size(type) <= sizeof zero && H5Sselect_elements(space, H5S_SELECT_SET, 1, origin) >= 0 &&
        (one = H5Screate(H5S_SCALAR)) >= 0) {
        rc = H5Dwrite(dataset, type, one, space, H5P_DEFAULT, zero);
    }
    if (rc < 0) {
        h5x_last_error(err);
    }
    if (one >= 0) {
        H5Sclose(one);
    }
    return rc;
}

herr_t h5x_allocate(hid_t dataset, h5x_error *err) {
    hid_t type, space;
    herr_t rc = -1;
    if (!silent() || (type = H5Dget_type(dataset)) < 0) {
        h5x_last_error(err);
        return rc;
    }
    if ((space = H5Dget_space(dataset)) < 0) {
        h5x_last_error(err);
    } else {
        rc = write_first(dataset, type, space, err);
        H5Sclose(space);
    }
    H5Tclose(type);
    return rc;
}

herr_t h5x_write(hid_t dataset, const void *bytes, h5x_error *err) {
    hid_t type;
    herr_t rc;
    if (!silent() || (type = H5Dget_type(dataset)) < 0) {
        h5x_last_error(err);
        return -1;
    }
    if ((rc = H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes)) < 0) {
        h5x_last_error(err);
    }
    H5Tclose(type);
    return rc;
}

herr_t h5x_write_chunk(hid_t dataset, hsize_t row, uint32_t mask, size_t size, const void *bytes, h5x_error *err) {
    hsize_t origin[H5S_MAX_RANK] = {row};
    herr_t rc = -1;
    if (!silent() || (rc = H5Dwrite_chunk(dataset, H5P_DEFAULT, mask, origin, size, bytes)) < 0) {
        h5x_last_error(err);
    }
    return rc;
}

herr_t h5x_close_dataset(hid_t dataset) { return H5Dclose(dataset); }

haddr_t h5x_offset(hid_t dataset) { return H5Dget_offset(dataset); }

haddr_t h5x_no_offset(void) { return HADDR_UNDEF; }

// usable closes a type that could not be finished.
static hid_t usable(hid_t type, int good, h5x_error *err) {
    if (good) {
        return type;
    }
    h5x_last_error(err);
    if (type >= 0) {
        H5Tclose(type);
    }
    return H5I_INVALID_HID;
}

hid_t h5x_float16(h5x_error *err) {
    hid_t t = H5Tcopy(H5T_IEEE_F32LE);
    return usable(t, t >= 0 && H5Tset_fields(t, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(t, 2) >= 0 && H5Tset_ebias(t, 15) >= 0, err);
}

hid_t h5x_bool(h5x_error *err) {
    const signed char no = 0, yes = 1;
    hid_t t = H5Tenum_create(H5T_STD_I8LE);
    return usable(t, t >= 0 && H5Tenum_insert(t, "FALSE", &no) >= 0 && H5Tenum_insert(t, "TRUE", &yes) >= 0, err);
}

hid_t h5x_text(size_t size, h5x_error *err) {
    hid_t t = H5Tcopy(H5T_C_S1);
    return usable(t, t >= 0 && H5Tset_size(t, size) >= 0 && H5Tset_strpad(t, H5T_STR_NULLPAD) >= 0 && H5Tset_cset(t, H5T_CSET_UTF8) >= 0, err);
}
