package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Dataset is a dataset in a bucket, read by way of its mirror. Its methods may be called from
// any goroutine.
type Dataset struct {
	opts      Options
	client    *remote.Client
	etag      string // of an HDF5 file: no other version of it is read
	seal      seal   // of a flat dataset
	name      string // where it lies, for people
	dir       string // of the mirror
	path      string // in it, of the dataset
	root      *os.Root
	state     *state
	grid      *grid
	local     *mmapds.Dataset
	windows   []window
	fields    []field
	chunkFile *chunkFile // of columns that are packed; nil if there are none

	trip   time.Duration // what the first answer of the store took
	fits   bool          // all of it may be in the mirror at once
	left   atomic.Int64  // wanted blocks that are not known to be right
	whole  atomic.Bool   // none is left, and none will be taken out
	pins   pins
	keeper *keeper
	memory memory
	engine engine
	counts counts
	done   atomic.Bool
	ctx    context.Context // of fetches; done at Close
	cancel context.CancelFunc
}

// Open opens the dataset under a key of a bucket: a flat folder or an HDF5 file. What it holds
// is read from its manifest; of the records nothing is fetched yet. The bucket is the Dataset's
// from then on, and closed with it.
//
// Errors of the store are those of package remote; a manifest that cannot be true is
// store.ErrCorrupt.
func Open(ctx context.Context, b remote.Bucket, key string, opts Options) (*Dataset, error) {
	opts, err := opts.resolve()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mirror: %w", err), b.Close())
	}
	d := &Dataset{opts: opts, client: remote.NewClient(b, opts.Policy)}
	d.name = d.client.Name(key)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if err := d.open(ctx, key); err != nil {
		return nil, errors.Join(fmt.Errorf("mirror: open %s: %w", d.name, err), d.Close())
	}
	return d, nil
}

func (d *Dataset) open(ctx context.Context, key string) error {
	if err := makeCache(d.opts.CacheDir); err != nil {
		return err
	}
	began := time.Now()
	plan, err := d.plan(ctx, key)
	if err != nil {
		return err
	}
	d.trip = time.Since(began)
	d.dir = filepath.Join(d.opts.CacheDir, plan.folder)
	if d.root, err = openFolder(d.dir); err != nil {
		return err
	}
	d.keeper = newKeeper(d.opts.CacheDir, plan.folder, d.opts.CacheBytes)
	whole, err := plan.prepare(ctx, d)
	if err != nil {
		return err
	}
	d.path = plan.path(d.dir)
	if d.local, err = mmapds.OpenWith(d.path, mmapds.Options{Fields: d.opts.Fields, Split: d.opts.Split}); err != nil {
		return err
	}
	if d.windows, err = d.grid.view(d.local.Files(), whole); err != nil {
		return err
	}
	if err := d.openPacked(); err != nil {
		return err
	}
	d.settle()
	return nil
}

// settle prepares what reading needs.
func (d *Dataset) settle() {
	d.fits = d.grid.bytes <= d.keeper.limit-d.keeper.limit/20 && d.state.me >= 0
	for _, x := range d.grid.extents {
		if x.wanted {
			d.left.Add(x.count)
		}
	}
	d.whole.Store(d.fits && d.left.Load() == 0)
	d.pins.init(d.grid.segments)
	d.memory.limit = d.opts.MemoryBytes
	d.engine.init(d)
	for i, spec := range d.local.Specs() {
		d.fields = append(d.fields, d.newField(i, spec))
	}
}

// Len returns the number of records.
func (d *Dataset) Len() int { return d.local.Len() }

// Schema returns the fields. It must not be changed.
func (d *Dataset) Schema() store.Schema { return d.local.Schema() }

// Specs returns names, types and record shapes of the fields. It must not be changed.
func (d *Dataset) Specs() []tensor.Spec { return d.local.Specs() }

// Manifest returns what the writer recorded, or nil for an HDF5 file of other origin.
func (d *Dataset) Manifest() *store.Manifest { return d.local.Manifest() }

// ID identifies the records: the same as that of a local copy, so that a loader's state of one
// goes on with the other.
func (d *Dataset) ID() string { return d.local.ID() }

