package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"
)

// Errors that callers branch on. Each is also the corresponding error of package io/fs, if io/fs
// has such an error, so that code for files works for objects.
var (
	ErrNotFound error = sentinel{"there is no such object", fs.ErrNotExist}
	// Stores that do not distinguish a missing bucket return ErrNotFound.
	ErrNoBucket    error = sentinel{"there is no such bucket", nil}
	ErrPermission  error = sentinel{"access denied", fs.ErrPermission}
	ErrExists      error = sentinel{"there is an object already", fs.ErrExist}
	ErrChanged     error = sentinel{"the object was replaced while it was read", nil}
	ErrInvalid     error = sentinel{"the store refuses the request", fs.ErrInvalid}
	ErrUnavailable error = sentinel{"the store does not answer", nil}
)

// sentinel is an error that may also be an error of package io/fs.
type sentinel struct {
	text string
	like error
}

func (s sentinel) Error() string { return s.text }
func (s sentinel) Unwrap() error { return s.like }

// Error is a request that failed.
type Error struct {
	Op     string // "stat", "read", "list", "write", "copy", "delete", "open"
	Object string // bucket and key, without credentials
	Kind   error  // one of the sentinels; nil for a fault that a retry may fix
	Detail string // what the store said, without credentials
	Tries  int    // number of attempts; 0 means one

	// After is the pause before a retry that the store asks for. It does not count towards
	// Policy.Total.
	After time.Duration

	Absent bool // nothing listens at the address, or the host has no address

	cause error // the error of a context that ended, or nil
}

// NewError describes a failed request. It keeps the text of cause, without secrets, and whether cause was the end of a
// context, but not cause itself, whose own text may contain credentials.
func NewError(op, object string, kind, cause error) *Error {
	e := &Error{Op: op, Object: Redact(object), Kind: kind}
	if cause != nil {
		e.Detail = Redact(cause.Error())
		e.Absent = isAbsent(cause)
	}
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(cause, end) {
			e.cause = end
		}
	}
	return e
}

// isAbsent reports whether a request failed because nothing listens at the address, or because the host's name has no
// address. Waiting does not help then.
func isAbsent(err error) bool {
	var dns *net.DNSError
	var own *Error
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &own) &&
		own.Absent
}

// Error says what failed, where, and why.
func (e *Error) Error() string {
	text := fmt.Sprintf("remote: %s %s", e.Op, e.Object)
	if e.Kind != nil {
		text += ": " + e.Kind.Error()
	}
	if e.Tries > 1 {
		text += fmt.Sprintf(" (tried %d times)", e.Tries)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the sentinel and, where a context ended, its error.
func (e *Error) Unwrap() []error {
	var list []error
	for _, err := range []error{e.Kind, e.cause} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}
