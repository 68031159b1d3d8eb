package feed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/loader"
	"golang.org/x/sys/unix"
)

// errGone is the cause of a session's end when the client has closed its end.
var errGone = errors.New("the client has gone")

// session serves one client.
type session struct {
	conn   *net.UnixConn
	in     *bufio.Reader
	cancel context.CancelCauseFunc
	cache  *datasetarg.Cache // of datasets that are not here

	send    sync.Mutex // one message at a time
	watched bool

	// Made by open.
	ds     subject
	arena  *arena
	ld     *loader.Loader
	desk   *desk
	direct bool
	end    int // epoch
}

// Serve serves the client at the other end of conn batches of the dataset at path, until it
// closes its end, or ctx is done, and closes conn. The client is told what goes wrong, if
// that is possible; the error is what it cannot have been told. Workers is what a client that
// does not ask for a number gets.
//
// The path may be a URL: see package cmd/internal/datasetarg.
func Serve(ctx context.Context, conn *net.UnixConn, path string, workers int) error {
	return serve(ctx, conn, path, workers, new(datasetarg.Cache))
}

func serve(ctx context.Context, conn *net.UnixConn, path string, workers int, cache *datasetarg.Cache) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{conn: conn, in: bufio.NewReader(conn), cancel: cancel, cache: cache}
	defer conn.Close()
	s.watched = watchPeer(ctx, conn, cancel)
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
	err := s.serve(ctx, path, workers)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if left(err) {
		return nil
	}
	return err
}

// left reports whether a session ended because the client did, which is no failure.
func left(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, errGone) || errors.Is(err, errPeer) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// hangUp ends the session of a done context: it tells the client why, and then reads and
// writes return.
func (s *session) hangUp(cause error) {
	if !left(cause) {
		const patience = time.Second // with a client that does not read
		_ = s.conn.SetWriteDeadline(time.Now().Add(patience))
		_ = s.write(reply{Error: "feed: " + cause.Error()}, nil)
	}
	_ = s.conn.CloseRead()
	_ = s.conn.CloseWrite()
}

// serve tells the client of an error, and then waits for it to leave: its memory stays as
// it is until then.
func (s *session) serve(ctx context.Context, path string, workers int) error {
	q, err := readRequest(s.in)
	if err != nil {
		return s.refuse(err)
	}
	if err := s.open(ctx, q, path, workers); err != nil {
		return s.refuse(errors.Join(err, s.close()))
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		s.cancel(s.listen(ctx))
	}()
	err = s.epochs(ctx)
	if err == nil {
		err = s.write(reply{End: true}, nil)
	} else if ctx.Err() == nil {
		err = s.write(reply{Error: err.Error()}, nil)
	}
	if err != nil {
		s.cancel(err)
	}
	<-heard
	return errors.Join(err, s.close())
}

// refuse tells the client why there is no session.
func (s *session) refuse(err error) error {
	if left(err) {
		return err
	}
	return s.write(reply{Error: err.Error()}, nil)
}

// open makes the loader that q asks for, and sends the welcome.
func (s *session) open(ctx context.Context, q request, path string, workers int) error {
	if q.Hello == nil {
		return errors.New("feed: the first message of a client is a hello")
	}
	if v := q.Hello.Version; v != protocol {
		return fmt.Errorf("feed: the client speaks version %d of the protocol, and this feeder version %d; install both from the same release", v, protocol)
	}
	o := q.Hello.Options
	if err := o.validate(); err != nil {
		return fmt.Errorf("feed: options: %w", err)
	}
	if o.Workers == 0 {
		o.Workers = workers
	}
	s.end = o.end()
	var err error
	if s.ds, err = open(ctx, s.cache, path, o); err != nil {
		return err
	}
	return s.start(o)
}

func (s *session) start(o Options) error {
	lo, err := o.loader(s.ds)
	if err == nil {
		err = o.validateFor(s.ds.Len())
	}
	if err != nil {
		return fmt.Errorf("feed: options: %w", err)
	}
	fields, ragged, err := served(s.ds.Schema().Fields, lo.Transforms)
	if err != nil {
		return fmt.Errorf("feed: options: %w", err)
	}
	if s.arena, err = newArena(); err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	if s.direct = !ragged; s.direct {
		lo.Allocator = s.arena
	}
	if o.State != nil {
		s.ld, err = loader.Resume(s.ds, lo, *o.State)
	} else {
		s.ld, err = loader.New(s.ds, lo)
	}
	if err != nil {
		return err
	}
	s.desk = newDesk(s.arena, fields, s.direct, o.ahead())
	return s.write(reply{Welcome: &welcome{
		Version: protocol, Records: s.ds.Len(), Batches: s.ld.Batches(0), Slots: o.ahead(), Fields: fields, State: s.ld.State(),
	}}, unix.UnixRights(int(s.arena.file.Fd())))
}

// close gives back what open made.
func (s *session) close() error {
	var errs []error
	if s.desk != nil {
		errs = append(errs, s.desk.Close())
	}
	if s.ld != nil {
		errs = append(errs, s.ld.Close())
	}
	if s.ds != nil {
		errs = append(errs, s.ds.Close())
	}
	if s.arena != nil {
		errs = append(errs, s.arena.Close())
	}
	return errors.Join(errs...)
}

// listen does what the client asks for, until it leaves or says what it must not.
func (s *session) listen(ctx context.Context) error {
	for {
		q, err := readRequest(s.in)
		switch {
		case errors.Is(err, io.EOF):
			return errGone
		case err != nil:
		case q.Hello != nil:
			err = errors.New("a second hello")
		case q.Stats:
			err = s.write(reply{Stats: &statistics{s.ld.Stats(), s.ld.Diagnose().String(), s.arena.bytes(), s.direct, s.watched}}, nil)
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

// epochs sends all batches, each when a slot is free.
func (s *session) epochs(ctx context.Context) error {
	for _, batches := range s.ld.Epochs(ctx, s.end) {
		for b, err := range batches {
			if err != nil {
				return err
			}
			if err := s.hand(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// hand waits for a free slot, and sends a batch.
func (s *session) hand(ctx context.Context, b loader.Batch) error {
	var slot int
	select {
	case slot = <-s.desk.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var where *batch
	err := s.ds.Guard(func() (err error) { // a ragged field may be a view of the dataset
		where, err = s.desk.put(slot, b, s.ld.State())
		return err
	})
	if err != nil {
		return err
	}
	return s.write(reply{Batch: where}, nil)
}

// write sends a message, with descriptors if rights has some. It may be called by any
// goroutine.
func (s *session) write(r reply, rights []byte) error {
	message, err := frame(r)
	if err != nil {
		return err
	}
	s.send.Lock()
	defer s.send.Unlock()
	n := 0
	if rights != nil {
		if n, _, err = s.conn.WriteMsgUnix(message, rights, nil); err != nil {
			return err
		}
	}
	_, err = s.conn.Write(message[n:])
	return err
}
