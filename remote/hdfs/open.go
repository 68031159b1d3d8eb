//go:build !nocloud

package hdfs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"github.com/penstock/penstock/remote"
)

// bucket is the files of a cluster.
type bucket struct {
	name    string
	options hdfs.ClientOptions
	dialed  atomic.Pointer[error] // the result of the last attempt to connect to a namenode
	writes  failures

	// mu guards client, which is nil before the first request, and defaults.
	mu       sync.Mutex
	client   *hdfs.Client
	defaults hdfs.ServerDefaults
}

// Open returns the bucket of a URL. It makes no request.
func Open(u *remote.URL) (remote.Bucket, error) {
	b := &bucket{name: u.Name()}
	conf, err := hadoopconf.LoadFromEnvironment()
	if err == nil {
		err = b.configure(u, conf)
	}
	if err != nil {
		return nil, remote.NewError("open", u.String(), remote.ErrInvalid, err)
	}
	return b, nil
}

// configure finds out which namenodes to ask, and as which user.
func (b *bucket) configure(u *remote.URL, conf hadoopconf.HadoopConf) error {
	if len(u.Query) > 0 {
		return errors.New("hdfs:// takes no options; the configuration is in HADOOP_CONF_DIR")
	}
	b.options = hdfs.ClientOptionsFromConf(conf)
	if b.options.KerberosClient != nil {
		return errors.New("the cluster of HADOOP_CONF_DIR asks for Kerberos, which is not supported; copy the files: " +
			"hdfs dfs -get")
	}
	b.options.Addresses = namenodes(conf, u.Bucket)
	b.options.NamenodeDialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		b.dialed.Store(&err)
		return c, err
	}
	b.options.DatanodeDialFunc = dial
	b.options.User = u.Driver().User.Username()
	if b.options.User == "" {
		b.options.User = os.Getenv("HADOOP_USER_NAME")
	}
	if b.options.User == "" {
		me, err := user.Current()
		if err != nil {
			return fmt.Errorf("%w; name the user: HADOOP_USER_NAME", err)
		}
		b.options.User = me.Username
	}
	return nil
}

// namenodes returns the addresses of a cluster: the addresses that the configuration has for its
// name, otherwise the host.
func namenodes(conf hadoopconf.HadoopConf, host string) (list []string) {
	for key, value := range conf {
		if strings.HasPrefix(key, "dfs.namenode.rpc-address."+host+".") || key == "dfs.namenode.rpc-address."+host {
			list = append(list, value)
		}
	}
	slices.Sort(list)
	if len(list) > 0 {
		return list
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "8020")
	}
	return []string{host}
}

// connect returns the client, which the first request makes.
func (b *bucket) connect() (*hdfs.Client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client != nil {
		return b.client, nil
	}
	c, err := hdfs.NewClient(b.options)
	if err != nil {
		return nil, err
	}
	if b.defaults, err = c.ServerDefaults(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	b.client = c
	return c, nil
}

// String returns scheme and cluster.
func (b *bucket) String() string { return b.name }

// Close closes the connections.
func (b *bucket) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client == nil {
		return nil
	}
	return b.client.Close()
}

// Limits of time, since the library has no limits.
const (
	dialTime  = 5 * time.Second
	idleTime  = time.Minute      // of a connection, without a byte although one is expected
	stallTime = 10 * time.Second // of a read
)

// conn is a connection that fails if no byte arrives within idleTime: the library would wait for
// ever.
type conn struct {
	net.Conn
	bounded atomic.Bool // the library has set a deadline
}

// dial connects within dialTime.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// SetDeadline sets the library's deadline, which then counts in place of idleTime.
func (c *conn) SetDeadline(t time.Time) error {
	c.bounded.Store(!t.IsZero())
	return c.Conn.SetDeadline(t)
}

func (c *conn) Read(p []byte) (int, error) {
	return c.within(p, c.Conn.SetReadDeadline, c.Conn.Read)
}

func (c *conn) Write(p []byte) (int, error) {
	return c.within(p, c.Conn.SetWriteDeadline, c.Conn.Write)
}

// within sets a deadline for one read or write, unless the library has set one. After a timeout the
// connection is closed: an answer that comes late would be taken for the answer to the next
// request.
func (c *conn) within(p []byte, limit func(time.Time) error, do func([]byte) (int, error)) (int, error) {
	if !c.bounded.Load() {
		if err := limit(time.Now().Add(idleTime)); err != nil {
			return 0, err
		}
	}
	n, err := do(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.Close() // what comes later is the answer to another question
	}
	return n, err
}
