package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/preprocess"
	"github.com/penstock/penstock/store"
)

// arrays writes an .npy file of n records of 4 KiB.
func arrays(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "\x93NUMPY\x01\x00\x76\x00%-117s\n", fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 4096), }", n))
	data := make([]byte, n*4096)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // it never fails
	b.Write(data)
	path := filepath.Join(t.TempDir(), "images.npy")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// stopAt is a Progress that stops the run after so many samples.
type stopAt struct {
	n, at int64
	stop  context.CancelCauseFunc
}

func (s *stopAt) Begin(string, int64, string) {}
func (s *stopAt) End()                        {}
func (s *stopAt) Note(string)                 {}
func (s *stopAt) Add(n int64) {
	if s.n += n; s.stop != nil && s.n == s.at {
		s.stop(errors.New("stopped"))
	}
}

// Shards go to the server while the dataset is made; a run that is stopped in between goes on
// with what is there, and those of later splits are copied by the server.
func TestSentWhileItIsMade(t *testing.T) {
	s := Start(t)
	c := preprocess.DefaultConfig()
	c.Source, c.Dest = arrays(t, 100), filepath.Join(t.TempDir(), "ds")
	c.ShardBytes, c.Checkpoint = 16<<10, 1
	c.Split, _ = preprocess.ParseSplit("train=0.6,val=0.4")
	if _, err := preprocess.Run(t.Context(), c, &stopAt{}); err != nil {
		t.Fatal(err)
	}
	want := c.Dest
	c.Dest, c.Spool = s.URL(s.Address, "sets/ds"), t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := preprocess.Run(ctx, c, &stopAt{at: 80, stop: cancel}); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Fatalf("error %v", err)
	} else {
		noSecret(t, "error", err.Error())
	}
	there := tree(t, filepath.Join(s.Root, "sets", "ds"))
	if _, ok := there[store.ManifestName]; ok || !slices.ContainsFunc(slices.Collect(maps.Keys(there)), func(name string) bool { return strings.HasPrefix(name, "val+") }) {
		t.Errorf("there are %v", slices.Sorted(maps.Keys(there)))
	}
	c.Resume = true
	if _, err := preprocess.Run(t.Context(), c, &stopAt{}); err != nil {
		t.Fatal(err)
	}
	same(t, filepath.Join(s.Root, "sets", "ds"), want)
}
