package loader

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Where asks the source that a record is of.
func (j *Joined) Where(field string, record int) string {
	i, number := j.Part(record)
	if p, ok := j.parts[i].(placer); ok {
		return p.Where(field, number)
	}
	return ""
}

// Reads says how the sources read a field: what is in memory is the part of all records.
func (j *Joined) Reads(field string) (how, why string, resident float64) {
	var hows, whys []string
	resident = 0
	for i, p := range j.parts {
		r, ok := p.(reporter)
		if !ok {
			return "", "", -1
		}
		h, w, in := r.Reads(field)
		if !slices.Contains(hows, h) {
			hows = append(hows, h)
		}
		whys = append(whys, fmt.Sprintf("source %d: %s", i, w))
		if in < 0 || resident < 0 {
			resident = -1
		} else if j.Len() > 0 {
			resident += in * float64(p.Len()) / float64(j.Len())
		}
	}
	return strings.Join(hows, " and "), strings.Join(whys, "; "), resident
}

// Horizon is that of the source which wants to know most of what is coming.
func (j *Joined) Horizon() (bytes int64) {
	for _, p := range j.parts {
		bytes = max(bytes, horizonOf(p))
	}
	return bytes
}

// Fetch tells each source which of its records will be needed.
func (j *Joined) Fetch(ctx context.Context, field string, indices []int) error {
	return j.bySource(indices, func(_ *groups, i int, local, _ []int) error {
		if f, ok := j.parts[i].(forecast); ok {
			return f.Fetch(ctx, field, local)
		}
		return nil
	})
}

// Link adds up what the sources got over a network; the rate is that of the fastest.
func (j *Joined) Link() (fetched int64, waited time.Duration, rate float64) {
	for _, p := range j.parts {
		n, w, r := linkOf(p)
		fetched, waited, rate = fetched+n, waited+w, max(rate, r)
	}
	return fetched, waited, rate
}
