package archive

import (
	"fmt"
	"iter"

	"github.com/penstock/penstock/prepare/source"
)

// count enters a group into the number of samples of its archive.
func (a *archive) count(g group) {
	c := &a.counts[g.number]
	c.groups++
	for _, m := range g.members {
		if source.IsImageName(m.name) {
			c.images++
		}
	}
}

// Files implements source.Filed.
func (a *archive) Files() (paths []string, samples []int64) {
	for i := range a.files {
		samples = append(samples, a.samplesIn(i))
	}
	return a.files, samples
}

// samplesIn returns how many samples an archive has.
func (a *archive) samplesIn(file int) int64 {
	if a.folders != nil {
		return a.counts[file].images
	}
	return a.counts[file].groups
}

// readBefore is how many samples before the first requested one are read like those after
// it: a sample ends only where the next one begins.
const readBefore = 64

// From implements Spanned. Archives that are before the sample are not opened, and of the one
// that it is in no data before it is read, unless it is compressed.
func (a *archive) From(n int64) iter.Seq2[source.Sample, error] {
	first := 0
	for first < len(a.files)-1 && n >= a.samplesIn(first) {
		n -= a.samplesIn(first)
		first++
	}
	return func(yield func(source.Sample, error) bool) {
		left := n
		want := func(ext string) bool { return left <= readBefore && a.wants(ext) }
		for g, err := range a.groups(a.ctx, first, want) {
			if err != nil {
				yield(source.Sample{}, fmt.Errorf("source %s: %w", a.path, err))
				return
			}
			more := a.yield(g, func(s source.Sample, err error) bool {
				if left > 0 {
					left--
					return true
				}
				return yield(s, err)
			})
			if !more {
				return
			}
		}
	}
}
