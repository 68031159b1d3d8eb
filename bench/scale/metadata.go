package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// metadata measures manifests of many shards, and what it takes to open files by the thousand.
func metadata(s scenario) error {
	dir, err := os.MkdirTemp("", "penstock-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	one := filepath.Join(dir, "one")
	if err := write(one, 2, 2, images(), store.NewField("labels", tensor.Int64)); err != nil {
		return err
	}
	if err := manifests(s, one); err != nil {
		return err
	}
	return opened(dir)
}

// side of the images: large enough that a shard may hold one, as blocks of checksums do not
// go over shards.
const side = 256

func images() store.Field { return store.NewField("images", tensor.Uint8, 1, side, side) }

// write makes a dataset of count records in shards of the given size.
func write(path string, count, shard int, fields ...store.Field) error {
	schema := store.Schema{Fields: fields}
	w, err := flat.Create(path, schema, flat.Options{ShardBytes: int64(shard) * side * side})
	if err != nil {
		return err
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for range count {
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}

// manifests encodes and decodes manifests with the entries of a real shard, repeated.
func manifests(s scenario, one string) error {
	m, err := decode(one)
	if err != nil {
		return err
	}
	rows := [][]string{{"shards in a manifest", "size", "encode", "decode and check", "memory of it", "read at 1 GB/s"}}
	for n := 1000; n <= s.shards; n *= 10 {
		row, err := manifest(*m, n)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	table("Manifests of a dataset with two fields (measured)", rows)
	return nil
}

func decode(path string) (*store.Manifest, error) {
	text, err := os.ReadFile(filepath.Join(path, layout.ManifestName))
	if err != nil {
		return nil, err
	}
	return store.DecodeManifest(text)
}

// manifest measures one of n shards.
func manifest(m store.Manifest, n int) ([]string, error) {
	first := m.Shards[0]
	m.Shards, m.Records = make([]store.Shard, n), int64(n)*first.Count
	for i := range m.Shards {
		s := store.Shard{First: int64(i) * first.Count, Count: first.Count, Files: append([]store.File(nil), first.Files...)}
		for k := range s.Files {
			f := &s.Files[k]
			f.Name = fmt.Sprintf("%s-%05d%s", f.Field, i, first.Files[k].Name[len(f.Field)+len("-00000"):])
		}
		m.Shards[i] = s
	}
	began := time.Now()
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	encoded := time.Since(began)
	m.Shards = nil
	before := held()
	began = time.Now()
	got, err := store.DecodeManifest(text)
	if err != nil {
		return nil, err
	}
	decoded := time.Since(began)
	used := held() - before
	runtime.KeepAlive(got)
	runtime.KeepAlive(text)
	return []string{
		fmt.Sprint(n), size(float64(len(text))), encoded.Round(time.Millisecond).String(),
		decoded.Round(time.Millisecond).String(),
		size(used), fmt.Sprintf("%.2g s", float64(len(text))/1e9),
	}, nil
}

func held() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools are emptied by the second
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// opened measures how long it takes to open real files, two per shard.
func opened(dir string) error {
	rows := [][]string{{"shards on disk", "files", "open", "a shard", "mappings of the process"}}
	for _, n := range []int{10, 100, 1000, 5000} {
		path := filepath.Join(dir, fmt.Sprint(n))
		if err := write(path, n, 1, images()); err != nil {
			return err
		}
		began := time.Now()
		ds, err := mmapds.Open(path)
		if err != nil {
			return err
		}
		took := time.Since(began)
		rows = append(rows, []string{
			fmt.Sprint(n), fmt.Sprint(2 * n), took.Round(10 * time.Microsecond).String(),
			(took / time.Duration(n)).Round(100 * time.Nanosecond).String(), mappings(),
		})
		if err := ds.Close(); err != nil {
			return err
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	table(fmt.Sprintf("Opening real files, each checked and mapped (measured; a process may have %s mappings here)",
		limit()), rows)
	return nil
}

// mappings counts those of this process, where the system reports.
func mappings() string {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return "unknown"
	}
	n := 0
	for _, c := range text {
		if c == '\n' {
			n++
		}
	}
	return fmt.Sprint(n)
}

// limit returns the most mappings that a process may have.
func limit() string {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return "an unknown number of"
	}
	return string(text[:len(text)-1])
}
