package combine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/loader/internal/padding"
	"github.com/penstock/penstock/tensor"
)

// FillValues are values of fields: a number of any type for all elements of a record, the name of a class, a text, or an
// empty []any for no rows. Whole numbers are exact in every type; other numbers are rounded to a field of floats.
type FillValues map[string]any

// UnmarshalJSON reads values from a JSON object. Numbers stay exact: float64 would round large
// integers.
func (f *FillValues) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	values := map[string]any{}
	if err := d.Decode(&values); err != nil {
		return err
	}
	for name, value := range values {
		if number, ok := value.(json.Number); ok {
			values[name] = exact(number)
		}
	}
	*f = values
	return nil
}

// exact returns a JSON number as int64, uint64 or float64, or unchanged if none of the three
// types holds it exactly.
func exact(n json.Number) any {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return u
	}
	if x, err := n.Float64(); err == nil && strings.ContainsAny(string(n), ".eE") {
		return x
	}
	return n
}

// NewUnion returns the Concat of sources with different fields. It has the fields of all sources, beginning with the
// fields of the first one. Where a source misses a field, its records take the value of fill. Every field that some
// source misses needs a value in fill, and no other field may have one. A field that several sources have must have
// one type, shape and meaning, as in [NewConcat]. The caller still closes the sources.
func NewUnion(fill FillValues, sources ...loader.Source) (*Concat, error) {
	all, err := newUnion(fill, sources)
	if err != nil {
		return nil, fmt.Errorf("combine: concat: %w", err)
	}
	return NewConcat(all...)
}

func newUnion(fill FillValues, sources []loader.Source) (all []loader.Source, err error) {
	var fields []string
	first := map[string]*member{} // the first source that has a field
	for i, src := range sources {
		m, err := newMember(src)
		if err != nil {
			return nil, fmt.Errorf("source %d: %w", i, err)
		}
		for _, spec := range src.Specs() {
			if _, ok := first[spec.Name]; !ok {
				fields, first[spec.Name] = append(fields, spec.Name), &m
			}
		}
	}
	used := map[string]bool{}
	for i, src := range sources {
		var lacking []tensor.Spec
		for _, name := range fields {
			if fieldOf(src.Specs(), name) >= 0 {
				continue
			}
			if _, ok := fill[name]; !ok {
				return nil, fmt.Errorf("source %d has no field %q; give its records a value in fill", i, name)
			}
			used[name] = true
			specs := first[name].Specs()
			lacking = append(lacking, specs[fieldOf(specs, name)])
		}
		v := src
		if lacking != nil {
			classes := func(field string) []string { return first[field].classes(field) }
			more, err := newFilled(lacking, classes, fill, src.Len())
			if err != nil {
				return nil, fmt.Errorf("source %d: %w", i, err)
			}
			if v, err = newZip([]loader.Source{src, more}); err != nil {
				return nil, fmt.Errorf("source %d: %w", i, err)
			}
		}
		if v, err = newSelect(v, Select{Fields: fields}); err != nil {
			return nil, fmt.Errorf("source %d: %w", i, err)
		}
		all = append(all, v)
	}
	for name := range fill {
		if !used[name] {
			return nil, fmt.Errorf("fill: no source lacks a field %q; there are: %s", name, strings.Join(fields, ", "))
		}
	}
	return all, nil
}

// filled is a View of one record, repeated as often as needed: fields that a source misses take no
// memory per record.
type filled struct {
	*View
	made
	id string
}

// newFilled returns n records whose fields have the values of fill.
func newFilled(specs []tensor.Spec, classes func(field string) []string, fill FillValues, n int) (*filled, error) {
	var arrays []Array
	parts := []any{n}
	for _, spec := range specs {
		a, err := oneValue(spec, classes(spec.Name), fill[spec.Name])
		if err != nil {
			return nil, fmt.Errorf("fill: field %q: %w", spec.Name, err)
		}
		arrays, parts = append(arrays, a), append(parts, a.Name, a.Values.Bytes(), a.Offsets)
	}
	one, err := NewArrays(arrays...)
	if err != nil {
		return nil, err
	}
	v, err := newSelect(one, Select{})
	if err != nil {
		return nil, err
	}
	v.kind, v.rows = "fill", rows{n: n, repeats: true}
	return &filled{View: v, id: "fill(" + digest.Of(parts...) + ")"}, nil
}

