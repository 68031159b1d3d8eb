package penstock_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// Write a dataset of eight labels, then load it in batches of four.
func Example() {
	if err := labels(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [0 10 20 30]
	// [40 50 60 70]
}

func labels(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "penstock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ds")
	schema := store.Schema{Fields: []store.Field{store.NewField("labels", tensor.Int64)}}
	w, err := flat.Create(path, schema, flat.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range uint64(8) {
		binary.LittleEndian.PutUint64(r.Values[0], 10*i)
		if err := w.Append(r); err != nil {
			return err
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		return err
	}
	ds, err := mmapds.Open(path)
	if err != nil {
		return err
	}
	defer ds.Close()
	ld, err := loader.New(ds, loader.Options{BatchSize: 4})
	if err != nil {
		return err
	}
	defer ld.Close()
	for b, err := range ld.Epoch(ctx, 0) {
		if err != nil {
			return err
		}
		fmt.Println(tensor.As[int64](b.Field("labels")))
	}
	return nil
}
