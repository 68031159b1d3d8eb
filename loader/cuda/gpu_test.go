//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// The tests and benchmarks of this file need a device, and PENSTOCK_GPU=1:
//
//	PENSTOCK_GPU=1 go test -count=1 -v -run '^TestGPU' ./loader/cuda
//	PENSTOCK_GPU=1 go test -run '^$' -bench '^BenchmarkGPU' ./loader/cuda

// gpus returns the number of devices, or skips.
func gpus(t testing.TB) int {
	t.Helper()
	if os.Getenv("PENSTOCK_GPU") != "1" {
		t.Skip("runs on a CUDA device with PENSTOCK_GPU=1; the fake driver has the name of the real one in this process")
	}
	n, err := Count()
	if err != nil {
		t.Skip("no device: ", err)
	}
	return n
}

// Batches arrive whole on every device that there is.
func TestGPUData(t *testing.T) {
	n := gpus(t)
	src := newSource(1003, tensor.Shape{3, 57, 41})
	for _, devices := range []int{1, n} {
		for _, unpinned := range []bool{false, true} {
			t.Run(fmt.Sprintf("devices=%d/unpinned=%v", devices, unpinned), func(t *testing.T) {
				c := config{src: src, devices: devices, unpinned: unpinned, opts: Options{Fields: both}}
				c.loader = loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 5, Workers: 2, Prefetch: max(2, devices)}
				testEpochs(t, c, src)
			})
		}
	}
}

// The device normalizes to the bits of the processor.
func TestGPUNormalize(t *testing.T) {
	gpus(t)
	eachNorm(func(name string, n Normalize) {
		t.Run(name, func(t *testing.T) { testNormalize(t, n) })
	})
}

// Batches that are read from the mapping are whole; whether that can be page-locked depends
// on the device and the system, and is printed.
func TestGPUDirect(t *testing.T) {
	gpus(t)
	for name, order := range map[string]sampler.Sampler{"in order": nil, "shuffled": sampler.Shuffle{}} {
		t.Run(name, func(t *testing.T) {
			st := runDirect(t, newMappedSource(t, 200, tensor.Shape{3, 256, 200}), order)
			t.Logf("%+v: %d bytes direct, %d staged", st.Direct[0], st.DirectBytes, st.StagedBytes)
			if (st.Direct[0].Reason == "") != (st.DirectBytes > 0) {
				t.Errorf("Stats: %+v", st)
			}
		})
	}
}

// Handles for other processes can be had, and batches can be looked at.
func TestGPUInterop(t *testing.T) {
	gpus(t)
	src := newSource(30, tensor.Shape{3, 4, 5})
	r := small(src).mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if h, err := b.IPC("images"); err != nil {
			t.Log("CUDA IPC is refused here: ", err)
		} else if h.Handle == [64]byte{} {
			t.Error("an empty handle")
		}
		got := make([]byte, b.Field("images").Bytes())
		if err := b.CopyTo(got, "images"); err != nil {
			t.Fatal(err)
		}
		if err := compare(src, "images", b.Indices(), got); err != nil {
			t.Error(err)
		}
		if err := b.Done(b.Stream()); err != nil {
			t.Fatal(err)
		}
	}
}

// Another process maps what it is given, in Go and in Python with torch.
func TestGPUImports(t *testing.T) {
	gpus(t)
	src := newSource(30, tensor.Shape{3, 4, 5})
	t.Run("go", func(t *testing.T) { testImports(t, src, self("receive")) })
	t.Run("python", func(t *testing.T) { testImports(t, src, python(t, "import torch; torch.zeros(1, device='cuda:0')")) })
}

