package external

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// Memory is memory that worker processes share with this process. Any goroutine may call its
// methods.
type Memory interface {
	// Alloc returns n > 0 bytes.
	Alloc(n int) ([]byte, error)

	// Free gives back what Alloc returned.
	Free(b []byte) error

	// Find returns the offset of b in the shared file, or false if b is elsewhere.
	Find(b []byte) (at int64, ok bool)
}

// ErrClosed is the error of a Pool after Close.
var ErrClosed = errors.New("the workers were ended")

// Pool is the worker processes that call functions of the user. Any goroutine may use it. A worker
// process that ends, or sends what it must not, breaks the Pool for good: the loader's epoch then
// fails with the reason.
type Pool struct {
	names   []string // of the functions, by number
	places  Memory   // for records on their way to and from functions
	batches Memory   // for batches of the loader; nil if worker processes cannot write to them
	workers []*worker
	tasks   chan *task
	line    []byte // where each worker process says which record it works on, lineBytes each

	// mu guards setups, by function, and err, which is why the Pool is broken.
	mu     sync.Mutex
	setups map[int]setup // by function
	err    error         // why it is broken

	broken     chan struct{}
	goroutines sync.WaitGroup
}

// lineBytes is a cache line for each worker process, so that their writes do not slow each other
// down.
const lineBytes = 64

// inFlight is the number of tasks that a worker process has at a time: one that it works on, and
// the next, so that it never waits for this process.
const inFlight = 2

// New returns a Pool of the worker processes at the other ends of conns, which have the functions
// of these names. The Pool closes the connections. batches may be nil.
func New(conns []io.ReadWriteCloser, names []string, shared, batches Memory) (*Pool, error) {
	line, err := shared.Alloc(lineBytes * len(conns))
	if err != nil {
		return nil, err
	}
	p := &Pool{
		names: names, places: shared, batches: batches, tasks: make(chan *task), line: line,
		setups: make(map[int]setup), broken: make(chan struct{}),
	}
	for i, conn := range conns {
		w := &worker{
			pool: p, number: i, conn: conn, at: line[i*lineBytes : (i+1)*lineBytes],
			room: make(chan struct{}, inFlight), flight: make(chan *task, inFlight), known: make(map[int]bool),
		}
		p.workers = append(p.workers, w)
	}
	for _, w := range p.workers {
		p.goroutines.Go(w.send)
		p.goroutines.Go(w.receive)
	}
	return p, nil
}

// Workers returns the number of processes.
func (p *Pool) Workers() int { return len(p.workers) }

// Len returns the number of functions.
func (p *Pool) Len() int { return len(p.names) }

// Name returns the name of a function.
func (p *Pool) Name(function int) string { return p.names[function] }

// Close ends the connections, which makes the worker processes end, and waits for its goroutines.
// Tasks that are not done fail. Close may be called again.
func (p *Pool) Close() {
	p.fail(ErrClosed)
	p.goroutines.Wait()
}

// fail breaks the Pool with the first error. Only Close closes the connections: before it, receive
// may still read the reason why a process has ended.
func (p *Pool) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, ErrClosed) {
		for _, w := range p.workers {
			w.conn.Close() // the process at the other end notices
		}
	}
	if p.err == nil {
		p.err = err
		close(p.broken)
	}
}

// failure returns why the Pool is broken, nil if it is not.
func (p *Pool) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// submit gives a task to the next worker process that has room. All processes take tasks from one
// channel, so a slow record delays only its own process.
func (p *Pool) submit(t *task) error {
	t.worker.Store(nil)
	select {
	case <-p.broken: // select chooses at random if both are ready, so this is looked at first
		return p.failure()
	default:
	}
	select {
	case p.tasks <- t:
		return nil
	case <-p.broken:
		return p.failure()
	}
}

// wait waits for a task that was submitted. A result that has arrived counts even if the Pool is
// broken meanwhile.
func (p *Pool) wait(t *task) error {
	select {
	case err := <-t.done:
		return err
	default:
	}
	select {
	case err := <-t.done:
		return err
	case <-p.broken:
		return p.failure()
	}
}

// declare says what a function takes and returns. It comes before the function's first task.
func (p *Pool) declare(s setup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setups[s.Function] = s
}

// setupOf returns the settings that were declared for a function.
func (p *Pool) setupOf(function int) (setup, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.setups[function]
	return s, ok
}

