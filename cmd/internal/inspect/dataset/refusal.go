package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/kinds"
)

// notFound is the error of a path that does not exist: why the files that a glob stands for are no source, or the
// existing path that was probably meant.
func notFound(path string) error {
	if _, err := source.Files(path); err == nil {
		_, err = source.Detect(path)
		return cmp.Or(err, fmt.Errorf("%s: not one dataset, but several files", path))
	}
	return fmt.Errorf("%s: no such file or folder%s", path, suggest.Path(path))
}

// notDataset is the error of a file or folder that exists and is not a dataset. It says what the
// file or folder is and, if preprocess reads it, the command that makes a dataset of it. read is
// the error of reading a file as HDF5, nil for a folder.
func notDataset(path string, read error) error {
	err := fmt.Errorf("%s: not a dataset (a folder or an HDF5 file)", path)
	info, statErr := os.Stat(path)
	folder := statErr == nil && info.IsDir()
	dest, parts := strings.CutSuffix(filepath.Clean(path), ".parts")
	switch {
	case folder && parts:
		return fmt.Errorf("%w; it holds the parts of one: %s", err, shell.On("preprocess merge", dest))
	case statErr != nil:
		return err
	case isZarr(path):
		return zarrArrays(path)
	}
	root, failed := source.OpenRoot(path, source.Options{})
	if failed != nil {
		return fmt.Errorf("%w; it %w", err, failed)
	}
	defer root.Close()
	kind, foreign := source.DetectIn(root, path)
	if what := source.ForeignFile(root, path); foreign != nil && what != "" {
		return fmt.Errorf("%w; it %s", err, what)
	}
	if e := (*meta.Error)(nil); kind == "hdf5" && errors.As(read, &e) { // an HDF5 file by its name, which cannot be read
		return fmt.Errorf("%w; it %s", err, e.Msg)
	}
	if foreign != nil || kind == "hdf5" {
		return err
	}
	if entries, listErr := os.ReadDir(path); folder && listErr == nil && len(entries) == 0 {
		return fmt.Errorf("%w; it is empty", err)
	}
	name := filepath.Base(path)
	if full, err := filepath.Abs(path); err == nil {
		name = filepath.Base(full) // Base(".") is no name
	}
	made := strings.TrimSuffix(name, filepath.Ext(name)) + ".h5"
	if made == name {
		made = strings.TrimSuffix(made, ".h5") + "-mapped.h5"
	}
	src, openErr := kinds.Open(context.Background(), path, source.Options{Found: kind})
	if openErr != nil {
		return fmt.Errorf("%w; %w", err, openErr)
	}
	defer src.Close()
	if kind != "imagefolder" { // any folder of which nothing else is known is an imagefolder
		err = fmt.Errorf("%w, but samples of kind %s", err, kind)
	}
	command := "preprocess"
	if slices.ContainsFunc(src.Info().Fields, source.Field.Image) {
		command += " --keep-encoded" // works for images of any sizes, so the command needs no size
	}
	return fmt.Errorf("%w; run: %s", err, cmp.Or(shell.Penstock(command, path, made),
		shell.Penstock("preprocess SOURCE DEST")))
}
