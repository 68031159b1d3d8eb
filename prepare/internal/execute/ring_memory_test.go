package execute

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// stuck is a sample that can be read when it is let go.
type stuck struct {
	memory
	let chan struct{}
}

func (s stuck) Read(v *source.Values) error { <-s.let; return s.memory.Read(v) }

// While a sample takes long, others of any length wait for it, up to the memory that was asked for.
func TestRingBoundsBytes(t *testing.T) {
	const size, most, workers = 1 << 20, 8 << 20, 3
	text := source.Field{Field: store.NewRagged("x", tensor.Uint8)}
	fields, _, err := field.DefaultOptions().Jobs([]source.Field{text}, nil)
	require.NoError(t, err)
	j := &Job{Source: []source.Field{text}, Fields: fields}
	data := memory(make([]byte, size))
	require.NoError(t, NewWorker(j).Probe(&Slot{Sample: source.Sample{Data: data}}))
	var all []*Worker
	for range workers {
		all = append(all, NewWorker(j))
	}
	const samples = 60
	var drawn atomic.Int64
	let, committed := make(chan struct{}), 0
	seq := func(yield func(source.Sample, error) bool) {
		for i := range samples {
			drawn.Add(1)
			s := source.Sample{Name: "x", Data: data}
			if i == 0 {
				s.Data = stuck{data, let}
			}
			if !yield(s, nil) {
				return
			}
		}
	}
	go func() {
		// Until nothing more is drawn: a ring that does not stop draws all slots full.
		for last, same := int64(-1), 0; same < 20; runtime.Gosched() {
			time.Sleep(time.Millisecond)
			if n := drawn.Load(); n != last {
				last, same = n, 0
			} else {
				same++
			}
		}
		// A slot that is filled holds the sample and the record of it.
		if n := drawn.Load(); n > most/(2*size)+1+workers {
			t.Errorf("%d samples of %d bytes are under way, more than %d bytes hold", n, size, most)
		}
		close(let)
	}()
	r := newRing(j.Schema, workers, most, func(s *Slot) error { committed++; return s.Err })
	if err := r.run(context.Background(), seq, all); err != nil || committed != samples {
		t.Errorf("%d of %d: %v", committed, samples, err)
	}
	if r.held != 0 {
		t.Errorf("%d bytes held at the end", r.held)
	}
}
