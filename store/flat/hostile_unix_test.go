//go:build unix

package flat

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// The users of these tests, where the test may act as others.
const (
	victim   = 61001
	attacker = 61002
)

// sharedDir returns a folder that every user may write to.
func sharedDir(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	top, err := os.MkdirTemp("", "penstock-shared-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(top) })
	dir := filepath.Join(top, "shared")
	require.NoError(t, errors.Join(os.Chmod(top, 0o755), os.Mkdir(dir, 0o777), os.Chmod(dir, mode)))
	return dir
}

// precious makes a folder of the victim's with files whose names a build knows, too.
func precious(t *testing.T) (dir string, files map[string]string) {
	t.Helper()
	dir = filepath.Join(sharedDir(t, 0o755), "thesis")
	require.NoError(t, os.Mkdir(dir, 0o755))
	names := []string{"thesis.tex", write.JournalName, "build.moving", layout.ManifestName, "number-00000.npy", "data.h5"}
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("the only copy of "+name), 0o644))
	}
	if os.Geteuid() == 0 {
		for _, name := range append(names, ".") {
			require.NoError(t, os.Chown(filepath.Join(dir, name), victim, victim))
		}
	}
	return dir, foldertest.Files(t, dir)
}

// buildAs runs the builder of TestMain: as the victim where the test may.
func buildAs(t *testing.T, dest string) (said string, err error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	if _, statErr := os.Stat(cmd.Path); statErr != nil || os.Geteuid() != 0 {
		cmd = exec.Command(os.Args[0])
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: victim, Gid: victim}}
	}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), builder+"="+dest)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	return stderr.String(), err
}

// A file of another user in the place of a new dataset is refused, and a target that it links
// to stays as it is.
func TestPlantedStages(t *testing.T) {
	plants := map[string]func(t *testing.T, dir, target string) string{
		"link": func(t *testing.T, dir, target string) string {
			return planted(t, os.Symlink(target, stageDir(dir)))
		},
		"relative": func(t *testing.T, dir, target string) string {
			return planted(t, os.Symlink("../ds", stageDir(dir)))
		},
		"file": func(t *testing.T, dir, _ string) string {
			return planted(t, os.WriteFile(stageDir(dir), nil, 0o666))
		},
		"spent link": func(t *testing.T, dir, target string) string {
			return planted(t, os.Symlink(target, stageDir(dir)+".done"))
		},
		"journal link": plantJournal,
		"lock link": func(t *testing.T, dir, target string) string {
			return planted(t, os.Symlink(filepath.Join(target, "thesis.tex"), stageDir(dir)+".lock"))
		},
	}
	if os.Geteuid() == 0 {
		plants["folder"] = func(t *testing.T, dir, _ string) string {
			return planted(t, errors.Join(os.Mkdir(stageDir(dir), 0o777), os.Chmod(stageDir(dir), 0o777), os.Chown(stageDir(dir), attacker, attacker)))
		}
		plants["lock"] = func(t *testing.T, dir, _ string) string {
			lock := stageDir(dir) + ".lock"
			return planted(t, errors.Join(os.WriteFile(lock, nil, 0o666), os.Chmod(lock, 0o666)))
		}
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			target, want := precious(t)
			dest := filepath.Join(sharedDir(t, 0o777|fs.ModeSticky), "ds")
			plant(t, dest, target)
			if os.Geteuid() == 0 {
				for _, e := range []string{stageDir(dest), stageDir(dest) + ".done", stageDir(dest) + ".lock", stageDir(dest) + ".journal"} {
					_ = os.Lchown(e, attacker, attacker)
				}
			}
			said, err := buildAs(t, dest)
			if err == nil && name != "journal link" {
				t.Error("the build went through")
			}
			if _, statErr := os.Stat(dest); err != nil && (statErr == nil || said == "") {
				t.Errorf("a dataset after an error, or no reason: %v, %q", statErr, said)
			}
			if got := foldertest.Files(t, target); !maps.Equal(got, want) {
				t.Errorf("files of the victim were changed: %v", got)
			}
		})
	}
}

func planted(t *testing.T, err error) string {
	t.Helper()
	require.NoError(t, err)
	return ""
}

// plantJournal puts a link at the journal's name, next to a stage of the victim's.
func plantJournal(t *testing.T, dest, target string) string {
	t.Helper()
	planted(t, os.Mkdir(stageDir(dest), 0o700))
	if os.Geteuid() == 0 {
		planted(t, os.Chown(stageDir(dest), victim, victim))
	}
	return planted(t, os.Symlink(filepath.Join(target, write.JournalName), stageDir(dest)+".journal"))
}

