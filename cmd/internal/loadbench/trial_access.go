package loadbench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

const textField = "text"

// lorem are the words of texts that say nothing.
var lorem = []string{"lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit", "sed", "do", "eiusmod", "tempor",
	"incididunt", "ut", "labore", "et", "dolore", "magna", "aliqua"}

// arrayRecord reads texts singly and by batches of 1,024 in a random order, and in order. A
// round of each is 1,024 records.
func arrayRecord(b *bench) error {
	const words, round = 200, 1024
	n := b.part(1 << 16)
	rng := rand.New(rand.NewPCG(b.o.Seed, 0))
	ds, err := b.stock("texts", n, func(_ int, r *store.Record) {
		text := r.Values[0][:0]
		for range words {
			text = append(append(text, lorem[rng.IntN(len(lorem))]...), ' ')
		}
		r.Values[0] = text
	}, store.NewRagged(textField, tensor.Uint8))
	if err != nil {
		return err
	}
	order := rng.Perm(n)
	t := Table{Name: b.trial.Name, Title: b.trial.Title, Notes: append(b.trial.notes(), "Singly and in order are views; every cache line of everything is read."),
		columns: []column{colTotal, colRate, colEach, colBytes, colPublished}}
	texts := reader{ctx: b.ctx, ds: ds, order: order, round: round, offsets: make([]int64, round+1)}
	err = b.ops(t, []op{
		{name: "singly, shuffled", times: n / round, do: texts.singly, published: &Published{Text: "4,900 to 5,600"}},
		{name: "by batches of 1,024, shuffled", times: n / round, do: texts.gathered, published: &Published{Text: "188,000 to 490,000"}},
		{name: "in order", times: n / round, do: texts.inOrder, published: &Published{Text: "1,090,000"}},
	})
	if err == nil {
		r := b.last()
		b.report.Doctor = fmt.Sprintf("reading in order takes %s a record of %d bytes: a cache line at a time is what the processor gives; nothing is left to tune",
			short(r.Total/timeOf(r.Records)), r.Bytes/int64(max(1, r.Records)))
	}
	return err
}

// reader reads texts by rounds.
type reader struct {
	ctx     context.Context
	ds      *mmapds.Dataset
	order   []int
	round   int
	offsets []int64
	buf     []byte
}

func (t *reader) singly(i int) (records, bytes int, err error) {
	for _, record := range t.order[i*t.round : (i+1)*t.round] {
		v, err := t.ds.SliceRagged(textField, record, record+1, t.offsets[:2])
		if err != nil {
			return 0, 0, err
		}
		sink.Add(touch(v.Bytes()))
		bytes += len(v.Bytes())
	}
	return t.round, bytes, nil
}

func (t *reader) gathered(i int) (records, bytes int, err error) {
	t.buf, err = t.ds.GatherRagged(t.ctx, textField, t.order[i*t.round:(i+1)*t.round], t.offsets, t.buf[:0])
	sink.Add(touch(t.buf))
	return t.round, len(t.buf), err
}

func (t *reader) inOrder(i int) (records, bytes int, err error) {
	v, err := t.ds.SliceRagged(textField, i*t.round, (i+1)*t.round, t.offsets)
	if err != nil {
		return 0, 0, err
	}
	sink.Add(touch(v.Bytes()))
	return t.round, len(v.Bytes()), nil
}

