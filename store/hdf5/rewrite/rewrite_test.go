package rewrite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/tensor"
)

// Fields of the tests.
var (
	pages  = store.NewField("pages", tensor.Uint8, 512)
	labels = func() store.Field {
		f := store.NewField("labels", tensor.Int64)
		f.Classes = []string{"cat", "dog", "emu"}
		return f
	}()
	tokens = store.NewRagged("tokens", tensor.Int32)
	names  = func() store.Field { // that no reader opens unless it is asked to
		f := store.NewRagged("source_name", tensor.Uint8)
		f.Content = tensor.SourceName
		return f
	}()
	score = store.NewField("score", tensor.Float32)
)

const records = 23

// kinds are the ways in which files are written: at once, and with records collected first.
var kinds = map[string]hdf5.Options{
	"plain":      {},
	"splits":     {Splits: []string{"train", "val"}},
	"compressed": {Compress: &hdf5.Compression{Level: 1, ChunkRecords: 4}, Workers: 1},
}

// content is a dataset as it should be.
type content struct {
	fields []store.Field
	values map[string][][]byte
	splits []string // of each record
}

func (c content) clone() content {
	return content{slices.Clone(c.fields), maps.Clone(c.values), slices.Clone(c.splits)}
}

func (c content) records() int { return len(c.values[c.fields[0].Name]) }

// values returns values of a field that differ by version.
func valuesOf(f store.Field, version, n int) (list [][]byte) {
	for i := range n {
		rows, size := 1, f.RecordBytes()
		if f.Ragged {
			rows = (i*7 + version) % 5
		}
		var b []byte
		for k := range rows * size / f.DType.Size() {
			n := version*1000 + i*10 + k
			switch f.DType {
			case tensor.Uint8:
				if f.Content != "" {
					n = 'a' + n%26
				}
				b = append(b, byte(n))
			case tensor.Int32:
				b = binary.LittleEndian.AppendUint32(b, uint32(n))
			case tensor.Int64:
				b = binary.LittleEndian.AppendUint64(b, uint64(n%3))
			case tensor.Float32:
				b = binary.LittleEndian.AppendUint32(b, 0x3f800000+uint32(n))
			}
		}
		list = append(list, b)
	}
	return list
}

// build makes a file, or appends to one.
func build(t testing.TB, path string, c content, opts hdf5.Options) *store.Manifest {
	t.Helper()
	schema := store.Schema{Fields: c.fields}
	w, err := hdf5.Create(path, schema, opts)
	require.NoError(t, err)
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range c.records() {
		for k, f := range c.fields {
			r.Values[k] = append(r.Values[k][:0], c.values[f.Name][i]...)
		}
		if opts.Splits != nil {
			r.Split = c.splits[i]
		}
		require.NoError(t, w.Append(r))
	}
	m, err := w.Commit(store.Info{})
	require.NoError(t, err)
	return m
}

// begin makes the file of a test.
func begin(t testing.TB, path string, opts hdf5.Options, fields ...store.Field) content {
	t.Helper()
	c := content{fields: fields, values: make(map[string][][]byte)}
	for _, f := range fields {
		c.values[f.Name] = valuesOf(f, 1, records)
	}
	for i := range records {
		c.splits = append(c.splits, map[bool]string{true: "train", false: "val"}[i < 17])
	}
	build(t, path, c, opts)
	return c
}

// from yields values, and an error before one of them the first time.
func from(values [][]byte, stop int) edit.Values {
	return func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := int(first); i < len(values); i++ {
				if i == stop && int(first) < stop {
					yield(nil, errStopped)
					return
				}
				if !yield(values[i], nil) {
					return
				}
			}
		}
	}
}

var errStopped = errors.New("stopped")

// open opens a file with all its fields.
func open(path string, opts ...mmapds.Option) (*mmapds.Dataset, error) {
	m, err := store.ReadManifest(path)
	if err != nil {
		return nil, err
	}
	var fields []string
	for _, f := range m.Fields {
		fields = append(fields, f.Name)
	}
	return mmapds.Open(path, append(opts, mmapds.WithFields(fields...))...)
}

