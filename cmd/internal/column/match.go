package column

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/tensor"
)

// like returns the field of values that replace those of old, which stay what they were: type, classes and what else
// is known of old. Names of classes become the numbers that old has for them. Another type has to be asked for.
func (f *putFlags) like(v *values, old, field store.Field) (store.Field, error) {
	switch {
	case len(old.Classes) > 0 && len(field.Classes) > 0:
		old.Classes = slices.Clone(old.Classes)
		numbers := make([]uint64, len(field.Classes))
		for i, name := range field.Classes {
			k := slices.Index(old.Classes, name)
			if k < 0 {
				k, old.Classes = len(old.Classes), append(old.Classes, name)
			}
			numbers[i] = uint64(k)
		}
		v.change = func(value []byte) ([]byte, error) { return renumber(value, field.DType, numbers, old.DType) }
		return old, nil
	case len(old.Classes) > 0 && field.Content == tensor.Text && !old.Ragged:
		v.change = func(value []byte) ([]byte, error) { return classOf(old, string(value)) }
		return old, nil
	case f.changeType || f.fields != "":
		if same(old, field) && old.DType == field.DType {
			return old, nil
		}
		return field, nil
	case same(old, field) && old.DType == field.DType:
		return old, nil
	case same(old, field) && castable(field.DType, old.DType):
		v.change = func(value []byte) ([]byte, error) { return cast(value, field.DType, old.DType) }
		return old, nil
	}
	return field, fmt.Errorf("column %s is %s, and the values are %s: to give it their type, add --change-type; or add "+
		"them under another name, by penstock column add", old.Name, typeName(old), typeName(field))
}

// same reports whether fields have the same shape.
func same(a, b store.Field) bool { return a.Ragged == b.Ragged && slices.Equal(a.Shape, b.Shape) }

func typeName(f store.Field) string {
	switch {
	case len(f.Classes) > 0:
		return "a class, of " + units.Count(int64(len(f.Classes)))
	case f.Content == tensor.Text:
		return "text"
	case f.Ragged:
		return fmt.Sprintf("%v of different lengths", f.DType)
	case len(f.Shape) > 0:
		return fmt.Sprintf("%v of shape %d", f.DType, f.Shape)
	}
	return f.DType.String()
}

// renumber returns numbers of classes, of type from, as others of type to.
func renumber(value []byte, from tensor.DType, numbers []uint64, to tensor.DType) (out []byte, err error) {
	for ; len(value) > 0; value = value[from.Size():] {
		var word [8]byte
		copy(word[:], value[:from.Size()])
		n := binary.LittleEndian.Uint64(word[:])
		if n >= uint64(len(numbers)) {
			return nil, fmt.Errorf("class %d of %d: %w", n, len(numbers), store.ErrCorrupt)
		}
		out = appendNumber(out, to, numbers[n])
	}
	return out, nil
}

// appendNumber appends an integer of a type, which holds it: the schema has as many classes as fit.
func appendNumber(out []byte, d tensor.DType, n uint64) []byte {
	return binary.LittleEndian.AppendUint64(out, n)[:len(out)+d.Size()]
}

func classOf(f store.Field, name string) ([]byte, error) {
	i := slices.Index(f.Classes, name)
	if i < 0 {
		return nil, fmt.Errorf("%q is not a class of %s: %q", name, f.Name, f.Classes[:min(len(f.Classes), 20)])
	}
	return appendNumber(nil, f.DType, uint64(i)), nil
}

