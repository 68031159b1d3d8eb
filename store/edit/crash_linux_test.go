package edit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

// The variables by which a test runs itself as a process that makes a change.
const (
	changeEnv = "PENSTOCK_EDIT_CHANGE"
	folderEnv = "PENSTOCK_EDIT_FOLDER"
)

func main(m *testing.M) int {
	change := os.Getenv(changeEnv)
	if change == "" {
		return crash.Main(m)
	}
	if err := changes[change](filepath.Join(os.Getenv(folderEnv), "ds")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// changes are made to a dataset whose generations are 1 (pages, labels), 2 (with emb) and 3 (another emb). Each may be
// made again after it was cut short.
var changes = map[string]func(ds string) error{
	"add": func(ds string) error {
		_, err := At(ds).AddColumn(tokens, valuesOf(tokens, 0), Options{Journal: &store.Journal{Resume: true}})
		return done(err)
	},
	"rename": func(ds string) error {
		_, err := At(ds).RenameColumn("labels", "class", Options{})
		if m, errRead := store.ReadManifest(ds); errRead == nil && m.Schema().Index("class") >= 0 {
			return nil
		}
		return err
	},
	"restore": func(ds string) error { return second(At(ds).Restore("2", Options{})) },
	"tag":     func(ds string) error { return done(At(ds).Tag("best", 2)) },
	"prune": func(ds string) error {
		_, err := At(ds).Prune(PruneOptions{Last: 1, Keep: []int{1}})
		return err
	},
	"erase": func(ds string) error {
		_, err := At(ds).Prune(PruneOptions{})
		return err
	},
}

// done takes a change that was made already for one that was made.
func done(err error) error {
	if errors.Is(err, store.ErrExist) {
		return nil
	}
	return err
}

// A change that is cut short at any of its steps, by a kill or a power cut, has happened or has not. All generations
// are whole then, and the change can be made again.
func TestCrashes(t *testing.T) {
	for change := range changes {
		t.Run(change, func(t *testing.T) { testCrashes(t, containers[0], change) })
	}
	for _, change := range []string{"add", "prune", "erase"} {
		t.Run("zarr/"+change, func(t *testing.T) { testCrashes(t, containers[1], change) })
	}
}

func testCrashes(t *testing.T, in container, change string) {
	dir := crash.MemoryDir(t)
	ds := filepath.Join(dir, "ds")
	makeIn(t, in, ds, pages, labels)
	if _, err := At(ds).AddColumn(emb, valuesOf(emb, 0), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := At(ds).SetColumn(emb, valuesOf(emb, 1), Options{}); err != nil {
		t.Fatal(err)
	}
	if change == "erase" {
		if _, err := At(ds).Delete(Chosen{Words: []uint64{0b101}}, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	before := idsOf(t, ds)
	var after []string
	trial := crash.Trial{
		Folder: dir, Scratch: crash.MemoryDir(t),
		Done: func() { after = idsOf(t, ds) },
		GoOn: func(_ crash.State, folder string) error {
			return goOn(filepath.Join(folder, "ds"), change, before, after)
		},
		Command: func(folder string) (env, args []string) {
			return []string{changeEnv + "=" + change, folderEnv + "=" + folder}, nil
		},
	}
	trial.Run(t)
	if fmt.Sprint(before) == fmt.Sprint(after) && change != "tag" {
		t.Error("nothing has changed")
	}
}

// goOn checks a state, makes the change again, and checks that it is made.
func goOn(ds, change string, before, after []string) error {
	known := append(before, after...)
	if change == "erase" { // generations between them have ids of their own
		known = nil
	}
	if err := wholeGenerations(ds, known); err != nil {
		return fmt.Errorf("before it is made again: %w", err)
	}
	if err := changes[change](ds); err != nil {
		return err
	}
	if err := wholeGenerations(ds, known); err != nil {
		return err
	}
	m, err := store.ReadManifest(ds)
	if err != nil {
		return err
	}
	if m.ID != after[len(after)-1] {
		return fmt.Errorf("the change was not made: generation %d", m.Generation)
	}
	left, err := filepath.Glob(filepath.Join(ds, ".*"))
	if err == nil && len(left) == 0 {
		left, err = filepath.Glob(filepath.Join(filepath.Dir(ds), ".ds*"))
	}
	if len(left) > 0 && change != "prune" && change != "erase" {
		return fmt.Errorf("left: %q", left)
	}
	return err
}

// wholeGenerations verifies all generations. The ids of their records are among those; nil are any.
func wholeGenerations(ds string, ids []string) error {
	numbers, err := store.Generations(ds)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		d, err := store.Open(ds, store.OpenOptions{Generation: n})
		if err != nil {
			return err
		}
		known := ids == nil
		for _, id := range ids {
			known = known || id == d.Manifest.ID
		}
		r, err := verify.Dataset(context.Background(), d, verify.Options{Workers: 1})
		if err != nil || r.Corruptions > 0 || !r.Identity || !known {
			return fmt.Errorf("generation %d: %+v, known %v, %w", n, r, known, err)
		}
	}
	return nil
}

func idsOf(t *testing.T, ds string) (ids []string) {
	t.Helper()
	numbers, err := store.Generations(ds)
	require.NoError(t, err)
	for _, n := range numbers {
		m, _, err := store.ReadGeneration(ds, n)
		require.NoError(t, err)
		ids = append(ids, m.ID)
	}
	return ids
}
