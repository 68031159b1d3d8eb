package unit

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// names has the names of an array's columns, or of a label's classes, in each unit, and their numbers in the field.
type names struct {
	of   [][]string // by unit
	all  []string   // of the field
	to   [][]int32  // by unit: the number in all of each name; -1 for a name that is left out
	sort []bool     // by unit: the numbers in to do not ascend
}

// join finds the names of the field: the names that all units have, or the names that any unit has. It reports
// whether units differ; if not, nothing is renumbered.
func (n *names) join(align Align) (differ bool) {
	count := make(map[string]int)
	for _, list := range n.of {
		differ = differ || !slices.Equal(list, n.of[0])
		for _, name := range list {
			if count[name]++; count[name] == 1 {
				n.all = append(n.all, name)
			}
		}
	}
	if !differ {
		return false
	}
	if align == AlignIntersection {
		n.all = slices.DeleteFunc(n.all, func(name string) bool { return count[name] < len(n.of) })
	}
	number := make(map[string]int32, len(n.all))
	for i, name := range n.all {
		number[name] = int32(i)
	}
	for _, list := range n.of {
		to, last, descends := make([]int32, len(list)), int32(-1), false
		for i, name := range list {
			at, ok := number[name]
			if to[i] = -1; ok {
				descends, last, to[i] = descends || at < last, at, at
			}
		}
		n.to, n.sort = append(n.to, to), append(n.sort, descends)
	}
	return true
}

// joinNames makes one field of a member whose named columns (such as genes) or classes differ between units.
// Classes are always united: a number would otherwise mean another class in each unit.
func (c *Columns) joinNames(w *wanted) error {
	switch {
	case len(c.units) == 1:
		return nil
	case w.Field.Classes != nil:
		if w.classes.join(AlignUnion) {
			w.Field.Classes = w.classes.all
		}
		return nil
	case w.Field.Features == nil && w.Field.Content == tensor.Sparse:
		return fmt.Errorf("%s has no names of its columns, or more than 4 MiB of them, and units are joined by these; %s", w.Name,
			c.without(w.Name))
	case w.Field.Features == nil:
		return nil
	}
	n := &w.features
	if !n.join(c.records.Align) {
		return nil
	}
	for k, list := range n.of {
		if name := twice(list); name != "" {
			return within(c.units[k], fmt.Errorf("%s has two columns called %q; give each a name of its own: "+
				"a.var_names_make_unique() of anndata", w.Name, name))
		}
	}
	switch {
	case !c.records.joinsNames():
		return fmt.Errorf("the columns of %s have other names in some units: %d are in any, and these are not all in each; "+
			"take those that all units have: --align intersection, or those that any has: --align union", w.Name, len(n.all))
	case len(n.all) == 0:
		return fmt.Errorf("the columns of %s have no name that all units have; take those that any has: %s", w.Name,
			shell.Command("--align", string(AlignUnion)))
	case w.Field.Content == tensor.Sparse && !w.Field.DType.HoldsIndex(len(n.all)-1):
		return fmt.Errorf("%s has %d columns, whose numbers are too large for %v", w.Name, len(n.all), w.Field.DType)
	case w.Field.Content != tensor.Sparse && c.records.Align == AlignUnion && !w.Field.DType.IsFloat():
		return fmt.Errorf("%s is %v, which has no value for a column that a unit lacks; --align intersection", w.Name,
			w.Field.DType)
	}
	w.Field.Features = n.all
	if w.Field.Content == tensor.Sparse {
		w.Field.Width = len(n.all)
	} else {
		w.Field.Shape = tensor.Shape{len(n.all)}
	}
	// A union of dense columns has no other value for a column that a unit does not have; 0 would be a measurement.
	w.absent = make([]byte, w.Field.DType.Size())
	if w.Field.DType.IsFloat() {
		w.absent, _ = w.Field.DType.AppendParsed(nil, "nan")
	}
	return nil
}

// twice returns a name that occurs twice in a list; "" if all names differ.
func twice(list []string) string {
	seen := make(map[string]bool, len(list))
	for _, name := range list {
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// isJoined reports whether the columns or classes of units are renumbered.
func (w *wanted) isJoined() bool { return w.features.to != nil || w.classes.to != nil }

// joined renumbers the columns or classes in buf[from:], the values of unit k, and returns buf.
func (w *wanted) joined(k int, buf []byte, from int) ([]byte, error) {
	switch {
	case w.classes.to != nil:
		for b := buf[from:]; len(b) >= 8; b = b[8:] {
			i := binary.LittleEndian.Uint64(b)
			if i >= uint64(len(w.classes.to[k])) {
				return buf, source.ValueError("class %d of %d", i, len(w.classes.to[k]))
			}
			binary.LittleEndian.PutUint64(b, uint64(w.classes.to[k][i]))
		}
		return buf, nil
	case w.Field.Content == tensor.Sparse:
		return buf[:from+movePairs[w.Field.DType](buf[from:], w.features.to[k], w.features.sort[k])], nil
	}
	size, to := w.Field.DType.Size(), w.features.to[k]
	// The field may be wider than the unit, so the values cannot be moved in place.
	values := slices.Clone(buf[from:])
	buf = buf[:from]
	for ; len(values) > 0; values = values[len(to)*size:] {
		row := len(buf)
		for range w.features.all {
			buf = append(buf, w.absent...)
		}
		for i, at := range to {
			if at >= 0 {
				copy(buf[row+int(at)*size:], values[i*size:(i+1)*size])
			}
		}
	}
	return buf, nil
}

// movePairs has, by element type, the function that renumbers sparse pairs in place. It returns the number of bytes
// that are left.
var movePairs = map[tensor.DType]func(pairs []byte, to []int32, unsorted bool) int{
	tensor.Float32: move[float32], tensor.Float64: move[float64], tensor.Int32: move[int32],
	tensor.Uint32: move[uint32], tensor.Int64: move[int64], tensor.Uint64: move[uint64],
}

type number interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
}

// move renumbers the columns of sparse pairs (column, value) in place, drops columns that the field does not have,
// and sorts the pairs if their new numbers do not ascend: readers of sparse fields expect ascending columns. It
// returns the number of bytes that are left.
func move[T number](b []byte, to []int32, unsorted bool) int {
	pairs, n := tensor.Elements[T](b), 0
	for i := 0; i < len(pairs); i += 2 {
		if at := to[int(pairs[i])]; at >= 0 {
			pairs[n], pairs[n+1] = T(at), pairs[i+1]
			n += 2
		}
	}
	if unsorted {
		sort.Sort(byColumn[T](pairs[:n]))
	}
	if len(pairs) == 0 {
		return 0
	}
	return n * (len(b) / len(pairs))
}

// byColumn sorts pairs of a column and a value by column.
type byColumn[T number] []T

func (p byColumn[T]) Len() int           { return len(p) / 2 }
func (p byColumn[T]) Less(i, j int) bool { return p[2*i] < p[2*j] }
func (p byColumn[T]) Swap(i, j int) {
	p[2*i], p[2*j] = p[2*j], p[2*i]
	p[2*i+1], p[2*j+1] = p[2*j+1], p[2*i+1]
}
