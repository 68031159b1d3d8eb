package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/bench/internal/measure"
)

// photos returns the drawings of testdata, and some enlarged.
func photos(t *testing.T) (dir string, sets []set) {
	t.Helper()
	dir = t.TempDir()
	sets, err := prepare(dir, measure.Find("testdata/raw"), 100)
	if err != nil {
		t.Fatal(err)
	}
	return dir, sets
}

// Child processes read the parent's records from disk, in the same order.
func TestPrepare(t *testing.T) {
	dir, sets := photos(t)
	for _, s := range sets {
		files, err := readFolder(filepath.Join(dir, s.name))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 || !slices.EqualFunc(files, s.files, bytes.Equal) {
			t.Errorf("%s: %d files on disk, %d in memory", s.name, len(files), len(s.files))
		}
	}
}

// A server does all its ways, and its records have the size that they should.
func TestWays(t *testing.T) {
	dir, sets := photos(t)
	s, err := newServer(dir, "horizontal")
	if err != nil {
		t.Fatal(err)
	}
	for name := range s.crew[0] {
		if _, err := s.answer(measure.Request{Do: name, Set: sets[0].name, To: 2}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.answer(measure.Request{Do: "2 workers", Set: sets[0].name, To: 4}); err != nil {
		t.Error(err)
	}
	for _, what := range []string{keeping, system} {
		if _, err := s.answer(measure.Request{Do: what + "bilinear float32", Set: sets[0].name, To: 2}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "kept-*")); len(left) > 0 || err != nil {
		t.Errorf("kept records are left: %v, error %v", left, err)
	}
	for way, size := range map[string]int{"bilinear uint8": 3 * side * side, "lanczos float32": 12 * side * side, "all sizes": 4 * 9 * len(filters)} {
		b := &bench{dir: dir}
		got, err := b.records(s.answer, way, sets[1])
		if want := size * len(sets[1].files); err != nil || len(got) != want {
			t.Errorf("%s: %d bytes, want %d; error %v", way, len(got), want, err)
		}
	}
}

func TestCompare(t *testing.T) {
	d, err := compare([]byte{1, 2, 250, 9}, []byte{1, 4, 0, 9})
	if err != nil || d.different != 2 || d.most != 250 || d.sum != 252 {
		t.Errorf("%+v, error %v", d, err)
	}
	if _, err := compare([]byte{1}, nil); err == nil {
		t.Error("no error for records of another length")
	}
}

func TestPassOrder(t *testing.T) {
	for versions, want := range map[string]string{"Pillow 13.0.0 (libjpeg": "auto", "Pillow 9.4.0": "horizontal", "": "auto"} {
		if got := passOrder(versions); got != want {
			t.Errorf("%q: %s, want %s", versions, got, want)
		}
	}
}
