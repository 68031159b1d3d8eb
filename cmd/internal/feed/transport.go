package feed

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/penstock/penstock/internal/sys/rank"
)

// transport is how a session and its client reach each other. There are two: native, which passes
// descriptors over a unix socket, and portable, for which the client opens all files before it
// starts feed.
type transport interface {
	// connection carries the messages. The session closes it.
	connection() connection
	// begin returns a reader of everything that the client sends, and the file of arrays that comes
	// with the hello, nil if no file comes.
	begin() (io.Reader, *os.File, error)
	// memory returns the file that both processes map. It is called once.
	memory() (memory, error)
	// welcome sends the first message, with the memory if the client does not have it.
	welcome(message []byte, m memory) error
	// watch calls ended when the client's process has ended. The connection alone does not tell: it
	// stays open as long as a child of the client has inherited it. watch reports whether the
	// process can be watched, and ends with ctx.
	watch(ctx context.Context, ended func(error)) bool
	// environ looks variables up in the environment of the client's process.
	environ() rank.Lookup
}

// connection is a stream in both directions: a socket of any kind.
type connection interface {
	net.Conn
	CloseWrite() error
}

// memory is the file of an [arena]. It has no name that outlives the two processes, and only grows.
type memory interface {
	file() *os.File
	// extend adds n zeroed bytes to the file, whose size is given.
	extend(size, n int64) error
	// discard says that n bytes at an offset are not used any more.
	discard(at, n int64) error
}

// errPeer is the cause of a session's end when the client's process has ended.
var errPeer = errors.New("the client's process has ended")
