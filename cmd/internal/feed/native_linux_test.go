package feed

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
)

func init() { join = joinNative }

// joinNative has client and session share a unix socket, and the session pass the memory.
func joinNative(t testing.TB) (*client, transport) {
	t.Helper()
	ours, theirs := socketPair(t)
	return &client{conn: ours, take: takeMemory}, native{theirs, os.LookupEnv}
}

// socketPair returns the two ends of a connection: the client's, and that of feed.
func socketPair(t testing.TB) (*net.UnixConn, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		conn, err := openConnection(fd)
		require.NoError(t, err)
		ends[i] = conn.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// takeMemory takes the memory with the first bytes of the welcome.
func takeMemory(c *client) {
	c.t.Helper()
	rights := make([]byte, unix.CmsgSpace(4))
	head := make([]byte, 4)
	_, n, _, _, err := c.conn.(*net.UnixConn).ReadMsgUnix(head, rights)
	require.NoError(c.t, err)
	c.in = bufio.NewReader(io.MultiReader(bytes.NewReader(head), c.conn))
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		c.t.Fatalf("%d control messages, %v; then %+v", len(messages), err, c.receive())
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	require.NoError(c.t, err)
	c.memory = os.NewFile(uintptr(fds[0]), "memory")
	c.t.Cleanup(func() { c.memory.Close() })
}

// TestPortable repeats the tests of sessions over the portable transport, which systems other than Linux have.
func TestPortable(t *testing.T) {
	join = joinPortable
	defer func() { join = joinNative }()
	for name, test := range map[string]func(t *testing.T){
		"Batches": TestBatches, "NoMoreThanTheClientCanHave": TestNoMoreThanTheClientCanHave, "Refused": TestRefused, "Start": TestStart,
		"SlotsThatAreNotTheClients": TestSlotsThatAreNotTheClients, "ClientThatLeaves": TestClientThatLeaves, "Interrupted": TestInterrupted,
		"StateOfBytes": TestStateOfBytes, "ManyStarts": TestManyStarts, "MemoryIsFlat": TestMemoryIsFlat, "Put": TestPut, "PackedBatches": TestPackedBatches,
		"SlotsComeBack": TestSlotsComeBack,
	} {
		t.Run(name, test)
	}
}
