package dataset

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/remote"
)

// Node returns the part of a view that a dataset is which was opened by its path, with its identity.
func Node(path string, ds *views.Dataset) *views.Node {
	n := &views.Node{Dataset: path}
	if has, ok := ds.Source.(loader.Identifier); ok && !views.Is(path) {
		n.ID = has.ID()
	}
	return n
}

// WriteView writes a view of datasets by their paths, which it makes relative to the folder of the file.
func WriteView(file string, n *views.Node) error {
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return err
	}
	n.Datasets(func(path *string) {
		if remote.IsURL(*path) {
			if shown := remote.RedactURLs(*path); shown != *path {
				err = fmt.Errorf("%s: the file would have the login or the options of %s: keep a login in ~/.netrc or the "+
					"environment, or copy the dataset to a folder, and make the view of that", file, shown)
			}
			return
		}
		absolute, failed := filepath.Abs(*path)
		if failed == nil {
			absolute, failed = filepath.Rel(folder, absolute)
		}
		if failed != nil {
			err = failed
			return
		}
		*path = filepath.ToSlash(absolute)
	})
	if err != nil {
		return err
	}
	root := *n
	root.Penstock, root.Version = "view", 1
	return cli.WriteFile(file, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(root)
	})
}
