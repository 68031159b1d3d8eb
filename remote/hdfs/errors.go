//go:build !nocloud

package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/colinmarc/hdfs/v2"

	"github.com/penstock/penstock/remote"
)

// object returns the name of an object for errors.
func (b *bucket) object(key string) string { return remote.NameOf(b, key) }

// explain is deferred: it turns an error, or a panic of the library, into an error of package
// remote. The library takes for granted that an answer has all its parts.
func (b *bucket) explain(ctx context.Context, op, key string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the answer is not one of HDFS: %v", p)
	}
	var known *remote.Error
	switch {
	case *err == nil || *err == io.EOF || errors.As(*err, &known):
	case ctx.Err() != nil:
		*err = ctx.Err()
	default:
		*err = remote.NewError(op, b.object(key), kindOf(*err), b.cause(*err))
	}
}

// exceptions has the sentinels of Java's exceptions that a retry does not change.
var exceptions = map[string]error{
	"AccessControlException": remote.ErrPermission, "InvalidToken": remote.ErrPermission,
	"NSQuotaExceededException": remote.ErrInvalid, "DSQuotaExceededException": remote.ErrInvalid,
	"InvalidPathException":        remote.ErrInvalid,
	"ParentNotDirectoryException": remote.ErrInvalid, "FSLimitException$PathComponentTooLongException": remote.ErrInvalid,
	"SnapshotAccessControlException": remote.ErrPermission,
}

// kindOf returns the sentinel of an error; nil means that the fault may pass.
func kindOf(err error) error {
	for like, kind := range map[error]error{
		fs.ErrNotExist: remote.ErrNotFound, fs.ErrPermission: remote.ErrPermission, fs.ErrExist: remote.ErrExists,
		fs.ErrInvalid: remote.ErrInvalid, syscall.ENOTEMPTY: remote.ErrInvalid,
	} {
		if errors.Is(err, like) {
			return kind
		}
	}
	var java hdfs.Error
	if errors.As(err, &java) {
		return exceptions[java.Exception()[strings.LastIndexByte(java.Exception(), '.')+1:]]
	}
	return nil
}

// cause returns the error of the namenode, with the user and the namenode that were asked.
func (b *bucket) cause(err error) error {
	text := err.Error()
	var java hdfs.Error
	if errors.As(err, &java) && java.Message() != "" {
		text, _, _ = strings.Cut(java.Message(), "\n") // a stack trace follows
	}
	var path *fs.PathError
	if errors.As(err, &path) && java == nil {
		text = path.Err.Error()
	}
	who := fmt.Sprintf("%s (user %s, namenode %s)", text, b.options.User, strings.Join(b.options.Addresses, ", "))
	if strings.Contains(text, "SIMPLE authentication is not enabled") {
		who += "; the cluster asks for Kerberos, which is not supported; copy the files: hdfs dfs -get"
	}
	if dialed := b.dialed.Load(); dialed != nil && *dialed != nil && strings.HasPrefix(text, "no available namenodes") {
		return fmt.Errorf("%s: %w", who, *dialed)
	}
	return errors.New(who)
}
