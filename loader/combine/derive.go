package combine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/tensor"
)

// Derive is a field that is computed from other fields, element by element:
//
//	combine.Derive{Name: "ndvi", Expression: "(nir - red) / (nir + red)"}
//
// An expression is an [expr.Formula]. Shapes of records are broadcast as in NumPy. The result is
// computed in float32 if each field is float32 or has fewer than 32 bits, and in float64 otherwise;
// comparisons have type bool.
type Derive struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// NewDerive returns the View of the fields of src and the fields derived from them. The caller still closes src.
func NewDerive(src loader.Source, fields ...Derive) (*View, error) {
	v, err := newDerive(src, fields)
	if err != nil {
		return nil, fmt.Errorf("combine: derive: %w", err)
	}
	return v, nil
}

func newDerive(src loader.Source, fields []Derive) (*View, error) {
	if len(fields) == 0 {
		return nil, errors.New("no expressions")
	}
	sources := []loader.Source{src}
	for k, f := range fields {
		earlier := func(d Derive) bool { return d.Name == f.Name }
		if fieldOf(src.Specs(), f.Name) >= 0 || slices.ContainsFunc(fields[:k], earlier) {
			return nil, fmt.Errorf("two fields have the name %q; choose another name", f.Name)
		}
		d, err := newDerived(src, f)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", f.Name, err)
		}
		sources = append(sources, d)
	}
	v, err := newZip(sources)
	if err != nil {
		return nil, err
	}
	v.kind = "derive"
	return v, nil
}

// derived is a Source with one computed field, next to its own Source in a View. The View asks the
// Source for leases and identities. If derived asked too, each View over another View would double
// the number of calls.
type derived struct {
	unheld
	made
	base   member
	by     Derive
	how    *expr.Formula
	spec   tensor.Spec
	single bool // in float32
	fields []derivedField
	needs  int // expressions that are computed for it
	pools  struct{ single, double sync.Pool }
}

// maxWork limits how many expressions are computed for a field, including the expressions that its
// own fields need. If each field were computed from two fields of the level below, a field would
// take 2^32 expressions at the depth that view files may have.
const maxWork = 1 << 12

// costed is a Source that knows how many expressions it computes for a field.
type costed interface{ work(field string) int }

// workOf returns how many expressions a Source computes for a field.
func workOf(src loader.Source, field string) int {
	if c, ok := src.(costed); ok {
		return c.work(field)
	}
	return 0
}

// derivedField is a field that an expression uses.
type derivedField struct {
	spec   tensor.Spec
	places []int // the element of a record for each one of a result; nil if they are the same
}

var _ interface {
	loader.ChunkedSource
	loader.RemoteSource
	loader.DescribedSource
	loader.Identifier
	costed
} = (*derived)(nil)

func newDerived(src loader.Source, by Derive) (*derived, error) {
	base, err := newMember(src)
	if err != nil {
		return nil, err
	}
	how, err := expr.ParseFormula(by.Expression)
	if err != nil {
		return nil, err
	}
	d := &derived{base: base, by: by, how: how, single: true}
	specs, shape := src.Specs(), tensor.Shape{}
	d.needs = 1
	for k, name := range how.Names {
		i := fieldOf(specs, name)
		if i < 0 {
			return nil, how.NoField(k, names(specs))
		}
		if specs[i].Ragged {
			return nil, fmt.Errorf("records of %q have variable length; pad or pack them first", name)
		}
		if shape, err = broadcast(shape, specs[i].Shape); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		if d.needs += workOf(src, name); d.needs > maxWork {
			return nil, fmt.Errorf("it needs more than %d expressions to be computed for each record, counting the expressions of its "+
				"fields; write these into a dataset: %s", maxWork, shell.Penstock("preprocess VIEW DEST"))
		}
		t := specs[i].DType
		d.single = d.single && (t == tensor.Float32 || t.Size() < 4)
		d.fields = append(d.fields, derivedField{spec: specs[i]})
	}
	d.spec = tensor.Spec{Name: by.Name, DType: tensor.Float64, Shape: shape}
	if d.single {
		d.spec.DType = tensor.Float32
	}
	if how.IsTruth() {
		d.spec.DType = tensor.Bool
	}
	for i := range d.fields {
		f := &d.fields[i]
		if len(d.spec.Dims) == 0 && slices.Equal(f.spec.Shape, shape) {
			d.spec.Dims, d.spec.Coordinates = f.spec.Dims, f.spec.Coordinates
		}
		f.places = placesIn(shape, f.spec.Shape)
	}
	return d, d.spec.Validate()
}

// broadcast returns the common shape of two arrays, by NumPy's rules.
func broadcast(a, b tensor.Shape) (tensor.Shape, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for k := range b {
		n, i := b[k], len(a)-len(b)+k
		switch {
		case a[i] == 1:
			out[i] = n
		case n != 1 && n != a[i]:
			return nil, fmt.Errorf("shapes %v and %v cannot be broadcast", a, b)
		}
	}
	return out, nil
}

