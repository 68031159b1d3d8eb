package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// Column describes the values of one name, as the file declares them and as a scan finds them.
type Column struct {
	Name    string
	Note    string       // for people: the unit, such as days since 1970-01-01
	DType   tensor.DType // type of numbers; Invalid for bytes
	Text    bool         // the bytes are text
	Image   bool         // the bytes are the file of an image
	Classes []string     // class names of the numbers
	Shape   []int        // shape of all values that the file declares; nil for single numbers and for lists that may differ
	List    bool         // values are lists whose lengths are known only from the rows
	Ragged  bool         // values are lists of different lengths
	Unwrap  bool         // lists of one element are single values
	Sniff   bool         // only the rows tell what the bytes are
	Refused error        // why the values cannot become a field

	// Findings of a pass over the rows.
	seen    int64           // number of values that are not null
	dims    []int           // shape of the first value of numbers
	differ  bool            // the first axis differs between values
	deeper  bool            // another axis differs, so no field has room for it
	several bool            // some value is a list of byte strings
	binary  bool            // some value is not UTF-8
	Images  bool            // values are lists of image files
	known   map[string]bool // words that may be class names; nil if none are wanted
}

// looked is the number of values that are examined to find out whether bytes are images.
const looked = 100

// settled reports whether the column is known without looking at rows.
func (c *Column) settled(w column.Selection) bool {
	return c.Refused != nil || !c.List && !c.Sniff && !c.wordLabel(w)
}

// look considers a value in the scan. The first value decides the type of a column that declares none; a value of
// another type is skipped here, and is a bad value when its sample is read.
func (c *Column) look(x *Value, isImage func([]byte) bool) {
	if x.Null {
		return
	}
	// The first value decides what the column is.
	if c.seen == 0 && c.Sniff {
		if c.DType = x.DType; c.DType != tensor.Invalid {
			c.known = nil // numbers are labels as they are
		}
	}
	if x.DType != c.DType {
		return
	}
	if c.seen++; c.DType != tensor.Invalid {
		c.lookShape(x.Shape())
		return
	}
	if x.List {
		c.several = true
		for _, b := range x.Items {
			// One value that is not UTF-8 makes the column bytes, as a text field holds UTF-8 only.
			c.binary = c.binary || !utf8.Valid(b)
			c.Images = c.Images || c.seen <= looked && isImage != nil && isImage(b[:min(len(b), 16)])
		}
		return
	}
	if c.Sniff && !c.Text {
		if c.seen <= looked && isImage != nil && !c.Image {
			c.Image = isImage(x.Data[:min(len(x.Data), 16)])
		}
		c.binary = c.binary || !c.Image && !utf8.Valid(x.Data)
	}
	if c.known != nil && len(c.known) <= column.MaxClasses && len(x.Data) > 0 && !c.known[string(x.Data)] {
		c.known[string(x.Data)] = true
	}
}

// lookShape considers the shape of a value. If only the first axis differs, the field is ragged; other differences
// cannot be stored.
func (c *Column) lookShape(dims []int) {
	switch {
	case slices.Contains(dims, Varies):
		c.deeper = true
	case c.seen == 1:
		c.dims = slices.Clone(dims)
	case len(dims) > 0 && len(c.dims) > 0 && c.dims[0] == 0: // an empty list has rows of any shape
		c.dims, c.differ = slices.Clone(dims), dims[0] != 0
	case len(dims) > 0 && dims[0] == 0:
		c.differ = c.differ || len(c.dims) > 0
	case len(dims) != len(c.dims):
		c.deeper = true
	case len(dims) > 0:
		c.differ = c.differ || dims[0] != c.dims[0]
		c.deeper = c.deeper || !slices.Equal(dims[1:], c.dims[1:])
	}
}

// wordLabel reports whether byte strings are class names: by --fields, or by the name of the column.
func (c *Column) wordLabel(w column.Selection) bool {
	if c.DType != tensor.Invalid || c.Image || len(c.Classes) > 0 {
		return false
	}
	return w.Type == "label" || w.Type == "" && (c.Text || c.Sniff) &&
		column.LabelName(strings.ReplaceAll(c.Name, "/", "."))
}

// finish decides after the scan what the declaration has left open.
func (c *Column) finish() {
	if c.Sniff && c.DType == tensor.Invalid && !c.Image && !c.binary {
		c.Text = true
	}
	if c.Image || c.binary {
		c.known = nil
	}
	if !c.List || c.DType == tensor.Invalid || c.differ || c.deeper {
		return
	}
	if c.Shape = c.dims; c.seen == 0 || len(c.dims) > 0 && c.dims[0] == 0 {
		c.Shape, c.differ = nil, true
	} else if c.Unwrap && slices.Equal(c.dims, []int{1}) {
		c.Shape = nil
	}
}

// fieldNames has the field names of columns that have another name by convention; image/encoded and
// image/class/label are the names of TensorFlow's scripts.
var fieldNames = map[string]string{
	"image": source.ImagesName, "image/encoded": source.ImagesName, "label": source.LabelsName,
	"image/class/label": source.LabelsName,
}

