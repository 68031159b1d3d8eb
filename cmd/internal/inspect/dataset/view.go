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

// Node returns the node of a view that stands for a dataset that was opened at path. The node has
// the identity of the dataset, so that the view is refused after its dataset was replaced.
func Node(path string, ds *views.Dataset) *views.Node {
	n := &views.Node{Dataset: path}
	if has, ok := ds.Source.(loader.Identifier); ok && !views.Is(path) {
		n.ID = has.ID()
	}
	return n
}

// WriteView writes a view to a file. Paths of its datasets become relative to the folder of the
// file, so that both can be moved together. A URL with a login is refused: view files are shared.
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
