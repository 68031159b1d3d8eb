package mmapds_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := writeSquares(filepath.Join(dir, "squares"))

	ds, err := mmapds.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	x, err := ds.Slice("squares", 3, 7) // records 3, 4, 5, 6: memory of the file, not a copy
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ds.Len(), x.Shape(), tensor.As[int32](x))
	// Output: 10 (4, 2) [3 9 4 16 5 25 6 36]
}

// A ragged field: token ids, packed as attention kernels want them.
func ExampleDataset_SliceRagged() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "tokens")
	schema := store.Schema{Fields: []store.Field{store.NewRagged("tokens", tensor.Uint8)}}
	w, err := flat.Create(path, schema, flat.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for _, text := range []string{"a record", "", "and one more"} {
		r.Values[0] = append(r.Values[0][:0], text...)
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
	offsets := make([]int64, 4)
	v, err := ds.SliceRagged("tokens", 0, 3, offsets)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q %v\n", v.Bytes(), offsets)
	// Output: "a recordand one more" [0 8 8 20]
}

// writeSquares makes a dataset of pairs (i, i*i).
func writeSquares(path string) string {
	schema := store.Schema{Fields: []store.Field{store.NewField("squares", tensor.Int32, 2)}}
	w, err := flat.Create(path, schema, flat.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range int32(10) {
		v := tensor.As[int32](tensor.Of(schema.Fields[0].Spec, 1, r.Values[0]))
		v[0], v[1] = i, i*i
		if err := w.Append(r); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		log.Fatal(err)
	}
	return path
}

// openSquares opens a dataset of writeSquares, which is gone when all is done.
func openSquares() (ds *mmapds.Dataset, done func()) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	if ds, err = mmapds.Open(writeSquares(filepath.Join(dir, "squares"))); err != nil {
		log.Fatal(err)
	}
	return ds, func() {
		ds.Close()
		os.RemoveAll(dir)
	}
}
