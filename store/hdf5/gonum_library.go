//go:build cgo && !nolibhdf5

package hdf5

// #cgo LDFLAGS: -lhdf5
// #cgo darwin CFLAGS: -I/opt/homebrew/include -I/usr/local/include
// #cgo darwin LDFLAGS: -L/opt/homebrew/lib -L/usr/local/lib
// #cgo linux,amd64 CFLAGS: -I/usr/include/hdf5/serial
// #cgo linux,amd64 LDFLAGS: -L/usr/lib/x86_64-linux-gnu/hdf5/serial
// #cgo linux,arm64 CFLAGS: -I/usr/include/hdf5/serial
// #cgo linux,arm64 LDFLAGS: -L/usr/lib/aarch64-linux-gnu/hdf5/serial
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"gonum.org/v1/hdf5"
)

// executor is the one goroutine that calls libhdf5. The library is not safe for threads in every build, runs one call
// at a time in any build, and keeps its error stack and the switch of its error output by thread.
var executor = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

// do runs f on the executor. Everything below this line in the package that calls C or gonum runs inside such an f. f
// must not call do: the executor would wait for itself.
func do(f func() error) error {
	done := make(chan error, 1)
	executor() <- func() {
		err := unusable
		if err == nil {
			err = hdf5.DisplayErrors(false)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}
	return <-done
}

// unusable, which belongs to the executor, is set when libhdf5 keeps a handle on memory that it has freed. The next
// call could use that handle, so every later call returns the error instead.
var unusable error

// Version names the libhdf5 in use, for example "HDF5 1.10.8".
func Version() string {
	var v hdf5.Version
	err := do(func() (err error) {
		v, err = hdf5.LibVersion()
		return err
	})
	if err != nil {
		return "HDF5 of unknown version"
	}
	return "HDF5 " + v.String()
}

// systemError finds the number of a failed system call in libhdf5's text.
var systemError = regexp.MustCompile(`\berrno = ([1-9][0-9]*)\b`)

// explain makes an error of libhdf5's text: the system's error if a system call failed, so that callers can test for a
// full disk.
func explain(what, text string) error {
	if m := systemError.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return fmt.Errorf("%s: %w", what, syscall.Errno(n))
		}
	}
	if text == "" {
		text = "failed for a reason that it does not give"
	}
	return fmt.Errorf("%s: libhdf5: %s", what, text)
}

func failed(what string, e *C.h5x_error) error {
	return explain(what, C.GoString(&e.text[0]))
}

// gonumFailed explains an error of the last gonum call into the library. Gonum's own text is only "code -1".
func gonumFailed(what string) error {
	var e C.h5x_error
	C.h5x_last_error(&e)
	return failed(what, &e)
}

// file is an open HDF5 file.
type file struct {
	h    *hdf5.File
	path string
}

// access says whether a file is opened to create, to change or to read it.
type access int

const (
	creating access = iota
	changing
	reading // libhdf5 writes nothing
)

// session opens a file, runs use on the executor, and closes the file with every handle. New objects start at multiples
// of align. After an error the file is unusable.
func session(path string, what access, align uint64, use func(f file) error) error {
	return do(func() error {
		f, err := openFile(path, what, align)
		if err != nil {
			return err
		}
		err = use(f)
		if closing := f.close(); err == nil {
			err = closing
		}
		return err
	})
}

// openFile opens a file through the shim, which sets properties that gonum cannot set, and hands it to gonum.
func openFile(path string, what access, align uint64) (file, error) {
	name := C.CString(path)
	defer free(name)
	var e C.h5x_error
	var id C.hid_t
	switch what {
	case creating:
		id = C.h5x_create(name, C.hsize_t(align), &e)
	case changing:
		id = C.h5x_open(name, 1, C.hsize_t(align), &e)
	case reading:
		id = C.h5x_open(name, 0, C.hsize_t(align), &e)
	}
	if id < 0 {
		return file{}, failed("open", &e)
	}
	// Gonum cannot adopt the handle of a file, but every object that has a handle can be asked for its file, and a file
	// answers with a second reference to itself.
	h := wrap(hdf5.NewDatatype, int64(id)).File()
	if h == nil {
		return file{}, errors.Join(gonumFailed("open"), closeFile(id))
	}
	f := file{h, path}
	if err := closeFile(id); err != nil {
		return file{}, errors.Join(err, f.close())
	}
	return f, nil
}

func closeFile(id C.hid_t) error {
	var e C.h5x_error
	if C.h5x_close_file(id, &e) < 0 {
		return failed("close", &e)
	}
	return nil
}

// close flushes and closes the file. Handles that are still open would be closed with the file and so hide a bug in
// penstock: they are counted first.
//
// A file that cannot be flushed is abandoned. H5Fclose would fail to flush it, too, free its memory and keep its
// handle, which the next file would use. An abandoned file costs one descriptor and some memory, and, as it is
// truncated, no disk space.
func (f file) close() error {
	n := C.h5x_open_handles(C.hid_t(f.h.ID()))
	if err := f.flush(); err != nil {
		return errors.Join(err, pathless(os.Truncate(f.path, 0)))
	}
	if err := f.h.Close(); err != nil {
		unusable = fmt.Errorf("libhdf5 is in an undefined state until this process ends: %w", gonumFailed("close"))
		return unusable
	}
	if n != 1 {
		return fmt.Errorf("close: %d handles of the file were left open", n-1)
	}
	return nil
}

func (f file) flush() error {
	if err := f.h.Flush(hdf5.F_SCOPE_GLOBAL); err != nil {
		return gonumFailed("flush")
	}
	return nil
}
