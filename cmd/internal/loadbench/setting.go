package loadbench

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/internal/units"
)

// Setting is the fastest row of a dataset, as code.
type Setting struct {
	Row    string `json:"row"`
	Go     string `json:"go"`
	Python string `json:"python"`
}

// setting returns the fastest row of at least eight batches, nil if there is none. Batches on a device do not count,
// as loaders of host memory are compared, and where records are in the order of their labels those of neighbors.
func (r *Report) setting() *Setting {
	var best *Result
	for i := range r.Tables {
		for j := range r.Tables[i].Rows {
			row := &r.Tables[i].Rows[j]
			if r.Order != "" && !strings.HasPrefix(row.Sampler, "shuffle") {
				continue
			}
			if row.Ran() && row.Batches >= 8 && row.Name != deviceRow && row.Name != storedDeviceRow &&
				(best == nil || row.Rate() > best.Rate()) {
				best = row
			}
		}
	}
	if best == nil {
		return nil
	}
	name := fmt.Sprintf("%s, %s records/s", best.Name, units.Count(int64(best.Rate())))
	return &Setting{name, best.goCode(), best.pythonCode(r.Dataset.Name)}
}

func (r *Result) block() (size int, ok bool) {
	n, err := fmt.Sscanf(r.Sampler, "block(%d)", &size)
	return size, n == 1 && err == nil
}

func (r *Result) goCode() string {
	var b strings.Builder
	if r.Sampler == chunkShuffle {
		fmt.Fprintf(&b, "order, err := loader.NewChunkShuffle(src, sampler.ChunkOptions{Batch: %d}); ", r.Batch)
	}
	fmt.Fprintf(&b, "loader.Options{BatchSize: %d, Sampler: ", r.Batch)
	switch size, block := r.block(); {
	case block:
		fmt.Fprintf(&b, "sampler.Block{Size: %d}", size)
	case r.Sampler == "sequential":
		b.WriteString("sampler.Sequential{}")
	case r.Sampler == chunkShuffle:
		b.WriteString("order")
	default:
		b.WriteString("sampler.Shuffle{}")
	}
	if r.Workers == 0 {
		return b.String() + ", Workers: loader.Synchronous}"
	}
	return fmt.Sprintf("%s, Workers: %d, Prefetch: %d}", &b, r.Workers, r.Prefetch)
}

func (r *Result) pythonCode(path string) string {
	order := "shuffle=True"
	switch size, block := r.block(); {
	case block:
		order = fmt.Sprintf("sampler=penstock.samplers.Block(%d)", size)
	case r.Sampler == "sequential":
		order = "shuffle=False"
	case r.Sampler == chunkShuffle:
		order = "sampler=penstock.samplers.ChunkShuffle()"
	}
	text := fmt.Sprintf("penstock.DataLoader(%q, %d, %s", path, r.Batch, order)
	if r.Workers > 0 {
		text += fmt.Sprintf(", num_workers=%d, prefetch_factor=%d", r.Workers, max(1, r.Prefetch/r.Workers))
	}
	return text + ")"
}
