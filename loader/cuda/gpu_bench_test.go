//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// benchBatch and benchShape are those of the tutorial: 256 images of 150,528 bytes. An epoch has benchBatches.
const (
	benchBatch   = 256
	benchBatches = 16
)

var benchShape = tensor.Shape{3, 224, 224}

// The limit: copies of a batch's bytes from one page-locked buffer, nothing else.
func BenchmarkGPUPinnedLimit(b *testing.B) {
	gpus(b)
	d := mustOpenDevice(b)
	defer d.Close()
	perCopy, err := measureCopy(d, benchBatch*benchShape.Elems(), max(b.N, 10))
	require.NoError(b, err)
	b.ReportMetric(float64(benchBatch*benchShape.Elems())/perCopy.Seconds()/1e9, "GB/s")
	b.ReportMetric(0, "ns/op")
}

// measureCopy returns how long a copy to the device takes.
func measureCopy(d *Device, bytes, times int) (time.Duration, error) {
	src, err := d.pin(bytes)
	if err != nil {
		return 0, err
	}
	dst, err := d.makeMemory(bytes)
	if err != nil {
		return 0, errors.Join(err, d.unpin(src))
	}
	s, err := d.NewStream()
	if err != nil {
		return 0, errors.Join(err, d.freeMemory(dst), d.unpin(src))
	}
	began := time.Now()
	for range times {
		err = errors.Join(err, d.do("cuMemcpyHtoDAsync", func() Result {
			return d.drv.MemcpyHtoDAsync(dst, addressOf(src), uintptr(bytes), uintptr(s))
		}))
	}
	err = errors.Join(err, d.SynchronizeStream(s))
	took := time.Since(began) / time.Duration(times)
	return took, errors.Join(err, d.FreeStream(s), d.freeMemory(dst), d.unpin(src))
}

// Batches to the device with nothing computed: from page-locked memory, from other memory,
// from the mapping, and normalized there.
func BenchmarkGPUPrefetch(b *testing.B) {
	gpus(b)
	src := newMappedSource(b, benchBatches*benchBatch, benchShape)
	for _, c := range []struct {
		name     string
		unpinned bool
		direct   bool
		norm     bool
	}{{name: "pinned"}, {name: "pageable", unpinned: true}, {name: "direct", direct: true}, {name: "normalized", norm: true}} {
		b.Run(c.name, func(b *testing.B) {
			cfg := benchConfig(src, c.unpinned, c.direct)
			if c.norm {
				cfg.opts.Normalize = map[string]Normalize{"images": {Layout: transforms.CHW}}
			}
			r := cfg.mustOpen(b)
			defer r.mustClose(b)
			took := measureSteps(b, r, b.N, nil)
			b.ReportMetric(float64(benchBatch*benchShape.Elems())/took.Seconds()/1e9, "GB/s")
			b.ReportMetric(benchBatch/took.Seconds(), "records/s")
			b.ReportMetric(0, "ns/op")
			b.Logf("%+v", r.pf.Stats())
		})
	}
}

func benchConfig(src *mappedSource, unpinned, direct bool) config {
	c := config{src: src, unpinned: unpinned, opts: Options{Fields: both, Prefetch: 3}}
	c.loader = loader.Options{BatchSize: benchBatch, Sampler: sampler.Shuffle{}, Prefetch: 4}
	if direct {
		c.loader.Fields = []string{"labels"}
		c.opts.Fields = []string{"labels"}
		c.opts.Direct = Direct{src, []string{"images"}}
	}
	return c
}

// warm is how many batches come before those that are timed.
const warm = benchBatches

// measureSteps returns the time of a step: from one batch of a loop to the one n later. The epochs between them do not end
// the pipeline, which is as full at the one as at the other.
func measureSteps(b *testing.B, r *rig, n int, work func(Batch, Stream) error) time.Duration {
	b.Helper()
	step, stream := 0, r.streams[0]
	var began time.Time
	for _, batches := range r.pf.Epochs(context.Background(), math.MaxInt) {
		for x, err := range batches {
			require.NoError(b, err)
			if step == warm {
				began = time.Now()
			}
			if step == warm+n {
				return time.Since(began) / time.Duration(n)
			}
			err := x.Wait(stream)
			if err == nil && work != nil {
				err = work(x, stream)
			}
			require.NoError(b, errors.Join(err, x.Done(stream)))
			step++
		}
	}
	b.Fatal("there are no more batches")
	return 0
}

