package edit

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

func TestRefresh(t *testing.T) {
	for _, in := range containers {
		if in.bucket || in.name == "hdf5-compressed" {
			continue
		}
		t.Run(in.name, func(t *testing.T) {
			h := newHistory(t, in, 1)
			ds, err := mmapds.Open(h.ds)
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			if same, changes, err := Refresh(ds); err != nil || changes != nil || same != ds {
				t.Fatal(changes, err)
			}
			values := stopping(h.make(emb, records), -1)
			for _, step := range []func() (*store.Manifest, error){
				func() (*store.Manifest, error) { return h.d.AddColumn(emb, values, Options{}) },
				func() (*store.Manifest, error) { return h.d.RenameColumn(pages.Name, "leaves", Options{}) },
				func() (*store.Manifest, error) { return h.d.DropColumn([]string{labels.Name}, Options{}) },
				func() (*store.Manifest, error) { return h.d.Delete(Chosen{Words: []uint64{0b1010}}, Options{}) },
			} {
				if _, err := step(); err != nil {
					t.Fatal(err)
				}
			}
			newest, changes, err := Refresh(ds, mmapds.WithFields(emb.Name))
			if err != nil {
				t.Fatal(err)
			}
			defer newest.Close()
			want := &Changes{Before: 1, After: 5, Deleted: 2, Columns: []Column{{pages.Name, "leaves", true}, {"", emb.Name, false}, {labels.Name, "", false}}}
			if !reflect.DeepEqual(changes, want) || !changes.Moved() || newest.Len() != records-2 || len(newest.Specs()) != 1 {
				t.Errorf("%+v, want %+v", changes, want)
			}
			if text := "generation 1 to 5: renamed pages to leaves, added emb, dropped labels, deleted 2 records"; changes.String() != text {
				t.Errorf("%s, want %s", changes, text)
			}
		})
	}
}

// After a restore of an earlier generation, records that are appended are not those that stood in their places before:
// what was chosen or computed of these is refused.
func TestAppendedInTheirPlaces(t *testing.T) {
	h := newHistory(t, containers[0], 1)
	first := h.kept[1]
	h.append(true, first)
	ds, err := mmapds.Open(h.ds) // generation 2
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	values := h.make(emb, 2*records)
	if _, err := h.d.AddColumn(emb, stopping(values, 2*records-1), Options{Journal: new(store.Journal)}); !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	if _, err := h.d.Restore("1", Options{}); err != nil {
		t.Fatal(err)
	}
	other := first
	for _, f := range first.fields {
		other = other.put(f, h.make(f, records))
	}
	h.append(true, other)
	newest, changes, err := Refresh(ds)
	if err != nil {
		t.Fatal(err)
	}
	defer newest.Close()
	if text := "generation 2 to 4: appended 23 records, deleted 23 records"; newest.Len() != 2*records || changes.String() != text {
		t.Errorf("%d records, %s; want %s", newest.Len(), changes, text)
	}
	chosen, err := h.d.Choose(2, []int64{records})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.d.Delete(chosen, Options{}); err == nil || !strings.Contains(err.Error(), "generation 4, which is the newest one now, has other records") {
		t.Error(err)
	}
	if _, err := h.d.AddColumn(emb, stopping(values, -1), Options{Journal: &store.Journal{Resume: true}}); err == nil ||
		!strings.Contains(err.Error(), "another generation of the last append: 2, and not 4") {
		t.Error(err)
	}
	if _, err := h.d.AddColumn(emb, stopping(values, -1), Options{Of: 2}); err == nil ||
		!strings.Contains(err.Error(), "records were appended to it") {
		t.Error(err)
	}
}

// A restore takes the names of columns back, also those of generations before the first one that is asked for.
func TestRenamed(t *testing.T) {
	h := newHistory(t, containers[0], 1)
	for _, names := range [][2]string{{labels.Name, "a"}, {"a", "b"}} {
		if _, err := h.d.RenameColumn(names[0], names[1], Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.d.Restore("1", Options{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to   int
		name, want string
	}{{1, 3, labels.Name, "b"}, {3, 1, "b", labels.Name}, {1, 4, labels.Name, labels.Name}, {2, 4, "a", labels.Name}, {4, 2, labels.Name, "a"},
		{3, 3, "b", "b"}} {
		if names, err := Renamed(h.ds, c.from, c.to); err != nil || names[c.name] != c.want || names[pages.Name] != pages.Name {
			t.Errorf("%+v: %v, %v", c, names, err)
		}
	}
	corrupt := filepath.Join(h.ds, "generations", "00000003.json")
	text, err := os.ReadFile(corrupt)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"{", string(text)} {
		if err := errors.Join(os.Chmod(corrupt, 0o666), os.WriteFile(corrupt, []byte(content), 0o666)); err != nil {
			t.Fatal(err)
		}
		names, err := Renamed(h.ds, 2, 4)
		if err != nil || (names == nil) != (content == "{") {
			t.Errorf("of a generation that is %.9q: %v, %v", content, names, err)
		}
	}
	if _, err := h.d.Prune(PruneOptions{Keep: []int{2}}); err != nil {
		t.Fatal(err)
	}
	if names, err := Renamed(h.ds, 2, 4); err != nil || names != nil {
		t.Errorf("%v, %v", names, err)
	}
}

// Another dataset in the same place has no changes of the one that is open.
func TestRefreshOfAnotherDataset(t *testing.T) {
	h := newHistory(t, containers[0], 1)
	ds, err := mmapds.Open(h.ds)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	other := newHistory(t, containers[0], 2)
	if _, err := other.d.DropColumn([]string{labels.Name}, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.d.Restore("1", Options{}); err != nil {
		t.Fatal(err)
	}
	newest, _, err := Refresh(ds)
	if err != nil {
		t.Fatal(err)
	}
	defer newest.Close()
	replace(t, other.ds, h.ds)
	if _, _, err := Refresh(newest); err == nil || !strings.Contains(err.Error(), "another dataset has taken its place") ||
		!strings.Contains(err.Error(), filepath.Base(h.ds)) {
		t.Error(err)
	}
}

// replace moves a folder to the place of another one.
func replace(t *testing.T, from, to string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(to), os.Rename(from, to)); err != nil {
		t.Fatal(err)
	}
}
