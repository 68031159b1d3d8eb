//go:build cgo

package hdf5

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/store"
)

const killRecords = 1200

func trainOrVal(i int) string {
	if i%5 == 4 {
		return "val"
	}
	return "train"
}

// killOptions are those of a build that can be resumed: of ragged fields in splits, of many
// fields that are compressed, or of images whose number is known, exactly or not.
func killOptions(kind string) (store.Schema, Options) {
	journal := &store.Journal{Resume: true, Inputs: map[string]string{"kind": kind}}
	switch kind {
	case "exact":
		return imageSchema(9, 9), Options{Records: killRecords, Journal: journal}
	case "fewer":
		return imageSchema(9, 9), Options{Records: killRecords + 7, Journal: journal}
	}
	if kind == appendKind {
		return packedSchema(), Options{Splits: []string{"train", "val"}, Journal: journal, Append: true}
	}
	if c, ok := strings.CutPrefix(kind, packedKind); ok {
		compression := compressions[c]
		return packedSchema(), Options{Splits: []string{"train", "val"}, Journal: journal, Compress: &compression}
	}
	return raggedSchema(), Options{Splits: []string{"train", "val"}, Journal: journal}
}

// packedKind is before the name of a compression, appendKind adds to a compressed file of
// baseRecords.
const (
	packedKind  = "packed "
	appendKind  = "append"
	baseRecords = 500
)

// wentOn is what a builder says that found records.
const wentOn = "went on"

// resumeBuild goes on with a build where an earlier run was killed.
func resumeBuild(dest, kind string) error {
	s, opts := killOptions(kind)
	w, err := Create(dest, s, opts)
	if errors.Is(err, store.ErrExist) || errors.Is(err, store.ErrCommitted) {
		return nil // it was killed when all was done
	}
	if err != nil {
		return err
	}
	defer w.Close()
	if w.Kept().Records > 0 {
		fmt.Println(wentOn)
	}
	r := store.NewRecord(s)
	for i := int(w.Kept().Records); i < killRecords; i++ {
		if i%100 == 0 {
			note, _ := json.Marshal(i)
			if err := w.Checkpoint(note); err != nil {
				return err
			}
		}
		switch {
		case kind == "ragged":
			fillRagged(r, i)
			r.Split = trainOrVal(i)
		case opts.Compress != nil || opts.Append:
			fillPacked(s, r, i)
			r.Split = trainOrVal(i)
		default:
			fill(s, r, i)
		}
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}

// runAndKill runs the calling test as the builder and kills it after a while, if after is
// not 0. It reports whether the builder came to its end, and counts those that went on.
func runAndKill(t *testing.T, dest, kind string, after time.Duration, resumed *int) (done bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledBuilds$") // which is the builder of all kinds
	cmd.Env = append(os.Environ(), child+"="+dest, child+"_KIND="+kind, "GORACE=atexit_sleep_ms=0")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

// A build that is killed again and again ends with the bytes of one that never was.
func TestKilledBuilds(t *testing.T) {
	if dest := os.Getenv(child); dest != "" {
		if err := resumeBuild(dest, os.Getenv(child+"_KIND")); err != nil {
			t.Fatal(err)
		}
		return
	}
	least := 30
	if testing.Short() {
		least = 4
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 3))
	for _, kind := range []string{"ragged", "exact", "fewer", packedKind + "plain", packedKind + "shuffle"} {
		dir := memoryDir(t)
		whole := filepath.Join(dir, "whole", "x.h5")
		begin := time.Now()
		kills, resumed := 0, 0
		runAndKill(t, whole, kind, 0, &resumed)
		took := time.Since(begin)
		want := read(t, whole)
		for n := 0; kills < least && n < 100; n++ {
			dest := filepath.Join(dir, fmt.Sprint(n), "x.h5")
			for !runAndKill(t, dest, kind, 1+time.Duration(rng.Int64N(int64(took*6/5))), &resumed) {
				kills++
			}
			if !bytes.Equal(read(t, dest), want) {
				t.Errorf("%s: other bytes than those of the build that was not interrupted", kind)
			}
			if left := entries(t, filepath.Dir(dest)); len(left) != 1 {
				t.Errorf("%s: left behind: %v", kind, left)
			}
		}
		if kills == 0 || resumed == 0 {
			t.Errorf("%s: %d kills, and %d builds that went on", kind, kills, resumed)
		}
		t.Logf("%s: %d kills, %d builds that went on; one takes %v", kind, kills, resumed, took)
	}
}

// An append to a compressed file that is killed leaves the file as it was, or as it was to be;
// in the end it is the one of an append that was not.
func TestKilledAppends(t *testing.T) {
	dir := memoryDir(t)
	base := filepath.Join(dir, "base.h5")
	c := compressions["plain"]
	buildPacked(t, base, 0, baseRecords, Options{Splits: trainVal, Compress: &c})
	before := read(t, base)
	start := func(name string) string {
		dest := filepath.Join(dir, name, "x.h5")
		if err := os.MkdirAll(filepath.Dir(dest), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dest, before, 0o666); err != nil {
			t.Fatal(err)
		}
		return dest
	}
	whole, resumed := start("whole"), 0
	begin := time.Now()
	runAndKill(t, whole, appendKind, 0, &resumed)
	took := time.Since(begin)
	after := read(t, whole)
	least, kills := 30, 0
	if testing.Short() {
		least = 4
	}
	for n := 0; kills < least && n < 100; n++ {
		dest := start(fmt.Sprint(n))
		for !runAndKill(t, dest, appendKind, 1+time.Duration(rand.Int64N(int64(took*6/5))), &resumed) {
			kills++
			if is := read(t, dest); !bytes.Equal(is, before) && !bytes.Equal(is, after) {
				t.Fatal("a killed append changed the file")
			}
		}
		if !bytes.Equal(read(t, dest), after) {
			t.Error("other bytes than those of the append that was not interrupted")
		}
		if left := entries(t, filepath.Dir(dest)); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	}
	if kills == 0 || resumed == 0 {
		t.Errorf("%d kills, and %d appends that went on", kills, resumed)
	}
	t.Logf("%d kills, %d appends that went on; one takes %v", kills, resumed, took)
}

// memoryDir is a folder in memory, where there is one.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "penstock")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
