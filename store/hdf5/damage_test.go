//go:build cgo

package hdf5

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// content is all that a reader sees of a dataset.
type content struct {
	schema  store.Schema
	bytes   [][]byte
	offsets [][]int64
}

func contentOf(path string) (c content, err error) {
	ds, err := mmapds.Open(path)
	if err != nil {
		return c, err
	}
	defer ds.Close()
	c.schema = ds.Schema()
	n := ds.Len()
	for _, f := range ds.Specs() {
		var v tensor.View
		offsets := make([]int64, n+1)
		if f.Ragged {
			v, err = ds.RunRagged(f.Name, 0, n, offsets)
		} else {
			v, err = ds.Run(f.Name, 0, n)
		}
		if err != nil {
			return c, err
		}
		c.bytes, c.offsets = append(c.bytes, bytes.Clone(v.Bytes())), append(c.offsets, offsets)
	}
	return c, nil
}

// judge says what became of a damaged file: found by opening it, found by Verify, or
// harmless, as all of it is what it was.
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
	switch {
	case v.Damages > 0 || len(v.Unchecked) > 0:
		return "verify"
	case err != nil || !reflect.DeepEqual(got, want):
		return fmt.Sprintf("MISSED: neither opening nor Verify found it (%v)", err)
	}
	return "harmless"
}

// Every damage of a file of images, of one of ragged fields in splits, and of compressed ones
// (of their chunks, the index of these, all), is found or does no harm. A file that lost its
// manifest is one of other origin, which Verify says.
func TestEveryDamage(t *testing.T) {
	dir := memoryDir(t)
	ragged := filepath.Join(dir, "ragged", "x.h5")
	makeSplits(t, ragged, 0, 150, Options{Splits: trainVal})
	files := map[string]string{
		"images": build(t, imageSchema(12, 12), 40, 40, store.Info{NormalizeByStatistics: true}), "ragged": ragged,
	}
	for _, name := range []string{"plain", "shuffle"} {
		c := compressions[name]
		files[packedKind+name] = filepath.Join(dir, name, "x.h5")
		buildPacked(t, files[packedKind+name], 0, 40, Options{Splits: trainVal, Compress: &c})
	}
	for name, path := range files {
		want, err := contentOf(path)
		if err != nil {
			t.Fatal(err)
		}
		good := read(t, path)
		counts := make(map[string]int)
		try := func(what string, data []byte) {
			bad := filepath.Join(dir, "bad.h5")
			os.Remove(bad)
			if err := os.WriteFile(bad, data, 0o666); err != nil {
				t.Fatal(err)
			}
			result := judge(t, bad, want)
			counts[result]++
			if len(result) > 8 {
				t.Errorf("%s: %s: %s", name, what, result)
			}
		}
		for at := 0; at < len(good); at += max(29, len(good)/2000) {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			try(fmt.Sprintf("bit %d of byte %#x", at%8, at), bad)
			if at%15 == 0 {
				try(fmt.Sprintf("cut to %d bytes", at), good[:at])
			}
		}
		t.Logf("%s: %d bytes: %v", name, len(good), counts)
		if counts["open"] == 0 || counts["verify"] == 0 {
			t.Errorf("not all kinds of damage were tried: %v", counts)
		}
	}
}
