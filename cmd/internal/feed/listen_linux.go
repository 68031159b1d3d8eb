package feed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/units"
)

// listen serves every client that connects, until ctx is done. The datasets are opened once before,
// so that a wrong path is reported to whoever starts feed and not to the first client.
func (c *command) listen(ctx context.Context, p *cli.Progress) error {
	// so that a wrong path is reported here, not to the first client
	s, err := newSubject(ctx, &c.cache, c.datasets, &Options{BatchSize: 1}, nil, nil)
	if err != nil {
		return err
	}
	records := s.src.Len()
	if err := s.Close(); err != nil {
		return err
	}
	l, err := listenAlone(c.socket)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	p.Note(fmt.Sprintf("serving %s of %s at %s", units.Counted(int64(records), "record"), strings.Join(c.datasets, ", "),
		c.socket))
	return c.accept(ctx, l, p)
}

// listenAlone listens on a socket to which only this user may connect. The umask is set while the
// socket is made: a chmod afterwards would leave a moment in which others could connect.
func listenAlone(path string) (*net.UnixListener, error) {
	old := unix.Umask(0o177)
	defer unix.Umask(old)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("--socket %s: already exists; remove it if no other feed serves it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--socket: %w", err)
	}
	return l, nil
}

// acceptor is a listener; tests have one that fails.
type acceptor interface {
	AcceptUnix() (*net.UnixConn, error)
	Close() error
}

// accept starts a session for each client, and waits for all sessions at the end. If the system has
// no descriptor or memory for another client, accept tries again: an error would end all other
// sessions, too.
func (c *command) accept(ctx context.Context, l acceptor, p *cli.Progress) error {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	var notes sync.Mutex
	note := func(text string) {
		notes.Lock()
		defer notes.Unlock()
		p.Note(text)
	}
	v := server{c.datasets, c.workers, &c.cache, nil, nil}
	full := false
	for number := 1; ; {
		conn, err := l.AcceptUnix()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !isShort(err):
			return errors.Join(fmt.Errorf("--socket: %w", err), l.Close())
		default:
			if !full {
				note(fmt.Sprintf("client %d waits: %v; end other clients, or raise ulimit -n", number, err))
			}
			full = true
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
			continue
		}
		client := number
		full, number = false, number+1
		sessions.Go(func() {
			if err := v.serve(ctx, native{conn, peerEnviron(conn)}); err != nil && ctx.Err() == nil {
				note(fmt.Sprintf("client %d: %v", client, err))
			}
		})
	}
}

// acceptPause is the time between two tries while the system lacks something.
const acceptPause = 50 * time.Millisecond

// isShort reports whether an error means that the system lacks something that becomes free again.
func isShort(err error) bool {
	for _, short := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM} {
		if errors.Is(err, short) {
			return true
		}
	}
	return false
}