// match orders the values by a key that the dataset and the table have.
func (f *putFlags) match(cmd *cobra.Command, of *datasetarg.Generations, v *values, old *store.Manifest,
	field store.Field) (store.Field,
	error) {
	rows, err := v.src.keys(cmd.Context(), f.on)
	if err != nil {
		if f.fields != "" {
			err = fmt.Errorf("%w; if it has one, list it in --fields, too", err)
		}
		return field, err
	}
	ds, end, err := of.Dataset.Records(old.Generation, []string{f.on}, edit.Live)
	if err != nil {
		return field, err
	}
	mine := &table{ds, of.Path, ds.Schema().Fields, end}
	err = v.match(cmd.Context(), mine, f.on, rows)
	if err = errors.Join(err, end()); err != nil {
		return field, err
	}
	if i := slices.Index(v.order, -1); i >= 0 {
		if field, err = f.fill(cmd.Context(), of, v, old, field, i); err != nil {
			return field, err
		}
	}
	if n := len(rows.records) - rows.used; n > 0 {
		cli.NewProgress(cmd.ErrOrStderr(), "column",
			f.quiet).Note(fmt.Sprintf("keys of %s that no record of %s has: %s",
			v.src.path, of.Path, units.Count(int64(n))))
	}
	return field, nil
}

// keys are the records of a table by the value of a field.
type keys struct {
	field   store.Field
	path    string
	records map[string]int
	used    int
}

// keys reads the values of a field, all of which must be different.
func (t *table) keys(ctx context.Context, name string) (*keys, error) {
	i := slices.IndexFunc(t.fields, func(f store.Field) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s has no field %s to match records by", t.path, name)
	}
	k := &keys{field: t.fields[i], path: t.path, records: make(map[string]int, t.Len())}
	err := t.each(ctx, t.fields[i], func(record int, value []byte) error {
		if first, twice := k.records[string(value)]; twice {
			return fmt.Errorf("%s: records %d and %d have one key, %s", t.path, first, record, shownKey(k.field, value))
		}
		k.records[string(value)] = record
		return nil
	})
	return k, err
}

