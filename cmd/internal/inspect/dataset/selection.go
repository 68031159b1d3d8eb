package dataset

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// Selection is a part of a dataset: some fields, and one split. The zero value is the whole
// dataset.
type Selection struct {
	Fields []string // nil means all
	Split  string   // "" means all records; records of a split are numbered from 0
}

// Register adds --field and --split to a command.
func (c *Selection) Register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&c.Fields, "field", nil, "only this `FIELD`; several with commas (default all)")
	cmd.Flags().StringVar(&c.Split, "split", "", "only the records of this `SPLIT`")
}

// Open opens the selected part of the dataset at path. The Target is opened first, because its
// errors say what a path is that has no dataset.
func (c Selection) Open(path string) (*mmapds.Dataset, error) {
	p, err := Open(path)
	if err != nil {
		return nil, err
	}
	p.Close()
	ds, err := mmapds.Open(path, mmapds.WithFields(c.Fields...), mmapds.WithSplit(c.Split))
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return nil, p.WithAdvice(err)
	case err != nil:
		return nil, ForFlags(err)
	}
	return ds, nil
}

// ReadManifest returns the manifest of the dataset at path. It reads no records.
func ReadManifest(path string) (*store.Manifest, error) {
	p, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if !p.ByPenstock() {
		return nil, fmt.Errorf("%s was not made by penstock: it has no manifest", path)
	}
	d, err := p.Locate()
	if err != nil {
		return nil, p.WithAdvice(err)
	}
	return d.Manifest, nil
}
