package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/sys/rank"
	"github.com/penstock/penstock/internal/sys/usage"
)

// native is the transport over a unix socket that passes file descriptors: the client passes the
// file of its arrays, and feed passes an anonymous file (memfd). A pidfd watches the client's
// process. vars looks variables up in the client's environment.
type native struct {
	conn *net.UnixConn
	vars rank.Lookup
}

// newNative returns the native transport over a socket.
func newNative(conn connection, vars rank.Lookup) (transport, error) {
	if c, ok := conn.(*net.UnixConn); ok {
		return native{c, vars}, nil
	}
	return nil, errors.New("--fd: not a unix socket; take one, or --inherit")
}

func (n native) connection() connection { return n.conn }

// begin waits for the first bytes of the client, with which a descriptor may come. They are read by
// themselves, because a plain Read would lose the descriptor.
func (n native) begin() (io.Reader, *os.File, error) {
	if err := checkUser(n.conn); err != nil {
		return nil, nil, err
	}
	head, rights := make([]byte, 4), make([]byte, unix.CmsgSpace(4))
	got, r, _, _, err := n.conn.ReadMsgUnix(head, rights)
	if err == nil && got == 0 {
		err = io.EOF
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := passed(rights[:r])
	return io.MultiReader(bytes.NewReader(head[:got]), n.conn), file, err
}

// passed returns the file that came with a message, nil if no file came. If several files
// came, it closes all and returns an error: descriptors that nobody closes would stay open for
// ever.
func passed(rights []byte) (*os.File, error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	var all []int
	for i := range messages {
		fds, parseErr := unix.ParseUnixRights(&messages[i])
		all, err = append(all, fds...), errors.Join(err, parseErr)
	}
	if err == nil && len(all) == 1 {
		unix.CloseOnExec(all[0])
		return os.NewFile(uintptr(all[0]), "numbers"), nil
	}
	for _, fd := range all {
		_ = unix.Close(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("feed: reading what came with the hello: %w", err)
	}
	return nil, fmt.Errorf("feed: %d descriptors came with the hello; send one, of a file of arrays", len(all))
}

// memory makes an anonymous file. The seal F_SEAL_SHRINK keeps both processes from shrinking it: a
// process that maps a part which is cut off would die at its next read.
func (native) memory() (memory, error) {
	fd, err := unix.MemfdCreate("penstock", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("making shared memory: memfd_create: %w", err)
	}
	m := memfd{os.NewFile(uintptr(fd), "penstock")}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		return nil, errors.Join(fmt.Errorf("making shared memory: sealing it: %w", err), m.f.Close())
	}
	return m, nil
}

func (n native) welcome(message []byte, m memory) error { return n.pass(message, m.file()) }

// pass sends the descriptor with the first bytes, and then the rest of the message if the socket
// took only a part.
func (n native) pass(message []byte, f *os.File) error {
	sent, _, err := n.conn.WriteMsgUnix(message, unix.UnixRights(int(f.Fd())), nil)
	if err != nil {
		return err
	}
	_, err = n.conn.Write(message[sent:])
	return err
}

func (n native) environ() rank.Lookup { return n.vars }

// watch watches the client's process by a pidfd, which needs Linux 5.3 and a process in the same
// PID namespace.
func (n native) watch(ctx context.Context, ended func(error)) bool {
	peer, err := peerOf(n.conn)
	if err != nil || peer.Pid <= 0 {
		return false
	}
	pid := int(peer.Pid)
	usage.Join(pid) // the time of the client and of its other children counts as training
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

var _ passer = native{}

// memfd is an anonymous file.
type memfd struct{ f *os.File }

func (m memfd) file() *os.File { return m.f }

// extend makes the file larger. Its new pages are zero, and are allocated when they are touched.
func (m memfd) extend(size, n int64) error { return m.f.Truncate(size + n) }

// discard frees the pages, in all processes that map them.
func (m memfd) discard(at, n int64) error {
	return unix.Fallocate(int(m.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, n)
}

// peerOf returns the process that made the connection, or the pair of sockets, and its user.
func peerOf(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var sockErr error
	err = raw.Control(func(fd uintptr) {
		cred, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, sockErr); err != nil {
		return nil, fmt.Errorf("asking for the client's process: %w", err)
	}
	return cred, nil
}

// checkUser refuses a client of another user, except root. The mode of the socket is not enough: it
// can be changed, and some systems ignore it.
func checkUser(conn *net.UnixConn) error {
	peer, err := peerOf(conn)
	if err == nil && peer.Uid != 0 && int(peer.Uid) != os.Geteuid() {
		err = fmt.Errorf("feed: it serves user %d alone, and this client belongs to user %d: start a feed of its own",
			os.Geteuid(), peer.Uid)
	}
	return err
}

// awaitReadable waits until fd is readable, which a pidfd is when its process has ended. It returns
// false if ctx is done before.
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

// peerEnviron looks variables up in the environment with which the client's process was started. If
// the system does not show it, there are no variables.
func peerEnviron(conn *net.UnixConn) rank.Lookup {
	vars := make(map[string]string)
	if peer, err := peerOf(conn); err == nil && peer.Pid > 0 {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", peer.Pid)) // none: then nothing is known of the client
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
