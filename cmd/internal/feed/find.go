package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/loader/views"
)

// finding is a request of --records for the records of a view for which an expression holds.
type finding struct {
	View  view   `json:"view"`
	Where string `json:"where"`
}

// foundRecords answers finding by a bit for each record: record i is bit i%8 of byte i/8.
type foundRecords struct {
	Bits []byte `json:"bits"`
}

// joining is a request of --records for the records of two views that belong together.
type joining struct {
	Views [2]view      `json:"views"`
	Match combine.Join `json:"match"`
}

// matched answers joining by a combine.Matches, whose numbers are int64, little endian.
type matched struct {
	Of    []byte `json:"of"`
	Left  []byte `json:"left"`
	Right []byte `json:"right"`
}

// splitting is a request for the ranges of the parts of an axis of Length, or of the records of a
// view by the values of a field Group.
type splitting struct {
	View   *view     `json:"view,omitempty"` // given together with Group
	Group  string    `json:"group,omitempty"`
	Length int       `json:"length,omitempty"` // of the axis
	Shares []float64 `json:"shares"`
	Block  int       `json:"block,omitempty"`
	Gap    int       `json:"gap,omitempty"`
	Seed   uint64    `json:"seed,omitempty"`
}

// ranged answers splitting.
type ranged struct {
	Ranges [][][2]int `json:"ranges"`
}

// readView returns the view in a file. The sizes of the file and of all files that it names are
// checked first.
func readView(path string) (any, error) {
	n, err := views.Read(path)
	if err != nil {
		return nil, err
	}
	if err := n.CheckSize(); err != nil {
		return nil, fmt.Errorf("view %s: %w", path, err)
	}
	return struct {
		View *views.Node `json:"view"`
	}{n}, nil
}

// open opens the view of a request. The caller closes it.
func (v *view) open(ctx context.Context, cache *datasetarg.Cache) (*views.Dataset, error) {
	if v.err != nil {
		return nil, v.err
	}
	return cache.View(ctx, v.node, datasetarg.Options{})
}

// answer finds the records. The expression is parsed before the datasets are opened, which may take
// long.
func (f *finding) answer(ctx context.Context, cache *datasetarg.Cache) (any, error) {
	where, err := expr.Parse(f.Where)
	if err != nil {
		return nil, err
	}
	ds, err := f.View.open(ctx, cache)
	if err != nil {
		return nil, err
	}
	var found foundRecords
	err = ds.Guard(func() error {
		set, err := where.Find(ctx, ds.Source)
		if err != nil {
			return err
		}
		for _, bits := range set.Words() {
			found.Bits = binary.LittleEndian.AppendUint64(found.Bits, bits)
		}
		return nil
	})
	return found, errors.Join(err, ds.Close())
}

// answer joins the views.
func (j *joining) answer(ctx context.Context, cache *datasetarg.Cache) (_ any, err error) {
	var sides [2]*views.Dataset
	for k := range sides {
		if sides[k], err = j.Views[k].open(ctx, cache); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, sides[k].Close()) }()
	}
	_, found, err := combine.NewJoin(ctx, sides[0].Source, sides[1].Source, j.Match)
	if err != nil {
		return nil, err
	}
	return matched{numbersOf(found.Of), numbersOf(found.Left), numbersOf(found.Right)}, nil
}

// numbersOf returns numbers as int64, little endian.
func numbersOf(list []int) []byte {
	out := make([]byte, 0, 8*len(list))
	for _, n := range list {
		out = binary.LittleEndian.AppendUint64(out, uint64(n))
	}
	return out
}

// answer computes the ranges.
func (s *splitting) answer(ctx context.Context, cache *datasetarg.Cache) (any, error) {
	splits := combine.Splits{Shares: s.Shares, Block: s.Block, Gap: s.Gap, Seed: s.Seed}
	if s.View == nil {
		ranges, err := splits.Of(s.Length)
		return ranged{ranges}, err
	}
	ds, err := s.View.open(ctx, cache)
	if err != nil {
		return nil, err
	}
	var ranges [][][2]int
	err = ds.Guard(func() (err error) {
		ranges, err = splits.OfGroups(ctx, ds.Source, s.Group)
		return err
	})
	return ranged{ranges}, errors.Join(err, ds.Close())
}
