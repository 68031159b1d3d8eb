package external

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/penstock/penstock/internal/staged"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// heap is Memory of this process, which has the stand-ins for workers too.
type heap struct {
	mu   sync.Mutex
	all  []byte
	used int
	live int
}

func newHeap() *heap { return &heap{all: make([]byte, 64<<20)} }

func (h *heap) Alloc(n int) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.used+n > len(h.all) {
		return nil, errors.New("no room")
	}
	b := h.all[h.used : h.used+n : h.used+n]
	h.used, h.live = h.used+aligned(n), h.live+1
	return b, nil
}

func (h *heap) Free([]byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live--
	return nil
}

func (h *heap) Find(b []byte) (int64, bool) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(h.all)))
	return int64(at), at < uintptr(len(h.all))
}

// standIn answers as a worker does. Its functions map the bytes of a record to others.
type standIn struct {
	memory    *heap
	functions []func(in []byte, r record) ([]byte, error)
	makes     []made
	say       func(task int) []byte // in place of an answer, if it returns something
	in        map[int]tensor.Spec
	out       map[int]tensor.Spec
}

func (s standIn) serve(conn net.Conn) {
	defer conn.Close()
	s.in, s.out = make(map[int]tensor.Spec), make(map[int]tensor.Spec)
	answer := func(m fromWorker) {
		body, _ := json.Marshal(m)
		_, _ = conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...))
	}
	for task := 0; ; {
		var head [4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		b := make([]byte, binary.LittleEndian.Uint32(head[:]))
		if _, err := io.ReadFull(conn, b); err != nil {
			return
		}
		if b[0] == '{' {
			var m toWorker
			if json.Unmarshal(b, &m) != nil {
				return
			}
			switch {
			case m.Hello != nil:
				answer(fromWorker{Ready: &ready{Process: 4000 + m.Hello.Worker}})
			case m.Setup != nil:
				s.in[m.Setup.Function], s.out[m.Setup.Function] = m.Setup.In, m.Setup.Out
			case m.Probe != nil:
				answer(fromWorker{Made: &s.makes[m.Probe.Function]})
			}
			continue
		}
		if s.say != nil {
			if say := s.say(task); say != nil {
				if _, err := conn.Write(say); err != nil || len(say) == 1 {
					return
				}
			}
		}
		task++
		le := binary.LittleEndian
		function, count := int(le.Uint16(b[2:])), int(le.Uint32(b[4:]))
		raised, n := (*Raised)(nil), 0
		for ; n < count && raised == nil; n++ {
			at := b[taskHead+n*taskRecord:]
			r := record{index: int(le.Uint64(at)), key: le.Uint64(at[8:]), in: int64(le.Uint64(at[16:])), out: int64(le.Uint64(at[24:]))}
			r.axes = [2]int{int(le.Uint32(at[40:])), int(le.Uint32(at[44:]))}
			size, next := s.in[function].DType.Size(), 0
			for _, d := range s.in[function].Shape {
				if d < 0 {
					d = r.axes[next]
					next++
				}
				size *= d
			}
			out, err := s.functions[function](s.memory.all[r.in:r.in+int64(size)], r)
			if err != nil {
				raised = &Raised{Done: n, Type: "ValueError", Text: err.Error()}
				break
			}
			if len(out) != s.out[function].RecordBytes() {
				panic("the stand-in made another length")
			}
			copy(s.memory.all[r.out:], out)
		}
		if raised != nil {
			answer(fromWorker{Raised: raised})
			continue
		}
		done := le.AppendUint32(nil, 24)
		done = le.AppendUint32(append(done, doneKind, 0, 0, 0), uint32(n))
		done = le.AppendUint64(le.AppendUint64(done, 1000), 2000)
		if _, err := conn.Write(done); err != nil {
			return
		}
	}
}

