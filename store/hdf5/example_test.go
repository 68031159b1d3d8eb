package hdf5_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/tensor"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "train.h5")

	images := store.NewField("images", tensor.Uint8, 1, 2, 2)
	images.Layout = tensor.CHW
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"dark", "bright"}
	schema := store.Schema{Fields: []store.Field{images, labels}}

	w, err := hdf5.Create(path, schema, hdf5.Options{Records: 100})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for label := range byte(2) {
		copy(r.Values[0], []byte{label * 200, label * 210, label * 220, label * 230})
		r.Values[1][0] = label
		if err := w.Append(r); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		log.Fatal(err)
	}

	ds, err := mmapds.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	v, err := ds.Slice("images", 0, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ds.Len(), v.Shape(), v.Bytes())
	// Output: 2 (2, 1, 2, 2) [0 0 0 0 200 210 220 230]
}
