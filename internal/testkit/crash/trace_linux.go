package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrUntraceable says that a process cannot trace its children here, as in some containers.
var ErrUntraceable = errors.New("processes cannot be traced here")

// tracer runs a program, and stops it at every system call. Those that can change files it
// lets pass one at a time.
type tracer struct {
	after   func() error            // called after each that can change files
	synced  func(path string) error // called after each sync of the file at path, and after the call of after
	group   int                     // of processes: the program's threads
	busy    int                     // the thread that is in such a call; 0: none
	call    call                    // that one
	waiting []waiting               // threads that want to make one
}

type call struct{ number, arg uint64 }

type waiting struct {
	thread int
	call   call
}

// The system call stops of PTRACE_O_TRACESYSGOOD, and of PTRACE_GET_SYSCALL_INFO (see
// ptrace(2)) the request and the beginning of what it gives.
const (
	syscallStop    = syscall.SIGTRAP | 0x80
	getSyscallInfo = 0x420e
	opEntry        = 1
	opExit         = 2
)

type syscallInfo struct {
	op      uint8
	_       [3]uint8
	arch    uint32
	_       [2]uint64 // instruction and stack pointer
	number  uint64    // at an exit: the result
	args    [6]uint64
	padding [2]uint64
}

// changing are the calls that Go and the C library make to change files, or to make changes
// durable.
var changing = map[uint64]bool{
	unix.SYS_OPENAT: true, unix.SYS_MKDIRAT: true, unix.SYS_UNLINKAT: true, unix.SYS_RENAMEAT: true,
	unix.SYS_RENAMEAT2: true,
	unix.SYS_LINKAT:    true, unix.SYS_FCHMOD: true, unix.SYS_FCHMODAT: true, unix.SYS_WRITE: true, unix.SYS_WRITEV: true,
	unix.SYS_PWRITE64: true, unix.SYS_PWRITEV: true, unix.SYS_PWRITEV2: true, unix.SYS_FTRUNCATE: true,
	unix.SYS_TRUNCATE:  true,
	unix.SYS_FALLOCATE: true, unix.SYS_COPY_FILE_RANGE: true, unix.SYS_SENDFILE: true, unix.SYS_SPLICE: true,
	unix.SYS_FSYNC: true, unix.SYS_FDATASYNC: true,
}

// run runs the program to its end.
func (t *tracer) run(env, args []string) error {
	runtime.LockOSThread() // a thread traces, not a process
	defer runtime.UnlockOSThread()
	if _, err := os.Stat(args[0]); err != nil {
		return err
	}
	output, err := os.CreateTemp("", "crash")
	if err != nil {
		return err
	}
	defer os.Remove(output.Name())
	defer output.Close()
	p, err := os.StartProcess(args[0], args, &os.ProcAttr{
		Env: env, Files: []*os.File{nil, output, output},
		Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	// of PTRACE_TRACEME
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSYS) {
		return fmt.Errorf("%w: %w", ErrUntraceable, err)
	}
	if err != nil {
		return err
	}
	defer p.Release()
	t.group = p.Pid
	status, err := t.follow()
	if err != nil {
		_ = p.Kill()
		return err
	}
	if !status.Exited() || status.ExitStatus() != 0 {
		said, _ := os.ReadFile(output.Name())
		return fmt.Errorf("%s ended with status %#x: %s", filepath.Base(args[0]), int(status), said)
	}
	return nil
}

// follow lets all threads go on after each stop, until the first one has ended.
func (t *tracer) follow() (status syscall.WaitStatus, err error) {
	if _, err := wait(t.group, &status); err != nil {
		return status, err
	}
	const options = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(t.group, options); err != nil {
		return status, fmt.Errorf("%w: %w", ErrUntraceable, err)
	}
	if err := goOn(t.group, 0); err != nil {
		return status, err
	}
	for {
		thread, err := wait(-t.group, &status)
		if err != nil {
			return status, err
		}
		if status.Stopped() {
			if err := t.stopped(thread, status); err != nil {
				return status, err
			}
		} else if thread == t.group {
			return status, nil
		}
	}
}

// goOn lets a thread go on, which may have been killed.
func goOn(thread, signal int) error {
	err := syscall.PtraceSyscall(thread, signal)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func wait(pid int, status *syscall.WaitStatus) (thread int, err error) {
	for {
		thread, err = syscall.Wait4(pid, status, syscall.WALL, nil)
		if !errors.Is(err, syscall.EINTR) {
			return thread, err
		}
	}
}

// stopped looks at a thread that has stopped.
func (t *tracer) stopped(thread int, status syscall.WaitStatus) error {
	switch s := status.StopSignal(); s {
	case syscallStop:
		return t.syscall(thread)
	case syscall.SIGTRAP, syscall.SIGSTOP: // the start, and that of a thread
		return goOn(thread, 0)
	default:
		return goOn(thread, int(s))
	}
}

// syscall looks at a thread that is about to make a system call, or has made one.
func (t *tracer) syscall(thread int) error {
	var info syscallInfo
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, getSyscallInfo, uintptr(thread), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0)
	switch {
	case errno == syscall.ESRCH: // it was killed
		return nil
	case errno != 0:
		return fmt.Errorf("%w: %w", ErrUntraceable, errno)
	case info.op == opEntry && changing[info.number]:
		t.waiting = append(t.waiting, waiting{thread, call{info.number, info.args[0]}})
		return t.next()
	case info.op == opExit && thread == t.busy:
		if err := t.made(int64(info.number)); err != nil {
			return err
		}
		t.busy = 0
		if err := goOn(thread, 0); err != nil {
			return err
		}
		return t.next()
	}
	return goOn(thread, 0)
}

// next lets the next thread make its call, if none is in one.
func (t *tracer) next() error {
	if t.busy != 0 || len(t.waiting) == 0 {
		return nil
	}
	w := t.waiting[0]
	t.busy, t.call, t.waiting = w.thread, w.call, t.waiting[1:]
	return goOn(w.thread, 0)
}

// made looks at what a call has done, which gave result.
func (t *tracer) made(result int64) error {
	if err := t.after(); err != nil {
		return err
	}
	if result == 0 && (t.call.number == unix.SYS_FSYNC || t.call.number == unix.SYS_FDATASYNC) {
		return t.synced(fmt.Sprintf("/proc/%d/fd/%d", t.group, t.call.arg))
	}
	return nil
}
