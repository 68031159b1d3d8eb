package preprocess

import (
	"time"

	"github.com/penstock/penstock/store"
)

// PartSummary says which part of a dataset a run has made.
type PartSummary struct {
	Rank      int    `json:"rank"`
	WorldSize int    `json:"world_size"`
	From      int64  `json:"from"` // its samples are [from, to) of the source
	To        int64  `json:"to"`
	Samples   int64  `json:"samples"` // of the source
	Dest      string `json:"dest"`    // where the dataset will be
}

// newPartSummary describes the part that r has made, or found made.
func newPartSummary(r *run, m *store.Manifest, took time.Duration) (*Summary, error) {
	p, dest := r.part, r.config.Dest
	if dest == p.path {
		dest = destOf(p.path)
	}
	c := r.config
	c.Dest, c.Format = p.path, formatFlat
	s, err := newSummary(c, r, m, took)
	if err != nil {
		return nil, err
	}
	if n := len(s.Fields); n > 0 && s.Fields[n-1].Name == traceField {
		s.Fields = s.Fields[:n-1]
	}
	s.Part = &PartSummary{p.Rank, p.Plan.Size, p.From, p.To, p.Plan.Source.Samples, dest}
	return s, nil
}
