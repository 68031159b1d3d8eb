package edit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// small makes a dataset of 23 records with a field.
func small(t *testing.T) string {
	return datasettest.BuildFlat(t, store.Schema{Fields: []store.Field{labels}}, flat.Options{}, records, store.Info{},
		func(i int, r *store.Record) { copy(r.Values[0], value(labels, 1, i)) })
}

// An earlier generation whose manifest is corrupt stands in the log, and keeps nobody from pruning or changing.
func TestACorruptGenerationIsSkipped(t *testing.T) {
	ds := small(t)
	for version := range 3 {
		if _, err := At(ds).SetColumn(labels, valuesOf(labels, version), Options{}); err != nil {
			t.Fatal(err)
		}
	}
	bad := filepath.Join(ds, filepath.FromSlash(layout.GenerationName(2)))
	require.NoError(t, errors.Join(os.Chmod(bad, 0o644), os.WriteFile(bad, []byte("{}"), 0o644)))
	log, err := At(ds).Log()
	if err != nil || len(log) != 4 || log[2].Corrupt == "" || log[1].Corrupt != "" {
		t.Fatalf("%+v: %v", log, err)
	}
	p, err := At(ds).Prune(PruneOptions{Last: 3})
	if err != nil || len(p.Generations) != 0 || len(p.Corrupt) != 1 || p.Files != 0 {
		t.Errorf("with the corrupt one kept: %+v: %v", p, err)
	}
	if p, err = At(ds).Prune(PruneOptions{}); err != nil || len(p.Generations) != 3 || len(p.Corrupt) != 0 {
		t.Errorf("%+v: %v", p, err)
	}
	if m, err := store.ReadManifest(ds); err != nil || m.Generation != 4 {
		t.Errorf("%v", err)
	}
	if r, corrupt := datasettest.Verify(t, ds); len(corrupt) > 0 || !r.Identity {
		t.Errorf("%v", corrupt)
	}
}

// Prune removes what columns have left that were killed, but for those that are being written or can be continued.
func TestPruneRemovesStages(t *testing.T) {
	ds := small(t)
	if _, err := At(ds).SetColumn(labels, valuesOf(labels, 2), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"killed", "journal", "written"} {
		stage, err := write.OpenStage(filepath.Join(ds, name+".column"), write.StageOptions{})
		require.NoError(t, err)
		if name == "journal" {
			require.NoError(t, stage.Folder.WriteFile(write.JournalName, []byte("x")))
		}
		if name == "written" {
			defer stage.Abort()
		} else if err := stage.Release(); err != nil {
			t.Fatal(err)
		}
	}
	lock := filepath.Join(ds, ".lost.column.building.lock") // of a writer that was killed before it had the stage
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	if _, err := At(ds).Prune(PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an abandoned lock is left: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(ds, ".written.column.building.lock")); err != nil {
		t.Errorf("the lock of a column that is being written is gone: %v", err)
	}
	entries, err := os.ReadDir(ds)
	require.NoError(t, err)
	var left []string
	for _, e := range entries {
		if write.IsColumnStage(e.Name()) && !strings.HasSuffix(e.Name(), ".lock") {
			left = append(left, e.Name())
		}
	}
	if strings.Join(left, " ") != ".journal.column.building .written.column.building" {
		t.Errorf("%q are left", left)
	}
}

// Records that are chosen by words of another length are refused.
func TestChosenOfOtherRecords(t *testing.T) {
	ds := small(t)
	for _, words := range [][]uint64{nil, {1, 0}, {1 << records}} {
		if _, err := At(ds).Delete(Chosen{Words: words}, Options{}); err == nil || !strings.Contains(err.Error(), "as many records") {
			t.Errorf("%v: %v", words, err)
		}
	}
}

// Numbers of records are those of a generation, and Choose finds where they are stored.
func TestChoose(t *testing.T) {
	ds := small(t)
	for step, want := range []uint64{0b1_0001, 0b1_0011, 0b1_0111} {
		chosen, err := At(ds).Choose(0, []int64{[]int64{4, 0, 0}[step]})
		if step == 0 && err == nil {
			chosen, err = At(ds).Choose(1, []int64{4, 0})
		}
		require.NoError(t, err)
		m, err := At(ds).Delete(chosen, Options{})
		require.NoError(t, err)
		if words, err := m.Deleted.Words(m.Records); err != nil || words[0] != want {
			t.Errorf("%b are deleted, want %b: %v", words, want, err)
		}
	}
	for want, numbers := range map[string][]int64{
		"record 20: generation 4 has 19 records": {20},
		"record -1: ":                            {-1},
		"record 3 is given twice":                {3, 4, 3},
	} {
		if _, err := At(ds).Choose(0, numbers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q", numbers, err, want)
		}
	}
	if _, err := At(ds).Choose(9, []int64{0}); err == nil {
		t.Error("a generation that is not there was found")
	}
}

