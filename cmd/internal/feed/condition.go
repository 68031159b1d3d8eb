package feed

import (
	"fmt"
	"math"

	"github.com/penstock/penstock/tensor"
)

// relations says for which orders of a number and a value an operator holds. A NaN is in no order.
var relations = map[string]relation{
	"==": {equal: true}, "!=": {below: true, above: true, unordered: true},
	"<": {below: true}, "<=": {below: true, equal: true}, ">": {above: true}, ">=": {above: true, equal: true},
	"in": {equal: true}, "not in": {},
}

type relation struct{ below, equal, above, unordered bool }

// holds reports whether the relation is true of an order: -1, 0 or 1.
func (r relation) holds(order int) bool {
	return order < 0 && r.below || order == 0 && r.equal || order > 0 && r.above
}

// condition is a filter's test of each number of a type. A set contains NaN if a value is NaN, as
// pandas' isin has it; otherwise nothing equals NaN.
type condition[T int64 | uint64 | float64] struct {
	relation
	bound bound[T] // of the only value

	set     map[T]bool // of "in" and "not in"
	without bool       // "not in"
	nan     bool       // the set contains NaN
}

func newCondition[T int64 | uint64 | float64](op string, bounds []bound[T]) *condition[T] {
	c := &condition[T]{relation: relations[op]}
	if op != "in" && op != "not in" {
		c.bound = bounds[0]
		return c
	}
	c.set, c.without = make(map[T]bool), op == "not in"
	for _, p := range bounds {
		if c.nan = c.nan || p.nan; !p.nan && p.tie == 0 {
			c.set[p.at] = true
		}
	}
	return c
}

func (c *condition[T]) holds(x T) bool {
	nan := x != x
	switch {
	case c.set != nil:
		return (c.set[x] || nan && c.nan) != c.without
	case nan || c.bound.nan:
		return c.unordered
	}
	return c.relation.holds(c.bound.compare(x))
}

// testOf returns what clears kept where the numbers of a View of a type are not as a filter wants them.
func testOf(t tensor.DType, op string, values []value) (func(v tensor.View, kept []bool), error) {
	switch t {
	case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
		c := newCondition(op, boundsOf(values, func(v value) bound[int64] {
			return amongIntegers(v, math.MinInt64, int64(math.MaxInt64))
		}))
		return map[tensor.DType]func(tensor.View, []bool){
			tensor.Int8: test[int8](c), tensor.Int16: test[int16](c), tensor.Int32: test[int32](c), tensor.Int64: test[int64](c),
		}[t], nil
	case tensor.Bool, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
		c := newCondition(op, boundsOf(values, func(v value) bound[uint64] {
			return amongIntegers(v, 0, uint64(math.MaxUint64))
		}))
		return map[tensor.DType]func(tensor.View, []bool){
			tensor.Bool: testBool(c), tensor.Uint8: test[uint8](c), tensor.Uint16: test[uint16](c),
			tensor.Uint32: test[uint32](c), tensor.Uint64: test[uint64](c),
		}[t], nil
	case tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64:
		c := newCondition(op, boundsOf(values, func(v value) bound[float64] { return amongFloats(v, t) }))
		return map[tensor.DType]func(tensor.View, []bool){
			tensor.Float16: testSmall[tensor.Half](c), tensor.BFloat16: testSmall[tensor.Brain](c),
			tensor.Float32: test[float32](c), tensor.Float64: test[float64](c),
		}[t], nil
	}
	return nil, fmt.Errorf("its numbers are %v, which no filter compares", t)
}

func boundsOf[T int64 | uint64 | float64](values []value, boundOf func(value) bound[T]) []bound[T] {
	bounds := make([]bound[T], len(values))
	for i, v := range values {
		bounds[i] = boundOf(v)
	}
	return bounds
}

// test tests numbers of type S as numbers of the larger type T.
func test[S uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64,
	T int64 | uint64 | float64](c *condition[T]) func(tensor.View, []bool) {
	return func(v tensor.View, kept []bool) {
		for i, x := range tensor.As[S](v) {
			kept[i] = kept[i] && c.holds(T(x))
		}
	}
}

func testSmall[S interface {
	tensor.Half | tensor.Brain
	Float32() float32
}](c *condition[float64]) func(tensor.View, []bool) {
	return func(v tensor.View, kept []bool) {
		for i, x := range tensor.As[S](v) {
			kept[i] = kept[i] && c.holds(float64(x.Float32()))
		}
	}
}

func testBool(c *condition[uint64]) func(tensor.View, []bool) {
	return func(v tensor.View, kept []bool) {
		for i, x := range v.Bytes() {
			kept[i] = kept[i] && c.holds(uint64(min(1, x)))
		}
	}
}