// Name returns where the dataset lies, without credentials.
func (d *Dataset) Name() string { return d.name }

// Dir returns the folder of the mirror.
func (d *Dataset) Dir() string { return d.dir }

// Path returns what a Complete mirror can be opened by, as a local dataset: its folder, or the
// file in it.
func (d *Dataset) Path() string { return d.path }

// Complete reports whether all fields that are open are in the mirror and were compared with
// their checksums, so that nothing more will be fetched.
func (d *Dataset) Complete() bool { return d.whole.Load() }

// Retain takes a lease: until Release, Close waits and views stay valid.
func (d *Dataset) Retain() error { return d.local.Retain() }

// Release gives a lease back.
func (d *Dataset) Release() { d.local.Release() }

// Close waits for all leases, ends what is being fetched, and lets go of the mirror, which
// stays for the next time. A second Close does nothing.
func (d *Dataset) Close() error {
	if !d.done.CompareAndSwap(false, true) {
		return nil
	}
	d.cancel()
	var errs []error
	if d.local != nil {
		errs = append(errs, d.local.Close())
	}
	d.engine.wait()
	if d.chunkFile != nil {
		errs = append(errs, d.chunkFile.close())
	}
	if d.state != nil {
		errs = append(errs, d.state.leave())
	}
	if d.root != nil {
		errs = append(errs, d.root.Close())
	}
	return errors.Join(append(errs, d.client.Close())...)
}

// window returns the array of a field whose records have one length.
func (d *Dataset) window(name string) (*window, error) {
	f, err := d.field(name)
	if err != nil {
		return nil, err
	}
	if f.offsets != nil {
		return nil, fmt.Errorf("mirror: field %q: its records have lengths of their own; use SliceRagged or GatherRagged", name)
	}
	return f.rows, nil
}

func (d *Dataset) field(name string) (*field, error) {
	for i := range d.fields {
		if d.fields[i].spec.Name == name {
			return &d.fields[i], nil
		}
	}
	return nil, fmt.Errorf("mirror: %s has no field %q", d.name, name)
}

func (d *Dataset) checkRange(a, b int) error {
	if a < 0 || b < a || b > d.Len() {
		return fmt.Errorf("mirror: %s: records [%d, %d) are not of its %d", d.name, a, b, d.Len())
	}
	return nil
}

// Contiguous reports whether Run gives a view. Where records are taken out of the mirror to
// make room for others, or had no room there, it never does.
func (d *Dataset) Contiguous(field string, a, b int) bool {
	return d.fits && !d.memory.active() && d.local.Contiguous(field, a, b)
}

// Run returns records [a, b) of a field as one array, after they were fetched.
func (d *Dataset) Slice(field string, a, b int) (tensor.View, error) {
	if d.whole.Load() {
		if v, err := d.local.Slice(field, a, b); !d.mends(err) {
			return v, err
		}
	}
	w, err := d.window(field)
	if err == nil {
		err = d.checkRange(a, b)
	}
	if err != nil {
		return tensor.View{}, err
	}
	if w.packed != nil {
		dst := make([]byte, int64(b-a)*w.size)
		if err := d.readRuns(d.ctx, w, w.runs(nil, int64(a), int64(b), 0), dst, nil); err != nil {
			return tensor.View{}, err
		}
		return tensor.Of(d.spec(field), b-a, dst), nil
	}
	use, err := d.ensure(d.ctx, w.ranges(nil, int64(a), int64(b)))
	if err != nil {
		return tensor.View{}, err
	}
	defer use.end()
	if d.fits && len(use.held) == 0 {
		return d.local.Slice(field, a, b)
	}
	dst := make([]byte, int64(b-a)*w.size)
	if err := d.copyRows(w, use, int64(a), int64(b), dst); err != nil {
		return tensor.View{}, err
	}
	return tensor.Of(d.spec(field), b-a, dst), nil
}

func (d *Dataset) spec(field string) tensor.Spec {
	return d.Specs()[d.Schema().Index(field)]
}

