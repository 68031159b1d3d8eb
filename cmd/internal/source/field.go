package source

import (
	"encoding/binary"
	"strings"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Names of the fields of a source of labelled images.
const (
	imagesField = "images"
	labelsField = "labels"
)

// array returns a field of numbers.
func array(name string, dtype tensor.DType, shape ...int) Field {
	return Field{Field: store.NewField(name, dtype, shape...)}
}

// rows returns a field of any number of rows of that shape.
func rows(name string, dtype tensor.DType, shape ...int) Field {
	return Field{Field: store.NewRagged(name, dtype, shape...)}
}

// content returns a field of bytes that are store.Image or store.Text.
func content(name, content string) Field {
	f := rows(name, tensor.Uint8)
	f.Content = content
	return f
}

// classLabel returns a field of class numbers.
func classLabel(name string, classes []string) Field {
	f := array(name, tensor.Int64)
	f.Classes = classes
	return f
}

// Image reports whether the values are files of images.
func (f Field) Image() bool { return f.Content == store.Image }

// fieldName makes a field's name of any text: letters, digits, _ and - stay.
func fieldName(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, text)
	clean = strings.TrimLeft(clean, "-")
	if clean == "" {
		return "data"
	}
	return clean[:min(len(clean), 100)]
}

// putInt makes an int64 the value of a field.
func putInt(v *Values, field int, x int64) {
	binary.LittleEndian.PutUint64(v.Make(field, 8), uint64(x))
}
