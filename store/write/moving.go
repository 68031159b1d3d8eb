package write

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/layout"
)

// movingName is a file of the stage that names the last file to be moved out of the stage. Once that file is no longer
// in the stage, everything is published, and what is left of the stage can be removed.
const movingName = "build.moving"

// moving records durably which file leaves the stage last. It is called before the first file moves: a crash in the
// middle of the moves then looks different from a crash after all moves.
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

// published reports whether the last file has left the stage. A folder of the same name may be in the stage although it
// was published: it has changed places with an old dataset, whose manifest differs from the recorded checksum.
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

// manifestSum returns the checksum of the manifest in a folder of the stage; "" if the folder has none.
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