var races = flag.Int("races", 40, "builds in a folder where another user swaps what has names")

// If others may rename everything, links come and go under the names of a running build. Whatever
// happens to the build, files outside stay as they are.
func TestRacesForTheStage(t *testing.T) {
	dir := crash.MemoryDir(t)
	target, want := precious(t)
	dest := filepath.Join(dir, "ds")
	swaps, stop := foldertest.SwapForLink(stageDir(dest), target)
	begun, built, refused := 0, 0, 0
	for i := 0; (begun < *races || swaps.Load() == 0) && i < 100**races; i++ {
		w, err := Create(dest, tokenSchema(), Options{ShardBytes: 1, Overwrite: true, Journal: &store.Journal{Resume: i%2 == 0}})
		if err == nil {
			begun++
			err = raceBuild(w, i)
		}
		if err == nil {
			built++
		} else {
			refused++
			if info, err := os.Lstat(dest); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				_ = os.Remove(dest) // a link that was swapped in while it was renamed
			}
		}
	}
	stop()
	if got := foldertest.Files(t, target); !maps.Equal(got, want) {
		t.Errorf("files outside were changed: %v", got)
	}
	if swaps.Load() == 0 {
		t.Error("no race was run")
	}
	t.Logf("%d builds begun, %d swaps; %d datasets built, %d refused or failed", begun, swaps.Load(), built, refused)
}

func raceBuild(w store.Writer, n int) error {
	r := store.NewRecord(tokenSchema())
	var err error
	for i := 0; i < 5 && err == nil; i++ {
		runtime.Gosched() // with one CPU, the other user runs here
		fillTokens(r, i)
		if err = w.Append(r); err == nil {
			err = w.Checkpoint(nil)
		}
	}
	if err == nil && n%3 > 0 {
		_, err = w.Commit(store.Info{})
	}
	return errors.Join(err, w.Close())
}

// A stage of one user is nobody else's to look into, and the dataset has the permissions that the umask leaves.
func TestPermissions(t *testing.T) {
	for umask, want := range map[int][2]fs.FileMode{0o077: {0o700, 0o400}, 0o022: {0o755, 0o444}, 0o002: {0o775, 0o444}, 0o027: {0o750, 0o440}} {
		old := syscall.Umask(umask)
		dest := filepath.Join(t.TempDir(), "ds")
		w, err := Create(dest, testSchema(), Options{})
		require.NoError(t, err)
		if info, err := os.Stat(stageDir(dest)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("umask %04o: the stage: %v, %v", umask, info.Mode(), err)
		}
		require.NoError(t, w.Append(store.NewRecord(testSchema())))
		if _, err := w.Commit(store.Info{}); err != nil {
			t.Fatal(err)
		}
		syscall.Umask(old)
		entries, err := os.ReadDir(dest)
		if err != nil || len(entries) == 0 {
			t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err != nil || info.Mode().Perm() != want[1] {
				t.Errorf("umask %04o: %s: %v, want %v; %v", umask, e.Name(), info.Mode(), want[1], err)
			}
		}
		if info, err := os.Stat(dest); err != nil || info.Mode().Perm() != want[0] {
			t.Errorf("umask %04o: %v, want %v; %v", umask, info.Mode(), want[0], err)
		}
	}
}

// A stage that its user had made writable for others is no longer when it is taken over.
func TestWideStageIsNarrowed(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	require.NoError(t, errors.Join(os.Mkdir(stageDir(dest), 0o777), os.Chmod(stageDir(dest), 0o777)))
	s, err := write.OpenStage(dest, write.StageOptions{})
	require.NoError(t, err)
	defer s.Abort()
	if info, err := os.Stat(stageDir(dest)); err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A process that may not open a file for each field is told how many it needs.
func TestTooManyFields(t *testing.T) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	schema := store.Schema{Fields: make([]store.Field, 300)}
	for i := range schema.Fields {
		schema.Fields[i] = store.Field{Spec: tensor.Spec{Name: fmt.Sprint("x", i), DType: tensor.Uint8}, Storage: "|u1"}
	}
	few := before
	few.Cur = 128
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	w, err := Create(filepath.Join(t.TempDir(), "ds"), schema, Options{})
	if err == nil {
		err = w.Append(store.NewRecord(schema))
		defer w.Close()
	}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	if !errors.Is(err, syscall.EMFILE) || !strings.HasSuffix(err.Error(), "run ulimit -n 400") {
		t.Errorf("error %v", err)
	}
}
