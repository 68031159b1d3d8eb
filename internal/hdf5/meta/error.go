package meta

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that callers branch on; every error of this package that is about the file's bytes
// wraps exactly one of these errors.
var (
	// ErrNotHDF5 is for a file without the HDF5 signature.
	ErrNotHDF5 = errors.New("not an HDF5 file")
	// ErrCorrupt is for bytes that no correct writer leaves: truncated, corrupt, cyclic.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnsupported is for valid HDF5 that this package does not read, or that is larger
	// than its limits.
	ErrUnsupported = errors.New("not supported")
)

// Error says in which structure of the file something is wrong.
type Error struct {
	Path string // object that was being read, "" if none
	What string // structure, for example "object header"
	Addr int64  // offset of the structure in the file, user block included
	Msg  string // what is wrong
	Kind error  // ErrNotHDF5, ErrCorrupt, ErrUnsupported, or the error of the ReaderAt
}

// Error returns all parts of the error in one line.
func (e *Error) Error() string {
	if e.Kind == ErrNotHDF5 {
		return fmt.Sprintf("%v: it %s", e.Kind, e.Msg)
	}
	var b strings.Builder
	b.WriteString("hdf5: ")
	if e.Path != "" {
		fmt.Fprintf(&b, "%q: ", e.Path)
	}
	fmt.Fprintf(&b, "%s at 0x%x: %s: %v", e.What, e.Addr, e.Msg, e.Kind)
	return b.String()
}

// Unwrap returns Kind.
func (e *Error) Unwrap() error { return e.Kind }

// inPath adds the object's path to an Error without a path.
func inPath(err error, path string) error {
	var e *Error
	if errors.As(err, &e) && e.Path == "" {
		e.Path = path
	}
	return err
}

// refusal says why a dataset cannot be used in some way; the caller knows which dataset.
type refusal struct {
	msg  string
	kind error
}

func (r *refusal) Error() string { return r.msg }

func (r *refusal) Unwrap() error { return r.kind }

func refuse(format string, args ...any) error {
	return refuseFor(ErrUnsupported, fmt.Sprintf(format, args...))
}

// refuseFor is refuse for another kind of error.
func refuseFor(kind error, msg string) error { return &refusal{msg, kind} }
