package hdf5

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

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
	c := course{schema: packedSchema(), records: 1200, every: 100}
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

// packedKind is before the name of a compression, appendKind adds to a compressed file.
const (
	packedKind = "packed "
	appendKind = "append"
)

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
