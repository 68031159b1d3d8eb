package combine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// Window says which pieces of arrays are the records of a [Windows]. A field of a Source is an array whose
// first axis is its records. An axis is known by its name in Dims or, for a field that Dims does not list, by the name
// in the Source ([tensor.Spec].Dims), or by its number: "0" is the axis of the records.
//
//	combine.Window{Sizes: map[string]int{"0": 128}}                                           // 128 consecutive records
//	combine.Window{Sizes: map[string]int{"time": 24, "lat": 128, "lon": 128}}                 // patches
//
// Each record has an origin: one position on every axis of Sizes. Element k of a field's window is at origin +
// lead + k*dilation on each axis. Axes that are not in Sizes stay whole.
type Window struct {
	Sizes    map[string]int `json:"sizes"`              // elements, by axis
	Stride   map[string]int `json:"stride,omitempty"`   // from one origin to the next; 1 if an axis is not there
	Dilation map[string]int `json:"dilation,omitempty"` // from one element to the next; 1 if an axis is not there
	Offset   map[string]int `json:"offset,omitempty"`   // of the first origin from the first possible one

	// Pad says what elements beyond the edges of an axis are; of an axis that is not there, none are asked for.
	Pad  map[string]Pad `json:"pad,omitempty"`
	Fill float64        `json:"fill,omitempty"` // of PadConstant

	// Keep says which origins there are on an axis with Pad: KeepPartial, the default there, or KeepFull.
	Keep Keep `json:"keep,omitempty"`

	Dims map[string][]string `json:"dims,omitempty"` // the names of the axes of fields, in place of the Source's

	// Group names a field of the first Source: where its value changes from one record to the next, another group
	// begins, and where a source of a Concat ends. Ranges are ranges [first, end) of records. No window crosses from one
	// group, or out of a range.
	Group  string   `json:"group,omitempty"`
	Ranges [][2]int `json:"within,omitempty"`

	// Along names the axis of Ranges. The default is the axis of the records. Windows of ranges that do not overlap
	// have no element in common.
	Along string `json:"along,omitempty"`

	// Origins are the origins, in place of a grid, one after the other: for each record one number for each axis of Sizes,
	// in the order of the axes of the first field that has them. A file of a view has them beside the Window.
	Origins []int `json:"-"`

	// Fields are the fields of the records; none means every field of the Sources that has an axis of Sizes, with the
	// windows of Sizes. A field of image files has the axis of the records, and its windows have content
	// [tensor.Images]. Other fields of variable length cannot be cut.
	Fields []WindowField `json:"outputs,omitempty"`
}

// WindowField is a field of the records of a Windows.
type WindowField struct {
	Name     string         `json:"name"`
	Of       string         `json:"of,omitempty"`       // the field that it is cut from; "" is Name
	Sizes    map[string]int `json:"sizes,omitempty"`    // in place of Window.Sizes, by axis
	Dilation map[string]int `json:"dilation,omitempty"` // in place of Window.Dilation, by axis
	Lead     map[string]int `json:"lead,omitempty"`     // from the origin to the first element, by axis; may be negative
}

// Pad says what elements beyond the edges of an axis, or of a group, are.
type Pad string

// The ways to pad. Those of NumPy's pad have the same names.
const (
	PadConstant Pad = "constant" // Window.Fill
	PadEdge     Pad = "edge"     // the element at the edge, as the datasets of robomimic and LeRobot repeat the last action
	PadReflect  Pad = "reflect"  // the elements on the other side of the edge, without the edge
	PadWrap     Pad = "wrap"     // the elements of the other end, as on a circle of longitudes
)

// Keep says which origins there are on an axis with Pad.
type Keep string

// The origins of an axis.
const (
	KeepFull    Keep = "full"    // those whose windows have no element beyond an edge; on an axis with PadWrap, all
	KeepPartial Keep = "partial" // all
)

// axis is an axis on which windows have an origin.
type axis struct {
	name           string
	n              int // elements
	stride, offset int
	pad            Pad
	least, most    int // offsets of the first and last element of any field from the origin
	first, count   int // the grid of origins, on an axis without runs
	of             int // the number of the axis in the first field that has it
}

