package transforms

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/tensor"
)

// opName returns the name of an operation in recipes, which is the name of its type.
func opName(t any) string { return reflect.TypeOf(t).Name() }

// decoder turns one entry of a recipe into an operation with its defaults.
type decoder[T any] func(entry []byte) (T, error)

// decode is the decoder for the type Op.
func decode[T, Op any](entry []byte) (resolved T, err error) {
	var op Op
	if err := decodeStrict(entry, &op); err != nil {
		return resolved, err
	}
	return resolve(any(op).(T))
}

// marshalRecipe writes a list with one object per operation: its name under "op", and every
// effective parameter. A recipe identifies a pipeline in a loader's State, so that defaults are
// written out.
func marshalRecipe[T any](ops []T) ([]byte, error) {
	out := []byte{'['}
	for i, t := range ops {
		body, err := json.Marshal(t)
		if err != nil {
			return nil, fmt.Errorf("transform %s: %w", opName(t), err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"op":"`+opName(t)+`"`...)
		if len(body) > 2 {
			out = append(out, ',')
		}
		out = append(out, body[1:]...)
	}
	return append(out, ']'), nil
}

// parseRecipe reads the JSON that marshalRecipe writes. The error joins all faults of the recipe.
func parseRecipe[T any](recipe []byte, known map[string]decoder[T]) ([]T, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(recipe, &entries); err != nil {
		return nil, fmt.Errorf("transforms: the recipe is not a JSON list of objects: %w", err)
	}
	var errs []error
	ops := make([]T, 0, len(entries))
	for i, entry := range entries {
		t, err := parseEntry(entry, known)
		if err != nil {
			errs = append(errs, fmt.Errorf("recipe entry %d: %w", i+1, err))
			continue
		}
		ops = append(ops, t)
	}
	return ops, errors.Join(errs...)
}

func parseEntry[T any](entry []byte, known map[string]decoder[T]) (t T, err error) {
	var head struct {
		Op *string `json:"op"`
	}
	if err := json.Unmarshal(entry, &head); err != nil {
		return t, err
	}
	if head.Op == nil {
		return t, errors.New(`no "op" names the transform`)
	}
	decode, ok := known[*head.Op]
	if !ok {
		return t, fmt.Errorf("unknown transform %q%s", *head.Op, suggest.Hint(*head.Op, slices.Sorted(maps.Keys(known))))
	}
	if t, err = decode(entry); err != nil {
		return t, fmt.Errorf("transform %s: %w", *head.Op, err)
	}
	return t, nil
}

// isNumber reports whether a JSON value is a number.
func isNumber(v json.RawMessage) bool { return v[0] == '-' || v[0] >= '0' && v[0] <= '9' }

// decodeStrict reads an entry into the struct at t, and refuses unknown keys: a misspelt parameter
// would otherwise keep its default without a word. A single number is accepted for a list of one
// number.
func decodeStrict(entry []byte, t any) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(entry, &keys); err != nil {
		return err
	}
	known := jsonKeys(reflect.TypeOf(t).Elem())
	delete(keys, "op")
	for key, value := range keys {
		field := slices.Index(known, key)
		if field < 0 {
			return fmt.Errorf("unknown parameter %q%s", key, suggest.Hint(key, known))
		}
		kind := reflect.TypeOf(t).Elem().Field(field).Type
		switch {
		case kind.Kind() == reflect.Slice && isNumber(value):
			keys[key] = slices.Concat([]byte("["), value, []byte("]"))
		case kind.Kind() == reflect.String && string(value) == `""`, kind.Kind() == reflect.Slice && kind.Name() == "" &&
			string(value) == "[]":
			return fmt.Errorf("%s is empty; for its default, leave it out", key)
		}
	}
	body, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err = dec.Decode(t)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s is a %s; it must be %s", wrong.Field, wrong.Value, wordOf(wrong.Type))
	}
	return err
}

// wordOf names a parameter's type for readers who do not write Go.
func wordOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return "a list, each " + wordOf(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Struct, reflect.Map, reflect.Interface, reflect.Pointer:
		return "an object"
	}
	return "a whole number"
}

func jsonKeys(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return keys
}

func init() {
	Register[ToTensor]()
	Register[PILToTensor]()
	Register[ToImage]()
	Register[ToDtype]()
	Register[ConvertImageDtype]()
}

// The transforms of this file are torchvision's names for ToLayout and ConvertDType, which they
// become in a Pipeline and in the recipe that it writes. ToTensor alone stands for both
// transforms.

// ToTensor makes the record CHW, and float32 between 0 and 1: bit for bit torchvision's result for an image of bytes.
type ToTensor struct{}

// Build sets the layout and adds the conversion.
func (ToTensor) Build(p *Plan) error {
	p.SetLayout(CHW)
	return p.ConvertScaled(tensor.Float32)
}

// PILToTensor is torchvision's name for ToLayout to CHW.
type PILToTensor struct{}

// Resolve returns the ToLayout that PILToTensor stands for, so that equal pipelines have one
// recipe.
func (PILToTensor) Resolve() (Transform, error) { return ToLayout{CHW}, nil }

// Build sets the layout.
func (PILToTensor) Build(p *Plan) error { return ToLayout{CHW}.Build(p) }

// ToImage is torchvision's name for ToLayout to CHW.
type ToImage struct{}

// Resolve returns the ToLayout that ToImage stands for.
func (ToImage) Resolve() (Transform, error) { return ToLayout{CHW}, nil }

// Build sets the layout.
func (ToImage) Build(p *Plan) error { return ToLayout{CHW}.Build(p) }

// ToDtype is torchvision's name for ConvertDType. It scales only if Scale is true.
type ToDtype struct {
	DType tensor.DType `json:"dtype"` // as in ConvertDType
	Scale bool         `json:"scale"` // divide by 255
}

// Resolve returns the ConvertDType that ToDtype stands for.
func (t ToDtype) Resolve() (Transform, error) {
	return resolve[Transform](ConvertDType{DType: t.DType, NoScale: !t.Scale})
}

// Build adds the conversion.
func (t ToDtype) Build(p *Plan) error { return p.convert(t.DType, scaling(t.Scale)) }

// ConvertImageDtype is torchvision's name for a scaling ConvertDType.
type ConvertImageDtype struct {
	DType tensor.DType `json:"dtype" default:"float32"` // as in ConvertDType; Invalid means Float32
}

// Resolve returns the ConvertDType that ConvertImageDtype stands for.
func (t ConvertImageDtype) Resolve() (Transform, error) {
	return resolve[Transform](ConvertDType{DType: t.DType})
}

// Build adds the conversion.
func (t ConvertImageDtype) Build(p *Plan) error { return p.ConvertScaled(t.DType) }
