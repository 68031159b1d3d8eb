//go:build !linux

package smalldisk

import (
	"errors"
	"os"
)

// Mount fails: it knows Linux only.
func Mount(dir, _ string) (unmount func() error, err error) {
	return nil, &os.PathError{Op: "mount", Path: dir, Err: errors.ErrUnsupported}
}
