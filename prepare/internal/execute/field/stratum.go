package field

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
)

// Strata asks that --split divides each class by the same shares.
type Strata struct {
	Wanted bool
	Field  string // the field of the classes; "" is the only field that is known to hold classes
}

// AnyField is the value of --stratify without a field.
const AnyField = "true"

// Set implements pflag.Value: true, false or the name of a field.
func (s *Strata) Set(text string) error {
	*s = Strata{Wanted: text != "" && text != "false"}
	if s.Wanted && text != AnyField {
		s.Field = text
	}
	return nil
}

// String returns the text that Set reads; "" for none.
func (s Strata) String() string {
	if s.Wanted && s.Field == "" {
		return AnyField
	}
	return s.Field
}

// Type implements pflag.Value. bool makes the value of the flag optional.
func (Strata) Type() string { return "bool" }

// Stratum is the field with the classes of --stratify. The zero value means that no field was named.
type Stratum struct {
	Name  string
	at    int  // position in the schema
	size  int  // bytes of a value
	named bool // the classes have names, so their number is known
}

// MaxStrata is the largest number of classes without names.
const MaxStrata = 1 << 16

// Class returns the class of a record; 0 without a field.
func (t Stratum) Class(r *store.Record) int64 {
	if t.Name == "" {
		return 0
	}
	return t.Of(r.Values[t.at])
}

// CheckNumber returns an error if there are too many classes after n for values that should be classes.
func (t Stratum) CheckNumber(n int) error {
	if t.Name == "" || t.named || n < MaxStrata {
		return nil
	}
	return fmt.Errorf("--stratify: the field %s has more than %d different values, which are not classes; leave "+
		"--stratify out, or make a label of some ranges of values", t.Name, MaxStrata)
}

// Of returns the class for a value of the field.
func (t Stratum) Of(value []byte) int64 {
	var word [8]byte
	// Without the sign: only equality matters for a class.
	copy(word[:], value[:t.size])
	return int64(binary.LittleEndian.Uint64(word[:]))
}

// holdsClasses reports whether the values of a field can be class numbers: single integers.
func holdsClasses(f store.Field) bool {
	return !f.Ragged && len(f.Shape) == 0 && !f.DType.IsFloat()
}

// Find returns the field of a schema with the classes. The fields in declared are known to hold classes.
func (s Strata) Find(schema store.Schema, declared []string) (Stratum, error) {
	if !s.Wanted {
		return Stratum{}, nil
	}
	if s.Field != "" {
		return stratumNamed(schema, s.Field)
	}
	var labels, integers, names []string
	for _, f := range schema.Fields {
		names = append(names, f.Name)
		if !holdsClasses(f) {
			continue
		}
		integers = append(integers, f.Name)
		if f.Classes != nil || slices.Contains(declared, f.Name) || column.LabelName(f.Name) {
			labels = append(labels, f.Name)
		}
	}
	list := func(names []string) string { return strings.Join(source.Shorten(names, 6), ", ") }
	switch {
	case len(labels) == 1:
		return stratumNamed(schema, labels[0])
	case len(labels) > 1:
		return Stratum{}, fmt.Errorf("--stratify: several fields hold classes, %s; choose one: --stratify=%s",
			list(labels), labels[0])
	case len(integers) > 0:
		return Stratum{}, fmt.Errorf("--stratify: no field is known to hold classes, but %s could: --stratify=%s",
			list(integers), integers[0])
	}
	return Stratum{}, fmt.Errorf("--stratify: no field holds classes, which are integers; there are %s; leave "+
		"--stratify out, or make a column of a table a label: --fields 'COLUMN:label'", list(names))
}

// stratumNamed returns the field that --stratify=NAME names. It must have one integer a record, the record's class.
func stratumNamed(s store.Schema, name string) (Stratum, error) {
	at := s.Index(name)
	if at < 0 {
		var names []string
		for _, f := range s.Fields {
			names = append(names, f.Name)
		}
		return Stratum{}, fmt.Errorf("--stratify=%s: there is no field %q%s", name, name, suggest.Hint(name, names))
	}
	f := s.Fields[at]
	if !holdsClasses(f) {
		return Stratum{}, fmt.Errorf("--stratify=%s: the field is not one integer a record, as classes are; make it a "+
			"label: --fields '%s:label'", name, name)
	}
	return Stratum{name, at, f.DType.Size(), f.Classes != nil}, nil
}
