package mmapds

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/mmap"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// ErrClosed is the error of using a Dataset after Close.
var ErrClosed = errors.New("mmapds: the dataset is closed")

// Dataset is an open dataset. Its methods may be called from any goroutine. Everything but the
// leases, the counters and the caches is fixed by Open, so that reads take no common lock.
type Dataset struct {
	files   *store.Dataset
	split   string // the split that was asked for, "" for all records
	specs   []tensor.Spec
	fields  []*field // in the order of the schema
	byName  map[string]*field
	live    *live    // the records that are not deleted; nil if none is
	names   *Dataset // the field of source names, opened by itself; nil if there is none
	pager   Pager    // fetches what is not in the files; nil if all is
	checks  verification
	maps    []*mmap.Mapping
	pool    *chunk.Pool // decodes chunks; nil if nothing is packed
	handles handles
	held    *os.File // the lock that keeps the files of the open generation; nil if the dataset has but one generation, or a pager
	leases  leases
	closed  atomic.Bool
}

// Len returns the number of records.
func (d *Dataset) Len() int {
	if d.live != nil {
		return d.live.n
	}
	return int(d.files.Records)
}

// Stored returns the place at which a record is stored, among all stored records including deleted
// records. The place is the same in all later generations that have the record, so that it
// identifies the record across generations. Stored returns -1 for a record that does not exist.
func (d *Dataset) Stored(record int) int {
	if uint(record) >= uint(d.Len()) {
		return -1
	}
	place := record
	if d.live != nil {
		place = d.live.At(record)
	}
	if d.files.Manifest == nil {
		return place
	}
	for _, r := range rangesOf(d.files.Manifest, d.files.Split) {
		if n := int(r[1] - r[0]); place >= n {
			place -= n
			continue
		}
		return int(r[0]) + place
	}
	return -1
}

// Schema returns the fields. It must not be changed.
func (d *Dataset) Schema() store.Schema { return d.files.Schema }

// Specs returns names, types and record shapes of the fields. It must not be changed.
func (d *Dataset) Specs() []tensor.Spec { return d.specs }

// Classes returns the names of the values 0, 1, ... of a label field; nil if the field has no names, or there
// is no such field. The caller must not change the slice.
func (d *Dataset) Classes(field string) []string {
	if i := d.files.Schema.Index(field); i >= 0 {
		return d.files.Schema.Fields[i].Classes
	}
	return nil
}

// Bounds returns limits of the numbers in a field: the least and the largest number of the
// manifest's statistics. It returns false if there are no statistics, or if they leave out NaNs or
// infinities. Numbers beyond 2^53 may have been rounded to float64, so that their limits are
// widened by one step.
func (d *Dataset) Bounds(field string, _, _ int) (low, high float64, ok bool) {
	m := d.files.Manifest
	if m == nil || m.Statistics[field] == nil || m.Statistics[field].NonFinite > 0 {
		return 0, 0, false
	}
	const exact = 1 << 53 // up to which float64 has all whole numbers
	low, high = m.Statistics[field].Min, m.Statistics[field].Max
	if low < -exact || low > exact {
		low = math.Nextafter(low, math.Inf(-1))
	}
	if high < -exact || high > exact {
		high = math.Nextafter(high, math.Inf(1))
	}
	return low, high, true
}

// Manifest returns the dataset's manifest, or nil for an HDF5 file that another program
// wrote. It must not be changed.
func (d *Dataset) Manifest() *store.Manifest { return d.files.Manifest }

// ID identifies the records: the manifest's id and, for a split, its name; for a .npy file, a
// digest of samples of its bytes. It is empty for an HDF5 file that another program wrote. A
// loader's State resumes only with the same ID.
func (d *Dataset) ID() string {
	if d.files.Manifest == nil {
		return layout.Of(d.files).Digest
	}
	if d.live == nil && d.files.Manifest.Deleted != nil {
		return idOf(d.files.Manifest, d.split) + "+deleted"
	}
	return idOf(d.files.Manifest, d.split)
}

// idOf returns the ID of a split, or of the whole dataset if split is "".
func idOf(m *store.Manifest, split string) string {
	if split != "" {
		return m.ID + "/" + split
	}
	return m.ID
}

// Files returns where the records are on disk. It must not be changed.
func (d *Dataset) Files() *store.Dataset { return d.files }

// SourceName returns the name that the source had for a record when the dataset was made: the path
// of its file, or the member of its archive. It is "" if the dataset stores no names (preprocess
// --names). If the names have to be fetched, SourceName waits for them.
func (d *Dataset) SourceName(ctx context.Context, record int) (string, error) {
	if d.closed.Load() {
		return "", ErrClosed
	}
	if d.names == nil {
		return "", nil
	}
	var offsets [2]int64
	name, err := d.names.GatherRagged(ctx, d.names.specs[0].Name, []int{record}, offsets[:], nil)
	return string(name), err
}

// Retain takes a lease: until Release, Close waits and views stay valid. After Close it returns
// ErrClosed, and there is nothing to release. Retain is one atomic addition and allocates nothing,
// since a loader calls it for every batch.
func (d *Dataset) Retain() error { return d.leases.take() }

// Release gives a lease back. It panics if no lease is held, because an extra Release would
// let Close unmap memory in use.
func (d *Dataset) Release() { d.leases.drop() }

// Close waits for all leases and unmaps the files. A goroutine that holds a lease must not call it,
// since it would wait for itself. Views are invalid afterwards. Close of a closed Dataset does
// nothing and returns ErrClosed.
func (d *Dataset) Close() error {
	if !d.leases.close() {
		return ErrClosed
	}
	d.closed.Store(true)
	var err error
	if d.names != nil {
		err = d.names.Close()
	}
	return errors.Join(err, d.unmap(), closeFile(d.held))
}

// unmap frees all that Open took except for the lock. The pool goes first: its goroutines read
// mapped memory.
func (d *Dataset) unmap() error {
	if d.pool != nil {
		d.pool.Close()
	}
	errs := []error{d.handles.close()}
	for _, m := range d.maps {
		errs = append(errs, m.Unmap())
	}
	return errors.Join(errs...)
}

// field returns the field of that name.
func (d *Dataset) field(name string) (*field, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	if f := d.byName[name]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("mmapds: %q has no field %q", d.files.Path, name)
}

// rows returns the reader of a field whose records have one length.
func (d *Dataset) rows(name string) (*reader, error) {
	f, err := d.field(name)
	if err != nil {
		return nil, err
	}
	if f.offsets != nil {
		return nil, fmt.Errorf("mmapds: field %q: its records have lengths of their own; "+
			"use SliceRagged or GatherRagged", name)
	}
	return f.rows, nil
}

// ragged returns a ragged field of which records [a, b) exist.
func (d *Dataset) ragged(name string, a, b int) (*field, error) {
	f, err := d.field(name)
	if err != nil {
		return nil, err
	}
	if f.offsets == nil {
		return nil, fmt.Errorf("mmapds: field %q: its records are all of one length; use Slice or Gather", name)
	}
	return f, f.check(a, b)
}
