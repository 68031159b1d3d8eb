package edit_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// A dataset that is open keeps its generation. Open it again between two epochs to train on the newest one.
func ExampleDataset_Delete() {
	folder, err := os.MkdirTemp("", "edit")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "ds")
	numbers(path, 8)
	for epoch := range 2 {
		if err := train(path, epoch); err != nil {
			log.Fatal(err)
		}
		chosen, err := edit.At(path).Choose(0, []int64{0, 1})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := edit.At(path).Delete(chosen, edit.Options{By: "example"}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// epoch 0: 8 records
	// epoch 1: 6 records
}

// train runs one epoch.
func train(path string, epoch int) error {
	ds, err := mmapds.Open(path)
	if err != nil {
		return err
	}
	defer ds.Close()
	ld, err := loader.New(ds, loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}, Seed: 1})
	if err != nil {
		return err
	}
	defer ld.Close()
	records := 0
	for b, err := range ld.Epoch(context.Background(), epoch) {
		if err != nil {
			return err
		}
		records += len(b.Indices())
	}
	fmt.Printf("epoch %d: %d records\n", epoch, records)
	return nil
}

// numbers writes a dataset of n numbers.
func numbers(path string, n int) {
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Int64)}}
	w, err := flat.Create(path, schema, flat.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range n {
		binary.LittleEndian.PutUint64(r.Values[0], uint64(i))
		if err := w.Append(r); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		log.Fatal(err)
	}
}
