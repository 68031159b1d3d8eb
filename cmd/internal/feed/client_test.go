package feed

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
)

// client is the other end of a session.
type client struct {
	t       testing.TB
	conn    connection
	in      *bufio.Reader
	take    func(c *client) // takes what comes with the welcome
	memory  *os.File
	welcome *welcome
	served  chan error // the result of Serve
}

// hangTimeout is the time that a test waits for what hangs.
const hangTimeout = time.Minute

// dial starts a session.
func dial(ctx context.Context, t testing.TB, path string) *client {
	t.Helper()
	return dialWith(ctx, t, server{[]string{path}, 1, new(datasetarg.Cache), nil, nil})
}

// join makes a client and the transport to it. On Linux it is joinNative but in TestPortable.
var join = joinPortable

// joinPortable has client and session share a connection of TCP, as there is on every system, and a file.
func joinPortable(t testing.TB) (*client, transport) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	theirs, err := l.Accept()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "memory")
	var files [2]*os.File
	for i := range files {
		if files[i], err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		files[0].Close()
		files[1].Close() // of a session that made no memory
	})
	return &client{conn: ours.(connection), memory: files[0], take: func(*client) {}}, &portable{conn: theirs.(connection), shared: files[1]}
}

// dialWith is dial at a server.
func dialWith(ctx context.Context, t testing.TB, v server) *client {
	t.Helper()
	c, theirs := join(t)
	c.t, c.in, c.served = t, bufio.NewReader(c.conn), make(chan error, 1)
	go func() {
		c.served <- v.serve(ctx, theirs)
		close(c.served)
	}()
	t.Cleanup(func() {
		c.conn.Close()
		select { // then its files are closed
		case <-c.served:
		case <-time.After(hangTimeout):
			t.Error("the session does not end with its client")
		}
	})
	return c
}

// arenaOf returns an arena for a test.
func arenaOf(t testing.TB) *arena {
	t.Helper()
	_, theirs := join(t)
	m, err := theirs.memory()
	require.NoError(t, err)
	return newArena(m)
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := c.conn.Write(framed(text)); err != nil {
		c.t.Fatal(err)
	}
}

// receive returns the next message.
func (c *client) receive() reply {
	c.t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		c.t.Fatal(err)
	}
	body := make([]byte, binary.LittleEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c.in, body); err != nil {
		c.t.Fatal(err)
	}
	var r reply
	require.NoError(c.t, json.Unmarshal(body, &r))
	return r
}

// greet says hello, and takes the welcome with the memory.
func (c *client) greet(options string) *welcome {
	c.t.Helper()
	c.send(`{"hello":{"version":4,"options":` + options + `}}`)
	c.take(c)
	c.welcome = c.receive().Welcome
	return c.welcome
}

// start has batches begin at the first.
func (c *client) start() { c.startAt(c.welcome.State) }

func (c *client) startAt(at loader.State) {
	c.t.Helper()
	c.request(request{Start: &at})
	if r := c.receive(); r.Started == nil || r.Started.Error != "" {
		c.t.Fatalf("start: %+v", r)
	}
}

// request sends a message.
func (c *client) request(q request) {
	c.t.Helper()
	text, err := json.Marshal(q)
	require.NoError(c.t, err)
	c.send(string(text))
}

// read returns bytes of the shared memory.
func (c *client) read(at int64, n int) []byte {
	c.t.Helper()
	out := make([]byte, n)
	if _, err := c.memory.ReadAt(out, at); err != nil {
		c.t.Fatal(err)
	}
	return out
}

// result returns what Serve returned, when the session has ended.
func (c *client) result() error {
	return <-c.served
}
