package rewrite

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
)

// script opens a file, waits for a line, and prints what it reads then, and what another handle reads.
const script = `
import sys, h5py
with h5py.File(sys.argv[1]) as f:
    print(",".join(f), flush=True)
    sys.stdin.readline()
    print(f["labels"][5], f["labels"].attrs["class_names"].tolist(), flush=True)
with h5py.File(sys.argv[1]) as f:
    print(",".join(f), f["score"].shape, f["class"].attrs["class_names"].tolist()[1], f["tokens/offsets"][-1], f.attrs["complete"])
`

// h5py reads the new file. A program that has the old one open keeps it, and so does a change: none waits for the other.
func TestReadByH5py(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ds.h5")
	c := begin(t, path, hdf5.Options{Compress: &hdf5.Compression{Level: 1}}, pages, labels)
	old, err := mmapds.Open(path)
	require.NoError(t, err)
	cmd := exec.Command(h5test.Python(t), "-c", script, path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "labels,pages,penstock\n" {
		t.Fatalf("%q, %v", line, err)
	}
	for _, err := range []error{
		second(AddColumn(path, score, from(valuesOf(score, 1, records), -1), Options{})),
		second(AddColumn(path, tokens, from(valuesOf(tokens, 0, records), -1), Options{})),
		second(RenameColumn(path, "labels", "class", Options{})), second(DropColumn(path, []string{"pages"}, Options{})),
	} {
		require.NoError(t, err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	want := "0 [b'cat', b'dog', b'emu']\nclass,penstock,score,tokens (23,) b'dog' 46 1\n"
	if err := cmd.Wait(); err != nil || string(rest) != want {
		t.Errorf("%v: %s, want %s", err, rest, want)
	}
	var page [512]byte
	if err := old.Gather(context.Background(), "pages", []int{3}, page[:]); err != nil || page[0] != c.values["pages"][3][0] {
		t.Errorf("the reader: %d, %v", page[0], err)
	}
	require.NoError(t, old.Close())
}

// Files that another program has changed, or is changing, are left as they are, and so are those of other programs.
func TestFilesOfOthers(t *testing.T) {
	h5test.Python(t)
	path := filepath.Join(t.TempDir(), "ds.h5")
	begin(t, path, hdf5.Options{}, pages, labels)
	drop := func(path string) error { return second(DropColumn(path, []string{"labels"}, Options{})) }
	foreign := filepath.Join(t.TempDir(), "foreign.h5")
	h5test.Run(t, "-c", "import sys, h5py\nwith h5py.File(sys.argv[1], 'w') as f: f['labels'] = [1, 2]", foreign)
	if err := drop(foreign); err == nil || !strings.Contains(err.Error(), "keeps no generations and cannot be changed") {
		t.Errorf("of another program: %v", err)
	}
	require.NoError(t, os.Chmod(path, 0o666))
	cmd := exec.Command(h5test.Python(t), "-c", "import sys, h5py\nwith h5py.File(sys.argv[1], 'r+') as f: print(flush=True); sys.stdin.read(); f['mine'] = list(range(5000))", path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := drop(path); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a file that h5py changes: %v", err)
	}
	require.NoError(t, errors.Join(in.Close(), cmd.Wait()))
	appended := func(path string) error {
		return second(hdf5.Create(path, store.Schema{Fields: pagesAndLabels}, hdf5.Options{Append: true}))
	}
	for name, do := range map[string]func(string) error{"drop": drop, "append": appended} {
		if err := do(path); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "another program has changed the file") {
			t.Errorf("%s: a file that h5py has changed: %v", name, err)
		}
	}
}

var pagesAndLabels = []store.Field{pages, labels}
