package prepare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/hostilebucket"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
)

// bounded runs do, which must not take more memory than that in all, nor a day of the clock of the test.
func bounded(t *testing.T, bytes uint64, do func(ctx context.Context) error) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	err := do(ctx)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > bytes {
		t.Errorf("%d bytes were allocated", used)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Error("it did not end")
	}
	return err
}

// alone makes sure that a folder holds the dataset and nothing else, and that it opens if there was no error.
func alone(t *testing.T, dest string, err error) {
	t.Helper()
	entries, listErr := os.ReadDir(filepath.Dir(dest))
	if listErr != nil {
		t.Fatal(listErr)
	}
	for _, e := range entries {
		if name := e.Name(); !strings.Contains(name, filepath.Base(dest)) {
			t.Errorf("%s was created next to the dataset", name)
		}
	}
	if err != nil {
		return
	}
	d, err := mmapds.Open(dest)
	if err != nil {
		t.Errorf("what was made does not open: %v", err)
		return
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A source in a bucket that answers wrongly gives a dataset of what came, or an error.
func TestHostileBucketAsSource(t *testing.T) {
	photos, table := rawtest.Folder(t, 8), raggedRows(t, 20)
	honest := &membucket.Memory{Name: "s3://lab"}
	fillBucket(t, honest, photos, "photos")
	fillBucket(t, honest, table, "rows/"+filepath.Base(table))
	attacks := append(slices.Clone(hostilebucket.Reads), hostilebucket.Lists()...)
	for _, attack := range attacks {
		for _, key := range []string{"photos", "rows/" + filepath.Base(table)} {
			if key != "photos" && attack.List != nil {
				continue // a table is no listing
			}
			t.Run(attack.Name+"/"+key, func(t *testing.T) {
				useURLs(t, &hostilebucket.Bucket{Bucket: honest, Attack: attack})
				c := config(t, urlOf(key))
				c.Skip = true
				if key != "photos" {
					c.Images.Resize, c.Images.Crop = nil, nil
				}
				synctest.Test(t, func(t *testing.T) {
					err := bounded(t, 2<<30, func(ctx context.Context) error {
						_, err := Run(ctx, c, &rawtest.Silent{})
						return err
					})
					alone(t, c.Dest, err)
					t.Log(err)
				})
			})
		}
	}
}

// sinking is a bucket that does something else with what is written.
type sinking struct {
	*membucket.Memory
	write func(data []byte) ([]byte, error)
	fails error // of every Commit
}

func (*sinking) Close() error { return nil }

func (s *sinking) NewWriter(ctx context.Context, key string, o remote.WriteOptions) (remote.Writer, error) {
	w, err := s.Memory.NewWriter(ctx, key, o)
	return &sink{w, s}, err
}

type sink struct {
	remote.Writer
	to *sinking
}

func (s *sink) Write(p []byte) (int, error) {
	if s.to.write == nil {
		return s.Writer.Write(p)
	}
	data, err := s.to.write(p)
	if err != nil {
		return 0, err
	}
	if _, err := s.Writer.Write(data); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *sink) Commit() error {
	if s.to.fails != nil {
		return s.to.fails
	}
	return s.Writer.Commit()
}

// A destination that answers wrongly gets the dataset, or the run is an error. Objects that are not of the dataset stay,
// whatever a listing says, and nothing is written outside the spool.
func TestHostileBucketAsDestination(t *testing.T) {
	photos := rawtest.Folder(t, 8)
	attacks := append(slices.Clone(hostilebucket.Reads), hostilebucket.Lists()...)
	for _, attack := range attacks {
		t.Run(attack.Name, func(t *testing.T) {
			honest := &membucket.Memory{Name: "s3://lab"}
			_ = testDestination(t, photos, &hostilebucket.Bucket{Bucket: honest, Attack: attack}, honest)
		})
	}
	cut := func(p []byte) ([]byte, error) { return p[:len(p)/2], nil }
	for name, s := range map[string]*sinking{
		"writes lose bytes": {write: cut},
		"writes fail":       {write: func([]byte) ([]byte, error) { return nil, errors.New("507 Insufficient Storage") }},
		"commits fail":      {fails: errors.New("500 Internal Error")},
		"commits hang up":   {fails: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			s.Memory = &membucket.Memory{Name: "s3://lab"}
			if err := testDestination(t, photos, s, s.Memory); err == nil {
				t.Error("no error")
			}
		})
	}
}

func testDestination(t *testing.T, source string, b remote.Bucket, honest *membucket.Memory) (err error) {
	t.Helper()
	for _, key := range []string{"private/keep", "keep", "out/other/manifest.json"} {
		honest.Put(key, []byte("the only copy"))
	}
	useURLs(t, b)
	spool := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for _, overwrite := range []bool{false, true} {
			c := config(t, source)
			c.Dest, c.Spool, c.Overwrite = urlOf("out/ds"), spool, overwrite
			err = bounded(t, 2<<30, func(ctx context.Context) error {
				_, err := Run(ctx, c, &rawtest.Silent{})
				return err
			})
			t.Logf("overwrite %t: %v", overwrite, err)
		}
	})
	for _, key := range []string{"private/keep", "keep", "out/other/manifest.json"} {
		if _, err := honest.Stat(t.Context(), key); err != nil {
			t.Errorf("an object of somebody else: %v", err)
		}
	}
	for file := range foldertest.Files(t, spool) {
		if !strings.HasPrefix(file, fmt.Sprintf("penstock-%d%c", os.Geteuid(), filepath.Separator)) {
			t.Errorf("%s was made in the spool", file)
		}
	}
	return err
}
