package part

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/source/dataset"
	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// Find returns the parts in some folders, by rank: all that there must be, each once.
func Find(folders []string) ([]*Part, error) {
	var parts []*Part
	for _, folder := range folders {
		names, err := List(folder)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			p, err := Read(name)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%s: there are no parts in it that are whole; every rank makes one: preprocess SOURCE DEST --rank R --world-size N", strings.Join(folders, " "))
	}
	slices.SortStableFunc(parts, func(a, b *Part) int { return a.Rank - b.Rank })
	return parts, checkParts(parts)
}

// List returns the paths of the parts in a folder that are whole.
func List(folder string) (list []string, err error) {
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
func checkParts(parts []*Part) error {
	first := parts[0]
	for i, p := range parts[1:] {
		if diff := first.Plan.Differs(p.Plan); diff != "" {
			return fmt.Errorf("%s and %s are not parts of one dataset: they differ in %s", first.Path, p.Path, diff)
		}
		if p.Rank == parts[i].Rank {
			return fmt.Errorf("part %d is there twice: %s and %s; remove one", p.Rank, parts[i].Path, p.Path)
		}
	}
	if len(parts) < first.Plan.Size {
		return fmt.Errorf("%d of %d parts are missing: %s; run these ranks, then merge again", first.Plan.Size-len(parts), first.Plan.Size, missing(parts, first.Plan.Size))
	}
	var errs []error
	for _, p := range parts {
		errs = append(errs, p.There())
	}
	return errors.Join(errs...)
}

// missing lists the ranks that have no part, such as "2, 5 to 7".
func missing(parts []*Part, size int) string {
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

// Samples is the samples of all parts, in the order of the source.
type Samples struct{ Parts []*Part }

// Info implements source.Source.
func (s Samples) Info() source.Info { return s.Parts[0].Plan.Info() }

// Close implements source.Source.
func (Samples) Close() error { return nil }

// Samples implements source.Source.
func (s Samples) Samples() iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		for _, p := range s.Parts {
			if !p.samples(yield) {
				return
			}
		}
	}
}

// samples yields the samples of one part. It reports whether more are wanted.
func (p *Part) samples(yield func(source.Sample, error) bool) bool {
	n := p.From
	send := func(list []Trace, data source.Data) bool {
		for _, t := range list {
			n++
			if !yield(source.Sample{Name: t.Name, Split: t.Split, Data: Finished{t, data}}, nil) {
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
		var tail []Trace
		if tail, err = readTraces(p.Tail, false); err == nil {
			more = send(tail, nil)
		}
	}
	if err == nil && more && n != p.To {
		err = fmt.Errorf("it has %d samples, and not %d: %w", n-p.From, p.To-p.From, store.ErrCorrupt)
	}
	if err != nil {
		yield(source.Sample{}, fmt.Errorf("%s: %w", p.Path, err))
		return false
	}
	return more
}

// records calls f for each record of the part, in order, as long as it wants more. Their
// checksums are compared.
func (p *Part) records(f func(data source.Data, traces []byte) (bool, error)) (more bool, err error) {
	if p.Records == 0 {
		return true, nil
	}
	src, err := dataset.OpenRecords(p.Path, p.schema())
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

// MakeFolder makes the folder of the parts. One that is there must be a folder of this user.
func MakeFolder(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	parent, name, err := private.Parent(path)
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := parent.Mkdir(name, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	folder, err := private.Own(parent, name)
	if err != nil {
		return err
	}
	return folder.Close()
}

// Digest identifies a set of parts.
func Digest(parts []*Part) string {
	h := sha256.New()
	for _, p := range parts {
		text, err := json.Marshal(p)
		if err != nil {
			panic("preprocess: a part has no JSON: " + err.Error())
		}
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