// start returns a Pool of stand-ins.
func (s standIn) start(t *testing.T, workers int) *Pool {
	t.Helper()
	var conns []io.ReadWriteCloser
	names := make([]string, len(s.functions))
	for i := range names {
		names[i] = fmt.Sprintf("f%d", i)
	}
	for range workers {
		ours, theirs := net.Pipe()
		conns = append(conns, ours)
		go s.serve(theirs)
	}
	p, err := New(conns, names, s.memory, nil)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// twice makes two bytes of each: it plus the key's lowest, and its index.
func twice(in []byte, r record) ([]byte, error) {
	out := make([]byte, 0, 2*len(in))
	for _, x := range in {
		out = append(out, x+byte(r.key), byte(r.index))
	}
	return out, nil
}

// numbers is a loader.Source of bytes.
type chainCase struct {
	chain  *Chain
	in     tensor.Spec
	stored func(i int) []byte
	want   func(i int, r loader.Record) []byte
}

// twoCalls is a Chain of stored bytes, f0, a step of the engine, and f1.
func twoCalls(t *testing.T, p *Pool, batch int) chainCase {
	cast, err := transforms.ParseArray([]byte(`[{"op":"Clip","min":0,"max":200}]`))
	require.NoError(t, err)
	in := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{3}}
	mid := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{6}}
	out := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{12}}
	c := &Chain{Pool: p, Head: Stored{}, Batch: batch, Stats: new(Stats), Calls: []Call{
		{Function: 0, In: in, Out: mid, After: loader.Arrays{Pipeline: cast}}, {Function: 1, In: mid, Out: out},
	}}
	stored := func(i int) []byte { return []byte{byte(i), byte(3 * i), byte(5 * i)} }
	return chainCase{c, in, stored, func(i int, r loader.Record) []byte {
		a, _ := twice(stored(i), record{index: i, key: KeyOf(r, 0)})
		for k := range a {
			a[k] = min(a[k], 200)
		}
		b, _ := twice(a, record{index: i, key: KeyOf(r, 1)})
		return b
	}}
}

// Records come out of a Chain as each function makes them, with any number of workers and of records together.
func TestChain(t *testing.T) {
	for _, workers := range []int{1, 3} {
		for _, batch := range []int{1, 5, 200} {
			p := standIn{memory: newHeap(), functions: []func([]byte, record) ([]byte, error){twice, twice}}.start(t, workers)
			c := twoCalls(t, p, batch)
			s, err := c.chain.Stage(c.in, 0)
			require.NoError(t, err)
			for round := range 3 {
				n := rand.IntN(300)
				out := make([][]byte, n)
				for i := range n {
					out[i] = make([]byte, 12)
					require.NoError(t, s.Put(t.Context(), out[i], c.stored(i), loader.Record{Index: i, Epoch: round, Seed: 9}))
				}
				require.NoError(t, s.Flush(t.Context()))
				for i := range n {
					if want := c.want(i, loader.Record{Index: i, Epoch: round, Seed: 9}); !bytes.Equal(out[i], want) {
						t.Fatalf("workers %d, batch %d: record %d is %v, want %v", workers, batch, i, out[i], want)
					}
				}
			}
		}
	}
}

// Records of their own lengths have the room that they need, wherever the long ones come.
func TestChainOfRagged(t *testing.T) {
	sum := func(in []byte, _ record) ([]byte, error) {
		total := uint32(0)
		for _, x := range in {
			total += uint32(x)
		}
		return binary.LittleEndian.AppendUint32(nil, total), nil
	}
	p := standIn{memory: newHeap(), functions: []func([]byte, record) ([]byte, error){sum}}.start(t, 2)
	in := tensor.Spec{Name: "x", DType: tensor.Uint8, Ragged: true}
	open, err := Stored{}.Output(in)
	require.NoError(t, err)
	c := &Chain{Pool: p, Head: Stored{}, Batch: 40, Stats: new(Stats), Calls: []Call{{In: open, Out: tensor.Spec{Name: "x", DType: tensor.Uint32}}}}
	s, err := c.Stage(in, 0)
	require.NoError(t, err)
	var out, want [][]byte
	for i := range 500 {
		src := bytes.Repeat([]byte{byte(i)}, rand.IntN(1+rand.IntN(5000)))
		w, _ := sum(src, record{})
		out, want = append(out, make([]byte, 4)), append(want, w)
		require.NoError(t, s.Put(t.Context(), out[i], src, loader.Record{Index: i}))
	}
	require.NoError(t, s.Flush(t.Context()))
	for i := range out {
		if !bytes.Equal(out[i], want[i]) {
			t.Fatalf("record %d is %v, want %v", i, out[i], want[i])
		}
	}
}

// The record that fails first is reported, whichever worker has it, and the Chain goes on after that.
func TestChainFails(t *testing.T) {
	fails := func(in []byte, r record) ([]byte, error) {
		if r.index%10 == 7 {
			return nil, errors.New("seven")
		}
		return twice(in, r)
	}
	p := standIn{memory: newHeap(), functions: []func([]byte, record) ([]byte, error){fails, twice}}.start(t, 3)
	c := twoCalls(t, p, 9)
	s, err := c.chain.Stage(c.in, 0)
	require.NoError(t, err)
	for first := range 40 {
		err, put := error(nil), 0
		for i := range 20 {
			put++
			if err = s.Put(t.Context(), make([]byte, 12), c.stored(first+i), loader.Record{Index: first + i}); err != nil {
				break
			}
		}
		if err == nil {
			err = s.Flush(t.Context())
		}
		want := first
		for want%10 != 7 {
			want++
		}
		var at *staged.Error
		var raised *Exception
		if !errors.As(err, &at) || at.Record != want || !errors.As(at.Err, &raised) || raised.Type != "ValueError" {
			t.Fatalf("from record %d: %v, want an error of %d", first, err, want)
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Fatalf("what was forgotten failed again: %v", err)
		}
	}
}

