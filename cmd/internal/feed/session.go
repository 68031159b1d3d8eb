package feed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/cmd/internal/feed/external"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/store"
)

// errGone is the cause of a session's end when the client has closed the connection.
var errGone = errors.New("the client has gone")

// session serves one client. Two goroutines share it: talk sends batches (run, hand), and listen
// reads requests. The client's requests change what run does through starts and stop; everything
// that open makes is fixed afterwards.
type session struct {
	transport transport
	conn      connection
	in        *bufio.Reader
	cancel    context.CancelCauseFunc
	server

	sending  sync.Mutex    // held while a message is written, as several goroutines write
	messages atomic.Uint64 // number of messages sent, except those that only wake
	watched  bool

	// These are set by open and fixed afterwards. pool is nil if the client has no functions.
	pool    *external.Pool
	subject *subject
	arena   *arena
	ld      *loader.Loader
	desk    *desk
	direct  bool

	positions *positions // nil if batches are sent as messages

	clientWorkers int // the client's num_workers; 0 if it gives none

	starts chan request // holds the latest start that run has not begun
	mu     sync.Mutex
	stop   context.CancelFunc // ends the batches that are being sent; guarded by mu
}

// server has the state that all sessions of a feed share.
type server struct {
	paths     []string          // datasets, as paths or URLs: see package datasetarg
	workers   int               // for clients that give no number
	cache     *datasetarg.Cache // for datasets that are not on this machine, and raw samples
	functions *functionWorkers  // nil if the client has started no worker processes
	refusal   error             // what no client can have; nil if there is nothing
}

// functionWorkers are the worker processes that a client has started for its functions: the memory
// that they share with feed, and a connection to each.
type functionWorkers struct {
	memory *arena
	conns  []io.ReadWriteCloser
}

// functionPool returns a Pool of the worker processes; nil if the client's pipelines have no
// functions.
func (v server) functionPool(o *Options) (*external.Pool, error) {
	names, err := o.functionNames()
	switch {
	case err != nil:
		return nil, fmt.Errorf("feed: options: %w", err)
	case len(names) == 0:
		return nil, nil
	case v.functions == nil:
		return nil, errors.New("feed: functions need worker processes, which a client hands over when it starts feed " +
			"(--functions)")
	}
	return external.New(v.functions.conns, names, shared{v.functions.memory}, nil)
}

// serve serves the client of a transport until the client closes its end or ctx is done, and then
// closes the connection. Errors are sent to the client; serve returns the errors that could not be
// sent. The end of a client is not an error.
func (v server) serve(ctx context.Context, t transport) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{transport: t, conn: t.connection(), cancel: cancel, server: v, starts: make(chan request, 1)}
	defer s.conn.Close()
	s.watched = t.watch(ctx, cancel)
	hung := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(hung)
		s.hangUp(context.Cause(ctx))
	})
	defer func() {
		if !stop() {
			<-hung
		}
	}()
	err := s.talk(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if left(err) {
		return nil
	}
	return err
}

// left reports whether a session ended because its client did, which is no failure.
func left(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, errGone) || errors.Is(err, errPeer) ||
		slices.ContainsFunc(gone, func(end error) bool { return errors.Is(err, end) })
}

// hangUp ends the session of a done context. It sends the reason to the client, unless the client
// has left, and then makes all blocked reads and writes return, by a deadline in the past.
func (s *session) hangUp(cause error) {
	if !left(cause) {
		const writeTimeout = time.Second // with a client that does not read
		_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		_ = s.write(reply{Error: "feed: " + cause.Error()})
	}
	_ = s.conn.CloseWrite()
	_ = s.conn.SetDeadline(time.Unix(1, 0)) // in the past
}

// talk is the life of a session. After an error, which it sends to the client, it waits until the
// client leaves: the client may still read batches, whose memory does not change until then.
func (s *session) talk(ctx context.Context) error {
	q, numbers, err := s.greeting()
	if err != nil {
		return s.refuse(err)
	}
	err = s.open(ctx, q, numbers)
	if numbers != nil {
		err = errors.Join(err, numbers.Close())
	}
	if err != nil {
		return s.refuse(errors.Join(err, s.close()))
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		s.cancel(s.listen(ctx))
	}()
	err = s.run(ctx)
	if ctx.Err() == nil {
		err = s.write(reply{Error: cli.Worded(err.Error())})
	}
	if err != nil {
		s.cancel(err)
	}
	<-heard
	return errors.Join(err, s.close())
}