// compare reads all values.
func compare(ds *mmapds.Dataset, c content) error {
	if len(ds.Specs()) != len(c.fields) || ds.Len() != c.records() {
		return fmt.Errorf("%d fields of %d records, want %d of %d", len(ds.Specs()), ds.Len(), len(c.fields), c.records())
	}
	for i, f := range c.fields {
		if ds.Specs()[i].Name != f.Name {
			return fmt.Errorf("field %s, want %s", ds.Specs()[i].Name, f.Name)
		}
		for k, want := range c.values[f.Name] {
			got, err := make([]byte, f.RecordBytes()), error(nil)
			if f.Ragged {
				var offsets [2]int64
				got, err = ds.GatherRagged(context.Background(), f.Name, []int{k}, offsets[:], nil)
			} else {
				err = ds.Gather(context.Background(), f.Name, []int{k}, got)
			}
			if err != nil || !bytes.Equal(got, want) {
				return fmt.Errorf("field %s, record %d: %v, want %v (%w)", f.Name, k, got[:min(len(got), 12)], want[:min(len(want), 12)], err)
			}
		}
	}
	return nil
}

// history is a file that is changed at random.
type history struct {
	*testing.T
	rng     *rand.Rand
	path    string
	opts    hdf5.Options
	now     content
	newest  int
	version int
	readers map[*mmapds.Dataset]content
}

// Whatever changes are made to a file, in whatever order, also such as were stopped in the middle, it has the values and
// the id of a file that was written so, and every reader the values of the file that it opened.
func TestHistories(t *testing.T) {
	for kind, opts := range kinds {
		for seed := range 3 {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) {
				h := &history{T: t, rng: rand.New(rand.NewPCG(uint64(seed), 7)), path: filepath.Join(t.TempDir(), "ds.h5"), opts: opts,
					newest: 1, version: 1, readers: make(map[*mmapds.Dataset]content)}
				fields := []store.Field{pages, labels}
				fields = append(fields, [][]store.Field{nil, {tokens}, {names}}[seed]...)
				h.now = begin(t, h.path, opts, fields...)
				for range 10 {
					h.step()
					h.check()
				}
				h.readByH5py()
				for ds, c := range h.readers {
					require.NoError(t, errors.Join(compare(ds, c), ds.Close()))
				}
			})
		}
	}
}

func (h *history) step() {
	h.Helper()
	switch h.rng.IntN(8) {
	case 0, 1, 2:
		h.put()
	case 3:
		h.drop()
	case 4:
		f := &h.now.fields[h.rng.IntN(len(h.now.fields))]
		h.version++
		to := fmt.Sprint("column", h.version)
		_, err := RenameColumn(h.path, f.Name, to, Options{})
		h.now.values[to] = h.now.values[f.Name]
		delete(h.now.values, f.Name)
		f.Name = to
		h.done(err)
	case 5:
		h.delete()
	case 6:
		h.append()
	case 7:
		ds, err := open(h.path)
		require.NoError(h, err)
		h.readers[ds] = h.now.clone()
	}
}

func (h *history) done(err error) {
	h.Helper()
	require.NoError(h, err)
	h.newest++
}

func (h *history) put() {
	h.Helper()
	f := []store.Field{tokens, labels, score, names}[h.rng.IntN(4)]
	if f.Name == names.Name && layout.SourceNames((store.Schema{Fields: h.now.fields}).Specs()) >= 0 {
		f = score // they are there already, perhaps under another name
	}
	h.version++
	values := valuesOf(f, h.version, h.now.records())
	put := AddColumn
	i := (store.Schema{Fields: h.now.fields}).Index(f.Name)
	if i >= 0 {
		put = SetColumn
	}
	opts, stop, begun, written := Options{}, -1, int64(0), int64(0)
	compressing, compressed := int64(0), int64(0)
	opts.Compressing, opts.Compressed = func(n int64) { compressing, compressed = n, 0 }, func(n int64) { compressed += n }
	if h.rng.IntN(2) == 0 {
		opts.Journal, stop = &store.Journal{Resume: true}, 1+h.rng.IntN(h.now.records())
	}
	opts.Begin, opts.Progress = func(_, records int64) { begun = records }, func(n int64) { written += n }
	_, err := put(h.path, f, from(values, stop), opts)
	if errors.Is(err, errStopped) {
		written = 0
		_, err = put(h.path, f, from(values, stop), opts)
		written += int64(stop)
	}
	h.done(err)
	if compressing != compressed {
		h.Errorf("progress of %d of %d bytes that are compressed", compressed, compressing)
	}
	if n := int64(len(values)); begun != n || written != n {
		h.Errorf("progress of %d of %d records, want %d", written, begun, n)
	}
	if i < 0 {
		h.now.fields = append(h.now.fields, f)
	} else {
		h.now.fields[i] = f
	}
	h.now.values[f.Name] = values
}