// A worker that is no more, or that says what none says, ends the Chain with an error that says which.
func TestWorkersThatFail(t *testing.T) {
	le := binary.LittleEndian
	frame := func(body string) []byte { return append(le.AppendUint32(nil, uint32(len(body))), body...) }
	for name, c := range map[string]struct {
		say  []byte
		want string
	}{
		"gone":         {[]byte{1}, "worker 0 (process 4000) has ended"},
		"long":         {le.AppendUint32(nil, 1<<30), "unexpected message: a message of 1073741824 bytes"},
		"empty":        {le.AppendUint32(nil, 0), "a message of 0 bytes"},
		"kind":         {frame("\x07"), "a message of kind 7"},
		"short":        {frame("\x02\x00\x00\x00"), "a report of 4 bytes"},
		"count":        {frame("\x02\x00\x00\x00\x09\x00\x00\x00" + strings.Repeat("\x00", 16)), "a report of 9 records"},
		"not JSON":     {frame("{"), "not JSON"},
		"nothing":      {frame("{}"), "neither ready nor made nor raised"},
		"made":         {frame(`{"made":{"dtype":"uint8","shape":[1]}}`), "without a request"},
		"far":          {frame(`{"raised":{"done":77,"type":"x"}}`), "an exception at record 77"},
		"twice raised": {append(frame(`{"raised":{"done":0,"type":"x"}}`), frame(`{"raised":{"done":0,"type":"Late","text":"y"}}`)...), ""},
	} {
		s := standIn{memory: newHeap(), functions: []func([]byte, record) ([]byte, error){twice, twice}}
		s.say = func(task int) []byte {
			if task == 2 {
				return c.say
			}
			return nil
		}
		p := s.start(t, 1)
		chain := twoCalls(t, p, 4)
		stage, err := chain.chain.Stage(chain.in, 0)
		require.NoError(t, err)
		for i := 0; i < 200 && err == nil; i++ {
			err = stage.Put(t.Context(), make([]byte, 12), chain.stored(i), loader.Record{Index: i})
		}
		if err == nil {
			err = stage.Flush(t.Context())
		}
		var at *staged.Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) || c.want != "" && at.Record != -1 {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.want != "" {
			if err := stage.Put(t.Context(), make([]byte, 12), chain.stored(0), loader.Record{}); err == nil {
				err = stage.Flush(t.Context())
				if err == nil {
					t.Errorf("%s: a Chain without workers made a record", name)
				}
			}
		}
	}
}

// A Pool that is closed lets nobody wait.
func TestClose(t *testing.T) {
	began, hang := make(chan struct{}, 9), make(chan struct{})
	defer close(hang)
	hangs := func([]byte, record) ([]byte, error) {
		began <- struct{}{}
		<-hang
		return nil, errors.New("late")
	}
	p := standIn{memory: newHeap(), functions: []func([]byte, record) ([]byte, error){hangs, twice}}.start(t, 2)
	c := twoCalls(t, p, 4)
	s, err := c.chain.Stage(c.in, 0)
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			err = s.Put(t.Context(), make([]byte, 12), c.stored(i), loader.Record{Index: i})
		}
		done <- err
	}()
	<-began
	p.Close()
	select {
	case err := <-done:
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a closed Pool is waited for")
	}
}

// Steps on float pixels give torchvision's results.
func TestFloats(t *testing.T) {
	steps, err := transforms.Parse([]byte(`[{"op":"ToTensor"},{"op":"Normalize","mean":[0.5,0.25,0.125],"std":[0.5,0.25,2]}]`))
	require.NoError(t, err)
	in := tensor.Spec{Name: "x", DType: tensor.Float32, Shape: tensor.Shape{2, 5, 3}, Layout: tensor.HWC}
	f, err := FloatsOf(in, steps.Transforms())
	require.NoError(t, err)
	out, err := f.Output(in)
	if err != nil || fmt.Sprint(out.Shape) != "(3, 2, 5)" || out.Layout != tensor.CHW {
		t.Fatal(out, err)
	}
	do, err := f.Worker(in, 0)
	require.NoError(t, err)
	src, dst := make([]float32, 30), make([]float32, 30)
	for i := range src {
		src[i] = rand.Float32()
	}
	raw := func(x []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x)) }
	require.NoError(t, do(raw(dst), raw(src), loader.Record{}))
	mean, std := []float32{0.5, 0.25, 0.125}, []float32{0.5, 0.25, 2}
	for i, x := range src {
		c := i % 3
		if got, want := dst[c*10+i/3], (x-mean[c])/std[c]; got != want {
			t.Errorf("value %d is %v, want %v", i, got, want)
		}
	}
}
