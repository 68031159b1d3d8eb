package feed

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/penstock/penstock/internal/sys/rank"
)

// transport is how a session and its client reach each other. There are two: native, which passes descriptors over a
// unix socket, and portable, for which the client opens all files before it starts feed.
type transport interface {
	// connection is for messages. The transport's owner closes it.
	connection() connection
	// begin returns a reader of all that the client sends, and the file of arrays that comes with the hello, if there is
	// one.
	begin() (io.Reader, *os.File, error)
	// memory returns the file that the client maps. It is called once.
	memory() (memory, error)
	// welcome sends the first message, and the memory with it if the client does not have it.
	welcome(message []byte, m memory) error
	// watch calls ended when the client's process is gone, which a connection does not say as long as some child of that
	// process has inherited it. It reports whether the process can be watched. It stops watching when ctx is done.
	watch(ctx context.Context, ended func(error)) bool
	// environ looks variables up in the environment of the client's process.
	environ() rank.Lookup
}

// connection is a stream in both directions: a socket of any kind.
type connection interface {
	net.Conn
	CloseWrite() error
}

// memory is the file of an [arena]. It has no name, and only grows.
type memory interface {
	file() *os.File
	// extend adds n zeroed bytes at the end, which is at size. Touching them does not fail later for want of room.
	extend(size, n int64) error
	// discard says that n bytes at an offset are not used again.
	discard(at, n int64) error
}

// errPeer is the cause of a session's end when the client's process has ended.
var errPeer = errors.New("the client's process has ended")