// task is some records for which a worker process calls a function, or a probe. It is used again
// after its result was received from done.
type task struct {
	function int
	epoch    int
	seed     uint64
	records  []record
	probe    *probe // if not nil, in place of records

	worker atomic.Pointer[worker] // the process that has the task
	done   chan error             // receives one result for each submit
	made   *made                  // the answer to a probe
	inside uint64                 // nanoseconds in the function
	all    uint64                 // nanoseconds in the process
}

// newTask returns an empty task.
func newTask() *task { return &task{done: make(chan error, 1)} }

// worker is one worker process, with a goroutine that sends tasks and one that receives results.
type worker struct {
	pool    *Pool
	number  int
	conn    io.ReadWriteCloser
	at      []byte // where the process says which record it works on
	process atomic.Int64
	room    chan struct{} // has an entry for each task in flight, inFlight at most
	flight  chan *task    // tasks that were sent, in the order of their answers
	known   map[int]bool  // functions whose setup was sent; used by send only
	buffer  []byte        // of send
}

// String names the worker.
func (w *worker) String() string {
	if id := w.process.Load(); id > 0 {
		return fmt.Sprintf("worker %d (process %d)", w.number, id)
	}
	return fmt.Sprintf("worker %d", w.number)
}

// record returns the number of the record that the process works on, -1 if it works on none. The
// process may write the word at the same time; it is for messages only.
func (w *worker) record() int { return int(binary.NativeEndian.Uint64(w.at)) - 1 }

// send sends tasks while the process has room for them. After an error it just returns: receive
// reads the process's last messages, which give the reason.
func (w *worker) send() {
	at, _ := w.pool.places.Find(w.at)
	b, err := appendJSON(nil, toWorker{Hello: &hello{Version: Version, Worker: w.number, At: at}})
	if err == nil {
		_, err = w.conn.Write(b)
	}
	for err == nil {
		select {
		case w.room <- struct{}{}:
		case <-w.pool.broken:
			return
		}
		select {
		case t := <-w.pool.tasks:
			t.worker.Store(w)
			w.flight <- t
			err = w.sendTask(t)
		case <-w.pool.broken:
			return
		}
	}
	// The other end is closed: receive, which reads the process's last messages, says why.
}

// sendTask sends a task, preceded by the function's setup the first time.
func (w *worker) sendTask(t *task) (err error) {
	b := w.buffer[:0]
	if t.probe != nil {
		b, err = appendJSON(b, toWorker{Probe: t.probe})
	} else {
		if !w.known[t.function] {
			s, _ := w.pool.setupOf(t.function)
			if b, err = appendJSON(b, toWorker{Setup: &s}); err != nil {
				return err
			}
			w.known[t.function] = true
		}
		b = appendTask(b, t.function, t.epoch, t.seed, t.records)
	}
	if err != nil {
		return err
	}
	w.buffer = b
	_, err = w.conn.Write(b)
	return err
}

// receive completes tasks as the process reports them, until the connection ends.
func (w *worker) receive() {
	in := reader{in: bufio.NewReader(w.conn)}
	for {
		d, m, err := in.next()
		if err == nil {
			err = w.take(d, m)
		}
		if err != nil {
			w.pool.fail(w.lost(err))
			return
		}
	}
}

// take handles a message. Answers come in the order of the tasks; anything else is an error that
// breaks the Pool.
func (w *worker) take(d done, m fromWorker) error {
	if m.Ready != nil {
		w.process.Store(int64(m.Ready.Process))
		return nil
	}
	var t *task
	select {
	case t = <-w.flight:
	default:
		if m.Raised != nil { // before its first task
			return &workerError{w.String(), m.Raised}
		}
		return errors.New("a report of a task that it does not have")
	}
	var err error
	switch {
	case m.Raised != nil:
		if m.Raised.Done < 0 || t.probe == nil && m.Raised.Done >= len(t.records) {
			return fmt.Errorf("an exception at record %d of %d", m.Raised.Done, len(t.records))
		}
		err = &Exception{Function: w.pool.names[t.function], Worker: w.number, Raised: *m.Raised, by: w.String()}
	case m.Made != nil:
		if t.probe == nil {
			return errors.New("the result of a function, without a request")
		}
		t.made = m.Made
	case t.probe != nil || d.count != len(t.records):
		return fmt.Errorf("a report of %d records, of %d", d.count, len(t.records))
	}
	t.inside, t.all = d.inside, d.all
	t.done <- err
	<-w.room
	return nil
}

// isGone reports whether an error means that the process has closed its end.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, net.ErrClosed)
}

