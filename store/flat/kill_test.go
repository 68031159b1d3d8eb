package flat

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

// builder is the variable by which a test runs itself as a process that is killed.
const builder = "PENSTOCK_STORE_BUILDER"

// create is Create, or that of package zarr where the name says so.
func create(dest string, schema store.Schema, opts Options) (store.Writer, error) {
	if filepath.Ext(dest) != ".zarr" {
		return Create(dest, schema, opts)
	}
	return zarr.Create(dest, schema, zarr.Options{
		ShardBytes: opts.ShardBytes, Overwrite: opts.Overwrite, Append: opts.Append, Splits: opts.Splits, Journal: opts.Journal,
	})
}

// names are those of datasets of all formats.
var names = []string{"ds", "ds.zarr"}

// killSchema has a ragged field and one of a fixed length, so that there are several shards.
func killSchema() store.Schema {
	return store.Schema{Fields: []store.Field{store.NewRagged("tokens", tensor.Int32), store.NewField("labels", tensor.Int64)}}
}

// fillKill makes record i.
func fillKill(r *store.Record, i int) {
	r.Values[0] = r.Values[0][:0]
	for k := range i * 37 % 101 {
		r.Values[0] = binary.LittleEndian.AppendUint32(r.Values[0], uint32(i*1000+k))
	}
	binary.LittleEndian.PutUint64(r.Values[1], uint64(i))
}

const killRecords = 3000

// killSplit spreads records over two splits.
func killSplit(i int) string {
	if i%5 == 4 {
		return "val"
	}
	return "train"
}

// killNote stores the position from which the builder's driver continues.
type killNote struct{ Next int }

// wentOn is printed by a builder that resumed and found records; goneOn counts such builders.
const wentOn = "went on"

var goneOn int

// resumeBuild builds a dataset with a journal, going on where an earlier run was killed. Some
// records are left out, so that the driver's position is not the number of records.
func resumeBuild(dest string, appended bool, say func(string)) error {
	w, err := create(dest, killSchema(), Options{
		ShardBytes: 1, Splits: []string{"train", "val"}, Append: appended,
		Journal: &store.Journal{Resume: true, Inputs: map[string]string{"source": "numbers"}},
	})
	if errors.Is(err, store.ErrExist) || errors.Is(err, store.ErrCommitted) {
		return nil // it was killed when all was done
	}
	if err != nil {
		return err
	}
	defer w.Close()
	say("begun")
	next, err := position(w.Kept())
	if err != nil {
		return err
	}
	if next > 0 {
		say(wentOn)
	}
	r := store.NewRecord(killSchema())
	for i := next; i < killRecords; i++ {
		if i%311 == 0 {
			note, _ := json.Marshal(killNote{i})
			if err := w.Checkpoint(note); err != nil {
				return err
			}
		}
		if i%13 == 0 {
			continue
		}
		fillKill(r, i)
		r.Split = killSplit(i)
		if err := w.Append(r); err != nil {
			return err
		}
	}
	say("committing")
	_, err = w.Commit(store.Info{Source: &store.SourceInfo{Kind: "test", Name: "numbers"}})
	return err
}

// position returns the first number that is not in the dataset, which must have all others.
func position(k store.Kept) (int, error) {
	if !k.Resumed || len(k.Notes) == 0 {
		return 0, nil
	}
	var n killNote
	if err := json.Unmarshal(k.Notes[len(k.Notes)-1], &n); err != nil {
		return 0, err
	}
	if want := int64(n.Next - (n.Next+12)/13); k.Records != want {
		return 0, fmt.Errorf("%d records are kept at number %d, want %d", k.Records, n.Next, want)
	}
	return n.Next, nil
}

// crashBuilder is the build whose crashes are tried, where the system lets that be.
var crashBuilder func(dest, kind string) error

