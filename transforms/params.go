package transforms

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/suggest"
)

// Tags of the fields of a transform declare its parameters, next to their names in recipes:
//
//	default:"0.5"               the value of a parameter that is left out, as a recipe has it
//	in:"[0,1)"                  the interval of a number; a round bracket excludes the limit
//	choices:"nearest bilinear"  the words, or numbers, that there are
//	is:"range 1"                one of the kinds of parameters below, with its limit

// resolve returns an operation with every default filled in. The error joins everything that is
// wrong with its parameters. A method Resolve checks what tags cannot declare, and sees parameters
// with their defaults.
func resolve[T any](op T) (T, error) {
	v := reflect.New(reflect.TypeOf(op)).Elem()
	v.Set(reflect.ValueOf(op))
	var errs []error
	if v.Kind() == reflect.Struct {
		for field, value := range v.Fields() {
			errs = append(errs, resolveParameter(field.Tag, value))
		}
	}
	op = v.Interface().(T)
	if err := errors.Join(errs...); err != nil {
		return op, err
	}
	if r, ok := any(op).(interface{ Resolve() (T, error) }); ok {
		return r.Resolve()
	}
	return op, nil
}

// resolveParameter fills in the default of one parameter, and checks its value. A wrong tag is a
// programming error, and panics.
func resolveParameter(tag reflect.StructTag, v reflect.Value) error {
	name, _, _ := strings.Cut(tag.Get("json"), ",")
	if text := tag.Get("default"); text != "" && v.IsZero() {
		if err := setDefault(v, text); err != nil {
			panic("transforms: default of " + name + ": " + err.Error())
		}
	}
	if kind := tag.Get("is"); kind != "" {
		return checkKind(kind, name, v.Addr().Interface())
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if limits := tag.Get("in"); limits != "" {
		return checkInterval(limits, name, v)
	}
	if choices := strings.Fields(tag.Get("choices")); len(choices) > 0 {
		return checkChoice(choices, name, v)
	}
	return nil
}

// setDefault sets a parameter to the value in its tag. The value is JSON, as in a recipe, except
// that a text stands without quotes.
func setDefault(v reflect.Value, text string) error {
	if _, named := v.Addr().Interface().(encoding.TextUnmarshaler); named || v.Kind() == reflect.String {
		text = strconv.Quote(text)
	}
	return json.Unmarshal([]byte(text), v.Addr().Interface())
}

// checkInterval refuses a number outside of an interval such as [0,1] or (0,inf). The message says
// the limits in words; a NaN is in no interval.
func checkInterval(text, name string, v reflect.Value) error {
	first, second, _ := strings.Cut(text[1:len(text)-1], ",")
	low, high := limit(first), limit(second)
	x := v.Convert(reflect.TypeFor[float64]()).Float()
	above, below := x > low || text[0] == '[' && x == low, x < high || text[len(text)-1] == ']' && x == high
	if above && below {
		return nil
	}
	words := first + " to " + second
	switch {
	case first == "-inf" && second == "inf":
		words = "finite"
	case first == "-inf":
		words = "at most " + second
	case text[0] == '(' && second == "inf":
		words = "positive"
	case text[0] == '(':
		words = "positive, below " + second
	case second == "inf":
		words = first + " or more"
	}
	return fmt.Errorf("%s %v must be %s", name, v, words)
}

// limit parses a limit of a tag.
func limit(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("transforms: limit of a parameter: " + err.Error())
	}
	return x
}

// checkChoice refuses a value that is not among the choices.
func checkChoice(choices []string, name string, v reflect.Value) error {
	value := fmt.Sprint(v)
	if slices.Contains(choices, value) {
		return nil
	}
	form := "%s %v %s"
	if v.Kind() == reflect.String {
		form = "%s %q %s"
	}
	return fmt.Errorf(form, name, value, suggest.OneOf(value, choices))
}

// checkKind checks the parameter at p, whose kind may be followed by a limit, and replaces short
// forms by the full one: a recipe with every parameter spelled out does not depend on defaults of a
// later version.
func checkKind(kind, name string, p any) error {
	kind, most, _ := strings.Cut(kind, " ")
	switch p := p.(type) {
	case *string:
		if choices := namedChoices[kind]; choices != nil {
			return checkChoice(choices, name, reflect.ValueOf(*p))
		}
		if name, ok := openCVFilters[*p]; ok && kind == "opencv" {
			*p = name
		}
		_, err := kernel.ParseFilter(*p)
		return err
	case *[]int:
		return kindsOfInts[kind](p)
	case *[]Axis:
		return checkAxes(*p)
	}
	return kindsOfFloats[kind](name, p.(*[]float64), most)
}

// namedChoices are lists of words that are too long for a tag.
var namedChoices = map[string][]string{"anchor": anchors, "corner": corners, "img2dataset": img2datasetModes}

// kindsOfInts are the kinds of parameters that are lists of whole numbers.
var kindsOfInts = map[string]func(v *[]int) error{
	"size":    func(v *[]int) error { return checkSize(*v) },
	"box":     resolveBox, // a size, which becomes height and width
	"fill":    func(v *[]int) error { return checkFill(*v) },
	"padding": resolvePadding,
}

// kindsOfFloats are the kinds of parameters that are lists of numbers, with a limit of some.
var kindsOfFloats = map[string]func(name string, v *[]float64, most string) error{
	"range":   func(name string, v *[]float64, most string) error { return checkRange(name, *v, limit(most)) },
	"pair":    resolvePair,
	"degrees": func(name string, v *[]float64, _ string) error { return resolveSymmetric(name, v) },
	"shares":  func(name string, v *[]float64, _ string) error { return checkTwoShares(name, *v) },
	"center":  func(_ string, v *[]float64, _ string) error { return checkCenter(*v) },
	"shear":   func(_ string, v *[]float64, _ string) error { return resolveShear(v) },
}
