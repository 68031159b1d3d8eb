package combine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/tensor"
)

// nd is an array of int32, in the plainest form.
type nd struct {
	shape []int
	data  []int32
}

func newND(r *rand.Rand, shape []int) *nd {
	a := &nd{shape: shape, data: make([]int32, tensor.Shape(shape).Elems())}
	for i := range a.data {
		a.data[i] = int32(r.Uint32())
	}
	return a
}

func (a *nd) at(index []int) int32 {
	n := 0
	for k, i := range index {
		n = n*a.shape[k] + i
	}
	return a.data[n]
}

// gridded is a Source of one array in chunks, without memory to show.
type gridded struct {
	combine.Func
	a     *nd
	chunk []int
}

func (g gridded) ChunkShape(string) []int { return g.chunk }

func (g gridded) ReadChunk(_ context.Context, _ string, at []int, dst []byte) error {
	first := make([]int, len(at))
	for k := range at {
		first[k] = at[k] * g.chunk[k]
	}
	for i := range tensor.Shape(g.chunk).Elems() {
		index, rest, inside := make([]int, len(at)), i, true
		for k := len(at) - 1; k >= 0; k-- {
			index[k], rest = first[k]+rest%g.chunk[k], rest/g.chunk[k]
			inside = inside && index[k] < g.a.shape[k]
		}
		value := int32(-77) // beyond the end
		if inside {
			value = g.a.at(index)
		}
		binary.NativeEndian.PutUint32(dst[4*i:], uint32(value))
	}
	return nil
}

var _ loader.GridSource = gridded{}

// source returns the array as a field of a Source: memory, records of a function, or chunks.
func (a *nd) source(t *testing.T, r *rand.Rand, name string) loader.Source {
	spec := tensor.Spec{Name: name, DType: tensor.Int32, Shape: a.shape[1:]}
	record := tensor.Shape(a.shape[1:]).Elems()
	f := combine.Func{Records: a.shape[0], Fields: []tensor.Spec{spec}, Make: func(_ context.Context, i int, _ string, dst tensor.View) error {
		copy(tensor.As[int32](dst), a.data[i*record:(i+1)*record])
		return nil
	}}
	switch r.IntN(3) {
	case 0:
		return f
	case 1:
		g := gridded{Func: f, a: a}
		for _, n := range a.shape {
			g.chunk = append(g.chunk, 1+r.IntN(n+1))
		}
		return g
	}
	src, err := combine.NewArrays(combine.Array{Name: name, Values: tensor.From(a.data, a.shape[1:]...)})
	require.NoError(t, err)
	return src
}

// windowCase is a Window, and what it is in the plainest form.
type windowCase struct {
	w       combine.Window
	arrays  map[string]*nd
	dims    map[string][]string
	axes    []string // of origins
	origins [][]int
	runs    [][2]int
}

// element returns an element of a window; ok is false beyond an edge of an axis that is not padded.
func (c *windowCase) element(out combine.WindowField, origin []int, k []int) (value int32, ok bool) {
	a, dims := c.arrays[out.Of], c.dims[out.Of]
	index := slices.Clone(k)
	for d, dim := range dims {
		if _, cuts := c.w.Sizes[dim]; !cuts {
			continue
		}
		axis := slices.Index(c.axes, dim)
		dilation := max(1, c.w.Dilation[dim])
		if own, has := out.Dilation[dim]; has {
			dilation = own
		}
		i := origin[axis] + out.Lead[dim] + k[d]*dilation
		lo, hi := 0, a.shape[d]
		if dim == "t" && c.runs != nil {
			for _, r := range c.runs {
				if origin[axis] >= r[0] && origin[axis] < r[1] {
					lo, hi = r[0], r[1]
				}
			}
		}
		for i < lo || i >= hi {
			switch n := hi - lo; c.w.Pad[dim] {
			case combine.PadWrap:
				if i < lo {
					i += n
				} else {
					i -= n
				}
			case combine.PadEdge:
				i = max(lo, min(i, hi-1))
			case combine.PadReflect:
				if i < lo {
					i = 2*lo - i
				} else {
					i = 2*(hi-1) - i
				}
				if n == 1 {
					i = lo
				}
			case combine.PadConstant:
				return int32(c.w.Fill), true
			default:
				return 0, false
			}
		}
		index[d] = i
	}
	return a.at(index), true
}