func (h *history) drop() {
	h.Helper()
	i := h.rng.IntN(len(h.now.fields))
	name := h.now.fields[i].Name
	_, err := DropColumn(h.path, []string{name}, Options{})
	if len(h.now.fields) == 1 {
		if err == nil {
			h.Fatal("the last column was dropped")
		}
		return
	}
	h.done(err)
	h.now.fields = slices.Delete(h.now.fields, i, i+1)
	delete(h.now.values, name)
}

func (h *history) delete() {
	h.Helper()
	words, next := make([]uint64, (h.now.records()+63)/64), h.now.clone()
	next.splits = nil
	for name := range next.values {
		next.values[name] = nil
	}
	for i := range h.now.records() {
		if h.rng.IntN(4) == 0 && i != 3 {
			words[i/64] |= 1 << (i % 64)
			continue
		}
		for name, values := range h.now.values {
			next.values[name] = append(next.values[name], values[i])
		}
		next.splits = append(next.splits, h.now.splits[i])
	}
	_, err := Delete(h.path, edit.Chosen{Words: words, Generation: h.newest}, Options{})
	if next.records() == h.now.records() {
		if err == nil {
			h.Fatal("no record was deleted")
		}
		return
	}
	h.done(err)
	h.now = next
}

func (h *history) append() {
	h.Helper()
	more := content{fields: h.now.fields, values: make(map[string][][]byte), splits: []string{"train", "train", "val", "val", "val"}}
	h.version++
	for _, f := range h.now.fields {
		more.values[f.Name] = valuesOf(f, h.version, 5)
		h.now.values[f.Name] = slices.Concat(h.now.values[f.Name], more.values[f.Name])
	}
	h.now.splits = slices.Concat(h.now.splits, more.splits)
	opts := h.opts
	opts.Append, opts.Compress = true, nil
	build(h, h.path, more, opts)
	h.newest++
}

// check compares the file with a new one.
func (h *history) check() {
	h.Helper()
	ds, err := open(h.path)
	require.NoError(h, err)
	require.NoError(h, errors.Join(compare(ds, h.now), ds.Close()))
	whole := build(h, filepath.Join(h.TempDir(), "whole.h5"), h.now, hdf5.Options{Splits: h.opts.Splits})
	m, err := store.ReadManifest(h.path)
	if err != nil || m.ID != whole.ID || m.Generation != h.newest || m.Deleted != nil {
		h.Errorf("id %s, want %s; generation %d, want %d: %v", m.ID, whole.ID, m.Generation, h.newest, err)
	}
	if r, corrupt := datasettest.Verify(h.T, h.path); len(corrupt) > 0 || !r.Identity {
		h.Errorf("%v", corrupt)
	}
	if h.opts.Compress != nil && slices.ContainsFunc(h.now.fields, func(f store.Field) bool { return slices.Equal(f.Shape, pages.Shape) }) && len(m.Storage) == 0 {
		h.Error("it is compressed no longer")
	}
	if left, err := os.ReadDir(filepath.Dir(h.path)); err != nil || len(left) != 1 {
		h.Errorf("left beside it: %v, %v", left, err)
	}
}

