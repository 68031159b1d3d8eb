//go:build cgo && !nolibhdf5

package hdf5

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// incomparable is h5diff's message for a dataset that is empty in both files.
const incomparable = `--------------------------------
Some objects are not comparable
--------------------------------
Use -c for a list of objects.
`

// libhdf5 and the encoder write the same dataset, in the same objects with
// the same attributes.
func TestContainersAgree(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			one, m1 := s.build(t, gonum{})
			other, m2 := s.build(t, encoded{})
			if !reflect.DeepEqual(m1, m2) || m1.ID == "" {
				t.Errorf("manifests differ: dataset %s and %s", m1.ID, m2.ID)
			}
			sameObjects(t, one, other)
			if _, err := exec.LookPath("h5diff"); err != nil {
				t.Logf("%v: apt-get install hdf5-tools", err)
				return
			}
			out, err := exec.Command("h5diff", one, other).CombinedOutput()
			out = bytes.ReplaceAll(out, []byte(incomparable), nil)
			if err != nil || len(out) > 0 {
				t.Errorf("h5diff: %v: %.2000s", err, out)
			}
		})
	}
}

// sameObjects compares types, shapes, attributes, storage and alignment of all datasets.
func sameObjects(t *testing.T, one, other string) {
	t.Helper()
	a, b := parse(t, one), parse(t, other)
	seen := 0
	for x := range a.All() {
		y, err := b.Dataset(x.Path)
		if err != nil {
			t.Error(err)
			continue
		}
		seen++
		if !reflect.DeepEqual(x.Type, y.Type) || !reflect.DeepEqual(x.Dims, y.Dims) || !reflect.DeepEqual(x.Attrs, y.Attrs) {
			t.Errorf("%s: %v %v and %v %v", x.Path, x.Type, x.Dims, y.Type, y.Dims)
		}
		if x.Layout.Kind != y.Layout.Kind || !reflect.DeepEqual(x.Layout.ChunkDims, y.Layout.ChunkDims) || !reflect.DeepEqual(x.Filters, y.Filters) {
			t.Errorf("%s: %v %v and %v %v", x.Path, x.Layout, x.Filters, y.Layout, y.Filters)
		}
		align := int64(pageAlign)
		if strings.HasPrefix(x.Path, metadataGroup) {
			align = smallAlign
		}
		if x.Layout.Kind == meta.Contiguous && x.Records() > 0 && (x.Layout.Offset%align != 0 || y.Layout.Offset%align != 0) {
			t.Errorf("%s: at %#x and %#x", x.Path, x.Layout.Offset, y.Layout.Offset)
		}
	}
	for range b.All() {
		seen--
	}
	if seen != 0 || !reflect.DeepEqual(a.Root.Attrs, b.Root.Attrs) {
		t.Errorf("%d datasets are in the first file only; attributes %v and %v", seen, a.Root.Attrs, b.Root.Attrs)
	}
}

func parse(t *testing.T, path string) *meta.File {
	t.Helper()
	data := read(t, path)
	f, err := meta.Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return f
}

// A program that has both containers continues a build that either began, and makes the same file as an uninterrupted
// one. A program without libhdf5 says who began the file, and what to do.
func TestResumeByAnother(t *testing.T) {
	s := imageSchema(4, 4)
	for _, by := range [][]container{{gonum{}, encoded{}}, {encoded{}, gonum{}}} {
		t.Run(by[0].name(), func(t *testing.T) {
			dest := filepath.Join(t.TempDir(), "x.h5")
			opts := Options{Records: 9, Journal: &store.Journal{Resume: true}, by: by[:1]}
			w, err := Create(dest, s, opts)
			require.NoError(t, err)
			appendAll(t, w, s, 3)
			require.NoError(t, w.Checkpoint(nil))
			require.NoError(t, w.Close())
			opts.by = by[1:]
			_, err = Create(dest, s, opts)
			for _, part := range []string{"cannot resume: " + by[0].name() + " began the file", by[1].name() + " only", "start over without resuming"} {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v does not say %q", err, part)
				}
			}
			opts.by = []container{by[1], by[0]}
			if w, err = Create(dest, s, opts); err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if kept := w.Kept(); kept.Records != 3 {
				t.Fatalf("%d records were kept", kept.Records)
			}
			filled(s).add(t, w, 3, 9)
			if _, err := w.Commit(store.Info{}); err != nil {
				t.Fatal(err)
			}
			whole := filepath.Join(t.TempDir(), "whole.h5")
			filled(s).write(t, whole, 0, 9, Options{Records: 9, by: by[:1]}, store.Info{})
			if !bytes.Equal(read(t, dest), read(t, whole)) {
				t.Error("the file is not that of an uninterrupted build")
			}
		})
	}
}
