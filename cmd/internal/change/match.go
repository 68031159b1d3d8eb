package change

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/tensor"
)

// like returns the field for new values of an existing column, and sets v.change to the conversion
// that the values need. The field keeps everything that the manifest says about the old column:
// type, classes, layout, normalization. A loader that was written for the column then works on with
// the new values.
//
// Class names of the new values become the numbers that the old classes have, and new names get the
// next numbers. Numbers are converted if castable allows it. All other changes of type need
// --change-type or --fields.
func (f *putFlags) like(v *values, old, field store.Field) (store.Field, error) {
	switch {
	case len(old.Classes) > 0 && len(field.Classes) > 0:
		old.Classes = slices.Clone(old.Classes)
		numbers := make([]int64, len(field.Classes))
		for i, name := range field.Classes {
			k := slices.Index(old.Classes, name)
			if k < 0 {
				k, old.Classes = len(old.Classes), append(old.Classes, name)
			}
			numbers[i] = int64(k)
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

// typeName returns the type of a field for an error message.
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

// renumber replaces class numbers of type from by numbers[class], in type to. A number outside of
// the list of classes means that the source is corrupt, since its own manifest has the list.
func renumber(value []byte, from tensor.DType, numbers []int64, to tensor.DType) (out []byte, err error) {
	for ; len(value) > 0 && err == nil; value = value[from.Size():] {
		n, ok := from.Read(value).Int64()
		if !ok || n < 0 || n >= int64(len(numbers)) {
			return nil, fmt.Errorf("class %s of %d: %w", from.Text(value), len(numbers), store.ErrCorrupt)
		}
		out, err = to.AppendExact(out, tensor.Int(numbers[n]))
	}
	return out, err
}

// classOf returns the stored number of a class name. The error lists at most 20 of the known
// classes.
func classOf(f store.Field, name string) ([]byte, error) {
	i := slices.Index(f.Classes, name)
	if i < 0 {
		return nil, fmt.Errorf("%q is not a class of %s: %q", name, f.Name, f.Classes[:min(len(f.Classes), 20)])
	}
	return f.DType.AppendExact(nil, tensor.Int(int64(i)))
}

// match sets v.order to the row of VALUES for each record of the dataset, by the key column of
// both. One row may serve many records (a table of classes, for example). Rows that no record
// matches are only noted; records without a row get a value from fill.
//
// mine is opened for the key column alone, and its deleted records are left out, so that v.order
// has one entry per remaining record, which is the order in which the change asks for values.
func (f *putFlags) match(cmd *cobra.Command, of *datasetarg.Generations, v *values, old *store.Manifest,
	field store.Field) (_ store.Field, err error) {
	if !slices.ContainsFunc(v.src.fields, func(g store.Field) bool { return g.Name == f.on }) {
		err := fmt.Errorf("%s has no field %s to match records by", v.src.path, f.on)
		if f.fields != "" {
			err = fmt.Errorf("%w; if it has one, list it in --fields, too", err)
		}
		return field, err
	}
	mine, end, err := of.Dataset.Records(old.Generation, []string{f.on}, edit.Live)
	if err != nil {
		return field, err
	}
	defer func() { err = errors.Join(err, end()) }()
	join := combine.Join{On: f.on, How: combine.JoinLeft, Many: true}
	found, err := combine.Match(cmd.Context(), mine, v.src.Source, join)
	if err != nil {
		return field, fmt.Errorf("--on %s: %s, the left side, and %s, the right side: %w", f.on, of.Path, v.src.path, err)
	}
	v.order = found.Of
	if len(found.Left) > 0 {
		if field, err = f.fill(cmd.Context(), of, v, old, field, found.Left); err != nil {
			return field, err
		}
	}
	if n := len(found.Right); n > 0 {
		cli.ProgressOf(cmd, "column").Note(fmt.Sprintf("keys of %s that no record of %s has: %s",
			v.src.path, of.Path, units.Count(int64(n))))
	}
	return field, nil
}

// fill sets v.missing, the value of records that VALUES does not mention: the value of --missing
// or, when a column is set, the old value. A column that is added has no old values, so add fails
// without --missing.
//
// The old values are read from the column as it was before the change, one record at a time, and
// need the new type: v.missing copies bytes and converts nothing. src.close is extended to close
// the opened column too, since the values are read until src is closed.
func (f *putFlags) fill(ctx context.Context, of *datasetarg.Generations, v *values, old *store.Manifest,
	field store.Field, without []int) (store.Field, error) {
	if f.fills {
		value, err := constant(field, f.missing)
		v.missing = func(int64) ([]byte, error) { return value, err }
		return field, err
	}
	i := old.Schema().Index(field.Name)
	if i < 0 {
		return field,
			fmt.Errorf("%s has no record for %d records of %s, the first of which is record %d; give their value with "+
				"--missing", v.src.path, len(without), of.Path, without[0])
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

// constant returns the value of a record whose elements all are the number in text, or which is the
// text. For a label, text may be the name of a class.
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
	for range f.RecordBytes() / f.DType.Size() {
		if value, err = f.DType.AppendParsed(value, text); err != nil {
			return nil, fmt.Errorf("--missing: %w, the type of %s", err, f.Name)
		}
	}
	return value, nil
}
