package preprocess

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/penstock/penstock/cmd/internal/cli"
)

// explainSpace turns an error that comes of a full disk, or of a quota, into one that says
// how much is needed and how much there is, now that what was written is removed. need is what
// is known beforehand: nothing of records that have lengths of their own.
func explainSpace(err error, dest string, need int64) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) || errno != syscall.ENOSPC && errno != syscall.EDQUOT {
		return err
	}
	text := "at least " + cli.Bytes(need)
	folder := filepath.Dir(dest)
	switch free, ok := freeSpace(folder); {
	case ok && free > need:
		text = fmt.Sprintf("more than the %s that %s has free", cli.Bytes(free), folder)
	case ok:
		text += fmt.Sprintf(", and %s has %s free", folder, cli.Bytes(free))
	}
	return fmt.Errorf("cannot write %s: %w: the dataset needs %s", dest, errno, text)
}
