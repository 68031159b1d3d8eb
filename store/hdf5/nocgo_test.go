//go:build !cgo

package hdf5_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/tensor"
)

func TestWithoutCgo(t *testing.T) {
	dir := t.TempDir()
	s := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8)}}
	w, err := hdf5.Create(filepath.Join(dir, "x.h5"), s, hdf5.Options{Records: 1})
	if w != nil || !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "libhdf5-dev") {
		t.Errorf("%v, %v", w, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if !strings.Contains(hdf5.Version(), "without cgo") {
		t.Error(hdf5.Version())
	}
}
