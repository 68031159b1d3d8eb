package fill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/memory"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

const (
	records = 20
	width   = 3
)

// source has records of width bytes, all of them the number of the record, and of as many rows as that number
// modulo 4.
type source struct {
	held     int
	bad      int  // the record that cannot be read; -1 if all can
	worse    int  // another one, unless it is 0
	mapped   bool // records are memory, and warm
	prefetch []int
	gathered []int // how many records each Gather was for
}

func (s *source) isBad(record int) bool { return record == s.bad || s.worse != 0 && record == s.worse }

func (s *source) Len() int { return records }

func (s *source) value(record int) []byte { return bytes.Repeat([]byte{byte(record)}, width) }

func (s *source) Slice(_ string, a, b int) (tensor.View, error) {
	if s.held == 0 {
		panic("Slice without Retain")
	}
	var all []byte
	for r := a; r < b; r++ {
		if s.isBad(r) {
			return tensor.View{}, errBad
		}
		all = append(all, s.value(r)...)
	}
	return tensor.Of(spec, b-a, all), nil
}

var errBad = errors.New("bad sector")

func (s *source) Gather(_ context.Context, _ string, indices []int, dst []byte) error {
	s.gathered = append(s.gathered, len(indices))
	for i, r := range indices {
		if s.isBad(r) {
			return errBad
		}
		for k := range width {
			dst[i*width+k] = byte(r)
		}
	}
	return nil
}

func (s *source) Prefetch(_ string, a, b int) error {
	for r := a; r < b; r++ {
		s.prefetch = append(s.prefetch, r)
	}
	return nil
}

func (s *source) Retain() error { s.held++; return nil }
func (s *source) Release()      { s.held-- }

func (s *source) Contiguous(string, int, int) bool { return s.mapped }
func (s *source) Warm(string, int, int) error      { return nil }
func (s *source) IsWarm(_ string, a, _ int) bool   { return a != s.bad }
func (s *source) LookaheadBytes() int64            { return 0 }
func (s *source) rows(record int) (values []byte) {
	return bytes.Repeat([]byte{byte(record)}, record%4)
}
func (s *source) fields(names ...string) (out []fill.Field) {
	for _, name := range names {
		f := fill.Field{In: spec, Out: spec, Size: width, Stored: width}
		f.In.Name, f.Out.Name = name, name
		switch name {
		case "converted":
			f.Converts = true
		case "ragged":
			f.In = tensor.Spec{Name: name, DType: tensor.Uint8, Ragged: true}
			f.Out, f.Size, f.Stored, f.Ragged = f.In, 0, 1, true
		case "padded":
			f.In, f.Stored, f.Converts = tensor.Spec{Name: name, DType: tensor.Uint8, Ragged: true}, 1, true
		}
		out = append(out, f)
	}
	return out
}

func (s *source) SliceRagged(string, int, int, []int64) (tensor.View, error) {
	panic("records of variable length are not contiguous")
}

func (s *source) Lengths(_ context.Context, _ string, indices []int, offsets []int64) error {
	offsets[0] = 0
	for i, r := range indices {
		offsets[i+1] = offsets[i] + int64(r%4)
	}
	return nil
}

func (s *source) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	dst = dst[:0]
	for _, r := range indices {
		if s.isBad(r) {
			return dst, errBad
		}
		dst = append(dst, s.rows(r)...)
	}
	return dst, s.Lengths(ctx, field, indices, offsets)
}

var spec = tensor.Spec{Name: "copied", DType: tensor.Uint8, Shape: tensor.Shape{width}}

// plan returns a Plan for s, and an order in which no two records follow each other.
func plan(s *source, change func(p *fill.Plan), names ...string) (*fill.Plan, *order.Epoch) {
	fields := s.fields(names...)
	sizes := make([]int, len(fields))
	for i, f := range fields {
		sizes[i] = 4 * f.Size
	}
	var now time.Duration
	p := &fill.Plan{
		Source: fill.Source{Records: s, Chunked: s, Ragged: s}, Fields: fields, Batch: 4, Slots: 3, Workers: 1, Views: true,
		Ring: memory.NewRing(nil, sizes), Clock: func() time.Duration { now++; return now },
	}
	if s.mapped {
		p.Source.Mapped = s
	}
	if change != nil {
		change(p)
	}
	p.Init()
	p.Ring.Extend(3)
	odd := make([]int, 0, records)
	for r := range records {
		odd = append(odd, r*7%records)
	}
	return p, order.New(order.Shares{Batch: 4, Ranks: 1}, 5, sampler.Subset{Indices: odd}.Epoch(records, 0, 5))
}

