package preprocess

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/cmd/internal/preprocess/part"
	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Values of RecordOptions.Names.
const (
	namesAuto = "auto" // where a record is a file, unless that costs a copy of the dataset
	namesOn   = "on"
	namesOff  = "off"
)

// storesNames reports whether records get the names of their samples. Where the source is a dataset
// that has names, these are fields of it, and no others are added.
func (r *run) storesNames(c Config) (bool, error) {
	named := slices.ContainsFunc(r.info.Fields, func(f source.Field) bool { return f.Content == store.SourceName })
	taken := slices.ContainsFunc(r.info.Fields, func(f source.Field) bool { return f.Name == store.SourceNameField })
	wanted := c.Names == namesOn
	if c.Names == namesAuto {
		wanted = !taken && filesAreRecords(r.info) && !r.inPlace(c)
		if r.base != nil {
			wanted = r.base.Schema().SourceNames() >= 0
		}
	}
	if wanted && taken && !named {
		return false, fmt.Errorf("the source has a field %q, as names of records are called; use --names off, or give the field another name with --fields", store.SourceNameField)
	}
	return wanted && !named, nil
}

// filesAreRecords reports whether names of samples are those of files or members of archives, and not
// just numbers.
func filesAreRecords(info source.Info) bool {
	switch info.Kind {
	case "imagefolder", "tar", "zip":
		return true
	case "csv", "jsonl":
		return slices.ContainsFunc(info.Fields, source.Field.Image)
	}
	return false
}

// inPlace reports whether records are written to their final places in an HDF5 file, which those of
// variable length cannot be.
func (r *run) inPlace(c Config) bool {
	ragged := func(f source.Field) bool { return f.Image() && c.KeepEncoded || !f.Image() && f.Ragged }
	return c.format() == part.HDF5 && r.info.Count > 0 && !c.Append && len(r.splits()) == 0 && !c.Compress.On &&
		!slices.ContainsFunc(r.info.Fields, ragged)
}

// nameField is the field of the names of samples.
func nameField() store.Field {
	f := store.NewRagged(store.SourceNameField, tensor.Uint8)
	f.Content = store.SourceName
	return f
}
