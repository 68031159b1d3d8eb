package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/sys/private"
)

// stateName is the file of a mirror that holds its state.
const stateName = "state"

// Owns reports whether a file of a mirror's folder, by its name, is the mirror's own and not the dataset's.
func Owns(name string) bool { return name == stateName || name == booksName || name == arrivedName }

// makeCache makes the folder of all mirrors, of which nobody else may change the content.
func makeCache(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the cache: %w", err)
	}
	parent, name, err := private.Parent(dir)
	if err != nil {
		return fmt.Errorf("the cache: %w", err)
	}
	defer parent.Close()
	if err := private.CheckOwner(parent, name); err != nil {
		return fmt.Errorf("the cache %s: %w", dir, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("the cache: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("the cache %s: others may write to it (%v), so its content cannot be trusted; chmod go-w %s, or name another folder", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// openFolder makes and opens the folder of a mirror. What is opened by way of it lies inside.
func openFolder(dir string) (*os.Root, error) {
	parent, name, err := private.Parent(dir)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return private.Make(parent, name)
}

// folderName returns the name of a mirror: the same for the same content from the same place.
func folderName(parts ...string) string {
	sum := sha256.Sum256([]byte(stateMagic + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// sparse makes a file of zeros that takes no room, with a header.
func sparse(root *os.Root, name string, size int64, header []byte) error {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(header, 0)
	return errors.Join(err, f.Truncate(size), f.Close())
}

// merge joins blocks that lie side by side, whatever their order was.
func merge(ranges []blocks) []blocks {
	slices.SortFunc(ranges, func(a, b blocks) int {
		if n := a.x.base - b.x.base; n != 0 {
			return int(min(1, max(-1, n)))
		}
		return int(min(1, max(-1, a.from-b.from)))
	})
	var out []blocks
	for _, r := range ranges {
		if n := len(out); n > 0 && out[n-1].x == r.x && r.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, r.to)
			continue
		}
		out = append(out, r)
	}
	return out
}
