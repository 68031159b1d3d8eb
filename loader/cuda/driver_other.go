//go:build !(linux && (amd64 || arm64)) || nocuda

package cuda

import (
	"fmt"
	"runtime"
)

// load returns an error: this package can open no driver here.
func load() (*driver, error) {
	return nil, fmt.Errorf("this package binds the driver on linux/amd64 and linux/arm64 in builds without -tags "+
		"nocuda, and this is %s/%s", runtime.GOOS, runtime.GOARCH)
}

// newCallback is never called: there is no device here, and so no batch.
func newCallback(func(uintptr)) uintptr { panic("cuda: no driver on this system") }
