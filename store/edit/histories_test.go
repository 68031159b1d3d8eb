package edit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

// content is a generation as it should be: fields and, of each, the values of all records.
type content struct {
	fields []store.Field
	values map[string][][]byte

	gone map[int]bool // places of deleted records
}

// lacking is the value of a deleted record in a column that was written since.
var lacking = []byte("lacking")

func lacks(value []byte) bool { return len(value) > 0 && &value[0] == &lacking[0] }

func (c content) clone() content {
	out := content{slices.Clone(c.fields), maps.Clone(c.values), maps.Clone(c.gone)}
	if out.gone == nil {
		out.gone = make(map[int]bool)
	}
	return out // values of a column are never changed
}

func (c content) stored() int { return len(c.values[c.fields[0].Name]) }

func (c content) records() int { return c.stored() - len(c.gone) }

// places returns where records are stored that are not deleted.
func (c content) places() (list []int) {
	for i := range c.stored() {
		if !c.gone[i] {
			list = append(list, i)
		}
	}
	return list
}

func (c content) put(f store.Field, values [][]byte) content {
	out := c.clone()
	i := (store.Schema{Fields: out.fields}).Index(f.Name)
	if len(c.gone) > 0 {
		all := slices.Repeat([][]byte{lacking}, c.stored())
		if i >= 0 && fits(out.fields[i], f) {
			copy(all, c.values[f.Name])
		}
		for k, i := range c.places() {
			all[i] = values[k]
		}
		values = all
	}
	if i >= 0 {
		out.fields[i] = f
	} else {
		out.fields = append(out.fields, f)
	}
	out.values[f.Name] = values
	return out
}

// whole reports whether a record has a value in some column.
func (c content) whole(i int) bool {
	return slices.ContainsFunc(c.fields, func(f store.Field) bool { return !lacks(c.values[f.Name][i]) })
}

func (c content) has(name string) bool { return c.values[name] != nil }

// container is a format of datasets that keep generations.
type container struct {
	name   string
	create func(dest string, schema store.Schema, appends bool) (store.Writer, error)
	bucket bool // it is made in a folder, and then changed in a bucket
}

// containers of the tests, in shards of a few records.
var containers = []container{
	{name: "flat", create: createFlat},
	{name: "zarr", create: createZarr},
	{name: "bucket", create: createFlat, bucket: true},
	{name: "zarr-in-bucket", create: createZarr, bucket: true},
}

// replaced reports whether an append makes another folder, which has no earlier generations.
func (c container) replaced() bool { return c.name == "zarr" }

// appendsThere reports whether records are appended in a bucket.
func (c container) appendsThere() bool { return c.bucket && c.name != "zarr-in-bucket" }

func createZarr(dest string, schema store.Schema, appends bool) (store.Writer, error) {
	return zarr.Create(dest, schema, zarr.Options{ShardBytes: 8 * 4096, Append: appends})
}

func createFlat(dest string, schema store.Schema, appends bool) (store.Writer, error) {
	return flat.Create(dest, schema, flat.Options{ShardBytes: 8 * 4096, Append: appends})
}

// history is a dataset that is changed at random, with all that it should keep.
type history struct {
	t   *testing.T
	rng *rand.Rand
	ds  string
	container
	d, other *Dataset          // other is the dataset as another machine has it open, or d itself
	objects  *membucket.Memory // of a bucket
	kept     map[int]content
	newest   int
	tags     map[string]int
	readers  map[*reader]content
	version  int
}

// Whatever changes are made to a dataset, in whatever order, two at a time or stopped in the middle, every generation
// that it keeps has its values, and every reader those that it opened. PENSTOCK_HISTORIES is the number of histories.
func TestHistories(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("PENSTOCK_HISTORIES"))
	if err != nil {
		n = 12
	}
	for seed := range n {
		create := containers[seed%len(containers)]
		t.Run(fmt.Sprint(create.name, seed), func(t *testing.T) {
			if create.bucket && runtime.GOOS != "linux" {
				t.Skip("mirrors of buckets need Linux")
			}
			h := newHistory(t, create, uint64(seed))
			for range 12 {
				h.step()
			}
			h.check()
			for ds := range h.readers {
				h.closeReader(ds)
			}
		})
	}
}

