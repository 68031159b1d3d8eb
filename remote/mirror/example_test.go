package mirror_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// squares is a bucket with a dataset of the squares of 0 to 9 under the key "squares".
func squares(dir string) remote.Bucket {
	schema := store.Schema{Fields: []store.Field{store.NewField("squares", tensor.Int64)}}
	w, err := flat.Create(filepath.Join(dir, "ds"), schema, flat.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range int64(10) {
		tensor.As[int64](tensor.Of(schema.Fields[0].Spec, 1, r.Values[0]))[0] = i * i
		if err := w.Append(r); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		log.Fatal(err)
	}
	b := new(membucket.Memory)
	files, err := os.ReadDir(filepath.Join(dir, "ds"))
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, "ds", f.Name()))
		if err != nil {
			log.Fatal(err)
		}
		b.Put("squares/"+f.Name(), data)
	}
	return b
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bucket := squares(dir) // or cloud.Open(ctx, "s3://lab/squares?region=eu-west-1")
	ctx := context.Background()
	ds, err := mirror.Open(ctx, bucket, "squares", mirror.Options{CacheDir: filepath.Join(dir, "cache")})
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	ld, err := loader.New(ds, loader.Options{BatchSize: 5})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(ctx, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tensor.As[int64](b.Field("squares")))
	}
	fmt.Println("fetched", ds.Stats().Fetched, "bytes; complete:", ds.Complete())
	// Output:
	// [0 1 4 9 16]
	// [25 36 49 64 81]
	// fetched 80 bytes; complete: true
}
