package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"feed": main})
}

// Every script finds in its folder flat, a dataset of three records.
func TestScripts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("not Linux: feed answers that it needs it")
	}
	testscript.Run(t, testscript.Params{Dir: filepath.Join("testdata", "script"), Setup: setup, Cmds: map[string]func(*testscript.TestScript, bool, []string){"waitfor": waitFor}})
}

// waitFor is "waitfor FILE": it waits until the file exists, for as long as the test may take.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	for range time.Tick(time.Millisecond) {
		if _, err := os.Lstat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
}

func setup(env *testscript.Env) error {
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, 4)}}
	w, err := flat.Create(filepath.Join(env.WorkDir, "flat"), schema, flat.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	for range 3 {
		if err := w.Append(store.NewRecord(schema)); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}
