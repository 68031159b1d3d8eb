package crash_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/require"
)

const child = "PENSTOCK_CRASH_TEST"

func TestMain(m *testing.M) {
	if dir := os.Getenv(child); dir != "" {
		if err := program(dir); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// program replaces the file "a" by one with other bytes, as one should, and then makes "b"
// without any sync.
func program(dir string) error {
	path := func(name string) string { return filepath.Join(dir, name) }
	f, err := os.Create(path("new"))
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte(strings.Repeat("x", 5000))); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(
		f.Sync(), f.Close(), os.Rename(path("new"), path("a")), d.Sync(), d.Close(),
		os.WriteFile(path(crash.MarkPrefix+"replaced"), nil, 0o600),
		os.Mkdir(path("sub"), 0o777), os.WriteFile(path("sub/b"), []byte("b"), 0o666), os.Truncate(path("sub/b"),
			0), os.Truncate(path("a"), 10),
	)
}

// record runs program in a folder with a file "a".
func record(t *testing.T) *crash.Log {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o644))
	log, err := crash.Record(dir, append(os.Environ(), child+"="+dir), os.Args[0])
	if errors.Is(err, crash.ErrUntraceable) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return log
}

// files lists what a state has, with lengths: "a:5000 sub/ sub/b:1".
func files(t *testing.T, s *crash.Tree) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, s.Write(dir))
	var list []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if e.IsDir() {
			list = append(list, name+"/")
			return nil
		}
		data, err := os.ReadFile(path)
		list = append(list, name+":"+shorten(data))
		return err
	})
	require.NoError(t, err)
	return strings.Join(list, " ")
}

// shorten writes a run of 5000 x as "x5000".
func shorten(data []byte) string {
	text := ""
	for len(data) > 0 {
		n := 1
		for n < len(data) && data[n] == data[0] {
			n++
		}
		text += string(data[:1])
		if n > 1 {
			text += strconv.Itoa(n)
		}
		data = data[n:]
	}
	return text
}

func TestKilled(t *testing.T) {
	log := record(t)
	var got []string
	for n := range log.Len() + 1 {
		if f := files(t, log.Killed(n)); len(got) == 0 || got[len(got)-1] != f {
			got = append(got, f)
		}
	}
	want := []string{
		"a:old", "a:old new:", "a:old new:x4096", "a:old new:x5000", "a:x5000", "a:x5000 sub/", "a:x5000 sub/ sub/b:",
		"a:x5000 sub/ sub/b:b", "a:x5000 sub/ sub/b:", "a:x10 sub/ sub/b:",
	}
	if !slices.Equal(got, want) {
		t.Errorf("kills leave\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPowerCuts(t *testing.T) {
	log := record(t)
	before, after := make(map[string]bool), make(map[string]bool)
	for s := range log.States(80, 1) {
		to := before
		if s.Mark == "replaced" {
			to = after
		}
		to[files(t, s.Tree)] = true
	}
	for _, want := range []string{"a:old", "a:old new:", "a:old new:x4096", "a:old new:" + "\x00" + "4096" + "x904",
		"a:old new:x5000", "a:x5000"} {
		if !before[want] {
			t.Errorf("before the folder is synced there is never %q, but %v", want, before)
		}
	}
	for _, want := range []string{"a:x5000", "a:x10", "a:x5000 sub/", "a:x5000 sub/ sub/b:", "a:x10 sub/",
		"a:x5000 sub/ sub/b:b", "a:x10 sub/ sub/b:b"} {
		if !after[want] {
			t.Errorf("after that there is never %q, but %v", want, after)
		}
	}
	for s := range before {
		if strings.HasPrefix(s, "a:x") && s != "a:x5000" {
			t.Errorf("%q: the file was synced before it got its name", s)
		}
	}
	for s := range after {
		if !strings.HasPrefix(s, "a:x") || strings.Contains(s, "new") {
			t.Errorf("%q: the folder was synced", s)
		}
	}
}

// deny has a system call fail in the calling thread and in what it starts, as containers have it.
func deny(t *testing.T, call, errno uint32) {
	t.Helper()
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: call},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | errno},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
	}
	if err != nil {
		t.Skipf("system calls cannot be denied here: %v", err)
	}
}

// Record returns a distinct error where tracing is not allowed, so that tests can be skipped. The
// error of a missing program is another.
func TestUntraceable(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.ENOSYS} {
		t.Run(errno.Error(), func(t *testing.T) {
			runtime.LockOSThread() // for good: the thread ends with the test
			deny(t, unix.SYS_PTRACE, uint32(errno))
			dir := t.TempDir()
			if _, err := crash.Record(dir, append(os.Environ(), child+"="+dir), os.Args[0]); !errors.Is(err,
				crash.ErrUntraceable) || !errors.Is(err, errno) {
				t.Errorf("error %v", err)
			}
			if _, err := crash.Record(dir, nil, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a program that is not there: %v", err)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	_, err := crash.Record(dir, append(os.Environ(), child+"="+filepath.Join(dir, "none")), os.Args[0])
	if !errors.Is(err, crash.ErrUntraceable) && (err == nil || !strings.Contains(err.Error(), "no such file")) {
		t.Errorf("a program that fails: %v", err)
	}
	if _, err := crash.Record(dir, nil, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}
