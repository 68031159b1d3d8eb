package execute

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// memory is the Data of a sample in memory.
type memory []byte

func (m memory) Read(v *source.Values) error { v.Borrow(0, m); return nil }

// endless yields the same sample again and again, counting.
func endless(data []byte, yielded *atomic.Int64) iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		for yield(source.Sample{Name: "x", Data: memory(data)}, nil) {
			yielded.Add(1)
		}
	}
}

// testJob returns a job for images of 24x24, and workers for it.
func testJob(t *testing.T, n int) (*Job, []*Worker) {
	t.Helper()
	c := field.DefaultOptions()
	images := source.Field{Field: store.NewRagged("images", tensor.Uint8)}
	images.Content = tensor.Image
	fields, _, err := c.Jobs([]source.Field{images}, nil)
	require.NoError(t, err)
	j := &Job{Source: []source.Field{images}, Fields: fields}
	probe := NewWorker(j)
	require.NoError(t, probe.Probe(&Slot{Sample: source.Sample{Data: memory(rawtest.Picture(t, ".png", 24, 24, 1))}}))
	var workers []*Worker
	for range n {
		workers = append(workers, NewWorker(j))
	}
	return j, workers
}

// However slow a commit is, no more samples are under way than there are slots.
func TestRingIsBounded(t *testing.T) {
	j, workers := testJob(t, 3)
	slots := int64(ringSlots(j.Schema, len(workers), 0))
	var yielded atomic.Int64
	stop := errors.New("enough")
	committed := int64(0)
	r := newRing(j.Schema, len(workers), 0, func(s *Slot) error {
		if s.Err != nil {
			return s.Err
		}
		committed++
		if under := yielded.Load() - committed; under > slots {
			t.Errorf("%d samples under way in %d slots", under, slots)
		}
		if committed == 3*slots {
			return stop
		}
		return nil
	})
	if err := r.run(context.Background(), endless(rawtest.Picture(t, ".png", 24, 24, 1), &yielded), workers); err != stop {
		t.Errorf("error %v, want that of commit", err)
	}
	if committed != 3*slots {
		t.Errorf("%d records were committed, %d of them after an error", committed, committed-3*slots)
	}
}

// slowFirst is a sample in memory that takes until others of its ring were made.
type slowFirst struct {
	memory
	others chan struct{} // one for each of these
	wait   int           // for that many
}

func (s slowFirst) Read(v *source.Values) error {
	for range s.wait {
		select {
		case <-s.others:
		case <-time.After(time.Minute):
			return errors.New("no other sample of the ring is made meanwhile")
		}
	}
	if s.wait == 0 {
		s.others <- struct{}{}
	}
	return s.memory.Read(v)
}

// A sample that takes long is committed before those that wait for it, which fill all slots
// but its own.
func TestRingKeepsTheOrder(t *testing.T) {
	j, workers := testJob(t, 2)
	data := rawtest.Picture(t, ".png", 24, 24, 1)
	slots := ringSlots(j.Schema, len(workers), 0)
	others := make(chan struct{}, 3*slots)
	samples := func(yield func(source.Sample, error) bool) {
		for i := range 2 * slots {
			s := slowFirst{data, others, 0}
			if i == 0 {
				s.wait = slots - 1
			}
			if !yield(source.Sample{Name: strconv.Itoa(i), Data: s}, nil) {
				return
			}
		}
	}
	var got []string
	r := newRing(j.Schema, len(workers), 0, func(s *Slot) error {
		got = append(got, s.Sample.Name)
		return s.Err
	})
	require.NoError(t, r.run(context.Background(), samples, workers))
	for i, name := range got {
		if name != strconv.Itoa(i) {
			t.Fatalf("record %d is of sample %s", i, name)
		}
	}
	if len(got) != 2*slots {
		t.Errorf("%d records of %d samples", len(got), 2*slots)
	}
}

func TestRingSizes(t *testing.T) {
	for _, c := range []struct{ pixels, workers, want int }{
		{32, 2, 2 + 64}, {224, 16, 16 + 445}, {4096, 2, 2 + 4}, // small: 32 a worker; 64 MiB; at least 2 a worker
	} {
		s := store.Schema{Fields: []store.Field{store.NewField("images", tensor.Uint8, 3, c.pixels, c.pixels)}}
		if got := ringSlots(s, c.workers, 0); got != c.want {
			t.Errorf("%d pixels, %d workers: %d slots, want %d", c.pixels, c.workers, got, c.want)
		}
	}
}

func TestSourceErrorEndsTheRun(t *testing.T) {
	j, workers := testJob(t, 2)
	broken := errors.New("the source broke")
	data := rawtest.Picture(t, ".png", 24, 24, 1)
	committed := 0
	samples := func(yield func(source.Sample, error) bool) {
		for range 7 {
			if !yield(source.Sample{Name: "x", Data: memory(data)}, nil) {
				return
			}
		}
		yield(source.Sample{}, broken)
	}
	err := newRing(j.Schema, 2, 0, func(*Slot) error { committed++; return nil }).run(context.Background(), samples, workers)
	if err != broken || committed != 7 {
		t.Errorf("error %v after %d records, want that of the source after 7", err, committed)
	}
}

// A worker's work for one image allocates nothing of the image's size.
func TestWorkerReusesMemory(t *testing.T) {
	j, workers := testJob(t, 1)
	s := &Slot{Sample: source.Sample{Name: "x", Data: memory(rawtest.Picture(t, ".jpg", 24, 24, 1))}, Record: store.NewRecord(j.Schema)}
	workers[0].Do(s)
	if s.Err != nil {
		t.Fatal(s.Err)
	}
	if n := testing.AllocsPerRun(100, func() { workers[0].Do(s) }); n > 20 {
		t.Errorf("%v allocations an image", n)
	}
}
