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

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/dataset"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Set is the parts of a dataset. As a source, it is their samples in the order of the source.
type Set struct {
	Plan *Plan
	Keep bool // values of fields that are write.Concatenable are not read

	folders []string
	parts   []*Part // by rank; nil: not seen yet
	wait    func(missing string) error
}

// Find returns the parts in some folders: all that there must be, each once.
func Find(folders []string) (*Set, error) {
	parts, err := readAll(folders)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%s: it has no complete parts; every rank builds one: %s",
			strings.Join(folders, " "), shell.Penstock("preprocess SOURCE DEST --rank R --world-size N"))
	}
	return &Set{Plan: parts[0].Plan, parts: parts}, checkParts(parts)
}

// Await is like Find, but waits for missing parts: the samples of a part come when it exists. Between two looks for a
// part, it calls wait, and stops at the error of that.
func Await(folders []string, wait func(missing string) error) (*Set, error) {
	for {
		for _, folder := range folders {
			names, err := List(folder)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if len(names) > 0 {
				p, err := Read(names[0])
				if err != nil {
					return nil, err
				}
				return &Set{Plan: p.Plan, folders: folders, parts: make([]*Part, p.Plan.Size), wait: wait}, nil
			}
		}
		if err := wait("the first part"); err != nil {
			return nil, err
		}
	}
}

// readAll reads all parts in some folders, by rank.
func readAll(folders []string) (parts []*Part, err error) {
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
	slices.SortStableFunc(parts, func(a, b *Part) int { return a.Rank - b.Rank })
	return parts, nil
}

// part returns the part of a rank, once it exists.
func (s *Set) part(rank int) (p *Part, err error) {
	for s.parts[rank] == nil {
		for _, folder := range s.folders {
			p, err = Read(filepath.Join(folder, Name(rank, s.Plan.Size)))
			if !errors.Is(err, fs.ErrNotExist) {
				break
			}
		}
		switch {
		case err == nil:
			if diff := s.Plan.Differs(p.Plan); diff != "" {
				return nil, fmt.Errorf("%s is not a part of the same dataset as the others: they differ in %s", p.Path, diff)
			}
			s.parts[rank] = p
			return p, p.There()
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		if err := s.wait(fmt.Sprintf("part %d of %d", rank, s.Plan.Size)); err != nil {
			return nil, err
		}
	}
	return s.parts[rank], nil
}

// List returns the paths of the parts in a folder that are whole.
func List(folder string) (list []string, err error) {
	entries, err := vfs.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &noFolder{folder}
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && strings.HasPrefix(name, "part-") {
			list = append(list, filepath.Join(folder, name))
		}
	}
	return list, err
}

// noFolder is the error of a folder of parts that is not there.
type noFolder struct{ folder string }

func (e *noFolder) Error() string {
	return e.folder + ": there is no such folder of parts; every rank builds one: " +
		shell.Penstock("preprocess SOURCE DEST --rank R --world-size N")
}

func (*noFolder) Unwrap() error { return fs.ErrNotExist }

// checkParts refuses parts that do not make one dataset, each once.
func checkParts(parts []*Part) error {
	first := parts[0]
	for i, p := range parts[1:] {
		if diff := first.Plan.Differs(p.Plan); diff != "" {
			return fmt.Errorf("%s and %s are not parts of one dataset: they differ in %s", first.Path, p.Path, diff)
		}
		if p.Rank == parts[i].Rank {
			return fmt.Errorf("part %d exists twice: %s and %s; remove one", p.Rank, parts[i].Path, p.Path)
		}
	}
	if len(parts) < first.Plan.Size {
		return fmt.Errorf("%d of %d parts are missing: %s; run these ranks, then merge again", first.Plan.Size-len(parts),
			first.Plan.Size, missing(parts, first.Plan.Size))
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

// Info implements source.Source.
func (s *Set) Info() source.Info { return s.Plan.Info() }

// Close implements source.Source.
func (*Set) Close() error { return nil }

// Samples implements source.Source.
func (s *Set) Samples() iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		for rank := range s.parts {
			p, err := s.part(rank)
			if err != nil {
				yield(source.Sample{}, err)
				return
			}
			if !p.samples(p.readFields(s.Keep), yield) {
				return
			}
		}
	}
}

// readFields returns the positions of the fields whose values are read.
func (p *Part) readFields(keep bool) (list []int) {
	for i, f := range p.Plan.Fields {
		if !keep || !write.Concatenable(f) {
			list = append(list, i)
		}
	}
	return list
}

// samples yields the samples of one part with the values of some fields. It reports whether more are wanted.
func (p *Part) samples(fields []int, yield func(source.Sample, error) bool) bool {
	n := p.From
	send := func(list []Trace, data source.Data) bool {
		for _, t := range list {
			n++
			if !yield(source.Sample{Name: t.Name, Split: t.Split, Data: Finished{t, fields, data}}, nil) {
				return false
			}
		}
		return true
	}
	more, err := p.records(fields, func(data source.Data, traces []byte) (bool, error) {
		list, err := readRecord(traces)
		if n := len(list); err == nil && len(list[n-1].Values) != len(p.Plan.Fields) {
			err = errTrace
		}
		return err == nil && send(list, data), err
	})
	if err == nil && more {
		var tail []Trace
		if tail, err = readTail(p.Tail); err == nil {
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

// records calls f for each record of the part, in order, as long as it wants more, with the values of some fields.
// These are compared with their checksums.
func (p *Part) records(fields []int, f func(data source.Data, traces []byte) (bool, error)) (more bool, err error) {
	if p.Records == 0 {
		return true, nil
	}
	if _, err := p.Manifest(); err != nil {
		return false, err
	}
	src, err := dataset.OpenRecords(p.dataset, p.schema(), append(fields[:len(fields):len(fields)], len(p.Plan.Fields)))
	if err != nil {
		return false, err
	}
	defer src.Close()
	v, last := source.NewValues(len(fields)+1), len(fields)
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

// MakeFolder creates the folder of the parts. If it exists, this user must own it.
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
		return private.Unwritable(parent, err)
	}
	folder, err := private.Own(parent, name)
	if err != nil {
		return err
	}
	return folder.Close()
}

// Digest identifies the parts. If some parts may still be missing, the plan identifies all of them.
func (s *Set) Digest() string {
	h := sha256.New()
	add := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			panic("preprocess: a part has no JSON: " + err.Error())
		}
		h.Write(text)
	}
	if s.wait != nil {
		add(s.Plan)
	} else {
		for _, p := range s.parts {
			add(p)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
