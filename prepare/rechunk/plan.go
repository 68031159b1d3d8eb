package rechunk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Options configures a Plan. Chunks is needed.
type Options struct {
	Chunks    map[string]int // elements of a chunk, by the name or the number of an axis; other axes stay whole
	Fields    []string       // arrays to write; nil means all
	Memory    int64          // bytes of a box and of chunks in flight; 0 means 1 GiB
	Workers   int            // goroutines; 0 means GOMAXPROCS
	Level     int            // of zstd, 1 to 22; 0 means 3
	Overwrite bool           // replace a folder of Zarr that exists
	Resume    bool           // continue a run that was stopped, or start if there is none
}

const (
	defaultMemory = 1 << 30
	defaultLevel  = 3
)

// Plan describes the work of Run.
type Plan struct {
	Source string  `json:"source"`
	Dest   string  `json:"dest"`
	Arrays []Array `json:"arrays"`

	opts Options
}

// Array is how an array is written.
type Array struct {
	Name   string   `json:"name"`
	DType  string   `json:"dtype"`
	Shape  []int    `json:"shape"`
	Dims   []string `json:"dims,omitempty"`
	From   []int    `json:"from,omitempty"` // elements of a chunk as it is; nil if it is not in chunks
	Chunk  []int    `json:"chunk"`          // and as it will be
	Box    []int    `json:"box"`            // that is in memory at a time
	Bytes  int64    `json:"bytes"`          // of the array
	Reads  int64    `json:"reads"`          // bytes that are decoded of its chunks
	fields []string // that are opened for it
	elem   int
}

// NewPlan opens a source and settles how it is written, or reports all that is wrong. It reads no data, so that a plan
// of terabytes can be printed and refused before work begins.
func NewPlan(ctx context.Context, source, dest string, o Options) (*Plan, error) {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Level == 0 {
		o.Level = defaultLevel
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	p := &Plan{Source: source, Dest: dest, opts: o}
	if err := p.plan(ctx); err != nil {
		return nil, fmt.Errorf("rechunk: %w", err)
	}
	return p, nil
}

func (p *Plan) plan(ctx context.Context) error {
	if len(p.opts.Chunks) == 0 {
		return errors.New("no axis has a chunk size")
	}
	for axis, n := range p.opts.Chunks {
		if n < 1 {
			return fmt.Errorf("axis %q: a chunk of %d elements; it must be at least 1", axis, n)
		}
	}
	if !strings.HasSuffix(p.Dest, ".zarr") {
		return fmt.Errorf("%s: chunks of several axes are written as Zarr; name a folder that ends with .zarr", p.Dest)
	}
	if err := p.checkDest(); err != nil {
		return err
	}
	ds, err := mmapds.Open(p.Source, mmapds.WithFields(p.opts.Fields...))
	if err != nil {
		return err
	}
	defer ds.Close()
	used := make(map[string]bool)
	for _, f := range ds.Schema().Fields {
		a, err := p.array(ds, f, used)
		if err != nil {
			return fmt.Errorf("%s: field %q: %w", p.Source, f.Name, err)
		}
		p.Arrays = append(p.Arrays, a)
	}
	for _, axis := range slices.Sorted(maps.Keys(p.opts.Chunks)) {
		if !used[axis] {
			return fmt.Errorf("%s: there is no axis %q; there are: %s", p.Source, axis, p.axes())
		}
	}
	return p.addCoordinates(ctx)
}

// checkDest refuses to replace anything but a folder of Zarr, and never the source.
func (p *Plan) checkDest() error {
	info, err := os.Stat(p.Dest)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !p.opts.Overwrite:
		return fmt.Errorf("%s exists; use --overwrite to replace it, or choose another name", p.Dest)
	case !info.IsDir() || !zarr.Is(vfs.Folder(p.Dest)):
		return fmt.Errorf("%s is not a folder of Zarr, and is not replaced", p.Dest)
	}
	same, err := filepath.EvalSymlinks(p.Source)
	if other, _ := filepath.EvalSymlinks(p.Dest); err == nil && same == other {
		return fmt.Errorf("%s is the source; choose another name", p.Dest)
	}
	return nil
}

// axes lists the axes of all arrays, for errors.
func (p *Plan) axes() string {
	var list []string
	for _, a := range p.Arrays {
		list = append(list, a.Name+" has "+strings.Join(axisNames(a.Dims, len(a.Shape)), ", "))
	}
	return strings.Join(list, "; ")
}

// axisNames returns the names of axes for errors; an axis without a name has its number.
func axisNames(dims []string, n int) []string {
	names := make([]string, n)
	for k := range names {
		names[k] = strconv.Itoa(k)
		if len(dims) == n && dims[k] != "" {
			names[k] = dims[k]
		}
	}
	return names
}

