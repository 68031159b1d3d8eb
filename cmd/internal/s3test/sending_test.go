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
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
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
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	return path
}

// stopAt is a Progress that stops the run after that many prepare.
type stopAt struct {
	n, at int64
	stop  context.CancelCauseFunc
}

func (s *stopAt) Begin(string, int64, string) {}
func (s *stopAt) End()                        {}
func (s *stopAt) Note(string)                 {}
func (s *stopAt) Warn(string)                 {}
func (s *stopAt) Add(n int64) {
	if s.n += n; s.stop != nil && s.n == s.at {
		s.stop(errors.New("stopped"))
	}
}

// inShards is a Config whose shards are small and sent early.
func inShards(source, dest string) prepare.Config {
	c := prepare.DefaultConfig()
	c.Source, c.Dest, c.ShardBytes, c.Checkpoint = source, dest, 16<<10, 1
	c.Split, _ = prepare.ParseSplit("train=0.6,val=0.4")
	return c
}

func mustRun(t *testing.T, c prepare.Config) {
	t.Helper()
	if _, err := prepare.Run(t.Context(), c, &stopAt{}); err != nil {
		t.Fatal(err)
	}
}

// testPreprocess makes a dataset from a store in the store: in one run, in three and a merge, and with the shards of the
// three, which the store copies.
func testPreprocess(t *testing.T, url func(key string) string) {
	source := arrays(t, 60)
	b, u, err := cloud.Open(t.Context(), url("raw/images.npy"))
	require.NoError(t, err)
	defer b.Close()
	upload(t, b, source, u.Key)
	local := inShards(source, filepath.Join(t.TempDir(), "ds"))
	mustRun(t, local)

	c := inShards(url("raw/images.npy"), url("made/one"))
	c.Spool = t.TempDir()
	mustRun(t, c)
	same(t, fetch(t, c.Dest), local.Dest)
	if _, err := prepare.Run(t.Context(), c, &stopAt{}); !errors.Is(err, store.ErrExist) {
		t.Errorf("a dataset that exists: %v", err)
	}

	c.Dest = url("made/ranks")
	for rank := range 3 {
		c.Rank = prepare.Rank{Index: rank, Size: 3}
		mustRun(t, c)
	}
	m := prepare.MergeConfig{Dest: c.Dest, Spool: t.TempDir(), Checkpoint: 1, RemoveParts: true}
	if _, err := prepare.Merge(t.Context(), m, &stopAt{}); err != nil {
		t.Fatal(err)
	}
	same(t, fetch(t, c.Dest), local.Dest)
	if left := foldertest.Files(t, fetch(t, url("made/ranks.parts"))); len(left) > 0 {
		t.Errorf("parts are left: %v", slices.Sorted(maps.Keys(left)))
	}

	c.Dest, c.Split = url("made/kept"), nil
	for rank := range 3 {
		c.Rank = prepare.Rank{Index: rank, Size: 3}
		mustRun(t, c)
	}
	m.Dest, m.KeepShards = c.Dest, true
	kept, err := prepare.Merge(t.Context(), m, &stopAt{})
	require.NoError(t, err)
	local.Split, local.Dest = nil, filepath.Join(t.TempDir(), "ds")
	one, err := prepare.Run(t.Context(), local, &stopAt{})
	require.NoError(t, err)
	d, err := store.OpenFlat(fetch(t, c.Dest))
	require.NoError(t, err)
	if r, err := verify.Dataset(t.Context(), d, verify.Options{}); err != nil || r.Corruptions > 0 || !r.Identity || kept.ID != one.ID {
		t.Errorf("with the shards of the parts: %+v, error %v; id %s, and %s of a single run", r, err, kept.ID, one.ID)
	}
}

// Shards go to the server while the dataset is made; a run that is stopped in between
// continues from them, and those of later splits are copied by the server.
func TestSentWhileItIsMade(t *testing.T) {
	s := Start(t)
	c := inShards(arrays(t, 100), filepath.Join(t.TempDir(), "ds"))
	mustRun(t, c)
	want := c.Dest
	c.Dest, c.Spool = s.URL(s.Address, "sets/ds"), t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := func(err error) {
		for !sent(t, filepath.Join(s.Root, "sets", "ds", "val+*")) { // it is sent while this waits
			time.Sleep(time.Millisecond)
		}
		cancel(err)
	}
	if _, err := prepare.Run(ctx, c, &stopAt{at: 80, stop: stop}); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Fatalf("error %v", err)
	} else {
		noSecret(t, "error", err.Error())
	}
	if sent(t, filepath.Join(s.Root, "sets", "ds", layout.ManifestName)) {
		t.Error("a manifest was published")
	}
	c.Resume = true
	mustRun(t, c)
	same(t, filepath.Join(s.Root, "sets", "ds"), want)
}

// sent reports whether the server has files of that pattern.
func sent(t *testing.T, pattern string) bool {
	t.Helper()
	list, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return len(list) > 0
}
