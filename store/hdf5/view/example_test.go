package view_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/hdf5/view"
	"github.com/penstock/penstock/tensor"
)

// A view of a small dataset, next to its .npy files.
func ExampleEncode() {
	dir, err := os.MkdirTemp("", "view")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Float32, 28, 28)}}
	w, err := flat.Create(filepath.Join(dir, "ds"), schema, flat.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	if err := w.Append(store.NewRecord(schema)); err != nil {
		log.Fatal(err)
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		log.Fatal(err)
	}

	d, err := store.OpenFlat(filepath.Join(dir, "ds"))
	if err != nil {
		log.Fatal(err)
	}
	file, err := view.Encode(d, d.Path)
	if err != nil {
		log.Fatal(err)
	}
	err = os.WriteFile(filepath.Join(d.Path, view.Name), file, 0o666)
	fmt.Println(len(file) < 1000, err)
	// Output: true <nil>
}
