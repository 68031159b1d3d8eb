package loader

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Reads says how the Source reads what a field is made of.
func (p *Packed) Reads(field string) (how, why string, resident float64) {
	r, ok := p.src.(reporter)
	if !ok || !p.packs(field) {
		return "made", "of the lengths of records", -1
	}
	how, why, resident = r.Reads(field)
	return "packed, " + how, why, resident
}

// Where names the records that a row is made of.
func (p *Packed) Where(_ string, row int) string {
	var list []string
	for _, piece := range p.Pieces(row) {
		list = append(list, fmt.Sprint(piece.Record))
	}
	return "of records " + strings.Join(list, ", ")
}

// Horizon is that of the Source.
func (p *Packed) Horizon() int64 { return horizonOf(p.src) }

// Fetch tells the Source which records rows will be made of.
func (p *Packed) Fetch(ctx context.Context, field string, rows []int) error {
	f, ok := p.src.(forecast)
	if !ok || !p.packs(field) {
		return nil
	}
	var records []int
	for _, row := range rows {
		for _, piece := range p.Pieces(row) {
			records = append(records, int(piece.Record))
		}
	}
	return f.Fetch(ctx, field, records)
}

// Link says how the Source's records come over a network.
func (p *Packed) Link() (fetched int64, waited time.Duration, rate float64) {
	return linkOf(p.src)
}
