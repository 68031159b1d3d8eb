package dataset

import (
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// ExtentOf returns the number of rows of a field's values, and the bytes of all its arrays. The
// rows of a ragged field are more or fewer than its records.
func ExtentOf(d *store.Dataset, field int) (rows, bytes int64) {
	for _, c := range layout.Of(d).ColumnsOf(field) {
		bytes += c.Rows * int64(c.Spec.RecordBytes())
		if c.Part != layout.Offsets {
			rows = c.Rows
		}
	}
	return rows, bytes
}

// ShapeOf returns a copy of a record's shape, which is never nil: a scalar is [] in JSON and not
// null.
func ShapeOf(f store.Field) tensor.Shape { return append(tensor.Shape{}, f.Shape...) }

// ClassName returns the name of a class, "" for a label without a name.
func ClassName(f store.Field, label int64) string {
	if label >= 0 && label < int64(len(f.Classes)) {
		return f.Classes[label]
	}
	return ""
}

// SplitOf returns the split of a record, by the place at which the record is stored; "" if the
// dataset has no splits or the record is in none.
func SplitOf(m *store.Manifest, record int64) string {
	if m == nil {
		return ""
	}
	for _, s := range m.Splits {
		for _, r := range s.Ranges {
			if record >= r[0] && record < r[1] {
				return s.Name
			}
		}
	}
	return ""
}

// ChannelName returns the name of channel c: red, green and blue if there are three.
func ChannelName(c, of int) string {
	if of == 3 {
		return [3]string{"red", "green", "blue"}[c]
	}
	return "channel " + strconv.Itoa(c)
}

// ShapeText describes the records of a field in a few words: shape, layout, content, and the image
// field that they lie on. The number of rows of a ragged record is written n.
func ShapeText(f tensor.Spec) string {
	text := f.Shape.String()
	switch {
	case f.Ragged:
		text = strings.Replace(tensor.Shape(append(tensor.Shape{-1}, f.Shape...)).String(), "-1", "n", 1)
	case f.Layout == "" && len(f.Shape) == 0:
		text = "scalar"
	}
	for _, word := range []string{f.Layout, f.Content} {
		if word != "" {
			text += " " + word
		}
	}
	if f.Image != "" {
		text += " on " + f.Image
	}
	if f.Instances != "" {
		text += ", of " + f.Instances
	}
	return text
}
