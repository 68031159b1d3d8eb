package preprocess

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/penstock/penstock/internal/cli"
)

// explainSpace adds to "no space left on device" how much is needed and how much there is.
func explainSpace(err error, dest string, need int64) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	folder := filepath.Dir(dest)
	free, ok := freeSpace(folder)
	if !ok {
		return fmt.Errorf("%w; the dataset needs %s", err, cli.Bytes(need))
	}
	return fmt.Errorf("%w; the dataset needs %s and %s has %s free", err, cli.Bytes(need), folder, cli.Bytes(free))
}
