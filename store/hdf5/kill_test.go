package hdf5

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

const killRecords = 1200

func trainOrVal(i int) string {
	if i%5 == 4 {
		return "val"
	}
	return "train"
}

// course is a build that a test interrupts.
type course struct {
	schema         store.Schema
	opts           Options
	fill           func(r *store.Record, i int)
	records, every int               // number of records, and records between checkpoints
	reached        func(n int) error // called after the checkpoint before record n, and with records+1 at the end; may be nil
}

// newCourse returns one that can be resumed: of ragged fields in splits, of many fields that
// are compressed, or of images whose number is known, exactly or not.
func newCourse(kind string) course {
	c := course{schema: packedSchema(), records: killRecords, every: 100}
	c.fill = func(r *store.Record, i int) { fillPacked(c.schema, r, i) }
	compression, packed := strings.CutPrefix(kind, packedKind)
	switch {
	case kind == "exact" || kind == "fewer":
		c.schema = imageSchema(9, 9)
		c.fill = func(r *store.Record, i int) { fill(c.schema, r, i) }
	case kind == "ragged":
		c.schema, c.fill = raggedSchema(), fillRagged
	case packed:
		how := compressions[compression]
		c.opts.Compress = &how
	}
	return c.begun(kind)
}

// begun completes the options.
func (c course) begun(kind string) course {
	c.opts.Journal = &store.Journal{Resume: true, Inputs: map[string]string{"kind": kind}}
	c.opts.Append = kind == appendKind
	switch kind {
	case "exact":
		c.opts.Records = int64(c.records)
	case "fewer":
		c.opts.Records = int64(c.records) + 7
	default:
		c.opts.Splits = trainVal
	}
	return c
}

// packedKind is before the name of a compression, appendKind adds to a compressed file of
// baseRecords.
const (
	packedKind  = "packed "
	appendKind  = "append"
	baseRecords = 500
)

// wentOn is printed by a builder that resumed and found records.
const wentOn = "went on"

// resume continues the build where an earlier run was interrupted, and returns the number of
// records that it had; all of them if it was done.
func (c course) resume(dest string) (kept int, err error) {
	w, err := Create(dest, c.schema, c.opts)
	if errors.Is(err, store.ErrExist) || errors.Is(err, store.ErrCommitted) {
		return c.records + 1, nil
	}
	if err != nil {
		return 0, err
	}
	defer w.Close()
	kept = int(w.Kept().Records)
	r := store.NewRecord(c.schema)
	for i := kept; i < c.records; i++ {
		if i%c.every == 0 {
			note, _ := json.Marshal(i)
			if err := errors.Join(w.Checkpoint(note), c.report(i)); err != nil {
				return kept, err
			}
		}
		c.fill(r, i)
		if c.opts.Splits != nil {
			r.Split = trainOrVal(i)
		}
		if err := w.Append(r); err != nil {
			return kept, err
		}
	}
	if _, err = w.Commit(store.Info{}); err != nil {
		return kept, err
	}
	return kept, c.report(c.records + 1)
}

func (c course) report(n int) error {
	if c.reached == nil {
		return nil
	}
	return c.reached(n)
}