// array settles the chunks of a field. It notes which of Options.Chunks it used.
func (p *Plan) array(ds *mmapds.Dataset, f store.Field, used map[string]bool) (Array, error) {
	a := Array{Name: f.Name, DType: f.DType.String(), Shape: append([]int{ds.Len()}, f.Shape...), Dims: f.Dims,
		fields: p.opts.Fields, elem: f.DType.Size(), From: ds.ChunkShape(f.Name)}
	if f.Ragged {
		return a, errors.New("its records have lengths of their own; name the others with --fields")
	}
	if a.fields == nil {
		a.fields = []string{}
		for _, other := range ds.Schema().Fields {
			a.fields = append(a.fields, other.Name)
		}
	}
	names := axisNames(a.Dims, len(a.Shape))
	for k, n := range a.Shape {
		size := n
		for _, axis := range []string{names[k], strconv.Itoa(k)} {
			if want, ok := p.opts.Chunks[axis]; ok {
				size, used[axis] = min(n, want), true
			}
		}
		a.Chunk = append(a.Chunk, max(1, size))
	}
	return a, a.settle(p.opts)
}

// settle chooses the box that is read at a time: it grows from one chunk along the axis whose reads fall most, as long
// as there is memory.
func (a *Array) settle(o Options) error {
	a.Bytes = int64(tensor.Shape(a.Shape).Elems()) * int64(a.elem)
	chunk := int64(tensor.Shape(a.Chunk).Elems()) * int64(a.elem)
	from := int64(tensor.Shape(a.From).Elems()) * int64(a.elem)
	const most = 1 << 31
	if chunk >= most {
		return fmt.Errorf("chunks %v of %s; choose smaller ones, below 2 GiB", a.Chunk, units.Bytes(chunk))
	}
	left := (o.Memory - int64(o.Workers)*(from+3*chunk)) / 4 * 3 // the rest is for the collector of garbage
	a.Box = slices.Clone(a.Chunk)
	for k := range a.Box {
		a.Box[k] = min(a.Box[k], a.Shape[k])
	}
	if need := chunk*4/3 + 4 + int64(o.Workers)*(from+3*chunk); left < chunk {
		return fmt.Errorf("--memory of %s is too little: a chunk of %v and the chunks of %v that it is built from need %s "+
			"with %s; give more memory, or fewer workers", units.Bytes(o.Memory), a.Chunk, a.From, units.Bytes(need),
			units.Counted(int64(o.Workers), "worker"))
	}
	for {
		best, fewest := []int(nil), a.reads(a.Box)
		for k := len(a.Box) - 1; k >= 0; k-- {
			if a.Box[k] == a.Shape[k] {
				continue
			}
			for _, n := range []int{min(a.Shape[k], 2*a.Box[k]), a.Shape[k]} {
				grown := slices.Clone(a.Box)
				grown[k] = n
				if int64(tensor.Shape(grown).Elems())*int64(a.elem) > left {
					continue
				}
				if reads := a.reads(grown); best == nil || reads < fewest {
					best, fewest = grown, reads
				}
			}
		}
		if best == nil {
			a.Reads = a.reads(a.Box)
			return nil
		}
		a.Box = best
	}
}

// reads returns how many bytes of chunks are decoded if the array is read in boxes. A chunk of the source that several
// boxes have a part of is decoded once for each of them, which is what a larger box saves.
func (a *Array) reads(box []int) int64 {
	total := int64(a.elem)
	for k, n := range a.Shape {
		along, from := int64(0), 1
		if a.From != nil {
			from = a.From[k]
		}
		for at := 0; at < n; at += box[k] {
			end := min(n, at+box[k])
			along += int64(min(n, (end+from-1)/from*from) - at/from*from)
		}
		total *= along
	}
	return total
}

// addCoordinates adds the coordinates of axes to the arrays, unless they are fields already.
func (p *Plan) addCoordinates(ctx context.Context) error {
	known := make(map[string]bool)
	for _, a := range p.Arrays {
		known[a.Name] = true
	}
	for _, a := range slices.Clone(p.Arrays) {
		for k, name := range a.Dims {
			if name == "" || known[name] {
				continue
			}
			known[name] = true
			ds, err := mmapds.Open(p.Source, mmapds.WithFields(name))
			if err != nil {
				continue // there are none
			}
			if f := ds.Schema().Fields[0]; ds.Len() == a.Shape[k] && len(f.Shape) == 0 && !f.Ragged {
				c := Array{Name: name, DType: f.DType.String(), Shape: []int{ds.Len()}, Dims: []string{name},
					From: ds.ChunkShape(name), Chunk: []int{ds.Len()}, fields: []string{name}, elem: f.DType.Size()}
				if err := c.settle(p.opts); err != nil {
					return errors.Join(err, ds.Close())
				}
				p.Arrays = append(p.Arrays, c)
			}
			if err := ds.Close(); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// stamp identifies a run that can be continued: the plan, and the files of the source. Chunks of another plan or of an
// earlier state of the source would otherwise be taken for finished ones.
func (p *Plan) stamp() ([]byte, error) {
	info, err := os.Stat(p.Source)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Arrays []Array
		Level  int
		Size   int64
		Time   int64
	}{p.Arrays, p.opts.Level, info.Size(), info.ModTime().UnixNano()})
}
