//go:build cgo && linux && !nolibhdf5

package hdf5

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/smalldisk"
	"github.com/penstock/penstock/tensor"
)

// A file that libhdf5 cannot flush is abandoned; its space is not.
func TestDiskFullInsideLibrary(t *testing.T) {
	dir := smalldisk.New(t, "1m")
	path := filepath.Join(dir, "a.h5")
	before := freeBytes(t, dir)
	for range 3 {
		var release func()
		err := session(path, creating, smallAlign, func(f file) error {
			release = fillDisk(t, dir)
			for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
				o := encode.Object{Path: "/" + name, Element: encode.Element{DType: tensor.Uint8}, Dims: []int64{1 << 30}}
				if err := create(f, &o); err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("no error of a full disk: %v", err)
		}
		require.NoError(t, os.Remove(path))
		release()
		if after := freeBytes(t, dir); after < before-64<<10 {
			t.Errorf("%d bytes free, %d before", after, before)
		}
		wantsGood(t, dir)
	}
}
