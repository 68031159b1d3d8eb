package views

import (
	"fmt"

	"github.com/penstock/penstock/internal/sys/shell"
)

// The limits of views, which are those of docs/format.md and of the Python package. A view is refused before its
// datasets are opened, so that a small file cannot ask for more.
const (
	// maxFile is the maximum size of a file in bytes.
	maxFile = 64 << 20

	// maxDepth is how deep views may be nested in a file.
	maxDepth = 32

	// maxFiles is how many views may be in files, one of which names the next.
	maxFiles = 8

	// maxDatasets is how many datasets a view may open. One that is named twice, or in a file that is, counts twice.
	maxDatasets = 1 << 14
)

// counter counts the datasets of a view, those of other files included. Each file is read once.
type counter struct {
	files   map[string]int // the datasets of the views in files
	reading []string       // files, each of which names the next
}

// checkDatasets returns an error if a view opens more datasets than it may.
func (n *Node) checkDatasets() error {
	c := counter{files: make(map[string]int)}
	count, err := c.count(n)
	if err == nil && count > maxDatasets {
		err = fmt.Errorf("it opens more than %d datasets, each as often as it is named; %s", maxDatasets,
			"put records that belong together into one dataset: "+shell.Penstock("preprocess VIEW DEST"))
	}
	return err
}

// count returns how many datasets a view opens, or more than it may.
func (c *counter) count(n *Node) (datasets int, err error) {
	if n.Dataset != "" && !Is(n.Dataset) {
		return 1, nil
	}
	if n.Dataset != "" {
		return c.inFile(n.Dataset)
	}
	for _, part := range n.parts() {
		some, err := c.count(part)
		if datasets += some; err != nil || datasets > maxDatasets {
			return datasets, err
		}
	}
	return datasets, nil
}

func (c *counter) inFile(path string) (datasets int, err error) {
	if datasets, known := c.files[path]; known {
		return datasets, nil
	}
	if c.reading = append(c.reading, path); len(c.reading) > maxFiles {
		return 0, fmt.Errorf("view %s: more than %d views, each in the file of another", path, maxFiles)
	}
	n, err := Read(path)
	if err == nil {
		datasets, err = c.count(n)
	}
	c.reading = c.reading[:len(c.reading)-1]
	c.files[path] = datasets
	return datasets, err
}
