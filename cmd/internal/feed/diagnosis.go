package feed

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/bottleneck"
)

// diagnosis returns what limits a client's loop, with the names that Python has for options.
func diagnosis(s loader.Stats, workers int) string {
	d := s.Diagnose()
	if d.Bottleneck == bottleneck.TrainBound { // with tiny batches it is the client that works to take them
		s.Wait, s.Body = s.Wait+s.Body, 0
		if handed := s.Diagnose(); handed.Bottleneck == bottleneck.TinyBatches {
			d = handed
		}
	}
	text := prefetchAdvice.ReplaceAllStringFunc(d.Text, func(advice string) string {
		slots, _ := strconv.Atoi(prefetchAdvice.FindStringSubmatch(advice)[1]) // it is digits
		return fmt.Sprintf("prefetch_factor to %d", prefetchFactor(slots, workers))
	})
	for _, n := range pythonNames {
		text = n.in.ReplaceAllString(text, n.python)
	}
	return text
}

// prefetchFactor returns the parameter with which a client has that many slots, or as many as there can be.
func prefetchFactor(slots, workers int) int {
	return max(1, (min(slots, maxSlots)-2)/max(1, workers))
}

var prefetchAdvice = regexp.MustCompile(`MaxPrefetch to (\d+)`)

// pythonNames are options that advice has in Go's words, and Python's.
var pythonNames = []struct {
	in     *regexp.Regexp
	python string
}{
	{regexp.MustCompile(`Workers 0 finds`), "num_workers=None finds"},
	{regexp.MustCompile(`Workers (\d+) would`), "num_workers=$1 would"},
	{regexp.MustCompile(`BatchSize (\d+) would`), "batch_size=$1 would"},
	{regexp.MustCompile(`and Block with`), "and samplers.Block with"},
	{regexp.MustCompile(`the Sampler\b`), "the sampler"},
	{regexp.MustCompile(`: Transforms takes`), ": a transform takes"},
	{regexp.MustCompile(`: the Source takes`), ": the source takes"},
	{regexp.MustCompile(`with the Source, which`), "with the source, which"},
}
