package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/store"
)

// Concatenation is the Container of a flat dataset that takes over the shards of other datasets, one after the other.
// Its records carry only the values that statistics need, see SetStored of package digest. It keeps no journal.
type Concatenation struct {
	Parts func() ([]*store.Manifest, error) // the datasets' manifests, once all records were appended
	// Take puts a file of the dataset with that number in Parts into the stage, under a new name.
	Take func(dataset int, from store.File, to string) error

	stage    *Stage
	schema   store.Schema
	manifest *ManifestBuilder
	sums     []uint32
}

// Concatenable reports whether the statistics of a field can be added up from the statistics of datasets. Statistics of
// bytes are sums of integers, which do not depend on the order. The last bits of other statistics depend on where the
// records are cut, so a concatenation would differ from the same records written one by one.
func Concatenable(f store.Field) bool { return isByte(f.DType) }

// NewConcatenation begins a dataset in a stage.
func NewConcatenation(stage *Stage, schema store.Schema) *Concatenation {
	return &Concatenation{stage: stage, schema: schema, manifest: NewManifestBuilder(schema),
		sums: make([]uint32, len(schema.Fields))}
}

// Append enters a record into identity and statistics. Its values are in files that Commit takes over.
func (a *Concatenation) Append(r *store.Record) error { return a.manifest.Add(r, a.sums) }

// Records implements [Records].
func (a *Concatenation) Records() int64 { return a.manifest.Records() }

// Checkpoint implements [Records].
func (a *Concatenation) Checkpoint(json.RawMessage) error { return nil }

// Kept implements [Records].
func (a *Concatenation) Kept() store.Kept { return store.Kept{} }

// Close implements Container.
func (a *Concatenation) Close() error { return nil }

// Commit takes all files and publishes the dataset. It refuses shards with more or fewer records than Append has
// entered: the identity would not be the identity of the stored records.
func (a *Concatenation) Commit(info store.Info) (*store.Manifest, error) {
	datasets, err := a.Parts()
	if err != nil {
		return nil, err
	}
	shards, records, err := a.takeAll(datasets)
	if err != nil {
		return nil, err
	}
	if records != a.Records() {
		return nil, fmt.Errorf("their shards have %d records, and not %d: %w", records, a.Records(), store.ErrCorrupt)
	}
	m := a.manifest.Manifest(info)
	m.Shards = shards
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if err := a.stage.Folder.WriteFile(layout.ManifestName, text); err != nil {
		return nil, err
	}
	return m, a.stage.PublishFolder()
}

// takenAtOnce is how many files are linked or copied at a time: taking a file is a link, a copy in a bucket or a copy of
// gigabytes, which all wait and do not compute.
const takenAtOnce = 16

// takeAll takes the files of all datasets, several at a time, and lists their shards, numbered in the new dataset.
// After the first error no further file is taken.
func (a *Concatenation) takeAll(datasets []*store.Manifest) (shards []store.Shard, records int64, err error) {
	all, failed := errgroup.WithContext(context.Background())
	all.SetLimit(takenAtOnce)
	for i, d := range datasets {
		take := func(from store.File, to string) {
			all.Go(func() error {
				if failed.Err() != nil {
					return nil
				}
				return a.Take(i, from, to)
			})
		}
		if err = a.addStatistics(d); err != nil {
			break
		}
		for _, s := range d.Shards {
			s.First = records
			if s.Files, err = a.files(s, len(shards), take); err != nil {
				return nil, 0, errors.Join(err, all.Wait())
			}
			shards = append(shards, s)
			records += s.Count
		}
	}
	return shards, records, errors.Join(err, all.Wait())
}

// files takes the files of a shard under names that follow from its new number, and lists them. Fields that only the
// other dataset has come last in its shards, and their files are not taken.
func (a *Concatenation) files(s store.Shard, number int, take func(from store.File, to string)) (list []store.File,
	err error) {
	for k, c := range layout.Columns(a.schema.Specs()) {
		if len(s.Files) < 2*k+2 {
			return nil, fmt.Errorf("a shard has %d files: %w", len(s.Files), store.ErrCorrupt)
		}
		payload, sums := c.Files(number, 0)
		for i, name := range []string{payload.Name, sums.Name} {
			f := s.Files[2*k+i]
			take(f, name)
			f.Name = name
			list = append(list, f)
		}
	}
	return list, nil
}

// addStatistics adds the statistics of a dataset's stored values, which Append did not see.
func (a *Concatenation) addStatistics(d *store.Manifest) error {
	theirs := NewManifestBuilder(store.Schema{Fields: d.Fields})
	if err := theirs.Restore(d.BuilderState); err != nil {
		return err
	}
	for i, f := range a.schema.Fields {
		if Concatenable(f) {
			mergeAll(a.manifest.metadata[0].stats[i], theirs.metadata[0].stats[i])
		}
	}
	return nil
}

func mergeAll(to, from []moments.Moments) {
	for c := range to {
		to[c].Merge(from[c])
	}
}
