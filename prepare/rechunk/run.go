package rechunk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// stampName is the name of the file in the folder of a run that has the stamp of its plan. A run continues only in a
// folder with its own stamp. The file is removed last, before the folder gets its final name.
const stampName = ".rechunk.json"

// Run writes the arrays. progress is called after each box with the bytes of the arrays that are done, and may be nil.
func (p *Plan) Run(ctx context.Context, progress func(done int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	if err := p.run(ctx, progress); err != nil {
		return fmt.Errorf("rechunk: %w", err)
	}
	return nil
}

// stageName is the folder in which a run writes, next to the destination.
func (p *Plan) stageName() string { return "." + filepath.Base(p.Dest) + ".rechunk" }

// run writes all arrays into a folder beside the destination and renames it at the end. The folder of a killed run is
// taken over, and chunks that are complete in it are not written again.
func (p *Plan) run(ctx context.Context, progress func(done int64)) error {
	parent, err := os.OpenRoot(filepath.Dir(p.Dest))
	if err != nil {
		return err
	}
	defer parent.Close()
	unlock, err := p.lock(parent)
	if err != nil {
		return err
	}
	defer unlock()
	stage, err := p.begin(parent)
	if err != nil {
		return err
	}
	defer stage.Close()
	nodes := make(map[string]json.RawMessage)
	for i := range p.Arrays {
		a := &p.Arrays[i]
		text, err := p.metadata(a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		nodes[a.Name] = text
		if err := p.write(ctx, stage, a, progress); err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		if err := writeFile(stage, a.Name+"/zarr.json", text); err != nil {
			return err
		}
	}
	return p.commit(parent, stage, nodes)
}

// lock keeps other runs out of the folder of this run. On a file system without locks nothing keeps them out.
func (p *Plan) lock(parent *os.Root) (unlock func(), err error) {
	name := p.stageName() + ".lock"
	lock, err := write.Lock(parent, name)
	switch {
	case errors.Is(err, write.ErrNoLocks):
		return func() {}, nil
	case errors.Is(err, store.ErrBusy):
		return nil, fmt.Errorf("another run is writing %s; wait until it has ended: %w", p.Dest, store.ErrBusy)
	case err != nil:
		return nil, err
	}
	return func() { write.Unlock(parent, name, lock) }, nil
}

// begin makes the folder of the run, or takes over the folder of a run that was stopped.
func (p *Plan) begin(parent *os.Root) (*os.Root, error) {
	stamp, err := p.stamp()
	if err != nil {
		return nil, err
	}
	found, err := parent.ReadFile(p.stageName() + "/" + stampName)
	switch {
	case err == nil && p.opts.Resume && bytes.Equal(found, stamp):
		return parent.OpenRoot(p.stageName())
	case err == nil && p.opts.Resume:
		return nil, fmt.Errorf("%s is of a run with other chunks, memory or workers, or of another source; give the same, "+
			"or leave --resume out to start again", filepath.Join(filepath.Dir(p.Dest), p.stageName()))
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	if err := parent.RemoveAll(p.stageName()); err != nil {
		return nil, err
	}
	if err := parent.Mkdir(p.stageName(), 0o777); err != nil {
		return nil, err
	}
	stage, err := parent.OpenRoot(p.stageName())
	if err != nil {
		return nil, err
	}
	if err := writeFile(stage, stampName, stamp); err != nil {
		return nil, errors.Join(err, stage.Close())
	}
	return stage, nil
}

// metadata returns the zarr.json of an array, with the names of axes, which xarray needs, and the source's attributes.
func (p *Plan) metadata(a *Array) ([]byte, error) {
	dtype, err := dtypeOf(a.DType)
	if err != nil {
		return nil, err
	}
	dims := a.Dims
	if dims == nil {
		dims = make([]string, len(a.Shape))
	}
	attributes, err := attributesOf(p.Source, a)
	if err != nil {
		return nil, err
	}
	return zarr.EncodeTiles(dtype, a.Shape, a.Chunk, p.opts.Level, dims, attributes)
}

func dtypeOf(name string) (d tensor.DType, err error) {
	err = d.UnmarshalText([]byte(name))
	return d, err
}

// write writes the chunks of an array, a box at a time.
func (p *Plan) write(ctx context.Context, stage *os.Root, a *Array, progress func(done int64)) error {
	ds, err := mmapds.Open(p.Source, mmapds.WithFields(a.fields...))
	if err != nil {
		return err
	}
	defer ds.Close()
	if err := stage.MkdirAll(a.Name, 0o777); err != nil {
		return err
	}
	w := &writer{plan: p, a: a, ds: ds, stage: stage}
	box := make([]int, len(a.Shape))
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := w.box(ctx, box)
		if err != nil {
			return err
		}
		progress(n)
		if !next(box, a.Box, a.Shape) {
			return nil
		}
	}
}

// next advances at to the next position of a grid of steps. It returns false after the last.
func next(at, step, shape []int) bool {
	for k := len(at) - 1; k >= 0; k-- {
		if at[k] += step[k]; at[k] < shape[k] {
			return true
		}
		at[k] = 0
	}
	return false
}

// commit writes the metadata of the groups, and gives the folder its name. Before that the folder is no hierarchy of
// Zarr, and no reader can open it half written. A dataset that is replaced is removed just before the rename: for that
// moment neither dataset is there, as not every system has a call that exchanges two folders.
func (p *Plan) commit(parent, stage *os.Root, nodes map[string]json.RawMessage) error {
	for _, folder := range groups(nodes) {
		text, err := zarr.EncodeGroup(struct{}{}, nil)
		if err != nil {
			return err
		}
		nodes[folder] = text
		if err := writeFile(stage, folder+"/zarr.json", text); err != nil {
			return err
		}
	}
	text, err := zarr.EncodeGroup(struct{}{}, nodes)
	if err == nil {
		err = writeFile(stage, "zarr.json", text)
	}
	if err == nil {
		err = stage.Remove(stampName)
	}
	name := filepath.Base(p.Dest)
	if err == nil && p.opts.Overwrite {
		err = parent.RemoveAll(name)
	}
	if err == nil {
		err = parent.Rename(p.stageName(), name)
	}
	if err != nil {
		return err
	}
	return syncFolder(parent)
}

// groups returns the groups that the arrays are in, without the root.
func groups(nodes map[string]json.RawMessage) (list []string) {
	for name := range nodes {
		for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if !slices.Contains(list, name[:at]) {
				list = append(list, name[:at])
			}
		}
	}
	slices.Sort(list)
	return list
}

// writeFile writes a file under another name, syncs it and renames it: after a kill, a chunk that has its name is
// complete, and the run that continues need not read it.
func writeFile(stage *os.Root, name string, data []byte) error {
	f, err := stage.Create(name + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return stage.Rename(name+".tmp", name)
}

func syncFolder(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// writer writes the chunks of an array.
type writer struct {
	plan  *Plan
	a     *Array
	ds    *mmapds.Dataset
	stage *os.Root
	buf   []byte
}

// box writes the chunks in a box of the array, and returns its bytes. Chunks that an earlier run completed are left,
// and a box without other chunks is not read. One goroutine reads, since the source's own reader is parallel; the
// encoders run beside each other.
func (w *writer) box(parent context.Context, at []int) (int64, error) {
	ctx := parent
	size := make([]int, len(at))
	for k := range size {
		size[k] = min(w.a.Box[k], w.a.Shape[k]-at[k])
	}
	n := tensor.Shape(size).Elems() * w.a.elem
	todo := w.missing(at, size)
	if len(todo) == 0 {
		return int64(n), nil
	}
	if cap(w.buf) < n {
		w.buf = make([]byte, n)
	}
	data := block{bytes: w.buf[:n], at: slices.Clone(at), size: size, elem: w.a.elem}
	if err := w.read(ctx, &data); err != nil {
		return 0, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(w.plan.opts.Workers)
	encoders := make(chan *encoder, w.plan.opts.Workers)
	for _, c := range todo {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return w.encode(encoders, c, &data) })
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	return int64(n), context.Cause(parent)
}

// missing returns the positions of the chunks in a box that are not complete yet.
func (w *writer) missing(at, size []int) (list [][]int) {
	number := make([]int, len(at))
	first, end := make([]int, len(at)), make([]int, len(at))
	one := slices.Repeat([]int{1}, len(at))
	for k := range at {
		first[k] = at[k] / w.a.Chunk[k]
		end[k] = (size[k] + w.a.Chunk[k] - 1) / w.a.Chunk[k]
	}
	for more := true; more; more = next(number, one, end) {
		c := make([]int, len(at))
		for k := range c {
			c[k] = first[k] + number[k]
		}
		if _, err := w.stage.Stat(w.path(c)); err != nil {
			list = append(list, c)
		}
	}
	return list
}

// path returns the file of a chunk.
func (w *writer) path(chunk []int) string {
	name := w.a.Name + "/c"
	for _, n := range chunk {
		name += fmt.Sprintf(".%d", n)
	}
	return name
}

// encoder makes chunks, one at a time.
type encoder struct {
	zstd *zarr.Encoder
	tile block
}

func (w *writer) newEncoder() (*encoder, error) {
	size := tensor.Shape(w.a.Chunk).Elems() * w.a.elem
	e, err := zarr.NewEncoder(zarr.Grid{Chunk: 1, Zstd: w.plan.opts.Level}, size)
	tile := block{bytes: make([]byte, size), size: w.a.Chunk, elem: w.a.elem, at: make([]int, len(w.a.Chunk))}
	return &encoder{e, tile}, err
}

// encode writes a chunk.
func (w *writer) encode(encoders chan *encoder, chunk []int, data *block) (err error) {
	var e *encoder
	select {
	case e = <-encoders:
	default:
		if e, err = w.newEncoder(); err != nil {
			return err
		}
	}
	for k := range chunk {
		e.tile.at[k] = chunk[k] * w.a.Chunk[k]
	}
	clear(e.tile.bytes)
	e.tile.copyFrom(data)
	out, _, err := e.zstd.Encode(e.tile.bytes)
	if err == nil {
		err = writeFile(w.stage, w.path(chunk), out)
	}
	encoders <- e
	return err
}

// read reads a box of the array.
func (w *writer) read(ctx context.Context, data *block) error {
	if w.a.From != nil {
		return w.readChunks(ctx, data)
	}
	record := block{at: make([]int, len(data.size)), size: append([]int{1}, w.a.Shape[1:]...), elem: w.a.elem}
	size := tensor.Shape(record.size).Elems() * w.a.elem
	return w.ds.Guard(func() error {
		for k := range data.size[0] {
			record.at[0] = data.at[0] + k
			if w.ds.Contiguous(w.a.Name, record.at[0], record.at[0]+1) {
				v, err := w.ds.Slice(w.a.Name, record.at[0], record.at[0]+1)
				if err != nil {
					return err
				}
				record.bytes = v.Bytes()
			} else {
				if len(record.bytes) != size {
					record.bytes = make([]byte, size)
				}
				if err := w.ds.Gather(ctx, w.a.Name, record.at[:1], record.bytes); err != nil {
					return err
				}
			}
			data.copyFrom(&record)
		}
		return ctx.Err()
	})
}

// readChunks decodes the chunks that a box has a part of, each once.
func (w *writer) readChunks(ctx context.Context, data *block) error {
	from := w.a.From
	parent := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(w.plan.opts.Workers)
	first, end := make([]int, len(from)), make([]int, len(from))
	for k := range from {
		first[k] = data.at[k] / from[k]
		end[k] = (data.at[k]+data.size[k]+from[k]-1)/from[k] - first[k]
	}
	number, one := make([]int, len(from)), slices.Repeat([]int{1}, len(from))
	spare := make(chan []byte, w.plan.opts.Workers)
	for more := true; more && ctx.Err() == nil; more = next(number, one, end) {
		c := block{at: make([]int, len(from)), size: from, elem: w.a.elem}
		at := make([]int, len(from))
		for k := range from {
			at[k] = first[k] + number[k]
			c.at[k] = at[k] * from[k]
		}
		g.Go(func() error {
			select {
			case c.bytes = <-spare:
			default:
				c.bytes = make([]byte, tensor.Shape(from).Elems()*w.a.elem)
			}
			if err := w.ds.ReadChunk(ctx, w.a.Name, at, c.bytes); err != nil {
				return err
			}
			data.copyFrom(&c)
			select {
			case spare <- c.bytes:
			default:
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(parent)
}

// block is a box of an array in memory.
type block struct {
	bytes []byte
	at    []int // its first element in the array
	size  []int
	elem  int
}

// copyFrom copies the elements that both blocks have from the other block.
func (b *block) copyFrom(from *block) {
	rank := len(b.at)
	lo, n := make([]int, rank), make([]int, rank)
	for k := range lo {
		lo[k] = max(b.at[k], from.at[k])
		if n[k] = min(b.at[k]+b.size[k], from.at[k]+from.size[k]) - lo[k]; n[k] <= 0 {
			return
		}
	}
	b.copyRows(from, lo, n, 0, 0, 0)
}

// copyRows copies along an axis, and those after it.
func (b *block) copyRows(from *block, lo, n []int, axis, to, of int) {
	to = to*b.size[axis] + lo[axis] - b.at[axis]
	of = of*from.size[axis] + lo[axis] - from.at[axis]
	if axis == len(lo)-1 {
		copy(b.bytes[to*b.elem:(to+n[axis])*b.elem], from.bytes[of*b.elem:])
		return
	}
	for k := range n[axis] {
		b.copyRows(from, lo, n, axis+1, to+k, of+k)
	}
}
