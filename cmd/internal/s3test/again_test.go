package s3test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/loader"
)

// again compares later epochs of a mirror with the same epochs of the local dataset, run in
// turns: the median, the lowest and the highest ratio of all pairs.
type again struct {
	median, lowest, highest float64
	pairs                   int
}

// How much of either is measured at least. One epoch may be as short as tens of milliseconds.
const (
	againPairs = 21
	againTime  = 2 * time.Second
)

// compare alternates epochs of loaders of the mirror and of the local dataset; which of a pair comes
// first alternates, too. A pair before them, which does not count, has both in memory. Their bytes
// must agree.
func compare(b *testing.B, mirrored, local *loader.Loader) again {
	var ratios []float64
	loaders := []*loader.Loader{mirrored, local}
	for took := time.Duration(0); len(ratios) <= againPairs || took < againTime; {
		at, epoch := len(ratios)%2, 1+len(ratios)
		_, first, sum := pass(b, loaders[at], epoch)
		_, second, same := pass(b, loaders[1-at], epoch)
		if sum != same {
			b.Fatal("other bytes than from the local dataset")
		}
		times := [2]time.Duration{first, second}
		ratios = append(ratios, times[at].Seconds()/times[1-at].Seconds())
		took += min(first, second)
	}
	ratios = ratios[1:]
	slices.Sort(ratios)
	return again{ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], len(ratios)}
}

func (a again) String() string {
	return fmt.Sprintf("%.3f (%.2f to %.2f in %d pairs)", a.median, a.lowest, a.highest, a.pairs)
}
