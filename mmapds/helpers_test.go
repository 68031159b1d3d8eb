package mmapds_test

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

// faults reports whether f touches memory that is not there.
func faults(f func()) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	f()
	return false
}

func verified(t *testing.T, path string) (verify.Result, []*store.CorruptionError) {
	t.Helper()
	d, err := store.Open(path, store.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var corruptions []*store.CorruptionError
	var reported atomic.Int64
	v, err := verify.Dataset(context.Background(), d, verify.Options{
		Workers:  3,
		Progress: func(n int64) { reported.Add(n) },
		Corrupt:  func(d *store.CorruptionError) { corruptions = append(corruptions, d) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if reported.Load() != v.Bytes || v.Corruptions != int64(len(corruptions)) {
		t.Errorf("reported %d bytes and %d corruptions, result %+v", reported.Load(), len(corruptions), v)
	}
	return v, corruptions
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 0x10
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// cut makes a file of a dataset shorter.
func cut(t *testing.T, path string, size int64) {
	t.Helper()
	if err := errors.Join(os.Chmod(path, 0o666), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
}