// inverted is a function for the field "converted".
func inverted(p *fill.Plan) []fill.RecordFunc {
	funcs := make([]fill.RecordFunc, len(p.Fields))
	for f := range p.Fields {
		if p.Fields[f].Converts {
			funcs[f] = func(dst, src []byte, r *fill.Record) error {
				if src[0] != byte(r.Index) || r.Index != r.Position*7%records || r.Epoch != 5 {
					return fmt.Errorf("record %+v is %d", r, src)
				}
				for i := range src {
					dst[i] = ^src[i]
				}
				return nil
			}
		}
	}
	return funcs
}

// batch makes a batch as a worker does.
func batch(ctx context.Context, w *fill.Filler, b *fill.Batch, e *order.Epoch, step int) error {
	w.Start(0)
	if err := w.Choose(ctx, b, e, step, step); err != nil {
		return err
	}
	if err := w.View(ctx, b, fill.Unknown); err != nil {
		return err
	}
	if err := w.Fill(ctx, b, 0, b.Len()); err != nil {
		return err
	}
	return w.Seal(ctx, b)
}

// check compares the values of b, whose records are indices.
func check(t *testing.T, b *fill.Batch, names ...string) {
	t.Helper()
	for _, name := range names {
		var want []byte
		for i, r := range b.Indices() {
			switch value := bytes.Repeat([]byte{byte(r)}, width); {
			case name == "ragged":
				want = append(want, bytes.Repeat([]byte{byte(r)}, r%4)...)
				if got := b.Offsets(name)[i+1] - b.Offsets(name)[i]; got != int64(r%4) {
					t.Errorf("record %d has %d rows", r, got)
				}
			case name == "converted":
				for range value {
					want = append(want, ^byte(r))
				}
			default:
				want = append(want, value...)
			}
		}
		if got := b.Field(name).Bytes(); !bytes.Equal(got, want) {
			t.Errorf("step %d, %q: %d, not %d", b.Step(), name, got, want)
		}
	}
}

// A batch has the records of its step in all fields, whichever way each is made.
func TestFill(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		s := &source{bad: -1, mapped: mapped}
		p, e := plan(s, nil, "copied", "converted", "ragged")
		sealed := 0
		w := p.NewFiller(fill.Functions{Records: inverted(p), Collate: func(*fill.Batch) error { sealed++; return nil }}, fill.Errors)
		b := p.NewBatch(1)
		for step := range e.Steps {
			require.NoError(t, batch(t.Context(), w, b, e, step))
			check(t, b, "copied", "converted", "ragged")
			if s.held != 0 {
				t.Errorf("a batch without views holds the Source %d times", s.held)
			}
			if b.Step() != step || b.Epoch() != e || b.Len() != 4 || slices.Contains(b.Mask(), false) {
				t.Errorf("step %d of epoch %d, mask %v", b.Step(), b.Epoch().Number, b.Mask())
			}
			if viewed, copied := b.Bytes(); viewed != 0 || copied == 0 {
				t.Errorf("%d bytes are views, %d copied", viewed, copied)
			}
			b.Clear()
		}
		var cost, again fill.Cost
		w.MoveCost(&cost)
		if cost.Bytes < records*2*width || cost.Read == 0 || cost.Transform == 0 || cost.Collate == 0 || cost.Slowest.Took == 0 {
			t.Errorf("cost %+v", cost)
		}
		if w.MoveCost(&again); again != (fill.Cost{}) {
			t.Error("a cost is taken twice")
		}
		if s.held != 0 || sealed != e.Steps {
			t.Errorf("the Source is held %d times; %d of %d batches were sealed", s.held, sealed, e.Steps)
		}
	}
}

