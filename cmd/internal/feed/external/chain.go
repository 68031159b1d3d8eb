package external

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/internal/staged"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// Head makes the input of the first function of a Chain from stored records.
type Head interface {
	// Output describes a record after the Head. A negative axis in its Shape stands for a
	// length that differs from record to record: there are at most two such axes.
	Output(in tensor.Spec) (tensor.Spec, error)

	// Worker returns the function for one goroutine.
	Worker(in tensor.Spec, id int) (HeadFunc, error)
}

// HeadFunc writes the result for the stored bytes src into memory of room, which it calls exactly
// once, and returns the lengths of the axes that differ from record to record. It asks for the
// memory itself because the length is often known only after a look at src.
type HeadFunc func(room func(n int) ([]byte, error), src []byte, r loader.Record) (axes [2]int, err error)

// Call is a function of a Chain.
type Call struct {
	Function int
	In       tensor.Spec      // what it takes; for the first Call, axes may be negative
	Out      tensor.Spec      // what it returns
	Copies   bool             // it gets copies of its inputs, since it keeps references to them
	Rows     bool             // a result has any number of rows, or is a text; then Out is not fixed
	After    loader.Transform // the engine's steps after the function; nil if there are none
}

// setup returns the settings that a worker process must know before the first task.
func (c *Call) setup() setup { return setup{c.Function, c.In, c.Out, c.Copies} }

// Chain is the Transform of a field by functions of the user, with the engine's steps before,
// between and after them. Any goroutine of the loader may ask it for a Stage.
type Chain struct {
	Pool   *Pool
	Recipe string // identifies the steps, for ID
	Head   Head
	Calls  []Call
	Batch  int // records of a batch, which are spread over the worker processes
	Stats  *Stats
}

var (
	_ loader.Transform                = (*Chain)(nil)
	_ staged.Transform[loader.Record] = (*Chain)(nil)
)

// Stats counts the work of a Chain. Times are in nanoseconds, summed over goroutines or worker
// processes.
type Stats struct {
	Records  atomic.Int64
	Head     atomic.Int64 // in the engine, before the first function
	Inside   atomic.Int64 // in functions
	Worker   atomic.Int64 // in worker processes, functions included
	After    atomic.Int64 // in the engine, after functions
	Waited   atomic.Int64 // by the loader's goroutines, for worker processes
	Messages atomic.Int64
}

// ID returns the Recipe, in which functions are named.
func (c *Chain) ID() string { return c.Recipe }

// Output returns the result of the last step.
func (c *Chain) Output(tensor.Spec) (tensor.Spec, error) {
	last := &c.Calls[len(c.Calls)-1]
	if last.After == nil {
		return last.Out, nil
	}
	return last.After.Output(last.Out)
}

// Worker returns a function that makes one record at a time, for callers that do not use stages.
func (c *Chain) Worker(in tensor.Spec, id int) (loader.RecordFunc, error) {
	s, err := c.Stage(in, id)
	if err != nil {
		return nil, err
	}
	return func(dst, src []byte, r loader.Record) error {
		ctx := context.Background()
		if err := s.Put(ctx, dst, src, r); err != nil {
			return err
		}
		return s.Flush(ctx)
	}, nil
}

// Stage returns the Chain's state for one goroutine of the loader, and declares the functions to
// the Pool.
func (c *Chain) Stage(in tensor.Spec, id int) (staged.Stage[loader.Record], error) {
	head, err := c.Head.Worker(in, id)
	if err != nil {
		return nil, err
	}
	s := &stage{chain: c, head: head, after: make([]loader.RecordFunc, len(c.Calls))}
	bytes := 0
	for i := range c.Calls {
		call := &c.Calls[i]
		if call.After != nil {
			if s.after[i], err = call.After.Worker(call.Out, id); err != nil {
				return nil, err
			}
		}
		if !isOpen(call.In) {
			bytes += aligned(call.In.RecordBytes())
		}
		bytes += aligned(call.Out.RecordBytes())
		c.Pool.declare(call.setup())
	}
	s.most = c.together(bytes)
	return s, nil
}

