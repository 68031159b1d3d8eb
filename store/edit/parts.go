package edit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/block"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/write"
)

// Part is one of World parts of the records of a dataset, whose values one rank writes.
type Part struct{ Rank, World int }

// Range returns the records [first, end) of n that are in the part.
func (p Part) Range(n int64) (first, end int64) {
	rank, world := int64(p.Rank), int64(p.World)
	return rank * n / world, (rank + 1) * n / world
}

// WritePart writes a rank's values of a new field of the dataset at path, for [MergeParts]. They are
// numbered from 0, and kept in a folder next to the dataset, which is not changed. A part that was written before is
// replaced; with a Journal that says Resume it is continued, or left if it is complete.
func WritePart(path string, f store.Field, values Values, p Part, opts Options) error {
	if err := writePart(path, f, values, p, opts); err != nil {
		return fmt.Errorf("store: part %d of %d of column %q of %q: %w", p.Rank, p.World, f.Name, path, err)
	}
	return nil
}

func writePart(path string, f store.Field, values Values, p Part, opts Options) error {
	if p.World < 1 || p.Rank < 0 || p.Rank >= p.World {
		return errors.New("a rank is at least 0 and less than their number")
	}
	if err := At(path).checkColumn(f, write.New); err != nil {
		return err
	}
	base, err := generationOf(path, opts.Of)
	if err != nil {
		return err
	}
	first, end := p.Range(base.Live())
	if first == end {
		return fmt.Errorf("the dataset has %d records, fewer than ranks: no value is in the part", base.Live())
	}
	dest := partPath(path, f.Name, p)
	resume := opts.Journal != nil && opts.Journal.Resume
	if m, err := store.ReadManifest(dest); err == nil && resume && maps.Equal(m.Recipe.Options, inputsOf(base, f)) {
		return nil
	}
	flatOptions := flat.Options{Overwrite: true}
	if opts.Journal != nil {
		flatOptions.Journal = &store.Journal{Inputs: inputsOf(base, f), Resume: resume}
	}
	w, err := flat.Create(dest, store.Schema{Fields: []store.Field{f}}, flatOptions)
	if err != nil {
		return err
	}
	err = fillPart(w, f, values, end-first, opts)
	if err == nil {
		_, err = w.Commit(store.Info{Recipe: &store.Recipe{Program: "penstock", Options: inputsOf(base, f)}})
	}
	return errors.Join(err, w.Close())
}

// generationOf returns the manifest of a generation, 0 for the newest one.
func generationOf(path string, generation int) (*store.Manifest, error) {
	if generation > 0 {
		path = fmt.Sprintf("%s@%d", layout.Folder(path), generation)
	}
	return store.ReadManifest(path)
}

// inputsOf describes the records and the field of a part.
func inputsOf(base *store.Manifest, f store.Field) map[string]string {
	return map[string]string{"column": f.Name, "generation": strconv.Itoa(base.Generation), "id": base.ID}
}

// partPath returns the folder of a part.
func partPath(path, name string, p Part) string {
	return fmt.Sprintf("%s%05d-of-%05d", partPrefix(path, name), p.Rank, p.World)
}

func partPrefix(path, name string) string {
	folder := filepath.Clean(layout.Folder(path))
	return filepath.Join(filepath.Dir(folder), "."+filepath.Base(folder)+"."+name+".part-")
}

// fillPart writes n values.
func fillPart(w store.Writer, f store.Field, values Values, n int64, opts Options) error {
	record := store.NewRecord(store.Schema{Fields: []store.Field{f}})
	next, kept := w.Kept().Records, time.Now()
	for value, err := range values(next) {
		switch {
		case err != nil:
		case next == n:
			err = fmt.Errorf("there are more than %d values, and the part has %d records", n, n)
		case !f.Ragged && len(value) != f.RecordBytes():
			err = fmt.Errorf("value %d has %d bytes, and the field %d", next, len(value), f.RecordBytes())
		default:
			record.Values[0] = append(record.Values[0][:0], value...)
			err = w.Append(record)
			next++
		}
		if err == nil && opts.Journal != nil && time.Since(kept) > keepEvery {
			err, kept = w.Checkpoint(nil), time.Now()
		}
		if err != nil {
			return errors.Join(err, w.Checkpoint(nil))
		}
	}
	if next < n {
		return errors.Join(fmt.Errorf("there are %d values, and the part has %d records", next, n), w.Checkpoint(nil))
	}
	return nil
}

// MergeParts adds a field, whose values the ranks have written by [WritePart], to the dataset at path, and removes the
// parts. The error says which parts are missing, or of other generations or numbers of ranks.
func MergeParts(path, name string, opts Options) (*store.Manifest, error) {
	m, err := mergeParts(path, name, opts)
	if err != nil {
		return nil, fmt.Errorf("store: merge the parts of column %q of %q: %w", name, path, err)
	}
	return m, nil
}

func mergeParts(path, name string, opts Options) (m *store.Manifest, err error) {
	if err := notFlat(path); err != nil {
		return nil, err
	}
	folders, err := partsOf(path, name)
	if err != nil {
		return nil, err
	}
	var parts []*mmapds.Dataset
	defer func() {
		for _, ds := range parts {
			err = errors.Join(err, ds.Close())
		}
	}()
	for _, folder := range folders {
		ds, err := mmapds.Open(folder, mmapds.WithVerify(mmapds.VerifyFirstTouch))
		if err != nil {
			return nil, err
		}
		parts = append(parts, ds)
	}
	if opts.Of, err = checkParts(path, folders, parts); err != nil {
		return nil, err
	}
	m, err = AddColumn(path, parts[0].Schema().Fields[0], valuesOfParts(parts), opts)
	if err != nil {
		return nil, err
	}
	return m, removeParts(folders)
}

