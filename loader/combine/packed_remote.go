package combine

import (
	"context"
	"fmt"
	"strings"
)

// DescribeReads returns how the Source reads the records of which rows are made.
func (p *Packed) DescribeReads(field string) (how, why string, resident float64) {
	if p.of().can.Described == nil || !packs(field) {
		return "made", "of the lengths of records", -1
	}
	how, why, resident = p.of().can.Described.DescribeReads(field)
	return "packed, " + how, why, resident
}

// Location names the records in a row.
func (p *Packed) Location(_ string, row int) string {
	var list []string
	for _, piece := range p.Pieces(row) {
		list = append(list, fmt.Sprint(piece.Record))
	}
	return "of records " + strings.Join(list, ", ")
}

// Fetch announces to the Source the records of rows that will be needed.
func (p *Packed) Fetch(ctx context.Context, field string, rows []int) error {
	if !packs(field) {
		return nil
	}
	var records []int
	for _, row := range rows {
		for _, piece := range p.Pieces(row) {
			records = append(records, int(piece.Record))
		}
	}
	return p.of().fetch(ctx, field, records)
}
