//go:build !nocloud

package hdfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/hdfscluster"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote"
)

func open(t *testing.T, text string) remote.Bucket {
	t.Helper()
	u, err := remote.ParseURL(text)
	require.NoError(t, err)
	b, err := Open(u)
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

func content(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + seed)
	}
	return b
}

// Files on a real HDFS are written, read, listed, copied and removed as in any bucket; a datanode that ends, before and while
// files are read and written, changes no byte.
func TestCluster(t *testing.T) {
	cluster := hdfscluster.Start(t, 2)
	b := open(t, cluster.URL(""))
	c := requests.NewClient(b, remote.Policy{})
	ctx := t.Context()
	big := content(5<<20+777, 1) // six blocks
	write := func(key string, data []byte) {
		t.Helper()
		from := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		require.NoError(t, c.WriteFrom(ctx, key, int64(len(data)), from, remote.WriteOptions{}))
	}
	for key, data := range map[string][]byte{"user/ds/a.npy": big, "user/ds/empty": nil, "user/ds/sub/x y%": content(10, 2), "user/other": content(1<<20, 3)} {
		write(key, data)
		o, err := c.Stat(ctx, key)
		if err != nil || o.Size != int64(len(data)) || o.ETag == "" {
			t.Fatalf("%+v, %v", o, err)
		}
		got := make([]byte, len(data))
		if err := c.ReadAt(ctx, o, 0, got); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%s: %v", key, err)
		}
	}
	o, err := c.Stat(ctx, "user/ds/a.npy")
	require.NoError(t, err)
	for _, off := range []int{0, 1, 1<<20 - 5, 3<<20 + 1} {
		got := make([]byte, 1<<20)
		if err := c.ReadAt(ctx, o, int64(off), got); err != nil || !bytes.Equal(got, big[off:off+len(got)]) {
			t.Errorf("from byte %d on: %v", off, err)
		}
	}
	for _, l := range []struct{ prefix, delimiter, want string }{
		{"user/ds/", "/", "user/ds/a.npy user/ds/empty user/ds/sub/"}, {"user/", "", "user/ds/a.npy user/ds/empty user/ds/sub/x y% user/other"},
		{"user/o", "/", "user/other"}, {"user/none/", "/", ""}, {"user/other/", "/", ""}, {"", "/", "user/"}, {"user/ds/a", "", "user/ds/a.npy"},
	} {
		var got []string
		for o, err := range c.List(ctx, l.prefix, l.delimiter) {
			require.NoError(t, err)
			got = append(got, o.Key)
		}
		if strings.Join(got, " ") != l.want {
			t.Errorf("%q by %q: %q, want %q", l.prefix, l.delimiter, got, l.want)
		}
	}
	require.NoError(t, c.Copy(ctx, "user/ds/a.npy", "user/copy"))
	if got, _, err := c.ReadAll(ctx, "user/copy", 1<<30); err != nil || !bytes.Equal(got, big) {
		t.Errorf("a copy: %d bytes, %v", len(got), err)
	}
	if err := c.WriteAll(ctx, "user/copy", []byte("x"), remote.WriteOptions{IfNotExist: true}); !errors.Is(err, remote.ErrExists) {
		t.Errorf("an existing file: %v", err)
	}
	write("user/copy", content(100, 9))
	o.Key = "user/copy"
	if err := c.ReadAt(ctx, o, 0, make([]byte, 10)); !errors.Is(err, remote.ErrChanged) {
		t.Errorf("a file that was replaced: %v", err)
	}
	for _, key := range []string{"user/none", "user/ds"} {
		if _, err := c.Stat(ctx, key); !errors.Is(err, remote.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
		if err := c.Delete(ctx, key); !errors.Is(err, remote.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
	}
	require.NoError(t, c.Delete(ctx, "user/ds/sub/x y%"))
	testAbort(t, b)

	o.Key = "user/ds/a.npy"
	if o, err = c.Stat(ctx, o.Key); err != nil {
		t.Fatal(err)
	}
	r := c.NewReader(ctx, o, 0, -1)
	defer r.Close()
	half := make([]byte, len(big)/2)
	if _, err := io.ReadFull(r, half); err != nil {
		t.Fatal(err)
	}
	cluster.Kill(0)
	rest, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(append(half, rest...), big) {
		t.Errorf("a datanode ended while it was read: %v", err)
	}
	write("user/after", big)
	if got, _, err := c.ReadAll(ctx, "user/after", 1<<30); err != nil || !bytes.Equal(got, big) {
		t.Errorf("written after a datanode had ended: %d bytes, %v", len(got), err)
	}
	t.Logf("%+v", c.Stats())
}

// A write that is given up leaves nothing.
func testAbort(t *testing.T, b remote.Bucket) {
	w, err := b.NewWriter(t.Context(), "user/aborted", remote.WriteOptions{})
	require.NoError(t, err)
	if _, err := w.Write(content(3<<20, 5)); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, w.Close())
	ctx, cancel := context.WithCancel(t.Context())
	if w, err = b.NewWriter(ctx, "user/aborted", remote.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := w.Write([]byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("a write without a context: %v", err)
	}
	w.Close()
	c, err := b.(*bucket).connect()
	require.NoError(t, err)
	list, err := readFolder(c, "/user")
	for _, info := range list {
		if strings.Contains(info.Name(), "aborted") {
			t.Errorf("%s is left", info.Name())
		}
	}
	if err != nil || len(list) != 3 {
		t.Errorf("%d files, %v", len(list), err)
	}
}

// The addresses of the namenodes, and the user for them.
func TestConfiguration(t *testing.T) {
	dir := t.TempDir()
	conf := func(properties ...string) {
		text := "<configuration>"
		for i := 0; i < len(properties); i += 2 {
			text += fmt.Sprintf("<property><name>%s</name><value>%s</value></property>", properties[i], properties[i+1])
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), []byte(text+"</configuration>"), 0o600))
	}
	t.Setenv("HADOOP_CONF_DIR", dir)
	t.Setenv("HADOOP_USER_NAME", "somebody")
	conf("dfs.nameservices", "lab", "dfs.ha.namenodes.lab", "a,b", "dfs.namenode.rpc-address.lab.a", "nn1:8020", "dfs.namenode.rpc-address.lab.b", "nn2:9000",
		"dfs.namenode.rpc-address.labor.a", "nn3:1", "dfs.client.use.datanode.hostname", "true")
	for text, want := range map[string]string{
		"hdfs://lab/x": "somebody nn1:8020 nn2:9000", "hdfs://me@lab/x": "me nn1:8020 nn2:9000", "hdfs://other/x": "somebody other:8020", "hdfs://other:1234/x": "somebody other:1234",
	} {
		b := open(t, text).(*bucket)
		if got := b.options.User + " " + strings.Join(b.options.Addresses, " "); got != want || !b.options.UseDatanodeHostname {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for says, set := range map[string]func(){
		"Kerberos":        func() { conf("hadoop.security.authentication", "kerberos") },
		"takes no option": func() { conf() },
		"XML":             func() { _ = os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), []byte("<x"), 0o600) },
	} {
		set()
		u, err := remote.ParseURL("hdfs://lab/x?replication=1")
		if says == "Kerberos" {
			u.Query = nil
		}
		require.NoError(t, err)
		if _, err := Open(u); !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// A server that is none, or answers nothing, is an error in time that says whom it asked.
func TestHostileNamenode(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	t.Setenv("HADOOP_USER_NAME", "somebody")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			c.Close()
		}
	}()
	policy := remote.Policy{Attempts: 2, Backoff: time.Millisecond, Total: 10 * time.Second}
	c := requests.NewClient(open(t, "hdfs://"+address), policy)
	if _, err := c.Stat(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "user somebody, namenode "+address) {
		t.Errorf("a server of HTTP: %v", err)
	}
	l.Close()
	c = requests.NewClient(open(t, "hdfs://"+address), policy)
	if _, err := c.Stat(t.Context(), "x"); !errors.Is(err, remote.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") || c.Stats().Requests != 1 {
		t.Errorf("nobody there: %v after %d requests", err, c.Stats().Requests)
	}
}
