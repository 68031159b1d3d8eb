// Package rawtest makes raw samples, for tests of all that prepares datasets, and reads the results.
package rawtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// Picture returns an image that depends on seed, in the format that name ends in.
func Picture(t testing.TB, name string, w, h, seed int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.RGBA{uint8(x*7 + seed*31), uint8(y*5 + seed*17), uint8((x ^ y) * (seed%3 + 1)), 255})
		}
	}
	var b bytes.Buffer
	var err error
	if strings.HasSuffix(name, ".png") {
		err = png.Encode(&b, m)
	} else {
		err = jpeg.Encode(&b, m, nil)
	}
	require.NoError(t, err)
	return b.Bytes()
}

// Put writes a file inside root.
func Put(t testing.TB, root, name string, data []byte) {
	t.Helper()
	path := filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(t, os.WriteFile(path, data, 0o666))
}

// Folder makes a source with n images in two classes, sizes 40x30 and 30x44.
func Folder(t testing.TB, n int) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "photos")
	for i := range n {
		w, h, ext := 40, 30, ".png"
		if i%2 == 1 {
			w, h, ext = 30, 44, ".jpg"
		}
		name := []string{"cat", "dog"}[i*2/n] + "/" + string(rune('a'+i%26)) + strings.Repeat("z", i/26) + ext
		Put(t, root, name, Picture(t, name, w, h, i))
	}
	return root
}

// Rows makes a table of n rows in three classes.
func Rows(t testing.TB, n int) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("number,label\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,%s\n", i*i, []string{"ant", "bee", "cat"}[i%3])
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o666))
	return path
}

// Payload returns the bytes of a field of a flat dataset of one shard.
func Payload(t testing.TB, dest, field string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dest, field+"-00000.npy"))
	require.NoError(t, err)
	return data[layout.HeaderBytes:]
}

// Manifest returns that of a flat dataset.
func Manifest(t testing.TB, dest string) *store.Manifest {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dest, layout.ManifestName))
	require.NoError(t, err)
	m, err := store.DecodeManifest(data)
	require.NoError(t, err)
	return m
}

// Deep returns a 16-bit PNG of w x h pixels whose values are 257*(x+10*y)+add, or a NumPy array of those values.
func Deep(t *testing.T, ext string, w, h, add int) []byte {
	t.Helper()
	var values []byte
	m := image.NewGray16(image.Rect(0, 0, w, h))
	for i := range w * h {
		v := uint16(257*(i%w+10*(i/w)) + add)
		m.SetGray16(i%w, i/w, color.Gray16{Y: v})
		values = binary.LittleEndian.AppendUint16(values, v)
	}
	if ext == ".npy" {
		header := fmt.Sprintf("{'descr': '<u2', 'fortran_order': False, 'shape': (%d, %d), }\n", h, w)
		return slices.Concat([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil, uint16(len(header))),
			[]byte(header), values)
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

// Silent is a Progress that calls f, if it is set, with the number done so far.
type Silent struct {
	Done int64
	F    func(done int64)
}

func (*Silent) Begin(string, int64, string) {}
func (*Silent) End()                        {}
func (*Silent) Note(string)                 {}
func (*Silent) Warn(string)                 {}
func (s *Silent) Add(n int64) {
	s.Done += n
	if s.F != nil {
		s.F(s.Done)
	}
}

// CheckNothing makes sure that nothing is at dest or next to it.
func CheckNothing(t testing.TB, dest string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(dest))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left over: %s", e.Name())
	}
}
