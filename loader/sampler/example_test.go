package sampler_test

import (
	"fmt"

	"github.com/penstock/penstock/loader/sampler"
)

func ExampleShuffle() {
	order := make([]int, 5)
	sampler.Shuffle{}.Epoch(1_000_000_000_000, 42, 0).Fill(999_999_999_995, order)
	fmt.Println(order)
	// Output: [277194972610 968264283026 255353284350 179949853105 467145617900]
}

// Block trades how random the batches are for copies.
func ExampleRandomness() {
	const n, batch = 1_000_000, 256
	for _, run := range []int{1, 4, 16, 256} {
		fmt.Printf("runs of %3d: %.2f\n", run, sampler.Randomness(sampler.Block{Size: run}, n, batch, 1))
	}
	// Output:
	// runs of   1: 1.00
	// runs of   4: 0.35
	// runs of  16: 0.09
	// runs of 256: 0.00
}
