package feed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/sys/rank"
)

// errPeer is the cause of a session's end when the client's process has ended.
var errPeer = errors.New("the client's process has ended")

// watchPeer calls ended when the process at the other end of conn is gone, which a socket
// does not say as long as some child of that process has inherited it. It reports whether
// the process can be watched: that needs Linux 5.3, and a process in sight. It stops watching
// when ctx is done.
func watchPeer(ctx context.Context, conn *net.UnixConn, ended func(error)) bool {
	pid, err := peerOf(conn)
	if err != nil || pid <= 0 {
		return false
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		ended(errPeer)
		return true
	}
	if err != nil {
		return false
	}
	go func() {
		defer unix.Close(fd)
		if awaitReadable(ctx, fd) {
			ended(errPeer)
		}
	}()
	return true
}

// peerOf returns the process that made the connection, or the pair of sockets.
func peerOf(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var sockErr error
	err = raw.Control(func(fd uintptr) { cred, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, sockErr); err != nil {
		return 0, fmt.Errorf("asking for the client's process: %w", err)
	}
	return int(cred.Pid), nil
}

// awaitReadable waits until fd is readable, and returns false if ctx was done before.
func awaitReadable(ctx context.Context, fd int) bool {
	const interval = 500 // milliseconds; how soon the end of ctx is noticed
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for ctx.Err() == nil {
		n, err := unix.Poll(fds, interval)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
	return false
}

// ownEnviron looks variables up in the environment of feed, which a training process has started.
func ownEnviron(*net.UnixConn) rank.Lookup { return os.LookupEnv }

// peerEnviron looks variables up in the environment that the client's process was started with. There are none where the
// system does not show it.
func peerEnviron(conn *net.UnixConn) rank.Lookup {
	vars := make(map[string]string)
	if pid, err := peerOf(conn); err == nil && pid > 0 {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // none: then nothing is known of the client
		for pair := range strings.SplitSeq(string(text), "\x00") {
			if name, value, ok := strings.Cut(pair, "="); ok {
				vars[name] = value
			}
		}
	}
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}
