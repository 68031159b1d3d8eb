package views

import (
	"fmt"

	"github.com/penstock/penstock/internal/sys/shell"
)

// The limits of views, which docs/format.md promises and the Python package has too. A view is refused before its
// datasets are opened, so that a small file cannot ask for more.
const (
	// maxFile is the maximum size of a file in bytes.
	maxFile = 64 << 20

	// maxDepth is how deep views may be nested, counting views in files that they name.
	maxDepth = 32

	// maxFiles is how many views may be in files, one of which names the next.
	maxFiles = 8

	// maxDatasets is how many datasets a view may open. One that is named twice, or in a file that is, counts twice.
	maxDatasets = 1 << 14
)

// size is how many datasets a view opens, and how deeply it is nested.
type size struct{ datasets, depth int }

// counter computes the size of a view, including views in other files. Each file is read once,
// although several views may name it: a small file could otherwise ask for exponentially many
// reads.
type counter struct {
	files   map[string]size // of the views in files
	reading []string        // files, each of which names the next
}

// CheckSize returns an error if a view, together with the views in the files that it names, exceeds
// the limits.
func (n *Node) CheckSize() error {
	c := counter{files: make(map[string]size)}
	of, err := c.count(n)
	switch {
	case err != nil:
		return err
	case of.datasets > maxDatasets:
		return fmt.Errorf("it opens more than %d datasets, each as often as it is named; put records that belong together "+
			"into one dataset: %s", maxDatasets, shell.Penstock("preprocess VIEW DEST"))
	case of.depth > maxDepth:
		return fmt.Errorf("views are nested deeper than %d", maxDepth)
	}
	return nil
}

// count returns the size of a view. It stops as soon as the limit is exceeded.
func (c *counter) count(n *Node) (of size, err error) {
	if n.Dataset != "" && !Is(n.Dataset) {
		return size{1, 0}, nil
	}
	if n.Dataset != "" {
		of, err = c.inFile(n.Dataset)
		if n.Fields != nil {
			of.depth++
		}
		return of, err
	}
	for _, part := range n.parts() {
		some, err := c.count(part)
		of = size{of.datasets + some.datasets, max(of.depth, some.depth+1)}
		if err != nil || of.datasets > maxDatasets {
			return of, err
		}
	}
	return of, nil
}

func (c *counter) inFile(path string) (of size, err error) {
	if of, known := c.files[path]; known {
		return of, nil
	}
	if c.reading = append(c.reading, path); len(c.reading) > maxFiles {
		return of, fmt.Errorf("view %s: more than %d views, each in the file of another", path, maxFiles)
	}
	n, err := Read(path)
	if err == nil {
		of, err = c.count(n)
	}
	c.reading = c.reading[:len(c.reading)-1]
	c.files[path] = of
	return of, err
}