// greeting reads the first message, and the file that may come with it.
func (s *session) greeting() (request, *os.File, error) {
	in, file, err := s.transport.begin()
	if err != nil {
		return request{}, nil, err
	}
	s.in = bufio.NewReader(in)
	q, err := readRequest(s.in)
	if err != nil && file != nil {
		err = errors.Join(err, file.Close())
		file = nil
	}
	return q, file, err
}

// refuse tells the client why there is no session.
func (s *session) refuse(err error) error {
	if left(err) {
		return err
	}
	var rows rowsError
	errors.As(err, &rows)
	return s.write(reply{Error: cli.Worded(err.Error()), Raised: raisedBy(err), Rows: rows})
}

// open makes the loader that the hello q asks for, and sends the welcome.
func (s *session) open(ctx context.Context, q request, numbers *os.File) error {
	if q.Hello == nil {
		return errors.New("feed: the first message of a client is a hello")
	}
	if v := q.Hello.Version; v != protocol {
		return fmt.Errorf("feed: %w", otherProtocol(v))
	}
	if s.refusal != nil {
		return fmt.Errorf("feed: %w", s.refusal)
	}
	o := &q.Hello.Options
	if err := o.validate(); err != nil {
		return fmt.Errorf("feed: options: %w", err)
	}
	if s.clientWorkers = o.NumWorkers; o.NumWorkers == 0 {
		o.NumWorkers = s.workers
	}
	var err error
	if s.pool, err = s.functionPool(o); err != nil {
		return err
	}
	if s.pool != nil {
		context.AfterFunc(ctx, s.pool.Close) // whoever waits for a function is woken
		if o.NumWorkers == 0 {
			o.NumWorkers = max(2, s.pool.Workers())
		}
	}
	if s.subject, err = newSubject(ctx, s.cache, s.paths, o, numbers, s.pool); err != nil {
		return err
	}
	return s.start(o, q.Hello)
}

// mostBatch is the most bytes that the fixed fields of one batch may have. A batch that is asked
// for by mistake would otherwise take all memory.
const mostBatch = 16 << 30

// checkBatch refuses batches that take more than mostBatch.
func (s *session) checkBatch(records int) error {
	if record := s.recordBytes(); int64(records) > mostBatch/record {
		return fmt.Errorf("feed: a batch of %d records of %d bytes takes more than %d; lower batch_size", records, record,
			int64(mostBatch))
	}
	return nil
}

// recordBytes returns the bytes of a record in a batch, with its number (8) and mask (1), without
// fields of variable length.
func (s *session) recordBytes() int64 {
	n := int64(8 + 1)
	for _, f := range s.subject.fields {
		if !f.Ragged {
			n += int64(f.RecordBytes())
		}
	}
	return n
}

// keepTo has the loader keep to memory bytes of batches, 0 being no limit. Where batches are copied
// to slots, half of the memory is for the loader's batches, and the other half for two slots, which
// have room for half as much again as the batch in them.
func (s *session) keepTo(memory int64, lo *loader.Options) error {
	const least = 4 // batches: the loop's and the one before it, which may still be copied, the next, and the one being filled
	if memory == 0 {
		return nil
	}
	batch, page := int64(0), int64(os.Getpagesize())
	for _, f := range s.subject.fields {
		if !f.Ragged {
			pages := (int64(f.RecordBytes())*int64(lo.BatchSize) + page - 1) / page
			batch += pages * page // each field of a batch begins at a page
		}
	}
	limit := memory / 2
	if s.direct {
		limit = memory - int64(lo.Prefetch*countsBytes(lo.BatchSize))
	} else {
		lo.Prefetch = minSlots
	}
	if limit < max(1, least*batch) {
		return fmt.Errorf("feed: batches of %d records have %s each, and memory has room for %d of them, where %d are the least "+
			"that works; lower batch_size, or give more memory", lo.BatchSize, units.Bytes(batch), max(0, limit)/max(1, batch), least)
	}
	lo.Budget = int(limit)
	return nil
}

// leastView is the size of a batch from which the client maps consecutive records in files; a
// smaller batch is copied faster than it is mapped.
const leastView = 64 << 10

// worthViews reports whether the client should map batches of consecutive records in the files:
// only if nothing is done with the records.
func (s *session) worthViews(o *loader.Options) bool {
	return len(o.Transforms) == 0 && o.Collate.Worker == nil && s.recordBytes()*int64(o.BatchSize) >= leastView
}