func removeParts(folders []string) error {
	root, err := os.OpenRoot(filepath.Dir(folders[0]))
	if err != nil {
		return err
	}
	var errs []error
	for _, folder := range folders {
		errs = append(errs, root.RemoveAll(filepath.Base(folder)))
	}
	return errors.Join(append(errs, root.Close())...)
}

// partsOf returns the folders of all parts of a column, by rank.
func partsOf(path, name string) ([]string, error) {
	prefix := partPrefix(path, name)
	entries, err := os.ReadDir(filepath.Dir(prefix))
	if err != nil {
		return nil, err
	}
	world := 0
	for _, e := range entries {
		var p Part
		end, ok := strings.CutPrefix(e.Name(), filepath.Base(prefix))
		if _, err := fmt.Sscanf(end, "%05d-of-%05d", &p.Rank, &p.World); !ok || err != nil ||
			filepath.Base(partPath(path, name, p)) != e.Name() {
			continue
		}
		if world > 0 && p.World != world {
			return nil, fmt.Errorf("there are parts of %d ranks and of %d: remove those of one, %s*-of-%05d or %s*-of-%05d",
				world, p.World, prefix, world, prefix, p.World)
		}
		world = p.World
	}
	if world == 0 {
		return nil, errors.New("no rank has written a part of it: each runs column add with --rank and --world-size")
	}
	var folders []string
	var missing []string
	for rank := range world {
		folder := partPath(path, name, Part{rank, world})
		if _, err := os.Stat(folder); err != nil {
			missing = append(missing, strconv.Itoa(rank))
		}
		folders = append(folders, folder)
	}
	if missing != nil {
		return nil, fmt.Errorf("of %d ranks, these have not completed their parts: %s", world, strings.Join(missing, ", "))
	}
	return folders, nil
}

// checkParts checks that all parts have values of one field for the records of one generation, and returns the
// generation.
func checkParts(path string, folders []string, parts []*mmapds.Dataset) (generation int, err error) {
	first := parts[0].Manifest().Recipe.Options
	if generation, err = strconv.Atoi(first["generation"]); err != nil {
		return 0, fmt.Errorf("%q does not say of which generation it is; write it again", folders[0])
	}
	base, err := generationOf(path, generation)
	if err != nil {
		return 0, err
	}
	for rank, ds := range parts {
		from, end := Part{rank, len(parts)}.Range(base.Live())
		options := ds.Manifest().Recipe.Options
		switch {
		case options["generation"] != first["generation"] || options["id"] != base.ID:
			return 0, fmt.Errorf("the part of rank %d is of generation %s of a dataset %.12s, and that of rank 0 of generation "+
				"%s; generation %d of this one is %.12s: write the parts of one generation, by --of", rank,
				options["generation"], options["id"], first["generation"], generation, base.ID)
		case !reflect.DeepEqual(ds.Schema(), parts[0].Schema()):
			return 0, fmt.Errorf("the part of rank %d has the type %v, and that of rank 0 %v", rank, ds.Schema().Fields[0],
				parts[0].Schema().Fields[0])
		case int64(ds.Len()) != end-from:
			return 0, fmt.Errorf("the part of rank %d has %d records, and must have %d; write it again", rank, ds.Len(),
				end-from)
		}
	}
	return generation, nil
}

// valuesOfParts returns the values of parts one after the other.
func valuesOfParts(parts []*mmapds.Dataset) Values {
	return func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			skip := int(first)
			for _, ds := range parts {
				p := partReader{ds: ds, field: ds.Schema().Fields[0], next: min(skip, ds.Len())}
				skip -= p.next
				for p.next < ds.Len() {
					if err := p.read(); err != nil {
						yield(nil, err)
						return
					}
					if !p.each(yield) {
						return
					}
				}
			}
		}
	}
}

// A part is read in blocks of up to partBytes, in up to partRecords records, and one record at least.
const (
	partBytes   = 1 << 20
	partRecords = 8192
)

// partReader reads the records of a part in blocks.
type partReader struct {
	ds      *mmapds.Dataset
	field   store.Field
	next    int   // the record after the block
	indices []int // of the block
	lengths []int64
	block   block.Block
}

// read reads the next block.
func (p *partReader) read() error {
	size := p.field.RecordBytes()
	n := min(partRecords, p.ds.Len()-p.next)
	if !p.field.Ragged {
		n = min(n, max(1, partBytes/size))
	}
	p.indices = p.indices[:0]
	for i := range n {
		p.indices = append(p.indices, p.next+i)
	}
	if p.field.Ragged {
		p.lengths = slices.Grow(p.lengths[:0], n+1)[:n+1]
		if err := p.ds.Lengths(context.Background(), p.field.Name, p.indices, p.lengths); err != nil {
			return err
		}
		n = max(1, sort.Search(n, func(i int) bool { return p.lengths[i+1]*int64(size) > partBytes }))
	}
	p.indices, p.next = p.indices[:n], p.next+n
	return p.block.Read(context.Background(), p.ds, p.field.Spec, p.indices)
}

// each yields the values of the block, and reports whether more are wanted.
func (p *partReader) each(yield func([]byte, error) bool) bool {
	for i := range p.indices {
		if !yield(p.block.Value(i), nil) {
			return false
		}
	}
	return true
}