// cut describes how an axis of a field is cut.
type cut struct {
	axis     int // -1 stays whole
	n        int // elements in the field
	size     int
	dilation int
	lead     int // from the element of the origin to the first one
}

// start returns the first element of the window with an origin.
func (c *cut) start(origin int) int { return origin + c.lead }

// span returns the distance between the first and the last element of a window.
func (c *cut) span() int { return (c.size - 1) * c.dilation }

// windowed is a field of the records, with the field that it is cut from.
type windowed struct {
	part *member
	in   tensor.Spec
	out  tensor.Spec
	cuts []cut
	fill []byte // an element
	rows bool   // whole records of the Source, one after the other
}

// text returns the parameters as JSON, which identify the windows.
func (w *Window) text() string {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err) // numbers and names have JSON
	}
	return string(text)
}

// plain is a Window without its JSON methods. withFill adds Fill as a number or a text, because
// JSON has no NaN and no infinity.
type plain Window

type withFill struct {
	*plain
	Fill any `json:"fill,omitempty"`
}

// MarshalJSON writes a Fill that JSON has no number for as "NaN", "+Inf" or "-Inf".
func (w Window) MarshalJSON() ([]byte, error) {
	v := withFill{plain: (*plain)(&w)}
	switch text := strconv.FormatFloat(w.Fill, 'g', -1, 64); {
	case math.IsNaN(w.Fill) || math.IsInf(w.Fill, 0):
		v.Fill = text
	case w.Fill != 0: // with an exponent where digits would not be exact
		v.Fill = json.Number(text)
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads the JSON that MarshalJSON writes. Unknown names are errors, and so is a
// whole number in fill that float64 cannot hold.
func (w *Window) UnmarshalJSON(text []byte) error {
	*w = Window{}
	v := withFill{plain: (*plain)(w)}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	err := d.Decode(&v)
	if err != nil || v.Fill == nil {
		return err
	}
	number := fmt.Sprint(v.Fill)
	if w.Fill, err = strconv.ParseFloat(number, 64); err != nil {
		return fmt.Errorf("fill is %v, which is not a number of float64", v.Fill)
	}
	if whole, ok := new(big.Int).SetString(number, 10); ok {
		if back, _ := big.NewFloat(w.Fill).Int(nil); back.Cmp(whole) != 0 {
			return fmt.Errorf("fill is %v, which float64 rounds to %v; choose one that is exact, such as a whole number up to "+
				"2**53", whole, back)
		}
	}
	return nil
}

// array is a field of a Source as an array with named axes.
type array struct {
	part *member
	spec tensor.Spec
	dims []string
	n    []int
}

// arrays returns the fields of the sources that may be cut.
func (w *Window) arrays(parts []member) (list []array, err error) {
	for i := range parts {
		for _, spec := range parts[i].Specs() {
			if slices.ContainsFunc(list, func(a array) bool { return a.spec.Name == spec.Name }) {
				return nil, fmt.Errorf("two fields have the name %q; rename one of them", spec.Name)
			}
			a := array{part: &parts[i], spec: spec, dims: w.Dims[spec.Name], n: []int{parts[i].Len()}}
			if !spec.Ragged {
				a.n = append(a.n, spec.Shape...)
			}
			switch {
			case a.dims != nil:
			case spec.Ragged:
				a.dims = []string{w.recordsAxis(&parts[i])}
			default:
				a.dims = w.axesOf(spec, len(a.n))
			}
			if len(a.dims) != len(a.n) {
				return nil, fmt.Errorf("field %q has %d axes, %v, and dims names %d: %q", spec.Name, len(a.n), tensor.Shape(a.n),
					len(a.dims), a.dims)
			}
			list = append(list, a)
		}
	}
	for name := range w.Dims {
		if !slices.ContainsFunc(list, func(a array) bool { return a.spec.Name == name }) {
			return nil, fmt.Errorf("dims has the field %q, which there is not", name)
		}
	}
	return list, nil
}

// axesOf returns the names of the n axes of a field. An axis is known by its number if the Source
// has no name for it, if another axis has the same name, or if Sizes uses the number.
func (w *Window) axesOf(spec tensor.Spec, n int) []string {
	names := make([]string, n)
	for k := range names {
		names[k] = strconv.Itoa(k)
		if w.cuts(names[k]) || len(spec.Dims) != n || spec.Dims[k] == "" {
			continue
		}
		if slices.Index(spec.Dims, spec.Dims[k]) == k && !slices.Contains(spec.Dims[k+1:], spec.Dims[k]) {
			names[k] = spec.Dims[k]
		}
	}
	return names
}

// recordsAxis returns the name of the axis of a Source's records: the first axis of a field, if Sizes has that axis;
// otherwise "0".
func (w *Window) recordsAxis(part *member) string {
	for _, spec := range part.Specs() {
		dims := w.Dims[spec.Name]
		if dims == nil && !spec.Ragged {
			dims = w.axesOf(spec, 1+len(spec.Shape))
		}
		if len(dims) > 0 && w.cuts(dims[0]) {
			return dims[0]
		}
	}
	return "0"
}

// canCut reports whether windows can be cut from a field: its records have one size, or they are image files.
func canCut(s tensor.Spec) bool {
	return !s.Ragged || s.IsBytes() && (s.Content == tensor.Image || s.Content == tensor.Images)
}

// cuts reports whether Sizes has an axis.
func (w *Window) cuts(axis string) bool {
	_, ok := w.Sizes[axis]
	return ok
}

// axesIn lists the axes of fields for errors.
func axesIn(list []array) string {
	var of []string
	for _, a := range list {
		if canCut(a.spec) {
			of = append(of, fmt.Sprintf("%s of %s", strings.Join(a.dims, ", "), a.spec.Name))
		}
	}
	return strings.Join(of, "; ")
}

// maxElements limits the numbers of a Window that are multiplied with each other, so that no product overflows.
const maxElements = 1 << 31

// checkNumbers refuses numbers whose products could overflow: a Window may come from a file.
func (w *Window) checkNumbers() error {
	check := func(what string, numbers map[string]int, most int) error {
		for _, axis := range slices.Sorted(maps.Keys(numbers)) {
			if n := numbers[axis]; n > most || n < -most {
				return fmt.Errorf("%s of axis %q is %d; at most %d is possible", what, axis, n, most)
			}
		}
		return nil
	}
	errs := []error{check("sizes", w.Sizes, maxElements), check("dilation", w.Dilation, maxElements),
		check("stride", w.Stride, maxRecords), check("offset", w.Offset, maxRecords)}
	for _, f := range w.Fields {
		errs = append(errs, check("sizes", f.Sizes, maxElements), check("dilation", f.Dilation, maxElements),
			check("lead", f.Lead, maxRecords))
	}
	if i := slices.IndexFunc(w.Origins, func(n int) bool { return n > maxRecords || n < -maxRecords }); i >= 0 {
		errs = append(errs, fmt.Errorf("origins[%d] is %d; at most %d is possible", i, w.Origins[i], maxRecords))
	}
	for _, r := range w.Ranges {
		if r[0] < 0 || r[1] > maxRecords {
			errs = append(errs, fmt.Errorf("a range is [%d, %d); at most %d is possible", r[0], r[1], maxRecords))
			break
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// planner resolves the names of a Window to fields and axes.
type planner struct {
	w      *Window
	arrays []array
	fields []windowed
	axes   []axis
}

func (p *planner) plan() error {
	outputs, err := p.outputs()
	if err != nil {
		return err
	}
	if len(outputs) == 0 {
		return fmt.Errorf("no field has an axis of sizes (%v); the axes are %s; give sizes by these, or name axes in dims",
			slices.Sorted(maps.Keys(p.w.Sizes)), axesIn(p.arrays))
	}
	for i, out := range outputs {
		if slices.ContainsFunc(outputs[:i], func(o WindowField) bool { return o.Name == out.Name }) {
			return fmt.Errorf("two fields of the records have the name %q", out.Name)
		}
		if err := p.field(out); err != nil {
			return fmt.Errorf("field %q: %w", out.Name, err)
		}
	}
	known := func(name string) bool {
		return slices.ContainsFunc(p.axes, func(a axis) bool { return a.name == name })
	}
	for _, of := range []struct {
		what string
		keys []string
	}{
		{"sizes", slices.Sorted(maps.Keys(p.w.Sizes))}, {"stride", slices.Sorted(maps.Keys(p.w.Stride))},
		{"dilation", slices.Sorted(maps.Keys(p.w.Dilation))},
		{"offset", slices.Sorted(maps.Keys(p.w.Offset))}, {"pad", slices.Sorted(maps.Keys(p.w.Pad))},
	} {
		for _, name := range of.keys {
			if !known(name) {
				return fmt.Errorf("%s has the axis %q, which no field of the records has with a size; the axes are %s", of.what,
					name, axesIn(p.arrays))
			}
		}
	}
	return nil
}

// outputs returns the fields of the records. A field that has an axis of sizes and cannot be cut is an error, unless the
// caller chose the fields: nobody would notice that it is missing.
func (p *planner) outputs() (list []WindowField, err error) {
	if p.w.Fields != nil {
		return p.w.Fields, nil
	}
	var refused, advised []string
	for _, a := range p.arrays {
		switch {
		case !slices.ContainsFunc(a.dims, p.w.cuts):
		case !canCut(a.spec):
			refused = append(refused, strconv.Quote(a.spec.Name))
		default:
			list = append(list, WindowField{Name: a.spec.Name})
			advised = append(advised, fmt.Sprintf("%q: {}", a.spec.Name))
		}
	}
	if refused != nil && list != nil {
		return nil, fmt.Errorf("records of %s have variable length, and no axes to cut; name the fields of the windows: "+
			"outputs={%s}", strings.Join(refused, ", "), strings.Join(advised, ", "))
	}
	return list, nil
}

// field resolves one field of the records.
func (p *planner) field(out WindowField) error {
	name := out.Of
	if name == "" {
		name = out.Name
	}
	i := slices.IndexFunc(p.arrays, func(a array) bool { return a.spec.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no field %q to cut it from; there are: %s", name, strings.Join(p.names(), ", "))
	}
	a := p.arrays[i]
	if !canCut(a.spec) {
		return fmt.Errorf("records of %q have variable length, and no axes to cut", name)
	}
	if len(a.n) >= tensor.MaxRank {
		return fmt.Errorf("%q has %d axes; at most %d can be cut", name, len(a.n), tensor.MaxRank-1)
	}
	f := windowed{part: a.part, in: a.spec, out: tensor.Spec{Name: out.Name, DType: a.spec.DType, Shape: tensor.Shape{}}}
	for _, keys := range []map[string]int{out.Sizes, out.Dilation, out.Lead} {
		for _, axis := range slices.Sorted(maps.Keys(keys)) {
			if !slices.Contains(a.dims, axis) || !p.w.cuts(axis) {
				return fmt.Errorf("axis %q is not one of %q that sizes cuts: %q", axis, name, a.dims)
			}
		}
	}
	for k, dim := range a.dims {
		c := cut{axis: -1, n: a.n[k], size: a.n[k], dilation: 1}
		if p.w.cuts(dim) {
			if err := p.cut(&c, out, dim); err != nil {
				return fmt.Errorf("axis %q: %w", dim, err)
			}
		}
		f.cuts, f.out.Shape = append(f.cuts, c), append(f.out.Shape, c.size)
	}
	if f.in.Ragged {
		f.out.Shape, f.out.Ragged, f.out.Content = tensor.Shape{}, true, tensor.Images
	} else {
		f.out.Dims, f.out.Meaning = dimsOf(a.dims), a.spec.Meaning
		f.out.SetCoordinates(func(axis string) string { // of axes that stay whole
			if k := slices.Index(a.spec.Dims, axis); k >= 0 && len(a.spec.Coordinates) > 0 && f.cuts[k].axis < 0 {
				return a.spec.Coordinates[k]
			}
			return ""
		})
	}
	f.rows = !f.in.Ragged && f.cuts[0].dilation == 1 && !slices.ContainsFunc(f.cuts[1:], func(c cut) bool { return c.axis >= 0 })
	if err := p.fill(&f); err != nil {
		return err
	}
	p.fields = append(p.fields, f)
	return f.out.Validate()
}

// names returns the names of the fields that may be cut.
func (p *planner) names() (list []string) {
	for _, a := range p.arrays {
		list = append(list, a.spec.Name)
	}
	return list
}

// fill sets the element that stands beyond the edges of axes with PadConstant.
func (p *planner) fill(f *windowed) (err error) {
	constant := func(c cut) bool { return c.axis >= 0 && p.axes[c.axis].pad == PadConstant }
	d := f.in.DType
	if c := f.cuts[0]; f.in.Ragged && constant(c) && (c.lead < 0 || c.start(0)+c.span() > 0) {
		return errors.New("pad is constant, and there is no image to fill with; choose edge, reflect or wrap, or take the image of the " +
			"origin alone, by sizes of 1 for the field")
	}
	if !slices.ContainsFunc(f.cuts, constant) {
		f.fill = make([]byte, d.Size())
		return nil
	}
	if f.fill, err = d.AppendNearest(nil, tensor.Float(p.w.Fill)); err != nil {
		return fmt.Errorf("fill is %v, and %q has %s; choose one that it can have, or leave the field out", p.w.Fill,
			f.in.Name, d)
	}
	return nil
}

// dimsOf returns the names of a window's axes, after an unnamed first axis that numbers the
// windows; nil if no axis has a name.
func dimsOf(axes []string) []string {
	dims, named := make([]string, len(axes)+1), false
	for k, name := range axes {
		if _, err := strconv.Atoi(name); err != nil {
			dims[k+1], named = name, true
		}
	}
	if !named {
		return nil
	}
	return dims
}

// cut sets how a field of the records is cut along one axis. All fields that share an axis must
// have the same length there.
func (p *planner) cut(c *cut, out WindowField, dim string) error {
	c.size, c.lead = p.w.Sizes[dim], out.Lead[dim]
	for _, given := range []map[string]int{p.w.Dilation, out.Dilation} {
		if n, ok := given[dim]; ok {
			c.dilation = n
		}
	}
	if own, ok := out.Sizes[dim]; ok {
		c.size = own
	}
	if c.size < 1 || c.dilation < 1 {
		return fmt.Errorf("a size of %d and a dilation of %d; both must be at least 1", c.size, c.dilation)
	}
	i := slices.IndexFunc(p.axes, func(a axis) bool { return a.name == dim })
	if i < 0 {
		a, err := p.axis(dim)
		if err != nil {
			return err
		}
		a.least, a.most = c.lead, c.lead+c.span()
		i, p.axes = len(p.axes), append(p.axes, a)
	}
	c.axis = i
	a := &p.axes[i]
	if a.n != c.n {
		return fmt.Errorf("%d elements, and %d in another field", c.n, a.n)
	}
	a.least, a.most = min(a.least, c.lead), max(a.most, c.lead+c.span())
	return nil
}

// axis returns the axis with a name that no field has used so far.
func (p *planner) axis(name string) (axis, error) {
	a := axis{name: name, stride: 1, offset: p.w.Offset[name], pad: p.w.Pad[name]}
	for _, of := range p.arrays {
		if !canCut(of.spec) || !slices.Contains(of.dims, name) {
			continue
		}
		a.of = slices.Index(of.dims, name)
		a.n = of.n[a.of]
		break
	}
	if s, ok := p.w.Stride[name]; ok {
		a.stride = s
	}
	switch {
	case a.stride < 1:
		return a, fmt.Errorf("a stride of %d; it must be at least 1", a.stride)
	case a.offset < 0:
		return a, fmt.Errorf("an offset of %d; it must not be negative", a.offset)
	case !slices.Contains([]Pad{"", PadConstant, PadEdge, PadReflect, PadWrap}, a.pad):
		return a, fmt.Errorf("pad is %q; it must be constant, edge, reflect or wrap", a.pad)
	}
	return a, nil
}
