//go:build !unix

package private

import (
	"os"
	"path/filepath"
)

// Move renames a file or folder from one open folder to another, as [os.Rename] does.
func Move(from *os.Root, name string, to *os.Root, newName string) error {
	return os.Rename(filepath.Join(from.Name(), name), filepath.Join(to.Name(), newName))
}