// runAndKill runs the calling test as the builder and kills it after a while, if after is
// not 0. It reports whether the builder came to its end, and counts those that went on.
func runAndKill(t *testing.T, dest, kind string, after time.Duration, resumed *int) (done bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledBuilds$") // which is the builder of all kinds
	cmd.Env = append(os.Environ(), child+"="+dest, child+"_KIND="+kind, child+"_BY="+containers[0].name(), "GORACE=atexit_sleep_ms=0")
	var out bytes.Buffer
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	if after > 0 {
		defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
	}
	err := cmd.Wait()
	if bytes.Contains(out.Bytes(), []byte(wentOn)) {
		*resumed++
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && !exit.Exited() {
		return false
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	return true
}

// least is small as TestCrashes leaves nothing to chance.
var least = flag.Int("kills", 1, "builds of each kind that are killed at random moments, at least")

// A build that is killed again and again ends with the bytes of one that never was.
func TestKilledBuilds(t *testing.T) {
	if dest := os.Getenv(child); dest != "" {
		onlyBy(os.Getenv(child + "_BY"))
		kept, err := newCourse(os.Getenv(child + "_KIND")).resume(dest)
		require.NoError(t, err)
		if kept > 0 && kept <= killRecords {
			fmt.Println(wentOn)
		}
		return
	}
	eachContainer(t, testKilledBuilds)
}

func testKilledBuilds(t *testing.T) {
	for _, kind := range []string{"ragged", "exact", "fewer", packedKind + "plain", packedKind + "shuffle"} {
		dir := crash.MemoryDir(t)
		whole := filepath.Join(dir, "whole", "x.h5")
		begin := time.Now()
		kills, resumed := 0, 0
		runAndKill(t, whole, kind, 0, &resumed)
		took := time.Since(begin)
		want := read(t, whole)
		for n := 0; kills < *least && n < 10**least; n++ {
			dest := filepath.Join(dir, fmt.Sprint(n), "x.h5")
			for most := took; !runAndKill(t, dest, kind, 1+rand.N(most*6/5), &resumed); most += most / 8 { // it may be slower by now
				kills++
			}
			if !bytes.Equal(read(t, dest), want) {
				t.Errorf("%s: other bytes than those of the build that was not interrupted", kind)
			}
			if left := entries(t, filepath.Dir(dest)); len(left) != 1 {
				t.Errorf("%s: left behind: %v", kind, left)
			}
			removeAll(t, filepath.Dir(dest))
		}
		if kills == 0 {
			t.Errorf("%s: no build was killed", kind)
		}
		t.Logf("%s: %d kills, %d builds that went on; one takes %v", kind, kills, resumed, took)
	}
}

// The file of a build that is killed when it is about to be published is read-only already, for
// all users but root; a build that goes on may write it.
func TestReadOnlyFileGoesOn(t *testing.T) { eachContainer(t, testReadOnlyFileGoesOn) }

func testReadOnlyFileGoesOn(t *testing.T) {
	c := newCourse("exact")
	dest := filepath.Join(t.TempDir(), "x.h5")
	w, direct := createDirect(t, dest, c.schema, c.opts)
	require.NoError(t, w.Checkpoint(nil))
	numbered{c.schema, c.fill}.add(t, w, 0, c.records)
	path := direct.stage.Folder.Path(stagedName)
	if err := errors.Join(direct.file.finish(), direct.end(), os.Chmod(path, 0o444), w.Close()); err != nil { // here it would be killed
		t.Fatal(err)
	}
	w, _ = createDirect(t, dest, c.schema, c.opts)
	defer w.Close()
	info, err := os.Stat(path)
	if err != nil || !w.Kept().Resumed || info.Mode().Perm()&0o200 == 0 {
		t.Errorf("%+v, %v, %v", w.Kept(), info.Mode(), err)
	}
}

// An append to a compressed file that is killed leaves the file as it was, or as it was to be;
// in the end it is the one of an append that was not.
func TestKilledAppends(t *testing.T) { eachContainer(t, testKilledAppends) }

func testKilledAppends(t *testing.T) {
	dir := crash.MemoryDir(t)
	base := filepath.Join(dir, "base.h5")
	c := compressions["plain"]
	buildPacked(t, base, 0, baseRecords, Options{Splits: trainVal, Compress: &c})
	before := read(t, base)
	start := func(name string) string {
		dest := filepath.Join(dir, name, "x.h5")
		require.NoError(t, os.MkdirAll(filepath.Dir(dest), 0o777))
		require.NoError(t, os.WriteFile(dest, before, 0o666))
		return dest
	}
	whole, resumed := start("whole"), 0
	begin := time.Now()
	runAndKill(t, whole, appendKind, 0, &resumed)
	took := time.Since(begin)
	after := read(t, whole)
	kills := 0
	for n := 0; kills < *least && n < 10**least; n++ {
		dest := start(fmt.Sprint(n))
		for most := took; !runAndKill(t, dest, appendKind, 1+rand.N(most*6/5), &resumed); most += most / 8 {
			kills++
			is := read(t, dest)
			if !bytes.Equal(is, before) && !bytes.Equal(is, after) {
				t.Fatal("a killed append changed the file")
			}
			if bytes.Equal(is, after) && len(entries(t, filepath.Dir(dest))) == 1 {
				break // killed at its exit: nothing is left to say that another one would be the second
			}
		}
		if !bytes.Equal(read(t, dest), after) {
			t.Error("other bytes than those of the append that was not interrupted")
		}
		if left := entries(t, filepath.Dir(dest)); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
		removeAll(t, filepath.Dir(dest))
	}
	if kills == 0 {
		t.Error("no append was killed")
	}
	t.Logf("%d kills, %d appends that went on; one takes %v", kills, resumed, took)
}

// removeAll makes room for what else a test makes.
func removeAll(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
}
