package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// TestPruneErases looks for values of deleted records, and for the condition by which they were deleted, in all files.
func TestPruneErases(t *testing.T) {
	for _, c := range containers {
		t.Run(c.name, func(t *testing.T) { testErases(t, newHistory(t, c, 1)) })
	}
}

func testErases(t *testing.T, h *history) {
	now := h.kept[h.newest]
	found := func(text []byte) bool {
		files := make(map[string][]byte)
		if h.bucket {
			files = objectsOf(t, h.objects)
		} else if err := fs.WalkDir(os.DirFS(h.ds), ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				files[name], err = os.ReadFile(filepath.Join(h.ds, name))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, data := range files {
			if bytes.Contains(data, text) {
				return true
			}
		}
		return false
	}
	secret := now.values[pages.Name][3]
	if _, err := h.d.Delete(Chosen{Words: []uint64{1 << 3}, Where: "name = 'Ada'"}, Options{By: "delete --where \"name = 'Ada'\""}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, h.d.Tag("best", 1))
	p, err := h.d.Prune(PruneOptions{})
	if err != nil || p.Erased != 0 || !found(secret) {
		t.Fatalf("with a tag: %+v, %v", p, err)
	}
	require.NoError(t, h.d.Untag("best"))
	if p, err = h.d.Prune(PruneOptions{DryRun: true}); err != nil || p.Erased != 1 || !found(secret) {
		t.Fatalf("a dry run: %+v, %v", p, err)
	}
	if p, err = h.d.Prune(PruneOptions{By: "prune"}); err != nil || p.Erased != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if found(secret) || found([]byte("Ada")) {
		t.Error("values of a deleted record, or the condition, are in the files")
	}
	log, err := h.d.Log()
	if text, _ := json.Marshal(log); err != nil || len(log) != 1 || log[0].Change.Operation != "erase" || strings.Contains(string(text), "Ada") {
		t.Errorf("%s, %v", text, err)
	}
	left := now.clone()
	left.gone[3] = true
	h.kept = map[int]content{log[0].Generation: left}
	h.newest = log[0].Generation
	h.check()
	if _, err := h.d.Undelete(Chosen{Words: []uint64{1 << 3}}, Options{}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", pages.Name)) {
		t.Errorf("a record without values was restored: %v", err)
	}
	if p, err = h.d.Prune(PruneOptions{}); err != nil || p.Erased != 0 || len(p.Generations) != 0 {
		t.Errorf("again: %+v, %v", p, err)
	}
}

// TestErasureIsPostponed keeps the generation that was the newest while a reader has it open, and for the time of Within,
// and does not say that its values are erased.
func TestErasureIsPostponed(t *testing.T) {
	for _, within := range []time.Duration{0, time.Hour} {
		ds := small(t)
		if _, err := At(ds).Delete(Chosen{Words: []uint64{6}}, Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := At(ds).pruneFiles(PruneOptions{}, false); err != nil { // only the newest has the values
			t.Fatal(err)
		}
		reader, err := mmapds.Open(ds)
		require.NoError(t, err)
		if within > 0 {
			reader.Close()
		}
		p, err := At(ds).Prune(PruneOptions{Within: within})
		if err != nil || p.Erased != 0 || p.Postponed != 2 || (len(p.InUse) > 0) != (within == 0) {
			t.Errorf("within %v: %+v, %v", within, p, err)
		}
		reader.Close()
		if p, err = At(ds).Prune(PruneOptions{}); err != nil || p.Files == 0 || p.Postponed != 0 {
			t.Errorf("within %v, again: %+v, %v", within, p, err)
		}
	}
}

// TestEraseCondition takes the condition of a delete out of the log where no column has values of the records.
func TestEraseCondition(t *testing.T) {
	ds := small(t)
	for _, where := range []string{"labels = 1", "labels = 2"} {
		if _, err := At(ds).Delete(Chosen{Words: []uint64{map[string]uint64{"labels = 1": 1, "labels = 2": 2}[where]}, Where: where}, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := At(ds).Prune(PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	m, err := store.ReadManifest(ds)
	if err != nil || m.Change.Where != "" || m.Live() != records-2 {
		t.Errorf("%+v: %v", m.Change, err)
	}
}
