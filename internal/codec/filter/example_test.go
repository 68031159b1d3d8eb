package filter_test

import (
	"fmt"

	"github.com/penstock/penstock/internal/codec/filter"
)

// Two elements of four bytes, as shuffle stores them and as they were.
func ExampleUnshuffle() {
	stored := make([]byte, 8)
	filter.Shuffle(stored, []byte{1, 2, 3, 4, 5, 6, 7, 8}, 4)
	plain := make([]byte, 8)
	filter.Unshuffle(plain, stored, 4)
	fmt.Println(stored, plain)
	// Output: [1 5 2 6 3 7 4 8] [1 2 3 4 5 6 7 8]
}
