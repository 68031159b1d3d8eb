package hdf5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/tensor"
)

// cells is a file of single cells as a unit: AnnData's .h5ad, or what 10x's Cell Ranger writes. Its rows are cells.
type cells struct {
	file    *File
	index   string // the dataset of the cells' names
	members func() ([]cellMember, error)
	names   func() ([]string, error)
}

// cellMember is an array of cells.
type cellMember struct {
	unit.Member
	open func() (array.Column, error)
}

// IsCells reports whether a file has single cells.
func IsCells(f *meta.File) bool { return isAnnData(f) || isTenX(f) }

// isAnnData reports whether a file is .h5ad: by the attribute that anndata writes since 0.8, or for older files by the
// names of its groups.
func isAnnData(f *meta.File) bool {
	obs, ok := f.Root.Get("obs")
	_, hasVar := f.Root.Get("var")
	_, hasX := f.Root.Get("X")
	return ok && obs.Group != nil && (Encoding(f.Root.Attrs) == "anndata" || hasVar && hasX)
}

// isTenX reports whether a file is a matrix of 10x Genomics' Cell Ranger, version 3 or later.
func isTenX(f *meta.File) bool {
	matrix, ok := f.Root.Get("matrix")
	if !ok || matrix.Group == nil {
		return false
	}
	for _, name := range []string{"data", "indices", "indptr", "barcodes", "features"} {
		if _, ok := matrix.Group.Get(name); !ok {
			return false
		}
	}
	return true
}

// Cells returns the cells of a file of single cells; nil of any other file.
func (f *File) Cells() unit.Unit {
	c := &cells{file: f}
	find := c.annData
	switch {
	case isAnnData(f.meta):
		c.index = "obs/" + f.indexOf("obs")
	case isTenX(f.meta):
		find, c.index = c.tenX, "matrix/barcodes"
	default:
		return nil
	}
	c.members = sync.OnceValues(find)
	c.names = sync.OnceValues(func() ([]string, error) {
		names, err := f.texts(c.index)
		return unique(names), err
	})
	return c
}

// unique adds its number to each name that an earlier one is equal to.
func unique(names []string) []string {
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		if seen[name] {
			names[i] = fmt.Sprintf("%s[%d]", name, i)
		}
		seen[name] = true
	}
	return names
}

// Encoding says what the datasets of a group are together, as AnnData notes: "categorical", "csr_matrix" and others; ""
// for other groups.
func Encoding(attrs meta.Attrs) string {
	if text := textOf(attrs, "encoding-type"); text != "" {
		return text
	}
	if text := textOf(attrs, "h5sparse_format"); text != "" { // AnnData before 0.7
		return text + "_matrix"
	}
	return ""
}

func textOf(attrs meta.Attrs, name string) string {
	a, ok := attrs.Get(name)
	if !ok {
		return ""
	}
	text, _ := a.Value.Text()
	return text
}

// indexOf returns the name of the dataset that has the names of a data frame's rows.
func (f *File) indexOf(frame string) string {
	if l, err := f.meta.Lookup(frame); err == nil && l.Group != nil {
		if name := textOf(l.Group.Attrs, "_index"); name != "" {
			return name
		}
	}
	return "_index"
}

// Name implements unit.Unit.
func (c *cells) Name() string { return "" }

// RowName implements unit.Named.
func (c *cells) RowName(i int64) string {
	names, err := c.names()
	if err != nil || i >= int64(len(names)) {
		return strconv.FormatInt(i, 10)
	}
	return names[i]
}

// Members implements unit.Unit.
func (c *cells) Members() (list []unit.Member, err error) {
	members, err := c.members()
	for _, m := range members {
		list = append(list, m.Member)
	}
	return list, err
}

