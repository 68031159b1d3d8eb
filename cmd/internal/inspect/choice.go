package inspect

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// Choice is a part of a dataset. The zero value is all of it.
type Choice struct {
	Fields []string // nil means all
	Split  string   // "" means all records; otherwise they are numbered from 0 in the split
}

func (c *Choice) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&c.Fields, "field", nil, "only this `FIELD`; several with commas (default all)")
	cmd.Flags().StringVar(&c.Split, "split", "", "only the records of this `SPLIT`")
}

// open opens the chosen part of the dataset at path.
func (c Choice) open(path string) (*mmapds.Dataset, error) {
	p, err := look(path)
	if err != nil {
		return nil, err
	}
	p.close()
	ds, err := mmapds.Open(path, mmapds.WithFields(c.Fields...), mmapds.WithSplit(c.Split))
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return nil, p.withAdvice(err)
	case err != nil:
		return nil, worded{err}
	}
	return ds, nil
}

// manifestOf reads the manifest of the dataset at path without looking at its records.
func manifestOf(path string) (*store.Manifest, error) {
	p, err := look(path)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if !p.ours() {
		return nil, fmt.Errorf("%s was not made by penstock: it has no manifest", path)
	}
	d, err := p.locate()
	if err != nil {
		return nil, p.withAdvice(err)
	}
	return d.Manifest, nil
}
