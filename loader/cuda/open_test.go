//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// mustOpenDevice opens the first device.
func mustOpenDevice(t testing.TB) *Device {
	t.Helper()
	d, err := Open(0)
	require.NoError(t, err)
	return d
}

// Without a driver, the error says so, and what to do.
func TestNoDriver(t *testing.T) {
	_, err := open([]string{"libthatisnotthere.so.1", "/neither/is/this.so"})
	if err == nil || !strings.Contains(err.Error(), "libthatisnotthere") || !strings.Contains(err.Error(), "install NVIDIA's driver") {
		t.Errorf("%v", err)
	}
	if err := error(&noCUDAError{err}); !errors.Is(err, ErrNoCUDA) || !strings.HasPrefix(err.Error(), "cuda: no CUDA") {
		t.Errorf("%v is not an ErrNoCUDA", err)
	}
}

// The error of a library that is not a driver, or an old one, names what it lacks.
func TestOldDriver(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: ", err)
	}
	dir := t.TempDir()
	source, lib := filepath.Join(dir, "old.c"), filepath.Join(dir, "old.so")
	require.NoError(t, os.WriteFile(source, []byte("int cuInit(unsigned f) { return f; }\n"), 0o600))
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", lib, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := open([]string{lib}); err == nil || !strings.Contains(err.Error(), "no cuDriverGetVersion: it is older than CUDA 11.4") {
		t.Errorf("%v", err)
	}
}

func TestOpen(t *testing.T) {
	useFake(t, setting{devices: 2})
	if n, err := Count(); n != 2 || err != nil {
		t.Errorf("%d devices, %v", n, err)
	}
	for _, i := range []int{-1, 2} {
		if _, err := Open(i); err == nil || errors.Is(err, ErrNoCUDA) || !strings.Contains(err.Error(), "there are 2") {
			t.Errorf("device %d: %v", i, err)
		}
	}
	d, err := Open(1)
	require.NoError(t, err)
	if d.Ordinal() != 1 || d.Name() != "Fake 1" || d.DriverVersion() != 12040 {
		t.Errorf("device %d, %q, version %d", d.Ordinal(), d.Name(), d.DriverVersion())
	}
	require.NoError(t, d.Synchronize())
	require.NoError(t, d.Close())
}

// An unusable driver is an ErrNoCUDA with the reason.
func TestOpenRefused(t *testing.T) {
	for _, c := range []struct {
		at   int64
		code int32
		want string
	}{
		{0, int32(stubLibrary), "cuda: no CUDA device can be used: cuInit: error 34; this is the toolkit's stub"},
		{0, int32(noDevice), "cuInit: error 100; see whether nvidia-smi"},
		{1, 3, "cuDeviceGetCount: CUDA_ERROR_NOT_INITIALIZED (3)"},
	} {
		useFake(t, setting{})
		fakeDriver.fail(c.at, c.code, 0)
		_, err := Open(0)
		if !errors.Is(err, ErrNoCUDA) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	useFake(t, setting{})
	fakeDriver.reset(1, 0, 0, 1)
	if _, err := Open(0); !errors.Is(err, ErrNoCUDA) || !strings.Contains(err.Error(), "lists no device") {
		t.Errorf("no device: %v", err)
	}
}

// The driver answers with an error where the context is not current on the thread: the fake
// does, and Device.do sees to it that it never has to.
func TestThread(t *testing.T) {
	useFake(t, setting{})
	d := mustOpenDevice(t)
	defer d.Close()
	done := make(chan Result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its context
		var s uintptr
		done <- d.drv.StreamCreate(&s, streamNonBlocking)
	}()
	if r := <-done; r != 201 {
		t.Errorf("a call without a context: %d", r)
	}
	for range 50 {
		go func() {
			s, err := d.NewStream()
			if err == nil {
				err = d.FreeStream(s)
			}
			if err != nil {
				t.Error(err)
			}
			done <- 0
		}()
	}
	for range 50 {
		<-done
	}
}

func TestOptions(t *testing.T) {
	useFake(t, setting{})
	d := mustOpenDevice(t)
	defer d.Close()
	src := newSource(10, tensor.Shape{4})
	ld, err := loader.New(src, loader.Options{BatchSize: 2})
	require.NoError(t, err)
	defer ld.Close()
	devices := []*Device{d}
	for _, c := range []struct {
		opts Options
		want []string
	}{
		{Options{Prefetch: -1}, []string{"no device in Devices", "-1 of Prefetch", "no field in Fields"}},
		{Options{Devices: []*Device{nil}, Fields: both}, []string{"one that is nil"}},
		{Options{Devices: devices, Fields: []string{"a", "a"}}, []string{`"a" is named twice`}},
		{Options{Devices: devices, Fields: both, Normalize: map[string]Normalize{"x": {DType: tensor.Bool}}}, []string{`field "x": DType is bool`, "neither in Fields nor in Direct"}},
		{Options{Devices: devices, Direct: Direct{Fields: both}}, []string{"no Source in Direct"}},
		{Options{Devices: devices, Direct: Direct{src, []string{"none"}}}, []string{`no field "none"`}},
		{Options{Devices: devices, Direct: Direct{newWords(3), []string{"tokens"}}}, []string{"variable length"}},
	} {
		_, err := New(ld, c.opts)
		if err == nil {
			t.Errorf("%+v: no error", c.opts)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	for _, opts := range []Options{
		{Devices: devices, Fields: []string{"none"}},
		{Devices: devices, Fields: []string{"labels.offsets"}},
		{Devices: devices, Fields: both, Normalize: map[string]Normalize{"labels": {}}},
	} {
		firstError(t, ld, opts)
	}
	if src.leases.Load() != 0 {
		t.Error("the Source is still leased")
	}
}

// firstError wants an error in place of the first batch.
func firstError(t *testing.T, ld *loader.Loader, opts Options) {
	t.Helper()
	pf, err := New(ld, opts)
	require.NoError(t, err)
	for _, err := range pf.Epoch(t.Context(), 0) {
		if err == nil || !strings.HasPrefix(err.Error(), "cuda: ") {
			t.Errorf("%+v: %v", opts, err)
		}
		break
	}
	require.NoError(t, pf.Close())
}

// Sets of memory hold what lies wholly in one piece.
func TestRanges(t *testing.T) {
	var r ranges
	b := make([]byte, 1<<20) // too large for the stack, which moves
	r.add(b[600:700])
	r.add(b[100:200])
	r.add(b[300:400])
	for _, c := range []struct {
		from, to int
		want     bool
	}{
		{100, 200, true}, {150, 160, true}, {99, 120, false}, {150, 201, false}, {300, 400, true}, {650, 700, true},
		{200, 300, false}, {100, 400, false}, {0, 1, false}, {999, 1000, false},
	} {
		if got := r.holds(b[c.from:c.to]); got != c.want {
			t.Errorf("[%d, %d): %v", c.from, c.to, got)
		}
	}
	r.remove(b[300:400])
	r.remove(b[0:100])
	if r.holds(b[300:301]) || !r.holds(b[100:200]) || r.total() != 200 {
		t.Errorf("after a removal: %d bytes", r.total())
	}
}
