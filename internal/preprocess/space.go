package preprocess

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/penstock/penstock/internal/cli"
)

// explainSpace turns an error that comes of a full disk, or of a quota, into one that says
// how much is needed and how much there is, now that what was written is removed.
func explainSpace(err error, dest string, need int64) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) || errno != syscall.ENOSPC && errno != syscall.EDQUOT {
		return err
	}
	text := ""
	folder := filepath.Dir(dest)
	if free, ok := freeSpace(folder); ok {
		text = fmt.Sprintf(", and %s has %s free", folder, cli.Bytes(free))
	}
	return fmt.Errorf("cannot write %s: %w: the dataset needs at least %s%s", dest, errno, cli.Bytes(need), text)
}
