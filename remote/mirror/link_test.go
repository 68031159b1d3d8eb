package mirror

import (
	"context"
	"io"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/bottleneck"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// shaped is a bucket over a link with a round trip time and a rate that all requests share.
type shaped struct {
	remote.Bucket
	trip time.Duration
	rate float64 // bytes a second

	mu       sync.Mutex
	free     time.Time
	requests int
	bytes    int64
}

func (s *shaped) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	select {
	case <-time.After(s.trip):
	case <-ctx.Done():
		return remote.Body{}, ctx.Err()
	}
	b, err := s.Bucket.ReadRange(ctx, key, off, n, etag)
	if err == nil {
		b.ReadCloser = &shapedBody{b.ReadCloser, s}
	}
	return b, err
}

// asked returns how many requests were made.
func (s *shaped) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

type shapedBody struct {
	io.ReadCloser
	s *shaped
}

func (b *shapedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), 32<<10)])
	b.s.mu.Lock()
	if now := time.Now(); b.s.free.Before(now) {
		b.s.free = now
	}
	b.s.free = b.s.free.Add(time.Duration(float64(n) / b.s.rate * 1e9))
	b.s.bytes += int64(n)
	until := b.s.free
	b.s.mu.Unlock()
	time.Sleep(time.Until(until))
	return n, err
}

// images puts a dataset of n images and labels in a bucket.
func images(t testing.TB, n int, shape ...int) *membucket.Memory {
	t.Helper()
	schema := store.Schema{Fields: []store.Field{store.NewField("images", tensor.Uint8, shape...), store.NewField("labels", tensor.Int64)}}
	return uploaded(t, schema, flat.Options{ShardBytes: 32 << 20}, n, func(i int, r *store.Record) {
		fill(r.Values[1], i)
		copy(r.Values[0], r.Values[1])
	})
}

