package edit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/hdf5/view"
	"github.com/penstock/penstock/tensor"
)

// makeHDF5 makes a file of two columns.
func makeHDF5(t *testing.T) string {
	t.Helper()
	ds := filepath.Join(t.TempDir(), "ds.h5")
	makeIn(t, containers[2], ds, pages, labels)
	return ds
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A change writes after the end of the file, and the superblock. The id is that of a dataset that was written so, and
// the column takes as many bytes as it has, with little else.
func TestHDF5IsAppendedTo(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.h5")
	makeIn(t, containers[2], whole, pages, labels, tokens)
	want, err := store.ReadManifest(whole)
	if err != nil {
		t.Fatal(err)
	}
	ds := makeHDF5(t)
	before := readFile(t, ds)
	inode := identities(t, filepath.Dir(ds))["ds.h5"]
	got, err := AddColumn(ds, tokens, valuesOf(tokens, 0), Options{By: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	after := readFile(t, ds)
	if got.ID != want.ID || got.Generation != 2 || len(after)-len(before) > 24<<10 {
		t.Errorf("id %s, want %s; %d bytes more", got.ID, want.ID, len(after)-len(before))
	}
	if !bytes.Equal(before[96:], after[96:len(before)]) || strings.Fields(identities(t, filepath.Dir(ds))["ds.h5"])[0] !=
		strings.Fields(inode)[0] {
		t.Error("bytes of the first generation were changed")
	}
	for _, path := range []string{ds, ds + "@1"} {
		if r, corrupt := datasettest.Verify(t, path); len(corrupt) > 0 || !r.Identity {
			t.Errorf("%s: %v", path, corrupt)
		}
	}
	if m, err := store.ReadManifest(ds + "@1"); err != nil || m.Schema().Index("tokens") >= 0 {
		t.Errorf("generation 1: %v", err)
	}
}

// Bytes that a killed change has left after the newest generation are cut off by the next one, and read by nobody.
func TestHDF5IgnoresWhatWasNotCommitted(t *testing.T) {
	ds := makeHDF5(t)
	if _, err := RenameColumn(ds, "labels", "class", Options{}); err != nil {
		t.Fatal(err)
	}
	whole := readFile(t, ds)
	f, err := os.OpenFile(ds, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(make([]byte, 20000), whole[len(whole)-16:]...)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if r, corrupt := datasettest.Verify(t, ds); len(corrupt) > 0 || !r.Identity {
		t.Errorf("%v", corrupt)
	}
	if _, err := RenameColumn(ds, "class", "labels", Options{}); err != nil {
		t.Fatal(err)
	}
	if now := readFile(t, ds); !bytes.Equal(now[48:len(whole)], whole[48:]) || len(now)-len(whole) > 20000 {
		t.Errorf("it was not cut off: %d bytes more", len(now)-len(whole))
	}
}

// script opens a file, waits for a line, and prints what it reads then, and what another handle reads.
const script = `
import sys, h5py
with h5py.File(sys.argv[1]) as f:
    print(",".join(f), flush=True)
    sys.stdin.readline()
    print(f["pages"][3][0], f["labels"][5], f["labels"].attrs["class_names"].tolist(), flush=True)
with h5py.File(sys.argv[1]) as f:
    print(",".join(f), f["emb"].shape, f["class"].attrs["class_names"].tolist()[1], f["tokens/offsets"][-1], f.attrs["complete"])
`

// h5py reads the newest generation. A program that has the file open keeps what it has opened, and so does a change:
// none waits for the other.
func TestHDF5IsReadByH5py(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds.h5")
	makeIn(t, containers[3], ds, pages, labels)
	old, err := mmapds.Open(ds)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(h5test.Python(t), "-c", script, ds)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "labels,pages,penstock\n" {
		t.Fatalf("%q, %v", line, err)
	}
	for _, err := range []error{
		second(AddColumn(ds, emb, valuesOf(emb, 0), Options{})), second(AddColumn(ds, tokens, valuesOf(tokens, 0), Options{})),
		second(RenameColumn(ds, "labels", "class", Options{})), second(DropColumn(ds, []string{"pages"}, Options{})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	want := "30 2 [b'cat', b'dog', b'emu']\nclass,emb,penstock,tokens (23, 3) b'dog' 46 1\n"
	if err := cmd.Wait(); err != nil || string(rest) != want {
		t.Errorf("%v: %s, want %s", err, rest, want)
	}
	var page [4096]byte
	if err := old.Gather(context.Background(), "pages", []int{3}, page[:]); err != nil || page[0] != 30 {
		t.Errorf("the reader: %d, %v", page[0], err)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
}

// Files that another program has changed, or is changing, are left as they are, and so are those of other programs.
func TestHDF5Refusals(t *testing.T) {
	ds := makeHDF5(t)
	flat := filepath.Join(t.TempDir(), "flat")
	makeDataset(t, flat, false, pages)
	d, err := store.Open(flat, store.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := view.Encode(d, ".")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(flat, "view.h5"), data, 0o666); err != nil {
		t.Fatal(err)
	}
	drop := func(path string) error { return second(DropColumn(path, []string{"labels"}, Options{})) }
	if err := drop(filepath.Join(flat, "view.h5")); !errors.Is(err, store.ErrView) {
		t.Errorf("a view: %v", err)
	}
	if err := drop(ds); err != nil {
		t.Fatal(err)
	}
	if _, err := appendHDF5(ds); err == nil || !strings.Contains(err.Error(), "which would not have the earlier generations [1]") {
		t.Errorf("an append: %v", err)
	}
	b := new(remote.Memory)
	b.Put("ds.h5", readFile(t, ds))
	sent := InBucket(t.Context(), b, "ds.h5", t.TempDir())
	if _, err := sent.DropColumn([]string{"labels"}, Options{}); !errors.Is(err, store.ErrUnsupported) ||
		!strings.Contains(err.Error(), "it is one object, and a bucket cannot change a part of one; ") ||
		!strings.Contains(err.Error(), "preprocess mem://memory/ds.h5 mem://memory/ds-flat") {
		t.Errorf("in a bucket: %v", err)
	}
	bad := emb
	bad.Name = "penstock"
	for _, err := range []error{
		second(AddColumn(ds, bad, valuesOf(bad, 0), Options{})), second(RenameColumn(ds, "pages", "penstock", Options{})),
	} {
		if err == nil || !strings.Contains(err.Error(), `HDF5 files keep their metadata under the name "penstock"`) {
			t.Errorf("a column penstock: %v", err)
		}
	}
	if _, err := store.ReadManifest(ds + "@7"); err == nil || !strings.Contains(err.Error(), "it keeps no generation 7; it has 1, 2") {
		t.Errorf("a missing generation: %v", err)
	}
	if err := drop(ds + "@1"); err == nil || !strings.Contains(err.Error(), "only the newest generation can be changed") {
		t.Errorf("an earlier generation: %v", err)
	}
	h5test.Python(t)
	whole := readFile(t, ds)
	foreign := filepath.Join(t.TempDir(), "foreign.h5")
	h5test.Run(t, "-c", "import sys, h5py\nwith h5py.File(sys.argv[1], 'w') as f: f['labels'] = [1, 2]", foreign)
	if err := drop(foreign); err == nil || !strings.Contains(err.Error(), "keeps no generations and cannot be changed") {
		t.Errorf("of another program: %v", err)
	}
	if err := os.Chmod(ds, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(h5test.Python(t), "-c", "import sys, h5py\nwith h5py.File(sys.argv[1], 'r+') as f: print(flush=True); sys.stdin.read()", ds)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := Tag(ds, "first", 1); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a file that h5py changes: %v", err)
	}
	if err := errors.Join(in.Close(), cmd.Wait(), os.WriteFile(ds, whole, 0o666)); err != nil {
		t.Fatal(err)
	}
	h5test.Run(t, "-c", "import sys, h5py\nwith h5py.File(sys.argv[1], 'r+') as f: f['mine'] = list(range(5000))", ds)
	if err := Tag(ds, "first", 1); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "another program has changed the file") {
		t.Errorf("a file that h5py has changed: %v", err)
	}
}

// Another program's copy of the file has the newest generation only, and says so.
func TestHDF5Copy(t *testing.T) {
	h5test.Python(t)
	ds := makeHDF5(t)
	if _, err := AddColumn(ds, emb, valuesOf(emb, 0), Options{}); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy.h5")
	h5test.Run(t, "-c", `import sys, h5py
with h5py.File(sys.argv[1]) as f, h5py.File(sys.argv[2], "w") as to:
    for name in f: f.copy(name, to)
    for name in f.attrs: to.attrs[name] = f.attrs[name]
    to["more"] = [0] * 30000`, ds, to)
	if _, err := store.Open(to+"@1", store.OpenOptions{}); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "has its newest generation only") {
		t.Errorf("got %v", err)
	}
	log, err := Log(to)
	if err != nil || len(log) != 2 || log[0].Corrupt != "" || log[1].Corrupt == "" {
		t.Errorf("%+v, %v", log, err)
	}
}

func appendHDF5(ds string) (*store.Manifest, error) {
	w, err := hdf5.Create(ds, store.Schema{Fields: []store.Field{pages}}, hdf5.Options{Append: true})
	if err != nil {
		return nil, err
	}
	return nil, w.Close()
}

// makeIn makes a dataset of the records of makeDataset in a container.
func makeIn(t testing.TB, in container, dest string, fields ...store.Field) {
	t.Helper()
	schema := store.Schema{Fields: fields}
	w, err := in.create(dest, schema, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range records {
		for k, f := range fields {
			r.Values[k] = append(r.Values[k][:0], value(f, 0, i)...)
		}
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
}

// A file is opened while changes are committed to it.
func TestOpenWhileHDF5Changes(t *testing.T) {
	path := makeHDF5(t)
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			err = Tag(path, "tag"+strconv.Itoa(i), 1)
		}
		done <- err
	}()
	for {
		if _, err := store.ReadManifest(path); err != nil {
			t.Error(err, <-done)
			return
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// Values that can be read twice are written to an HDF5 file and not to a stage. If they differ, the file stays as it is.
func TestHDF5ColumnOfRepeatableValues(t *testing.T) {
	ds := makeHDF5(t)
	if _, err := Delete(ds, Chosen{Words: []uint64{1 | 1<<5 | 1<<22}}, Options{}); err != nil {
		t.Fatal(err)
	}
	staged := int64(0)
	version := func(n int) Values {
		calls := 0
		return func(first int64) iter.Seq2[[]byte, error] {
			calls++
			return func(yield func([]byte, error) bool) {
				for i := range records - 3 {
					if left, err := filepath.Glob(filepath.Join(filepath.Dir(ds), ".*.building", "*.npy")); err != nil || calls%2 == 1 && len(left) > 0 {
						staged++ // then there are checksums
					}
					if !yield(large(n*calls, i), nil) {
						return
					}
				}
			}
		}
	}
	before := readFile(t, ds)
	_, err := AddColumn(ds, wide, version(1), Options{Repeatable: true})
	if err == nil || !strings.Contains(err.Error(), "its values are others when they are read again") || !bytes.Equal(readFile(t, ds), before) {
		t.Fatalf("values that change: %v", err)
	}
	if _, err = AddColumn(ds, wide, version(0), Options{Repeatable: true}); err != nil {
		t.Fatal(err)
	}
	if _, err = SetColumn(ds, labels, valuesIn(false, labels, 0, records-3), Options{Repeatable: true}); err != nil {
		t.Fatal(err)
	}
	if staged > 0 {
		t.Error("the values are staged")
	}
	if r, corrupt := datasettest.Verify(t, ds); len(corrupt) > 0 || !r.Identity {
		t.Errorf("%v, identity %t", corrupt, r.Identity)
	}
	d, err := mmapds.Open(ds)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got := make([]byte, (records-3)*wide.RecordBytes())
	all := make([]int, records-3)
	var want []byte
	for i := range all {
		all[i], want = i, append(want, large(0, i)...)
	}
	if err := d.Gather(t.Context(), "wide", all, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other values: %v", err)
	}
}

// wide is a field of which few values are gathered before they are written.
var wide = store.NewField("wide", tensor.Uint8, 1<<19)

func large(version, i int) []byte { return bytes.Repeat([]byte{byte(version), byte(i)}, 1<<18) }