// Limits of a task. With more records, the cost of its two messages is spread no better; with more
// bytes, the records would have left the cache when the other process reads them.
const (
	mostTogether = 64
	taskBytes    = 2 << 20
)

// together returns the number of records in a task. A batch has at least one task for each worker
// process, so that all processes work on the batch.
func (c *Chain) together(bytes int) int {
	share := (c.Batch + c.Pool.Workers() - 1) / c.Pool.Workers()
	return max(1, min(mostTogether, taskBytes/max(1, bytes), share))
}

// isOpen reports whether a Spec has axes whose lengths differ from record to record.
func isOpen(s tensor.Spec) bool {
	for _, n := range s.Shape {
		if n < 0 {
			return true
		}
	}
	return s.Ragged
}

// align is the alignment of records in shared memory.
const align = 64

// aligned rounds n up to a multiple of align.
func aligned(n int) int { return (n + align - 1) &^ (align - 1) }

// Where the random numbers of functions, and of the steps after them, begin in the record's stream:
// see KeyOf. The steps before the first function use the record's own numbers.
const (
	functionKey = 0x510e527fade682d1
	afterKey    = 0x9b05688c2b3e6c1f
)

// KeyOf returns the seed of the random numbers of the n-th function of a Chain for a record. The
// seed depends on the record and not on the worker process, so that a run is the same with any
// number of processes.
func KeyOf(r loader.Record, n int) uint64 {
	r.Seed = permute.Place(r.Seed, functionKey+uint64(n))
	rnd := r.Rand()
	return rnd.Uint64()
}

// afterOf returns the record for the engine's steps after the n-th function, with random numbers of
// their own.
func afterOf(r loader.Record, n int) loader.Record {
	r.Seed = permute.Place(r.Seed, afterKey+uint64(n))
	return r
}

// stage is a Chain at work for one goroutine. Its records are in groups, each of which is one task
// at a time: while worker processes have some groups, the goroutine fills others.
//
//	free -> filling -> out (of Calls[0]) -> out (of Calls[1]) ... -> free
//
// Groups in out end in the order in which they were submitted.
type stage struct {
	chain   *Chain
	head    HeadFunc
	after   []loader.RecordFunc // by call; nil copies the result
	most    int                 // records in a group
	made    int                 // number of groups that exist
	free    []*group
	filling *group
	out     []*group // oldest first
	oldest  atomic.Pointer[group]
}

// group is some records on their way through the Chain.
type group struct {
	task    *task
	records []pending
	areas   []area // memory by call
	call    int    // the number of the call that the task is for
}

// pending is a record on its way, and the memory for its final result.
type pending struct {
	dst []byte
	r   loader.Record
}

// area is the memory of a group for one call: in for the inputs, out for the results. It is kept
// for later records.
type area struct {
	in, out     []byte
	inAt, outAt int64 // offsets of in and out in the shared file
	used        int   // bytes of in that have records
}

// Put begins to make a record from src. dst has its result after Flush.
func (s *stage) Put(ctx context.Context, dst, src []byte, r loader.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	began := time.Now()
	if s.filling == nil {
		if err := s.begin(); err != nil {
			return err
		}
		began = time.Now()
	}
	var place []byte
	axes, err := s.head(func(n int) (_ []byte, err error) {
		place, err = s.room(n)
		return place, err
	}, src, r)
	s.chain.Stats.Head.Add(int64(time.Since(began)))
	if err != nil {
		return err
	}
	g := s.filling
	a := &g.areas[0]
	at := a.inAt + int64(a.used)
	a.used += aligned(len(place))
	g.records = append(g.records, pending{dst, r})
	g.task.records = append(g.task.records, record{index: r.Index, key: KeyOf(r, 0), in: at, axes: axes})
	if len(g.records) == s.most {
		return s.submit()
	}
	return nil
}

// begin takes a group to fill: a free group, a new one while there are few, or the oldest group
// that is out, for which it waits. This bounds the memory, and how far the goroutine runs ahead of
// the functions.
func (s *stage) begin() error {
	for len(s.free) == 0 {
		if s.made < inFlight*s.chain.Pool.Workers()+1 {
			s.made++
			s.free = append(s.free, &group{task: newTask(), areas: make([]area, len(s.chain.Calls))})
			break
		}
		if err := s.advance(); err != nil {
			return s.drain(err)
		}
	}
	s.filling = s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.filling.reset()
	return nil
}