// Open implements unit.Unit.
func (c *cells) Open(names []string) ([]array.Column, io.Closer, error) {
	members, err := c.members()
	if err != nil {
		return nil, nil, err
	}
	list := make([]array.Column, len(names))
	for _, m := range members {
		i := slices.Index(names, m.Name)
		if i < 0 || m.Err != nil {
			continue
		}
		if list[i], err = m.open(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return list, nil, nil
}

// Attribute implements unit.Unit.
func (c *cells) Attribute(name string) (unit.Attribute, bool) {
	return (&unitOf{c.file, &meta.Link{Group: c.file.meta.Root}}).Attribute(name)
}

// annData returns what AnnData writes: matrices, columns of obs, and arrays of obsm.
func (c *cells) annData() (list []cellMember, err error) {
	names, err := c.names()
	if err != nil {
		return nil, fmt.Errorf("obs: %w", err)
	}
	count := int64(len(names))
	add := func(path string, optional bool, l *meta.Link) {
		m := c.member(path, l, count)
		m.Name, m.Optional = path, optional || m.Optional
		list = append(list, m)
	}
	for _, l := range below(c.file.meta.Root) {
		switch {
		case l.Name == "X" && !isNull(l):
			add("X", false, l)
		case l.Name == "layers":
			for _, inner := range below(l.Group) {
				add("layers/"+inner.Name, true, inner)
			}
		case l.Name == "raw" && l.Group != nil:
			if x, ok := l.Group.Get("X"); ok {
				add("raw/X", true, x)
			}
		}
	}
	obs, err := c.file.meta.Lookup("obs")
	if err != nil {
		return nil, err
	}
	for _, name := range columnsOf(obs.Group) {
		if l, ok := obs.Group.Get(name); ok {
			add("obs/"+name, false, l)
		}
	}
	if l, ok := obs.Group.Get(strings.TrimPrefix(c.index, "obs/")); ok {
		add(c.index, true, l)
	}
	if obsm, ok := c.file.meta.Root.Get("obsm"); ok {
		for _, l := range below(obsm.Group) {
			add("obsm/"+l.Name, false, l)
		}
	}
	return list, nil
}

// below returns the links of a group that lead somewhere; nil of none.
func below(g *meta.Group) (list []*meta.Link) {
	if g == nil {
		return nil
	}
	for i := range g.Links {
		if l := &g.Links[i]; l.Group != nil || l.Dataset != nil {
			list = append(list, l)
		}
	}
	return list
}

// isNull reports whether a matrix is None.
func isNull(l *meta.Link) bool {
	return l.Dataset != nil && (l.Dataset.Null || Encoding(l.Dataset.Attrs) == "null")
}

// columnsOf returns the columns of a data frame in their order.
func columnsOf(frame *meta.Group) (names []string) {
	if a, ok := frame.Attrs.Get("column-order"); ok {
		if names, ok := a.Value.Strings(); ok {
			return names
		}
	}
	for _, l := range below(frame) {
		if l.Name != textOf(frame.Attrs, "_index") && l.Name != "_index" && l.Name != "__categories" {
			names = append(names, l.Name)
		}
	}
	return names
}

// member describes an array of count cells.
func (c *cells) member(path string, l *meta.Link, count int64) (m cellMember) {
	var err error
	switch encoding := encodingOf(l); {
	case encoding == "csr_matrix":
		m, err = c.matrix(path, l.Group)
	case encoding == "csc_matrix":
		err = c.byColumns(path)
	case encoding == "categorical":
		m, err = c.labels(path, l.Group)
	case strings.HasPrefix(encoding, "nullable-"):
		m, err = c.nullable(path)
	case l.Dataset == nil:
		m.Optional = true
		err = fmt.Errorf("a group of encoding %q: %w; write it as an array", encoding, meta.ErrUnsupported)
	default:
		m, err = c.array(path, l.Dataset)
	}
	if m.Rows == 0 {
		m.Rows = count
	}
	if err == nil && m.Rows != count {
		err = fmt.Errorf("%d rows of %d cells: %w", m.Rows, count, meta.ErrCorrupt)
	}
	m.Err = err
	return m
}

func encodingOf(l *meta.Link) string {
	if l.Group != nil {
		return Encoding(l.Group.Attrs)
	}
	return Encoding(l.Dataset.Attrs)
}

// matrix describes a matrix that is compressed by rows.
func (c *cells) matrix(path string, g *meta.Group) (m cellMember, err error) {
	a, ok := g.Attrs.Get("shape")
	if !ok {
		a, ok = g.Attrs.Get("h5sparse_shape")
	}
	var shape []int64
	if ok {
		shape, _ = a.Value.Ints()
	}
	if len(shape) != 2 || shape[1] < 1 || shape[1] > 1<<40 {
		return m, fmt.Errorf("%s has the shape %v: %w", path, shape, meta.ErrUnsupported)
	}
	return c.sparse(path, shape[0], shape[1], c.featuresOf(path))
}

// sparse describes a matrix that has that many rows and columns.
func (c *cells) sparse(path string, rows, width int64, features []string) (m cellMember, err error) {
	d, err := c.file.meta.Dataset(path + "/data")
	if err != nil {
		return m, err
	}
	spec, err := d.Spec()
	if err != nil {
		return m, err
	}
	if m.Field, err = sparseField(path, spec.DType, int(width)); err != nil {
		return m, err
	}
	if m.Rows = rows; len(features) == m.Field.Width {
		m.Field.Features = features
	}
	m.open = func() (array.Column, error) {
		column, err := c.file.sparseAt(path, m.Field.Width)
		if err == nil && column.Count != m.Rows {
			err = fmt.Errorf("%d rows, not %d: %w", column.Count, m.Rows, meta.ErrCorrupt)
		}
		column.Field = m.Field
		return column, err
	}
	return m, nil
}

// featuresOf returns the names of a matrix's columns; nil if they are not known, or too many to be part of a schema.
func (c *cells) featuresOf(path string) []string {
	frame := "var"
	if strings.HasPrefix(path, "raw/") {
		frame = "raw/var"
	}
	return c.features(frame + "/" + c.file.indexOf(frame))
}

// features returns the names of columns, such as genes, or nil if they take more memory than names are worth.
func (c *cells) features(path string) []string {
	names, err := c.file.texts(path)
	total := 0
	for _, name := range names {
		total += len(name)
	}
	if err != nil || total > mostNames {
		return nil
	}
	return names
}

// mostNames bounds the bytes of all names of features, which a manifest has.
const mostNames = 4 << 20

// byColumns refuses a matrix whose cells are not in one place, with a program that writes it by rows.
func (c *cells) byColumns(path string) error {
	set := "a.X = a.X.tocsr()"
	if name, ok := strings.CutPrefix(path, "layers/"); ok {
		set = fmt.Sprintf("a.layers[%[1]q] = a.layers[%[1]q].tocsr()", name)
	} else if path == "raw/X" {
		set = "a.raw = anndata.AnnData(a.raw.X.tocsr(), a.obs, a.raw.var)"
	} else if name, ok := strings.CutPrefix(path, "obsm/"); ok {
		set = fmt.Sprintf("a.obsm[%[1]q] = a.obsm[%[1]q].tocsr()", name)
	}
	return fmt.Errorf("%s is stored by columns (CSC), so that a cell is in as many places as it has values: %w; write "+
		"it by rows: %s", path, meta.ErrUnsupported, c.rewrite(set, "rows"))
}

// rewrite returns the command that writes the file anew after a change.
func (c *cells) rewrite(change, word string) string {
	return shell.Command("python -c", fmt.Sprintf("import anndata; a = anndata.read_h5ad(%q); %s; a.write_h5ad(%q)",
		c.file.path, change, strings.TrimSuffix(c.file.path, ".h5ad")+"-"+word+".h5ad"))
}

// array describes the HDF5 dataset d as a cellMember: its field, its rows and how it is opened.
func (c *cells) array(path string, d *meta.Dataset) (m cellMember, err error) {
	if _, ok := d.Attrs.Get("categories"); ok {
		return m, fmt.Errorf("categories as AnnData before 0.8 wrote them: %w; write the file anew: %s", meta.ErrUnsupported,
			c.rewrite("a = a", "new"))
	}
	list, err := parts(d)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("a compound of %d members: %w", len(list), meta.ErrUnsupported)
	}
	if err != nil {
		return m, err
	}
	m.Field, m.Rows = list[0].field, d.Records()
	if m.Optional = m.Field.IsBytes(); isMatrix(path) {
		if names := c.featuresOf(path); len(m.Field.Shape) == 1 && len(names) == m.Field.Shape[0] {
			m.Field.Features = names
		}
	}
	m.open = func() (array.Column, error) {
		columns, err := c.file.columns(d, asItIs)
		if err != nil {
			return array.Column{}, err
		}
		columns[0].Field = m.Field
		return columns[0], nil
	}
	return m, nil
}

// isMatrix reports whether the columns of an array are features.
func isMatrix(path string) bool {
	return path == "X" || path == "raw/X" || strings.HasPrefix(path, "layers/")
}

// labels describes a categorical column. One with a missing value is refused.
func (c *cells) labels(path string, g *meta.Group) (m cellMember, err error) {
	d, codes, err := c.file.one(path + "/codes")
	if err != nil {
		return m, err
	}
	classes, err := c.file.texts(path + "/categories")
	if err != nil {
		return m, err
	}
	size := codes.Field.DType.Size()
	missing := 0
	values, err := codes.All(nil)
	if err != nil {
		return m, err
	}
	for i := 0; i < len(values); i += size {
		switch x := integer(d.Type, values[i:i+size]); {
		case x == -1:
			missing++
		case x < 0 || x >= int64(len(classes)):
			return m, fmt.Errorf("code %d of %d categories: %w", x, len(classes), meta.ErrCorrupt)
		}
	}
	m.Field, m.Rows = source.LabelField(layout.FieldName(trim(path)), classes), codes.Count
	m.Field.Origin = trim(path)
	m.open = func() (array.Column, error) {
		return changed(codes, m.Field, func(buf, code []byte) ([]byte, error) {
			return binary.LittleEndian.AppendUint64(buf, uint64(integer(d.Type, code))), nil
		}), nil
	}
	m.Optional = missing > 0
	return m, c.missing(path, missing, "%s = %s.cat.add_categories(\"missing\").fillna(\"missing\")")
}

// missing refuses a column with missing values, and says how to fill them.
func (c *cells) missing(path string, n int, fill string) error {
	if n == 0 {
		return nil
	}
	column := fmt.Sprintf("a.obs[%q]", strings.TrimPrefix(path, "obs/"))
	return source.ValueError("%d values are missing; fill them, for example: %s", n,
		c.rewrite(fmt.Sprintf(fill, column, column), "filled"))
}

// nullable describes a column of values and a mask. One with a missing value is refused.
func (c *cells) nullable(path string) (m cellMember, err error) {
	_, values, err := c.file.one(path + "/values")
	if err != nil {
		return m, err
	}
	_, mask, err := c.file.one(path + "/mask")
	if err != nil {
		return m, err
	}
	masked, err := mask.All(nil)
	if err == nil && (mask.Field.DType != tensor.Bool || mask.Count != values.Count) {
		err = fmt.Errorf("a mask of %d values of type %v for %d: %w", mask.Count, mask.Field.DType, values.Count,
			meta.ErrCorrupt)
	}
	if err != nil {
		return m, err
	}
	missing := 0
	for _, b := range masked {
		if b != 0 {
			missing++
		}
	}
	m.Field, m.Rows = values.Field, values.Count
	m.Field.Name, m.Field.Origin = layout.FieldName(trim(path)), trim(path)
	m.Optional = missing > 0 || m.Field.IsBytes()
	m.open = func() (array.Column, error) {
		values.Field = m.Field
		return values, nil
	}
	return m, c.missing(path, missing, "%s = %s.fillna(0)")
}

// tenX returns the matrix that Cell Ranger writes: features by cells, compressed by columns, which are cells.
func (c *cells) tenX() (list []cellMember, err error) {
	names, err := c.names()
	if err != nil {
		return nil, fmt.Errorf("barcodes: %w", err)
	}
	r, dtype, err := c.file.numbers("matrix/shape")
	if err != nil {
		return nil, err
	}
	if r.Len() != 2 {
		return nil, fmt.Errorf("matrix/shape has %d numbers: %w", r.Len(), meta.ErrUnsupported)
	}
	stored := make([]byte, 2*dtype.Size())
	if err := r.Records(c.file.ctx, stored, 0, 2); err != nil {
		return nil, fmt.Errorf("matrix/shape: %w", err)
	}
	width, ok := dtype.Read(stored).Int64()
	if !ok || width < 1 || width > 1<<40 {
		return nil, fmt.Errorf("%v features: %w", dtype.Read(stored), meta.ErrUnsupported)
	}
	m, err := c.sparse("matrix", int64(len(names)), width, c.features("matrix/features/name"))
	m.Field.Name, m.Field.Origin, m.Name, m.Err = "X", "matrix", "X", err
	return []cellMember{m}, nil
}

// changed returns a column whose values are computed from another's.
func changed(c array.Column, field source.Field, f func(buf, value []byte) ([]byte, error)) array.Column {
	at := c.At
	c.Field, c.Rows = field, nil
	c.At = func(i int64, buf []byte) ([]byte, error) {
		value, err := at(i, nil)
		if err != nil {
			return buf, err
		}
		return f(buf, value)
	}
	c.Open = func() (array.Cursor, error) { return array.CursorAt(c.At, c.Count), nil }
	return c
}

// one returns a dataset of one axis as a column, which may be read as a whole.
func (f *File) one(path string) (d *meta.Dataset, c array.Column, err error) {
	if d, err = f.meta.Dataset(path); err != nil {
		return nil, c, err
	}
	list, err := f.columns(d, asItIs)
	if err == nil && d.Layout.Kind != meta.Virtual && len(d.External) == 0 {
		err = f.holds(path, d.Records(), int(d.Type.Size))
	}
	if err == nil && (len(list) != 1 || len(d.Dims) != 1) {
		err = fmt.Errorf("%s is not one axis of values: %w", path, meta.ErrUnsupported)
	}
	if err != nil {
		return nil, c, err
	}
	return d, list[0], nil
}

// texts returns all elements of a dataset, as strings.
func (f *File) texts(path string) (list []string, err error) {
	_, c, err := f.one(path)
	if err != nil {
		return nil, err
	}
	cursor, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cursor.Close()) }()
	for range c.Count {
		b, err := cursor.Next()
		if err != nil {
			return nil, array.CutShort(err)
		}
		if !c.Field.IsBytes() {
			b = []byte(c.Field.DType.Text(b))
		}
		list = append(list, string(b))
	}
	return list, nil
}