// ID returns a digest of the values and of the number of records.
func (f *filled) ID() string { return f.id }

// DescribeReads reports that all records are copies of one value.
func (f *filled) DescribeReads(string) (how, why string, resident float64) {
	return "made", "of the values of fill", 1
}

// oneValue returns a field of one record that has the given value.
func oneValue(spec tensor.Spec, classes []string, value any) (Array, error) {
	a := Array{Name: spec.Name, Content: spec.Content, Layout: spec.Layout, Image: spec.Image, Instances: spec.Instances,
		Classes: classes}
	list, isList := value.([]any)
	text, isText := value.(string)
	words := spec.Content == tensor.Text || spec.Content == tensor.SourceName
	switch {
	case value == nil:
		return a, errors.New("null is not a value; give a number, a text or []")
	case spec.Ragged && isText && words:
		a.Values, a.Offsets = tensor.Of(spec, len(text), []byte(text)), []int64{0, int64(len(text))}
		return a, nil
	case spec.Ragged && isList && len(list) == 0:
		a.Values, a.Offsets = tensor.Of(spec, 0, []byte{}), []int64{0, 0}
		return a, nil
	case spec.Ragged && words:
		return a, fmt.Errorf("%v is not a text", value)
	case spec.Ragged && spec.Content == tensor.Image:
		return a, fmt.Errorf("%v is not an image file; in a field of lists of images, [] is no image", value)
	case spec.Ragged:
		return a, fmt.Errorf("%v is not []; its records have any number of rows, and a filled one has none", value)
	case isText && spec.DType.IsFloat() && slices.Contains([]string{"nan", "inf", "-inf"}, text):
		value, _ = strconv.ParseFloat(text, 64)
	case isText && len(classes) == 0:
		return a, fmt.Errorf("%q is not a number", text)
	case isText:
		class := slices.Index(classes, text)
		if class < 0 {
			return a, fmt.Errorf("there is no class %q%s", text, suggest.Hint(text, classes))
		}
		value = class
	}
	data, err := repeatedElement(spec, len(classes), value)
	if err == nil {
		a.Values = tensor.Of(spec, 1, data)
	}
	return a, err
}

// repeatedElement returns a record whose elements all have one value. For a label field the value
// must be a class, or negative, which is no class.
func repeatedElement(spec tensor.Spec, classes int, value any) ([]byte, error) {
	number, whole, err := numberOf(value)
	if err != nil {
		return nil, err
	}
	put := tensor.DType.AppendNearest
	if whole {
		put = tensor.DType.AppendExact
	}
	element, err := put(spec.DType, nil, number)
	if err != nil {
		return nil, err
	}
	if classes > 0 && number.Float64() >= float64(classes) {
		return nil, fmt.Errorf("%v is none of %d classes; give the name of one, a number from 0 to %d, or a negative number "+
			"for no class", value, classes, classes-1)
	}
	out := make([]byte, spec.RecordBytes())
	padding.Fill(out, element)
	return out, nil
}

// numberOf returns a number of Go or JSON, and whether its type is an integer.
func numberOf(value any) (n tensor.Number, whole bool, err error) {
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		return tensor.Int(v.Int()), true, nil
	case v.CanUint():
		return tensor.Uint(v.Uint()), true, nil
	case v.CanFloat():
		return tensor.Float(v.Float()), false, nil
	case value == true:
		return tensor.Int(1), true, nil
	case value == false:
		return tensor.Int(0), true, nil
	}
	if n, ok := value.(json.Number); ok {
		return tensor.Number{}, false, fmt.Errorf("%v is beyond the numbers of 64 bits", n)
	}
	return tensor.Number{}, false, fmt.Errorf("%v is not a number", value)
}
