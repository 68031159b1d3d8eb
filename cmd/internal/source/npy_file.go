package source

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/vfs"
)

// openNPY opens a .npy file, or a folder or glob of them: each is a field, named as its
// file.
func openNPY(ctx context.Context, path string, _ Options, wanted []Wanted) (Source, error) {
	files, err := filesOf(path, "*.npy")
	if err != nil {
		return nil, err
	}
	var columns []column
	var open []io.Closer
	var bad misfits
	for _, name := range files {
		f, err := vfs.Open(name)
		if err != nil {
			closeFiles(open)
			return nil, fmt.Errorf("source %s: %w", name, withoutPath(err))
		}
		open = append(open, f)
		c, err := npyColumn(until{f, ctx}, filepath.Base(name))
		if err != nil {
			bad = append(bad, misfit{filepath.Base(name), withoutPath(err)})
			continue
		}
		columns = append(columns, c)
	}
	if columns, err = bad.choose(columns, wanted); err != nil {
		closeFiles(open)
		if len(files) == 1 && len(bad) == 1 {
			err = bad[0].err
		}
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return newArrays("npy", path, baseName(path), columns, open...)
}

// filesOf returns the files that path is: what it matches, or those of a folder that match
// pattern.
func filesOf(path, pattern string) ([]string, error) {
	files, err := expand(path)
	if err != nil {
		return nil, err
	}
	if info, err := vfs.Stat(files[0]); err != nil || !info.IsDir() {
		return files, nil
	}
	files, err = vfs.Glob(filepath.Join(escape(files[0]), pattern))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("source %s: the folder holds no %s", path, pattern)
	}
	return files, nil
}

func closeFiles(files []io.Closer) {
	for _, f := range files {
		f.Close()
	}
}

// npyColumn returns the column that a file is.
func npyColumn(f vfs.File, name string) (column, error) {
	info, err := f.Stat()
	if err != nil {
		return column{}, err
	}
	h, err := readAnyNPY(f)
	if err != nil {
		return column{}, err
	}
	field, count, err := h.field(fieldName(strings.TrimSuffix(name, ".npy")), name)
	if err != nil {
		return column{}, err
	}
	if need := count * int64(field.RecordBytes()); need > info.Size()-h.offset {
		return column{}, fmt.Errorf("is cut short: the header promises %d bytes of elements, there are %d", need, info.Size()-h.offset)
	}
	if h.fortran {
		return h.strips(field, count, f), nil
	}
	return h.layout(field).column(field, count, f, h.offset), nil
}

// openNPZ opens what numpy.savez or savez_compressed wrote: each member is a field.
func openNPZ(_ context.Context, path string, _ Options, wanted []Wanted) (Source, error) {
	f, z, err := openZip(path)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, withoutPath(err))
	}
	columns, bad := npzColumns(z)
	if columns, err = bad.choose(columns, wanted); err != nil {
		f.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return newArrays("npz", path, baseName(path), columns, f)
}

func openZip(path string) (vfs.File, *zip.Reader, error) {
	f, err := vfs.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, z, nil
}

func npzColumns(z *zip.Reader) (columns []column, bad misfits) {
	for _, m := range z.File {
		name, ok := strings.CutSuffix(m.Name, ".npy")
		if !ok {
			continue
		}
		c, err := npzColumn(m, name)
		if err != nil {
			bad = append(bad, misfit{name, err})
			continue
		}
		columns = append(columns, c)
	}
	slices.SortFunc(columns, func(a, b column) int { return strings.Compare(a.field.Name, b.field.Name) })
	return columns, bad
}

// npzColumn returns the column that a member is. What a member claims to hold is believed
// only as far as its compressed size allows.
func npzColumn(m *zip.File, name string) (column, error) {
	open := func() (npyHeader, io.ReadCloser, error) {
		r, err := m.Open()
		if err != nil {
			return npyHeader{}, nil, err
		}
		h, err := readNPY(r)
		if err != nil {
			r.Close()
		}
		return h, r, err
	}
	h, r, err := open()
	if err != nil {
		return column{}, err
	}
	r.Close()
	field, count, err := h.field(fieldName(name), name)
	if err != nil {
		return column{}, err
	}
	const deflateMost = 1032 // bytes out of one byte in
	need := count * int64(field.RecordBytes())
	if size := int64(m.CompressedSize64); need/deflateMost > size || m.Method == zip.Store && need > size {
		return column{}, fmt.Errorf("the header promises %d bytes of elements, more than %d stored bytes can hold", need, size)
	}
	return h.layout(field).stream(field, count, func() (io.ReadCloser, error) {
		_, r, err := open()
		return r, err
	}), nil
}
