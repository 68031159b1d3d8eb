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

// A server does all its ways.
func TestWays(t *testing.T) {
	dir, sets := photos(t)
	s, err := newServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name := range s.ways {
		if _, err := s.answer(measure.Request{Do: name, Set: sets[0].name, To: 2}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.answer(measure.Request{Do: "other", Set: sets[0].name, To: 2}); err == nil {
		t.Error("no error for a way that is not there")
	}
}