// size returns the elements of a window of a field along each of its axes.
func (c *windowCase) size(out combine.WindowField) (size []int) {
	for d, dim := range c.dims[out.Of] {
		n := c.arrays[out.Of].shape[d]
		if s, cuts := c.w.Sizes[dim]; cuts {
			n = s
		}
		if own, has := out.Sizes[dim]; has {
			n = own
		}
		size = append(size, n)
	}
	return size
}

// window returns the bytes of a window; ok is false if a part of it is beyond an edge.
func (c *windowCase) window(out combine.WindowField, origin []int) (data []byte, ok bool) {
	size := c.size(out)
	for i := range tensor.Shape(size).Elems() {
		k, rest := make([]int, len(size)), i
		for d := len(size) - 1; d >= 0; d-- {
			k[d], rest = rest%size[d], rest/size[d]
		}
		v, inside := c.element(out, origin, k)
		if !inside {
			return nil, false
		}
		data = binary.NativeEndian.AppendUint32(data, uint32(v))
	}
	return data, true
}

// randomWindow draws arrays over the axes t, y and x, and windows of them.
func randomWindow(r *rand.Rand) *windowCase {
	all := []string{"t", "y", "x"}[:1+r.IntN(3)]
	length := map[string]int{}
	for _, d := range all {
		length[d] = 1 + r.IntN(9)
	}
	c := &windowCase{arrays: map[string]*nd{}, dims: map[string][]string{}}
	w := &c.w
	w.Sizes, w.Stride, w.Dilation, w.Offset, w.Pad = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]combine.Pad{}
	w.Fill = float64(r.IntN(9))
	for i, d := range all {
		if i > 0 && r.IntN(3) == 0 {
			continue
		}
		w.Sizes[d] = 1 + r.IntN(4)
		for _, m := range []map[string]int{w.Stride, w.Dilation} {
			if r.IntN(2) == 0 {
				m[d] = 1 + r.IntN(3)
			}
		}
		if r.IntN(4) == 0 {
			w.Offset[d] = r.IntN(3)
		}
		if r.IntN(3) == 0 {
			w.Pad[d] = []combine.Pad{combine.PadConstant, combine.PadEdge, combine.PadReflect, combine.PadWrap}[r.IntN(4)]
		}
		c.axes = append(c.axes, d)
	}
	for i := range 1 + r.IntN(2) {
		name := fmt.Sprintf("a%d", i)
		dims := all
		if i > 0 {
			dims = all[:1+r.IntN(len(all))]
		}
		var shape []int
		for _, d := range dims {
			shape = append(shape, length[d])
		}
		c.arrays[name], c.dims[name] = newND(r, shape), dims
		for k := range 1 + r.IntN(2) {
			out := combine.WindowField{Name: fmt.Sprintf("%s.%d", name, k), Of: name, Sizes: map[string]int{}, Dilation: map[string]int{}, Lead: map[string]int{}}
			for _, d := range dims {
				if w.Sizes[d] > 0 && r.IntN(3) == 0 {
					out.Sizes[d], out.Lead[d] = 1+r.IntN(3), r.IntN(5)-2
				}
				if w.Sizes[d] > 0 && r.IntN(4) == 0 {
					out.Dilation[d] = 1 + r.IntN(2)
				}
			}
			w.Fields = append(w.Fields, out)
		}
	}
	w.Dims = c.dims
	if r.IntN(3) == 0 {
		for at := 0; at < length["t"]; {
			end := at + 1 + r.IntN(length["t"]-at)
			if r.IntN(4) > 0 {
				c.runs = append(c.runs, [2]int{at, end})
			}
			at = end
		}
		w.Ranges = c.runs
	}
	return c
}

