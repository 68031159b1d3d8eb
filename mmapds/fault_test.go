package mmapds_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// A Dataset has every capability that a local Source can have.
var _ interface {
	loader.RaggedSource
	loader.ChunkedSource
	loader.MappedSource
	loader.FaultSource
	loader.CheckedSource
	loader.DescribedSource
	loader.NamedSource
	loader.ClassedSource
	loader.GenerationSource
	loader.Identifier
} = (*mmapds.Dataset)(nil)

// TestTruncatedUnderATransform truncates a shard whose records a transform reads from the
// mapping: in the goroutine of the loop and in workers, alone and joined.
func TestTruncatedUnderATransform(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("truncating a mapped file is not possible or not defined on " + runtime.GOOS)
	}
	p, err := transforms.Compose(
		transforms.ToLayout{Layout: transforms.CHW},
		transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: []float64{.5, .5, .5}, Std: []float64{.5, .5, .5}},
	)
	require.NoError(t, err)
	for _, workers := range []int{loader.Synchronous, 1, 3} {
		for _, joined := range []bool{false, true} {
			path := build(t, 1100)
			ds := open(t, path)
			src, record := loader.Source(ds), 900
			if joined {
				if src, err = combine.NewConcat(open(t, build(t, 600)), ds); err != nil {
					t.Fatal(err)
				}
				record += 600
			}
			ld, err := loader.New(src, loader.Options{
				BatchSize: 100, Workers: workers,
				Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: p, Layout: transforms.CHW}},
			})
			require.NoError(t, err)
			drain := func() error {
				for _, err := range ld.Epoch(context.Background(), 0) {
					if err != nil {
						return err
					}
				}
				return nil
			}
			require.NoError(t, drain())
			shard := filepath.Join(path, "images-00001.npy")
			cut(t, shard, 4096+388*1800) // in the page before record 900
			err = drain()
			var lost *mmapds.ReadError
			var e *loader.Error
			if !errors.As(err, &lost) || !errors.As(err, &e) {
				t.Fatalf("workers %d, joined %v: got %v, want a ReadError", workers, joined, err)
			}
			if lost.Path != shard || e.Field != "images" || e.Record < record-2 || e.Record > record+3 || strings.Contains(err.Error(), "goroutine") {
				t.Errorf("workers %d, joined %v: got %v; want an error of %s, record %d or next to it", workers, joined, err, shard, record)
			}
			require.NoError(t, ld.Close())
		}
	}
}

// TestTruncatedInsideAPage truncates a shard inside a page, whose rest reads as zeros without a fault:
// the epoch ends with an error.
func TestTruncatedInsideAPage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("truncating a mapped file is not possible or not defined on " + runtime.GOOS)
	}
	path := build(t, 1100)
	ds := open(t, path)
	ld, err := loader.New(ds, loader.Options{BatchSize: 100, Workers: 2, Sampler: sampler.Shuffle{}})
	require.NoError(t, err)
	defer ld.Close()
	drain := func() (err error) {
		for _, err = range ld.Epoch(t.Context(), 0) {
		}
		return err
	}
	require.NoError(t, drain())
	shard := filepath.Join(path, "images-00001.npy")
	info, err := os.Stat(shard)
	require.NoError(t, err)
	cut(t, shard, info.Size()-100)     // of the last record; the page is still there
	time.Sleep(100 * time.Millisecond) // the loader looks every 50 ms
	var lost *mmapds.ReadError
	if err := drain(); !errors.As(err, &lost) || lost.Path != shard {
		t.Errorf("got %v, want a ReadError of %s", err, shard)
	}
}
