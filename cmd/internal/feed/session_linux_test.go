package feed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

const records = 50

// dataset makes a dataset of images, labels and, if asked for, tokens.
func dataset(t *testing.T, ragged bool) string {
	t.Helper()
	image := store.NewField("images", tensor.Uint8, 3, 4, 5)
	image.Layout = store.CHW
	image.Normalization = &store.Normalization{Scale: 255, Mean: []float64{0.5, 0.4, 0.3}, Std: []float64{0.2, 0.3, 0.4}}
	schema := store.Schema{Fields: []store.Field{image, store.NewField("labels", tensor.Int64)}}
	if ragged {
		schema.Fields = append(schema.Fields, store.NewRagged("tokens", tensor.Int32))
	}
	dest := filepath.Join(t.TempDir(), "ds")
	w, err := store.CreateFlat(dest, schema, store.FlatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range records {
		for k := range r.Values[0] {
			r.Values[0][k] = byte(i + k)
		}
		binary.LittleEndian.PutUint64(r.Values[1], uint64(i))
		if ragged {
			r.Values[2] = bytes.Repeat([]byte{byte(i), 0, 0, 0}, i*i%97)
		}
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	return dest
}

// client is the other end of a session.
type client struct {
	t      testing.TB
	conn   *net.UnixConn
	in     *bufio.Reader
	memory *os.File
	served chan error // the result of Serve
}

// dial starts a session.
func dial(ctx context.Context, t testing.TB, path string) *client {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := inherited(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	ours, err := inherited(fds[1])
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, conn: ours, in: bufio.NewReader(ours), served: make(chan error, 1)}
	go func() { c.served <- Serve(ctx, theirs, path, 1) }()
	t.Cleanup(func() { c.conn.Close() })
	return c
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
	if err := json.Unmarshal(body, &r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// greet says hello, and takes the welcome with the memory.
func (c *client) greet(options string) *welcome {
	c.t.Helper()
	c.send(`{"hello":{"version":1,"options":` + options + `}}`)
	rights := make([]byte, unix.CmsgSpace(4))
	head := make([]byte, 4)
	_, n, _, _, err := c.conn.ReadMsgUnix(head, rights)
	if err != nil {
		c.t.Fatal(err)
	}
	c.in = bufio.NewReader(io.MultiReader(bytes.NewReader(head), c.conn))
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		c.t.Fatalf("%d control messages, %v; then %+v", len(messages), err, c.receive())
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		c.t.Fatal(err)
	}
	c.memory = os.NewFile(uintptr(fds[0]), "memory")
	c.t.Cleanup(func() { c.memory.Close() })
	return c.receive().Welcome
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

func TestBatches(t *testing.T) {
	for _, ragged := range []bool{false, true} {
		path := dataset(t, ragged)
		ds, err := mmapds.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		c := dial(t.Context(), t, path)
		w := c.greet(`{"batch_size":8,"shuffle":true,"seed":3,"epochs":2,"ahead":2}`)
		if w.Records != records || w.Batches != 7 || w.Slots != 2 {
			t.Errorf("welcome %+v", w)
		}
		for k := range 14 {
			b := c.receive().Batch
			if b == nil || b.Epoch != k/7 || b.Step != k%7 || b.Next != [2]int{(k + 1) / 7, (k + 1) % 7} {
				t.Fatalf("batch %d: %+v", k, b)
			}
			c.compare(ds, w, b)
			c.send(`{"release":[` + string(rune('0'+b.Slot)) + `]}`)
		}
		if !c.receive().End {
			t.Error("no end")
		}
		c.conn.Close()
		if err := c.result(); err != nil {
			t.Error(err)
		}
	}
}

// compare compares a batch with the dataset.
func (c *client) compare(ds *mmapds.Dataset, w *welcome, b *batch) {
	c.t.Helper()
	numbers := c.read(b.Indices, 8*b.Count)
	for i := range b.Count {
		record := int(binary.NativeEndian.Uint64(numbers[8*i:]))
		if c.read(b.Valid, b.Count)[i] != 1 {
			c.t.Errorf("record %d does not count", record)
		}
		for k, f := range w.Fields {
			at, n := b.Fields[k].At+int64(i*f.RecordBytes()), f.RecordBytes()
			var want tensor.View
			var err error
			if f.Ragged {
				offsets := c.read(b.Fields[k].Offsets+int64(8*i), 16)
				first, end := binary.NativeEndian.Uint64(offsets), binary.NativeEndian.Uint64(offsets[8:])
				at, n = b.Fields[k].At+int64(first)*4, int(end-first)*4
				want, err = ds.SliceRagged(f.Name, record, record+1, make([]int64, 2))
			} else {
				want, err = ds.Slice(f.Name, record, record+1)
			}
			if err != nil {
				c.t.Fatal(err)
			}
			if !bytes.Equal(c.read(at, n), want.Bytes()) {
				c.t.Errorf("field %s of record %d is another", f.Name, record)
			}
		}
	}
}

func TestNoMoreThanTheClientCanHave(t *testing.T) {
	c := dial(t.Context(), t, dataset(t, false))
	c.greet(`{"batch_size":2,"ahead":3}`)
	for range 3 {
		c.receive()
	}
	for range 20 { // whatever comes now answers the question
		c.send(`{"stats":true}`)
		if r := c.receive(); r.Stats == nil || r.Stats.Loader.Kept != 3 {
			t.Fatalf("with all slots taken, the feeder sent %+v", r)
		}
	}
	c.send(`{"release":[1]}`)
	if r := c.receive(); r.Batch == nil || r.Batch.Slot != 1 {
		t.Fatalf("after slot 1 was given back, the feeder sent %+v", r)
	}
}

func TestRefused(t *testing.T) {
	path := dataset(t, false)
	for first, want := range map[string]string{
		`{"stats":true}`:                       "first message",
		`{"hello":{"version":7}}`:              "version 7 of the protocol, and this feeder version 1",
		`{"hello":{"version":1}}`:              "batch_size is 0",
		`{"hello":{"version":1,"options":{}}}`: "batch_size is 0; it must be from 1",
		`{"hello":{"version":1,"options":{"batch_size":1,"rank":2,"world":2}}}`:              "rank is 2; it must be from 0 to 1",
		`{"hello":{"version":1,"options":{"batch_size":1,"ahead":1}}}`:                       "ahead is 1",
		`{"hello":{"version":1,"options":{"batch_size":1,"epochs":-1}}}`:                     "epochs is -1",
		`{"hello":{"version":1,"options":{"batch_size":1,"workers":-1}}}`:                    "workers is -1",
		`{"hello":{"version":1,"options":{"batch_size":1,"fields":["x"]}}}`:                  `"x"`,
		`{"hello":{"version":1,"options":{"batch_size":1,"state":{"v":1}}}}`:                 "another dataset",
		`{"hello":{"version":1,"options":{"batch_size":1,"fields":["labels"],"flip":true}}}`: "flip: no field has images",
	} {
		c := dial(t.Context(), t, path)
		c.send(first)
		if r := c.receive(); !strings.Contains(r.Error, want) {
			t.Errorf("%s: %+v; want an error with %q", first, r, want)
		}
		if err := c.result(); err != nil {
			t.Errorf("%s: told the client, and returned %v too", first, err)
		}
	}
}

func TestSlotsThatAreNotTheClients(t *testing.T) {
	path := dataset(t, true)
	for _, release := range []string{"[-1]", "[4]", "[0,0]"} {
		c := dial(t.Context(), t, path)
		c.greet(`{"batch_size":50,"epochs":1}`)
		c.receive()
		c.receive()
		c.send(`{"release":` + release + `}`)
		if r := c.receive(); !strings.Contains(r.Error, "in which it has no batch") {
			t.Errorf("release %s: %+v", release, r)
		}
		if err := c.result(); err == nil {
			t.Errorf("release %s: no error", release)
		}
	}
}

func TestClientThatLeaves(t *testing.T) {
	path := dataset(t, true)
	for _, batches := range []int{0, 1, 4} {
		c := dial(t.Context(), t, path)
		c.greet(`{"batch_size":1,"shuffle":true}`)
		for range batches {
			c.receive()
		}
		c.conn.Close()
		if err := c.result(); err != nil {
			t.Errorf("after %d batches: %v", batches, err)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := dial(ctx, t, dataset(t, false))
	c.greet(`{"batch_size":50,"epochs":1}`)
	c.receive()
	c.receive()
	why := errors.New("enough")
	cancel(why)
	if r := c.receive(); r.Error != "feed: enough" {
		t.Errorf("%+v", r)
	}
	if err := c.result(); !errors.Is(err, why) {
		t.Error(err)
	}
}
