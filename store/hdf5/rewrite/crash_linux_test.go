package rewrite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
)

// The variables by which a test runs itself as a process that makes a change.
const (
	changeEnv = "PENSTOCK_REWRITE_CHANGE"
	folderEnv = "PENSTOCK_REWRITE_FOLDER"
)

func TestMain(m *testing.M) {
	change := os.Getenv(changeEnv)
	if change == "" {
		os.Exit(crash.Main(m))
	}
	if err := changes[change](filepath.Join(os.Getenv(folderEnv), "ds.h5")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// changes may be made again after they were cut short.
var changes = map[string]func(path string) error{
	"add": func(path string) error { return add(path, nil) },
	"resumable": func(path string) error {
		return add(path, &store.Journal{Resume: true})
	},
	"delete": func(path string) error {
		if m, err := store.ReadManifest(path); err != nil || m.Records < records {
			return err
		}
		return second(Delete(path, edit.Chosen{Words: []uint64{0b1001}}, Options{}))
	},
}

func add(path string, j *store.Journal) error {
	err := second(AddColumn(path, score, from(valuesOf(score, 1, records), -1), Options{Options: edit.Options{Journal: j}}))
	if errors.Is(err, store.ErrExist) {
		return nil
	}
	return err
}

// A change that is cut short at any of its steps, by a kill or a power cut, has happened or has not: the file is the old
// one or the new one, whole. The next change removes what is left beside it.
func TestCrashes(t *testing.T) {
	for kind, opts := range kinds {
		for change := range changes {
			t.Run(kind+"/"+change, func(t *testing.T) {
				dir := crash.MemoryDir(t)
				path := filepath.Join(dir, "ds.h5")
				before := begin(t, path, opts, pages, labels, tokens, names)
				after := before.clone()
				if change == "delete" {
					after.splits = nil
					for name, values := range before.values {
						after.values[name] = append(append([][]byte(nil), values[1:3]...), values[4:]...)
					}
				} else {
					after.fields = append(after.fields, score)
					after.values[score.Name] = valuesOf(score, 1, records)
				}
				trial := crash.Trial{
					Folder: dir, Scratch: crash.MemoryDir(t), Done: func() {},
					GoOn: func(_ crash.State, folder string) error {
						return goOn(filepath.Join(folder, "ds.h5"), change, before, after)
					},
					Command: func(folder string) (env, args []string) {
						return []string{changeEnv + "=" + change, folderEnv + "=" + folder}, nil
					},
				}
				trial.Run(t)
			})
		}
	}
}

// goOn checks a state, makes the change again, and then another one.
func goOn(path, change string, before, after content) error {
	if errBefore, errAfter := is(path, before), is(path, after); errBefore != nil && errAfter != nil {
		return fmt.Errorf("neither the old file (%w) nor the new one (%w)", errBefore, errAfter)
	}
	if err := changes[change](path); err != nil {
		return err
	}
	if err := is(path, after); err != nil {
		return err
	}
	if _, err := RenameColumn(path, "labels", "class", Options{}); err != nil {
		return err
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		return fmt.Errorf("left: %v, %w", left, err)
	}
	return nil
}