// lost returns the error for a process that does not work any more. If it died within a function,
// the error names the record.
func (w *worker) lost(err error) error {
	var of *workerError
	switch {
	case errors.As(err, &of):
		return err
	case !isGone(err):
		return fmt.Errorf("%v: unexpected message: %w", w, err)
	}
	if record := w.record(); record >= 0 {
		return &Ended{fmt.Sprintf("%v has ended while a function of it worked on record %d", w, record), w.number}
	}
	return &Ended{fmt.Sprintf("%v has ended", w), w.number}
}

// Ended is the error of a worker process that has ended.
type Ended struct {
	text   string
	Worker int
}

// Error says which process has ended, and at which record.
func (e *Ended) Error() string { return e.text }

// Exception is the error of a record for which a function raised one.
type Exception struct {
	Function string
	Worker   int
	Raised
	by string
}

// Error says what was raised and where, with the traceback.
func (e *Exception) Error() string {
	text := fmt.Sprintf("%s in %s: %s", e.Function, e.by, e.Type)
	if e.Text != "" {
		text += ": " + e.Text
	}
	if e.Traceback != "" {
		text += "\n" + e.Traceback
	}
	return text
}

// workerError is the error of a worker process that raised an exception before its first task.
type workerError struct {
	worker string
	raised *Raised
}

func (e *workerError) Error() string {
	return fmt.Sprintf("%s cannot begin: %s: %s\n%s", e.worker, e.raised.Type, e.raised.Text, e.raised.Traceback)
}

// Probe makes a worker process call the function of c for one record, and sets Out, Copies and Rows
// by the result. bytes has the record, in memory of Places, and shape its shape.
func (p *Pool) Probe(c *Call, shape tensor.Shape, bytes []byte, of Seeded) error {
	at, ok := p.places.Find(bytes)
	if !ok {
		panic("external: a record outside the shared memory")
	}
	t := newTask()
	t.function = c.Function
	t.probe = &probe{Function: c.Function, In: c.In, At: at, Shape: shape, Index: of.Index, Epoch: of.Epoch, Seed: of.Seed,
		Key: of.Key}
	if err := p.submit(t); err != nil {
		return err
	}
	if err := p.wait(t); err != nil {
		return err
	}
	c.Out = tensor.Spec{Name: c.In.Name, DType: t.made.DType, Shape: t.made.Shape, Layout: t.made.Layout}
	c.Copies, c.Rows = t.made.Keeps, t.made.Rows
	return c.Out.Validate()
}

// Follow makes the last of some calls for one record, whose input is in bytes, applies the engine's
// steps after it, and returns the input of the next call. It frees bytes. The caller frees the
// result.
func (p *Pool) Follow(calls []Call, bytes []byte, shape tensor.Shape, r loader.Record) (_ []byte, err error) {
	n := len(calls) - 1
	c := &calls[n]
	size := c.Out.RecordBytes()
	made, err := p.places.Alloc(size)
	if err != nil {
		return bytes, err
	}
	in, _ := p.places.Find(bytes)
	out, _ := p.places.Find(made)
	t := newTask()
	t.function, t.epoch, t.seed = c.Function, r.Epoch, r.Seed
	t.records = []record{{index: r.Index, key: KeyOf(r, n), in: in, out: out, axes: openAxes(c.In.Shape, shape)}}
	p.declare(c.setup())
	if err = p.submit(t); err == nil {
		err = p.wait(t)
	}
	if err = errors.Join(err, p.places.Free(bytes)); err != nil || c.After == nil {
		return made, err
	}
	spec, err := c.After.Output(c.Out)
	if err != nil {
		return made, err
	}
	do, err := c.After.Worker(c.Out, -1)
	if err != nil {
		return made, err
	}
	next, err := p.places.Alloc(spec.RecordBytes())
	if err != nil {
		return made, err
	}
	err = do(next, made, afterOf(r, n))
	return next, errors.Join(err, p.places.Free(made))
}

// openAxes returns the lengths of the axes that differ from record to record.
func openAxes(of, shape tensor.Shape) (axes [2]int) {
	next := 0
	for i, n := range of {
		if n < 0 {
			axes[next] = shape[i]
			next++
		}
	}
	return axes
}

// Places returns the memory that worker processes share.
func (p *Pool) Places() Memory { return p.places }

// Seeded is a record with the seed of its random numbers.
type Seeded struct {
	Index, Epoch int
	Seed, Key    uint64
}