// TestMain is the builder, where that is asked for.
func TestMain(m *testing.M) {
	dest := os.Getenv(builder)
	if dest == "" {
		os.Exit(crash.Main(m))
	}
	if kind := os.Getenv(builder + "_CRASH"); kind != "" {
		if err := crashBuilder(dest, kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	say := func(what string) { fmt.Println(what) }
	if err := resumeBuild(dest, os.Getenv(builder+"_APPEND") != "", say); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runAndKill runs the builder and kills it some time after it said what; a process that came
// to its end reports done.
func runAndKill(t *testing.T, dest, what string, after time.Duration, env ...string) (done bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), builder+"="+dest, "GORACE=atexit_sleep_ms=0"), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for s := bufio.NewScanner(out); s.Scan(); {
		if s.Text() == wentOn {
			goneOn++
		}
		if s.Text() == what {
			defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
		}
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && !exit.Exited() {
		return false
	}
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	return true
}

// sameFolder compares two datasets, and checks that nothing else is next to dest.
func sameFolder(t *testing.T, dest string, want map[string]string) {
	t.Helper()
	got := foldertest.Files(t, dest)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: other bytes than those of the build that was not interrupted", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
	if left, err := os.ReadDir(filepath.Dir(dest)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// killUntilDone kills the builder at random moments until it comes to its end, and returns
// how often.
func killUntilDone(t *testing.T, rng *rand.Rand, dest string, took time.Duration, env ...string) (kills int) {
	t.Helper()
	for ; ; took += took / 8 { // it may be slower by now
		what, after := "begun", time.Duration(rng.Int64N(int64(took)))
		if rng.IntN(3) == 0 {
			what, after = "committing", time.Duration(rng.Int64N(int64(took)/4))
		}
		if runAndKill(t, dest, what, after, env...) {
			return kills
		}
		kills++
	}
}

// least is small as TestCrashes leaves nothing to chance.
var least = flag.Int("kills", 1, "builds that are killed at random moments, at least")

// A build that is killed again and again ends with the bytes of one that never was.
func TestKilledBuilds(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { testKilledBuilds(t, name) })
	}
}

func testKilledBuilds(t *testing.T, name string) {
	dir := crash.MemoryDir(t)
	whole := filepath.Join(dir, "whole", name)
	begin := time.Now()
	if !runAndKill(t, whole, "never", 0) {
		t.Fatal("the builder does not end")
	}
	took := time.Since(begin)
	want := foldertest.Files(t, whole)
	rng := rand.New(rand.NewPCG(uint64(begin.UnixNano()), 1))
	kills := 0
	for n := 0; kills < *least && n < 10**least; n++ {
		dest := filepath.Join(dir, fmt.Sprint(n), name)
		kills += killUntilDone(t, rng, dest, took)
		sameFolder(t, dest, want)
		removeAll(t, filepath.Dir(dest))
	}
	if kills == 0 {
		t.Error("no build was killed")
	}
	t.Logf("%d kills, %d builds that went on; one takes %v", kills, goneOn, took)
}

// An append that is killed leaves the dataset as it was, or as it was to be.
func TestKilledAppends(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { testKilledAppends(t, name) })
	}
}

func testKilledAppends(t *testing.T, name string) {
	dir := crash.MemoryDir(t)
	whole := filepath.Join(dir, "whole", name)
	runAndKill(t, whole, "never", 0)
	base := foldertest.Files(t, whole)
	begin := time.Now()
	runAndKill(t, whole, "never", 0, builder+"_APPEND=1")
	took := time.Since(begin)
	want := foldertest.Files(t, whole)
	rng := rand.New(rand.NewPCG(uint64(begin.UnixNano()), 2))
	for n := range max(3, *least) {
		dest := filepath.Join(dir, fmt.Sprint(n), name)
		foldertest.Write(t, dest, base)
		for most := took; ; most += most / 8 {
			what, after := "begun", time.Duration(rng.Int64N(int64(most)))
			if rng.IntN(3) == 0 {
				what, after = "committing", time.Duration(rng.Int64N(int64(most)/4))
			}
			done := runAndKill(t, dest, what, after, builder+"_APPEND=1")
			d, err := store.Open(dest, store.OpenOptions{})
			if err != nil {
				t.Fatalf("after a kill: %v", err)
			}
			if d.Manifest.Generation == 2 {
				stage, err := write.OpenStage(dest, write.StageOptions{Append: true}) // what the next run does first
				if err == nil {
					err = stage.Abort()
				}
				require.NoError(t, err)
				break
			}
			if done {
				t.Fatal("the append is done, and not there")
			}
		}
		sameFolder(t, dest, want)
		removeAll(t, filepath.Dir(dest))
	}
}

// removeAll makes room for what else a test makes.
func removeAll(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
}