// A column that is written while records are deleted has statistics of the others: what the deleted ones have instead of
// values was never given.
func TestStatisticsOfAColumnWithoutDeletedRecords(t *testing.T) {
	for _, f := range []store.Field{store.NewField("new", tensor.Float32), store.NewField("labels", tensor.Float32), tokens} {
		ds := small(t)
		if _, err := At(ds).Delete(Chosen{Words: []uint64{0b1011_0000_0000_0000_0111}}, Options{}); err != nil {
			t.Fatal(err)
		}
		one := binary.LittleEndian.AppendUint32(nil, math.Float32bits(100))
		if f.DType == tensor.Int64 {
			one = binary.LittleEndian.AppendUint64(nil, 2)
		}
		values := func(first int64) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				for i := first; i < records-6 && yield(one, nil); i++ {
				}
			}
		}
		m, err := At(ds).AddColumn(f, values, Options{})
		if f.Name == labels.Name {
			m, err = At(ds).SetColumn(f, values, Options{})
		}
		require.NoError(t, err)
		s := m.Statistics[f.Name]
		switch {
		case s.Min != s.Max || s.Std != 0 || s.Min != s.Mean:
			t.Errorf("%s: %+v", f.Name, s)
		case s.Lengths != nil && s.Lengths.Min != 1:
			t.Errorf("lengths %+v", s.Lengths)
		}
		if r, corrupt := datasettest.Verify(t, ds); len(corrupt) > 0 || !r.Identity {
			t.Errorf("%s: %v", f.Name, corrupt)
		}
	}
}

// A column that is set while records are deleted keeps their values, and so they can be restored. Records that a column
// has no values for cannot, and the error says which these are.
func TestSetKeepsDeletedRecords(t *testing.T) {
	for _, c := range containers {
		t.Run(c.name, func(t *testing.T) { testSetKeeps(t, newHistory(t, c, 1)) })
	}
}

func testSetKeeps(t *testing.T, h *history) {
	now := h.kept[h.newest]
	mark := func(places ...int) (c Chosen) {
		c.Words = make([]uint64, (now.stored()+63)/64)
		for _, i := range places {
			c.Words[i/64] |= 1 << (i % 64)
		}
		return c
	}
	remove := func(places ...int) {
		next := h.kept[h.newest].clone()
		for _, i := range places {
			next.gone[i] = true
		}
		_, err := h.d.Delete(mark(places...), Options{})
		h.now(next, err)
	}
	put := func(f store.Field, do func(store.Field, Values, Options) (*store.Manifest, error)) {
		now := h.kept[h.newest]
		values := h.make(f, now.records())
		_, err := do(f, stopping(values, -1), Options{})
		h.now(now.put(f, values), err)
	}
	remove(0, 3, 4)
	for _, f := range now.fields {
		put(f, h.d.SetColumn)
	}
	next := h.kept[h.newest].clone()
	clear(next.gone)
	_, err := h.d.Undelete(mark(0, 3, 4), Options{})
	h.now(next, err)

	remove(1, 2)
	late := store.NewField("late", tensor.Float32)
	put(late, h.d.AddColumn)
	remove(5, 6)
	put(late, h.d.SetColumn)
	for _, wrong := range [][]int{{1, 2, 5, 6}, {1, 2}} {
		_, err = h.d.Undelete(mark(wrong...), Options{})
		for _, want := range []string{fmt.Sprintf("2 of these %d records", len(wrong)), `"late"`, "stored at 1, 2;"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %s", wrong, err, want)
			}
		}
	}
	next = h.kept[h.newest].clone()
	delete(next.gone, 5)
	_, err = h.d.Undelete(mark(5), Options{})
	h.now(next, err)
	h.check()
}

// After a restore of an earlier generation, records that are appended are not those that stood in their places before:
// what was chosen or computed of these is refused.
func TestAppendedInTheirPlaces(t *testing.T) {
	h := newHistory(t, containers[0], 1)
	first := h.kept[1]
	h.append(true, first)
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
	chosen, err := h.d.Choose(2, []int64{records})
	require.NoError(t, err)
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

// Prune that cannot have its lock says why, and not that another process is at work.
func TestPruneWithoutLock(t *testing.T) {
	ds := small(t)
	require.NoError(t, os.Mkdir(write.StageDir(ds)+".lock", 0o700))
	if _, err := At(ds).Prune(PruneOptions{}); err == nil || strings.Contains(err.Error(), "process") {
		t.Errorf("%v", err)
	}
}