// target is a column that becomes a field, with the conversion of its values.
type target struct {
	*Column
	at    int // position of the field
	as    kind
	typ   column.Type      // of asRaw and asNumbers
	words map[string]int64 // of asWord: class numbers by name
	path  bool             // the text is the path of an image, or a JSON array of paths
	field source.Field

	missing string // see source.Options.Missing
}

// kind is the conversion of a value.
type kind uint8

const (
	asNumbers kind = iota
	asBytes        // unchanged: texts, images, bytes of any length
	asItems        // a list of texts, as a JSON array
	asImages       // a list of image files, in the form of content Images
	asRaw          // bytes that are the elements of an array
	asWord         // the class number of a name
	asLabel        // an integer, as int64
)

// newTarget returns the target for a selection of a column.
func newTarget(c *Column, w column.Selection) (*target, error) {
	t := &target{Column: c}
	name := w.Field
	if name == "" {
		if name = layout.FieldName(c.Name); fieldNames[c.Name] != "" &&
			(w.Type == "" || w.Type == "image" || w.Type == "label") {
			name = fieldNames[c.Name]
		}
	}
	if c.Refused != nil {
		return nil, c.Refused
	}
	if c.deeper {
		return nil, errors.New("its lists differ in more than the length of the first axis; " +
			"such values cannot become a field")
	}
	given, _ := column.ParseType(w.Type) // ParseFields has checked it
	var err error
	switch {
	case c.DType != tensor.Invalid:
		err = t.numbers(name, w, given)
	default:
		err = t.bytes(name, w, given)
	}
	if err != nil {
		return nil, err
	}
	t.field.Column = c.Name
	if t.field.Origin = "column " + c.Name; c.Note != "" {
		t.field.Origin += " (" + c.Note + ")"
	}
	return t, t.field.Spec.Validate()
}

// numbers chooses the field of a column of numbers.
func (t *target) numbers(name string, w column.Selection, given column.Type) error {
	c := t.Column
	t.typ = column.Type{DType: c.DType, Shape: c.Shape}
	switch scalar := len(c.Shape) == 0 && !c.differ && !c.Ragged; {
	case c.Ragged:
		t.typ.Ragged = true
	case c.differ && len(c.dims) > 0:
		t.typ.Ragged, t.typ.Shape = true, c.dims[1:]
	case c.differ:
		t.typ.Ragged = true
	case scalar && !c.DType.IsFloat() && (w.Type == "label" || len(c.Classes) > 0 && w.Type == ""):
		t.as, t.field = asLabel, source.LabelField(name, c.Classes)
		return nil
	}
	switch {
	case w.Type == "":
	case given.Kind != column.Numbers:
		return fmt.Errorf("holds %v and cannot be read as %s", t.typ, w.Type)
	case given.DType != c.DType:
		return fmt.Errorf("holds %v, which :%s cannot convert; leave :%s out, and convert it with the transform Cast",
			c.DType, w.Type, w.Type)
	default:
		t.typ = given
	}
	if t.field = t.typ.FieldOf(name); t.typ.Ragged && len(t.typ.Shape) == 0 && t.typ.DType == tensor.Int64 {
		t.field.Classes = c.Classes
	}
	return nil
}

// bytes chooses the field of a column of bytes. A type in --fields takes precedence over the look of the
// column.
//
//	--fields :uint8[64]         asRaw: the bytes are the numbers
//	lists of images             asImages
//	other lists of texts        asItems, as one JSON array
//	words of a label            asWord
//	paths, with :image          asBytes, and column.WithFiles reads the files
//	images, texts, bytes        asBytes
func (t *target) bytes(name string, w column.Selection, given column.Type) error {
	c := t.Column
	raw := w.Type != "" && given.Kind == column.Numbers
	path := (w.Type == "image" || w.Content.Name == tensor.Mask) && c.Text && !c.Sniff
	switch {
	case c.several && raw && given.Ragged:
		t.as, t.typ, t.field = asRaw, given, given.FieldOf(name)
	case c.several && w.Type == "image":
		return column.ErrImages
	case w.Type == "images" && c.Text:
		t.path, t.as, t.field = true, asItems, source.ContentField(name, tensor.Images)
	case w.Type == "images", c.Images && w.Type == "":
		t.as, t.field = asImages, source.ContentField(name, tensor.Images)
	case c.several && (c.binary || w.Type != "" && w.Type != "text"):
		return errors.New("holds lists of bytes, which cannot become a field, unless each is a row of numbers, " +
			"such as uint8[*,1024]")
	case c.several:
		t.as, t.field = asItems, source.ContentField(name, tensor.Text)
	case raw:
		t.as, t.typ, t.field = asRaw, given, given.FieldOf(name)
	case c.known != nil:
		if len(c.known) > column.MaxClasses {
			return fmt.Errorf("more than %d classes; words that are not classes are of type text", column.MaxClasses)
		}
		names := slices.Sorted(maps.Keys(c.known))
		t.as, t.field, t.words = asWord, source.LabelField(name, names), source.ClassNumbers(names)
	case path:
		t.path, t.as, t.field = true, asBytes, source.ContentField(name, tensor.Image)
	case w.Type == "image" || c.Image && w.Type == "":
		t.as, t.field = asBytes, source.ContentField(name, tensor.Image)
	case w.Type == "text" || c.Text && w.Type == "":
		t.as, t.field = asBytes, source.ContentField(name, tensor.Text)
	case w.Type == "":
		t.as, t.field = asBytes, source.RaggedField(name, tensor.Uint8)
	default:
		return fmt.Errorf("holds bytes and cannot be read as %s", w.Type)
	}
	return nil
}

