//go:build cgo && !nolibhdf5

package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func TestVersion(t *testing.T) {
	var a, b, c int
	if n, err := fmt.Sscanf(Version(), "HDF5 %d.%d.%d", &a, &b, &c); n != 3 || a != 1 || b < 10 {
		t.Errorf("%q: %v", Version(), err)
	}
}

func TestManyGoroutines(t *testing.T) {
	s := everyType()
	want := read(t, buildFile(t, s, 20, 20, store.Info{}))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if got := read(t, buildFile(t, s, 20, 20, store.Info{})); !bytes.Equal(got, want) {
				t.Error("other bytes than alone")
			}
		})
	}
	wg.Wait()
}

// A failure of libhdf5 is in the error, once, and not on stderr.
func TestSilent(t *testing.T) {
	if os.Getenv(child) != "" {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { provoke(t) })
		}
		wg.Wait()
		return
	}
	if stderr := rerun(t, "1"); len(stderr) > 0 {
		t.Errorf("on stderr: %s", stderr)
	}
}

// provoke makes libhdf5 and gonum fail in several ways.
func provoke(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.h5")
	require.NoError(t, os.WriteFile(text, []byte("not HDF5"), 0o666))
	none := func(file) error { return nil }
	wants(t, session(text, changing, smallAlign, none), "file signature not found")
	wants(t, session(text, creating, smallAlign, none), "file exists")
	missing := session(filepath.Join(dir, "none", "x.h5"), creating, smallAlign, none)
	wants(t, missing, "no such file")
	if !errors.Is(missing, syscall.ENOENT) {
		t.Errorf("%v is not ENOENT", missing)
	}
	wants(t, session(filepath.Join(dir, "a.h5"), creating, smallAlign, func(f file) error {
		if err := createGroup(f, "/g"); err != nil {
			return err
		}
		return createGroup(f, "/g")
	}), "create group /g: libhdf5: ")
	wants(t, session(filepath.Join(dir, "b.h5"), creating, smallAlign, func(f file) error {
		return onRoot(f, []encode.Attribute{encode.Integer("n", 1), encode.Integer("n", 2)})
	}), "create attribute n: libhdf5: ")
	bytes8 := encode.Object{Path: "/d", Element: encode.Element{DType: tensor.Uint8}, Dims: []int64{8}, Data: make([]byte, 8)}
	wants(t, session(filepath.Join(dir, "c.h5"), creating, smallAlign, func(f file) error {
		if err := create(f, &bytes8); err != nil {
			return err
		}
		return create(f, &bytes8)
	}), "create /d: libhdf5: ")
	wants(t, session(filepath.Join(dir, "d.h5"), creating, smallAlign, func(f file) error { return allocate(f, &bytes8) }), "open /d: libhdf5: ")
}

func wants(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v; want %q", err, text)
	}
}

// Buffers that are shorter than the type and shape say would be read past their end by C.
func TestSizesAreChecked(t *testing.T) {
	err := session(filepath.Join(t.TempDir(), "a.h5"), creating, smallAlign, func(f file) error {
		int32s := encode.Element{DType: tensor.Int32}
		for _, n := range []int{1, 23, 25} {
			if create(f, &encode.Object{Path: "/d", Element: int32s, Dims: []int64{2, 3}, Data: make([]byte, n)}) == nil {
				t.Errorf("%d bytes for a dataset of 24", n)
			}
		}
		for _, dims := range [][]int64{{-1}, {2, 0}, {1 << 62}, {1 << 31, 1 << 31}, make([]int64, 40)} {
			if create(f, &encode.Object{Path: "/e", Element: int32s, Dims: dims}) == nil {
				t.Errorf("shape %v", dims)
			}
		}
		for _, a := range []encode.Attribute{
			{Name: "none", Element: int32s},
			{Name: "short", Element: int32s, Data: make([]byte, 3)},
			{Name: "long", Element: int32s, Count: 2, Data: make([]byte, 9)},
			{Name: "no type", Data: make([]byte, 1)},
		} {
			if onRoot(f, []encode.Attribute{a}) == nil {
				t.Errorf("attribute %v", a)
			}
		}
		return nil
	})
	require.NoError(t, err)
}

func TestHandlesAreCounted(t *testing.T) {
	err := session(filepath.Join(t.TempDir(), "a.h5"), creating, smallAlign, func(f file) error {
		_, err := f.h.CreateGroup("/g")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "1 handles") {
		t.Error(err)
	}
}

func TestUnusable(t *testing.T) {
	mark := errors.New("mark")
	set := func(err error) { executor() <- func() { unusable = err } }
	set(mark)
	_, err := Create(filepath.Join(t.TempDir(), "x.h5"), imageSchema(2, 2), Options{Records: 1})
	set(nil)
	if !errors.Is(err, mark) {
		t.Errorf("libhdf5 was used: %v", err)
	}
}
