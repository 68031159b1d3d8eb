package chunk_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Records of a compressed dataset, in any order: each chunk is inflated once.
func ExampleReader_Gather() {
	file, data := openDataset("gzip")
	defer file.Close()
	r, err := chunk.NewReader(file, data, chunk.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	batch := []int{7, 2, 19}
	dst := make([]byte, len(batch)*r.RecordBytes())
	if err := r.Gather(context.Background(), dst, batch); err != nil {
		log.Fatal(err)
	}
	for i, record := range batch {
		fmt.Println(record, dst[i*r.RecordBytes():][:6])
	}
	// Output:
	// 7 [2 2 3 3 3 3]
	// 2 [15 15 15 15 16 16]
	// 19 [42 42 43 43 43 43]
}

// A dataset with the chunks that h5py chooses by default.
func ExampleAdvise() {
	file, data := openDataset("all")
	defer file.Close()
	advice, err := chunk.Advise(data, 32)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("a record needs %d chunks, %.1f times its bytes\n", advice.PerRecord, advice.Amplification)
	fmt.Println(chunk.ConvertCommand("old.h5", "new.h5", ""))
	// Output:
	// a record needs 5 chunks, 7.0 times its bytes
	// penstock preprocess old.h5 new.h5
}

// openDataset opens the file of the examples, and finds a dataset in it.
func openDataset(path string) (*os.File, *meta.Dataset) {
	file, err := os.Open("testdata/small-new.h5")
	if err != nil {
		log.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		log.Fatal(err)
	}
	meta, err := meta.Open(file, info.Size())
	if err != nil {
		log.Fatal(err)
	}
	data, err := meta.Dataset(path)
	if err != nil {
		log.Fatal(err)
	}
	return file, data
}
