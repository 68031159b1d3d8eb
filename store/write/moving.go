package write

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/layout"
)

// movingName is a file of the stage with the name of the one that is about to be moved out
// of it as the last one: once that is gone, the rest can go.
const movingName = "build.moving"

// moving says which file leaves the stage last.
func moving(f *Folder, name string) error {
	text := name
	if sum := manifestSum(f.root, name); sum != "" {
		text += "\n" + sum
	}
	if err := f.WriteFile(movingName, []byte(text)); err != nil {
		return err
	}
	return f.sync()
}

// published reports whether the last file to be moved out of a stage is. A folder may have changed places with an old
// dataset, which has another manifest.
func published(folder *os.Root) bool {
	text, err := folder.ReadFile(movingName)
	if err != nil || len(text) == 0 {
		return false
	}
	name, want, _ := strings.Cut(string(text), "\n")
	name = filepath.Base(name)
	if _, err = folder.Lstat(name); err == nil && want != "" {
		return manifestSum(folder, name) != want
	}
	return errors.Is(err, fs.ErrNotExist)
}

// manifestSum returns the checksum of the manifest of a dataset that is a folder in another one; "" if there is none.
func manifestSum(folder *os.Root, name string) string {
	for _, manifest := range manifests {
		if text, err := folder.ReadFile(filepath.Join(name, manifest)); err == nil {
			return layout.HexCRC(layout.CRC32C(text))
		}
	}
	return ""
}

// manifests are the files that make a folder a dataset.
var manifests = []string{layout.ManifestName, filepath.FromSlash(layout.ZarrManifest)}