// start makes arena, loader, desk and positions, and sends the welcome. The loader's buffers are in
// the arena if all fields have one size, so that a batch is filled where the client reads it.
func (s *session) start(o *Options, hello *hello) error {
	if err := s.checkBatch(o.BatchSize); err != nil {
		return err
	}
	m, err := s.transport.memory()
	if err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	s.arena = newArena(m)
	lo := s.subject.options
	lo.World.LocalSize = localSize(s.transport.environ())
	if s.direct = !s.subject.ragged(); s.direct {
		lo.Allocator = s.arena
		lo.Prefetch = o.slots(s.recordBytes() * int64(o.BatchSize))
	}
	if err := s.keepTo(o.Memory, &lo); err != nil {
		return err
	}
	positioned := hello.Positions && positioned(o, s.subject)
	passer, passes := s.transport.(passer)
	s.arena.views = hello.Files && positioned && passes && s.worthViews(&lo)
	// An error of this write is ignored: a client that has left is noticed by listen.
	lo.Report = func(e *loader.Error) { _ = s.write(reply{Skipped: e.Error()}) }
	if s.ld, err = loader.New(s.subject.src, lo); err != nil {
		return err
	}
	slots := lo.Prefetch
	if o.Memory > 0 && s.direct {
		slots = s.ld.Stats().Prefetch // no more batches can be kept
	}
	if s.desk, err = newDesk(s.arena, s.subject, s.direct, slots, o.BatchSize); err != nil {
		return err
	}
	var where *positionsAt
	if s.arena.views {
		s.desk.files = newFiles(len(s.subject.fields), func(number int, path string, f *os.File) error {
			return s.send(reply{File: path, Number: number}, func(message []byte) error { return passer.pass(message, f) })
		})
	}
	if positioned {
		if s.positions, err = newPositions(s.arena, slots, len(s.subject.fields)); err != nil {
			return err
		}
		where = &s.positions.where
	}
	fields := make([]store.Field, len(s.subject.fields))
	finish := make(map[string]*finish)
	for i, f := range s.subject.fields {
		fields[i] = f.Field
		if f.finish != nil {
			finish[f.Name] = f.finish
		}
	}
	warning, cheaper := s.ld.Order()
	if cheaper == "" {
		warning = ""
	}
	return s.send(reply{Welcome: &welcome{
		Version: protocol, Records: s.subject.src.Len(), Batches: s.ld.Batches(0), Slots: slots, Fields: fields,
		Finish: finish, State: s.ld.State(), Repeats: sampler.Repeats(s.subject.options.Sampler), Warning: warning,
		Positions: where, Size: s.arena.bytes(),
	}}, func(message []byte) error { return s.transport.welcome(message, m) })
}

// close releases what open made. The order matters: the pool first, as the loader waits for
// functions; the desk before the loader, as it holds batches; the arena last, as everything is in
// it.
func (s *session) close() error {
	var errs []error
	if s.pool != nil {
		s.pool.Close()
	}
	if s.desk != nil {
		errs = append(errs, s.desk.Close())
	}
	if s.ld != nil {
		errs = append(errs, s.ld.Close())
	}
	if s.subject != nil {
		errs = append(errs, s.subject.Close())
	}
	if s.arena != nil {
		errs = append(errs, s.arena.Close())
	}
	return errors.Join(errs...)
}

