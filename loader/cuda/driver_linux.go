//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"

	"github.com/ebitengine/purego"
)

// libraries are the names of the driver, in the order in which they are tried. The second
// path is the driver's place under WSL.
var libraries = []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}

// load opens the driver, once for the process: a driver that was opened stays.
var load = sync.OnceValues(func() (*driver, error) { return open(libraries) })

func open(names []string) (*driver, error) {
	runtime.LockOSThread() // the linker keeps what went wrong by thread
	defer runtime.UnlockOSThread()
	var first error
	for _, name := range names {
		lib, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return bind(lib)
		}
		if first == nil {
			first = fmt.Errorf("the driver cannot be opened: %w; install NVIDIA's driver, in a container run with --gpus", err)
		}
	}
	return nil, first
}

// bind finds every function of driver. purego's RegisterLibFunc would panic where one is
// missing, so each is looked up first.
func bind(lib uintptr) (*driver, error) {
	d := new(driver)
	v := reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		symbol := v.Type().Field(i).Tag.Get("symbol")
		at, err := purego.Dlsym(lib, symbol)
		if err != nil {
			return nil, fmt.Errorf("the driver has no %s: it is older than CUDA 11.4; update it", symbol)
		}
		purego.RegisterFunc(v.Field(i).Addr().Interface(), at)
	}
	return d, nil
}

// newCallback returns f as a C function. It is never freed.
func newCallback(f func(uintptr)) uintptr { return purego.NewCallback(f) }
