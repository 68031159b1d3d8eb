//go:build !nocloud

package hdfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/penstock/penstock/remote"
)

// failures counts writes that failed one after the other, which happens if a datanode has ended and
// the namenode still takes it for alive.
type failures struct {
	mu     sync.Mutex
	inARow int
	last   time.Time
}

// memory is how long a failure counts. After about 10 minutes, the namenode notices that a datanode
// has ended.
const memory = 10 * time.Minute

// replicas returns the number of replicas for the next file: the usual number, or fewer after two
// failures or more.
func (f *failures) replicas(usual int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.last) > memory {
		f.inARow = 0
	}
	return max(1, usual-max(0, f.inARow-1))
}

// note counts a failure and returns the pause before the next attempt.
func (f *failures) note() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inARow++
	f.last = time.Now()
	return time.Second << min(f.inARow, 5)
}

// temporary is the suffix of files that are being written.
const temporary = ".penstock-writing"

// isTemporary reports whether a name is of a file that is being written.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporary)
}

// writer writes a file under a temporary name.
type writer struct {
	ctx     context.Context
	bucket  *bucket
	key     string
	opts    remote.WriteOptions
	client  *hdfs.Client
	file    *hdfs.FileWriter
	path    string // of the temporary file
	written int64
	few     string // for errors: that there are fewer replicas than usual
	closed  bool
}

// NewWriter makes the folders of a file, and the temporary file in the same folder, so that Commit
// can rename it.
func (b *bucket) NewWriter(ctx context.Context, key string, opts remote.WriteOptions) (_ remote.Writer, err error) {
	defer b.explain(ctx, "write", key, &err)
	c, err := b.connect()
	if err != nil {
		return nil, err
	}
	w := &writer{ctx: ctx, bucket: b, key: key, opts: opts, client: c}
	replicas := b.writes.replicas(b.defaults.Replication)
	if replicas < b.defaults.Replication {
		w.few = fmt.Sprintf(" (with %d replicas and not %d)", replicas, b.defaults.Replication)
	}
	folder, name := path.Split(pathOf(key))
	w.path = folder + "." + name + "." + rand.Text()[:8] + temporary
	for try := 0; ; try++ { // another process may remove the folder while it is empty
		if err = c.MkdirAll(path.Clean(folder), 0o755); err == nil || errors.Is(err, fs.ErrExist) {
			w.file, err = c.CreateFile(w.path, replicas, b.defaults.BlockSize, 0o644)
		}
		if !errors.Is(err, fs.ErrNotExist) || try == 3 {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Write sends bytes to datanodes.
func (w *writer) Write(p []byte) (n int, err error) {
	defer w.bucket.explain(w.ctx, "write", w.key, &err)
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err = w.file.Write(p)
	w.written += int64(n)
	return n, w.failed(err)
}

// failed counts an error that may come from a datanode, and adds the pause before the next attempt.
func (w *writer) failed(err error) error {
	if err == nil || kindOf(err) != nil {
		return err
	}
	e := remote.NewError("write", w.bucket.object(w.key), nil, fmt.Errorf("%w; a datanode may have ended%s", err, w.few))
	e.After = w.bucket.writes.note()
	return e
}

// Commit completes the file and renames it. The library's rename replaces an existing file, so
// IfNotExist looks just before: two writers at the same moment may both succeed.
func (w *writer) Commit() (err error) {
	if w.closed {
		return remote.NewError("write", w.bucket.object(w.key), remote.ErrInvalid, errors.New("the writer is closed"))
	}
	defer w.bucket.explain(w.ctx, "write", w.key, &err)
	if err := w.complete(); err != nil {
		return w.failed(err)
	}
	if w.opts.IfNotExist {
		if _, err := w.client.Stat(pathOf(w.key)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fs.ErrExist)
		}
	}
	if err := w.client.Rename(w.path, pathOf(w.key)); err != nil {
		return err
	}
	w.closed = true
	return nil
}

// complete closes the file, and waits until the datanodes have reported its last block to the
// namenode.
func (w *writer) complete() error {
	for pause := 10 * time.Millisecond; ; pause *= 2 {
		err := w.file.Close()
		if !hdfs.IsErrReplicating(err) || pause > idleTime {
			return err
		}
		select {
		case <-w.ctx.Done():
			return w.ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Close removes the temporary file, unless it was committed.
func (w *writer) Close() (err error) {
	if w.closed {
		return nil
	}
	w.closed = true
	defer func() { _ = recover() }() // the library may panic at a stream that has failed
	_ = w.client.Remove(w.path)      // ends the lease, too
	return nil
}