// The tests for a device work as such: on the fake, which another process takes for the real
// driver.
func TestGPUTests(t *testing.T) {
	if fakeDriver.why != "" {
		t.Skip("needs the fake driver: ", fakeDriver.why)
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestGPU", "-test.skip=^TestGPUTests$|^TestGPUImports$/^python$")
	cmd.Env = append(os.Environ(), "PENSTOCK_GPU=1", "PENSTOCK_FAKECUDA=", "LD_LIBRARY_PATH="+filepath.Dir(os.Getenv("PENSTOCK_FAKECUDA")))
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\n--- PASS: TestGPU") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
}

// benchBatch and benchShape are those of the tutorial: 256 images of 150,528 bytes.
const benchBatch = 256

var benchShape = tensor.Shape{3, 224, 224}

// The limit: copies of a batch's bytes from one page-locked buffer, nothing else.
func BenchmarkGPUPinnedLimit(b *testing.B) {
	gpus(b)
	d := mustOpenDevice(b)
	defer d.Close()
	perCopy, err := measureCopy(d, benchBatch*benchShape.Elems(), max(b.N, 10))
	if err != nil {
		b.Fatal(err)
	}
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
	for _, c := range []struct {
		name     string
		unpinned bool
		direct   bool
		norm     bool
	}{{name: "pinned"}, {name: "pageable", unpinned: true}, {name: "direct", direct: true}, {name: "normalized", norm: true}} {
		b.Run(c.name, func(b *testing.B) {
			src := newMappedSource(b, 4*benchBatch, benchShape)
			cfg := benchConfig(src, c.unpinned, c.direct)
			if c.norm {
				cfg.opts.Normalize = map[string]Normalize{"images": {Layout: transforms.CHW}}
			}
			r := cfg.mustOpen(b)
			defer r.mustClose(b)
			took := measureSteps(b, r, max(b.N, 8), nil)
			b.ReportMetric(float64(benchBatch*benchShape.Elems())/took.Seconds()/1e9, "GB/s")
			b.ReportMetric(benchBatch/took.Seconds(), "records/s")
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

// measureSteps returns the mean time of n steps after two epochs of warm-up.
func measureSteps(b *testing.B, r *rig, n int, work func(Batch, Stream) error) time.Duration {
	b.Helper()
	step, began, warm := 0, time.Now(), 2*r.ld.Batches(0)
	for epoch := 0; step < n+warm; epoch++ {
		for x, err := range r.pf.Epoch(context.Background(), epoch) {
			if err != nil {
				b.Fatal(err)
			}
			if step == warm {
				if err := r.devices[0].Synchronize(); err != nil {
					b.Fatal(err)
				}
				began = time.Now()
			}
			stream := r.streams[0]
			err := x.Wait(stream)
			if err == nil && work != nil {
				err = work(x, stream)
			}
			if err := errors.Join(err, x.Done(stream)); err != nil {
				b.Fatal(err)
			}
			if step++; step == n+warm {
				break
			}
		}
	}
	if err := r.devices[0].SynchronizeStream(r.streams[0]); err != nil {
		b.Fatal(err)
	}
	return time.Since(began) / time.Duration(n)
}

// Overlap: the time of a step with compute against the longest of load and copy, both
// together as a step without compute takes them, and compute alone. 1 is perfect.
func BenchmarkGPUOverlap(b *testing.B) {
	gpus(b)
	for _, kernels := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("kernels=%d", kernels), func(b *testing.B) {
			src := newMappedSource(b, 4*benchBatch, benchShape)
			r := benchConfig(src, false, false).mustOpen(b)
			defer r.mustClose(b)
			d, total := r.devices[0], benchBatch*benchShape.Elems()
			scratch, err := d.makeMemory(4 * total)
			if err != nil {
				b.Fatal(err)
			}
			defer d.freeMemory(scratch)
			_, k, err := (Normalize{Layout: transforms.CHW}).of(src.Specs()[0])
			if err != nil {
				b.Fatal(err)
			}
			n := max(b.N, 20)
			load := measureSteps(b, r, n, nil)
			var compute time.Duration
			work := func(x Batch, s Stream) error {
				var err error
				for range kernels {
					err = errors.Join(err, d.normalize(k, scratch, x.Field("images").Ptr, x.Len()*benchShape.Elems(), uintptr(s)))
				}
				return err
			}
			for x, err := range r.pf.Epoch(context.Background(), 0) {
				if err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(x.Synchronize(), work(x, r.streams[0]), d.SynchronizeStream(r.streams[0])); err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				if err := errors.Join(work(x, r.streams[0]), d.SynchronizeStream(r.streams[0])); err != nil {
					b.Fatal(err)
				}
				compute = time.Since(began)
				if err := x.Done(r.streams[0]); err != nil {
					b.Fatal(err)
				}
				break
			}
			step := measureSteps(b, r, n, work)
			b.ReportMetric(float64(step.Microseconds())/1e3, "step-ms")
			b.ReportMetric(float64(load.Microseconds())/1e3, "load+copy-ms")
			b.ReportMetric(float64(compute.Microseconds())/1e3, "compute-ms")
			b.ReportMetric(float64(max(load, compute))/float64(step), "overlap")
		})
	}
}

// The host's cost of sending a batch, on the fake driver: all calls of a step, and almost no
// bytes.
func BenchmarkStep(b *testing.B) {
	useFake(b, setting{})
	fakeDriver.reset(0, 1, 0, 1, 1)
	src := newSource(4096, tensor.Shape{1})
	c := config{src: src, opts: Options{Fields: both}, loader: loader.Options{BatchSize: 4}}
	r := c.mustOpen(b)
	defer r.mustClose(b)
	b.ReportAllocs()
	for n := 0; n < b.N; {
		for x, err := range r.pf.Epoch(context.Background(), 0) {
			if err != nil {
				b.Fatal(err)
			}
			if err := errors.Join(x.Wait(r.streams[0]), x.Done(r.streams[0])); err != nil {
				b.Fatal(err)
			}
			if n++; n == b.N {
				break
			}
		}
	}
}