// A run of records is a view, created together with others or alone.
func TestViews(t *testing.T) {
	s := &source{bad: -1, mapped: true}
	p, _ := plan(s, nil, "copied")
	e := order.New(order.Shares{Batch: 4, Ranks: 1}, 0, sampler.Sequential{}.Epoch(records-1, 0, 0))
	w := p.NewFiller(fill.Functions{Records: inverted(p)}, fill.Errors)
	if !p.Viewable() || !w.IsInstant(e, 0, e.Steps) {
		t.Fatal("views of warm memory are not instant")
	}
	list := []*fill.Batch{p.NewBatch(0), p.NewBatch(1), p.NewBatch(2)}
	require.NoError(t, w.Cut(t.Context(), list, e, 2))
	for i, b := range list {
		check(t, b, "copied")
		if viewed, copied := b.Bytes(); b.Step() != 2+i || int(viewed) != b.Len()*width || copied != 0 {
			t.Errorf("step %d: %d bytes are views, %d copied", b.Step(), viewed, copied)
		}
		b.Clear()
	}
	if err := batch(t.Context(), w, list[0], e, 1); err != nil || !list[0].IsView() {
		t.Errorf("a run alone: %v", err)
	}
	check(t, list[0], "copied")
	if s.held != 1 {
		t.Errorf("a batch of views holds the Source %d times", s.held)
	}
	list[0].Clear()
	s.bad = 9
	if w.Cut(t.Context(), list, e, 1) == nil {
		t.Error("a record that cannot be read is cut")
	}
	for _, b := range list {
		b.Uncut()
	}
	var failed *fill.Error
	if err := batch(t.Context(), w, list[0], e, 2); !errors.As(err, &failed) || failed.Record != 9 {
		t.Errorf("record 9 fails with %v", err)
	}
	list[0].Clear()
	if p.Ring.Bytes() != 0 || s.held != 0 {
		t.Errorf("views took %d bytes; the Source is held %d times", p.Ring.Bytes(), s.held)
	}
}

// A record that cannot be read fails its batch, or is replaced in all fields.
func TestBadRecord(t *testing.T) {
	for policy, want := range map[fill.Policy]string{fill.Fail: "fails", fill.Backfill: "another", fill.Blank: "zeros"} {
		names := []string{"copied", "converted", "ragged"}
		if policy == fill.Blank {
			names = names[:2]
		}
		s := &source{bad: 7}
		var reported []int
		p, e := plan(s, func(p *fill.Plan) {
			p.Policy = policy
			p.Report = func(_ context.Context, b *fill.Batch, e *fill.Error) {
				reported = append(reported, b.Step(), e.Field, e.Record)
			}
		}, names...)
		funcs := inverted(p)
		funcs[1] = func(dst, src []byte, _ *fill.Record) error { // of records at places that are not their own, too
			for i := range src {
				dst[i] = ^src[i]
			}
			return nil
		}
		w := p.NewFiller(fill.Functions{Records: funcs}, fill.Errors)
		var cost fill.Cost
		b := p.NewBatch(0)
		err := batch(t.Context(), w, b, e, 0) // records 0, 7, 14, 1
		if policy == fill.Fail {
			var failed *fill.Error
			if !errors.As(err, &failed) || failed.Record != 7 || failed.Field != 0 || !errors.Is(err, errBad) {
				t.Errorf("error %v", err)
			}
			continue
		}
		w.MoveCost(&cost)
		if err != nil || !slices.Equal(b.Mask(), []bool{true, false, true, true}) || !slices.Equal(reported, []int{0, 0, 7}) || cost.Skipped != 1 {
			t.Fatalf("%s: %v, mask %v, reported %v", want, err, b.Mask(), reported)
		}
		if policy == fill.Backfill {
			check(t, b, names...)
			if slices.Contains(b.Indices(), 7) {
				t.Errorf("records %v", b.Indices())
			}
			continue
		}
		for _, name := range names {
			if got := b.Field(name).Bytes()[width : 2*width]; !bytes.Equal(got, make([]byte, width)) {
				t.Errorf("%q of the bad record is %d", name, got)
			}
		}
	}
}

// Two records of a batch that cannot be read are replaced by two others, which do not depend on each other.
func TestBackfill(t *testing.T) {
	s := &source{bad: 7, worse: 14}
	p, e := plan(s, func(p *fill.Plan) { p.Policy, p.Seed = fill.Backfill, 4 }, "copied")
	w, b := p.NewFiller(fill.Functions{Records: inverted(p)}, fill.Errors), p.NewBatch(0)
	if err := batch(t.Context(), w, b, e, 0); err != nil { // records 0, 7, 14, 1
		t.Fatal(err)
	}
	check(t, b, "copied")
	if got := b.Indices(); got[1] == got[2] || !slices.Equal(b.Mask(), []bool{true, false, false, true}) {
		t.Errorf("records %v, mask %v", got, b.Mask())
	}
}

