package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/tensor"
)

// Field describes one field of a dataset.
type Field struct {
	tensor.Spec
	Storage       string         `json:"storage"`                 // NumPy type string of the bytes on disk, such as "<f4"
	Classes       []string       `json:"classes,omitempty"`       // names of the values 0, 1, ... of a label field
	Normalization *Normalization `json:"normalization,omitempty"` // for an image field that has one
}

// MarshalJSON writes the keys in the order of docs/format.md.
func (f Field) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // "<i8" stays as it is
	err := e.Encode(struct {
		Name          string         `json:"name"`
		DType         tensor.DType   `json:"dtype"`
		Shape         tensor.Shape   `json:"shape"`
		Ragged        bool           `json:"ragged,omitempty"`
		Storage       string         `json:"storage"`
		Content       string         `json:"content,omitempty"`
		Layout        string         `json:"layout,omitempty"`
		Image         string         `json:"image,omitempty"`
		Instances     string         `json:"instances,omitempty"`
		Dims          []string       `json:"dims,omitempty"`
		Width         int            `json:"width,omitempty"`
		Features      []string       `json:"features,omitempty"`
		Classes       []string       `json:"classes,omitempty"`
		Normalization *Normalization `json:"normalization,omitempty"`
	}{f.Name, f.DType, append(tensor.Shape{}, f.Shape...), f.Ragged, f.Storage, f.Content, f.Layout, f.Image,
		f.Instances, f.Dims, f.Width, f.Features, f.Classes, f.Normalization})
	return b.Bytes(), err
}

// Normalization is (x/Scale - Mean[c]) / Std[c] for channel c, with x the stored uint8
// value; Mean and Std are in units of x/Scale (0 to 1), as torchvision's.
type Normalization struct {
	Applied bool      `json:"applied"` // true: the stored values are normalized; false: the reader has to do it
	Scale   float64   `json:"scale"`   // 255
	Mean    []float64 `json:"mean"`
	Std     []float64 `json:"std"`
}

// Channels returns how many channels a record has and how many consecutive elements belong
// to a channel before the next channel starts: (3, h*w) for CHW, (3, 1) for HWC. A field
// without layout is one channel.
func (f Field) Channels() (n, run int) { return layout.Channels(f.Spec) }

// Schema is the fields of a dataset, in order.
type Schema struct {
	Fields []Field
}

// Specs returns the part of the schema that a loader needs.
func (s Schema) Specs() []tensor.Spec {
	specs := make([]tensor.Spec, len(s.Fields))
	for i, f := range s.Fields {
		specs[i] = f.Spec
	}
	return specs
}

// Index returns the position of a field, or -1.
func (s Schema) Index(name string) int {
	for i, f := range s.Fields {
		if f.Name == name {
			return i
		}
	}
	return -1
}

func (s Schema) names() (list []string) {
	for _, f := range s.Fields {
		list = append(list, f.Name)
	}
	return list
}

// RecordBytes returns the bytes of one record over all fields, with one row of each ragged
// field.
func (s Schema) RecordBytes() int {
	n := 0
	for _, f := range s.Fields {
		n += f.RecordBytes()
	}
	return n
}

// Validate reports every problem of the schema: no fields, a name that no field can have, a name that is used twice or
// below another field's name, a bad type or shape, a storage type that does not belong to the type, a content that its
// values cannot have, two fields of source names, boxes on an image that does not exist, a normalization that is not
// finite.
func (s Schema) Validate() error {
	if len(s.Fields) == 0 {
		return errors.New("no fields: a dataset needs at least one")
	}
	if len(s.Fields) > layout.MaxFields {
		return fmt.Errorf("%d fields: a dataset has at most %d; choose some, or join fields of one type into one field",
			len(s.Fields), layout.MaxFields)
	}
	var errs []error
	names, sources := make(map[string]bool, len(s.Fields)), 0
	for _, f := range s.Fields {
		errs = append(errs, f.validate())
		if names[f.Name] {
			errs = append(errs, fmt.Errorf("field %q: there are two of that name", f.Name))
		}
		names[f.Name] = true
		if f.Content == tensor.SourceName {
			sources++
		}
		if f.Content == tensor.SourceName && sources > 1 {
			errs = append(errs, fmt.Errorf("field %q: there are two fields of source names", f.Name))
		}
		if f.OnImage() {
			_, err := s.ImageOf(f.Spec)
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, layout.CheckNames(s.Specs()))...)
}

func (f Field) validate() error {
	if err := f.Spec.Validate(); err != nil {
		return err
	}
	if !layout.IsFieldName(f.Name) {
		return fmt.Errorf("field %q: %s", f.Name, layout.FieldNameRule)
	}
	if f.Storage != f.DType.Descr() {
		return fmt.Errorf("field %q: storage %q does not fit %v, which is stored as %q", f.Name, f.Storage, f.DType,
			f.DType.Descr())
	}
	if f.Layout != "" && f.Layout != tensor.CHW && f.Layout != tensor.HWC {
		return fmt.Errorf("field %q: layout %q is neither CHW nor HWC", f.Name, f.Layout)
	}
	if f.Content != "" && !slices.Contains(tensor.Contents(), f.Content) {
		return fmt.Errorf("field %q: content %q is none of %s", f.Name, f.Content, strings.Join(tensor.Contents(), ", "))
	}
	if f.Instances != "" && !layout.IsName(f.Instances) {
		return fmt.Errorf("field %q: instances %q is not a name of letters, digits, _ and -", f.Name, f.Instances)
	}
	if len(f.Dims) > 0 && (f.Ragged || len(f.Dims) != len(f.Shape)+1) {
		return fmt.Errorf("field %q: dims %q do not name the axis of records and the %d axes of %v", f.Name, f.Dims,
			len(f.Shape), f.Shape)
	}
	return f.Normalization.validate(f)
}

// validate refuses normalizations that do not fit the channels of f or have numbers that are not finite. A nil
// Normalization is valid.
func (n *Normalization) validate(f Field) error {
	if n == nil {
		return nil
	}
	channels, _ := f.Channels()
	if len(n.Mean) != channels || len(n.Std) != channels {
		return fmt.Errorf("field %q: normalization has %d means and %d stds for %d channels", f.Name, len(n.Mean),
			len(n.Std), channels)
	}
	for _, x := range append(append([]float64{n.Scale}, n.Mean...), n.Std...) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("field %q: normalization by %v", f.Name, x)
		}
	}
	return nil
}

// NewField returns a field of that type and record shape, with its storage filled in.
func NewField(name string, dtype tensor.DType, shape ...int) Field {
	return Field{Spec: tensor.Spec{Name: name, DType: dtype, Shape: append(tensor.Shape{}, shape...)},
		Storage: dtype.Descr()}
}

// NewRagged returns a field whose records have any number of rows of that type and shape.
func NewRagged(name string, dtype tensor.DType, shape ...int) Field {
	f := NewField(name, dtype, shape...)
	f.Ragged = true
	return f
}
