package expr

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

// Filter is a parsed expression. It never changes, and several goroutines may use it.
type Filter struct {
	text string
	root *node
}

// Parse reads an expression. Its error is an [*Error].
func Parse(text string) (*Filter, error) {
	root, err := parse(text)
	if err != nil {
		return nil, explain(err, "filter: ", text)
	}
	return &Filter{text, root}, nil
}

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

// Find returns the records of src for which an expression is true.
func Find(ctx context.Context, src loader.Source, text string) (*Set, error) {
	f, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return f.Find(ctx, src)
}

// Find returns the records of src for which the expression holds. It reads the fields of the expression in
// blocks, on all CPUs. The error is an [*Error] if the expression does not fit the fields, or has no value for a
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
		return nil, explain(err, "filter: ", f.text)
	}
	words := make([]uint64, (src.Len()+63)/64)
	scan := &scan{ctx: ctx, src: s, end: src.Len(), step: stepOf(s, f.Fields())}
	err = scan.run(func(b *block, active []bool) error {
		c, err := e.of(b, active)
		if err == nil {
			setBits(words[b.first/64:], c.truths, c.step(), b.n)
		}
		return err
	})
	if err != nil {
		return nil, explain(err, "filter: ", f.text)
	}
	return NewSet(src.Len(), words), nil
}

// setBits sets the bits of n truths, word by word. Blocks begin at multiples of 64 records, so that
// two goroutines never write the same word.
func setBits(words []uint64, truths []bool, step, n int) {
	for i := 0; i < n; i += 64 {
		word := uint64(0)
		for k := range min(64, n-i) {
			if truths[(i+k)*step] {
				word |= 1 << k
			}
		}
		words[i/64] = word
	}
}

// scan reads records in blocks, by several goroutines. Each takes the next block from a counter; mu
// guards only the error.
type scan struct {
	ctx        context.Context
	src        source
	first, end int // records
	step       int // of a block

	next  atomic.Int64 // block
	mu    sync.Mutex
	err   error // of the first block that failed
	block int64 // that one
}

const (
	mostRecords  = 1 << 13 // of a block, whose columns stay in the cache
	blockBytes   = 4 << 20 // of the fields of a block
	remoteBlocks = 16      // that are read at a time over a network
)

// stepOf returns the number of records per block for an expression that reads some fields: a
// multiple of 64, so that each block has whole words of the result.
func stepOf(src source, fields []string) int {
	size := 1
	for _, spec := range src.Specs() {
		if slices.Contains(fields, spec.Name) && !spec.Ragged {
			size += spec.RecordBytes()
		}
	}
	return min(mostRecords, max(64, blockBytes/size/64*64))
}

// run calls f with each block, and a list that says that all its records are active. At the end,
// files that were truncated meanwhile are an error: their bytes may have read as zeros.
func (s *scan) run(f func(b *block, active []bool) error) error {
	blocks := (s.end - s.first + s.step - 1) / s.step
	workers := runtime.GOMAXPROCS(0)
	if s.src.can.Remote != nil {
		workers = max(workers, remoteBlocks)
	}
	var wg sync.WaitGroup
	for range min(workers, blocks) {
		wg.Go(func() { s.work(int64(blocks), f) })
	}
	wg.Wait()
	if s.err == nil && s.src.can.Checked != nil {
		s.err = s.src.can.Checked.Intact()
	}
	return s.err
}

// work calls f with one block after another.
func (s *scan) work(blocks int64, f func(b *block, active []bool) error) {
	b := &block{ctx: s.ctx, src: s.src, fields: make(map[string]column)}
	active := slices.Repeat([]bool{true}, s.step)
	for {
		k := s.next.Add(1) - 1
		if k >= blocks {
			return
		}
		first := s.first + int(k)*s.step
		b.begin(first, min(s.step, s.end-first))
		err := s.ctx.Err()
		if err == nil {
			err = s.guard(func() error { return f(b, active[:b.n]) })
		}
		if err != nil {
			s.next.Store(blocks) // blocks before this one have been taken
			s.fail(k, err)
			return
		}
	}
}

// fail keeps the error of the first block with an error, so that the error is the same in every run.
func (s *scan) fail(block int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || block < s.block {
		s.err, s.block = err, block
	}
}

// guard calls f, and returns a fault in the Source's mapped memory as an error.
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