// A blank record of variable length that is converted to a fixed length has no rows.
func TestBlankRows(t *testing.T) {
	s := &source{bad: 7}
	p, e := plan(s, func(p *fill.Plan) { p.Policy = fill.Blank }, "padded")
	pad := func(dst, src []byte, _ *fill.Record) error { copy(dst, src); return nil }
	w, b := p.NewFiller(fill.Functions{Records: []fill.RecordFunc{pad}}, fill.Errors), p.NewBatch(0)
	for step, want := range [][]int64{{0, 0, 3, 5, 6}, {0, 0, 0, 2, 3}} {
		step = 1 - step                                           // the second one where offsets of the first were
		if err := batch(t.Context(), w, b, e, step); err != nil { // records 8, 15, 2, 9; then 0, 7, 14, 1
			t.Fatal(err)
		}
		if got := b.Offsets("padded"); !slices.Equal(got, want) {
			t.Errorf("step %d: offsets %v", step, got)
		}
		b.Clear()
	}
}

// Places that an epoch has no records for do not count.
func TestPadding(t *testing.T) {
	p, _ := plan(&source{bad: -1}, nil, "copied")
	e := order.New(order.Shares{Batch: 4, Rank: 1, Ranks: 2}, 0, sampler.Shuffle{}.Epoch(records-3, 0, 0))
	w, b := p.NewFiller(fill.Functions{Records: inverted(p)}, fill.Errors), p.NewBatch(0)
	var masks [][]bool
	for step := range e.Steps {
		require.NoError(t, batch(t.Context(), w, b, e, step))
		masks = append(masks, slices.Clone(b.Mask()))
		b.Clear()
	}
	if n := len(masks); n != 3 || slices.Contains(masks[0], false) || !slices.Equal(masks[2], []bool{false}) {
		t.Errorf("masks %v of 17 records for two ranks of four", masks)
	}
}

// A record that the Source does not have is named with its position, at the end of a run and elsewhere.
func TestOutside(t *testing.T) {
	p, _ := plan(&source{bad: -1}, nil, "copied")
	w, b := p.NewFiller(fill.Functions{Records: inverted(p)}, fill.Errors), p.NewBatch(0)
	for _, c := range []struct {
		indices []int
		want    string
	}{
		{[]int{18, 19, 20, 21}, "record 20 at position 2,"}, {[]int{3, 25, 1, 2}, "record 25 at position 1,"},
		{[]int{20, 21, 22, 23}, "record 20 at position 0,"},
	} {
		e := order.New(order.Shares{Batch: 4, Ranks: 1}, 0, sampler.Subset{Indices: c.indices}.Epoch(records, 0, 0))
		if err := batch(t.Context(), w, b, e, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("records %v: %v", c.indices, err)
		}
		b.Clear()
	}
}

// Records are gathered together, one by one where somebody wants to know which one hangs, and as many as may be
// staged where they come from storage to be converted.
func TestGathers(t *testing.T) {
	slow := func(p *fill.Plan) {
		var now time.Duration
		p.Clock = func() time.Duration { now += time.Second; return now }
		p.Stage = 2 * width
	}
	for _, c := range []struct {
		field  string
		change func(p *fill.Plan)
		want   []int // of the second batch
	}{
		{"copied", func(p *fill.Plan) { p.Views = false }, []int{4}},
		{"copied", func(p *fill.Plan) { p.OneByOne, p.Views = true, false }, []int{1, 1, 1, 1}},
		{"converted", slow, []int{2, 2}},
	} {
		s := &source{bad: -1, mapped: true}
		p, e := plan(s, c.change, c.field)
		w, b := p.NewFiller(fill.Functions{Records: inverted(p)}, fill.Errors), p.NewBatch(0)
		for step := range 2 {
			s.gathered = nil
			require.NoError(t, batch(t.Context(), w, b, e, step))
			check(t, b, c.field)
			b.Clear()
		}
		if !slices.Equal(s.gathered, c.want) {
			t.Errorf("%s: gathers of %v records, not %v", c.field, s.gathered, c.want)
		}
	}
}

// Rows that do not fit in the caller's memory are an error; rows that just fit are not.
func TestOwnMemory(t *testing.T) {
	p, e := plan(&source{bad: -1}, nil, "ragged")
	w, b := p.NewFiller(fill.Functions{Records: inverted(p)}, fill.Errors), p.NewBatch(-1)
	for n, fits := range map[int]bool{5: false, 6: true} { // records 0, 7, 14, 1 have 6 rows
		own := make([]byte, n)
		b.SetMemory([][]byte{own})
		if err := batch(t.Context(), w, b, e, 0); (err == nil) != fits {
			t.Errorf("%d bytes: %v", n, err)
		} else if fits {
			check(t, b, "ragged")
		}
		b.Clear()
	}
}

