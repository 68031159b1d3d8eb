package combine

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// DescribeReads describes how the Source reads the field from which a field is built.
func (p *Packed) DescribeReads(field string) (how, why string, resident float64) {
	if p.can.Described == nil || !packs(field) {
		return "made", "of the lengths of records", -1
	}
	how, why, resident = p.can.Described.DescribeReads(field)
	return "packed, " + how, why, resident
}

// Location names the records of a row.
func (p *Packed) Location(_ string, row int) string {
	var list []string
	for _, piece := range p.Pieces(row) {
		list = append(list, fmt.Sprint(piece.Record))
	}
	return "of records " + strings.Join(list, ", ")
}

// LookaheadBytes is that of the Source.
func (p *Packed) LookaheadBytes() int64 { return p.can.LookaheadBytes() }

// Fetch announces to the Source the records of rows that will be needed.
func (p *Packed) Fetch(ctx context.Context, field string, rows []int) error {
	if p.can.Remote == nil || !packs(field) {
		return nil
	}
	var records []int
	for _, row := range rows {
		for _, piece := range p.Pieces(row) {
			records = append(records, int(piece.Record))
		}
	}
	return p.can.Remote.Fetch(ctx, field, records)
}

// NetworkStats is that of the Source.
func (p *Packed) NetworkStats() (fetched int64, waited time.Duration, rate float64) {
	return p.can.NetworkStats()
}
