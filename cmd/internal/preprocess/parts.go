package preprocess

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/store"
)

// findParts returns the parts in some folders, by rank: all that there must be, each once.
func findParts(folders []string) ([]*part, error) {
	var parts []*part
	for _, folder := range folders {
		names, err := partsIn(folder)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			p, err := readPart(name)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%s: there are no parts in it that are whole; every rank makes one: preprocess SOURCE DEST --rank R --world-size N", strings.Join(folders, " "))
	}
	slices.SortStableFunc(parts, func(a, b *part) int { return a.Rank - b.Rank })
	return parts, checkParts(parts)
}

// partsIn returns the paths of the parts in a folder that are whole.
func partsIn(folder string) (list []string, err error) {
	entries, err := vfs.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such folder of parts; every rank makes one: preprocess SOURCE DEST --rank R --world-size N", folder)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && strings.HasPrefix(name, "part-") {
			list = append(list, filepath.Join(folder, name))
		}
	}
	return list, err
}

// checkParts refuses parts that do not make one dataset, each once.
func checkParts(parts []*part) error {
	first := parts[0]
	for i, p := range parts[1:] {
		if diff := first.Plan.differs(p.Plan); diff != "" {
			return fmt.Errorf("%s and %s are not parts of one dataset: they differ in %s", first.path, p.path, diff)
		}
		if p.Rank == parts[i].Rank {
			return fmt.Errorf("part %d is there twice: %s and %s; remove one", p.Rank, parts[i].path, p.path)
		}
	}
	if len(parts) < first.Plan.Size {
		return fmt.Errorf("%d of %d parts are missing: %s; run these ranks, then merge again", first.Plan.Size-len(parts), first.Plan.Size, missing(parts, first.Plan.Size))
	}
	var errs []error
	for _, p := range parts {
		errs = append(errs, p.there())
	}
	return errors.Join(errs...)
}

// missing lists the ranks that have no part, such as "2, 5 to 7".
func missing(parts []*part, size int) string {
	var list []string
	next := 0
	gap := func(end int) {
		switch {
		case end-next > 1:
			list = append(list, fmt.Sprintf("%d to %d", next, end-1))
		case end-next == 1:
			list = append(list, strconv.Itoa(next))
		}
	}
	for _, p := range parts {
		gap(p.Rank)
		next = p.Rank + 1
	}
	gap(size)
	const most = 20
	if len(list) > most {
		list = append(list[:most], "...")
	}
	return strings.Join(list, ", ")
}

// partsSource is the samples of all parts, in the order of the source.
type partsSource struct{ parts []*part }

// Info implements source.Source.
func (s partsSource) Info() source.Info { return s.parts[0].Plan.info() }

// Close implements source.Source.
func (partsSource) Close() error { return nil }

// Samples implements source.Source.
func (s partsSource) Samples() iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		for _, p := range s.parts {
			if !p.samples(yield) {
				return
			}
		}
	}
}

// samples yields the samples of one part. It reports whether more are wanted.
func (p *part) samples(yield func(source.Sample, error) bool) bool {
	n := p.From
	send := func(list []trace, data source.Data) bool {
		for _, t := range list {
			n++
			if !yield(source.Sample{Name: t.name, Split: t.split, Data: made{t, data}}, nil) {
				return false
			}
		}
		return true
	}
	more, err := p.records(func(data source.Data, traces []byte) (bool, error) {
		list, err := readTraces(traces, true)
		return err == nil && send(list, data), err
	})
	if err == nil && more {
		var tail []trace
		if tail, err = readTraces(p.Tail, false); err == nil {
			more = send(tail, nil)
		}
	}
	if err == nil && more && n != p.To {
		err = fmt.Errorf("it has %d samples, and not %d: %w", n-p.From, p.To-p.From, store.ErrCorrupt)
	}
	if err != nil {
		yield(source.Sample{}, fmt.Errorf("%s: %w", p.path, err))
		return false
	}
	return more
}

// records calls f for each record of the part, in order, as long as it wants more. Their
// checksums are compared.
func (p *part) records(f func(data source.Data, traces []byte) (bool, error)) (more bool, err error) {
	if p.Records == 0 {
		return true, nil
	}
	src, err := source.OpenRecords(p.path, p.schema())
	if err != nil {
		return false, err
	}
	defer src.Close()
	v, last := source.NewValues(len(p.Plan.Fields)+1), len(p.Plan.Fields)
	for sample, err := range src.Samples() {
		if err == nil {
			err = sample.Data.Read(v)
		}
		if err != nil {
			return false, err
		}
		if more, err := f(sample.Data, v.Get(last)); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}