// placesIn returns, for each element of the shape that an array is broadcast to, the array's
// element there; nil if both shapes are the same.
func placesIn(shape, of tensor.Shape) []int {
	if slices.Equal(shape, of) {
		return nil
	}
	places := make([]int, shape.Elems())
	for i := range places {
		rest, step := i, 1
		for k := len(shape) - 1; k >= 0; k-- {
			at := rest % shape[k]
			rest /= shape[k]
			if j := k - len(shape) + len(of); j >= 0 {
				if of[j] > 1 {
					places[i] += at * step
				}
				step *= of[j]
			}
		}
	}
	return places
}

// Len returns the number of records.
func (d *derived) Len() int { return d.base.Len() }

// Specs returns the field.
func (d *derived) Specs() []tensor.Spec { return []tensor.Spec{d.spec} }

// ID returns a digest of the expression.
func (d *derived) ID() string { return "derive(" + digest.Of(d.by) + ")" }

func (d *derived) work(string) int { return d.needs }

// derivedElements is roughly how many elements are computed at a time: few enough to stay in the
// CPU's cache between the operations of an expression.
const derivedElements = 1 << 15

func (d *derived) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	if field != d.spec.Name {
		return fmt.Errorf("combine: derive: there is no field %q", field)
	}
	if d.single {
		return compute[float32](ctx, d, &d.pools.single, indices, dst)
	}
	return compute[float64](ctx, d, &d.pools.double, indices, dst)
}

// computing is memory that one call borrows and returns.
type computing[T expr.Float] struct {
	values expr.Evaluator[T]
	data   []byte
	record []T
}

func compute[T expr.Float](ctx context.Context, d *derived, pool *sync.Pool, indices []int, dst []byte) error {
	c, _ := pool.Get().(*computing[T])
	if c == nil {
		c = &computing[T]{values: expr.Evaluator[T]{Fields: make([][]T, len(d.fields))}}
	}
	defer pool.Put(c)
	size, of := d.spec.Shape.Elems(), d.spec.RecordBytes()
	step := max(1, derivedElements/max(1, size))
	for at := 0; at < len(indices); at += step {
		some := indices[at:min(at+step, len(indices))]
		for i := range d.fields {
			if err := c.load(ctx, d, i, some, size); err != nil {
				return err
			}
		}
		out := c.values.Compute(d.how, len(some)*size)
		tensor.PutFloats(dst[at*of:(at+len(some))*of], d.spec.DType, out)
	}
	return nil
}

// load reads one field of some records, and broadcasts it.
func (c *computing[T]) load(ctx context.Context, d *derived, i int, indices []int, size int) error {
	f := &d.fields[i]
	bytes, own := len(indices)*f.spec.RecordBytes(), f.spec.Shape.Elems()
	c.data = slices.Grow(c.data[:0], bytes)[:bytes]
	if err := d.base.Gather(ctx, f.spec.Name, indices, c.data); err != nil {
		return err
	}
	if f.places == nil {
		c.values.Fields[i] = tensor.AppendFloats(c.values.Fields[i][:0], f.spec.DType, c.data)
		return nil
	}
	n := len(indices) * size
	values := slices.Grow(c.values.Fields[i][:0], n)[:n]
	c.values.Fields[i] = values
	c.record = tensor.AppendFloats(c.record[:0], f.spec.DType, c.data)
	for k := range indices {
		record, out := c.record[k*own:(k+1)*own], values[k*size:(k+1)*size]
		for j, place := range f.places {
			out[j] = record[place]
		}
	}
	return nil
}

// Slice returns records [a, b) in new memory.
func (d *derived) Slice(field string, a, b int) (tensor.View, error) { return copied(d, field, a, b) }

// Prefetch passes the hint on for every field of the expression.
func (d *derived) Prefetch(_ string, a, b int) error {
	for _, name := range d.how.Names {
		if err := d.base.Prefetch(name, a, b); err != nil {
			return err
		}
	}
	return nil
}

// Fetch announces the records that will be needed of the fields in the expression.
func (d *derived) Fetch(ctx context.Context, _ string, indices []int) error {
	for _, name := range d.how.Names {
		if err := d.base.fetch(ctx, name, indices); err != nil {
			return err
		}
	}
	return nil
}

// LookaheadBytes is 0: the View asks the Source itself.
func (d *derived) LookaheadBytes() int64 { return 0 }

// NetworkStats returns zeros: the View counts the Source's traffic already, which would be counted
// twice.
func (d *derived) NetworkStats() (fetched int64, waited time.Duration, rate float64) { return 0, 0, 0 }

// DescribeReads reports that an expression computes the values.
func (d *derived) DescribeReads(string) (how, why string, resident float64) {
	return "computed", "by the expression " + d.by.Expression, -1
}
