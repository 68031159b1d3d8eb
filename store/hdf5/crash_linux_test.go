package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// crashed is the test of a build that ends at every one of its steps.
type crashed struct {
	course
	before []byte // of the file that exists at first; nil: none
	want   []byte
}

// crashCourse is a build of few steps.
func crashCourse(kind string) course {
	c := newCourse(kind)
	c.records, c.every = 12, 5
	if c.opts.Records == 0 {
		labels := store.NewField("labels", tensor.Int64)
		c.schema = store.Schema{Fields: []store.Field{labels, store.NewRagged("tokens", tensor.Int32)}}
		c.fill = func(r *store.Record, i int) {
			r.Values[0][0] = byte(i)
			r.Values[1] = append(r.Values[1][:0], make([]byte, i*400)...)
			r.Values[1] = append(r.Values[1], byte(i), 1, 2, 3)
		}
	}
	return c.begun(kind)
}

// recorded is the part of TestCrashes that runs in a process of its own.
func recorded(t *testing.T, dest string) {
	c := crashCourse(os.Getenv(child + "_KIND"))
	c.reached = func(n int) error {
		mark := filepath.Join(os.Getenv(child+"_MARKS"), crash.MarkPrefix+strconv.Itoa(n))
		return os.WriteFile(mark, nil, 0o600)
	}
	if _, err := c.resume(dest); err != nil {
		t.Fatal(err)
	}
}

// newDir returns a folder with what there is before the build.
func (c *crashed) newDir(t *testing.T) string {
	t.Helper()
	dir := crash.MemoryDir(t)
	if c.before != nil {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x.h5"), c.before, 0o444))
	}
	return dir
}

// goOn resumes a build after a crash, which must have kept its last checkpoint.
func (c *crashed) goOn(s crash.State, dir string) error {
	dest := filepath.Join(dir, "x.h5")
	is, err := os.ReadFile(dest)
	if err == nil && !bytes.Equal(is, c.want) && !bytes.Equal(is, c.before) {
		return errors.New("there is a file which is not whole")
	}
	if c.before == nil || !bytes.Equal(is, c.want) || fileCount(dir) > 1 {
		kept, err := c.resume(dest)
		if err != nil {
			return err
		}
		if least, _ := strconv.Atoi(s.Mark); kept < least {
			return fmt.Errorf("%d records were kept of %d", kept, least)
		}
	}
	if is, err = os.ReadFile(dest); err != nil || !bytes.Equal(is, c.want) {
		return fmt.Errorf("other bytes than those of a build that was not interrupted (%v)", err)
	}
	if n := fileCount(dir); n != 1 {
		return fmt.Errorf("%d files are left", n)
	}
	return nil
}

func fileCount(dir string) int {
	list, _ := os.ReadDir(dir)
	return len(list)
}

// ending picks states of builds that had begun to finish: the journal says so, or
// a file was about to be moved.
var ending = map[string]func(folder string) bool{
	"exact": func(folder string) bool { return has(folder, write.JournalName, `"undo":`) },
	"fewer": func(folder string) bool {
		return has(folder, "build.moving", trimmedName) && has(folder, trimmedName, "")
	},
	"ragged": func(folder string) bool { return has(folder, write.JournalName, `"renames":`) },
}

// has reports whether a file of the stage exists and contains that text.
func has(folder, name, text string) bool {
	data, err := os.ReadFile(filepath.Join(folder, ".x.h5.building", name))
	return err == nil && bytes.Contains(data, []byte(text))
}

// A build that ends at any of its steps, by a kill or a power cut, goes on and ends with the
// bytes of one that was not interrupted; also if that happens once more while it goes on.
func TestCrashes(t *testing.T) {
	if dest := os.Getenv(child); dest != "" {
		onlyBy(os.Getenv(child + "_BY"))
		recorded(t, dest)
		return
	}
	eachContainer(t, testCrashes)
}

func testCrashes(t *testing.T) {
	for _, kind := range []string{"exact", "fewer", "ragged", packedKind + "plain", appendKind} {
		t.Run(kind, func(t *testing.T) {
			c := newCrashed(t, kind)
			dir := c.newDir(t)
			trial := crash.Trial{
				Folder: dir, Scratch: crash.MemoryDir(t), GoOn: c.goOn,
				Twice: ending[kind],
				Done:  func() { c.want = read(t, filepath.Join(dir, "x.h5")) },
				Command: func(folder string) (env, args []string) {
					env = []string{child + "=" + filepath.Join(folder, "x.h5"), child + "_KIND=" + kind, child + "_MARKS=" + folder, child + "_BY=" + containers[0].name()}
					return env, []string{"-test.run=^TestCrashes$"}
				},
			}
			trial.Run(t)
		})
	}
}

func newCrashed(t *testing.T, kind string) *crashed {
	t.Helper()
	c := &crashed{course: crashCourse(kind)}
	if kind == appendKind {
		base := c.course
		base.opts, base.records = Options{Splits: trainVal, Compress: &Compression{Level: 1}}, 7
		path := filepath.Join(t.TempDir(), "base.h5")
		if _, err := base.resume(path); err != nil {
			t.Fatal(err)
		}
		c.before = read(t, path)
	}
	return c
}
