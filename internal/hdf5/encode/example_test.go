package encode_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/penstock/penstock/internal/hdf5/encode"
)

// Two chunks of four records each; in a real dataset the sample is some records of many.
func Example() {
	records := bytes.Repeat([]byte("0123456789abcdef"), 8*256)
	r := encode.Recipe{Record: 4096, Elem: 1, Records: 4, Level: 6}
	choice, err := encode.Choose(r, encode.Auto, records)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("shuffle", choice.Shuffle, "because:", choice.Reason)
	e, err := encode.NewEncoder(choice.Recipe)
	if err != nil {
		log.Fatal(err)
	}
	for n := r.Bytes(); len(records) > 0; records = records[n:] {
		chunk, mask, err := e.Encode(records[:n])
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(chunk) < n/20, mask)
	}
	// Output:
	// shuffle false because: no shuffle, as elements have one byte
	// true 0
	// true 0
}
