package mmapds

import (
	"math/rand/v2"
	"os"
	"sync"
	"testing"
)

// A set of pages is full when all were added, by several goroutines and some twice, and never
// before.
func TestPageSetFull(t *testing.T) {
	page := os.Getpagesize()
	for _, n := range []int{1, page - 1, page, page + 1, 64 * page, 64*page + 1, 1000*page - 5} {
		p := newPageSet(n)
		for range 2 {
			if p.full() {
				t.Fatalf("%d bytes: full from the start", n)
			}
			order := rand.Perm((n + page - 1) / page)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					for _, k := range order[1:] {
						p.add(k*page, min(n, (k+1)*page))
					}
				})
			}
			all.Wait()
			if p.full() {
				t.Fatalf("%d bytes: full without page %d", n, order[0])
			}
			p.add(0, n)
			if !p.full() || !p.has(0, n) {
				t.Fatalf("%d bytes: not full", n)
			}
			p.clear()
		}
	}
}