// grid sets the origins by looking at every one that there may be.
func (c *windowCase) grid() {
	runs := c.runs
	if runs == nil {
		runs = [][2]int{{0, c.length("t")}}
	}
	lists := make([][]int, len(c.axes))
	for k, d := range c.axes {
		over := [][2]int{{0, c.length(d)}}
		if d == "t" {
			over = runs
		}
		for _, run := range over {
			first := -1
			for o := run[0]; o < run[1]; o++ {
				if !c.fits(d, o, run) {
					continue
				}
				if first < 0 {
					first = o + c.w.Offset[d]
				}
				if o >= first && (o-first)%max(1, c.w.Stride[d]) == 0 {
					lists[k] = append(lists[k], o)
				}
			}
		}
	}
	c.origins = [][]int{{}}
	for _, list := range lists {
		var next [][]int
		for _, o := range c.origins {
			for _, x := range list {
				next = append(next, append(slices.Clone(o), x))
			}
		}
		c.origins = next
	}
}

// fits reports whether all fields have the elements of an axis that windows with an origin there have.
func (c *windowCase) fits(d string, o int, run [2]int) bool {
	for _, out := range c.w.Fields {
		if !slices.Contains(c.dims[out.Of], d) {
			continue
		}
		size, dilation := c.size(out)[slices.Index(c.dims[out.Of], d)], max(1, c.w.Dilation[d])
		if own, has := out.Dilation[d]; has {
			dilation = own
		}
		if first := o + out.Lead[d]; c.w.Pad[d] == "" && (first < run[0] || first+(size-1)*dilation >= run[1]) {
			return false
		}
	}
	return true
}

func (c *windowCase) length(d string) int { return c.arrays["a0"].shape[slices.Index(c.dims["a0"], d)] }

// TestWindows compares random windows with plain Go.
func TestWindows(t *testing.T) {
	found := 0
	for seed := range uint64(4 * *programs) {
		r := random(t, seed)
		c := randomWindow(r)
		c.grid()
		var sources []loader.Source
		for _, name := range []string{"a0", "a1"} {
			if a := c.arrays[name]; a != nil {
				sources = append(sources, a.source(t, r, name))
			}
		}
		ws, err := combine.NewWindows(t.Context(), c.w, sources...)
		if err != nil {
			if len(c.origins) > 0 || !strings.Contains(err.Error(), "no window fits") {
				t.Fatalf("seed %d: %v for %+v", seed, err, c.w)
			}
			continue
		}
		found++
		if !slices.Equal(ws.Axes(), c.axes) || ws.Len() != len(c.origins) {
			t.Fatalf("seed %d: %d windows over %q, want %d over %q: %+v", seed, ws.Len(), ws.Axes(), len(c.origins), c.axes, c.w)
		}
		m := &model{n: ws.Len()}
		for _, out := range c.w.Fields {
			m.specs = append(m.specs, tensor.Spec{Name: out.Name, DType: tensor.Int32, Shape: c.size(out)})
			var records [][]byte
			for i, o := range c.origins {
				got := make([]int, len(c.axes))
				if ws.Origin(i, got); !slices.Equal(got, o) {
					t.Fatalf("seed %d: origin %d is %v, want %v", seed, i, got, o)
				}
				data, ok := c.window(out, o)
				if !ok {
					t.Fatalf("seed %d: window %v of %q is beyond an edge", seed, o, out.Name)
				}
				records = append(records, data)
			}
			m.records = append(m.records, records)
		}
		m.check(t, r, ws)
	}
	if found < *programs {
		t.Errorf("%d of %d cases have windows: this test sees too little", found, 4**programs)
	}
}

