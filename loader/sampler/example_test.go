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

// A year of hourly fields is stored in chunks of one hour. A record is a window of 24 hours, and one begins at every hour.
// Shuffle decodes 24 chunks for each of them.
func ExampleNewChunkShuffle() {
	chunks := sampler.Chunks{
		Axes:   []sampler.ChunkAxis{{Name: "time", Cuts: []int{0}}},
		Fields: []sampler.ChunkField{{Name: "t2m", Bytes: 721 * 1440 * 4, Counts: []int{8760}, Needs: make([][]sampler.ChunkRange, 1)}},
	}
	for hour := range 8760 - 23 { // combine.Windows says all this: see loader.NewChunkShuffle
		chunks.Axes[0].Cuts = append(chunks.Axes[0].Cuts, hour+1)
		chunks.Fields[0].Needs[0] = append(chunks.Fields[0].Needs[0], sampler.ChunkRange{First: hour, Last: hour + 23})
	}
	order, err := sampler.NewChunkShuffle(chunks, sampler.ChunkOptions{Memory: 4 << 30, Batch: 32})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(order.Plan())
	fmt.Printf("randomness of a batch %.2f, of 16 successive ones together %.2f\n", sampler.Randomness(order, 8737, 32, 1, 1),
		sampler.Randomness(order, 8737, 32, 16, 1))
	// Output:
	// 36 lanes, 3.3 GiB of decoded chunks: each chunk is decoded 1.14 times an epoch, and 21.1 times by Shuffle
	// randomness of a batch 1.00, of 16 successive ones together 0.20
}

// Block trades how random the batches are for copies.
func ExampleRandomness() {
	const n, batch = 1_000_000, 256
	for _, run := range []int{1, 4, 16, 256} {
		fmt.Printf("runs of %3d: %.2f\n", run, sampler.Randomness(sampler.Block{Size: run}, n, batch, 1, 1))
	}
	// Output:
	// runs of   1: 1.00
	// runs of   4: 0.35
	// runs of  16: 0.09
	// runs of 256: 0.00
}