// firstBatch opens a dataset of strings, and loads one batch of it.
func firstBatch(b *bench) error {
	t := Table{Name: b.trial.Name, Title: b.trial.Title, Notes: b.trial.notes(), columns: []column{colP50, colP99, colAllocated, colPublished}}
	var rows []op
	for _, mib := range []int{16, 32, 64, 128} {
		name := fmt.Sprintf("strings-%d", mib)
		fill := b.noise()
		_, err := b.stock(name, mib<<20/64, func(i int, r *store.Record) {
			r.Values[0] = append(r.Values[0][:0], make([]byte, 64)...)
			fill(i, r)
		}, store.NewRagged(textField, tensor.Uint8))
		if err != nil {
			return err
		}
		path := filepath.Join(b.s.folder, name)
		for _, workers := range []int{1, 2, 4, 8} {
			o := op{name: fmt.Sprintf("%d MiB, %s", mib, cli.Counted(int64(workers), "worker")), times: b.part(16), do: func(int) (int, int, error) { return openAndLoad(b.ctx, path, workers) }}
			if mib == 128 && workers == 8 {
				o.published = &Published{Text: "28.3 s"}
			}
			rows = append(rows, o)
		}
	}
	err := b.ops(t, rows)
	if err == nil {
		b.report.Doctor = fmt.Sprintf("%s: %s from opening to the first batch: nothing is read or handed over beforehand, so it hardly grows with the data", b.last().Name, short(b.last().Wait.P50))
	}
	return err
}

func openAndLoad(ctx context.Context, path string, workers int) (records, bytes int, err error) {
	ds, err := mmapds.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer ds.Close()
	ld, err := loader.New(ds, loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Workers: workers})
	if err != nil {
		return 0, 0, err
	}
	defer ld.Close()
	for batch, err := range ld.Epoch(ctx, 0) {
		if err != nil {
			return 0, 0, err
		}
		v := batch.Field(textField).Bytes()
		sink.Add(touch(v))
		return batch.Len(), len(v), nil
	}
	return 0, 0, nil
}

// lastRecord reads the last record of datasets of several lengths.
func lastRecord(b *bench) error {
	const round = 1000
	t := Table{Name: b.trial.Name, Title: b.trial.Title, Notes: b.trial.notes(), columns: []column{colEach, colP50, colP99, colAllocated}}
	for i := range t.columns[1:3] {
		t.columns[1+i].head += fmt.Sprintf(" of %d", round)
	}
	var rows []op
	for _, n := range []int{1000, 100_000, b.part(8_000_000)} {
		ds, err := b.stock(fmt.Sprintf("numbers-%d", n), n, func(i int, r *store.Record) { r.Values[0][0] = byte(i) }, store.NewField("x", tensor.Int64))
		if err != nil {
			return err
		}
		rows = append(rows, op{name: cli.Counted(int64(n), "record"), times: 200, do: func(int) (int, int, error) {
			for range round {
				v, err := ds.Slice("x", n-1, n)
				if err != nil {
					return 0, 0, err
				}
				sink.Add(touch(v.Bytes()))
			}
			return round, round * 8, nil
		}})
	}
	err := b.ops(t, rows)
	if err == nil {
		rows := b.report.Tables[0].Rows
		b.report.Doctor = fmt.Sprintf("reading the last record takes %s of %s, and %s of %s: its place is computed, not looked up", short(rows[0].Total/timeOf(rows[0].Records)), rows[0].Name,
			short(b.last().Total/timeOf(b.last().Records)), b.last().Name)
	}
	return err
}

// billion begins epochs of a shuffled order over a billion records.
func billion(b *bench) error {
	const n, batch = 1_000_000_000, 32
	t := Table{Name: b.trial.Name, Title: b.trial.Title, Notes: b.trial.notes(), columns: []column{colP50, colP99, colAllocated, colPublished}}
	dst := make([]int, batch)
	err := b.ops(t, []op{{name: "order of the first batch", times: 1000, published: &Published{Text: "33 to 51 s"}, do: func(i int) (int, int, error) {
		sampler.Shuffle{}.Epoch(n, b.o.Seed, i).Fill(0, dst)
		sink.Add(uint64(dst[0]))
		return batch, 0, nil
	}}})
	if err == nil {
		b.report.Doctor = fmt.Sprintf("an epoch of %s begins after %s: positions are computed when they are asked for", cli.Counted(n, "record"), short(b.last().Wait.P50))
	}
	return err
}