// Windows of groups do not cross from one source of a Concat to the next, though the group has the same value in both.
func TestWindowGroupsOfConcat(t *testing.T) {
	src, err := combine.NewArrays(combine.Array{Name: "x", Values: tensor.From([]int32{0, 1, 2})},
		combine.Array{Name: "episode", Values: tensor.From([]int64{0, 0, 0})})
	require.NoError(t, err)
	both, err := combine.NewConcat(src, src)
	require.NoError(t, err)
	nested, err := combine.NewConcat(both, src)
	require.NoError(t, err)
	chosen, err := combine.NewSelect(nested, combine.Select{Ranges: [][2]int{{1, 9}}})
	require.NoError(t, err)
	for want, src := range map[string]loader.Source{
		"[0 1 1 2 0 1 1 2]": both, "[0 1 1 2 0 1 1 2 0 1 1 2]": nested, "[1 2 0 1 1 2 0 1 1 2]": chosen,
	} {
		ws, err := combine.NewWindows(t.Context(), combine.Window{Sizes: map[string]int{"0": 2}, Group: "episode",
			Fields: []combine.WindowField{{Name: "x"}}}, src)
		require.NoError(t, err)
		v, err := ws.Slice("x", 0, ws.Len())
		require.NoError(t, err)
		if got := fmt.Sprint(tensor.As[int32](v)); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// TestWindowOrigins takes origins from a table, and groups from a field.
func TestWindowOrigins(t *testing.T) {
	x := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	station := []int64{7, 7, 7, 7, 3, 3, 3, 7, 7, 7}
	src, err := combine.NewArrays(combine.Array{Name: "x", Values: tensor.From(x)}, combine.Array{Name: "station", Values: tensor.From(station)})
	require.NoError(t, err)
	only := []combine.WindowField{{Name: "x"}}
	of := func(w combine.Window) string {
		ws, err := combine.NewWindows(t.Context(), w, src)
		if err != nil {
			return err.Error()
		}
		v, err := ws.Slice("x", 0, ws.Len())
		require.NoError(t, err)
		return fmt.Sprint(tensor.As[int32](v))
	}
	size := map[string]int{"0": 3}
	for _, c := range []struct {
		w    combine.Window
		want string
	}{
		{combine.Window{Sizes: size, Group: "station", Fields: only}, "[0 1 2 1 2 3 4 5 6 7 8 9]"},
		{combine.Window{Sizes: size, Group: "station", Fields: only, Ranges: [][2]int{{0, 6}}}, "[0 1 2 1 2 3]"},
		{combine.Window{Sizes: size, Fields: only, Origins: []int{5, 0}}, "[5 6 7 0 1 2]"},
		{combine.Window{Sizes: size, Fields: only, Stride: map[string]int{"0": 3}}, "[0 1 2 3 4 5 6 7 8]"},
		{combine.Window{Sizes: map[string]int{"0": 11}}, "no window fits: windows have 11 elements"},
		{combine.Window{Sizes: size, Origins: []int{8}}, `its window has the elements from 8 to 10 of those from 0 to 9`},
		{combine.Window{Sizes: size, Keep: combine.KeepPartial}, "keep is partial, and pad does not say"},
		{combine.Window{Sizes: size, Keep: combine.KeepFull, Pad: map[string]combine.Pad{"0": combine.PadReflect}}, "so that nothing of axis \"0\" is padded"},
		{combine.Window{Sizes: map[string]int{"time": 3}}, "name axes in dims"},
		{combine.Window{Sizes: size, Stride: map[string]int{"1": 2}}, `stride has the axis "1"`},
		{combine.Window{Sizes: size, Stride: map[string]int{"0": -2}}, "a stride of -2"},
		{combine.Window{Sizes: size, Group: "patient"}, `there is no field "patient"`},
		{combine.Window{Sizes: size, Ranges: [][2]int{{4, 8}, {0, 5}}}, "ascending order"},
		{combine.Window{Sizes: size, Fields: []combine.WindowField{{Name: "z"}}}, `there is no field "z"`},
		{combine.Window{}, "no axis has a size"},
		{combine.Window{Sizes: size, Fields: only, Pad: map[string]combine.Pad{"0": combine.PadConstant}, Fill: 2.5}, `fill is 2.5, and "x" has int32`},
		{combine.Window{Sizes: size, Fields: only, Pad: map[string]combine.Pad{"0": combine.PadConstant}, Fill: math.NaN()}, `fill is NaN`},
	} {
		if got := of(c.w); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s, want %s", c.w, got, c.want)
		}
	}
}

// TestOriginsHaveANumberForEachAxis refuses other lists, and has the origins in the identity.
func TestOriginsHaveANumberForEachAxis(t *testing.T) {
	src := newCounted(newND(rand.New(rand.NewPCG(1, 2)), []int{8, 6}), []int{8, 6})
	src.Name = "nd"
	w := combine.Window{Sizes: map[string]int{"0": 3, "1": 2}, Origins: []int{1, 2, 5}}
	if _, err := combine.NewWindows(t.Context(), w, src); err == nil || !strings.Contains(err.Error(), "origins are 3 numbers, and there are 2 axes: 0, 1") {
		t.Error(err)
	}
	seen := make(map[string]bool)
	for _, origins := range [][]int{{1, 2, 5, 4}, {1, 2, 5, 3}, {5, 4, 1, 2}, {1, 2}, nil} {
		w.Origins = origins
		ws, err := combine.NewWindows(t.Context(), w, src)
		require.NoError(t, err)
		seen[ws.ID()] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d identities of 5 lists of origins: %v", len(seen), seen)
	}
}

// TestWindowFill has fills that JSON has no number for come back from it, and names that are not known are errors.
func TestWindowFill(t *testing.T) {
	for _, fill := range []float64{0, -1.5, 1 << 40, math.NaN(), math.Inf(1), math.Inf(-1)} {
		w := combine.Window{Sizes: map[string]int{"0": 3}, Fill: fill, Keep: combine.KeepPartial}
		text, err := json.Marshal(&w)
		require.NoError(t, err)
		var got combine.Window
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(w) {
			t.Errorf("%s is %+v, want %+v", text, got, w)
		}
	}
	for text, want := range map[string]string{
		`{"fill": "none"}`:              "fill is none, which is not a number",
		`{"strides": {}}`:               "unknown field",
		`{"fill": true}`:                "fill is true, which is not a number",
		`{"fill": 9007199254740993}`:    "fill is 9007199254740993, which float64 rounds to 9007199254740992",
		`{"fill": 9223372036854775807}`: "rounds to 9223372036854775808",
		`{"fill": 1e400}`:               "fill is 1e400, which is not a number",
	} {
		if err := json.Unmarshal([]byte(text), new(combine.Window)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestWindowChunksOnce checks that a batch reads each chunk once, and the next batch none that is cached.
func TestWindowChunksOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := newND(r, []int{24, 16, 16})
	g := gridded{Func: combine.Func{Records: 24, Fields: []tensor.Spec{{Name: "x", DType: tensor.Int32, Shape: a.shape[1:]}}}, a: a, chunk: []int{8, 8, 8}}
	g.Make = func(context.Context, int, string, tensor.View) error { return nil }
	ws, err := combine.NewWindows(t.Context(), combine.Window{Sizes: map[string]int{"0": 4, "1": 6, "2": 6}}, g)
	require.NoError(t, err)
	all := consecutive(0, ws.Len())
	dst := make([]byte, ws.Len()*ws.Specs()[0].RecordBytes())
	for range 2 {
		require.NoError(t, ws.Gather(t.Context(), "x", all, dst))
	}
	if want := int64(4 * 24 * 16 * 16); ws.Decoded() != want {
		t.Errorf("%d bytes were decoded, want %d: each chunk once", ws.Decoded(), want)
	}
	ws.SetCache(1)
	again := slices.Clone(dst)
	clear(dst)
	if err := ws.Gather(t.Context(), "x", all, dst); err != nil || !bytes.Equal(dst, again) {
		t.Errorf("without a cache the windows differ: %v", err)
	}
}

// TestWindowImages cuts windows of image files: one or several a record.
func TestWindowImages(t *testing.T) {
	for seed := range uint64(40) {
		r := random(t, seed)
		n, size, lead := 12+r.IntN(20), 1+r.IntN(4), -r.IntN(3)
		var records [2][][]byte // encoded as content image and images
		var ends [2][]int64
		of := func(content string, k int) []byte {
			if content == tensor.Images {
				return records[1][k]
			}
			return tensor.AppendImage(nil, records[0][k])
		}
		for i := range records {
			ends[i] = []int64{0}
			for range n {
				file := randomBytes(r, r.IntN(9))
				if i == 1 {
					file = tensor.AppendImage(tensor.AppendImage(nil, file), randomBytes(r, r.IntN(9)))
				}
				records[i] = append(records[i], file)
				ends[i] = append(ends[i], ends[i][len(ends[i])-1]+int64(len(file)))
			}
		}
		src, err := combine.NewArrays(
			combine.Array{Name: "action", Values: tensor.From(make([]float32, n))},
			combine.Array{Name: tensor.Image, Values: tensor.From(bytes.Join(records[0], nil)), Offsets: ends[0], Content: tensor.Image},
			combine.Array{Name: tensor.Images, Values: tensor.From(bytes.Join(records[1], nil)), Offsets: ends[1], Content: tensor.Images})
		require.NoError(t, err)
		w := combine.Window{Sizes: map[string]int{"time": size}, Dims: map[string][]string{"action": {"time"}},
			Pad: map[string]combine.Pad{"time": combine.PadWrap}}
		for _, name := range []string{tensor.Image, tensor.Images} {
			w.Fields = append(w.Fields, combine.WindowField{Name: name, Lead: map[string]int{"time": lead}})
		}
		ws, err := combine.NewWindows(t.Context(), w, src)
		require.NoError(t, err)
		m := &model{n: n, specs: ws.Specs(), records: make([][][]byte, 2)}
		for f, spec := range m.specs {
			if spec.Content != tensor.Images || !spec.IsBytes() {
				t.Fatalf("windows of image files are %v of content %q", spec, spec.Content)
			}
			for i := range n {
				var record []byte
				for k := range size {
					record = append(record, of(spec.Name, (i+lead+k+n)%n)...)
				}
				m.records[f] = append(m.records[f], record)
			}
		}
		m.check(t, r, ws)
	}
	src, err := combine.NewArrays(combine.Array{Name: "action", Values: tensor.From([]int32{1, 2})},
		combine.Array{Name: "image", Values: tensor.From([]byte{1, 2}), Offsets: []int64{0, 1, 2}, Content: tensor.Image},
		combine.Array{Name: "task", Values: tensor.From([]byte("ab")), Offsets: []int64{0, 1, 2}, Content: tensor.Text})
	require.NoError(t, err)
	pad, fields := map[string]combine.Pad{"0": combine.PadConstant}, []combine.WindowField{{Name: "action"}, {Name: "image"}}
	for want, w := range map[string]combine.Window{
		`"task" have variable length, and no axes to cut; name the fields of the windows: outputs={"action": {}, "image": {}}`: {},
		"there is no image to fill with": {Pad: pad, Fields: fields},
		"":                               {Pad: pad, Fields: []combine.WindowField{fields[0], {Name: "image", Sizes: map[string]int{"0": 1}}}},
	} {
		w.Sizes = map[string]int{"0": 2}
		_, err := combine.NewWindows(t.Context(), w, src)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", w, err, want)
		}
	}
}

// TestWindowErrors checks that the error of a record names a window that has it, also where windows are read together.
func TestWindowErrors(t *testing.T) {
	bad := errors.New("bad")
	s := combine.Func{Records: 40, Fields: []tensor.Spec{{Name: "x", DType: tensor.Int32}}}
	s.Make = func(_ context.Context, i int, _ string, to tensor.View) error {
		if i == 17 {
			return bad
		}
		binary.LittleEndian.PutUint32(to.Bytes(), uint32(i))
		return nil
	}
	ws, err := combine.NewWindows(t.Context(), combine.Window{Sizes: map[string]int{"0": 4}}, s)
	require.NoError(t, err)
	for _, c := range []struct {
		windows []int
		want    int
	}{{[]int{0, 30, 16, 5}, 16}, {[]int{20, 17}, 17}, {[]int{14, 13}, 14}, {consecutive(3, 20), 14}, {[]int{0, 36, 22}, -1}} {
		dst := make([]byte, 16*len(c.windows))
		err := ws.Gather(t.Context(), "x", c.windows, dst)
		var named loader.RecordError
		if c.want < 0 {
			require.NoError(t, err)
			for k, i := range c.windows {
				for j := range 4 {
					if got := binary.LittleEndian.Uint32(dst[16*k+4*j:]); got != uint32(i+j) {
						t.Errorf("record %d of window %d is %d", j, i, got)
					}
				}
			}
			continue
		}
		if !errors.Is(err, bad) || !errors.As(err, &named) || named.Record() != c.want {
			t.Errorf("windows %v: %v, want an error of window %d", c.windows, err, c.want)
		}
	}
}