// measureLoad returns the time of a batch that goes nowhere.
func measureLoad(b *testing.B, c config, memory loader.Allocator, n int) time.Duration {
	b.Helper()
	c.loader.Allocator = memory
	ld, err := loader.New(c.src, c.loader)
	require.NoError(b, err)
	defer ld.Close()
	step := 0
	var began time.Time
	for _, batches := range ld.Epochs(context.Background(), math.MaxInt) {
		for _, err := range batches {
			require.NoError(b, err)
			if step == warm {
				began = time.Now()
			}
			if step == warm+n {
				return time.Since(began) / time.Duration(n)
			}
			step++
		}
	}
	b.Fatal("there are no more batches")
	return 0
}

// Overlap: a step that computes for a part of the time of a copy, against the longest of load, copy and compute, each
// measured alone. 1 is perfect.
func BenchmarkGPUOverlap(b *testing.B) {
	gpus(b)
	src := newMappedSource(b, benchBatches*benchBatch, benchShape)
	for _, part := range []float64{0.5, 1, 2} {
		b.Run(fmt.Sprintf("compute=%v", part), func(b *testing.B) {
			cfg := benchConfig(src, false, false)
			r := cfg.mustOpen(b)
			defer r.mustClose(b)
			d := r.devices[0]
			load := measureLoad(b, cfg, d.Allocator(), b.N)
			copied, err := measureCopy(d, benchBatch*benchShape.Elems(), b.N)
			require.NoError(b, err)
			c := newComputation(b, d, src)
			defer d.freeMemory(c.memory)
			kernels := max(1, int(part*float64(copied)/float64(c.measure(b, 1, r.streams[0]))))
			compute := c.measure(b, kernels, r.streams[0])
			step := measureSteps(b, r, b.N, func(x Batch, s Stream) error { return c.queue(kernels, x.Field("images").Ptr, s) })
			for name, t := range map[string]time.Duration{"step-ms": step, "load-ms": load, "copy-ms": copied, "compute-ms": compute} {
				b.ReportMetric(t.Seconds()*1e3, name)
			}
			b.ReportMetric(float64(step)/float64(max(load, copied, compute)), "step/max")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// computation is work for a device: the normalization of a batch, several times.
type computation struct {
	dev    *Device
	k      *normalizer
	memory uint64 // for a batch of floats, followed by one of bytes
	total  int
}

func newComputation(b *testing.B, d *Device, src *mappedSource) computation {
	b.Helper()
	_, k, err := (Normalize{Layout: transforms.CHW}).of(src.Specs()[0])
	require.NoError(b, err)
	total := benchBatch * benchShape.Elems()
	memory, err := d.makeMemory(5 * total)
	require.NoError(b, err)
	return computation{d, k, memory, total}
}

func (c computation) queue(kernels int, src uint64, s Stream) error {
	var err error
	for range kernels {
		err = errors.Join(err, c.dev.normalize(c.k, c.memory, src, c.total, uintptr(s)))
	}
	return err
}

// measure returns the time of some kernels alone.
func (c computation) measure(b *testing.B, kernels int, s Stream) time.Duration {
	b.Helper()
	const times = 20
	var began time.Time
	for i := range times + 1 {
		if i == 1 { // the kernel is loaded
			require.NoError(b, c.dev.SynchronizeStream(s))
			began = time.Now()
		}
		require.NoError(b, c.queue(kernels, c.memory+4*uint64(c.total), s))
	}
	require.NoError(b, c.dev.SynchronizeStream(s))
	return time.Since(began) / times
}

// The host's cost of sending a batch, on the fake driver: all calls of a step, and almost no
// bytes.
func BenchmarkStep(b *testing.B) {
	useFake(b, setting{})
	fakeDriver.reset(0, 1, 0, 1)
	src := newSource(4096, tensor.Shape{1})
	c := config{src: src, opts: Options{Fields: both}, loader: loader.Options{BatchSize: 4}}
	r := c.mustOpen(b)
	defer r.mustClose(b)
	b.ReportAllocs()
	for n := 0; n < b.N; {
		for x, err := range r.pf.Epoch(context.Background(), 0) {
			require.NoError(b, err)
			require.NoError(b, errors.Join(x.Wait(r.streams[0]), x.Done(r.streams[0])))
			if n++; n == b.N {
				break
			}
		}
	}
}
