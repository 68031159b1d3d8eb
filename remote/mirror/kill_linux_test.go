package mirror

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/smalldisk"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
)

// folder is a bucket of files, which takes its time.
type folder struct{ dir string }

func (f folder) String() string { return "folder://" + f.dir }
func (f folder) Close() error   { return nil }

func (f folder) Stat(_ context.Context, key string) (remote.Object, error) {
	info, err := os.Stat(filepath.Join(f.dir, key))
	if err != nil || info.IsDir() {
		return remote.Object{}, remote.NewError("stat", key, remote.ErrNotFound, err)
	}
	return remote.Object{Key: key, Size: info.Size()}, nil
}

func (f folder) ReadRange(_ context.Context, key string, off, n int64, _ string) (remote.Body, error) {
	file, err := os.Open(filepath.Join(f.dir, key))
	if errors.Is(err, fs.ErrNotExist) {
		return remote.Body{}, remote.NewError("read", key, remote.ErrNotFound, err)
	}
	if err != nil {
		return remote.Body{}, err
	}
	time.Sleep(time.Millisecond)
	if n < 0 {
		n = 1 << 40
	}
	return remote.Body{ReadCloser: sectionOf{io.NewSectionReader(file, off, n), file}, Object: remote.Object{Key: key, Size: -1}}, nil
}

type sectionOf struct {
	*io.SectionReader
	io.Closer
}

func (f folder) ListPage(context.Context, string, string, []byte) (remote.Page, error) {
	return remote.Page{}, errors.ErrUnsupported
}

func (f folder) NewWriter(context.Context, string, remote.WriteOptions) (remote.Writer, error) {
	return nil, errors.ErrUnsupported
}
func (f folder) Delete(context.Context, string) error       { return errors.ErrUnsupported }
func (f folder) Copy(context.Context, string, string) error { return errors.ErrUnsupported }

var killOptions = loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Seed: 2, Workers: 2}

// TestMain is also what the processes do that TestKilledProcesses starts.
func TestMain(m *testing.M) {
	dir, cache := os.Getenv("MIRROR_TEST_BUCKET"), os.Getenv("MIRROR_TEST_CACHE")
	if dir == "" {
		os.Exit(m.Run())
	}
	d, err := Open(context.Background(), folder{dir}, os.Getenv("MIRROR_TEST_KEY"), Options{CacheDir: cache, requestBytes: 64 << 10})
	if err != nil {
		panic(err)
	}
	ld, err := loader.New(d, killOptions)
	if err != nil {
		panic(err)
	}
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			panic(err)
		}
		_ = b
	}
	os.Exit(0)
}

// Processes that share a mirror and are killed while they fetch leave it intact.
func TestKilledProcesses(t *testing.T) { killProcesses(t, filepath.Dir(build(t, 4000)), "ds") }

// The same of a file in chunks.
func TestKilledProcessesOfChunks(t *testing.T) {
	path := chunkedFile(t, "2000")
	killProcesses(t, filepath.Dir(path), filepath.Base(path))
}

// mirrored reports whether a cache holds the state of a mirror: so a process came to fetch.
func mirrored(cache string) bool {
	found, err := filepath.Glob(filepath.Join(cache, "*", stateName))
	return err == nil && len(found) > 0
}

func killProcesses(t *testing.T, bucket, key string) {
	t.Helper()
	cache := filepath.Join(t.TempDir(), "cache")
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "MIRROR_TEST_BUCKET="+bucket, "MIRROR_TEST_KEY="+key, "MIRROR_TEST_CACHE="+cache)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		return cmd
	}
	killed, most := 0, 100*time.Millisecond
	for round := 0; round < 7 || killed == 0; round++ {
		a, b := start(), start()
		time.Sleep(20*time.Millisecond + rand.N(most))
		_ = errors.Join(a.Process.Kill(), b.Process.Kill()) // either may have ended
		switch err := a.Wait(); {
		case err != nil && mirrored(cache):
			killed++
		case err != nil: // it was too slow: more time
			most *= 2
		case killed == 0: // it was too fast: again, from nothing
			most /= 2
			cache = filepath.Join(t.TempDir(), "cache")
		}
		_ = b.Wait() // killed as well
		if round == 50 && killed == 0 {
			t.Fatal("no process was killed while it fetched")
		}
	}
	a, b := start(), start()
	time.Sleep(20 * time.Millisecond)
	_ = a.Process.Kill()
	_ = a.Wait()
	if err := b.Wait(); err != nil {
		t.Errorf("the process that was left: %v", err)
	}
	local, err := mmapds.Open(filepath.Join(bucket, key))
	require.NoError(t, err)
	defer local.Close()
	d := open(t, folder{bucket}, key, Options{CacheDir: cache})
	if !bytes.Equal(epoch(t, local, killOptions, 0), epoch(t, d, killOptions, 0)) {
		t.Error("other bytes than from the local dataset")
	}
	st := d.Stats()
	t.Logf("%d killed; then %d bytes were fetched, %d blocks were wrong", killed, st.Fetched, st.Poisoned)
	if st.Fetched != 0 || st.Poisoned != 0 {
		t.Errorf("a process went through the epoch, but then %d bytes were missing and %d blocks wrong", st.Fetched, st.Poisoned)
	}
}

// A disk that is full holds what it can, the rest is held in memory, and it is said.
func TestFullDisk(t *testing.T) {
	disk := smalldisk.New(t, "6m")
	b, local := pair(t, 3000)
	d := open(t, b, "ds", Options{CacheDir: filepath.Join(disk, "cache"), CacheBytes: 1 << 30, memoryBytes: 2 << 20})
	for n := range 2 {
		if !bytes.Equal(epoch(t, local, killOptions, n), epoch(t, d, killOptions, n)) {
			t.Fatal("other bytes than from the local dataset")
		}
	}
	if st := d.Stats(); !strings.Contains(st.Streaming, "no space left") || st.Held == 0 {
		t.Errorf("it does not say so: %+v", st)
	}
}
