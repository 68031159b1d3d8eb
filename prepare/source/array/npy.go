package array

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// OpenNPY opens a .npy file, or a folder or glob of such files. Each file is a field, named after the file.
func OpenNPY(ctx context.Context, root *vfs.Root, path string, _ source.Options, selection []column.Selection) (
	source.Source, error) {
	files, err := source.FilesIn(root, path, "*.npy")
	if err != nil {
		return nil, err
	}
	var columns []Column
	var open []io.Closer
	var bad Rejections
	for _, name := range files {
		f, err := source.OpenUntil(ctx, root, name)
		if err != nil {
			source.CloseFiles(open)
			return nil, fmt.Errorf("source %s: %w", name, source.WithoutPath(err))
		}
		open = append(open, f)
		c, err := npyColumn(f, filepath.Base(name), false)
		if err != nil {
			bad = append(bad, Rejection{filepath.Base(name), source.WithoutPath(err)})
			continue
		}
		columns = append(columns, c)
	}
	if columns, err = bad.choose(columns, selection); err != nil {
		source.CloseFiles(open)
		// For a single file, its own error says more than how to leave it out.
		if len(files) == 1 && len(bad) == 1 {
			err = bad[0].Err
		}
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return New("npy", path, source.BaseName(path), columns, append(open, root)...)
}

// npyColumn returns the column of a file. Arrays without axes are an error unless singles is set.
func npyColumn(f vfs.File, name string, singles bool) (Column, error) {
	info, err := f.Stat()
	if err != nil {
		return Column{}, err
	}
	h, err := readAnyNPY(f)
	if err != nil {
		return Column{}, err
	}
	single := false
	if singles {
		h, single = h.single()
	}
	field, count, err := h.field(layout.FieldName(strings.TrimSuffix(name, ".npy")), name)
	if err != nil {
		return Column{}, err
	}
	if err := h.checkSize(count*int64(field.RecordBytes()), info.Size()); err != nil {
		return Column{}, err
	}
	if h.fortran {
		return h.fortranColumn(field, count, f), nil
	}
	c := h.layout(field).column(field, count, f, h.Offset)
	c.Single = single
	return h.text.column(c), nil
}

// OpenNPZ opens a file of numpy.savez or numpy.savez_compressed. Each member is a field, in the order of the
// archive, which is also the order of numpy.load.
func OpenNPZ(ctx context.Context, root *vfs.Root, path string, _ source.Options, selection []column.Selection) (
	source.Source, error) {
	f, z, err := openZip(ctx, root, path)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, source.WithoutPath(err))
	}
	all, bad := npzColumns(ctx, f, z)
	return named("npz", path, all, bad, selection, f, root)
}

// named returns the source of the selected arrays of a file, by default of all arrays. By default, arrays without
// axes are left out with a hint. On success the source owns f and root; with an error named closes f, and the
// caller closes root.
func named(kind, path string, all []Column, bad Rejections, selection []column.Selection, f, root io.Closer) (
	source.Source, error) {
	var columns []Column
	var singles Rejections
	for _, c := range all {
		if c.Single {
			singles = append(singles, Rejection{c.Field.Origin, errSingle})
			continue
		}
		columns = append(columns, c)
	}
	err := singles.Selected(selection)
	if err == nil {
		columns, err = bad.choose(columns, selection)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("source %s: %w", path, err), f.Close())
	}
	s, err := New(kind, path, source.BaseName(path), columns, f, root)
	if noting, ok := s.(interface{ Note(hint string) }); ok && len(singles) > 0 && len(selection) == 0 {
		noting.Note(singles.Hint())
	}
	return s, err
}

// openZip opens an .npz file, which is a zip archive of .npy files. The caller closes the file.
func openZip(ctx context.Context, root *vfs.Root, path string) (vfs.File, *zip.Reader, error) {
	f, size, err := source.OpenSized(ctx, root, path)
	if err != nil {
		return nil, nil, err
	}
	z, err := zip.NewReader(f, size)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, z, nil
}

// NPZ returns the arrays of an .npz file, including arrays without axes, and the closer of the file. Members that
// are stored without compression have random access.
func NPZ(ctx context.Context, root *vfs.Root, path string) ([]Column, Rejections, io.Closer, error) {
	f, z, err := openZip(ctx, root, path)
	if err != nil {
		return nil, nil, nil, source.WithoutPath(err)
	}
	columns, bad := npzColumns(ctx, f, z)
	return columns, bad, f, nil
}

// NPY returns the array of a .npy file, which may have no axes, and the closer of the file.
func NPY(ctx context.Context, root *vfs.Root, path string) (Column, io.Closer, error) {
	f, err := source.OpenUntil(ctx, root, path)
	if err != nil {
		return Column{}, nil, source.WithoutPath(err)
	}
	c, err := npyColumn(f, filepath.Base(path), true)
	if err != nil {
		return c, nil, errors.Join(source.WithoutPath(err), f.Close())
	}
	return c, f, nil
}

// npzColumns returns the columns of all members, and the members that cannot become a column.
func npzColumns(ctx context.Context, f vfs.File, z *zip.Reader) (columns []Column, bad Rejections) {
	for _, m := range z.File {
		name, ok := strings.CutSuffix(m.Name, ".npy")
		var c Column
		err := errNoArray
		if ok {
			c, err = npzColumn(ctx, f, m, name)
		}
		if err != nil {
			bad = append(bad, Rejection{name, err})
			continue
		}
		columns = append(columns, c)
	}
	return columns, bad
}

var errNoArray = errors.New("is not an array: its name does not end in .npy")

// npzColumn returns the column of a member. The number of bytes that its header promises is limited by the size
// to which the stored bytes can expand, before memory is allocated for it.
func npzColumn(ctx context.Context, f vfs.File, m *zip.File, name string) (Column, error) {
	if err := source.CheckZipName(f, m); err != nil {
		return Column{}, err
	}
	open := func() (Header, io.ReadCloser, error) {
		r, err := m.Open()
		if err != nil {
			return Header{}, nil, err
		}
		h, err := readAnyNPY(r)
		if err == nil && h.fortran {
			err = errFortran
		}
		if err != nil {
			r.Close()
		}
		return h, r, err
	}
	h, r, err := open()
	if err != nil {
		return Column{}, err
	}
	r.Close()
	h, single := h.single()
	field, count, err := h.field(layout.FieldName(name), name)
	if err != nil {
		return Column{}, err
	}
	const deflateMost = 1032 // bytes out of one byte in
	need := count * int64(field.RecordBytes())
	if size := int64(m.CompressedSize64); need/deflateMost > size || m.Method == zip.Store && need > size {
		return Column{}, fmt.Errorf("the header promises %d bytes of elements, more than %d stored bytes can hold",
			need, size)
	}
	c := h.layout(field).stream(field, count, func() (io.ReadCloser, error) {
		_, r, err := open()
		return source.ReadUntil(ctx, r), err
	})
	// The bytes of a stored member are in the archive as they are. Reading in order still goes through the member,
	// whose end checks its CRC.
	if at, err := m.DataOffset(); err == nil && m.Method == zip.Store {
		direct := h.layout(field).column(field, count, f, at+h.Offset)
		c.At, c.Rows = direct.At, direct.Rows
	}
	c.Single = single
	return h.text.column(c), nil
}
