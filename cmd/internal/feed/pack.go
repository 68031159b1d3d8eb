package feed

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/store"
)

// pack is a combine.Pack in JSON.
type pack struct {
	Length      int                `json:"length"`
	Fields      []string           `json:"fields,omitempty"`
	Pad         map[string]float64 `json:"pad,omitempty"`
	Overflow    string             `json:"overflow,omitempty"` // fail, truncate or split
	MaxOpenRows int                `json:"max_open_rows,omitempty"`
	Sampler     *samplerOption     `json:"sampler,omitempty"`
	Seed        uint64             `json:"seed,omitempty"`
	Epoch       int                `json:"epoch,omitempty"`
}

// overflows has the values of Overflow by name.
var overflows = map[string]combine.Overflow{
	"": combine.OverflowFail, "fail": combine.OverflowFail, "truncate": combine.OverflowTruncate,
	"split": combine.OverflowSplit,
}

// of packs a source, and returns the fields of its rows. If rows are mixed from several datasets,
// each row has records of one dataset, so that the weights of the mix mean datasets.
func (p *pack) of(ctx context.Context, s sampled, mixed bool) (*combine.Packed, []store.Field, error) {
	overflow, ok := overflows[p.Overflow]
	if !ok {
		return nil, nil, fmt.Errorf("pack: overflow is %q; it must be fail, truncate or split", p.Overflow)
	}
	order, err := s.order(ctx, p.Sampler)
	if err != nil {
		return nil, nil, fmt.Errorf("pack: %w", err)
	}
	k := combine.Pack{Length: p.Length, Fields: p.Fields, Pad: p.Pad, Overflow: overflow, MaxOpenRows: p.MaxOpenRows,
		Sampler: order, Seed: p.Seed, Epoch: p.Epoch}
	if mixed {
		k.Sizes = combine.SizesOf(s.src)
	}
	packed, err := combine.NewPacked(ctx, s.src, k)
	if err != nil {
		return nil, nil, err
	}
	var fields []store.Field
	for _, spec := range packed.Specs() {
		fields = append(fields, store.NewField(spec.Name, spec.DType, spec.Shape...))
	}
	return packed, fields, nil
}
