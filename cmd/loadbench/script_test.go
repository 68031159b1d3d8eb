package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

var update = flag.Bool("update", false, "write what the command prints into the scripts' files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"loadbench": main})
}

// Every script finds in its folder the datasets images (64 records of 3 x 16 x 16 bytes), one
// (a single record), bytes (500 records of one byte each), large (8 records of 1 MiB) and
// text (40 records of variable length).
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			return errors.Join(
				dataset(env, "images", 64, store.NewField("images", tensor.Uint8, 3, 16, 16), store.NewField("labels", tensor.Int64)),
				dataset(env, "one", 1, store.NewField("images", tensor.Uint8, 3, 16, 16)),
				dataset(env, "bytes", 500, store.NewField("x", tensor.Uint8)),
				dataset(env, "large", 8, store.NewField("x", tensor.Uint8, 1<<20)),
				dataset(env, "text", 40, store.NewRagged("text", tensor.Uint8)),
			)
		},
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"interrupted": interrupted},
		UpdateScripts: *update,
	})
}

func dataset(env *testscript.Env, name string, n int, fields ...store.Field) error {
	schema := store.Schema{Fields: fields}
	w, err := flat.Create(filepath.Join(env.WorkDir, name), schema, flat.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	for i := range n {
		r := store.NewRecord(schema)
		if fields[0].Ragged {
			r.Values[0] = make([]byte, i)
		}
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}

// interrupted OUT ARG... runs loadbench, sends Ctrl-C once its first row is done, and
// fails unless it then ends with exit code 130. Its output is in OUT.
func interrupted(ts *testscript.TestScript, _ bool, args []string) {
	program, err := exec.LookPath(filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "loadbench"))
	ts.Check(err)
	cmd := exec.Command(program, args[1:]...)
	cmd.Dir, cmd.Env = ts.Getenv("WORK"), append(os.Environ(), "TMPDIR="+ts.Getenv("TMPDIR"))
	out, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, &watcher{after: "batches (100 %)", act: func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			ts.Logf("signal: %v", err)
		}
	}}
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 {
		ts.Fatalf("loadbench: %v; want exit code 130", err)
	}
}
