package loadbench

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/internal/units"
)

// Setting is the fastest row in a full shuffle, as code in Go and in Python.
type Setting struct {
	Row    string `json:"row"`
	Go     string `json:"go"`
	Python string `json:"python"`
}

// setting returns the fastest row in a full shuffle with at least eight batches, nil if no such
// row was measured. A row in another order trains another model. Rows on a device do not count,
// since the code is for loaders into host memory.
func (r *Report) setting() *Setting {
	var best *Result
	for i := range r.Tables {
		for j := range r.Tables[i].Rows {
			row := &r.Tables[i].Rows[j]
			if row.Ran() && row.Batches >= 8 && strings.HasPrefix(row.Sampler, "shuffle") && row.Name != deviceRow &&
				row.Name != storedDeviceRow && (best == nil || row.Rate() > best.Rate()) {
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

// goCode returns the row's options in Go.
func (r *Result) goCode() string {
	text := fmt.Sprintf("loader.Options{BatchSize: %d, Sampler: sampler.Shuffle{}, ", r.Batch)
	if r.Workers == 0 {
		return text + "Workers: loader.Synchronous}"
	}
	return text + fmt.Sprintf("Workers: %d, Prefetch: %d}", r.Workers, r.Prefetch)
}

// pythonCode returns the row's options in Python.
func (r *Result) pythonCode(path string) string {
	text := fmt.Sprintf("penstock.DataLoader(%q, %d, shuffle=True", path, r.Batch)
	if r.Workers > 0 {
		text += fmt.Sprintf(", num_workers=%d, prefetch_factor=%d", r.Workers, max(1, r.Prefetch/r.Workers))
	}
	return text + ")"
}