// Gather copies records indices to dst, as mmapds does, after those that are not there were
// fetched, many at a time.
func (d *Dataset) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	if d.whole.Load() {
		if err := d.local.Gather(ctx, field, indices, dst); !d.mends(err) {
			return err
		}
	}
	w, err := d.window(field)
	if err != nil {
		return err
	}
	if int64(len(dst)) != int64(len(indices))*w.size {
		panic("mirror: Gather: dst has not the length of the records asked for")
	}
	for _, i := range indices {
		if err := d.checkRange(i, i+1); err != nil {
			return err
		}
	}
	if w.packed != nil {
		return d.gatherPacked(ctx, w, indices, dst)
	}
	var ranges []blocks
	for _, i := range indices {
		ranges = w.ranges(ranges, int64(i), int64(i)+1)
	}
	use, err := d.ensureAlong(ctx, ranges, func() []blocks { return d.tiny(w, indices) })
	if err != nil {
		return err
	}
	defer use.end()
	if len(use.held) == 0 {
		return d.local.Gather(ctx, field, indices, dst)
	}
	for k, i := range indices {
		if err := d.copyRows(w, use, int64(i), int64(i)+1, dst[int64(k)*w.size:int64(k+1)*w.size]); err != nil {
			return err
		}
	}
	return nil
}

// tinyRecord is the size up to which what belongs to a record comes with the rest of it: labels,
// which are little, and without which a batch is not whole.
const tinyRecord = 64

// tiny returns the blocks of other fields than that of w that belong to records.
func (d *Dataset) tiny(w *window, indices []int) (list []blocks) {
	if !d.fits {
		return nil
	}
	for _, f := range d.fields {
		if f.rows == w || f.offsets != nil || f.rows.size > tinyRecord {
			continue
		}
		for _, i := range indices {
			list = f.rows.ranges(list, int64(i), int64(i)+1)
		}
	}
	return list
}

// Prefetch starts to fetch records [a, b), and does not wait: where much is asked for already,
// it does nothing.
func (d *Dataset) Prefetch(field string, a, b int) error {
	if d.whole.Load() {
		return d.local.Prefetch(field, a, b)
	}
	f, err := d.field(field)
	if err != nil || d.checkRange(a, b) != nil || f.offsets != nil {
		return err
	}
	d.engine.ahead(d.ctx, f.rows.ranges(nil, int64(a), int64(b)), false)
	return nil
}

// Warm fetches records [a, b) and reads them into memory.
func (d *Dataset) Warm(field string, a, b int) error {
	if d.whole.Load() {
		return d.local.Warm(field, a, b)
	}
	f, err := d.field(field)
	if err == nil {
		err = d.checkRange(a, b)
	}
	if err != nil {
		return err
	}
	use, err := d.ensureRecords(d.ctx, f, a, b)
	if err != nil {
		return err
	}
	defer use.end()
	if len(use.held) > 0 {
		return nil
	}
	return d.local.Warm(field, a, b)
}

// Guard calls f. If f touches memory of the mirror that its file no longer has, Guard returns an
// error that names file, field and record: see mmapds.Dataset.Guard.
func (d *Dataset) Guard(f func() error) error { return d.local.Guard(f) }

// Fault returns why a read at addr failed, if addr lies in memory of the mirror, or nil.
func (d *Dataset) Fault(addr uintptr) error { return d.local.Fault(addr) }

// IsWarm reports whether Run of records [a, b) needs no Warm: never before the mirror is Complete.
func (d *Dataset) IsWarm(field string, a, b int) bool {
	return d.whole.Load() && d.local.IsWarm(field, a, b)
}

// Where says where a record is, or will be, in the mirror, for people; "" where that is not known, as of
// ragged fields before the mirror is Complete.
func (d *Dataset) Location(field string, record int) string {
	if i := d.Schema().Index(field); i < 0 || d.Specs()[i].Ragged && !d.Complete() {
		return ""
	}
	return d.local.Location(field, record)
}

// Reads says how a field is read, for people.
func (d *Dataset) DescribeReads(field string) (how, why string, resident float64) {
	how, why, resident = d.local.DescribeReads(field)
	st := d.Stats()
	how += " by way of a mirror"
	if why != "" {
		why += "; "
	}
	why += fmt.Sprintf("%.0f %% of it are here", 100*st.Present)
	if st.Streaming != "" {
		why += "; what finds no room is held in memory: " + st.Streaming
	}
	return how, why, resident
}