// reset empties a group and keeps its memory.
func (g *group) reset() {
	g.records, g.task.records, g.call = g.records[:0], g.task.records[:0], 0
	for i := range g.areas {
		g.areas[i].used = 0
	}
}

// room returns memory for the next record of the group that is being filled. If the record does not
// fit, the group is submitted and the record becomes the first of another group.
func (s *stage) room(n int) ([]byte, error) {
	if a := &s.filling.areas[0]; a.used+n > len(a.in) && len(s.filling.records) > 0 {
		if err := s.submit(); err != nil {
			return nil, err
		}
		if err := s.begin(); err != nil {
			return nil, err
		}
	}
	a := &s.filling.areas[0]
	need := s.most * aligned(n)
	if isOpen(s.chain.Calls[0].In) { // the next records may be longer or shorter
		need = n
		if n > len(a.in) {
			need = max(n+n/2, min(taskBytes, s.most*aligned(n)))
		}
	}
	if err := s.grow(&a.in, &a.inAt, need); err != nil {
		return nil, err
	}
	return a.in[a.used : a.used+n : a.used+n], nil
}

// grow replaces memory of the Pool by larger memory if it has less than n bytes. Its content is
// lost.
func (s *stage) grow(b *[]byte, at *int64, n int) error {
	if n <= len(*b) {
		return nil
	}
	places := s.chain.Pool.places
	if len(*b) > 0 {
		if err := places.Free(*b); err != nil {
			return err
		}
	}
	fresh, err := places.Alloc(n)
	if err != nil {
		return &staged.Error{Record: -1, Err: err}
	}
	*b = fresh
	*at, _ = places.Find(fresh)
	return nil
}

// submit gives the group that was filled to the worker processes, and completes groups that are
// ready already.
func (s *stage) submit() error {
	g := s.filling
	s.filling = nil
	if err := s.call(g); err != nil {
		return s.drain(s.broken(err))
	}
	s.out = append(s.out, g)
	s.oldest.Store(s.out[0])
	for len(s.out) > 0 && len(s.out[0].task.done) > 0 { // does not wait
		if err := s.advance(); err != nil {
			return s.drain(err)
		}
	}
	return nil
}

// call submits the task for a group's current call. If nothing follows the last function and the
// batch is in memory that the worker processes share, they write results straight into the batch.
func (s *stage) call(g *group) error {
	c := &s.chain.Calls[g.call]
	a := &g.areas[g.call]
	size := aligned(c.Out.RecordBytes())
	direct := g.call == len(s.chain.Calls)-1 && s.after[g.call] == nil && s.chain.Pool.batches != nil
	for i := range g.records {
		r := &g.task.records[i]
		r.where = places
		if direct {
			if at, ok := s.chain.Pool.batches.Find(g.records[i].dst); ok {
				r.where, r.out = batches, at
				continue
			}
		}
		if err := s.grow(&a.out, &a.outAt, size*s.most); err != nil {
			return err
		}
		r.out = a.outAt + int64(i*size)
	}
	g.task.function, g.task.epoch, g.task.seed = c.Function, g.records[0].r.Epoch, g.records[0].r.Seed
	s.chain.Stats.Messages.Add(1)
	return s.chain.Pool.submit(g.task)
}

// broken returns an error that belongs to no record, such as the end of a worker process: the
// loader must not skip a record for it.
func (s *stage) broken(err error) error {
	var at *staged.Error
	if errors.As(err, &at) {
		return err
	}
	return &staged.Error{Record: -1, Err: err}
}