// put sets the field to a value.
func (t *target) put(v *source.Values, x *Value) error {
	if x.Null {
		return t.putNull(v)
	}
	if x.DType != t.DType || x.List && t.as != asItems && t.as != asImages && t.as != asRaw {
		return source.ValueError("it is of another type than %v", t.typ)
	}
	switch t.as {
	case asItems:
		return t.putItems(v, x)
	case asImages:
		return t.putImages(v, x)
	case asWord:
		n, ok := t.words[string(x.Data)]
		if !ok {
			return source.ValueError("label %q is none of the classes", source.Clip(string(x.Data)))
		}
		source.PutInt(v, t.at, n)
		return nil
	case asBytes:
		v.Borrow(t.at, x.Data)
		return nil
	case asLabel:
		return t.putLabel(v, x)
	case asRaw:
		return t.putRaw(v, x)
	}
	return t.putNumbers(v, x)
}

// putNull sets the field to the value of a null: an empty list in a ragged field, otherwise the value of --missing,
// or an error. A null is never silently 0.
func (t *target) putNull(v *source.Values) error {
	if t.field.Ragged && !t.field.Image() {
		v.Make(t.at, 0)
		return nil
	}
	b, err := column.Missing(t.missing, t.field)
	v.Borrow(t.at, b)
	return err
}

// putNumbers sets the field to numbers without a copy, as they have the field's form already. A flat list may stand
// for any shape of as many numbers.
func (t *target) putNumbers(v *source.Values, x *Value) error {
	dims := x.Shape()
	// The first axis of a ragged value is its number of rows, which may be any.
	if t.typ.Ragged {
		dims = dims[min(len(dims), 1):]
	}
	if !t.fits(len(x.Data)) || x.Rank > 1 && len(x.Data) > 0 && !slices.Equal(dims, t.typ.Shape) {
		return source.ValueError("numbers of shape %v where %v is expected", tensor.Shape(x.Shape()), t.typ)
	}
	v.Borrow(t.at, x.Data)
	return nil
}

// fits reports whether n bytes are a value of the field, or for a ragged field any number of rows.
func (t *target) fits(n int) bool {
	row := tensor.Shape(t.typ.Shape).Elems() * t.typ.DType.Size()
	return n == row || t.typ.Ragged && n%row == 0
}

// putRaw sets the field to bytes as numbers. Each string of a list has one or more rows.
func (t *target) putRaw(v *source.Values, x *Value) error {
	items, b := x.Items, v.Buffer(t.at)
	if !x.List {
		items = [][]byte{x.Data}
	}
	for _, item := range items {
		if !t.fits(len(item)) {
			return source.ValueError("%d bytes where %v is expected", len(item), t.typ)
		}
		b = append(b, item...)
	}
	v.Keep(t.at, b)
	return nil
}

// putLabel sets the field to an integer of any size as int64.
func (t *target) putLabel(v *source.Values, x *Value) error {
	if size := x.DType.Size(); len(x.Data) != size {
		return source.ValueError("%d numbers where one is expected", len(x.Data)/size)
	}
	n, ok := x.DType.Read(x.Data).Int64()
	if !ok {
		return source.ValueError("label %v is larger than any int64", x.DType.Read(x.Data))
	}
	source.PutInt(v, t.at, n)
	return nil
}

// putImages sets the field to the image files of a list.
func (t *target) putImages(v *source.Values, x *Value) error {
	items, record := x.Items, v.Buffer(t.at)
	if !x.List {
		items = [][]byte{x.Data}
	}
	for _, file := range items {
		record = tensor.AppendImage(record, file)
	}
	v.Keep(t.at, record)
	return nil
}

// putItems sets the field to texts as a JSON array, the form of such values from all sources.
func (t *target) putItems(v *source.Values, x *Value) error {
	list := make([]string, 0, len(x.Items))
	for _, b := range x.Items {
		list = append(list, string(b))
	}
	if !x.List {
		list = append(list, string(x.Data))
	}
	b, err := json.Marshal(list)
	v.Keep(t.at, append(v.Buffer(t.at), b...))
	return err
}