func newHistory(t *testing.T, in container, seed uint64) *history {
	h := &history{t: t, container: in, rng: rand.New(rand.NewPCG(seed, 7)), ds: filepath.Join(t.TempDir(), "ds"), kept: make(map[int]content),
		newest: 1, tags: make(map[string]int), readers: make(map[*reader]content)}
	c := content{values: make(map[string][][]byte)}
	for _, f := range []store.Field{pages, labels} {
		c = c.put(f, h.make(f, records))
	}
	h.append(false, c)
	h.kept[1] = c
	h.d = At(h.ds)
	h.other = h.d
	if in.bucket {
		h.objects = new(membucket.Memory)
		upload(t, h.ds, h.objects)
		h.d = InBucket(t.Context(), h.objects, "ds", t.TempDir())
		h.other = InBucket(t.Context(), h.objects, "ds", t.TempDir())
	}
	return h
}

// make returns values that no other column has.
func (h *history) make(f store.Field, n int) (list [][]byte) {
	h.version++
	for i := range n {
		list = append(list, value(f, h.version, i))
	}
	return list
}

func (h *history) append(appends bool, c content) {
	h.t.Helper()
	schema := store.Schema{Fields: c.fields}
	w, err := h.create(h.ds, schema, appends)
	if errors.Is(err, store.ErrUnsupported) && h.replaced() && len(h.kept)+len(h.tags) > 1 {
		return // other generations would be lost
	}
	require.NoError(h.t, err)
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range c.records() {
		for k, f := range c.fields {
			r.Values[k] = append(r.Values[k][:0], c.values[f.Name][i]...)
		}
		require.NoError(h.t, w.Append(r))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		h.t.Fatal(err)
	}
}

// appendThere appends records in a bucket, at times in two runs.
func (h *history) appendThere(d *Dataset, more content) error {
	h.t.Helper()
	opts, stops := AppendOptions{ShardBytes: 8 * 4096}, h.rng.IntN(2) == 0
	if stops {
		opts.Journal = &store.Journal{Resume: true, Inputs: map[string]string{"version": fmt.Sprint(h.version)}}
		if err := h.appendTo(d, opts, more, 3); !errors.Is(err, errStopped) {
			h.t.Fatal(err)
		}
	}
	return h.appendTo(d, opts, more, -1)
}