// each calls f with the value of a field of every record.
func (t *table) each(ctx context.Context, f store.Field, do func(record int, value []byte) error) error {
	var b batch
	step := max(1, min(1<<16, readBytes/f.RecordBytes()/16))
	for at := 0; at < t.Len(); at += step {
		b.indices = b.indices[:0]
		for i := at; i < min(t.Len(), at+step); i++ {
			b.indices = append(b.indices, i)
		}
		if err := b.gather(ctx, t, f); err != nil {
			return err
		}
		for k, i := range b.indices {
			if err := do(i, b.Value(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// shownKey returns a key as people write it: a text, a number, or a list of numbers.
func shownKey(f store.Field, value []byte) string {
	if f.Ragged && f.DType == tensor.Uint8 {
		return fmt.Sprintf("%q", value)
	}
	var list []string
	for ; len(value) > 0; value = value[f.DType.Size():] {
		list = append(list, shownNumber(f.DType, value[:f.DType.Size()]))
	}
	if len(list) == 1 && !f.Ragged && len(f.Shape) == 0 {
		return list[0]
	}
	return "[" + strings.Join(list, " ") + "]"
}
func shownNumber(d tensor.DType, value []byte) string {
	var word [8]byte
	copy(word[:], value)
	n := binary.LittleEndian.Uint64(word[:])
	unused := 64 - 8*d.Size() // bits
	switch d {
	case tensor.Bool:
		return strconv.FormatBool(n != 0)
	case tensor.Float16:
		return fmt.Sprint(tensor.Half(n).Float32())
	case tensor.BFloat16:
		return fmt.Sprint(tensor.Brain(n).Float32())
	case tensor.Float32:
		return fmt.Sprint(math.Float32frombits(uint32(n)))
	case tensor.Float64:
		return fmt.Sprint(math.Float64frombits(n))
	case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
		return strconv.FormatInt(int64(n<<unused)>>unused, 10)
	}
	return strconv.FormatUint(n, 10)
}

// match finds the record of the table for each of the dataset.
func (v *values) match(ctx context.Context, mine *table, name string, rows *keys) error {
	f := mine.fields[0]
	if f.DType != rows.field.DType || f.Ragged != rows.field.Ragged || !slices.Equal(f.Shape, rows.field.Shape) {
		return fmt.Errorf("%s is %v %v in %s, and %v %v in %s; give its type there with --fields", name, f.DType,
			f.Shape,
			mine.path, rows.field.DType, rows.field.Shape, rows.path)
	}
	v.order = make([]int, 0, mine.Len())
	used := make(map[int]bool)
	return mine.each(ctx, f, func(_ int, value []byte) error {
		at, ok := rows.records[string(value)]
		if !ok {
			at = -1
		} else if !used[at] {
			used[at] = true
			rows.used++
		}
		v.order = append(v.order, at)
		return nil
	})
}

// fill says which values records have that the table does not have: old ones, or that of --missing.
func (f *putFlags) fill(ctx context.Context, of *datasetarg.Generations, v *values, old *store.Manifest,
	field store.Field,
	first int) (
	store.Field, error) {
	if f.missing != "" {
		value, err := constant(field, f.missing)
		v.missing = func(int64) ([]byte, error) { return value, err }
		return field, err
	}
	i := old.Schema().Index(field.Name)
	if i < 0 {
		return field,
			fmt.Errorf("%s has no record for %d records of %s, the first of which is record %d; give their value with "+
				"--missing", v.src.path, count(v.order, -1), of.Path, first)
	}
	if was := old.Fields[i]; was.DType != field.DType || was.Ragged != field.Ragged || !slices.Equal(was.Shape,
		field.Shape) {
		return field,
			fmt.Errorf("%s is %v %v in %s, and %v %v in %s, and records that are not there keep their values; "+
				"give its type there with --fields", field.Name, was.DType, was.Shape, of.Path, field.DType, field.Shape,
				v.src.path)
	}
	ds, end, err := of.Dataset.Records(old.Generation, []string{field.Name}, edit.Live)
	if err != nil {
		return field, err
	}
	mine := &table{ds, of.Path, ds.Schema().Fields, end}
	closing := v.src.close
	v.src.close = func() error { return errors.Join(closing(), end()) }
	var b batch
	v.missing = func(record int64) ([]byte, error) {
		b.indices = append(b.indices[:0], int(record))
		err := b.gather(ctx, mine, mine.fields[0])
		if err != nil {
			return nil, err
		}
		return b.Value(0), nil
	}
	return field, nil
}

func count(list []int, n int) (k int) {
	for _, x := range list {
		if x == n {
			k++
		}
	}
	return k
}

// constant returns the value of a record all of whose elements are a number, or that is a text.
func constant(f store.Field, text string) (value []byte, err error) {
	if f.Ragged {
		if f.DType == tensor.Uint8 && len(f.Shape) == 0 {
			return []byte(text), nil
		}
		return nil,
			fmt.Errorf("--missing %s: %s has records of different lengths, which are empty where there is none; "+
				"leave them out of DATASET, or give each a row", text, f.Name)
	}
	if len(f.Classes) > 0 && slices.Contains(f.Classes, text) {
		return classOf(f, text)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("--missing %s: not a number, which %s holds", text, f.Name)
	}
	one, err := element(f, x)
	for range f.RecordBytes() / f.DType.Size() {
		value = append(value, one...)
	}
	return value, err
}

// element returns a number as an element of a field.
func element(f store.Field, x float64) ([]byte, error) {
	size := f.DType.Size()
	b := make([]byte, 8)
	switch {
	case f.DType == tensor.Float64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(x))
	case f.DType == tensor.Float32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(x)))
	case x == 0: // of every type
	case f.DType == tensor.Float16 || f.DType == tensor.BFloat16:
		return nil, fmt.Errorf("--missing %v: of %v only 0 can be given", x, f.DType)
	case x != math.Trunc(x) || math.Abs(x) > 1<<53:
		return nil, fmt.Errorf("--missing %v is not a number that %v holds", x, f.DType)
	default:
		binary.LittleEndian.PutUint64(b, uint64(int64(x)))
		if err := fits(f.DType, int64(x)); err != nil {
			return nil, fmt.Errorf("--missing %w", err)
		}
	}
	return b[:size], nil
}