// readScript prints the fields with the type and the checksum of their bytes, and what else is in the file.
const readScript = `
import sys, zlib, h5py
with h5py.File(sys.argv[1]) as f:
    for name in sorted(f):
        if name != "penstock":
            d = f[name]["values"] if isinstance(f[name], h5py.Group) else f[name]
            offsets = f[name]["offsets"][...].tolist() if isinstance(f[name], h5py.Group) else ""
            print(name, d.dtype, zlib.crc32(d[...].tobytes()), len(d.attrs.get("class_names", [])), d.compression, offsets)
`

// readByH5py compares the file with the model.
func (h *history) readByH5py() {
	h.Helper()
	m, err := store.ReadManifest(h.path)
	require.NoError(h, err)
	var want []string
	for _, f := range h.now.fields {
		compressed, array, offsets := "None", f.Name, ""
		if f.Ragged {
			list := []int64{0}
			for _, v := range h.now.values[f.Name] {
				list = append(list, list[len(list)-1]+int64(len(v)/f.DType.Size()))
			}
			array, offsets = f.Name+"/values", strings.Join(strings.Fields(fmt.Sprint(list)), ", ")
		}
		if m.Storage[array] != nil {
			compressed = "gzip"
		}
		want = append(want, fmt.Sprintln(f.Name, f.DType, crc32.ChecksumIEEE(slices.Concat(h.now.values[f.Name]...)), len(f.Classes),
			compressed, offsets))
	}
	slices.Sort(want)
	if got := h5test.Run(h, "-c", readScript, h.path); string(got) != strings.Join(want, "") {
		h.Errorf("h5py reads\n%swant\n%s", got, strings.Join(want, ""))
	}
}

// Nothing of deleted records, of values that were replaced and of the condition that chose records is in the file.
func TestNothingIsLeft(t *testing.T) {
	for kind, opts := range kinds {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ds.h5")
			opts.Compress = nil // so that values are found
			c := begin(t, path, opts, pages, labels)
			has := func(text []byte) bool {
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				return bytes.Contains(data, text)
			}
			secret, other := c.values["pages"][5], c.values["pages"][6]
			if !has(secret) || !has(other) {
				t.Fatal("values are not found")
			}
			words := []uint64{1 << 5}
			m, err := Delete(path, edit.Chosen{Words: words, Where: "name = 'Ada'"}, Options{Options: edit.Options{By: "delete --where \"name = 'Ada'\""}})
			if err != nil || m.Change.Records != 1 || has(secret) || !has(other) || has([]byte("Ada")) {
				t.Errorf("something of a deleted record is in the file: %v", err)
			}
			if _, err = SetColumn(path, pages, from(valuesOf(pages, 2, records-1), -1), Options{}); err != nil || has(other) {
				t.Errorf("values that were replaced are in the file: %v", err)
			}
		})
	}
}

