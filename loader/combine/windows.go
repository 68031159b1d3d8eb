package combine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// Windows is a Source whose records are windows of arrays: see [Window]. A window's position
// follows from its number, so that billions of windows take no memory. Records are numbered in the
// order of the axes: windows along the last axis are consecutive.
//
// Windows of arrays in memory are copied from there; windows of whole records that do not overlap,
// and single windows, are views. Of chunked arrays, each chunk is decoded once for a batch, and
// kept for later batches in memory that SetCache limits.
type Windows struct{ cutter }

var _ interface {
	loader.RaggedSource
	loader.ChunkedSource
	loader.ChunkSource
	loader.MappedSource
	loader.FaultSource
	loader.CheckedSource
	loader.RemoteSource
	loader.DescribedSource
	loader.ClassedSource
	loader.Identifier
	loader.GenerationSource
} = (*Windows)(nil)

// NewWindows returns the Source of the windows over fields of sources. It reads the field Group, and nothing else.
// The caller still closes the sources.
func NewWindows(ctx context.Context, w Window, sources ...loader.Source) (*Windows, error) {
	ws, err := newWindows(ctx, w, sources)
	if err != nil {
		return nil, fmt.Errorf("combine: window: %w", err)
	}
	return ws, nil
}

func newWindows(ctx context.Context, w Window, sources []loader.Source) (*Windows, error) {
	if len(w.Sizes) == 0 {
		return nil, errors.New("no axis has a size")
	}
	if err := w.checkNumbers(); err != nil {
		return nil, err
	}
	ws := &Windows{}
	for i, src := range sources {
		m, err := newMember(src)
		if err != nil {
			return nil, fmt.Errorf("source %d: %w", i, err)
		}
		ws.members = append(ws.members, m)
	}
	arrays, err := w.arrays(ws.members)
	if err != nil {
		return nil, err
	}
	p := planner{w: &w, arrays: arrays}
	if err := p.plan(); err != nil {
		return nil, err
	}
	ws.fields, ws.axes = p.fields, p.axes
	for i := range p.fields {
		ws.specs = append(ws.specs, p.fields[i].out)
	}
	if ws.origins, err = newOrigins(ctx, &w, p.axes, ws.members); err != nil {
		return nil, err
	}
	text := w.text()
	ws.kind, ws.how = "window", func() []any { return []any{text, w.Origins != nil, digest.Of(w.Origins)} }
	return ws, nil
}

// Len returns the number of windows.
func (w *Windows) Len() int { return w.origins.n }

// Specs returns the fields.
func (w *Windows) Specs() []tensor.Spec { return w.specs }

func (w *Windows) work(field string) int {
	for _, f := range w.fields {
		if f.out.Name == field {
			return workOf(f.part.Source, f.in.Name)
		}
	}
	return 0
}

// Axes returns the names of the axes on which windows have an origin.
func (w *Windows) Axes() []string {
	var names []string
	for _, a := range w.axes {
		names = append(names, a.name)
	}
	return names
}

// Origin sets dst to the origin of a record: one number for each of Axes.
func (w *Windows) Origin(record int, dst []int) {
	var p place
	w.origins.of(record, &p)
	copy(dst, p.at[:len(w.axes)])
}

// Gather copies windows.
func (w *Windows) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	return w.gather(ctx, field, indices, dst)
}

// Contiguous reports whether windows [a, b) are one piece of memory of a Source.
func (w *Windows) Contiguous(field string, a, b int) bool {
	p, name, first, end, ok := w.consecutive(field, a, b)
	return ok && p.can.Contiguous(name, first, end)
}

// Slice returns windows [a, b): memory of the Source if Contiguous says so, otherwise a copy.
func (w *Windows) Slice(field string, a, b int) (tensor.View, error) {
	p, name, first, end, ok := w.consecutive(field, a, b)
	if !ok || !p.can.Contiguous(name, first, end) {
		return copied(w, field, a, b)
	}
	v, err := p.Slice(name, first, end)
	if err != nil {
		return v, err
	}
	return tensor.Of(w.specs[fieldOf(w.specs, field)], b-a, v.Bytes()), nil
}

// Warm makes the Source read the records of windows into memory.
func (w *Windows) Warm(field string, a, b int) error {
	return w.each(field, a, b, (*member).warm)
}

// IsWarm reports whether windows [a, b) are one piece of memory of a Source that needs no reading.
func (w *Windows) IsWarm(field string, a, b int) bool {
	p, name, first, end, ok := w.consecutive(field, a, b)
	return ok && p.can.Mapped != nil && p.can.Mapped.IsWarm(name, first, end)
}

// Prefetch passes the hint on for the records of windows.
func (w *Windows) Prefetch(field string, a, b int) error {
	return w.each(field, a, b, (*member).Prefetch)
}

// SetCache limits the bytes of decoded chunks that are kept besides the chunks in use; 256
// MiB by default. A smaller limit than 1 becomes 1, since 0 means the default.
func (w *Windows) SetCache(bytes int64) {
	w.cache.mu.Lock()
	defer w.cache.mu.Unlock()
	w.cache.limit = max(1, bytes)
	w.cache.evictLocked()
}

// Chunks returns the chunks of HDF5 or Zarr that contain the windows of some fields, or of all fields; with numbers,
// only the chunks of these windows. It is an error if no field is in chunks.
func (w *Windows) Chunks(fields []string, records []int) (sampler.Chunks, error) {
	has := func(f *windowed) bool { return len(fields) == 0 || slices.Contains(fields, f.out.Name) }
	l, err := newChunkLayout(&w.cutter, has)
	if err != nil {
		return sampler.Chunks{}, fmt.Errorf("combine: window: %w", err)
	}
	c, err := l.chunks(records)
	if err != nil {
		return c, fmt.Errorf("combine: window: %w", err)
	}
	return c, nil
}

// KeepChunks keeps decoded chunks as an order needs them: the chunks of its lanes, within its
// memory, instead of the limit of SetCache. Chunks of coming batches are decoded in advance. nil
// ends this.
func (w *Windows) KeepChunks(order *sampler.ChunkShuffle) {
	if order == nil {
		w.retention.Store(nil)
		w.cache.plan(0)
		return
	}
	w.retention.Store(newChunkRetention(&w.cutter, order))
	w.cache.plan(order.Plan().Memory)
}

// Decoded returns how many bytes of chunks, or of records read one by one, were decoded so far.
// Divided by the bytes of the windows, it says how many times each element was decoded.
func (w *Windows) Decoded() int64 {
	w.cache.mu.Lock()
	defer w.cache.mu.Unlock()
	return w.cache.read
}
