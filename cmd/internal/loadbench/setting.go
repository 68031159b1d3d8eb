package loadbench

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/internal/units"
)

// Setting is the fastest row of a dataset in a full shuffle, as code.
type Setting struct {
	Row    string `json:"row"`
	Go     string `json:"go"`
	Python string `json:"python"`
}

// setting returns the fastest row of at least eight batches in a full shuffle, nil if there is none: a row in another
// order trains another model. Batches on a device do not count, as loaders of host memory are compared.
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

func (r *Result) goCode() string {
	text := fmt.Sprintf("loader.Options{BatchSize: %d, Sampler: sampler.Shuffle{}, ", r.Batch)
	if r.Workers == 0 {
		return text + "Workers: loader.Synchronous}"
	}
	return text + fmt.Sprintf("Workers: %d, Prefetch: %d}", r.Workers, r.Prefetch)
}

func (r *Result) pythonCode(path string) string {
	text := fmt.Sprintf("penstock.DataLoader(%q, %d, shuffle=True", path, r.Batch)
	if r.Workers > 0 {
		text += fmt.Sprintf(", num_workers=%d, prefetch_factor=%d", r.Workers, max(1, r.Prefetch/r.Workers))
	}
	return text + ")"
}