// A link leads to the new file.
func TestLinkStays(t *testing.T) {
	dir := t.TempDir()
	begin(t, filepath.Join(dir, "ds.h5"), hdf5.Options{}, labels, score)
	link := filepath.Join(dir, "link.h5")
	if err := os.Symlink("ds.h5", link); err != nil {
		t.Skip(err)
	}
	if _, err := DropColumn(link, []string{"score"}, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, filepath.Join(dir, "ds.h5")} {
		if m, err := store.ReadManifest(path); err != nil || len(m.Fields) != 1 {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What cannot be changed is refused, and the file stays as it is.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ds.h5")
	c := begin(t, path, hdf5.Options{}, pages, labels)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	bad := score
	bad.Name = "penstock"
	good := valuesOf(score, 1, records)
	put := func(values [][]byte) error { return second(AddColumn(path, score, from(values, -1), Options{})) }
	for says, err := range map[string]error{
		`it has a column "labels" already; set replaces one`:  second(AddColumn(path, labels, from(c.values["labels"], -1), Options{})),
		`it has no column "score"; add makes one`:             second(SetColumn(path, score, from(good, -1), Options{})),
		"there are 22 values, and the dataset has 23 records": put(good[:records-1]),
		"there are more than 23 values":                       put(append(slices.Clone(good), good[0])),
		"a value of 1 bytes; a value of float32 () has 4":     put([][]byte{{1}}),
		"stopped":                                 second(AddColumn(path, score, from(good, 7), Options{})),
		"keep their metadata under that name":     second(RenameColumn(path, "pages", "penstock", Options{})),
		"keep their metadata under that":          second(AddColumn(path, bad, from(good, -1), Options{})),
		`it has no column "x"`:                    second(DropColumn(path, []string{"x"}, Options{})),
		"a dataset needs a column":                second(DropColumn(path, []string{"pages", "labels"}, Options{})),
		"no record of it is to be deleted":        second(Delete(path, edit.Chosen{Words: []uint64{0}}, Options{})),
		"all records would be deleted":            second(Delete(path, edit.Chosen{Words: []uint64{1<<records - 1}}, Options{})),
		"it is generation 1 now, and no longer 2": second(Delete(path, edit.Chosen{Words: []uint64{1}, Generation: 2}, Options{})),
		"store: drop column of":                   second(DropColumn(filepath.Join(dir, "none.h5"), []string{"x"}, Options{})),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	for name, err := range map[string]error{
		"log": second(edit.At(path).Log()), "tag": edit.At(path).Tag("best", 1), "untag": edit.At(path).Untag("best"),
		"restore": second(edit.At(path).Restore("1", edit.Options{})), "prune": second(edit.At(path).Prune(edit.PruneOptions{})),
		"undelete": second(edit.At(path).Undelete(edit.Chosen{Words: []uint64{1}}, edit.Options{})),
		"add":      second(edit.At(path).AddColumn(score, from(good, -1), edit.Options{})),
		"open":     second(store.Open(path+"@7", store.OpenOptions{})), "a tag": second(store.ReadManifest(path + "@best")),
	} {
		want := "HDF5 has one generation; flat datasets keep several, and this makes one: "
		if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "preprocess "+path+" "+filepath.Join(dir, "ds-flat")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if m, err := store.ReadManifest(path + "@1"); err != nil || m.Generation != 1 {
		t.Errorf("the only generation by its number: %v", err)
	}
	corrupt := slices.Clone(before)
	corrupt[bytes.Index(corrupt, c.values["pages"][9])] ^= 1
	damaged := filepath.Join(dir, "damaged.h5")
	require.NoError(t, os.WriteFile(damaged, corrupt, 0o666))
	if _, err := DropColumn(damaged, []string{"labels"}, Options{}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("corrupt values were copied: %v", err)
	}
	corrupt = slices.Clone(before)
	corrupt[bytes.Index(corrupt, []byte("emu"))] ^= 1
	require.NoError(t, os.WriteFile(damaged, corrupt, 0o666))
	if _, err := DropColumn(damaged, []string{"pages"}, Options{}); !errors.Is(err, store.ErrCorrupt) || strings.Count(err.Error(), dir) != 1 {
		t.Errorf("corrupt metadata got a new checksum: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refused change has changed the file: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func second[T any](_ T, err error) error { return err }

// Another change, and an append that was stopped, keep changes out.
func TestOneChangeAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ds.h5")
	c := begin(t, path, hdf5.Options{}, pages, labels)
	values := func(int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			if _, err := DropColumn(path, []string{"labels"}, Options{}); !errors.Is(err, store.ErrBusy) {
				t.Errorf("two changes at once: %v", err)
			}
			for _, v := range valuesOf(score, 1, records) {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
	if _, err := AddColumn(path, score, values, Options{}); err != nil {
		t.Fatal(err)
	}
	c.fields, c.values["score"] = append(c.fields, score), valuesOf(score, 1, records)
	w, err := hdf5.Create(path, store.Schema{Fields: c.fields}, hdf5.Options{Append: true, Journal: new(store.Journal)})
	require.NoError(t, err)
	require.NoError(t, errors.Join(w.Checkpoint(nil), w.Close()))
	if _, err := DropColumn(path, []string{"labels"}, Options{}); err == nil || !strings.Contains(err.Error(), "another write to it was stopped") {
		t.Errorf("after an append that was stopped: %v", err)
	}
}

// is compares all values of a file, with its checksums too.
func is(path string, c content) error {
	ds, err := open(path, mmapds.WithVerify(mmapds.VerifyAlways))
	if err != nil {
		return err
	}
	return errors.Join(compare(ds, c), ds.Close())
}