// appendTo appends records. If it stops at one of them, it keeps those before it.
func (h *history) appendTo(d *Dataset, opts AppendOptions, c content, stop int) (err error) {
	schema := store.Schema{Fields: c.fields}
	w, err := d.Append(schema, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	r := store.NewRecord(schema)
	for i := int(w.Kept().Records); i < c.stored(); i++ {
		if i == stop {
			return errors.Join(errStopped, w.Checkpoint(nil))
		}
		for k, f := range c.fields {
			r.Values[k] = append(r.Values[k][:0], c.values[f.Name][i]...)
		}
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}

// step makes a change, or two at once, or what readers do.
func (h *history) step() {
	h.t.Helper()
	now := h.kept[h.newest]
	switch h.rng.IntN(13) {
	case 0, 1:
		h.put()
	case 2:
		name := now.fields[h.rng.IntN(len(now.fields))].Name
		_, err := h.d.DropColumn([]string{name}, Options{})
		if len(now.fields) == 1 {
			if err == nil {
				h.t.Fatal("the last column was dropped")
			}
			return
		}
		next := now.clone()
		next.fields = slices.DeleteFunc(next.fields, func(f store.Field) bool { return f.Name == name })
		delete(next.values, name)
		h.now(next, err)
	case 3:
		h.rename()
	case 4:
		n := slices.Collect(maps.Keys(h.kept))[h.rng.IntN(len(h.kept))]
		_, err := h.d.Restore(strconv.Itoa(n), Options{})
		h.now(h.kept[n], err)
	case 5:
		h.prune()
	case 6:
		more := content{fields: now.fields, values: make(map[string][][]byte)}
		for _, f := range now.fields {
			more.values[f.Name] = h.make(f, 5)
		}
		next := now.followedBy(more)
		if h.appendsThere() {
			h.now(next, h.appendThere(h.d, more))
			return
		}
		if h.bucket {
			if err := h.appendTo(h.d, AppendOptions{}, more, -1); !errors.Is(err, store.ErrUnsupported) {
				h.t.Fatal(err)
			}
			return
		}
		h.append(true, more)
		if m, err := h.d.Manifest(""); err != nil || m.Generation > h.newest {
			h.now(next, err)
			if h.replaced() {
				h.kept = map[int]content{h.newest: next} // in a new folder
			}
		}
	case 7:
		h.two()
	case 10, 11:
		h.delete()
	case 12:
		h.undelete()
	case 8:
		h.openOrClose()
	case 9:
		name := fmt.Sprint("tag", h.version)
		h.version++
		n := slices.Collect(maps.Keys(h.kept))[h.rng.IntN(len(h.kept))]
		require.NoError(h.t, h.d.Tag(name, n))
		h.tags[name] = n
	}
}

// now enters the next generation.
func (h *history) now(c content, err error) {
	h.t.Helper()
	require.NoError(h.t, err)
	h.newest++
	h.kept[h.newest] = c
}

// columns are those that may be added or set.
func (h *history) column() store.Field {
	return []store.Field{emb, tokens, labels, store.NewField("scores/第 1", tensor.Float32)}[h.rng.IntN(4)]
}

// stopping are values that end with an error the first time.
func stopping(values [][]byte, at int64) Values {
	return func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i, v := range values[first:] {
				if int64(i)+first == at && first < at && !yield(nil, errStopped) {
					return
				}
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

var errStopped = errors.New("stopped")

// put adds or sets a column, at times in two runs.
func (h *history) put() {
	h.t.Helper()
	now, f := h.kept[h.newest], h.column()
	values := h.make(f, now.records())
	put := h.d.AddColumn
	if now.has(f.Name) {
		put = h.d.SetColumn
	}
	opts, at := Options{}, int64(-1)
	if h.rng.IntN(2) == 0 {
		opts.Journal, at = &store.Journal{Resume: true, Inputs: map[string]string{"version": fmt.Sprint(h.version)}}, h.rng.Int64N(20)+1
	}
	_, err := put(f, stopping(values, at), opts)
	if errors.Is(err, errStopped) {
		if m, readErr := h.d.Manifest(""); readErr != nil || m.Generation != h.newest {
			h.t.Fatalf("a column that was stopped has changed the dataset: %v", readErr)
		}
		_, err = put(f, stopping(values, at), opts)
	}
	h.now(now.put(f, values), err)
}

func (h *history) rename() {
	h.t.Helper()
	now := h.kept[h.newest]
	i := h.rng.IntN(len(now.fields))
	f := now.fields[i]
	to := fmt.Sprint("column", h.version)
	h.version++
	_, err := h.d.RenameColumn(f.Name, to, Options{})
	next := now.clone()
	next.values[to] = next.values[f.Name]
	delete(next.values, f.Name)
	next.fields[i].Name = to
	h.now(next, err)
}

// marks chooses some stored records.
func (h *history) marks(n int) []uint64 {
	words := make([]uint64, (n+63)/64)
	for i := range n {
		if h.rng.IntN(4) == 0 {
			words[i/64] |= 1 << (i % 64)
		}
	}
	return words
}

// delete leaves records out.
func (h *history) delete() {
	h.t.Helper()
	next := h.kept[h.newest].clone()
	words, more := h.marks(next.stored()), 0
	for i := range next.stored() {
		if words[i/64]>>(i%64)&1 == 1 && !next.gone[i] {
			next.gone[i] = true
			more++
		}
	}
	m, err := h.d.Delete(Chosen{Words: words}, Options{})
	if more == 0 || next.records() == 0 {
		if err == nil {
			h.t.Fatal("no record or all records were deleted")
		}
		return
	}
	h.now(next, err)
	if m.Change.Records != int64(more) || m.Live() != int64(next.records()) {
		h.t.Fatalf("%d records were deleted: %+v", more, m.Change)
	}
}

// undelete takes deleted records back.
func (h *history) undelete() {
	h.t.Helper()
	next := h.kept[h.newest].clone()
	words, more, without := h.marks(next.stored()), 0, false
	for i := range next.stored() {
		if words[i/64]>>(i%64)&1 == 1 && next.gone[i] {
			delete(next.gone, i)
			more++
			for _, f := range next.fields {
				without = without || lacks(next.values[f.Name][i])
			}
		}
	}
	_, err := h.d.Undelete(Chosen{Words: words}, Options{})
	if more == 0 || without {
		if err == nil {
			h.t.Fatal("records were restored that are not deleted, or have no values")
		}
		return
	}
	h.now(next, err)
}

// two makes two changes at once: one of them comes first, and the other one after it, or only one can be made.
func (h *history) two() {
	h.t.Helper()
	if h.appendsThere() && h.rng.IntN(2) == 0 {
		h.twoAppends()
		return
	}
	now := h.kept[h.newest]
	var fields [2]store.Field
	var values [2][][]byte
	for k := range fields {
		fields[k] = h.column()
		values[k] = h.make(fields[k], now.records())
	}
	var errs [2]error
	var both sync.WaitGroup
	for k, f := range fields {
		d := []*Dataset{h.d, h.other}[k]
		put := d.AddColumn
		if now.has(f.Name) {
			put = d.SetColumn
		}
		both.Go(func() { _, errs[k] = put(f, stopping(values[k], -1), Options{}) })
	}
	both.Wait()
	log, err := h.d.Log()
	require.NoError(h.t, err)
	committed := 0
	for k, f := range fields {
		if errs[k] == nil {
			committed++
		} else if !errors.Is(errs[k], store.ErrBusy) && !errors.Is(errs[k], store.ErrExist) || fields[0].Name != fields[1].Name {
			h.t.Fatalf("%s: %v", f.Name, errs[k])
		}
	}
	if got := log[0].Generation - h.newest; got != committed || committed == 0 {
		h.t.Fatalf("%d changes are in the log, and %d were made", got, committed)
	}
	for _, e := range slices.Backward(log[:committed]) {
		// the generations say in which order they came; of two of one column, each is tried
		found := errStopped
		for k, f := range fields {
			next := now.put(f, values[k])
			if errs[k] != nil || e.Change.Columns[0] != f.Name {
				continue
			}
			if found = h.same(e.Generation, next); found == nil {
				now = next
				break
			}
		}
		if found != nil {
			h.t.Fatalf("generation %d is neither: %v", e.Generation, found)
		}
		h.now(now, nil)
	}
}

// twoAppends appends at once from two machines: the records of one follow those of the other.
func (h *history) twoAppends() {
	h.t.Helper()
	now := h.kept[h.newest]
	var more [2]content
	for k := range more {
		more[k] = content{fields: now.fields, values: make(map[string][][]byte)}
		for _, f := range now.fields {
			more[k].values[f.Name] = h.make(f, 3+k)
		}
	}
	var errs [2]error
	var both sync.WaitGroup
	for k, d := range []*Dataset{h.d, h.other} {
		both.Go(func() { errs[k] = h.appendTo(d, AppendOptions{}, more[k], -1) })
	}
	both.Wait()
	require.NoError(h.t, errors.Join(errs[:]...))
	var last error
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		first := now.followedBy(more[order[0]])
		second := first.followedBy(more[order[1]])
		if last = errors.Join(h.same(h.newest+1, first), h.same(h.newest+2, second)); last == nil {
			h.now(first, nil)
			h.now(second, nil)
			return
		}
	}
	h.t.Fatal(last)
}

// followedBy returns c with more records after its own.
func (c content) followedBy(more content) content {
	next := c.clone()
	for _, f := range c.fields {
		next.values[f.Name] = slices.Concat(c.values[f.Name], more.values[f.Name])
	}
	return next
}

// openOrClose opens a reader of some generation, or closes one.
func (h *history) openOrClose() {
	h.t.Helper()
	for ds := range h.readers {
		if h.rng.IntN(2) == 0 {
			h.closeReader(ds)
			return
		}
	}
	n := slices.Collect(maps.Keys(h.kept))[h.rng.IntN(len(h.kept))]
	r, err := h.open(n)
	require.NoError(h.t, err)
	h.readers[r] = h.kept[n]
}

// reader is a generation that is open.
type reader struct {
	*mmapds.Dataset
	mirror *mirror.Dataset // of a bucket
}

func (r *reader) close() error {
	if r.mirror != nil {
		return r.mirror.Close()
	}
	return r.Close()
}

// open opens a generation.
func (h *history) open(n int) (*reader, error) {
	if !h.bucket {
		ds, err := mmapds.Open(h.ds, mmapds.WithGeneration(n))
		return &reader{Dataset: ds}, err
	}
	ds, err := mirror.Open(h.t.Context(), h.objects, fmt.Sprintf("ds@%d", n), mirror.Options{CacheDir: filepath.Join(h.t.TempDir(), "cache")})
	if err != nil {
		return nil, err
	}
	return &reader{ds.Dataset, ds}, nil
}

func (h *history) closeReader(ds *reader) {
	h.t.Helper()
	if err := compare(ds.Dataset, h.readers[ds]); err != nil {
		h.t.Error(err)
	}
	delete(h.readers, ds)
	if err := ds.close(); err != nil {
		h.t.Error(err)
	}
}

func (h *history) prune() {
	h.t.Helper()
	keep := map[int]bool{h.newest: true}
	for _, n := range h.tags {
		keep[n] = true
	}
	for ds := range h.readers {
		if h.kept[ds.Manifest().Generation].fields == nil {
			continue // in a folder that was replaced
		}
		keep[ds.Manifest().Generation] = true
	}
	opts := PruneOptions{}
	if h.bucket { // which does not know who reads
		opts.Keep = slices.Collect(maps.Keys(keep))
		if !h.read(h.newest) {
			opts.Keep = slices.DeleteFunc(opts.Keep, func(n int) bool { return n == h.newest })
		}
	}
	p, err := h.d.Prune(opts)
	require.NoError(h.t, err)
	if now := h.kept[h.newest]; len(keep) == 1 && p.Erased+p.Postponed > 0 {
		erased := now.clone()
		for name, values := range erased.values {
			values = slices.Clone(values)
			for i := range erased.gone {
				values[i] = lacking
			}
			erased.values[name] = values
		}
		m, err := h.d.Manifest("")
		require.NoError(h.t, err)
		if stays := h.tagged(h.newest) || h.read(h.newest); stays != (p.Postponed > 0) {
			h.t.Fatalf("%+v: the generation before the erasure has a tag or a reader: %v", p, stays)
		} else if !stays {
			delete(keep, h.newest)
		}
		h.newest, keep[m.Generation] = m.Generation, true
		h.kept[h.newest] = erased
	} else if len(keep) == 1 && slices.ContainsFunc(slices.Collect(maps.Keys(now.gone)), now.whole) {
		h.t.Fatalf("%+v: values of deleted records stay", p)
	}
	maps.DeleteFunc(h.kept, func(n int, _ content) bool { return !keep[n] })
	if numbers, err := h.d.lists.Generations(); err != nil || !slices.Equal(numbers, slices.Sorted(maps.Keys(keep))) {
		h.t.Fatalf("%+v: %v are kept, want %v (%v)", p, numbers, keep, err)
	}
}

// tagged reports whether a generation has a tag.
func (h *history) tagged(n int) bool { return slices.Contains(slices.Collect(maps.Values(h.tags)), n) }

// read reports whether a reader has a generation open.
func (h *history) read(n int) bool {
	for r := range h.readers {
		if h.kept[n].fields != nil && r.Manifest().Generation == n {
			return true
		}
	}
	return false
}

// check compares all generations, and looks for files that nothing needs.
func (h *history) check() {
	h.t.Helper()
	needed := make(map[string]bool)
	for n, c := range h.kept {
		path := fmt.Sprintf("%s@%d", h.ds, n)
		if err := h.same(n, c); err != nil {
			h.t.Errorf("generation %d: %v", n, err)
		}
		if h.bucket {
			path = h.download(n)
		}
		if r, corrupt := datasettest.Verify(h.t, path); len(corrupt) > 0 || !r.Identity {
			h.t.Errorf("generation %d: %v", n, corrupt)
		}
		m, _, err := h.d.lists.Generation(n)
		require.NoError(h.t, err)
		for _, s := range m.Shards {
			for _, f := range s.Files {
				needed[f.Name] = true
			}
		}
	}
	if h.bucket {
		checkRoot(h.t, h.objects, h.d)
	}
	if h.name != "flat" && h.name != "bucket" {
		p, err := h.d.Prune(PruneOptions{Last: h.newest})
		if err != nil || p.Files > 0 || len(p.Generations) > 0 {
			h.t.Errorf("%+v, %v: nothing that is needed was removed", p, err)
		}
		return
	}
	files, err := fs.Glob(h.d.home.Folder().FS, "*.npy")
	if err != nil || len(files) != len(needed) {
		h.t.Errorf("%d files of columns, and %d are needed: %v", len(files), len(needed), err)
	}
}

// same opens a generation and compares it.
func (h *history) same(n int, c content) error {
	h.t.Helper()
	ds, err := h.open(n)
	if err != nil {
		return err
	}
	return errors.Join(compare(ds.Dataset, c), ds.close())
}

// download returns the path of a copy of a generation.
func (h *history) download(n int) string {
	h.t.Helper()
	r, err := h.open(n)
	require.NoError(h.t, err)
	require.NoError(h.t, errors.Join(r.mirror.Fill(h.t.Context()), r.close()))
	return r.mirror.Path()
}

func compare(ds *mmapds.Dataset, c content) error {
	places := c.places()
	if len(ds.Specs()) != len(c.fields) || ds.Len() != len(places) {
		return fmt.Errorf("%d fields of %d records, want %d of %d", len(ds.Specs()), ds.Len(), len(c.fields), c.records())
	}
	for i, f := range c.fields {
		if ds.Specs()[i].Name != f.Name {
			return fmt.Errorf("field %s, want %s", ds.Specs()[i].Name, f.Name)
		}
		for k, place := range places {
			if ds.Stored(k) != place {
				return fmt.Errorf("record %d is stored at %d, want %d", k, ds.Stored(k), place)
			}
			want := c.values[f.Name][place]
			var got []byte
			var err error
			if f.Ragged {
				var offsets [2]int64
				got, err = ds.GatherRagged(context.Background(), f.Name, []int{k}, offsets[:], nil)
			} else {
				got = make([]byte, f.RecordBytes())
				err = ds.Gather(context.Background(), f.Name, []int{k}, got)
			}
			if err != nil || !bytes.Equal(got, want) {
				return fmt.Errorf("field %s, record %d: %v, want %v (%w)", f.Name, k, got[:min(len(got), 12)], want[:min(len(want), 12)], err)
			}
		}
	}
	return nil
}
