package cells

import (
	"cmp"
	"encoding/binary"
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

// cells is a file of single cells as a unit.Unit. Members and names are found on first use.
type cells struct {
	file    Hierarchy
	index   string // path of the array with the names of the cells
	members func() ([]cellMember, error)
	names   func() ([]string, error)
}

// cellMember is an array with a row for each cell.
type cellMember struct {
	unit.Member
	open func() (array.Column, error)
}

// Of returns the cells of a file as a unit whose rows are cells; nil if the file has no cells.
func Of(h Hierarchy) unit.Unit {
	c := &cells{file: h}
	find := c.annData
	switch {
	case isAnnData(h):
		c.index = "obs/" + c.indexOf("obs")
	case isTenX(h):
		find, c.index = c.tenX, "matrix/barcodes"
	default:
		return nil
	}
	c.members = sync.OnceValues(find)
	c.names = sync.OnceValues(func() ([]string, error) {
		names, err := Texts(h, c.index)
		return unique(names), err
	})
	return c
}

// unique makes names unique: a name that came before gets its position, as in NAME[12]. Sources need unique names,
// and AnnData only warns about equal ones.
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

// indexOf returns the name of the array with the row names of a data frame.
func (c *cells) indexOf(frame string) string {
	return cmp.Or(textOf(c.file, frame, "_index"), "_index")
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
		// Package unit reports m.Err, if it asked for the member.
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
	return c.file.UnitAttribute(name)
}

// annData returns the arrays of an AnnData file that have a row for each cell: X, layers, raw/X, the columns of
// obs, and obsm. Layers, raw/X and names are optional: they become fields only if they are selected.
func (c *cells) annData() (list []cellMember, err error) {
	names, err := c.names()
	if err != nil {
		return nil, fmt.Errorf("obs: %w", err)
	}
	count := int64(len(names))
	add := func(path string, optional bool) {
		m := c.member(path, count)
		m.Name, m.Optional = path, optional || m.Optional
		list = append(list, m)
	}
	for _, name := range c.file.List("") {
		switch {
		case name == "X" && c.file.Kind("X") != Empty && Encoding(c.file, "X") != "null":
			add("X", false)
		case name == "layers":
			for _, inner := range c.file.List("layers") {
				add("layers/"+inner, true)
			}
		case name == "raw" && c.file.Kind("raw/X") != Missing:
			add("raw/X", true)
		}
	}
	for _, name := range c.columnsOf("obs") {
		if c.file.Kind("obs/"+name) != Missing {
			add("obs/"+name, false)
		}
	}
	if c.file.Kind(c.index) != Missing {
		add(c.index, true)
	}
	for _, name := range c.file.List("obsm") {
		add("obsm/"+name, false)
	}
	return list, nil
}

// columnsOf returns the column names of a data frame in their order.
func (c *cells) columnsOf(frame string) (names []string) {
	// Groups do not keep an order: HDF5 lists members by name unless creation order was tracked.
	if v, ok := c.file.Attribute(frame, "column-order"); ok {
		if names, ok := v.Strings(); ok {
			return names
		}
	}
	for _, name := range c.file.List(frame) {
		if name != c.indexOf(frame) && name != "_index" && name != "__categories" {
			names = append(names, name)
		}
	}
	return names
}

// member describes an array of count cells by its encoding. If it cannot become a field, the error is in m.Err, as
// the file's other arrays can still be read.
func (c *cells) member(path string, count int64) (m cellMember) {
	var err error
	switch encoding := Encoding(c.file, path); {
	case encoding == "csr_matrix":
		m, err = c.matrix(path)
	case encoding == "csc_matrix":
		err = c.byColumns(path)
	case encoding == "categorical":
		m, err = c.labels(path)
	case strings.HasPrefix(encoding, "nullable-"):
		m, err = c.nullable(path)
	case c.file.Kind(path) == Group:
		m.Optional = true
		err = fmt.Errorf("a group of encoding %q: %w; write it as an array", encoding, meta.ErrUnsupported)
	default:
		m, err = c.array(path)
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

// matrix describes a CSR matrix. Its shape is an attribute, as the arrays only show the number of rows.
func (c *cells) matrix(path string) (m cellMember, err error) {
	v, ok := c.file.Attribute(path, "shape")
	if !ok {
		v, ok = c.file.Attribute(path, "h5sparse_shape")
	}
	var shape []int64
	if ok {
		shape, _ = v.Ints()
	}
	if len(shape) != 2 || shape[1] < 1 || shape[1] > 1<<40 {
		return m, fmt.Errorf("%s has the shape %v: %w", path, shape, meta.ErrUnsupported)
	}
	return c.sparse(path, shape[0], shape[1], c.featuresOf(path))
}

// sparse describes a compressed matrix with rows records of width columns. features are the names of the columns,
// if known.
func (c *cells) sparse(path string, rows, width int64, features []string) (m cellMember, err error) {
	values, _, err := c.file.Field(path + "/data")
	if err != nil {
		return m, err
	}
	if m.Field, err = sparseField(path, values.DType, int(width)); err != nil {
		return m, err
	}
	if m.Rows = rows; len(features) == m.Field.Width {
		m.Field.Features = features
	}
	m.open = func() (array.Column, error) {
		column, err := openSparse(c.file, path, m.Field.Width)
		if err == nil && column.Count != m.Rows {
			err = fmt.Errorf("%d rows, not %d: %w", column.Count, m.Rows, meta.ErrCorrupt)
		}
		column.Field = m.Field
		return column, err
	}
	return m, nil
}

// featuresOf returns the names of the columns of a matrix: the index of var, or of raw/var. They are nil if unknown
// or too large.
func (c *cells) featuresOf(path string) []string {
	frame := "var"
	if strings.HasPrefix(path, "raw/") {
		frame = "raw/var"
	}
	return c.features(frame + "/" + c.indexOf(frame))
}

// features returns the names in an array, such as genes, or nil if they are too large for a schema.
func (c *cells) features(path string) []string {
	names, err := Texts(c.file, path)
	total := 0
	for _, name := range names {
		total += len(name)
	}
	if err != nil || total > mostNames {
		return nil
	}
	return names
}

// mostNames limits the bytes of all feature names, as the manifest of a dataset stores them.
const mostNames = 4 << 20

// byColumns returns the error for a CSC matrix, where a row is scattered over the whole file, with a command that
// rewrites the matrix by rows.
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

// rewrite returns a command that applies change to the AnnData object a and writes it to a new file, with word in
// its name.
func (c *cells) rewrite(change, word string) string {
	path, format := c.file.Path(), c.file.Format()
	return shell.Command("python -c", fmt.Sprintf("import anndata; a = anndata.read_%[1]s(%[2]q); %[3]s; a.write_%[1]s(%[4]q)",
		format, path, change, strings.TrimSuffix(path, "."+format)+"-"+word+"."+format))
}

// array describes a plain array. Arrays of texts are optional.
func (c *cells) array(path string) (m cellMember, err error) {
	if _, ok := c.file.Attribute(path, "categories"); ok {
		return m, fmt.Errorf("categories as AnnData before 0.8 wrote them: %w; write the file anew: %s", meta.ErrUnsupported,
			c.rewrite("a = a", "new"))
	}
	if m.Field, m.Rows, err = c.file.Field(path); err != nil {
		return m, err
	}
	if m.Optional = m.Field.IsBytes(); isMatrix(path) {
		if names := c.featuresOf(path); len(m.Field.Shape) == 1 && len(names) == m.Field.Shape[0] {
			m.Field.Features = names
		}
	}
	m.open = func() (array.Column, error) {
		column, err := c.file.Column(path)
		column.Field = m.Field
		return column, err
	}
	return m, nil
}

// isMatrix reports whether the columns of an array are features, so that var names them.
func isMatrix(path string) bool {
	return path == "X" || path == "raw/X" || strings.HasPrefix(path, "layers/")
}

// labels describes a categorical column, which becomes class numbers with the categories as classes. All codes are
// read now: code -1 means missing, and a column with missing values is refused, as labels have no number for it.
func (c *cells) labels(path string) (m cellMember, err error) {
	codes, err := one(c.file, path+"/codes")
	if err != nil {
		return m, err
	}
	classes, err := Texts(c.file, path+"/categories")
	if err != nil {
		return m, err
	}
	dtype, missing := codes.Field.DType, 0
	stored, err := codes.All(nil)
	if err != nil {
		return m, err
	}
	for values := stored; len(values) > 0; values = values[dtype.Size():] {
		switch x, whole := dtype.Read(values).Int64(); {
		case x == -1 && whole:
			missing++
		case x < 0 || x >= int64(len(classes)) || !whole:
			return m, fmt.Errorf("code %v of %d categories: %w", dtype.Read(values), len(classes), meta.ErrCorrupt)
		}
	}
	m.Field, m.Rows = source.LabelField(layout.FieldName(path), classes), codes.Count
	m.Field.Origin = path
	label := func(i int64, buf []byte) ([]byte, error) { // of the codes in memory: one in the file can be a chunk to inflate
		x, _ := dtype.Read(stored[int(i)*dtype.Size():]).Int64()
		return binary.LittleEndian.AppendUint64(buf, uint64(x)), nil
	}
	m.open = func() (array.Column, error) {
		c := codes
		c.Field, c.At, c.Rows = m.Field, label, nil
		c.Open = func() (array.Cursor, error) { return array.CursorAt(label, c.Count), nil }
		return c, nil
	}
	m.Optional = missing > 0
	return m, c.missing(path, missing, "%s = %s.cat.add_categories(\"missing\").fillna(\"missing\")")
}

// missing returns an error if n values of a column are missing, with a command that fills them; fill is its format.
func (c *cells) missing(path string, n int, fill string) error {
	if n == 0 {
		return nil
	}
	column := fmt.Sprintf("a.obs[%q]", strings.TrimPrefix(path, "obs/"))
	return source.ValueError("%d values are missing; fill them, for example: %s", n,
		c.rewrite(fmt.Sprintf(fill, column, column), "filled"))
}

// nullable describes a column of values with a mask in which true means missing. A column with missing values is
// refused, as its values at these places are arbitrary.
func (c *cells) nullable(path string) (m cellMember, err error) {
	values, err := one(c.file, path+"/values")
	if err != nil {
		return m, err
	}
	mask, err := one(c.file, path+"/mask")
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
	m.Field.Name, m.Field.Origin = layout.FieldName(path), path
	m.Optional = missing > 0 || m.Field.IsBytes()
	m.open = func() (array.Column, error) {
		values.Field = m.Field
		return values, nil
	}
	fill := "0"
	switch {
	case m.Field.DType == tensor.Bool:
		fill = "False"
	case m.Field.IsBytes():
		fill = `""`
	}
	return m, c.missing(path, missing, "%s = %s.fillna("+fill+")")
}

// tenX returns the matrix of a Cell Ranger file. It is stored as features by cells in CSC, so the numbers of a
// cell, a column of the matrix, are contiguous: it is read as the CSR matrix of cells by features, which has
// the same arrays.
func (c *cells) tenX() (list []cellMember, err error) {
	names, err := c.names()
	if err != nil {
		return nil, fmt.Errorf("barcodes: %w", err)
	}
	r, dtype, err := c.file.Numbers("matrix/shape")
	if err != nil {
		return nil, err
	}
	if r.Len() != 2 {
		return nil, fmt.Errorf("matrix/shape has %d numbers: %w", r.Len(), meta.ErrUnsupported)
	}
	stored := make([]byte, 2*dtype.Size())
	if err := r.Records(c.file.Context(), stored, 0, 2); err != nil {
		return nil, fmt.Errorf("matrix/shape: %w", err)
	}
	// matrix/shape is (features, cells): its first number is the width of a cell.
	width, ok := dtype.Read(stored).Int64()
	if !ok || width < 1 || width > 1<<40 {
		return nil, fmt.Errorf("%v features: %w", dtype.Read(stored), meta.ErrUnsupported)
	}
	m, err := c.sparse("matrix", int64(len(names)), width, c.features("matrix/features/name"))
	m.Field.Name, m.Field.Origin, m.Name, m.Err = "X", "matrix", "X", err
	return []cellMember{m}, nil
}

// one opens an array with one axis that is small enough to be read as a whole.
func one(h Hierarchy, path string) (c array.Column, err error) {
	if c, err = h.Column(path); err != nil {
		return c, err
	}
	if !c.Field.IsBytes() && (len(c.Field.Shape) > 0 || c.Field.Ragged) {
		return c, fmt.Errorf("%s is not one axis of values: %w", path, meta.ErrUnsupported)
	}
	return c, h.Check(path)
}