// Panics are errors with a stack, unless they shall pass.
func TestPanics(t *testing.T) {
	p, e := plan(&source{bad: -1}, nil, "converted")
	funcs := []fill.RecordFunc{func(_, _ []byte, r *fill.Record) error {
		if r.Index == 14 {
			panic("no reason")
		}
		return nil
	}}
	var failed *fill.Error
	b := p.NewBatch(0)
	err := batch(t.Context(), p.NewFiller(fill.Functions{Records: funcs}, fill.Errors), b, e, 0)
	if !errors.As(err, &failed) || failed.Record != 14 || !failed.Alone {
		t.Errorf("error %v", err)
	}
	b.Clear()
	defer func() {
		if recover() != "no reason" {
			t.Error("the panic was caught")
		}
	}()
	_ = batch(t.Context(), p.NewFiller(fill.Functions{Records: funcs}, fill.PassThrough), b, e, 0)
}

// While reads are slow a Filler announces its next batch, and the first one its own.
func TestReadAhead(t *testing.T) {
	s := &source{bad: -1}
	p, e := plan(s, func(p *fill.Plan) {
		var now time.Duration
		p.Clock = func() time.Duration { now += time.Second; return now }
	}, "copied")
	w, b := p.NewFiller(fill.Functions{Records: inverted(p)}, fill.Errors), p.NewBatch(0)
	for step := range e.Steps {
		s.prefetch = nil
		require.NoError(t, batch(t.Context(), w, b, e, step))
		var want []int
		if step == 0 {
			want = append(want, b.Indices()...)
		}
		if step+1 < e.Steps {
			next := make([]int, 4)
			e.Choose(4*(step+1), 0, next)
			want = append(want, next...)
		}
		if !slices.Equal(s.prefetch, want) {
			t.Errorf("step %d announces %v, not %v", step, s.prefetch, want)
		}
		if w.IsCold() != (step > 0) {
			t.Errorf("step %d: cold is %v", step, w.IsCold())
		}
		b.Clear()
	}
}

// listed is a Sequence of the records that it lists.
type listed []int

func (l listed) Len() int                { return len(l) }
func (l listed) Fill(pos int, dst []int) { copy(dst, l[pos:]) }

// Records that do not exist are not announced, wherever they are in a batch: the Filler that makes it reports them.
func TestAnnounceRecordsThatDoNotExist(t *testing.T) {
	s := &source{bad: -1}
	p, _ := plan(s, nil, "copied")
	for place := range 5 {
		indices := listed{0, 1, 2, 3}
		if place < len(indices) {
			indices[place] = records
		}
		var got []int
		fetch := func(_ context.Context, _ string, indices []int) error { got = slices.Clone(indices); return nil }
		more := p.Announce(t.Context(), fetch, order.New(order.Shares{Batch: 4, Ranks: 1}, 0, indices), 0, make([]int, 4))
		if exists := place == len(indices); more != exists || (got != nil) != exists {
			t.Errorf("records %v: announced %v, %v", indices, got, more)
		}
	}
}

// Batches after the first allocate nothing.
func TestAllocations(t *testing.T) {
	s := &source{bad: -1}
	p, e := plan(s, nil, "copied", "converted")
	w, b := p.NewFiller(fill.Functions{Records: inverted(p)}, fill.Errors), p.NewBatch(0)
	step := 0
	each := func() {
		require.NoError(t, batch(t.Context(), w, b, e, step%e.Steps))
		b.Clear()
		step++
	}
	each()
	if n := testing.AllocsPerRun(100, each); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

// TestOneLateReadOfMany checks that a batch of many fields counts as read from memory although the system interrupted
// one of its reads, and not if as many were late as make a difference: then the next batch is announced.
func TestOneLateReadOfMany(t *testing.T) {
	names := make([]string, 400)
	for i := range names {
		names[i] = fmt.Sprintf("f%d", i)
	}
	for late, want := range map[int]bool{0: false, 1: false, len(names): true} {
		s := &source{bad: -1}
		looks, now := 0, time.Duration(0)
		p, e := plan(s, func(p *fill.Plan) {
			p.Clock = func() time.Duration {
				if looks++; looks <= late {
					now += 100 * time.Microsecond
				}
				now += time.Microsecond
				return now
			}
		}, names...)
		w, b := p.NewFiller(fill.Functions{Records: inverted(p)}, fill.Errors), p.NewBatch(0)
		for step := range 2 {
			looks, s.prefetch = 0, nil
			require.NoError(t, batch(t.Context(), w, b, e, step))
			b.Clear()
		}
		if got := len(s.prefetch) > 0; got != want {
			t.Errorf("%d late reads of %d fields: the next batch was announced: %v", late, len(names), got)
		}
	}
}