// advance waits for the oldest group that is out, and then does the engine's next steps with it:
// the next call, or the end.
func (s *stage) advance() error {
	g := s.out[0]
	began := time.Now()
	err := s.chain.Pool.wait(g.task)
	now := time.Now()
	s.chain.Stats.Waited.Add(int64(now.Sub(began)))
	if err != nil {
		var raised *Exception
		if !errors.As(err, &raised) {
			return s.broken(err)
		}
		s.retire()
		return &staged.Error{Record: g.records[raised.Done].r.Index, Err: err}
	}
	s.chain.Stats.Inside.Add(int64(g.task.inside))
	s.chain.Stats.Worker.Add(int64(g.task.all))
	if err := s.follow(g); err != nil {
		s.retire()
		return err
	}
	s.chain.Stats.After.Add(int64(time.Since(now)))
	if g.call++; g.call < len(s.chain.Calls) {
		if err := s.call(g); err != nil {
			return s.broken(err)
		}
		return nil
	}
	s.chain.Stats.Records.Add(int64(len(g.records)))
	s.retire()
	return nil
}

// retire moves the oldest group from out to free.
func (s *stage) retire() {
	s.free = append(s.free, s.out[0])
	s.out = append(s.out[:0], s.out[1:]...)
	s.oldest.Store(nil)
	if len(s.out) > 0 {
		s.oldest.Store(s.out[0])
	}
}

// follow applies the engine's steps after a call to the records of a group.
func (s *stage) follow(g *group) error {
	c := &s.chain.Calls[g.call]
	a := &g.areas[g.call]
	size, step, last := c.Out.RecordBytes(), aligned(c.Out.RecordBytes()), g.call == len(s.chain.Calls)-1
	for i := range g.records {
		p, r := &g.records[i], &g.task.records[i]
		if last && r.where == batches {
			continue // the worker process has written it to the batch
		}
		dst := p.dst
		if !last {
			var err error
			if dst, err = s.next(g, i); err != nil {
				return err
			}
		}
		src := a.out[i*step : i*step+size]
		if s.after[g.call] == nil {
			copy(dst, src)
		} else if err := s.after[g.call](dst, src, afterOf(p.r, g.call)); err != nil {
			return &staged.Error{Record: p.r.Index, Err: err}
		}
		if !last {
			r.key = KeyOf(p.r, g.call+1)
		}
	}
	return nil
}

// next returns the memory of record i of a group for the next call.
func (s *stage) next(g *group, i int) ([]byte, error) {
	a, size := &g.areas[g.call+1], s.chain.Calls[g.call+1].In.RecordBytes()
	if err := s.grow(&a.in, &a.inAt, s.most*aligned(size)); err != nil {
		return nil, err
	}
	at := i * aligned(size)
	g.task.records[i].in, g.task.records[i].axes = a.inAt+int64(at), [2]int{}
	return a.in[at : at+size : at+size], nil
}

// drain waits for all groups that are out and drops their records, after an error, which it
// returns. If the Pool is broken, the groups are not used again: a worker process may still write
// to their memory.
func (s *stage) drain(err error) error {
	for len(s.out) > 0 {
		if s.chain.Pool.wait(s.out[0].task) != nil && s.chain.Pool.failure() != nil {
			s.made -= len(s.out) // others may be made in their place
			s.out = s.out[:0]
			s.oldest.Store(nil)
			break
		}
		s.retire()
	}
	if s.filling != nil {
		s.free = append(s.free, s.filling)
		s.filling = nil
	}
	return err
}

// Flush completes all records that were put.
func (s *stage) Flush(ctx context.Context) error {
	if ctx.Err() != nil {
		return s.drain(ctx.Err())
	}
	if s.filling != nil && len(s.filling.records) > 0 {
		if err := s.submit(); err != nil {
			return err
		}
	}
	for len(s.out) > 0 {
		if err := s.advance(); err != nil {
			return s.drain(err)
		}
	}
	return nil
}

// Waiting returns the record that the worker process of the oldest task works on, and the
// function that it runs: for the error of a timeout. Any goroutine may call it.
func (s *stage) Waiting() (record int, on string) {
	g := s.oldest.Load()
	if g == nil {
		return -1, ""
	}
	w := g.task.worker.Load()
	if w == nil {
		return -1, ""
	}
	if record = w.record(); record < 0 {
		return -1, ""
	}
	return record, fmt.Sprintf("%s in %v has not returned", s.chain.Pool.names[s.chain.Calls[0].Function], w)
}
