package archive

import (
	"fmt"
	"iter"

	"github.com/penstock/penstock/prepare/source"
)

// count adds a group to the number of samples of its archive.
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

// samplesIn returns the number of samples in an archive.
func (a *archive) samplesIn(file int) int64 {
	if a.folders != nil {
		return a.counts[file].images
	}
	return a.counts[file].groups
}

// readBefore is the number of samples before the first requested sample whose data is read, too. Whether the data
// of a member is read is decided before the samples of the previous group are counted, because a group ends only
// where the next group begins. So reading has to start early; 64 is plenty.
const readBefore = 64

// From implements source.Seekable. It does not open the archives before the archive of sample n. In that archive it
// reads only names up to shortly before the sample, except in a compressed archive, whose data has to be
// decompressed.
func (a *archive) From(n int64) iter.Seq2[source.Sample, error] {
	first := 0
	// The last archive is never skipped, so that the search also ends for an n beyond all samples.
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
