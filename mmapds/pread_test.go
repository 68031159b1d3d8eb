package mmapds

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// All calls of Gather share the places of reads: while they are taken, others wait, until their
// context is done, and each gives its own back.
func TestReadsHavePlaces(t *testing.T) {
	ds := openRead(t, 100)
	places := ds.handles.reads()
	for range inFlight {
		places <- struct{}{}
	}
	indices, dst := []int{7, 93, 41}, make([]byte, 3*64)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ds.Gather(ctx, "x", indices, dst); !errors.Is(err, context.Canceled) {
		t.Errorf("without a place: %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dst := make([]byte, 3*64)
			if err := ds.Gather(t.Context(), "x", indices, dst); err != nil {
				t.Error(err)
			}
			for k, i := range indices {
				if want := bytes.Repeat([]byte{byte(i)}, 64); !bytes.Equal(dst[k*64:(k+1)*64], want) {
					t.Errorf("record %d begins with %d", i, dst[k*64])
				}
			}
		})
	}
	for range inFlight {
		<-places
	}
	all.Wait()
	if len(places) != 0 {
		t.Errorf("%d places are still taken", len(places))
	}
}

// openRead returns a dataset of n records of 64 bytes that are read by pread.
func openRead(t *testing.T, n int) *Dataset { return openOf(t, n, 64, WithRead(ReadPread)) }

// openOf returns a dataset of n records of size bytes, each of which is the record's number.
func openOf(t *testing.T, n, size int, opts ...Option) *Dataset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ds")
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, size)}}
	w, err := flat.Create(path, schema, flat.Options{})
	require.NoError(t, err)
	datasettest.Write(t, w, schema, n, store.Info{}, func(i int, r *store.Record) {
		copy(r.Values[0], bytes.Repeat([]byte{byte(i)}, size))
	})
	ds, err := Open(path, opts...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := ds.Close(); err != nil {
			t.Error(err)
		}
	})
	return ds
}