// listen does what the client asks for, until the client leaves or breaks the protocol.
func (s *session) listen(ctx context.Context) error {
	for {
		q, err := readRequest(s.in)
		switch {
		case errors.Is(err, io.EOF):
			return errGone
		case err != nil:
		case q.Hello != nil:
			err = errors.New("feed: a second hello")
		case q.Start != nil:
			err = s.restart(q)
		case q.Stats:
			err = s.write(reply{Stats: s.statistics(&q), Number: q.Number})
		case q.Awake && s.positions != nil:
			s.positions.wake()
		case s.positions != nil:
			err = errors.New("the client gave back slots by a message; they are numbers in the shared memory")
		default:
			err = s.desk.release(q.Release)
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// statistics returns the statistics of the session, with metrics if the request has labels.
func (s *session) statistics(q *request) *statistics {
	stats := q.divide(s.ld.Stats())
	var mixed []loader.MixedStats
	if q.At != nil {
		mixed = s.ld.Mixed(q.At.Epoch, q.At.Step)
	}
	return &statistics{
		Metrics: metrics(q.own(stats), q.Metrics), Mixed: mixed,
		Loader: stats, Diagnose: diagnosis(stats, s.clientWorkers) + s.subject.prepared(), Prepared: s.subject.choices,
		Shared: s.arena.bytes(), Direct: s.direct, Watched: s.watched,
		Functions: reportsOf(s.subject.stats),
	}
}

// metrics returns the statistics in the text format of Prometheus; "" if labels is nil. An empty
// map asks for metrics without labels.
func metrics(stats loader.Stats, labels map[string]string) string {
	if labels == nil {
		return ""
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, name, labels[name])
	}
	var b strings.Builder
	_ = stats.WriteMetrics(&b, pairs...) // a Builder has no errors
	return b.String()
}

// restart makes run begin at another position, and stops the batches that are being sent. A start
// that has not begun is replaced: its client was interrupted and does not wait for the answer.
func (s *session) restart(q request) error {
	if err := s.desk.check(q.Held); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock() // for both steps, so that stop cannot end the batches of this very start
	select {
	case <-s.starts:
	default:
	}
	s.starts <- q // there is room, as nothing else sends
	if s.stop != nil {
		s.stop()
	}
	return nil
}

// run sends batches from the position of each start, until the session ends.
func (s *session) run(ctx context.Context) error {
	for {
		select {
		case q := <-s.starts:
			if err := s.runFrom(ctx, q); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// runFrom sends batches from a position until the next start, or until an error, which it sends to
// the client. Slots that the client does not hold any more are freed first.
func (s *session) runFrom(ctx context.Context, q request) error {
	pass, stop := context.WithCancel(ctx)
	defer stop()
	s.mu.Lock()
	s.stop = stop
	if len(s.starts) > 0 {
		stop() // the next start came before there was anything that it could stop
	}
	s.mu.Unlock()
	ticket := uint64(0)
	if s.positions != nil {
		s.positions.skip()
		ticket = s.positions.ticket
	}
	s.desk.keep(q.Held)
	if s.desk.files != nil {
		s.desk.files.forget()
	}
	if err := s.ld.Seek(*q.Start); err != nil {
		return s.write(reply{Started: &started{Error: cli.Worded(err.Error())}, Number: q.Number})
	}
	at := s.ld.State()
	answer := &started{Epoch: at.Epoch, Step: at.Step, Done: at.Done, Weights: at.Weights, Ticket: ticket}
	if err := s.write(reply{Started: answer, Number: q.Number}); err != nil {
		return err
	}
	if s.ld.Batches(at.Epoch) == 0 {
		return nil
	}
	err := s.epochs(pass)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case pass.Err() != nil:
		return nil
	}
	return s.write(reply{Failed: err.Error(), Raised: raisedBy(err)})
}

// epochs sends all batches from the loader's position on, without end. It returns only with an
// error.
func (s *session) epochs(ctx context.Context) error {
	for _, batches := range s.ld.Epochs(ctx, math.MaxInt) {
		for b, err := range batches {
			if err != nil {
				return err
			}
			if err := s.hand(ctx, b); err != nil {
				return err
			}
		}
	}
	return errors.New("feed: there are no more epochs")
}

// hand waits for a free slot, puts the batch there and tells the client.
func (s *session) hand(ctx context.Context, b loader.Batch) error {
	if s.positions != nil {
		return s.handPosition(ctx, b)
	}
	var slot int
	select {
	case slot = <-s.desk.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var where *batch
	err := s.subject.guard(func() (err error) { // a ragged field may be a view of a dataset
		where, err = s.desk.put(slot, b, s.ld.State())
		return err
	})
	if err != nil {
		b.Release()
		s.desk.free <- slot
		return err
	}
	return s.write(reply{Batch: where})
}

// positioned reports whether the client can learn of batches from numbers in the shared memory (see
// positions) instead of messages. For that all batches must have one shape, so that the numbers that
// describe a batch take a fixed size, and come in order.
func positioned(o *Options, s *subject) bool {
	return !s.ragged() && s.packed == nil && (o.InOrder == nil || *o.InOrder)
}

// handPosition is hand by positions.
func (s *session) handPosition(ctx context.Context, b loader.Batch) error {
	if err := s.positions.await(ctx, s.desk.free, s.desk.release); err != nil {
		b.Release()
		if ctx.Err() == nil { // the client did what it must not
			s.cancel(err)
		}
		return err
	}
	slot := <-s.desk.free
	where, err := s.desk.put(slot, b, s.ld.State())
	if err != nil {
		b.Release()
		s.desk.free <- slot
		return err
	}
	if where.Done != "" {
		if err := s.write(reply{Done: where.Done, Number: int(s.positions.ticket)}); err != nil {
			return err
		}
	}
	if s.positions.publish(where, s.messages.Load()) {
		return s.write(reply{Awake: true})
	}
	return nil
}

// write sends a message, from any goroutine.
func (s *session) write(r reply) error {
	return s.send(r, func(message []byte) error {
		_, err := s.conn.Write(message)
		return err
	})
}

// send encodes a message and sends it by a function, one message at a time.
func (s *session) send(r reply, by func(message []byte) error) error {
	message, err := frame(r)
	if err != nil {
		return err
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	if !r.Awake {
		s.messages.Add(1)
	}
	return by(message)
}
