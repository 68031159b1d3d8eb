//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebitengine/purego"
)

// The fake driver is built once for the process, and opened before the package asks for
// libcuda.so.1: the system then finds it by that name. With PENSTOCK_GPU=1 the real driver
// is used, and the tests of the fake are skipped.
var fakeDriver struct {
	why     string // it is not there
	reset   func(lazy, devices int32, pause uint32, readOnly int32)
	fail    func(at int64, code, sticky int32)
	stats   func(*[13]int64)
	capture func(stream uintptr, on int32)
	fault   func() string
	failed  func() string
	dlpack  func(*DLManagedTensor, *[24]int64)
	delete  func(*DLManagedTensor)

	dlpackVersioned func(*DLManagedTensorVersioned, *[24]int64)
	deleteVersioned func(*DLManagedTensorVersioned)
}

func TestMain(m *testing.M) {
	if os.Getenv("PENSTOCK_ILLEGAL") != "" {
		os.Exit(accessIllegally())
	}
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		panic(err)
	}
	useDriver(dir)
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

func useDriver(dir string) {
	if err := openFake(dir); err != nil {
		fakeDriver.why = err.Error()
	}
}

func openFake(dir string) error {
	if os.Getenv("PENSTOCK_GPU") == "1" {
		return fmt.Errorf("PENSTOCK_GPU=1: the real driver is used")
	}
	lib := os.Getenv("PENSTOCK_FAKECUDA")
	if lib == "" {
		lib = filepath.Join(dir, "libcuda.so.1")
		cc := exec.Command("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-ffp-contract=off", "-shared", "-fPIC",
			"-Wl,-soname,libcuda.so.1", "-o", lib, "testdata/fakecuda/fakecuda.c", "-lpthread")
		if out, err := cc.CombinedOutput(); err != nil {
			return fmt.Errorf("the fake driver cannot be built: %v\n%s", err, out)
		}
	}
	h, err := purego.Dlopen(lib, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return err
	}
	for name, f := range map[string]any{
		"fakecuda_reset": &fakeDriver.reset, "fakecuda_fail": &fakeDriver.fail, "fakecuda_stats": &fakeDriver.stats,
		"fakecuda_capture": &fakeDriver.capture, "fakecuda_fault": &fakeDriver.fault, "fakecuda_failed": &fakeDriver.failed,
		"fakecuda_dlpack": &fakeDriver.dlpack, "fakecuda_dlpack_delete": &fakeDriver.delete,
		"fakecuda_dlpack_versioned": &fakeDriver.dlpackVersioned, "fakecuda_dlpack_delete_versioned": &fakeDriver.deleteVersioned,
	} {
		purego.RegisterLibFunc(f, h, name)
	}
	return os.Setenv("PENSTOCK_FAKECUDA", lib)
}

// fakeStats counts the driver's live objects and its calls.
type fakeStats struct {
	contexts, host, registered, device, streams, events, modules int64
	calls, faults, copies, pageable, launches, stalls            int64
}

func stats() fakeStats {
	var a [13]int64
	fakeDriver.stats(&a)
	return fakeStats{a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12]}
}

// alive adds up what was made and not freed.
func (s fakeStats) alive() int64 {
	return s.contexts + s.host + s.registered + s.device + s.streams + s.events + s.modules
}

// setting is how the fake runs.
type setting struct {
	lazy         bool
	devices      int
	noReadOnly   bool
	withoutCheck bool // the test looks for leaks itself
}

// useFake has the test use the fake, and fail if it leaks or does what a driver punishes.
func useFake(t testing.TB, s setting) {
	t.Helper()
	if fakeDriver.why != "" {
		t.Skip("needs the fake driver: ", fakeDriver.why)
	}
	lazy, readOnly := int32(0), int32(1)
	if s.lazy {
		lazy = 1
	}
	if s.noReadOnly {
		readOnly = 0
	}
	fakeDriver.reset(lazy, int32(max(1, s.devices)), 60, readOnly)
	t.Cleanup(func() {
		if !s.withoutCheck {
			noLeak(t)
		}
	})
}

// noLeak fails the test if something is alive, or a fault was counted.
func noLeak(t testing.TB) {
	t.Helper()
	st := stats()
	if st.alive() != 0 {
		t.Errorf("not freed: %+v", st)
	}
	if st.faults != 0 {
		t.Errorf("%d faults; the first: %s", st.faults, fakeDriver.fault())
	}
	if st.pageable != 0 {
		t.Errorf("%d copies from memory that is not page-locked", st.pageable)
	}
	if n := locked.total(); n != 0 {
		t.Errorf("%d bytes are still noted as page-locked", n)
	}
}

// modes are the ways in which the fake runs.
var modes = map[string]bool{"lazy": true, "threads": false}

// within fails the test if f does not return.
func within(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		panic("hangs")
	}
}
