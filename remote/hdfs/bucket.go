//go:build !nocloud

package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/penstock/penstock/remote"
)

// pathOf returns the path of a key.
func pathOf(key string) string { return "/" + key }

// Stat asks the namenode. A folder is no object.
func (b *bucket) Stat(ctx context.Context, key string) (_ remote.Object, err error) {
	defer b.explain(ctx, "stat", key, &err)
	c, err := b.connect()
	if err != nil {
		return remote.Object{}, err
	}
	info, err := c.Stat(pathOf(key))
	if err == nil && info.IsDir() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return remote.Object{}, err
	}
	return objectOf(key, info), nil
}

// objectOf describes a file. A file that is written again gets another id and time, so these are
// its version.
func objectOf(key string, info os.FileInfo) remote.Object {
	o := remote.Object{Key: key, Size: info.Size(), Modified: info.ModTime()}
	if status, ok := info.Sys().(*hdfs.FileStatus); ok {
		o.ETag = fmt.Sprintf("%d-%d-%d", status.GetFileId(), status.GetModificationTime(), info.Size())
	}
	return o
}

// ReadRange asks the namenode where the blocks of a file are; reading the body asks the datanodes.
func (b *bucket) ReadRange(ctx context.Context, key string, off, n int64, etag string) (_ remote.Body, err error) {
	defer b.explain(ctx, "read", key, &err)
	c, err := b.connect()
	if err != nil {
		return remote.Body{}, err
	}
	f, err := c.Open(pathOf(key))
	if err != nil {
		return remote.Body{}, err
	}
	o := objectOf(key, f.Stat())
	switch _, seekErr := f.Seek(off, io.SeekStart); {
	case f.Stat().IsDir():
		err = fs.ErrNotExist
	case etag != "" && etag != o.ETag:
		err = remote.NewError("read", b.object(key), remote.ErrChanged, nil)
	case seekErr != nil:
		err = remote.NewError("read", b.object(key), remote.ErrInvalid, seekErr)
	}
	if err != nil {
		return remote.Body{}, errors.Join(err, f.Close())
	}
	if n < 0 {
		n = o.Size - off
	}
	return remote.Body{ReadCloser: &body{ctx: ctx, bucket: b, key: key, file: f, left: n}, Object: o}, nil
}

// body is a part of a file: the next `left` bytes.
type body struct {
	ctx    context.Context
	bucket *bucket
	key    string
	file   *hdfs.FileReader
	left   int64
}

// Read reads from a datanode; if that fails, the library tries another. After the end of the
// context, Read may still take stallTime, as the library knows no contexts.
func (r *body) Read(p []byte) (n int, err error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	defer r.bucket.explain(r.ctx, "read", r.key, &err)
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if err := r.file.SetDeadline(time.Now().Add(stallTime)); err != nil {
		return 0, err
	}
	n, err = r.file.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

func (r *body) Close() error { return r.file.Close() }

// ListPage lists a folder, or everything below it, as one page. Files that are being written are
// left out.
func (b *bucket) ListPage(ctx context.Context, prefix, delimiter string, _ []byte) (_ remote.Page, err error) {
	defer b.explain(ctx, "list", prefix, &err)
	c, err := b.connect()
	if err != nil {
		return remote.Page{}, err
	}
	if delimiter != "" && delimiter != "/" {
		return remote.Page{}, remote.NewError("list", b.object(prefix), remote.ErrInvalid,
			fmt.Errorf("folders end with /, and not with %q", delimiter))
	}
	var page remote.Page
	todo := []string{prefix[:strings.LastIndexByte(prefix, '/')+1]}
	for len(todo) > 0 && ctx.Err() == nil {
		folder := todo[0]
		todo = todo[1:]
		list, err := readFolder(c, pathOf(folder))
		if err != nil {
			return remote.Page{}, err
		}
		for _, info := range list {
			key := folder + info.Name()
			if info.IsDir() {
				key += "/"
			}
			switch {
			case isTemporary(info.Name()) || !strings.HasPrefix(key, prefix) &&
				!(info.IsDir() && strings.HasPrefix(prefix, key)):
			case !info.IsDir():
				page.Objects = append(page.Objects, objectOf(key, info))
			case delimiter == "":
				todo = append(todo, key)
			default:
				page.Objects = append(page.Objects, remote.Object{Key: key, Folder: true})
			}
		}
	}
	slices.SortFunc(page.Objects, func(a, b remote.Object) int { return strings.Compare(a.Key, b.Key) })
	return page, ctx.Err()
}

// readFolder returns the entries of a folder; no entries if the path does not exist or is a file.
func readFolder(c *hdfs.Client, folder string) ([]os.FileInfo, error) {
	f, err := c.Open(path.Clean(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !f.Stat().IsDir() {
		return nil, nil
	}
	list, err := f.Readdir(0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

// Copy reads and writes the content: HDFS has no copies of its own.
func (b *bucket) Copy(ctx context.Context, from, to string) error {
	r, err := b.ReadRange(ctx, from, 0, -1, "")
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := b.NewWriter(ctx, to, remote.WriteOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return w.Commit()
}

// Delete removes a file, and up to two folders above it that are empty then: in a bucket, folders
// exist only as parts of keys.
func (b *bucket) Delete(ctx context.Context, key string) (err error) {
	defer b.explain(ctx, "delete", key, &err)
	c, err := b.connect()
	if err != nil {
		return err
	}
	info, err := c.Stat(pathOf(key))
	if err == nil && info.IsDir() {
		err = fs.ErrNotExist
	}
	if err == nil {
		err = c.Remove(pathOf(key))
	}
	if err != nil {
		return err
	}
	for folder, n := path.Dir(pathOf(key)), 0; n < 2 && folder != "/"; folder, n = path.Dir(folder), n+1 {
		if c.Remove(folder) != nil {
			break // the folder is not empty
		}
	}
	return nil
}