// The clock stands still while anything computes, so these times depend only on the order of
// requests, on a machine that is infinitely fast.
func TestLinkIsFilled(t *testing.T) {
	const trip, rate = 50 * time.Millisecond, 200e6
	for _, c := range []struct {
		name    string
		records int
		shape   []int
	}{{"784 B", 200_000, []int{28, 28}}, {"150528 B", 1500, []int{3, 224, 224}}} {
		t.Run(c.name, func(t *testing.T) {
			b := images(t, c.records, c.shape...)
			synctest.Test(t, func(t *testing.T) {
				link := &shaped{Bucket: b, trip: trip, rate: rate}
				began := time.Now()
				d := open(t, link, "ds", Options{})
				ld, err := loader.New(d, loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 1, Workers: 2})
				require.NoError(t, err)
				var first time.Duration
				for _, err := range ld.Epoch(t.Context(), 0) {
					require.NoError(t, err)
					if first == 0 {
						first = time.Since(began)
					}
				}
				all := time.Since(began)
				ld.Close()
				st, size := d.Stats(), d.Files().Bytes()
				t.Logf("first batch after %v, %.1f round trips; epoch %v: %.3f of the link; %d requests for %.0f MB, %d in flight",
					first, float64(first)/float64(trip), all, float64(size)/all.Seconds()/rate, link.requests, float64(size)/1e6, st.InFlight)
				// The manifest, then the batch, whose bytes take most of another round trip.
				if first > 4*trip {
					t.Errorf("the first batch took %v, more than 4 round trips", first)
				}
				// Two round trips are gone before the link has anything to do: longer epochs have more of it.
				if used := float64(size) / all.Seconds() / rate; used < 0.8 {
					t.Errorf("the epoch had %.3f of the link", used)
				}
				if st.Fetched != size {
					t.Errorf("%d bytes were fetched of %d", st.Fetched, size)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// If more than enough is named in advance, naming waits; a hint does not, and neither does a read
// of a record that is needed now.
func TestHintsDoNotWait(t *testing.T) {
	const trip = 50 * time.Millisecond
	b := images(t, 2000, 28, 28)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, &shaped{Bucket: b, trip: trip, rate: 200e6}, "ds", Options{requestBytes: 1})
		d.cache.engine.mostLater = 4
		go func() { _ = d.Fetch(t.Context(), "images", []int{0, 200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800}) }() // Close ends it
		synctest.Wait()
		began := time.Now()
		if err := d.Prefetch("images", 1900, 1901); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("a hint took %v", took)
		}
		if err := d.Gather(t.Context(), "images", []int{1950}, make([]byte, 784)); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*trip {
			t.Errorf("a record that was needed took %v", took)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Adjacent blocks that were named record by record come in one request if they are needed now.
func TestNamedBlocksAreJoined(t *testing.T) {
	const trip, first = 50 * time.Millisecond, 8 * 83 // records of the first request, of smallBytes
	b := images(t, 2000, 28, 28)
	synctest.Test(t, func(t *testing.T) {
		link := &shaped{Bucket: b, trip: trip, rate: 200e6}
		d := open(t, link, "ds", Options{Fields: []string{"images"}})
		var needed []int
		for i := 0; i < 2000; i += 83 { // one of each block
			require.NoError(t, d.Fetch(t.Context(), "images", []int{i}))
			if i >= first {
				needed = append(needed, i)
			}
		}
		time.Sleep(trip / 2) // the first is under way, the others wait for it
		before := link.asked()
		if err := d.Gather(t.Context(), "images", needed, make([]byte, 784*len(needed))); err != nil {
			t.Error(err)
		}
		if more := link.asked() - before; more != 1 {
			t.Errorf("%d requests for %d blocks in a row", more, len(needed))
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// held is a bucket whose reads wait until they are let through, and then fail on request.
type held struct {
	remote.Bucket
	through chan struct{}
	err     error
}

func (h *held) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	if h.through == nil {
		return h.Bucket.ReadRange(ctx, key, off, n, etag)
	}
	<-h.through
	return remote.Body{}, h.err
}

// When all is asked for, hints have nothing to add; when that fails, they have.
func TestHintsEnd(t *testing.T) {
	b, _ := pair(t, 300)
	h := &held{Bucket: b}
	d := open(t, h, "ds", Options{Fields: []string{"images", "labels", "small"}})
	name := func(records []int) {
		for _, s := range d.Specs() {
			require.NoError(t, d.Fetch(t.Context(), s.Name, records))
		}
	}
	h.through, h.err = make(chan struct{}), remote.NewError("read", "ds", remote.ErrPermission, nil)
	name(span(0, 100))
	if d.cache.allAsked() {
		t.Error("a third of the records were named, and nothing is left to ask for")
	}
	name(span(0, 300))
	if !d.cache.allAsked() {
		t.Errorf("all records were named, and %d blocks are left to ask for", d.cache.engine.unasked.Load())
	}
	close(h.through)
	d.cache.engine.all.Wait()
	if d.cache.allAsked() {
		t.Error("all requests have failed, and nothing is left to ask for")
	}
	h.through = nil
	name(span(0, 300))
	d.cache.engine.all.Wait()
	if !d.cache.allAsked() || !d.Complete() {
		t.Errorf("named again, %d blocks are left to ask for; complete: %v", d.cache.engine.unasked.Load(), d.Complete())
	}
}

// The diagnosis of training over a link is remote-bound with the part of the link that is used; or,
// where a step takes longer than its batch, train-bound.
func TestDoctorKnowsTheLink(t *testing.T) {
	const trip, rate = 20 * time.Millisecond, 100e6
	b := images(t, 1500, 3, 224, 224)
	for _, c := range []struct {
		step time.Duration
		want bottleneck.Kind
		says *regexp.Regexp
	}{
		{0, bottleneck.RemoteBound, regexp.MustCompile(`^remote-bound, at (9\d|100) % of the link: .* workers are busy .* wait for the store, which sends (8|9|10)\d MB/s; the link's peak is (9|10)\d MB/s`)},
		{200 * time.Millisecond, bottleneck.TrainBound, regexp.MustCompile(`training`)},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := open(t, &shaped{Bucket: b, trip: trip, rate: rate}, "ds", Options{})
			ld, err := loader.New(d, loader.Options{BatchSize: 16, Sampler: sampler.Shuffle{}, Seed: 1, Workers: 2})
			require.NoError(t, err)
			for _, err := range ld.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				time.Sleep(c.step)
			}
			st := ld.Stats()
			st.CPU, st.Others = 0, 0 // real time, that the loop's simulated time says nothing of
			ld.Close()
			if got := st.Diagnose(); got.Bottleneck != c.want || !c.says.MatchString(got.Text) {
				t.Errorf("steps of %v: %s: %s", c.step, got.Bottleneck, got.Text)
			} else {
				t.Log(got.Text)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
