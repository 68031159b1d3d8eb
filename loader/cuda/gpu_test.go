//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebitengine/purego"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
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

// Batches arrive whole on every device.
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

// The device normalizes to the same bits as the CPU.
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

// Batches can be looked at.
func TestGPUInterop(t *testing.T) {
	gpus(t)
	src := newSource(30, tensor.Shape{3, 4, 5})
	r := small(src).mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		got := make([]byte, b.Field("images").Bytes())
		require.NoError(t, b.CopyTo(got, "images"))
		require.NoError(t, compare(src, "images", b.Indices(), got))
		require.NoError(t, b.Done(b.Stream()))
	}
}

// Of many small batches none is wrong, with a consumer that is slow at times and loops that are left.
func TestGPUManyBatches(t *testing.T) {
	gpus(t)
	const batches = 10_000
	src := newSource(1003, tensor.Shape{3, 17, 11})
	r := small(src).mustOpen(t)
	defer r.mustClose(t)
	n, rnd := 0, rand.New(rand.NewPCG(1, 2))
	for epoch := 0; n < batches; epoch++ {
		for b, err := range r.pf.Epoch(t.Context(), epoch) {
			require.NoError(t, err)
			require.NoError(t, r.consume(b, both...))
			if rnd.IntN(100) == 0 {
				time.Sleep(time.Millisecond)
			}
			if n++; n == batches || rnd.IntN(300) == 0 {
				break
			}
		}
		require.NoError(t, errors.Join(r.check(src), r.forget()))
	}
	t.Logf("%d batches, 0 wrong", n)
}

// Fields of variable length arrive whole while their memory grows.
func TestGPURaggedGrowth(t *testing.T) {
	gpus(t)
	src := newSteepWords(200, 30)
	c := config{src: src, opts: Options{Fields: []string{"tokens", "tokens.offsets"}, Prefetch: 1}}
	c.loader.BatchSize = 6
	r := c.mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		got := make([]byte, b.Field("tokens").Bytes())
		require.NoError(t, b.CopyTo(got, "tokens"))
		var want []byte
		for _, x := range b.Indices() {
			want = append(want, src.tokens[2*src.starts[x]:2*src.starts[x+1]]...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("batch %d has other tokens", b.Step())
		}
		require.NoError(t, b.Done(b.Stream()))
	}
}

// The device's memory is unchanged after 100 opens and closes.
func TestGPUOpenClose(t *testing.T) {
	gpus(t)
	keep := mustOpenDevice(t) // so that the context stays, which takes memory itself
	defer keep.Close()
	src := newSource(30, tensor.Shape{3, 64, 64})
	once := func() {
		r := small(src).mustOpen(t)
		for b, err := range r.pf.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			require.NoError(t, r.consume(b, both...))
		}
		r.mustClose(t)
	}
	once()
	before := availableMemory(t, keep)
	for range 100 {
		once()
	}
	after := availableMemory(t, keep)
	t.Logf("%d bytes of the device are free before, %d after", before, after)
	if after < before {
		t.Error("memory of the device was not given back")
	}
}

// availableMemory returns the bytes of a device that are free.
func availableMemory(t *testing.T, d *Device) uint64 {
	t.Helper()
	lib, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW)
	require.NoError(t, err)
	var info func(free, total *uint64) Result
	purego.RegisterLibFunc(&info, lib, "cuMemGetInfo_v2")
	var free, total uint64
	require.NoError(t, d.do("cuMemGetInfo", func() Result { return info(&free, &total) }))
	return free
}

// A kernel that reads where nothing is ends what its process does there with an error, and not with a hang.
func TestGPUIllegalAccess(t *testing.T) {
	gpus(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PENSTOCK_ILLEGAL=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "ILLEGAL_ADDRESS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// accessIllegally makes a kernel read an invalid address, prints the error of the next call, and returns an exit status.
func accessIllegally() int {
	dev, err := Open(0)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, k, err := (Normalize{}).of(tensor.Spec{Name: "images", DType: tensor.Uint8, Shape: tensor.Shape{3, 4, 5}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	dst, err := dev.makeMemory(4 * 60)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(errors.Join(dev.normalize(k, dst, 0x1000, 60, 0), dev.Synchronize()))
	return 0
}

// The tests for a device work as such: on the fake, which another process takes for the real
// driver.
func TestGPUTests(t *testing.T) {
	if fakeDriver.why != "" {
		t.Skip("needs the fake driver: ", fakeDriver.why)
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestGPU", "-test.skip=^TestGPUTests$|^TestGPUIllegalAccess$")
	cmd.Env = append(os.Environ(), "PENSTOCK_GPU=1", "PENSTOCK_FAKECUDA=", "LD_LIBRARY_PATH="+filepath.Dir(os.Getenv("PENSTOCK_FAKECUDA")))
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\n--- PASS: TestGPU") != 7 {
		t.Errorf("%v\n%s", err, out)
	}
}
