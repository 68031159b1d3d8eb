package rawcache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/remote"
)

// Folder creates the folder of the cache in dir, or in the user's cache folder if dir is "", and
// returns its path. A folder in which other users could change something is an error: datasets in
// it are mapped and trusted.
func Folder(dir string) (string, error) {
	dir, err := cacheFolder(dir)
	if err != nil {
		return "", err
	}
	root, err := private.UserFolder(dir)
	if err != nil {
		return "", err
	}
	return root.Name(), root.Close()
}

// existingFolder is Folder without creating anything. If the folder does not exist, the error is
// os.ErrNotExist.
func existingFolder(dir string) (string, error) {
	dir, err := cacheFolder(dir)
	if err != nil {
		return "", err
	}
	root, err := private.FindUserFolder(dir)
	if err != nil {
		return "", err
	}
	return root.Name(), root.Close()
}

// cacheFolder returns the given cache folder, or the user's default one.
func cacheFolder(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	home, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; name a folder for the cache", err)
	}
	return filepath.Join(home, "penstock-raw"), nil
}

// checkOutside refuses a cache folder inside the source. Datasets in it would be listed as samples,
// and each build would change the source's fingerprint. The folder need not exist.
func checkOutside(dir string, src *raw.Source) error {
	if remote.IsURL(src.Path()) {
		return nil
	}
	folder, err := cacheFolder(dir)
	if err != nil {
		return err
	}
	folder, err = resolved(folder)
	if err != nil {
		return err
	}
	source, err := resolved(src.Path())
	if err != nil {
		return err
	}
	if folder == source || strings.HasPrefix(folder, strings.TrimSuffix(source, sep)+sep) {
		return fmt.Errorf("the folder of the cache, %s, is inside the source; choose one outside of %s "+
			"(cache_dir, --cache-dir)", folder, source)
	}
	return nil
}

const sep = string(filepath.Separator)

// resolved returns the absolute path without symbolic links. The last folders of the path may be
// missing: they are appended to the resolved rest unchanged.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !os.IsNotExist(err) || filepath.Dir(at) == at {
			return path, nil // opening the path reports what is wrong
		}
	}
}
