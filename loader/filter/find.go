package filter

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/loader"
)

// Filter is an expression that was read. It may be used by several goroutines.
type Filter struct {
	text string
	root *node
}

// Parse reads an expression. Its error is an [*Error].
func Parse(text string) (*Filter, error) {
	root, err := parse(text)
	if err != nil {
		return nil, explain(err, text)
	}
	return &Filter{text, root}, nil
}

// String returns the text of the expression.
func (f *Filter) String() string { return f.text }

// Fields returns the names of the fields that the expression reads, each once, in the order of the text.
func (f *Filter) Fields() []string {
	var list []string
	var walk func(n *node)
	walk = func(n *node) {
		if n == nil {
			return
		}
		if n.kind == fieldNode && !slices.Contains(list, n.text) {
			list = append(list, n.text)
		}
		for _, arg := range n.args {
			walk(arg)
		}
	}
	walk(f.root)
	return list
}

// Find returns the records of src for which an expression holds.
func Find(ctx context.Context, src loader.Source, text string) (*Set, error) {
	f, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return f.Find(ctx, src)
}

// Find returns the records of src for which the expression holds. It reads the fields that the expression has, in
// blocks, by all processors. An expression that does not fit the fields is an [*Error], and one that has no value for a
// record: an integer that overflows, an element that does not exist.
func (f *Filter) Find(ctx context.Context, src loader.Source) (*Set, error) {
	s, err := newSource(src)
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	if err := src.Retain(); err != nil {
		return nil, err
	}
	defer src.Release()
	e, err := newCompiler(ctx, s).condition(f.root)
	if err != nil {
		return nil, explain(err, f.text)
	}
	scan := &scan{ctx: ctx, src: s, e: e, fields: f.Fields(), words: make([]uint64, (src.Len()+63)/64)}
	if err := scan.run(); err != nil {
		return nil, explain(err, f.text)
	}
	return NewSet(src.Len(), scan.words), nil
}

// scan evaluates an expression for all records.
type scan struct {
	ctx    context.Context
	src    source
	e      expression
	fields []string
	words  []uint64 // one bit a record

	next  atomic.Int64 // block
	mu    sync.Mutex
	err   error // of the first block that failed
	first int64 // that block
}

const (
	mostRecords  = 1 << 13 // of a block, whose columns stay in the cache
	blockBytes   = 4 << 20 // of the fields of a block
	remoteBlocks = 16      // that are read at a time over a network
)

// records returns how many records a block has, a multiple of 64.
func (s *scan) records() int {
	size := 1
	for _, spec := range s.src.Specs() {
		if slices.Contains(s.fields, spec.Name) && !spec.Ragged {
			size += spec.RecordBytes()
		}
	}
	return min(mostRecords, max(64, blockBytes/size/64*64))
}

func (s *scan) run() error {
	n, step := s.src.Len(), s.records()
	blocks := (n + step - 1) / step
	workers := runtime.GOMAXPROCS(0)
	if s.src.can.Remote != nil {
		workers = max(workers, remoteBlocks)
	}
	var wg sync.WaitGroup
	for range min(workers, blocks) {
		wg.Go(func() { s.work(step, int64(blocks)) })
	}
	wg.Wait()
	if s.err == nil && s.src.can.Checked != nil {
		s.err = s.src.can.Checked.Intact()
	}
	return s.err
}

// work evaluates one block after the other.
func (s *scan) work(step int, blocks int64) {
	b := &block{ctx: s.ctx, src: s.src, fields: make(map[string]column)}
	active := make([]bool, step)
	for {
		k := s.next.Add(1) - 1
		if k >= blocks {
			return
		}
		first := int(k) * step
		b.begin(first, min(step, s.src.Len()-first))
		for i := range active {
			active[i] = true
		}
		err := s.ctx.Err()
		if err == nil {
			err = s.guard(func() error { return s.block(b, active[:b.n]) })
		}
		if err != nil {
			s.next.Store(blocks) // blocks before this one have been taken
			s.fail(k, err)
			return
		}
	}
}

// fail keeps the error of the first block that has one, so that it is the same in every run.
func (s *scan) fail(block int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || block < s.first {
		s.err, s.first = err, block
	}
}

// block sets the bits of the records of a block.
func (s *scan) block(b *block, active []bool) error {
	c, err := s.e.of(b, active)
	if err != nil {
		return err
	}
	step, words := c.step(), s.words[b.first/64:]
	for i := 0; i < b.n; i += 64 {
		word := uint64(0)
		for k := range min(64, b.n-i) {
			if c.truths[(i+k)*step] {
				word |= 1 << k
			}
		}
		words[i/64] = word
	}
	return nil
}

// guard calls f, and returns a fault in memory of the Source, whose file was truncated, as an error.
func (s *scan) guard(f func() error) (err error) {
	if s.src.can.Fault == nil {
		return f()
	}
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		r := recover()
		if r == nil {
			return
		}
		if fault, ok := r.(interface{ Addr() uintptr }); ok {
			if err = s.src.can.Fault.Fault(fault.Addr()); err != nil {
				return
			}
		}
		panic(r)
	}()
	return f()
}
