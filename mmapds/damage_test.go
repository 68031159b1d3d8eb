package mmapds_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// content is all that a reader sees of a dataset.
type content struct {
	schema  store.Schema
	records int
	bytes   []byte // of all fields
	offsets [][]int64
}

func contentOf(path string) (c content, err error) {
	ds, err := mmapds.Open(path)
	if err != nil {
		return c, err
	}
	defer ds.Close()
	n := ds.Len()
	c.schema, c.records = ds.Schema(), n
	err = ds.Guard(func() error {
		for _, f := range ds.Specs() {
			v, offsets, err := all(ds, f)
			if err != nil {
				return err
			}
			c.bytes, c.offsets = append(c.bytes, v.Bytes()...), append(c.offsets, offsets)
		}
		return nil
	})
	return c, err
}

// all returns all records of a field.
func all(ds *mmapds.Dataset, f tensor.Spec) (v tensor.View, offsets []int64, err error) {
	if !f.Ragged {
		v, err = ds.Run(f.Name, 0, ds.Len())
		return v, nil, err
	}
	offsets = make([]int64, ds.Len()+1)
	v, err = ds.RunRagged(f.Name, 0, ds.Len(), offsets)
	return v, offsets, err
}

// judge says what became of a damaged dataset: found by opening it, found by Verify, or
// harmless, as all of it is what it was. Anything else is an error of the test.
func judge(t *testing.T, path string, want content) string {
	t.Helper()
	d, err := mmapds.Locate(path)
	if err != nil {
		return "open"
	}
	v, err := mmapds.Verify(t.Context(), d, mmapds.VerifyOptions{})
	if err != nil {
		t.Fatalf("Verify could not go on: %v", err)
	}
	got, err := contentOf(path) // must not fault, whatever Verify says
	if v.Damages > 0 {
		return "verify"
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("MISSED: neither opening nor Verify found it (%v)", err)
	}
	return "harmless"
}

func TestEveryDamageOfAFlatDataset(t *testing.T) {
	path := buildRagged(t, 700)
	want, err := contentOf(path)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, e := range entries {
		file := filepath.Join(path, e.Name())
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		step := max(11, len(good)/50)
		try := func(what string, bad []byte) {
			replaceFile(t, file, bad)
			result := judge(t, path, want)
			counts[result]++
			if len(result) > 8 {
				t.Errorf("%s: %s: %s", e.Name(), what, result)
			}
		}
		for at := 0; at < len(good); at += step {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			try(fmt.Sprintf("bit %d of byte %d", at%8, at), bad)
			if at%3 == 0 {
				try(fmt.Sprintf("cut to %d bytes", at), good[:at])
			}
		}
		try("a byte more", append(bytes.Clone(good), 0))
		replaceFile(t, file, good)
	}
	t.Logf("%v", counts)
	if counts["open"] == 0 || counts["verify"] == 0 {
		t.Errorf("not all kinds of damage were tried: %v", counts)
	}
}

// replaceFile gives a file other bytes. It is a new file, as old ones may be mapped.
func replaceFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}
